/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_net: see verbs_net.h.
 */
#include "test/sim/verbs_net.h"

#include <string.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "mem/rank_page.h"
#include "rma/message.h"
#include "rma/region_table.h"
#include "transports/verbs/verbs.h"

#define PORTS 64u

weft_iface_ops verbs_net_ops;

static struct { weft_iface *port; uint32_t rank; } opened[PORTS];
static struct {
    const weft_iface_callbacks *owners;
    weft_iface_callbacks own; /* the owner's, with waits_kept */
    void *waiting[PORTS];     /* owners that have a clause */
    char text[WEFT_IFACE_WAIT_BYTES];
} waits;
static bool is_early;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

enum verbs_net_mutant verbs_net_mutant;
bool verbs_net_mixes;

/* -- registrations -- */

verbs_net_regs verbs_net_registered;
static _Thread_local const uint32_t *asked; /* rights that this thread's mr_reg was called with; NULL: verbs registers for itself */
static _Thread_local uint32_t trials;       /* registrations for relaxed ordering that an open may still make */

static void count_registration(bool is_relaxed)
{
    bool is_bulk = asked && !(*asked & (WEFT_ACCESS_ORDERED | WEFT_ACCESS_ATOMIC));
    verbs_net_registered.bulk += is_bulk;
    if (is_relaxed && is_bulk)
        verbs_net_registered.relaxed++;
    else if (is_relaxed && trials)
        trials--;
    else if (is_relaxed)
        verbs_net_registered.wrong++;
}

/* Called by the device, with its lock held. */
static bool on_register(unsigned access)
{
    uint32_t rights = asked ? *asked : 0;
    count_registration(access & IBV_ACCESS_RELAXED_ORDERING);
    switch (verbs_net_mutant) {
    case VERBS_NET_RELAXES_WINDOWS: return rights & WEFT_ACCESS_ORDERED;
    case VERBS_NET_RELAXES_RINGS: return !asked && (access & IBV_ACCESS_REMOTE_WRITE);
    case VERBS_NET_RELAXES_RAILS: return !(rights & WEFT_ACCESS_ORDERED) && (rights & (WEFT_ACCESS_WRITE | WEFT_ACCESS_MW));
    default: return false;
    }
}

/* -- faults planted into eps -- */

/* Corrupts the state of an ep between calls of verbs. */
static void corrupt_ep(verbs_ep *ep)
{
    bool is_broken = ep->state == VERBS_DRAINING;
    if (verbs_net_mutant == VERBS_NET_OVERDRAWS && ep->state == VERBS_UP)
        ep->credits = 64;
    if (verbs_net_mutant == VERBS_NET_RINGS_AT_ONCE)
        ep->is_put_behind = false;
    for (uint8_t i = 0; i < ep->qp_count && verbs_net_mutant == VERBS_NET_OVERFILLS; i++)
        ep->qps[i].sq_used = 0;
    if (verbs_net_mutant == VERBS_NET_DROPS && is_broken && !weft_list_is_empty(&ep->sent))
        weft_list_remove(ep->sent.next);
    if (verbs_net_mutant == VERBS_NET_DOUBLES && is_broken && ep->rx_seq)
        ep->rx_seq--;
}

static void spoil(weft_iface *base)
{
    verbs_iface *iface = (verbs_iface *)base;
    for (weft_list_link *link = iface->eps.next; verbs_net_mutant && link != &iface->eps; link = link->next)
        corrupt_ep(weft_container(link, verbs_ep, by_iface));
}

static const char *never_absent(void)
{
    return NULL;
}

static void waits_kept(void *owner, const char *text)
{
    uint32_t at = 0;
    while (at < PORTS - 1 && waits.waiting[at] && waits.waiting[at] != owner)
        at++;
    waits.waiting[at] = text ? owner : NULL;
    for (; !text && at < PORTS - 1; at++) /* no gaps */
        waits.waiting[at] = waits.waiting[at + 1];
    if (text)
        snprintf(waits.text, sizeof waits.text, "%s", text);
    if (waits.owners->waits)
        waits.owners->waits(owner, text);
}

const char *verbs_net_waits(uint32_t *left)
{
    for (*left = 0; *left < PORTS && waits.waiting[*left];)
        ++*left;
    return waits.text;
}

static void done_kept(void *owner, void *done, int rc);

static int net_open(const weft_iface_params *params, weft_iface **iface)
{
    weft_iface_params own = *params;
    own.now_ns = simhca_now_ns;
    waits.owners = params->callbacks;
    waits.own = *params->callbacks;
    waits.own.waits = waits_kept;
    if (verbs_net_mutant == VERBS_NET_TRUSTS)
        waits.own.done = done_kept;
    if (verbs_net_mutant == VERBS_NET_UNASKED)
        waits.own.absence = NULL;
    own.callbacks = &waits.own;
    simhca_process(params->self.rank);
    trials = VERBS_RAILS;
    int way = weft_knob.verbs_connect;
    if (verbs_net_mixes && params->self.rank % 2)
        weft_knob.verbs_connect = WEFT_VERBS_CONNECT_RDMACM;
    int rc = weft_verbs_ops.open(&own, iface);
    weft_knob.verbs_connect = way;
    trials = 0;
    if (rc) {
        fprintf(stderr, "    verbs cannot be opened: %s\n", weft_fail_text(rc));
        return rc;
    }
    (*iface)->ops = &verbs_net_ops;
    for (uint8_t i = 0; i < ((verbs_iface *)*iface)->rail_count; i++) /* not iWARP: no rdma_cm */
        ((verbs_iface *)*iface)->rails[i].completes_early = is_early;
    (*iface)->caps.may_rest &= !is_early; /* as with rdma_cm */
    rc = verbs_read_fence_open((verbs_iface *)*iface);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < PORTS; i++)
        if (!opened[i].port) {
            opened[i].port = *iface;
            opened[i].rank = params->self.rank;
            return 0;
        }
    return 0;
}

static void net_close(weft_iface *iface)
{
    for (uint32_t i = 0; i < PORTS; i++)
        if (opened[i].port == iface)
            opened[i].port = NULL;
    weft_verbs_ops.close(iface);
}

static int net_leave(weft_iface *iface, weft_ep *ep)
{
    weft_sim_enter();
    return weft_verbs_ops.ep_close(iface, ep);
}

static int net_rest(weft_iface *iface, weft_ep *ep, enum weft_ep_rest how)
{
    weft_sim_enter();
    return weft_verbs_ops.ep_rest(iface, ep, verbs_net_mutant == VERBS_NET_HASTY && how == WEFT_EP_REST ? WEFT_EP_LEAVE : how);
}

static int net_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    weft_sim_enter();
    asked = &rights;
    int rc = weft_verbs_ops.mr_reg(iface, addr, bytes, rights, kind, mr);
    asked = NULL;
    return rc;
}

static bool is_untold(const weft_frame *frame)
{
    return verbs_net_mutant == VERBS_NET_UNTOLD && frame->hdr.kind == WEFT_FRAME_NOTIFY &&
           frame->hdr.bytes == sizeof(weft_rma_region_note) && *(const uint8_t *)frame->body == WEFT_RMA_REVOKED;
}

/* A note that tells nothing, in place of this one. */
static int send_nothing(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    const weft_rma_region_note nothing = {.kind = WEFT_RMA_ACK};
    weft_frame other = *frame;
    other.body = &nothing;
    return weft_verbs_ops.send(iface, ep, &other);
}

static int net_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    weft_sim_enter();
    spoil(iface);
    return is_untold(frame) ? send_nothing(iface, ep, frame) : weft_verbs_ops.send(iface, ep, frame);
}

/* -- reads of region tables -- */

static struct { void *done, *local; uint64_t bytes; bool is_root; } table_reads[PORTS];

/* By length and alignment. */
static bool is_of_root(const weft_rma *rma)
{
    return rma->remote % WEFT_PAGE == 0 && rma->bytes == sizeof(weft_table_root);
}

static bool is_of_block(const weft_rma *rma)
{
    uint64_t bytes = WEFT_TABLE_BLOCK * sizeof(weft_table_entry);
    return rma->remote % bytes == 0 && rma->bytes <= bytes && rma->bytes % sizeof(weft_table_entry) == 0;
}

static void keep_table_read(const weft_rma *rma)
{
    uint32_t at = 0;
    if (verbs_net_mutant != VERBS_NET_TRUSTS || (!is_of_root(rma) && !is_of_block(rma)))
        return;
    while (at < PORTS - 1 && table_reads[at].done && table_reads[at].done != rma->done)
        at++;
    table_reads[at].done = rma->done;
    table_reads[at].local = rma->local;
    table_reads[at].bytes = rma->bytes;
    table_reads[at].is_root = is_of_root(rma);
}

/* Whatever was read gets right checksums. */
static void done_kept(void *owner, void *done, int rc)
{
    for (uint32_t at = 0; at < PORTS && done; at++) {
        weft_table_root *root = table_reads[at].local;
        weft_table_entry *entries = table_reads[at].local;
        if (table_reads[at].done != done)
            continue;
        table_reads[at].done = NULL;
        if (table_reads[at].is_root)
            root->check = root->count <= WEFT_TABLE_MAX ? weft_table_root_check(root) : 0;
        for (uint64_t i = 0; i < table_reads[at].bytes / sizeof *entries && !table_reads[at].is_root; i++)
            entries[i].check = weft_table_entry_check(&entries[i]);
    }
    waits.owners->done(owner, done, rc);
}

static int net_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    weft_sim_enter();
    keep_table_read(rma);
    return weft_verbs_ops.get(iface, ep, rma);
}

static int net_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    weft_sim_enter();
    return weft_verbs_ops.put(iface, ep, rma);
}

static int by_cpu(const weft_atomic *atomics, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *word = (uint64_t *)(uintptr_t)atomics[i].remote, before = atomics[i].compare;
        if (atomics[i].op == WEFT_AMO_ADD)
            before = __atomic_fetch_add(word, atomics[i].operand, __ATOMIC_ACQ_REL);
        else
            __atomic_compare_exchange_n(word, &before, atomics[i].operand, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        if (atomics[i].before)
            *atomics[i].before = before;
    }
    return 0;
}

static int net_amo_self(weft_iface *iface, const weft_atomic *atomics, uint32_t count)
{
    weft_sim_enter();
    return verbs_net_mutant == VERBS_NET_CPU_WORDS ? by_cpu(atomics, count) : weft_verbs_ops.amo_self(iface, atomics, count);
}

static int net_poll(weft_iface *iface, int budget)
{
    weft_sim_enter();
    spoil(iface);
    int n = weft_verbs_ops.poll(iface, budget);
    spoil(iface);
    if (n == 0)
        weft_sim_idle();
    return n;
}

/* Arrivals between the caller's last poll and this arm do not raise the wakeup: time passes here, so that this occurs often. */
static int net_arm(weft_iface *iface, weft_wakeup *wakeup)
{
    weft_sim_enter();
    simhca_pass(draw(400));
    int rc = weft_verbs_ops.arm(iface, wakeup);
    if (verbs_net_mutant == VERBS_NET_UNARMED && draw(4) == 0)
        wakeup->fd = -1;
    return rc;
}

void verbs_net_kill(uint32_t rank)
{
    bool had = false;
    for (uint32_t i = 0; i < PORTS; i++)
        if (opened[i].port && opened[i].rank == rank) {
            close(((verbs_iface *)opened[i].port)->epoll);
            opened[i].port = NULL;
            had = true;
        }
    if (had)
        simhca_kill(rank);
}

uint32_t verbs_net_pending(uint32_t rank)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < PORTS; i++) {
        verbs_iface *iface = (verbs_iface *)opened[i].port;
        for (weft_list_link *link = iface ? iface->eps.next : NULL; iface && link != &iface->eps; link = link->next) {
            const verbs_ep *ep = weft_container(link, verbs_ep, by_iface);
            /* acknowledged frames may be unreported: unsignalled ones never are */
            bool waits = ep->state == VERBS_CONNECTING || ep->state == VERBS_DRAINING || !weft_list_is_empty(&ep->ops);
            pending += ep->proc_id.rank == rank && ep->state != VERBS_FAILED && waits;
        }
    }
    return pending;
}

static void pass(void *arg, uint64_t ns)
{
    (void)arg;
    weft_sim_pass(ns);
}

const weft_sim_net *verbs_net_open(const simhca_profile *profile, uint64_t seed, bool is_run)
{
    static const weft_sim_net net = {.ops = &verbs_net_ops, .advance = simhca_advance, .next_due = simhca_next_due,
                                     .ended = verbs_net_kill, .rings = &simhca_rings, .activity = &simhca_activity};
    verbs_net_ops = weft_verbs_ops;
    verbs_net_ops.unavailable = never_absent;
    verbs_net_ops.open = net_open;
    verbs_net_ops.close = net_close;
    verbs_net_ops.ep_close = net_leave;
    verbs_net_ops.ep_rest = net_rest;
    verbs_net_ops.mr_reg = net_mr_reg;
    verbs_net_ops.send = net_send;
    verbs_net_ops.get = net_get;
    verbs_net_ops.put = net_put;
    verbs_net_ops.amo_self = net_amo_self;
    verbs_net_ops.poll = net_poll;
    verbs_net_ops.arm = net_arm;
    state = seed;
    memset(&waits, 0, sizeof waits);
    memset(table_reads, 0, sizeof table_reads);
    is_early = profile->early;
    if (!simhca_open(profile, seed, 0))
        return NULL;
    simhca_clock(is_run ? pass : NULL, NULL);
    simhca_on_register(on_register);
    verbs_net_registered = (verbs_net_regs){0};
    return &net;
}

uint32_t verbs_net_close(FILE *out)
{
    for (uint32_t i = 0; i < PORTS; i++)
        opened[i].port = NULL;
    return simhca_close(out);
}

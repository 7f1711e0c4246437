/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: the operations table of ofi; polling, sleeping, opening and closing in order. See ofi.h.
 * Sleeping: one epoll set has the CQ's descriptor and a timer. fi_trywait is called before. A provider without descriptor, or one that
 * refused a call, is polled every millisecond. libfabric's tcp (`net`) signals its own descriptor at a completion and clears it in its
 * own waits only, so it stays readable. So the epoll set of its sockets within is watched instead. If /proc does not show which that is,
 * the descriptor is watched for edges, which arm consumes before the caller polls once more; as libfabric may leave a message in a
 * socket, sleeps are limited, too.
 * A poll costs libfabric's tcp a system call or two: after IDLE_POLLS without events only each IDLE_EVERY'th reads the CQ.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define LAST_WRITES_NS 10000000
#define IDLE_POLLS 256u   /* polls without events, after which only ... */
#define IDLE_EVERY 8u     /* ... each IDLE_EVERY'th poll reads the CQ */
#define BARREN_POLLS 256u /* polls without events, with sleeps or not, after which one more receive is posted */
#define CLOCK_EVERY 512u  /* polls between two reads of the clock while no handshake is pending */
#define LOOK_NS 1000000u
#define EDGED_CHECK_NS 20000000u

/* -- completions -- */

static void failed(ofi_iface *iface)
{
    struct fi_cq_err_entry error = {0};
    ofi_work *work;
    char words[128] = "", text[192];
    const char *more;
    if (fi_cq_readerr(iface->cq, &error, 0) <= 0)
        return;
    work = error.op_context;
    more = fi_cq_strerror(iface->cq, error.prov_errno, error.err_data, words, sizeof words);
    snprintf(text, sizeof text, "%s (%s)", ofi_error_text(error.err), more ? more : "no more words");
    if (!work)
        return; /* an inject has no context; numbers and handshakes find what is missing */
    if (work->kind == OFI_WORK_FRAG) {
        ofi_frag_done(iface, weft_container(work, ofi_frag, work), &error);
    } else if (work->kind == OFI_WORK_RECV) {
        if (!iface->has_multi_recv || error.flags & FI_MULTI_RECV)
            ofi_recv_done(iface, weft_container(work, ofi_recv, work));
    } else {
        ofi_slot *slot = weft_container(work, ofi_slot, work);
        ofi_ep *ep = work->ep, *called = slot->about < iface->index_capacity ? iface->by_index[slot->about] : NULL;
        ofi_slot_done(iface, slot);
        if (ep)
            ofi_break(iface, ep, text);
        else if (called)
            called->called_ns = 0; /* the handshake was not delivered: repeats it */
    }
}

/* Dispatches the next completion that was read. */
static int hand_over(ofi_iface *iface, int budget)
{
    const struct fi_cq_data_entry *entry = &iface->entries[iface->entry];
    ofi_work *work = entry->op_context;
    int n = 1;
    if (work && work->kind == OFI_WORK_RECV) {
        n = ofi_recv_message(iface, entry, &iface->entry_at, budget);
        if (iface->entry_at < entry->len)
            return n;
    } else if (work && work->kind == OFI_WORK_FRAG) {
        ofi_frag_done(iface, weft_container(work, ofi_frag, work), NULL);
    } else if (work) {
        ofi_slot_done(iface, weft_container(work, ofi_slot, work));
    }
    iface->entry++;
    iface->entry_at = 0;
    return work ? n : 0;
}

static int drain(ofi_iface *iface, int budget)
{
    int total = 0;
    bool has_more = true;
    while (total < budget) {
        ssize_t n;
        if (iface->entry < iface->entry_count) {
            total += hand_over(iface, budget - total);
            continue;
        }
        if (!has_more)
            break;
        n = fi_cq_read(iface->cq, iface->entries, OFI_BATCH);
        has_more = n == OFI_BATCH;
        iface->entry = 0;
        iface->entry_count = n > 0 ? (uint32_t)n : 0;
        if (n != -FI_EAVAIL)
            continue;
        failed(iface);
        total++;
    }
    return total;
}

/* Retries fragments and receives that the provider refused. */
static int retry(ofi_iface *iface)
{
    int n = 0;
    iface->is_full = false;
    for (weft_list_link *link = iface->rma_active.next; link != &iface->rma_active && !n;) {
        ofi_ep *ep = weft_container(link, ofi_ep, by_rma);
        link = link->next;
        n += ofi_rma_progress(iface, ep); /* a callback may have changed the list */
    }
    ofi_post_recvs(iface);
    return n;
}

static int chores(ofi_iface *iface)
{
    int n = 0;
    if (iface->is_full || !weft_list_is_empty(&iface->rma_active))
        n += retry(iface);
    if (!weft_list_is_empty(&iface->handshaking) || iface->polls % CLOCK_EVERY == 0 || iface->is_armed)
        n += ofi_handshake_turn(iface);
    return n;
}

/* A receive may be occupied by a peer that computes while it sends a message, and other peers' messages wait. */
static void offer_more(ofi_iface *iface)
{
    iface->recv_max++;
    ofi_post_recvs(iface);
}

static int ofi_poll(weft_iface *base, int budget)
{
    ofi_iface *iface = (ofi_iface *)base;
    int n;
    iface->polls++;
    if (weft_unlikely(iface->listener >= 0) && (iface->is_armed || iface->looks_in-- == 0) && (n = ofi_knock_answer(iface)))
        return n < budget ? n : budget;
    if (iface->is_deferred)
        return 0;
    ofi_coalesce_flush(iface);
    if (!weft_list_is_empty(&iface->held)) {
        n = ofi_keep_copy(iface);
        if (n)
            return n < budget ? n : budget;
    }
    if (iface->idle_polls > IDLE_POLLS && !iface->is_armed && !iface->ops_open && weft_list_is_empty(&iface->handshaking) &&
        !iface->is_full &&
        iface->polls % IDLE_EVERY)
        return 0;
    iface->counts[OFI_COUNT_POLLS]++;
    iface->is_polling = true;
    n = drain(iface, budget);
    if (n < budget)
        n += chores(iface);
    iface->is_polling = false;
    ofi_coalesce_flush(iface);
    iface->idle_polls = n ? 0 : iface->idle_polls + 1;
    if (n)
        iface->barren_polls = 0;
    else if (++iface->barren_polls % BARREN_POLLS == 0 && iface->recv_max < iface->recv_count)
        offer_more(iface);
    return n < budget ? n : budget;
}

/* -- sleeping -- */

static void set_timer(ofi_iface *iface, uint64_t ns)
{
    struct itimerspec when = {.it_value = {.tv_nsec = (long)ns}};
    if (ns || iface->is_timed)
        timerfd_settime(iface->timer, 0, &when, NULL);
    iface->is_timed = ns != 0;
}

void ofi_wake_soon(ofi_iface *iface)
{
    iface->is_full = true;
    if (iface->is_armed)
        set_timer(iface, LOOK_NS);
}

static void take_edges(const ofi_iface *iface)
{
    struct epoll_event events[2];
    epoll_wait(iface->epoll, events, 2, 0);
}

static int ofi_arm(weft_iface *base, weft_wakeup *wakeup)
{
    ofi_iface *iface = (ofi_iface *)base;
    struct fid *fid;
    bool looks = iface->cq_fd < 0 || iface->is_full || !weft_list_is_empty(&iface->handshaking);
    uint64_t within;
    if (iface->is_deferred) {
        iface->is_armed = true;
        *wakeup = (weft_wakeup){.fd = iface->epoll};
        return 0;
    }
    fid = &iface->cq->fid;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next)
        ofi_acknowledge(iface, weft_container(link, ofi_ep, link), OFI_WINDOW / 64); /* peers may wait for this during the sleep */
    iface->wants_sleep = !weft_list_is_empty(&iface->held);
    if (iface->entry < iface->entry_count || iface->wants_sleep)
        return WEFT_AGAIN;
    if (iface->is_edged)
        take_edges(iface);
    if (iface->cq_fd >= 0 && fi_trywait(iface->fabric, &fid, 1)) {
        if (++iface->arm_refusals < 4)
            return WEFT_AGAIN;
        looks = true; /* fi_trywait reports work that poll does not find */
    }
    iface->arm_refusals = 0;
    iface->is_armed = true;
    within = looks ? LOOK_NS : ofi_watch_within(iface);
    if (within)
        set_timer(iface, within);
    *wakeup = (weft_wakeup){.fd = iface->epoll, .within_ns = !looks && iface->is_edged ? EDGED_CHECK_NS : within};
    return 0;
}

static void ofi_disarm(weft_iface *base)
{
    ofi_iface *iface = (ofi_iface *)base;
    iface->is_armed = false;
    iface->idle_polls = iface->looks_in = 0;
    set_timer(iface, 0);
}

/* -- opening -- */

static void ofi_close(weft_iface *base)
{
    ofi_iface *iface = (ofi_iface *)base;
    if (!weft_list_is_empty(&iface->eps) && iface->info && strcmp(iface->addr.provider, "sockets") == 0)
        nanosleep(&(struct timespec){.tv_nsec = LAST_WRITES_NS}, NULL); /* a thread of the provider writes what was sent last */
    while (!weft_list_is_empty(&iface->eps)) /* not closed: the process rested, or the job aborts */
        ofi_ep_free(iface, weft_container(iface->eps.next, ofi_ep, link));
    ofi_coalesce_close(iface);
    ofi_endpoint_close(iface);
    ofi_knock_close(iface);
    if (iface->timer >= 0)
        close(iface->timer);
    if (iface->epoll >= 0)
        close(iface->epoll);
    free(iface->by_index);
    free(iface);
}

static int ofi_open(const weft_iface_params *params, weft_iface **out)
{
    ofi_iface *iface = calloc(1, sizeof *iface);
    int rc = 0;
    if (!iface)
        return weft_fail(WEFT_E_NOMEM, "no memory for an iface of %zu bytes", sizeof *iface);
    ofi_provider_prepare();
    iface->iface = (weft_iface){.ops = &weft_ofi_ops, .owner = params->owner, .callbacks = params->callbacks};
    iface->self = params->self;
    iface->has_remote = params->is_far;
    iface->providers = params->providers;
    iface->now_ns = params->now_ns ? params->now_ns : weft_clock_ns;
    iface->cq_fd = iface->sockets = iface->listener = -1;
    weft_list_init(&iface->eps);
    weft_list_init(&iface->orphans);
    weft_list_init(&iface->held);
    weft_list_init(&iface->handshaking);
    weft_list_init(&iface->rma_active);
    ofi_coalesce_open(iface);
    iface->epoll = epoll_create1(EPOLL_CLOEXEC);
    iface->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (iface->epoll < 0 || iface->timer < 0)
        rc = weft_fail(WEFT_E_SYSTEM, "no descriptor to sleep on: %s", strerror(errno));
    if (rc == 0)
        rc = ofi_sleep_on(iface, iface->timer, 0);
    iface->is_deferred = rc == 0 && params->local_rank > 0 && !params->providers && ofi_may_defer() && ofi_knock_listen(iface) == 0;
    if (rc == 0 && !iface->is_deferred)
        rc = ofi_endpoint_open(iface);
    if (rc) {
        ofi_close(&iface->iface);
        return rc;
    }
    ofi_caps_set(iface);
    *out = &iface->iface;
    return 0;
}

static int ofi_get_addr(weft_iface *base, void *addr, size_t *bytes)
{
    ofi_iface *iface = (ofi_iface *)base;
    if (*bytes < sizeof iface->addr)
        return weft_fail(WEFT_E_ARG, "an address has %zu bytes, the buffer %zu", sizeof iface->addr, *bytes);
    memcpy(addr, &iface->addr, sizeof iface->addr);
    *bytes = sizeof iface->addr;
    return 0;
}

static void ofi_print_counters(weft_iface *base, void (*line)(void *arg, const char *text), void *arg)
{
    static const char *const names[] = {"frames_sent", "inline", "frames_arrived",     "refused",         "fragments", "handshakes",
                                        "polls",       "breaks", "coalesced_messages", "coalesced_frames", "resent",     "copied_late"};
    const ofi_iface *iface = (const ofi_iface *)base;
    char text[512];
    int n = snprintf(text, sizeof text, "ofi: %s", iface->is_deferred ? "not opened: no contact with another host" : iface->addr.provider);
    for (size_t i = 0; i < weft_count(names); i++)
        if (iface->counts[i] && n >= 0 && (size_t)n < sizeof text)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %s %" PRIu64, names[i], iface->counts[i]);
    line(arg, text);
}

/* -- unsupported -- */

static int ofi_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    (void)iface, (void)bytes, (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "a network does not share memory");
}

static int ofi_unshare(weft_iface *iface, weft_shared *shared) { return ofi_share(iface, 0, shared); }

const weft_iface_ops weft_ofi_ops = {
    .name = "ofi",
    .unavailable = ofi_unavailable,
    .describe = ofi_describe,
    .open = ofi_open,
    .close = ofi_close,
    .get_addr = ofi_get_addr,
    .ep_open = ofi_ep_open,
    .ep_close = ofi_ep_close,
    .mr_reg = ofi_mr_reg,
    .mr_dereg = ofi_mr_dereg,
    .share = ofi_share,
    .unshare = ofi_unshare,
    .send = ofi_send,
    .can_rma = ofi_can_rma,
    .get = ofi_get,
    .put = ofi_put,
    .amo = ofi_amo,
    .flush = ofi_flush,
    .poll = ofi_poll,
    .arm = ofi_arm,
    .disarm = ofi_disarm,
    .print_counters = ofi_print_counters,
};

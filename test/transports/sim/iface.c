/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: the simulator's iface ops. Every call draws its faults from the fabric, then posts an event there.
 * Invariant: refusals end: a series of AGAIN is bounded, and a full queue empties when the peer polls.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/sim/fabric.h"

typedef struct sim_iface_addr {
    uint64_t fabric; /* an address of another fabric */
    weft_proc_id proc_id;
} sim_iface_addr;

static const char *sim_unavailable(void)
{
    return NULL;
}

static int sim_open(const weft_iface_params *params, weft_iface **iface)
{
    weft_sim *sim = (weft_sim *)params->segment;
    if (!sim)
        return weft_fail(WEFT_E_ARG, "the simulator needs its fabric in env.segment");
    const weft_sim_profile *profile = &sim->profile;
    sim_nic *nic = sim_nic_of(sim, &params->self);
    sim_iface *made = calloc(1, sizeof *made);
    if (!nic || !made) {
        free(made);
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated port");
    }
    if (nic->iface) {
        free(made);
        return weft_fail(WEFT_E_ARG, "rank %u has opened worker %u already", params->self.rank, params->self.worker);
    }
    made->iface = (weft_iface){
        .ops = &weft_sim_ops,
        .owner = params->owner,
        .callbacks = params->callbacks,
        .caps = {.frame_max = profile->frame_max, .chunk = profile->frame_max, .frag = profile->frag,
                 .frags_max = profile->frag ? 8 * profile->frame_max : 0, .zcopy_min = profile->zcopy_min,
                 .inline_max = profile->inline_max, .rma_max = profile->rma_max, .rma_fragment = profile->rma_frag,
                 .latency_ns = profile->delay_ns / 4 + 1,
                 .mbyte_per_s = profile->link_mbyte_per_s ? profile->link_mbyte_per_s : 1000,
                 .key_bytes = profile->keyless ? 0 : WEFT_KEYRING_KEY_BYTES,
                 .prompt = profile->prompt_permille == 1000,
                 .get = !profile->no_get, .put = !profile->no_put, .notify = !profile->no_notify && !profile->no_put,
                 .notify_after_all = !profile->no_notify && !profile->no_put,
                 .revokes = !profile->keyless, .ordered = !profile->unordered, .may_rest = true, .mr_local = profile->mr_local,
                 .share = !profile->no_share,
                 .amo = profile->amo, .amo_device = 1 + nic->index, .wants_regcache = profile->wants_regcache, .rails = profile->rails,
                 .mr_bytes_max = profile->limits_in_caps ? profile->mr_bytes_max : 0,
                 .mr_count_max = profile->limits_in_caps ? profile->mr_count_max : 0},
    };
    made->nic = nic;
    nic->iface = &made->iface;
    *iface = &made->iface;
    return 0;
}

/* The owner rested, or the job aborts. Some networks tell the peer so, behind all frames. */
static void close_open_flow(sim_nic *nic, sim_flow *flow)
{
    sim_flow *back = sim_flow_of(flow->to, nic);
    flow->is_open = false;
    if (back && back->is_open && !flow->to->is_dead && flow->to->iface && sim_chance(nic->sim, 500))
        sim_failed_post(nic->sim, back);
}

/* Events of this iface in flight are dropped; those of others wait for an iface with the same proc id. */
static void sim_close(weft_iface *iface)
{
    sim_nic *nic = sim_nic_at(iface);
    weft_list_link *link;
    while ((link = weft_list_take(&nic->ready))) {
        sim_event *event = weft_container(link, sim_event, link);
        if (event->kind == SIM_FRAME)
            event->flow->frames--;
        sim_event_free(event);
    }
    for (uint32_t i = 0; i < nic->flow_capacity; i++)
        if (nic->flows[i] && nic->flows[i]->is_open)
            close_open_flow(nic, nic->flows[i]);
    weft_rkey_table_close(&nic->keys);
    nic->iface = NULL;
    free(iface);
}

static int sim_get_addr(weft_iface *iface, void *addr, size_t *bytes)
{
    sim_nic *nic = sim_nic_at(iface);
    sim_iface_addr local = {nic->sim->seed, nic->proc_id};
    if (*bytes < sizeof local)
        return weft_fail(WEFT_E_ARG, "an address has %zu bytes, the buffer %zu", sizeof local, *bytes);
    memcpy(addr, &local, sizeof local);
    *bytes = sizeof local;
    return 0;
}

static int sim_ep_open(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **ep)
{
    sim_nic *nic = sim_nic_at(iface);
    weft_sim *sim = sim_enter(nic);
    sim_iface_addr remote;
    /* The proc id suffices, as a fabric is one namespace: the simulator's own addresses are checked, others ignored. */
    if (addr && bytes == sizeof remote) {
        memcpy(&remote, addr, sizeof remote);
        if (remote.fabric != sim->seed || remote.proc_id.rank != proc_id->rank)
            return weft_fail(WEFT_E_UNSUPPORTED, "the address of rank %u is of another fabric", proc_id->rank);
    }
    sim_nic *to = sim_nic_of(sim, proc_id);
    sim_flow *flow = to ? sim_flow_of(nic, to) : NULL;
    if (!flow)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated path to rank %u", proc_id->rank);
    if (flow->is_open)
        return weft_fail(WEFT_E_ARG, "rank %u is reached already", proc_id->rank);
    flow->is_open = true;
    flow->is_failed = flow->failed_posted = false;
    flow->ep = (weft_ep){.iface = iface, .peer = peer};
    if (to->is_dead || flow->is_cut)
        sim_failed_post(sim, flow);
    *ep = &flow->ep;
    return 0;
}

static int sim_ep_close(weft_iface *iface, weft_ep *ep)
{
    sim_flow *flow = sim_flow_at(ep);
    sim_nic *nic = sim_nic_at(iface);
    weft_sim *sim = sim_enter(nic);
    if (!flow->is_failed && (flow->frames_in_flight || flow->rma_ops))
        return sim_again(sim, nic);
    if (!flow->is_failed && sim_is_refused(sim, nic))
        return WEFT_AGAIN;
    flow->is_open = false;
    return 0;
}

/* Only users' bytes: a wrong address in a control frame would be a wild write. */
static bool is_payload(const weft_frame *frame)
{
    uint8_t kind = frame->hdr.kind;
    return kind == WEFT_FRAME_EAGER || kind == WEFT_FRAME_EAGER_CSUM || kind == WEFT_FRAME_DATA;
}

/* A bit of the header or of a control frame. The buffer has frame_max bytes, whatever length the header has afterwards. */
static void scrawl(weft_sim *sim, sim_event *event)
{
    uint64_t bits = 8 * sizeof event->hdr + (event->hdr.kind == WEFT_FRAME_RTS || event->hdr.kind == WEFT_FRAME_CTS
                                                  ? 8ull * event->hdr.bytes : 0);
    uint64_t bit = sim_random(sim) % bits;
    uint8_t *at = bit < 8 * sizeof event->hdr ? (uint8_t *)&event->hdr + bit / 8
                                               : event->body + (bit / 8 - sizeof event->hdr);
    *at ^= (uint8_t)(1u << bit % 8);
    sim->counts[WEFT_SIM_HDRS_FLIPPED]++;
}

/* Posts a copy of the frame. */
static int launch(weft_sim *sim, sim_flow *flow, const weft_frame *frame)
{
    uint32_t bytes = frame->hdr.bytes;
    bool is_scrawled = sim_flips(sim, sim->profile.flip_hdr_permille);
    sim_event *event = sim_event_new(flow, SIM_FRAME, is_scrawled ? sim->profile.frame_max : bytes);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a frame of %u bytes", bytes);
    event->hdr = frame->hdr;
    if (frame->pack)
        frame->pack(frame, event->body);
    else if (bytes)
        memcpy(event->body, frame->body, bytes);
    if (bytes && is_payload(frame) && sim_flips(sim, sim->profile.flip_permille)) {
        uint64_t bit = sim_random(sim) % (8ull * bytes);
        event->body[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sim->counts[WEFT_SIM_FLIPPED]++;
    }
    if (is_scrawled)
        scrawl(sim, event);
    sim->counts[WEFT_SIM_FRAMES]++;
    flow->frames++;
    flow->frames_in_flight++;
    int rc = sim_event_post(sim, event);
    if (rc) {
        flow->frames--;
        flow->frames_in_flight--;
    }
    return rc;
}

static void spend_copy(weft_sim *sim, uint64_t bytes)
{
    if (sim->profile.copy_mbyte_per_s && bytes)
        sim_spend(sim, bytes * 1000 / sim->profile.copy_mbyte_per_s);
}

static uint64_t hash_of(const uint8_t *at, uint64_t bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (uint64_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

/* The body was copied at the send; it is compared with the sender's memory, which must not have changed. Once the frame is received it may,
 * as memory of a window does to which the receiver then puts: a real port may send the body again, but that is discarded. The event was
 * made right behind its frame's. */
static void sim_end_held(weft_iface *iface, sim_event *event)
{
    bool is_received = event->flow->received_seq >= event->seq - 1;
    event->flow->rma_ops--;
    sim_nic_at(iface)->rma_ops--;
    if (!is_received && hash_of(event->rma.local, event->rma.bytes) != event->hash) {
        fprintf(stderr, "sim: a body of %" PRIu64 " bytes that the port held was changed before it was told free\n", event->rma.bytes);
        abort();
    }
    iface->callbacks->done(iface->owner, event->done, 0);
}

/* Is the body read later? Then done is called, whatever becomes of the frame. */
static bool holds(weft_sim *sim, sim_flow *flow, const weft_frame *frame)
{
    uint32_t min = sim->profile.zcopy_min;
    sim_event *event;
    if (!frame->zcopy_ctx || !min || frame->hdr.bytes < min || !sim_chance(sim, sim->profile.zcopy_permille) ||
        !(event = sim_event_new(flow, SIM_DONE, 0)))
        return false;
    event->was = SIM_FRAME;
    event->done = frame->zcopy_ctx;
    event->rma = (weft_rma){.local = (void *)frame->body, .bytes = frame->hdr.bytes};
    event->hash = hash_of(frame->body, frame->hdr.bytes);
    if (sim_event_post(sim, event))
        return false;
    flow->rma_ops++;
    flow->from->rma_ops++;
    sim->counts[WEFT_SIM_ZCOPY]++;
    return true;
}

static int sim_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    sim_flow *flow = sim_flow_at(ep);
    weft_sim *sim = sim_enter(sim_nic_at(iface));
    uint32_t bytes = frame->hdr.bytes;
    if (bytes > iface->caps.frame_max)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", bytes, iface->caps.frame_max);
    int rc = sim_may_post(sim, flow);
    if (rc)
        return rc;
    if (flow->frames >= sim->profile.flow_frames)
        return sim_again(sim, flow->from);
    if (sim_chance(sim, sim->profile.lose_permille))
        return 0;
    if (flow->is_cut) { /* sent between the break and its report */
        sim->counts[WEFT_SIM_DROPPED]++;
        return 0;
    }
    spend_copy(sim, bytes);
    rc = launch(sim, flow, frame);
    if (!rc && holds(sim, flow, frame))
        return WEFT_INPROGRESS;
    if (!rc && frame->hdr.kind == WEFT_FRAME_EAGER && sim_chance(sim, sim->profile.twice_permille))
        launch(sim, flow, frame);
    return rc;
}

/* -- progress -- */

static void hand_up_frame(weft_iface *iface, sim_event *event)
{
    sim_nic *me = sim_nic_at(iface), *from = event->flow->from;
    sim_flow *back = sim_flow_of(me, from);
    void *peer = NULL;
    event->flow->frames--;
    if (event->seq > event->flow->received_seq)
        event->flow->received_seq = event->seq;
    sim_wake_blocked(from);
    if (back && back->is_open)
        peer = back->ep.peer;
    else if (!(peer = iface->callbacks->accept_peer(iface->owner, &from->proc_id)) &&
             !(peer = iface->callbacks->accept_peer(iface->owner, &from->proc_id))) { /* other ifaces retry later if memory is short */
        me->sim->counts[WEFT_SIM_DROPPED]++;
        return;
    }
    iface->callbacks->recv_frame(iface->owner, peer, &event->hdr, event->body);
    spend_copy(me->sim, event->hdr.bytes);
}

static void hand_up(weft_iface *iface, sim_event *event)
{
    sim_nic *me = sim_nic_at(iface);
    sim_flow *local;
    switch (event->kind) {
    case SIM_FRAME:
        hand_up_frame(iface, event);
        break;
    case SIM_DONE:
        if (event->was == SIM_FRAME)
            sim_end_held(iface, event);
        else
            sim_end_rma(iface, event);
        break;
    case SIM_NOTIFY:
        local = sim_flow_of(me, event->flow->from);
        if (local && local->is_open)
            iface->callbacks->notify(iface->owner, local->ep.peer, event->rma.notify);
        break;
    case SIM_PEER_FAILED:
        local = sim_flow_of(me, event->flow->from);
        if (local && local->is_open && !local->is_failed) {
            local->is_failed = true;
            iface->callbacks->peer_failed(iface->owner, local->ep.peer,
                           weft_fail(WEFT_E_PEER, local->is_cut ? "transport retry exceeded: the connection to rank %u is broken"
                                                               : "rank %u died", event->flow->from->proc_id.rank));
        }
        break;
    default: break;
    }
}

static int sim_poll(weft_iface *iface, int budget)
{
    sim_nic *nic = sim_nic_at(iface);
    weft_sim *sim = sim_enter(nic);
    int events = 0;
    weft_list_link *link;
    uint64_t debt_ns = __atomic_exchange_n(&nic->debt_ns, 0, __ATOMIC_RELAXED);
    if (debt_ns)
        sim_spend(sim, debt_ns);
    sim_advance(sim, 20 + sim_random(sim) % 100);
    if (!nic->armed && !weft_list_is_empty(&nic->ready) && sim_chance(sim, sim->profile.blind_permille)) {
        sim->counts[WEFT_SIM_BLIND]++;
        return 0;
    }
    while (events < budget && (link = weft_list_take(&nic->ready))) {
        sim_event *event = weft_container(link, sim_event, link);
        hand_up(iface, event);
        sim_event_free(event);
        sim->activity++;
        events++;
    }
    if (!events && sim->idle)
        sim->idle(sim->hook_arg);
    return events;
}

/* Memory is being reclaimed: a few arms in a row return AGAIN, fewer after a successful one. */
static bool must_ask_again(weft_sim *sim, sim_nic *nic)
{
    if (!nic->arms_left)
        nic->arms_left = sim_chance(sim, sim->profile.arm_again_permille) ? 2 + (uint32_t)(sim_random(sim) % 4) : 1;
    if (--nic->arms_left == 0)
        return false;
    sim->counts[WEFT_SIM_ARMS_REFUSED]++;
    return true;
}

/* Arrivals between the caller's last poll and arm raise no wakeup: only its poll after arm finds them. Time passes here, so that this is
 * frequent. */
static int sim_arm(weft_iface *iface, weft_wakeup *wakeup)
{
    sim_nic *nic = sim_nic_at(iface);
    weft_sim *sim = sim_enter(nic);
    sim_advance(sim, sim_random(sim) % 400);
    if (must_ask_again(sim, nic))
        return WEFT_AGAIN;
    nic->armed++;
    *wakeup = (weft_wakeup){.futex = &nic->wakeup, .value = nic->wakeup, .fd = -1, .within_ns = sim->profile.timer_ns};
    return 0;
}

static void sim_disarm(weft_iface *iface)
{
    sim_nic_at(iface)->armed--;
}

const weft_iface_ops weft_sim_ops = {
    .name = "sim",
    .unavailable = sim_unavailable,
    .describe = weft_describe_nothing,
    .open = sim_open,
    .close = sim_close,
    .get_addr = sim_get_addr,
    .ep_open = sim_ep_open,
    .ep_close = sim_ep_close,
    .mr_reg = sim_mr_reg,
    .mr_dereg = sim_mr_dereg,
    .share = sim_share,
    .unshare = sim_unshare,
    .send = sim_send,
    .can_rma = sim_can_rma,
    .get = sim_get,
    .put = sim_put,
    .amo = sim_amo,
    .amo_self = sim_amo_self,
    .flush = sim_flush,
    .poll = sim_poll,
    .arm = sim_arm,
    .disarm = sim_disarm,
};

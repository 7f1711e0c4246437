/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: gets, puts, atomics and flushes: posting, memory access, completion. Called through the iface's table, and by the fabric when an
 * event is due.
 * Invariant: an rma op completes once, after its last line has moved; keys are checked at every step, as memory may be deregistered
 * meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/sim/fabric.h"

#define STEPS 4   /* steps of a torn rma op, or of an atomic by a device */
#define WORD 8u   /* bytes that a get reads at one time, if it is no longer than ... */
#define WORDS_MAX 4096u

/* The cache lines of the peer's memory that move in this step, or the words, selected by address and op number. */
static void cross_lines(const sim_event *event, uint8_t *to, const uint8_t *from)
{
    uint64_t remote = event->rma.remote, bytes = event->rma.bytes, next;
    uint64_t unit = event->kind == SIM_GET && bytes <= WORDS_MAX ? WORD : WEFT_LINE;
    for (uint64_t at = 0; at < bytes; at = next) {
        uint64_t line = (remote + at) / unit, mixed = (line + 1) * (event->seq * 2 + 1) * 0x9e3779b97f4a7c15u;
        next = (line + 1) * unit - remote;
        if (next > bytes)
            next = bytes;
        if ((mixed >> 40) % STEPS == event->step)
            memcpy(to + at, from + at, next - at);
    }
}

/* Bytes of a get wait in a bounce buffer until its completion, unless it moves line by line. */
static int cross(sim_event *event)
{
    weft_rma *rma = &event->rma;
    uint8_t *there = (uint8_t *)(uintptr_t)rma->remote, *here = rma->local;
    if (!rma->bytes)
        return 0;
    if (event->step != SIM_WHOLE) {
        cross_lines(event, event->kind == SIM_GET ? here : there, event->kind == SIM_GET ? there : here);
        return 0;
    }
    if (event->kind == SIM_PUT) {
        memcpy(there, here, rma->bytes);
        return 0;
    }
    if (!(event->bounce = malloc(rma->bytes)))
        return weft_fail(WEFT_E_NOMEM, "no memory to simulate a get of %" PRIu64 " bytes", rma->bytes);
    memcpy(event->bounce, there, rma->bytes);
    return 0;
}

/* All bytes have moved: flips a bit, by the profile. */
static void spoil(weft_sim *sim, sim_event *event)
{
    uint8_t *landed = event->kind == SIM_PUT ? (uint8_t *)(uintptr_t)event->rma.remote
                                             : event->bounce ? event->bounce : event->rma.local;
    if (event->kind == SIM_AMO || !event->rma.bytes || !sim_flips(sim, sim->profile.flip_rma_permille))
        return;
    uint64_t bit = sim_random(sim) % (8 * event->rma.bytes);
    landed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    sim->counts[WEFT_SIM_RMA_FLIPPED]++;
}

/* Checks both sides: the peer's key and the local region. */
static int check_keys(const sim_event *event)
{
    static const uint32_t needs[] = {[SIM_GET] = WEFT_ACCESS_READ, [SIM_PUT] = WEFT_ACCESS_WRITE, [SIM_AMO] = WEFT_ACCESS_ATOMIC};
    sim_flow *flow = event->flow;
    weft_sim *sim = flow->to->sim;
    uint64_t remote = event->kind == SIM_AMO ? event->atomic.remote : event->rma.remote;
    uint64_t bytes = event->kind == SIM_AMO ? sizeof(uint64_t) : event->rma.bytes;
    int rc = sim->profile.keyless ? 0 : weft_rkey_table_check(&flow->to->keys, &event->rkey, remote, bytes, needs[event->kind]);
    if (!rc && event->has_region)
        rc = weft_rkey_table_check(&flow->from->keys, &event->local_key, (uintptr_t)event->rma.local, bytes, 0);
    if (rc)
        sim->counts[WEFT_SIM_KEYS_REFUSED]++;
    return rc;
}

/* Performs one step of an rma op. */
static int perform(sim_event *event)
{
    sim_flow *flow = event->flow;
    if (flow->to->is_dead || !flow->to->iface)
        return weft_fail(WEFT_E_PEER, "rank %u ended before the transfer was over", flow->to->proc_id.rank);
    if (flow->is_cut)
        return weft_fail(WEFT_E_PEER, "transport retry exceeded: the connection to rank %u is broken", flow->to->proc_id.rank);
    if (event->kind == SIM_FLUSH)
        return 0;
    int rc = check_keys(event);
    if (rc)
        return rc;
    if (event->kind == SIM_AMO) {
        sim_amo_step(flow->to->sim, event, event->step + 1 == STEPS);
        return 0;
    }
    return cross(event);
}

static void notify(sim_event *event)
{
    sim_flow *flow = event->flow;
    sim_event *told = flow->to->iface ? sim_event_new(flow, SIM_NOTIFY, 0) : NULL;
    if (told) {
        told->rma.notify = event->rma.notify;
        sim_make_ready(flow->to, told);
    }
}

static bool waits_for_older(const sim_event *event)
{
    weft_list_link *oldest = weft_list_first(&event->flow->pending);
    return oldest && weft_container(oldest, sim_event, pending)->seq < event->seq;
}

/* Does this op break the connection? */
static void wear(weft_sim *sim, sim_event *event)
{
    if (event->step != SIM_WHOLE && event->step > 0)
        return;
    if (event->seq < event->flow->newest_rma)
        sim->counts[WEFT_SIM_OVERTAKEN]++;
    else
        event->flow->newest_rma = event->seq;
    if (!event->flow->is_cut && sim_chance(sim, sim->profile.cut_permille))
        sim_cut(sim, event->flow);
}

void sim_access_memory(weft_sim *sim, sim_event *event)
{
    sim_flow *flow = event->flow;
    if (flow->from->is_dead || !flow->from->iface) {
        sim_event_free(event); /* the initiator is dead: no completion */
        return;
    }
    if ((event->kind == SIM_FLUSH || (event->kind == SIM_PUT && event->rma.notify_after_all)) && waits_for_older(event)) {
        sim_event_post(sim, event);
        return;
    }
    if (event->kind != SIM_FLUSH)
        wear(sim, event);
    event->rc = perform(event);
    if (!event->rc && event->step != SIM_WHOLE && event->step + 1 < STEPS) {
        event->step++;
        sim_event_post(sim, event);
        return;
    }
    if (!event->rc && event->kind != SIM_FLUSH)
        spoil(sim, event);
    if (event->kind == SIM_PUT && !event->rc && event->rma.notify)
        notify(event);
    sim->counts[WEFT_SIM_RMA]++;
    event->was = event->kind;
    event->kind = SIM_DONE;
    sim_event_post(sim, event);
}

/* Stores the result at the initiator. */
static void bring_home(const sim_event *event)
{
    if (event->rc)
        return;
    if (event->was == SIM_AMO && event->atomic.before)
        *event->atomic.before = event->atomic.operand;
    if (event->was == SIM_GET && event->bounce)
        memcpy(event->rma.local, event->bounce, event->rma.bytes);
}

void sim_end_rma(weft_iface *iface, sim_event *event)
{
    event->flow->rma_ops--;
    sim_nic_at(iface)->rma_ops--;
    bring_home(event);
    if (event->done)
        iface->callbacks->done(iface->owner, event->done, event->rc);
}

/* The op completed inside the call. */
static int end_at_once(weft_sim *sim, sim_event *event)
{
    weft_iface *iface = event->flow->ep.iface;
    void *done = event->done;
    int rc;
    event->step = SIM_WHOLE;
    rc = event->rc = perform(event);
    event->was = event->kind;
    if (!rc)
        spoil(sim, event);
    bring_home(event);
    sim->counts[WEFT_SIM_RMA]++;
    sim_event_free(event);
    if (!rc && done)
        iface->callbacks->done(iface->owner, done, 0);
    return rc;
}

/* Posts a get, put, amo or flush; some complete inside the call. */
static int post(weft_sim *sim, sim_event *event)
{
    sim_flow *flow = event->flow;
    bool is_plain = event->kind == SIM_GET || (event->kind == SIM_PUT && !event->rma.notify && !sim->profile.torn);
    sim->activity++;
    if (is_plain && weft_list_is_empty(&flow->pending) && sim_chance(sim, sim->profile.prompt_permille))
        return end_at_once(sim, event);
    if (event->kind == SIM_PUT || event->kind == SIM_AMO)
        weft_list_append(&flow->pending, &event->pending);
    if (event->step == 0 && event->kind != SIM_AMO)
        sim->counts[WEFT_SIM_TORN]++;
    if (sim->profile.rails)
        event->rail = (uint8_t)(sim_random(sim) % sim->profile.rails);
    flow->rma_ops++;
    flow->from->rma_ops++;
    int rc = sim_event_post(sim, event);
    if (rc) {
        flow->rma_ops--;
        flow->from->rma_ops--;
    }
    return rc;
}

/* Is there space for one more op to this peer, and for its completion? */
static int may_move(weft_sim *sim, sim_flow *flow)
{
    int rc = sim_may_post(sim, flow);
    if (rc)
        return rc;
    if (sim->profile.queue && flow->from->rma_ops >= sim->profile.queue) {
        sim->counts[WEFT_SIM_QUEUE_FULL]++;
        return sim_again(sim, flow->from);
    }
    return flow->rma_ops >= sim->profile.flow_rma ? sim_again(sim, flow->from) : 0;
}

bool sim_can_rma(weft_iface *iface, weft_ep *ep)
{
    const sim_nic *nic = sim_nic_at(iface);
    (void)ep;
    return (iface->caps.get || iface->caps.put) && !(nic->sim->profile.one_way && nic->proc_id.rank % 2);
}

/* Invalid operations are refused in the call. */
static int judge(weft_iface *iface, weft_ep *ep, const weft_rma *what, enum sim_event_kind kind)
{
    const weft_sim_profile *profile = &sim_nic_at(iface)->sim->profile;
    if (kind == SIM_GET ? profile->no_get : profile->no_put)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port has no %s", kind == SIM_GET ? "get" : "put");
    if (!sim_can_rma(iface, ep))
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated rank may not reach other ranks' memory");
    if (what->notify && !iface->caps.notify)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port cannot notify");
    if (what->bytes > iface->caps.rma_max)
        return weft_fail(WEFT_E_ARG, "%" PRIu64 " bytes are more than move_max, %" PRIu64, what->bytes, iface->caps.rma_max);
    if (iface->caps.mr_local && !what->mr && (what->bytes || !what->notify_after_all))
        return weft_fail(WEFT_E_KEY, "this simulated port needs the local memory's region");
    return 0;
}

static int move(weft_iface *iface, weft_ep *ep, const weft_rma *what, enum sim_event_kind kind)
{
    sim_flow *flow = sim_flow_at(ep);
    weft_sim *sim = sim_enter(sim_nic_at(iface));
    int rc = judge(iface, ep, what, kind);
    if (!rc)
        rc = may_move(sim, flow);
    if (rc)
        return rc;
    sim_event *event = sim_event_new(flow, kind, 0);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated transfer");
    event->rma = *what;
    event->done = what->done;
    event->rkey = *what->rkey;
    event->step = sim->profile.torn && what->bytes > 1 ? 0 : SIM_WHOLE;
    if (iface->caps.mr_local && what->mr) {
        event->has_region = true;
        event->local_key = what->mr->rkey;
    }
    return post(sim, event);
}

int sim_get(weft_iface *iface, weft_ep *ep, const weft_rma *what)
{
    return move(iface, ep, what, SIM_GET);
}

int sim_put(weft_iface *iface, weft_ep *ep, const weft_rma *what)
{
    return move(iface, ep, what, SIM_PUT);
}

int sim_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    sim_flow *flow = sim_flow_at(ep);
    weft_sim *sim = sim_enter(sim_nic_at(iface));
    if (sim->profile.amo == WEFT_AMO_NONE)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port has no atomics");
    if (atomic->remote % sizeof(uint64_t))
        return weft_fail(WEFT_E_ARG, "an atomic on 0x%" PRIx64 ": the address must be a multiple of 8", atomic->remote);
    int rc = may_move(sim, flow);
    if (rc)
        return rc;
    sim_event *event = sim_event_new(flow, SIM_AMO, 0);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated atomic");
    event->atomic = *atomic;
    event->done = atomic->done;
    event->rkey = *atomic->rkey;
    event->step = sim->profile.amo == WEFT_AMO_NIC ? 0 : SIM_WHOLE;
    return post(sim, event);
}

int sim_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done)
{
    sim_flow *flow = sim_flow_at(ep);
    weft_sim *sim = sim_enter(sim_nic_at(iface));
    (void)remotely; /* both addresses are the same memory: the data is already there */
    int rc = sim_may_post(sim, flow);
    if (rc)
        return rc;
    sim_event *event = sim_event_new(flow, SIM_FLUSH, 0);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated flush");
    event->done = done;
    event->step = SIM_WHOLE;
    return post(sim, event);
}

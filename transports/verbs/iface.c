/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: the transport's operations table: opening and closing in order, capabilities, polling, sleeping. verbs.h lists the files.
 * Invariant: only poll dispatches completions, and no other call polls, so frames and notifications are delivered from poll only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#define BATCH 16 /* completions polled from a CQ at one time */

/* -- completions -- */

static void dispatch(verbs_rail *rail, const struct ibv_wc *wc)
{
    const verbs_work *work = (const verbs_work *)(uintptr_t)wc->wr_id;
    verbs_rc_qp *qp = work->qp;
    rail->iface->counts[VERBS_COUNT_COMPLETIONS]++;
    switch (work->kind) {
    case VERBS_WORK_DATAGRAM_IN:
    case VERBS_WORK_DATAGRAM_OUT:
    case VERBS_WORK_MARK:
        verbs_conn_completion(rail, wc);
        return;
    case VERBS_WORK_RECV:
        rail->cq_used--;
        verbs_flow_completion(rail, wc);
        return;
    default:
        break;
    }
    if (weft_unlikely(wc->status != IBV_WC_SUCCESS)) { /* its queue entries are freed by verbs_flow_down */
        if (work->kind == VERBS_WORK_RMA)
            verbs_rma_completion(rail, wc);
        verbs_conn_break(qp, wc, NULL);
        return;
    }
    qp->sq_used -= work->covers;
    rail->cq_used -= work->covers;
    if (work->kind == VERBS_WORK_RMA)
        verbs_rma_completion(rail, wc);
    else if (work->kind == VERBS_WORK_MW)
        verbs_mw_completion(wc);
    else
        verbs_flow_completion(rail, wc);
}

int verbs_poll_cqs(verbs_iface *iface, int budget)
{
    struct ibv_wc wc[BATCH];
    int total = 0;
    for (uint8_t i = 0; i < iface->rail_count && total < budget; i++) {
        verbs_rail *rail = &iface->rails[(iface->polls + i) % iface->rail_count];
        int capacity = budget - total < BATCH ? budget - total : BATCH;
        int n = ibv_poll_cq(rail->cq, capacity, wc);
        for (int k = 0; k < n; k++)
            dispatch(rail, &wc[k]);
        total += n > 0 ? n : 0;
    }
    return total;
}

static int verbs_poll(weft_iface *base, int budget)
{
    verbs_iface *iface = (verbs_iface *)base;
    int n;
    iface->polls++;
    verbs_post_flush(iface);
    n = verbs_eager_ring_poll(iface, budget);
    if (n < budget)
        n += verbs_poll_cqs(iface, budget - n);
    if (n < budget)
        n += verbs_conn_progress(iface);
    n += verbs_flow_progress(iface) + verbs_rma_progress(iface);
    verbs_mw_progress(iface);
    return n < budget ? n : budget;
}

/* -- sleeping -- */

/* Reads the channel's events. An armed CQ without event stays armed. */
static void read_events(verbs_rail *rail)
{
    struct ibv_cq *cq;
    void *context;
    while (rail->is_armed && ibv_get_cq_event(rail->channel, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        rail->is_armed = false;
    }
}

static int verbs_arm(weft_iface *base, weft_wakeup *wakeup)
{
    verbs_iface *iface = (verbs_iface *)base;
    uint64_t within_ns = verbs_conn_within(iface);
    int rc = verbs_eager_ring_shut_all(iface, &within_ns);
    verbs_post_flush(iface);
    if (rc)
        return rc;
    verbs_flow_defer(iface);
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        verbs_rail *rail = &iface->rails[i];
        read_events(rail);
        if (!rail->is_armed && !rail->is_dead)
            rail->is_armed = ibv_req_notify_cq(rail->cq, 0) == 0;
    }
    iface->is_armed = true;
    *wakeup = (weft_wakeup){.fd = iface->epoll, .within_ns = within_ns};
    return 0;
}

static void verbs_disarm(weft_iface *base)
{
    verbs_iface *iface = (verbs_iface *)base;
    struct epoll_event events[2 * VERBS_RAILS + 2];
    int n = epoll_wait(iface->epoll, events, (int)weft_count(events), 0);
    for (int k = 0; k < n; k++)
        for (uint8_t i = 0; i < iface->rail_count; i++)
            if (events[k].data.fd == iface->rails[i].channel->fd)
                read_events(&iface->rails[i]);
    iface->is_armed = false;
}

/* -- opening -- */

static uint32_t mbyte_per_s(const verbs_rail *rail)
{
    static const struct { uint8_t code; uint32_t mbit; } speeds[] = {{1, 2000}, {2, 4000}, {4, 8000}, {8, 10000}, {16, 13640}, {32, 25000},
                                                                      {64, 50000}, {128, 100000}};
    struct ibv_port_attr attr;
    uint32_t workers, mbit = 2000;
    if (ibv_query_port(rail->context, rail->port_num, &attr))
        return 0;
    workers = attr.active_width == 2 ? 4 : attr.active_width == 4 ? 8 : attr.active_width == 8 ? 12 : attr.active_width == 16 ? 2 : 1;
    for (size_t i = 0; i < weft_count(speeds); i++)
        if (attr.active_speed == speeds[i].code)
            mbit = speeds[i].mbit;
    return workers * mbit / 8;
}

/* Atomics of several devices are not atomic with each other: all use the target's first rail (rma.c), as its own do (loopback.c). */
static void set_caps(verbs_iface *iface)
{
    weft_caps *caps = &iface->iface.caps;
    uint32_t inline_max = UINT32_MAX;
    bool has_atomics = true, with_cpu = true;
    *caps = (weft_caps){.frame_max = verbs_frame_max(iface), .chunk = verbs_frame_max(iface), .rma_max = 1ull << 40, .latency_ns = 1500,
                        .pages_on_demand = true, .key_bytes = (uint8_t)(4 * iface->rail_count), .rails = iface->rail_count,
                        .wants_regcache = true, .mr_local = true, .revokes = true,
                        .ordered = true, .get = !iface->is_small, .put = !iface->is_small, .notify = !iface->is_small,
                        .notify_after_all = !iface->is_small};
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        const verbs_rail *rail = &iface->rails[i];
        if (rail->max_inline < inline_max)
            inline_max = rail->max_inline;
        if (!caps->mr_count_max || (uint32_t)rail->attr.max_mr < caps->mr_count_max)
            caps->mr_count_max = (uint32_t)rail->attr.max_mr;
        has_atomics = has_atomics && rail->attr.atomic_cap != IBV_ATOMIC_NONE && !rail->is_iwarp;
        with_cpu = with_cpu && rail->attr.atomic_cap == IBV_ATOMIC_GLOB;
        caps->get = caps->get && rail->max_rd_atomic > 0;
        caps->put = caps->put && (rail->max_rd_atomic > 0 || !rail->completes_early); /* a read fence proves placement */
        caps->revokes = caps->revokes && !rail->is_iwarp; /* whose peers are not told of a refusal */
        caps->pages_on_demand = caps->pages_on_demand && rail->is_odp;
        caps->mbyte_per_s += mbyte_per_s(rail);
    }
    caps->may_rest = !iface->conn->cm; /* requests of rdma_cm in the kernel's queues would outlive the epochs that they are for */
    caps->inline_max = inline_max > sizeof(verbs_wire) ? inline_max - (uint32_t)sizeof(verbs_wire) : 0;
    if (has_atomics && caps->get && caps->put)
        caps->amo = with_cpu ? WEFT_AMO_CPU : WEFT_AMO_NIC;
    if (caps->amo == WEFT_AMO_NIC)
        caps->amo_device = iface->rails[0].attr.node_guid;
}

static void verbs_close(weft_iface *base)
{
    verbs_iface *iface = (verbs_iface *)base;
    while (!weft_list_is_empty(&iface->eps)) { /* not closed: the job aborts */
        verbs_ep *ep = weft_container(iface->eps.next, verbs_ep, by_iface);
        verbs_rma_drop(ep);
        verbs_flow_give_up(ep);
        verbs_ep_free(ep);
    }
    verbs_conn_close(iface);
    verbs_loopback_close(iface);
    verbs_rma_close(iface);
    verbs_read_fence_close(iface);
    verbs_flow_close(iface);
    verbs_mw_close(iface);
    verbs_rails_close(iface);
    if (iface->epoll >= 0)
        close(iface->epoll);
    free(iface);
}

/* Distinguishes this iface from earlier ones of the same proc_id. With a simulated clock it must not be random. */
static uint32_t make_nonce(const verbs_iface *iface, const weft_iface_params *params)
{
    uint32_t nonce = 0;
    if (params->now_ns || getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) != sizeof nonce)
        nonce = (uint32_t)(((iface->now_ns() + iface->self.rank + 1) * 0x9e3779b97f4a7c15u) >> 32);
    return nonce ? nonce : 1;
}

static int verbs_open(const weft_iface_params *params, weft_iface **out)
{
    verbs_iface *iface = calloc(1, sizeof *iface);
    int rc = 0;
    if (!iface)
        return weft_fail(WEFT_E_NOMEM, "no memory for a verbs iface");
    iface->iface = (weft_iface){.ops = &weft_verbs_ops, .owner = params->owner, .callbacks = params->callbacks};
    iface->self = params->self;
    iface->peers = params->peers;
    iface->ranks = params->ranks;
    iface->now_ns = params->now_ns ? params->now_ns : weft_clock_ns;
    iface->nonce = make_nonce(iface, params);
    weft_list_init(&iface->eps);
    weft_list_init(&iface->due);
    weft_list_init(&iface->rings);
    weft_list_init(&iface->mws_to_invalidate);
    weft_list_init(&iface->mws_dead);
    weft_list_init(&iface->mws_spare);
    iface->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (iface->epoll < 0)
        rc = weft_fail(WEFT_E_SYSTEM, "no descriptor to sleep on: %s", strerror(errno));
    if (!rc)
        rc = verbs_rails_open(iface);
    if (!rc)
        rc = verbs_flow_open(iface);
    if (!rc)
        rc = verbs_rma_open(iface);
    if (!rc)
        rc = verbs_read_fence_open(iface);
    if (!rc)
        rc = verbs_conn_open(iface);
    if (rc) {
        verbs_close(&iface->iface);
        return rc;
    }
    set_caps(iface);
    rc = verbs_mw_open(iface);
    if (rc) {
        verbs_close(&iface->iface);
        return rc;
    }
    verbs_counters_begin(iface);
    *out = &iface->iface;
    return 0;
}

static int verbs_get_addr(weft_iface *base, void *capacity, size_t *bytes)
{
    verbs_iface *iface = (verbs_iface *)base;
    verbs_iface_addr addr = {.version = 2, .rails = iface->rail_count, .frame_max_kib = (uint16_t)(verbs_frame_max(iface) >> 10),
                             .nonce = iface->nonce};
    if (*bytes < sizeof addr)
        return weft_fail(WEFT_E_ARG, "an address has %zu bytes, the buffer %zu", sizeof addr, *bytes);
    for (uint8_t i = 0; i < iface->rail_count; i++)
        verbs_rail_address(&iface->rails[i], &addr.address[i]);
    memcpy(capacity, &addr, sizeof addr);
    *bytes = sizeof addr;
    return 0;
}

/* -- unsupported -- */

static int verbs_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    (void)iface, (void)bytes, (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "a network does not share memory");
}

static int verbs_unshare(weft_iface *iface, weft_shared *shared)
{
    (void)iface, (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "a network does not share memory");
}

const weft_iface_ops weft_verbs_ops = {
    .name = "verbs", .unavailable = verbs_unavailable, .describe = verbs_describe, .open = verbs_open, .close = verbs_close,
    .get_addr = verbs_get_addr, .ep_open = verbs_ep_open, .ep_close = verbs_ep_close, .ep_rest = verbs_ep_rest,
    .mr_reg = verbs_mr_reg, .mr_dereg = verbs_mr_dereg,
    .share = verbs_share, .unshare = verbs_unshare, .send = verbs_send, .can_rma = verbs_can_rma, .get = verbs_get, .put = verbs_put,
    .amo = verbs_amo, .flush = verbs_flush, .mw_bind = verbs_mw_bind, .mw_invalidate = verbs_mw_invalidate, .poll = verbs_poll,
    .arm = verbs_arm, .disarm = verbs_disarm, .amo_self = verbs_amo_self,
    .print_counters = verbs_counters,
};

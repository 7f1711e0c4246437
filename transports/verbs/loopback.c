/* SPDX-License-Identifier: BSD-3-Clause
 *
 * loopback: atomics on this process's memory by its own device (iface.h, amo_self): two RC queue pairs of the first rail, connected to
 * each other by hand, and a completion queue that nothing else uses. Peers' atomics use the same device (rma.c, may_carry), which makes
 * them atomic with these.
 * Invariant: between calls nothing is posted. After an error the queue pairs are destroyed, so that nothing of a call is performed after
 * its end; the next call makes others.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/slots.h"

#define DEPTH 32u    /* atomics posted at one time */
#define TIMEOUT 16   /* 4.096 us << 16 = 0.27 s: the device's own port may be down for a while */
#define RNR_TIMER 12
#define LOOKS 1000u  /* at the completion queue before the thread yields: software devices need its CPU */

struct verbs_loopback {
    struct ibv_cq *cq;
    struct ibv_qp *asks, *answers; /* queue pairs; `asks` is the requester */
    verbs_slab *cells;             /* [depth] words before the atomics */
    uint32_t depth;
};

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* -- queue pairs -- */

static struct ibv_qp *create(const verbs_rail *rail, struct ibv_cq *cq, uint32_t depth)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = depth, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1}};
    return ibv_create_qp(rail->pd, &init);
}

/* Brings a queue pair to RTS, connected to the other one. 0 or an errno value. */
static int connect_to(const verbs_rail *rail, struct ibv_qp *qp, const struct ibv_qp *other)
{
    uint32_t atomics = min((uint32_t)rail->attr.max_qp_rd_atom, 255);
    verbs_address own;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = rail->port_num, .pkey_index = rail->pkey_index,
                               .qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC};
    struct ibv_qp_attr receive = {.qp_state = IBV_QPS_RTR, .path_mtu = rail->mtu ? rail->mtu : IBV_MTU_1024, .dest_qp_num = other->qp_num,
                                  .max_dest_rd_atomic = (uint8_t)atomics, .min_rnr_timer = RNR_TIMER};
    struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = VERBS_RETRIES, .rnr_retry = VERBS_RETRIES,
                               .max_rd_atomic = (uint8_t)min(atomics, rail->max_rd_atomic)};
    int error = ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    verbs_rail_address(rail, &own);
    verbs_rc_qp_address(rail, &own, &receive.ah_attr);
    if (!error)
        error = ibv_modify_qp(qp, &receive, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error)
        return error;
    return ibv_modify_qp(qp, &send, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC);
}

void verbs_loopback_close(verbs_iface *iface)
{
    struct verbs_loopback *self = iface->loopback;
    if (!self)
        return;
    if (self->asks)
        ibv_destroy_qp(self->asks);
    if (self->answers)
        ibv_destroy_qp(self->answers);
    if (self->cq)
        ibv_destroy_cq(self->cq);
    if (self->cells)
        verbs_slab_free(self->cells);
    free(self);
    iface->loopback = NULL;
}

static int cannot(const verbs_rail *rail, const char *what, int error)
{
    return weft_fail(error == ENOMEM || error == ENOSPC || error == EAGAIN ? WEFT_E_NOSPACE : WEFT_E_SYSTEM,
                     "RDMA port %s cannot %s for atomics on own memory: %s", rail->name, what, strerror(error));
}

static int make(verbs_iface *iface, struct verbs_loopback *self)
{
    const verbs_rail *rail = &iface->rails[0];
    int error;
    self->cq = ibv_create_cq(rail->context, (int)self->depth, NULL, NULL, 0);
    if (!self->cq)
        return cannot(rail, "create a completion queue", errno);
    self->asks = create(rail, self->cq, self->depth);
    self->answers = self->asks ? create(rail, self->cq, 1) : NULL;
    if (!self->answers)
        return cannot(rail, "create a queue pair", errno);
    error = connect_to(rail, self->answers, self->asks);
    if (!error)
        error = connect_to(rail, self->asks, self->answers);
    if (error)
        return cannot(rail, "connect queue pairs to each other", error);
    return verbs_slab_alloc(iface, self->depth * sizeof(uint64_t), 0, IBV_ACCESS_LOCAL_WRITE, &self->cells);
}

static int open_loopback(verbs_iface *iface)
{
    int rc;
    if (iface->rails[0].is_dead)
        return weft_fail(WEFT_E_SYSTEM, "RDMA device %s has failed", iface->rails[0].name);
    iface->loopback = calloc(1, sizeof *iface->loopback);
    if (!iface->loopback)
        return weft_fail(WEFT_E_NOMEM, "no memory for atomics on own memory");
    iface->loopback->depth = min(DEPTH, (uint32_t)iface->rails[0].attr.max_qp_wr);
    rc = make(iface, iface->loopback);
    if (rc)
        verbs_loopback_close(iface);
    return rc;
}

/* -- atomics -- */

/* The last one's completion is that of all. 0 or an errno value: then some may be posted. */
static int post(verbs_iface *iface, const weft_atomic *atomics, uint32_t count)
{
    struct verbs_loopback *self = iface->loopback;
    struct ibv_send_wr requests[DEPTH], *bad;
    struct ibv_sge sges[DEPTH];
    for (uint32_t i = 0; i < count; i++) {
        bool adds = atomics[i].op == WEFT_AMO_ADD;
        sges[i] = (struct ibv_sge){(uintptr_t)((uint64_t *)self->cells->memory + i), sizeof(uint64_t), self->cells->lkey[0]};
        requests[i] = (struct ibv_send_wr){.next = i + 1 < count ? &requests[i + 1] : NULL, .sg_list = &sges[i], .num_sge = 1,
                                           .opcode = adds ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
                                           .send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED};
        requests[i].wr.atomic.remote_addr = atomics[i].remote;
        requests[i].wr.atomic.rkey = verbs_rkey(atomics[i].rkey, 0);
        requests[i].wr.atomic.compare_add = adds ? atomics[i].operand : atomics[i].compare;
        requests[i].wr.atomic.swap = adds ? 0 : atomics[i].operand;
    }
    iface->counts[VERBS_COUNT_POSTS]++;
    iface->counts[VERBS_COUNT_REQUESTS] += count;
    iface->counts[VERBS_COUNT_OWN_ATOMICS] += count;
    return ibv_post_send(self->asks, requests, &bad);
}

/* Waits for the completion. The queue pair's own retries end it, if the device still works. */
static int await(verbs_iface *iface)
{
    const char *name = iface->rails[0].name;
    uint64_t since = iface->now_ns();
    struct ibv_wc wc;
    int n;
    for (uint32_t looks = 1; !(n = ibv_poll_cq(iface->loopback->cq, 1, &wc)); looks++) {
        if (looks % LOOKS)
            continue;
        sched_yield();
        if (iface->now_ns() - since > (uint64_t)weft_knob.peer_timeout_s * 1000000000u)
            return weft_fail(WEFT_E_OTHER, "RDMA port %s does not answer: it is not known whether atomics on own memory were performed",
                             name);
    }
    if (n < 0)
        return weft_fail(WEFT_E_SYSTEM, "RDMA device %s has failed", name);
    iface->counts[VERBS_COUNT_COMPLETIONS]++;
    if (wc.status == IBV_WC_SUCCESS)
        return 0;
    return weft_fail(wc.status == IBV_WC_REM_ACCESS_ERR ? WEFT_E_KEY : WEFT_E_OTHER,
                     "RDMA port %s did not perform all atomics on own memory: %s (vendor's code 0x%x)", name,
                     ibv_wc_status_str(wc.status), wc.vendor_err);
}

static int perform(verbs_iface *iface, const weft_atomic *atomics, uint32_t count)
{
    const uint64_t *cells = (const uint64_t *)iface->loopback->cells->memory;
    int error = post(iface, atomics, count), rc = error ? cannot(&iface->rails[0], "post requests", error) : await(iface);
    for (uint32_t i = 0; i < count && !rc; i++)
        if (atomics[i].before)
            *atomics[i].before = cells[i];
    return rc;
}

static int check(const weft_atomic *atomics, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (atomics[i].op != WEFT_AMO_ADD && atomics[i].op != WEFT_AMO_CAS)
            return weft_fail(WEFT_E_UNSUPPORTED, "an atomic on own memory adds, or compares and swaps");
        if (atomics[i].remote % 8 || !verbs_rkey(atomics[i].rkey, 0))
            return weft_fail(WEFT_E_KEY, "an atomic on own memory at 0x%llx, which is no multiple of 8 or has no key",
                             (unsigned long long)atomics[i].remote);
    }
    return 0;
}

int verbs_amo_self(weft_iface *base, const weft_atomic *atomics, uint32_t count)
{
    verbs_iface *iface = (verbs_iface *)base;
    int rc;
    if (base->caps.amo == WEFT_AMO_NONE)
        return weft_fail(WEFT_E_UNSUPPORTED, "this device has no atomics");
    rc = check(atomics, count);
    if (!rc && !iface->loopback)
        rc = open_loopback(iface);
    if (rc)
        return rc;
    for (uint32_t done = 0, part; done < count && !rc; done += part) {
        part = min(count - done, iface->loopback->depth);
        rc = perform(iface, atomics + done, part);
    }
    if (rc)
        verbs_loopback_close(iface);
    return rc;
}

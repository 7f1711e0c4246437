/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rc_qp: the RC queue pair of an ep on one pair of rails: creation, connection, error state, drain marker, destruction. Called by the
 * files of conn; rdmacm.c connects QPs by itself and shares the rest.
 */
#include <errno.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "transports/verbs/gid.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/slots.h"

#define TIMEOUT 16      /* 4.096 us << 16 = 0.27 s for an acknowledgement, ... */
#define RETRIES VERBS_RETRIES /* ... so a peer that is silent for two seconds (some devices: eight) fails the QP */
#define RNR_FOREVER 7   /* credits prevent RNR */
#define RNR_TIMER 12    /* 0.64 ms */
#define HOP_LIMIT 64

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

void verbs_rc_qp_address(const verbs_rail *rail, const verbs_address *to, struct ibv_ah_attr *attr)
{
    *attr = (struct ibv_ah_attr){.port_num = rail->port_num, .sl = (uint8_t)weft_knob.service_level};
    /* InfiniBand needs a GRH beyond its subnet, some ports within it, too; Ethernet always. */
    if (rail->is_ib) {
        attr->dlid = to->lid;
        attr->is_global = rail->needs_grh || memcmp(rail->gid.raw, to->gid.raw, 8) != 0 || to->lid == 0;
    } else {
        attr->is_global = 1;
    }
    if (attr->is_global)
        attr->grh = (struct ibv_global_route){.dgid = to->gid, .sgid_index = rail->gid_index, .hop_limit = HOP_LIMIT,
                                              .traffic_class = (uint8_t)weft_knob.traffic_class};
}

static int cannot(const verbs_rc_qp *qp, const char *what, int error)
{
    char here[VERBS_GID_TEXT], there[VERBS_GID_TEXT];
    const verbs_ep *ep = qp->ep;
    bool is_full = error == ENOMEM || error == ENOSPC || error == EAGAIN || error == EDQUOT; /* drivers differ */
    if (is_full)
        ep->hs->lack_error = error;
    return weft_fail(is_full ? WEFT_E_NOSPACE : WEFT_E_SYSTEM, "cannot %s to rank %u on %s (%s to %s): %s%s", what,
                     ep->proc_id.rank,
                     qp->rail->name, verbs_gid_text(&qp->rail->gid, here),
                         verbs_gid_text(&ep->remote.address[qp->remote_rail].gid, there),
                     strerror(error), is_full ? ": the device's queue pairs or locked memory (ulimit -l) are used up"
                     : error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EINVAL
                     ? ": is there a route, and does the peer's interface answer ARP?" : "");
}

static int initialise(verbs_rc_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = qp->rail->port_num, .pkey_index = qp->rail->pkey_index,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    if (qp->rail->attr.atomic_cap != IBV_ATOMIC_NONE)
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    int error = ibv_modify_qp(qp->ibv_qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    return error ? error : verbs_recv_queue_open(qp);
}

static void discard(verbs_rc_qp *qp)
{
    ibv_destroy_qp(qp->ibv_qp);
    qp->ibv_qp = NULL;
    verbs_recv_queue_close(qp);
}

int verbs_rc_qp_open(verbs_rc_qp *qp)
{
    verbs_rail *rail = qp->rail;
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    struct ibv_qp_init_attr init = {.qp_context = qp, .send_cq = rail->cq, .recv_cq = rail->cq, .srq = rail->srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = rail->sq_capacity + 1, .max_send_sge = 2,
                                            .max_recv_wr = rail->rq_capacity, .max_recv_sge = rail->srq ? 0 : 1,
                                            .max_inline_data = rail->max_inline}};
    int error;
    qp->ibv_qp = ibv_create_qp(rail->pd, &init);
    if (!qp->ibv_qp)
        return cannot(qp, "create a queue pair", errno);
    qp->sq_capacity = rail->sq_capacity;
    qp->sq_used = qp->unsignalled = qp->reads_used = 0;
    qp->is_broken = qp->is_order_known = false;
    error = qp->ep->hs->by_cm ? 0 : initialise(qp);
    if (error) {
        discard(qp);
        return cannot(qp, "set up a queue pair", error);
    }
    qp_hs->psn = verbs_conn_random(qp->ep->iface->conn) & 0xffffff;
    qp_hs->is_made = true;
    qp_hs->is_marked = qp_hs->is_flushed = qp_hs->has_last_wqe = false;
    error = verbs_rail_enter(rail, qp);
    if (error)
        discard(qp);
    return error;
}

static int ready_to_receive(verbs_rc_qp *qp, const verbs_conn_msg_rail *remote)
{
    const verbs_rail *rail = qp->rail;
    uint32_t mtu = min((uint32_t)rail->mtu, remote->address.mtu);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = mtu ? mtu : IBV_MTU_1024, .dest_qp_num = remote->qpn,
                               .rq_psn = remote->psn,
                               .max_dest_rd_atomic = (uint8_t)min((uint32_t)rail->attr.max_qp_rd_atom, 255),
                                   .min_rnr_timer = RNR_TIMER};
    verbs_rc_qp_address(rail, &remote->address, &attr.ah_attr);
    return ibv_modify_qp(qp->ibv_qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int ready_to_send(verbs_rc_qp *qp, const verbs_conn_msg_rail *remote)
{
    uint32_t reads = min(min(qp->rail->max_rd_atomic, remote->reads), 255);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = RETRIES, .rnr_retry = RNR_FOREVER,
                               .sq_psn = verbs_qp_handshake_of(qp)->psn, .max_rd_atomic = (uint8_t)reads};
    int error = ibv_modify_qp(qp->ibv_qp, &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC);
    qp->reads_capacity = reads;
    return error;
}

int verbs_rc_qp_connect(verbs_rc_qp *qp, const verbs_conn_msg_rail *remote)
{
    int error = ready_to_receive(qp, remote);
    if (!error)
        error = ready_to_send(qp, remote);
    if (error)
        return cannot(qp, "connect", error);
    qp->remote_qpn = remote->qpn;
    verbs_qp_handshake_of(qp)->is_made = false;
    return 0;
}

bool verbs_rc_qp_is_in_order(verbs_rc_qp *qp)
{
    if (!qp->is_order_known)
        qp->in_order = !qp->rail->is_iwarp && ibv_query_qp_data_in_order(qp->ibv_qp, IBV_WR_RDMA_WRITE, 0) == 1;
    qp->is_order_known = true;
    return qp->in_order;
}

void verbs_rc_qp_break(verbs_rc_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    qp->is_broken = true;
    ibv_modify_qp(qp->ibv_qp, &attr, IBV_QP_STATE); /* refused if already in ERR or if the device is dead */
}

/* A send behind all others: its completion proves that the send queue is flushed. A QP that was never connected is empty and takes no
 * sends. */
bool verbs_rc_qp_mark(verbs_rc_qp *qp)
{
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    struct ibv_send_wr wr = {.wr_id = (uintptr_t)&qp_hs->mark, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    if (qp_hs->is_made || qp->rail->is_iwarp) { /* a driver that flushes at once takes no sends afterwards */
        qp_hs->is_marked = qp_hs->is_flushed = true;
        return true;
    }
    if (qp->rail->marks >= qp->rail->marks_capacity || ibv_post_send(qp->ibv_qp, &wr, &bad) != 0)
        return false;
    qp_hs->is_marked = true;
    qp->rail->marks++;
    return true;
}

void verbs_rc_qp_close(verbs_rc_qp *qp)
{
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    if (qp_hs->is_marked && !qp_hs->is_flushed) /* dead device: the marker will never complete */
        qp->rail->marks--;
    qp_hs->is_marked = qp_hs->is_flushed = true;
    verbs_post_discard(qp);
    verbs_rdmacm_disconnect(qp);
    verbs_rail_remove(qp->rail, qp);
    verbs_mw_fail(qp);
    discard(qp);
    verbs_rdmacm_forget(qp);
}

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

#define TIMEOUT 16      /* 4.096 us << 16 = 0.27 s for an acknowledgement, ... */
#define RETRIES VERBS_RETRIES /* ... so a peer that is silent for two seconds (some devices: eight) fails the QP */
#define RNR_FOREVER 7   /* credits prevent RNR */
#define RNR_TIMER 12    /* 0.64 ms */
#define HOP_LIMIT 64

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

void verbs_rc_qp_address(const verbs_rail *rail, const verbs_address *to, struct ibv_ah_attr *attr)
{
    *attr = (struct ibv_ah_attr){.port_num = rail->port_num, .sl = (uint8_t)weft_knob.service_level};
    /* InfiniBand needs a GRH only beyond its subnet; Ethernet always. */
    if (rail->is_ib) {
        attr->dlid = to->lid;
        attr->is_global = memcmp(rail->gid.raw, to->gid.raw, 8) != 0 || to->lid == 0;
    } else {
        attr->is_global = 1;
    }
    if (attr->is_global)
        attr->grh = (struct ibv_global_route){.dgid = to->gid, .sgid_index = rail->gid_index, .hop_limit = HOP_LIMIT,
                                              .traffic_class = (uint8_t)weft_knob.traffic_class};
}

static int cannot(const verbs_rc_qp *link, const char *what, int error)
{
    char here[VERBS_GID_TEXT], there[VERBS_GID_TEXT];
    const verbs_ep *ep = link->ep;
    return weft_fail(error == ENOMEM ? WEFT_E_NOSPACE : WEFT_E_SYSTEM, "cannot %s to rank %u on %s (%s to %s): %s%s", what,
                     ep->proc_id.rank,
                     link->rail->name, verbs_gid_text(&link->rail->gid, here),
                         verbs_gid_text(&ep->far.address[link->far_rail].gid, there),
                     strerror(error), error == ENOMEM ? ": the device's queue pairs or locked memory (ulimit -l) are used up"
                     : error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EINVAL
                     ? ": is there a route, and does the peer's interface answer ARP?" : "");
}

static int initialise(verbs_rc_qp *link)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = link->rail->port_num,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    if (link->rail->attr.atomic_cap != IBV_ATOMIC_NONE)
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
    return ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int verbs_rc_qp_open(verbs_rc_qp *link)
{
    verbs_rail *rail = link->rail;
    verbs_qp_handshake *half = verbs_qp_handshake_of(link);
    struct ibv_qp_init_attr init = {.qp_context = link, .send_cq = rail->cq, .recv_cq = rail->cq, .srq = rail->srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = rail->sq_room + 1, .max_send_sge = 2,
                                            .max_inline_data = rail->max_inline}};
    int error;
    link->qp = ibv_create_qp(rail->pd, &init);
    if (!link->qp)
        return cannot(link, "make a queue pair", errno);
    error = link->ep->meet->by_cm ? 0 : initialise(link);
    if (error) {
        ibv_destroy_qp(link->qp);
        link->qp = NULL;
        return cannot(link, "set up a queue pair", error);
    }
    link->sq_room = rail->sq_room;
    link->sq_used = link->unsignalled = link->reads_used = 0;
    link->is_broken = false;
    half->psn = verbs_conn_random(link->ep->iface->conn) & 0xffffff;
    half->is_made = true;
    half->is_marked = half->is_flushed = half->has_last_wqe = false;
    error = verbs_rail_enter(rail, link);
    if (error) {
        ibv_destroy_qp(link->qp);
        link->qp = NULL;
    }
    return error;
}

static int ready_to_receive(verbs_rc_qp *link, const verbs_conn_msg_rail *far)
{
    const verbs_rail *rail = link->rail;
    uint32_t mtu = min((uint32_t)rail->mtu, far->address.mtu);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = mtu ? mtu : IBV_MTU_1024, .dest_qp_num = far->qpn,
                               .rq_psn = far->psn,
                               .max_dest_rd_atomic = (uint8_t)min((uint32_t)rail->attr.max_qp_rd_atom, 255),
                                   .min_rnr_timer = RNR_TIMER};
    verbs_rc_qp_address(rail, &far->address, &attr.ah_attr);
    return ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int ready_to_send(verbs_rc_qp *link, const verbs_conn_msg_rail *far)
{
    uint32_t reads = min(min(link->rail->max_rd_atomic, far->reads), 255);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = RETRIES, .rnr_retry = RNR_FOREVER,
                               .sq_psn = verbs_qp_handshake_of(link)->psn, .max_rd_atomic = (uint8_t)reads};
    int error = ibv_modify_qp(link->qp, &attr,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                              IBV_QP_MAX_QP_RD_ATOMIC);
    link->reads_room = reads;
    return error;
}

int verbs_rc_qp_connect(verbs_rc_qp *link, const verbs_conn_msg_rail *far)
{
    int error = ready_to_receive(link, far);
    if (!error)
        error = ready_to_send(link, far);
    if (error)
        return cannot(link, "connect", error);
    link->far_qpn = far->qpn;
    verbs_qp_handshake_of(link)->is_made = false;
    return 0;
}

void verbs_rc_qp_break(verbs_rc_qp *link)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    link->is_broken = true;
    ibv_modify_qp(link->qp, &attr, IBV_QP_STATE); /* refused if already in ERR or if the device is dead */
}

/* A send behind all others: its completion proves that the send queue is flushed. A QP that was never connected is empty and takes no
 * sends. */
bool verbs_rc_qp_mark(verbs_rc_qp *link)
{
    verbs_qp_handshake *half = verbs_qp_handshake_of(link);
    struct ibv_send_wr wr = {.wr_id = (uintptr_t)&half->mark, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    if (half->is_made || link->rail->is_iwarp) { /* a driver that flushes at once takes no sends afterwards */
        half->is_marked = half->is_flushed = true;
        return true;
    }
    if (link->rail->marks >= link->rail->marks_room || ibv_post_send(link->qp, &wr, &bad) != 0)
        return false;
    half->is_marked = true;
    link->rail->marks++;
    return true;
}

void verbs_rc_qp_close(verbs_rc_qp *link)
{
    verbs_qp_handshake *half = verbs_qp_handshake_of(link);
    if (half->is_marked && !half->is_flushed) /* dead device: the marker will never complete */
        link->rail->marks--;
    half->is_marked = half->is_flushed = true;
    verbs_post_forget(link);
    verbs_rdmacm_disconnect(link);
    verbs_rail_remove(link->rail, link);
    verbs_mw_fail(link);
    ibv_destroy_qp(link->qp);
    link->qp = NULL;
    verbs_rdmacm_forget(link);
}

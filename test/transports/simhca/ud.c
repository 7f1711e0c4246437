/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ud: unreliable datagrams: lost, duplicated and reordered by the profile; dropped if no receive is posted, the Q_Key is wrong, or they do
 * not fit.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

static hca_event *event_of(hca_qp *qp, const hca_wqe *wqe, hca_device *to)
{
    hca_event *event = hca_event_new(HCA_UD);
    event->from = (hca_address){qp->device, qp->base.qp_num, 0};
    event->to = (hca_address){to, wqe->remote_qpn, 0};
    event->qkey = wqe->remote_qkey & 0x80000000u ? qp->attr.qkey : wqe->remote_qkey;
    event->length = wqe->length;
    event->imm = wqe->imm;
    event->opcode = wqe->opcode;
    event->flags = wqe->flags;
    event->value = wqe->av.is_global ? 1u + wqe->av.grh.sgid_index : 0;
    event->body = hca_gather(wqe);
    return event;
}

static void launch(hca_qp *qp, const hca_wqe *wqe)
{
    hca_device *to = hca_device_by(qp->device, &wqe->av);
    hca.counts[SIMHCA_DATAGRAMS]++;
    hca_faults_watch(qp->device);
    if (!to || hca_chance(hca.profile.lose_permille, 1000)) {
        hca.counts[to ? SIMHCA_DATAGRAMS_LOST : SIMHCA_DROPPED]++;
        return;
    }
    uint64_t due = hca.now + hca_delay(hca.profile.delay_ns, wqe->length);
    if (hca_chance(hca.profile.overtake_permille, 1000)) {
        hca.counts[SIMHCA_OVERTAKEN]++;
        due += hca_random() % (8ull * hca.profile.delay_ns);
    } else if (due <= qp->last_due) {
        due = ++qp->last_due;
    } else {
        qp->last_due = due;
    }
    hca_event_post(event_of(qp, wqe, to), due);
    if (hca_chance(hca.profile.twice_permille, 1000)) {
        hca.counts[SIMHCA_DATAGRAMS_TWICE]++;
        hca_event_post(event_of(qp, wqe, to), due + hca_random() % (16ull * hca.profile.delay_ns));
    }
}

void hca_ud_send(hca_qp *qp, hca_wqe *wqe)
{
    struct ibv_port_attr port;
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    ibv_query_port(qp->base.context, 1, &port);
    if (!wqe->inlined && !hca_sges_ok(qp->device, qp->base.pd, wqe->sges, wqe->count, 0))
        status = IBV_WC_LOC_PROT_ERR;
    else if (wqe->length > 128u << port.active_mtu)
        status = IBV_WC_LOC_LEN_ERR;
    else
        launch(qp, wqe);
    qp->sent++;
    hca_complete_send(qp, status);
    if (status != IBV_WC_SUCCESS)
        hca_qp_error(qp, -1);
}

/* The 40 bytes in front: a GRH, or for IPv4-mapped addresses of RoCE v2 20 unused bytes and an IPv4 header. */
static void fill_front(uint8_t *front, const hca_event *event)
{
    const hca_port *from = &event->from.device->port, *to = &event->to.device->port;
    memset(front, 0xd5, HCA_GRH);
    if (!event->value)
        return;
    const union ibv_gid *source = &from->gids[event->value - 1], *target = &to->gids[event->value - 1];
    bool is_v4 = from->gid_types[event->value - 1] == IBV_GID_TYPE_ROCE_V2 && source->raw[10] == 0xff && source->raw[11] == 0xff;
    if (is_v4) {
        front[20] = 0x45;
        memcpy(front + 32, source->raw + 12, 4);
        memcpy(front + 36, target->raw + 12, 4);
    } else {
        front[0] = 0x60;
        memcpy(front + 8, source->raw, 16);
        memcpy(front + 24, target->raw, 16);
    }
}

static bool may_arrive(const hca_event *event, hca_qp *qp)
{
    return qp && qp->base.qp_type == IBV_QPT_UD && (qp->attr.qp_state == IBV_QPS_RTR || qp->attr.qp_state == IBV_QPS_RTS) &&
           qp->attr.qkey == event->qkey && hca_reaches(event->from.device, event->to.device);
}

void hca_ud_recv(hca_event *event)
{
    hca_qp *qp = hca_qp_find(event->to.device, event->to.qpn);
    hca_rwqe rwqe;
    uint64_t room = 0;
    if (!may_arrive(event, qp) || !hca_rq_dequeue(qp->rq, &rwqe)) {
        hca.counts[SIMHCA_DROPPED]++;
        return;
    }
    hca_srq_on_dequeue(qp);
    struct ibv_wc wc = {.wr_id = rwqe.wr_id, .status = IBV_WC_SUCCESS, .opcode = IBV_WC_RECV, .byte_len = event->length + HCA_GRH,
                        .src_qp = event->from.qpn, .slid = event->from.device->port.lid,
                        .wc_flags = event->value ? IBV_WC_GRH : 0, .imm_data = event->imm};
    if (event->opcode == IBV_WR_SEND_WITH_IMM)
        wc.wc_flags |= IBV_WC_WITH_IMM;
    for (uint32_t i = 0; i < rwqe.count; i++)
        room += rwqe.sges[i].length;
    if (!hca_sges_ok(qp->device, qp->base.pd, rwqe.sges, rwqe.count, IBV_ACCESS_LOCAL_WRITE))
        wc.status = IBV_WC_LOC_PROT_ERR;
    else if (room < event->length + HCA_GRH)
        wc.status = IBV_WC_LOC_LEN_ERR;
    if (wc.status == IBV_WC_SUCCESS) {
        uint8_t *full = malloc(event->length + HCA_GRH);
        fill_front(full, event);
        memcpy(full + HCA_GRH, event->body, event->length);
        hca_visibility_now(full, event->length + HCA_GRH, rwqe.sges, rwqe.count);
        free(full);
    }
    hca_complete_recv(qp, &wc, event->flags & IBV_SEND_SOLICITED);
    if (wc.status != IBV_WC_SUCCESS)
        hca_qp_error(qp, -1);
}

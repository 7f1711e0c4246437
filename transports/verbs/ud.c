/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ud: sends and receives connection messages by UD, before and beside any connection: one UD QP and a few slots per rail, no state per
 * peer. Datagrams may be lost, duplicated and late; conn.c handles that. Called by conn.c, conn_msg.c, epoch.c, rail.c. Invariant: a
 * receive slot is posted again before its message is handled; senders repeat messages that found no slot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transports/verbs/conn.h"

#define QKEY 0x57656674u
#define SLOT_BYTES 384
#define SLOTS_IN 64
#define SLOTS_OUT 32
#define SLOTS_IN_SHALLOW 12
#define SLOTS_OUT_SHALLOW 4

_Static_assert(VERBS_GRH + sizeof(verbs_conn_msg) <= SLOT_BYTES, "a message fits a slot");

typedef struct datagram {
    verbs_work work;
    uint8_t *memory; /* SLOT_BYTES */
    struct ibv_ah *ah; /* address handle while it is being sent; else NULL */
    struct datagram *next_free;
} datagram;

typedef struct ud_qp { /* one per rail */
    uint8_t *memory;
    struct ibv_mr *mr;
    datagram *slots;
    datagram *free;
    uint32_t in, out;
} ud_qp;

struct verbs_ud {
    ud_qp qps[VERBS_RAILS];
};

static uint32_t bounded(const verbs_rail *rail, uint32_t count)
{
    return count < (uint32_t)rail->attr.max_qp_wr ? count : (uint32_t)rail->attr.max_qp_wr;
}

static uint32_t slots_in(const verbs_rail *rail) { return bounded(rail, rail->is_shallow ? SLOTS_IN_SHALLOW : SLOTS_IN); }
static uint32_t slots_out(const verbs_rail *rail) { return bounded(rail, rail->is_shallow ? SLOTS_OUT_SHALLOW : SLOTS_OUT); }
uint32_t verbs_ud_depth(const verbs_rail *rail) { return slots_in(rail) + slots_out(rail); }

static int cannot(const verbs_rail *rail, const char *what, int error)
{
    return weft_fail(WEFT_E_SYSTEM, "RDMA device %s cannot %s datagrams for connecting: %s%s", rail->name, what, strerror(error),
                     error == ENOMEM ? " (see ulimit -l)" : "");
}

/* -- receiving -- */

static int post_receive(verbs_rail *rail, const ud_qp *qp, datagram *slot)
{
    struct ibv_sge part = {.addr = (uintptr_t)slot->memory, .length = SLOT_BYTES, .lkey = qp->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)slot, .sg_list = &part, .num_sge = 1}, *bad;
    return ibv_post_recv(rail->ud, &wr, &bad);
}

static void on_received(verbs_rail *rail, const ud_qp *qp, datagram *slot, const struct ibv_wc *wc)
{
    uint64_t copy[SLOT_BYTES / 8]; /* handling it may send or close: the slot is posted again first */
    size_t bytes = wc->byte_len > VERBS_GRH && wc->byte_len <= SLOT_BYTES ? wc->byte_len - VERBS_GRH : 0;
    bool is_good = wc->status == IBV_WC_SUCCESS && bytes;
    if (is_good)
        memcpy(copy, slot->memory + VERBS_GRH, bytes);
    if (wc->status != IBV_WC_WR_FLUSH_ERR)
        post_receive(rail, qp, slot);
    if (is_good)
        verbs_conn_msg_recv(rail, (const verbs_conn_msg *)copy, bytes);
}

/* -- sending -- */

/* A failed send puts the send queue into SQE: it takes no more until it is set to RTS. */
static void resume_send_queue(const verbs_rail *rail)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
    ibv_modify_qp(rail->ud, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE); /* fails if it is not in SQE */
}

static void free_slot(ud_qp *qp, datagram *slot)
{
    if (slot->ah)
        ibv_destroy_ah(slot->ah);
    slot->ah = NULL;
    slot->next_free = qp->free;
    qp->free = slot;
}

int verbs_ud_send(verbs_rail *rail, const verbs_address *to, const verbs_conn_msg *msg, size_t bytes)
{
    ud_qp *qp = &rail->iface->conn->ud->qps[rail->index];
    datagram *slot = qp->free;
    struct ibv_ah_attr where;
    struct ibv_sge part;
    struct ibv_send_wr wr, *bad;
    int error;
    if (!rail->ud || !to->ud_qpn)
        return weft_fail(WEFT_E_UNSUPPORTED, "%s or the peer has no UD queue pair", rail->name);
    if (!slot)
        return WEFT_AGAIN;
    verbs_rc_qp_address(rail, to, &where);
    slot->ah = ibv_create_ah(rail->pd, &where);
    if (!slot->ah)
        return cannot(rail, "address", errno);
    qp->free = slot->next_free;
    memcpy(slot->memory, msg, bytes);
    part = (struct ibv_sge){.addr = (uintptr_t)slot->memory, .length = (uint32_t)bytes, .lkey = qp->mr->lkey};
    wr = (struct ibv_send_wr){.wr_id = (uintptr_t)slot, .sg_list = &part, .num_sge = 1, .opcode = IBV_WR_SEND,
                              .send_flags = IBV_SEND_SIGNALED,
                              .wr.ud = {.ah = slot->ah, .remote_qpn = to->ud_qpn, .remote_qkey = QKEY}};
    error = ibv_post_send(rail->ud, &wr, &bad);
    if (error) {
        free_slot(qp, slot);
        return cannot(rail, "send", error);
    }
    rail->iface->counts[VERBS_COUNT_DATAGRAMS]++;
    return 0;
}

void verbs_ud_completion(verbs_rail *rail, const struct ibv_wc *wc)
{
    ud_qp *qp = &rail->iface->conn->ud->qps[rail->index];
    datagram *slot = (datagram *)(uintptr_t)wc->wr_id;
    if (slot->work.kind == VERBS_WORK_DATAGRAM_IN)
        on_received(rail, qp, slot, wc);
    else
        free_slot(qp, slot);
    if (wc->status != IBV_WC_SUCCESS && wc->status != IBV_WC_WR_FLUSH_ERR && rail->ud)
        resume_send_queue(rail);
}

/* -- opening -- */

static int make_queue_pair(verbs_rail *rail)
{
    struct ibv_qp_init_attr init = {.send_cq = rail->cq, .recv_cq = rail->cq, .qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = slots_out(rail), .max_recv_wr = slots_in(rail), .max_send_sge = 1,
                                            .max_recv_sge = 1}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = rail->port_num, .pkey_index = rail->pkey_index,
                               .qkey = QKEY};
    int error;
    rail->ud = ibv_create_qp(rail->pd, &init);
    if (!rail->ud)
        return errno;
    error = ibv_modify_qp(rail->ud, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    if (!error)
        error = ibv_modify_qp(rail->ud, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (!error)
        error = ibv_modify_qp(rail->ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return error;
}

static int open_ud_qp(verbs_rail *rail, ud_qp *qp)
{
    uint32_t count = slots_in(rail) + slots_out(rail);
    int error;
    qp->in = slots_in(rail);
    qp->out = slots_out(rail);
    qp->slots = calloc(count, sizeof *qp->slots);
    if (!qp->slots || posix_memalign((void **)&qp->memory, 4096, count * SLOT_BYTES) != 0)
        return weft_fail(WEFT_E_NOMEM, "no memory for datagrams");
    memset(qp->memory, 0, count * SLOT_BYTES);
    qp->mr = ibv_reg_mr(rail->pd, qp->memory, count * SLOT_BYTES, IBV_ACCESS_LOCAL_WRITE);
    if (!qp->mr)
        return cannot(rail, "pin memory for", errno);
    error = make_queue_pair(rail);
    if (error)
        return cannot(rail, "create a queue pair of", error);
    for (uint32_t i = 0; i < count; i++) {
        datagram *slot = &qp->slots[i];
        slot->memory = qp->memory + i * SLOT_BYTES;
        slot->work = (verbs_work){.kind = i < qp->in ? VERBS_WORK_DATAGRAM_IN : VERBS_WORK_DATAGRAM_OUT, .rail = rail->index};
        if (i >= qp->in)
            free_slot(qp, slot);
        else if ((error = post_receive(rail, qp, slot)) != 0)
            return cannot(rail, "receive", error);
    }
    return 0;
}

int verbs_ud_open(verbs_iface *iface)
{
    int rc = 0;
    iface->conn->ud = calloc(1, sizeof *iface->conn->ud);
    if (!iface->conn->ud)
        return weft_fail(WEFT_E_NOMEM, "no memory for datagrams");
    for (uint8_t i = 0; rc == 0 && i < iface->rail_count; i++)
        if (!iface->rails[i].is_iwarp)
            rc = open_ud_qp(&iface->rails[i], &iface->conn->ud->qps[i]);
    return rc;
}

void verbs_ud_close(verbs_iface *iface)
{
    for (uint8_t i = 0; iface->conn->ud && i < iface->rail_count; i++) {
        ud_qp *qp = &iface->conn->ud->qps[i];
        if (iface->rails[i].ud)
            ibv_destroy_qp(iface->rails[i].ud);
        iface->rails[i].ud = NULL;
        for (uint32_t slot = qp->in; qp->slots && slot < qp->in + qp->out; slot++)
            if (qp->slots[slot].ah)
                ibv_destroy_ah(qp->slots[slot].ah);
        if (qp->mr)
            ibv_dereg_mr(qp->mr);
        free(qp->memory);
        free(qp->slots);
    }
    free(iface->conn->ud);
    iface->conn->ud = NULL;
}

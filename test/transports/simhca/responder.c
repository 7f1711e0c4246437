/* SPDX-License-Identifier: BSD-3-Clause
 *
 * responder: the receiving side of a connected queue pair: one message at a time, in order; a duplicate is answered again and not executed
 * again. A refusal ends the connection on both sides, as specified.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define WORD 8u /* bytes that a read takes from memory at one time */

static void answer(hca_qp *qp, const hca_event *request, hca_event *event)
{
    event->kind = HCA_ANSWER;
    event->from = (hca_address){qp->device, qp->base.qp_num, 0};
    event->to = request->from;
    event->seq = request->seq;
    if (event->answer == HCA_ACK && hca_chance(hca.profile.ack_loss_permille, 1000)) {
        hca.counts[SIMHCA_ACKS_LOST]++;
        hca_event_free(event);
        return;
    }
    uint64_t due = hca.now + hca_delay(hca.profile.ack_ns, event->body ? request->length : 0);
    qp->answer_due = due > qp->answer_due ? due : qp->answer_due + 1;
    hca_event_post(event, qp->answer_due);
}

static void acknowledge(hca_qp *qp, const hca_event *request)
{
    hca_event *event = hca_event_new(HCA_ANSWER);
    event->answer = HCA_ACK;
    answer(qp, request, event);
}

/* Sends a NAK with the requester's completion status; this queue pair goes to ERR too. */
static void refuse(hca_qp *qp, const hca_event *request, enum ibv_wc_status status, int own_event)
{
    hca_event *event = hca_event_new(HCA_ANSWER);
    event->answer = HCA_NAK;
    event->status = status;
    if (status == IBV_WC_REM_ACCESS_ERR)
        hca.counts[SIMHCA_KEYS_REFUSED]++;
    answer(qp, request, event);
    hca_qp_error(qp, own_event);
}

static void not_ready(hca_qp *qp, const hca_event *request)
{
    hca_event *event = hca_event_new(HCA_ANSWER);
    event->answer = HCA_RNR_NAK;
    event->value = qp->attr.min_rnr_timer;
    answer(qp, request, event);
}

/* The message has arrived completely. */
static void finish(hca_qp *qp, const hca_event *request)
{
    qp->expected = request->seq + 1;
    simhca_activity++;
    if (qp->takes_recv) {
        hca_visibility_settle(qp, 0, UINT64_MAX);
        hca_complete_recv(qp, &qp->writing_wc, request->flags & IBV_SEND_SOLICITED);
    }
    acknowledge(qp, request);
}

/* Dequeues a receive for it; false: none is posted, or it does not fit (then answered). */
static bool take_recv(hca_qp *qp, const hca_event *request, hca_rwqe *rwqe)
{
    bool has_imm = request->opcode == IBV_WR_SEND_WITH_IMM || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    bool is_write = request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    uint64_t room = 0;
    if (!hca_rq_dequeue(qp->rq, rwqe)) {
        not_ready(qp, request);
        return false;
    }
    hca_srq_on_dequeue(qp);
    qp->writing_wc = (struct ibv_wc){.wr_id = rwqe->wr_id, .status = IBV_WC_SUCCESS, .byte_len = request->length,
                                     .opcode = is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                                     .wc_flags = has_imm ? IBV_WC_WITH_IMM : 0, .imm_data = request->imm};
    for (uint32_t i = 0; i < rwqe->count; i++)
        room += rwqe->sges[i].length;
    bool is_long = !is_write && request->length > room;
    if (!is_long && (is_write || hca_sges_ok(qp->device, qp->base.pd, rwqe->sges, rwqe->count, IBV_ACCESS_LOCAL_WRITE)))
        return true;
    qp->writing_wc.status = is_long ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR;
    hca_complete_recv(qp, &qp->writing_wc, false);
    refuse(qp, request, is_long ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR, -1);
    return false;
}

/* The region that the request's key opens for this access; NULL: none. */
static const hca_mr *opened(hca_qp *qp, const hca_event *request, uint64_t bytes, unsigned access)
{
    const hca_mr *mr = hca_mr_of(qp->device, qp->base.pd, request->rkey, true, request->remote, bytes, access);
    if (!(qp->attr.qp_access_flags & access))
        return NULL;
    return mr ? mr : hca_mr_of_mw(qp, request->rkey, request->remote, bytes, access);
}

static bool may(hca_qp *qp, const hca_event *request, uint64_t bytes, unsigned access)
{
    return !bytes || opened(qp, request, bytes, access);
}

/* Stores the bytes of a send or write. True: all are visible. */
static bool write_memory(hca_qp *qp, hca_event *request)
{
    bool takes_recv = request->opcode != IBV_WR_RDMA_WRITE;
    bool is_write = request->opcode == IBV_WR_RDMA_WRITE || request->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    struct ibv_sge there = {.addr = request->remote, .length = request->length};
    hca_rwqe rwqe = {.count = 0};
    bool is_relaxed;
    if (is_write && !may(qp, request, request->length, IBV_ACCESS_REMOTE_WRITE)) {
        refuse(qp, request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
        return true;
    }
    if (takes_recv && !take_recv(qp, request, &rwqe))
        return true;
    qp->takes_recv = takes_recv;
    is_relaxed = is_write ? request->length && opened(qp, request, request->length, IBV_ACCESS_REMOTE_WRITE)->is_relaxed
                          : hca_sges_are_relaxed(qp->device, qp->base.pd, rwqe.sges, rwqe.count);
    if (is_relaxed && !takes_recv) {
        hca_visibility_begin_acked(request->body, request->length, &there, qp);
        finish(qp, request);
        return true;
    }
    qp->writing = is_write ? hca_visibility_begin(request->body, request->length, &there, 1, qp, is_relaxed)
                           : hca_visibility_begin(request->body, request->length, rwqe.sges, rwqe.count, qp, is_relaxed);
    if (qp->writing) {
        qp->writing_for = request;
        return false;
    }
    finish(qp, request);
    return true;
}

/* Copies each word whose bit is set, or not; the 64 bits are for any length. */
static void fetch_words(hca_event *response, const hca_event *request, uint64_t bits)
{
    const uint8_t *from = (const uint8_t *)(uintptr_t)request->remote;
    for (uint32_t at = 0; at < request->length; at += WORD)
        if (bits >> at / WORD % 64 & 1)
            memcpy(response->body + at, from + at, request->length - at < WORD ? request->length - at : WORD);
}

/* The response to a read of which some words are read now, the others later. */
static void begin_fetch(hca_qp *qp, hca_event *request, hca_event *response)
{
    hca_event *event = hca_event_new(HCA_FETCH);
    response->value = hca_random();
    fetch_words(response, request, response->value);
    qp->fetching = response;
    qp->fetching_for = request;
    event->to = (hca_address){qp->device, qp->base.qp_num, 0};
    event->id = qp->id;
    hca_event_post(event, hca.now + hca_delay(hca.profile.delay_ns, 0));
}

static void answer_read(hca_qp *qp, const hca_event *request, hca_event *response)
{
    if (request->seq == qp->expected) {
        qp->expected++;
        simhca_activity++;
    }
    answer(qp, request, response);
}

/* True: the request may be freed. */
static bool read_memory(hca_qp *qp, hca_event *request)
{
    if (request->reads_out > qp->attr.max_dest_rd_atomic || !qp->attr.max_dest_rd_atomic) {
        refuse(qp, request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
        return true;
    }
    if (!may(qp, request, request->length, IBV_ACCESS_REMOTE_READ)) {
        refuse(qp, request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
        return true;
    }
    hca_visibility_settle(qp, request->remote, request->remote + request->length);
    hca_event *event = hca_event_new(HCA_ANSWER);
    event->answer = HCA_ACK;
    event->body = malloc(request->length ? request->length : 1);
    if (hca.profile.torn && request->length > WORD) {
        begin_fetch(qp, request, event);
        return false;
    }
    fetch_words(event, request, UINT64_MAX);
    answer_read(qp, request, event);
    return true;
}

static void answer_atomic(hca_qp *qp, const hca_event *request)
{
    hca_event *event = hca_event_new(HCA_ANSWER);
    event->answer = HCA_ACK;
    event->value = qp->saved[request->seq % weft_count(qp->saved)].value;
    answer(qp, request, event);
}

/* With glob_atomics (IBV_ATOMIC_GLOB) it is an instruction of the CPU. Else it is atomic with those of the device alone: the old value is
 * read now, the new one becomes visible later, but before the response is sent and before another atomic of the device reads the word. What
 * a CPU stores meanwhile is lost. False: it is under way. */
static bool change(hca_qp *qp, hca_event *request, uint64_t *before)
{
    uint64_t *word = (uint64_t *)(uintptr_t)request->remote, after;
    bool adds = request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    *before = request->compare;
    if (hca.profile.glob_atomics && adds) {
        *before = __atomic_fetch_add(word, request->compare, __ATOMIC_ACQ_REL);
        return true;
    }
    if (hca.profile.glob_atomics) {
        __atomic_compare_exchange_n(word, before, request->swap, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
        return true;
    }
    hca_visibility_end(qp->device, request->remote, request->remote + sizeof *word);
    *before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    after = adds ? *before + request->compare : *before == request->compare ? request->swap : *before;
    qp->writing = hca_visibility_begin_word(after, request->remote, qp);
    qp->writing_for = request;
    return false;
}

/* True: the response is sent. */
static bool atomic(hca_qp *qp, hca_event *request)
{
    hca_saved *saved = &qp->saved[request->seq % weft_count(qp->saved)];
    if (request->seq == qp->expected) {
        if (request->remote % sizeof(uint64_t)) {
            refuse(qp, request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
            return true;
        }
        if (!may(qp, request, sizeof(uint64_t), IBV_ACCESS_REMOTE_ATOMIC)) {
            refuse(qp, request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
            return true;
        }
        hca_visibility_settle(qp, request->remote, request->remote + sizeof(uint64_t));
        qp->expected++;
        simhca_activity++;
        saved->seq = request->seq;
        if (!change(qp, request, &saved->value))
            return false;
    } else if (saved->seq != request->seq) {
        refuse(qp, request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
        return true;
    }
    answer_atomic(qp, request);
    return true;
}

static bool is_atomic(const hca_event *request)
{
    return request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* True: the event may be freed. */
static bool perform(hca_qp *qp, hca_event *request)
{
    if (request->seq > qp->expected) { /* an earlier one was lost: both will be resent */
        hca.counts[SIMHCA_DROPPED]++;
        return true;
    }
    if (request->seq == qp->expected && request->mtu > qp->attr.path_mtu && request->length > 128u << qp->attr.path_mtu) {
        refuse(qp, request, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
        return true;
    }
    switch (request->opcode) {
    case IBV_WR_RDMA_READ: return read_memory(qp, request);
    case IBV_WR_ATOMIC_CMP_AND_SWP: case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return atomic(qp, request);
    case IBV_WR_BIND_MW: case IBV_WR_LOCAL_INV:
        if (request->seq == qp->expected)
            qp->expected++;
        acknowledge(qp, request);
        return true;
    default:
        if (request->seq == qp->expected)
            return write_memory(qp, request);
        acknowledge(qp, request);
        return true;
    }
}

static bool listens(hca_qp *qp)
{
    return qp->attr.qp_state == IBV_QPS_RTR || qp->attr.qp_state == IBV_QPS_RTS || qp->attr.qp_state == IBV_QPS_SQD;
}

void hca_responder_request(hca_event *event)
{
    hca_qp *qp = hca_qp_find(event->to.device, event->to.qpn);
    bool is_for_qp = qp && qp->base.qp_type == IBV_QPT_RC && listens(qp) && event->from.qpn == qp->attr.dest_qp_num &&
                   event->from.device == hca_remote_device(qp) && event->from.psn == qp->attr.rq_psn &&
                   hca_reaches(event->from.device, event->to.device);
    if (!is_for_qp) {
        hca.counts[SIMHCA_DROPPED]++;
        hca_event_free(event);
        return;
    }
    if (!qp->was_established && qp->attr.qp_state == IBV_QPS_RTR)
        hca_report_event(qp->context, IBV_EVENT_COMM_EST, qp, 0);
    qp->was_established = true;
    if (qp->writing || qp->fetching)
        weft_list_append(&qp->requests, &event->link);
    else if (perform(qp, event))
        hca_event_free(event);
}

/* Requests that have waited for one before them. */
static void perform_next(hca_qp *qp)
{
    weft_list_link *link;
    while (!qp->writing && !qp->fetching && listens(qp) && (link = weft_list_take(&qp->requests))) {
        hca_event *event = weft_container(link, hca_event, link);
        if (perform(qp, event))
            hca_event_free(event);
    }
}

void hca_responder_placed(hca_qp *qp)
{
    hca_event *request = qp->writing_for;
    hca_visibility_free(qp->writing);
    qp->writing = NULL;
    qp->writing_for = NULL;
    if (is_atomic(request))
        answer_atomic(qp, request);
    else
        finish(qp, request);
    hca_event_free(request);
    perform_next(qp);
}

void hca_responder_drop_fetch(hca_qp *qp)
{
    if (qp->fetching)
        hca_event_free(qp->fetching);
    if (qp->fetching_for)
        hca_event_free(qp->fetching_for);
    qp->fetching = qp->fetching_for = NULL;
}

void hca_responder_fetch(hca_event *event)
{
    hca_qp *qp = hca_qp_by_id(event->to.device, event->to.qpn, event->id);
    hca_event *response = qp ? qp->fetching : NULL, *request = qp ? qp->fetching_for : NULL;
    if (!response)
        return;
    qp->fetching = qp->fetching_for = NULL;
    if (!listens(qp)) {
        hca_event_free(response);
    } else if (!may(qp, request, request->length, IBV_ACCESS_REMOTE_READ)) {
        hca_event_free(response);
        refuse(qp, request, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    } else {
        fetch_words(response, request, ~response->value);
        answer_read(qp, request, response);
    }
    hca_event_free(request);
    perform_next(qp);
}

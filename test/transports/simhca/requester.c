/* SPDX-License-Identifier: BSD-3-Clause
 *
 * requester: the sending side of a queue pair. Messages are sent in order; without a response in time all are resent from the oldest on,
 * until the retries are used up. Responses come in order and acknowledge all earlier messages.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define DOORBELL_NS 100u

static bool brings_back(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void hca_requester_kick(hca_qp *qp)
{
    if (qp->send_posted || qp->is_waiting_rnr || qp->sent == qp->head || qp->attr.qp_state != IBV_QPS_RTS)
        return;
    hca_event *event = hca_event_new(HCA_SEND);
    event->to = (hca_address){qp->device, qp->base.qp_num, 0};
    event->id = qp->id;
    qp->send_posted = true;
    hca_event_post(event, hca.now + 1 + hca_random() % DOORBELL_NS);
}

void hca_requester_fail(hca_qp *qp, enum ibv_wc_status status)
{
    if (qp->done < qp->head)
        hca_complete_send(qp, status);
    if (qp->sent < qp->done)
        qp->sent = qp->done;
    hca_qp_error(qp, hca.profile.early ? IBV_EVENT_QP_FATAL : -1); /* no completion may remain that could report it */
}

/* -- the timer -- */

static void expect_answer(hca_qp *qp)
{
    if (!qp->attr.timeout)
        return;
    qp->deadline = hca.now + (4096ull << qp->attr.timeout);
    if (qp->timer_runs)
        return;
    hca_event *event = hca_event_new(HCA_TIMER);
    event->to = (hca_address){qp->device, qp->base.qp_num, 0};
    event->id = qp->id;
    qp->timer_runs = true;
    hca_event_post(event, qp->deadline);
}

static void go_back(hca_qp *qp)
{
    hca.counts[SIMHCA_RESENT] += qp->sent - qp->done;
    qp->sent = qp->done;
    qp->reads_out = 0;
    hca_requester_kick(qp);
}

void hca_requester_timer(hca_event *event)
{
    hca_qp *qp = hca_qp_by_id(event->to.device, event->to.qpn, event->id);
    if (!qp)
        return;
    qp->timer_runs = false;
    if (!qp->deadline || qp->attr.qp_state != IBV_QPS_RTS)
        return;
    if (hca.now < qp->deadline) {
        uint64_t deadline = qp->deadline;
        hca_event *again = hca_event_new(HCA_TIMER);
        again->to = event->to;
        again->id = event->id;
        qp->timer_runs = true;
        hca_event_post(again, deadline);
        return;
    }
    if (qp->retries >= qp->attr.retry_cnt) {
        hca_requester_fail(qp, IBV_WC_RETRY_EXC_ERR);
        return;
    }
    qp->retries++;
    expect_answer(qp);
    go_back(qp);
}

void hca_requester_rnr_over(hca_event *event)
{
    hca_qp *qp = hca_qp_by_id(event->to.device, event->to.qpn, event->id);
    if (!qp || qp->attr.qp_state != IBV_QPS_RTS)
        return;
    qp->is_waiting_rnr = false;
    go_back(qp);
}

/* -- sending -- */

static void flip(hca_event *event)
{
    /* never in headers: a wrong header is not about detection */
    if (event->length < 512 || !event->body || !hca_chance(hca.profile.flip_permille, 1000))
        return;
    uint32_t at = 128 + (uint32_t)(hca_random() % (event->length - 256));
    event->body[at] ^= (uint8_t)(1u << hca_random() % 8);
    hca.counts[SIMHCA_FLIPPED]++;
}

static hca_event *request_of(hca_qp *qp, const hca_wqe *wqe)
{
    hca_event *event = hca_event_new(HCA_REQUEST);
    event->from = (hca_address){qp->device, qp->base.qp_num, qp->attr.sq_psn};
    event->to = (hca_address){hca_remote_device(qp), qp->attr.dest_qp_num, 0};
    event->seq = qp->sent;
    event->opcode = wqe->opcode;
    event->flags = wqe->flags;
    event->imm = wqe->imm;
    event->rkey = wqe->rkey;
    event->remote = wqe->remote;
    event->compare = wqe->compare;
    event->swap = wqe->swap;
    event->length = wqe->length;
    event->mtu = qp->attr.path_mtu;
    event->reads_out = qp->reads_out;
    if (!brings_back(wqe->opcode)) {
        event->body = hca_gather(wqe);
        flip(event);
    }
    return event;
}

static void count(const hca_wqe *wqe)
{
    if (hca_is_mw_work(wqe->opcode))
        return;
    hca.counts[brings_back(wqe->opcode) ? wqe->opcode == IBV_WR_RDMA_READ ? SIMHCA_READS : SIMHCA_ATOMICS
               : wqe->opcode == IBV_WR_RDMA_WRITE || wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? SIMHCA_WRITES : SIMHCA_SENDS]++;
    hca.counts[SIMHCA_BYTES] += wqe->length;
}

/* The next message is invalid: reported when all earlier ones are complete. */
static void fail_at(hca_qp *qp, enum ibv_wc_status status)
{
    if (qp->done == qp->sent)
        hca_requester_fail(qp, status);
}

/* Sends the next message; false: not possible now. Local work (bind, invalidation) is done here, but completes in order with the
 * messages before it. */
static bool send_one(hca_qp *qp)
{
    hca_wqe *wqe = hca_wqe_at(qp, qp->sent);
    bool reads = brings_back(wqe->opcode);
    if (reads && qp->reads_out >= qp->attr.max_rd_atomic && qp->reads_out)
        return false;
    if ((wqe->flags & IBV_SEND_FENCE) && qp->reads_out)
        return false;
    unsigned access = reads ? IBV_ACCESS_LOCAL_WRITE : 0;
    bool is_allowed = wqe->inlined || hca_sges_ok(qp->device, qp->base.pd, wqe->sges, wqe->count, access);
    bool is_possible = !reads || qp->attr.max_rd_atomic;
    if (!is_allowed || !is_possible) {
        fail_at(qp, is_allowed ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR);
        return false;
    }
    if (!hca_faults_at(qp))
        return false;
    if (!wqe->is_sent && hca_is_mw_work(wqe->opcode) && !hca_mw_execute(qp, wqe)) {
        fail_at(qp, IBV_WC_MW_BIND_ERR);
        return false;
    }
    if (!wqe->is_sent)
        count(wqe);
    wqe->is_sent = true;
    qp->reads_out += reads;
    if (qp->is_mute || !hca_remote_device(qp)) {
        hca.counts[SIMHCA_DROPPED]++;
    } else {
        hca_event *event = request_of(qp, wqe);
        uint64_t due = hca.now + hca_delay(hca.profile.delay_ns, reads ? 0 : wqe->length);
        qp->last_due = due > qp->last_due ? due : qp->last_due + 1;
        hca_event_post(event, qp->last_due);
    }
    if (!reads)
        hca_complete_early(qp, wqe);
    qp->sent++;
    if (!qp->deadline)
        expect_answer(qp);
    return true;
}

void hca_requester_send(hca_event *event)
{
    hca_qp *qp = hca_qp_by_id(event->to.device, event->to.qpn, event->id);
    if (!qp)
        return;
    qp->send_posted = false;
    if (qp->attr.qp_state != IBV_QPS_RTS || qp->is_waiting_rnr || qp->sent == qp->head)
        return;
    if (qp->base.qp_type == IBV_QPT_UD)
        hca_ud_send(qp, hca_wqe_at(qp, qp->sent));
    else if (!send_one(qp))
        return; /* a response continues it */
    hca_requester_kick(qp);
}

/* -- responses -- */

static void progress(hca_qp *qp)
{
    if (qp->sent < qp->done)
        qp->sent = qp->done;
    qp->retries = 0;
    qp->rnr_left = qp->attr.rnr_retry;
    qp->deadline = 0;
    if (qp->done < qp->sent && !qp->is_waiting_rnr)
        expect_answer(qp);
    hca_requester_kick(qp);
}

static void complete(hca_qp *qp)
{
    if (brings_back(hca_wqe_at(qp, qp->done)->opcode) && qp->done < qp->sent && qp->reads_out)
        qp->reads_out--;
    hca_complete_send(qp, IBV_WC_SUCCESS);
}

static uint64_t rnr_ns(uint64_t timer)
{
    return timer ? 10000ull << (timer / 2 < 16 ? timer / 2 : 16) : 655360000ull;
}

static void on_rnr(hca_qp *qp, const hca_event *event)
{
    hca.counts[SIMHCA_RNR]++;
    if (qp->attr.rnr_retry != 7 && qp->rnr_left-- == 0) {
        hca_requester_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
    }
    hca_event *over = hca_event_new(HCA_RNR_OVER);
    over->to = (hca_address){qp->device, qp->base.qp_num, 0};
    over->id = qp->id;
    qp->is_waiting_rnr = true;
    qp->deadline = 0;
    hca_event_post(over, hca.now + rnr_ns(event->value));
}

/* Stores the bytes of a read; true: they become visible over time. */
static bool bring_home(hca_qp *qp, const hca_event *event)
{
    hca_wqe *wqe = hca_wqe_at(qp, qp->done);
    if (!hca_sges_ok(qp->device, qp->base.pd, wqe->sges, wqe->count, IBV_ACCESS_LOCAL_WRITE)) {
        hca_requester_fail(qp, IBV_WC_LOC_PROT_ERR);
        return true;
    }
    const uint8_t *data = wqe->opcode == IBV_WR_RDMA_READ ? event->body : (const uint8_t *)&event->value;
    qp->reading = hca_visibility_begin(data, wqe->length, wqe->sges, wqe->count, qp,
                                       hca_sges_are_relaxed(qp->device, qp->base.pd, wqe->sges, wqe->count));
    return qp->reading != NULL;
}

static void handle(hca_qp *qp, const hca_event *event)
{
    if (event->seq < qp->done || event->seq >= qp->head || !hca_wqe_at(qp, event->seq)->is_sent || qp->is_waiting_rnr)
        return;
    bool is_news = qp->done < event->seq;
    while (qp->done < event->seq) {
        if (brings_back(hca_wqe_at(qp, qp->done)->opcode)) { /* its response was lost */
            go_back(qp);
            return;
        }
        complete(qp);
    }
    if (event->answer == HCA_RNR_NAK) {
        if (is_news)
            progress(qp);
        on_rnr(qp, event);
    } else if (event->answer == HCA_NAK) {
        hca_requester_fail(qp, event->status);
    } else if (!brings_back(hca_wqe_at(qp, qp->done)->opcode) || !bring_home(qp, event)) {
        complete(qp);
        progress(qp);
    }
}

void hca_requester_response(hca_event *event)
{
    hca_qp *qp = hca_qp_find(event->to.device, event->to.qpn);
    bool is_for_qp = qp && qp->base.qp_type == IBV_QPT_RC && qp->attr.qp_state == IBV_QPS_RTS &&
                   event->from.qpn == qp->attr.dest_qp_num && event->from.device == hca_remote_device(qp) &&
                   event->to.psn == qp->attr.sq_psn && hca_reaches(event->from.device, event->to.device);
    if (!is_for_qp || qp->ack_mute) {
        hca.counts[SIMHCA_DROPPED]++;
        hca_event_free(event);
    } else if (qp->reading) {
        weft_list_append(&qp->answers, &event->link);
    } else {
        handle(qp, event);
        hca_event_free(event);
    }
}

void hca_requester_placed(hca_qp *qp)
{
    weft_list_link *link;
    hca_visibility_free(qp->reading);
    qp->reading = NULL;
    complete(qp);
    progress(qp);
    while (!qp->reading && qp->attr.qp_state == IBV_QPS_RTS && (link = weft_list_take(&qp->answers))) {
        hca_event *event = weft_container(link, hca_event, link);
        handle(qp, event);
        hca_event_free(event);
    }
}

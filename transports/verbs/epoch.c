/* SPDX-License-Identifier: BSD-3-Clause
 *
 * epoch: end of an ep's epoch: by an error, by the peer or in peace; its drain; and what follows: the next epoch, eviction, or loss of the
 * peer. Called by conn.c and by all files that see an error. Only verbs_conn_progress ends a drain and reports a lost peer.
 * Drain: (1) All QPs go to ERR. (2) A marker posted behind all work completes when that is flushed. (3) LAST_WQE_REACHED, or a timeout,
 * shows that no QP holds a receive of the SRQ. (4) The CQs are polled until empty and received frames delivered. (5) The QPs are
 * destroyed. Then no completion of the epoch can follow, and the frame numbers sent to the peer are final.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/gid.h"

#define SICK_BREAKS_MIN 4
#define EVICT_PAUSE_NS (4 * VERBS_MS)
#define STOOD_LONG_NS (10 * VERBS_SECOND)
#define LAST_WQE_SILENT_NS 1000000ull  /* wait for a device that never reported LAST_WQE_REACHED */
#define LAST_WQE_IWARP_NS 20000000ull  /* wait on iWARP, which has no marker either */
#define LAST_WQE_NS 100000000ull       /* wait for a device that reports it */
#define DEAD_NS 5000000000ull          /* a marker that has not completed by now never will */

/* -- drain -- */

void verbs_drain_begin(verbs_ep *ep)
{
    verbs_handshake *hs = ep->hs;
    hs->drain_ns = ep->iface->now_ns();
    hs->flushed_ns = 0;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp)
            verbs_rc_qp_break(&ep->qps[i]);
}

static bool is_flushed(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *hs = ep->hs;
    bool all = true;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_rc_qp *qp = &ep->qps[i];
        if (!qp->ibv_qp)
            continue;
        if (!hs->qp_hs[i].is_marked)
            verbs_rc_qp_mark(qp);
        all = all && hs->qp_hs[i].is_flushed;
    }
    return all || now - hs->drain_ns > DEAD_NS;
}

/* A QP may hold receives of its own, or a receive of the SRQ for a message of which it has received the first part. */
static bool has_no_receives(const verbs_ep *ep, uint64_t now)
{
    const verbs_handshake *hs = ep->hs;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        const verbs_rc_qp *qp = &ep->qps[i];
        uint64_t silent = qp->rail->is_iwarp ? LAST_WQE_IWARP_NS : LAST_WQE_SILENT_NS;
        uint64_t patience = qp->rail->reports_last_wqe ? LAST_WQE_NS : silent;
        if (qp->ibv_qp && qp->receives && !qp->rail->is_dead && now - hs->flushed_ns < DEAD_NS)
            return false; /* of its own queue: no completion may follow its destruction */
        if (qp->ibv_qp && qp->rail->srq && !hs->qp_hs[i].is_made && !hs->qp_hs[i].has_last_wqe && !qp->rail->is_dead &&
            now - hs->flushed_ns < patience)
            return false;
    }
    return true;
}

/* Polls all completions that are in the CQs now; later ones belong to other eps. */
static void poll_all(verbs_iface *iface)
{
    uint32_t max = 0, taken = 0;
    int n = 1;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        max += (uint32_t)iface->rails[i].cq->cqe;
    for (; n > 0 && taken <= max; taken += (uint32_t)n)
        n = verbs_poll_cqs(iface, 1 << 20);
}

bool verbs_drain_progress(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *hs = ep->hs;
    hs->due_ns = now + LAST_WQE_SILENT_NS / 2;
    if (!is_flushed(ep, now))
        return false;
    if (!hs->flushed_ns)
        hs->flushed_ns = now;
    if (!has_no_receives(ep, now))
        return false;
    poll_all(ep->iface);
    verbs_rma_down(ep);
    verbs_flow_down(ep);
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp)
            verbs_rc_qp_close(&ep->qps[i]);
    ep->home = NULL;
    return true;
}

/* -- errors -- */

/* The timeout runs from the first attempt or error without progress since. A connection that was up for long restarts it, as does the end
 * of an epoch without an error, if none occurred before: an idle ep may change epochs often, as rails come and go, and gives way. */
static void note_end(verbs_ep *ep, bool is_trouble)
{
    verbs_handshake *hs = ep->hs;
    uint64_t now = verbs_conn_now(ep);
    bool stood_long = ep->state == VERBS_UP && now - hs->up_ns > verbs_conn_timeout_ns() && now - hs->up_ns > STOOD_LONG_NS;
    if (ep->tx_acked != hs->trouble_tx || ep->rx_seq != hs->trouble_rx || ep->rma_done != hs->trouble_rma || stood_long) {
        hs->trouble_ns = now;
        hs->trouble_count = 0;
    }
    hs->trouble_rma = ep->rma_done;
    hs->trouble_tx = ep->tx_acked;
    hs->trouble_rx = ep->rx_seq;
    if (is_trouble)
        hs->trouble_count++;
    else if (!hs->trouble_count)
        hs->trouble_ns = now;
}

/* A refusal proves that the peer lives. */
static bool is_answer(const struct ibv_wc *wc)
{
    return wc && (wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR || wc->status == IBV_WC_REM_OP_ERR ||
                  wc->status == IBV_WC_RNR_RETRY_EXC_ERR);
}

void verbs_conn_break(verbs_rc_qp *qp, const struct ibv_wc *wc, const char *words)
{
    verbs_ep *ep = qp->ep;
    bool is_first = ep->state == VERBS_UP || ep->state == VERBS_CONNECTING;
    bool is_echo = wc && wc->status == IBV_WC_WR_FLUSH_ERR; /* follows an error that is reported by itself */
    if (!is_first && ep->state != VERBS_DRAINING)
        return;
    if (is_answer(wc))
        ep->silent_since_ns = 0;
    if (wc && (is_first || !is_echo)) {
        verbs_wc_error(qp, wc, words ? words : "a transfer", ep->last_error, sizeof ep->last_error);
        verbs_rail_probe_suspect(qp, wc);
    } else if (words && is_first && words != ep->last_error) {
        snprintf(ep->last_error, sizeof ep->last_error, "%s", words);
    }
    if (!is_first)
        return;
    ep->evict = VERBS_EVICT_NONE; /* EVICT_ACK may be lost with the epoch: the peer must learn of the new one */
    note_end(ep, !ep->hs->is_peaceful);
    ep->breaks++;
    ep->iface->counts[VERBS_COUNT_BREAKS]++;
    weft_log_debug("connection %u with rank %u ends: %s", ep->epoch, ep->proc_id.rank, ep->last_error);
    verbs_conn_set_state(ep, VERBS_DRAINING);
    verbs_drain_begin(ep);
    verbs_conn_due(ep, verbs_conn_now(ep));
}

void verbs_conn_renew(verbs_rc_qp *qp, const char *words)
{
    qp->ep->hs->is_peaceful = true;
    verbs_conn_break(qp, NULL, words);
    qp->ep->hs->is_peaceful = false;
}

void verbs_conn_on_last_wqe(verbs_rc_qp *qp)
{
    verbs_qp_handshake_of(qp)->has_last_wqe = true;
    if (qp->ep->state == VERBS_DRAINING)
        verbs_conn_due(qp->ep, verbs_conn_now(qp->ep));
}

void verbs_conn_completion(verbs_rail *rail, const struct ibv_wc *wc)
{
    verbs_work *work = (verbs_work *)(uintptr_t)wc->wr_id;
    if (work->kind != VERBS_WORK_MARK) {
        verbs_ud_completion(rail, wc);
        return;
    }
    weft_container(work, verbs_qp_handshake, mark)->is_flushed = true;
    rail->marks--;
    verbs_conn_due(work->qp->ep, verbs_conn_now(work->qp->ep));
}

void verbs_conn_fail(verbs_ep *ep, const char *words)
{
    if (!ep->hs->fatal_reason)
        ep->hs->fatal_reason = words;
    verbs_conn_break(&ep->qps[0], NULL, words);
}

/* -- the end -- */

void verbs_conn_peer_failed(verbs_ep *ep, const char *format, ...)
{
    char why[400], here[VERBS_GID_TEXT], there[VERBS_GID_TEXT];
    const verbs_rc_qp *qp = &ep->qps[ep->try_rail];
    va_list words;
    va_start(words, format);
    vsnprintf(why, sizeof why, format, words);
    va_end(words);
    verbs_conn_close_qps(ep);
    verbs_conn_set_state(ep, VERBS_FAILED);
    verbs_flow_give_up(ep);
    weft_fail(WEFT_E_PEER, "rank %u is lost over %s (%s to %s): %s", ep->proc_id.rank, qp->rail->name,
              verbs_gid_text(&qp->rail->gid, here), verbs_gid_text(&ep->remote.address[qp->remote_rail].gid, there), why);
    verbs_rma_give_up(ep, WEFT_E_PEER, ep->hs->has_ended);
    ep->iface->iface.callbacks->peer_failed(ep->iface->iface.owner, ep->ep.peer, WEFT_E_PEER);
}

bool verbs_conn_is_settled(verbs_ep *ep) { return verbs_flow_is_quiet(ep) && !ep->ops_open; }

void verbs_conn_after_drain(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *hs = ep->hs;
    uint32_t epoch = ep->epoch + 1;
    uint64_t pause = 0;
    if (hs->is_closing && (verbs_conn_is_settled(ep) || hs->remote_is_gone)) {
        verbs_conn_set_state(ep, VERBS_FAILED);
        hs->is_closed = true;
        return;
    }
    if (hs->remote_is_gone) {
        verbs_conn_on_gone(ep);
        return;
    }
    if (hs->fatal_reason) {
        verbs_conn_peer_failed(ep, "%s", hs->fatal_reason);
        return;
    }
    if (verbs_rest_ends_epoch(ep)) {
        verbs_rest_abandon(ep);
        verbs_conn_retry_now(ep->iface);
        return;
    }
    if (ep->evict == VERBS_EVICT_ACKED && !hs->is_closing && (int32_t)(hs->remote_epoch - epoch) < 0) {
        verbs_conn_retry_now(ep->iface);
        if (verbs_conn_is_settled(ep) && !ep->is_blocked) {
            ep->evict = VERBS_EVICT_NONE;
            if (!hs->trouble_count)
                hs->trouble_ns = 0; /* the timeout begins with the next attempt */
            verbs_conn_set_state(ep, VERBS_NEW);
            return;
        }
        pause = EVICT_PAUSE_NS; /* the eps for which it closed come first */
    }
    if (hs->gives_way) {
        verbs_conn_retry_now(ep->iface);
        pause = EVICT_PAUSE_NS;
    }
    if (hs->trouble_count >= SICK_BREAKS_MIN && now - hs->trouble_ns > verbs_conn_timeout_ns()) {
        verbs_conn_peer_failed(ep, "%u attempts to connect in %u s failed. The last error: %s", hs->trouble_count,
             (unsigned)((now - hs->trouble_ns) / VERBS_SECOND), ep->last_error);
        return;
    }
    if ((int32_t)(hs->remote_epoch - epoch) >= 0)
        epoch = hs->remote_epoch;
    else if (hs->trouble_count > 1 && !pause)
        pause = VERBS_MS << (hs->trouble_count < 8 ? hs->trouble_count : 8);
    verbs_conn_begin_epoch(ep, epoch, pause < VERBS_TRY_MAX_NS ? pause : VERBS_TRY_MAX_NS);
}

/* The peer has closed the ep: it has received all frames, and its own have arrived or are in the CQs. The owner finds its BYE there and
 * closes, too. */
void verbs_conn_on_gone(verbs_ep *ep)
{
    verbs_handshake *hs = ep->hs;
    hs->remote_is_gone = true;
    if (ep->state == VERBS_CONNECTING) {
        verbs_conn_break(&ep->qps[0], NULL, "the peer has closed the connection");
    } else if (ep->state == VERBS_DRAINING && !verbs_conn_has_qps(ep)) {
        verbs_conn_set_state(ep, VERBS_FAILED);
        hs->is_closed = true;
        verbs_flow_give_up(ep);
        verbs_rma_give_up(ep, WEFT_E_PEER, ep->hs->has_ended);
    }
}

void verbs_conn_end(verbs_ep *ep)
{
    note_end(ep, false);
    verbs_conn_set_state(ep, VERBS_DRAINING);
    verbs_drain_begin(ep);
    verbs_conn_due(ep, verbs_conn_now(ep));
}

void verbs_conn_send_gone(verbs_ep *ep)
{
    if (!ep->hs->remote_is_gone)
        verbs_conn_send(ep, VERBS_MSG_GONE);
}

void verbs_ep_begin_close(verbs_ep *ep)
{
    verbs_conn_send_gone(ep);
    verbs_conn_end(ep);
}

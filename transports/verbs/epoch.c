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
#define REST_NS (4 * VERBS_MS)
#define STOOD_LONG_NS (10 * VERBS_SECOND)
#define LAST_WQE_SILENT_NS 1000000ull  /* wait for a device that never reported LAST_WQE_REACHED */
#define LAST_WQE_IWARP_NS 20000000ull  /* wait on iWARP, which has no marker either */
#define LAST_WQE_NS 100000000ull       /* wait for a device that reports it */
#define DEAD_NS 5000000000ull          /* a marker that has not completed by now never will */

/* -- drain -- */

void verbs_drain_begin(verbs_ep *ep)
{
    verbs_handshake *meet = ep->meet;
    meet->drain_ns = ep->iface->now_ns();
    meet->flushed_ns = 0;
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp)
            verbs_rc_qp_break(&ep->links[i]);
}

static bool is_flushed(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *meet = ep->meet;
    bool all = true;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        verbs_rc_qp *link = &ep->links[i];
        if (!link->qp)
            continue;
        if (!meet->halves[i].is_marked)
            verbs_rc_qp_mark(link);
        all = all && meet->halves[i].is_flushed;
    }
    return all || now - meet->drain_ns > DEAD_NS;
}

/* A QP may hold a receive of the SRQ for a message of which it has received the first part. */
static bool holds_no_receives(const verbs_ep *ep, uint64_t now)
{
    const verbs_handshake *meet = ep->meet;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        const verbs_rc_qp *link = &ep->links[i];
        uint64_t silent = link->rail->is_iwarp ? LAST_WQE_IWARP_NS : LAST_WQE_SILENT_NS;
        uint64_t patience = link->rail->tells_last_wqe ? LAST_WQE_NS : silent;
        if (link->qp && !meet->halves[i].is_made && !meet->halves[i].has_last_wqe && !link->rail->is_dead &&
            now - meet->flushed_ns < patience)
            return false;
    }
    return true;
}

/* Polls all completions that are in the CQs now; later ones belong to other eps. */
static void take_all(verbs_iface *iface)
{
    uint32_t max = 0, taken = 0;
    int n = 1;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        max += (uint32_t)iface->rails[i].cq->cqe;
    for (; n > 0 && taken <= max; taken += (uint32_t)n)
        n = verbs_drain(iface, 1 << 20);
}

bool verbs_drain_progress(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *meet = ep->meet;
    meet->due_ns = now + LAST_WQE_SILENT_NS / 2;
    if (!is_flushed(ep, now))
        return false;
    if (!meet->flushed_ns)
        meet->flushed_ns = now;
    if (!holds_no_receives(ep, now))
        return false;
    take_all(ep->iface);
    verbs_rma_down(ep);
    verbs_flow_down(ep);
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp)
            verbs_rc_qp_close(&ep->links[i]);
    ep->home = NULL;
    return true;
}

/* -- errors -- */

/* The timeout runs from the first attempt or error without progress since. A connection that was up for long restarts it, as does the end
 * of an epoch without an error, if none occurred before: an idle ep may change epochs often, as rails come and go. */
static void count_break(verbs_ep *ep, bool is_trouble)
{
    verbs_handshake *meet = ep->meet;
    uint64_t now = verbs_conn_now(ep);
    bool stood_long = ep->state == VERBS_UP && now - meet->up_ns > verbs_conn_timeout_ns() && now - meet->up_ns > STOOD_LONG_NS;
    if (ep->tx_acked != meet->sick_tx || ep->rx_seq != meet->sick_rx || ep->alive != meet->sick_alive || stood_long) {
        meet->sick_ns = now;
        meet->sick_breaks = 0;
    }
    meet->sick_alive = ep->alive;
    meet->sick_tx = ep->tx_acked;
    meet->sick_rx = ep->rx_seq;
    if (is_trouble)
        meet->sick_breaks++;
    else if (!meet->sick_breaks)
        meet->sick_ns = now;
    ep->breaks++;
    ep->iface->counts[VERBS_COUNT_BREAKS]++;
}

/* A refusal proves that the peer lives. */
static bool is_answer(const struct ibv_wc *wc)
{
    return wc && (wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR || wc->status == IBV_WC_REM_OP_ERR ||
                  wc->status == IBV_WC_RNR_RETRY_EXC_ERR);
}

void verbs_conn_break(verbs_rc_qp *link, const struct ibv_wc *wc, const char *words)
{
    verbs_ep *ep = link->ep;
    bool is_first = ep->state == VERBS_UP || ep->state == VERBS_CONNECTING;
    bool is_echo = wc && wc->status == IBV_WC_WR_FLUSH_ERR; /* follows an error that is reported by itself */
    if (!is_first && ep->state != VERBS_DRAINING)
        return;
    if (is_answer(wc))
        ep->silent_since_ns = 0;
    if (wc && (is_first || !is_echo)) {
        verbs_wc_error(link, wc, words ? words : "a transfer", ep->last_error, sizeof ep->last_error);
        verbs_rail_probe_suspect(link, wc);
    } else if (words && is_first && words != ep->last_error) {
        snprintf(ep->last_error, sizeof ep->last_error, "%s", words);
    }
    if (!is_first)
        return;
    ep->rest = VERBS_EVICT_NONE; /* EVICT_ACK may be lost with the epoch: the peer must learn of the new one */
    count_break(ep, !ep->meet->is_peaceful);
    weft_log_debug("connection %u with rank %u ends: %s", ep->epoch, ep->proc_id.rank, ep->last_error);
    verbs_conn_set_state(ep, VERBS_DRAINING);
    verbs_drain_begin(ep);
    verbs_conn_due(ep, verbs_conn_now(ep));
}

void verbs_conn_renew(verbs_rc_qp *link, const char *words)
{
    link->ep->meet->is_peaceful = true;
    verbs_conn_break(link, NULL, words);
    link->ep->meet->is_peaceful = false;
}

void verbs_conn_last_wqe(verbs_rc_qp *link)
{
    verbs_qp_handshake_of(link)->has_last_wqe = true;
    if (link->ep->state == VERBS_DRAINING)
        verbs_conn_due(link->ep, verbs_conn_now(link->ep));
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
    verbs_conn_due(work->link->ep, verbs_conn_now(work->link->ep));
}

void verbs_conn_fail(verbs_ep *ep, const char *words)
{
    if (!ep->meet->fatal_reason)
        ep->meet->fatal_reason = words;
    verbs_conn_break(&ep->links[0], NULL, words);
}

/* -- the end -- */

void verbs_conn_lose(verbs_ep *ep, const char *format, ...)
{
    char why[400], here[VERBS_GID_TEXT], there[VERBS_GID_TEXT];
    const verbs_rc_qp *link = &ep->links[ep->try_rail];
    va_list words;
    va_start(words, format);
    vsnprintf(why, sizeof why, format, words);
    va_end(words);
    verbs_conn_close_qps(ep);
    verbs_conn_set_state(ep, VERBS_LOST);
    verbs_flow_give_up(ep);
    weft_fail(WEFT_E_PEER, "rank %u is lost over %s (%s to %s): %s", ep->proc_id.rank, link->rail->name,
              verbs_gid_text(&link->rail->gid, here), verbs_gid_text(&ep->far.address[link->far_rail].gid, there), why);
    verbs_rma_give_up(ep, WEFT_E_PEER);
    ep->iface->iface.callbacks->peer_failed(ep->iface->iface.owner, ep->ep.peer, WEFT_E_PEER);
}

bool verbs_conn_is_settled(verbs_ep *ep) { return verbs_flow_is_quiet(ep) && !ep->ops_open; }

void verbs_conn_after_drain(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *meet = ep->meet;
    uint32_t epoch = ep->epoch + 1;
    uint64_t pause = 0;
    if (meet->is_leaving && (verbs_conn_is_settled(ep) || meet->far_is_gone)) {
        verbs_conn_set_state(ep, VERBS_LOST);
        meet->is_over = true;
        return;
    }
    if (meet->far_is_gone) {
        verbs_conn_gone(ep);
        return;
    }
    if (meet->fatal_reason) {
        verbs_conn_lose(ep, "%s", meet->fatal_reason);
        return;
    }
    if (ep->rest == VERBS_EVICT_ACKED && !meet->is_leaving && (int32_t)(meet->far_epoch - epoch) < 0) {
        verbs_conn_hurry(ep->iface);
        if (verbs_conn_is_settled(ep) && !ep->is_starved) {
            ep->rest = VERBS_EVICT_NONE;
            verbs_conn_set_state(ep, VERBS_NEW);
            return;
        }
        pause = REST_NS; /* the eps for which it closed come first */
    }
    if (meet->sick_breaks >= SICK_BREAKS_MIN && now - meet->sick_ns > verbs_conn_timeout_ns()) {
        verbs_conn_lose(ep, "tried to connect %u times in %u s, nothing got through. The last time: %s", meet->sick_breaks,
             (unsigned)((now - meet->sick_ns) / VERBS_SECOND), ep->last_error);
        return;
    }
    if ((int32_t)(meet->far_epoch - epoch) >= 0)
        epoch = meet->far_epoch;
    else if (meet->sick_breaks > 1 && !pause)
        pause = VERBS_MS << (meet->sick_breaks < 8 ? meet->sick_breaks : 8);
    verbs_conn_begin_epoch(ep, epoch, pause < VERBS_TRY_MAX_NS ? pause : VERBS_TRY_MAX_NS);
}

/* The peer has closed the ep: it has received all frames, and its own have arrived or are in the CQs. The owner finds its BYE there and
 * closes, too. */
void verbs_conn_gone(verbs_ep *ep)
{
    verbs_handshake *meet = ep->meet;
    meet->far_is_gone = true;
    if (ep->state == VERBS_CONNECTING) {
        verbs_conn_break(&ep->links[0], NULL, "the peer has left");
    } else if (ep->state == VERBS_DRAINING && !verbs_conn_has_qps(ep)) {
        verbs_conn_set_state(ep, VERBS_LOST);
        meet->is_over = true;
        verbs_flow_give_up(ep);
        verbs_rma_give_up(ep, WEFT_E_PEER);
    }
}

void verbs_conn_end(verbs_ep *ep)
{
    verbs_conn_set_state(ep, VERBS_DRAINING);
    verbs_drain_begin(ep);
    verbs_conn_due(ep, verbs_conn_now(ep));
}

void verbs_conn_farewell(verbs_ep *ep)
{
    if (!ep->meet->far_is_gone)
        verbs_conn_say(ep, VERBS_NOTE_GONE);
}

void verbs_conn_part(verbs_ep *ep)
{
    verbs_conn_farewell(ep);
    verbs_conn_end(ep);
}

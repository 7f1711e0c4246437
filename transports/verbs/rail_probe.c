/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rail_probe: pairs of rails that failed, are down, or recover. An ep whose connection lacks a pair probes it by datagrams at growing
 * intervals. When the peer answers, the ep begins a new epoch with that pair at a quiet moment. Also detects stuck QPs. Called by conn.c
 * (each progress of an ep that is UP; errors; stuck QPs once a second) and rail.c (port events).
 */
#include <stdio.h>

#include "base/log.h"
#include "base/macros.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#define MS 1000000ull
#define PROBE_FIRST_NS (500 * MS)
#define PROBE_MAX_NS (30000 * MS)
#define MISSES_MAX 4        /* each doubles the pause: to eight minutes */
#define RENEW_NS (1000 * MS) /* an ep that is never quiet is interrupted after this time */

static uint64_t probe_pause(const verbs_qp_handshake *qp_hs)
{
    uint64_t pause = PROBE_FIRST_NS << (qp_hs->probes < 8 ? qp_hs->probes : 8);
    return (pause < PROBE_MAX_NS ? pause : PROBE_MAX_NS) << (qp_hs->misses < MISSES_MAX ? qp_hs->misses : MISSES_MAX);
}

/* Probes may be answered where connections fail: the interval grows, too. */
static void suspend(verbs_rc_qp *qp)
{
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    qp_hs->is_suspect = true;
    qp_hs->is_proven = false;
    qp_hs->probe_ns = qp_hs->silent_until_ns = qp->ep->iface->now_ns() + probe_pause(qp_hs);
}

/* A pair without answer is not used in the next epochs while another works, and is probed. */
void verbs_rail_probe_suspect(verbs_rc_qp *qp, const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RESP_TIMEOUT_ERR)
        suspend(qp);
}

/* Datagrams pass, but rdma_cm does not connect. Each attempt delays the ep by a second or two, so they become rare. Without UD nothing
 * could prove that the pair works. */
void verbs_rail_probe_missed(verbs_rc_qp *qp)
{
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    if (!qp->rail->ud)
        return;
    if (qp_hs->is_proven && !qp_hs->misses++)
        weft_log_warn("rank %u answers datagrams by %s, but rdma_cm does not connect to it there: the pair is left out, and tried again "
                      "ever more rarely. If it stays so: WEFT_VERBS_CONNECT=ud; soft-RoCE devices must be recreated (rdma link)",
                      qp->ep->proc_id.rank, qp->rail->name);
    suspend(qp);
}

static uint32_t other_qps(const verbs_rc_qp *qp)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < qp->ep->qp_count; i++)
        count += qp->ep->qps[i].ibv_qp && &qp->ep->qps[i] != qp && verbs_rc_qp_is_usable(&qp->ep->qps[i]);
    return count;
}

static void probe_soon(verbs_rc_qp *qp)
{
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    qp_hs->probes = qp_hs->misses = 0;
    qp_hs->probe_ns = qp_hs->silent_until_ns = 0;
    verbs_conn_due(qp->ep, qp->ep->iface->now_ns());
}

/* If no other rail is up, the epoch goes on: the device retries for a while, and the port may recover. */
void verbs_conn_on_rail_change(verbs_rail *rail)
{
    char words[160];
    snprintf(words, sizeof words, "%s %s", rail->name, rail->is_dead ? "failed" : "is down");
    for (weft_list_link *at = rail->iface->eps.next; at != &rail->iface->eps; at = at->next) {
        verbs_ep *ep = weft_container(at, verbs_ep, by_iface);
        for (uint8_t i = 0; i < ep->qp_count; i++) {
            verbs_rc_qp *qp = &ep->qps[i];
            if (qp->rail != rail)
                continue;
            if (!rail->is_up && qp->ibv_qp && (rail->is_dead || other_qps(qp)))
                verbs_conn_renew(qp, words);
            if (rail->is_up && ep->state == VERBS_UP && !qp->ibv_qp)
                probe_soon(qp);
        }
    }
}

void verbs_conn_on_answer(verbs_ep *ep, const verbs_rail *rail, uint8_t remote_rail)
{
    verbs_handshake *hs = ep->hs;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_qp_handshake *qp_hs = &hs->qp_hs[i];
        if (ep->qps[i].rail != rail || ep->qps[i].remote_rail != remote_rail || ep->qps[i].ibv_qp || ep->state != VERBS_UP)
            continue;
        qp_hs->is_suspect = false;
        qp_hs->is_proven = true;
        if (!hs->wants_renewal)
            hs->renew_ns = ep->iface->now_ns() + RENEW_NS;
        hs->wants_renewal = true;
        verbs_conn_due(ep, ep->iface->now_ns());
    }
}

/* Probes pairs that are not in this epoch, at growing intervals; after an answer the next epoch has them. */
int verbs_rail_probe_progress(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *hs = ep->hs;
    uint64_t next = UINT64_MAX;
    if (hs->wants_renewal && (verbs_conn_is_settled(ep) || now >= hs->renew_ns)) {
        verbs_conn_renew(&ep->qps[0], "a pair of ports works again");
        return 1;
    }
    if (hs->wants_renewal)
        next = now + MS;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_qp_handshake *qp_hs = &hs->qp_hs[i];
        if (ep->qps[i].ibv_qp || !verbs_rc_qp_is_usable(&ep->qps[i]) || hs->wants_renewal || !ep->qps[i].rail->ud)
            continue;
        if (now >= qp_hs->probe_ns) {
            verbs_conn_msg_send(&ep->qps[i], VERBS_MSG_PROBE);
            qp_hs->probe_ns = now + probe_pause(qp_hs);
            qp_hs->probes++;
        }
        if (qp_hs->probe_ns < next)
            next = qp_hs->probe_ns;
    }
    if (next != UINT64_MAX)
        verbs_conn_due(ep, next);
    return 0;
}

/* -- stuck QPs -- */

#define STUCK_CHECKS 20 /* checks, one per second; a device that counts its retries fails long before (TIMEOUT, RETRIES in rc_qp.c) */

static uint32_t posted(const verbs_ep *ep)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        count += ep->qps[i].ibv_qp ? ep->qps[i].sq_used : 0;
    return count;
}

/* A QP should fail when the peer does not answer. Some do not: soft-RoCE loses its timer if the port goes down at the wrong moment, and
 * both sides would wait for ever. One more request restarts it (and completes all, if nothing is wrong); if that does not help, the epoch
 * ends. Checks are counted, not time: a process that was stopped has seen nothing.
 * An owner without credits, or a frame that is to be resent, waits for the peer and has nothing posted, and so has an eviction: an empty
 * request shows whether the peer has closed the connection alone (rest.c), or has ended. */
void verbs_rail_probe_stuck(verbs_iface *iface)
{
    for (weft_list_link *at = iface->eps.next; at != &iface->eps; at = at->next) {
        verbs_ep *ep = weft_container(at, verbs_ep, by_iface);
        verbs_handshake *hs = ep->hs;
        uint32_t count = ep->state == VERBS_UP ? posted(ep) : 0;
        if (ep->state == VERBS_UP && !count && (ep->is_blocked || ep->unsent || ep->evict == VERBS_EVICT_QUIESCE) && ep->home)
            verbs_rc_qp_fence(ep->home);
        if (!count || count != hs->stuck_posted || ep->tx_seq != hs->stuck_seq || ep->rma_done != hs->stuck_rma) {
            hs->stuck_posted = count;
            hs->stuck_seq = ep->tx_seq;
            hs->stuck_rma = ep->rma_done;
            hs->stuck_checks = 0;
            continue;
        }
        for (uint8_t i = 0; i < ep->qp_count; i++)
            verbs_rc_qp_sync(&ep->qps[i]);
        hs->stuck_posted = posted(ep);
        if (++hs->stuck_checks >= STUCK_CHECKS) {
            hs->stuck_checks = 0;
            verbs_conn_break(&ep->qps[0], NULL, "nothing that was sent was acknowledged or refused in 20 s: the connection is stuck");
        }
    }
}

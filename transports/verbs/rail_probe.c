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

static uint64_t probe_pause(const verbs_qp_handshake *half)
{
    uint64_t pause = PROBE_FIRST_NS << (half->probes < 8 ? half->probes : 8);
    return (pause < PROBE_MAX_NS ? pause : PROBE_MAX_NS) << (half->misses < MISSES_MAX ? half->misses : MISSES_MAX);
}

/* Probes may be answered where connections fail: the interval grows, too. */
static void rest(verbs_rc_qp *link)
{
    verbs_qp_handshake *half = verbs_qp_handshake_of(link);
    half->is_suspect = true;
    half->is_proven = false;
    half->probe_ns = half->rests_ns = link->ep->iface->now_ns() + probe_pause(half);
}

/* A pair without answer is not used in the next epochs while another works, and is probed. */
void verbs_rail_probe_suspect(verbs_rc_qp *link, const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RESP_TIMEOUT_ERR)
        rest(link);
}

/* Datagrams pass, but rdma_cm does not connect. Each attempt delays the ep by a second or two, so they become rare. Without UD nothing
 * could prove that the pair works. */
void verbs_rail_probe_missed(verbs_rc_qp *link)
{
    verbs_qp_handshake *half = verbs_qp_handshake_of(link);
    if (!link->rail->ud)
        return;
    if (half->is_proven && !half->misses++)
        weft_log_warn("rank %u answers datagrams by %s, but rdma_cm does not connect to it there: the pair is left out, and tried again "
                      "ever more rarely. If it stays so: WEFT_VERBS_CONNECT=ud; soft-RoCE devices need to be made anew (rdma link)",
                      link->ep->proc_id.rank, link->rail->name);
    rest(link);
}

static uint32_t other_links(const verbs_rc_qp *link)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < link->ep->link_count; i++)
        count += link->ep->links[i].qp && &link->ep->links[i] != link && verbs_rc_qp_is_usable(&link->ep->links[i]);
    return count;
}

static void probe_soon(verbs_rc_qp *link)
{
    verbs_qp_handshake *half = verbs_qp_handshake_of(link);
    half->probes = half->misses = 0;
    half->probe_ns = half->rests_ns = 0;
    verbs_conn_due(link->ep, link->ep->iface->now_ns());
}

/* If no other rail is up, the epoch goes on: the device retries for a while, and the port may recover. */
void verbs_conn_rail_changed(verbs_rail *rail)
{
    char words[160];
    snprintf(words, sizeof words, "%s %s", rail->name, rail->is_dead ? "failed" : "is down");
    for (weft_list_link *at = rail->iface->paths.next; at != &rail->iface->paths; at = at->next) {
        verbs_ep *ep = weft_container(at, verbs_ep, by_port);
        for (uint8_t i = 0; i < ep->link_count; i++) {
            verbs_rc_qp *link = &ep->links[i];
            if (link->rail != rail)
                continue;
            if (!rail->is_up && link->qp && (rail->is_dead || other_links(link)))
                verbs_conn_renew(link, words);
            if (rail->is_up && ep->state == VERBS_UP && !link->qp)
                probe_soon(link);
        }
    }
}

void verbs_conn_answered(verbs_ep *ep, const verbs_rail *rail, uint8_t far_rail)
{
    verbs_handshake *meet = ep->meet;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        verbs_qp_handshake *half = &meet->halves[i];
        if (ep->links[i].rail != rail || ep->links[i].far_rail != far_rail || ep->links[i].qp || ep->state != VERBS_UP)
            continue;
        half->is_suspect = false;
        half->is_proven = true;
        if (!meet->wants_renewal)
            meet->renew_ns = ep->iface->now_ns() + RENEW_NS;
        meet->wants_renewal = true;
        verbs_conn_due(ep, ep->iface->now_ns());
    }
}

/* Probes pairs that are not in this epoch, at growing intervals; after an answer the next epoch has them. */
int verbs_rail_probe_turn(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *meet = ep->meet;
    uint64_t next = UINT64_MAX;
    if (meet->wants_renewal && (verbs_conn_is_settled(ep) || now >= meet->renew_ns)) {
        verbs_conn_renew(&ep->links[0], "a link can be used again");
        return 1;
    }
    if (meet->wants_renewal)
        next = now + MS;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        verbs_qp_handshake *half = &meet->halves[i];
        if (ep->links[i].qp || !verbs_rc_qp_is_usable(&ep->links[i]) || meet->wants_renewal || !ep->links[i].rail->ud)
            continue;
        if (now >= half->probe_ns) {
            verbs_conn_msg_send(&ep->links[i], VERBS_NOTE_PROBE);
            half->probe_ns = now + probe_pause(half);
            half->probes++;
        }
        if (half->probe_ns < next)
            next = half->probe_ns;
    }
    if (next != UINT64_MAX)
        verbs_conn_due(ep, next);
    return 0;
}

/* -- stuck QPs -- */

#define STUCK_LOOKS 20 /* checks, one per second; a device that counts its retries fails long before (TIMEOUT, RETRIES in rc_qp.c) */

static uint32_t posted(const verbs_ep *ep)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < ep->link_count; i++)
        count += ep->links[i].qp ? ep->links[i].sq_used : 0;
    return count;
}

/* A QP should fail when the peer does not answer. Some do not: soft-RoCE loses its timer if the port goes down at the wrong moment, and
 * both sides would wait for ever. One more request restarts it (and completes all, if nothing is wrong); if that does not help, the epoch
 * ends. Checks are counted, not time: a process that was stopped has seen nothing. */
void verbs_rail_probe_stuck(verbs_iface *iface)
{
    for (weft_list_link *at = iface->paths.next; at != &iface->paths; at = at->next) {
        verbs_ep *ep = weft_container(at, verbs_ep, by_port);
        verbs_handshake *meet = ep->meet;
        uint32_t count = ep->state == VERBS_UP ? posted(ep) : 0;
        if (!count || count != meet->stuck_posted || ep->tx_seq != meet->stuck_seq || ep->alive != meet->stuck_alive) {
            meet->stuck_posted = count;
            meet->stuck_seq = ep->tx_seq;
            meet->stuck_alive = ep->alive;
            meet->stuck_looks = 0;
            continue;
        }
        for (uint8_t i = 0; i < ep->link_count; i++)
            verbs_rc_qp_sync(&ep->links[i]);
        meet->stuck_posted = posted(ep);
        if (++meet->stuck_looks >= STUCK_LOOKS) {
            meet->stuck_looks = 0;
            verbs_conn_break(&ep->links[0], NULL, "nothing that was sent was acknowledged or refused in 20 s: the connection is stuck");
        }
    }
}

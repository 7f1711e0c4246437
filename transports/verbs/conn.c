/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: the states of an ep: connecting, repeating, timers (epoch.c: end of an epoch; conn.h: the protocol). Called by flow, rma, mw and
 * iface through verbs.h, by the other files of conn through conn.h.
 * Invariants: nothing here blocks. An ep that is not settled is in conn->busy with the time of its next handling. Only
 * verbs_conn_progress ends a drain or reports a lost peer, never a call by the owner.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"
#include "transports/verbs/gid.h"

#define TRY_FIRST_NS VERBS_MS
#define TRIES_BY_RAIL 3      /* unanswered attempts before another pair of rails is tried */
#define TRIES_MIN 8        /* minimum attempts before a timeout applies: the process may have been stopped */
#define LEAVE_NS (3 * VERBS_SECOND) /* maximum wait for the answer of a peer while closing, ... */
#define LEAVE_CM_NS (10 * VERBS_SECOND) /* ... by rdma_cm, whose messages are repeated after seconds */
#define ASK_NS (900 * VERBS_MS)      /* silence of a peer, before the owner is asked whether it is at rest */

uint32_t verbs_conn_random(struct verbs_conn *conn)
{
    conn->random ^= conn->random << 13;
    conn->random ^= conn->random >> 17;
    conn->random ^= conn->random << 5;
    return conn->random;
}

void verbs_conn_due(verbs_ep *ep, uint64_t when)
{
    verbs_handshake *hs = ep->hs;
    struct verbs_conn *conn = ep->iface->conn;
    if (!hs->is_busy) {
        weft_list_append(&conn->busy, &hs->by_busy);
        hs->is_busy = true;
    }
    hs->due_ns = when;
    if (when < conn->next_ns)
        conn->next_ns = when;
}

void verbs_conn_set_state(verbs_ep *ep, enum verbs_ep_state state)
{
    bool was = ep->state == VERBS_CONNECTING || ep->state == VERBS_DRAINING;
    bool is = state == VERBS_CONNECTING || state == VERBS_DRAINING;
    ep->iface->connecting += (uint32_t)is - (uint32_t)was;
    ep->state = state;
    if (state != VERBS_CONNECTING)
        verbs_evict_has_qps(ep);
}

/* -- selecting and creating QPs -- */

/* The peer's entry for this pair of rails in the current epoch, or NULL. */
static const verbs_conn_msg_rail *offer_of(const verbs_rc_qp *qp)
{
    const verbs_handshake *hs = qp->ep->hs;
    const verbs_conn_msg_rail *remote = &hs->offer.rail[qp->remote_rail];
    if (!hs->has_offer || hs->offer.epoch != qp->ep->epoch || qp->remote_rail >= hs->offer.rails)
        return NULL;
    return remote->qpn && remote->remote_rail == qp->rail->index ? remote : NULL;
}

/* Suspects are not used while another pair is, unless the peer has proven the pair. */
static bool is_wanted(const verbs_rc_qp *qp, bool even_suspects)
{
    const verbs_conn_msg_rail *remote = offer_of(qp);
    if (!verbs_rc_qp_is_usable(qp) || qp->ibv_qp || (verbs_conn_has_offer(qp->ep) && !remote) ||
        (qp->ep->hs->absent_qps >> (qp - qp->ep->qps) & 1))
        return false;
    return even_suspects || !verbs_qp_handshake_of(qp)->is_suspect || (remote && (remote->flags & VERBS_MSG_PROVEN));
}

static void set_last_error(verbs_ep *ep, int rc)
{
    snprintf(ep->last_error, sizeof ep->last_error, "%s", weft_fail_text(rc));
}

bool verbs_conn_has_qps(const verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp)
            return true;
    return false;
}

static void note_lack(verbs_ep *ep, bool lacks)
{
    verbs_handshake *hs = ep->hs;
    uint64_t now = verbs_conn_now(ep);
    hs->lacks_qps = lacks;
    hs->is_alone &= lacks;
    if (lacks) {
        hs->lack_ns = hs->lack_ns ? hs->lack_ns : now;
        return;
    }
    if (hs->lack_ns && hs->by_cm && ep->silent_since_ns) /* nothing was sent meanwhile */
        ep->silent_since_ns += now - hs->lack_ns;
    hs->lack_ns = 0;
    verbs_evict_has_qps(ep);
}

static int open_qp(verbs_rc_qp *qp)
{
    int rc = verbs_rc_qp_open(qp);
    if (rc)
        set_last_error(qp->ep, rc);
    return rc;
}

/* Called again while refused QPs must be requested again. Existing QPs stay, and keep suspects out. */
static void open_qps(verbs_ep *ep)
{
    const verbs_ep *first = verbs_evict_reserved_before(ep);
    uint32_t wanted = 0;
    bool is_full = false;
    if (first && !verbs_conn_has_qps(ep)) {
        ep->hs->lack_error = first->hs->lack_error;
        snprintf(ep->last_error, sizeof ep->last_error, "the next free queue pair is for the connection to rank %u", first->proc_id.rank);
        note_lack(ep, true);
        return;
    }
    for (int even_suspects = 0; even_suspects < 2 && !(even_suspects && verbs_conn_has_qps(ep)); even_suspects++)
        for (uint8_t i = 0; i < ep->qp_count; i++) {
            if (!is_wanted(&ep->qps[i], even_suspects))
                continue;
            wanted++;
            is_full |= open_qp(&ep->qps[i]) == WEFT_E_NOSPACE;
        }
    note_lack(ep, is_full && !verbs_conn_has_qps(ep));
    if (!wanted && !verbs_conn_has_qps(ep))
        snprintf(ep->last_error, sizeof ep->last_error,
                 "no local RDMA port is up that shares a network with one of rank %u",
                 ep->proc_id.rank);
}

void verbs_conn_close_qps(verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp)
            verbs_rc_qp_close(&ep->qps[i]);
    ep->home = NULL;
}

/* Connects the pairs that both sides have; closes the other QPs. */
static bool connect_qps(verbs_ep *ep)
{
    ep->home = NULL;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_rc_qp *qp = &ep->qps[i];
        const verbs_conn_msg_rail *remote = offer_of(qp);
        int rc = 0;
        if (!qp->ibv_qp)
            continue;
        if (remote && (rc = verbs_rc_qp_connect(qp, remote)) == 0) {
            ep->home = ep->home ? ep->home : qp;
            continue;
        }
        if (rc)
            set_last_error(ep, rc);
        verbs_rc_qp_close(qp);
    }
    ep->hs->is_connected = ep->home != NULL;
    return ep->hs->is_connected;
}

/* Closes QPs that the peer has not connected. Nothing was posted to them yet. */
static void close_unconnected_qps(verbs_ep *ep, const verbs_conn_msg *msg)
{
    ep->home = NULL;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_rc_qp *qp = &ep->qps[i];
        if (qp->ibv_qp && (qp->remote_rail >= msg->rails || !msg->rail[qp->remote_rail].qpn))
            verbs_rc_qp_close(qp);
        else if (qp->ibv_qp && !ep->home)
            ep->home = qp;
    }
}

/* -- sending -- */

void verbs_conn_send(verbs_ep *ep, uint8_t kind)
{
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_rc_qp *qp = &ep->qps[(ep->try_rail + i) % ep->qp_count];
        int rc;
        if (!verbs_rc_qp_is_usable(qp))
            continue;
        rc = verbs_conn_msg_send(qp, kind);
        if (rc >= 0)
            return;
        set_last_error(ep, rc);
    }
}

static void try_again_later(verbs_ep *ep)
{
    uint64_t pause = TRY_FIRST_NS << (ep->tries < 8 ? ep->tries : 8);
    ep->next_try_ns = verbs_conn_now(ep) + (pause < VERBS_TRY_MAX_NS ? pause : VERBS_TRY_MAX_NS);
    verbs_conn_due(ep, ep->next_try_ns);
}

/* -- up -- */

/* iWARP: the active side must send first. Without credits to return (low memory limit) it sends an empty RETURN. */
static void send_first(verbs_ep *ep)
{
    weft_hdr none = {.tag = 0};
    if (verbs_flow_control(ep, VERBS_KIND_CREDITS, NULL))
        verbs_flow_control(ep, VERBS_KIND_RETURN, &none);
}

/* After a break that was an error, not at the first connection, nor after an end in peace. */
static void report_failover(const verbs_ep *ep)
{
    weft_iface *iface = &ep->iface->iface;
    weft_failover what = {.path = ep->home->rail->index, .breaks = ep->breaks};
    if (!ep->hs->up_ns || !ep->hs->trouble_count || !iface->callbacks->failover)
        return;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        what.paths += ep->qps[i].ibv_qp && !ep->qps[i].is_broken;
    iface->callbacks->failover(iface->owner, ep->ep.peer, &what);
}

static void go_up(verbs_ep *ep)
{
    verbs_handshake *hs = ep->hs;
    uint64_t now = verbs_conn_now(ep);
    verbs_conn_set_state(ep, VERBS_UP);
    report_failover(ep);
    ep->is_confirmed = true;
    ep->tries = ep->silent_since_ns = 0;
    ep->iface->counts[VERBS_COUNT_CONNECTS]++;
    hs->up_ns = now;
    hs->up_uses = ep->tx_seq + ep->rx_seq;
    hs->wants_renewal = false;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        hs->qp_hs[i].is_proven = false;
    verbs_conn_due(ep, now);
    verbs_flow_up(ep, hs->offer.rx_seq, hs->offer.credits);
    hs->up_frames = ep->tx_acked + ep->rx_seq;
    if (ep->state == VERBS_UP)
        verbs_rma_up(ep);
    if (ep->state == VERBS_UP && ep->home->rail->is_iwarp && verbs_qp_handshake_of(ep->home)->is_active)
        send_first(ep);
}

void verbs_conn_on_arrival(verbs_ep *ep)
{
    if (ep->state == VERBS_CONNECTING && ep->hs->is_connected && (!ep->hs->by_cm || verbs_rdmacm_finish(ep)))
        go_up(ep);
}

/* -- connecting -- */

void verbs_conn_begin_epoch(verbs_ep *ep, uint32_t epoch, uint64_t pause_ns)
{
    verbs_handshake *hs = ep->hs;
    verbs_conn_set_state(ep, VERBS_CONNECTING);
    ep->epoch = epoch;
    if (!hs->trouble_ns)
        hs->trouble_ns = verbs_conn_now(ep);
    if (hs->gives_way && ep->silent_since_ns) { /* others had its QPs: that is no answer */
        hs->tries_before += ep->tries;
    } else {
        hs->tries_before = 0;
        ep->silent_since_ns = 0;
    }
    ep->is_confirmed = hs->is_connected = ep->is_evict_requested = hs->lacks_qps = hs->gives_way = false;
    ep->evict = VERBS_EVICT_NONE;
    hs->remote_rails = hs->due_qps = hs->refused_qps = hs->absent_qps = 0;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        hs->qp_hs[i].repeats = 0;
    hs->rest = WEFT_EP_RETURN;
    hs->is_left = hs->is_abandoned = false;
    hs->up_frames = ep->tx_acked + ep->rx_seq;
    ep->tries = 0;
    ep->next_try_ns = verbs_conn_now(ep) + pause_ns;
    hs->local_credits = 0;
    verbs_conn_due(ep, ep->next_try_ns);
}

void verbs_conn_begin(verbs_ep *ep)
{
    if (ep->state == VERBS_NEW && !ep->hs->is_left)
        verbs_conn_begin_epoch(ep, ep->epoch + 1, 0);
}

bool verbs_conn_precedes(const verbs_ep *ep)
{
    const weft_proc_id *us = &ep->iface->self, *them = &ep->proc_id;
    return us->job != them->job ? us->job < them->job : us->rank != them->rank ? us->rank < them->rank : us->worker < them->worker;
}

/* Reserves credits, or evicts another ep for them. The peer's timeout does not run meanwhile. */
static uint32_t grant_credits(verbs_ep *ep)
{
    uint32_t credits = verbs_credit_grant_first(ep);
    if (credits)
        return credits;
    verbs_evict_for(ep);
    ep->hs->trouble_ns = verbs_conn_now(ep); /* the timeout starts anew */
    return verbs_credit_grant_first(ep);
}

void verbs_conn_retry_now(verbs_iface *iface)
{
    iface->conn->reserved_ns = iface->now_ns(); /* a reservation lasts from the latest release */
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        verbs_ep *ep = weft_container(link, verbs_ep, by_iface);
        if (ep->state != VERBS_CONNECTING || ep->hs->is_excused || (ep->hs->local_credits && !ep->hs->lacks_qps))
            continue;
        ep->next_try_ns = verbs_conn_now(ep);
        verbs_conn_due(ep, ep->next_try_ns);
    }
}

/* Creates local QPs, sends their numbers, connects them when the peer's are known. */
static void try_to_connect(verbs_ep *ep)
{
    verbs_handshake *hs = ep->hs;
    if (hs->is_excused)
        note_lack(ep, false);
    else if (hs->is_connected ? hs->due_qps != 0 : !verbs_conn_has_qps(ep) || hs->by_cm)
        open_qps(ep);
    if (hs->lacks_qps && verbs_evict_for_qps(ep, false))
        open_qps(ep);
    if (!hs->local_credits && verbs_conn_has_qps(ep))
        hs->local_credits = grant_credits(ep);
    if (!hs->is_connected && verbs_conn_has_offer(ep) && verbs_conn_has_qps(ep) && hs->local_credits && !connect_qps(ep)) {
        verbs_conn_break(&ep->qps[0], NULL, ep->last_error);
        return;
    }
    if (hs->by_cm)
        verbs_rdmacm_try(ep);
    else
        verbs_conn_send(ep, hs->is_connected ? VERBS_MSG_ACCEPT : VERBS_MSG_CONNECT);
    if (ep->state != VERBS_CONNECTING)
        return;
    if (!ep->silent_since_ns && !(hs->by_cm && hs->lacks_qps)) /* rdma_cm sends nothing without a QP */
        ep->silent_since_ns = verbs_conn_now(ep);
    ep->tries++;
    if (ep->tries % TRIES_BY_RAIL == 0)
        ep->try_rail = (uint8_t)((ep->try_rail + 1) % ep->qp_count);
    try_again_later(ep);
}

bool verbs_conn_follow(verbs_ep *ep, uint32_t epoch)
{
    int32_t ahead = (int32_t)(epoch - ep->epoch);
    if (ahead > 0 && ep->state != VERBS_FAILED)
        ep->hs->remote_epoch = epoch;
    if (ahead > 0 && ep->state == VERBS_NEW)
        verbs_conn_begin_epoch(ep, epoch, 0);
    else if (ahead > 0)
        verbs_conn_renew(&ep->qps[0], "the peer has started a new connection");
    return ep->state == VERBS_CONNECTING && ep->epoch == epoch;
}

bool verbs_conn_open_qp(verbs_ep *ep, verbs_rc_qp *qp)
{
    verbs_handshake *hs = ep->hs;
    int rc = qp->ibv_qp ? 0 : WEFT_AGAIN;
    for (int try = 0; !qp->ibv_qp && try < 2 && verbs_rc_qp_is_usable(qp); try++) {
        rc = open_qp(qp);
        if (rc == WEFT_E_NOSPACE && !hs->is_connected && !verbs_conn_precedes(ep)) /* the peer's choice of a pair of rails counts */
            verbs_conn_close_qps(ep);
        note_lack(ep, rc == WEFT_E_NOSPACE && !verbs_conn_has_qps(ep));
        if (rc == 0 || !hs->lacks_qps || !verbs_evict_for_qps(ep, true))
            break;
    }
    if (rc == WEFT_E_NOSPACE && !hs->lacks_qps)
        hs->refused_qps |= (uint8_t)(1u << (qp - ep->qps));
    if (rc == 0 && !hs->local_credits)
        hs->local_credits = grant_credits(ep);
    return rc == 0 && hs->local_credits;
}

void verbs_conn_on_offer(verbs_ep *ep, const verbs_conn_msg *msg)
{
    verbs_handshake *hs = ep->hs;
    int32_t ahead = (int32_t)(msg->epoch - ep->epoch);
    ep->silent_since_ns = 0;
    if (hs->is_excused && ep->state == VERBS_CONNECTING) { /* the next call has queue pairs: at once */
        ep->next_try_ns = verbs_conn_now(ep);
        verbs_conn_due(ep, ep->next_try_ns);
    }
    hs->is_excused = false;
    if (ahead <= 0 && ep->state == VERBS_NEW && hs->is_abandoned && msg->kind != VERBS_MSG_READY) {
        verbs_conn_begin_epoch(ep, ep->epoch + 1, 0); /* the peer calls in an epoch that was left without asking it */
        return;
    }
    if (ahead < 0 || ep->state == VERBS_FAILED) {
        ep->iface->conn->dropped += ahead < 0;
        return;
    }
    if (!msg->credits) { /* the peer lives and has no credits to grant yet: the reply makes it evict others */
        if (!hs->is_alone)
            hs->trouble_ns = verbs_conn_now(ep);
        verbs_conn_follow(ep, msg->epoch);
        return;
    }
    if (!hs->has_offer || (int32_t)(msg->epoch - hs->offer.epoch) > 0 || (ahead == 0 && !hs->is_connected)) {
        hs->offer = *msg;
        hs->has_offer = true;
    }
    if (verbs_conn_follow(ep, msg->epoch)) {
        if (!hs->is_connected)
            try_to_connect(ep);
        else if (msg->kind == VERBS_MSG_CONNECT)
            verbs_conn_send(ep, VERBS_MSG_ACCEPT);
        if (ep->state == VERBS_CONNECTING && hs->is_connected && msg->kind != VERBS_MSG_CONNECT) {
            close_unconnected_qps(ep, msg);
            if (ep->home)
                go_up(ep);
            else
                verbs_conn_break(&ep->qps[0], NULL, "no queue pair could be connected by both sides");
        }
    }
    if (ep->state == VERBS_UP && msg->kind != VERBS_MSG_READY && msg->epoch == ep->epoch)
        verbs_conn_send(ep, VERBS_MSG_READY);
}

/* -- progress -- */

/* For a peer at rest, which does not answer before it returns. */
static void call_slowly(verbs_ep *ep, uint64_t now)
{
    if (ep->state == VERBS_CONNECTING)
        try_to_connect(ep);
    if (ep->state != VERBS_CONNECTING)
        return;
    ep->next_try_ns = now + VERBS_SECOND;
    verbs_conn_due(ep, ep->next_try_ns);
}

static int progress_connecting(verbs_ep *ep, uint64_t now)
{
    verbs_handshake *hs = ep->hs;
    bool waits = hs->by_cm && hs->lacks_qps; /* for a QP: nothing is sent */
    uint64_t silent = ep->silent_since_ns && !waits ? now - ep->silent_since_ns : 0, tries = ep->tries + hs->tries_before;
    if (now < ep->next_try_ns) {
        verbs_conn_due(ep, ep->next_try_ns);
        return 0;
    }
    if (hs->is_closing && (verbs_conn_is_settled(ep) || silent > (hs->by_cm ? LEAVE_CM_NS : LEAVE_NS))) {
        verbs_conn_close_qps(ep);
        verbs_conn_set_state(ep, VERBS_FAILED);
        hs->is_closed = verbs_conn_is_settled(ep); /* else no GONE: a peer that lacks frames would wait for them */
    } else if (silent > ASK_NS && !hs->is_closing && verbs_rest_excuses(ep, now)) {
        call_slowly(ep, now);
    } else if (silent > verbs_conn_timeout_ns() && tries >= TRIES_MIN) {
        verbs_conn_peer_failed(ep, "no answer to %llu requests to connect in %d s (WEFT_PEER_TIMEOUT_S). Is its process alive, its port "
             "up, and is UDP port 4791 let through (RoCE)?%s%s", (unsigned long long)tries, weft_knob.peer_timeout_s,
             ep->last_error[0] ? " Before that: " : "", ep->last_error);
    } else if (now - hs->trouble_ns > verbs_conn_timeout_ns() && !silent && ep->tries >= TRIES_MIN) {
        verbs_conn_peer_failed(ep, "%sno connection comes about in %d s (WEFT_PEER_TIMEOUT_S)%s%s", waits ? "" : "it answers, but ",
             weft_knob.peer_timeout_s, ep->last_error[0] ? ": " : "", ep->last_error);
    } else {
        try_to_connect(ep);
    }
    return 1;
}

static int progress_ep(verbs_ep *ep, uint64_t now)
{
    switch (ep->state) {
    case VERBS_CONNECTING:
        return progress_connecting(ep, now);
    case VERBS_DRAINING:
        if (!verbs_drain_progress(ep, now)) {
            verbs_conn_due(ep, ep->hs->due_ns);
            return 0;
        }
        verbs_conn_after_drain(ep, now);
        return 1;
    case VERBS_UP:
        if (verbs_rest_progress(ep, now))
            return 1;
        return verbs_rail_probe_progress(ep, now) + verbs_evict_progress(ep, now);
    default:
        return 0;
    }
}

/* Handles each busy ep once; those with a timer left go back. An ep that is freed meanwhile removes itself. */
static int progress_busy(struct verbs_conn *conn, uint64_t now)
{
    weft_list_link todo, *at;
    int n = 0;
    weft_list_init(&todo);
    weft_list_splice(&todo, &conn->busy);
    conn->next_ns = UINT64_MAX;
    while ((at = weft_list_take(&todo)) != NULL) {
        verbs_handshake *hs = weft_container(at, verbs_handshake, by_busy);
        hs->is_busy = false;
        if (now < hs->due_ns)
            verbs_conn_due(hs->ep, hs->due_ns);
        else
            n += progress_ep(hs->ep, now);
    }
    return n;
}

#define EVENTS_TURNS 1024 /* polls between two checks for events */
#define CLOCK_TURNS 64    /* polls between two reads of the clock while rdma_cm is in use */

int verbs_conn_progress(verbs_iface *iface)
{
    struct verbs_conn *conn = iface->conn;
    bool is_time = ++conn->polls % EVENTS_TURNS == 0 || conn->checks_events;
    uint64_t now;
    int n = 0;
    if (!is_time && weft_list_is_empty(&conn->busy) && !(conn->cm && conn->polls % CLOCK_TURNS == 0))
        return 0;
    now = iface->now_ns();
    if (is_time || now - conn->events_ns > VERBS_MS) {
        conn->checks_events = iface->is_armed; /* the poll after the sleep checks, too */
        conn->events_ns = now;
        for (uint8_t i = 0; i < iface->rail_count; i++)
            n += verbs_rail_events(&iface->rails[i]);
        n += verbs_rdmacm_progress(iface);
        if (now - conn->stuck_ns > VERBS_SECOND) {
            conn->stuck_ns = now;
            verbs_rail_probe_stuck(iface);
        }
    }
    return now < conn->next_ns ? n : n + progress_busy(conn, now);
}

uint64_t verbs_conn_within(const verbs_iface *iface)
{
    struct verbs_conn *conn = iface->conn;
    uint64_t now;
    conn->checks_events = true; /* after a sleep the next poll must check these descriptors */
    if (conn->next_ns == UINT64_MAX || weft_list_is_empty(&conn->busy))
        return 0;
    now = iface->now_ns();
    return conn->next_ns > now ? conn->next_ns - now : 1;
}

/* -- open, close -- */

int verbs_conn_open(verbs_iface *iface)
{
    struct verbs_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return weft_fail(WEFT_E_NOMEM, "no memory for connections");
    iface->conn = conn;
    conn->iface = iface;
    conn->next_ns = UINT64_MAX;
    conn->random = iface->nonce * 2654435769u | 1;
    weft_list_init(&conn->busy);
    int rc = verbs_ud_open(iface);
    if (rc == 0)
        rc = verbs_rdmacm_open(iface);
    conn->addr = (verbs_iface_addr){.rails = iface->rail_count};
    for (uint8_t i = 0; i < iface->rail_count; i++)
        verbs_rail_address(&iface->rails[i], &conn->addr.address[i]);
    return rc;
}

void verbs_conn_close(verbs_iface *iface)
{
    struct verbs_conn *conn = iface->conn;
    if (!conn)
        return;
    while (!weft_list_is_empty(&iface->eps))
        verbs_ep_free(weft_container(iface->eps.next, verbs_ep, by_iface));
    verbs_rdmacm_close(iface);
    verbs_ud_close(iface);
    free(conn->gone);
    free(iface->ep_map);
    free(conn);
    iface->conn = NULL;
}

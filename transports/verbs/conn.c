/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: the states of a path: when to connect, to repeat, to look after it (end.c: how an epoch ends; conn.h tells
 * how the two sides agree). Called by flow, move and port through verbs.h, by its sisters through conn.h. The invariants:
 * nothing here waits; everything that is not settled stands in conn->busy with a time at which a turn looks at it; and only a
 * turn ends epochs and tells of losses, never a call that somebody is in the middle of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/cm.h"
#include "transports/verbs/flow.h"
#include "transports/verbs/gid.h"

#define TRY_FIRST_NS VERBS_MS
#define TRIES_BY_RAIL 3      /* unanswered, before another pair of rails is tried */
#define TRIES_LEAST 8        /* whatever the clock says: we may have been stopped */
#define LEAVE_NS (3 * VERBS_SECOND) /* one who leaves waits no longer for a peer that does not answer */

uint32_t verbs_conn_random(struct verbs_conn *conn)
{
    conn->random ^= conn->random << 13;
    conn->random ^= conn->random >> 17;
    conn->random ^= conn->random << 5;
    return conn->random;
}

/* A turn must look at the path by then. */
void verbs_conn_due(verbs_path *path, uint64_t when)
{
    verbs_meet *meet = path->meet;
    struct verbs_conn *conn = path->port->conn;
    if (!meet->is_busy) {
        weft_list_append(&conn->busy, &meet->by_busy);
        meet->is_busy = true;
    }
    meet->due_ns = when;
    if (when < conn->next_ns)
        conn->next_ns = when;
}

void verbs_conn_set_state(verbs_path *path, enum verbs_path_state state)
{
    bool was = path->state == VERBS_CONNECTING || path->state == VERBS_DRAINING;
    bool is = state == VERBS_CONNECTING || state == VERBS_DRAINING;
    path->port->connecting += (uint32_t)is - (uint32_t)was;
    path->state = state;
}

/* -- which links, and making them -- */

/* The peer offers a pair of rails in the epoch that we are in. */
static const verbs_note_rail *offer_of(const verbs_link *link)
{
    const verbs_meet *meet = link->path->meet;
    const verbs_note_rail *far = &meet->offer.rail[link->far_rail];
    if (!meet->has_offer || meet->offer.epoch != link->path->epoch || link->far_rail >= meet->offer.rails)
        return NULL;
    return far->qpn && far->far_rail == link->rail->index ? far : NULL;
}

/* Suspects stay out while anybody better is there, unless the peer has proof. */
static bool is_wanted(const verbs_link *link, bool even_suspects)
{
    const verbs_note_rail *far = offer_of(link);
    if (!verbs_link_is_usable(link) || link->qp || (verbs_conn_has_offer(link->path) && !far))
        return false;
    return even_suspects || !verbs_half_of(link)->is_suspect || (far && (far->flags & VERBS_NOTE_PROVEN));
}

static void note_trouble(verbs_path *path, int rc)
{
    snprintf(path->last_error, sizeof path->last_error, "%s", weft_fail_text(rc));
}

bool verbs_conn_has_links(const verbs_path *path)
{
    for (uint8_t i = 0; i < path->link_count; i++)
        if (path->links[i].qp)
            return true;
    return false;
}

/* Called again while links that were refused are to be asked for again: the others stay as they are, and keep suspects out. */
static void open_links(verbs_path *path)
{
    uint32_t wanted = 0;
    for (int even_suspects = 0; even_suspects < 2 && !(even_suspects && verbs_conn_has_links(path)); even_suspects++)
        for (uint8_t i = 0; i < path->link_count; i++) {
            int rc;
            if (!is_wanted(&path->links[i], even_suspects))
                continue;
            wanted++;
            rc = verbs_link_open(&path->links[i]);
            if (rc)
                note_trouble(path, rc);
        }
    if (!wanted && !verbs_conn_has_links(path))
        snprintf(path->last_error, sizeof path->last_error,
                 "no RDMA port of ours is up that shares a network with one of rank %u's",
                 path->name.rank);
}

void verbs_conn_close_links(verbs_path *path)
{
    for (uint8_t i = 0; i < path->link_count; i++)
        if (path->links[i].qp)
            verbs_link_close(&path->links[i]);
    path->home = NULL;
}

/* Connects what both sides have; the rest of ours serves nothing in this epoch. */
static bool connect_links(verbs_path *path)
{
    path->home = NULL;
    for (uint8_t i = 0; i < path->link_count; i++) {
        verbs_link *link = &path->links[i];
        const verbs_note_rail *far = offer_of(link);
        int rc = 0;
        if (!link->qp)
            continue;
        if (far && (rc = verbs_link_connect(link, far)) == 0) {
            path->home = path->home ? path->home : link;
            continue;
        }
        if (rc)
            note_trouble(path, rc);
        verbs_link_close(link);
    }
    path->meet->is_linked = path->home != NULL;
    return path->meet->is_linked;
}

/* The peer has connected fewer: what it left out can carry nothing. Nothing was posted yet. */
static void drop_links(verbs_path *path, const verbs_note *note)
{
    path->home = NULL;
    for (uint8_t i = 0; i < path->link_count; i++) {
        verbs_link *link = &path->links[i];
        if (link->qp && (link->far_rail >= note->rails || !note->rail[link->far_rail].qpn))
            verbs_link_close(link);
        else if (link->qp && !path->home)
            path->home = link;
    }
}

/* -- saying -- */

/* By the pair of rails whose turn it is; others when it is down or refuses. */
void verbs_conn_say(verbs_path *path, uint8_t kind)
{
    for (uint8_t i = 0; i < path->link_count; i++) {
        verbs_link *link = &path->links[(path->try_rail + i) % path->link_count];
        int rc;
        if (!verbs_link_is_usable(link))
            continue;
        rc = verbs_note_send(link, kind);
        if (rc >= 0)
            return;
        note_trouble(path, rc);
    }
}

static void try_again_later(verbs_path *path)
{
    uint64_t pause = TRY_FIRST_NS << (path->tries < 8 ? path->tries : 8);
    path->next_try_ns = verbs_conn_now(path) + (pause < VERBS_TRY_MOST_NS ? pause : VERBS_TRY_MOST_NS);
    verbs_conn_due(path, path->next_try_ns);
}

/* -- up -- */

/* The passive side must not. Where there are no credits to give (little memory) a word that gives none back does as well. */
static void speak_first(verbs_path *path)
{
    weft_head none = {.tag = 0};
    if (verbs_flow_control(path, VERBS_KIND_CREDITS, NULL))
        verbs_flow_control(path, VERBS_KIND_RETURN, &none);
}

static void go_up(verbs_path *path)
{
    verbs_meet *meet = path->meet;
    uint64_t now = verbs_conn_now(path);
    verbs_conn_set_state(path, VERBS_UP);
    path->is_confirmed = true;
    path->tries = path->silent_since_ns = 0;
    path->port->counts[VERBS_COUNT_CONNECTS]++;
    meet->up_ns = now;
    meet->up_uses = path->tx_seq + path->rx_seq;
    meet->wants_renewal = false;
    for (uint8_t i = 0; i < path->link_count; i++)
        meet->halves[i].is_proven = false;
    verbs_conn_due(path, now);
    verbs_flow_up(path, meet->offer.rx_seq, meet->offer.credits);
    if (path->state == VERBS_UP)
        verbs_move_up(path);
    if (path->state == VERBS_UP && path->home->rail->is_iwarp && verbs_half_of(path->home)->is_active)
        speak_first(path);
}

void verbs_conn_heard(verbs_path *path)
{
    if (path->state == VERBS_CONNECTING && path->meet->is_linked && (!path->meet->by_cm || verbs_cm_settle(path)))
        go_up(path);
}

/* -- connecting -- */

void verbs_conn_begin_epoch(verbs_path *path, uint32_t epoch, uint64_t pause_ns)
{
    verbs_meet *meet = path->meet;
    verbs_conn_set_state(path, VERBS_CONNECTING);
    path->epoch = epoch;
    if (!meet->sick_ns)
        meet->sick_ns = verbs_conn_now(path);
    path->is_confirmed = meet->is_linked = path->is_asked_to_rest = false;
    path->rest = VERBS_AWAKE;
    meet->far_links = meet->due_links = 0;
    path->tries = path->silent_since_ns = 0;
    path->next_try_ns = verbs_conn_now(path) + pause_ns;
    meet->my_credits = 0;
    verbs_conn_due(path, path->next_try_ns);
}

void verbs_conn_begin(verbs_path *path)
{
    if (path->state == VERBS_NEW)
        verbs_conn_begin_epoch(path, path->epoch + 1, 0);
}

/* Slots to lend, or somebody is asked to give way; the peer is told meanwhile that we are there. */
static uint32_t lend(verbs_path *path)
{
    uint32_t credits = verbs_flow_lend(path);
    if (credits)
        return credits;
    verbs_rest_for(path);
    path->meet->sick_ns = verbs_conn_now(path); /* the peer is not to blame */
    return verbs_flow_lend(path);
}

void verbs_conn_hurry(verbs_port *port)
{
    for (weft_link *link = port->paths.next; link != &port->paths; link = link->next) {
        verbs_path *path = weft_container(link, verbs_path, by_port);
        if (path->state != VERBS_CONNECTING || path->meet->my_credits)
            continue;
        path->next_try_ns = verbs_conn_now(path);
        verbs_conn_due(path, path->next_try_ns);
    }
}

/* Makes our half, tells it, connects it when the peer's is known. */
static void try_to_connect(verbs_path *path)
{
    verbs_meet *meet = path->meet;
    if (meet->is_linked ? meet->due_links != 0 : !verbs_conn_has_links(path) || meet->by_cm)
        open_links(path);
    if (!meet->my_credits && verbs_conn_has_links(path))
        meet->my_credits = lend(path);
    if (!meet->is_linked && verbs_conn_has_offer(path) && verbs_conn_has_links(path) && meet->my_credits && !connect_links(path)) {
        verbs_conn_break(&path->links[0], NULL, path->last_error);
        return;
    }
    if (meet->by_cm)
        verbs_cm_try(path);
    else
        verbs_conn_say(path, meet->is_linked ? VERBS_NOTE_ACCEPT : VERBS_NOTE_CONNECT);
    if (path->state != VERBS_CONNECTING)
        return;
    if (!path->silent_since_ns)
        path->silent_since_ns = verbs_conn_now(path);
    path->tries++;
    if (path->tries % TRIES_BY_RAIL == 0)
        path->try_rail = (uint8_t)((path->try_rail + 1) % path->link_count);
    try_again_later(path);
}

bool verbs_conn_follow(verbs_path *path, uint32_t epoch)
{
    int32_t ahead = (int32_t)(epoch - path->epoch);
    if (ahead > 0 && path->state != VERBS_LOST)
        path->meet->far_epoch = epoch;
    if (ahead > 0 && path->state == VERBS_NEW)
        verbs_conn_begin_epoch(path, epoch, 0);
    else if (ahead > 0)
        verbs_conn_renew(&path->links[0], "the peer's end broke: it connects anew");
    return path->state == VERBS_CONNECTING && path->epoch == epoch;
}

bool verbs_conn_make_half(verbs_path *path, verbs_link *link)
{
    int rc = link->qp ? 0 : verbs_link_is_usable(link) ? verbs_link_open(link) : WEFT_AGAIN;
    if (rc < 0)
        note_trouble(path, rc);
    if (rc == 0 && !path->meet->my_credits)
        path->meet->my_credits = lend(path);
    return rc == 0 && path->meet->my_credits;
}

void verbs_conn_offered(verbs_path *path, const verbs_note *note)
{
    verbs_meet *meet = path->meet;
    int32_t ahead = (int32_t)(note->epoch - path->epoch);
    path->silent_since_ns = 0;
    if (ahead < 0 || path->state == VERBS_LOST) {
        path->port->conn->dropped += ahead < 0;
        return;
    }
    if (!note->credits) { /* it is there, and cannot take us in yet: our offer will make others give way to us */
        meet->sick_ns = verbs_conn_now(path);
        verbs_conn_follow(path, note->epoch);
        return;
    }
    if (!meet->has_offer || (int32_t)(note->epoch - meet->offer.epoch) > 0 || (ahead == 0 && !meet->is_linked)) {
        meet->offer = *note;
        meet->has_offer = true;
    }
    if (verbs_conn_follow(path, note->epoch)) {
        if (!meet->is_linked)
            try_to_connect(path);
        else if (note->kind == VERBS_NOTE_CONNECT)
            verbs_conn_say(path, VERBS_NOTE_ACCEPT);
        if (path->state == VERBS_CONNECTING && meet->is_linked && note->kind != VERBS_NOTE_CONNECT) {
            drop_links(path, note);
            if (path->home)
                go_up(path);
            else
                verbs_conn_break(&path->links[0], NULL, "no link could be connected by both sides");
        }
    }
    if (path->state == VERBS_UP && note->kind != VERBS_NOTE_READY && note->epoch == path->epoch)
        verbs_conn_say(path, VERBS_NOTE_READY);
}

/* -- turns -- */

static int keep_connecting(verbs_path *path, uint64_t now)
{
    verbs_meet *meet = path->meet;
    uint64_t silent = path->silent_since_ns ? now - path->silent_since_ns : 0;
    if (now < path->next_try_ns) {
        verbs_conn_due(path, path->next_try_ns);
        return 0;
    }
    if (meet->is_leaving && (verbs_conn_is_settled(path) || silent > LEAVE_NS)) {
        verbs_conn_close_links(path);
        verbs_conn_set_state(path, VERBS_LOST);
        meet->is_over = true;
    } else if (silent > verbs_conn_timeout_ns() && path->tries >= TRIES_LEAST) {
        verbs_conn_lose(path, "no answer to %llu requests to connect in %d s (WEFT_PEER_TIMEOUT_S). Is its process alive, its port up, "
             "and is UDP port "
             "4791 let through (RoCE)?%s%s", (unsigned long long)path->tries, weft_knob.peer_timeout_s,
             path->last_error[0] ? " Before that: " : "", path->last_error);
    } else if (now - meet->sick_ns > verbs_conn_timeout_ns() && !silent && path->tries >= TRIES_LEAST) {
        verbs_conn_lose(path, "it answers, but no connection comes about in %d s (WEFT_PEER_TIMEOUT_S)%s%s", weft_knob.peer_timeout_s,
             path->last_error[0] ? ": " : "", path->last_error);
    } else {
        try_to_connect(path);
    }
    return 1;
}

static int look_after(verbs_path *path, uint64_t now)
{
    switch (path->state) {
    case VERBS_CONNECTING:
        return keep_connecting(path, now);
    case VERBS_DRAINING:
        if (!verbs_drain_turn(path, now)) {
            verbs_conn_due(path, path->meet->due_ns);
            return 0;
        }
        verbs_conn_after_drain(path, now);
        return 1;
    case VERBS_UP:
        return verbs_probe_turn(path, now) + verbs_rest_turn(path, now);
    default:
        return 0;
    }
}

/* Each of the busy once; those that still have something due go back by `due`. Whoever is freed meanwhile takes itself out. */
static int look_after_busy(struct verbs_conn *conn, uint64_t now)
{
    weft_link todo, *at;
    int n = 0;
    weft_list_init(&todo);
    weft_list_splice(&todo, &conn->busy);
    conn->next_ns = UINT64_MAX;
    while ((at = weft_list_take(&todo)) != NULL) {
        verbs_meet *meet = weft_container(at, verbs_meet, by_busy);
        meet->is_busy = false;
        if (now < meet->due_ns)
            verbs_conn_due(meet->path, meet->due_ns);
        else
            n += look_after(meet->path, now);
    }
    return n;
}

#define EVENTS_TURNS 1024 /* polls that look at nothing unasked */
#define CLOCK_TURNS 64    /* ... nor at the clock, where requests of rdma_cm may come */

int verbs_conn_turn(verbs_port *port)
{
    struct verbs_conn *conn = port->conn;
    bool is_time = ++conn->turns % EVENTS_TURNS == 0 || conn->looks_at_events;
    uint64_t now;
    int n = 0;
    if (!is_time && weft_list_is_empty(&conn->busy) && !(conn->cm && conn->turns % CLOCK_TURNS == 0))
        return 0;
    now = port->now_ns();
    if (is_time || now - conn->events_ns > VERBS_MS) {
        conn->looks_at_events = port->is_armed; /* the poll after the sleep looks, too */
        conn->events_ns = now;
        for (uint8_t i = 0; i < port->rail_count; i++)
            n += verbs_rail_events(&port->rails[i]);
        n += verbs_cm_turn(port);
        if (now - conn->stuck_ns > VERBS_SECOND) {
            conn->stuck_ns = now;
            verbs_probe_stuck(port);
        }
    }
    return now < conn->next_ns ? n : n + look_after_busy(conn, now);
}

uint64_t verbs_conn_within(const verbs_port *port)
{
    struct verbs_conn *conn = port->conn;
    uint64_t now;
    conn->looks_at_events = true; /* who slept on the descriptors must find out whether it was one of these */
    if (conn->next_ns == UINT64_MAX || weft_list_is_empty(&conn->busy))
        return 0;
    now = port->now_ns();
    return conn->next_ns > now ? conn->next_ns - now : 1;
}

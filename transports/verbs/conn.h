/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: how two ports agree on a connection; shared by conn.c (the states of a path), rc_qp.c (queue pairs), ud.c (what
 * carries notes) and rdmacm.c (the same by rdma_cm).
 *
 * A *note* says: this is who I am, these are my queue pairs of epoch e (one for each pair of rails), so many frames of yours were
 * delivered, so many receive slots are lent to you. Its kind tells how far the speaker is:
 *     CONNECT  mine are made                                      wait for yours
 *     ACCEPT   mine are connected to yours                        answer READY, or anything on the queue pair
 *     READY    mine are connected, and I know that yours are      nothing
 *     GONE     I have left in peace
 *     PROBE, ANSWER   does this pair of rails carry anything?
 * Both sides say the same things, in any order and as often as they like; whoever hears of a later epoch ends its own and
 * follows. The number of a path's queue pairs changes with the epoch only, so (life, epoch) names them.
 */
#ifndef WEFT_TRANSPORTS_VERBS_CONN_H
#define WEFT_TRANSPORTS_VERBS_CONN_H

#include "base/knob.h"
#include "transports/verbs/verbs.h"

#define VERBS_MS 1000000ull
#define VERBS_SECOND 1000000000ull
#define VERBS_TRY_MAX_NS (200 * VERBS_MS)
#define VERBS_RETRIES 6 /* 7, the most that the field holds, is forever to rxe */
#define VERBS_NOTE_MAGIC 0x57654654u
#define VERBS_NOTE_VERSION 2

enum verbs_note_kind { VERBS_NOTE_CONNECT = 1, VERBS_NOTE_ACCEPT, VERBS_NOTE_READY, VERBS_NOTE_GONE, VERBS_NOTE_PROBE,
                      VERBS_NOTE_ANSWER };
enum verbs_note_flag { VERBS_NOTE_PROVEN = 1 /* this pair was seen to carry datagrams after it had failed */ };

typedef struct verbs_conn_msg_rail { /* in the order of the speaker's rails */
    verbs_address address;
    uint32_t qpn; /* 0: no queue pair on this rail in this epoch */
    uint32_t psn;
    uint8_t far_rail; /* the hearer's rail that it is paired with */
    uint8_t flags;
    uint8_t reads;    /* RDMA reads that may be under way towards it */
    uint8_t pad;
} verbs_conn_msg_rail;

typedef struct verbs_conn_msg {
    uint32_t magic;
    uint8_t version, kind;
    uint8_t from_rail, to_rail; /* the pair that it went by */
    uint64_t job, to_job;
    uint32_t rank, worker, to_rank, to_worker;
    uint32_t nonce, to_nonce;   /* of both ports' lives */
    uint32_t incarnation, to_incarnation;     /* of both paths'; to_life 0: not heard of yet */
    uint32_t epoch;
    uint32_t rx_seq, credits;
    uint8_t rails, pad[3];
    verbs_conn_msg_rail rail[VERBS_RAILS];
} verbs_conn_msg;

/* What a path keeps of one link while connections come and go. */
typedef struct verbs_qp_handshake {
    verbs_work mark;      /* first: wr_id of the marker */
    uint32_t psn;
    bool is_made;         /* has a queue pair that was never connected */
    bool is_active, is_joined; /* rdma_cm: we asked; it is connected */
    bool is_suspect;      /* failed, or never proven: left out while another pair serves */
    bool is_proven;       /* answered a probe since then */
    bool is_marked, is_flushed, has_last_wqe;
    uint64_t probe_ns;    /* when to probe next */
    uint64_t rests_ns;    /* a suspect answers no probes until then: not the same, or two suspects would never answer each other */
    uint32_t probes;
    uint32_t misses;      /* rdma_cm: so often it was not connected in time while another pair was, since its rail came up */
} verbs_qp_handshake;

typedef struct verbs_handshake {
    verbs_ep *ep;
    weft_list_link by_busy;    /* in conn->busy while timers or drains are looked after */
    bool is_busy;
    uint32_t incarnation, remote_incarnation;
    bool has_offer;       /* the peer's note of offer.epoch, newest first */
    bool is_linked;       /* our queue pairs are connected to those of the offer */
    bool is_leaving, is_over, far_is_gone;
    const char *fatal_reason;     /* why no new epoch can mend this path: a frame is gone that both sides count as delivered */
    bool by_cm;           /* connected by rdma_cm, not by notes */
    uint8_t far_links;    /* rdma_cm: bits of the peer's rails that it connects */
    uint8_t due_links;    /* rdma_cm: bits of our links for which the peer will ask, or we again, in this epoch */
    bool is_peaceful;     /* the end that is being told of is no trouble */
    uint64_t linked_ns;
    uint32_t far_epoch;   /* the newest heard of */
    bool wants_renewal;   /* a pair can be used again: end this epoch when it is quiet */
    uint64_t renew_ns;    /* ... or then */
    verbs_conn_msg offer;
    uint32_t my_credits;
    uint64_t drain_ns;    /* when the drain began */
    uint64_t flushed_ns;  /* when all marks had come; 0: not yet */
    uint64_t due_ns;      /* when a turn must look at this path */
    uint64_t sick_ns;     /* first break since anything got through; 0: none */
    uint32_t sick_tx, sick_rx, sick_alive, sick_breaks;
    uint32_t stuck_looks, stuck_posted, stuck_seq, stuck_alive; /* rail_probe.c: so often nothing has changed since */
    uint64_t up_ns;
    uint32_t up_uses;     /* tx_seq + rx_seq then */
    verbs_qp_handshake halves[VERBS_RAILS]; /* as path->links */
} verbs_handshake;

typedef struct verbs_gone { /* somebody who was left: its late notes are answered GONE */
    weft_proc_id proc_id;
    uint32_t incarnation, remote_incarnation;
} verbs_gone;

struct verbs_conn {
    verbs_iface *iface;
    struct verbs_ud *datagrams;
    struct verbs_rdmacm *cm;
    struct verbs_cm_deferred *hushed; /* cm_deferred.c: ids of rdma_cm that are over */
    weft_list_link busy;       /* verbs_handshake.by_busy */
    bool looks_at_events; /* at the next turn */
    bool is_stirred;      /* something happened that a turn must look at before its time */
    uint64_t stuck_ns;    /* paths were looked at for links that are stuck */
    uint64_t events_ns, next_ns; /* events were looked at; the earliest timer of the busy */
    uint32_t turns;
    uint32_t random;
    uint32_t dropped;     /* notes of other jobs, lives, epochs */
    verbs_iface_addr addr;      /* as peers know us: rails and addresses of when we opened */
    uint32_t path_count;
    verbs_gone *gone;
    uint32_t gone_count, gone_room;
};

static inline verbs_qp_handshake *verbs_qp_handshake_of(const verbs_rc_qp *link) { return &link->ep->meet->halves[link - link->ep->links]; }
static inline bool verbs_rc_qp_is_usable(const verbs_rc_qp *link) { return link->rail->is_up && !link->rail->is_dead; }
uint32_t verbs_conn_random(struct verbs_conn *conn);

/* -- conn.c, for its sisters: what was heard, and what a device told -- */
void verbs_conn_offered(verbs_ep *ep, const verbs_conn_msg *note); /* CONNECT, ACCEPT, READY */
void verbs_conn_gone(verbs_ep *ep);
void verbs_conn_answered(verbs_ep *ep, const verbs_rail *rail, uint8_t far_rail);
void verbs_conn_part(verbs_ep *ep); /* leaves a path that is UP and quiet: says so, and drains it */
void verbs_conn_rail_changed(verbs_rail *rail);
void verbs_conn_last_wqe(verbs_rc_qp *link);
void verbs_conn_due(verbs_ep *ep, uint64_t when); /* a turn must look at the path by then */
bool verbs_conn_is_settled(verbs_ep *ep);         /* nothing of ours is unacknowledged */

void verbs_conn_end(verbs_ep *ep);                /* ends the epoch in peace: no trouble, nothing to be sent again */
void verbs_conn_hurry(verbs_iface *iface);              /* who connects and had no slots to lend tries again now */
void verbs_conn_farewell(verbs_ep *ep);           /* the peer may know a connection that we have not now: we leave */
static inline bool verbs_conn_has_offer(const verbs_ep *ep)
{
    return ep->meet->has_offer && ep->meet->offer.epoch == ep->epoch;
}

/* -- conn.c, for end.c -- */
static inline uint64_t verbs_conn_now(const verbs_ep *ep) { return ep->iface->now_ns(); }
static inline uint64_t verbs_conn_timeout_ns(void) { return (uint64_t)weft_knob.peer_timeout_s * VERBS_SECOND; }
void verbs_conn_set_state(verbs_ep *ep, enum verbs_ep_state state);
void verbs_conn_begin_epoch(verbs_ep *ep, uint32_t epoch, uint64_t pause_ns);
bool verbs_conn_has_qps(const verbs_ep *ep);
void verbs_conn_close_qps(verbs_ep *ep);
void verbs_conn_say(verbs_ep *ep, uint8_t kind); /* by the pair of rails whose turn it is; others when it is down or refuses */

/* -- end.c, for conn.c -- */
void verbs_conn_after_drain(verbs_ep *ep, uint64_t now); /* the queue pairs are gone: what next? */
void verbs_conn_lose(verbs_ep *ep, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* -- evict.c: who gives way when receive slots are used up -- */
void verbs_evict_for(verbs_ep *ep);                /* it connects, and there are no slots to lend it */
int verbs_evict_progress(verbs_ep *ep, uint64_t now);  /* of a path that is up */

/* Ends the epoch although nothing failed: the next one has other links, or the peer has begun it. */
void verbs_conn_renew(verbs_rc_qp *link, const char *words);

/* -- the same for rdmacm.c -- */
/* The peer is in this epoch: are we, too, and still connecting? Begins it, or ends ours, where need be. */
bool verbs_conn_follow(verbs_ep *ep, uint32_t epoch);
/* Our queue pair of the link is there, and slots to lend. */
bool verbs_conn_make_qp_handshake(verbs_ep *ep, verbs_rc_qp *link);
/* Whose request this is: greets somebody new. NULL: nobody of ours, or of another life. */
verbs_ep *verbs_conn_named(verbs_iface *iface, const weft_proc_id *proc_id, uint32_t incarnation, uint32_t to_incarnation);
bool verbs_conn_was_left(const struct verbs_conn *conn, const weft_proc_id *proc_id, uint32_t remote_incarnation);

/* -- rail_probe.c -- */
void verbs_rail_probe_suspect(verbs_rc_qp *link, const struct ibv_wc *wc); /* it failed so */
void verbs_rail_probe_missed(verbs_rc_qp *link);                           /* another pair is connected, and rdma_cm does not connect this one */
int verbs_rail_probe_turn(verbs_ep *ep, uint64_t now);                /* of a path that is up */
void verbs_rail_probe_stuck(verbs_iface *iface);                            /* all paths, once a second */

/* -- drain.c: the end of an epoch -- */
void verbs_drain_begin(verbs_ep *ep);
/* All that was posted is flushed, delivered where it had come, and the queue pairs are gone; false: not yet. */
bool verbs_drain_progress(verbs_ep *ep, uint64_t now);

/* -- conn_msg.c -- */
void verbs_conn_msg_write(const verbs_ep *ep, uint8_t kind, verbs_conn_msg *note);
int verbs_conn_msg_send(const verbs_rc_qp *link, uint8_t kind);
void verbs_conn_msg_recv(verbs_rail *rail, const verbs_conn_msg *note, size_t bytes); /* one was heard */

/* -- names.c: paths by their peers' names -- */
verbs_ep *verbs_names_find(const verbs_iface *iface, const weft_proc_id *proc_id);
int verbs_names_add(verbs_iface *iface, verbs_ep *ep);
void verbs_names_remove(verbs_iface *iface, verbs_ep *ep);

/* -- rail_pair.c: which of our rails goes with which of theirs: the same answer on both sides, from both addresses -- */
void verbs_rail_pair(verbs_ep *ep, const verbs_iface_addr *mine);

/* -- rc_qp.c: the queue pair of a link -- */
int verbs_rc_qp_open(verbs_rc_qp *link);                               /* in state INIT, entered in the rail's table */
int verbs_rc_qp_connect(verbs_rc_qp *link, const verbs_conn_msg_rail *far); /* to RTS */
void verbs_rc_qp_break(verbs_rc_qp *link);                             /* into error: everything posted is flushed */
bool verbs_rc_qp_mark(verbs_rc_qp *link);                              /* the marker behind all that; false: later */
void verbs_rc_qp_close(verbs_rc_qp *link);
void verbs_rc_qp_address(const verbs_rail *rail, const verbs_address *to, struct ibv_ah_attr *attr);

/* -- ud.c -- */
uint32_t verbs_ud_depth(const verbs_rail *rail); /* completions that datagrams may take */
int verbs_ud_open(verbs_iface *iface);
void verbs_ud_close(verbs_iface *iface);
/* AGAIN: all are under way; an error: there is no way there. */
int verbs_ud_send(verbs_rail *rail, const verbs_address *to, const verbs_conn_msg *note, size_t bytes);
/* A completion of DATAGRAM_*. What was received goes to verbs_conn_msg_recv. */
void verbs_ud_completion(verbs_rail *rail, const struct ibv_wc *wc);

#endif

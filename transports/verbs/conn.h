/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: the protocol by which two ifaces connect an ep. Shared by conn.c (states), conn_msg.c, rc_qp.c (queue pairs), ud.c (datagrams)
 * and rdmacm.c (the same over rdma_cm).
 *
 * A *conn_msg* holds the sender's identity, its QPs of epoch e (one per pair of rails), the number of frames it has delivered and the
 * receive credits it grants. Its kind is the sender's state and the reply it asks for:
 *     CONNECT         QPs created                                         reply: CONNECT or ACCEPT
 *     ACCEPT          QPs connected to the receiver's                     reply: READY, or anything on a QP
 *     READY           QPs connected, the receiver's are known to be       no reply
 *     GONE            the sender has closed the ep
 *     PROBE, ANSWER   does this pair of rails carry datagrams?
 * Messages may be repeated and reordered. A side that receives a later epoch ends its own and follows. The numbers of an ep's QPs change
 * with the epoch only, so (incarnation, epoch) identifies them.
 */
#ifndef WEFT_TRANSPORTS_VERBS_CONN_H
#define WEFT_TRANSPORTS_VERBS_CONN_H

#include "base/knob.h"
#include "transports/verbs/verbs.h"

#define VERBS_MS 1000000ull
#define VERBS_SECOND 1000000000ull
#define VERBS_TRY_MAX_NS (200 * VERBS_MS)
#define VERBS_RETRIES 6 /* 7, the maximum of the field, means forever to rxe */
#define VERBS_MSG_MAGIC 0x57654654u
#define VERBS_MSG_VERSION 2

enum verbs_msg_kind { VERBS_MSG_CONNECT = 1, VERBS_MSG_ACCEPT, VERBS_MSG_READY, VERBS_MSG_GONE, VERBS_MSG_PROBE,
                      VERBS_MSG_ANSWER };
enum verbs_msg_flag { VERBS_MSG_PROVEN = 1 /* this pair carried datagrams again after a failure */ };

typedef struct verbs_conn_msg_rail { /* in the order of the sender's rails */
    verbs_address address;
    uint32_t qpn; /* 0: no queue pair on this rail in this epoch */
    uint32_t psn;
    uint8_t remote_rail; /* the receiver's rail that it is paired with */
    uint8_t flags;
    uint8_t reads;    /* RDMA reads that the sender's rail accepts at one time */
    uint8_t pad;
} verbs_conn_msg_rail;

typedef struct verbs_conn_msg {
    uint32_t magic;
    uint8_t version, kind;
    uint8_t from_rail, to_rail; /* rails that it was sent and received on */
    uint64_t job, to_job;
    uint32_t rank, worker, to_rank, to_worker;
    uint32_t nonce, to_nonce;   /* of both ifaces */
    uint32_t incarnation, to_incarnation;     /* of both eps; to_incarnation 0: not known yet */
    uint32_t epoch;
    uint32_t rx_seq, credits;
    uint8_t rails, pad[3];
    verbs_conn_msg_rail rail[VERBS_RAILS];
} verbs_conn_msg;

/* Connection state of one QP of an ep, beyond its epochs. */
typedef struct verbs_qp_handshake {
    verbs_work mark;      /* first member: wr_id of the drain marker */
    uint32_t psn;
    bool is_made;         /* has a QP that was never connected */
    bool is_active, is_connected; /* rdma_cm: this side is active; the QP is connected */
    bool is_established;  /* rdma_cm: the active side has said that it is connected */
    uint8_t repeats;      /* rdma_cm: requests without an answer that were repeated before the kernel does */
    uint64_t asked_ns;    /* rdma_cm: begin of the latest attempt */
    bool is_suspect;      /* failed, or never proven: not used while another pair works */
    bool is_proven;       /* answered a probe since it became a suspect */
    bool is_marked, is_flushed, has_last_wqe;
    uint64_t probe_ns;    /* time of the next probe */
    uint64_t silent_until_ns; /* a suspect answers no probes until then; not probe_ns, else two suspects would never answer each other */
    uint32_t probes;
    uint32_t misses;      /* rdma_cm: times it was not connected while another pair was, since its rail came up */
} verbs_qp_handshake;

typedef struct verbs_handshake {
    verbs_ep *ep;
    weft_list_link by_busy;    /* in conn->busy while a timer or a drain is pending */
    bool is_busy;
    uint32_t incarnation, remote_incarnation;
    bool has_offer;       /* offer holds the newest conn_msg of the peer */
    bool is_connected;       /* local QPs are connected to those of the offer */
    bool is_closing, is_closed, remote_is_gone;
    const char *fatal_reason;     /* why the peer is lost after this epoch: a frame counted as delivered is gone; NULL: it is not lost */
    bool by_cm;           /* connected by rdma_cm, not by UD messages */
    uint8_t remote_rails;    /* rdma_cm: bit mask of the peer's rails that it connects */
    uint8_t due_qps;    /* rdma_cm: bit mask of QPs that are still to be connected in this epoch */
    bool is_peaceful;     /* the end of the epoch in progress is not an error */
    enum weft_ep_rest rest;   /* REST, IDLE: no new epoch is begun once all frames have arrived; LEAVE: none at all; RETURN: as usual */
    bool is_left;         /* by LEAVE: the owner's frames do not connect, the peer's do, until RETURN */
    bool has_ended;       /* the peer's process, after MPI_Finalize: what it waited for has arrived */
    bool is_excused;      /* CONNECTING, and the peer rests, or may rest: calls have no QPs. Until it answers */
    bool is_abandoned;    /* NEW, and the peer was not asked when the epoch ended: it may still try to connect in it */
    uint64_t connected_ns;
    uint32_t remote_epoch;   /* newest epoch received from the peer */
    bool wants_renewal;   /* a failed pair works again: this epoch ends when the ep is quiet */
    uint64_t renew_ns;    /* ... or at this time */
    verbs_conn_msg offer;
    uint32_t local_credits;
    bool lacks_qps;       /* no QP of this epoch exists, as the device has no memory for more: others give way (evict.c) */
    int lack_error;       /* errno of that refusal */
    uint8_t refused_qps;  /* rdma_cm: bit mask of QPs that the device refused, while others of the ep exist */
    uint8_t absent_qps;   /* rdma_cm: bit mask of QPs that the peer has none for in this epoch */
    bool is_alone;        /* lacks QPs, and no other ep could give way: the peer's messages do not restart the timeout */
    bool gives_way;       /* the epoch in progress ends for another ep that lacks QPs */
    uint64_t lack_ns;     /* since when it lacks QPs; 0: it does not */
    uint64_t attempt_ns;  /* rdma_cm: begin of the latest attempt */
    uint64_t tries_before; /* unanswered attempts in epochs that have given way since the last answer */
    uint64_t drain_ns;    /* when the drain began */
    uint64_t flushed_ns;  /* time when all markers had completed; 0: not yet */
    uint64_t due_ns;      /* time when verbs_conn_progress must handle this ep */
    uint64_t trouble_ns;     /* first attempt or error without progress since; 0: none */
    uint32_t trouble_tx, trouble_rx, trouble_rma, trouble_count;
    uint32_t stuck_checks, stuck_posted, stuck_seq, stuck_rma; /* rail_probe.c: checks without progress, and the values at the last one */
    uint64_t up_ns;
    uint32_t up_uses;     /* tx_seq + rx_seq at up_ns */
    uint32_t up_frames;   /* tx_acked + rx_seq when the epoch began, or went up */
    verbs_qp_handshake qp_hs[VERBS_RAILS]; /* indexed as ep->qps */
} verbs_handshake;

typedef struct verbs_gone { /* a closed ep: late messages of its peer are answered GONE */
    weft_proc_id proc_id;
    uint32_t incarnation, remote_incarnation;
} verbs_gone;

struct verbs_conn {
    verbs_iface *iface;
    struct verbs_ud *ud;
    struct verbs_rdmacm *cm;
    struct verbs_cm_deferred *deferred; /* cm_deferred.c: rdma_cm ids whose destruction is deferred */
    weft_list_link busy;       /* verbs_handshake.by_busy */
    bool checks_events; /* at the next verbs_conn_progress */
    bool has_reported_wait; /* the log has a line about an ep that lacks QPs */
    const verbs_ep *reserved_for; /* ep that lacks QPs, and for which another ep gives way; NULL: none */
    uint64_t reserved_ns;     /* since when */
    const verbs_ep *shown; /* ep whose lack of QPs was reported by callbacks.waits; NULL: none */
    uint64_t stuck_ns;    /* last check for stuck QPs */
    uint64_t events_ns, next_ns; /* last check for device events; earliest timer of busy eps */
    uint32_t polls;
    uint32_t random;
    uint32_t dropped;     /* messages of other jobs, incarnations, epochs */
    verbs_iface_addr addr;      /* rails and addresses at open, as peers know them */
    uint32_t ep_count;
    verbs_gone *gone;
    uint32_t gone_count, gone_capacity;
};

static inline verbs_qp_handshake *verbs_qp_handshake_of(const verbs_rc_qp *qp) { return &qp->ep->hs->qp_hs[qp - qp->ep->qps]; }
static inline bool verbs_rc_qp_is_usable(const verbs_rc_qp *qp) { return qp->rail->is_up && !qp->rail->is_dead; }
uint32_t verbs_conn_random(struct verbs_conn *conn);

/* -- conn.c: received messages and device events -- */
void verbs_conn_on_offer(verbs_ep *ep, const verbs_conn_msg *msg); /* CONNECT, ACCEPT, READY */
void verbs_conn_on_gone(verbs_ep *ep);
/* A probe was answered: the pair is proven, a new epoch is requested. */
void verbs_conn_on_answer(verbs_ep *ep, const verbs_rail *rail, uint8_t remote_rail);
void verbs_ep_begin_close(verbs_ep *ep); /* closes an ep that is UP and quiet: sends GONE, drains it */
void verbs_conn_on_rail_change(verbs_rail *rail);
/* The device reported LAST_WQE_REACHED. */
void verbs_conn_on_last_wqe(verbs_rc_qp *qp);
void verbs_conn_due(verbs_ep *ep, uint64_t when); /* verbs_conn_progress must handle the ep by `when` */
bool verbs_conn_is_settled(verbs_ep *ep);         /* no frame is unacknowledged, no op open */

void verbs_conn_end(verbs_ep *ep);                /* ends the epoch without an error; nothing is resent */
void verbs_conn_retry_now(verbs_iface *iface);              /* eps that connect and had no credits to grant, or no QPs, try again now */
void verbs_conn_send_gone(verbs_ep *ep);           /* sends GONE unless the peer has left */

/* -- rest.c -- */
/* After a drain: no new epoch is begun; the ep becomes NEW. */
bool verbs_rest_ends_epoch(const verbs_ep *ep);
int verbs_rest_progress(verbs_ep *ep, uint64_t now); /* each progress of an ep that is UP */
void verbs_rest_abandon(verbs_ep *ep);
/* Called for a CONNECTING ep whose peer has not answered for a second. True: the owner knows why. The ep is lost if the peer has ended; if
 * there is nothing for the peer, or it has QPs, it drains; else it stays CONNECTING. */
bool verbs_rest_excuses(verbs_ep *ep, uint64_t now);
static inline bool verbs_conn_has_offer(const verbs_ep *ep)
{
    return ep->hs->has_offer && ep->hs->offer.epoch == ep->epoch;
}

/* -- conn.c, for epoch.c -- */
static inline uint64_t verbs_conn_now(const verbs_ep *ep) { return ep->iface->now_ns(); }
static inline uint64_t verbs_conn_timeout_ns(void) { return (uint64_t)weft_knob.peer_timeout_s * VERBS_SECOND; }
void verbs_conn_set_state(verbs_ep *ep, enum verbs_ep_state state);
/* State CONNECTING in `epoch`; the first attempt is made after pause_ns. */
void verbs_conn_begin_epoch(verbs_ep *ep, uint32_t epoch, uint64_t pause_ns);
bool verbs_conn_has_qps(const verbs_ep *ep);
/* Destroys all QPs of the ep. */
void verbs_conn_close_qps(verbs_ep *ep);
void verbs_conn_send(verbs_ep *ep, uint8_t kind); /* sends by the current pair of rails, by others if it is down or refuses */

/* -- epoch.c: the end of an epoch -- */
void verbs_conn_after_drain(verbs_ep *ep, uint64_t now); /* the QPs are destroyed: next epoch, eviction or loss */
void verbs_conn_peer_failed(verbs_ep *ep, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Puts all QPs of the ep into ERR. */
void verbs_drain_begin(verbs_ep *ep);
/* True if all posted work is flushed, received frames are delivered and the QPs are destroyed. */
bool verbs_drain_progress(verbs_ep *ep, uint64_t now);

/* -- evict.c: closes idle connections when receive slots or the device's queue pairs are used up -- */
/* `ep` connects and has no credits to grant, or lacks QPs: evicts another ep. False: there is none yet. */
bool verbs_evict_for(verbs_ep *ep);
/* `ep` lacks QPs: evicts another ep, or takes the QPs of one that only connects. The peer's timeout does not run while another may give
 * way. A long wait is shown to the owner and logged. is_requested: by rdma_cm, the peer requests the connection now. True: QPs are free,
 * try again. */
bool verbs_evict_for_qps(verbs_ep *ep, bool is_requested);
void verbs_evict_has_qps(const verbs_ep *ep); /* `ep` lacks no QPs any more */
/* The ep with a reservation, which gets QPs before this one. It has lack_error; NULL: none. */
const verbs_ep *verbs_evict_reserved_before(const verbs_ep *ep);
int verbs_evict_progress(verbs_ep *ep, uint64_t now);  /* of an ep that is UP */

/* Ends the epoch without an error: the next one has other QPs, or the peer has begun it. */
void verbs_conn_renew(verbs_rc_qp *qp, const char *words);

/* -- conn.c, for rdmacm.c -- */
/* The peer is in this epoch: begins it, or ends the current one, as needed. True if the ep is connecting in this epoch. */
bool verbs_conn_follow(verbs_ep *ep, uint32_t epoch);
/* Is this side's proc_id the smaller one of the two? */
bool verbs_conn_precedes(const verbs_ep *ep);
/* The peer requests this QP. True if it exists and there are credits to grant; creates and reserves them. */
bool verbs_conn_open_qp(verbs_ep *ep, verbs_rc_qp *qp);
/* ep of a request; creates it by callbacks.accept_peer for a new peer. NULL: refused, closed, or of another incarnation. */
verbs_ep *verbs_conn_ep_of(verbs_iface *iface, const weft_proc_id *proc_id, uint32_t incarnation, uint32_t to_incarnation);
/* True if an ep to this incarnation of the peer was closed. */
bool verbs_conn_was_closed(const struct verbs_conn *conn, const weft_proc_id *proc_id, uint32_t remote_incarnation);

/* -- rail_probe.c -- */
void verbs_rail_probe_suspect(verbs_rc_qp *qp, const struct ibv_wc *wc); /* the QP failed with this status */
void verbs_rail_probe_missed(verbs_rc_qp *qp);                           /* another pair is connected, rdma_cm did not connect this one */
int verbs_rail_probe_progress(verbs_ep *ep, uint64_t now);                /* of an ep that is UP */
void verbs_rail_probe_stuck(verbs_iface *iface);                            /* all eps, once a second */

/* -- conn_msg.c -- */
/* Encodes a message of the ep's state. */
void verbs_conn_msg_write(const verbs_ep *ep, uint8_t kind, verbs_conn_msg *msg);
/* Sends a message by the QP's pair of rails. 0, AGAIN, or an error. */
int verbs_conn_msg_send(const verbs_rc_qp *qp, uint8_t kind);
void verbs_conn_msg_recv(verbs_rail *rail, const verbs_conn_msg *msg, size_t bytes); /* one was received */

/* -- ep.c: proc_id -> ep -- */
verbs_ep *verbs_ep_lookup(const verbs_iface *iface, const weft_proc_id *proc_id);
int verbs_ep_map_add(verbs_iface *iface, verbs_ep *ep);
void verbs_ep_map_remove(verbs_iface *iface, verbs_ep *ep);

/* -- rail_pair.c: pairs local with remote rails; both sides compute the same result from both addresses -- */
void verbs_rail_pair(verbs_ep *ep, const verbs_iface_addr *local);

/* -- rc_qp.c -- */
int verbs_rc_qp_open(verbs_rc_qp *qp);                               /* creates the QP in state INIT and adds it to the rail's table */
int verbs_rc_qp_connect(verbs_rc_qp *qp, const verbs_conn_msg_rail *remote); /* to RTS */
/* In RTS. Asked once per epoch, when a ring is considered: mlx5 answers by a command to the device, and 0 in any other state. */
bool verbs_rc_qp_is_in_order(verbs_rc_qp *qp);
void verbs_rc_qp_break(verbs_rc_qp *qp);                             /* to state ERR: all posted work is flushed */
bool verbs_rc_qp_mark(verbs_rc_qp *qp);                              /* posts the marker behind all work; false: try later */
void verbs_rc_qp_close(verbs_rc_qp *qp);
void verbs_rc_qp_address(const verbs_rail *rail, const verbs_address *to, struct ibv_ah_attr *attr);

/* -- ud.c -- */
uint32_t verbs_ud_depth(const verbs_rail *rail); /* CQ entries that datagrams may use */
int verbs_ud_open(verbs_iface *iface);
void verbs_ud_close(verbs_iface *iface);
/* AGAIN: all send slots are in flight. Error: no route. */
int verbs_ud_send(verbs_rail *rail, const verbs_address *to, const verbs_conn_msg *msg, size_t bytes);
/* Handles a completion of DATAGRAM_*; passes received messages to verbs_conn_msg_recv. */
void verbs_ud_completion(verbs_rail *rail, const struct ibv_wc *wc);

/* -- cm_listen.c -- */
/* Opens listeners on every rail, if one needs them or the knob asks for them. If only the knob asks, a failure is logged and UD is used. */
int verbs_rdmacm_open(verbs_iface *iface);
void verbs_rdmacm_close(verbs_iface *iface);
/* -- rdmacm.c: connects by rdma_cm, for iWARP (no UD) or if WEFT_VERBS_CONNECT asks for it; the states of an ep are the same -- */
/* True if rdma_cm connects this ep: all its pairs of rails have listeners on both sides. */
bool verbs_rdmacm_is_for(const verbs_ep *ep);
/* Starts the connection of every QP of a CONNECTING ep; goes up when all are connected or late. */
void verbs_rdmacm_try(verbs_ep *ep);
/* The ep goes up: closes QPs that are not connected; the first of the others becomes home. False: there is none. */
bool verbs_rdmacm_finish(verbs_ep *ep);
/* disconnect: before the QP is destroyed; forget: after. */
void verbs_rdmacm_disconnect(verbs_rc_qp *qp);
void verbs_rdmacm_forget(verbs_rc_qp *qp);
/* Handles the events of the channel; their number. */
int verbs_rdmacm_progress(verbs_iface *iface);

/* -- cm_deferred.c -- */
struct rdma_cm_id;
/* True if a message of the kernel's CM can leave by this rail. */
bool verbs_cm_deferred_can_send(const verbs_rail *rail);
/* Destroys the id now, or when its port is active again. */
void verbs_cm_deferred_end(const verbs_rail *rail, struct rdma_cm_id *id);
/* Destroys the deferred ids of `rail`, by which a connection was made (an active port may still lack routes); NULL: all, at close. */
void verbs_cm_deferred_flush(verbs_iface *iface, const verbs_rail *rail);

#endif

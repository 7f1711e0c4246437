/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs: the native HCA transport, private to its folder. One weft_iface is all the rails (active ports of RDMA devices) that this
 * rank uses; a path has one connected queue pair on each rail that both sides share, a *link*.
 *
 *   rail     finding devices, choosing GIDs, opening, asynchronous events                          device_select.c, gid.c, rail.c
 *   memory   making memory known to every rail                                                     memory.c
 *   window   lending parts of it to one peer for one message: memory windows                        mw.c
 *   conn     connecting on demand and again, epochs, giving a peer up (conn.h tells how)           conn.c, end.c, drain.c, life.c, rail_probe.c
 *            connections that give way when there are more peers than slots                      evict.c
 *            what it is made of: notes, by datagrams (UD) or rdma_cm; queue pairs; pairs of rails   conn_msg.c, ud.c, rdmacm.c, rc_qp.c, rail_pair.c
 *            ids of rdma_cm that are over, and must not say so yet                                 cm_deferred.c
 *   flow     frames: bounce slots, receive slots, credits, order                                       flow.c
 *   resume   frames across a break: what is dropped, what is sent again                               replay.c
 *   post     work requests on their way to a send queue, alone or several with one doorbell           post.c
 *   ring     eager ring of a busy pair: frames written into memory that the receiver polls            eager_ring.c
 *   proof    iWARP: a read behind others tells that they have arrived                                read_fence.c
 *   move     get, put, amo, flush: striped over links, bounded, posted again after a break           rma.c
 *   port     the table; poll and arm                                                                  iface.c
 *
 * Breaks. Any completion in error, and news of the other side's, ends the path's *epoch*: all its queue pairs are drained and
 * destroyed, and epoch + 1 is agreed by CONNECT and ACCEPT, which tell how many frames each has delivered (rx_seq). Frames that were
 * not delivered are sent again from their slots, in order; gets and puts that have not ended are posted again (both may be repeated:
 * nobody reads the target before a later frame or the put's own notification says so, and a put whose notification was delivered has
 * ended); an amo whose fate is unknown ends with an error. So above this folder a break costs time only.
 * What was wrong with *one* operation (bad key, bounds, rights) ends that operation with WEFT_E_KEY and is not repeated.
 */
#ifndef WEFT_TRANSPORTS_VERBS_VERBS_H
#define WEFT_TRANSPORTS_VERBS_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "transport/iface.h"

#define VERBS_RAILS 4
#define VERBS_GRH 40 /* bytes in front of every received datagram */

typedef struct verbs_iface verbs_iface;
typedef struct verbs_ep verbs_ep;
typedef struct verbs_rc_qp verbs_rc_qp;
typedef struct verbs_rail verbs_rail;

/* -- what a work request belongs to: wr_id is a pointer to one of these, always the first member of its owner -- */
enum verbs_work_kind { VERBS_WORK_SEND, VERBS_WORK_RECV, VERBS_WORK_MOVE, VERBS_WORK_RING, VERBS_WORK_DATAGRAM_OUT, VERBS_WORK_DATAGRAM_IN,
                       VERBS_WORK_MARK, VERBS_WORK_SYNC, VERBS_WORK_WINDOW };
typedef struct verbs_work {
    uint8_t kind;
    uint8_t rail;
    uint16_t covers;  /* a signalled one: so many requests, it included, are over when it completes; set by verbs_post */
    verbs_rc_qp *link; /* whose queue it stands in; NULL for receives and datagrams. Work of an epoch that is over is flushed before the link dies */
} verbs_work;

/* Requests that are to go with one doorbell (post.c): empty between calls, but for frames whose sender said that more follow. */
#define VERBS_BATCH 16u
typedef struct verbs_batch {
    verbs_rc_qp *link; /* whose they all are */
    uint32_t count;
    struct ibv_send_wr requests[VERBS_BATCH];
    struct ibv_sge sges[VERBS_BATCH];
} verbs_batch;

/* -- rail: an active port of a device -- */
struct verbs_rail {
    verbs_iface *iface;
    uint8_t index;            /* in port->rails */
    char name[64];            /* "mlx5_0:1" */
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;        /* sends, receives and datagrams */
    struct ibv_srq *srq;
    struct ibv_qp *ud;        /* NULL on iWARP */
    struct ibv_device_attr attr;
    uint8_t port_num, gid_index;
    union ibv_gid gid;
    uint16_t lid;
    enum ibv_mtu mtu;
    bool is_ib;               /* link layer InfiniBand: addressed by LID */
    bool is_iwarp;            /* connects by rdma_cm; no datagrams, no immediate data; read sinks need remote write */
    bool tells_early;         /* iWARP: that a send or write is over says only that TCP has it; a read behind it, answered, that it is there */
    bool is_up;               /* false after a port or device event */
    bool is_dead;             /* the device is gone for good */
    bool is_armed;            /* its completion queue was told to ring and has not done so */
    bool in_order;            /* bytes of an RDMA write become visible in order (ibv_query_qp_data_in_order) */
    uint32_t max_inline, max_rd_atomic;
    uint32_t numa_distance;   /* by hwloc; the nearest carries frames */
    uint32_t cq_room, cq_used; /* completions that may still come (sends and receives posted; signalled or not, an error tells each):
                                * never more than room. Room for datagrams is set aside before */
    uint32_t marks, marks_room; /* conn's markers under way, and how many completions are set aside for them */
    bool is_shallow;          /* short queues: little lockable memory, or a device that has no longer ones */
    uint32_t srq_room, sq_room; /* receives that the shared queue can hold, sends that each link's can */
    bool is_v1;               /* RoCE v1: reaches only others that speak it */
    uint8_t prefix_bits;      /* of the IPv4 network that it stands in; 0: not known */
    uint16_t cm_port;         /* of our rdma_cm listener; 0: none */
    uint32_t receives;        /* posted there */
    weft_list_link emptied;        /* verbs_slot: receives to be posted again, soon and together */
    uint32_t emptied_count;
    bool is_odp;              /* user memory is registered for on-demand paging */
    bool tells_last_wqe;      /* has once said IBV_EVENT_QP_LAST_WQE_REACHED: worth waiting for */
    weft_list_link windows;        /* weft_mw: free, to be bound by any queue pair of this rail */
    verbs_rc_qp **by_qpn;      /* hash of our queue pairs' numbers, for verbs_rc_qp_of */
    uint32_t qpn_room, qpn_count;
    verbs_batch batch;
    uint64_t not_ready;       /* the device's own count when we opened it */
};

enum verbs_address_flag { VERBS_ADDRESS_IB = 1, VERBS_ADDRESS_IWARP = 2, VERBS_ADDRESS_V1 = 4 };

/* What a peer needs to reach a port: the address, and part of CONNECT. */
typedef struct verbs_address {
    union ibv_gid gid;
    uint32_t ud_qpn;
    uint16_t lid;
    uint8_t mtu, flags;       /* enum verbs_address_flag */
    uint8_t prefix_bits;      /* of the IPv4 network, to pair rails; 0 unknown */
    uint8_t pad;
    uint16_t cm_port;         /* of the rdma_cm listener; 0: none */
    uint32_t proof_key;       /* of one word that may be read, to learn that what was sent before has arrived (read_fence.c); 0: none */
    uint64_t proof_addr;
} verbs_address;

typedef struct verbs_iface_addr {
    uint8_t version, rails;
    uint16_t frame_max_kib;
    uint32_t nonce;           /* of this port's life: a datagram for another one is dropped */
    verbs_address address[VERBS_RAILS];
} verbs_iface_addr;
_Static_assert(sizeof(verbs_iface_addr) <= WEFT_ADDR_MAX, "an address");

/* -- link: one connected queue pair of a path -- */
struct verbs_rc_qp {
    verbs_ep *ep;
    verbs_rail *rail;
    uint8_t far_rail;         /* the peer's index of its rail */
    struct ibv_qp *qp;        /* NULL: none in this epoch */
    void *cm;                 /* struct rdma_cm_id, where rdma_cm made it */
    uint32_t far_qpn;
    uint32_t sq_room, sq_used;      /* work requests; one more, beyond room, is conn's marker */
    uint32_t reads_room, reads_used; /* gets and amos under way at one time */
    uint32_t unsignalled;     /* since the last signalled one */
    verbs_work sync;          /* an empty signalled request behind others, to learn of their end */
    bool is_syncing;
    bool sync_proves;         /* that the peer's device has had them */
    uint32_t sync_seq;        /* frames up to this one stand before it */
    uint64_t in_flight_bytes;    /* of moves */
    bool is_broken;           /* an error was seen: post nothing more */
    uint32_t weight;          /* of its share of bulk */
    weft_list_link windows;        /* weft_mw: bound by this queue pair */
};

enum verbs_ep_state {
    VERBS_NEW,        /* nothing exchanged: nothing of ours exists but this struct */
    VERBS_CONNECTING, /* CONNECT was sent or answered; frames wait (send answers AGAIN) */
    VERBS_UP,
    VERBS_DRAINING,   /* broken: waiting for the flush of what was posted, before the next epoch */
    VERBS_LOST        /* callbacks.peer_failed was told */
};

/* On the way to a connection closed in peace (evict.c). */
enum verbs_rest {
    VERBS_EVICT_NONE,
    VERBS_EVICT_QUIESCE,  /* takes no new frames; when nothing is under way it asks, or agrees */
    VERBS_EVICT_REQUESTED,   /* REST was sent: starts nothing at all */
    VERBS_EVICT_ACKED  /* RESTED was sent or has come: says nothing more and closes */
};

#define VERBS_CREDITS_FIRST 2 /* receive slots lent to each new peer; the last one is kept for a frame that gives credits back */

struct verbs_ep {
    weft_ep ep;
    verbs_iface *iface;
    weft_proc_id proc_id;
    weft_list_link by_port;        /* in port->paths */
    enum verbs_ep_state state;
    uint32_t epoch;           /* of the connection; 0 none yet */
    verbs_iface_addr far;           /* the peer's address, from reach or CONNECT */
    verbs_rc_qp links[VERBS_RAILS];
    uint8_t link_count;
    verbs_rc_qp *home;         /* carries our frames */
    /* conn */
    uint64_t next_try_ns, tries, silent_since_ns; /* silent_since: first unanswered try; 0 = none */
    uint8_t try_rail;         /* datagrams go out on, changed when unanswered */
    bool is_confirmed;        /* the peer's queue pairs are known to receive: we may send */
    bool was_greeted;
    uint32_t breaks;          /* so far */
    uint32_t alive;           /* counts moves' completions: with the frames' numbers it tells that something gets through */
    enum verbs_rest rest;
    bool is_asked_to_rest;
    uint32_t rest_seen;       /* tx_seq + rx_seq when somebody last looked for an idle path */
    char last_error[256];     /* of the break, in words, for the text of lost */
    struct verbs_handshake *meet;  /* conn.c: what is being agreed; NULL in state NEW */
    /* flow */
    uint32_t tx_seq, rx_seq;  /* last given out; last delivered in order */
    uint32_t tx_acked;        /* ours that the peer has surely received */
    weft_list_link sent;           /* verbs_slot: frames not known to have arrived, by seq */
    uint32_t tx_done;         /* the last one whose work request is known to be over */
    uint32_t unsent;          /* of `sent`, at its end: not posted in this epoch yet */
    weft_list_link control;        /* verbs_slot: frames under way that have no number (credits and such): dropped by a break */
    uint32_t credits;         /* frames that we may still send, and ... */
    bool has_token;           /* ... one more, for a frame that gives credits only (flow.c says why) */
    bool owes_token;          /* the peer has used its token and has not got it back */
    uint32_t lent;            /* receive slots that the peer may fill, beside its token's */
    uint32_t target;          /* so many we would have lent */
    bool is_lent;             /* slots are reserved for this epoch */
    uint32_t tell_since;      /* port->polls then */
    weft_list_link by_tell;        /* in port->tells: is owed credits that no frame of ours may carry soon */
    weft_list_link held;           /* verbs_slot: received ahead of order (ring beside queue) */
    bool is_starved;          /* a send was refused and none got through since */
    bool is_garbled;          /* something numbered could not be read in this epoch: what has no number of its own is not counted any more */
    bool has_bye;             /* leaving: see leave */
    /* ring */
    struct verbs_eager_ring *ring;  /* NULL: none */
    uint32_t recent;          /* frames since ... */
    uint64_t recent_ns;       /* ... then: who is busy */
    uint32_t in_ring;         /* 1 while a frame is delivered that still stands in a ring's cell: not acknowledged yet */
    uint32_t far_rx;          /* ours that the peer says it has delivered */
    /* move */
    weft_list_link ops;            /* verbs_op: not ended, in order of posting */
    uint32_t ops_open;
    uint32_t pieces;          /* under way */
    uint32_t proofs;          /* reads behind others that were answered in this epoch */
    uint32_t suspects;        /* iWARP: pieces that were under way at the last break; while there are any they go one by one */
    weft_list_link by_move;        /* in port->moves: something of ours waits to be posted */
};

struct verbs_iface {
    weft_iface iface;
    weft_proc_id self;
    uint64_t (*now_ns)(void);
    uint32_t nonce;
    verbs_rail rails[VERBS_RAILS];
    uint8_t rail_count;
    verbs_ep **by_name_map; /* conn.c: rank -> path, grown on demand */
    uint32_t name_room;
    weft_list_link paths;          /* all, for timers and close */
    uint32_t connecting;      /* paths CONNECTING or DRAINING */
    int epoll;                /* of all channels and event descriptors: what arm gives */
    bool is_armed;
    uint32_t receives_lent;    /* over all peers, tokens' slots included; every rail's `receives` are at least as many */
    weft_list_link rings;           /* verbs_eager_ring.by_port: that we read */
    uint32_t ring_count;
    weft_list_link tells;           /* verbs_ep.by_tell */
    uint32_t polls;            /* so far: rare things are looked at every so many */
    struct verbs_slots *slots; /* bounce memory for frames both ways, registered on every rail */
    struct verbs_rma_ops *moves;
    struct verbs_slab *proof_source, *proof_sink; /* words for reads that prove; NULL: no device here needs them */
    struct verbs_conn *conn;  /* UD slots, rdma_cm listener */
    uint32_t gathers;         /* verbs_post_gather without its verbs_post_go */
    bool has_held;            /* some rail's batch is not empty */
    weft_list_link loans_owed;     /* weft_mw.by_owed: taken back, and no room for the request that does it */
    weft_list_link loans_dead;     /* weft_mw: still held by whom it was given to, the window went with its queue pair */
    weft_list_link loans_spare;    /* weft_mw: without a window */
    bool is_small;            /* little lockable memory: few, short slots; verbs_rails_open finds out */
    uint64_t counts[20];      /* enum verbs_print_counters */
};

enum verbs_print_counters {
    VERBS_COUNT_POSTS,      /* calls of ibv_post_send */
    VERBS_COUNT_REQUESTS,   /* work requests in them */
    VERBS_COUNT_COMPLETIONS, VERBS_COUNT_INLINE, VERBS_COUNT_SIGNALLED, VERBS_COUNT_RING_FRAMES, VERBS_COUNT_BREAKS, VERBS_COUNT_RESENT,
    VERBS_COUNT_REPOSTED_MOVES, VERBS_COUNT_CONTROL, VERBS_COUNT_CONNECTS, VERBS_COUNT_DATAGRAMS, VERBS_COUNT_EVENTS,
    VERBS_COUNT_IMMEDIATES, /* notifications that went with a put's last piece */
    VERBS_COUNT_EVICTIONS,      /* connections closed in peace, to give others their slots */
    VERBS_COUNT_LENT, VERBS_COUNT_STALE, VERBS_COUNT_LAST
};

/* Says what is not 0 in one line (the contract's count). */
void verbs_counters(weft_iface *iface, void (*line)(void *arg, const char *text), void *arg);
void verbs_counters_begin(verbs_iface *iface);
/* How often a device's port was told that the receiver was not ready (RNR), by its own count; 0 where it keeps none. */
uint64_t verbs_not_ready(const char *device, uint32_t port_num);

/* Whose queue pair it is that a receive came by; NULL: one of ours that is no more. */
static inline verbs_rc_qp *verbs_rc_qp_of(const verbs_rail *rail, uint32_t qpn)
{
    for (uint32_t i = qpn; rail->qpn_room; i++) {
        verbs_rc_qp *link = rail->by_qpn[i & (rail->qpn_room - 1)];
        if (!link || link->qp->qp_num == qpn)
            return link;
    }
    return NULL;
}

/* -- rail.c, gid.c: open fills port->rails with what the knobs and this machine allow; WEFT_E_UNSUPPORTED with the reasons in words -- */
int verbs_rails_open(verbs_iface *iface);
void verbs_rails_close(verbs_iface *iface);
int verbs_rail_enter(verbs_rail *rail, verbs_rc_qp *link); /* into by_qpn */
void verbs_rail_remove(verbs_rail *rail, verbs_rc_qp *link);
const char *verbs_unavailable(void);
void verbs_describe(void (*line)(void *arg, const char *text), void *arg);
/* Asynchronous events of a device: sets is_up, is_dead, breaks what it must. How many. verbs_conn_progress calls it, by the clock and after
 * each verbs_conn_within (somebody slept on port->epoll, where the descriptors stand). */
int verbs_rail_events(verbs_rail *rail);
void verbs_rail_address(const verbs_rail *rail, verbs_address *address);
/* -- memory.c -- */
int verbs_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int verbs_mr_dereg(weft_iface *iface, weft_mr *mr);
/* lkey on our rail; rkey of the peer's rail out of its key. */
typedef struct verbs_memory {
    struct ibv_mr *mr[VERBS_RAILS];
    struct ibv_mr *sink[VERBS_RAILS]; /* iWARP: the local side of gets, where peers may read what mr names, and not write */
    uint32_t holders;         /* whoever mapped it, and each window that is bound to it; atomic */
    bool may_lend;
} verbs_memory;
void verbs_memory_hold(verbs_memory *memory);
void verbs_memory_drop(verbs_memory *memory);
uint32_t verbs_lkey(const weft_mr *mr, uint8_t rail);
uint32_t verbs_rkey(const weft_rkey *rkey, uint8_t far_rail);

/* -- mw.c -- */
int verbs_mw_open(verbs_iface *iface); /* after the rails: caps.has_mw, as the knob and the devices have it; WEFT_E_UNSUPPORTED */
void verbs_mw_close(verbs_iface *iface); /* after the paths, before the rails */
int verbs_mw_bind(weft_iface *iface, weft_ep *ep, const weft_mr *mr, void *addr, uint64_t bytes, uint32_t rights,
                    weft_rkey *rkey, weft_mw **mw);
void verbs_mw_invalidate(weft_iface *iface, weft_mw *mw);
void verbs_mw_progress(verbs_iface *iface); /* takes back what had no room */
void verbs_mw_completion(const struct ibv_wc *wc);
void verbs_mw_fail(verbs_rc_qp *link); /* its queue pair is about to go */
/* The epoch in which a lent key works; 0: it is a region's own. */
uint32_t verbs_key_epoch(const verbs_ep *ep, const weft_rkey *rkey);

/* -- conn.c -- */
int verbs_conn_open(verbs_iface *iface);   /* UD receives, listener */
void verbs_conn_close(verbs_iface *iface);
int verbs_ep_open(weft_iface *iface, const weft_proc_id *who, const void *addr, size_t bytes, void *peer, weft_ep **ep);
/* First frame or move to a peer: state NEW becomes CONNECTING. */
void verbs_conn_begin(verbs_ep *ep);
/* Timers: says CONNECT again, changes rails, gives a peer up. Cheap when nothing is connecting. How many things happened. */
int verbs_conn_progress(verbs_iface *iface);
/* When verbs_conn_progress wants to be called next, ns from now; 0: no timer. */
uint64_t verbs_conn_within(const verbs_iface *iface);
/* A completion of kind DATAGRAM_* or MARK (neither counts in cq_used, sq_used); a CM event is found by verbs_conn_progress. */
void verbs_conn_completion(verbs_rail *rail, const struct ibv_wc *wc);
/* A work completion in error (NULL: the other side said so, or an event did): explains it, moves the path to DRAINING. */
void verbs_conn_break(verbs_rc_qp *link, const struct ibv_wc *wc, const char *words);
/* A break that no new epoch can mend, since a frame is gone that its sender may have let go: ends in callbacks.peer_failed with these words. */
void verbs_conn_fail(verbs_ep *ep, const char *words);
/* A frame or write of this epoch came from the peer: it is there, it has connected. */
void verbs_conn_heard(verbs_ep *ep);
/* The table's leave: AGAIN until nothing of ours is unacknowledged (verbs_flow_is_quiet, no open ops) and the queue pairs are drained
 * and gone; then frees the path. */
int verbs_ep_close(weft_iface *iface, weft_ep *ep);
/* Frees the queue pairs at once and the path with them, drained or not: for close. */
void verbs_conn_forget(verbs_ep *ep);
/* One sentence: what a completion status means, the vendor's code, the likely cause. */
void verbs_wc_error(const verbs_rc_qp *link, const struct ibv_wc *wc, const char *what, char *text, size_t room);

/* -- flow.c -- */
int verbs_flow_open(verbs_iface *iface);   /* slots, receives of every rail */
void verbs_flow_close(verbs_iface *iface);
/* A path begins: its lists; called by reach. */
void verbs_flow_begin(verbs_ep *ep);
int verbs_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
void verbs_flow_completion(verbs_rail *rail, const struct ibv_wc *wc); /* SEND, SYNC and RECV */
/* Receive slots to lend to a new or reconnected peer: grows the queues if need be; 0 when memory is at its bound (the peer then asks). */
uint32_t verbs_flow_grant_credit(verbs_ep *ep);
/* Nothing of ours is unacknowledged: leave may go on. */
bool verbs_flow_is_quiet(verbs_ep *ep);
int verbs_flow_progress(verbs_iface *iface); /* credits to tell, starved peers */
void verbs_flow_defer(verbs_iface *iface); /* before sleeping: tells what could have waited for a frame to go along with */

/* -- eager_ring.c -- */
bool verbs_eager_ring_may(const verbs_ep *ep);
int verbs_eager_ring_poll(verbs_iface *iface, int budget);
/* Before sleeping: takes all rings back; AGAIN while their senders may be about to say so; then sleep only *within_ns at a time. */
int verbs_eager_ring_rest(verbs_iface *iface, uint64_t *within_ns);
void verbs_eager_ring_down(verbs_ep *ep);
/* A control frame of the ring's. false: unreadable. */
bool verbs_eager_ring_news(verbs_ep *ep, uint8_t kind, const weft_hdr *hdr);

/* -- read_fence.c -- */
int verbs_read_fence_open(verbs_iface *iface);
void verbs_read_fence_close(verbs_iface *iface);
void verbs_read_fence_tell(const verbs_rail *rail, verbs_address *address);

/* -- rma.c -- */
int verbs_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int verbs_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int verbs_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic);
int verbs_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done);
bool verbs_can_rma(weft_iface *iface, weft_ep *ep);
int verbs_rma_open(verbs_iface *iface);
void verbs_rma_close(verbs_iface *iface);
void verbs_rma_completion(verbs_rail *rail, const struct ibv_wc *wc);
void verbs_rma_down(verbs_ep *ep);
void verbs_rma_up(verbs_ep *ep);
void verbs_rma_give_up(verbs_ep *ep, int rc);
void verbs_rma_drop(verbs_ep *ep); /* for close: forgets all, tells nobody */
int verbs_rma_progress(verbs_iface *iface); /* posts what waited for room */

/* -- replay.c: conn's news of frames -- */
/* down: what was posted is flushed, queue pairs are about to go. up: links are ready; the peer has delivered our frames up to
 * far_rx_seq and lends `credits`. give_up: the peer is lost: slots go back, nothing is told (conn tells). */
void verbs_flow_down(verbs_ep *ep);
void verbs_flow_up(verbs_ep *ep, uint32_t far_rx_seq, uint32_t credits);
void verbs_flow_give_up(verbs_ep *ep);

/* -- post.c -- */
/* Takes work requests for a link (all its own), in order, and posts them: at once, or, while they are gathered, with those that follow.
 * Breaks the link when the provider refuses one. 0 or an error; whose post went wrong stands in its owner's list until the break. */
int verbs_post(verbs_rc_qp *link, struct ibv_send_wr *first, uint32_t count);
/* From gather to go requests of one link are posted together, so many at most as a batch holds. They nest. */
void verbs_post_gather(verbs_iface *iface);
void verbs_post_go(verbs_iface *iface);
/* Posts nothing, for once: what comes next does, or verbs_post_flush. */
void verbs_post_hold(verbs_iface *iface);
void verbs_post_flush_all(verbs_iface *iface);
static inline void verbs_post_flush(verbs_iface *iface)
{
    if (iface->has_held && !iface->gathers)
        verbs_post_flush_all(iface);
}
/* The link goes: what waits for it was never posted. */
void verbs_post_forget(verbs_rc_qp *link);

/* -- iface.c -- */
/* Polls every rail's completion queue once and hands completions to their rooms. */
int verbs_drain(verbs_iface *iface, int budget);

extern const weft_iface_ops weft_verbs_ops;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs: the native HCA transport, private to its folder. One weft_iface holds all rails (active ports of RDMA devices) of this rank. An
 * ep has one RC queue pair (verbs_rc_qp) for each pair of rails that both sides share.
 *
 *   rail     device and GID selection, opening, asynchronous events                         device_select.c, gid.c, rail.c
 *   memory   registration with every rail; memory windows for one peer and one message      memory.c, mw.c
 *   conn     connection states, epochs, loss of a peer (conn.h)                             conn.c, epoch.c, ep.c, rail_probe.c
 *            its parts: messages by UD or rdma_cm, RC queue pairs, pairing of rails         conn_msg.c, ud.c, rdmacm.c, cm_listen.c,
 *                                                                                           cm_deferred.c, rc_qp.c, rail_pair.c
 *   flow     frames: slots, receive credits, order; resending; idle connections give way    flow.c, slots.c, credit.c, replay.c, evict.c
 *   ring     eager ring: frames written by RDMA into memory that the receiver polls         eager_ring.c
 *   rma      get, put, amo, flush: fragments over the QPs; notifications                    rma.c, rma_op.c
 *   loopback atomics on own memory by the own device                                       loopback.c
 *   recv     receive queues of single QPs, where the device has no shared ones              recv_queue.c
 *   post     work requests to a send queue, several with one doorbell                       post.c
 *   fence    iWARP: a read behind other requests proves that they were placed               read_fence.c
 *   iface    the operations table; poll and arm                                             iface.c
 *
 * Errors (docs/verbs.md, "When something breaks"). A completion in error on either side ends the ep's *epoch*: all its QPs are drained
 * and destroyed, and CONNECT and ACCEPT agree on epoch + 1 and exchange rx_seq. Frames that were not delivered are resent from their
 * slots, in order. Unfinished gets and puts are posted again: the target's memory is not read before a later frame or the put's
 * notification, and a put whose notification was delivered has ended. An amo whose result is unknown fails. An error of *one* operation
 * (key, bounds, access) fails that operation with WEFT_E_KEY and is not repeated.
 */
#ifndef WEFT_TRANSPORTS_VERBS_VERBS_H
#define WEFT_TRANSPORTS_VERBS_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "transport/iface.h"

#define VERBS_RAILS 4
#define VERBS_GRH 40 /* bytes of GRH in front of every received datagram */

typedef struct verbs_iface verbs_iface;
typedef struct verbs_ep verbs_ep;
typedef struct verbs_rc_qp verbs_rc_qp;
typedef struct verbs_rail verbs_rail;

/* -- wr_id of a work request points to one of these, the first member of its owner -- */
enum verbs_work_kind { VERBS_WORK_SEND, VERBS_WORK_RECV, VERBS_WORK_RMA, VERBS_WORK_RING, VERBS_WORK_DATAGRAM_OUT, VERBS_WORK_DATAGRAM_IN,
                       VERBS_WORK_MARK, VERBS_WORK_SYNC, VERBS_WORK_MW };
typedef struct verbs_work {
    uint8_t kind;
    uint8_t rail;
    uint16_t covers;  /* if signalled: requests that its completion completes, itself included; set by verbs_post */
    verbs_rc_qp *qp;  /* that it is posted to; NULL for receives of an SRQ and datagrams. Flushed before the QP is destroyed */
} verbs_work;

/* Requests posted with one doorbell (post.c). Empty between calls, except for frames sent with frame.more. */
#define VERBS_BATCH 16u
typedef struct verbs_batch {
    verbs_rc_qp *qp; /* QP of all of them */
    uint32_t count;
    struct ibv_send_wr requests[VERBS_BATCH];
    struct ibv_sge sges[VERBS_BATCH];
} verbs_batch;

/* -- rail: an active port of a device -- */
struct verbs_rail {
    verbs_iface *iface;
    uint8_t index;            /* in iface->rails */
    char name[64];            /* "mlx5_0:1" */
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;        /* sends, receives and datagrams */
    struct ibv_srq *srq;      /* NULL: the device has none; each QP has a receive queue */
    struct ibv_qp *ud;        /* NULL on iWARP */
    struct ibv_device_attr attr;
    uint8_t port_num, gid_index;
    uint16_t pkey_index;
    union ibv_gid gid;
    uint16_t lid;
    enum ibv_mtu mtu;
    bool is_ib;               /* link layer InfiniBand: addressed by LID */
    bool needs_grh;           /* ... and a GRH also within the subnet (IBV_QPF_GRH_REQUIRED: a virtual function) */
    bool is_iwarp;            /* connects by rdma_cm; no datagrams, no immediate data; read sinks need remote write */
    bool completes_early;         /* iWARP: a completed send or write was given to TCP; only a completed read behind it proves placement */
    bool is_up;               /* false after an event that the port is down */
    bool is_dead;             /* the device failed; never used again */
    bool is_armed;            /* ibv_req_notify_cq was called and no event was read since */
    uint32_t max_inline, max_rd_atomic;
    uint32_t numa_distance;   /* from this process; the nearest rail carries frames */
    uint32_t cq_capacity, cq_used; /* posted sends and receives, unsignalled ones too; capacity without datagrams, markers */
    uint32_t marks, marks_capacity; /* drain markers posted; CQ entries reserved for them */
    bool is_shallow;          /* short queues: low locked-memory limit, or limits of the device */
    uint32_t srq_capacity, rq_capacity, sq_capacity; /* depth of the SRQ, or of each QP's receive queue; of each QP's send queue */
    bool is_v1;               /* RoCE v1: interoperates with RoCE v1 only */
    uint8_t prefix_bits;      /* prefix length of the GID's IPv4 network; 0: unknown */
    uint16_t cm_port;         /* port of the local rdma_cm listener, host order; 0: none */
    uint32_t receives;        /* posted to the SRQ */
    weft_list_link emptied;        /* verbs_slot: consumed receives, reposted in batches */
    uint32_t emptied_count;
    bool is_odp;              /* user memory is registered for on-demand paging */
    bool takes_relaxed;       /* user memory may be registered for relaxed ordering, by knob and device */
    bool reports_last_wqe;      /* has reported IBV_EVENT_QP_LAST_WQE_REACHED once; drain then waits for it */
    weft_list_link free_mws;        /* weft_mw: free, may be bound by any QP of this rail */
    verbs_rc_qp **by_qpn;      /* open-addressing hash of local QP numbers, for verbs_rc_qp_of */
    uint32_t qpn_capacity, qpn_count;
    verbs_batch batch;
    uint64_t not_ready;       /* verbs_not_ready at open */
};

enum verbs_address_flag { VERBS_ADDRESS_IB = 1, VERBS_ADDRESS_IWARP = 2, VERBS_ADDRESS_V1 = 4 };

/* What a peer needs to reach a rail; part of the iface address and of CONNECT. */
typedef struct verbs_address {
    union ibv_gid gid;
    uint32_t ud_qpn;
    uint16_t lid;
    uint8_t mtu, flags;       /* enum verbs_address_flag */
    uint8_t prefix_bits;      /* of the IPv4 network, to pair rails; 0 unknown */
    uint8_t pad;
    uint16_t cm_port;         /* of the rdma_cm listener; 0: none */
    uint32_t fence_rkey;       /* rkey of one readable word for read fences (read_fence.c); 0: none */
    uint64_t fence_addr;
} verbs_address;

typedef struct verbs_iface_addr {
    uint8_t version, rails;
    uint16_t frame_max_kib;
    uint32_t nonce;           /* identifies this incarnation of the iface; datagrams with another nonce are dropped */
    verbs_address address[VERBS_RAILS];
} verbs_iface_addr;
_Static_assert(sizeof(verbs_iface_addr) <= WEFT_ADDR_MAX, "an address");

/* -- one RC queue pair of an ep -- */
struct verbs_rc_qp {
    verbs_ep *ep;
    verbs_rail *rail;
    uint8_t remote_rail;         /* index of the peer's rail */
    struct ibv_qp *ibv_qp;        /* NULL: none in this epoch */
    void *cm_id;                 /* struct rdma_cm_id, if connected by rdma_cm; else NULL */
    uint32_t remote_qpn;
    uint32_t sq_capacity, sq_used;      /* send queue depth for work requests, and posted; the drain marker has an entry of its own */
    uint32_t reads_capacity, reads_used; /* reads and atomics (also read fences of puts): maximum and in flight */
    uint32_t unsignalled;     /* requests since the last signalled one */
    verbs_work sync;          /* empty signalled request; completes the unsignalled ones before it */
    bool is_syncing;
    bool sync_is_fence;         /* sync is a read fence: proves placement at the peer */
    uint32_t sync_seq;        /* last frame number posted before sync */
    uint64_t in_flight_bytes;    /* of gets and puts */
    bool is_broken;           /* an error was seen; nothing more may be posted */
    bool is_order_known;      /* in_order is valid */
    bool in_order;            /* bytes of an RDMA write by the peer become visible in order (ibv_query_qp_data_in_order) */
    uint32_t weight;          /* relative share of RMA bytes */
    weft_list_link bound_mws;        /* weft_mw: bound by this QP */
    weft_list_link posted;           /* verbs_slot: in its own receive queue (recv_queue.c) */
    uint32_t receives;               /* their number */
    bool has_recv_queue;             /* first receives are posted */
};

enum verbs_ep_state {
    VERBS_NEW,        /* nothing exchanged, no QPs */
    VERBS_CONNECTING, /* CONNECT sent or answered; send returns AGAIN */
    VERBS_UP,
    VERBS_DRAINING,   /* the epoch ends: waits for the flush of posted work */
    VERBS_FAILED        /* callbacks.peer_failed was called, or both sides have left */
};

/* Closing an idle connection (evict.c). */
enum verbs_evict_state {
    VERBS_EVICT_NONE,
    VERBS_EVICT_QUIESCE,  /* takes no new frames; sends EVICT_REQ or EVICT_ACK when nothing is in flight */
    VERBS_EVICT_REQUESTED,   /* EVICT_REQ sent; starts nothing */
    VERBS_EVICT_ACKED  /* EVICT_ACK sent or received; sends nothing more and closes */
};

#define VERBS_CREDITS_FIRST 2 /* receive credits of each new peer; the last one is the token (flow.c) */

struct verbs_ep {
    weft_ep ep;
    verbs_iface *iface;
    weft_proc_id proc_id;
    weft_list_link by_iface;        /* in iface->eps */
    enum verbs_ep_state state;
    uint32_t epoch;           /* of the connection; 0: none yet */
    verbs_iface_addr remote;           /* the peer's address, from ep_open or CONNECT */
    verbs_rc_qp qps[VERBS_RAILS];
    uint8_t qp_count;
    verbs_rc_qp *home;         /* QP that sends frames; NULL: none */
    /* conn */
    uint64_t next_try_ns, tries, silent_since_ns; /* silent_since: first unanswered attempt; 0: none */
    uint8_t try_rail;         /* QP index whose rails carry datagrams; rotated when unanswered */
    bool is_confirmed;        /* the peer's QPs are known to be ready to receive; sends are allowed */
    bool was_greeted;
    uint32_t breaks;          /* so far */
    uint32_t rma_done;           /* completed RMA fragments; with the frame numbers it shows progress */
    enum verbs_evict_state evict;
    bool is_evict_requested;
    uint32_t evict_uses;       /* tx_seq + rx_seq at the last scan for an idle ep */
    char last_error[256];     /* text of the last error */
    struct verbs_handshake *hs;  /* connection state (conn.h); allocated with the ep */
    /* flow */
    uint32_t tx_seq, rx_seq;  /* last number assigned; last number delivered in order */
    uint32_t tx_acked;        /* last frame known to have arrived at the peer */
    weft_list_link sent;           /* verbs_slot: frames not known to have arrived, by seq */
    uint32_t tx_done;         /* last frame whose work request has completed */
    uint32_t unsent;          /* frames at the end of sent that are not posted in this epoch */
    weft_list_link control;        /* verbs_slot: unnumbered frames in flight; dropped at the end of the epoch */
    uint32_t credits;         /* receive slots of the peer that frames may still use */
    bool has_token;           /* one slot more, for a frame that returns credits (flow.c) */
    bool token_due;          /* the peer has used its token; the next frame returns it */
    uint32_t granted;            /* credits that the peer holds, without its token */
    uint32_t target;          /* credits that the peer should hold */
    bool has_grant;             /* receive slots are reserved for this epoch */
    uint32_t due_since;      /* iface->polls when by_due was queued */
    weft_list_link by_due;        /* in iface->due while credits, replies or resends are due */
    weft_list_link held;           /* verbs_held: received ahead of order (ring beside queue) */
    bool is_blocked;          /* a send returned AGAIN and none succeeded since */
    bool is_put_behind;       /* a put was posted behind the last numbered frame of the queue (docs/verbs.md, "Relaxed ordering") */
    bool is_garbled;          /* an unreadable frame came in this epoch; immediate data is no longer counted */
    bool has_bye;             /* verbs_ep_close was called */
    /* ring */
    struct verbs_eager_ring *ring;  /* NULL: none */
    uint32_t recent;          /* frames delivered since recent_ns */
    uint64_t recent_ns;       /* start of the count in recent, ns */
    uint32_t in_ring;         /* 1 while a frame is delivered from a ring cell: not acknowledged yet */
    uint32_t remote_rx;          /* last frame that the peer reported as delivered */
    /* RMA */
    weft_list_link ops;            /* verbs_op: unfinished, in order of posting */
    uint32_t ops_open;
    uint32_t frags;          /* RMA fragments in flight */
    uint32_t fences_done;          /* completed read fences in this epoch */
    uint32_t suspects;        /* iWARP: fragments in flight when the last epoch ended; posted one at a time until 0 */
    weft_list_link by_rma;        /* in iface->rma->waiting while fragments wait to be posted */
};

struct verbs_iface {
    weft_iface iface;
    weft_proc_id self;
    uint32_t peers, ranks; /* of weft_iface_params */
    uint64_t (*now_ns)(void);
    uint32_t nonce;
    verbs_rail rails[VERBS_RAILS];
    uint8_t rail_count;
    verbs_ep **ep_map; /* ep.c: hash of proc_id -> ep, grown on demand */
    uint32_t ep_map_capacity;
    weft_list_link eps;          /* all eps */
    uint32_t connecting;      /* eps CONNECTING or DRAINING */
    int epoll;                /* of all channels and event descriptors; returned by arm */
    bool is_armed;
    uint32_t receives_granted;    /* over all peers, tokens included; every rail's receives are at least as many */
    weft_list_link rings;           /* verbs_eager_ring.by_iface: rings that this iface reads */
    uint32_t ring_count;
    weft_list_link due;           /* verbs_ep.by_due */
    uint32_t polls;            /* calls of poll; selects those that run rare checks */
    struct verbs_slots *slots; /* bounce buffers for frames both ways, registered on every rail */
    struct verbs_rma_ops *rma;
    struct verbs_loopback *loopback; /* queue pairs of this process to itself (loopback.c); NULL: not made */
    struct verbs_slab *fence_source, *fence_sink; /* memory for read fences; NULL: no device here needs them */
    struct verbs_conn *conn;  /* UD queue pairs, rdma_cm listener */
    uint32_t gathers;         /* nesting depth of verbs_post_gather */
    bool has_held;            /* a rail's batch may hold requests */
    weft_list_link mws_to_invalidate;     /* weft_mw.by_iface: to be invalidated, and no send queue entry was free */
    weft_list_link mws_dead;     /* weft_mw: destroyed with its QP, not yet invalidated by the owner */
    weft_list_link mws_spare;    /* weft_mw: structs without an ibv_mw */
    bool is_small;            /* low locked-memory limit: few, short slots; set by verbs_rails_open */
    uint64_t counts[20];      /* enum verbs_print_counters */
};

enum verbs_print_counters {
    VERBS_COUNT_POSTS,      /* calls of ibv_post_send */
    VERBS_COUNT_REQUESTS,   /* work requests in them */
    VERBS_COUNT_COMPLETIONS, VERBS_COUNT_INLINE, VERBS_COUNT_SIGNALLED, VERBS_COUNT_RING_FRAMES, VERBS_COUNT_BREAKS, VERBS_COUNT_RESENT,
    VERBS_COUNT_REPOSTED_FRAGS, VERBS_COUNT_CONTROL, VERBS_COUNT_CONNECTS, VERBS_COUNT_DATAGRAMS, VERBS_COUNT_EVENTS,
    VERBS_COUNT_IMMEDIATES, /* notifications sent as immediate data of a put's last fragment */
    VERBS_COUNT_EVICTIONS,      /* idle connections closed to free receive slots */
    VERBS_COUNT_MW_BINDS, VERBS_COUNT_MW_LOST,
    VERBS_COUNT_OWN_ATOMICS, /* work requests of the loopback */
    VERBS_COUNT_RELAXED,    /* regions registered for relaxed ordering; atomic: helper threads register, too */
    VERBS_COUNT_LAST
};

/* Reports the counters that are not 0, in one line (weft_iface_ops.print_counters). */
void verbs_counters(weft_iface *iface, void (*line)(void *arg, const char *text), void *arg);
void verbs_counters_begin(verbs_iface *iface);
/* RNR NAKs that a device's port received, by the kernel's hw_counters; 0 where it keeps none. */
uint64_t verbs_not_ready(const char *device, uint32_t port_num);

/* QP that a receive completed on; NULL: it was destroyed. */
static inline verbs_rc_qp *verbs_rc_qp_of(const verbs_rail *rail, uint32_t qpn)
{
    for (uint32_t i = qpn; rail->qpn_capacity; i++) {
        verbs_rc_qp *qp = rail->by_qpn[i & (rail->qpn_capacity - 1)];
        if (!qp || qp->ibv_qp->qp_num == qpn)
            return qp;
    }
    return NULL;
}

/* -- rail.c: open fills iface->rails by knobs and devices; WEFT_E_UNSUPPORTED with a text of the reasons -- */
int verbs_rails_open(verbs_iface *iface);
void verbs_rails_close(verbs_iface *iface);
int verbs_rail_enter(verbs_rail *rail, verbs_rc_qp *qp); /* adds to by_qpn; WEFT_E_NOMEM */
void verbs_rail_remove(verbs_rail *rail, verbs_rc_qp *qp);
const char *verbs_unavailable(void);
void verbs_describe(void (*line)(void *arg, const char *text), void *arg);
/* Handles asynchronous events of a device: sets is_up and is_dead, ends epochs. Returns their number. verbs_conn_progress calls it
 * periodically and after each verbs_conn_within (the descriptors are in iface->epoll). */
int verbs_rail_events(verbs_rail *rail);
void verbs_rail_address(const verbs_rail *rail, verbs_address *address);
/* -- memory.c -- */
int verbs_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int verbs_mr_dereg(weft_iface *iface, weft_mr *mr);
/* Whether the device accepts a registration with the flag for relaxed ordering. Most devices without relaxed ordering ignore the flag; the
 * others refuse it. */
bool verbs_memory_try_relaxed(const verbs_rail *rail);
/* lkey: of the local rail. rkey: of the peer's rail, from its key. */
typedef struct verbs_memory {
    struct ibv_mr *mr[VERBS_RAILS];
    struct ibv_mr *sink[VERBS_RAILS]; /* iWARP: registration for the local side of gets, where mr is readable and not writable by peers */
    uint32_t holders;         /* references: the registration and each bound memory window; atomic */
    bool can_bind;
} verbs_memory;
void verbs_memory_acquire(verbs_memory *memory);
void verbs_memory_release(verbs_memory *memory);
uint32_t verbs_lkey(const weft_mr *mr, uint8_t rail);
uint32_t verbs_rkey(const weft_rkey *rkey, uint8_t remote_rail);

/* -- mw.c -- */
int verbs_mw_open(verbs_iface *iface); /* after the rails; sets caps.has_mw by knob and devices; WEFT_E_UNSUPPORTED */
void verbs_mw_close(verbs_iface *iface); /* after the eps, before the rails */
int verbs_mw_bind(weft_iface *iface, weft_ep *ep, const weft_mr *mr, void *addr, uint64_t bytes, uint32_t rights,
                    weft_rkey *rkey, weft_mw **mw);
void verbs_mw_invalidate(weft_iface *iface, weft_mw *mw);
void verbs_mw_progress(verbs_iface *iface); /* posts invalidations that had no send queue entry */
void verbs_mw_completion(const struct ibv_wc *wc);
void verbs_mw_fail(verbs_rc_qp *qp); /* the QP is about to be destroyed */
/* Epoch in which a memory window's key is valid; 0: the key of a registration. */
uint32_t verbs_key_epoch(const verbs_ep *ep, const weft_rkey *rkey);

/* -- conn.c -- */
int verbs_conn_open(verbs_iface *iface);   /* UD receives, listener */
void verbs_conn_close(verbs_iface *iface);
int verbs_ep_open(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **ep);
/* First frame or RMA to a peer: state NEW becomes CONNECTING. */
void verbs_conn_begin(verbs_ep *ep);
/* Runs timers: repeats CONNECT, rotates rails, declares peers lost. Cheap if nothing connects. Returns the number of events. */
int verbs_conn_progress(verbs_iface *iface);
/* ns until verbs_conn_progress must be called next; 0: no timer. */
uint64_t verbs_conn_within(const verbs_iface *iface);
/* Handles a completion of kind DATAGRAM_* or MARK (neither counts in cq_used or sq_used). */
void verbs_conn_completion(verbs_rail *rail, const struct ibv_wc *wc);
/* Ends the epoch: the ep becomes DRAINING. wc: completion in error; NULL: reported by the peer or by an event. words: what failed. */
void verbs_conn_break(verbs_rc_qp *qp, const struct ibv_wc *wc, const char *words);
/* Ends the epoch and then the peer, by callbacks.peer_failed: a frame is lost that its sender may have freed. */
void verbs_conn_fail(verbs_ep *ep, const char *words);
/* A frame or write of this epoch arrived: the peer is connected, the ep goes up. */
void verbs_conn_on_arrival(verbs_ep *ep);
/* weft_iface_ops.ep_close: AGAIN until all frames are acknowledged, no ops are open and the QPs are drained and destroyed; then frees the
 * ep. */
int verbs_ep_close(weft_iface *iface, weft_ep *ep);
/* weft_iface_ops.ep_rest (rest.c) */
int verbs_ep_rest(weft_iface *iface, weft_ep *ep, enum weft_ep_rest how);
/* Destroys the QPs at once, drained or not, and frees the ep; for close. */
void verbs_ep_free(verbs_ep *ep);
/* Writes one sentence: the completion status, the vendor's code, the likely cause. */
void verbs_wc_error(const verbs_rc_qp *qp, const struct ibv_wc *wc, const char *what, char *text, size_t capacity);

/* -- flow.c -- */
int verbs_flow_open(verbs_iface *iface);   /* allocates the slots */
void verbs_flow_close(verbs_iface *iface);
/* Initializes the lists of a new ep. */
void verbs_flow_begin(verbs_ep *ep);
int verbs_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
void verbs_flow_completion(verbs_rail *rail, const struct ibv_wc *wc); /* SEND, SYNC and RECV */
/* Reserves the first credits of a new or reconnected peer and returns their number; grows the SRQs if needed. 0: memory is at its bound. */
uint32_t verbs_credit_grant_first(verbs_ep *ep);
/* True if no frame is unacknowledged; else requests the completion that makes it so. */
bool verbs_flow_is_quiet(verbs_ep *ep);
int verbs_flow_progress(verbs_iface *iface); /* returns credits, resends frames; number of frames sent */
void verbs_flow_defer(verbs_iface *iface); /* before sleeping: returns credits now instead of with a later frame */

/* Receives reserved for the ep's peer, its token included. */
uint32_t verbs_credit_reserved(const verbs_ep *ep);

/* -- eager_ring.c -- */
/* True if the ep may use rings, by knob and device. */
bool verbs_eager_ring_can_use(const verbs_ep *ep);
/* Delivers frames from all rings, at most `budget`. Returns their number. */
int verbs_eager_ring_poll(verbs_iface *iface, int budget);
/* Before sleeping: asks for all rings back. AGAIN while RING_DONE is expected soon; then limits the sleep to *within_ns. */
int verbs_eager_ring_shut_all(verbs_iface *iface, uint64_t *within_ns);
/* The epoch has ended: delivers complete frames and frees the rings. */
void verbs_eager_ring_down(verbs_ep *ep);
/* Handles a RING_* frame; false: unreadable. */
bool verbs_eager_ring_handle(verbs_ep *ep, uint8_t kind, const weft_hdr *hdr);

/* -- read_fence.c -- */
/* Allocates the fence memory if a rail needs it. */
int verbs_read_fence_open(verbs_iface *iface);
void verbs_read_fence_close(verbs_iface *iface);
/* Adds address and rkey of the fence memory to a rail's address. */
void verbs_read_fence_get_addr(const verbs_rail *rail, verbs_address *address);

/* -- rma.c -- */
int verbs_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int verbs_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int verbs_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic);
int verbs_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done);
bool verbs_can_rma(weft_iface *iface, weft_ep *ep);
int verbs_rma_open(verbs_iface *iface);
void verbs_rma_close(verbs_iface *iface);
/* Handles a completion of a fragment, also in error. May call callbacks.done. */
void verbs_rma_completion(verbs_rail *rail, const struct ibv_wc *wc);
/* The epoch has ended: fragments in flight are to be posted again; atomics in flight fail. */
void verbs_rma_down(verbs_ep *ep);
/* A new epoch is up: finishes puts whose notification was delivered, posts the rest. */
void verbs_rma_up(verbs_ep *ep);
/* Finishes all ops with rc. has_ended: the peer's process has ended after MPI_Finalize, so puts that notify it have arrived, and only
 * their acknowledgement was lost. */
void verbs_rma_give_up(verbs_ep *ep, int rc, bool has_ended);
void verbs_rma_drop(verbs_ep *ep); /* for close: frees all ops without completion callbacks */
int verbs_rma_progress(verbs_iface *iface); /* posts fragments that waited for queue entries */

/* -- loopback.c -- */
int verbs_amo_self(weft_iface *iface, const weft_atomic *atomics, uint32_t count);
void verbs_loopback_close(verbs_iface *iface);

/* -- replay.c: frames at the end and start of an epoch -- */
/* down: posted work is flushed, the QPs are about to be destroyed. up: the QPs are connected; the peer has delivered frames up to
 * remote_rx_seq and grants `credits`. give_up: the peer is lost; frees the slots, without callbacks. */
void verbs_flow_down(verbs_ep *ep);
void verbs_flow_up(verbs_ep *ep, uint32_t remote_rx_seq, uint32_t credits);
void verbs_flow_give_up(verbs_ep *ep);

/* -- post.c -- */
/* Posts work requests of one QP, in order: at once, or with later ones while gathering. Ends the epoch if the provider refuses one. 0 or an
 * error; a refused request stays in its owner's list until the epoch ends. */
int verbs_post(verbs_rc_qp *qp, struct ibv_send_wr *first, uint32_t count);
/* From gather to go requests of one QP are posted together, at most VERBS_BATCH. Calls nest. */
void verbs_post_gather(verbs_iface *iface);
void verbs_post_go(verbs_iface *iface);
/* Ends a gather without posting: the next request or verbs_post_flush posts. */
void verbs_post_hold(verbs_iface *iface);
void verbs_post_flush_all(verbs_iface *iface);
static inline void verbs_post_flush(verbs_iface *iface)
{
    if (iface->has_held && !iface->gathers)
        verbs_post_flush_all(iface);
}
/* The QP is destroyed: drops its requests from the batch. */
void verbs_post_discard(verbs_rc_qp *qp);

/* -- iface.c -- */
/* Polls every rail's CQ once and dispatches the completions. Returns their number. */
int verbs_poll_cqs(verbs_iface *iface, int budget);

extern const weft_iface_ops weft_verbs_ops;

#endif

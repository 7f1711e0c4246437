/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hca: types of the simulated fabric, private to test/transports/simhca.
 *   fabric      time, event heap, random numbers, counts: fabric.c, profile.c
 *   device      devices of hosts, contexts, ports, GIDs, asynchronous events: device.c, query.c
 *   memory      protection domains, regions, keys, limits; memory windows: memory.c, mw.c
 *   cq, srq     completion queues and channels; receive queues, shared or not: cq.c, recv.c
 *   qp, post    queue pairs, states, attributes; ibv_post_send and its refusals: qp.c, modify.c, post.c
 *   requester   order, windows, retries; responder: execution and responses: requester.c, responder.c
 *   visibility  bytes that become visible line by line: visibility.c
 *   ud, cm      datagrams; rdma_cm: ud.c, cm.c
 *   faults      breaks, flaps, deaths: faults.c
 * Invariant: an event names queue pairs by device and number, never by pointer: the queue pair may have been destroyed, or its number
 * reused. All state is guarded by hca_lock. All random numbers come from hca.random, in an order that depends on the calls only.
 */
#ifndef WEFT_SIMHCA_HCA_H
#define WEFT_SIMHCA_HCA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "test/transports/simhca/simhca.h"

#define HCA_GIDS 6
#define HCA_NDEV_FOREIGN 0x7ffffffeu /* an interface of another network namespace: this one has no such index */
#define HCA_SGES 32
#define HCA_GRH 40
#define HCA_QPN_FIRST 0x100u

typedef struct hca_device hca_device;
typedef struct hca_context hca_context;
typedef struct hca_qp hca_qp;
typedef struct hca_cq hca_cq;
typedef struct hca_event hca_event;
typedef struct hca_visibility hca_visibility;

/* -- devices -- */
typedef struct hca_port {
    bool is_up;
    bool flap_posted;
    uint16_t lid;
    uint32_t network;          /* ports of one network reach each other */
    union ibv_gid gids[HCA_GIDS];
    uint8_t gid_types[HCA_GIDS], gid_count;
    uint32_t gid_ndevs[HCA_GIDS];  /* ndev_ifindex of the entries; 0: not reported */
} hca_port;

/* False: an entry of another network namespace, or none. */
static inline bool hca_gid_is_own(const hca_port *port, uint32_t index)
{
    return index < port->gid_count && port->gid_ndevs[index] != HCA_NDEV_FOREIGN;
}

struct hca_device {
    struct ibv_device base;
    uint32_t host, index;
    bool is_dead;
    bool is_deaf;              /* receives no rdma_cm messages */
    hca_port port;             /* one per device: number 1 */
    weft_list_link contexts;
    hca_qp **qps;              /* by number - HCA_QPN_FIRST */
    uint32_t qp_capacity, qp_count;
    struct hca_mr **mrs;       /* by key >> 8 */
    uint32_t mr_capacity, mr_count, ah_count;
    uint8_t *mr_tags;          /* low byte of the next key at that index */
    struct hca_mw **mws;       /* by index */
    uint32_t mw_capacity;
};

enum hca_object { HCA_PD, HCA_MR, HCA_CQ, HCA_CHANNEL, HCA_SRQ, HCA_QP, HCA_AH, HCA_MW, HCA_OBJECTS };

struct hca_context {
    weft_list_link link;            /* in device->contexts */
    hca_device *device;
    uint32_t process;
    uint64_t pinned;
    uint32_t registered;       /* count so far: the first ones, a library's own, are never refused at random */
    weft_list_link events;          /* asynchronous, not yet read */
    uint32_t objects[HCA_OBJECTS]; /* alive */
    weft_list_link pds, mrs, cqs, channels, srqs, qps, ahs, mws;
    bool never_blocks;         /* its event descriptor is O_NONBLOCK; queried once, as system calls are slow on some machines */
    struct verbs_context verbs; /* last: ends with struct ibv_context, which the library's users access */
};

typedef struct hca_async {
    weft_list_link link;
    struct ibv_async_event event;
} hca_async;

/* -- memory -- */
typedef struct hca_pd {
    struct ibv_pd base;
    weft_list_link link;
    uint32_t users;
} hca_pd;

typedef struct hca_mr {
    struct ibv_mr base;
    weft_list_link link;
    uint32_t place, lkey, rkey; /* the user may change its own copies */
    unsigned access;
    bool is_relaxed;
    uint64_t iova, bytes;
    uint32_t mws;           /* bound to it */
} hca_mr;

typedef struct hca_mw {
    struct ibv_mw base;
    weft_list_link link;
    uint32_t place, rkey;
    hca_mr *mr;                 /* bound to; NULL: free */
    uint64_t qp_id;             /* queue pair whose peer may use it */
    uint64_t addr, bytes;
    unsigned access;
} hca_mw;

typedef struct hca_ah {
    struct ibv_ah base;
    weft_list_link link;
    struct ibv_ah_attr attr;
} hca_ah;

/* -- completion queues -- */
typedef struct hca_cqe {
    struct ibv_wc wc;
    uint64_t qp_id;            /* queue pair whose queue entry the poll frees */
    uint64_t place;            /* sends: index in the send queue */
    struct hca_rq *rq;
    bool is_recv;
} hca_cqe;

typedef struct hca_channel {
    struct ibv_comp_channel base;
    weft_list_link link;
    hca_cq **ready;            /* events not read yet */
    uint32_t ready_count, ready_capacity;
    uint32_t users;
    bool never_blocks;
} hca_channel;

struct hca_cq {
    struct ibv_cq base;
    weft_list_link link;
    hca_cqe *ring;
    uint32_t head, count, capacity;
    uint32_t users;            /* queue pairs */
    bool armed, armed_solicited, is_overrun;
    uint32_t events_taken, events_acked;
};

/* -- receive queues -- */
typedef struct hca_rwqe {
    uint64_t wr_id;
    uint32_t count;            /* of sges */
    struct ibv_sge *sges;
} hca_rwqe;

typedef struct hca_rq {        /* of a queue pair, or shared */
    hca_rwqe *ring;
    uint32_t head, count, capacity; /* posted and not consumed */
    uint32_t used;             /* posted and not polled; bounded by capacity */
    uint32_t max_sge;
} hca_rq;

typedef struct hca_srq {
    struct ibv_srq base;
    weft_list_link link;
    hca_rq rq;
    uint32_t users, limit;
} hca_srq;

/* -- queue pairs -- */
typedef struct hca_bind {      /* of a window */
    uint32_t old_key, new_key, lkey;
    unsigned access;
    uint64_t addr, bytes;
} hca_bind;

typedef struct hca_wqe {
    uint64_t wr_id, remote, compare, swap;
    enum ibv_wr_opcode opcode;
    unsigned flags;
    __be32 imm;
    uint32_t rkey, length, count;
    struct ibv_sge *sges;
    uint8_t *inlined;
    struct ibv_ah_attr av;     /* datagrams */
    uint32_t remote_qpn, remote_qkey;
    hca_bind bind;
    bool is_sent, is_completed_early;     /* is_completed_early: completed before its response came (profile.early) */
} hca_wqe;

typedef struct hca_saved {     /* response of an atomic, for a repeated request */
    uint64_t seq, value;
} hca_saved;

struct hca_qp {
    struct ibv_qp base;
    weft_list_link link;
    hca_device *device;
    hca_context *context;
    uint64_t id;               /* never reused */
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    hca_device *remote;           /* device of the remote address; NULL: not found yet */
    bool sig_all;
    hca_rq own_rq, *rq;
    /* sending: indices count up without bound; the ring is indexed modulo its capacity */
    hca_wqe *sq;
    uint32_t sq_ring;
    uint64_t head, sent, done, freed; /* next to post; next to send; oldest not completed; oldest whose entry is not free */
    bool send_posted, is_waiting_rnr;
    uint32_t rnr_left, retries;
    uint64_t deadline;         /* for a response; 0: none is expected */
    bool timer_runs;           /* a timer event is pending; it compares the deadline when due */
    uint64_t last_due;         /* of requests, to keep their order */
    uint32_t reads_out;
    int pending_break;         /* enum simhca_break_kind + 1, at the next message */
    bool is_mute;              /* all that it sends is lost */
    bool ack_mute;             /* all responses to it are lost */
    bool flush_posted;
    bool was_established, was_last_early;
    weft_list_link answers;         /* responses that wait for one whose data becomes visible */
    hca_visibility *reading;
    /* receiving */
    uint64_t expected;
    uint64_t answer_due;
    weft_list_link requests;        /* arrived requests that wait for one whose data becomes visible */
    hca_visibility *writing;
    weft_list_link acked;           /* hca_visibility: relaxed writes, acknowledged and not all visible */
    hca_event *writing_for;    /* request whose data becomes visible ... */
    struct ibv_wc writing_wc;  /* ... and the completion of its receive, if takes_recv */
    bool takes_recv;
    hca_event *fetching, *fetching_for; /* response of a read, of which some words are not read yet, and its request; NULL: none */
    hca_saved saved[16];
};

/* -- events -- */
enum hca_event_kind { HCA_SEND, HCA_REQUEST, HCA_ANSWER, HCA_TIMER, HCA_RNR_OVER, HCA_VISIBILITY, HCA_FETCH, HCA_FLUSH, HCA_UD, HCA_FLAP,
                      HCA_CM };
enum hca_answer_kind { HCA_ACK, HCA_RNR_NAK, HCA_NAK };

typedef struct hca_address {   /* address of a queue pair */
    hca_device *device;
    uint32_t qpn, psn;
} hca_address;

struct hca_event {
    weft_list_link link;            /* in a queue of a queue pair */
    uint64_t due, order;
    enum hca_event_kind kind;
    hca_address from, to;      /* `to`: the queue pair that handles the event */
    uint64_t id;               /* of the queue pair, for its local events */
    uint64_t seq;              /* of the message; timer: its generation */
    enum ibv_wr_opcode opcode;
    unsigned flags;
    __be32 imm;
    uint32_t rkey, length, mtu, reads_out;
    uint64_t remote, compare, swap;
    enum hca_answer_kind answer;
    enum ibv_wc_status status; /* of a NAK: status of the requester's completion */
    uint64_t value;            /* atomics; VISIBILITY: its id */
    uint32_t qkey;
    uint8_t *body;
};

/* A copy into memory in progress. */
struct hca_visibility {
    weft_list_link link;       /* in qp->acked */
    uint64_t id;
    uint64_t step_ns;          /* most time until the next step */
    uint8_t *data;
    struct ibv_sge *sges;      /* destination; lkeys were checked */
    uint32_t count;
    uint32_t bytes, lines, at, step, steps;
    uint32_t head;             /* bytes of the first line */
    uint32_t *order;           /* of lines; NULL: ascending */
};

typedef struct hca_fabric {
    bool is_open;
    simhca_profile profile;
    uint64_t seed, random[2], now, next_order, next_id;
    uint32_t process, per_host;
    bool purges;               /* destroying a queue pair removes its completions from the CQ, as some drivers do */
    hca_event **heap;
    uint32_t heap_count, heap_capacity;
    hca_device **devices;      /* of all hosts: host * profile.devices + index */
    uint32_t device_count, device_capacity;
    weft_list_link cm_channels, cm_ids; /* cm.c */
    uint64_t cm_last;
    uint64_t counts[SIMHCA_COUNT_LAST];
    bool (*on_register)(unsigned access);
    void (*pass)(void *arg, uint64_t ns);
    void *pass_arg;
    uint32_t dull;             /* empty polls in a row */
    uint32_t left[HCA_OBJECTS + 1]; /* objects leaked by closed contexts, and contexts, for simhca_close */
} hca_fabric;

extern hca_fabric hca;

/* -- fabric.c -- */
void hca_lock(void);
void hca_unlock(void);
/* Opens the fabric by the environment if it is not open. */
void hca_open_default(void);
uint64_t hca_random(void);
bool hca_chance(uint32_t part, uint32_t of);
uint64_t hca_delay(uint32_t max, uint64_t bytes);
hca_event *hca_event_new(enum hca_event_kind kind);
void hca_event_free(hca_event *event);
void hca_event_post(hca_event *event, uint64_t due);
void hca_advance(uint64_t now);
/* Charges the time of a call. Called without the lock. */
void hca_spend(uint64_t ns, bool was_empty);
/* Charges the time of an empty poll of a completion queue without a channel: its owner spins. After many of them an external clock
 * (simhca_clock) runs faster, too; hca_spend leaves its speed as it is. Called without the lock. */
void hca_spin(uint64_t ns);
void hca_ring(int fd);
/* Reports a misuse that would hang or corrupt the real library, and aborts. */
void hca_misuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* -- device.c -- */
hca_device *hca_device_at(uint32_t host, uint32_t index);
void hca_device_free(hca_device *device);
static inline hca_context *hca_context_of(struct ibv_context *context)
{
    return (hca_context *)((char *)context - offsetof(hca_context, verbs.context));
}
void hca_report_event(hca_context *context, enum ibv_event_type type, void *element, int port);
void hca_context_drop(hca_context *context); /* also with open objects */
/* Drops events of a destroyed object; hca_misuse on events that were read and not acknowledged. */
void hca_async_forget(hca_context *context, const void *element);
hca_port *hca_port_of(struct ibv_context *context, uint32_t number);
/* -- query.c -- */
void hca_verbs_fill(hca_context *context);
uint32_t hca_limit(uint32_t of_profile, uint32_t plenty);

/* -- memory.c -- */
/* The region of a key if it covers [addr, addr + bytes), belongs to this domain and grants `access`; else NULL. */
hca_mr *hca_mr_of(hca_device *device, struct ibv_pd *pd, uint32_t key, bool is_remote, uint64_t addr, uint64_t bytes,
                  unsigned access);
/* Is one of these in a region for relaxed ordering? Their keys are valid. */
bool hca_sges_are_relaxed(hca_device *device, struct ibv_pd *pd, const struct ibv_sge *sges, uint32_t count);
bool hca_sges_ok(hca_device *device, struct ibv_pd *pd, const struct ibv_sge *sges, uint32_t count, unsigned access);
void hca_mr_free(hca_mr *mr);

/* -- mw.c -- */
void hca_mw_fill(struct ibv_context_ops *ops);
void hca_mw_free(hca_mw *mw);
static inline bool hca_is_mw_work(enum ibv_wr_opcode opcode) { return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV; }
/* Executes a bind or invalidation; false: it is invalid. */
bool hca_mw_execute(hca_qp *qp, const hca_wqe *wqe);
/* The region behind a window whose key permits the peer of this queue pair this access; else NULL. */
hca_mr *hca_mr_of_mw(const hca_qp *qp, uint32_t key, uint64_t addr, uint64_t bytes, unsigned access);
bool hca_has_mws(const hca_qp *qp);

/* -- cq.c -- */
int hca_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int hca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void hca_cq_add(hca_cq *cq, const hca_cqe *cqe, bool is_solicited);
/* Removes a queue pair's completions. */
void hca_cq_purge(hca_cq *cq, uint64_t qp_id);
/* A receive queue is destroyed: its completions that remain free no entry. */
void hca_cq_forget_rq(hca_context *context, const hca_rq *rq);
void hca_cq_free(hca_cq *cq);
void hca_channel_free(hca_channel *channel);

/* -- recv.c -- */
bool hca_rq_open(hca_rq *rq, uint32_t room, uint32_t max_sge);
void hca_rq_close(hca_rq *rq);
int hca_rq_post(hca_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Dequeues the next posted receive; false: none. It is valid until the next call on this queue. */
bool hca_rq_dequeue(hca_rq *rq, hca_rwqe *rwqe);
int hca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int hca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void hca_srq_on_dequeue(hca_qp *qp);
void hca_srq_free(hca_srq *srq);

/* -- qp.c -- */
hca_qp *hca_qp_find(hca_device *device, uint32_t qpn);
hca_qp *hca_qp_by_id(hca_device *device, uint32_t qpn, uint64_t id);
void hca_qp_free(hca_qp *qp);
void hca_qp_reset(hca_qp *qp);
/* State ERR: posted work will be flushed. Reports `event` unless it is -1. */
void hca_qp_error(hca_qp *qp, int event);
void hca_qp_flush(hca_event *event);
hca_device *hca_remote_device(hca_qp *qp);
/* The device at an address, as seen from this one; NULL: none. */
hca_device *hca_device_by(const hca_device *from, const struct ibv_ah_attr *av);
static inline hca_wqe *hca_wqe_at(hca_qp *qp, uint64_t place) { return &qp->sq[place % qp->sq_ring]; }
void hca_wqe_clear(hca_wqe *wqe);
/* Completes the oldest work request of the send queue. */
void hca_complete_send(hca_qp *qp, enum ibv_wc_status status);
void hca_complete_early(hca_qp *qp, hca_wqe *wqe);
void hca_complete_recv(hca_qp *qp, const struct ibv_wc *wc, bool is_solicited);
/* Are both ports up and of one network? */
bool hca_reaches(const hca_device *a, const hca_device *b);

/* -- post.c -- */
int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

/* -- requester.c -- */
void hca_requester_kick(hca_qp *qp);
void hca_requester_send(hca_event *event);
void hca_requester_response(hca_event *event); /* takes ownership of the event */
void hca_requester_timer(hca_event *event);
void hca_requester_rnr_over(hca_event *event);
void hca_requester_placed(hca_qp *qp);
/* Fails the oldest message, and with it the connection. */
void hca_requester_fail(hca_qp *qp, enum ibv_wc_status status);
uint8_t *hca_gather(const hca_wqe *wqe);

/* -- responder.c -- */
void hca_responder_request(hca_event *event); /* takes ownership of the event */
void hca_responder_placed(hca_qp *qp);
void hca_responder_fetch(hca_event *event); /* reads the other words of a read */
void hca_responder_drop_fetch(hca_qp *qp);

/* -- visibility.c -- */
/* Begins a copy. At its end it calls hca_requester_placed or hca_responder_placed. NULL: all bytes are visible at once (profile not torn,
 * region not relaxed). */
hca_visibility *hca_visibility_begin(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count, hca_qp *qp,
                           bool is_relaxed);
/* Begins a copy of a write that is acknowledged at once; adds it to qp->acked. */
void hca_visibility_begin_acked(const uint8_t *data, uint32_t bytes, const struct ibv_sge *there, hca_qp *qp);
/* What acknowledged writes of this queue pair have for [start, end) is visible on return. Later ones do not wait for earlier ones. */
void hca_visibility_settle(hca_qp *qp, uint64_t start, uint64_t end);
/* Begins to store an aligned word, always over some time. */
hca_visibility *hca_visibility_begin_word(uint64_t value, uint64_t addr, hca_qp *qp);
void hca_visibility_drop_acked(hca_qp *qp);
void hca_visibility_step(hca_event *event);
void hca_visibility_free(hca_visibility *place);
/* What the device has begun to write into [start, end) is visible on return: the memory is deregistered. */
void hca_visibility_end(hca_device *device, uint64_t start, uint64_t end);
void hca_visibility_now(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count);

/* -- ud.c -- */
void hca_ud_send(hca_qp *qp, hca_wqe *wqe);
void hca_ud_recv(hca_event *event);

/* -- cm.c -- */
void hca_cm_arrive(hca_event *event);
void hca_cm_kill(uint32_t process); /* the kernel destroys the ids of a process that has died */
uint32_t hca_cm_close(FILE *out); /* returns the number of leaked ids */

/* -- faults.c -- */
/* Called for each message of a connected queue pair: breaks it at random. False: do not send it. */
bool hca_faults_at(hca_qp *qp);
void hca_faults_flap(hca_event *event);
void hca_faults_watch(hca_device *device); /* called at each send to the device: its port may flap */

#endif

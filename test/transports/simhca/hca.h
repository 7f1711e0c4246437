/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hca: the simulated fabric's types, private to test/transports/simhca.
 *
 *   fabric    time, the heap of events, chance, counts                      fabric.c, profile.c
 *   device    hosts' devices, contexts, ports, GIDs, asynchronous events    device.c, query.c
 *   memory    protection domains, regions, keys, what may be pinned         memory.c
 *   window    memory windows: bound, granted, taken back                    mw.c
 *   cq        completion queues and channels                                cq.c
 *   srq       receive queues, shared or not                                 recv.c
 *   qp        queue pairs: their states and attributes                      qp.c, modify.c
 *   post      ibv_post_send: what is taken and what is refused              post.c
 *   request   the sending side of a connection: order, windows, retries     requester.c
 *   respond   the receiving side: what each operation does and answers      responder.c
 *   place     bytes that become visible line by line                        visibility.c
 *   datagram  UD                                                            ud.c
 *   cm        rdma_cm                                                       cm.c
 *   harm      breaks, flaps, deaths                                         faults.c
 *
 * Invariant: an event names queue pairs by device and number, never by pointer: what it is for may be gone, or another one may
 * have the number. All state is under hca_lock's lock. Everything random comes from hca.random, in an order that depends on the
 * calls only.
 */
#ifndef WEFT_SIMHCA_HCA_H
#define WEFT_SIMHCA_HCA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "test/transports/simhca/simhca.h"

#define HCA_GIDS 4
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
} hca_port;

struct hca_device {
    struct ibv_device base;
    uint32_t host, index;
    bool is_dead;
    bool is_deaf;              /* to rdma_cm */
    hca_port port;             /* one per device: number 1 */
    weft_list_link contexts;
    hca_qp **qps;              /* by number - HCA_QPN_FIRST */
    uint32_t qp_capacity, qp_count;
    struct hca_mr **mrs;       /* by key >> 8 */
    uint32_t mr_capacity, mr_count, ah_count;
    uint8_t *mr_tags;          /* the low byte of the next key in that place */
    struct hca_mw **mws;       /* by place */
    uint32_t mw_capacity;
};

enum hca_object { HCA_PD, HCA_MR, HCA_CQ, HCA_CHANNEL, HCA_SRQ, HCA_QP, HCA_AH, HCA_MW, HCA_OBJECTS };

struct hca_context {
    weft_list_link link;            /* in device->contexts */
    hca_device *device;
    uint32_t process;
    uint64_t pinned;
    uint32_t registered;       /* so far: the first ones, a library's own, are never refused by chance */
    weft_list_link events;          /* asynchronous, not yet taken */
    uint32_t objects[HCA_OBJECTS]; /* alive */
    weft_list_link pds, mrs, cqs, channels, srqs, qps, ahs, mws;
    bool never_blocks;         /* its descriptor of events was seen to be O_NONBLOCK: asked once, system calls are dear on some machines */
    struct verbs_context verbs; /* last: ends with struct ibv_context, where the library's users may look */
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
    uint32_t place, lkey, rkey; /* the user's copies are his to spoil */
    unsigned access;
    uint64_t iova, bytes;
    uint32_t mws;           /* bound to it */
} hca_mr;

typedef struct hca_mw {
    struct ibv_mw base;
    weft_list_link link;
    uint32_t place, rkey;
    hca_mr *mr;                 /* bound to; NULL: free */
    uint64_t qp_id;             /* whose peer may use it */
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
    uint64_t qp_id;            /* whose place in a queue the poll of it frees */
    uint64_t place;            /* sends: index in the send queue; receives: none */
    struct hca_rq *rq;
    bool is_recv;
} hca_cqe;

typedef struct hca_channel {
    struct ibv_comp_channel base;
    weft_list_link link;
    hca_cq **ready;            /* events that wait to be taken */
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
    uint32_t head, count, capacity; /* posted and not yet taken */
    uint32_t used;             /* posted, and not polled yet: what room bounds */
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
    bool is_sent, is_completed_early;     /* told: its completion was given before its answer came (profile.early) */
} hca_wqe;

typedef struct hca_saved {     /* an atomic's answer, for when it is asked again */
    uint64_t seq, value;
} hca_saved;

struct hca_qp {
    struct ibv_qp base;
    weft_list_link link;
    hca_device *device;
    hca_context *context;
    uint64_t id;               /* never given twice */
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    hca_device *remote;           /* that the address leads to; NULL: not found yet */
    bool sig_all;
    hca_rq own_rq, *rq;
    /* sending: places count up for ever; the ring is indexed modulo its room */
    hca_wqe *sq;
    uint32_t sq_ring;
    uint64_t head, sent, done, freed; /* next to post; next to send; oldest not completed; oldest whose place is not free */
    bool send_posted, is_waiting_rnr;
    uint32_t rnr_left, retries;
    uint64_t deadline;         /* for an answer; 0: none is awaited */
    bool timer_runs;           /* an event of the timer is under way; it looks at the deadline when it comes */
    uint64_t last_due;         /* of requests, so that they stay in order */
    uint32_t reads_out;
    int pending_break;         /* enum simhca_break_kind + 1, at the next message */
    bool is_mute;              /* nothing that it sends arrives */
    bool ack_mute;             /* no answer reaches it */
    bool flush_posted;
    bool was_established, was_last_early;
    weft_list_link answers;         /* responses that wait for one that is being placed */
    hca_visibility *reading;
    /* receiving */
    uint64_t expected;
    uint64_t answer_due;
    weft_list_link requests;        /* arrived, wait for one that is being placed */
    hca_visibility *writing;
    hca_event *writing_for;    /* what is being placed ... */
    struct ibv_wc writing_wc;  /* ... and the receive that it ends, when takes_recv */
    bool takes_recv;
    hca_saved saved[16];
};

/* -- events -- */
enum hca_event_kind { HCA_SEND, HCA_REQUEST, HCA_ANSWER, HCA_TIMER, HCA_RNR_OVER, HCA_VISIBILITY, HCA_FLUSH, HCA_UD, HCA_FLAP, HCA_CM };
enum hca_answer_kind { HCA_ACK, HCA_RNR_NAK, HCA_NAK };

typedef struct hca_address {   /* of a queue pair, on the wire */
    hca_device *device;
    uint32_t qpn, psn;
} hca_address;

struct hca_event {
    weft_list_link link;            /* in a queue of a queue pair */
    uint64_t due, order;
    enum hca_event_kind kind;
    hca_address from, to;      /* `to` is whose event it is */
    uint64_t id;               /* of the queue pair, for events of its own */
    uint64_t seq;              /* of the message; of a timer its generation */
    enum ibv_wr_opcode opcode;
    unsigned flags;
    __be32 imm;
    uint32_t rkey, length, mtu, reads_out;
    uint64_t remote, compare, swap;
    enum hca_answer_kind answer;
    enum ibv_wc_status status; /* of a NAK, as the requester will see it */
    uint64_t value;            /* atomics */
    uint32_t qkey;
    bool is_reading;           /* PLACE: at the requester */
    uint8_t *body;
};

/* A copy into memory that is under way. */
struct hca_visibility {
    uint8_t *data;
    struct ibv_sge *sges;      /* where to; lkeys were checked */
    uint32_t count;
    uint32_t bytes, lines, at, step, steps;
    uint32_t head;             /* bytes of the first line */
    uint32_t *order;           /* of lines; NULL: as they come */
};

typedef struct hca_fabric {
    bool is_open;
    simhca_profile profile;
    uint64_t seed, random[2], now, next_order, next_id;
    uint32_t process, per_host;
    bool purges;               /* destroying a queue pair takes its completions out of the queue, as some drivers do */
    hca_event **heap;
    uint32_t heap_count, heap_capacity;
    hca_device **devices;      /* of all hosts: host * profile.devices + index */
    uint32_t device_count, device_capacity;
    weft_list_link cm_channels, cm_ids; /* cm.c */
    uint64_t cm_last;
    uint64_t counts[SIMHCA_COUNT_LAST];
    void (*pass)(void *arg, uint64_t ns);
    void *pass_arg;
    uint32_t dull;             /* empty polls in a row */
    uint32_t left[HCA_OBJECTS + 1]; /* objects that closed contexts left, and contexts, for simhca_close */
} hca_fabric;

extern hca_fabric hca;

/* -- fabric.c -- */
void hca_lock(void);
void hca_unlock(void);
/* Opens the fabric by the environment if nobody has. */
void hca_open_default(void);
uint64_t hca_random(void);
bool hca_chance(uint32_t part, uint32_t of);
uint64_t hca_delay(uint32_t max, uint64_t bytes);
hca_event *hca_event_new(enum hca_event_kind kind);
void hca_event_free(hca_event *event);
void hca_event_post(hca_event *event, uint64_t due);
void hca_advance(uint64_t now);
/* A call costs time; called without the lock. */
void hca_spend(uint64_t ns, bool was_empty);
void hca_ring(int fd);
/* What the real library would punish by a hang or by corruption: says it and ends the program. */
void hca_misuse(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* -- device.c -- */
hca_device *hca_device_at(uint32_t host, uint32_t index);
void hca_device_free(hca_device *device);
static inline hca_context *hca_context_of(struct ibv_context *context)
{
    return (hca_context *)((char *)context - offsetof(hca_context, verbs.context));
}
void hca_report_event(hca_context *context, enum ibv_event_type type, void *element, int port);
void hca_context_drop(hca_context *context); /* without asking what is still open */
/* Forgets events about an object that goes; complains about events that were taken and not acknowledged. */
void hca_async_forget(hca_context *context, const void *element);
hca_port *hca_port_of(struct ibv_context *context, uint32_t number);
/* -- query.c -- */
void hca_verbs_fill(hca_context *context);
uint32_t hca_limit(uint32_t of_profile, uint32_t plenty);

/* -- memory.c -- */
/* The region of a key when it covers [addr, addr + bytes), is of this domain and grants `access`; else NULL. */
hca_mr *hca_mr_of(hca_device *device, struct ibv_pd *pd, uint32_t key, bool is_remote, uint64_t addr, uint64_t bytes,
                  unsigned access);
bool hca_sges_ok(hca_device *device, struct ibv_pd *pd, const struct ibv_sge *sges, uint32_t count, unsigned access);
void hca_mr_free(hca_mr *mr);

/* -- mw.c -- */
void hca_mw_fill(struct ibv_context_ops *ops);
void hca_mw_free(hca_mw *mw);
static inline bool hca_is_mw_work(enum ibv_wr_opcode opcode) { return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV; }
/* Does what a request of this kind asks for; false: it is wrong. */
bool hca_mw_execute(hca_qp *qp, const hca_wqe *wqe);
/* May the peer of this queue pair do that by this key? */
bool hca_mw_allows(const hca_qp *qp, uint32_t key, uint64_t addr, uint64_t bytes, unsigned access);
bool hca_has_mws(const hca_qp *qp);

/* -- cq.c -- */
int hca_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int hca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void hca_cq_add(hca_cq *cq, const hca_cqe *cqe, bool is_solicited);
/* Takes a queue pair's completions out. */
void hca_cq_purge(hca_cq *cq, uint64_t qp_id);
/* A receive queue goes: completions that are still there free no place of it. */
void hca_cq_forget_rq(hca_context *context, const hca_rq *rq);
void hca_cq_free(hca_cq *cq);
void hca_channel_free(hca_channel *channel);

/* -- recv.c -- */
bool hca_rq_open(hca_rq *rq, uint32_t room, uint32_t max_sge);
void hca_rq_close(hca_rq *rq);
int hca_rq_post(hca_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* The next posted receive; false when there is none. It stays valid until the next call on this queue. */
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
/* To ERR: what is posted will be flushed. `event` is told when it is not -1. */
void hca_qp_error(hca_qp *qp, int event);
void hca_qp_flush(hca_event *event);
hca_device *hca_remote_device(hca_qp *qp);
/* The device that an address leads to from this one; NULL when there is none. */
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
void hca_requester_response(hca_event *event); /* takes the event over */
void hca_requester_timer(hca_event *event);
void hca_requester_rnr_over(hca_event *event);
void hca_requester_placed(hca_qp *qp);
/* The oldest message ends in error, and with it the connection. */
void hca_requester_fail(hca_qp *qp, enum ibv_wc_status status);
uint8_t *hca_gather(const hca_wqe *wqe);

/* -- responder.c -- */
void hca_responder_request(hca_event *event); /* takes the event over */
void hca_responder_placed(hca_qp *qp);

/* -- visibility.c -- */
/* Begins to copy. All is placed at once when nothing is torn: then NULL. */
hca_visibility *hca_visibility_begin(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count, hca_qp *qp,
                           bool is_reading);
void hca_visibility_step(hca_event *event);
void hca_visibility_free(hca_visibility *place);
void hca_visibility_now(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count);

/* -- ud.c -- */
void hca_ud_send(hca_qp *qp, hca_wqe *wqe);
void hca_ud_recv(hca_event *event);

/* -- cm.c -- */
void hca_cm_arrive(hca_event *event);
uint32_t hca_cm_close(FILE *out); /* how many ids were left */

/* -- faults.c -- */
/* At each message of a connected queue pair: breaks it by chance. False when it is not to be sent. */
bool hca_faults_at(hca_qp *qp);
void hca_faults_flap(hca_event *event);
void hca_faults_watch(hca_device *device); /* something is sent there: its port may flap */

#endif

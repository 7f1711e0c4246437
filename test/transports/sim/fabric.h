/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fabric: the simulated network between ifaces: nics (one per proc id), flows (one per ordered pair), events in virtual time. Private to
 * test/transports/sim.
 * Invariant: all random numbers come from the fabric's generator, in an order that depends on the calls only, so equal seeds and programs
 * give equal runs.
 */
#ifndef WEFT_SIM_FABRIC_H
#define WEFT_SIM_FABRIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macros.h"
#include "transport/inproc_shmem.h"
#include "transport/rkey_table.h"
#include "transport/iface.h"
#include "test/transports/sim/sim.h"

typedef struct sim_nic sim_nic;
typedef struct sim_flow sim_flow;

#define SIM_RAILS_MAX 8
#define SIM_WHOLE 255

enum sim_event_kind { SIM_FRAME, SIM_GET, SIM_PUT, SIM_AMO, SIM_FLUSH, SIM_DONE, SIM_NOTIFY, SIM_PEER_FAILED, SIM_RETRY };

typedef struct sim_event {
    weft_list_link link;      /* in the receiver's ready list, once due */
    weft_list_link pending;   /* puts and amos: in flow->pending until done */
    uint64_t due, seq;   /* virtual time; order of creation */
    enum sim_event_kind kind, was; /* was: kind of the op that a DONE completes */
    uint8_t step;        /* of an rma op that moves line by line, from 0; else SIM_WHOLE */
    uint8_t rail;
    sim_flow *flow;      /* from the poster to the target; PEER_FAILED: from the failed nic to the notified one */
    weft_rma rma;
    weft_rkey rkey, local_key;
    weft_atomic atomic;
    weft_list_link changing;  /* AMO by a device: in sim->changing until it has stored ... */
    uint64_t after;           /* ... this */
    bool has_region;
    int rc;              /* DONE */
    uint64_t hash;       /* DONE of a zcopy body: its hash at the send */
    void *done;
    void *bounce;        /* bytes of a get between the remote read and the local write */
    weft_hdr hdr;      /* FRAME */
    _Alignas(8) uint8_t body[];
} sim_event;

/* Everything that one nic posts to another. */
struct sim_flow {
    sim_nic *from, *to;
    weft_ep ep;          /* from's ep to `to`, as returned by ep_open */
    bool is_open, is_failed;   /* open: between ep_open and ep_close; failed: callbacks.peer_failed was called */
    bool failed_posted;
    bool is_cut;             /* the connection is broken: nothing arrives */
    uint64_t missing_seq;    /* frame at which the connection broke: no later one arrives; 0: none */
    uint32_t frames;         /* unpolled by `to` */
    uint32_t frames_in_flight;  /* not yet due */
    uint64_t received_seq;   /* highest seq of a frame that `to` has polled */
    uint32_t rma_ops;          /* posted, completion not polled */
    uint64_t last_frame_due, last_rail_due[SIM_RAILS_MAX];
    uint64_t newest_rma;    /* highest seq of an rma op that began to move */
    weft_list_link pending;       /* puts and amos, in order of posting */
};

struct sim_nic {
    weft_sim *sim;
    weft_proc_id proc_id;
    uint32_t index;
    weft_iface *iface;         /* NULL before open and after close */
    bool is_dead;
    sim_flow **flows;        /* by the index of the other nic */
    uint32_t flow_capacity;
    weft_list_link ready;         /* events that are due, in order */
    uint32_t armed, wakeup;
    uint32_t storm_left;
    bool wants, retry_posted; /* a call returned AGAIN: raise the wakeup when it can be retried */
    uint64_t calls;          /* iface ops called, for weft_sim_kill_at */
    uint64_t newest;         /* highest seq that became ready */
    uint32_t rma_ops;          /* of all flows */
    uint64_t link_free[SIM_RAILS_MAX]; /* time at which a transfer posted now would begin */
    uint32_t arms_left;      /* arms that still return AGAIN */
    weft_rkey_table keys;
    pthread_mutex_t pin_lock; /* mr_reg and mr_dereg, by any thread */
    uint64_t debt_ns;        /* cost of registrations by other threads; atomic, charged to the next poll */
};

struct weft_sim {
    weft_sim_profile profile;
    pthread_t thread;                        /* thread whose calls draw random numbers and advance time */
    uint64_t seed, random[2];
    uint64_t now, next_seq;
    sim_event **heap; /* by due, then seq */
    uint32_t heap_count, heap_capacity;
    sim_nic **nics;
    uint32_t nic_count, nic_capacity;
    weft_inproc_shmem blocks;
    uint64_t counts[WEFT_SIM_COUNT_LAST];
    weft_list_link changing;                 /* sim_event: atomics of devices that have read and not stored */
    bool is_sound;                           /* bit flips are suspended */
    bool kill_armed;
    uint32_t kill_rank;
    uint64_t kill_step;
    uint64_t activity;                       /* grows with each posted or delivered event */
    /* Set by a run. idle: a poll was empty. died: a rank died (does not return inside that rank's fibre). */
    void (*idle)(void *arg);
    void (*died)(void *arg, uint32_t rank);
    void (*busy)(void *arg, uint64_t ns); /* the running rank is busy for this time; NULL: virtual time advances for all */
    void *hook_arg;
};

uint64_t sim_random(weft_sim *sim);
/* True in `permille` of 1,000 draws. */
bool sim_chance(weft_sim *sim, uint32_t permille);

/* As sim_chance, for a bit flip: false while flips are suspended. */
bool sim_flips(weft_sim *sim, uint32_t permille);

/* The nic of a proc id, created if needed; NULL: out of memory. */
sim_nic *sim_nic_of(weft_sim *sim, const weft_proc_id *proc_id);
sim_flow *sim_flow_of(sim_nic *from, sim_nic *to);

sim_event *sim_event_new(sim_flow *flow, enum sim_event_kind kind, uint32_t body_bytes);
void sim_event_free(sim_event *event);
/* Schedules the event after a delay; keeps the order of frames in ordered flows. WEFT_E_NOMEM frees the event. */
int sim_event_post(weft_sim *sim, sim_event *event);
/* Schedules callbacks.peer_failed on the ep of `told`, after all frames in flight. */
void sim_failed_post(weft_sim *sim, sim_flow *told);

/* Raises the wakeup of a nic whose call returned AGAIN: it can be retried. */
void sim_wake_blocked(sim_nic *nic);
/* Schedules sim_wake_blocked after a delay. */
void sim_retry_post(weft_sim *sim, sim_nic *nic);

/* Advances virtual time and processes the events due by then. */
void sim_advance(weft_sim *sim, uint64_t by_ns);
/* Time of the next event; UINT64_MAX: none is pending. */
uint64_t sim_next_due(const weft_sim *sim);
/* The running rank is busy for this time; the network is not. */
void sim_spend(weft_sim *sim, uint64_t ns);
/* Adds an event to the nic's ready list, where its poll finds it. */
void sim_make_ready(sim_nic *nic, sim_event *event);
/* Breaks a pair's connection for good, in both directions: some of the last frames are lost, and both sides get peer_failed. */
void sim_cut(weft_sim *sim, sim_flow *flow);

/* -- shared by the files of the iface -- */

typedef struct sim_iface {
    weft_iface iface;
    sim_nic *nic;
} sim_iface;

static inline sim_nic *sim_nic_at(weft_iface *iface) { return ((sim_iface *)iface)->nic; }
static inline sim_flow *sim_flow_at(weft_ep *ep) { return weft_container(ep, sim_flow, ep); }
static inline bool sim_is_own_thread(const weft_sim *sim) { return pthread_equal(sim->thread, pthread_self()); }

/* Begins each iface op: where a rank may die. */
weft_sim *sim_enter(sim_nic *nic);
/* Returns AGAIN; whatever may let the call succeed then raises the wakeup. */
int sim_again(weft_sim *sim, sim_nic *nic);
/* Is the call within a series of refusals? Then it has returned AGAIN. */
bool sim_is_refused(weft_sim *sim, sim_nic *nic);
/* First check of all data transfer ops: 0, AGAIN or an error. */
int sim_may_post(weft_sim *sim, sim_flow *flow);

/* memory.c */
int sim_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int sim_mr_dereg(weft_iface *iface, weft_mr *mr);
int sim_share(weft_iface *iface, uint64_t bytes, weft_shared *shared);
int sim_unshare(weft_iface *iface, weft_shared *shared);

/* amo.c */
/* One step of an amo at the target; operand becomes the value before. */
void sim_amo_step(weft_sim *sim, sim_event *event, bool is_last);
int sim_amo_self(weft_iface *iface, const weft_atomic *atomics, uint32_t count);

/* rma.c */
bool sim_can_rma(weft_iface *iface, weft_ep *ep);
int sim_get(weft_iface *iface, weft_ep *ep, const weft_rma *what);
int sim_put(weft_iface *iface, weft_ep *ep, const weft_rma *what);
int sim_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic);
int sim_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done);
/* Performs a get, put, amo or flush at the target. */
void sim_access_memory(weft_sim *sim, sim_event *event);
/* Completes it at the initiator. */
void sim_end_rma(weft_iface *iface, sim_event *event);

#endif

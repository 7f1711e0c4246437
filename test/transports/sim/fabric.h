/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fabric: what lies between the simulator's ifaces: nics (one per name), flows (one per ordered pair), events in virtual
 * time. Private to test/transports/sim.
 * Invariant: everything random is drawn from the fabric's own generator, in an order that depends on the calls only, so the same
 * seed and the same program give the same run.
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
    weft_list_link pending;   /* puts and amos in flow->pending until they are done */
    uint64_t due, seq;   /* virtual time; order of making */
    enum sim_event_kind kind, was; /* was: of a DONE, what ended */
    uint8_t step;        /* of a move that crosses line by line, from 0; else SIM_WHOLE */
    uint8_t rail;
    sim_flow *flow;      /* from who posted it to whom; LOST: from the dead one to who is told */
    weft_rma rma;
    weft_rkey rkey, local_key;
    weft_atomic atomic;
    bool has_region;
    int rc;              /* DONE */
    uint64_t hash;       /* DONE of a body that was held */
    void *done;
    void *bounce;        /* a get's bytes between reading there and writing here */
    weft_hdr hdr;      /* FRAME */
    _Alignas(8) uint8_t body[];
} sim_event;

/* Everything that one nic posts towards another. */
struct sim_flow {
    sim_nic *from, *to;
    weft_ep ep;          /* from's ep to `to`; what the contract's users hold */
    bool is_open, is_failed;   /* ep given out and not left; callbacks.peer_failed was told on it */
    bool failed_posted;
    bool is_cut;             /* nothing gets through any more */
    uint64_t missing_seq;    /* the frame that broke the way: none behind it arrives; 0: none */
    uint32_t frames;         /* not yet polled by `to` */
    uint32_t frames_in_flight;  /* not yet due */
    uint32_t rma_ops;          /* posted and their done not yet polled */
    uint64_t last_frame_due, last_rail_due[SIM_RAILS_MAX];
    uint64_t newest_rma;    /* highest seq of a move that began to cross */
    weft_list_link pending;       /* puts and amos, in order of posting */
};

struct sim_nic {
    weft_sim *sim;
    weft_proc_id proc_id;
    uint32_t index;
    weft_iface *iface;         /* NULL before open and after close */
    bool is_dead;
    sim_flow **flows;        /* by the other's index */
    uint32_t flow_capacity;
    weft_list_link ready;         /* events that are due, in that order */
    uint32_t armed, wakeup;
    uint32_t storm_left;
    bool wants, retry_posted; /* a call was refused: ring when it may be tried again */
    uint64_t calls;          /* of the contract, for kill_at */
    uint64_t newest;         /* highest seq that became ready */
    uint32_t rma_ops;          /* of all flows */
    uint64_t link_free[SIM_RAILS_MAX]; /* when what it sends now would begin to cross */
    uint32_t arms_left;      /* arms that are still to be refused in a row */
    weft_rkey_table keys;
    pthread_mutex_t pin_lock; /* map and unmap, by whatever thread */
    uint64_t debt_ns;        /* what other threads' maps cost; atomic, paid by poll */
};

struct weft_sim {
    weft_sim_profile profile;
    pthread_t thread;                        /* whose calls draw and move time */
    uint64_t seed, random[2];
    uint64_t now, next_seq;
    sim_event **heap; /* by due, then seq */
    uint32_t heap_count, heap_capacity;
    sim_nic **nics;
    uint32_t nic_count, nic_capacity;
    weft_inproc_shmem blocks;
    uint64_t counts[WEFT_SIM_COUNT_LAST];
    bool is_sound;                           /* no bit is flipped for now */
    bool kill_armed;
    uint32_t kill_rank;
    uint64_t kill_step;
    uint64_t activity;                       /* grows whenever anything is posted or handed up */
    /* Set by a run: a poll that found nothing; a rank that just died (does not return inside that rank's fibre). */
    void (*idle)(void *arg);
    void (*died)(void *arg, uint32_t rank);
    void (*busy)(void *arg, uint64_t ns); /* the rank that runs stands still so long; NULL: everybody does */
    void *hook_arg;
};

uint64_t sim_random(weft_sim *sim);
/* True in `permille` of 1,000 draws. */
bool sim_chance(weft_sim *sim, uint32_t permille);

/* The same of a bit that is to be flipped: not while the network is sound. */
bool sim_flips(weft_sim *sim, uint32_t permille);

/* The nic of a name, made if need be; NULL when out of memory. */
sim_nic *sim_nic_of(weft_sim *sim, const weft_proc_id *proc_id);
sim_flow *sim_flow_of(sim_nic *from, sim_nic *to);

sim_event *sim_event_new(sim_flow *flow, enum sim_event_kind kind, uint32_t body_bytes);
void sim_event_free(sim_event *event);
/* Lets it happen after a delay; frames of an ordered flow stay in order. WEFT_E_NOMEM frees the event. */
int sim_event_post(weft_sim *sim, sim_event *event);
/* Tells the owner of `told`'s ep that its peer is dead, after all frames that are under way. */
void sim_failed_post(weft_sim *sim, sim_flow *told);

/* Rings whoever was refused: it may try again. */
void sim_wake_blocked(sim_nic *nic);
/* Has it stirred after a while. */
void sim_retry_post(weft_sim *sim, sim_nic *nic);

/* Lets virtual time pass and everything happen that is due by then. */
void sim_advance(weft_sim *sim, uint64_t by_ns);
/* When the next event is due; UINT64_MAX when nothing is under way. */
uint64_t sim_next_due(const weft_sim *sim);
/* Whoever runs stands still so long, the network does not. */
void sim_spend(weft_sim *sim, uint64_t ns);
/* Hands an event to whom it is for: its poll will find it. */
void sim_make_ready(sim_nic *nic, sim_event *event);
/* Breaks a pair's way for good, both directions: some of the last frames never come, and both sides are told. */
void sim_cut(weft_sim *sim, sim_flow *flow);

/* -- what the iface's rooms share -- */

typedef struct sim_iface {
    weft_iface iface;
    sim_nic *nic;
} sim_iface;

static inline sim_nic *sim_nic_at(weft_iface *iface) { return ((sim_iface *)iface)->nic; }
static inline sim_flow *sim_flow_at(weft_ep *ep) { return weft_container(ep, sim_flow, ep); }
static inline bool sim_is_own_thread(const weft_sim *sim) { return pthread_equal(sim->thread, pthread_self()); }

/* Each call of the contract passes here: the place where a rank may die. */
weft_sim *sim_enter(sim_nic *nic);
/* Answers AGAIN: from now on whatever may let the call through raises the wakeup, so that one may sleep on it. */
int sim_again(weft_sim *sim, sim_nic *nic);
/* Is a call in the middle of a storm of refusals? Then it was told AGAIN. */
bool sim_is_refused(weft_sim *sim, sim_nic *nic);
/* What all calls that move bytes ask first: 0, AGAIN or an error. */
int sim_may_post(weft_sim *sim, sim_flow *flow);

/* memory.c */
int sim_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int sim_mr_dereg(weft_iface *iface, weft_mr *mr);
int sim_share(weft_iface *iface, uint64_t bytes, weft_shared *shared);
int sim_unshare(weft_iface *iface, weft_shared *shared);

/* rma.c */
bool sim_can_rma(weft_iface *iface, weft_ep *ep);
int sim_get(weft_iface *iface, weft_ep *ep, const weft_rma *what);
int sim_put(weft_iface *iface, weft_ep *ep, const weft_rma *what);
int sim_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic);
int sim_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done);
/* A get, put, amo or flush is due at the other side. */
void sim_access_memory(weft_sim *sim, sim_event *event);
/* Its end came home. */
void sim_end_rma(weft_iface *iface, sim_event *event);

#endif

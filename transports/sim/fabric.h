/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fabric: what lies between the simulator's ports: endpoints (one per name), flows (one per ordered pair), events in virtual
 * time. Private to transports/sim.
 * Invariant: everything random is drawn from the fabric's own generator, in an order that depends on the calls only, so the same
 * seed and the same program give the same run.
 */
#ifndef WEFT_SIM_FABRIC_H
#define WEFT_SIM_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "transport/keyring.h"
#include "transport/port.h"
#include "transports/sim/sim.h"

typedef struct sim_endpoint sim_endpoint;
typedef struct sim_flow sim_flow;

enum sim_event_kind { SIM_FRAME, SIM_GET, SIM_PUT, SIM_AMO, SIM_FLUSH, SIM_DONE, SIM_NOTIFY, SIM_LOST, SIM_RETRY };

typedef struct sim_event {
    weft_link link;      /* in the receiver's ready list, once due */
    weft_link pending;   /* puts and amos in flow->pending until they are done */
    uint64_t due, seq;   /* virtual time; order of making */
    enum sim_event_kind kind, was; /* was: of a DONE, what ended */
    bool is_half;        /* of a torn put: the later half stands there already */
    sim_flow *flow;      /* from who posted it to whom; LOST: from the dead one to who is told */
    weft_move move;
    weft_key key, local_key;
    weft_atomic atomic;
    bool has_region;
    int rc;              /* DONE */
    void *done;
    void *bounce;        /* a get's bytes between reading there and writing here */
    weft_head head;      /* FRAME */
    _Alignas(8) uint8_t body[];
} sim_event;

/* Everything that one endpoint posts towards another. */
struct sim_flow {
    sim_endpoint *from, *to;
    weft_path path;          /* from's path to `to`; what the contract's users hold */
    bool is_open, is_lost;   /* path given out and not left; up.lost was told on it */
    bool lost_posted;
    uint32_t frames;         /* not yet polled by `to` */
    uint32_t frames_flying;  /* not yet due */
    uint32_t moves;          /* posted and their done not yet polled */
    uint64_t last_frame_due;
    weft_link pending;       /* puts and amos, in order of posting */
};

struct sim_endpoint {
    weft_sim *sim;
    weft_name name;
    uint32_t index;
    weft_port *port;         /* NULL before open and after close */
    bool is_dead;
    sim_flow **flows;        /* by the other's index */
    uint32_t flow_room;
    weft_link ready;         /* events that are due, in that order */
    uint32_t armed, bell;
    uint32_t storm_left;
    bool wants, retry_posted; /* a call was refused: ring when it may be tried again */
    uint64_t calls;          /* of the contract, for kill_at */
    uint64_t newest;         /* highest seq that became ready */
    weft_keyring keys;
};

typedef struct sim_block { /* memory made by share */
    weft_link link;
    void *addr;
    uint64_t bytes, handle;
    uint32_t refs;
} sim_block;

struct weft_sim {
    weft_sim_profile profile;
    uint64_t seed, random[2];
    uint64_t now, next_seq;
    sim_event **heap; /* by due, then seq */
    uint32_t heap_count, heap_room;
    sim_endpoint **endpoints;
    uint32_t endpoint_count, endpoint_room;
    weft_link blocks;
    uint64_t next_handle;
    uint64_t counts[WEFT_SIM_COUNT_LAST];
    bool kill_armed;
    uint32_t kill_rank;
    uint64_t kill_step;
    uint64_t activity;                       /* grows whenever anything is posted or handed up */
    /* Set by a run: a poll that found nothing; a rank that just died (does not return inside that rank's fibre). */
    void (*idle)(void *arg);
    void (*died)(void *arg, uint32_t rank);
    void *hook_arg;
};

uint64_t sim_random(weft_sim *sim);
/* True in `permille` of 1,000 draws. */
bool sim_chance(weft_sim *sim, uint32_t permille);

/* The endpoint of a name, made if need be; NULL when out of memory. */
sim_endpoint *sim_endpoint_of(weft_sim *sim, const weft_name *name);
sim_flow *sim_flow_of(sim_endpoint *from, sim_endpoint *to);

sim_event *sim_event_new(sim_flow *flow, enum sim_event_kind kind, uint32_t body_bytes);
void sim_event_free(sim_event *event);
/* Lets it happen after a delay; frames of an ordered flow stay in order. WEFT_E_NOMEM frees the event. */
int sim_event_post(weft_sim *sim, sim_event *event);
/* Tells the owner of `told`'s path that its peer is dead, after all frames that are under way. */
void sim_lost_post(weft_sim *sim, sim_flow *told);

/* Rings whoever was refused: it may try again. */
void sim_stir(sim_endpoint *endpoint);
/* Has it stirred after a while. */
void sim_retry_post(weft_sim *sim, sim_endpoint *endpoint);

/* Lets virtual time pass and everything happen that is due by then. */
void sim_advance(weft_sim *sim, uint64_t by_ns);
/* When the next event is due; UINT64_MAX when nothing is under way. */
uint64_t sim_next_due(const weft_sim *sim);
/* Performs a get's first half, a put or an amo at once; what the event's DONE will say. */
int sim_perform(sim_event *event);

#endif

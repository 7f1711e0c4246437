/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run: state of weft_sim_run that the simulated boots need: the running rank and how to wait. Private to test/transports/sim.
 */
#ifndef WEFT_SIM_RUN_H
#define WEFT_SIM_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/world.h"
#include "launch/boot.h"
#include "test/transports/sim/fabric.h"
#include "test/transports/sim/fibre.h"

enum sim_rank_state { SIM_READY, SIM_ASLEEP, SIM_BUSY, SIM_OVER, SIM_DEAD }; /* BUSY: until wake_ns, whatever raises its wakeup */

typedef struct sim_run sim_run;

typedef struct sim_rank {
    sim_run *run;
    uint32_t rank;
    weft_fibre *fibre;
    enum sim_rank_state state;
    const weft_wakeup *wakeups; /* while asleep */
    uint32_t wakeup_count;
    uint64_t wake_ns;       /* virtual; asleep and busy */
    bool has_timer;         /* the sleep's end is the timer of an iface */
    bool by_limit;          /* the last sleep was ended by its limit */
    bool is_slow;           /* by seed: this rank is rarely scheduled */
    uint64_t calls;         /* iface ops called, on another network */
    uint64_t rings_seen;    /* value of net->rings when the descriptors were last silent */
    uint32_t dull;          /* empty polls in a row */
    bool is_aside;          /* acts for its helper thread: no time is charged to the rank */
    uint64_t aside_ns;      /* time that it has charged to the helper so */
    uint64_t helper_free_ns; /* when the helper has done all */
    uint64_t *helper_done;  /* [helper_count], in order: when it has done each piece of work; the end of a sleep removes those past */
    uint32_t helper_count, helper_room;
    weft_world *world, *model; /* its weft_world_now and weft_world_model while other ranks run */
    weft_boot_state boot_state; /* its *weft_boot_now */
    void (*exit_call)(void); /* called when its program has returned; NULL: none */
    const char *waits_for;  /* set inside a boot's call; else NULL */
    int code;
} sim_rank;

struct sim_run {
    const weft_sim_config *config;
    int (*program)(int rank, void *arg);
    void *arg;
    weft_sim *sim;
    sim_rank *ranks;
    sim_rank *now;          /* the running rank; NULL: the scheduler */
    uint32_t *node_of, *local_of;
    uint32_t *stages;            /* enum weft_rank_state of each rank, as its boot was told */
    weft_list_link pairs;        /* keys and values that boots have put */
    uint32_t fence_came, fence_generation;
    uint64_t steps, quiet_since, last_activity;
    uint32_t idle_rounds;
    bool is_aborted;
    int abort_code;
    char text[512];
};

/* The boot of the running rank; NULL: none runs. */
weft_boot *sim_boot_new(void);
void sim_pairs_free(sim_run *run);
/* The run of this process, or NULL. */
sim_run *sim_run_now(void);
/* Switches to the scheduler; `waits_for` is the reason, for the report of a deadlock. */
void sim_run_yield(sim_run *run, const char *waits_for);
/* Ends the whole run; does not return. */
void sim_run_abort(sim_run *run, int code, const char *text) __attribute__((noreturn));
extern const weft_sleep_ops sim_rest;

#endif

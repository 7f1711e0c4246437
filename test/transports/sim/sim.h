/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim: many worlds in one process, on a network that is made of a seed. Delay, reordering where the contract allows it, refusals,
 * narrow queues, torn writes, bit flips, pin limits and the death of a rank all follow from (profile, seed), so a failing seed
 * replays exactly. For tests only: it is no part of the library that programs link.
 *
 *   fabric   what lies between ifaces: give it as env.segment to weft_sim_ops.open; virtual time, events, faults, counts
 *   run      ranks as fibres over one fabric: weft_sim_run
 */
#ifndef WEFT_SIM_SIM_H
#define WEFT_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/iface.h"

extern const weft_iface_ops weft_sim_ops;

/* What the network does to its users. Zero of a limit means none, or the default named. */
typedef struct weft_sim_profile {
    const char *name;
    uint32_t delay_ns;            /* an event takes 1..delay_ns */
    uint32_t again_permille;      /* a send, get, put or amo meets a storm of refusals ... */
    uint32_t storm_max;           /* ... of 1..storm_max calls */
    uint32_t flow_frames;         /* frames to one peer that it has not polled; 0: 1,024 */
    uint32_t flow_rma;          /* gets, puts, amos to one peer under way; 0: 256 */
    uint32_t blind_permille;      /* polls that find nothing although something is there (never while armed) */
    uint32_t prompt_permille;     /* moves that end inside the call */
    uint32_t flip_permille;       /* frames of which one bit of the body is wrong */
    uint32_t reg_refuse_permille; /* maps that fail with WEFT_E_NOMEM */
    bool wants_regcache;                    /* caps says so: maps are worth caching ... */
    uint32_t pin_ns, pin_page_ns; /* ... for each region and page that is mapped the rank stands still so long */
    uint64_t mr_bytes_max;           /* what one iface may have mapped: past it WEFT_E_NOMEM; 0: no limit */
    uint32_t mr_count_max;         /* in so many regions: past it WEFT_E_NOSPACE; 0: no limit */
    bool limits_in_caps;             /* both limits stand in caps */
    uint32_t frame_max;           /* 0: 4,096 */
    uint32_t inline_max;
    uint32_t frag;                /* caps.frag */
    uint32_t rma_frag;          /* 0: a device moves */
    uint64_t rma_max;            /* 0: 1 GiB */
    uint32_t zcopy_min;            /* caps.zcopy_min: of bodies that are given to be held ... */
    uint32_t zcopy_permille;       /* ... so many are, for a while; the rest is copied at once */
    bool unordered;               /* frames of a pair may overtake each other, and caps says so */
    bool mr_local;
    bool torn;                    /* gets and puts cross line by line: at several moments, in any order of lines */
    uint8_t rails;                /* moves are spread over so many links, in order on each; 0: in any order */
    uint32_t flap_every_ns, flap_ns; /* each link (frames: the first) halts so often, so long; then all of it arrives */
    uint32_t queue;               /* moves of one iface whose end it has not polled: past that AGAIN; 0: no limit */
    uint32_t unrung_permille;     /* arrivals that ring no wakeup, as is allowed where ... */
    uint32_t timer_ns;            /* ... the wakeup says to look within so long; 0: no timer */
    uint32_t arm_again_permille;  /* arms that must be asked again, up to four times */
    uint32_t link_mbyte_per_s;    /* each link carries so much, one thing after another; 0: anything, at once */
    uint32_t copy_mbyte_per_s;    /* a CPU copies bodies into frames and out of them so fast; 0: in no time */
    uint32_t cut_permille;        /* frames and moves at which the way to the peer breaks for good: both are told `lost` */
    bool no_get, no_put, no_notify, no_share;
    bool one_way;                 /* ranks of odd number may move nothing, as where the kernel refuses it: see can_move */
    bool keyless;                 /* memory is reached by its address alone, as a neighbour's is by the kernel */
    enum weft_amo_domain amo;
    /* what no contract allows, to show that tests notice: frames that vanish or come twice, arrivals that ring nothing */
    uint32_t lose_permille, twice_permille, deaf_permille;
    uint32_t flip_hdr_permille;  /* frames of which one bit of the header, or of an RTS or CTS, is wrong */
    uint32_t flip_rma_permille;  /* gets and puts of which one bit arrives wrong */
} weft_sim_profile;

/* By name: calm slow storm narrow shuffled torn copyonly pinched tiny wild kernel grudging lopsided
 * holding pinning scarce starved rails flapping pressed ticking hca priced breaking, flipped spoiled tainted scrawled lossy
 * doubled deaf. */
const weft_sim_profile *weft_sim_profile_find(const char *name);
/* All of them, for tests that try each; ends with name NULL. */
extern const weft_sim_profile weft_sim_profiles[];

enum weft_sim_count {
    WEFT_SIM_FRAMES, WEFT_SIM_RMA, WEFT_SIM_REFUSED, WEFT_SIM_DELAYED, WEFT_SIM_REORDERED, WEFT_SIM_BLIND, WEFT_SIM_TORN,
    WEFT_SIM_FLIPPED, WEFT_SIM_KEYS_REFUSED, WEFT_SIM_REGS_REFUSED, WEFT_SIM_KILLED, WEFT_SIM_DROPPED, WEFT_SIM_SWITCHES,
    WEFT_SIM_LOST_WAKEUPS, WEFT_SIM_REGS, WEFT_SIM_PIN_NS, WEFT_SIM_FLAPPED, WEFT_SIM_RMA_FLIPPED, WEFT_SIM_QUEUE_FULL,
    WEFT_SIM_ARMS_REFUSED, WEFT_SIM_UNRAISED, WEFT_SIM_CUT, WEFT_SIM_OVERTAKEN, WEFT_SIM_HDRS_FLIPPED, WEFT_SIM_ZCOPY,
    WEFT_SIM_COUNT_LAST
};
extern const char *const weft_sim_count_names[WEFT_SIM_COUNT_LAST];

/* -- the fabric -- */

typedef struct weft_sim weft_sim;

/* NULL when out of memory. The profile is copied. */
weft_sim *weft_sim_open(const weft_sim_profile *profile, uint64_t seed);
/* Frees all, also the ifaces of ranks that were killed. Other ifaces were closed before. */
void weft_sim_close(weft_sim *sim);
uint64_t weft_sim_now_ns(const weft_sim *sim);
uint64_t weft_sim_counter(const weft_sim *sim, enum weft_sim_count which);
/* Ends a rank as kill -9 does: of the frames that it has under way, a beginning arrives, then its peers are told `lost`. */
void weft_sim_kill(weft_sim *sim, uint32_t rank);
/* Kills `rank` at its `step`-th call of the contract (from 1). */
void weft_sim_kill_at(weft_sim *sim, uint32_t rank, uint64_t step);
/* One line: seed, profile, counts that are not zero. */
void weft_sim_print(const weft_sim *sim, FILE *out);

/* -- a run -- */

/* A network of somebody else's that lies under a run's ranks in place of the simulator's own. The run keeps the time and says who runs. */
typedef struct weft_sim_net {
    const weft_iface_ops *ops;
    const void *fabric;                /* env.segment of the ranks' ifaces */
    void (*advance)(uint64_t now_ns);  /* lets happen what is due by then */
    uint64_t (*next_due)(void);        /* UINT64_MAX: nothing is under way */
    void (*ended)(uint32_t rank);      /* it was killed, or its program has returned: what it has not closed ends as by kill -9 */
    const uint64_t *rings;             /* grows with every wakeup that rings: until then a sleeper's descriptor is not looked at */
    const uint64_t *activity;          /* grows when a message gets on: a run in which nothing does has come to a standstill */
} weft_sim_net;
/* For the calls of such a network, inside a rank: the call is one of the contract (the rank dies here if kill_step says so); time
 * passes; a poll found nothing, so others may run. Outside of a rank all do nothing but let time pass. */
void weft_sim_enter(void);
void weft_sim_pass(uint64_t ns);
void weft_sim_idle(void);
/* The rank that runs; -1: none. */
int weft_sim_rank(void);

typedef struct weft_sim_report {
    bool deadlocked, aborted;
    int rc;                 /* as weft_sim_run returned */
    int abort_code;
    char text[512];         /* of the abort, the deadlock, or the last rank that slept to its limit */
    uint64_t steps, now_ns;
    uint64_t counts[WEFT_SIM_COUNT_LAST];
} weft_sim_report;

typedef struct weft_sim_config {
    uint32_t ranks;
    uint64_t seed;
    const weft_sim_profile *profile; /* NULL: calm */
    uint32_t ranks_per_node;         /* 0: all on one node */
    bool kill;                       /* kill_rank dies at its kill_step-th call of the contract */
    uint32_t kill_rank;
    uint64_t kill_step;
    uint64_t step_limit;             /* switches; 0: 50 million */
    size_t stack_bytes;              /* 0: 1 MiB */
    bool is_quiet;                   /* no report of a deadlock on stderr */
    const weft_sim_net *net;         /* NULL: the simulator's own network */
    weft_sim_report *report;         /* filled in; or NULL */
    int *codes;                      /* [ranks], or NULL: filled in with what each program returned; INT32_MIN: it never did */
} weft_sim_config;

/* Runs program(rank, arg) once per rank, each in its fibre; weft_boot_start inside a fibre gives that rank's boot, and
 * weft_world_now is the rank's own. Returns 0 when all returned 0, else the first code that was not; WEFT_E_TIMEOUT when all
 * waited for ever (a report of each rank's state goes to stderr), the code of MPI_Abort when one aborted (1 if that is 0).
 * One run at a time per process. */
int weft_sim_run(const weft_sim_config *config, int (*program)(int rank, void *arg), void *arg);
/* Virtual time of the run; 0 outside of one. */
uint64_t weft_sim_run_ns(void);
/* Lets others run: for loops in a program that wait for something outside the library. */
void weft_sim_yield(void);
/* From now on the network flips no bit, or does again: a program can show what damage left behind. */
void weft_sim_sound(bool is_sound);

#endif

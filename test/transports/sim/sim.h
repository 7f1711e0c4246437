/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim: runs many worlds in one process over a simulated network. Delays, allowed reordering, refusals, short queues, torn writes, bit
 * flips, registration limits and the death of a rank are functions of (profile, seed), so a failing seed can be replayed. Linked into tests
 * only.
 *   fabric   the network between ifaces, passed as params.segment to weft_sim_ops.open; virtual time, events, faults, counts
 *   run      ranks as fibres over one fabric: weft_sim_run
 */
#ifndef WEFT_SIM_SIM_H
#define WEFT_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/iface.h"

extern const weft_iface_ops weft_sim_ops;

/* Faults and costs of the network. A limit of 0 means none, or the stated default. */
typedef struct weft_sim_profile {
    const char *name;
    uint32_t delay_ns;            /* an event takes 1..delay_ns */
    uint32_t again_permille;      /* calls (send, get, put, amo) that begin a series of AGAIN ... */
    uint32_t storm_max;           /* ... of 1..storm_max calls */
    uint32_t flow_frames;         /* most unpolled frames to one peer; 0: 1,024 */
    uint32_t flow_rma;          /* most gets, puts and amos in flight to one peer; 0: 256 */
    uint32_t blind_permille;      /* polls that skip events that are due (never while armed) */
    uint32_t prompt_permille;     /* rma ops that complete inside the call; 1000: caps.prompt */
    uint32_t flip_permille;       /* frames with one flipped bit in the body */
    uint32_t reg_refuse_permille; /* mr_reg calls that fail with WEFT_E_NOMEM */
    bool wants_regcache;                    /* caps.wants_regcache ... */
    uint32_t pin_ns, pin_page_ns; /* ... virtual time that mr_reg costs the rank, per region and per page */
    uint64_t mr_bytes_max;           /* limit of one iface: above it WEFT_E_NOMEM; 0: no limit */
    uint32_t mr_count_max;         /* limit of one iface: above it WEFT_E_NOSPACE; 0: no limit */
    bool limits_in_caps;             /* caps has both limits */
    uint32_t frame_max;           /* 0: 4,096 */
    uint32_t inline_max;
    uint32_t frag;                /* caps.frag */
    uint32_t rma_frag;          /* caps.rma_fragment; 0: a device moves the bytes */
    uint64_t rma_max;            /* 0: 1 GiB */
    uint32_t zcopy_min;            /* caps.zcopy_min ... */
    uint32_t zcopy_permille;       /* ... zcopy bodies that are read for a while; the others are copied at once */
    bool unordered;               /* frames of a pair may overtake each other; caps has it */
    bool mr_local;
    bool torn;                    /* gets and puts move line by line, short gets word by word, at several times, in any order */
    uint8_t rails;                /* links over which rma is striped, ordered on each; 0: unordered */
    uint32_t flap_every_ns, flap_ns; /* interval and duration of stalls of each link (frames: the first one) */
    uint32_t queue;               /* most rma ops of one iface with unpolled completions: above it AGAIN; 0: no limit */
    uint32_t unrung_permille;     /* arrivals that raise no wakeup, allowed if ... */
    uint32_t timer_ns;            /* ... the wakeup has this timer; 0: no timer */
    uint32_t arm_again_permille;  /* arms that return AGAIN, up to four times in a row */
    uint32_t link_mbyte_per_s;    /* bandwidth of each link; 0: unlimited */
    uint32_t copy_mbyte_per_s;    /* bandwidth of CPU copies into and out of frames; 0: unlimited */
    uint32_t cut_permille;        /* frames and rma ops at which the connection breaks for good: both sides get peer_failed */
    bool no_get, no_put, no_notify, no_share;
    bool one_way;                 /* can_rma is false on odd ranks */
    bool keyless;                 /* keys are empty: rma by address, as with the kernel's copies */
    enum weft_amo_domain amo;
    /* violations of the contract, which tests must detect: lost frames, duplicates, arrivals without wakeup */
    uint32_t lose_permille, twice_permille, deaf_permille;
    uint32_t flip_hdr_permille;  /* frames with one flipped bit in the header, or in an RTS or CTS */
    uint32_t flip_rma_permille;  /* gets and puts with one flipped bit */
} weft_sim_profile;

/* Profile by name: those of weft_sim_profiles. NULL: unknown. */
const weft_sim_profile *weft_sim_profile_find(const char *name);
/* All profiles; ends with name NULL. */
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

/* NULL: out of memory. Copies the profile. */
weft_sim *weft_sim_open(const weft_sim_profile *profile, uint64_t seed);
/* Frees everything, also ifaces of killed ranks. All other ifaces must be closed. */
void weft_sim_close(weft_sim *sim);
uint64_t weft_sim_now_ns(const weft_sim *sim);
uint64_t weft_sim_counter(const weft_sim *sim, enum weft_sim_count which);
/* Ends a rank as SIGKILL does: some of its frames in flight arrive, then its peers get peer_failed. */
void weft_sim_kill(weft_sim *sim, uint32_t rank);
/* Kills `rank` at its `step`-th call of an iface op (from 1). */
void weft_sim_kill_at(weft_sim *sim, uint32_t rank, uint64_t step);
/* Prints one line: seed, profile, nonzero counts. */
void weft_sim_print(const weft_sim *sim, FILE *out);

/* -- a run -- */

/* Another network under a run's ranks, in place of the simulator's own. The run owns time and schedules the ranks. */
typedef struct weft_sim_net {
    const weft_iface_ops *ops;
    const void *fabric;                /* params.segment of the ranks' ifaces */
    void (*advance)(uint64_t now_ns);  /* processes the events due by then */
    uint64_t (*next_due)(void);        /* UINT64_MAX: no event is pending */
    void (*ended)(uint32_t rank);      /* killed, or its program returned: what it left open ends as by SIGKILL */
    const uint64_t *rings;             /* grows with each raised wakeup; until then a sleeper's descriptor is not polled */
    const uint64_t *activity;          /* grows with progress of messages; a run without any has hung */
} weft_sim_net;
/* For ops of such a network, inside a rank. enter: begins an op (the rank dies here at kill_step); pass: adds virtual time; idle: a poll
 * was empty, other ranks may run. Outside of a rank only pass has an effect. */
void weft_sim_enter(void);
void weft_sim_pass(uint64_t ns);
void weft_sim_idle(void);
/* The running rank; -1: none. */
int weft_sim_rank(void);

typedef struct weft_sim_report {
    bool deadlocked, aborted;
    int rc;                 /* result of weft_sim_run */
    int abort_code;
    char text[512];         /* text of the abort, the deadlock, or the last sleep that its limit ended */
    uint64_t steps, now_ns;
    uint64_t counts[WEFT_SIM_COUNT_LAST];
} weft_sim_report;

typedef struct weft_sim_config {
    uint32_t ranks;
    uint64_t seed;
    const weft_sim_profile *profile; /* NULL: calm */
    uint32_t ranks_per_node;         /* 0: all on one node */
    bool kill;                       /* kill_rank dies at its kill_step-th call of an iface op */
    uint32_t kill_rank;
    uint64_t kill_step;
    uint64_t step_limit;             /* most fibre switches; 0: 50 million */
    size_t stack_bytes;              /* 0: 1 MiB */
    bool is_quiet;                   /* prints no report of a deadlock */
    const weft_sim_net *net;         /* NULL: the simulator's own network */
    weft_sim_report *report;         /* output; NULL: not wanted */
    int *codes;                      /* output, [ranks]: result of each program, INT32_MIN: it did not return; NULL: not wanted */
} weft_sim_config;

/* Runs program(rank, arg) once per rank, each in its fibre; weft_boot_start in a fibre returns that rank's boot, and weft_world_now is
 * the rank's own. Returns 0 if all returned 0, else the first other code; WEFT_E_TIMEOUT: deadlock (prints each rank's state on stderr);
 * the code of MPI_Abort (1 if that is 0). One run at a time per process. */
int weft_sim_run(const weft_sim_config *config, int (*program)(int rank, void *arg), void *arg);
/* Virtual time of the run; 0: no run. */
uint64_t weft_sim_run_ns(void);
/* Runs other ranks: for loops in a program that wait for something outside the library. */
void weft_sim_yield(void);
/* The running rank computes outside the library for ns of virtual time; others run. On the simulator's own network: no time. */
void weft_sim_compute(uint64_t ns);
/* The connection of the running rank with `rank`, if there is one, breaks for good: both sides get peer_failed, frames in flight may be
 * lost. On another network nothing happens. */
void weft_sim_cut(uint32_t rank);
/* is_sound: suspends all bit flips, so that a program can show the effect of earlier damage. */
void weft_sim_sound(bool is_sound);

#endif

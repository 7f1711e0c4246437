/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_policy: how long a wait spins and whether it yields before it sleeps. Pure functions of times measured by core/wait: no clock, no
 * system calls (test/unit/test_wait feeds series of times). One per world; requires the worker's lock.
 */
#ifndef WEFT_CORE_WAIT_POLICY_H
#define WEFT_CORE_WAIT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_WAIT_PREEMPTED_NS 200000u  /* longer intervals between clock reads mean that the thread was preempted */
#define WEFT_WAIT_PREEMPTED_HAD_NS 25000u /* CPU time assumed in such an interval: where polls are slow all intervals are long */
#define WEFT_WAIT_YIELDING_NS 100000u   /* duration of the yields of one wait, at most, unless the ranks are alone: two wake-ups in a VM */
#define WEFT_WAIT_YIELD_COUNTS_NS 2000u /* a yield counts as this at most: in a longer one another rank runs */
#define WEFT_WAIT_YIELD_DEAR_NS 500000u /* longer yields mean that another program got the CPU; ranks return it sooner */
#define WEFT_WAIT_TRIAL_COST_NS 20000u  /* least cost of yields that did not end a wait; yielding is tried again ... */
#define WEFT_WAIT_TRIAL_SHARE_MIN 16    /* ... after so many times the cost, twice as many after each trial that fails ... */
#define WEFT_WAIT_TRIAL_SHARE_MAX 64    /* ... up to this: trials that fail take 1.5 % of the time */
#define WEFT_WAIT_WAKE_DEAR_NS 200000u  /* longer wake-ups mean that the thread waited for another program's time slice */
#define WEFT_WAIT_LOOKS 400             /* looks at a flag before the full wait; longer than some transfers of a cache line */
#define WEFT_WAIT_LOOKS_TRUST 16        /* ranks share CPUs: waits in which looks may fail after one that they ended ... */
#define WEFT_WAIT_LOOKS_TRIAL 32        /* ... else they are tried in one wait of so many */
#define WEFT_WAIT_SPIN_NS 500000u       /* spin time with a CPU for each rank and fast wake-ups */
#define WEFT_WAIT_SPIN_LOADED_NS 200000u /* spin time if wake-ups take WEFT_WAIT_WAKE_DEAR_NS or more */

typedef struct weft_wait_policy {
    uint32_t spins;    /* empty polls before the clock is read */
    uint64_t spin_ns;  /* CPU time that a wait spins; UINT64_MAX: never sleeps */
    bool is_fixed;     /* a knob set the policy: spin_ns is not adapted */
    bool yields;       /* ranks share CPUs: a wait yields before it spins */
    /* measured averages: */
    uint64_t wake_ns;  /* duration of a wake-up, from the waker's time stamp to running; 0: none yet */
    uint64_t yield_ns; /* duration of a yield; 0: none yet */
    uint32_t yield_limit_ns; /* duration of the yields of a wait, 0..WEFT_WAIT_YIELDING_NS */
    uint64_t yield_cost_ns;   /* duration of the yields since one ended a wait, or since the latest trial of yielding began */
    uint64_t yield_trial_at_ns; /* time of the next trial; 0: waits may yield */
    uint32_t yield_share;     /* WEFT_WAIT_TRIAL_SHARE_MIN .. MAX: of the next trial that fails */
    uint32_t yield_ranks;     /* ranks of the node; 0: not set */
    bool is_alone;            /* other programs take no CPU time: a long yield runs a rank, and no yield costs anything */
    uint32_t yield_successes; /* waits that yielding ended since the latest trial */
    uint32_t look_credit, look_waits; /* waits in which looks may fail; waits since looks did not pay */
} weft_wait_policy;

/* Initial policies: a CPU for each rank; ranks share CPUs. */
extern const weft_wait_policy weft_wait_policy_dedicated, weft_wait_policy_oversubscribed;

/* Spin state of one wait. */
typedef struct weft_wait_spin {
    uint64_t last_ns; /* latest clock read; 0: none yet */
    uint64_t had_ns;  /* CPU time since the first clock read; a preempted interval counts as WEFT_WAIT_PREEMPTED_HAD_NS */
} weft_wait_spin;

/* Records a clock read. */
void weft_wait_spin_record(weft_wait_spin *spin, uint64_t now_ns);
/* Current spin limit of a wait, ns of CPU time; UINT64_MAX: none. */
uint64_t weft_wait_policy_spin_ns(const weft_wait_policy *policy);
/* Records the duration of a wake-up. */
void weft_wait_policy_woken(weft_wait_policy *policy, uint64_t ns);

/* How often a wait looks at its flag before the full wait. Where ranks share CPUs looks pay only while the awaited rank runs on another
 * CPU, as two do that answer each other. */
uint32_t weft_wait_policy_looks(weft_wait_policy *policy);
/* Records whether these looks ended the wait. */
void weft_wait_policy_looked(weft_wait_policy *policy, bool has_ended);

/* Whether a wait whose yields count so much may yield again. */
bool weft_wait_policy_may_yield(const weft_wait_policy *policy, uint32_t yielded_ns);
/* Records the duration of a yield. Returns what it counts, ns > 0. */
uint32_t weft_wait_policy_yielded(weft_wait_policy *policy, uint64_t ns);
/* Records the end of a wait that yielding ended. */
void weft_wait_policy_yield_succeeded(weft_wait_policy *policy);
/* Records whether other programs take a part of the CPUs (core/cpu_share). */
void weft_wait_policy_set_alone(weft_wait_policy *policy, bool is_alone);
/* Records a sleep that has ended at this time. */
void weft_wait_policy_slept(weft_wait_policy *policy, uint64_t now_ns);

#endif

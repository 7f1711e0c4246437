/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_policy: how long a wait spins, whether it yields, before it sleeps. Pure functions of times that core/wait measures: no clock, no
 * system call, so that test/unit/test_wait feeds it with series of times. One per world, under the worker's lock.
 */
#ifndef WEFT_CORE_WAIT_POLICY_H
#define WEFT_CORE_WAIT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#define WEFT_WAIT_PREEMPTED_NS 200000u  /* two looks at the clock so far apart: the CPU was another's in between */
#define WEFT_WAIT_YIELDS_MAX 64         /* of one wait */
#define WEFT_WAIT_YIELD_DEAR_NS 500000u /* a yield that takes so long gave the CPU to another program: ranks pass it on sooner */
#define WEFT_WAIT_WAKE_DEAR_NS 200000u  /* a wake-up that takes so long waited for another program's slice */
#define WEFT_WAIT_SPIN_NS 500000u       /* a CPU for each rank, and wake-ups cheap */
#define WEFT_WAIT_SPIN_LOADED_NS 200000u /* ... and dear */

typedef struct weft_wait_policy {
    uint32_t spins;    /* empty polls before the clock is looked at */
    uint64_t spin_ns;  /* CPU time that a wait spins; UINT64_MAX: never sleeps */
    bool is_fixed;     /* spin_ns is the user's: nothing is learned */
    bool yields;       /* ranks share CPUs: a wait yields before it spins */
    /* learned: */
    uint64_t wake_ns;  /* what a wake-up costs, from the waker's stamp to running */
    uint64_t yield_ns; /* what a yield costs */
    uint32_t yield_limit, yield_failures;
} weft_wait_policy;

/* A CPU for each rank, or not. */
extern const weft_wait_policy weft_wait_policy_dedicated, weft_wait_policy_oversubscribed;

/* The spinning of one wait. */
typedef struct weft_wait_spin {
    uint64_t last_ns; /* the latest look at the clock; 0: none yet */
    uint64_t had_ns;  /* CPU time that it had since the first */
} weft_wait_spin;

/* Another look at the clock, at now_ns. */
void weft_wait_spin_look(weft_wait_spin *spin, uint64_t now_ns);
/* CPU time that a wait spins now. */
uint64_t weft_wait_policy_spin_ns(const weft_wait_policy *policy);
/* A wake-up took so long. */
void weft_wait_policy_woken(weft_wait_policy *policy, uint64_t ns);

/* May a wait that has yielded so often yield again? */
bool weft_wait_policy_may_yield(const weft_wait_policy *policy, uint32_t yields);
/* A yield took so long. */
void weft_wait_policy_yielded(weft_wait_policy *policy, uint64_t ns);
/* A wait that had yielded ended, awake or by a sleep. */
void weft_wait_policy_yield_ended(weft_wait_policy *policy, bool has_slept);

#endif

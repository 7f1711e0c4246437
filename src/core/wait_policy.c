/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_policy: see wait_policy.h. Rationale: docs/architecture.md, Waiting.
 */
#include "core/wait_policy.h"

#define YIELD_TRUSTED 256     /* waits that yielding ended: a trial has not failed */
#define LIMIT_MIN_NS 1024u    /* the shortest limit of yields but 0; a few yields */
#define YIELD_MAX_NS 1000000u /* cap of a sample: three long yields in a row count as dear, one in ten does not */
#define COST_MAX_NS 20000000u /* cap of a yield's cost: in a longer one the process was stopped */
#define FEW_RANKS 4u          /* beyond this number of ranks the interval of trials grows with it: a dear yield of one rank delays all */
#define WAKE_MAX_NS 600000u   /* cap of a sample: a single long wake-up changes nothing, five short ones outweigh all before */

const weft_wait_policy weft_wait_policy_dedicated = {.spins = 2000, .spin_ns = WEFT_WAIT_SPIN_NS};
const weft_wait_policy weft_wait_policy_oversubscribed = {
    .spins = 0, .yields = true, .yield_limit_ns = WEFT_WAIT_YIELDING_NS, .yield_share = WEFT_WAIT_TRIAL_SHARE_MIN};

void weft_wait_spin_record(weft_wait_spin *spin, uint64_t now_ns)
{
    uint64_t passed = now_ns - spin->last_ns;
    if (spin->last_ns)
        spin->had_ns += passed < WEFT_WAIT_PREEMPTED_NS ? passed : WEFT_WAIT_PREEMPTED_HAD_NS;
    spin->last_ns = now_ns;
}

/* Slow wake-ups mean that other programs share the CPU. Spinning then uses up this rank's share, and the next wake-up waits longer: so spin
 * less. */
uint64_t weft_wait_policy_spin_ns(const weft_wait_policy *policy)
{
    if (policy->is_fixed || policy->wake_ns < WEFT_WAIT_WAKE_DEAR_NS || policy->spin_ns < WEFT_WAIT_SPIN_LOADED_NS)
        return policy->spin_ns;
    return WEFT_WAIT_SPIN_LOADED_NS;
}

/* Moving average: a quarter of the way to the sample. */
static uint64_t record(uint64_t known, uint64_t ns) { return known - known / 4 + ns / 4; }

void weft_wait_policy_woken(weft_wait_policy *policy, uint64_t ns)
{
    policy->wake_ns = record(policy->wake_ns, ns < WAKE_MAX_NS ? ns : WAKE_MAX_NS);
}

uint32_t weft_wait_policy_looks(weft_wait_policy *policy)
{
    if (!policy->yields || policy->look_credit || ++policy->look_waits % WEFT_WAIT_LOOKS_TRIAL == 0)
        return WEFT_WAIT_LOOKS;
    return 1;
}

void weft_wait_policy_looked(weft_wait_policy *policy, bool has_ended)
{
    if (has_ended)
        policy->look_credit = WEFT_WAIT_LOOKS_TRUST;
    else if (policy->look_credit)
        policy->look_credit--;
}

bool weft_wait_policy_may_yield(const weft_wait_policy *policy, uint32_t yielded_ns)
{
    if (policy->is_alone)
        return policy->yields && yielded_ns < WEFT_WAIT_SPIN_NS;
    return policy->yields && yielded_ns < policy->yield_limit_ns && policy->yield_ns < WEFT_WAIT_YIELD_DEAR_NS;
}

uint32_t weft_wait_policy_yielded(weft_wait_policy *policy, uint64_t ns)
{
    policy->yield_ns = record(policy->yield_ns, ns < YIELD_MAX_NS ? ns : YIELD_MAX_NS);
    policy->yield_cost_ns += ns < COST_MAX_NS ? ns : COST_MAX_NS;
    return ns < WEFT_WAIT_YIELD_COUNTS_NS ? (uint32_t)ns | 1 : WEFT_WAIT_YIELD_COUNTS_NS;
}

void weft_wait_policy_yield_succeeded(weft_wait_policy *policy)
{
    if (policy->yield_ns >= WEFT_WAIT_YIELD_DEAR_NS) /* a sleep costs less */
        return;
    policy->yield_limit_ns = policy->yield_limit_ns * 2 | LIMIT_MIN_NS;
    if (policy->yield_limit_ns > WEFT_WAIT_YIELDING_NS)
        policy->yield_limit_ns = WEFT_WAIT_YIELDING_NS;
    policy->yield_cost_ns = 0;
    if (++policy->yield_successes >= YIELD_TRUSTED)
        policy->yield_share = WEFT_WAIT_TRIAL_SHARE_MIN;
}

/* A trial has the longest limit: the other ranks may sleep, and the awaited rank has to wake first. */
static void begin_trial(weft_wait_policy *policy)
{
    policy->yield_trial_at_ns = policy->yield_cost_ns = 0;
    policy->yield_successes = 0;
    policy->yield_limit_ns = WEFT_WAIT_YIELDING_NS;
    policy->yield_ns = WEFT_WAIT_YIELD_DEAR_NS - YIELD_MAX_NS / 8; /* one dear yield ends the trial */
}

void weft_wait_policy_set_alone(weft_wait_policy *policy, bool is_alone)
{
    if (policy->is_fixed) /* the program's knobs say how long a wait takes the CPU */
        return;
    if (policy->is_alone && !is_alone)
        begin_trial(policy);
    policy->is_alone = is_alone;
}

/* A dear yield costs the slice that the other program gets, and (Linux 6.18) as much of this rank's own share: more than a thousand cheap
 * ones save. A rank of the job that copies for long makes yields dear, too, and later waits may be short. So a trial that fails is repeated
 * after a multiple of its duration. */
void weft_wait_policy_slept(weft_wait_policy *policy, uint64_t now_ns)
{
    uint64_t cost = policy->yield_cost_ns > WEFT_WAIT_TRIAL_COST_NS ? policy->yield_cost_ns : WEFT_WAIT_TRIAL_COST_NS;
    uint32_t times = policy->yield_ranks > FEW_RANKS ? (policy->yield_ranks + FEW_RANKS - 1) / FEW_RANKS : 1;

    if (policy->is_alone)
        return;
    policy->yield_limit_ns = policy->yield_limit_ns > LIMIT_MIN_NS ? policy->yield_limit_ns / 2 : 0;
    if (policy->yield_limit_ns && policy->yield_ns < WEFT_WAIT_YIELD_DEAR_NS)
        return;
    if (policy->yield_trial_at_ns) {
        if (now_ns >= policy->yield_trial_at_ns)
            begin_trial(policy);
        return;
    }
    policy->yield_trial_at_ns = now_ns + cost * policy->yield_share * times;
    if (policy->yield_share < WEFT_WAIT_TRIAL_SHARE_MAX)
        policy->yield_share *= 2;
}

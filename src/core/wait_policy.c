/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_policy: see wait_policy.h. Rationale: docs/architecture.md, Waiting.
 */
#include "core/wait_policy.h"

#define YIELD_TRUSTED 1024    /* waits that yielding ended: a trial has not failed */
#define YIELD_MAX_NS 1000000u /* cap of a sample: three long yields in a row count as dear, one in ten does not */
#define WAKE_MAX_NS 600000u   /* cap of a sample: a single long wake-up changes nothing, five short ones outweigh all before */

const weft_wait_policy weft_wait_policy_dedicated = {.spins = 2000, .spin_ns = WEFT_WAIT_SPIN_NS};
const weft_wait_policy weft_wait_policy_oversubscribed = {.spins = 4, .yields = true,
                                                              .yield_limit = WEFT_WAIT_YIELDS_MAX, .yield_trial_at = WEFT_WAIT_TRIAL_MIN};

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

bool weft_wait_policy_may_yield(const weft_wait_policy *policy, uint32_t yields)
{
    return policy->yields && yields < policy->yield_limit && policy->yield_ns < WEFT_WAIT_YIELD_DEAR_NS;
}

void weft_wait_policy_yielded(weft_wait_policy *policy, uint64_t ns)
{
    policy->yield_ns = record(policy->yield_ns, ns < YIELD_MAX_NS ? ns : YIELD_MAX_NS);
}

/* A dear yield costs the slice that the other program gets, and (Linux 6.18) as much of this rank's own share: more than a thousand cheap
 * ones save. So a trial that fails makes trials rarer, and one dear yield ends a trial. */
void weft_wait_policy_yield_ended(weft_wait_policy *policy, bool has_slept)
{
    if (!has_slept) {
        if (policy->yield_limit < WEFT_WAIT_YIELDS_MAX)
            policy->yield_limit = policy->yield_limit ? policy->yield_limit * 2 : 1;
        if (++policy->yield_successes >= YIELD_TRUSTED)
            policy->yield_trial_at = WEFT_WAIT_TRIAL_MIN;
        return;
    }
    policy->yield_limit /= 2;
    if (++policy->yield_sleeps < policy->yield_trial_at)
        return;
    policy->yield_sleeps = policy->yield_successes = 0;
    if (policy->yield_trial_at < WEFT_WAIT_TRIAL_MAX)
        policy->yield_trial_at *= 4;
    policy->yield_limit = WEFT_WAIT_YIELDS_MAX / 8;
    policy->yield_ns = WEFT_WAIT_YIELD_DEAR_NS - YIELD_MAX_NS / 8;
}

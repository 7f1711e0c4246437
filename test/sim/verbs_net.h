/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_net: transports/verbs over simulated HCAs, as a network under simulated ranks (weft_sim_config.net) or under the two ifaces of the
 * contract suite. Each rank is a process on its own host.
 */
#ifndef WEFT_TEST_SIM_VERBS_NET_H
#define WEFT_TEST_SIM_VERBS_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/iface.h"
#include "test/transports/sim/sim.h"
#include "test/transports/simhca/simhca.h"

/* Faults planted into verbs, to show that runs detect them. */
enum verbs_net_mutant {
    VERBS_NET_HEALTHY,
    VERBS_NET_OVERDRAWS, /* sends frames without credit */
    VERBS_NET_DROPS,     /* does not resend a frame that was lost in a break */
    VERBS_NET_DOUBLES,   /* resends a frame that had arrived before a break */
    VERBS_NET_UNARMED,      /* sometimes arms nothing before it sleeps */
    VERBS_NET_OVERFILLS, /* posts to a full send queue */
    VERBS_NET_RELAXES_WINDOWS, /* registers for relaxed ordering what must be ordered; */
    VERBS_NET_RELAXES_RINGS,   /* ... rings; */
    VERBS_NET_RELAXES_RAILS,   /* ... what peers put into by several rails */
    VERBS_NET_RINGS_AT_ONCE,   /* sends the first frame behind a put by a ring */
    VERBS_NET_UNTOLD,    /* nobody is told that a region of a dynamic window is detached: no fault, but all keys go stale */
    VERBS_NET_TRUSTS,    /* takes what it reads of a changing region table for whole */
    VERBS_NET_HASTY,     /* goes to rest before what it has sent has arrived */
    VERBS_NET_UNASKED,   /* takes a silent peer for a lost one, and does not ask whether it rests */
    VERBS_NET_CPU_WORDS, /* changes device words by the CPU */
    VERBS_NET_MUTANTS
};
extern enum verbs_net_mutant verbs_net_mutant;
extern bool verbs_net_mixes; /* odd ranks connect by rdma_cm, where the fabric has it */

/* What was registered since verbs_net_open: by mr_reg without ORDERED, and which of it for relaxed ordering; with it, against the rules:
 * anything else but one trial for each rail. */
typedef struct verbs_net_regs {
    uint64_t bulk, relaxed, wrong;
} verbs_net_regs;
extern verbs_net_regs verbs_net_registered;

/* Ops of verbs with a virtual clock, a poll that lets others run, and ifaces owned by their rank's process. */
extern weft_iface_ops verbs_net_ops;

/* Makes the fabric. With `is_run` a run controls the time. NULL: out of memory. */
const weft_sim_net *verbs_net_open(const simhca_profile *profile, uint64_t seed, bool is_run);
/* Ends a rank's process at once, as kill -9 does. */
void verbs_net_kill(uint32_t rank);
/* Number of eps of living ranks to this one with operations in flight: they must complete or fail. */
uint32_t verbs_net_pending(uint32_t rank);
/* The latest clause of callbacks.waits of any rank since verbs_net_open; empty: none. *left: ranks that have not taken theirs back. */
const char *verbs_net_waits(uint32_t *left);
/* Frees the fabric. Prints to `out` and returns the number of objects that living processes have not freed. */
uint32_t verbs_net_close(FILE *out);

#endif

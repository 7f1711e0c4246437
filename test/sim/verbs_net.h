/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_net: transports/verbs over simulated HCAs, as a network that lies under simulated ranks (weft_sim_config.net), or under
 * the contract suite's two ports. Each rank is a process on a host of its own.
 */
#ifndef WEFT_TEST_SIM_VERBS_NET_H
#define WEFT_TEST_SIM_VERBS_NET_H

#include <stdint.h>
#include <stdio.h>

#include "transport/iface.h"
#include "test/transports/sim/sim.h"
#include "test/transports/simhca/simhca.h"

/* Faults planted into verbs, to show that runs notice. */
enum verbs_net_mutant {
    VERBS_NET_HEALTHY,
    VERBS_NET_OVERDRAWS, /* frames are sent without credit */
    VERBS_NET_DROPS,     /* after a break a frame that had not arrived is not sent again */
    VERBS_NET_DOUBLES,   /* ... one that had arrived is asked for once more */
    VERBS_NET_DEAF,      /* sleeps on nothing now and then */
    VERBS_NET_OVERFILLS, /* requests are posted to a send queue that is full */
    VERBS_NET_MUTANTS
};
extern enum verbs_net_mutant verbs_net_mutant;

/* The table of verbs, with a virtual clock, a poll that lets others run, and ports that belong to their rank's process. */
extern weft_iface_ops verbs_net_ops;

/* Makes the fabric. With `is_run` a run keeps the time. NULL when out of memory. */
const weft_sim_net *verbs_net_open(const simhca_profile *profile, uint64_t seed, bool is_run);
/* Ends a rank's process at once, as kill -9 does. */
void verbs_net_kill(uint32_t rank);
/* On how many paths of living ranks to this one something is under way: it must end, or be told lost. */
uint32_t verbs_net_owed(uint32_t rank);
/* Frees the fabric; how many objects living processes have left, told on `out`. */
uint32_t verbs_net_close(FILE *out);

#endif

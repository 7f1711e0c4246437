/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_setup: in a team's first collective the members of each node agree, by messages, on a node area, and all members on the wire's
 * parameters (params, latency_bytes, eager_bytes, eager_total_max). Called by agreement.c; requires worker->lock.
 * Invariant: the steps of a member depend on the team only, not on what the members find: immediate and recorded ones meet.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_SETUP_H
#define WEFT_COLLECTIVES_SHMCOLL_SETUP_H

#include "collectives/sched.h"

typedef struct weft_shmcoll_setup weft_shmcoll_setup;

/* This member's part of one agreement. NULL: out of memory. */
weft_shmcoll_setup *weft_shmcoll_setup_new(weft_team *team);
/* The steps; args->recvbuf is the setup. */
weft_sched_algorithm weft_shmcoll_setup_steps;
/* The schedule has ended by rc. 0: sets team->area, NULL if the nodes have none, and the parameters, equal on all members. Frees it. */
void weft_shmcoll_setup_end(weft_shmcoll_setup *setup, int rc);

#endif

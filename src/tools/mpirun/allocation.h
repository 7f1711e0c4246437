/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allocation: the hosts and slots that a resource manager gave to this job, as its environment tells them (docs/launchers.md). Read once
 * by the head before ranks are placed; what the user says beats it.
 */
#ifndef WEFT_MPIRUN_ALLOCATION_H
#define WEFT_MPIRUN_ALLOCATION_H

#include <stdbool.h>

#include "tools/mpirun/hosts.h"
#include "tools/mpirun/options.h"

typedef struct allocation {
    const char *manager; /* "Slurm"; NULL: there is none */
    char what[160];      /* "Slurm's allocation 17", for texts */
    host_list hosts;
    bool is_nameless;    /* it has hosts, and the environment does not name them */
} allocation;

/* What the environment says. 0, or an exit code, said. */
int allocation_read(allocation *self);
void allocation_free(allocation *self);
/* Gives opts the allocation's hosts, or makes of those that the user named the allocation's. 0, or an exit code, said. */
int allocation_take(options *opts);

/* "2(x3),1" as 2 2 2 1 in counts, `room` of them at most. How many, or -1: it is not written so. */
int allocation_counts(const char *text, uint32_t *counts, uint32_t room);

#endif

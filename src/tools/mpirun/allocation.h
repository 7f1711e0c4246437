/* SPDX-License-Identifier: BSD-3-Clause
 *
 * allocation: the hosts and slots that a resource manager gave to this job, read from its environment (docs/launchers.md).
 * The head reads it once, before it places ranks. The user's options take precedence.
 */
#ifndef WEFT_MPIRUN_ALLOCATION_H
#define WEFT_MPIRUN_ALLOCATION_H

#include <stdbool.h>

#include "tools/mpirun/hosts.h"
#include "tools/mpirun/options.h"

typedef struct allocation {
    const char *manager; /* "Slurm"; NULL: no allocation */
    char what[160];      /* "Slurm's allocation 17", for texts */
    host_list hosts;
    bool is_nameless;    /* the environment gives a number of hosts but not their names */
} allocation;

/* Reads the environment. 0, or an exit code after an error message. */
int allocation_read(allocation *self);
void allocation_free(allocation *self);
/* Sets opts->hosts to the allocation's hosts, or checks the user's hosts against them. 0, or an exit code after an error message. */
int allocation_apply(options *opts);

/* Expands "2(x3),1" to 2 2 2 1 in counts, which has `capacity` entries. Returns the number of entries, or -1: malformed or too many. */
int allocation_counts(const char *text, uint32_t *counts, uint32_t capacity);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bind: which CPUs each rank gets.
 */
#ifndef WEFT_MPIRUN_BIND_H
#define WEFT_MPIRUN_BIND_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/options.h"

typedef struct binding {
    cpu_set_t **masks; /* one per rank; NULL: nobody is bound */
    size_t mask_bytes;
    uint32_t count;
    bool is_disjoint;  /* no two ranks share a CPU */
    char **words;      /* for the report, one per rank; NULL without report */
} binding;

/* Decides for the ranks of this machine, so many, with these numbers in the job. 0, or an exit code after a line that says why. */
int bind_make(const options *opts, uint32_t count, const uint32_t *ranks, binding *self);
/* A line about one of them. */
void bind_report(const binding *self, uint32_t index, uint32_t rank, const char *host);
void bind_free(binding *self);

#endif

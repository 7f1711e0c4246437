/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bind: assigns CPUs to the ranks of one node.
 */
#ifndef WEFT_MPIRUN_BIND_H
#define WEFT_MPIRUN_BIND_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/options.h"

typedef struct binding {
    cpu_set_t **masks; /* one per rank; NULL: no rank is bound */
    size_t mask_bytes;
    uint32_t count;
    bool is_disjoint; /* no two ranks share a CPU */
    char **texts;     /* one per rank, for bind_report; NULL entry: no report wanted */
} binding;

/* Assigns CPUs to the `count` ranks of this node; ranks[] are their ranks in the job. 0, or an exit code after an error message. */
int bind_make(const options *opts, uint32_t count, const uint32_t *ranks, binding *self);
/* Prints the binding of the rank with local index `index`. */
void bind_report(const binding *self, uint32_t index, uint32_t rank, const char *host);
void bind_free(binding *self);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * map: which rank stands on which host. Made once by the head; daemons and ranks are told.
 */
#ifndef WEFT_MPIRUN_MAP_H
#define WEFT_MPIRUN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/options.h"

/* A node is a host that takes at least one rank; they are numbered as the hosts were named. */
typedef struct map_node {
    char *name;
    bool is_here;
    uint32_t count; /* ranks on it */
} map_node;

typedef struct map {
    map_node *nodes;
    uint32_t node_count, ranks;
    uint32_t *node_of, *local_of; /* [ranks] */
} map;

/* Decides how many ranks there are where nobody said, and who stands where. 0, or an exit code, said. */
int map_make(options *opts, map *self);
/* The ranks of a node, in rising order; the caller frees. NULL: out of memory. */
uint32_t *map_ranks(const map *self, uint32_t node);
void map_free(map *self);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * map: assigns ranks to hosts. The head computes it once; daemons receive it (job_desc.h) and ranks read it in the segment.
 */
#ifndef WEFT_MPIRUN_MAP_H
#define WEFT_MPIRUN_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/options.h"

/* A host with at least one rank. Nodes are numbered in the order of the host list. */
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

/* Sets the number of ranks where the user gave none, and places them. 0, or an exit code after a message. */
int map_make(options *opts, map *self);
/* Returns the ranks of a node in rising order; the caller frees. NULL: out of memory. */
uint32_t *map_ranks(const map *self, uint32_t node);
void map_free(map *self);

#endif

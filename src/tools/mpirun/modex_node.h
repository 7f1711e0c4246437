/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_node: a node's side of the modex. It fetches the address of a remote rank when the first local rank requests it, stores it in the
 * node's segment, and takes part in fences between nodes.
 * Used by the head for its own node and by daemons. One thread; it shares weft_modex_cache with the ranks.
 */
#ifndef WEFT_MPIRUN_MODEX_NODE_H
#define WEFT_MPIRUN_MODEX_NODE_H

#include "launch/modex_cache.h"
#include "tools/mpirun/map.h"
#include "tools/mpirun/node_rank.h"

/* Requests and data for the head. */
typedef struct modex_node_callbacks {
    void (*request)(void *owner, uint32_t rank);           /* a local rank requests the address of `rank` */
    /* A local rank's address or failure. */
    void (*data)(void *owner, uint32_t rank, uint32_t state, const void *data, uint32_t bytes);
    void (*fence)(void *owner, uint64_t number);           /* all local ranks have entered fence `number` */
    void *owner;
} modex_node_callbacks;

typedef struct modex_node {
    const weft_segment *segment; /* the node's, which owns it and `ranks` */
    const node_rank *ranks;      /* [count]: the local ranks */
    uint32_t count;
    const map *map;
    modex_node_callbacks up;
    weft_modex_cache *cache;  /* in the segment, shared with the ranks; NULL: the job has one node */
    int wakeup;               /* readable when a rank has a request; -1: none, polled once a second */
    unsigned char *requested; /* [local ranks]: another node waits for its address */
    uint32_t requested_count;
    uint64_t fences;       /* fences that all local ranks have entered */
} modex_node;

/* Bytes of the segment's extra part that a job with this map needs. */
uint64_t modex_node_bytes(const map *map);
/* Initializes the extra part of the node's segment; `index`: of the node in the map. 0, or an exit code after a message. */
int modex_node_open(modex_node *self, const weft_segment *segment, const node_rank *ranks, const map *map, uint32_t index,
                    const modex_node_callbacks *up);
/* Handles requests and data of the ranks. To call when the wakeup is readable, when a rank has ended, and once a second. Calls back. */
void modex_node_progress(modex_node *self);
/* Another node requests the address of a local rank. May call back `data`. */
void modex_node_request(modex_node *self, uint32_t rank);
/* Stores the address of a remote rank, or its failure, and wakes the ranks that wait for it. */
void modex_node_fill(modex_node *self, uint32_t rank, uint32_t state, const void *data, size_t bytes);
/* All nodes have entered fence `number`: releases the local ranks. */
void modex_node_fenced(modex_node *self, uint64_t number);
void modex_node_close(modex_node *self);

#endif

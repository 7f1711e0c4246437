/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_head: the head's side of the modex between nodes. It routes a rank's address from its node to every node that requested it, and
 * completes a fence when all nodes have entered it. Addresses are sent on request only. Called by remote_nodes, on one thread.
 */
#ifndef WEFT_MPIRUN_MODEX_HEAD_H
#define WEFT_MPIRUN_MODEX_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/map.h"

typedef struct modex_head_callbacks {
    void (*request)(void *owner, uint32_t node, uint32_t rank); /* request the address of `rank` from its node */
    void (*data)(void *owner, uint32_t node, uint32_t rank, uint32_t state, const void *data, size_t bytes);
    void (*fenced)(void *owner, uint32_t node, uint64_t number);
    void *owner;
} modex_head_callbacks;

typedef struct modex_head {
    const map *map;
    modex_head_callbacks up;
    uint32_t *first;  /* [ranks]: 1 + index into waits of the first requester; 0: none */
    struct modex_head_wait { uint32_t node, next; } *waits;
    uint32_t wait_count, wait_capacity, free; /* free: 1 + index of the first free entry; 0: none */
    uint64_t *entered;                        /* [nodes]: number of fences that each node has entered */
    uint64_t completed;
} modex_head;

/* 0 or -1: out of memory. */
int modex_head_open(modex_head *self, const map *map, const modex_head_callbacks *up);
void modex_head_request(modex_head *self, uint32_t node, uint32_t rank);
void modex_head_data(modex_head *self, uint32_t rank, uint32_t state, const void *data, size_t bytes);
void modex_head_fence(modex_head *self, uint32_t node, uint64_t number);
void modex_head_close(modex_head *self);

#endif

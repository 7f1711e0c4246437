/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_head: see modex_head.h. A node requests a rank's address once; the head requests it from the owner's node once for all requesters.
 */
#include "tools/mpirun/modex_head.h"

#include <stdlib.h>

#include "launch/modex_cache.h"

int modex_head_open(modex_head *self, const map *map, const modex_head_callbacks *up)
{
    *self = (modex_head){.map = map, .up = *up};
    self->first = calloc(map->ranks, sizeof(*self->first));
    self->entered = calloc(map->node_count, sizeof(*self->entered));
    return self->first && self->entered ? 0 : -1;
}

/* Returns 1 + index of an entry, or 0: out of memory. */
static uint32_t wait_new(modex_head *self)
{
    if (self->free) {
        uint32_t one = self->free;
        self->free = self->waits[one - 1].next;
        return one;
    }
    if (self->wait_count == self->wait_capacity) {
        uint32_t capacity = self->wait_capacity ? 2 * self->wait_capacity : 64;
        struct modex_head_wait *more = realloc(self->waits, capacity * sizeof(*more));
        if (!more)
            return 0;
        self->waits = more;
        self->wait_capacity = capacity;
    }
    return ++self->wait_count;
}

void modex_head_request(modex_head *self, uint32_t node, uint32_t rank)
{
    if (rank >= self->map->ranks)
        return;
    uint32_t one = wait_new(self), first = self->first[rank];
    if (!one) {
        self->up.data(self->up.owner, node, rank, WEFT_MODEX_FAILED, NULL, 0);
        return;
    }
    self->waits[one - 1] = (struct modex_head_wait){.node = node, .next = first};
    self->first[rank] = one;
    if (!first)
        self->up.request(self->up.owner, self->map->node_of[rank], rank);
}

void modex_head_data(modex_head *self, uint32_t rank, uint32_t state, const void *data, size_t bytes)
{
    if (rank >= self->map->ranks)
        return;
    uint32_t at = self->first[rank];
    self->first[rank] = 0;
    while (at) {
        struct modex_head_wait wait = self->waits[at - 1];
        self->waits[at - 1].next = self->free;
        self->free = at;
        self->up.data(self->up.owner, wait.node, rank, state, data, bytes);
        at = wait.next;
    }
}

void modex_head_fence(modex_head *self, uint32_t node, uint64_t number)
{
    uint64_t min = self->entered[node] = number;

    for (uint32_t i = 0; i < self->map->node_count; i++)
        min = self->entered[i] < min ? self->entered[i] : min;
    if (min <= self->completed)
        return;
    self->completed = min;
    for (uint32_t i = 0; i < self->map->node_count; i++)
        self->up.fenced(self->up.owner, i, min);
}

void modex_head_close(modex_head *self)
{
    free(self->first);
    free(self->waits);
    free(self->entered);
    *self = (modex_head){0};
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trade: the head's part in what nodes ask of each other: cards go from the owner's node to every node that wanted them, a fence is
 * passed when all nodes have come. Nothing is sent that nobody asked for.
 */
#ifndef WEFT_MPIRUN_TRADE_H
#define WEFT_MPIRUN_TRADE_H

#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/map.h"

typedef struct trade_up {
    void (*want)(void *owner, uint32_t node, uint32_t rank); /* ask that node for its rank's card */
    void (*card)(void *owner, uint32_t node, uint32_t rank, uint32_t state, const void *told, size_t bytes);
    void (*fenced)(void *owner, uint32_t node, uint64_t number);
    void *owner;
} trade_up;

typedef struct trade {
    const map *map;
    trade_up up;
    uint32_t *first;  /* [ranks]: 1 + index of the first who waits for its card; 0: nobody does */
    struct trade_wait { uint32_t node, next; } *waits;
    uint32_t wait_count, wait_room, free; /* free: 1 + index of the first unused one */
    uint64_t *come;   /* [nodes]: fences that each has come to */
    uint64_t passed;
} trade;

/* 0 or -1: out of memory. */
int trade_open(trade *self, const map *map, const trade_up *up);
void trade_want(trade *self, uint32_t node, uint32_t rank);
void trade_card(trade *self, uint32_t rank, uint32_t state, const void *told, size_t bytes);
void trade_fence(trade *self, uint32_t node, uint64_t number);
void trade_close(trade *self);

#endif

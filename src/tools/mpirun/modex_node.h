/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_node: a node's share in what ranks of different nodes tell each other before they can talk: address modex_node, fetched when the first
 * rank of a node asks for one and then kept in the node's segment, and fences. Used by mpirun for its own node and by daemons.
 */
#ifndef WEFT_MPIRUN_CARDS_H
#define WEFT_MPIRUN_CARDS_H

#include "launch/modex_cache.h"
#include "tools/mpirun/map.h"

struct node;

/* Whom they tell. */
typedef struct modex_node_callbacks {
    void (*want)(void *owner, uint32_t rank);                                              /* some rank here asks for it */
    void (*card)(void *owner, uint32_t rank, uint32_t state, const void *told, uint32_t bytes); /* a rank of ours: what it told */
    void (*fence)(void *owner, uint64_t number);                                           /* all ranks here have come to it */
    void *owner;
} modex_node_callbacks;

typedef struct modex_node {
    const struct node *node;
    const map *map;
    modex_node_callbacks up;
    weft_modex_cache *far;   /* NULL: the job has one node */
    int wakeup;             /* readable when a rank wants something; -1: none */
    unsigned char *owed;  /* [local ranks]: somebody elsewhere waits for its card */
    uint32_t owed_count;
    uint64_t fences;      /* that our ranks have come to */
} modex_node;

/* The segment's extra part that a job of this map needs. */
uint64_t modex_node_bytes(const map *map);
/* Writes it; node->segment is there. 0 or an exit code, said. */
int modex_node_open(modex_node *self, const struct node *node, const map *map, uint32_t index, const modex_node_callbacks *up);
/* Takes in what ranks asked for and told; call it when the wakeup is readable, when a rank has ended, and once a second. */
void modex_node_progress(modex_node *self);
/* Somebody elsewhere asks for the card of a rank of ours. */
void modex_request(modex_node *self, uint32_t rank);
/* A card has come. */
void modex_node_fill(modex_node *self, uint32_t rank, uint32_t state, const void *told, size_t bytes);
/* All nodes have come to a fence. */
void modex_node_fenced(modex_node *self, uint64_t number);
void modex_node_close(modex_node *self);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory: memory of a window: what it allocates, and the controls of its members; both in memory that the members of a node share, as far
 * as the node has it. Steps of weft_window_open, each local; the members exchange wires between them.
 */
#ifndef WEFT_RMA_MEMORY_H
#define WEFT_RMA_MEMORY_H

#include "mem/rank_page.h"
#include "rma/key.h"
#include "rma/window.h"

/* What a member tells the others. */
typedef struct weft_window_wire {
    uint64_t base, bytes; /* base: in its process; known last for memory that the window allocates */
    uint64_t handle;      /* of the node's shared memory, told by the node's first member; 0: none */
    uint64_t unit;
    int64_t failed;       /* enum weft_status; 0: fine */
    weft_window_key key;  /* known last */
} weft_window_wire;

typedef struct weft_window_memory {
    weft_iface *iface;       /* that shares memory; NULL: none */
    weft_shared shared;      /* of the members of this node; addr NULL: none */
    uint32_t *members;       /* [count] members of this node, ascending; owned */
    uint32_t count, index;   /* index: this member's in members */
    weft_rank_page **pages;  /* [count], owned; NULL: the node's ranks have none */
    weft_window_told *told;  /* what members of the node tell each other, in shared memory; NULL: they do it by messages */
    void *allocated;         /* own memory that the node does not share, owned */
    weft_window_control *control; /* own, if it is not in shared memory, owned */
} weft_window_memory;

/* Finds the members of this node. 0 or WEFT_E_NOMEM. */
int weft_window_memory_open(weft_window *window);
/* The node's first member makes the shared memory; wires are all members'. *handle 0: this is another member, or the memory cannot be
 * shared, which is an error of WEFT_WINDOW_SHARED only. */
int weft_window_memory_make(weft_window *window, const weft_window_wire *wires, bool is_contiguous, uint64_t *handle);
/* Maps the memory of `handle` (0: none), and sets targets of this node and of this member, own memory included. 0 or an error. */
int weft_window_memory_map(weft_window *window, const weft_window_wire *wires, bool is_contiguous, uint64_t handle);
/* memory: NULL is allowed. */
void weft_window_memory_free(weft_window_memory *memory);
/* What the reader, a member of this node by its index, is told by the writer. Requires memory->told. */
weft_window_told *weft_window_memory_told(const weft_window_memory *memory, uint32_t reader, uint32_t writer);
/* Wakes the other members of this node, if they sleep. */
void weft_window_memory_wake(const weft_window *window);

#endif

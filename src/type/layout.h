/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout: what a datatype's layout is compiled to: a tree of strided runs of dense blocks, kept normalised so that pack.c finds
 * the longest runs with the fewest steps. Made by type_create.c, walked by pack.c. A node may point into programs of older types:
 * the new type holds those.
 */
#ifndef WEFT_TYPE_LAYOUT_H
#define WEFT_TYPE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "type/type.h"

enum weft_layout_kind {
    WEFT_PROGRAM_RUN,  /* count dense blocks of `bytes`, `stride` apart; count 1: one dense block; count 0: nothing */
    WEFT_PROGRAM_LOOP, /* count times `child`, `stride` apart; `bytes` is the child's packed size */
    WEFT_PROGRAM_LIST, /* count blocks one after the other, each dense or a child */
    WEFT_PROGRAM_TABLE /* a short list, all dense: when it is repeated, its columns are moved one by one */
};

/* One entry of a list; its packed bytes reach to the next one's start (a last entry marks the end). */
typedef struct weft_layout_block {
    int64_t disp;
    uint64_t start;                 /* where it begins in the list's packed form */
    const weft_type_layout *child; /* NULL: dense */
} weft_layout_block;

struct weft_type_layout {
    enum weft_layout_kind kind;
    uint64_t size;                    /* packed bytes */
    int64_t disp;                     /* of everything below, from where the node is put */
    uint64_t count;
    int64_t stride;
    uint64_t bytes;
    const weft_type_layout *child;   /* LOOP */
    const weft_layout_block *blocks; /* LIST: [count + 1] */
    weft_type_layout *owned;         /* further nodes of the same type, freed with it */
    void *memory;                     /* blocks, if this node owns them */
};

void weft_layout_dense(weft_type_layout *node, int64_t disp, uint64_t bytes);
/* node = count times child, stride apart, merged into one run where it can. The result may point to child. */
void weft_layout_repeat(weft_type_layout *node, const weft_type_layout *child, uint64_t count, int64_t stride);
/* A layout of a type as a node that is good as long as `scratch` and the type are. */
const weft_type_layout *weft_layout_of(const weft_type *type, weft_type_layout *scratch);

/* Builds a list, entry by entry, in packed order. */
typedef struct weft_layout_builder {
    weft_layout_block *blocks;
    uint64_t count, room, size;
    weft_type_layout *nodes; /* made on the way: chained by `owned` */
    bool is_out_of_memory;
} weft_layout_builder;

void weft_layout_builder_add(weft_layout_builder *builder, const weft_type_layout *node, int64_t disp);
/* Turns the builder into a tree whose root is the return value (owner of all its nodes); NULL when memory ran out. */
weft_type_layout *weft_layout_builder_finish(weft_layout_builder *builder);
/* A root that owns a copy of `node`. NULL when memory ran out; `chain` (may be NULL) goes over to it, or is freed. */
weft_type_layout *weft_layout_root(const weft_type_layout *node, weft_type_layout *chain);
void weft_layout_free(const weft_type_layout *root);

#endif

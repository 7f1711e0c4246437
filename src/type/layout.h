/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout: compiled form of a datatype's layout (dataloop): a tree of strided runs of dense blocks, normalized to long runs.
 * Made by type_create.c, interpreted by pack.c. Read-only once the type exists. A node may point into layouts of older types,
 * which the new type's envelope holds.
 */
#ifndef WEFT_TYPE_LAYOUT_H
#define WEFT_TYPE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_type_layout weft_type_layout;

enum weft_layout_kind {
    WEFT_LAYOUT_RUN,  /* count dense blocks of `bytes`, `stride` apart; count 1: one dense block; count 0: empty */
    WEFT_LAYOUT_LOOP, /* count times `child`, `stride` apart; `bytes` is the child's packed size */
    WEFT_LAYOUT_LIST, /* count blocks in sequence, each dense or a child */
    WEFT_LAYOUT_TABLE, /* a short LIST, all dense; repeated elements are moved column by column */
    WEFT_LAYOUT_PLACES /* count dense blocks of `bytes` at `disps`: a longer LIST of equal blocks */
};

/* Entry of a LIST or TABLE. Its packed bytes end at the next entry's start; a last entry marks the end. */
typedef struct weft_layout_block {
    int64_t disp;                  /* from the list's origin, bytes */
    uint64_t start;                /* offset in the list's packed form, bytes */
    const weft_type_layout *child; /* NULL: dense */
} weft_layout_block;

struct weft_type_layout {
    enum weft_layout_kind kind;
    uint64_t size;                   /* packed bytes */
    int64_t disp;                    /* offset of the contents from the node's address, bytes */
    uint64_t count;                  /* repetitions or blocks, see weft_layout_kind */
    int64_t stride;                  /* RUN, LOOP: bytes */
    uint64_t bytes;                  /* RUN, PLACES: of a block; LOOP: packed size of child */
    const weft_type_layout *child;   /* LOOP */
    const weft_layout_block *blocks; /* LIST, TABLE: [count + 1] */
    const int64_t *disps;            /* PLACES: [count] */
    weft_type_layout *owned;         /* next node of the same type, freed with the root */
    void *memory;                    /* blocks or disps, if this node owns them; else NULL */
};

/* Index of the entry of a LIST or TABLE that contains packed byte `skip`. O(log count). */
static inline uint64_t weft_layout_list_find(const weft_type_layout *node, uint64_t skip)
{
    uint64_t low = 0, high = node->count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (node->blocks[middle].start <= skip)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* node = one dense block of bytes at disp. */
void weft_layout_dense(weft_type_layout *node, int64_t disp, uint64_t bytes);
/* node = count times child, stride bytes apart, merged into one run if possible. The result may point to child. */
void weft_layout_repeat(weft_type_layout *node, const weft_type_layout *child, uint64_t count, int64_t stride);

/* Builds a list, entry by entry, in packed order. Starts zeroed. */
typedef struct weft_layout_builder {
    weft_layout_block *blocks;
    uint64_t count, capacity, size; /* entries, allocated entries, packed bytes */
    weft_type_layout *nodes;    /* nodes made so far, chained by `owned` */
    bool is_out_of_memory;      /* sticky; finish returns NULL */
} weft_layout_builder;

void weft_layout_builder_add(weft_layout_builder *builder, const weft_type_layout *node, int64_t disp);
/* Returns the root of the tree, which owns all its nodes, and consumes the builder. NULL: out of memory. */
weft_type_layout *weft_layout_builder_finish(weft_layout_builder *builder);
/* A root that owns a copy of `node` and takes ownership of `chain` (may be NULL). NULL: out of memory, chain is freed. */
weft_type_layout *weft_layout_root(const weft_type_layout *node, weft_type_layout *chain);
void weft_layout_free(const weft_type_layout *root);

#endif

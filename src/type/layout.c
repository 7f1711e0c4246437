/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layout: see layout.h. Building and normalization. Invariant: blocks keep the order of the type map, which is that of the packed form.
 */
#include "type/layout.h"

#include <stdlib.h>
#include <string.h>

/* Longest TABLE. Lists up to this length are also inlined into an enclosing list, so that nested structs need no second search. */
#define FLATTEN 32

void weft_layout_dense(weft_type_layout *node, int64_t disp, uint64_t bytes)
{
    *node = (weft_type_layout){.kind = WEFT_LAYOUT_RUN, .size = bytes, .disp = disp, .count = bytes ? 1 : 0, .bytes = bytes};
}

static bool node_is_dense(const weft_type_layout *node)
{
    return node->kind == WEFT_LAYOUT_RUN && node->count == 1;
}

void weft_layout_repeat(weft_type_layout *node, const weft_type_layout *child, uint64_t count, int64_t stride)
{
    weft_type_layout merged = *child;
    merged.owned = NULL;
    merged.memory = NULL;
    if (!count || !child->size) {
        weft_layout_dense(node, 0, 0);
        return;
    }
    merged.size = child->size * count;
    if (count == 1) {
        /* a copy of child */
    } else if (node_is_dense(child) && stride == (int64_t)child->bytes) {
        merged.bytes = merged.size;
    } else if (node_is_dense(child)) {
        merged.count = count;
        merged.stride = stride;
    } else if ((child->kind == WEFT_LAYOUT_RUN || child->kind == WEFT_LAYOUT_LOOP) && stride == (int64_t)child->count * child->stride) {
        merged.count = child->count * count;
    } else {
        merged = (weft_type_layout){.kind = WEFT_LAYOUT_LOOP, .size = child->size * count, .count = count, .stride = stride,
                                     .bytes = child->size, .child = child};
    }
    *node = merged;
}

static weft_layout_block *builder_entry(weft_layout_builder *builder)
{
    if (builder->count + 1 >= builder->capacity) { /* includes the end entry */
        uint64_t capacity = builder->capacity ? builder->capacity * 2 : 16;
        weft_layout_block *blocks = realloc(builder->blocks, capacity * sizeof(*blocks));
        if (!blocks) {
            builder->is_out_of_memory = true;
            return NULL;
        }
        builder->blocks = blocks;
        builder->capacity = capacity;
    }
    return &builder->blocks[builder->count++];
}

static void builder_dense(weft_layout_builder *builder, int64_t disp, uint64_t bytes)
{
    weft_layout_block *last = builder->count ? &builder->blocks[builder->count - 1] : NULL, *b;
    if (last && !last->child && last->disp + (int64_t)(builder->size - last->start) == disp) {
        builder->size += bytes; /* adjacent to the last block */
        return;
    }
    b = builder_entry(builder);
    if (!b)
        return;
    *b = (weft_layout_block){.disp = disp, .start = builder->size};
    builder->size += bytes;
}

/* A heap copy of node. Shares the previous node if it is equal (equal blocks of an indexed type), so that finish detects a loop. */
static const weft_type_layout *builder_keep(weft_layout_builder *builder, const weft_type_layout *node)
{
    weft_type_layout *made = builder->nodes;
    if (made && made->kind == node->kind && made->disp == node->disp && made->count == node->count && made->stride == node->stride &&
        made->bytes == node->bytes && made->child == node->child && made->blocks == node->blocks && made->disps == node->disps)
        return made;
    made = malloc(sizeof(*made));
    if (!made) {
        builder->is_out_of_memory = true;
        return NULL;
    }
    *made = *node;
    made->memory = NULL;
    made->owned = builder->nodes;
    builder->nodes = made;
    return made;
}

void weft_layout_builder_add(weft_layout_builder *builder, const weft_type_layout *node, int64_t disp)
{
    weft_layout_block *b;
    const weft_type_layout *child;
    if (!node->size || builder->is_out_of_memory)
        return;
    if (node_is_dense(node)) {
        builder_dense(builder, disp + node->disp, node->bytes);
        return;
    }
    if ((node->kind == WEFT_LAYOUT_LIST || node->kind == WEFT_LAYOUT_TABLE) && node->count <= FLATTEN) {
        for (uint64_t i = 0; i < node->count; i++) {
            const weft_layout_block *from = &node->blocks[i];
            if (from->child)
                weft_layout_builder_add(builder, from->child, disp + node->disp + from->disp);
            else
                builder_dense(builder, disp + node->disp + from->disp, from[1].start - from->start);
        }
        return;
    }
    child = builder_keep(builder, node);
    b = child ? builder_entry(builder) : NULL;
    if (!b)
        return;
    *b = (weft_layout_block){.disp = disp, .start = builder->size, .child = child};
    builder->size += node->size;
}

/* Are the entries equal and evenly spaced? Then they form a run or a loop. */
static bool builder_is_even(const weft_layout_builder *builder)
{
    const weft_layout_block *b = builder->blocks;
    uint64_t n = builder->count;
    for (uint64_t i = 1; i < n; i++) {
        uint64_t end = i + 1 < n ? b[i + 1].start : builder->size;
        if (b[i].child != b[0].child || b[i].disp - b[i - 1].disp != b[1].disp - b[0].disp || end - b[i].start != b[1].start)
            return false;
    }
    return true;
}

/* Displacements of the blocks if they are many, dense and equal; NULL: they are not, or out of memory (a LIST does as well). */
static int64_t *builder_disps(const weft_layout_builder *builder)
{
    const weft_layout_block *b = builder->blocks;
    int64_t *disps;
    for (uint64_t i = 0; i < builder->count; i++)
        if (b[i].child || b[i + 1].start - b[i].start != b[1].start)
            return NULL;
    disps = builder->count > FLATTEN ? malloc(builder->count * sizeof *disps) : NULL;
    for (uint64_t i = 0; disps && i < builder->count; i++)
        disps[i] = b[i].disp;
    return disps;
}

static bool builder_is_table(const weft_layout_builder *builder)
{
    if (builder->count > FLATTEN)
        return false;
    for (uint64_t i = 0; i < builder->count; i++)
        if (builder->blocks[i].child)
            return false;
    return true;
}

weft_type_layout *weft_layout_builder_finish(weft_layout_builder *builder)
{
    weft_type_layout node, dense, *root;
    const weft_layout_block *b = builder->blocks;
    void *blocks = builder->blocks;
    int64_t *disps = NULL;
    if (builder->is_out_of_memory) {
        weft_layout_free(builder->nodes);
        free(blocks);
        return NULL;
    }
    if (!builder->count) {
        weft_layout_dense(&node, 0, 0);
    } else if (builder_is_even(builder)) {
        const weft_type_layout *child = b->child;
        if (!child) {
            weft_layout_dense(&dense, 0, builder->count > 1 ? b[1].start : builder->size);
            child = &dense;
        }
        weft_layout_repeat(&node, child, builder->count, builder->count > 1 ? b[1].disp - b[0].disp : 0);
        node.disp += b->disp;
    } else {
        builder->blocks[builder->count] = (weft_layout_block){.start = builder->size};
        disps = builder_disps(builder);
        node = (weft_type_layout){.kind = disps                       ? WEFT_LAYOUT_PLACES
                                          : builder_is_table(builder) ? WEFT_LAYOUT_TABLE
                                                                      : WEFT_LAYOUT_LIST,
                                  .size = builder->size, .count = builder->count, .bytes = disps ? b[1].start : 0,
                                  .blocks = disps ? NULL : b, .disps = disps};
    }
    root = weft_layout_root(&node, builder->nodes);
    if (root && disps)
        root->memory = disps;
    else if (root && b && root->blocks == b)
        root->memory = blocks;
    if (!root)
        free(disps);
    if (!root || root->memory != blocks)
        free(blocks);
    return root;
}

weft_type_layout *weft_layout_root(const weft_type_layout *node, weft_type_layout *chain)
{
    weft_type_layout *root = malloc(sizeof(*root));
    if (!root) {
        weft_layout_free(chain);
        return NULL;
    }
    *root = *node;
    root->memory = NULL;
    root->owned = chain;
    return root;
}

void weft_layout_free(const weft_type_layout *root)
{
    weft_type_layout *node = (weft_type_layout *)root;
    while (node) {
        weft_type_layout *next = node->owned;
        free(node->memory);
        free(node);
        node = next;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runs: see runs.h. Each run is found by its packed offset, from the root of the layout down: O(depth + log of the list's length).
 */
#include "type/runs.h"

#include "base/macros.h"

void weft_runs_begin(weft_runs *runs, const weft_type *type, const void *buf, uint64_t count, uint64_t offset, uint64_t bytes)
{
    weft_type_layout dense;
    const weft_type_layout *one = type->layout;
    if (!one) {
        weft_layout_dense(&dense, 0, (uint64_t)type->size);
        one = &dense;
    }
    weft_layout_repeat(&runs->all, one, count, type->extent);
    runs->base = (char *)buf;
    runs->offset = offset;
    runs->end = offset + bytes;
    runs->left = 0;
}

/* A dense block: its rest from `skip` on. */
static void found(weft_runs *runs, uintptr_t at, uint64_t skip, uint64_t block)
{
    runs->at = (char *)(at + skip);
    runs->bytes = block - skip;
}

static void descend(weft_runs *runs)
{
    const weft_type_layout *node = &runs->all;
    uintptr_t at = (uintptr_t)runs->base;
    uint64_t skip = runs->offset;
    for (;;) {
        const weft_layout_block *b;
        uint64_t index;
        at += (uintptr_t)node->disp;
        switch (node->kind) {
        case WEFT_LAYOUT_RUN:
            index = skip / node->bytes;
            found(runs, at + (uintptr_t)((int64_t)index * node->stride), skip - index * node->bytes, node->bytes);
            runs->left = skip % node->bytes ? 0 : node->count - index - 1; /* which begins within a block: next, a search */
            runs->block = node->bytes;
            runs->stride = node->stride;
            return;
        case WEFT_LAYOUT_PLACES:
            index = skip / node->bytes;
            found(runs, at + (uintptr_t)node->disps[index], skip - index * node->bytes, node->bytes);
            return;
        case WEFT_LAYOUT_LOOP:
            index = skip / node->bytes;
            at += (uintptr_t)((int64_t)index * node->stride);
            skip -= index * node->bytes;
            node = node->child;
            break;
        default:
            b = &node->blocks[weft_layout_list_find(node, skip)];
            at += (uintptr_t)b->disp;
            skip -= b->start;
            if (!b->child) {
                found(runs, at, skip, b[1].start - b->start);
                return;
            }
            node = b->child;
        }
    }
}

bool weft_runs_next(weft_runs *runs)
{
    if (runs->offset >= runs->end)
        return false;
    if (weft_likely(runs->left)) {
        runs->left--;
        runs->at = (char *)((uintptr_t)runs->at + (uintptr_t)runs->stride);
        runs->bytes = runs->block;
    } else {
        descend(runs);
    }
    if (runs->bytes > runs->end - runs->offset)
        runs->bytes = runs->end - runs->offset;
    runs->offset += runs->bytes;
    return true;
}

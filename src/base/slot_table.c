/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slot_table: see slot_table.h. Blocks double in size, so that none is ever moved and an index is found by one count of leading zeros.
 */
#include "base/slot_table.h"

#include <stdlib.h>

#include "base/macros.h"

#define FIRST 64u

static unsigned block_of(uint32_t index, uint32_t *within)
{
    uint32_t at = index + FIRST;
    unsigned block = 31u - (unsigned)__builtin_clz(at) - 6;
    *within = at - (FIRST << block);
    return block;
}

void *weft_slot_get(const weft_slot_table *table, uint32_t index)
{
    uint32_t within;
    unsigned block;
    void *_Atomic *slots;
    if (index >= WEFT_SLOT_MAX)
        return NULL;
    block = block_of(index, &within);
    slots = atomic_load_explicit(&table->blocks[block], memory_order_acquire);
    return slots ? atomic_load_explicit(&slots[within], memory_order_acquire) : NULL;
}

void weft_slot_set(weft_slot_table *table, uint32_t index, void *pointer)
{
    uint32_t within;
    unsigned block = block_of(index, &within);
    void *_Atomic *slots = atomic_load_explicit(&table->blocks[block], memory_order_relaxed);
    atomic_store_explicit(&slots[within], pointer, memory_order_release);
}

uint32_t weft_slot_add(weft_slot_table *table, void *pointer)
{
    uint32_t within, index = table->used;
    unsigned block;
    if (index >= WEFT_SLOT_MAX)
        return UINT32_MAX;
    block = block_of(index, &within);
    if (!atomic_load_explicit(&table->blocks[block], memory_order_relaxed)) {
        void *_Atomic *slots = calloc((size_t)FIRST << block, sizeof *slots);
        if (!slots)
            return UINT32_MAX;
        atomic_store_explicit(&table->blocks[block], slots, memory_order_release);
    }
    table->used++;
    weft_slot_set(table, index, pointer);
    return index;
}

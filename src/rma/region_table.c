/* SPDX-License-Identifier: BSD-3-Clause
 *
 * region_table: see region_table.h.
 */
#include "rma/region_table.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/reg.h"
#include "mem/rank_page.h"
#include "rma/device_state.h"
#include "rma/keys.h"

#define FIRST_ENTRIES 64u /* of the first array; each other one has four times as many as that before */
_Static_assert(WEFT_TABLE_MAX * sizeof(weft_table_entry) <= WEFT_REG_INLINE_MAX, "registered with worker->lock held");
_Static_assert(FIRST_ENTRIES << 2 * (WEFT_TABLE_ARRAYS - 1) == WEFT_TABLE_MAX, "the last array has all");

static uint64_t check_of(const void *from, uint64_t bytes)
{
    uint64_t check = UINT64_C(0x6a09e667f3bcc909), word;
    for (uint64_t at = 0; at < bytes; at += sizeof word) {
        memcpy(&word, (const char *)from + at, sizeof word);
        check = (check ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        check ^= check >> 32;
    }
    return check;
}

uint64_t weft_table_entry_check(const weft_table_entry *entry) { return check_of(entry, offsetof(weft_table_entry, check)); }

static uint64_t blocks_of(uint64_t count) { return (count + WEFT_TABLE_BLOCK - 1) / WEFT_TABLE_BLOCK; }

uint64_t weft_table_root_check(const weft_table_root *root)
{
    const uint64_t begin = offsetof(weft_table_root, version), end = offsetof(weft_table_root, low);
    return check_of(&root->version, end + blocks_of(root->count) * sizeof *root->low - begin);
}

/* -- reader -- */

bool weft_table_root_is_sound(const weft_table_root *root)
{
    return root->count <= WEFT_TABLE_MAX && root->check == weft_table_root_check(root);
}

uint32_t weft_table_block_of(const weft_table_root *root, uint64_t address, uint32_t *block)
{
    uint32_t low = 0, high = (uint32_t)blocks_of(root->count);
    while (low < high) { /* the number of blocks that begin at or below the address */
        uint32_t middle = low + (high - low) / 2;
        if (root->low[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    *block = low - 1;
    return root->count - *block * WEFT_TABLE_BLOCK < WEFT_TABLE_BLOCK ? (uint32_t)root->count % WEFT_TABLE_BLOCK : WEFT_TABLE_BLOCK;
}

bool weft_table_entry_is_sound(const weft_table_entry *entry) { return entry->bytes && entry->check == weft_table_entry_check(entry); }

const weft_table_entry *weft_table_find(const weft_table_entry *block, uint32_t count, uint64_t address)
{
    for (uint32_t i = 0; i < count; i++)
        if (address - block[i].base < block[i].bytes && weft_table_entry_is_sound(&block[i]))
            return &block[i];
    return NULL;
}

/* -- owner -- */

static weft_table_entry *entries_of(const weft_region_table *table)
{
    return table->arrays_count ? table->arrays[table->arrays_count - 1].entries : NULL;
}

/* The root is not sound before end_change, and readers see it so before they see any change. */
static void begin_change(weft_table_root *root)
{
    root->version++;
    atomic_thread_fence(memory_order_seq_cst);
}

/* first: the first entry that has changed. */
static void end_change(weft_region_table *table, uint64_t first)
{
    weft_table_root *root = table->root;
    for (uint64_t i = first / WEFT_TABLE_BLOCK; i < blocks_of(root->count); i++)
        root->low[i] = entries_of(table)[i * WEFT_TABLE_BLOCK].base;
    atomic_thread_fence(memory_order_seq_cst);
    root->check = weft_table_root_check(root);
    atomic_thread_fence(memory_order_seq_cst);
}

int weft_region_table_open(weft_region_table *table)
{
    table->root = aligned_alloc(WEFT_PAGE, WEFT_PAGE);
    if (!table->root)
        return weft_fail(WEFT_E_NOMEM, "no memory for a dynamic window");
    memset(table->root, 0, WEFT_PAGE);
    end_change(table, 0);
    return 0;
}

/* Moves the entries to a larger array. False: there is none. */
static bool grow(weft_window *window, weft_region_table *table)
{
    uint32_t capacity = table->capacity ? 4 * table->capacity : FIRST_ENTRIES;
    uint64_t bytes = capacity * sizeof(weft_table_entry);
    weft_iface *iface = window->device->iface;
    weft_table_root *root = table->root;
    weft_table_array made = {.entries = capacity <= WEFT_TABLE_MAX ? aligned_alloc(WEFT_PAGE, bytes) : NULL};
    if (!made.entries)
        return false;
    memset(made.entries, 0, bytes);
    if (iface && weft_window_mr_reg(window, iface, made.entries, bytes, &made.mr)) {
        free(made.entries);
        return false;
    }
    made.is_registered = iface != NULL;
    if (root->count)
        memcpy(made.entries, entries_of(table), root->count * sizeof *made.entries);
    table->arrays[table->arrays_count++] = made;
    table->capacity = capacity;
    begin_change(root);
    root->entries = (uintptr_t)made.entries;
    root->rkey = made.mr.rkey;
    end_change(table, 0);
    return true;
}

/* Number of entries whose base is below `base`. */
static uint64_t count_below(const weft_region_table *table, uint64_t base)
{
    uint64_t low = 0, high = table->root->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (entries_of(table)[middle].base < base)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool weft_region_table_add(weft_window *window, weft_region_table *table, uint64_t base, uint64_t bytes, const weft_rkey *rkey)
{
    weft_table_root *root = table->root;
    weft_table_entry made, *entries;
    uint64_t at;
    if (root->count == table->capacity)
        table->is_closed = table->is_closed || !grow(window, table);
    if (root->count == table->capacity)
        return false;
    memset(&made, 0, sizeof made);
    made.base = base;
    made.bytes = bytes;
    made.rkey = *rkey;
    made.check = weft_table_entry_check(&made);
    at = count_below(table, base);
    entries = entries_of(table);
    begin_change(root);
    memmove(&entries[at + 1], &entries[at], (root->count - at) * sizeof *entries);
    memcpy(&entries[at], &made, sizeof made);
    root->count++;
    end_change(table, at);
    return true;
}

void weft_region_table_remove(weft_region_table *table, uint64_t base)
{
    weft_table_root *root = table->root;
    weft_table_entry *entries = entries_of(table);
    uint64_t at = count_below(table, base);
    if (at == root->count || entries[at].base != base)
        return;
    begin_change(root);
    root->count--;
    memmove(&entries[at], &entries[at + 1], (root->count - at) * sizeof *entries);
    memset(&entries[root->count], 0, sizeof *entries);
    end_change(table, at);
}

void weft_region_table_unregister(weft_window *window, weft_region_table *table)
{
    weft_iface *iface = window->device->iface;
    for (uint32_t i = 0; i < table->arrays_count; i++) {
        if (table->arrays[i].is_registered)
            iface->ops->mr_dereg(iface, &table->arrays[i].mr);
        table->arrays[i].is_registered = false;
    }
}

void weft_region_table_close(weft_region_table *table)
{
    for (uint32_t i = 0; i < table->arrays_count; i++)
        free(table->arrays[i].entries);
    free(table->root);
    *table = (weft_region_table){0};
}

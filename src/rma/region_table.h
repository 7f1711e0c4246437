/* SPDX-License-Identifier: BSD-3-Clause
 *
 * region_table: the attached regions of a member of a dynamic window, in memory that other members' devices read, so that an origin finds a
 * region while the target computes (docs/rma.md, "Dynamic windows"): a *root*, whose address and key the members exchange when the window
 * opens (key.h), and *entries*, sorted by address, in blocks. The owner changes both at any time; a reader's get is not atomic, and its
 * words come in any order. So root and entries have checksums, and a reader that finds no region reads the version once more: if it is the
 * same, there was none. Entries are moved to larger arrays; old arrays stay readable until the window closes.
 */
#ifndef WEFT_RMA_REGION_TABLE_H
#define WEFT_RMA_REGION_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/window.h"
#include "transport/iface.h"

#define WEFT_TABLE_BLOCK 32u      /* entries of a block, which is read at one time */
#define WEFT_TABLE_BLOCKS 128u
#define WEFT_TABLE_MAX (WEFT_TABLE_BLOCK * WEFT_TABLE_BLOCKS) /* regions; others are reached by messages first */
#define WEFT_TABLE_ARRAYS 4u

typedef struct weft_table_entry {
    uint64_t base, bytes;
    weft_rkey rkey; /* length 0: the region is not registered */
    uint64_t check; /* of what is before it */
} weft_table_entry;
_Static_assert(sizeof(weft_table_entry) == 64, "a line");

typedef struct weft_table_root {
    uint64_t word;     /* not used here: takes puts without bytes that notify (device_op.c) */
    uint64_t check;    /* of what follows, as far as it is used */
    uint64_t version;  /* changes so far */
    uint64_t entries;  /* address of the array */
    uint64_t count;    /* of entries */
    weft_rkey rkey;    /* of the array; length 0: none is needed */
    uint64_t low[WEFT_TABLE_BLOCKS]; /* base of the first entry of each block */
} weft_table_root;

/* -- owner; requires worker->lock -- */

typedef struct weft_table_array {
    weft_table_entry *entries; /* owned */
    weft_mr mr;
    bool is_registered;
} weft_table_array;

typedef struct weft_region_table {
    weft_table_root *root; /* alone in its page, owned */
    weft_table_array arrays[WEFT_TABLE_ARRAYS]; /* the last one is in use */
    uint32_t arrays_count;
    uint32_t capacity;     /* of the last array */
    bool is_closed;        /* no larger array could be had */
} weft_region_table;

/* 0 or WEFT_E_NOMEM. */
int weft_region_table_open(weft_region_table *table);
/* False: it has no space. A larger array is registered like a region. */
bool weft_region_table_add(weft_window *window, weft_region_table *table, uint64_t base, uint64_t bytes, const weft_rkey *rkey);
/* Readers find the region no more. */
void weft_region_table_remove(weft_region_table *table, uint64_t base);
void weft_region_table_unregister(weft_window *window, weft_region_table *table);
void weft_region_table_close(weft_region_table *table);

/* What `check` of a sound one is. root->count: at most WEFT_TABLE_MAX. */
uint64_t weft_table_root_check(const weft_table_root *root);
uint64_t weft_table_entry_check(const weft_table_entry *entry);

/* -- reader; of copies -- */

/* Not: it was changed while it was read. */
bool weft_table_root_is_sound(const weft_table_root *root);
/* Of a sound root: the block that has the address, if any has. Returns its number of entries, 0: none has. */
uint32_t weft_table_block_of(const weft_table_root *root, uint64_t address, uint32_t *block);
bool weft_table_entry_is_sound(const weft_table_entry *entry);
/* The sound entry of the region that holds the address; NULL: none. */
const weft_table_entry *weft_table_find(const weft_table_entry *block, uint32_t count, uint64_t address);

#endif

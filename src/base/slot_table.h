/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slot_table: pointers by index. An index keeps its place for the life of the table; lookup takes no lock. Used by object pools and by the
 * pool of requests, whose indices become the ints of MPI_X_toint. Writers are serialized by the owner.
 */
#ifndef WEFT_BASE_SLOT_TABLE_H
#define WEFT_BASE_SLOT_TABLE_H

#include <stdatomic.h>
#include <stdint.h>

#define WEFT_SLOT_BLOCKS 20 /* block b holds 64 << b pointers */
#define WEFT_SLOT_MAX ((UINT32_C(64) << WEFT_SLOT_BLOCKS) - 64)

typedef struct weft_slot_table {
    void *_Atomic *_Atomic blocks[WEFT_SLOT_BLOCKS]; /* never freed: a process has as many as it ever needed at one time */
    uint32_t used; /* indices below are in use or free for the owner's reuse */
} weft_slot_table;

/* The pointer at `index`; NULL: never set, or out of range. Any thread. */
void *weft_slot_get(const weft_slot_table *table, uint32_t index);
/* Sets the pointer at an index below used. */
void weft_slot_set(weft_slot_table *table, uint32_t index, void *pointer);
/* Adds a pointer and returns its index; UINT32_MAX: out of memory, or WEFT_SLOT_MAX are in use. */
uint32_t weft_slot_add(weft_slot_table *table, void *pointer);

#endif

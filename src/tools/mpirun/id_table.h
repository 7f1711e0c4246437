/* SPDX-License-Identifier: BSD-3-Clause
 *
 * id_table: maps ids to pointers. An id is never 0 and is not reused soon, so that a late answer finds no other entry. The caller locks.
 */
#ifndef WEFT_MPIRUN_ID_TABLE_H
#define WEFT_MPIRUN_ID_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct slots {
    struct slot { void *thing; uint32_t turn, next; } *items; /* turn: uses of this entry so far; next: 1 + index of the next free entry */
    uint32_t count, room, free;
} slots;

/* Stores thing and returns its id; 0: out of memory. */
uint64_t id_table_put(slots *self, void *thing);
/* Returns the pointer; NULL: the id is not in use. */
void *id_table_lookup(const slots *self, uint64_t number);
void *id_table_remove(slots *self, uint64_t number);
/* Returns the id of the entry at an index below `count`; 0: the entry is free. */
uint64_t id_table_add(const slots *self, uint32_t index);
void id_table_close(slots *self);

#endif

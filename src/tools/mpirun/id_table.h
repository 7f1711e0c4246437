/* SPDX-License-Identifier: BSD-3-Clause
 *
 * id_table: maps ids to pointers. An id is never 0 and is not reused soon, so that a late answer finds no other entry. The caller locks.
 */
#ifndef WEFT_MPIRUN_ID_TABLE_H
#define WEFT_MPIRUN_ID_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct id_table {
    struct id_table_entry {
        void *pointer;       /* NULL: free */
        uint32_t uses, next; /* uses: of this entry so far; next: 1 + index of the next free entry */
    } *items;
    uint32_t count, capacity, free;
} id_table;

/* Stores thing and returns its id; 0: out of memory. */
uint64_t id_table_add(id_table *self, void *pointer);
/* Returns the pointer; NULL: the id is not in use. */
void *id_table_lookup(const id_table *self, uint64_t id);
void *id_table_remove(id_table *self, uint64_t id);
/* Returns the id of the entry at an index below `count`; 0: the entry is free. */
uint64_t id_table_at(const id_table *self, uint32_t index);
void id_table_close(id_table *self);

#endif

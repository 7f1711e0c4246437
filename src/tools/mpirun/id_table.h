/* SPDX-License-Identifier: BSD-3-Clause
 *
 * id_table: things under numbers that are never 0 and do not come again soon, so that an answer that comes late meets nobody else.
 */
#ifndef WEFT_MPIRUN_SLOTS_H
#define WEFT_MPIRUN_SLOTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct slots {
    struct slot { void *thing; uint32_t turn, next; } *items; /* next: 1 + index of another free one */
    uint32_t count, room, free;
} slots;

/* Its number; 0: no memory. */
uint64_t id_table_put(slots *self, void *thing);
/* NULL: nothing is there (any more). */
void *id_table_lookup(const slots *self, uint64_t number);
void *id_table_remove(slots *self, uint64_t number);
/* Number of what stands at an index below `count`; 0: nothing does. */
uint64_t id_table_add(const slots *self, uint32_t index);
void id_table_close(slots *self);

#endif

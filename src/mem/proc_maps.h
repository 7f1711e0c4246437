/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proc_maps: which mapping an address lies in, as the kernel tells it (PROCMAP_QUERY of Linux 6.11, else the text of
 * /proc/self/maps: 0.7 us against 18 us for 25 mappings, and the text grows with them). Called by watch when it must decide
 * whether a mapping can be watched. Stateless but for the descriptor.
 */
#ifndef WEFT_MEM_PROC_MAPS_H
#define WEFT_MEM_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* ANONYMOUS and HUGE are private memory without a file. What has a file can be truncated or punched by whoever else has it open,
 * in any process, and no watch would learn of it: OTHER, as is memory shared with children, which one of them may throw away. */
enum weft_mapping_kind { WEFT_MAPPING_ANONYMOUS, WEFT_MAPPING_HUGE, WEFT_MAPPING_SYSV, WEFT_MAPPING_OTHER };

typedef struct weft_mapping {
    uint64_t start, end;
    enum weft_mapping_kind kind;
} weft_mapping;

/* A descriptor for find; negative: no /proc here. Close it in a child after fork: it shows the parent. */
int weft_proc_maps_open(void);
/* The mapping that holds addr; false: none. */
bool weft_proc_maps_find(int maps, uint64_t addr, weft_mapping *mapping);
/* The second way alone, for tests. */
bool weft_proc_maps_find_by_text(int maps, uint64_t addr, weft_mapping *mapping);

#endif

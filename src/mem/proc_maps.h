/* SPDX-License-Identifier: BSD-3-Clause
 *
 * proc_maps: finds the mapping of an address: ioctl PROCMAP_QUERY (Linux 6.11), else the text of /proc/self/maps, which is slower
 * and linear in the number of mappings. Called by memmon to decide whether a mapping can be tracked. The descriptor is the only state.
 */
#ifndef WEFT_MEM_PROC_MAPS_H
#define WEFT_MEM_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* ANONYMOUS, HUGE: private memory without a file. OTHER cannot be tracked: another process may truncate or punch a file, a child may
 * discard memory shared with it, and no monitor source sees either. */
enum weft_mapping_kind { WEFT_MAPPING_ANONYMOUS, WEFT_MAPPING_HUGE, WEFT_MAPPING_SYSV, WEFT_MAPPING_OTHER };

typedef struct weft_mapping {
    uint64_t start, end;
    enum weft_mapping_kind kind;
} weft_mapping;

/* Opens a descriptor for find; negative: no /proc. Close it in a child after fork: it shows the parent's mappings. */
int weft_proc_maps_open(void);
/* Finds the mapping that contains addr. False: none. */
bool weft_proc_maps_find(int maps, uint64_t addr, weft_mapping *mapping);
/* The same from the text only; for tests. */
bool weft_proc_maps_find_by_text(int maps, uint64_t addr, weft_mapping *mapping);

#endif

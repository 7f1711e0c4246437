/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory_size: memory of this machine, of which caches and queues take shares.
 */
#ifndef WEFT_BASE_MEMORY_SIZE_H
#define WEFT_BASE_MEMORY_SIZE_H

#include <stdint.h>
#include <unistd.h>

/* Physical memory, bytes; `unknown` if the system does not tell. */
static inline uint64_t weft_memory_size(uint64_t unknown)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : unknown;
}

#endif

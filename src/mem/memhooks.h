/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memhooks: interface between libweft-memhooks.so and the library, one exported symbol. The two may come from different builds:
 * the library must compare `version` and `bytes` before it reads any other member.
 */
#ifndef WEFT_MEM_MEMHOOKS_H
#define WEFT_MEM_MEMHOOKS_H

#include "mem/inval_log.h"

#define WEFT_MEMHOOKS_SYMBOL "weft_memhooks_attach"
#define WEFT_MEMHOOKS_VERSION 1

typedef struct weft_memhooks {
    uint32_t version, bytes; /* WEFT_MEMHOOKS_VERSION, sizeof(weft_memhooks) */
    /* True if all of [start, end) was mapped through the hooks, private anonymous or SysV, and not unmapped since. Any thread. */
    bool (*is_range_seen)(uint64_t start, uint64_t end);
    weft_inval_log log;
} weft_memhooks;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memhooks: what libweft-memhooks.so shows the library, by one exported symbol. Both may come from different builds: `version`
 * and `bytes` are compared before anything else is touched.
 */
#ifndef WEFT_MEM_MEMHOOKS_H
#define WEFT_MEM_MEMHOOKS_H

#include "mem/memmon.h"

#define WEFT_PRELOAD_SYMBOL "weft_memhooks_attach"
#define WEFT_PRELOAD_VERSION 1

typedef struct weft_memhooks {
    uint32_t version, bytes; /* WEFT_PRELOAD_VERSION, sizeof(weft_memhooks) */
    /* Was all of [start, end) mapped through us, as private anonymous or SysV memory, and not unmapped since? */
    bool (*saw)(uint64_t start, uint64_t end);
    weft_inval_log news;
} weft_memhooks;

#endif

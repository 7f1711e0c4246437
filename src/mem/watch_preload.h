/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch_preload: what libweft-watch.so shows the library, by one exported symbol. Both may come from different builds: `version`
 * and `bytes` are compared before anything else is touched.
 */
#ifndef WEFT_MEM_WATCH_PRELOAD_H
#define WEFT_MEM_WATCH_PRELOAD_H

#include "mem/watch.h"

#define WEFT_PRELOAD_SYMBOL "weft_preload_watch"
#define WEFT_PRELOAD_VERSION 1

typedef struct weft_preload {
    uint32_t version, bytes; /* WEFT_PRELOAD_VERSION, sizeof(weft_preload) */
    /* Was all of [start, end) mapped through us, as private anonymous or SysV memory, and not unmapped since? */
    bool (*saw)(uint64_t start, uint64_t end);
    weft_news news;
} weft_preload;

#endif

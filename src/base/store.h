/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store: how a sender writes a body that a reader on another CPU fetches next. Through the caches each line must first be taken back
 * from its last reader, which CPUs that are far apart make slow; past the caches (non-temporal stores) it need not, but the reader then
 * waits for memory. Which one is better is measured: now and then a body of each kind is timed at the sender.
 */
#ifndef WEFT_BASE_STORE_H
#define WEFT_BASE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

#define WEFT_STORE_MIN 1024 /* shorter bodies always go through the caches */

#define WEFT_STORE_SAMPLE 16   /* of so many bodies one is timed; every second sample tries the other way */

typedef struct weft_store { /* a port's; all zero at first: through the caches */
    uint32_t count;
    bool goes_past;                /* the caches, until measured otherwise */
    uint32_t through_ps, past_ps;  /* per byte, smoothed; 0 = not yet measured */
} weft_store;

/* The long half: for bodies of WEFT_STORE_MIN bytes and more. */
void weft_store_long(weft_store *store, void *to, const void *from, uint32_t bytes);

static inline void weft_store_body(weft_store *store, void *to, const void *from, uint32_t bytes)
{
    if (bytes < WEFT_STORE_MIN)
        memcpy(to, from, bytes);
    else
        weft_store_long(store, to, from, bytes);
}

/* Would the next long body go past the caches, or be timed? Else it may as well be made where it belongs. */
static inline bool weft_store_is_asked(const weft_store *store) { return store->goes_past || store->count % WEFT_STORE_SAMPLE == 0; }

#endif

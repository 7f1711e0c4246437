/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nt_copy: how a sender writes a body that a reader on another CPU fetches next. Through the caches each line must first be taken back
 * from its last reader, which CPUs that are far apart make slow; past the caches (non-temporal stores) it need not, but the reader then
 * waits for memory. Which one is better is measured: now and then a body of each kind is timed at the sender.
 */
#ifndef WEFT_BASE_NT_COPY_H
#define WEFT_BASE_NT_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

#define WEFT_NT_COPY_MIN 1024 /* shorter bodies always go through the caches */

#define WEFT_STORE_SAMPLE 16   /* of so many bodies one is timed; every second sample tries the other way */

typedef struct weft_nt_copy { /* a port's; all zero at first: through the caches */
    uint32_t count;
    bool goes_past;                /* the caches, until measured otherwise */
    uint32_t through_ps, past_ps;  /* per byte, smoothed; 0 = not yet measured */
} weft_nt_copy;

/* The long half: for bodies of WEFT_NT_COPY_MIN bytes and more. */
void weft_nt_copy_long(weft_nt_copy *store, void *to, const void *from, uint32_t bytes);

static inline void weft_nt_copy_body(weft_nt_copy *store, void *to, const void *from, uint32_t bytes)
{
    if (bytes < WEFT_NT_COPY_MIN)
        memcpy(to, from, bytes);
    else
        weft_nt_copy_long(store, to, from, bytes);
}

/* Would the next long body go past the caches, or be timed? Else it may as well be made where it belongs. */
static inline bool weft_nt_copy_is_wanted(const weft_nt_copy *store) { return store->goes_past || store->count % WEFT_STORE_SAMPLE == 0; }

#endif

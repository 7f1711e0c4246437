/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nt_copy: copies a body that a reader on another CPU reads next, with cached or non-temporal stores. Cached stores must first take each
 * line back from its last reader, which is slow between distant CPUs. Non-temporal stores need not, but the reader then waits for memory.
 * Bodies of both kinds are timed now and then at the sender to choose. State is per iface (shm); requires the worker's lock.
 */
#ifndef WEFT_BASE_NT_COPY_H
#define WEFT_BASE_NT_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

#define WEFT_NT_COPY_MIN 1024 /* shorter bodies always use cached stores */

#define WEFT_STORE_SAMPLE 16   /* one of so many bodies is timed; every second sample uses the other kind */

typedef struct weft_nt_copy { /* state of an iface; initially all zero: cached stores */
    uint32_t count;                /* long bodies so far; wraps */
    bool goes_past;                /* use non-temporal stores */
    uint32_t through_ps, past_ps;  /* cached and non-temporal, ps per byte, smoothed; 0: not measured yet */
} weft_nt_copy;

/* Copies a body of at least WEFT_NT_COPY_MIN bytes. Non-temporal stores are fenced before it returns. */
void weft_nt_copy_long(weft_nt_copy *store, void *to, const void *from, uint32_t bytes);

static inline void weft_nt_copy_body(weft_nt_copy *store, void *to, const void *from, uint32_t bytes)
{
    if (bytes < WEFT_NT_COPY_MIN)
        memcpy(to, from, bytes);
    else
        weft_nt_copy_long(store, to, from, bytes);
}

/* Whether the next long body uses non-temporal stores or is timed. False: the caller may as well pack it in place. */
static inline bool weft_nt_copy_is_wanted(const weft_nt_copy *store) { return store->goes_past || store->count % WEFT_STORE_SAMPLE == 0; }

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nt_copy: copies a body that a reader on another CPU reads next, with cached or non-temporal stores. Cached stores must first take each
 * line back from its last reader, which is slow between distant CPUs. Non-temporal stores need not, but the reader then waits for memory.
 * Bodies are timed now and then at the sender, and at the reader if it reports, to choose. A trial of the other kind lasts as many bodies
 * as lie between two samples (`trial` times as many), and the last is timed: the first ones find the lines where the kind in use has left
 * them. State is per
 * iface (shm); requires the worker's lock.
 */
#ifndef WEFT_BASE_NT_COPY_H
#define WEFT_BASE_NT_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

#define WEFT_NT_COPY_MIN 1024 /* shorter bodies always use cached stores */

#define WEFT_STORE_SAMPLE 16   /* bodies of which one is timed */
#define WEFT_STORE_REST_MAX 64 /* samples between two trials of the other kind, at most */

enum weft_store { WEFT_STORE_CACHED, WEFT_STORE_PAST, WEFT_STORES };

typedef struct weft_nt_copy { /* state of an iface; initially all zero but worth: cached stores */
    uint32_t count;                  /* long bodies so far; wraps */
    uint8_t used;                    /* enum weft_store: the kind in use */
    uint8_t current;                 /* the kind of the next bodies: the other one during a trial */
    uint8_t worth;                   /* tenths: factor by which non-temporal stores must be faster for both sides together; 0: no reports */
    bool is_due;                     /* a report decides about the last trial; `left` is how many more samples wait for it */
    uint32_t write_ps[WEFT_STORES];  /* ps per byte at the sender, smoothed; 0: not measured yet */
    uint32_t compared_ps;            /* the same of the kind in use, at the last trial */
    uint8_t trial;                   /* samples of a trial; 0 counts as 1. More where bodies rotate through more than a cache */
    uint8_t tried;                   /* samples since the trial began */
    uint16_t rest, left;             /* samples between two trials: doubles while the kind in use stays; samples until the next */
} weft_nt_copy;

#define WEFT_COPY_TIMED 1u /* the body is a sample: the reader should time it too */
#define WEFT_COPY_PAST 2u  /* with non-temporal stores */

/* Copies a body of at least WEFT_NT_COPY_MIN bytes. Non-temporal stores are fenced before it returns. Returns WEFT_COPY_ bits. */
uint32_t weft_nt_copy_long(weft_nt_copy *store, void *to, const void *from, uint32_t bytes);

static inline uint32_t weft_nt_copy_body(weft_nt_copy *store, void *to, const void *from, uint32_t bytes)
{
    if (bytes >= WEFT_NT_COPY_MIN)
        return weft_nt_copy_long(store, to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}

/* Adds a time to a smoothed one. */
void weft_nt_copy_learn(uint32_t *per_byte_ps, uint64_t took_ns, uint32_t bytes);
/* After a copy that returned `how`: whether the last trial is to be decided. True one sample after the trial, when the reader has timed its
 * last body. The caller then reports. */
static inline bool weft_nt_copy_wants_report(const weft_nt_copy *store, uint32_t how)
{
    return how & WEFT_COPY_TIMED && store->is_due && !(how & WEFT_COPY_PAST) == !store->used;
}
/* The reader's ps per byte, 0: not measured yet. Without one of them for some samples (another reader, one that does not report) the trial
 * is void. */
void weft_nt_copy_report(weft_nt_copy *store, uint32_t cached_ps, uint32_t past_ps);

/* Whether the next long body uses non-temporal stores or is timed. False: the caller may as well pack it in place. */
static inline bool weft_nt_copy_is_wanted(const weft_nt_copy *store) { return store->current || store->count % WEFT_STORE_SAMPLE == 0; }

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spans: memory ranges that do not overlap, each with an item of the owner's: an array sorted by address, searched in O(log n) steps. Not
 * thread-safe. The owner owns the items.
 */
#ifndef WEFT_RMA_SPANS_H
#define WEFT_RMA_SPANS_H

#include <stdint.h>

typedef struct weft_span {
    uint64_t base, bytes;
    void *item;
} weft_span;

typedef struct weft_spans { /* zero: empty */
    weft_span *sorted; /* [count], owned */
    uint64_t count, capacity;
} weft_spans;

/* The span that holds the address; NULL: none. Valid until the next add or remove, as all results. */
weft_span *weft_spans_at(const weft_spans *spans, uint64_t address);
/* The first span with this base; NULL: none. */
weft_span *weft_spans_from(const weft_spans *spans, uint64_t base);
/* A span that overlaps [base, base + bytes); NULL: none. */
weft_span *weft_spans_overlap(const weft_spans *spans, uint64_t base, uint64_t bytes);
/* Adds a span that overlaps none. Those of a set of empty spans may have the same base. 0 or WEFT_E_NOMEM. */
int weft_spans_add(weft_spans *spans, uint64_t base, uint64_t bytes, void *item);
void weft_spans_remove(weft_spans *spans, weft_span *span);
void weft_spans_free(weft_spans *spans);

#endif

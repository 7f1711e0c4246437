/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spans: see spans.h.
 */
#include "rma/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Number of spans whose base is below `limit`. */
static uint64_t count_below(const weft_spans *spans, uint64_t limit)
{
    uint64_t low = 0, high = spans->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (spans->sorted[middle].base < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

weft_span *weft_spans_at(const weft_spans *spans, uint64_t address)
{
    uint64_t i = address == UINT64_MAX ? spans->count : count_below(spans, address + 1);
    weft_span *at = i ? &spans->sorted[i - 1] : NULL;
    return at && address - at->base < at->bytes ? at : NULL;
}

weft_span *weft_spans_from(const weft_spans *spans, uint64_t base)
{
    uint64_t i = count_below(spans, base);
    return i < spans->count && spans->sorted[i].base == base ? &spans->sorted[i] : NULL;
}

weft_span *weft_spans_overlap(const weft_spans *spans, uint64_t base, uint64_t bytes)
{
    weft_span *before = bytes ? weft_spans_at(spans, base) : NULL;
    uint64_t i;
    if (before || !bytes)
        return before;
    i = count_below(spans, base);
    return i < spans->count && spans->sorted[i].base - base < bytes ? &spans->sorted[i] : NULL;
}

int weft_spans_add(weft_spans *spans, uint64_t base, uint64_t bytes, void *item)
{
    uint64_t i;
    if (spans->count == spans->capacity) {
        uint64_t capacity = spans->capacity ? spans->capacity * 2 : 16;
        weft_span *sorted = realloc(spans->sorted, capacity * sizeof *sorted);
        if (!sorted)
            return weft_fail(WEFT_E_NOMEM, "no memory for %llu regions of a dynamic window", (unsigned long long)capacity);
        spans->sorted = sorted;
        spans->capacity = capacity;
    }
    i = count_below(spans, base);
    memmove(&spans->sorted[i + 1], &spans->sorted[i], (spans->count - i) * sizeof *spans->sorted);
    spans->sorted[i] = (weft_span){base, bytes, item};
    spans->count++;
    return 0;
}

void weft_spans_remove(weft_spans *spans, weft_span *span)
{
    spans->count--;
    memmove(span, span + 1, (uint64_t)(spans->sorted + spans->count - span) * sizeof *span);
}

void weft_spans_free(weft_spans *spans)
{
    free(spans->sorted);
    *spans = (weft_spans){0};
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regions: see regions.h.
 */
#include "rma/regions.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef struct region {
    uint64_t base, bytes;
} region;

typedef struct weft_window_regions {
    region *sorted; /* by base; regions do not overlap, but empty ones may lie anywhere */
    uint64_t count, capacity;
} weft_window_regions;

int weft_rma_regions_open(weft_window *window)
{
    window->regions = calloc(1, sizeof *window->regions);
    return window->regions ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for a dynamic window");
}

void weft_rma_regions_close(weft_window *window)
{
    free(window->regions->sorted);
    free(window->regions);
    window->regions = NULL;
}

/* Number of regions whose base is below `limit`. */
static uint64_t count_below(const weft_window_regions *regions, uint64_t limit)
{
    uint64_t low = 0, high = regions->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (regions->sorted[middle].base < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The region that has this address and is not empty; NULL: none. */
static const region *region_at(const weft_window_regions *regions, uint64_t address)
{
    uint64_t i = count_below(regions, address + 1);
    while (i-- > 0) {
        const region *at = &regions->sorted[i];
        if (address - at->base < at->bytes)
            return at;
        if (at->bytes)
            return NULL;
    }
    return NULL;
}

static const region *find_overlap(const weft_window_regions *regions, uint64_t base, uint64_t bytes)
{
    const region *before = region_at(regions, base);
    if (before)
        return before;
    for (uint64_t i = count_below(regions, base); i < regions->count && regions->sorted[i].base - base < bytes; i++)
        if (regions->sorted[i].bytes)
            return &regions->sorted[i];
    return NULL;
}

int weft_rma_attach(weft_window *window, void *given, uint64_t bytes)
{
    weft_window_regions *regions = window->regions;
    uint64_t base = (uintptr_t)given, i;
    const region *overlap = bytes ? find_overlap(regions, base, bytes) : NULL;
    if (overlap)
        return weft_fail(WEFT_E_RMA_ATTACH, "%llu bytes at %p overlap the %llu bytes attached at %p: detach these first",
                         (unsigned long long)bytes, given, (unsigned long long)overlap->bytes, (void *)(uintptr_t)overlap->base);
    if (regions->count == regions->capacity) {
        uint64_t capacity = regions->capacity ? regions->capacity * 2 : 16;
        region *sorted = realloc(regions->sorted, capacity * sizeof *sorted);
        if (!sorted)
            return weft_fail(WEFT_E_NOMEM, "no memory for %llu attached regions", (unsigned long long)capacity);
        regions->sorted = sorted;
        regions->capacity = capacity;
    }
    i = count_below(regions, base);
    memmove(&regions->sorted[i + 1], &regions->sorted[i], (regions->count - i) * sizeof *regions->sorted);
    regions->sorted[i] = (region){base, bytes};
    regions->count++;
    return 0;
}

int weft_rma_detach(weft_window *window, const void *given)
{
    weft_window_regions *regions = window->regions;
    uint64_t base = (uintptr_t)given, i = count_below(regions, base);
    if (i == regions->count || regions->sorted[i].base != base)
        return weft_fail(WEFT_E_BASE, "no memory is attached at %p: pass the base that was passed to MPI_Win_attach", given);
    regions->count--;
    memmove(&regions->sorted[i], &regions->sorted[i + 1], (regions->count - i) * sizeof *regions->sorted);
    return 0;
}

bool weft_rma_is_attached(const weft_window *window, uint64_t base, uint64_t bytes)
{
    while (bytes) {
        const region *at = region_at(window->regions, base);
        uint64_t here;
        if (!at)
            return false;
        here = at->base + at->bytes - base;
        if (here >= bytes)
            return true;
        base += here; /* it may go on in a region that follows without a gap */
        bytes -= here;
    }
    return true;
}

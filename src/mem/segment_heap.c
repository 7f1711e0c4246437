/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_heap: first fit over a bitmap of units, in the segment behind the rank pages. A run of units is taken word by word; who finds a
 * unit taken meanwhile gives back what it has of the run, and looks on behind that unit.
 * Invariant: a unit whose bit is clear is all zero, and no process maps it.
 */
#include "mem/segment_heap.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/status.h"

#define RETRIES 1000 /* searches while others give units back */

static _Atomic uint64_t *map_of(const weft_segment *segment)
{
    return (_Atomic uint64_t *)((char *)segment->hdr + segment->hdr->heap_map);
}

static uint32_t units_of(const weft_segment_hdr *hdr) { return (uint32_t)(hdr->heap_bytes / hdr->heap_unit); }

/* Bits of the units [from, to) in the word that has `from`. */
static uint64_t mask_of(uint32_t from, uint32_t to)
{
    uint32_t low = from % 64, end = to - (from - low);
    uint64_t below_end = end >= 64 ? UINT64_MAX : ((uint64_t)1 << end) - 1;
    return below_end & UINT64_MAX << low;
}

static uint32_t word_end(uint32_t unit) { return (unit / 64 + 1) * 64; }

/* Release: pairs with take_run, so that the next owner finds the units zero. */
static void return_run(const weft_segment *segment, uint32_t from, uint32_t to)
{
    _Atomic uint64_t *map = map_of(segment);
    for (uint32_t at = from; at < to; at = word_end(at))
        atomic_fetch_and_explicit(&map[at / 64], ~mask_of(at, to), memory_order_release);
    atomic_fetch_add_explicit(&segment->hdr->heap_returns, 1, memory_order_release);
}

/* The first unit of [from, to) that is in use; to: none. */
static uint32_t first_taken(const weft_segment *segment, uint32_t from, uint32_t to)
{
    const _Atomic uint64_t *map = map_of(segment);
    for (uint32_t at = from; at < to; at = word_end(at)) {
        uint64_t taken = atomic_load_explicit(&map[at / 64], memory_order_relaxed) & mask_of(at, to);
        if (taken)
            return at / 64 * 64 + (uint32_t)__builtin_ctzll(taken);
    }
    return to;
}

/* The first unit from `from` on that is not in use; end: none. */
static uint32_t first_free(const weft_segment *segment, uint32_t from, uint32_t end)
{
    const _Atomic uint64_t *map = map_of(segment);
    for (uint32_t at = from; at < end; at = word_end(at)) {
        uint64_t open = ~atomic_load_explicit(&map[at / 64], memory_order_relaxed) & mask_of(at, end);
        if (open)
            return at / 64 * 64 + (uint32_t)__builtin_ctzll(open);
    }
    return end;
}

/* Takes the units [from, to). False: another process was first; nothing is taken. */
static bool take_run(const weft_segment *segment, uint32_t from, uint32_t to)
{
    _Atomic uint64_t *map = map_of(segment);
    for (uint32_t at = from; at < to; at = word_end(at)) {
        uint64_t mask = mask_of(at, to), taken = atomic_load_explicit(&map[at / 64], memory_order_relaxed);
        while (!(taken & mask) && !atomic_compare_exchange_weak_explicit(&map[at / 64], &taken, taken | mask, memory_order_acquire,
                                                                         memory_order_relaxed))
            ;
        if (!(taken & mask))
            continue;
        if (at > from)
            return_run(segment, from, at);
        return false;
    }
    return true;
}

/* One search; UINT32_MAX: there is no free run of `count` units. */
static uint32_t search(const weft_segment *segment, uint32_t count)
{
    uint32_t units = units_of(segment->hdr), at = first_free(segment, 0, units);
    while (at + count <= units) {
        uint32_t taken = first_taken(segment, at, at + count);
        if (taken == at + count && take_run(segment, at, at + count))
            return at;
        at = first_free(segment, taken == at + count ? at : taken, units);
    }
    return UINT32_MAX;
}

/* Units that another process holds for a moment while it tries a run may hide a free one: searches again while units come back. */
static uint32_t take_units(const weft_segment *segment, uint32_t count)
{
    uint32_t found = UINT32_MAX;
    for (int tries = 0; tries < RETRIES && found == UINT32_MAX; tries++) {
        uint64_t returns = atomic_load_explicit(&segment->hdr->heap_returns, memory_order_acquire);
        found = search(segment, count);
        if (returns == atomic_load_explicit(&segment->hdr->heap_returns, memory_order_acquire))
            break;
    }
    return found;
}

int weft_segment_heap_take(const weft_segment *segment, uint64_t bytes, uint64_t *offset)
{
    const weft_segment_hdr *hdr = segment->hdr;
    uint64_t count = hdr->heap_unit ? bytes / hdr->heap_unit + (bytes % hdr->heap_unit != 0) : 0;
    uint32_t found;
    int rc;

    if (bytes > hdr->heap_bytes)
        return weft_fail(WEFT_E_NOSPACE, "%llu bytes exceed the %llu that the ranks of this node can share (ulimit -f limits them)",
                         (unsigned long long)bytes, (unsigned long long)hdr->heap_bytes);
    found = take_units(segment, (uint32_t)count);
    if (found == UINT32_MAX)
        return weft_fail(WEFT_E_NOSPACE, "no %llu bytes in one piece are left of the %llu that the ranks of this node can share",
                         (unsigned long long)bytes, (unsigned long long)hdr->heap_bytes);
    *offset = hdr->heap + found * hdr->heap_unit;
    rc = weft_segment_claim(segment, *offset, bytes);
    if (rc)
        weft_segment_heap_return(segment, *offset, bytes);
    return rc;
}

void weft_segment_heap_return(const weft_segment *segment, uint64_t offset, uint64_t bytes)
{
    const weft_segment_hdr *hdr = segment->hdr;
    uint64_t unit = hdr->heap_unit;
    uint32_t from = (uint32_t)((offset - hdr->heap) / unit), to = from + (uint32_t)(bytes / unit + (bytes % unit != 0));

    if (weft_segment_zero(segment, offset, (to - from) * unit))
        return; /* cannot be zeroed: the units stay in use */
    return_run(segment, from, to);
}

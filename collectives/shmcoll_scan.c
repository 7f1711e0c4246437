/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_scan: what a member does in a round of a scan or exscan: it reads the lower member's prefix, and writes its own for the next one.
 * See shmcoll_exchange.h.
 */
#include "collectives/shmcoll_exchange.h"

typedef weft_shmcoll_exchange exchange;

/* A round's elements of the vectors. */
typedef struct span {
    uint64_t first, count, bytes;
} span;

static span span_of(const exchange *ex, uint64_t round)
{
    uint64_t first = round * ex->max, left = ex->args->recvcount - first, count = left < ex->max ? left : ex->max;

    return (span){first, count, count * (uint64_t)ex->args->recvtype->size};
}

static char *place_of(const exchange *ex, uint32_t member, uint64_t s) { return weft_shmcoll_place(ex->area, member, s, ex->chunk); }
static inline bool has_next(const weft_shmcoll *area) { return area->rank + 1 < area->ranks; }

static inline void copy(weft_shmcoll *area, const weft_type *type, void *to, const void *from, const span *at)
{
    if (weft_likely(at->bytes == 8 && type->is_dense)) {
        memcpy(to, from, 8);
        return;
    }
    weft_shmcoll_offer(area, at->bytes);
    weft_copy(type, to, at->count, type, from, at->count);
}

/* Damage of the lower prefix, which this member's own then derives from. */
static void check_lower(weft_shmcoll *area, uint64_t s, const char *lower, const span *at, uint64_t size)
{
    weft_shmcoll_fragment fragment = {s, area->rank - 1, 0, weft_sched_bytes(), lower, at->bytes, 0, at->bytes};

    weft_shmcoll_check(area, &fragment, at->first * size);
}

/* Writes this member's prefix for the next one, unless it is in the slot. damages: those found before this round. */
static void write_own(weft_shmcoll *area, const weft_shmcoll_fragment *own, void *slot, uint32_t damages)
{
    if (own->buf != slot)
        weft_shmcoll_write(area, own, slot);
    else if (weft_unlikely(area->csums != NULL))
        weft_shmcoll_csum_write(area, own);
    if (weft_unlikely(area->damages != damages))
        weft_shmcoll_taint(area, own);
}

void weft_shmcoll_relay_scan(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll *area = ex->area;
    const weft_coll *args = ex->args;
    const weft_type *type = args->recvtype;
    span at = span_of(ex, round);
    char *out = weft_sched_at(args->recvbuf, type, at.first);
    weft_shmcoll_fragment own = {s, area->rank, 0, type, out, at.count, 0, at.bytes};
    const void *mine = args->in_place ? out : weft_sched_at(args->sendbuf, type, at.first);
    uint32_t damages = area->damages;

    if (!area->rank && mine != out)
        copy(area, type, out, mine, &at);
    if (area->rank) {
        const void *lower = place_of(ex, area->rank - 1, s);
        if (weft_unlikely(area->csums != NULL))
            check_lower(area, s, lower, &at, (uint64_t)type->size);
        if (ex->reduction.scratch) {
            weft_unpack(type, ex->reduction.scratch, at.count, 0, at.bytes, lower);
            lower = ex->reduction.scratch;
        }
        weft_coll_combine(area->worker, args->op, type, lower, mine, out, at.count);
    }
    if (has_next(area))
        write_own(area, &own, place_of(ex, area->rank, s), damages);
}

void weft_shmcoll_relay_exscan(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll *area = ex->area;
    const weft_coll *args = ex->args;
    const weft_type *type = args->recvtype;
    span at = span_of(ex, round);
    char *out = weft_sched_at(args->recvbuf, type, at.first), *slot = place_of(ex, area->rank, s);
    char *sum = ex->reduction.scratch ? ex->reduction.scratch : slot; /* a copy of this member's elements, then the prefix with them */
    weft_shmcoll_fragment own = {s, area->rank, 0, type, sum, at.count, 0, at.bytes};
    uint32_t damages = area->damages;

    if (has_next(area)) /* first: in place, the lower prefix overwrites them */
        copy(area, type, sum, args->in_place ? out : weft_sched_at(args->sendbuf, type, at.first), &at);
    if (area->rank) {
        const char *lower = place_of(ex, area->rank - 1, s);
        if (weft_unlikely(area->csums != NULL))
            check_lower(area, s, lower, &at, (uint64_t)type->size);
        weft_shmcoll_unpack(area, type, out, at.count, 0, at.bytes, lower);
        if (has_next(area))
            weft_coll_apply_op(area->worker, args->op, type, out, sum, at.count);
    }
    if (has_next(area))
        write_own(area, &own, slot, damages);
}

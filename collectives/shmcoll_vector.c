/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_vector: what members write and read in collectives of a vector: bcast, reductions, reduce_scatter. See shmcoll_exchange.h.
 */
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_exchange.h"

#include "base/status.h"

typedef weft_shmcoll_exchange exchange;

static inline uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }
/* Of a non-root member of a reduce, the vector is always in sendbuf. */
static inline const void *own_vector(const exchange *ex) { return ex->args->in_place ? ex->args->recvbuf : ex->args->sendbuf; }

/* ---- bcast ---- */

int weft_shmcoll_open_bcast(exchange *ex)
{
    uint64_t all = ex->args->recvcount * (uint64_t)ex->args->recvtype->size;

    ex->max = weft_shmcoll_one_way_bytes(ex->area, all, ex->area->slot_bytes);
    ex->chunk = min(all, ex->max);
    ex->rounds = (all + ex->max - 1) / ex->max;
    return WEFT_OK;
}

/* The root's data of a round, at the root and elsewhere. */
static inline weft_shmcoll_fragment bcast_fragment(const exchange *ex, uint64_t round, uint64_t s)
{
    const weft_type *type = ex->args->recvtype;
    uint64_t all = ex->args->recvcount * (uint64_t)type->size, at = round * ex->max;

    return (weft_shmcoll_fragment){s, (uint32_t)ex->args->root, 0, type, ex->args->recvbuf, ex->args->recvcount, at,
                                   min(all - at, ex->max)};
}

static inline char *place_of(const exchange *ex, const weft_shmcoll_fragment *fragment)
{
    return weft_shmcoll_place(ex->area, fragment->member, fragment->s, ex->chunk);
}

void weft_shmcoll_write_bcast(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll_fragment fragment = bcast_fragment(ex, round, s);

    weft_shmcoll_write(ex->area, &fragment, place_of(ex, &fragment));
}

void weft_shmcoll_read_bcast(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll_fragment fragment = bcast_fragment(ex, round, s);

    weft_shmcoll_read(ex->area, &fragment, place_of(ex, &fragment));
}

/* ---- reductions of whole vectors ---- */

static int open_vectors(exchange *ex, uint64_t most)
{
    const weft_coll *args = ex->args;
    uint64_t size = (uint64_t)args->recvtype->size;

    if (weft_unlikely(!size || !args->recvcount)) {
        ex->rounds = 0;
        ex->reduction.scratch_block = NULL;
        return WEFT_OK;
    }
    ex->max = args->recvcount * size <= most ? args->recvcount : most < size ? 1 : most / size;
    ex->chunk = ex->max * size;
    ex->rounds = ex->max == args->recvcount ? 1 : (args->recvcount + ex->max - 1) / ex->max;
    return weft_shmcoll_reduction_open(&ex->reduction, args, ex->max);
}

int weft_shmcoll_open_vectors(exchange *ex) { return open_vectors(ex, ex->area->slot_bytes); }

int weft_shmcoll_open_reduce(exchange *ex)
{
    uint64_t all = ex->args->recvcount * (uint64_t)ex->args->recvtype->size;

    return open_vectors(ex, weft_shmcoll_one_way_bytes(ex->area, all, ex->area->slot_bytes));
}

void weft_shmcoll_close_vectors(exchange *ex) { weft_shmcoll_reduction_close(&ex->reduction); }

void weft_shmcoll_write_vector(exchange *ex, uint64_t round, uint64_t s)
{
    const weft_type *type = ex->args->recvtype;
    uint64_t size = (uint64_t)type->size, at = round * ex->max, bytes = min(ex->args->recvcount - at, ex->max) * size;
    weft_shmcoll_fragment fragment = {s, ex->area->rank, 0, type, own_vector(ex), ex->args->recvcount, at * size, bytes};

    weft_shmcoll_write(ex->area, &fragment, place_of(ex, &fragment));
}

void weft_shmcoll_read_all_vectors(exchange *ex, uint64_t round, uint64_t s)
{
    uint64_t at = round * ex->max, count = min(ex->args->recvcount - at, ex->max);
    weft_shmcoll_part part = {.s = s, .chunk = ex->chunk, .first = at, .count = count};

    weft_shmcoll_reduce(&ex->reduction, ex->area, &part, weft_sched_at(ex->args->recvbuf, ex->args->recvtype, at));
}

/* ---- allreduce of long vectors: each member folds its block of each round ---- */

typedef struct span {
    uint64_t from, to; /* elements of a round's chunk */
} span;

static uint64_t chunk_count(const exchange *ex, uint64_t round) { return min(ex->args->recvcount - round * ex->max, ex->max); }

static span span_of(const exchange *ex, uint64_t round, uint32_t member)
{
    uint64_t here = chunk_count(ex, round);

    return (span){weft_sched_block_start(here, ex->area->ranks, member), weft_sched_block_start(here, ex->area->ranks, member + 1)};
}

/* Every member's block of this member's chunk, but its own, which no other member reads and which it reads itself only in place. */
void weft_shmcoll_write_chunk(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll *area = ex->area;
    const weft_type *type = ex->args->recvtype;
    uint64_t size = (uint64_t)type->size, at = round * ex->max;
    char *place = weft_shmcoll_place(area, area->rank, s, ex->chunk);

    if (ex->args->in_place && weft_likely(!area->csums)) {
        weft_shmcoll_pack(area, type, ex->args->recvbuf, ex->args->recvcount, at * size, chunk_count(ex, round) * size, place);
        return;
    }
    for (uint32_t r = 0; r < area->ranks; r++) {
        span span = span_of(ex, round, r);
        weft_shmcoll_fragment fragment = {s, area->rank, r, type, own_vector(ex), ex->args->recvcount, (at + span.from) * size,
                                          (span.to - span.from) * size};
        if (r != area->rank || ex->args->in_place)
            weft_shmcoll_write(area, &fragment, place + span.from * size);
    }
}

void weft_shmcoll_fold_chunk(exchange *ex, uint64_t round, uint64_t s, uint64_t folded)
{
    weft_shmcoll *area = ex->area;
    const weft_type *type = ex->args->recvtype;
    span own = span_of(ex, round, area->rank);
    uint64_t size = (uint64_t)type->size, first = round * ex->max + own.from;
    weft_shmcoll_part part = {s, ex->chunk, area->rank, own.from * size, first, own.to - own.from};
    weft_shmcoll_fragment result = {folded, area->rank, 0, type, ex->args->recvbuf, ex->args->recvcount, first * size, part.count * size};
    uint32_t damages = area->damages;

    weft_shmcoll_reduce(&ex->reduction, area, &part, weft_sched_at(ex->args->recvbuf, type, first));
    weft_shmcoll_write(area, &result, weft_shmcoll_place(area, area->rank, folded, ex->chunk) + part.offset);
    if (weft_unlikely(area->damages != damages))
        weft_shmcoll_taint(area, &result);
}

void weft_shmcoll_read_chunk(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll *area = ex->area;
    const weft_type *type = ex->args->recvtype;
    uint64_t size = (uint64_t)type->size, at = round * ex->max;

    for (uint32_t r = 0; r < area->ranks; r++) {
        span span = span_of(ex, round, r);
        weft_shmcoll_fragment fragment = {s, r, 0, type, ex->args->recvbuf, ex->args->recvcount, (at + span.from) * size,
                                          (span.to - span.from) * size};
        if (r != area->rank)
            weft_shmcoll_read(area, &fragment, weft_shmcoll_place(area, r, s, ex->chunk) + span.from * size);
    }
}

/* ---- blocks of a reduced vector: reduce_scatter, and the halves of a hierarchical allreduce ---- */

/* Bytes of each block's fragment in a slot of `parts`. */
static uint64_t capacity_of(const weft_shmcoll *area, uint32_t parts) { return area->slot_bytes / parts / 16 * 16; }

bool weft_shmcoll_can_split(const weft_shmcoll *area, const weft_type *type, uint32_t parts)
{
    return (uint64_t)type->size <= capacity_of(area, parts);
}

/* Fills ex->starts. Returns the elements of the longest block. */
static uint64_t find_starts(exchange *ex)
{
    const weft_coll *args = ex->args;
    uint64_t longest = 0;

    ex->starts[0] = 0;
    for (uint32_t i = 0; i < ex->parts; i++) {
        uint64_t end = args->recv_layout ? ex->starts[i] + (uint64_t)weft_counts_get(args->recv_layout->counts, i)
                                         : weft_sched_block_start(args->recvcount, ex->parts, i + 1);
        ex->starts[i + 1] = end;
        longest = end - ex->starts[i] > longest ? end - ex->starts[i] : longest;
    }
    return longest;
}

int weft_shmcoll_open_split(exchange *ex)
{
    uint64_t size = (uint64_t)ex->args->recvtype->size, longest = find_starts(ex);

    ex->rounds = 0;
    ex->reduction.scratch_block = NULL;
    if (!size || !longest)
        return WEFT_OK;
    ex->max = min(longest, capacity_of(ex->area, ex->parts) / size);
    ex->chunk = ex->parts * ex->max * size;
    ex->rounds = (longest + ex->max - 1) / ex->max;
    return weft_shmcoll_reduction_open(&ex->reduction, ex->args, ex->max);
}

/* The round's elements of a block of the vector. */
static span split_span(const exchange *ex, uint64_t round, uint32_t block)
{
    uint64_t from = ex->starts[block] + round * ex->max, end = ex->starts[block + 1];

    return (span){min(from, end), min(from + ex->max, end)};
}

/* Every member's block, but this member's own, unless its memory will hold the result. */
void weft_shmcoll_write_split(exchange *ex, uint64_t round, uint64_t s)
{
    weft_shmcoll *area = ex->area;
    const weft_type *type = ex->args->recvtype;
    uint64_t size = (uint64_t)type->size;
    char *place = weft_shmcoll_place(area, area->rank, s, ex->chunk);

    for (uint32_t j = 0; j < ex->parts; j++) {
        span span = split_span(ex, round, j);
        weft_shmcoll_fragment fragment = {s, area->rank, j, type, own_vector(ex), ex->args->recvcount, span.from * size,
                                          (span.to - span.from) * size};
        if (j != area->rank || ex->args->in_place)
            weft_shmcoll_write(area, &fragment, place + j * ex->max * size);
    }
}

static inline void reduce_split(exchange *ex, uint64_t round, uint64_t s, uint64_t to)
{
    const weft_type *type = ex->args->recvtype;
    uint32_t rank = ex->area->rank;
    span span = rank < ex->parts ? split_span(ex, round, rank) : (struct span){0, 0};
    weft_shmcoll_part part = {s, ex->chunk, rank, rank * ex->max * (uint64_t)type->size, span.from, span.to - span.from};

    if (part.count)
        weft_shmcoll_reduce(&ex->reduction, ex->area, &part, weft_sched_at(ex->args->recvbuf, type, to));
}

/* The result is at the beginning of recvbuf. */
void weft_shmcoll_read_own_block(exchange *ex, uint64_t round, uint64_t s) { reduce_split(ex, round, s, round * ex->max); }

/* The result is where the block is in the vector. */
void weft_shmcoll_read_in_vector(exchange *ex, uint64_t round, uint64_t s)
{
    reduce_split(ex, round, s, ex->area->rank < ex->parts ? ex->starts[ex->area->rank] + round * ex->max : 0);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * halving: recursive halving over the blocks of a vector, for any number of ranks: reduce-scatter, scatter, gather. Called by allreduce.c,
 * reduce.c, reduce_scatter.c and bcast.c. Block v belongs to place v, which is rank (v + shift) % size.
 * A group of places is split into a lower and an upper half (split.h); if it is odd, the lower half has one more, whose partner is the
 * first of the upper half.
 */
#include "collectives/algorithms.h"
#include "collectives/split.h"

static uint32_t place_of(const weft_sched *sched, uint32_t shift) { return (sched->rank + sched->size - shift) % sched->size; }
static uint32_t rank_at(const weft_sched *sched, uint32_t shift, uint32_t place) { return (place + shift) % sched->size; }

typedef struct reduction {
    const weft_blocks *work; /* becomes the result */
    void *more;              /* temporary memory for half of the vector; NULL: not needed so far */
    uint32_t shift, place;
} reduction;

/* One exchange between two halves: each rank sends what it has of the other half, and reduces what it gets of its own. `from` is what it
 * has: the work, or, in the first exchange, data that is only read. Then the partner's part arrives in the work itself. */
static void exchange_halves(weft_sched *sched, reduction *r, const weft_blocks *from, weft_members own, weft_members other)
{
    weft_block in = weft_blocks_joined(r->work, own.first, own.count), data = weft_blocks_joined(from, own.first, own.count);
    uint32_t i = r->place - own.first;
    bool has_partner = i < other.count, has_second = i == 0 && other.count > own.count, is_in_place = from == r->work;
    void *got = in.at, *second = NULL;

    if (has_partner && is_in_place)
        got = r->more = r->more ? r->more : weft_sched_temp(sched, in.count, in.type);
    if (has_second) /* at most once */
        second = weft_sched_temp(sched, in.count, in.type);
    if (sched->rc)
        return;
    weft_blocks_send_run(sched, rank_at(sched, r->shift, other.first + (has_partner ? i : 0)), from, other.first, other.count);
    if (has_partner && weft_block_bytes(&in))
        weft_sched_recv(sched, rank_at(sched, r->shift, other.first + i), got, in.count, in.type);
    if (has_second && weft_block_bytes(&in))
        weft_sched_recv(sched, rank_at(sched, r->shift, other.first + own.count), second, in.count, in.type);
    if (!has_partner && !is_in_place)
        weft_sched_copy(sched, in.at, in.count, in.type, data.at, data.count, data.type);
    weft_sched_fence(sched);
    if (has_partner)
        weft_sched_reduce(sched, is_in_place ? got : data.at, in.at, in.count, in.type);
    if (has_second)
        weft_sched_reduce(sched, second, in.at, in.count, in.type);
}

void weft_reduce_scatter_blocks_halving(weft_sched *sched, const weft_blocks *data, const weft_blocks *work, uint32_t shift)
{
    reduction r = {.work = work, .shift = shift, .place = place_of(sched, shift)};
    weft_members group = {0, sched->size};
    const weft_blocks *from = data->buf == work->buf ? work : data;

    if (group.count == 1) {
        weft_block in = weft_blocks_at(data, 0), out = weft_blocks_at(work, 0);
        weft_sched_copy(sched, out.at, out.count, out.type, in.at, in.count, in.type);
    }
    while (group.count > 1) {
        weft_members lower = weft_split_part(group, 2, 0), upper = weft_split_part(group, 2, 1);
        bool is_lower = r.place < upper.first;
        exchange_halves(sched, &r, from, is_lower ? lower : upper, is_lower ? upper : lower);
        group = is_lower ? lower : upper;
        from = work;
    }
}

void weft_scatter_blocks_halving(weft_sched *sched, const weft_blocks *blocks, uint32_t shift)
{
    uint32_t place = place_of(sched, shift);
    weft_members group = {0, sched->size};

    while (group.count > 1) {
        weft_members upper = weft_split_part(group, 2, 1);
        if (place == group.first)
            weft_blocks_send_run(sched, rank_at(sched, shift, upper.first), blocks, upper.first, upper.count);
        if (place == upper.first) {
            weft_blocks_recv_run(sched, rank_at(sched, shift, group.first), blocks, upper.first, upper.count);
            weft_sched_fence(sched);
        }
        group = place < upper.first ? weft_split_part(group, 2, 0) : upper;
    }
    weft_sched_fence(sched);
}

void weft_gather_blocks_halving(weft_sched *sched, const weft_blocks *blocks, uint32_t shift)
{
    weft_members path[WEFT_SPLIT_LEVELS];
    uint32_t place = place_of(sched, shift), levels = weft_split_path(sched->size, 2, place, path);

    for (uint32_t i = levels - 1; i-- > 0;) {
        weft_members upper = weft_split_part(path[i], 2, 1);
        if (place == path[i].first) {
            weft_blocks_recv_run(sched, rank_at(sched, shift, upper.first), blocks, upper.first, upper.count);
        } else if (place == upper.first) {
            weft_sched_fence(sched);
            weft_blocks_send_run(sched, rank_at(sched, shift, path[i].first), blocks, upper.first, upper.count);
            break;
        }
    }
    weft_sched_fence(sched);
}

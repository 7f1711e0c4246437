/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce_scatter: reduces all ranks' vectors, and gives each rank one block of the result. The ring is also the first half of an allreduce.
 */
#include "collectives/algorithms.h"

void weft_reduce_scatter_blocks_ring(weft_sched *sched, const weft_blocks *blocks, uint32_t shift)
{
    uint32_t size = sched->size, place = (sched->rank + size - shift) % size;
    uint32_t left = (sched->rank + size - 1) % size, right = (sched->rank + 1) % size;
    uint64_t longest = weft_blocks_at(blocks, 0).count; /* of an even partition, the first */
    void *more;

    for (uint32_t i = 1; i < size && blocks->starts; i++) {
        uint64_t count = weft_blocks_at(blocks, i).count;
        longest = count > longest ? count : longest;
    }
    more = size > 1 ? weft_sched_temp(sched, longest, blocks->type) : NULL;
    for (uint32_t i = 0; i + 1 < size; i++) {
        weft_block in = weft_blocks_at(blocks, (place + 2 * size - i - 2) % size);
        weft_blocks_send(sched, right, blocks, (place + 2 * size - i - 1) % size);
        if (in.count || !blocks->starts)
            weft_sched_recv(sched, left, more, in.count, in.type);
        weft_sched_fence(sched);
        weft_sched_reduce(sched, more, in.at, in.count, in.type);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * barrier: no rank leaves before all have entered. Called through select.c.
 * After round k a rank depends on the 2^k ranks before it (dissemination) or on the 2^k ranks of its block (doubling). If nodes hold ranks
 * in blocks, doubling's first rounds stay within a node, so fewer messages cross.
 */
#include "collectives/algorithms.h"

void weft_barrier_doubling(weft_sched *sched, const weft_coll *args)
{
    (void)args;
    for (uint32_t distance = 1; distance < sched->size; distance *= 2) {
        weft_sched_send(sched, sched->rank ^ distance, NULL, 0, weft_sched_bytes());
        weft_sched_recv(sched, sched->rank ^ distance, NULL, 0, weft_sched_bytes());
        weft_sched_fence(sched);
    }
}

/* k-way: before the round of `distance` a rank depends on `distance` - 1 ranks before it; then on k times as many. */
static void disseminate(weft_sched *sched, uint32_t k)
{
    uint32_t rank = sched->rank, size = sched->size;

    for (uint64_t distance = 1; distance < size; distance *= k) {
        for (uint64_t far = distance; far < distance * k && far < size; far += distance) {
            weft_sched_send(sched, (uint32_t)((rank + far) % size), NULL, 0, weft_sched_bytes());
            weft_sched_recv(sched, (uint32_t)((rank + size - far) % size), NULL, 0, weft_sched_bytes());
        }
        weft_sched_fence(sched);
    }
}

void weft_barrier_dissemination(weft_sched *sched, const weft_coll *args)
{
    (void)args;
    disseminate(sched, 2);
}

void weft_barrier_dissemination_4(weft_sched *sched, const weft_coll *args)
{
    (void)args;
    disseminate(sched, 4);
}

void weft_barrier_dissemination_8(weft_sched *sched, const weft_coll *args)
{
    (void)args;
    disseminate(sched, 8);
}

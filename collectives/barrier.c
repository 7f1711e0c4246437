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

void weft_barrier_dissemination(weft_sched *sched, const weft_coll *args)
{
    (void)args;
    for (uint64_t distance = 1; distance < sched->size; distance *= 2) {
        weft_sched_send(sched, (uint32_t)((sched->rank + distance) % sched->size), NULL, 0, weft_sched_bytes());
        weft_sched_recv(sched, (uint32_t)((sched->rank + sched->size - distance) % sched->size), NULL, 0, weft_sched_bytes());
        weft_sched_fence(sched);
    }
}

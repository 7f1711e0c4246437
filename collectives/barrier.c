/* SPDX-License-Identifier: BSD-3-Clause
 *
 * barrier: nobody leaves before everybody came. Called through select.c. In round k each rank has heard, directly or not, of the
 * 2^k ranks before it (dissemination), or of the 2^k ranks of its block (doubling). Where ranks stand on hosts in blocks, doubling's
 * first rounds stay inside of a host: of 2 hosts with 8 ranks each 16 messages cross, 30 with dissemination.
 */
#include "collectives/algorithms.h"

/* A power of two of ranks. */
void weft_barrier_doubling(weft_sched *sched, const weft_coll *args)
{
    (void)args;
    for (uint32_t far = 1; far < sched->size; far *= 2) {
        weft_sched_send(sched, sched->rank ^ far, NULL, 0, weft_sched_bytes());
        weft_sched_recv(sched, sched->rank ^ far, NULL, 0, weft_sched_bytes());
        weft_sched_fence(sched);
    }
}

void weft_barrier_dissemination(weft_sched *sched, const weft_coll *args)
{
    (void)args;
    for (uint64_t far = 1; far < sched->size; far *= 2) {
        weft_sched_send(sched, (uint32_t)((sched->rank + far) % sched->size), NULL, 0, weft_sched_bytes());
        weft_sched_recv(sched, (uint32_t)((sched->rank + sched->size - far) % sched->size), NULL, 0, weft_sched_bytes());
        weft_sched_fence(sched);
    }
}

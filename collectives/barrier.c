/* SPDX-License-Identifier: BSD-3-Clause
 *
 * barrier: nobody leaves before everybody came. Called through choose.c. In round k each rank has heard, directly or not, of the
 * 2^k ranks before it (dissemination), or of the 2^k ranks of its block (doubling). Where ranks stand on hosts in blocks, doubling's
 * first rounds stay inside of a host: of 2 hosts with 8 ranks each 16 messages cross, 30 with dissemination.
 */
#include "collectives/algorithms.h"

/* A power of two of ranks. */
void weft_barrier_doubling(weft_plan *plan, const weft_coll *args)
{
    (void)args;
    for (uint32_t far = 1; far < plan->size; far *= 2) {
        weft_plan_send(plan, plan->rank ^ far, NULL, 0, weft_plan_bytes());
        weft_plan_recv(plan, plan->rank ^ far, NULL, 0, weft_plan_bytes());
        weft_plan_fence(plan);
    }
}

void weft_barrier_dissemination(weft_plan *plan, const weft_coll *args)
{
    (void)args;
    for (uint64_t far = 1; far < plan->size; far *= 2) {
        weft_plan_send(plan, (uint32_t)((plan->rank + far) % plan->size), NULL, 0, weft_plan_bytes());
        weft_plan_recv(plan, (uint32_t)((plan->rank + plan->size - far) % plan->size), NULL, 0, weft_plan_bytes());
        weft_plan_fence(plan);
    }
}

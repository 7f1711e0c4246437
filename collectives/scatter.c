/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scatter: a block for each rank from the root. Called through choose.c. Gather's tree, run the other way.
 */
#include "collectives/algorithms.h"

static void keep_own(weft_plan *plan, const weft_coll *args)
{
    if (!args->in_place)
        weft_plan_copy(plan, args->recvbuf, args->recvcount, args->recvtype,
                       weft_plan_at(args->sendbuf, args->sendtype, plan->rank * args->sendcount), args->sendcount,
                           args->sendtype);
}

void weft_scatter_linear(weft_plan *plan, const weft_coll *args)
{
    uint32_t root = (uint32_t)args->root;

    if (plan->rank != root) {
        weft_plan_recv(plan, root, args->recvbuf, args->recvcount, args->recvtype);
        weft_plan_fence(plan);
        return;
    }
    for (uint32_t i = 0; i < plan->size; i++)
        if (i != root)
            weft_plan_send(plan, i, weft_plan_at(args->sendbuf, args->sendtype, i * args->sendcount), args->sendcount,
                           args->sendtype);
    keep_own(plan, args);
    weft_plan_fence(plan);
}

/* sendbuf packed in turned order; the root's own block keeps its place empty. */
static char *collect(weft_plan *plan, const weft_coll *args, uint64_t block)
{
    uint32_t root = (uint32_t)args->root, size = plan->size, upper = size - root - 1;
    char *all = size > 1 ? weft_plan_temp(plan, size * block, weft_plan_bytes()) : NULL;

    if (!all)
        return NULL;
    if (upper)
        weft_plan_copy(plan, all + block, upper * block, weft_plan_bytes(),
                       weft_plan_at(args->sendbuf, args->sendtype, (root + 1) * args->sendcount), upper * args->sendcount,
                           args->sendtype);
    if (root)
        weft_plan_copy(plan, all + (upper + 1) * block, root * block, weft_plan_bytes(), args->sendbuf, root * args->sendcount,
                       args->sendtype);
    return all;
}

void weft_scatter_binomial(weft_plan *plan, const weft_coll *args)
{
    const weft_type *byte = weft_plan_bytes();
    uint32_t root = (uint32_t)args->root, size = plan->size, v = (plan->rank + size - root) % size;
    uint64_t block = v ? args->recvcount * (uint64_t)args->recvtype->size : args->sendcount * (uint64_t)args->sendtype->size;
    uint64_t bit = v ? (v & -v) : 1, span;
    char *all = NULL;

    while (!v && bit < size)
        bit *= 2;
    span = v + bit < size ? bit : size - v;
    if (v && span == 1) {
        weft_plan_recv(plan, (uint32_t)((v - bit + root) % size), args->recvbuf, args->recvcount, args->recvtype);
        weft_plan_fence(plan);
        return;
    }
    if (v) {
        all = weft_plan_temp(plan, span * block, byte);
        weft_plan_recv(plan, (uint32_t)((v - bit + root) % size), all, span * block, byte);
        weft_plan_fence(plan);
    } else {
        all = collect(plan, args, block);
    }
    for (bit /= 2; bit && all; bit /= 2)
        if (v + bit < size)
            weft_plan_send(plan, (uint32_t)((v + bit + root) % size), all + bit * block,
                           (v + 2 * bit <= size ? bit : size - v - bit) * block, byte);
    if (!v)
        keep_own(plan, args);
    else if (all)
        weft_plan_copy(plan, args->recvbuf, args->recvcount, args->recvtype, all, block, byte);
    weft_plan_fence(plan);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scatter: one block from the root to each rank. Called through select.c. The binomial tree is that of gather, reversed.
 */
#include "collectives/algorithms.h"

static void keep_own(weft_sched *sched, const weft_coll *args, const weft_blocks *all)
{
    if (!args->in_place)
        weft_blocks_take(sched, all, sched->rank, args->recvbuf, args->recvcount, args->recvtype);
}

void weft_scatter_linear(weft_sched *sched, const weft_coll *args)
{
    weft_blocks all = weft_blocks_sent(args);
    uint32_t root = (uint32_t)args->root;

    weft_sched_one_way(sched, root, true);
    if (sched->rank == root) {
        for (uint32_t i = 1, to; i < sched->size; i++) { /* the next rank first: it is the next root where roots take turns */
            to = (root + i) % sched->size;
            weft_blocks_send(sched, to, &all, to);
        }
        keep_own(sched, args, &all);
    } else if (!args->is_v || (args->recvcount && args->recvtype->size)) {
        weft_sched_recv(sched, root, args->recvbuf, args->recvcount, args->recvtype);
    }
    weft_sched_fence(sched);
}

/* Root: packs sendbuf in vrank order; its own block's space stays empty. */
static char *collect(weft_sched *sched, const weft_coll *args, uint64_t block)
{
    uint32_t root = (uint32_t)args->root, size = sched->size, upper = size - root - 1;
    weft_blocks from = weft_blocks_sent(args);
    char *all = size > 1 ? weft_sched_temp(sched, size * block, weft_sched_bytes()) : NULL;

    if (!all)
        return NULL;
    if (upper)
        weft_blocks_pack(sched, &from, root + 1, upper, all + block);
    if (root)
        weft_blocks_pack(sched, &from, 0, root, all + (upper + 1) * block);
    return all;
}

void weft_scatter_binomial(weft_sched *sched, const weft_coll *args)
{
    const weft_type *byte = weft_sched_bytes();
    uint32_t root = (uint32_t)args->root, size = sched->size, v = (sched->rank + size - root) % size;
    uint64_t block = v ? args->recvcount * (uint64_t)args->recvtype->size : args->sendcount * (uint64_t)args->sendtype->size;
    uint64_t bit = v ? (v & -v) : 1, span;
    char *all = NULL;

    while (!v && bit < size)
        bit *= 2;
    span = v + bit < size ? bit : size - v;
    if (v && span == 1) {
        weft_sched_recv(sched, (uint32_t)((v - bit + root) % size), args->recvbuf, args->recvcount, args->recvtype);
        weft_sched_fence(sched);
        return;
    }
    if (v) {
        all = weft_sched_temp(sched, span * block, byte);
        weft_sched_recv(sched, (uint32_t)((v - bit + root) % size), all, span * block, byte);
        weft_sched_fence(sched);
    } else {
        all = collect(sched, args, block);
    }
    for (bit /= 2; bit && all; bit /= 2)
        if (v + bit < size)
            weft_sched_send(sched, (uint32_t)((v + bit + root) % size), all + bit * block,
                           (v + 2 * bit <= size ? bit : size - v - bit) * block, byte);
    if (!v) {
        weft_blocks from = weft_blocks_sent(args);
        keep_own(sched, args, &from);
    } else if (all) {
        weft_sched_copy(sched, args->recvbuf, args->recvcount, args->recvtype, all, block, byte);
    }
    weft_sched_fence(sched);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gather: one block from each rank to the root, in rank order. Called through select.c.
 * Blocks of several ranks are sent packed, as bytes: the ranks' types only have equal signatures.
 */
#include "collectives/algorithms.h"

static void keep_own(weft_sched *sched, const weft_coll *args, const weft_blocks *all)
{
    if (!args->in_place)
        weft_blocks_fill(sched, all, sched->rank, args->sendbuf, args->sendcount, args->sendtype);
}

void weft_gather_linear(weft_sched *sched, const weft_coll *args)
{
    weft_blocks all = weft_blocks_received(args);
    uint32_t root = (uint32_t)args->root;

    weft_sched_one_way(sched, root, false);
    if (sched->rank == root) {
        for (uint32_t i = 1, from; i < sched->size; i++) { /* the next rank first: it is the next root where roots take turns */
            from = (root + i) % sched->size;
            weft_blocks_recv(sched, from, &all, from);
        }
        keep_own(sched, args, &all);
    } else if (!args->is_v || (args->sendcount && args->sendtype->size)) {
        weft_sched_send(sched, root, args->sendbuf, args->sendcount, args->sendtype);
    }
    weft_sched_fence(sched);
}

/* Root: unpacks blocks 1.. of `all`, in vrank order, into recvbuf: one or two runs of consecutive ranks. Then copies its own block. */
static void spread(weft_sched *sched, const weft_coll *args, const char *all, uint64_t block)
{
    uint32_t root = (uint32_t)args->root, upper = sched->size - root - 1;
    weft_blocks to = weft_blocks_received(args);

    if (upper)
        weft_blocks_unpack(sched, &to, root + 1, upper, all + block);
    if (root)
        weft_blocks_unpack(sched, &to, 0, root, all + (upper + 1) * block);
    keep_own(sched, args, &to);
}

void weft_gather_binomial(weft_sched *sched, const weft_coll *args)
{
    const weft_type *byte = weft_sched_bytes();
    uint32_t root = (uint32_t)args->root, size = sched->size, v = (sched->rank + size - root) % size;
    uint64_t block = v ? args->sendcount * (uint64_t)args->sendtype->size : args->recvcount * (uint64_t)args->recvtype->size;
    uint64_t span = v ? (v & -v) : size;
    char *all = NULL;

    if (v + span > size)
        span = size - v;
    if (span > 1) {
        all = weft_sched_temp(sched, span * block, byte);
        if (!all)
            return;
    }
    for (uint64_t bit = 1; bit < size && !(v & bit); bit *= 2) {
        uint64_t subtree = v + 2 * bit <= size ? bit : size - v - bit;
        if (v + bit < size)
            weft_sched_recv(sched, (uint32_t)((v + bit + root) % size), all + bit * block, subtree * block, byte);
    }
    if (v && all)
        weft_sched_copy(sched, all, block, byte, args->sendbuf, args->sendcount, args->sendtype);
    weft_sched_fence(sched);
    if (!v) {
        spread(sched, args, all, block);
        return;
    }
    if (all)
        weft_sched_send(sched, (uint32_t)((v - (v & -v) + root) % size), all, span * block, byte);
    else
        weft_sched_send(sched, (uint32_t)((v - (v & -v) + root) % size), args->sendbuf, args->sendcount, args->sendtype);
    weft_sched_fence(sched);
}

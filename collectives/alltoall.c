/* SPDX-License-Identifier: BSD-3-Clause
 *
 * alltoall: a block from each rank to each rank. Called through choose.c. In place, the blocks are sent from a packed copy:
 * what is received then never overwrites what is still to go.
 */
#include "collectives/algorithms.h"

typedef struct blocks {
    const void *at;
    uint64_t count;
    const weft_type *type;
} blocks;

static blocks outgoing(weft_plan *plan, const weft_coll *args)
{
    blocks out = {args->sendbuf, args->sendcount, args->sendtype};

    if (args->in_place) {
        uint64_t all = plan->size * args->recvcount;
        out.count = args->recvcount * (uint64_t)args->recvtype->size;
        out.type = weft_plan_bytes();
        out.at = weft_plan_temp(plan, plan->size * out.count, out.type);
        if (out.at)
            weft_plan_copy(plan, (void *)out.at, plan->size * out.count, out.type, args->recvbuf, all, args->recvtype);
    }
    return out;
}

static void block_send(weft_plan *plan, const blocks *out, uint32_t to)
{
    weft_plan_send(plan, to, weft_plan_at(out->at, out->type, to * out->count), out->count, out->type);
}

static void block_recv(weft_plan *plan, const weft_coll *args, uint32_t from)
{
    weft_plan_recv(plan, from, weft_plan_at(args->recvbuf, args->recvtype, from * args->recvcount), args->recvcount,
                   args->recvtype);
}

static void block_keep(weft_plan *plan, const weft_coll *args, const blocks *out)
{
    if (!args->in_place) /* in place it stands there already */
        weft_plan_copy(plan, weft_plan_at(args->recvbuf, args->recvtype, plan->rank * args->recvcount), args->recvcount,
                       args->recvtype,
                       weft_plan_at(out->at, out->type, plan->rank * out->count), out->count, out->type);
}

void weft_alltoall_linear(weft_plan *plan, const weft_coll *args)
{
    blocks out = outgoing(plan, args);

    for (uint32_t i = 1; i < plan->size; i++)
        block_recv(plan, args, (plan->rank + plan->size - i) % plan->size);
    for (uint32_t i = 1; i < plan->size; i++)
        block_send(plan, &out, (plan->rank + i) % plan->size);
    block_keep(plan, args, &out);
    weft_plan_fence(plan);
}

void weft_alltoall_pairwise(weft_plan *plan, const weft_coll *args)
{
    blocks out = outgoing(plan, args);

    block_keep(plan, args, &out);
    for (uint32_t i = 1; i < plan->size; i++) {
        block_recv(plan, args, (plan->rank + plan->size - i) % plan->size);
        block_send(plan, &out, (plan->rank + i) % plan->size);
        weft_plan_fence(plan);
    }
}

/* The blocks of a round, those whose number has `bit`, packed one behind the other, and back. */
static uint64_t bruck_move(weft_plan *plan, char *all, char *run, uint64_t block, uint64_t bit, bool is_out)
{
    uint64_t n = 0;

    for (uint64_t i = bit; i < plan->size; i++) {
        if (!(i & bit))
            continue;
        if (is_out)
            weft_plan_copy(plan, run + n * block, block, weft_plan_bytes(), all + i * block, block, weft_plan_bytes());
        else
            weft_plan_copy(plan, all + i * block, block, weft_plan_bytes(), run + n * block, block, weft_plan_bytes());
        n++;
    }
    return n;
}

void weft_alltoall_bruck(weft_plan *plan, const weft_coll *args)
{
    const weft_type *byte = weft_plan_bytes(), *type = args->recvtype;
    uint32_t size = plan->size, rank = plan->rank;
    uint64_t block = args->recvcount * (uint64_t)type->size, half = (size + 1) / 2;
    const void *from = args->in_place ? args->recvbuf : args->sendbuf;
    const weft_type *from_type = args->in_place ? type : args->sendtype;
    uint64_t from_count = args->in_place ? args->recvcount : args->sendcount;
    char *all = weft_plan_temp(plan, size * block, byte), *out, *in;

    out = weft_plan_temp(plan, (half + 1) * block, byte);
    in = weft_plan_temp(plan, (half + 1) * block, byte);
    if (!all || !out || !in)
        return;
    weft_plan_copy(plan, all, (size - rank) * block, byte, weft_plan_at(from, from_type, rank * from_count),
                   (size - rank) * from_count, from_type);
    if (rank)
        weft_plan_copy(plan, all + (size - rank) * block, rank * block, byte, from, rank * from_count, from_type);
    for (uint64_t bit = 1; bit < size; bit *= 2) { /* block i goes i ranks onwards, by the bits of i */
        uint64_t n = bruck_move(plan, all, out, block, bit, true);
        weft_plan_send(plan, (uint32_t)((rank + bit) % size), out, n * block, byte);
        weft_plan_recv(plan, (uint32_t)((rank + size - bit) % size), in, n * block, byte);
        weft_plan_fence(plan);
        bruck_move(plan, all, in, block, bit, false);
    }
    for (uint32_t i = 0; i < size; i++)
        weft_plan_copy(plan, weft_plan_at(args->recvbuf, type, ((rank + size - i) % size) * args->recvcount), args->recvcount,
                       type,
                       all + i * block, block, byte);
}

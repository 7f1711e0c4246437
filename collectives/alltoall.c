/* SPDX-License-Identifier: BSD-3-Clause
 *
 * alltoall: one block from each rank to each rank. Called through select.c.
 * In place, blocks are sent from a packed copy, so that received blocks overwrite none that is still to be sent.
 */
#include "collectives/algorithms.h"

typedef struct blocks {
    const void *at;
    uint64_t count;
    const weft_type *type;
} blocks;

static blocks outgoing(weft_sched *sched, const weft_coll *args)
{
    blocks out = {args->sendbuf, args->sendcount, args->sendtype};

    if (args->in_place) {
        uint64_t all = sched->size * args->recvcount;
        out.count = args->recvcount * (uint64_t)args->recvtype->size;
        out.type = weft_sched_bytes();
        out.at = weft_sched_temp(sched, sched->size * out.count, out.type);
        if (out.at)
            weft_sched_copy(sched, (void *)out.at, sched->size * out.count, out.type, args->recvbuf, all, args->recvtype);
    }
    return out;
}

static void block_send(weft_sched *sched, const blocks *out, uint32_t to)
{
    weft_sched_send(sched, to, weft_sched_at(out->at, out->type, to * out->count), out->count, out->type);
}

static void block_recv(weft_sched *sched, const weft_coll *args, uint32_t from)
{
    weft_sched_recv(sched, from, weft_sched_at(args->recvbuf, args->recvtype, from * args->recvcount), args->recvcount,
                   args->recvtype);
}

static void block_keep(weft_sched *sched, const weft_coll *args, const blocks *out)
{
    if (!args->in_place) /* in place: already there */
        weft_sched_copy(sched, weft_sched_at(args->recvbuf, args->recvtype, sched->rank * args->recvcount), args->recvcount,
                       args->recvtype,
                       weft_sched_at(out->at, out->type, sched->rank * out->count), out->count, out->type);
}

void weft_alltoall_linear(weft_sched *sched, const weft_coll *args)
{
    blocks out = outgoing(sched, args);

    for (uint32_t i = 1; i < sched->size; i++)
        block_recv(sched, args, (sched->rank + sched->size - i) % sched->size);
    for (uint32_t i = 1; i < sched->size; i++)
        block_send(sched, &out, (sched->rank + i) % sched->size);
    block_keep(sched, args, &out);
    weft_sched_fence(sched);
}

void weft_alltoall_pairwise(weft_sched *sched, const weft_coll *args)
{
    blocks out = outgoing(sched, args);

    block_keep(sched, args, &out);
    for (uint32_t i = 1; i < sched->size; i++) {
        block_recv(sched, args, (sched->rank + sched->size - i) % sched->size);
        block_send(sched, &out, (sched->rank + i) % sched->size);
        weft_sched_fence(sched);
    }
}

/* Copies the blocks of a round (bit set in their index) from `all` into `run`, consecutively, or back. Returns their count. */
static uint64_t bruck_move(weft_sched *sched, char *all, char *run, uint64_t block, uint64_t bit, bool is_out)
{
    uint64_t n = 0;

    for (uint64_t i = bit; i < sched->size; i++) {
        if (!(i & bit))
            continue;
        if (is_out)
            weft_sched_copy(sched, run + n * block, block, weft_sched_bytes(), all + i * block, block, weft_sched_bytes());
        else
            weft_sched_copy(sched, all + i * block, block, weft_sched_bytes(), run + n * block, block, weft_sched_bytes());
        n++;
    }
    return n;
}

void weft_alltoall_bruck(weft_sched *sched, const weft_coll *args)
{
    const weft_type *byte = weft_sched_bytes(), *type = args->recvtype;
    uint32_t size = sched->size, rank = sched->rank;
    uint64_t block = args->recvcount * (uint64_t)type->size, half = (size + 1) / 2;
    const void *from = args->in_place ? args->recvbuf : args->sendbuf;
    const weft_type *from_type = args->in_place ? type : args->sendtype;
    uint64_t from_count = args->in_place ? args->recvcount : args->sendcount;
    char *all = weft_sched_temp(sched, size * block, byte), *out, *in;

    out = weft_sched_temp(sched, (half + 1) * block, byte);
    in = weft_sched_temp(sched, (half + 1) * block, byte);
    if (!all || !out || !in)
        return;
    weft_sched_copy(sched, all, (size - rank) * block, byte, weft_sched_at(from, from_type, rank * from_count),
                   (size - rank) * from_count, from_type);
    if (rank)
        weft_sched_copy(sched, all + (size - rank) * block, rank * block, byte, from, rank * from_count, from_type);
    for (uint64_t bit = 1; bit < size; bit *= 2) { /* block i moves by i ranks, one bit of i a round */
        uint64_t n = bruck_move(sched, all, out, block, bit, true);
        weft_sched_send(sched, (uint32_t)((rank + bit) % size), out, n * block, byte);
        weft_sched_recv(sched, (uint32_t)((rank + size - bit) % size), in, n * block, byte);
        weft_sched_fence(sched);
        bruck_move(sched, all, in, block, bit, false);
    }
    for (uint32_t i = 0; i < size; i++)
        weft_sched_copy(sched, weft_sched_at(args->recvbuf, type, ((rank + size - i) % size) * args->recvcount), args->recvcount,
                       type,
                       all + i * block, block, byte);
}

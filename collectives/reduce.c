/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce: reduces all ranks' vectors at the root. Called through select.c; weft_reduce_own_block also by allreduce.c and hier.c.
 * weft_sched_reduce(in, inout) computes inout = in op inout: if the operator does not commute, `in` holds the lower ranks.
 */
#include "collectives/algorithms.h"

static const void *own_data(const weft_coll *args, bool is_root)
{
    return args->in_place && is_root ? args->recvbuf : args->sendbuf;
}

static void *result_place(weft_sched *sched, const weft_coll *args, bool is_root)
{
    return is_root ? args->recvbuf : weft_sched_temp(sched, args->recvcount, args->recvtype);
}

void weft_reduce_binomial(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t root = (uint32_t)args->root, v = (sched->rank + sched->size - root) % sched->size;
    const void *own = own_data(args, v == 0);
    void *sum = NULL, *more = NULL;

    for (uint64_t bit = 1; bit < sched->size && !(v & bit); bit *= 2) {
        if (v + bit >= sched->size)
            continue;
        if (!more) {
            sum = result_place(sched, args, v == 0);
            more = weft_sched_temp(sched, count, type);
        }
        weft_sched_recv(sched, (uint32_t)((v + bit + root) % sched->size), more, count, type);
        if (bit == 1)
            weft_sched_copy(sched, sum, count, type, own, count, type);
        weft_sched_fence(sched);
        weft_sched_reduce(sched, more, sum, count, type);
    }
    if (v) {
        uint32_t bit = v & -v;
        weft_sched_send(sched, (v - bit + root) % sched->size, sum ? sum : own, count, type);
        weft_sched_fence(sched);
    } else if (!sum) {
        weft_sched_copy(sched, args->recvbuf, count, type, own, count, type);
    }
}

/* The tree is rooted at rank 0, so that each partial result covers consecutive ranks. The two rooms alternate as result and operand. */
void weft_reduce_binomial_order(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    uint32_t rank = sched->rank, root = (uint32_t)args->root;
    const void *sum = own_data(args, rank == root);
    void *bufs[2] = {NULL, NULL};
    int next = 0;

    for (uint64_t bit = 1; bit < sched->size && !(rank & bit); bit *= 2) {
        if (rank + bit >= sched->size)
            continue;
        if (!bufs[next])
            bufs[next] = weft_sched_temp(sched, count, type);
        weft_sched_recv(sched, (uint32_t)(rank + bit), bufs[next], count, type);
        weft_sched_fence(sched);
        weft_sched_reduce(sched, sum, bufs[next], count, type);
        sum = bufs[next];
        next = !next;
    }
    if (rank)
        weft_sched_send(sched, rank - (rank & -rank), sum, count, type);
    else if (root)
        weft_sched_send(sched, root, sum, count, type);
    else
        weft_sched_copy(sched, args->recvbuf, count, type, sum, count, type);
    weft_sched_fence(sched);
    if (rank == root && rank) {
        weft_sched_recv(sched, 0, args->recvbuf, count, type);
        weft_sched_fence(sched);
    }
}

/* The rank whose part begins the reduction of this rank's block: the last one if order matters, else one that saves a copy. */
static uint32_t fold_base(const weft_sched *sched, bool is_in_place)
{
    if (!sched->op->is_commutative)
        return sched->size - 1;
    return is_in_place ? sched->rank : (sched->rank + 1) % sched->size;
}

/* Where rank i's part of this rank's block is received: the base's in the result, the others' consecutively in parts. */
static void *part_place(const weft_sched *sched, const weft_type *type, uint32_t i, uint32_t base, void *out, void *parts, uint64_t count)
{
    if (i == base)
        return out;
    return weft_sched_at(parts, type, count * (i - (i > sched->rank) - (base != sched->rank && i > base)));
}

void weft_reduce_own_block(weft_sched *sched, const weft_blocks *blocks, void *out)
{
    uint32_t size = sched->size, rank = sched->rank, base, others;
    weft_block own = weft_blocks_at(blocks, rank);
    void *parts;

    base = fold_base(sched, out == own.at);
    others = base == rank ? size - 1 : size - 2;
    parts = own.count && others ? weft_sched_temp(sched, own.count * others, own.type) : NULL;
    for (uint32_t i = 1; i < size && !sched->rc; i++) {
        uint32_t to = (rank + i) % size, from = (rank + size - i) % size;
        weft_block remote = weft_blocks_at(blocks, to);
        weft_send_fragments(sched, to, remote.at, remote.count, remote.type);
        if (own.count)
            weft_recv_fragments(sched, from, part_place(sched, own.type, from, base, out, parts, own.count), own.count, own.type);
    }
    weft_sched_fence(sched);
    if (sched->rc || !own.count)
        return;
    if (base == rank)
        weft_sched_copy(sched, out, own.count, own.type, own.at, own.count, own.type);
    for (uint32_t i = size; i-- > 0;) /* from the last rank down: in op inout */
        if (i != base)
            weft_sched_reduce(sched, i == rank ? own.at : part_place(sched, own.type, i, base, out, parts, own.count), out, own.count,
                              own.type);
}

/* The root reduces its block into recvbuf, unless its own data is there (in place) and order matters. */
static void *block_place(weft_sched *sched, const weft_coll *args, bool is_root, const weft_block *own)
{
    if (!is_root || (args->in_place && !sched->op->is_commutative))
        return weft_sched_temp(sched, own->count, own->type);
    return own->at;
}

void weft_reduce_blocks(weft_sched *sched, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint32_t size = sched->size, root = (uint32_t)args->root;
    bool is_root = sched->rank == root;
    weft_blocks data = weft_blocks_even(own_data(args, is_root), args->recvcount, type, size);
    weft_blocks result = weft_blocks_even(args->recvbuf, args->recvcount, type, size);
    weft_block own = weft_blocks_at(&result, sched->rank);
    void *out = block_place(sched, args, is_root, &own);

    weft_reduce_own_block(sched, &data, out);
    if (!is_root) {
        weft_send_fragments(sched, root, out, own.count, type);
        weft_sched_fence(sched);
        return;
    }
    for (uint32_t i = 0; i < size; i++) {
        weft_block remote = weft_blocks_at(&result, i);
        if (i != root)
            weft_recv_fragments(sched, i, remote.at, remote.count, type);
    }
    weft_sched_copy(sched, own.at, own.count, type, out, own.count, type);
    weft_sched_fence(sched);
}

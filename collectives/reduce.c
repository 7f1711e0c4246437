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

/* A k-nomial tree from vrank 0, which is rank `top`: the children of v at level j are v + d k^j for d = 1 .. k - 1, if the digits of v
 * up to the j-th are 0 in base k. A subtree is of consecutive vranks, so the partial results of a level are reduced in order: in op inout,
 * from the last child's down. bufs[k - 1] holds the sum of the levels before. */
typedef struct tree {
    uint32_t k, top, v;
    void *bufs[WEFT_RADIX_MAX];
} tree;

/* Receives from the children at this level, and returns the new sum. The last child's part arrives in `into`, if it is not NULL. */
static const void *reduce_level(weft_sched *sched, const weft_coll *args, tree *t, uint64_t level, const void *sum, void *into)
{
    uint64_t count = args->recvcount, others = (sched->size - t->v - 1) / level;
    uint32_t children = others < t->k - 1 ? (uint32_t)others : t->k - 1;
    void **last = &t->bufs[children - 1], *held;

    for (uint32_t i = 0; i < children; i++) {
        void **buf = &t->bufs[i];
        if (buf == last && into)
            buf = last = &into;
        else if (!*buf)
            *buf = weft_sched_temp(sched, count, args->recvtype);
        weft_sched_recv(sched, (uint32_t)((t->v + (i + 1) * level + t->top) % sched->size), *buf, count, args->recvtype);
    }
    weft_sched_fence(sched);
    for (uint32_t i = children - 1; i-- > 0;)
        weft_sched_reduce(sched, t->bufs[i], *last, count, args->recvtype);
    weft_sched_reduce(sched, sum, *last, count, args->recvtype);
    held = *last;
    if (!into) {
        *last = t->bufs[t->k - 1];
        t->bufs[t->k - 1] = held;
    }
    return held;
}

/* Rank 1 of two ranks is the root. It receives the lower operand. */
static void reduce_at_upper(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    void *lower = weft_sched_temp(sched, count, type);

    weft_sched_recv(sched, 0, lower, count, type);
    weft_sched_copy(sched, args->recvbuf, count, type, own_data(args, true), count, type);
    weft_sched_fence(sched);
    weft_sched_reduce(sched, lower, args->recvbuf, count, type);
}

static void reduce_tree(weft_sched *sched, const weft_coll *args, uint32_t k, uint32_t top)
{
    uint64_t count = args->recvcount, level = 1;
    const weft_type *type = args->recvtype;
    uint32_t rank = sched->rank, size = sched->size, root = (uint32_t)args->root;
    tree t = {.k = k, .top = top, .v = (rank + size - top) % size};
    const void *sum = own_data(args, rank == root);

    if (size == 2 && root == 1 && rank == 1) {
        reduce_at_upper(sched, args);
        return;
    }
    for (; level < size && t.v / level % k == 0 && !sched->rc; level *= k) {
        bool is_last = rank == root && t.v == 0 && level * k >= size && sum != args->recvbuf;
        if (t.v + level < size)
            sum = reduce_level(sched, args, &t, level, sum, is_last ? args->recvbuf : NULL);
    }
    if (t.v)
        weft_sched_send(sched, (uint32_t)((t.v - t.v / level % k * level + top) % size), sum, count, type);
    else if (top != root)
        weft_sched_send(sched, root, sum, count, type);
    else
        weft_sched_copy(sched, args->recvbuf, count, type, sum, count, type);
    weft_sched_fence(sched);
    if (rank == root && top != root) {
        weft_sched_recv(sched, top, args->recvbuf, count, type);
        weft_sched_fence(sched);
    }
}

void weft_reduce_binomial(weft_sched *sched, const weft_coll *args) { reduce_tree(sched, args, 2, (uint32_t)args->root); }
void weft_reduce_knomial_4(weft_sched *sched, const weft_coll *args) { reduce_tree(sched, args, 4, (uint32_t)args->root); }
void weft_reduce_knomial_8(weft_sched *sched, const weft_coll *args) { reduce_tree(sched, args, 8, (uint32_t)args->root); }
/* From rank 0, so that the vranks are the ranks; two ranks need no detour. */
static void reduce_tree_in_order(weft_sched *sched, const weft_coll *args, uint32_t k)
{
    reduce_tree(sched, args, k, sched->size == 2 ? (uint32_t)args->root : 0);
}

void weft_reduce_binomial_order(weft_sched *sched, const weft_coll *args) { reduce_tree_in_order(sched, args, 2); }
void weft_reduce_knomial_4_order(weft_sched *sched, const weft_coll *args) { reduce_tree_in_order(sched, args, 4); }
void weft_reduce_knomial_8_order(weft_sched *sched, const weft_coll *args) { reduce_tree_in_order(sched, args, 8); }

void weft_reduce_rabenseifner(weft_sched *sched, const weft_coll *args)
{
    uint32_t root = (uint32_t)args->root;
    bool is_root = sched->rank == root;
    void *sum = is_root ? args->recvbuf : weft_sched_temp(sched, args->recvcount, args->recvtype);
    weft_blocks data = weft_blocks_even(own_data(args, is_root), args->recvcount, args->recvtype, sched->size);
    weft_blocks result = weft_blocks_even(sum, args->recvcount, args->recvtype, sched->size);

    if (sched->rc)
        return;
    weft_reduce_scatter_blocks_halving(sched, &data, &result, root);
    weft_gather_blocks_halving(sched, &result, root);
}

/* The rank whose part begins the reduction of this rank's block: the last one if order matters, else one that saves a copy. A stage of two
 * ranks of a hierarchical algorithm may be in place: it needs no order. */
static uint32_t fold_base(const weft_sched *sched, bool is_in_place)
{
    if (!sched->op->is_commutative || (sched->size == 2 && !is_in_place))
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
    if (!is_root || (args->in_place && weft_sched_is_ordered(sched)))
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
    weft_block own = weft_blocks_at(is_root ? &result : &data, sched->rank); /* only the root has a recvbuf */
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

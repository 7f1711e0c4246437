/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inter: collectives of intercommunicators (MPI 5.0 6.2.2, 6.2.3), built of views of the team. Called by coll.c where team->is_inter.
 * bcast, gather, scatter: the intracommunicator algorithm among the other group and the root, its last rank, which works in place.
 * reduce, allreduce, allgather, reduce_scatter: flows of data from one group to the other (struct flow). alltoall, allgatherv: messages
 * between all pairs.
 * Invariant: both groups describe a flow by the same numbers, so all members choose alike. A member that passed MPI_PROC_NULL does nothing.
 */
#include "collectives/algorithms.h"
#include "collectives/choice.h"

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }

static bool is_root(const weft_sched *sched, const weft_coll *args) { return args->root == (int)sched->team->rank; }
static bool takes_part(const weft_coll *args) { return args->root != WEFT_ROOT_NONE; }

/* The group that does not have the root. */
static weft_members other_group(const weft_sched *sched, const weft_coll *args)
{
    return is_root(sched, args) ? sched->team->remote : sched->team->local;
}

static weft_sched_algorithm *choose(const weft_sched *sched, enum weft_coll_kind kind, uint32_t ranks, const weft_coll *args, bool at_root)
{
    weft_coll_query query = weft_coll_query_of(kind, ranks, sched->team, args, at_root);

    query.nodes = min(query.nodes, ranks);
    return weft_coll_choose(sched->team, &query)->algorithm;
}

/* ---- one to all, all to one, without an operator ---- */

static void with_root(weft_sched *sched, enum weft_coll_kind kind, const weft_coll *args)
{
    weft_members others;
    weft_coll part = *args;
    uint32_t *ranks;

    if (!takes_part(args))
        return;
    others = other_group(sched, args);
    ranks = weft_sched_temp(sched, (others.count + (uint64_t)1) * sizeof *ranks, weft_sched_bytes());
    if (!ranks)
        return;
    for (uint32_t i = 0; i < others.count; i++)
        ranks[i] = others.first + i;
    ranks[others.count] = (uint32_t)args->root;
    part.root = (int)others.count;
    part.in_place = is_root(sched, args); /* the root has no block of its own; the last rank's would lie behind all others */
    weft_sched_sub(sched, ranks, others.count + 1, choose(sched, kind, others.count + 1, args, is_root(sched, args)), &part);
}

static void bcast(weft_sched *sched, const weft_coll *args) { with_root(sched, WEFT_COLL_BCAST, args); }
static void gather(weft_sched *sched, const weft_coll *args) { with_root(sched, WEFT_COLL_GATHER, args); }
static void scatter(weft_sched *sched, const weft_coll *args) { with_root(sched, WEFT_COLL_SCATTER, args); }
static void gatherv(weft_sched *sched, const weft_coll *args) { with_root(sched, WEFT_COLL_GATHERV, args); }
static void scatterv(weft_sched *sched, const weft_coll *args) { with_root(sched, WEFT_COLL_SCATTERV, args); }

/* ---- flows ----
 * What `from` has together goes to all members of `to`, in one of two ways.
 * Whole: the first k members of `from` get all of it, and pass it to the first k of `to`, one each; these broadcast it, each to every k-th
 *     member; k = min(from.count, to.count). Few messages: log2 of the sizes.
 * In blocks: each member of `from` has one block of an even partition, and each member of `to` gets one of another, from those whose blocks
 *     overlap with it; then `to` exchanges its blocks. Each byte crosses once. */
typedef struct flow {
    weft_members from, to;
    uint64_t count;        /* elements of `type`, in all; the same on both sides */
    const weft_type *type; /* of a reduction: its type, so that blocks are of whole elements; else bytes */
    bool is_in_blocks;
} flow;

typedef struct vector {
    void *at;
    uint64_t count;
    const weft_type *type;
} vector;

/* op: of a reduction; else NULL. */
static flow flow_of(const weft_sched *sched, weft_members from, weft_members to, uint64_t count, const weft_type *type, const weft_op *op)
{
    weft_coll all = {.recvcount = count, .recvtype = type, .op = op};
    flow flow = {from, to, count, type, false};

    /* as where a bcast stops sending all bytes along a tree */
    flow.is_in_blocks = choose(sched, WEFT_COLL_BCAST, max(max(from.count, to.count), 3), &all, false) != weft_bcast_binomial;
    return flow;
}

static uint32_t pairs_of(const flow *flow) { return min(flow->from.count, flow->to.count); }

/* Local phase of `from`, whole: all that the group has together, at its first members; what others get is not read. */
static vector combine(weft_sched *sched, const flow *flow, const weft_coll *args)
{
    uint32_t index = sched->rank - flow->from.first, count = flow->from.count;
    bool is_one = pairs_of(flow) == 1; /* only the first member sends */
    enum weft_coll_kind kind = args->op ? (is_one ? WEFT_COLL_REDUCE : WEFT_COLL_ALLREDUCE)
                                        : (is_one ? WEFT_COLL_GATHER : WEFT_COLL_ALLGATHER);
    vector all = {NULL, flow->count, flow->type};
    weft_coll part = *args;

    if (count == 1)
        return (vector){(void *)args->sendbuf, args->sendcount, args->sendtype};
    if (!is_one || index == 0)
        all.at = weft_sched_temp(sched, all.count, all.type);
    part.root = 0;
    part.recvbuf = all.at;
    if (!args->op) {
        part.recvcount = flow->count / count;
        part.recvtype = flow->type;
    }
    weft_sched_among(sched, flow->from, choose(sched, kind, count, &part, index == 0), &part);
    return all;
}

static void reduce_block(weft_sched *sched, const weft_coll *args)
{
    weft_blocks data = weft_blocks_even(args->sendbuf, args->recvcount, args->recvtype, sched->size);

    weft_reduce_own_block(sched, &data, args->recvbuf);
}

/* Local phase of `from`, in blocks: this member's block of the even partition. */
static vector own_block(weft_sched *sched, const flow *flow, const weft_coll *args)
{
    uint32_t index = sched->rank - flow->from.first;
    uint64_t first = weft_sched_block_start(flow->count, flow->from.count, index);
    vector own = {NULL, weft_sched_block_start(flow->count, flow->from.count, index + 1) - first, flow->type};
    weft_coll part = *args;

    if (args->op ? flow->from.count == 1 : args->sendtype->is_dense) {
        own.at = (void *)args->sendbuf;
    } else if (args->op) {
        own.at = weft_sched_temp(sched, own.count, own.type);
        part.recvbuf = own.at;
        weft_sched_among(sched, flow->from, reduce_block, &part);
    } else {
        own.at = weft_sched_temp(sched, own.count, own.type);
        weft_sched_copy(sched, own.at, own.count, own.type, args->sendbuf, args->sendcount, args->sendtype);
    }
    return own;
}

/* Elements begin .. end - 1 of a vector. */
typedef struct range {
    uint64_t begin, end;
} range;

/* Block i of an even partition. */
static range even_range(uint64_t count, uint32_t blocks, uint32_t i)
{
    return (range){weft_sched_block_start(count, blocks, i), weft_sched_block_start(count, blocks, i + 1)};
}

/* Elements that are in both. Returns their number; *begin: the first one. */
static uint64_t overlap(range own, range other, uint64_t *begin)
{
    uint64_t end = own.end < other.end ? own.end : other.end;

    *begin = own.begin > other.begin ? own.begin : other.begin;
    return end > *begin ? end - *begin : 0;
}

static void flow_send(weft_sched *sched, const flow *flow, const vector *out)
{
    uint32_t index = sched->rank - flow->from.first;
    range own = even_range(flow->count, flow->from.count, index);
    uint64_t begin, n;

    if (!flow->is_in_blocks && index < pairs_of(flow))
        weft_sched_send(sched, flow->to.first + index, out->at, out->count, out->type);
    for (uint32_t i = 0; i < flow->to.count && flow->is_in_blocks && !sched->rc; i++) {
        uint32_t to = (i + index) % flow->to.count; /* not all to the same one first */
        n = overlap(own, even_range(flow->count, flow->to.count, to), &begin);
        if (n)
            weft_sched_send(sched, flow->to.first + to, weft_sched_at(out->at, out->type, begin - own.begin), n, out->type);
    }
}

/* in: the whole vector. */
static void flow_recv(weft_sched *sched, const flow *flow, const vector *in)
{
    uint32_t index = sched->rank - flow->to.first;
    range own = even_range(flow->count, flow->to.count, index);
    uint64_t begin, n;

    if (!flow->is_in_blocks && index < pairs_of(flow))
        weft_sched_recv(sched, flow->from.first + index, in->at, in->count, in->type);
    for (uint32_t i = 0; i < flow->from.count && flow->is_in_blocks && !sched->rc; i++) {
        n = overlap(own, even_range(flow->count, flow->from.count, i), &begin);
        if (n)
            weft_sched_recv(sched, flow->from.first + i, weft_sched_at(in->at, in->type, begin), n, in->type);
    }
}

static void exchange_blocks(weft_sched *sched, const weft_coll *args)
{
    weft_blocks blocks = weft_blocks_even(args->recvbuf, args->recvcount, args->recvtype, sched->size);

    if (sched->size <= WEFT_COLL_AT_ONCE)
        weft_allgather_blocks_linear(sched, &blocks);
    else
        weft_allgather_blocks_ring(sched, &blocks, sched->rank, 0);
}

/* Broadcasts among the members of `to` with indices first, first + k, ... */
static void spread_whole(weft_sched *sched, const flow *flow, const weft_coll *args)
{
    uint32_t k = pairs_of(flow), first = (sched->rank - flow->to.first) % k, count = (flow->to.count - first + k - 1) / k;
    uint32_t *ranks;

    if (count == 1)
        return;
    ranks = weft_sched_temp(sched, count * sizeof *ranks, weft_sched_bytes());
    for (uint32_t i = 0; i < count && ranks; i++)
        ranks[i] = flow->to.first + first + i * k;
    if (ranks)
        weft_sched_sub(sched, ranks, count, choose(sched, WEFT_COLL_BCAST, count, args, false), args);
}

/* Local phase of `to`: all of its members get what has come. */
static void spread(weft_sched *sched, const flow *flow, const vector *in)
{
    weft_coll part = {.recvbuf = in->at, .recvcount = in->count, .recvtype = in->type};

    if (flow->is_in_blocks)
        weft_sched_among(sched, flow->to, exchange_blocks, &part);
    else
        spread_whole(sched, flow, &part);
}

static vector flow_begin(weft_sched *sched, const flow *flow, const weft_coll *args)
{
    return flow->is_in_blocks ? own_block(sched, flow, args) : combine(sched, flow, args);
}

static void reduce(weft_sched *sched, const weft_coll *args)
{
    vector all = {args->recvbuf, args->recvcount, args->recvtype};
    flow flow;

    if (!takes_part(args) || !args->recvcount)
        return;
    flow = flow_of(sched, other_group(sched, args), (weft_members){(uint32_t)args->root, 1}, all.count, all.type, args->op);
    if (is_root(sched, args)) {
        flow_recv(sched, &flow, &all);
    } else {
        vector out = flow_begin(sched, &flow, args);
        flow_send(sched, &flow, &out);
    }
    weft_sched_fence(sched);
}

/* Each group's data to the other one. out, in: the flows; `all`: where that of the other group goes. */
static void exchange(weft_sched *sched, const flow *out, const flow *in, const weft_coll *args, const vector *all)
{
    vector local = {NULL, 0, weft_sched_bytes()};

    if (out->count)
        local = flow_begin(sched, out, args);
    if (in->count)
        flow_recv(sched, in, all);
    if (out->count)
        flow_send(sched, out, &local);
    weft_sched_fence(sched);
    if (in->count)
        spread(sched, in, all);
}

static void allreduce(weft_sched *sched, const weft_coll *args)
{
    const weft_team *team = sched->team;
    vector all = {args->recvbuf, args->recvcount, args->recvtype};
    flow out = flow_of(sched, team->local, team->remote, all.count, all.type, args->op);
    flow in = flow_of(sched, team->remote, team->local, all.count, all.type, args->op);

    exchange(sched, &out, &in, args, &all);
}

static void allgather(weft_sched *sched, const weft_coll *args)
{
    const weft_team *team = sched->team;
    const weft_type *byte = weft_sched_bytes();
    vector all = {args->recvbuf, team->remote.count * args->recvcount, args->recvtype};
    uint64_t in_bytes = all.count * (uint64_t)all.type->size;
    flow out = flow_of(sched, team->local, team->remote, team->local.count * args->sendcount * (uint64_t)args->sendtype->size, byte,
                       NULL);
    flow in = flow_of(sched, team->remote, team->local, in_bytes, byte, NULL);

    if (!in.is_in_blocks) {
        exchange(sched, &out, &in, args, &all);
        return;
    }
    all = (vector){args->recvtype->is_dense ? args->recvbuf : weft_sched_temp(sched, in_bytes, byte), in_bytes, byte};
    exchange(sched, &out, &in, args, &all);
    if (!args->recvtype->is_dense)
        weft_sched_copy(sched, args->recvbuf, team->remote.count * args->recvcount, args->recvtype, all.at, in_bytes, byte);
}

/* ---- alltoall ---- */

/* Block i goes to, or comes from, rank `other` of the remote group. Each direction has its counts: empty blocks need no message. */
static void block_message(weft_sched *sched, const weft_blocks *blocks, uint32_t i, uint32_t other, bool is_send)
{
    uint32_t remote = sched->team->remote.first + other;
    weft_block block = weft_blocks_at(blocks, i);

    if (weft_block_bytes(&block) && is_send)
        weft_sched_send(sched, remote, block.at, block.count, block.type);
    else if (weft_block_bytes(&block))
        weft_sched_recv(sched, remote, block.at, block.count, block.type);
}

/* In round r, rank i of the first group and rank i + r of the second one exchange blocks, modulo the larger size. Many ranks: a fence after
 * each round, so that no rank receives from all at once. is_same: block 0 goes to all. */
static void exchange_pairs(weft_sched *sched, const weft_blocks *out, const weft_blocks *in, bool is_same)
{
    const weft_team *team = sched->team;
    uint32_t rounds = max(team->local.count, team->remote.count), index = team->rank - team->local.first;

    for (uint32_t round = 0; round < rounds && !sched->rc; round++) {
        uint32_t other = (index + (team->local.first ? rounds - round : round)) % rounds;
        if (other < team->remote.count) {
            block_message(sched, in, other, other, false);
            block_message(sched, out, is_same ? 0 : other, other, true);
        }
        if (rounds > WEFT_COLL_AT_ONCE)
            weft_sched_fence(sched);
    }
    weft_sched_fence(sched);
}

static void alltoall(weft_sched *sched, const weft_coll *args)
{
    weft_blocks out = weft_blocks_sent(args), in = weft_blocks_received(args);

    exchange_pairs(sched, &out, &in, false);
}

/* A member does not know the counts of its own group, so blocks are not combined there. */
static void allgatherv(weft_sched *sched, const weft_coll *args)
{
    weft_blocks out = weft_blocks_sent(args), in = weft_blocks_received(args);

    exchange_pairs(sched, &out, &in, true);
}

/* ---- reduce_scatter ----
 * A flow in blocks each way. A member does not know the other group's blocks: an even partition crosses, and is then dealt out within the
 * group by the counts, unless these are equal. */

static void deal_out(weft_sched *sched, const weft_coll *args, const vector *even, range own)
{
    weft_members local = sched->team->local;
    const uint64_t *starts = weft_blocks_starts(sched, args->recv_layout, local.count);
    uint32_t index = sched->rank - local.first;
    uint64_t begin, n;

    for (uint32_t k = 0; k < local.count && starts; k++) {
        uint32_t i = (index + k) % local.count;
        range of_other = {starts[i], starts[i + 1]}, wanted = {starts[index], starts[index + 1]};
        n = overlap(wanted, even_range(args->recvcount, local.count, i), &begin);
        if (n && k)
            weft_sched_recv(sched, local.first + i, weft_sched_at(args->recvbuf, even->type, begin - wanted.begin), n, even->type);
        else if (n)
            weft_sched_copy(sched, weft_sched_at(args->recvbuf, even->type, begin - wanted.begin), n, even->type,
                            weft_sched_at(even->at, even->type, begin), n, even->type);
        n = overlap(own, of_other, &begin);
        if (n && k)
            weft_sched_send(sched, local.first + i, weft_sched_at(even->at, even->type, begin), n, even->type);
    }
    weft_sched_fence(sched);
}

static void reduce_scatter(weft_sched *sched, const weft_coll *args)
{
    const weft_team *team = sched->team;
    const weft_type *type = args->recvtype;
    flow out = {team->local, team->remote, args->recvcount, type, true}, in = {team->remote, team->local, args->recvcount, type, true};
    range own = even_range(in.count, team->local.count, sched->rank - team->local.first);
    void *place = args->recv_layout ? weft_sched_temp(sched, own.end - own.begin, type) : args->recvbuf;
    vector even = {(char *)place - (int64_t)own.begin * type->extent, in.count, type}; /* only this member's block of it exists */
    vector local;

    if (!args->recvcount || sched->rc)
        return;
    local = own_block(sched, &out, args);
    flow_recv(sched, &in, &even);
    flow_send(sched, &out, &local);
    weft_sched_fence(sched);
    if (args->recv_layout)
        deal_out(sched, args, &even, own);
}

weft_sched_algorithm *weft_inter_algorithm(enum weft_coll_kind kind)
{
    static weft_sched_algorithm *const algorithms[WEFT_COLL_LAST] = {
        [WEFT_COLL_BCAST] = bcast,         [WEFT_COLL_GATHER] = gather,       [WEFT_COLL_SCATTER] = scatter,   [WEFT_COLL_REDUCE] = reduce,
        [WEFT_COLL_ALLREDUCE] = allreduce, [WEFT_COLL_ALLGATHER] = allgather, [WEFT_COLL_ALLTOALL] = alltoall,
        [WEFT_COLL_GATHERV] = gatherv,     [WEFT_COLL_SCATTERV] = scatterv,   [WEFT_COLL_ALLGATHERV] = allgatherv,
        [WEFT_COLL_ALLTOALLV] = alltoall,  [WEFT_COLL_ALLTOALLW] = alltoall,
        [WEFT_COLL_REDUCE_SCATTER_BLOCK] = reduce_scatter, [WEFT_COLL_REDUCE_SCATTER] = reduce_scatter,
    };
    return algorithms[kind];
}

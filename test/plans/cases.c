/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases: see cases.h. Called by test_plans.c and test_node.c. Every element has eight bytes of data, computed from rank and index.
 */
#include "cases.h"

#include <stdlib.h>
#include <string.h>

#define PAD 64 /* bytes around each buffer that must not change */
#define HANDLE_UINT32 0x251
#define HANDLE_INT64 0x258
#define HANDLE_SUM 0x21

static weft_type *pair, *wide, *back, *empty;
static weft_op compose, add, claimed; /* claimed: compose, called commutative by its user */

/* Words from an element to the next, and from its first word to its second. 0: it has no data. */
static int words_of(const void *handle, int *second)
{
    const weft_type *type = *(weft_type *const *)handle;

    *second = type->extent == 8 ? 1 : 2;
    return type->size ? (int)type->extent / 4 : 0;
}

/* x -> a x + b, then x -> c x + d, modulo 2^32: associative, not commutative. The maps of `in` are applied first. */
static void compose_maps(void *in, void *inout, int *length, void *type)
{
    int second, step = words_of(type, &second);
    uint32_t *x = in, *y = inout;

    for (int i = 0; i < *length && step; i++, x += step, y += step) {
        uint32_t a = y[0] * x[0], b = y[0] * x[second] + y[second];
        y[0] = a;
        y[second] = b;
    }
}

static void add_words(void *in, void *inout, int *length, void *type)
{
    int second, step = words_of(type, &second);
    uint32_t *x = in, *y = inout;

    for (int i = 0; i < *length && step; i++, x += step, y += step) {
        y[0] += x[0];
        y[second] += x[second];
    }
}

static weft_op op_of(void (*user)(void *, void *, int *, void *), bool is_commutative)
{
    weft_op op = {.object = {.magic = WEFT_OP_MAGIC, .refs = 1}, .is_commutative = is_commutative};

    memcpy(&op.user, &user, sizeof user);
    return op;
}

static weft_type *resized(const weft_type *old, int64_t extent)
{
    weft_type *type;

    weft_type_resized(old, 0, extent, &type);
    weft_type_commit(type);
    return type;
}

void cases_open(void)
{
    const weft_type *word = weft_type_of((void *)HANDLE_UINT32);
    weft_type *two, *none;

    weft_type_contiguous(2, word, &pair);
    weft_type_commit(pair);
    weft_type_vector(2, 1, 8, word, &two);
    weft_type_contiguous(0, word, &none);
    wide = resized(two, 20);
    back = resized(two, -20);
    empty = resized(none, 12);
    weft_type_drop(two);
    weft_type_drop(none);
    compose = op_of(compose_maps, false);
    add = op_of(add_words, true);
    claimed = op_of(compose_maps, true);
}

void cases_close(void)
{
    weft_type_drop(pair);
    weft_type_drop(wide);
    weft_type_drop(back);
    weft_type_drop(empty);
}

static const weft_type *type_of(enum cases_type type)
{
    const weft_type *const types[] = {weft_type_of((void *)HANDLE_INT64), pair, wide, back, empty};

    return types[type];
}

/* Only signatures must be equal: odd ranks have no gaps. */
static const weft_type *type_at(const cases_call *call, uint32_t rank)
{
    return rank % 2 && (call->type == CASES_WIDE || call->type == CASES_BACK) ? pair : type_of(call->type);
}

static uint64_t stride(const weft_type *type) { return (uint64_t)(type->extent < 0 ? -type->extent : type->extent); }

/* Two ranks keep the order of operands whatever the operator says. */
static bool is_claimed(const cases_call *call) { return call->commutes && call->ranks == 2; }

static const weft_op *operator_of(const cases_call *call)
{
    if (call->type == CASES_LONG)
        return weft_op_of((void *)HANDLE_SUM);
    return is_claimed(call) ? &claimed : call->commutes ? &add : &compose;
}

static uint64_t value(const cases_call *call, uint32_t rank, uint64_t i)
{
    uint64_t x = ((uint64_t)rank << 40 ^ i << 8 ^ call->round) * 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return call->type == CASES_LONG ? x & 0xffffffffu : x | 1;
}

/* Element 0 of a buffer of `bytes`. */
static char *origin(const weft_type *type, char *buf, uint64_t bytes)
{
    return buf + PAD + (type->extent < 0 && bytes ? bytes - stride(type) : 0);
}

static void element_put(const weft_type *type, char *first, uint64_t i, uint64_t v)
{
    char *at = first + (int64_t)i * type->extent;

    if (!type->size)
        return;
    memcpy(at, &v, 4);
    memcpy(at + (type == wide || type == back ? 8 : 4), (char *)&v + 4, 4);
}

/* A member's part in a call. On an intracommunicator both groups are all members. */
typedef struct place {
    uint32_t index;              /* rank in its own group */
    weft_members remote, others; /* others: ranks other than the root that send or receive a block */
    bool is_root, has_block;
    uint64_t sent, got;          /* elements per block */
} place;

static place place_of(const cases_call *call, uint32_t rank)
{
    bool is_first = rank < call->first, is_root_first = (uint32_t)call->root < call->first;
    weft_members all = {0, call->ranks}, first = {0, call->first}, second = {call->first, call->ranks - call->first};
    uint64_t back = call->kind == WEFT_COLL_ALLGATHER || call->kind == WEFT_COLL_ALLTOALL ? call->back : call->count;

    if (!call->first)
        return (place){rank, all, all, rank == (uint32_t)call->root, true, call->count, call->count};
    return (place){.index = is_first ? rank : rank - call->first,
                   .remote = is_first ? second : first,
                   .others = is_root_first ? second : first,
                   .is_root = rank == (uint32_t)call->root,
                   .has_block = is_first != is_root_first,
                   .sent = is_first ? call->count : back,
                   .got = is_first ? back : call->count};
}

static uint64_t folded(const cases_call *call, weft_members over, uint64_t i)
{
    uint64_t sum = value(call, over.first, i);

    for (uint32_t r = 1; r < over.count; r++) {
        uint64_t v = value(call, over.first + r, i);
        if (call->type == CASES_LONG) {
            sum += v;
        } else if (call->commutes && !is_claimed(call)) {
            sum = ((sum >> 32) + (v >> 32)) << 32 | (uint32_t)(sum + v);
        } else {
            uint32_t a = (uint32_t)v * (uint32_t)sum, b = (uint32_t)v * (uint32_t)(sum >> 32) + (uint32_t)(v >> 32);
            sum = (uint64_t)b << 32 | a;
        }
    }
    return sum;
}

static char *capacity(uint64_t bytes)
{
    char *buf = malloc(bytes + 2 * PAD);

    memset(buf, 0xa5, bytes + 2 * PAD);
    return buf;
}

/* ---- plain calls ---- */

/* Expected element i of a rank's buffer, before and after the call. */
static uint64_t before(const cases_call *call, uint32_t rank, uint64_t i)
{
    bool is_whole = call->kind == WEFT_COLL_ALLTOALL || call->kind == WEFT_COLL_SCATTER;
    uint64_t count = place_of(call, rank).sent;
    return value(call, rank, is_whole || !count ? i : i % count);
}

static uint64_t after(const cases_call *call, const place *at, uint64_t i)
{
    uint64_t block = at->got ? i / at->got : 0, j = at->got ? i % at->got : 0;

    switch (call->kind) {
    case WEFT_COLL_BCAST:
        return value(call, (uint32_t)call->root, i);
    case WEFT_COLL_REDUCE:
        return folded(call, at->others, i);
    case WEFT_COLL_ALLREDUCE:
        return folded(call, at->remote, i);
    case WEFT_COLL_GATHER:
        return value(call, at->others.first + (uint32_t)block, j);
    case WEFT_COLL_ALLGATHER:
        return value(call, at->remote.first + (uint32_t)block, j);
    case WEFT_COLL_SCATTER:
        return value(call, (uint32_t)call->root, at->index * call->count + i);
    default:
        return value(call, at->remote.first + (uint32_t)block, at->index * at->got + j);
    }
}

const enum weft_coll_kind cases_area_kinds[CASES_AREA_KINDS] = {
    WEFT_COLL_BARRIER, WEFT_COLL_BCAST, WEFT_COLL_REDUCE, WEFT_COLL_ALLREDUCE, WEFT_COLL_GATHER, WEFT_COLL_SCATTER, WEFT_COLL_ALLGATHER,
    WEFT_COLL_ALLTOALL, WEFT_COLL_ALLGATHERV, WEFT_COLL_SCAN, WEFT_COLL_EXSCAN, WEFT_COLL_REDUCE_SCATTER_BLOCK, WEFT_COLL_REDUCE_SCATTER};

static bool is_fold(enum weft_coll_kind kind) { return kind == WEFT_COLL_REDUCE || kind == WEFT_COLL_ALLREDUCE; }
static bool is_rooted(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_BCAST || kind == WEFT_COLL_REDUCE || kind == WEFT_COLL_GATHER || kind == WEFT_COLL_SCATTER;
}

/* Elements that rank sends and receives; 0: not significant (MPI 5.0 chapter 6). */
static void counts(const cases_call *call, const place *at, uint64_t *send, uint64_t *recv)
{
    bool has_block = at->has_block || !is_rooted(call->kind);

    *send = call->kind == WEFT_COLL_BCAST || call->kind == WEFT_COLL_BARRIER ? 0
            : call->kind == WEFT_COLL_ALLTOALL                               ? at->remote.count * at->sent
            : call->kind == WEFT_COLL_SCATTER                                ? (at->is_root ? at->others.count * call->count : 0)
                                                                             : (has_block ? at->sent : 0);
    *recv = call->kind == WEFT_COLL_ALLTOALL || call->kind == WEFT_COLL_ALLGATHER ? at->remote.count * at->got
            : call->kind == WEFT_COLL_GATHER                                      ? (at->is_root ? at->others.count * call->count : 0)
            : call->kind == WEFT_COLL_REDUCE                                      ? (at->is_root ? call->count : 0)
            : call->kind == WEFT_COLL_BARRIER                                     ? 0
            : call->kind == WEFT_COLL_BCAST && at->is_root                        ? call->count
                                                                                  : (has_block ? call->count : 0);
    if (call->in_place && (!is_rooted(call->kind) || at->is_root)) {
        if (call->kind == WEFT_COLL_SCATTER)
            *recv = 0;
        else
            *send = 0;
    }
}

/* In place the receive buffer holds the data to send: in a gather in its own block, else from its start. */
static bool begins_full(const cases_call *call, uint32_t rank, uint64_t i)
{
    if (call->kind == WEFT_COLL_BCAST)
        return rank == (uint32_t)call->root;
    if (!call->in_place)
        return false;
    if (call->kind == WEFT_COLL_GATHER || call->kind == WEFT_COLL_ALLGATHER)
        return call->count && i / call->count == rank;
    return true;
}

static void begin_plain(const cases_call *call, uint32_t rank, cases_side *side)
{
    const weft_type *type = is_fold(call->kind) ? type_of(call->type) : type_at(call, rank);
    place at = place_of(call, rank);
    uint64_t send, recv;
    char *sendbuf, *recvbuf;

    counts(call, &at, &send, &recv);
    side->send_bytes = send * stride(type);
    side->recv_bytes = recv * stride(type);
    side->send = capacity(side->send_bytes);
    side->recv = capacity(side->recv_bytes);
    sendbuf = origin(type, side->send, side->send_bytes);
    recvbuf = origin(type, side->recv, side->recv_bytes);
    for (uint64_t i = 0; i < send; i++)
        element_put(type, sendbuf, i, before(call, rank, i));
    for (uint64_t i = 0; i < recv; i++)
        if (begins_full(call, rank, i))
            element_put(type, recvbuf, i, before(call, rank, i));
    side->expect_send = capacity(side->send_bytes);
    side->expect_recv = capacity(side->recv_bytes);
    memcpy(side->expect_send, side->send, side->send_bytes + 2 * PAD);
    for (uint64_t i = 0; i < recv; i++)
        element_put(type, origin(type, side->expect_recv, side->recv_bytes), i, after(call, &at, i));
    side->args = (weft_coll){.sendbuf = sendbuf, .recvbuf = recvbuf, .sendcount = at.sent,
                             .recvcount = at.got, .sendtype = type, .recvtype = type, .root = call->root};
    if (is_fold(call->kind))
        side->args.op = operator_of(call);
    side->args.in_place = call->in_place && (at.is_root || (call->kind != WEFT_COLL_REDUCE && call->kind != WEFT_COLL_GATHER &&
                                                         call->kind != WEFT_COLL_SCATTER));
    if (is_rooted(call->kind) && !at.is_root && !at.has_block)
        side->args = (weft_coll){.root = WEFT_ROOT_NONE};
}

/* ---- scans and reduce-scatters ---- */

static bool is_scan(enum weft_coll_kind kind) { return kind == WEFT_COLL_SCAN || kind == WEFT_COLL_EXSCAN; }
static bool is_deal(enum weft_coll_kind kind) { return kind == WEFT_COLL_REDUCE_SCATTER || kind == WEFT_COLL_REDUCE_SCATTER_BLOCK; }

/* Elements of a reduce_scatter's vector: the same for both groups. */
static uint64_t vector_count(const cases_call *call)
{
    if (call->kind == WEFT_COLL_REDUCE_SCATTER)
        return 3 * call->count;
    return call->first ? call->count * call->first * (call->ranks - call->first) : call->count * call->ranks;
}

/* First element of block i of n. */
static uint64_t deal_start(const cases_call *call, uint64_t n, uint64_t i)
{
    uint64_t all = vector_count(call);

    return call->kind == WEFT_COLL_REDUCE_SCATTER ? all * i * i / (n * n) : all / n * i;
}

/* An array of n counts or displacements, of 4 or 8 bytes. */
static weft_counts array_of(cases_side *side, const cases_call *call, const int64_t *values, uint32_t n)
{
    size_t width = call->round % 2 ? 4 : 8;
    char *array = side->arrays[side->array_count++] = malloc(n * width);

    for (uint32_t i = 0; i < n; i++)
        if (width == 4)
            ((int32_t *)(void *)array)[i] = (int32_t)values[i];
        else
            ((int64_t *)(void *)array)[i] = values[i];
    return (weft_counts){array, width};
}

static void begin_reduction(const cases_call *call, uint32_t rank, cases_side *side)
{
    const weft_type *type = type_of(call->type);
    place at = place_of(call, rank);
    uint64_t extent = stride(type), n = call->ranks;
    uint64_t vector = is_deal(call->kind) ? vector_count(call) : call->count, first = 0, got = call->count;
    weft_members over = at.remote;
    char *data;

    if (call->first)
        n -= at.remote.count;
    if (is_scan(call->kind))
        over = (weft_members){0, call->kind == WEFT_COLL_SCAN ? rank + 1 : rank};
    if (is_deal(call->kind)) {
        first = deal_start(call, n, at.index);
        got = deal_start(call, n, at.index + 1) - first;
    }
    side->send_bytes = call->in_place ? 0 : vector * extent;
    side->recv_bytes = (call->in_place ? vector : got) * extent;
    side->send = capacity(side->send_bytes);
    side->recv = capacity(side->recv_bytes);
    data = call->in_place ? origin(type, side->recv, side->recv_bytes) : origin(type, side->send, side->send_bytes);
    for (uint64_t i = 0; i < vector; i++)
        element_put(type, data, i, value(call, rank, i));
    side->expect_send = capacity(side->send_bytes);
    side->expect_recv = capacity(side->recv_bytes);
    memcpy(side->expect_send, side->send, side->send_bytes + 2 * PAD);
    memcpy(side->expect_recv, side->recv, side->recv_bytes + 2 * PAD);
    for (uint64_t i = 0; i < got && over.count; i++)
        element_put(type, origin(type, side->expect_recv, side->recv_bytes), i, folded(call, over, first + i));
    side->args = (weft_coll){.sendbuf = origin(type, side->send, side->send_bytes),
                             .recvbuf = origin(type, side->recv, side->recv_bytes), .sendcount = vector, .recvcount = vector,
                             .sendtype = type, .recvtype = type, .in_place = call->in_place, .op = operator_of(call)};
    if (call->kind == WEFT_COLL_REDUCE_SCATTER) {
        int64_t counts[64];
        for (uint32_t i = 0; i < n; i++)
            counts[i] = (int64_t)(deal_start(call, n, i + 1) - deal_start(call, n, i));
        side->recv_layout = (weft_layout){.counts = array_of(side, call, counts, (uint32_t)n)};
        side->args.recv_layout = &side->recv_layout;
        side->args.is_v = true;
    }
}

/* ---- calls with a count for each rank ---- */

static bool is_pairs(enum weft_coll_kind kind) { return kind == WEFT_COLL_ALLTOALLV || kind == WEFT_COLL_ALLTOALLW; }

/* Elements that member `from` sends to member `to`: none, half of the call's count, all, or more. In place both ways are equal. */
static uint64_t share(const cases_call *call, uint32_t from, uint32_t to)
{
    uint32_t a = from, b = to;

    if (call->kind == WEFT_COLL_SCATTERV)
        a = 0;
    else if (!is_pairs(call->kind))
        b = 0;
    else if (call->in_place && from > to)
        a = to, b = from;
    return call->count * (((a * 7 + b * 3 + call->round) ^ (a * b)) % 4) / 2;
}

static uint64_t sent_value(const cases_call *call, uint32_t from, uint32_t to, uint64_t i)
{
    return value(call, from, call->kind == WEFT_COLL_GATHERV || call->kind == WEFT_COLL_ALLGATHERV ? i : to * 4096 + i);
}

/* The blocks of one side: with gaps, and in every second call from the last rank to the first. */
typedef struct blocks {
    uint32_t n;
    int64_t counts[64], displs[64]; /* displs: bytes, in the direction of the extent */
    const weft_type *types[64];
    uint64_t bytes;
} blocks;

static blocks blocks_of(const cases_call *call, uint32_t rank, weft_members others, bool is_send, const weft_type *type)
{
    blocks b = {.n = others.count};

    for (uint32_t k = 0; k < b.n; k++) {
        uint32_t i = call->round / 2 % 2 ? b.n - 1 - k : k, other = others.first + i;
        b.counts[i] = (int64_t)(is_send ? share(call, rank, other) : share(call, other, rank));
        b.types[i] = type;
        if (call->kind == WEFT_COLL_ALLTOALLW && call->type == CASES_WIDE && !call->in_place)
            b.types[i] = (i + rank + is_send) % 2 ? pair : wide;
        b.displs[i] = (int64_t)b.bytes;
        b.bytes += ((uint64_t)b.counts[i] + i % 3) * stride(b.types[i]);
    }
    return b;
}

static weft_layout layout_of(const cases_call *call, cases_side *side, const blocks *b, const weft_type *type)
{
    weft_layout layout = {.counts = array_of(side, call, b->counts, b->n)};
    int64_t displs[64];

    if (call->kind == WEFT_COLL_ALLTOALLW) {
        layout.types = side->arrays[side->array_count++] = malloc(b->n * sizeof *layout.types);
        for (uint32_t i = 0; i < b->n; i++)
            ((const void **)layout.types)[i] = call->type == CASES_LONG ? (const void *)HANDLE_INT64 : b->types[i];
        for (uint32_t i = 0; i < b->n; i++)
            displs[i] = type->extent < 0 ? -b->displs[i] : b->displs[i];
        layout.displs = array_of(side, call, displs, b->n);
        return layout;
    }
    for (uint32_t i = 0; i < b->n; i++)
        displs[i] = b->displs[i] / (int64_t)stride(type);
    layout.displs = array_of(side, call, displs, b->n);
    return layout;
}

static void block_put(const cases_call *call, char *buf, const blocks *b, uint32_t i, uint32_t from, uint32_t to)
{
    const weft_type *type = b->types[i];
    char *first = origin(type, buf, b->bytes) + (type->extent < 0 ? -b->displs[i] : b->displs[i]);

    for (uint64_t j = 0; j < (uint64_t)b->counts[i]; j++)
        element_put(type, first, j, sent_value(call, from, to, j));
}

static void begin_v(const cases_call *call, uint32_t rank, cases_side *side)
{
    const weft_type *type = type_at(call, rank);
    place at = place_of(call, rank);
    bool is_gather = call->kind == WEFT_COLL_GATHERV, is_scatter = call->kind == WEFT_COLL_SCATTERV, is_rooted = is_gather || is_scatter;
    bool is_in_place = call->in_place && (!is_rooted || at.is_root);
    weft_members others = is_rooted ? at.others : at.remote;
    bool sends_many = (is_pairs(call->kind) && !is_in_place) || (is_scatter && at.is_root);
    bool gets_many = is_pairs(call->kind) || call->kind == WEFT_COLL_ALLGATHERV || (is_gather && at.is_root);
    bool sends_one = (call->kind == WEFT_COLL_ALLGATHERV || (is_gather && at.has_block)) && !is_in_place;
    bool gets_one = is_scatter && at.has_block && !is_in_place;
    uint32_t root = (uint32_t)call->root;
    blocks out = {.n = 0}, in = {.n = 0};

    if (sends_many)
        out = blocks_of(call, rank, others, true, type);
    else if (sends_one)
        out = (blocks){1, {(int64_t)share(call, rank, 0)}, {0}, {type}, share(call, rank, 0) * stride(type)};
    if (gets_many)
        in = blocks_of(call, rank, others, false, type);
    else if (gets_one)
        in = (blocks){1, {(int64_t)share(call, root, rank)}, {0}, {type}, share(call, root, rank) * stride(type)};
    side->send_bytes = out.bytes;
    side->recv_bytes = in.bytes;
    side->send = capacity(out.bytes);
    side->recv = capacity(in.bytes);
    side->expect_recv = capacity(in.bytes);
    for (uint32_t i = 0; i < out.n; i++)
        block_put(call, side->send, &out, i, rank, sends_many ? others.first + i : 0);
    for (uint32_t i = 0; i < in.n; i++) {
        uint32_t other = gets_many ? others.first + i : root;
        block_put(call, side->expect_recv, &in, i, other, rank);
        if (is_in_place && (is_pairs(call->kind) || other == rank))
            block_put(call, side->recv, &in, i, rank, other);
    }
    side->expect_send = capacity(out.bytes);
    memcpy(side->expect_send, side->send, out.bytes + 2 * PAD);
    if (is_rooted && !at.is_root && !at.has_block) {
        side->args = (weft_coll){.root = WEFT_ROOT_NONE, .is_v = true};
        return;
    }
    side->args = (weft_coll){.sendbuf = origin(type, side->send, out.bytes), .recvbuf = origin(type, side->recv, in.bytes),
                             .sendtype = type, .recvtype = type, .root = call->root, .in_place = is_in_place, .is_v = true};
    if (call->kind == WEFT_COLL_ALLTOALLW) /* as from MPI_Alltoallw */
        side->args.sendtype = side->args.recvtype = NULL;
    for (uint32_t i = 0; i < out.n; i++)
        side->args.sendcount += (uint64_t)out.counts[i];
    for (uint32_t i = 0; i < in.n; i++)
        side->args.recvcount += (uint64_t)in.counts[i];
    if (sends_many) {
        side->send_layout = layout_of(call, side, &out, type);
        side->args.send_layout = &side->send_layout;
    }
    if (gets_many) {
        side->recv_layout = layout_of(call, side, &in, type);
        side->args.recv_layout = &side->recv_layout;
    }
}

void cases_begin(const cases_call *call, uint32_t rank, cases_side *side)
{
    side->array_count = 0;
    if (is_scan(call->kind) || is_deal(call->kind))
        begin_reduction(call, rank, side);
    else if (call->kind >= WEFT_COLL_GATHERV)
        begin_v(call, rank, side);
    else
        begin_plain(call, rank, side);
}

void cases_refill(cases_side *side, const cases_side *from) { memcpy(side->recv, from->recv, from->recv_bytes + 2 * PAD); }

void cases_renew(cases_side *side, const cases_side *from)
{
    cases_refill(side, from);
    memcpy(side->expect_recv, from->expect_recv, from->recv_bytes + 2 * PAD);
    memcpy(side->send, from->send, from->send_bytes + 2 * PAD);
    memcpy(side->expect_send, from->expect_send, from->send_bytes + 2 * PAD);
}

const char *cases_compare(const cases_side *side)
{
    if (memcmp(side->send, side->expect_send, side->send_bytes + 2 * PAD))
        return "the send buffer was changed";
    if (memcmp(side->recv, side->expect_recv, side->recv_bytes + 2 * PAD))
        return "the receive buffer is wrong";
    return NULL;
}

void cases_end(cases_side *side)
{
    free(side->send);
    free(side->recv);
    free(side->expect_send);
    free(side->expect_recv);
    for (int i = 0; i < side->array_count; i++)
        free(side->arrays[i]);
}

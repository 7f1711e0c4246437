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

static weft_type *pair, *wide;
static weft_op compose;

/* x -> a x + b, then x -> c x + d, modulo 2^32: associative, not commutative. The maps of `in` are applied first. */
static void compose_maps(void *in, void *inout, int *length, void *type)
{
    bool is_wide = (*(weft_type **)type)->extent != 8;
    int second = is_wide ? 2 : 1, step = is_wide ? 5 : 2;
    uint32_t *x = in, *y = inout;

    for (int i = 0; i < *length; i++, x += step, y += step) {
        uint32_t a = y[0] * x[0], b = y[0] * x[second] + y[second];
        y[0] = a;
        y[second] = b;
    }
}

void cases_open(void)
{
    void (*user)(void *, void *, int *, void *) = compose_maps;
    const weft_type *word = weft_type_of((void *)HANDLE_UINT32);
    weft_type *two;

    weft_type_contiguous(2, word, &pair);
    weft_type_commit(pair);
    weft_type_vector(2, 1, 8, word, &two);
    weft_type_resized(two, 0, 20, &wide);
    weft_type_commit(wide);
    weft_type_drop(two);
    compose = (weft_op){.object = {.magic = WEFT_OP_MAGIC, .refs = 1}, .is_commutative = false};
    memcpy(&compose.user, &user, sizeof user);
}

void cases_close(void)
{
    weft_type_drop(pair);
    weft_type_drop(wide);
}

static const weft_type *type_of(enum cases_type type)
{
    return type == CASES_LONG ? weft_type_of((void *)HANDLE_INT64) : type == CASES_PAIR ? pair : wide;
}

static uint64_t value(const cases_call *call, uint32_t rank, uint64_t i)
{
    uint64_t x = ((uint64_t)rank << 40 ^ i << 8 ^ call->round) * 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return call->type == CASES_LONG ? x & 0xffffffffu : x | 1;
}

static void element_put(const weft_type *type, char *buf, uint64_t i, uint64_t v)
{
    char *at = buf + PAD + i * (uint64_t)type->extent;

    memcpy(at, &v, 4);
    memcpy(at + (type == wide ? 8 : 4), (char *)&v + 4, 4);
}

static uint64_t folded(const cases_call *call, uint64_t i)
{
    uint64_t sum = value(call, 0, i);

    for (uint32_t r = 1; r < call->ranks; r++) {
        uint64_t v = value(call, r, i);
        if (call->type == CASES_LONG) {
            sum += v;
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

/* Expected element i of a rank's buffer, before and after the call. */
static uint64_t before(const cases_call *call, uint32_t rank, uint64_t i)
{
    bool is_whole = call->kind == WEFT_COLL_ALLTOALL || call->kind == WEFT_COLL_SCATTER;
    return value(call, rank, is_whole || !call->count ? i : i % call->count);
}

static uint64_t after(const cases_call *call, uint32_t rank, uint64_t i)
{
    uint64_t block = call->count ? i / call->count : 0, j = call->count ? i % call->count : 0;

    switch (call->kind) {
    case WEFT_COLL_BCAST:
        return value(call, (uint32_t)call->root, i);
    case WEFT_COLL_REDUCE:
    case WEFT_COLL_ALLREDUCE:
        return folded(call, i);
    case WEFT_COLL_GATHER:
    case WEFT_COLL_ALLGATHER:
        return value(call, (uint32_t)block, j);
    case WEFT_COLL_SCATTER:
        return value(call, (uint32_t)call->root, rank * call->count + i);
    default:
        return value(call, (uint32_t)block, rank * call->count + j);
    }
}

static bool is_fold(enum weft_coll_kind kind) { return kind == WEFT_COLL_REDUCE || kind == WEFT_COLL_ALLREDUCE; }

/* Elements that rank sends and receives; 0: not significant (MPI 5.0 chapter 6). */
static void counts(const cases_call *call, uint32_t rank, uint64_t *send, uint64_t *recv)
{
    bool is_root = rank == (uint32_t)call->root, is_rooted = call->kind <= WEFT_COLL_SCATTER && call->kind != WEFT_COLL_ALLREDUCE;
    uint64_t all = call->count * call->ranks;

    *send = call->kind == WEFT_COLL_BCAST || call->kind == WEFT_COLL_BARRIER ? 0
            : call->kind == WEFT_COLL_ALLTOALL                               ? all
            : call->kind == WEFT_COLL_SCATTER                                ? (is_root ? all : 0)
                                                                             : call->count;
    *recv = call->kind == WEFT_COLL_ALLTOALL || call->kind == WEFT_COLL_ALLGATHER ? all
            : call->kind == WEFT_COLL_GATHER                                      ? (is_root ? all : 0)
            : call->kind == WEFT_COLL_REDUCE                                      ? (is_root ? call->count : 0)
            : call->kind == WEFT_COLL_BARRIER                                     ? 0
                                                                                  : call->count;
    if (call->in_place && (!is_rooted || is_root)) {
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

void cases_begin(const cases_call *call, uint32_t rank, cases_side *side)
{
    const weft_type *type = type_of(call->type);
    uint64_t send, recv;
    bool is_root = rank == (uint32_t)call->root;

    if (call->type == CASES_WIDE && !is_fold(call->kind) && rank % 2)
        type = pair; /* only signatures must be equal */
    counts(call, rank, &send, &recv);
    side->send_bytes = send * (uint64_t)type->extent;
    side->recv_bytes = recv * (uint64_t)type->extent;
    side->send = capacity(side->send_bytes);
    side->recv = capacity(side->recv_bytes);
    for (uint64_t i = 0; i < send; i++)
        element_put(type, side->send, i, before(call, rank, i));
    for (uint64_t i = 0; i < recv; i++)
        if (begins_full(call, rank, i))
            element_put(type, side->recv, i, before(call, rank, i));
    side->expect_send = capacity(side->send_bytes);
    side->expect_recv = capacity(side->recv_bytes);
    memcpy(side->expect_send, side->send, side->send_bytes + 2 * PAD);
    for (uint64_t i = 0; i < recv; i++)
        element_put(type, side->expect_recv, i, after(call, rank, i));
    side->args = (weft_coll){.sendbuf = side->send + PAD, .recvbuf = side->recv + PAD, .sendcount = call->count,
                             .recvcount = call->count, .sendtype = type, .recvtype = type, .root = call->root};
    if (is_fold(call->kind))
        side->args.op = call->type == CASES_LONG ? weft_op_of((void *)HANDLE_SUM) : &compose;
    side->args.in_place = call->in_place && (is_root || (call->kind != WEFT_COLL_REDUCE && call->kind != WEFT_COLL_GATHER &&
                                                         call->kind != WEFT_COLL_SCATTER));
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
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * colls: random collectives between simulated ranks, blocking and not, each result checked in full.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "test/sim/crew.h"
#include "test/sim/traffic.h"

#define INT64 0x258
#define SUM 0x21

typedef struct call {
    enum weft_coll_kind kind;
    uint64_t count, salt;
    int root;
    bool is_blocking;
} call;

static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"};

/* What rank r sends as its element i for rank `to` (0 where all get the same). */
static int64_t element(const call *call, int r, int to, uint64_t i)
{
    return (int64_t)((call->salt + (uint64_t)r * 1000003 + (uint64_t)to * 77777) * (i * 2 + 1) & 0xffffffffffu);
}

static bool goes_to_each(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_SCATTER || kind == WEFT_COLL_ALLTOALL;
}

static bool comes_from_each(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_GATHER || kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL;
}

static bool has_result(const crew *crew, const call *call)
{
    bool is_root_only = call->kind == WEFT_COLL_REDUCE || call->kind == WEFT_COLL_GATHER;
    return call->kind != WEFT_COLL_BARRIER && (!is_root_only || crew->rank == call->root);
}

static int64_t expected(const crew *crew, const call *call, int block, uint64_t i)
{
    int64_t sum = 0;
    switch (call->kind) {
    case WEFT_COLL_BCAST: return element(call, call->root, 0, i);
    case WEFT_COLL_SCATTER: return element(call, call->root, crew->rank, i);
    case WEFT_COLL_ALLTOALL: return element(call, block, crew->rank, i);
    case WEFT_COLL_GATHER: case WEFT_COLL_ALLGATHER: return element(call, block, 0, i);
    default: break;
    }
    for (int r = 0; r < crew->size; r++)
        sum += element(call, r, 0, i);
    return sum;
}

static int perform(crew *crew, const call *call, int64_t *send, int64_t *receive)
{
    weft_coll args = {.sendbuf = send, .recvbuf = receive, .sendcount = call->count, .recvcount = call->count,
                      .sendtype = crew_type(INT64), .recvtype = crew_type(INT64), .op = weft_op_of((void *)(uintptr_t)SUM),
                      .root = call->root};
    weft_req *req;
    if (call->is_blocking)
        return weft_coll_run(&crew->team, call->kind, &args);
    int rc = weft_coll_start(&crew->team, call->kind, &args, &req);
    if (rc)
        return rc;
    rc = weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

static int check(const crew *crew, const call *call, const int64_t *receive)
{
    int blocks = comes_from_each(call->kind) ? crew->size : 1;
    for (int block = 0; has_result(crew, call) && block < blocks; block++)
        for (uint64_t i = 0; i < call->count; i++)
            if (receive[(uint64_t)block * call->count + i] != expected(crew, call, block, i))
                return crew_fail_wrong(crew, "%s of %llu, root %d: element %llu of block %d is wrong", names[call->kind],
                                 (unsigned long long)call->count, call->root, (unsigned long long)i, block);
    return 0;
}

static int one_call(crew *crew, const call *call)
{
    uint64_t room = call->count * (uint64_t)crew->size + 1;
    int64_t *send = malloc(room * sizeof *send), *receive = malloc(room * sizeof *receive);
    int blocks = goes_to_each(call->kind) ? crew->size : 1;
    memset(receive, 0x5a, room * sizeof *receive);
    for (int to = 0; to < blocks; to++)
        for (uint64_t i = 0; i < call->count; i++)
            send[(uint64_t)to * call->count + i] = element(call, crew->rank, to, i);
    if (call->kind == WEFT_COLL_BCAST && crew->rank == call->root)
        memcpy(receive, send, call->count * sizeof *receive);
    int rc = perform(crew, call, send, receive);
    rc = rc ? crew_fail(crew, "%s failed: %s", names[call->kind], weft_fail_text(rc)) : check(crew, call, receive);
    free(send);
    free(receive);
    return rc;
}

int colls_program(int rank, void *arg)
{
    const traffic *what = arg;
    crew crew;
    uint64_t state = what->seed; /* the same draws on every rank */
    int rc = crew_open(&crew, what->seed);
    (void)rank;
    for (uint32_t round = 0; round < 4 * what->rounds && !rc; round++) {
        call call = {.kind = (enum weft_coll_kind)(crew_random(&state) % WEFT_COLL_LAST),
                     .count = crew_random(&state) % (crew_random(&state) % 4 ? 20 : 2500), .salt = crew_random(&state) >> 32,
                     .root = (int)(crew_random(&state) % (uint64_t)crew.size), .is_blocking = crew_random(&state) % 2};
        rc = one_call(&crew, &call);
    }
    rc = rc ? rc : crew_barrier(&crew);
    return rc ? rc : crew_close(&crew);
}

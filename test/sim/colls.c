/* SPDX-License-Identifier: BSD-3-Clause
 *
 * colls: random collectives between simulated ranks, blocking and nonblocking; every result is verified in full.
 */
#include <stdlib.h>

#include "base/status.h"
#include "test/sim/answers.h"
#include "test/sim/traffic.h"

typedef struct call {
    question of;
    uint64_t count;
    bool is_blocking;
} call;

static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"};

static int perform(crew *crew, const call *call, int64_t *send, int64_t *receive)
{
    weft_coll args = question_args(&call->of, send, receive, call->count);
    weft_req *req;
    if (call->is_blocking)
        return weft_coll_run(&crew->team, call->of.kind, &args);
    int rc = weft_coll_start(&crew->team, call->of.kind, &args, &req);
    if (rc)
        return rc;
    rc = weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

static int check(const crew *crew, const call *call, const int64_t *receive)
{
    int64_t at = question_wrong(crew, &call->of, receive, call->count);
    return at < 0 ? 0 : crew_fail_wrong(crew, "%s of %llu, root %d: element %llu of block %llu is wrong", names[call->of.kind],
                                        (unsigned long long)call->count, call->of.root, (unsigned long long)at % call->count,
                                        (unsigned long long)at / call->count);
}

static int one_call(crew *crew, const call *call)
{
    uint64_t room = call->count * (uint64_t)crew->size + 1;
    int64_t *send = malloc(room * sizeof *send), *receive = malloc(room * sizeof *receive);
    question_fill(crew, &call->of, send, receive, call->count);
    int rc = perform(crew, call, send, receive);
    rc = rc ? crew_fail(crew, "%s failed: %s", names[call->of.kind], weft_fail_text(rc)) : check(crew, call, receive);
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
        call call;
        call.of.kind = (enum weft_coll_kind)(crew_random(&state) % WEFT_COLL_LAST);
        call.count = crew_random(&state) % (crew_random(&state) % 4 ? 20 : 2500);
        call.of.salt = crew_random(&state) >> 32;
        call.of.root = (int)(crew_random(&state) % (uint64_t)crew.size);
        call.is_blocking = crew_random(&state) % 2;
        rc = one_call(&crew, &call);
    }
    rc = rc ? rc : crew_barrier(&crew);
    return rc ? rc : crew_close(&crew);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * colls: random collectives between simulated ranks, blocking and nonblocking; every result is verified in full.
 */
#include <stdlib.h>

#include "base/status.h"
#include "collectives/calls.h"
#include "test/sim/answers.h"
#include "test/sim/traffic.h"

typedef struct call {
    question of;
    uint64_t count;
    bool is_blocking;
} call;

static int perform(rig *rig, const call *call, int64_t *send, int64_t *receive)
{
    weft_coll args = question_args(&call->of, send, receive, call->count);
    weft_req *req;
    if (call->is_blocking)
        return weft_coll_run(&rig->team, call->of.kind, &args);
    int rc = weft_coll_start(&rig->team, call->of.kind, &args, &req);
    if (rc)
        return rc;
    rc = weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

static int check(const rig *rig, const call *call, const int64_t *receive)
{
    int64_t at = question_wrong(rig, &call->of, receive, call->count);
    return at < 0 ? 0 : rig_fail_wrong(rig, "%s of %llu, root %d: element %llu of block %llu is wrong", weft_coll_name(call->of.kind),
                                        (unsigned long long)call->count, call->of.root, (unsigned long long)at % call->count,
                                        (unsigned long long)at / call->count);
}

static int one_call(rig *rig, const call *call)
{
    uint64_t capacity = call->count * (uint64_t)rig->size + 1;
    int64_t *send = malloc(capacity * sizeof *send), *receive = malloc(capacity * sizeof *receive);
    question_fill(rig, &call->of, send, receive, call->count);
    int rc = perform(rig, call, send, receive);
    rc = rc ? rig_fail(rig, "%s failed: %s", weft_coll_name(call->of.kind), weft_fail_text(rc)) : check(rig, call, receive);
    free(send);
    free(receive);
    return rc;
}

int colls_program(int rank, void *arg)
{
    const traffic *what = arg;
    rig rig;
    uint64_t state = what->seed; /* the same draws on every rank */
    int rc = rig_open(&rig, what->seed);
    (void)rank;
    for (uint32_t round = 0; round < 4 * what->rounds && !rc; round++) {
        call call;
        call.of.kind = (enum weft_coll_kind)(rig_random(&state) % ANSWERS_KINDS);
        call.count = rig_random(&state) % (rig_random(&state) % 4 ? 20 : 2500);
        call.of.salt = rig_random(&state) >> 32;
        call.of.root = (int)(rig_random(&state) % (uint64_t)rig.size);
        call.is_blocking = rig_random(&state) % 2;
        rc = one_call(&rig, &call);
    }
    rc = rc ? rc : rig_barrier(&rig);
    return rc ? rc : rig_close(&rig);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * colls: random collectives between simulated ranks, blocking and nonblocking, the latter up to eight at a time, and ended in an order of
 * each rank's own; every result is verified in full.
 */
#include <stdlib.h>

#include "base/status.h"
#include "collectives/calls.h"
#include "test/sim/answers.h"
#include "test/sim/traffic.h"

enum { UNDER_WAY = 8 };

typedef struct call {
    question of;
    uint64_t count;
    bool is_blocking;
    int64_t *send, *receive; /* while it is under way */
    weft_req *req;           /* nonblocking; NULL: not under way */
} call;

static int begin(rig *rig, call *call)
{
    weft_coll args = question_args(&call->of, call->send, call->receive, call->count);
    if (call->is_blocking)
        return weft_coll_run(&rig->team, call->of.kind, &args);
    return weft_coll_start(&rig->team, call->of.kind, &args, &call->req);
}

static int check(const rig *rig, const call *call)
{
    int64_t at = question_wrong(rig, &call->of, call->receive, call->count);
    return at < 0 ? 0 : rig_fail_wrong(rig, "%s of %llu, root %d: element %llu of block %llu is wrong", weft_coll_name(call->of.kind),
                                        (unsigned long long)call->count, call->of.root, (unsigned long long)at % call->count,
                                        (unsigned long long)at / call->count);
}

static int end(rig *rig, call *call, int rc)
{
    if (!rc && call->req)
        rc = weft_req_wait(call->req);
    if (call->req)
        weft_req_free(call->req);
    rc = rc ? rig_fail(rig, "%s failed: %s", weft_coll_name(call->of.kind), weft_fail_text(rc)) : check(rig, call);
    free(call->send);
    free(call->receive);
    call->req = NULL;
    return rc;
}

static int one_call(rig *rig, call *call)
{
    uint64_t capacity = call->count * (uint64_t)rig->size + 1;
    int rc;
    call->send = malloc(capacity * sizeof *call->send);
    call->receive = malloc(capacity * sizeof *call->receive);
    question_fill(rig, &call->of, call->send, call->receive, call->count);
    rc = begin(rig, call);
    return call->req ? rc : end(rig, call, rc);
}

static call draw(const rig *rig, uint64_t *state)
{
    call call = {.req = NULL};
    call.of.kind = (enum weft_coll_kind)(rig_random(state) % ANSWERS_KINDS);
    call.count = rig_random(state) % (rig_random(state) % 4 ? 20 : 2500);
    call.of.salt = rig_random(state) >> 32;
    call.of.root = (int)(rig_random(state) % (uint64_t)rig->size);
    call.is_blocking = rig_random(state) % 4 == 0;
    return call;
}

int colls_program(int rank, void *arg)
{
    const traffic *what = arg;
    rig rig;
    uint64_t state = what->seed, own = what->seed + (uint64_t)rank; /* the same draws of calls on every rank */
    call calls[UNDER_WAY] = {{.req = NULL}};
    int rc = rig_open(&rig, what->seed);
    for (uint32_t round = 0; round < 4 * what->rounds && !rc; round++) {
        call next = draw(&rig, &state), *at = &calls[rig_random(&own) % UNDER_WAY];
        if (at->req)
            rc = end(&rig, at, 0);
        *at = next;
        rc = rc ? rc : one_call(&rig, at);
    }
    for (uint32_t i = 0; i < UNDER_WAY && !rc; i++)
        rc = calls[i].req ? end(&rig, &calls[i], 0) : 0;
    rc = rc ? rc : rig_barrier(&rig);
    return rc ? rc : rig_close(&rig);
}

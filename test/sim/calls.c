/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls: rank 0 rests, and the others have messages for it and for each other. Those for rank 0 wait until it returns; they must not keep
 * what the others need.
 */
#include "base/status.h"
#include "test/sim/rig.h"
#include "test/sim/traffic.h"

#define BYTES 300
#define LONG_NS UINT64_C(100000000000)
#define TAG 5

/* Each rank but 0 sends to the next one. */
static int speak(rig *rig, uint64_t name)
{
    int others = rig->size - 1, next = 1 + rig->rank % others, last = 1 + (rig->rank + others - 2) % others;
    uint8_t out[BYTES], in[BYTES];
    weft_recv_info info;
    weft_req *req;
    int rc;
    rig_fill(out, name + (uint64_t)rig->rank, BYTES);
    rc = weft_isend(rig->chan, next, TAG, out, BYTES, rig_type(RIG_BYTE), WEFT_SEND_SYNC, &req);
    rc = rc ? rc : weft_recv(rig->chan, last, TAG, in, BYTES, rig_type(RIG_BYTE), &info);
    rc = rc ? rc : weft_req_wait(req);
    if (rc)
        return rig_fail(rig, "calls: %s", weft_fail_text(rc));
    weft_req_free(req);
    return rig_wrong(in, name + (uint64_t)last, BYTES) == BYTES ? 0 : rig_fail_wrong(rig, "calls: wrong bytes of %d", last);
}

static int call(rig *rig)
{
    uint64_t (*now_ns)(void) = rig->world->sleep_ops->now_ns, begin;
    uint8_t out[BYTES];
    weft_req *req;
    int rc;
    weft_sim_compute(LONG_NS / 200);
    rig_fill(out, (uint64_t)rig->rank, BYTES);
    rc = weft_isend(rig->chan, 0, TAG, out, BYTES, rig_type(RIG_BYTE), WEFT_SEND_SYNC, &req);
    begin = now_ns();
    for (uint64_t round = 1; round <= 3 && !rc && rig->size > 2; round++)
        rc = speak(rig, 100 * round);
    if (!rc && now_ns() - begin > LONG_NS / 2)
        return rig_fail(rig, "calls: messages took %llu ms", (unsigned long long)(now_ns() - begin) / 1000000);
    rc = rc ? rc : weft_req_wait(req);
    if (!rc)
        weft_req_free(req);
    return rc;
}

static int rest(rig *rig)
{
    int rc = 0;
    weft_world_rest(rig->world);
    weft_sim_compute(LONG_NS);
    weft_world_return(rig->world);
    for (int i = 1; i < rig->size && !rc; i++) {
        uint8_t in[BYTES];
        weft_recv_info info;
        rc = weft_recv(rig->chan, i, TAG, in, BYTES, rig_type(RIG_BYTE), &info);
        if (!rc && rig_wrong(in, (uint64_t)i, BYTES) < BYTES)
            rc = rig_fail_wrong(rig, "calls: wrong bytes of %d", i);
    }
    return rc;
}

int calls_program(int rank, void *arg)
{
    const traffic *what = arg;
    rig rig;
    int rc = rig_open(&rig, what->seed);
    if (!rc)
        rig.chan->is_lasting = true; /* as of a session: MPI_Finalize does not close it */
    if (!rc && what->seed % 2)
        rc = rig_barrier(&rig);
    rc = rc ? rc : rank == 0 ? rest(&rig) : call(&rig);
    return rc ? rc : rig_rest_and_close(&rig);
}

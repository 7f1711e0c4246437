/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zcopy: messages that an iface reads from the users' buffers (zcopy): they are not copied at the sender, eager or by rendezvous. A burst
 * that runs out of credit uses credit returned meanwhile. The simulator verifies in every run over its profile `holding` that held bodies
 * do not change.
 *    zcopy       runs all
 */
#include <CUnit/Basic.h>
#include <stdlib.h>

#include "base/knob.h"
#include "test/sim/rig.h"

#define BURST 64
#define BYTES 2000 /* fits a frame; a window of 16 KiB holds eight */
#define LONG_BYTES ((uint64_t)100000)

static struct {
    uint64_t eager, copied, held; /* eager messages; copied bytes of the burst; zcopy sends of the long message */
    uint64_t long_copied, blocking_copied;
    bool by_plan;                 /* the burst is sent by a schedule, not directly by a program's call */
} seen;

static int burst_out(rig *rig, const uint8_t *sent)
{
    weft_req *reqs[BURST];
    uint64_t *eager = &rig->world->workers[0]->counters[WEFT_COUNT_EAGER], before = *eager;
    int rc = 0;
    for (int i = 0; i < BURST && !rc; i++)
        rc = seen.by_plan ? weft_isend(rig->chan, 1, i, sent + i, BYTES, rig_type(RIG_BYTE), WEFT_SEND_STANDARD, &reqs[i])
                          : weft_isend_standard(sent + i, BYTES, rig_type(RIG_BYTE), 1, i, rig->chan, &reqs[i]);
    seen.eager = *eager - before; /* without messages sent while waiting */
    for (int i = 0; i < BURST && !rc; i++) {
        rc = weft_req_wait(reqs[i]);
        weft_req_free(reqs[i]);
    }
    return rc;
}

static int burst_in(rig *rig, uint8_t *buf, const uint8_t *sent, weft_req **reqs)
{
    int rc = 0;
    for (int i = 0; i < BURST && !rc; i++) {
        rc = weft_req_wait(reqs[i]);
        weft_req_free(reqs[i]);
        for (int k = 0; k < BYTES && !rc; k++)
            if (buf[i * BYTES + k] != sent[i + k])
                rc = rig_fail(rig, "message %d, byte %d is wrong", i, k);
    }
    return rc;
}

static int send_side(rig *rig, const uint8_t *sent)
{
    uint64_t *counters = rig->world->workers[0]->counters, copied = counters[WEFT_COUNT_BYTES_COPIED];
    int rc = weft_send(rig->chan, 1, BURST + 2, sent, 0, rig_type(RIG_BYTE), WEFT_SEND_STANDARD); /* connects */
    rc = rc ? rc : weft_send(rig->chan, 1, BURST + 1, sent, BYTES, rig_type(RIG_BYTE), WEFT_SEND_STANDARD); /* with credit */
    seen.blocking_copied = counters[WEFT_COUNT_BYTES_COPIED] - copied;
    copied = counters[WEFT_COUNT_BYTES_COPIED];
    rc = rc ? rc : burst_out(rig, sent);
    seen.copied = counters[WEFT_COUNT_BYTES_COPIED] - copied;
    copied = counters[WEFT_COUNT_BYTES_COPIED];
    rc = rc ? rc : weft_send(rig->chan, 1, BURST, sent, LONG_BYTES, rig_type(RIG_BYTE), WEFT_SEND_STANDARD);
    seen.long_copied = counters[WEFT_COUNT_BYTES_COPIED] - copied;
    return rc;
}

static int program(int rank, void *arg)
{
    uint8_t *buf = calloc(1, LONG_BYTES + BURST * BYTES), *sent = malloc(LONG_BYTES);
    weft_req *reqs[BURST];
    weft_recv_info found;
    rig rig;
    int rc = rig_open(&rig, 1);
    (void)arg;
    rig_fill(sent, 7, LONG_BYTES);
    for (int i = 0; i < BURST && rank == 1 && !rc; i++)
        rc = weft_irecv(rig.chan, 0, i, buf + i * BYTES, BYTES, rig_type(RIG_BYTE), &reqs[i]);
    rc = rc ? rc : rig_barrier(&rig);
    if (!rc && rank == 0) {
        rc = send_side(&rig, sent);
    } else if (!rc) {
        rc = burst_in(&rig, buf, sent, reqs);
        rc = rc ? rc : weft_recv(rig.chan, 0, BURST, buf, LONG_BYTES, rig_type(RIG_BYTE), &found);
        if (!rc && rig_wrong(buf, 7, LONG_BYTES) != LONG_BYTES)
            rc = rig_fail(&rig, "the long message is wrong");
        rc = rc ? rc : weft_recv(rig.chan, 0, BURST + 2, buf, 0, rig_type(RIG_BYTE), &found);
        rc = rc ? rc : weft_recv(rig.chan, 0, BURST + 1, buf, BYTES, rig_type(RIG_BYTE), &found);
    }
    rc = rc ? rc : rig_close(&rig);
    free(buf);
    free(sent);
    return rc;
}

static int run(uint64_t seed, uint32_t delay_ns)
{
    weft_sim_profile profile = *weft_sim_profile_find("holding");
    weft_sim_report report;
    weft_sim_config config = {.ranks = 2, .seed = seed, .profile = &profile, .report = &report};
    int rc;
    profile.zcopy_permille = 1000;
    profile.again_permille = profile.flow_frames = 0; /* deferred frames use other code paths, which the runs by seed cover */
    profile.delay_ns = delay_ns;
    weft_knobs_load(false);
    weft_knob.rndv_scheme = WEFT_RNDV_SCHEME_COPY;
    weft_knob.credit_kib = 16;
    rc = weft_sim_run(&config, program, NULL);
    seen.held = report.counts[WEFT_SIM_ZCOPY];
    return rc;
}

static void nothing_is_copied(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CU_ASSERT(run(seed, 6000) == 0);
        CU_ASSERT(seen.held >= BURST + LONG_BYTES / 2048);
        CU_ASSERT(seen.copied == 0 && seen.long_copied == 0);
    }
}

/* A blocking send returns at once while there is credit, whatever its receiver does. */
static void blocking_is_copied(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CU_ASSERT(run(seed, 50) == 0);
        CU_ASSERT(seen.blocking_copied == BYTES);
    }
}

/* A window of eight messages, of which half is returned at a time. */
static void returned_credit_is_used(void)
{
    uint64_t eager = 0; /* of 1,280; at most 160 if the sender does not poll */
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CU_ASSERT(run(seed, 50) == 0);
        eager += seen.eager;
    }
    CU_ASSERT(eager > 200);
}

/* A schedule may send inside a poll, where no further poll is made. */
static void schedules_do_not_poll(void)
{
    seen.by_plan = true;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CU_ASSERT(run(seed, 50) == 0);
        CU_ASSERT(seen.eager <= 8);
    }
    seen.by_plan = false;
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("zcopy", NULL, NULL);
    CU_add_test(suite, "nonblocking sends are not copied", nothing_is_copied);
    CU_add_test(suite, "blocking sends are copied", blocking_is_copied);
    CU_add_test(suite, "returned credit is used", returned_credit_is_used);
    CU_add_test(suite, "schedules do not poll", schedules_do_not_poll);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

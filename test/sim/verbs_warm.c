/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_warm: a registered receive buffer is written in one operation, with the region's rkey or a memory window, even if the sender's
 * buffer is not registered. A put without a registration requests fragment after fragment, each with its own window.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/sim/rig.h"
#include "test/sim/verbs_net.h"

#define BYTES ((uint64_t)1 << 20) /* several fragments */
#define TURNS 6
#define COLD 2 /* turns after which the receiver has registered its buffer */

static struct {
    uint64_t puts, asked; /* in warm turns: messages by put, frames of the receiver */
} seen;

/* The sender's buffer is another one each time. */
static int turns(rig *rig, uint8_t *memory)
{
    const uint64_t *counters = rig->world->workers[0]->counters;
    int rc = 0;
    for (int i = 0; i < TURNS && !rc; i++) {
        uint8_t *buf = memory + (rig->rank == 0 ? (uint64_t)i * BYTES : 0);
        rc = rig_barrier(rig);
        if (i == COLD && rig->rank == 1) {
            seen.puts = counters[WEFT_COUNT_RNDV_PUT];
            seen.asked = counters[WEFT_COUNT_FRAMES_LONG];
        }
        if (rc)
            break;
        if (rig->rank == 0)
            rig_fill(buf, (uint64_t)i, BYTES);
        rc = rig->rank == 0 ? weft_send(rig->chan, 1, i, buf, BYTES, rig_type(RIG_BYTE), WEFT_SEND_STANDARD)
                             : weft_recv(rig->chan, 0, i, buf, BYTES, rig_type(RIG_BYTE), NULL);
        if (!rc && rig->rank == 1 && rig_wrong(buf, (uint64_t)i, BYTES) != BYTES)
            rc = rig_fail(rig, "turn %d came with wrong bytes", i);
    }
    if (rig->rank == 1) {
        seen.puts = counters[WEFT_COUNT_RNDV_PUT] - seen.puts;
        seen.asked = counters[WEFT_COUNT_FRAMES_LONG] - seen.asked;
    }
    return rc ? rc : rig_barrier(rig);
}

static int program(int rank, void *arg)
{
    uint8_t *memory = aligned_alloc(4096, TURNS * BYTES);
    rig rig;
    int rc = memory ? rig_open(&rig, 1) : 1;
    (void)rank;
    (void)arg;
    rc = rc ? rc : turns(&rig, memory);
    rc = rc ? rig_fail(&rig, "%s", weft_fail_text(rc)) : rig_close(&rig);
    free(memory);
    return rc;
}

static uint64_t binds_of_run(const char *windows)
{
    weft_sim_report report;
    weft_sim_config config = {.ranks = 2, .seed = 3, .report = &report};
    uint64_t binds;
    setenv("WEFT_RNDV_SCHEME", "put", 1);
    setenv("WEFT_REG_MODE", "auto", 1);
    setenv("WEFT_VERBS_MW", windows, 1);
    weft_knobs_load(false);
    config.net = verbs_net_open(simhca_profile_find("calm"), 3, true);
    CU_ASSERT_FATAL(config.net != NULL);
    CU_ASSERT(weft_sim_run(&config, program, NULL) == 0);
    binds = simhca_counter(SIMHCA_BINDS);
    CU_ASSERT(verbs_net_close(stderr) == 0);
    return binds;
}

/* In a warm turn the receiver sends one CTS and the barrier's frames. */
static void test_by_keys(void)
{
    CU_ASSERT(binds_of_run("never") == 0);
    CU_ASSERT(seen.puts == TURNS - COLD);
}

static void test_by_windows(void)
{
    uint64_t asked;
    binds_of_run("never");
    asked = seen.asked;
    CU_ASSERT(binds_of_run("always") >= TURNS - COLD);
    CU_ASSERT(seen.puts == TURNS - COLD);
    CU_ASSERT(seen.asked == asked);
    if (seen.asked != asked)
        printf("\n    %d warm messages by put cost the receiver %llu frames with windows, %llu without", TURNS - COLD,
               (unsigned long long)seen.asked, (unsigned long long)asked);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("verbs_warm", NULL, NULL);
    CU_add_test(suite, "by rkeys", test_by_keys);
    CU_add_test(suite, "by windows", test_by_windows);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : CU_get_error();
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frags: eager messages in fragments, over ports that refuse frames midway: expected ones, unexpected ones that a probe must not see before
 * they are whole, receives that are too short, in the order in which they were sent; and that fragments are sent only
 * to who waits.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/sim/crew.h"

#define TURNS 120
#define MOST 3000

static struct {
    uint64_t frames, again; /* of rank 0 */
} seen;

static uint64_t bytes_of(int turn) { return 40 + (uint64_t)turn * 7919 % (MOST - 40) / 8 * 8; }

static int take(crew *crew, int from, int turn, uint8_t *buf)
{
    uint64_t bytes = bytes_of(turn), room = turn % 7 == 3 ? bytes / 2 : bytes;
    weft_found found;
    bool is_there;
    int rc = 0;
    if (turn % 3 == 1) { /* unexpected */
        rc = weft_probe(crew->chan, from, WEFT_ANY_TAG, true, &is_there, &found);
        if (!rc && (found.bytes != bytes || found.tag != turn))
            return crew_fail(crew, "turn %d: probe sees %llu bytes with tag %d", turn, (unsigned long long)found.bytes, found.tag);
    }
    memset(buf, 0, MOST);
    rc = rc ? rc : weft_recv(crew->chan, from, turn % 2 ? turn : WEFT_ANY_TAG, buf, room, crew_type(CREW_BYTE), &found);
    if (rc != (room < bytes ? WEFT_E_TRUNCATE : 0) || found.tag != turn)
        return crew_fail(crew, "turn %d: code %d, tag %d", turn, rc, found.tag);
    if (crew_wrong(buf, (uint64_t)turn, room) != room || buf[room])
        return crew_fail(crew, "turn %d: wrong bytes", turn);
    return 0;
}

static int give(crew *crew, int to, int turn, uint8_t *buf)
{
    uint64_t bytes = bytes_of(turn);
    int rc;
    crew_fill(buf, (uint64_t)turn, bytes);
    rc = weft_send_standard(buf, bytes, crew_type(CREW_BYTE), to, turn, crew->chan);
    memset(buf, 0xee, bytes); /* it is ours again */
    return rc;
}

static int program(int rank, void *arg)
{
    uint8_t *buf = malloc(MOST);
    crew crew;
    int rc = crew_open(&crew, 1);
    bool is_stream = *(bool *)arg;
    rc = rc ? rc : crew_barrier(&crew);
    const uint64_t *counters = crew.world->lanes[0]->counters;
    uint64_t frames = counters[WEFT_COUNT_FRAMES_LONG], again = counters[WEFT_COUNT_AGAIN];
    for (int turn = 0; turn < TURNS && !rc; turn++) {
        rc = rank == 0 ? give(&crew, 1, turn, buf) : take(&crew, 0, turn, buf);
        if (!rc && !is_stream)
            rc = rank == 1 ? give(&crew, 0, turn, buf) : take(&crew, 1, turn, buf);
    }
    if (rank == 0) {
        seen.frames = counters[WEFT_COUNT_FRAMES_LONG] - frames;
        seen.again = counters[WEFT_COUNT_AGAIN] - again;
    }
    rc = rc ? rc : crew_barrier(&crew);
    rc = rc ? rc : crew_close(&crew);
    free(buf);
    return rc;
}

static int run(const char *profile, uint64_t seed, bool is_stream)
{
    weft_sim_report report;
    weft_sim_config config = {.ranks = 2, .seed = seed, .profile = weft_sim_profile_find(profile), .report = &report};
    setenv("WEFT_LARGE_BY", "copy", 1);
    weft_knobs_load(false);
    int rc = weft_sim_run(&config, program, &is_stream);
    if (rc)
        fprintf(stderr, "    %s, seed %llu: %s\n", profile, (unsigned long long)seed, report.text);
    return rc;
}

static void test_whole(void)
{
    static const char *const profiles[] = {"calm", "storm", "wild", "grudging"};
    uint64_t frames = 0, again = 0;
    for (int i = 0; i < 4; i++)
        for (uint64_t seed = 1; seed <= 8; seed++)
            for (int is_stream = 0; is_stream < 2; is_stream++) {
                CU_ASSERT(run(profiles[i], seed, is_stream) == 0);
                frames += is_stream ? 0 : seen.frames;
                again += seen.again;
            }
    CU_ASSERT(frames > 4 * 8 * TURNS * 2); /* else they were not in fragments */
    CU_ASSERT(again > 100);               /* nor refused midway */
}

/* A message that follows another without a word from the peer leaves whole. */
static void test_stream(void)
{
    CU_ASSERT(run("calm", 3, true) == 0);
    CU_ASSERT(seen.frames < TURNS + TURNS / 2);
    CU_ASSERT(run("calm", 3, false) == 0);
    CU_ASSERT(seen.frames > 3 * TURNS);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("frags", NULL, NULL);
    CU_add_test(suite, "whole", test_whole);
    CU_add_test(suite, "stream", test_stream);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : CU_get_error();
}

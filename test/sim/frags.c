/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frags: eager messages in fragments, over ifaces that defer frames midway: expected and unexpected messages (a probe sees only complete
 * ones), truncated ones, in send order. Fragments are sent only to a peer that waits.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "p2p/eager_frags.h"
#include "test/sim/rig.h"

#define TURNS 120
#define MAX 3000

enum { ANSWERS, STREAM, EXCHANGE, PATTERNS }; /* ping-pong; one direction; both directions at once */

static struct {
    uint64_t frames, again; /* of rank 0 */
} seen;

static uint64_t bytes_of(int turn) { return 40 + (uint64_t)turn * 7919 % (MAX - 40) / 8 * 8; }

static int take(rig *rig, int from, int turn, uint8_t *buf)
{
    uint64_t bytes = bytes_of(turn), capacity = turn % 7 == 3 ? bytes / 2 : bytes;
    weft_recv_info found;
    bool is_there;
    int rc = 0;
    if (turn % 3 == 1) { /* unexpected */
        rc = weft_probe(rig->chan, from, WEFT_ANY_TAG, true, &is_there, &found);
        if (!rc && (found.bytes != bytes || found.tag != turn))
            return rig_fail(rig, "turn %d: probe sees %llu bytes with tag %d", turn, (unsigned long long)found.bytes, found.tag);
    }
    memset(buf, 0, MAX);
    rc = rc ? rc : weft_recv(rig->chan, from, turn % 2 ? turn : WEFT_ANY_TAG, buf, capacity, rig_type(RIG_BYTE), &found);
    if (rc != (capacity < bytes ? WEFT_E_TRUNCATE : 0) || found.tag != turn)
        return rig_fail(rig, "turn %d: code %d, tag %d", turn, rc, found.tag);
    if (rig_wrong(buf, (uint64_t)turn, capacity) != capacity || buf[capacity])
        return rig_fail(rig, "turn %d: wrong bytes", turn);
    return 0;
}

static int give(rig *rig, int to, int turn, uint8_t *buf)
{
    uint64_t bytes = bytes_of(turn);
    int rc;
    rig_fill(buf, (uint64_t)turn, bytes);
    rc = weft_send_standard(buf, bytes, rig_type(RIG_BYTE), to, turn, rig->chan);
    memset(buf, 0xee, bytes); /* the buffer may be reused */
    return rc;
}

/* Both ranks send first. */
static int exchange(rig *rig, int other, int turn, uint8_t *out, uint8_t *in)
{
    uint64_t bytes = bytes_of(turn);
    weft_req *req;
    int rc;
    rig_fill(out, (uint64_t)turn, bytes);
    rc = weft_isend_standard(out, bytes, rig_type(RIG_BYTE), other, turn, rig->chan, &req);
    if (rc)
        return rc;
    rc = take(rig, other, turn, in);
    rc = rc ? rc : weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

static int answer(rig *rig, int rank, int turn, bool is_stream, uint8_t *buf)
{
    int rc = rank == 0 ? give(rig, 1, turn, buf) : take(rig, 0, turn, buf);
    if (!rc && !is_stream)
        rc = rank == 1 ? give(rig, 0, turn, buf) : take(rig, 1, turn, buf);
    return rc;
}

static int program(int rank, void *arg)
{
    uint8_t *buf = malloc(2 * MAX);
    rig rig;
    int rc = rig_open(&rig, 1);
    int pattern = *(int *)arg;
    rc = rc ? rc : rig_barrier(&rig);
    const uint64_t *counters = rig.world->workers[0]->counters;
    uint64_t frames = counters[WEFT_COUNT_FRAMES_LONG], again = counters[WEFT_COUNT_FRAMES_DEFERRED];
    for (int turn = 0; turn < TURNS && !rc; turn++)
        rc = pattern == EXCHANGE ? exchange(&rig, 1 - rank, turn, buf + MAX, buf) : answer(&rig, rank, turn, pattern == STREAM, buf);
    if (rank == 0) {
        seen.frames = counters[WEFT_COUNT_FRAMES_LONG] - frames;
        seen.again = counters[WEFT_COUNT_FRAMES_DEFERRED] - again;
    }
    rc = rc ? rc : rig_barrier(&rig);
    rc = rc ? rc : rig_close(&rig);
    free(buf);
    return rc;
}

static int run(const char *profile, uint64_t seed, int pattern)
{
    weft_sim_report report;
    weft_sim_config config = {.ranks = 2, .seed = seed, .profile = weft_sim_profile_find(profile), .report = &report};
    setenv("WEFT_RNDV_SCHEME", "copy", 1);
    weft_knobs_load(false);
    int rc = weft_sim_run(&config, program, &pattern);
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
            for (int pattern = 0; pattern < PATTERNS; pattern++) {
                CU_ASSERT(run(profiles[i], seed, pattern) == 0);
                frames += pattern == ANSWERS ? seen.frames : 0;
                again += seen.again;
            }
    CU_ASSERT(frames > 4 * 8 * TURNS * 2); /* else they were not sent in fragments */
    CU_ASSERT(again > 100);               /* else no fragment was deferred */
}

/* A message that follows another without a frame from the peer is not split. */
static void test_stream(void)
{
    CU_ASSERT(run("calm", 3, STREAM) == 0);
    CU_ASSERT(seen.frames < TURNS + TURNS / 2);
    CU_ASSERT(run("calm", 3, ANSWERS) == 0);
    CU_ASSERT(seen.frames > 3 * TURNS);
}

/* A peer that has not received the last message does not wait for this one, whatever other frames it has sent: it is busy. */
static void test_busy(void)
{
    weft_peer peer = {.frag = 1024, .credit = 100, .credit_full = 100};
    CU_ASSERT(weft_eager_frags_help(&peer, 2000));
    CU_ASSERT(!weft_eager_frags_help(&peer, 1000));
    peer.credit -= weft_peer_cost(2000);
    peer.seq_in++;
    CU_ASSERT(!weft_eager_frags_help(&peer, 2000));
    peer.credit += weft_peer_cost(2000);
    CU_ASSERT(weft_eager_frags_help(&peer, 2000));
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("frags", NULL, NULL);
    CU_add_test(suite, "complete", test_whole);
    CU_add_test(suite, "stream", test_stream);
    CU_add_test(suite, "busy peer", test_busy);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : CU_get_error();
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * damage: collectives whose messages are corrupted or truncated (WEFT_CHECKSUM; counts that do not match). Errors that leave messages
 * delivered end no schedule: every rank ends every call, all ranks whose result is affected return the error, and the next call finds all
 * ranks in step.
 *    damage HOW PROFILE RANKS SEED    replays one run (HOW: flips, cuts, calls, making, stopping)
 * Seeds: see seeds.h.
 */
#include "test/sim/damage.h"

#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/sim/answers.h"
#include "test/sim/seeds.h"

#define ROUNDS 24

enum mode { BLOCKING, NONBLOCKING, PERSISTENT, MODES };

typedef struct call {
    question of;
    uint64_t count, own_count; /* count: elements for each rank on the others; own_count: on this rank */
    int64_t *send, *receive;
    weft_req *req; /* persistent request */
} call;

static bool is_right(const rig *rig, const call *call)
{
    return question_wrong(rig, &call->of, call->receive, call->own_count) < 0;
}

static void fill(const rig *rig, call *call)
{
    question_fill(rig, &call->of, call->send, call->receive, call->own_count);
}

static void call_open(const rig *rig, call *call)
{
    uint64_t capacity = call->own_count * (uint64_t)rig->size + 1;
    call->send = calloc(capacity, sizeof *call->send);
    call->receive = calloc(capacity, sizeof *call->receive);
    call->req = NULL;
}

static void call_close(call *call)
{
    if (call->req)
        weft_req_free(call->req);
    free(call->send);
    free(call->receive);
}

static int perform(rig *rig, call *call, enum mode mode)
{
    weft_coll args = question_args(&call->of, call->send, call->receive, call->own_count);
    weft_req *req;
    int rc;
    switch (mode) {
    case BLOCKING:
        return weft_coll_run(&rig->team, call->of.kind, &args);
    case NONBLOCKING:
        rc = weft_coll_start(&rig->team, call->of.kind, &args, &req);
        if (rc)
            return rc;
        rc = weft_req_wait(req);
        weft_req_free(req);
        return rc;
    default:
        rc = call->req ? 0 : weft_coll_prepare(&rig->team, call->of.kind, &args, &call->req);
        rc = rc ? rc : weft_sched_restart(call->req);
        return rc ? rc : weft_req_wait(call->req);
    }
}

static void perform_damaged(rig *rig, damage *damage, call *call, enum mode mode)
{
    fill(rig, call);
    int rc = perform(rig, call, mode);
    bool is_wrong = !is_right(rig, call);
    damage->calls++;
    damage->reported += rc != 0;
    damage->wrong += is_wrong;
    damage->silent += is_wrong && rc == 0;
    damage->untrue += rc && rc != WEFT_E_CORRUPT && !(damage->is_cut && (rc == WEFT_E_TRUNCATE || rc == WEFT_E_NOT_SAME));
}

static int perform_reliable(rig *rig, call *call, enum mode mode)
{
    fill(rig, call);
    int rc = perform(rig, call, mode);
    if (rc)
        return rig_fail(rig, "kind %d, mode %d failed after the damage: %s", (int)call->of.kind, (int)mode, weft_fail_text(rc));
    return is_right(rig, call) ? 0 : rig_fail(rig, "kind %d, mode %d is wrong after the damage", (int)call->of.kind, (int)mode);
}

static uint64_t draw_count(const damage *damage, uint64_t *state)
{
    uint64_t length = rig_random(state) % 8;
    if (length < 4)
        return 1 + rig_random(state) % 20;
    if (length < 6 || damage->is_cut) /* for all counts that ranks may pass the same algorithm is selected */
        return 500 + rig_random(state) % 400;
    return rig_random(state) % (length == 6 ? 3000 : 12000);
}

/* The same draws on every rank, except the count of one rank. */
static call draw_call(const rig *rig, const damage *damage, uint64_t *state)
{
    call call;
    call.of.kind = (enum weft_coll_kind)(rig_random(state) % ANSWERS_KINDS);
    call.of.salt = rig_random(state) >> 32;
    call.count = draw_count(damage, state);
    call.of.root = (int)(rig_random(state) % (uint64_t)rig->size);
    int odd = (int)(rig_random(state) % (uint64_t)rig->size);
    bool is_more = rig_random(state) % 2;
    call.own_count = call.count;
    if (damage->is_cut && rig->rank == odd)
        call.own_count = is_more ? call.count + 3 : call.count - 1;
    return call;
}

/* Waits for all ranks; the last one makes the network reliable. */
static void meet(rig *rig, damage *damage)
{
    if (++damage->arrived == (uint32_t)rig->size)
        weft_sim_sound(true);
    while (damage->arrived < (uint32_t)rig->size) {
        weft_worker_poll(rig->world->workers[0]);
        weft_sim_yield();
    }
}

/* No rank leaves before it has received the other ranks' reports. */
static int greet_all(rig *rig)
{
    int rc = 0;
    for (int i = 0; i < rig->size && !rc; i++)
        if (i != rig->rank)
            rc = weft_send(rig->chan, i, 7, NULL, 0, rig_type(RIG_BYTE), WEFT_SEND_STANDARD);
    for (int i = 0; i < rig->size && !rc; i++)
        if (i != rig->rank)
            rc = weft_recv(rig->chan, i, 7, NULL, 0, rig_type(RIG_BYTE), NULL);
    return rc;
}

static void hurt_rounds(rig *rig, damage *damage, uint64_t *state, call kept[ANSWERS_KINDS])
{
    for (int round = 0; round < ROUNDS; round++) {
        enum mode mode = (enum mode)(rig_random(state) % MODES);
        call call = draw_call(rig, damage, state);
        call_open(rig, &call);
        perform_damaged(rig, damage, &call, mode);
        if (mode == PERSISTENT)
            perform_damaged(rig, damage, &call, mode);
        call_close(&call);
        if (!damage->is_cut)
            perform_damaged(rig, damage, &kept[round % ANSWERS_KINDS], PERSISTENT);
    }
}

static int program(int rank, void *arg)
{
    damage *damage = arg;
    rig rig;
    call kept[ANSWERS_KINDS];
    uint64_t state = damage->seed * 31;
    int rc = rig_open(&rig, damage->seed);
    (void)rank;
    if (rc)
        return rc;
    for (int kind = 0; kind < ANSWERS_KINDS; kind++) {
        kept[kind] = draw_call(&rig, damage, &state);
        kept[kind].of.kind = (enum weft_coll_kind)kind;
        kept[kind].own_count = kept[kind].count;
        call_open(&rig, &kept[kind]);
    }
    hurt_rounds(&rig, damage, &state, kept);
    meet(&rig, damage);
    for (int i = 0; i < ANSWERS_KINDS * MODES && !rc && !damage->is_cut; i++) /* after a wrong count all later calls are errors */
        rc = perform_reliable(&rig, &kept[i % ANSWERS_KINDS], (enum mode)(i / ANSWERS_KINDS));
    for (int kind = 0; kind < ANSWERS_KINDS; kind++)
        call_close(&kept[kind]);
    rc = rc ? rc : damage->is_cut ? greet_all(&rig) : rig_barrier(&rig);
    return rc ? rc : rig_close(&rig);
}

static int close_two(rig *rig, damage *damage, call *first, call *second)
{
    int rc;
    meet(rig, damage);
    call_close(first);
    call_close(second);
    rc = greet_all(rig);
    return rc ? rc : rig_close(rig);
}

/* Rank 0 sends for an ordinary reduction and then for a persistent one of the same number; both messages wait at rank 1, which then calls
 * the first one with another count: it must detect that. */
static int two_ahead(int rank, void *arg)
{
    damage *damage = arg;
    rig rig;
    call first = {.of = {.kind = WEFT_COLL_REDUCE, .root = 1}, .count = 4, .own_count = rank ? 7 : 4},
         second = {.of = first.of, .count = 2, .own_count = 2};
    int rc = rig_open(&rig, damage->seed);
    if (rc)
        return rc;
    call_open(&rig, &first);
    call_open(&rig, &second);
    for (int i = 0; i < 10000 && rank; i++) {
        weft_worker_poll(rig.world->workers[0]);
        weft_sim_yield();
    }
    perform_damaged(&rig, damage, &first, BLOCKING);
    if (!rank)
        perform_damaged(&rig, damage, &second, PERSISTENT);
    return close_two(&rig, damage, &first, &second);
}

/* A persistent call in which rank 2 has no data, and so takes part by no message, before a broadcast, in which it waits: the others must
 * find that it has ended that call. */
static int passed_by(int rank, void *arg)
{
    damage *damage = arg;
    rig rig;
    call first = {.of = {.kind = WEFT_COLL_ALLGATHER}, .count = 1, .own_count = rank != 2}, second = {.of = {.kind = WEFT_COLL_BCAST}, 5, 5};
    int rc = rig_open(&rig, damage->seed);
    if (rc)
        return rc;
    call_open(&rig, &first);
    call_open(&rig, &second);
    perform_damaged(&rig, damage, &first, PERSISTENT);
    perform_damaged(&rig, damage, &second, BLOCKING);
    return close_two(&rig, damage, &first, &second);
}

/* ---- runs ---- */

static const weft_sim_profile rough = {.name = "rough", .delay_ns = 800, .flip_permille = 60, .flip_rma_permille = 100,
                                       .again_permille = 20, .storm_max = 4, .blind_permille = 100};

static int run(damage_program *what, bool is_cut, const char *profile, uint32_t ranks, uint64_t seed, damage *damage,
               weft_sim_report *report)
{
    static const char *const schemes[] = {"copy", "get", "split", "put"};
    weft_sim_config config = {.ranks = ranks, .ranks_per_node = seed % 3 ? 0 : 2, .seed = seed, .is_quiet = true, .report = report,
                              .step_limit = 3000000, .profile = strcmp(profile, "rough") ? weft_sim_profile_find(profile) : &rough};
    *damage = (struct damage){.seed = seed, .is_cut = is_cut};
    setenv("WEFT_RNDV_SCHEME", schemes[seed % 4], 1);
    setenv("WEFT_CREDIT_KIB", seed % 3 ? "1024" : "16", 1);
    setenv("WEFT_CHECKSUM", !is_cut || seed % 2 ? "1" : "0", 1);
    setenv("WEFT_LOG", what == damage_stopping ? "warn" : "error", 1); /* each corrupted frame is logged as a warning */
    weft_knobs_load(false);
    int rc = weft_sim_run(&config, what, damage);
    weft_knob.checksum = false;
    return rc;
}

static const struct {
    const char *name;
    damage_program *what;
    bool is_cut, may_abort;
    const char *profiles[6];
} hows[] = {
    {"flips", program, false, false, {"flipped", "spoiled", "tainted", "rough"}},
    {"cuts", program, true, false, {"calm", "storm", "kernel", "tiny"}}, /* hca has timers: no sleep counts as long */
    {"calls", damage_calls, false, false, {"flipped", "spoiled", "tainted", "rough"}},
    {"making", damage_making, false, true, {"flipped", "tainted", "rough"}},
    {"stopping", damage_stopping, false, false, {"calm"}},
};
enum { HOWS = sizeof hows / sizeof *hows };

/* No rank waits forever, and no wrong result is returned without an error. Only a rank whose own count does not match is certain to
 * detect it: a rank with data of a truncated message gets no error. */
static bool is_well(int how, int rc, const damage *damage, const weft_sim_report *report)
{
    if (hows[how].may_abort && report->aborted)
        return strstr(report->text, "damaged in transit") || strstr(report->text, "made of damaged");
    return rc == 0 && !report->deadlocked && !damage->untrue && (damage->is_cut || !damage->silent);
}

/* The leak checker would scan the remains of aborted runs: five minutes for a thousand of them. */
#ifdef __SANITIZE_ADDRESS__
#define LEFT_MAX 100
#else
#define LEFT_MAX UINT32_MAX
#endif

static void run_how(int how)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 8, 9};
    uint64_t seed, calls = 0, reported = 0, wrong = 0, aborted = 0, runs = 0;
    seeds range;
    seeds_begin(&range);
    while ((seed = seeds_next(&range)) && !(hows[how].may_abort && runs > LEFT_MAX))
        for (int p = 0; p < 6 && hows[how].profiles[p]; p++) {
            weft_sim_report report;
            damage one;
            uint32_t ranks = sizes[(seed + (uint64_t)p) % 6];
            int kept = hows[how].may_abort ? rig_mute() : -1;
            int rc = run(hows[how].what, hows[how].is_cut, hows[how].profiles[p], ranks, seed, &one, &report);
            if (kept >= 0)
                rig_unmute(kept);
            bool well = is_well(how, rc, &one, &report);
            if (!well)
                fprintf(stderr, "    code %d, %u silent, %u untrue, %s: replay by: damage %s %s %u %" PRIu64 "\n", rc, one.silent,
                        one.untrue, report.text, hows[how].name, hows[how].profiles[p], ranks, seed);
            CU_ASSERT(well);
            calls += one.calls;
            reported += one.reported;
            wrong += one.wrong;
            aborted += report.aborted;
            runs++;
        }
    printf("\n    %s, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " runs, %" PRIu64 " calls, %" PRIu64 " wrong, %" PRIu64
           " reported, %" PRIu64 " ended", hows[how].name, range.first, range.next - 1, runs, calls, wrong, reported, aborted);
    CU_ASSERT(hows[how].may_abort ? aborted > 0 : reported > 0 && wrong > 0);
}

static void flips(void) { run_how(0); }
static void cuts(void) { run_how(1); }
static void calls(void) { run_how(2); }
static void making(void) { run_how(3); }

/* Leaks of members that were aborted are not reported to the leak checker. */
static void stopping(void)
{
    char text[4000] = "";
    weft_sim_report report;
    damage one;
    FILE *output = tmpfile();
    int kept = rig_mute();
    dup2(fileno(output), 2);
    int rc = run(damage_stopping, false, "calm", 3, 1, &one, &report);
    rig_unmute(kept);
    rewind(output);
    text[fread(text, 1, sizeof text - 1, output)] = 0;
    fclose(output);
    const char *word = "Collective calls on it are errors from now on", *first = strstr(text, word);
    CU_ASSERT(rc == 0 && one.reported == 2);
    CU_ASSERT(first && strstr(text, "MPI_Allreduce") && strstr(text, "rank 0 of 3") && !strstr(first + 1, word));
    if (rc || !first)
        fprintf(stderr, "    %d, %s; output: %s\n", rc, report.text, text);
}

static void hiding(void)
{
    weft_sim_report report;
    damage one;
    int rc = run(two_ahead, true, "calm", 2, 1, &one, &report);
    CU_ASSERT(rc == 0 && one.calls == 3 && one.reported == 1);
    if (rc)
        fprintf(stderr, "    %d, %s, %u calls, %u reported\n", rc, report.text, one.calls, one.reported);
}

static void passing(void)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        weft_sim_report report;
        damage one;
        int rc = run(passed_by, true, "storm", 4, seed, &one, &report);
        CU_ASSERT(rc == 0 && !report.deadlocked && one.reported >= 4);
        if (rc)
            fprintf(stderr, "    seed %u: %d, %s, %u calls, %u reported\n", seed, rc, report.text, one.calls, one.reported);
    }
}

/* For too large requests the sanitizers abort by default; malloc returns NULL. */
const char *__asan_default_options(void) __attribute__((visibility("default")));
const char *__tsan_default_options(void) __attribute__((visibility("default")));
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

static int replay(char **argv)
{
    weft_sim_report report = {.rc = 0};
    damage one;
    int how = 0;
    while (how < HOWS && strcmp(argv[0], hows[how].name) != 0)
        how++;
    if (how == HOWS || (strcmp(argv[1], "rough") && !weft_sim_profile_find(argv[1])))
        return 2;
    int rc = run(hows[how].what, hows[how].is_cut, argv[1], (uint32_t)atoi(argv[2]), strtoull(argv[3], NULL, 10), &one, &report);
    printf("%d: %u calls, %u wrong, %u reported, %u silent, %u untrue; %s\n", rc, one.calls, one.wrong, one.reported, one.silent,
           one.untrue, report.text);
    return !is_well(how, rc, &one, &report);
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return replay(argv + 1);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("damaged collectives", NULL, NULL);
    CU_add_test(suite, "flipped bits end no schedule", flips);
    CU_add_test(suite, "truncated messages end no schedule", cuts);
    CU_add_test(suite, "MPI calls report it once and continue", calls);
    CU_add_test(suite, "corrupted library messages end the job", making);
    CU_add_test(suite, "a failed member reports that others wait", stopping);
    CU_add_test(suite, "a persistent call's message hides no other", hiding);
    CU_add_test(suite, "a persistent call passed by without a message", passing);
    seeds_share(HOWS);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim: whole-library runs by seed: random messages and collectives on every profile of the simulator, death at many steps, and
 * the simulator's own promises: a seed replays, waiting for ever is found, faults are noticed.
 *     sim [-v] [profile ranks seed]     the last three replay one run of both programs
 * WEFT_TEST_SIM_SEEDS says how many seeds each profile gets (8).
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/sim/crew.h"
#include "test/sim/traffic.h"

typedef int program(int rank, void *arg);

static uint64_t totals[WEFT_SIM_COUNT_LAST];

static uint32_t seeds(void)
{
    const char *text = getenv("WEFT_TEST_SIM_SEEDS");
    return text && atoi(text) > 0 ? (uint32_t)atoi(text) : 8;
}

/* Which way large messages go: by seed, never by what a clock measured. */
static void choose_knobs(uint64_t seed)
{
    static const int ways[] = {WEFT_LARGE_COPY, WEFT_LARGE_GET, WEFT_LARGE_HALVES};
    weft_knobs_load(false);
    weft_knob.large_by = ways[seed % 3];
    weft_knob.credit_kib = seed % 4 == 0 ? 16 : 1024;
}

static int run(program *what, const char *profile, uint32_t ranks, uint64_t seed, weft_sim_report *report)
{
    traffic traffic = {.seed = seed, .rounds = 6};
    weft_sim_config config = {.ranks = ranks, .seed = seed, .profile = weft_sim_profile_find(profile), .report = report};
    choose_knobs(seed);
    int rc = weft_sim_run(&config, what, &traffic);
    traffic_clear();
    return rc;
}

static void show_counts(const uint64_t *counts)
{
    for (int i = 0; i < WEFT_SIM_COUNT_LAST; i++)
        if (counts[i])
            printf(" %s %" PRIu64, weft_sim_count_names[i], counts[i]);
}

static void run_seeds(program *what, const char *name, const char *profile)
{
    static const uint32_t sizes[] = {2, 3, 1, 5, 8, 4};
    weft_sim_report report;
    memset(totals, 0, sizeof totals);
    for (uint32_t i = 0; i < seeds(); i++) {
        uint64_t seed = i + 1;
        uint32_t ranks = sizes[i % 6];
        int rc = run(what, profile, ranks, seed, &report);
        CU_ASSERT(rc == 0);
        if (rc)
            fprintf(stderr, "    %s failed (%d): replay by: sim %s %u %" PRIu64 "\n", name, rc, profile, ranks, seed);
        CU_ASSERT(report.counts[WEFT_SIM_LATE_WAKES] == 0);
        if (report.counts[WEFT_SIM_LATE_WAKES])
            fprintf(stderr, "    %s lost %" PRIu64 " wake-ups: %s: sim %s %u %" PRIu64 "\n", name,
                    report.counts[WEFT_SIM_LATE_WAKES], report.text, profile, ranks, seed);
        for (int k = 0; k < WEFT_SIM_COUNT_LAST; k++)
            totals[k] += report.counts[k];
    }
    printf("\n    %s on %s, %u seeds:", name, profile, seeds());
    show_counts(totals);
    printf("\n");
    fflush(stdout);
}

/* A test is named "program profile". */
static void run_named(void)
{
    const char *name = CU_get_current_test()->pName, *profile = strchr(name, ' ') + 1;
    run_seeds(*name == 't' ? traffic_program : colls_program, *name == 't' ? "traffic" : "colls", profile);
}

/* The profiles do what they are for: else the runs above show nothing. */
static void faults_happen(void)
{
    weft_sim_report report;
    CU_ASSERT(run(traffic_program, "storm", 4, 5, &report) == 0);
    CU_ASSERT(report.counts[WEFT_SIM_REFUSED] > 100 && report.counts[WEFT_SIM_BLIND] > 10);
    CU_ASSERT(run(traffic_program, "slow", 4, 5, &report) == 0);
    CU_ASSERT(report.counts[WEFT_SIM_DELAYED] > 100 && report.counts[WEFT_SIM_REORDERED] > 20);
    CU_ASSERT(run(traffic_program, "kernel", 4, 4, &report) == 0);
    CU_ASSERT(report.counts[WEFT_SIM_MOVES] > 5);
}

static void seeds_replay(void)
{
    weft_sim_report first, second, other;
    CU_ASSERT(run(traffic_program, "wild", 4, 77, &first) == 0);
    CU_ASSERT(run(traffic_program, "wild", 4, 77, &second) == 0);
    CU_ASSERT(run(traffic_program, "wild", 4, 78, &other) == 0);
    CU_ASSERT(memcmp(first.counts, second.counts, sizeof first.counts) == 0);
    CU_ASSERT(first.now_ns == second.now_ns && first.steps == second.steps);
    CU_ASSERT(first.now_ns != other.now_ns);
}

/* Networks with a fault that the contract does not allow: in most runs something must be seen of it. */
static void faults_are_noticed(void)
{
    static const char *const faulty[] = {"flipped", "lossy", "doubled", "deaf", "shuffled"};
    for (uint32_t f = 0; f < 5; f++) {
        uint32_t noticed = 0;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            weft_sim_report report;
            traffic traffic = {.seed = seed, .rounds = 6};
            weft_sim_config config = {.ranks = 3, .seed = seed, .profile = weft_sim_profile_find(faulty[f]), .report = &report,
                                      .is_quiet = true};
            choose_knobs(0);
            int kept = crew_hush(), rc = weft_sim_run(&config, traffic_program, &traffic);
            traffic_clear();
            crew_speak(kept);
            noticed += rc != 0 || report.counts[WEFT_SIM_LATE_WAKES] > 0;
        }
        printf("\n    %s: noticed in %u of 10 runs", faulty[f], noticed);
        CU_ASSERT(noticed >= 6);
    }
}

static int waits_for_nobody(int rank, void *arg)
{
    crew crew;
    char byte;
    (void)arg;
    int rc = crew_open(&crew, 1);
    if (!rc && rank == 0)
        rc = weft_recv(crew.chan, 1, 5, &byte, 1, crew_type(CREW_BYTE), NULL);
    return rc ? rc : crew_barrier(&crew);
}

static int turns_in_circles(int rank, void *arg)
{
    crew crew;
    (void)arg;
    int rc = crew_open(&crew, 1);
    for (; !rc && rank < 2;)
        weft_lane_poll(crew.world->lanes[0]);
    return rc ? rc : crew_barrier(&crew);
}

static int aborts(int rank, void *arg)
{
    crew crew;
    (void)arg;
    int rc = crew_open(&crew, 1);
    rc = rc ? rc : crew_barrier(&crew);
    if (rank == 1)
        crew.world->boot->ops->abort(crew.world->boot, 42, "on purpose");
    return rc ? rc : crew_barrier(&crew);
}

static void waiting_for_ever_is_found(void)
{
    weft_sim_report report;
    weft_sim_config config = {.ranks = 3, .seed = 9, .report = &report, .is_quiet = true};
    CU_ASSERT(weft_sim_run(&config, waits_for_nobody, NULL) == WEFT_E_TIMEOUT && report.deadlocked);
    CU_ASSERT(strcmp(report.text, "everybody waits for ever") == 0);
    CU_ASSERT(weft_sim_run(&config, turns_in_circles, NULL) == WEFT_E_TIMEOUT && report.deadlocked);
    CU_ASSERT(strcmp(report.text, "everybody turns in circles") == 0);
    CU_ASSERT(weft_sim_run(&config, aborts, NULL) == 42 && report.aborted && report.abort_code == 42);
    CU_ASSERT(strstr(report.text, "rank 1") && strstr(report.text, "on purpose"));
}

/* A rank dies at its k-th call of the contract: the others end, by an abort that says so or because they were done with it. Not
 * at its first: whom nobody has met yet nobody can miss, and only the launcher sees its end. */
static void death_ends_the_job(void)
{
    static const char *const profiles[] = {"calm", "slow", "kernel"};
    uint32_t aborted = 0, count = 0;
    for (uint64_t step = 2; step < 3000; step += 1 + step / 4)
        for (uint32_t p = 0; p < 3; p++) {
            weft_sim_report report;
            traffic traffic = {.seed = step, .rounds = 3};
            weft_sim_config config = {.ranks = 3, .seed = step, .profile = weft_sim_profile_find(profiles[p]), .kill = true,
                                      .kill_rank = (uint32_t)(step % 3), .kill_step = step, .report = &report, .is_quiet = true};
            choose_knobs(step);
            int kept = crew_hush();
            weft_sim_run(&config, traffic_program, &traffic);
            traffic_clear();
            crew_speak(kept);
            if (report.deadlocked)
                fprintf(stderr, "    death of rank %" PRIu64 " at step %" PRIu64 " on %s hangs the others: %s\n", step % 3, step,
                        profiles[p], report.text);
            CU_ASSERT(!report.deadlocked);
            aborted += report.aborted;
            count++;
        }
    printf("\n    %u deaths, %u told by an abort", count, aborted);
    CU_ASSERT(aborted > 0);
}

static int replay(char **argv)
{
    weft_sim_report report;
    static const struct { const char *name; program *what; } all[] = {{"traffic", traffic_program}, {"colls", colls_program}};
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        int rc = run(all[i].what, argv[0], (uint32_t)atoi(argv[1]), strtoull(argv[2], NULL, 10), &report);
        printf("%s: %d;", all[i].name, rc);
        show_counts(report.counts);
        printf("; %" PRIu64 " us\n", report.now_ns / 1000);
        failed |= rc != 0;
    }
    return failed;
}

int main(int argc, char **argv)
{
    /* "shuffled" is not here but among the faults: p2p does not sort frames yet, and takes ports with order only */
    static const char *const profiles[] = {"calm", "slow", "storm", "narrow", "torn", "copyonly", "pinched", "tiny", "wild",
                                           "kernel", "grudging", "lopsided"};
    enum { PROFILES = sizeof profiles / sizeof profiles[0] };
    static char names[2 * PROFILES][40];
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    if (argc > 3)
        return replay(argv + argc - 3);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite own = CU_add_suite("simulator", NULL, NULL), whole = CU_add_suite("whole library", NULL, NULL);
    CU_add_test(own, "waiting-for-ever-is-found", waiting_for_ever_is_found);
    CU_add_test(own, "faults-happen", faults_happen);
    CU_add_test(own, "seeds-replay", seeds_replay);
    CU_add_test(own, "faults-are-noticed", faults_are_noticed);
    for (int i = 0; i < 2 * PROFILES; i++) {
        snprintf(names[i], sizeof names[i], "%s %s", i < PROFILES ? "traffic" : "colls", profiles[i % PROFILES]);
        CU_add_test(whole, names[i], run_named);
    }
    CU_add_test(whole, "death-ends-the-job", death_ends_the_job);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

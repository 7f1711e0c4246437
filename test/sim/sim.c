/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sim: runs of the whole library by seed: random messages and collectives on every profile of the simulator, death at many steps, and the
 * simulator's own properties: seeds replay, deadlocks are found, faults are detected.
 *    sim [-v] [TEXT]                   the tests whose name contains TEXT
 *    sim PROFILE RANKS SEED            replays one run of both programs
 * Seeds: see seeds.h.
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/sim/rig.h"
#include "test/sim/seeds.h"
#include "test/sim/traffic.h"

typedef int program(int rank, void *arg);

static uint64_t totals[WEFT_SIM_COUNT_LAST];

/* The seed, never a measured time, sets protocols, registration and checksums. */
static void choose_knobs(uint64_t seed)
{
    static const int ways[] = {WEFT_RNDV_SCHEME_COPY, WEFT_RNDV_SCHEME_GET, WEFT_RNDV_SCHEME_SPLIT, WEFT_RNDV_SCHEME_PUT};
    static const int pins[] = {WEFT_REG_MODE_SYNC, WEFT_REG_MODE_PIPELINE, WEFT_REG_MODE_ASYNC, WEFT_REG_MODE_AUTO, WEFT_REG_MODE_NEVER};
    weft_knobs_load(false);
    weft_knob.rndv_scheme = ways[seed % 4];
    /* cache hits depend on addresses, which a replay does not repeat: most runs register everything anew */
    weft_knob.regcache_monitor = seed % 8 == 6 ? WEFT_REGCACHE_MONITOR_AUTO : WEFT_REGCACHE_MONITOR_NONE;
    weft_knob.credit_kib = seed % 3 == 0 ? 16 : seed % 3 == 1 ? 1 : 1024; /* 1: below users' minimum, so that messages wait */
    weft_knob.reg_mode = pins[seed / 3 % 5];
    weft_knob.regcache_max_count = seed % 7 == 0 ? 2 : 0;
    weft_knob.regcache_max_size = seed % 11 == 0 ? 65536 : 0;
    weft_knob.checksum = seed % 5 == 0;
}

static int run(program *what, const char *profile, uint32_t ranks, uint64_t seed, weft_sim_report *report)
{
    traffic traffic = {.seed = seed, .rounds = 6, .has_few_states = seed % 9 == 5};
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
    seeds range;
    uint64_t seed;
    memset(totals, 0, sizeof totals);
    seeds_begin(&range);
    while ((seed = seeds_next(&range))) {
        uint32_t ranks = sizes[seed % 6];
        int rc = run(what, profile, ranks, seed, &report);
        CU_ASSERT(rc == 0);
        if (rc)
            fprintf(stderr, "    %s failed (%d): replay by: sim %s %u %" PRIu64 "\n", name, rc, profile, ranks, seed);
        CU_ASSERT(report.counts[WEFT_SIM_LOST_WAKEUPS] == 0);
        if (report.counts[WEFT_SIM_LOST_WAKEUPS])
            fprintf(stderr, "    %s lost %" PRIu64 " wake-ups: %s: sim %s %u %" PRIu64 "\n", name,
                    report.counts[WEFT_SIM_LOST_WAKEUPS], report.text, profile, ranks, seed);
        for (int k = 0; k < WEFT_SIM_COUNT_LAST; k++)
            totals[k] += report.counts[k];
    }
    printf("\n    %s on %s, seeds %" PRIu64 " to %" PRIu64 ":", name, profile, range.first, range.next - 1);
    show_counts(totals);
    printf("\n");
    fflush(stdout);
}

/* Test names are "program profile". */
static void run_named(void)
{
    const char *name = CU_get_current_test()->pName, *profile = strchr(name, ' ') + 1;
    run_seeds(*name == 't' ? traffic_program : colls_program, *name == 't' ? "traffic" : "colls", profile);
}

/* The profiles have the effects that they are for. Fixed seeds. */
static void faults_happen(void)
{
    static const struct {
        const char *profile;
        enum weft_sim_count what[3];
        uint64_t min;
    } bites[] = {
        {"storm", {WEFT_SIM_REFUSED, WEFT_SIM_BLIND, WEFT_SIM_RMA}, 30},
        {"slow", {WEFT_SIM_DELAYED, WEFT_SIM_REORDERED, WEFT_SIM_BLIND}, 100},
        {"kernel", {WEFT_SIM_RMA, WEFT_SIM_RMA, WEFT_SIM_RMA}, 30},
        {"torn", {WEFT_SIM_TORN, WEFT_SIM_RMA, WEFT_SIM_OVERTAKEN}, 20},
        {"pinning", {WEFT_SIM_PIN_NS, WEFT_SIM_REGS, WEFT_SIM_RMA}, 30},
        {"scarce", {WEFT_SIM_REGS, WEFT_SIM_RMA, WEFT_SIM_PIN_NS}, 30},
        {"starved", {WEFT_SIM_REGS_REFUSED, WEFT_SIM_REGS, WEFT_SIM_RMA}, 20},
        {"rails", {WEFT_SIM_TORN, WEFT_SIM_OVERTAKEN, WEFT_SIM_REGS}, 5},
        {"flapping", {WEFT_SIM_FLAPPED, WEFT_SIM_RMA, WEFT_SIM_RMA}, 30},
        {"pressed", {WEFT_SIM_QUEUE_FULL, WEFT_SIM_REFUSED, WEFT_SIM_RMA}, 5},
        {"ticking", {WEFT_SIM_UNRAISED, WEFT_SIM_ARMS_REFUSED, WEFT_SIM_RMA}, 30},
        {"hca", {WEFT_SIM_ARMS_REFUSED, WEFT_SIM_UNRAISED, WEFT_SIM_TORN}, 5},
    };
    for (size_t p = 0; p < sizeof bites / sizeof *bites; p++) {
        weft_sim_report report;
        memset(totals, 0, sizeof totals);
        for (uint64_t seed = 1; seed <= 10; seed++) {
            CU_ASSERT(run(traffic_program, bites[p].profile, 4, seed, &report) == 0);
            for (int k = 0; k < WEFT_SIM_COUNT_LAST; k++)
                totals[k] += report.counts[k];
        }
        for (int k = 0; k < 3; k++) {
            enum weft_sim_count what = bites[p].what[k];
            CU_ASSERT(totals[what] >= bites[p].min);
            if (totals[what] < bites[p].min)
                printf("\n    %s: %s only %" PRIu64 " times\n", bites[p].profile, weft_sim_count_names[what], totals[what]);
        }
    }
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

/* Networks with a fault that violates the contract: most runs must detect it. */
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
            choose_knobs(12); /* little credit, no checksums */
            int kept = rig_mute(), rc = weft_sim_run(&config, traffic_program, &traffic);
            traffic_clear();
            rig_unmute(kept);
            noticed += rc != 0 || report.counts[WEFT_SIM_LOST_WAKEUPS] > 0;
        }
        printf("\n    %s: noticed in %u of 10 runs", faulty[f], noticed);
        CU_ASSERT(noticed >= 5);
    }
}

static int waits_without_sender(int rank, void *arg)
{
    rig rig;
    char byte;
    (void)arg;
    int rc = rig_open(&rig, 1);
    if (!rc && rank == 0)
        rc = weft_recv(rig.chan, 1, 5, &byte, 1, rig_type(RIG_BYTE), NULL);
    return rc ? rc : rig_barrier(&rig);
}

static int turns_in_circles(int rank, void *arg)
{
    rig rig;
    (void)arg;
    int rc = rig_open(&rig, 1);
    for (; !rc && rank < 2;)
        weft_worker_poll(rig.world->workers[0]);
    return rc ? rc : rig_barrier(&rig);
}

static int aborts(int rank, void *arg)
{
    rig rig;
    (void)arg;
    int rc = rig_open(&rig, 1);
    rc = rc ? rc : rig_barrier(&rig);
    if (rank == 1)
        rig.world->boot->ops->abort(rig.world->boot, 42, "on purpose");
    return rc ? rc : rig_barrier(&rig);
}

static void endless_wait_is_detected(void)
{
    weft_sim_report report;
    weft_sim_config config = {.ranks = 3, .seed = 9, .report = &report, .is_quiet = true};
    CU_ASSERT(weft_sim_run(&config, waits_without_sender, NULL) == WEFT_E_TIMEOUT && report.deadlocked);
    CU_ASSERT(strcmp(report.text, "everybody waits for ever") == 0);
    CU_ASSERT(weft_sim_run(&config, turns_in_circles, NULL) == WEFT_E_TIMEOUT && report.deadlocked);
    CU_ASSERT(strcmp(report.text, "everybody turns in circles") == 0);
    CU_ASSERT(weft_sim_run(&config, aborts, NULL) == 42 && report.aborted && report.abort_code == 42);
    CU_ASSERT(strstr(report.text, "rank 1") && strstr(report.text, "on purpose"));
}

/* Runs in which a rank or connection is lost: the others end, by an abort with that reason or because they are done; all they received
 * before is correct. */
static void run_to_a_loss(weft_sim_config *config, uint64_t seed, uint32_t *aborted)
{
    traffic traffic = {.seed = seed, .rounds = 3};
    choose_knobs(seed);
    int kept = rig_mute();
    rig_wrongs = 0;
    weft_sim_run(config, traffic_program, &traffic);
    traffic_clear();
    rig_unmute(kept);
    if (config->report->deadlocked || rig_wrongs)
        fprintf(stderr, "    a loss on %s with %u ranks, seed %" PRIu64 ", rank %u at step %" PRIu64 ": %s, %u wrong messages\n",
                config->profile->name, config->ranks, seed, config->kill_rank, config->kill_step, config->report->text,
                rig_wrongs);
    CU_ASSERT(!config->report->deadlocked && rig_wrongs == 0);
    *aborted += config->report->aborted;
}

/* A rank ends at its k-th call of the contract. Not at its first: before any connection only the launcher can see its end. */
static void death_ends_the_job(void)
{
    static const char *const profiles[] = {"calm", "slow", "kernel", "hca", "pinning"};
    uint32_t aborted = 0, count = 0;
    for (uint64_t step = 2; step < 3000; step += 1 + step / 4)
        for (uint32_t p = 0; p < 5; p++, count++) {
            weft_sim_report report;
            weft_sim_config config = {.ranks = 3, .seed = step, .profile = weft_sim_profile_find(profiles[p]), .kill = true,
                                      .kill_rank = (uint32_t)(step % 3), .kill_step = step, .report = &report, .is_quiet = true};
            run_to_a_loss(&config, step, &aborted);
        }
    printf("\n    %u deaths, %u told by an abort", count, aborted);
    CU_ASSERT(aborted > 0);
}

/* The connection between two living ranks fails for good, during transfers. */
static void a_break_ends_the_job(void)
{
    uint32_t aborted = 0, broken = 0;
    seeds range;
    uint64_t seed;
    seeds_begin(&range);
    while ((seed = seeds_next(&range))) {
        weft_sim_report report;
        weft_sim_profile profile = *weft_sim_profile_find("breaking");
        weft_sim_config config = {.ranks = 2 + seed % 3, .seed = seed, .profile = &profile, .report = &report, .is_quiet = true};
        profile.cut_permille = seed % 2 ? 80 : 4; /* early, and late */
        run_to_a_loss(&config, seed, &aborted);
        broken += report.counts[WEFT_SIM_CUT] > 0;
    }
    printf("\n    seeds %" PRIu64 " to %" PRIu64 ": %u broken, %u told by an abort", range.first, range.next - 1, broken,
           aborted);
    CU_ASSERT(broken > 0 && aborted > 0 && aborted <= broken);
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

static void add(CU_pSuite suite, const char *only, const char *name, void (*run)(void))
{
    if (!only || strstr(name, only))
        CU_add_test(suite, name, run);
}

int main(int argc, char **argv)
{
    static char names[2 * SEEDS_SOUND_PROFILES][40];
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const char *only = argc - is_verbose == 2 ? argv[1 + is_verbose] : NULL;
    if (argc > 3)
        return replay(argv + argc - 3);
    if (only && strcmp(only, "--help") == 0) {
        printf("usage: %s [-v] [TEXT] | PROFILE RANKS SEED (replays)\n" SEEDS_HELP, argv[0], argv[0]);
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite own = CU_add_suite("simulator", NULL, NULL), whole = CU_add_suite("whole library", NULL, NULL);
    add(own, only, "endless-wait-is-detected", endless_wait_is_detected);
    add(own, only, "faults-happen", faults_happen);
    add(own, only, "seeds-replay", seeds_replay);
    add(own, only, "faults-are-noticed", faults_are_noticed);
    for (int i = 0; i < 2 * SEEDS_SOUND_PROFILES; i++) {
        snprintf(names[i], sizeof names[i], "%s %s", i < SEEDS_SOUND_PROFILES ? "traffic" : "colls",
                 seeds_sound_profiles[i % SEEDS_SOUND_PROFILES]);
        add(whole, only, names[i], run_named);
    }
    add(whole, only, "a-break-ends-the-job", a_break_ends_the_job);
    seeds_share(whole->uiNumberOfTests);
    add(whole, only, "death-ends-the-job", death_ends_the_job);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

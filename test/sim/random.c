/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random: random programs (test/random) on simulated networks, by seed; planted faults and broken networks must be reported.
 *    random [TEXT]                    the tests whose name contains TEXT
 *    random PROFILE RANKS SEED STEPS  replays one run; with RANDOM_VERBOSE each rank prints its steps
 * Seeds: see seeds.h.
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/random/random.h"
#include "test/sim/rig.h"
#include "test/sim/seeds.h"

enum { STEPS = 60 };

typedef struct program {
    rp_options options;
    int planter; /* rank with the planted fault; -1: none */
} program;

static int perform(int rank, void *arg)
{
    const program *what = arg;
    rp_options options = what->options;
    int rc;
    if (rank != what->planter)
        options.plant = NULL;
    if (MPI_Init(NULL, NULL))
        return 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    rc = rp_run(&options, MPI_COMM_WORLD, 0);
    return MPI_Finalize() || rc;
}

/* As of test/sim/mpi.c: the seed sets protocols, registration and checksums. */
static void choose_knobs(uint64_t seed)
{
    static const char *const schemes[] = {"copy", "get", "split", "put"};
    static const char *const pins[] = {"sync", "pipeline", "async", "auto", "never"};
    setenv("WEFT_RNDV_SCHEME", schemes[seed % 4], 1);
    setenv("WEFT_PROMISES", seed % 2 ? "always" : "auto", 1);
    setenv("WEFT_REGCACHE_MONITOR", "none", 1);
    setenv("WEFT_CREDIT_KIB", seed % 3 == 0 ? "16" : "1024", 1);
    setenv("WEFT_REG_MODE", pins[seed / 3 % 5], 1);
    setenv("WEFT_REGCACHE_MAX_COUNT", seed % 7 == 0 ? "2" : "0", 1);
    setenv("WEFT_REGCACHE_MAX_SIZE", seed % 11 == 0 ? "65536" : "0", 1);
    setenv("WEFT_CHECKSUM", seed % 5 == 0 ? "1" : "0", 1);
}

static int run(program *what, weft_sim_config *config, const char *profile)
{
    what->options.seed = config->seed;
    config->profile = weft_sim_profile_find(profile);
    config->ranks_per_node = config->seed % 5 == 0 ? 2 : 0;
    config->stack_bytes = 4u << 20;
    choose_knobs(config->seed);
    return weft_sim_run(config, perform, what);
}

static void on_profile(void)
{
    static const uint32_t sizes[] = {2, 3, 1, 5, 8, 4};
    const char *name = CU_get_current_test()->pName;
    uint64_t frames = 0, seed;
    seeds range;
    seeds_begin(&range);
    while ((seed = seeds_next(&range))) {
        weft_sim_report report;
        program what = {.options = {.steps = STEPS}, .planter = -1};
        weft_sim_config config = {.ranks = sizes[seed % 6], .seed = seed, .report = &report};
        int rc = run(&what, &config, name);
        CU_ASSERT(rc == 0);
        CU_ASSERT(report.counts[WEFT_SIM_LOST_WAKEUPS] == 0);
        if (rc || report.counts[WEFT_SIM_LOST_WAKEUPS])
            fprintf(stderr, "    %s: code %d, %" PRIu64 " wake-ups lost, %s: replay by: random %s %u %" PRIu64 " %d\n", name, rc,
                    report.counts[WEFT_SIM_LOST_WAKEUPS], report.text, name, config.ranks, seed, STEPS);
        frames += report.counts[WEFT_SIM_FRAMES];
    }
    printf("\n    %s, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " frames", name, range.first, range.next - 1, frames);
    fflush(stdout);
}

/* A program with a fault of its own, and sound ones on networks that damage, lose or duplicate frames. */
static void faults_are_noticed(void)
{
    static const char *const plants[] = {"flip", "swap", "count", "split", "coll", "put"}, *const broken[] = {"flipped", "lossy"};
    /* a split or a put has an effect only if a later step of the program uses it */
    static const uint32_t least[] = {5, 5, 5, 3, 5, 1, 3, 3};
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t noticed = 0;
        for (uint64_t seed = 1; seed <= 5; seed++) {
            weft_sim_report report;
            program what = {.options = {.steps = 200, .plant = i < 6 ? plants[i] : NULL, .plant_step = 5}, .planter = i < 6 ? 1 : -1};
            weft_sim_config config = {.ranks = 3, .seed = seed, .report = &report, .is_quiet = true};
            int kept = rig_mute(), rc = run(&what, &config, i < 6 ? "calm" : broken[i - 6]);
            rig_unmute(kept);
            noticed += rc != 0;
        }
        printf("\n    %s: noticed in %u of 5 runs", i < 6 ? plants[i] : broken[i - 6], noticed);
        CU_ASSERT(noticed >= least[i]);
    }
}

static int replay(char **argv)
{
    weft_sim_report report = {.rc = 0};
    program what = {.options = {.steps = (uint32_t)strtoul(argv[3], NULL, 10)}, .planter = -1};
    what.options.is_verbose = getenv("RANDOM_VERBOSE") != NULL;
    weft_sim_config config = {.ranks = (uint32_t)atoi(argv[1]), .seed = strtoull(argv[2], NULL, 10), .report = &report};
    if (!weft_sim_profile_find(argv[0]))
        return 2;
    int rc = run(&what, &config, argv[0]);
    printf("%s: %d; %" PRIu64 " us; %s\n", argv[0], rc, report.now_ns / 1000, report.text);
    return rc != 0;
}

int main(int argc, char **argv)
{
    const char *only = argc == 2 ? argv[1] : NULL;
    if (argc == 5)
        return replay(argv + 1);
    if (only && strcmp(only, "--help") == 0) {
        printf("usage: %s [TEXT] | PROFILE RANKS SEED STEPS (replays)\n" SEEDS_HELP, argv[0], argv[0]);
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("random programs", NULL, NULL), ends = CU_add_suite("random programs with faults", NULL, NULL);
    for (int i = 0; i < SEEDS_SOUND_PROFILES; i++)
        if (!only || strstr(seeds_sound_profiles[i], only))
            CU_add_test(suite, seeds_sound_profiles[i], on_profile);
    seeds_share(suite->uiNumberOfTests);
    if (!only || strstr("faults are noticed", only))
        CU_add_test(ends, "faults are noticed", faults_are_noticed);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

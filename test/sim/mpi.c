/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mpi: MPI programs on simulated networks, by seed: entry points, objects, p2p and collectives in one process.
 *    mpi [TEXT]                        the tests whose name contains TEXT
 *    mpi PROGRAM PROFILE RANKS SEED    replays one run
 * Seeds: see seeds.h.
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "test/sim/apps.h"
#include "test/sim/rig.h"
#include "test/sim/seeds.h"

static const struct {
    const char *name;
    app_program *what;
} apps[] = {{"stages", app_stages}, {"ring", app_ring}, {"wild", app_wild},
            {"storm", app_storm}, {"colls", app_colls}, {"comms", app_comms}, {"forgetful", app_forgetful},
            {"modes", app_modes}, {"inter", app_inter}, {"promises", app_promises}, {"leaders", app_leaders}, {"rest", app_rest},
            {"windows", app_windows}, {"moves", app_moves}, {"atomics", app_atomics}, {"notify", app_notify},
            {"regions", app_regions}, {"told-regions", app_notify_regions}, {"tables", app_tables},
            {"gone", app_gone}};
enum { APPS = sizeof apps / sizeof apps[0] };

static app_program *find(const char *name)
{
    for (int i = 0; i < APPS; i++)
        if (strncmp(name, apps[i].name, strlen(apps[i].name)) == 0)
            return apps[i].what;
    return NULL;
}

/* MPI_Init reads the environment, as for users. The seed, never a measured time, sets protocols, registration and checksums. */
static void choose_knobs(uint64_t seed)
{
    static const char *const schemes[] = {"copy", "get", "split", "put"};
    static const char *const pins[] = {"sync", "pipeline", "async", "auto", "never"};
    setenv("WEFT_RNDV_SCHEME", schemes[seed % 4], 1);
    setenv("WEFT_PROMISES", seed % 2 ? "always" : "auto", 1);
    setenv("WEFT_REGCACHE_MONITOR", seed % 8 == 6 ? "auto" : "none", 1); /* see sim.c */
    setenv("WEFT_CREDIT_KIB", seed % 3 == 0 ? "16" : "1024", 1);
    setenv("WEFT_REG_MODE", pins[seed / 3 % 5], 1);
    setenv("WEFT_REGCACHE_MAX_COUNT", seed % 7 == 0 ? "2" : "0", 1);
    setenv("WEFT_REGCACHE_MAX_SIZE", seed % 11 == 0 ? "65536" : "0", 1);
    setenv("WEFT_RMA_DEVICE", seed % 4 ? "always" : seed % 8 ? "auto" : "never", 1);
    setenv("WEFT_RMA_DEVICE_ATOMICS", seed % 3 ? "yes" : "no", 1);
    setenv("WEFT_CHECKSUM", seed % 5 == 0 ? "1" : "0", 1);
}

static int run(app_program *what, weft_sim_config *config, const char *profile, uint32_t rounds)
{
    app app = {.seed = config->seed, .rounds = rounds};
    config->profile = weft_sim_profile_find(profile);
    choose_knobs(config->seed);
    return weft_sim_run(config, what, &app);
}

/* Of programs whose calls look again only when they have waited for long. */
static bool waits_long(const char *name) { return strncmp(name, "leaders", 7) == 0 || strncmp(name, "gone", 4) == 0; }

/* Of LeakSanitizer, in its builds: what is allocated meanwhile is no leak. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Processes of "gone" end while messages are in progress. Their registrations and frames are not freed. */
static void forgive_leaks(const char *name, bool begins)
{
    if (strncmp(name, "gone", 4) == 0 && __lsan_disable)
        (begins ? __lsan_disable : __lsan_enable)();
}

/* Test names are "program profile". */
static void run_named(void)
{
    static const uint32_t sizes[] = {2, 3, 1, 5, 8, 4};
    const char *name = CU_get_current_test()->pName, *profile = strchr(name, ' ') + 1;
    uint64_t frames = 0, moves = 0, switches = 0, seed;
    seeds range;
    seeds_begin(&range);
    while ((seed = seeds_next(&range))) {
        weft_sim_report report;
        weft_sim_config config = {.ranks = sizes[seed % 6], .seed = seed, .report = &report,
                                  .ranks_per_node = seed % 5 == 0 ? 2 : 0};
        int rc;
        forgive_leaks(name, true);
        rc = run(find(name), &config, profile, 4);
        forgive_leaks(name, false);
        bool is_late = report.counts[WEFT_SIM_LOST_WAKEUPS] && !waits_long(name);
        CU_ASSERT(rc == 0);
        CU_ASSERT(!is_late);
        if (rc || is_late)
            fprintf(stderr, "    %s: code %d, %" PRIu64 " wake-ups lost, %s: replay by: mpi %s %u %" PRIu64 "\n", name, rc,
                    report.counts[WEFT_SIM_LOST_WAKEUPS], report.text, name, config.ranks, seed);
        frames += report.counts[WEFT_SIM_FRAMES];
        moves += report.counts[WEFT_SIM_RMA];
        switches += report.counts[WEFT_SIM_SWITCHES];
    }
    printf("\n    %s, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " frames, %" PRIu64 " moves, %" PRIu64 " switches", name,
           range.first, range.next - 1, frames, moves, switches);
    fflush(stdout);
    CU_ASSERT(frames > 0 || strncmp(name, "stages", 6) == 0);
}

/* Networks with a fault that violates the contract: most runs must detect it, or the runs above prove nothing. Each fault runs programs
 * that can meet it: only eager frames are duplicated (a collective's tag is not reused, so its duplicate matches nothing), and only
 * ranks that sleep can miss a wakeup. */
static void faults_are_noticed(void)
{
    static const char *const pairs[][2] = {{"storm", "flipped"}, {"wild", "flipped"}, {"colls", "flipped"}, {"comms", "flipped"},
                                           {"inter", "flipped"}, {"inter", "lossy"}, {"windows", "lossy"}, {"notify", "lossy"},
                                           {"moves", "lossy"}, {"moves", "spoiled"},
                                           {"storm", "lossy"}, {"modes", "flipped"}, {"modes", "lossy"}, {"wild", "lossy"},
                                           {"colls", "lossy"}, {"comms", "lossy"},
                                           {"storm", "doubled"},
                                           {"wild", "deaf"}, {"colls", "deaf"}, {"comms", "deaf"}, {"rest", "deaf"}};
    for (uint32_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
        uint32_t noticed = 0;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            weft_sim_report report;
            weft_sim_config config = {.ranks = 3, .seed = seed, .report = &report, .is_quiet = true};
            int kept = rig_mute(), rc = run(find(pairs[p][0]), &config, pairs[p][1], 8);
            rig_unmute(kept);
            noticed += rc != 0 || report.counts[WEFT_SIM_LOST_WAKEUPS] > 0;
        }
        printf("\n    %s on %s: noticed in %u of 10 runs", pairs[p][0], pairs[p][1], noticed);
        CU_ASSERT(noticed >= 5);
    }
}

/* A rank ends at its k-th call of the contract: MPI_ERRORS_ARE_FATAL ends the others, unless they are done with it. No rank hangs. */
static void death_ends_the_job(void)
{
    static const char *const profiles[] = {"calm", "slow", "kernel"}, *const names[] = {"storm", "colls", "moves", "atomics"};
    uint32_t aborted = 0, count = 0;
    for (uint64_t step = 2; step < 2000; step += 1 + step / 4, count++) {
        weft_sim_report report;
        weft_sim_config config = {.ranks = 3, .seed = step, .kill = true, .kill_rank = (uint32_t)(step % 3), .kill_step = step,
                                  .report = &report, .is_quiet = true};
        int kept = rig_mute();
        run(find(names[count % 4]), &config, profiles[count / 4 % 3], 4);
        rig_unmute(kept);
        if (report.deadlocked)
            fprintf(stderr, "    death of rank %" PRIu64 " at step %" PRIu64 " on %s hangs the others: %s\n", step % 3, step,
                    profiles[count / 4 % 3], report.text);
        CU_ASSERT(!report.deadlocked);
        aborted += report.aborted;
    }
    printf("\n    %u deaths, %u reported by an abort", count, aborted);
    CU_ASSERT(aborted > 0);
}

/* Puts and gets of a program whose targets call no function of MPI, where keys protect memory and nothing limits registration. Returns the
 * number of transfers by devices. */
static uint64_t run_by_devices(app_program *program)
{
    static const char *const profiles[] = {"calm", "slow", "storm", "narrow", "torn", "pinning", "rails", "flapping", "pressed", "ticking",
                                           "holding"};
    uint64_t moves = 0;
    for (uint32_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            weft_sim_report report;
            weft_sim_config config = {.ranks = 2 + (uint32_t)(seed % 3), .seed = seed, .report = &report};
            int rc;
            if (seed % 4 == 0 || seed % 5 == 0 || seed / 3 % 5 == 4) /* by messages: see choose_knobs */
                continue;
            rc = run(program, &config, profiles[p], 1);
            CU_ASSERT(rc == 0);
            if (rc)
                fprintf(stderr, "    %s, seed %" PRIu64 ": code %d, %s\n", profiles[p], seed, rc, report.text);
            moves += report.counts[WEFT_SIM_RMA];
        }
    return moves;
}

/* They end without the target's help. */
static void targets_compute(void)
{
    uint64_t moves = run_by_devices(app_computes);
    printf("\n    %" PRIu64 " moves", moves);
    CU_ASSERT(moves > 500);
}

/* Also in regions of dynamic windows, which origins find. */
static void targets_are_searched(void) { run_by_devices(app_finds); }

/* Accumulates end without the target's help where the device's atomics agree with the CPU's, or windows leave words to the device. */
static void targets_are_counted_at(void)
{
    static const struct { const char *name; bool words; } profiles[] = {
        {"calm", false}, {"slow", false}, {"storm", false}, {"torn", false}, {"narrow", true}, {"pinning", true}, {"rails", true},
        {"pressed", true}, {"holding", true}};
    for (uint32_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            weft_sim_report report;
            weft_sim_config config = {.ranks = 2 + (uint32_t)(seed % 5), .seed = seed, .report = &report};
            int rc;
            if (seed % 4 == 0 || seed % 5 == 0 || seed / 3 % 5 == 4 || (profiles[p].words && seed % 3 == 0)) /* see choose_knobs */
                continue;
            rc = run(app_counts, &config, profiles[p].name, 1);
            CU_ASSERT(rc == 0 && report.counts[WEFT_SIM_RMA] >= 20 * (config.ranks - 1));
            if (rc)
                fprintf(stderr, "    %s, seed %" PRIu64 ": code %d, %s\n", profiles[p].name, seed, rc, report.text);
        }
}

/* What stays attached is found in tables that change while they are read: no operation goes by message. */
static void tables_are_read_well(void)
{
    static const char *const profiles[] = {"torn", "rails", "calm", "slow", "pressed"};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        app app = {.seed = seed};
        weft_sim_config config = {.ranks = 2 + (uint32_t)(seed % 3), .seed = seed};
        int rc;
        if (seed % 4 == 0 || seed % 5 == 0 || seed / 3 % 5 == 4) /* by messages: see choose_knobs */
            continue;
        config.profile = weft_sim_profile_find(profiles[seed / 2 % 5]);
        choose_knobs(seed);
        rc = weft_sim_run(&config, app_steady_tables, &app);
        CU_ASSERT(rc == 0 && app.messages == 0);
        if (rc || app.messages)
            fprintf(stderr, "    %s, seed %" PRIu64 ": code %d, %" PRIu64 " messages\n", config.profile->name, seed, rc, app.messages);
    }
}

/* Connections with ranks at rest do break in the runs above, also while the other side is in MPI. */
static void connections_at_rest_break(void)
{
    uint64_t cuts = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        weft_sim_report report;
        weft_sim_config config = {.ranks = 4, .seed = seed, .report = &report};
        CU_ASSERT(run(app_rest, &config, "slow", 4) == 0);
        cuts += report.counts[WEFT_SIM_CUT];
    }
    printf("\n    %" PRIu64 " connections broke in 40 runs", cuts);
    CU_ASSERT(cuts > 40);
}

static int wrong_call(int rank, void *arg)
{
    int value = 0;
    (void)arg;
    if (MPI_Init(NULL, NULL))
        return 1;
    if (rank == 1)
        MPI_Send(&value, 1, MPI_INT, 77, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}

/* A fatal error on one rank ends all, with its class as exit code and its reason. */
static void errors_are_fatal(void)
{
    weft_sim_report report;
    weft_sim_config config = {.ranks = 3, .seed = 4, .report = &report, .is_quiet = true};
    int kept = rig_mute(), rc = run(wrong_call, &config, "calm", 1);
    rig_unmute(kept);
    CU_ASSERT(rc == MPI_ERR_RANK && report.aborted && report.abort_code == MPI_ERR_RANK);
    CU_ASSERT(strstr(report.text, "rank 1") && strstr(report.text, "MPI_Send") && strstr(report.text, "77"));
}

static int replay(char **argv)
{
    weft_sim_report report = {.rc = 0};
    uint64_t seed = strtoull(argv[3], NULL, 10);
    weft_sim_config config = {.ranks = (uint32_t)atoi(argv[2]), .seed = seed, .report = &report,
                              .ranks_per_node = seed % 5 == 0 ? 2 : 0};
    if (!find(argv[0]) || !weft_sim_profile_find(argv[1]))
        return 2;
    int rc = run(find(argv[0]), &config, argv[1], 4);
    printf("%s: %d; %" PRIu64 " us; %s\n", argv[0], rc, report.now_ns / 1000, report.text);
    return rc != 0;
}

static void add(CU_pSuite suite, const char *only, const char *name, void (*run)(void))
{
    if (!only || strstr(name, only))
        CU_add_test(suite, name, run);
}

int main(int argc, char **argv)
{
    static char names[APPS * SEEDS_SOUND_PROFILES][40];
    const char *only = argc == 2 ? argv[1] : NULL;
    if (argc == 5)
        return replay(argv + 1);
    if (only && strcmp(only, "--help") == 0) {
        printf("usage: %s [TEXT] | PROGRAM PROFILE RANKS SEED (replays)\n" SEEDS_HELP, argv[0], argv[0]);
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("MPI programs", NULL, NULL), ends = CU_add_suite("ends of MPI programs", NULL, NULL);
    for (int i = 0; i < APPS * SEEDS_SOUND_PROFILES; i++) {
        snprintf(names[i], sizeof names[i], "%s %s", apps[i / SEEDS_SOUND_PROFILES].name,
                 seeds_sound_profiles[i % SEEDS_SOUND_PROFILES]);
        if (!waits_long(names[i]) || (!strstr(names[i], " ticking") && !strstr(names[i], " hca"))) /* timers: no sleep counts as long */
            add(suite, only, names[i], run_named);
    }
    seeds_share(suite->uiNumberOfTests);
    add(ends, only, "errors are fatal", errors_are_fatal);
    add(ends, only, "faults are noticed", faults_are_noticed);
    add(ends, only, "death ends the job", death_ends_the_job);
    add(ends, only, "targets compute", targets_compute);
    add(ends, only, "targets are searched", targets_are_searched);
    add(ends, only, "tables are read well", tables_are_read_well);
    add(ends, only, "targets are counted at", targets_are_counted_at);
    add(ends, only, "connections at rest break", connections_at_rest_break);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

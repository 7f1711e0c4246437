/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_atomics: accumulates by devices: targets that do not call MPI, devices that are atomic with themselves only, refused memory,
 * connections that break. Part of verbs.
 */
#include "test/sim/verbs_atomics.h"

#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"
#include "test/sim/verbs_net.h"
#include "test/sim/verbs_runs.h"

/* Of a seed: leave windows to the device. */
static bool uses_devices(uint64_t seed) { return seed % 5 && seed / 3 % 5 != 4; }

/* One run; the atomics of the fabric are added to *atomics. words: windows with device words. */
static int run(app_program *what, app *app, const simhca_profile *profile, uint32_t ranks, bool words, uint64_t *atomics)
{
    weft_sim_config config = {.ranks = ranks, .seed = app->seed, .is_quiet = true};
    uint32_t left;
    int rc;
    verbs_choose_knobs(app->seed, profile);
    setenv("WEFT_RMA_DEVICE_ATOMICS", words ? "yes" : "no", 1);
    config.net = verbs_net_open(profile, app->seed, true);
    rc = weft_sim_run(&config, what, app);
    *atomics += simhca_counter(SIMHCA_ATOMICS);
    left = verbs_net_close(rc ? NULL : stderr);
    return rc ? rc : (int)left;
}

/* A target that is not in MPI is counted at. */
static void counted_at(const char *const *profiles, uint32_t count, bool words)
{
    uint64_t atomics = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        app app = {.seed = seed, .rounds = 1};
        const simhca_profile *profile = simhca_profile_find(profiles[seed % count]);
        if (uses_devices(seed))
            CU_ASSERT(run(app_counts, &app, profile, 2 + (uint32_t)(seed % 5), words, &atomics) == 0);
    }
    CU_ASSERT(atomics > 500);
}

void verbs_targets_are_counted_at(void)
{
    static const char *const profiles[] = {"glob"};
    counted_at(profiles, 1, false);
}

void verbs_device_words_are_counted_at(void)
{
    static const char *const profiles[] = {"calm", "torn", "mlx5", "mlx5-vf", "mlx4", "ib"};
    counted_at(profiles, 6, true);
}

/* Were a CPU to change words that devices change, sums would be wrong: else the runs of "atomics" would prove nothing. */
void verbs_cpu_atomics_are_detected(void)
{
    static const char *const profiles[] = {"calm", "torn", "mlx5", "narrow"};
    uint32_t noticed = 0, healthy = 0, runs = 0;
    uint64_t atomics = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        app app = {.seed = seed, .rounds = 1};
        simhca_profile profile = *simhca_profile_find(profiles[seed % 4]);
        int kept;
        if (!uses_devices(seed))
            continue;
        profile.refuse_per_100k = profile.reg_refuse_permille = 0;
        kept = rig_mute();
        healthy += run(app_atomics, &app, &profile, 4, true, &atomics) == 0;
        verbs_net_mutant = VERBS_NET_CPU_WORDS;
        noticed += run(app_atomics, &app, &profile, 4, true, &atomics) != 0;
        verbs_net_mutant = VERBS_NET_HEALTHY;
        rig_unmute(kept);
        runs++;
    }
    printf("\n    noticed in %u of %u runs; %u healthy runs are good; %" PRIu64 " atomics", noticed, runs, healthy, atomics);
    CU_ASSERT(3 * noticed >= runs && healthy == runs && atomics > 1000);
}

/* Devices that register little: what is fetched has no place, or windows have no key. Nothing fails for that. */
void verbs_atomics_without_memory(void)
{
    static const char *const profiles[] = {"glob", "calm"};
    uint64_t atomics = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        app app = {.seed = seed, .rounds = 1};
        simhca_profile profile = *simhca_profile_find(profiles[seed % 2]);
        int rc;
        profile.reg_refuse_permille = 400;
        profile.own_regions = 4 + (uint32_t)(seed % 3);
        rc = run(seed % 3 ? app_atomics : app_notify, &app, &profile, 2 + (uint32_t)(seed % 4), true, &atomics);
        CU_ASSERT(rc == 0);
        if (rc)
            printf("\n    %s, seed %" PRIu64 ": code %d", profile.name, seed, rc);
    }
    printf("\n    %" PRIu64 " atomics", atomics);
    CU_ASSERT(atomics > 1000);
}

/* Connections break while atomics are under way, also those of a process to itself: none is repeated. */
void verbs_unknown_atomics_are_reported(void)
{
    static const char *const profiles[] = {"glob", "calm", "mlx5"};
    for (int i = 0; i < 3; i++) {
        simhca_profile profile = *simhca_profile_find(profiles[i]);
        uint32_t unknown = 0;
        uint64_t atomics = 0;
        profile.break_per_100k = 1000;
        for (uint64_t seed = 1; seed <= 24; seed++) {
            app app = {.seed = seed, .rounds = 1};
            int rc = run(app_unknown, &app, &profile, 2 + (uint32_t)(seed % 4), i > 0, &atomics);
            CU_ASSERT(rc == 0);
            if (rc)
                printf("\n    %s, seed %" PRIu64 ": code %d", profiles[i], seed, rc);
            unknown += app.unknown;
        }
        printf("\n    %s: %u of %" PRIu64 " atomics of unknown outcome", profiles[i], unknown, atomics);
        CU_ASSERT(unknown > 10);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs: runs of the whole library over transports/verbs on simulated HCAs, by seed: messages, collectives and MPI programs on each kind of
 * fabric, ranks that die, and effects of the fabrics.
 *    verbs [-v] [TEXT]                 the tests whose name contains TEXT
 *    verbs PROGRAM PROFILE RANKS SEED [RANK STEP]  replays one run; RANK dies at its STEP-th call
 * Seeds: see seeds.h.
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/event.h"
#include "base/status.h"
#include "test/sim/apps.h"
#include "test/sim/rig.h"
#include "test/sim/seeds.h"
#include "test/sim/verbs_atomics.h"
#include "test/sim/verbs_runs.h"

/* Test names are "program profile". */
static void run_named(void)
{
    static const uint32_t sizes[] = {2, 3, 1, 5, 8, 4};
    const char *name = CU_get_current_test()->pName, *profile = strchr(name, ' ') + 1;
    uint64_t totals[SIMHCA_COUNT_LAST] = {0}, seed;
    seeds range;
    seeds_begin(&range);
    while ((seed = seeds_next(&range))) {
        verbs_outcome out;
        weft_sim_config config = {.ranks = sizes[seed % 6], .seed = seed, .ranks_per_node = seed % 5 == 0 ? 2 : 0};
        verbs_run(verbs_program_find(name), simhca_profile_find(profile), &config, &out);
        bool good = verbs_is_good(simhca_profile_find(profile), &out);
        CU_ASSERT(good);
        if (!good)
            fprintf(stderr, "    %s: code %d, %" PRIu64 " wake-ups lost, %u objects left, %" PRIu64 " errors, %s: "
                            "replay by: verbs %s %u %" PRIu64 "\n",
                    name, out.rc, out.report.counts[WEFT_SIM_LOST_WAKEUPS], out.left, out.counts[SIMHCA_ERRORS], out.report.text,
                    name, config.ranks, seed);
        for (int i = 0; i < SIMHCA_COUNT_LAST; i++)
            totals[i] += out.counts[i];
    }
    printf("\n    %s, seeds %" PRIu64 " to %" PRIu64 ":", name, range.first, range.next - 1);
    verbs_show(totals);
    fflush(stdout);
}

/* The heap differs between runs in one process, and so does a region's number of pages: registering costs nothing here. */
static void seeds_replay(void)
{
    simhca_profile wild = *simhca_profile_find("wild");
    wild.pin_page_ns = 0;
    verbs_outcome first = verbs_run_on(&wild, "traffic", 4, 77), second = verbs_run_on(&wild, "traffic", 4, 77);
    verbs_outcome other = verbs_run_on(&wild, "traffic", 4, 78);
    CU_ASSERT(first.rc == 0 && second.rc == 0 && other.rc == 0);
    CU_ASSERT(memcmp(first.counts, second.counts, sizeof first.counts) == 0);
    for (int i = 0; i < SIMHCA_COUNT_LAST; i++)
        if (first.counts[i] != second.counts[i])
            printf("\n    %s: %" PRIu64 " and %" PRIu64, simhca_count_names[i], first.counts[i], second.counts[i]);
    CU_ASSERT(first.report.now_ns == second.report.now_ns && first.report.steps == second.report.steps);
    CU_ASSERT(first.report.now_ns != other.report.now_ns);
}

/* Broken connections that go on raise the event of MPI_T, with the port that is left; those of a calm fabric raise none. */
static uint32_t failovers(const char *profile, bool *is_good)
{
    weft_event_sink sink = {.type = WEFT_EVENT_PATH_FAILOVER, .is_open = true};
    const weft_event_record *record;
    uint32_t count = 0;
    weft_event_lock();
    *is_good = weft_event_open();
    weft_event_add(&sink);
    weft_event_update();
    weft_event_unlock();
    for (uint64_t seed = 1; seed <= 20; seed++)
        *is_good = *is_good && verbs_run_one("traffic", profile, 4, seed).rc == 0;
    weft_event_lock();
    for (; (record = weft_event_first()); weft_event_pop(), count++)
        *is_good = *is_good && record->values[0] >= 0 && record->values[0] < 4 && record->values[1] >= 1 && record->values[2] >= 0 &&
                   record->values[3] >= 1;
    weft_event_remove(&sink);
    weft_event_close();
    weft_event_unlock();
    return count;
}

static void failovers_are_reported(void)
{
    bool is_good;
    CU_ASSERT(failovers("calm", &is_good) == 0 && is_good);
    CU_ASSERT(failovers("breaks", &is_good) > 0 && is_good);
    CU_ASSERT(failovers("rails", &is_good) > 0 && is_good);
}

#define BITE_SEEDS 100 /* the rarest effect (frames sent again) occurs in one of ten runs */

/* The fabrics have the effects that they are for: the runs above depend on it. */
static void fabrics_bite(void)
{
    static const struct { const char *profile; enum simhca_count what; uint64_t min; } bites[] = {
        {"calm", SIMHCA_SENDS, 100}, {"calm", SIMHCA_WRITES, 20}, {"calm", SIMHCA_READS, 1},
        {"datagrams", SIMHCA_DATAGRAMS_LOST, 3},
        {"datagrams", SIMHCA_DATAGRAMS_TWICE, 3}, {"datagrams", SIMHCA_OVERTAKEN, 3}, {"breaks", SIMHCA_BREAKS, 3},
        {"breaks", SIMHCA_FLUSHED, 3}, {"breaks", SIMHCA_RESENT, 1}, {"flap", SIMHCA_FLAPS, 1}, {"rails", SIMHCA_BREAKS, 1},
        {"narrow", SIMHCA_REG_REFUSED, 1}, {"torn", SIMHCA_TORN, 20}, {"pin", SIMHCA_REGISTERED, 20},
        {"wild", SIMHCA_ACKS_LOST, 3}, {"calm", SIMHCA_BINDS, 10}, {"breaks", SIMHCA_BINDS, 10},
        {"mlx5", SIMHCA_RELAXED_WRITES, 20}, {"wild", SIMHCA_RELAXED_WRITES, 1},
    };
    for (uint32_t i = 0; i < sizeof bites / sizeof bites[0]; i++) {
        uint64_t count = 0;
        for (uint64_t seed = 1; seed <= BITE_SEEDS && count < bites[i].min; seed++) {
            verbs_outcome out = verbs_run_one("traffic", bites[i].profile, 4, seed);
            CU_ASSERT(out.rc == 0);
            count += out.counts[bites[i].what];
        }
        CU_ASSERT(count >= bites[i].min);
        if (count < bites[i].min)
            printf("\n    %s: only %" PRIu64 " %s", bites[i].profile, count, simhca_count_names[bites[i].what]);
    }
}

/* A target that is not in MPI has attached regions, which the others find and use. Seeds whose knobs leave windows to the device. */
static void targets_are_searched(void)
{
    static const char *const profiles[] = {"calm", "ordered", "torn", "ib", "early", "irdma", "mlx5", "datagrams"};
    for (uint64_t seed = 1; seed <= 48; seed++) {
        app app = {.seed = seed, .rounds = 1};
        weft_sim_config config = {.ranks = 2 + (uint32_t)(seed % 5), .seed = seed};
        const char *profile = profiles[seed % 8];
        int rc;
        if (seed % 5 == 0 || seed / 3 % 5 == 4)
            continue;
        verbs_choose_knobs(seed, simhca_profile_find(profile));
        config.net = verbs_net_open(simhca_profile_find(profile), seed, true);
        rc = weft_sim_run(&config, app_finds, &app);
        CU_ASSERT(rc == 0);
        if (rc)
            fprintf(stderr, "    %s, %u ranks, seed %" PRIu64 ": code %d\n", profile, config.ranks, seed, rc);
        CU_ASSERT(verbs_net_close(stderr) == 0);
    }
}

static bool reads_tables_well(const simhca_profile *profile, uint64_t seed)
{
    app app = {.seed = seed};
    weft_sim_config config = {.ranks = 2 + (uint32_t)(seed % 5), .seed = seed};
    int rc;
    verbs_choose_knobs(seed, profile);
    config.net = verbs_net_open(profile, seed, true);
    rc = weft_sim_run(&config, app_steady_tables, &app);
    rc |= app.messages || simhca_counter(SIMHCA_KEYS_REFUSED);
    verbs_net_close(NULL);
    return !rc;
}

/* Tables that change while they are read: what stays attached is found, with its key, so no operation goes by message. A reader that does
 * not see that words do not belong together finds wrong keys. */
static void torn_tables_are_noticed(void)
{
    static const char *const profiles[] = {"torn", "mlx5", "glob"};
    uint32_t runs = 0, well = 0, noticed = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        const simhca_profile *profile = simhca_profile_find(profiles[seed % 3]);
        if (seed % 5 == 0 || seed / 3 % 5 == 4)
            continue;
        runs++;
        well += reads_tables_well(profile, seed);
        verbs_net_mutant = VERBS_NET_TRUSTS;
        noticed += !reads_tables_well(profile, seed);
        verbs_net_mutant = VERBS_NET_HEALTHY;
    }
    printf("\n    tables were read well in %u of %u runs; trust was noticed in %u", well, runs, noticed);
    CU_ASSERT(well == runs && noticed > runs / 4);
}

/* Connections that often break, and rarely acknowledge. */
static void breaks_often(const char *program, uint64_t seeds)
{
    simhca_profile profile = *simhca_profile_find("breaks");
    profile.break_per_100k = 2000;
    profile.ack_loss_permille = 60;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        verbs_outcome out = verbs_run_on(&profile, program, 4, seed);
        CU_ASSERT(verbs_is_good(&profile, &out));
        if (!verbs_is_good(&profile, &out))
            printf("\n    seed %" PRIu64 ": %s", seed, out.report.text);
    }
}

/* The acknowledgement of a process's last put is lost, its connection breaks, and the peer, which has got the data, has ended: no error. */
static void last_puts_arrive(void) { breaks_often("forgetful", 120); }
/* After a break a frame waits for a credit, to be sent again. Its peer has gone to rest, and grants none: the sender must notice that. */
static void rests_are_noticed(void) { breaks_often("calls", 300); }

/* Faults planted into verbs: most runs that can meet them must detect them. */
static void mutants_are_detected(void)
{
    static const struct { enum verbs_net_mutant what; const char *name, *profile, *program; uint32_t max_qp_wr; } plants[] = {
        {VERBS_NET_OVERDRAWS, "overdraws", "calm", NULL, 0}, {VERBS_NET_DROPS, "drops", "breaks", NULL, 0},
        {VERBS_NET_DOUBLES, "doubles", "breaks", NULL, 0},
        {VERBS_NET_UNARMED, "deaf", "torn", NULL, 0}, {VERBS_NET_OVERFILLS, "overfills", "narrow", NULL, 8},
        {VERBS_NET_HASTY, "hasty", "calm", "rest", 0}, {VERBS_NET_UNASKED, "unasked", "calm", "await", 0},
    };
    for (uint32_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        simhca_profile profile = *simhca_profile_find(plants[i].profile);
        uint32_t noticed = 0, healthy = 0;
        profile.refuse_per_100k = 0;
        profile.max_qp_wr = plants[i].max_qp_wr ? plants[i].max_qp_wr : profile.max_qp_wr;
        profile.break_per_100k *= 10;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            verbs_outcome out;
            weft_sim_config config = {.ranks = 4, .seed = seed, .is_quiet = true};
            const verbs_program *program = verbs_program_find(plants[i].program ? plants[i].program : seed % 2 ? "traffic" : "storm");
            int kept = rig_mute();
            verbs_run_apart(VERBS_NET_HEALTHY, program, &profile, &config, verbs_rounds(program), &out);
            healthy += verbs_is_good(&profile, &out);
            verbs_run_apart(plants[i].what, program, &profile, &config, verbs_rounds(program), &out);
            rig_unmute(kept);
            noticed += !verbs_is_good(&profile, &out);
        }
        printf("\n    %s on %s: noticed in %u of 10 runs; %u healthy runs are good", plants[i].name, profile.name, noticed,
               healthy);
        CU_ASSERT(noticed >= 5 && healthy == 10);
    }
}

/* What must be ordered, registered for relaxed ordering; and a frame that passes a put by a ring. Seeds are those whose knobs can show it:
 * rings, puts, messages for several rails. Registrations are kept: when one ends, what was written there is visible. */
static void misplaced_relaxation_is_detected(void)
{
    static const struct {
        enum verbs_net_mutant what;
        const char *name, *program, *profile;
        uint64_t first, step;
        uint32_t ranks, rounds;
    } plants[] = {
#ifndef __SANITIZE_ADDRESS__ /* which takes seven times as long, and shows nothing more of planted mistakes */
        {VERBS_NET_RELAXES_WINDOWS, "relaxed windows", "moves", "mlx5", 1, 1, 4, 12},
        {VERBS_NET_RELAXES_RINGS, "relaxed rings", "traffic", "mlx5", 7, 12, 2, 100},
        {VERBS_NET_RINGS_AT_ONCE, "frames behind puts by rings", "traffic", "mlx5", 7, 12, 2, 100},
        {VERBS_NET_RELAXES_RAILS, "relaxed puts by rails", "traffic", "rails", 139, 360, 2, 15},
#endif
        {VERBS_NET_RELAXES_WINDOWS, "relaxed windows", "moves", "rails", 1, 1, 4, 12},
    };
    for (uint32_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        const simhca_profile *profile = simhca_profile_find(plants[i].profile);
        const verbs_program *program = verbs_program_find(plants[i].program);
        uint32_t noticed = 0, healthy = 0, count = 0;
        uint64_t relaxed = 0;
        for (; count < 60 && noticed < 2; count++) { /* a run depends on addresses, too */
            verbs_outcome out;
            weft_sim_config config = {.ranks = plants[i].ranks, .seed = plants[i].first + count * plants[i].step, .is_quiet = true};
            int kept = rig_mute();
            verbs_keeps_registrations = true;
            verbs_run_apart(VERBS_NET_HEALTHY, program, profile, &config, plants[i].rounds, &out);
            healthy += verbs_is_good(profile, &out);
            verbs_run_apart(plants[i].what, program, profile, &config, plants[i].rounds, &out);
            verbs_keeps_registrations = false;
            rig_unmute(kept);
            noticed += !verbs_is_good(profile, &out);
            relaxed += out.counts[SIMHCA_RELAXED_WRITES];
        }
        printf("\n    %s, %s on %s: noticed in %u of %u runs with %" PRIu64 " relaxed writes; %u healthy runs are good", plants[i].name,
               plants[i].program, profile->name, noticed, count, relaxed, healthy);
        CU_ASSERT(noticed && healthy == count); /* contract/verbs_sim finds each in nearly all runs */
    }
}

/* An origin that is never told of a detached region finds out by its key, which the target's adapter refuses, again and again; all data are
 * right, no notification comes before its data, and no rank hangs. */
static void stale_keys_do_no_harm(void)
{
    static const char *const names[] = {"regions", "told-regions"};
    static const char *const profiles[] = {"calm", "breaks", "rails", "early", "wild", "irdma"};
    uint64_t refused = 0;
    uint32_t runs = 0;
    for (uint64_t seed = 1; seed <= 48; seed++, runs++) {
        const char *profile = profiles[seed / 2 % 6];
        verbs_outcome out;
        verbs_net_mutant = VERBS_NET_UNTOLD;
        out = verbs_run_one(names[seed % 2], profile, 2 + (uint32_t)seed % 4, seed);
        verbs_net_mutant = VERBS_NET_HEALTHY;
        CU_ASSERT(verbs_is_good(simhca_profile_find(profile), &out));
        refused += out.counts[SIMHCA_KEYS_REFUSED];
    }
    printf("\n    %" PRIu64 " keys refused in %u runs", refused, runs);
    CU_ASSERT(refused > 500);
}

/* Credits keep receivers ready: no frame gets an RNR NAK. */
static void receivers_are_ready(void)
{
    uint64_t rnr = 0, sends = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        verbs_outcome out = verbs_run_one(seed % 2 ? "traffic" : "colls", seed % 3 ? "narrow" : "breaks", 5, seed);
        CU_ASSERT(out.rc == 0);
        rnr += out.counts[SIMHCA_RNR];
        sends += out.counts[SIMHCA_SENDS];
    }
    printf("\n    %" PRIu64 " sends, %" PRIu64 " met a receiver that was not ready", sends, rnr);
    CU_ASSERT(rnr == 0);
}

/* A rank that has received its peer's BYE leaves; one that has not must not wait for a peer that is gone. With 30 % of datagrams lost a
 * few runs still do: all BYEs are lost. */
static void goodbyes_are_quick(void)
{
    static const struct { const char *profile; uint32_t seeds, most; } fabrics[] = {
        {"calm", 20, 0}, {"datagrams", 60, 3}, {"early", 20, 0}, {"mlx5", 20, 0}, {"irdma", 20, 0},
    };
    for (uint32_t i = 0; i < sizeof fabrics / sizeof fabrics[0]; i++) {
        uint32_t slow = 0;
        for (uint64_t seed = 1; seed <= fabrics[i].seeds; seed++) {
            verbs_outcome out = verbs_run_one("ring", fabrics[i].profile, 4, seed);
            CU_ASSERT(out.rc == 0);
            slow += out.report.now_ns > 1000000000;
        }
        printf("\n    %s: %u of %u runs took longer than a second of their time", fabrics[i].profile, slow, fabrics[i].seeds);
        CU_ASSERT(slow <= fabrics[i].most);
    }
}

/* A rank that rests for 100 s is waited for: by a call a second, and nothing else. */
static void rests_are_quiet(void)
{
    static const char *const profiles[] = {"calm", "datagrams", "breaks", "one-qp"};
    for (uint32_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            verbs_outcome out = verbs_run_one("await", profiles[i], 2, seed);
            CU_ASSERT(out.rc == 0 && out.report.now_ns > 100 * UINT64_C(1000000000));
            CU_ASSERT(out.counts[SIMHCA_DATAGRAMS] < 300 && out.counts[SIMHCA_POSTS] < 1000);
            if (out.rc || out.counts[SIMHCA_DATAGRAMS] >= 300 || out.counts[SIMHCA_POSTS] >= 1000)
                printf("\n    %s, seed %" PRIu64 ": code %d, %s; %" PRIu64 " datagrams, %" PRIu64 " posts", profiles[i], seed, out.rc,
                       out.report.text, out.counts[SIMHCA_DATAGRAMS], out.counts[SIMHCA_POSTS]);
        }
}

/* The knobs for partition and GID: what the port has serves, what it lacks is an error. */
static void addresses_are_chosen(void)
{
    static const struct { const char *knob, *value, *profile; bool serves; } cases[] = {
        {"WEFT_PKEY", "0x8001", "mlx5-vf", true}, {"WEFT_PKEY", "1", "mlx5-vf", true}, {"WEFT_PKEY", "0x8002", "mlx5-vf", false},
        {"WEFT_GID_INDEX", "5", "mlx5-roce", true}, {"WEFT_GID_INDEX", "1", "mlx5-roce", true},
        {"WEFT_GID_INDEX", "9", "mlx5-roce", false}, {"WEFT_GID_INDEX", "9", "mlx5", true}, /* InfiniBand needs no choice */
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv(cases[i].knob, cases[i].value, 1);
        int kept = rig_mute();
        verbs_outcome out = verbs_run_one("traffic", cases[i].profile, 2, 1);
        rig_unmute(kept);
        unsetenv(cases[i].knob);
        CU_ASSERT((out.rc == 0) == cases[i].serves);
    }
}

/* With checksums (every fifth seed) a run fails if, and only if, a bit was flipped somewhere. */
static void flips_are_detected(void)
{
    uint32_t flipped = 0, found = 0;
    for (uint64_t seed = 5; seed <= 200; seed += 5) {
        verbs_outcome out;
        weft_sim_config config = {.ranks = 3, .seed = seed, .is_quiet = true};
        int kept = rig_mute();
        verbs_run(verbs_program_find("traffic"), simhca_profile_find("flipped"), &config, &out);
        rig_unmute(kept);
        flipped += out.counts[SIMHCA_FLIPPED] != 0;
        found += out.rc != 0;
        CU_ASSERT((out.counts[SIMHCA_FLIPPED] != 0) == (out.rc != 0));
    }
    printf("\n    flips in %u of 40 runs, %u failed", flipped, found);
    CU_ASSERT(flipped > 10 && flipped < 40);
}

/* Peers that are short of receive slots evict each other, also those with eager rings (which long runs have) and those whose puts have
 * still to notify (promises). */
static void busy_peers_are_evicted(void)
{
    static const struct { const char *name, *profile; uint64_t seed; uint32_t rounds; } runs[] = {
        {"traffic", "cramped", 4, 60}, {"promises", "besieged", 1, 4}, {"promises", "cramped", 7, 4}, {"promises", "cramped", 13, 4},
        {"promises", "cramped", 2, 4}, {"promises", "cramped", 3, 4}, {"promises", "cramped", 8, 4}, {"promises", "cramped", 11, 4},
    };
    for (uint32_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        verbs_outcome out;
        weft_sim_config config = {.ranks = 8, .seed = runs[i].seed};
        const simhca_profile *profile = simhca_profile_find(runs[i].profile);
        verbs_run_rounds(verbs_program_find(runs[i].name), profile, &config, runs[i].rounds, &out);
        CU_ASSERT(verbs_is_good(profile, &out));
        if (!verbs_is_good(profile, &out))
            fprintf(stderr, "    %s on %s, seed %" PRIu64 ": code %d, %s\n", runs[i].name, runs[i].profile, runs[i].seed, out.rc,
                    out.report.text);
    }
}

/* Ranks with fewer queue pairs than peers: idle connections give way, and no peer is lost. With rdma_cm and lost datagrams, too, although
 * its kernels repeat theirs after 4 s only, and every connection needs several. */
static void few_queue_pairs(const char *connect, uint32_t runs)
{
    static const char *const profiles[] = {"few-qps", "one-qp", "few-qps-wild"};
    static const char *const names[] = {"traffic", "mpi-colls", "storm", "notify"};
    uint32_t waited = 0;
    setenv("WEFT_VERBS_CONNECT", connect, 1);
    for (uint64_t seed = 1; seed <= runs; seed++) {
        verbs_outcome out;
        weft_sim_config config = {.ranks = 4 + (uint32_t)seed % 5, .seed = seed};
        const simhca_profile *profile = simhca_profile_find(profiles[seed % 3]);
        const char *name = names[seed / 3 % 4];
        verbs_run(verbs_program_find(name), profile, &config, &out);
        CU_ASSERT(verbs_is_good(profile, &out));
        if (!verbs_is_good(profile, &out))
            fprintf(stderr, "    %s on %s by %s, %u ranks, seed %" PRIu64 ": code %d, %s\n", name, profile->name, connect, config.ranks,
                    seed, out.rc, out.report.text);
        waited += strstr(out.waits, " waits for a queue pair: ") != NULL;
        CU_ASSERT(out.waiting == 0);
    }
    unsetenv("WEFT_VERBS_CONNECT");
    CU_ASSERT(waited > 0);
}

static void queue_pairs_are_few(void) { few_queue_pairs("auto", 12); }
static void queue_pairs_are_few_by_cm(void) { few_queue_pairs("rdmacm", 24); }

/* All of 8 ranks, with one queue pair each, speak to several others at once: they do not pass queue pairs on in a circle. */
static void circles_end(void)
{
    for (uint64_t seed = 40; seed <= 45; seed++) {
        const simhca_profile *profile = simhca_profile_find("one-qp");
        weft_sim_config config = {.ranks = 8, .seed = seed, .ranks_per_node = seed % 5 == 0 ? 2 : 0};
        verbs_outcome out;
        verbs_run(verbs_program_find("colls"), profile, &config, &out);
        CU_ASSERT(verbs_is_good(profile, &out) && out.report.now_ns < 10 * UINT64_C(1000000000));
    }
}

/* No queue pair for any peer: no connection can give way, and the error says what was refused. */
static void no_queue_pair_at_all(void)
{
    static const char *const ways[] = {"auto", "rdmacm"};
    for (int way = 0; way < 2; way++) {
        simhca_profile none = {.name = "no-qp", .delay_ns = 1000, .max_qp = 1}; /* the datagrams' */
        weft_sim_config config = {.ranks = 2, .seed = 1};
        verbs_outcome out;
        int kept = rig_mute();
        setenv("WEFT_VERBS_CONNECT", ways[way], 1);
        verbs_run(verbs_program_find("traffic"), &none, &config, &out);
        unsetenv("WEFT_VERBS_CONNECT");
        rig_unmute(kept);
        CU_ASSERT(out.rc != 0 && strstr(out.report.text, "cannot create a queue pair") && strstr(out.report.text, "used up"));
        if (!strstr(out.report.text, "cannot create a queue pair"))
            fprintf(stderr, "    %s\n", out.report.text);
        CU_ASSERT(strstr(out.waits, "waits for a queue pair: 0 are open, the device refuses more: Cannot allocate memory") != NULL);
    }
}

/* A put that notifies is one message on the wire. */
static void notifications_cost_nothing(void)
{
    app app = {.seed = 1, .rounds = 1};
    weft_sim_report report;
    weft_sim_config config = {.ranks = 2, .seed = 1, .report = &report};
    verbs_choose_knobs(1, simhca_profile_find("calm"));
    config.net = verbs_net_open(simhca_profile_find("calm"), 1, true);
    CU_ASSERT(weft_sim_run(&config, app_notify_costs, &app) == 0);
    CU_ASSERT(verbs_net_close(stderr) == 0);
}

/* A rank dies at its k-th call of the contract: the others end, by an abort with that reason or because they are done with it. A network
 * does not report the death to a rank that only waits for messages (the launcher does), but to one with operations in flight. */
static void death_ends_the_job(void)
{
    static const char *const profiles[] = {"calm", "breaks", "rails", "torn", "wild", "few-qps", "one-qp"};
    static const char *const names[] = {"traffic", "storm", "colls", "moves", "regions"};
    uint32_t aborted = 0, silent = 0, count = 0;
    for (uint64_t step = 2; step < 6000; step += 1 + step / 8, count++) {
        verbs_outcome out;
        weft_sim_config config = {.ranks = 3, .seed = step, .kill = true, .kill_rank = (uint32_t)(step % 3), .kill_step = step,
                                  .is_quiet = true};
        int kept = rig_mute();
        if (count / 5 % 7 > 4)
            setenv("WEFT_VERBS_CONNECT", "rdmacm", 1);
        verbs_run(verbs_program_find(names[count % 5]), simhca_profile_find(profiles[count / 5 % 7]), &config, &out);
        unsetenv("WEFT_VERBS_CONNECT");
        rig_unmute(kept);
        bool hangs = out.report.deadlocked && out.pending;
        if (hangs)
            fprintf(stderr, "    death of rank %u at step %" PRIu64 " of %s on %s hangs the others (%u paths): %s\n",
                    config.kill_rank, step, names[count % 5], profiles[count / 5 % 7], out.pending, out.report.text);
        CU_ASSERT(!hangs);
        silent += out.report.deadlocked;
        aborted += out.report.aborted;
    }
    printf("\n    %u deaths, %u told by an abort, %u left to the launcher", count, aborted, silent);
    CU_ASSERT(aborted > 0);
}

static int replay(char **argv)
{
    verbs_outcome out;
    uint64_t seed = strtoull(argv[3], NULL, 10);
    weft_sim_config config = {.ranks = (uint32_t)atoi(argv[2]), .seed = seed, .ranks_per_node = seed % 5 == 0 ? 2 : 0};
    const simhca_profile *profile = simhca_profile_find(argv[1]);
    if (!verbs_program_find(argv[0]) || !profile)
        return 2;
    config.kill = argv[4] && argv[5];
    config.kill_rank = config.kill ? (uint32_t)atoi(argv[4]) : 0;
    config.kill_step = config.kill ? strtoull(argv[5], NULL, 10) : 0;
    verbs_run(verbs_program_find(argv[0]), profile, &config, &out);
    printf("%s: %d, %" PRIu64 " wake-ups lost, %u objects left, %u paths pending; %s; %" PRIu64 " us;", argv[0], out.rc,
           out.report.counts[WEFT_SIM_LOST_WAKEUPS], out.left, out.pending, out.report.text, out.report.now_ns / 1000);
    verbs_show(out.counts);
    printf("\n");
    return out.rc != 0;
}

static void add(CU_pSuite suite, const char *only, const char *name, void (*test)(void))
{
    if (!only || strstr(name, only))
        CU_add_test(suite, name, test);
}

int main(int argc, char **argv)
{
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const char *only = argc == 2 + is_verbose ? argv[1 + is_verbose] : NULL;
    char name[48];
    if (argc == 5 || argc == 7)
        return replay(argv + 1);
    if (only && strcmp(only, "--help") == 0) {
        printf("usage: %s [-v] [TEXT] | PROGRAM PROFILE RANKS SEED [RANK STEP] (replays)\n" SEEDS_HELP, argv[0], argv[0]);
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite whole = CU_add_suite("whole library", NULL, NULL), rest = CU_add_suite("fabrics and deaths", NULL, NULL);
    for (const simhca_profile *profile = simhca_profiles; profile->name; profile++)
        for (const verbs_program *program = verbs_programs; program->name && strcmp(profile->name, "flipped"); program++) {
            if (profile->no_rc || (profile->early && program->rests)) /* no process returns there */
                continue;
            snprintf(name, sizeof name, "%s %s", program->name, profile->name);
            add(whole, only, name, run_named);
        }
    seeds_share(whole->uiNumberOfTests);
    add(rest, only, "seeds replay", seeds_replay);
    add(rest, only, "fabrics bite", fabrics_bite);
    add(rest, only, "failovers are reported", failovers_are_reported);
    add(rest, only, "receivers are ready", receivers_are_ready);
    add(rest, only, "busy peers are evicted", busy_peers_are_evicted);
    add(rest, only, "queue pairs are few", queue_pairs_are_few);
    add(rest, only, "queue pairs are few by rdma_cm", queue_pairs_are_few_by_cm);
    add(rest, only, "circles end", circles_end);
    add(rest, only, "no queue pair at all", no_queue_pair_at_all);
    add(rest, only, "notifications cost nothing", notifications_cost_nothing);
    add(rest, only, "targets are counted at", verbs_targets_are_counted_at);
    add(rest, only, "device words are counted at", verbs_device_words_are_counted_at);
    add(rest, only, "a CPU's atomics are caught", verbs_cpu_atomics_are_detected);
    add(rest, only, "atomics without memory", verbs_atomics_without_memory);
    add(rest, only, "targets are searched", targets_are_searched);
    add(rest, only, "torn tables are noticed", torn_tables_are_noticed);
    add(rest, only, "unknown atomics are reported", verbs_unknown_atomics_are_reported);
    add(rest, only, "last puts arrive", last_puts_arrive);
    add(rest, only, "rests are noticed", rests_are_noticed);
    add(rest, only, "goodbyes are quick", goodbyes_are_quick);
    add(rest, only, "rests are quiet", rests_are_quiet);
    add(rest, only, "addresses are chosen", addresses_are_chosen);
    add(rest, only, "flips are found", flips_are_detected);
    add(rest, only, "mutants are caught", mutants_are_detected);
    add(rest, only, "misplaced relaxation is caught", misplaced_relaxation_is_detected);
    add(rest, only, "stale keys do no harm", stale_keys_do_no_harm);
    add(rest, only, "death ends the job", death_ends_the_job);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

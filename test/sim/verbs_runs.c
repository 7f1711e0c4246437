/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_runs: see verbs_runs.h.
 */
#include "test/sim/verbs_runs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knob.h"
#include "test/sim/apps.h"
#include "test/sim/rig.h"
#include "test/sim/traffic.h"

const verbs_program verbs_programs[] = {
    {"traffic", traffic_program, .is_rig = true}, {"colls", colls_program, .is_rig = true}, {.name = "stages", app_stages},
    {.name = "ring", app_ring}, {.name = "wildcards", app_wild}, {.name = "storm", app_storm}, {.name = "mpi-colls", app_colls},
    {.name = "comms", app_comms}, {.name = "forgetful", app_forgetful}, {"promises", app_promises, .withdraws = true},
    {.name = "moves", app_moves}, {.name = "atomics", app_atomics}, {.name = "notify", app_notify},
    {"regions", app_regions, .withdraws = true}, {"told-regions", app_notify_regions, .withdraws = true},
    {"tables", app_tables, .withdraws = true},
    {"rest", app_rest, .rests = true}, {"left", app_left, .asks = true, .rests = true}, {"await", app_await, .rests = true},
    {"part", app_part, .rests = true, .mixes = true}, {"calls", calls_program, .is_rig = true, .rests = true}, {.name = NULL},
};

bool verbs_keeps_registrations;

bool verbs_breaks(const simhca_profile *profile)
{
    return profile->break_per_100k || profile->flap_per_100k || profile->refuse_per_100k;
}

/* The seed, never a measured time, sets protocols, registration and other knobs. */
void verbs_choose_knobs(uint64_t seed, const simhca_profile *profile)
{
    static const char *const ways[] = {"copy", "get", "split", "put"};
    static const char *const pins[] = {"sync", "pipeline", "async", "sync", "never"};
    static const char *const rings[] = {"auto", "force", "never"};
    setenv("WEFT_RNDV_SCHEME", ways[seed % 4], 1);
    setenv("WEFT_PROMISES", seed % 3 ? "always" : "auto", 1);
    setenv("WEFT_REG_MODE", pins[seed / 3 % 5], 1);
    /* cache hits depend on addresses, which a replay does not repeat */
    setenv("WEFT_REGCACHE_MONITOR", verbs_keeps_registrations ? "auto" : "none", 1);
    setenv("WEFT_CREDIT_KIB", seed % 4 == 0 ? "16" : "1024", 1);
    setenv("WEFT_REGCACHE_MAX_COUNT", seed % 7 == 0 ? "2" : "0", 1);
    setenv("WEFT_REGCACHE_MAX_SIZE", seed % 11 == 0 ? "65536" : "0", 1);
    setenv("WEFT_CHECKSUM", seed % 5 == 0 ? "1" : "0", 1);
    setenv("WEFT_DEVICES", seed % 6 == 5 ? "simhca0;simhca0,simhca1" : "", 1);
    /* an atomic is not repeated where a connection breaks */
    setenv("WEFT_RMA_DEVICE_ATOMICS", seed % 3 && !verbs_breaks(profile) ? "yes" : "no", 1);
    setenv("WEFT_VERBS_MW", seed / 4 % 2 ? "auto" : "never", 1); /* each with each scheme */
    setenv("WEFT_EAGER_RING", rings[seed % 3], 1); /* forced also where lines are written in any order: verbs verifies each cell */
}

void verbs_run_rounds(const verbs_program *program, const simhca_profile *profile, weft_sim_config *config, uint32_t rounds,
                      verbs_outcome *out)
{
    traffic traffic = {.seed = config->seed, .rounds = rounds};
    app app = {.seed = config->seed, .rounds = rounds};
    memset(out, 0, sizeof *out);
    out->withdraws = program->withdraws;
    out->asks = program->asks;
    out->rests = program->rests;
    verbs_choose_knobs(config->seed, profile);
    if (program->is_rig)
        weft_knobs_load(false);
    config->report = &out->report;
    config->net = verbs_net_open(profile, config->seed, true);
    verbs_net_mixes = program->mixes;
    out->rc = weft_sim_run(config, program->what, program->is_rig ? (void *)&traffic : &app);
    verbs_net_mixes = false;
    if (program->is_rig)
        traffic_clear();
    for (int i = 0; i < SIMHCA_COUNT_LAST; i++)
        out->counts[i] = simhca_counter((enum simhca_count)i);
    out->pending = verbs_net_pending(config->kill_rank);
    snprintf(out->waits, sizeof out->waits, "%s", verbs_net_waits(&out->waiting));
    out->wrong = verbs_net_registered.wrong;
    out->left = verbs_net_close(out->rc == 0 && !config->kill ? stderr : NULL);
}

uint32_t verbs_rounds(const verbs_program *program)
{
    return program->is_rig ? 6 : 4;
}

void verbs_run(const verbs_program *program, const simhca_profile *profile, weft_sim_config *config, verbs_outcome *out)
{
    verbs_run_rounds(program, profile, config, verbs_rounds(program), out);
}

void verbs_run_apart(enum verbs_net_mutant what, const verbs_program *program, const simhca_profile *profile, weft_sim_config *config,
                     uint32_t rounds, verbs_outcome *out)
{
    verbs_outcome *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child;
    int status;
    if (shared == MAP_FAILED || (child = fork()) < 0)
        abort();
    if (!child) {
        verbs_net_mutant = what;
        verbs_run_rounds(program, profile, config, rounds, shared);
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child)
        abort();
    *out = *shared;
    if (status)
        out->rc = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    munmap(shared, sizeof *shared);
}

const verbs_program *verbs_program_find(const char *text)
{
    const verbs_program *program = verbs_programs;
    while (program->name && strncmp(text, program->name, strlen(program->name)))
        program++;
    return program->name ? program : NULL;
}

void verbs_show(const uint64_t *counts)
{
    for (int i = 0; i < SIMHCA_COUNT_LAST; i++)
        if (counts[i])
            printf(" %s %" PRIu64, simhca_count_names[i], counts[i]);
}

/* On a fabric without faults no completion is an error and no queue overflows; on every fabric the receiver is ready. */
static bool is_clean(const simhca_profile *profile, const verbs_outcome *out)
{
    bool harms = profile->lose_permille || profile->break_per_100k || profile->flap_per_100k || profile->refuse_per_100k ||
                 profile->ack_loss_permille || out->rests || (out->withdraws && out->counts[SIMHCA_KEYS_REFUSED]);
    const uint64_t *counts = out->counts;
    uint64_t never = counts[SIMHCA_RNR] + counts[SIMHCA_OVERRUNS], here = counts[SIMHCA_ERRORS] + counts[SIMHCA_POST_REFUSED];
    return never == 0 && (harms || here == 0);
}

bool verbs_is_good(const simhca_profile *profile, const verbs_outcome *out)
{
    return out->rc == 0 && (out->asks || out->report.counts[WEFT_SIM_LOST_WAKEUPS] == 0) && out->left == 0 && out->wrong == 0 &&
           is_clean(profile, out);
}

verbs_outcome verbs_run_on(const simhca_profile *profile, const char *name, uint32_t ranks, uint64_t seed)
{
    verbs_outcome out;
    weft_sim_config config = {.ranks = ranks, .seed = seed};
    verbs_run(verbs_program_find(name), profile, &config, &out);
    return out;
}

verbs_outcome verbs_run_one(const char *name, const char *profile, uint32_t ranks, uint64_t seed)
{
    return verbs_run_on(simhca_profile_find(profile), name, ranks, seed);
}

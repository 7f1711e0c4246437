/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pins: MPI programs over a simulated device that takes 50 us to register a page: while a long buffer is registered, the rank's other
 * operations go on, in virtual time. And long buffers whose registrations are refused, shared, given up, or interrupted by a death.
 *    pins [TEXT]                 the tests whose name contains TEXT
 *    pins PROGRAM SEED           replays one run
 * Seeds: see seeds.h.
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/world.h"
#include "test/sim/rig.h"
#include "test/sim/seeds.h"

enum { LONG = 2 << 20, PAGE_NS = 50000, PIN_NS = LONG / 4096 * PAGE_NS, PROMPT_NS = 400000, ECHO = 2, USES = 3 };
enum { TAG_LONG = 1, TAG_PING, TAG_OVER, TAG_NOBODY };

typedef struct job {
    uint64_t seed;
    int rank;
    uint64_t worst_ns, pings; /* slowest of the round trips while something long was registered, their number */
    uint64_t began_ns, first_ns, promises;
} job;

#define TRY(call) \
    do { \
        int code_ = (call); \
        if (code_) { \
            fprintf(stderr, "    seed %" PRIu64 ": %s gave %d\n", job->seed, #call, code_); \
            return 1; \
        } \
    } while (0)
#define EXPECT(is_so) \
    do { \
        if (!(is_so)) { \
            fprintf(stderr, "    seed %" PRIu64 ", rank %d, line %d: not so: %s\n", job->seed, job->rank, __LINE__, #is_so); \
            return 1; \
        } \
    } while (0)

/* Pages of their own: no other buffer's registration covers them. */
static uint8_t *new_buffer(uint64_t bytes)
{
    uint8_t *buf = aligned_alloc(4096, weft_round_up(bytes, 4096));
    return buf ? memset(buf, 0xee, bytes) : abort(), buf;
}

static void note(job *job, uint64_t ns) { job->worst_ns = ns > job->worst_ns ? ns : job->worst_ns; }

/* A message to the echo and back. */
static int ping(job *job)
{
    uint64_t begin = weft_sim_run_ns();
    int out = (int)job->pings++, in = -1;
    TRY(MPI_Sendrecv(&out, 1, MPI_INT, ECHO, TAG_PING, &in, 1, MPI_INT, ECHO, TAG_PING, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT(in == out);
    note(job, weft_sim_run_ns() - begin);
    return 0;
}

/* Answers pings until both others are done. */
static int echo(job *job)
{
    for (int left = 2, value; left;) {
        MPI_Status status;
        TRY(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        left -= status.MPI_TAG == TAG_OVER;
        if (status.MPI_TAG == TAG_PING)
            TRY(MPI_Send(&value, 1, MPI_INT, status.MPI_SOURCE, TAG_PING, MPI_COMM_WORLD));
    }
    return 0;
}

/* Ranks 0 and 1 move a long message from and into fresh memory, and exchange short ones with rank 2 at the same time. The same buffers are
 * used again before and after their registrations are made. */
static int stream(job *job)
{
    uint8_t *buf = new_buffer(LONG);
    for (int use = 0; use < USES; use++) {
        int is_done = 0;
        MPI_Request req;
        if (job->rank == 0) {
            rig_fill(buf, job->seed + (uint64_t)use, LONG);
            TRY(MPI_Isend(buf, LONG, MPI_BYTE, 1, TAG_LONG, MPI_COMM_WORLD, &req));
        } else {
            TRY(MPI_Irecv(buf, LONG, MPI_BYTE, 0, TAG_LONG, MPI_COMM_WORLD, &req));
        }
        while (!is_done) {
            if (ping(job))
                return 1;
            TRY(MPI_Test(&req, &is_done, MPI_STATUS_IGNORE));
        }
        if (use == 0)
            job->first_ns = weft_sim_run_ns() - job->began_ns;
        EXPECT(job->rank == 0 || rig_wrong(buf, job->seed + (uint64_t)use, LONG) == LONG);
    }
    TRY(MPI_Send(buf, 1, MPI_INT, ECHO, TAG_OVER, MPI_COMM_WORLD));
    free(buf);
    return 0;
}

/* Rank 0 is inside of a call that registers memory. What it has begun before ends meanwhile. */
static int inside(job *job)
{
    uint8_t *buf = new_buffer(LONG), out[20000], in[20000];
    uint64_t begin;
    MPI_Request reqs[2], persistent = MPI_REQUEST_NULL;
    int other = job->rank == 0 ? 1 : 0;
    TRY(MPI_Irecv(in, sizeof in, MPI_BYTE, other, 0, MPI_COMM_WORLD, &reqs[0]));
    TRY(MPI_Isend(out, sizeof out, MPI_BYTE, other, 0, MPI_COMM_WORLD, &reqs[1]));
    begin = weft_sim_run_ns();
    if (job->rank == 0 && job->seed % 2) {
        void *memory;
        TRY(MPI_Alloc_mem(LONG, MPI_INFO_NULL, &memory));
        EXPECT(weft_sim_run_ns() - begin >= PIN_NS);
        TRY(MPI_Free_mem(memory));
    } else if (job->rank == 0) {
        TRY(MPI_Send_init(buf, LONG, MPI_BYTE, 1, TAG_LONG, MPI_COMM_WORLD, &persistent));
        EXPECT(weft_sim_run_ns() - begin >= PIN_NS);
        TRY(MPI_Request_free(&persistent));
    }
    TRY(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
    if (job->rank == 1)
        job->worst_ns = weft_sim_run_ns() - begin;
    free(buf);
    return 0;
}

/* A persistent pair with long buffers: promises are made once the receive's own registration is there. */
static int persistent(job *job)
{
    uint8_t *buf = new_buffer(LONG);
    MPI_Request req;
    if (job->rank == 0)
        TRY(MPI_Send_init(buf, LONG, MPI_BYTE, 1, TAG_LONG, MPI_COMM_WORLD, &req));
    else
        TRY(MPI_Recv_init(buf, LONG, MPI_BYTE, 0, TAG_LONG, MPI_COMM_WORLD, &req));
    for (uint64_t use = 0; use < 10; use++) {
        uint64_t begin = weft_sim_run_ns();
        int is_done = 0;
        while (weft_sim_run_ns() - begin < PIN_NS / 4)
            if (ping(job))
                return 1;
        if (job->rank == 0)
            rig_fill(buf, job->seed + use, LONG);
        if (job->rank == 0) /* the receive has started */
            TRY(MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG_OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        begin = weft_sim_run_ns();
        TRY(MPI_Start(&req));
        note(job, weft_sim_run_ns() - begin);
        if (job->rank == 1)
            TRY(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_OVER, MPI_COMM_WORLD));
        while (!is_done) {
            if (ping(job))
                return 1;
            TRY(MPI_Test(&req, &is_done, MPI_STATUS_IGNORE));
        }
        EXPECT(job->rank == 0 || rig_wrong(buf, job->seed + use, LONG) == LONG);
    }
    job->promises = weft_world_now->workers[0]->counters[WEFT_COUNT_PROMISES];
    TRY(MPI_Send(buf, 1, MPI_INT, ECHO, TAG_OVER, MPI_COMM_WORLD));
    TRY(MPI_Request_free(&req));
    free(buf);
    return 0;
}

/* -- registrations that fail, are shared, or are given up -- */

enum { PEERS = 3, ROUNDS = 5, LEAST = 300000, MOST = 1000000 };

static uint64_t draw(uint64_t *state, uint64_t below) { return rig_random(state) % below; }

/* Cancels an unmatched send, during its registration or after it. */
static int cancel_one(job *job, uint64_t *own)
{
    uint8_t *buf = new_buffer(MOST);
    MPI_Request req;
    MPI_Status status;
    int is_cancelled, polls = (int)draw(own, 20);
    TRY(MPI_Isend(buf, LEAST + (int)draw(own, MOST - LEAST), MPI_BYTE, (job->rank + 1) % PEERS, TAG_NOBODY, MPI_COMM_WORLD, &req));
    for (int i = 0, flag; i < polls; i++)
        TRY(MPI_Iprobe(MPI_ANY_SOURCE, TAG_OVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    TRY(MPI_Cancel(&req));
    TRY(MPI_Wait(&req, &status));
    TRY(MPI_Test_cancelled(&status, &is_cancelled));
    EXPECT(is_cancelled);
    free(buf);
    return 0;
}

/* All ranks send one buffer to both others, whole or a part of it, into fresh memory. */
static int trouble(job *job)
{
    uint64_t shared = job->seed, own = job->seed * 64 + (uint64_t)job->rank;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t bytes = LEAST + draw(&shared, MOST - LEAST), part = bytes - draw(&shared, 2) * draw(&shared, LEAST / 2);
        uint8_t *out = new_buffer(weft_round_up(bytes, 4096)), *in[2];
        MPI_Request reqs[4];
        rig_fill(out, job->seed * 8 + (uint64_t)job->rank, bytes);
        for (int i = 0; i < 2; i++) {
            int from = (job->rank + PEERS - 1 - i) % PEERS;
            in[i] = new_buffer(weft_round_up(bytes, 4096));
            TRY(MPI_Irecv(in[i], (int)bytes, MPI_BYTE, from, TAG_LONG, MPI_COMM_WORLD, &reqs[i]));
        }
        for (int i = 0; i < 2; i++)
            TRY(MPI_Isend(out, (int)(i ? part : bytes), MPI_BYTE, (job->rank + 1 + i) % PEERS, TAG_LONG, MPI_COMM_WORLD, &reqs[2 + i]));
        if (draw(&own, 2) && cancel_one(job, &own))
            return 1;
        TRY(MPI_Waitall(4, reqs, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 2; i++) {
            uint64_t name = job->seed * 8 + (uint64_t)((job->rank + PEERS - 1 - i) % PEERS), sent = i ? part : bytes;
            EXPECT(rig_wrong(in[i], name, sent) == sent);
            free(in[i]);
        }
        free(out);
    }
    return draw(&own, 2) ? cancel_one(job, &own) : 0; /* MPI_Finalize while the helper may still work */
}

/* -- runs -- */

static const struct {
    const char *name;
    int (*what)(job *job);
} programs[] = {{"stream", stream}, {"inside", inside}, {"persistent", persistent}, {"trouble", trouble}};
enum { STREAM, INSIDE, PERSISTENT, TROUBLE, PROGRAMS };

typedef struct run {
    int (*what)(job *job);
    uint64_t seed;
    job jobs[PEERS];
} run;

static int program(int rank, void *arg)
{
    run *run = arg;
    job *job = &run->jobs[rank];
    *job = (struct job){.seed = run->seed, .rank = rank};
    TRY(MPI_Init(NULL, NULL));
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    job->began_ns = weft_sim_run_ns();
    if (rank == ECHO && (run->what == stream || run->what == persistent) ? echo(job)
        : rank < ECHO || run->what == trouble ? run->what(job) : 0)
        return 1;
    TRY(MPI_Barrier(MPI_COMM_WORLD));
    TRY(MPI_Finalize());
    return 0;
}

static void choose_knobs(uint64_t seed, bool is_sync)
{
    static const char *const schemes[] = {"put", "get", "copy"}, *const modes[] = {"sync", "sync", "auto", "pipeline", "async"};
    setenv("WEFT_RNDV_SCHEME", schemes[is_sync ? seed % 2 : seed % 3], 1);
    setenv("WEFT_REG_MODE", is_sync ? "sync" : modes[seed / 3 % 5], 1);
    setenv("WEFT_PROMISES", "auto", 1);
    setenv("WEFT_REGCACHE_MONITOR", "auto", 1);
    setenv("WEFT_REGCACHE_MAX_SIZE", "0", 1);
    setenv("WEFT_CHECKSUM", "0", 1);
}

/* Registrations cost much, and never fail. */
static const weft_sim_profile slow = {.name = "slow pins", .delay_ns = 2000, .wants_regcache = true, .mr_local = true, .pin_ns = 2000,
                                      .pin_page_ns = PAGE_NS, .frame_max = 32768, .amo = WEFT_AMO_NIC};
/* They cost less, and are refused by chance and by limits. */
static const weft_sim_profile strict = {.name = "strict pins", .delay_ns = 3000, .wants_regcache = true, .mr_local = true, .pin_ns = 2000,
                                        .pin_page_ns = 300, .mr_bytes_max = 2500000, .mr_count_max = 5, .reg_refuse_permille = 150,
                                        .blind_permille = 100, .again_permille = 50, .storm_max = 8, .frame_max = 16384,
                                        .amo = WEFT_AMO_NIC};

static int execute(int which, run *run, weft_sim_config *config)
{
    run->what = programs[which].what;
    config->ranks = PEERS;
    config->seed = run->seed;
    config->profile = which == TROUBLE ? &strict : &slow;
    choose_knobs(run->seed, which == STREAM || which == INSIDE);
    if (which == PERSISTENT)
        setenv("WEFT_RNDV_SCHEME", "put", 1);
    return weft_sim_run(config, program, run);
}

static bool is_good(int which, const run *run, const weft_sim_report *report, int rc)
{
    uint64_t worst = run->jobs[0].worst_ns > run->jobs[1].worst_ns ? run->jobs[0].worst_ns : run->jobs[1].worst_ns;
    bool ok = rc == 0 && report->counts[WEFT_SIM_LOST_WAKEUPS] == 0 && worst < PROMPT_NS;
    if (which == STREAM) /* the long message awaits its registrations, which both sides make at the same time */
        ok &= run->jobs[1].first_ns >= PIN_NS && run->jobs[1].first_ns < 2 * (uint64_t)PIN_NS && run->jobs[0].pings > 100;
    if (which == PERSISTENT)
        ok &= run->jobs[1].promises > 0;
    if (!ok)
        fprintf(stderr, "    %s: code %d, %s; slowest round trip %" PRIu64 " us, first long message %" PRIu64 " us, %" PRIu64
                " promises, %" PRIu64 " late wake-ups: replay by: pins %s %" PRIu64 "\n", programs[which].name, rc, report->text,
                worst / 1000, run->jobs[1].first_ns / 1000, run->jobs[1].promises, report->counts[WEFT_SIM_LOST_WAKEUPS],
                programs[which].name, run->seed);
    return ok;
}

static int find(const char *name)
{
    int which = 0;
    while (which < PROGRAMS && strcmp(programs[which].name, name) != 0)
        which++;
    return which;
}

static void run_named(void)
{
    int which = find(CU_get_current_test()->pName);
    uint64_t refused = 0, worst = 0, seed;
    seeds range;
    seeds_begin(&range);
    while ((seed = seeds_next(&range))) {
        run run = {.seed = seed};
        weft_sim_report report;
        weft_sim_config config = {.report = &report};
        int rc = execute(which, &run, &config);
        CU_ASSERT(is_good(which, &run, &report, rc));
        refused += report.counts[WEFT_SIM_REGS_REFUSED];
        for (int i = 0; i < 2; i++)
            worst = run.jobs[i].worst_ns > worst ? run.jobs[i].worst_ns : worst;
    }
    printf("\n    %s, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " registrations refused, slowest round trip %" PRIu64 " us",
           programs[which].name, range.first, range.next - 1, refused, worst / 1000);
    fflush(stdout);
    CU_ASSERT(which != TROUBLE || refused > 0);
}

/* A rank dies at any step after the first contact, often while it or a peer registers: the others end. */
static void death(void)
{
    uint32_t aborted = 0, count = 0;
    for (uint64_t step = 10; step < 3000; step += 1 + step / 6, count++) {
        run run = {.seed = step};
        weft_sim_report report;
        weft_sim_config config = {.report = &report, .kill = true, .kill_rank = (uint32_t)(step % PEERS), .kill_step = step,
                                  .is_quiet = true};
        int kept = rig_mute();
        execute(TROUBLE, &run, &config);
        rig_unmute(kept);
        if (report.deadlocked)
            fprintf(stderr, "    death of rank %" PRIu64 " at step %" PRIu64 " hangs the others: %s\n", step % PEERS, step, report.text);
        CU_ASSERT(!report.deadlocked);
        aborted += report.aborted;
    }
    printf("\n    %u deaths, %u reported by an abort", count, aborted);
    CU_ASSERT(aborted > 0);
}

static int replay(char **argv)
{
    run run = {.seed = strtoull(argv[1], NULL, 10)};
    weft_sim_report report = {.rc = 0};
    weft_sim_config config = {.report = &report};
    int which = find(argv[0]), rc;
    if (which == PROGRAMS)
        return 2;
    rc = execute(which, &run, &config);
    printf("%s: %d; %s\n", argv[0], rc, report.text);
    return !is_good(which, &run, &report, rc);
}

int main(int argc, char **argv)
{
    const char *only = argc == 2 ? argv[1] : NULL;
    if (argc == 3)
        return replay(argv + 1);
    if (only && strcmp(only, "--help") == 0) {
        printf("usage: %s [TEXT] | PROGRAM SEED (replays)\n" SEEDS_HELP, argv[0], argv[0]);
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("pins", NULL, NULL);
    for (int i = 0; i < PROGRAMS; i++)
        if (!only || strstr(programs[i].name, only))
            CU_add_test(suite, programs[i].name, run_named);
    if (!only || strstr("death", only))
        CU_add_test(suite, "death", death);
    seeds_share(suite->uiNumberOfTests);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

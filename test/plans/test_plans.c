/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_plans: every algorithm of the selection table, for 1..33 ranks, odd counts and 0, all kinds of types, in place, sampled roots;
 * immediate, started, recorded, and recorded and started three times (persistent); then many outstanding collectives. All ranks run in one process,
 * in an order that a seed decides (model.h). `test_plans SEED` repeats one seed, `test_plans SEED TEXT` only with rules that TEXT names
 * ("bcast", "chain"), and only the tests of single algorithms.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/raw_thread.h"
#include "cases.h"
#include "collectives/algorithms.h"
#include "collectives/choice.h"
#include "core/worker.h"
#include "model.h"

enum { LESS = WEFT_IS_SANITIZED ? 2 : 1 }; /* divides the counts of seeds: a sanitizer takes four times as long */
enum mode { IMMEDIATE, STARTED, RECORDED, PERSISTENT, MODES };

typedef struct trial {
    cases_call call;
    const weft_coll_rule *rule; /* NULL: on an intercommunicator */
    weft_sched_algorithm *algorithm;
    const char *name; /* of the algorithm */
    enum mode mode;
    uint64_t seed;
    uint64_t runs;
} trial;

static const char *only = ""; /* part of the name of an operation or algorithm */
static uint64_t first_seed = 1, trials, hier_trials, inter_trials;

static void progress_until(weft_team *team, const weft_req *req)
{
    while (!req->is_done)
        if (!weft_sched_progress(team->chan->worker))
            model_yield();
}

static void check(const cases_side *side, const trial *t)
{
    static const char *const modes[] = {"immediate", "started", "recorded", "persistent"};
    const char *wrong = cases_compare(side);

    if (wrong)
        model_complain("%s, %s, %s: %s (count %llu, back %llu, %u ranks, %u first, root %d, %s%stype %d, seed %llu)",
                       weft_coll_name(t->call.kind), t->name, modes[t->mode], wrong, (unsigned long long)t->call.count,
                       (unsigned long long)t->call.back, t->call.ranks, t->call.first, t->call.root, t->call.in_place ? "in place, " : "",
                       t->call.commutes ? "commutes, " : "", (int)t->call.type, (unsigned long long)t->seed);
}

static void run_immediate(weft_team *team, const trial *t)
{
    cases_side side;
    weft_sched sched;

    cases_begin(&t->call, team->rank, &side);
    weft_sched_begin_immediate(&sched, team, 7);
    sched.op = side.args.op;
    t->algorithm(&sched, &side.args);
    if (weft_sched_end_immediate(&sched))
        model_complain("%s failed: %d", t->name, sched.rc);
    check(&side, t);
    cases_end(&side);
}

static void run_started(weft_team *team, const trial *t)
{
    cases_side side;
    weft_req *req;

    cases_begin(&t->call, team->rank, &side);
    if (weft_sched_start(team, t->algorithm, &side.args, 7, &req))
        model_complain("the start of %s failed", t->name);
    else {
        progress_until(team, req);
        if (req->rc)
            model_complain("%s failed: %d", t->name, req->rc);
        weft_req_free(req);
        check(&side, t);
    }
    cases_end(&side);
}

static void run_recorded(weft_team *team, const trial *t)
{
    cases_side side, again;
    weft_req *req;

    cases_begin(&t->call, team->rank, &side);
    if (weft_sched_record(team, t->algorithm, &side.args, 7, &req)) {
        model_complain("recording failed");
        return;
    }
    for (int i = 0; i < (t->mode == PERSISTENT ? 3 : 1); i++) {
        if (i) { /* the same data again, in the same buffers */
            cases_begin(&t->call, team->rank, &again);
            cases_refill(&side, &again);
            cases_end(&again);
        }
        weft_sched_restart(req);
        progress_until(team, req);
        if (req->rc)
            model_complain("%s failed: %d", t->name, req->rc);
        check(&side, t);
    }
    weft_req_free(req);
    cases_end(&side);
}

/* As weft_team_open_inter does; the first group has `first` members. */
static void split_team(weft_team *team, uint32_t first)
{
    weft_members one = {0, first}, other = {first, team->size - first};

    team->is_inter = team->needs_setup = true;
    team->local = team->rank < first ? one : other;
    team->remote = team->rank < first ? other : one;
}

static void body(weft_team *team, void *argument)
{
    const trial *t = argument;
    uint32_t needs = t->rule ? t->rule->needs : 0;

    if (t->call.first)
        split_team(team, t->call.first);
    if ((needs & WEFT_NEED_NODES) && !team->topology)
        return; /* on all ranks */
    hier_trials += team->rank == 0 && needs & WEFT_NEED_NODES;
    if (t->mode == STARTED)
        run_started(team, t);
    else if (t->mode == IMMEDIATE)
        run_immediate(team, t);
    else
        run_recorded(team, t);
}

static uint64_t draw_count(uint64_t *random, uint32_t ranks)
{
    switch (model_random(random) % 7) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return ranks - 1;
    case 3:
        return ranks + 1;
    case 4:
        return 2 * ranks + 3;
    case 5:
        return 3;
    default:
        return 1 + model_random(random) % 80;
    }
}

static int try_rule(const weft_coll_rule *rule, uint32_t ranks, uint64_t seed)
{
    uint64_t random = seed * 1000003 + ranks;
    trial t = {.rule = rule, .algorithm = rule->algorithm, .name = rule->name, .seed = seed, .mode = model_random(&random) % MODES};
    int failed;

    t.call = (cases_call){.kind = rule->kind, .ranks = ranks, .count = draw_count(&random, ranks)};
    t.call.root = (int)(model_random(&random) % ranks);
    t.call.in_place = rule->kind != WEFT_COLL_BCAST && rule->kind != WEFT_COLL_BARRIER && model_random(&random) % 2;
    t.call.type = model_random(&random) % CASES_TYPES;
    t.call.commutes = rule->needs & WEFT_NEED_COMMUTATIVE || model_random(&random) % 2;
    t.call.round = (uint32_t)seed;
    trials++;
    failed = model_run(ranks, random, body, &t);
    if (failed)
        fprintf(stderr, "%s by %s failed (seed %llu)\n", weft_coll_name(rule->kind), rule->name, (unsigned long long)seed);
    return failed;
}

static bool is_named(const weft_coll_rule *rule) { return strstr(weft_coll_name(rule->kind), only) || strstr(rule->name, only); }

static int try_all(const weft_coll_rule *rule, uint64_t number)
{
    int failures = 0;

    for (uint32_t ranks = 1; ranks <= 33 && rule->algorithm && is_named(rule) && failures < 5; ranks++) {
        if (((rule->needs & WEFT_NEED_POWER_OF_2) && (ranks & (ranks - 1))) || ((rule->needs & WEFT_NEED_EVEN) && ranks % 2) ||
            (rule->needs & WEFT_NEED_COMMUTATIVE && ranks == 2))
            continue;
        for (uint64_t seed = first_seed; seed < first_seed + (ranks <= 8 ? 24 : 6) / LESS; seed++)
            failures += try_rule(rule, ranks, seed * 1024 + number);
    }
    return failures;
}

static void test_algorithms(void)
{
    int failures = 0;

    for (int kind = 0; kind < WEFT_COLL_LAST; kind++) {
        size_t count;
        const weft_coll_rule *rules = weft_coll_select_rules(kind, &count);
        for (size_t i = 0; i < count && failures < 5; i++)
            failures += try_all(&rules[i], (uint64_t)kind * 32 + i);
    }
    CU_ASSERT_EQUAL(failures, 0);
    CU_ASSERT(*only || hier_trials > 600); /* of five algorithms; else node_of is not used */
}

/* ---- reductions of rounded values: the order of operands shows in the result ---- */

#define ROUNDED 50 /* elements */
#define HANDLE_DOUBLE 0x214
#define HANDLE_SUM 0x21

typedef struct rounded {
    const weft_coll_rule *rule;
    uint32_t root;
    double out[33][ROUNDED]; /* by rank */
} rounded;

static void body_rounded(weft_team *team, void *argument)
{
    rounded *r = argument;
    double in[ROUNDED], *out = r->out[team->rank];
    const weft_type *type = weft_type_of((void *)HANDLE_DOUBLE);
    weft_coll args = {.sendbuf = in, .recvbuf = out, .sendcount = ROUNDED, .recvcount = ROUNDED, .sendtype = type, .recvtype = type,
                      .op = weft_op_of((void *)HANDLE_SUM), .root = (int)r->root};
    weft_sched sched;

    if ((r->rule->needs & WEFT_NEED_NODES) && !team->topology)
        return; /* on all ranks */
    for (uint32_t i = 0; i < ROUNDED; i++) {
        uint64_t random = (uint64_t)team->rank * ROUNDED + i;
        in[i] = (double)(int64_t)model_random(&random) / (double)(1u << model_random(&random) % 20);
        out[i] = 0;
    }
    if (r->rule->kind == WEFT_COLL_REDUCE_SCATTER_BLOCK)
        args.recvcount = ROUNDED / team->size * team->size;
    weft_sched_begin_immediate(&sched, team, 7);
    sched.op = args.op;
    r->rule->algorithm(&sched, &args);
    if (weft_sched_end_immediate(&sched))
        model_complain("%s failed: %d", r->rule->name, sched.rc);
}

/* Equal in any order of events; in an allreduce also on all ranks. Where nodes are depends on the seed, so hierarchical ones are run
 * once. */
static int try_rounded(const weft_coll_rule *rule, uint32_t ranks)
{
    static rounded first, other;
    uint64_t seed = first_seed * 97 + ranks;
    int failures;

    first = other = (rounded){.rule = rule, .root = ranks / 3};
    failures = model_run(ranks, seed, body_rounded, &first);
    for (uint32_t i = 1; i < ranks && rule->kind == WEFT_COLL_ALLREDUCE; i++)
        failures += memcmp(first.out[0], first.out[i], sizeof first.out[0]) != 0;
    if (!(rule->needs & WEFT_NEED_NODES)) {
        failures += model_run(ranks, seed + 1, body_rounded, &other);
        failures += memcmp(first.out, other.out, sizeof first.out) != 0;
    }
    if (failures)
        fprintf(stderr, "%s by %s of %u ranks: results differ\n", weft_coll_name(rule->kind), rule->name, ranks);
    return failures;
}

static void test_rounded(void)
{
    static const enum weft_coll_kind kinds[] = {WEFT_COLL_REDUCE, WEFT_COLL_ALLREDUCE, WEFT_COLL_SCAN, WEFT_COLL_EXSCAN,
                                                WEFT_COLL_REDUCE_SCATTER_BLOCK};
    int failures = 0;

    for (size_t k = 0; k < weft_count(kinds); k++) {
        size_t count;
        const weft_coll_rule *rules = weft_coll_select_rules(kinds[k], &count);
        for (size_t i = 0; i < count; i++)
            for (uint32_t ranks = 2; ranks <= 33 && rules[i].algorithm && failures < 5; ranks += ranks < 9 ? 1 : 4)
                failures += is_named(&rules[i]) ? try_rounded(&rules[i], ranks) : 0;
    }
    CU_ASSERT_EQUAL(failures, 0);
}

/* ---- intercommunicators ---- */

static int try_inter(enum weft_coll_kind kind, uint32_t ranks, uint32_t first, uint64_t seed)
{
    uint64_t random = seed * 1000003 + ranks * 64 + first;
    trial t = {.algorithm = weft_inter_algorithm(kind), .name = "inter", .seed = seed, .mode = model_random(&random) % MODES};

    t.call = (cases_call){.kind = kind, .ranks = ranks, .first = first, .round = (uint32_t)seed};
    t.call.count = draw_count(&random, ranks);
    t.call.back = draw_count(&random, ranks);
    t.call.root = (int)(model_random(&random) % ranks);
    t.call.type = model_random(&random) % CASES_TYPES;
    t.call.commutes = model_random(&random) % 2;
    trials++;
    inter_trials++;
    return model_run(ranks, random, body, &t);
}

static void test_inter(void)
{
    int failures = 0;

    for (int kind = WEFT_COLL_BARRIER + 1; kind < WEFT_COLL_LAST; kind++) {
        if (kind == WEFT_COLL_SCAN || kind == WEFT_COLL_EXSCAN) /* of intracommunicators only */
            continue;
        for (uint32_t ranks = 2; ranks <= 44 && failures < 5; ranks += ranks < 9 ? 1 : 5)
            for (uint32_t first = 1; first < ranks && failures < 5; first += ranks < 9 ? 1 : 1 + ranks / 8)
                for (uint64_t seed = first_seed; seed < first_seed + (ranks < 9 ? 12 : 4) / LESS; seed++)
                    failures += try_inter((enum weft_coll_kind)kind, ranks, first, seed * 64 + (uint64_t)kind);
    }
    CU_ASSERT_EQUAL(failures, 0);
}

/* ---- many at once, by the entry points of src/mpi ---- */

#define AT_ONCE 40

static void body_many(weft_team *team, void *argument)
{
    const trial *t = argument;
    cases_side sides[AT_ONCE];
    cases_call calls[AT_ONCE];
    weft_req *reqs[AT_ONCE] = {NULL};

    if (t->call.first)
        split_team(team, t->call.first);
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        uint64_t random = t->seed * 77 + i; /* equal on all ranks */
        bool is_blocking = model_random(&random) % 4 == 0;
        calls[i] = (cases_call){.kind = model_random(&random) % WEFT_COLL_LAST, .ranks = team->size, .round = i,
                                .count = model_random(&random) % 30, .type = model_random(&random) % CASES_TYPES, .first = t->call.first,
                                .back = model_random(&random) % 40, .commutes = model_random(&random) % 2};
        calls[i].root = (int)(model_random(&random) % team->size);
        if (calls[i].first && (calls[i].kind == WEFT_COLL_SCAN || calls[i].kind == WEFT_COLL_EXSCAN))
            calls[i].kind = WEFT_COLL_REDUCE_SCATTER; /* scans are of intracommunicators only */
        cases_begin(&calls[i], team->rank, &sides[i]);
        if (is_blocking ? weft_coll_run(team, calls[i].kind, &sides[i].args)
                        : weft_coll_start(team, calls[i].kind, &sides[i].args, &reqs[i]))
            model_complain("collective %u failed", i);
    }
    for (uint32_t i = AT_ONCE; i-- > 0;) {
        const char *wrong;
        if (reqs[i]) {
            progress_until(team, reqs[i]);
            weft_req_free(reqs[i]);
        }
        wrong = cases_compare(&sides[i]);
        if (wrong)
            model_complain("%s, number %u of %u at once: %s (seed %llu)", weft_coll_name(calls[i].kind), i, AT_ONCE, wrong,
                           (unsigned long long)t->seed);
        cases_end(&sides[i]);
    }
}

static void test_many_at_once(void)
{
    int failures = 0;

    for (uint64_t seed = first_seed; seed < first_seed + 40 / LESS && !failures; seed++) {
        for (int is_inter = 0; is_inter < 2 && !failures; is_inter++) {
            uint32_t ranks = (uint32_t)(2 + seed % 9);
            trial t = {.seed = seed, .call.first = is_inter ? 1 + (uint32_t)seed % (ranks - 1) : 0};
            failures += model_run(ranks, seed, body_many, &t);
            trials++;
        }
    }
    CU_ASSERT_EQUAL(failures, 0);
}

/* ---- the table ---- */

static const weft_coll_params params = {.node = {1000, 300, 10000}, .net = {1500, 400, 12500}, .reduce_mbyte_per_s = 20000,
                                        .copy_mbyte_per_s = 10000, .flag_ns = 50};

/* Any number of ranks and nodes, any operator, any length may be asked for: the choice exists, may be performed, and costs least. */
static void test_table(void)
{
    static const uint32_t sizes[][2] = {{1, 1}, {2, 1}, {5, 1}, {16, 1}, {100, 1}, {2, 2}, {7, 7}, {12, 5}, {4096, 256}, {65536, 65536}};

    for (int kind = 0; kind < WEFT_COLL_KINDS; kind++)
        for (size_t i = 0; i < weft_count(sizes); i++)
            for (uint32_t bits = 0; bits < 8; bits++) {
                weft_coll_query query = {.kind = kind, .ranks = sizes[i][0], .nodes = sizes[i][1], .latency_bytes = 10000,
                                         .slot_bytes = 32768, .params = &params};
                size_t count;
                const weft_coll_rule *rules = weft_coll_select_rules(kind, &count);
                query.has = (bits & 1 ? WEFT_NEED_COMMUTATIVE : bits & 2 ? WEFT_NEED_ORDER : 0) | (bits & 4 ? WEFT_NEED_AREA : 0) |
                            (query.nodes > 1 && query.nodes < query.ranks ? WEFT_NEED_NODES : 0);
                for (query.bytes = 0; query.bytes < (uint64_t)1 << 40; query.bytes = query.bytes * 3 + 1) {
                    const weft_coll_rule *choice = weft_coll_select(&query);
                    CU_ASSERT_FATAL(choice != NULL);
                    CU_ASSERT_EQUAL(choice->kind, kind);
                    CU_ASSERT_EQUAL(choice->needs & ~(query.has | weft_coll_query_numbers(&query)), 0);
                    for (size_t k = 0; k < count; k++)
                        CU_ASSERT(weft_coll_rule_cost(&rules[k], &query) >= weft_coll_rule_cost(choice, &query) * (1 - 1e-6));
                }
            }
}

/* Of two ranks, between which the kernel copies fast, long data go by message; short data, and barriers, through slots as ever. */
static void test_copied_once(void)
{
    static const struct {
        enum weft_coll_kind kind;
        uint64_t by_slots, by_message;
    } rows[] = {{WEFT_COLL_BCAST, 98304, 98305}, {WEFT_COLL_REDUCE, 24576, 196608}, {WEFT_COLL_ALLREDUCE, 24576, 4194304},
                {WEFT_COLL_GATHER, 12288, 12289}, {WEFT_COLL_SCATTER, 10240, 10241},
                {WEFT_COLL_ALLGATHER, 12288, 4000000}, {WEFT_COLL_ALLGATHERV, 24576, 24577},
                {WEFT_COLL_EXSCAN, 12288, 12289}, {WEFT_COLL_REDUCE_SCATTER, 49152, 49153}, {WEFT_COLL_REDUCE_SCATTER_BLOCK, 0, 1000000}};
    weft_coll_params fast = params;

    fast.is_copied_once = 1;
    for (size_t i = 0; i < weft_count(rows); i++) {
        weft_coll_query query = {.kind = rows[i].kind, .ranks = 2, .nodes = 1, .latency_bytes = 8192, .slot_bytes = 32768,
                                 .has = WEFT_NEED_ORDER | WEFT_NEED_AREA, .params = &fast};
        query.bytes = rows[i].by_slots;
        CU_ASSERT_PTR_NULL(weft_coll_select(&query)->algorithm);
        query.bytes = rows[i].by_message;
        CU_ASSERT_PTR_NOT_NULL(weft_coll_select(&query)->algorithm);
        query.params = &params;
        CU_ASSERT_PTR_NULL(weft_coll_select(&query)->algorithm);
    }
}

/* More ranks of a node than CPUs: long reductions and bcasts of many ranks go by messages, of few ranks through slots; long gathers go by
 * messages if the kernel copies these, scatters also if not. */
static void test_crowd(void)
{
    static const struct {
        enum weft_coll_kind kind;
        uint32_t ranks, slot_bytes, has;
        uint64_t bytes;
        const char *name;
        bool is_copied_once;
    } rows[] = {
        {WEFT_COLL_GATHER, 4, 32768, 0, 49152, "shmcoll", true}, {WEFT_COLL_GATHER, 4, 32768, 0, 57344, "linear", true},
        {WEFT_COLL_GATHER, 4, 32768, 0, 57344, "shmcoll", false}, {WEFT_COLL_SCATTER, 4, 32768, 0, 6144, "shmcoll", false},
        {WEFT_COLL_SCATTER, 4, 32768, 0, 7168, "linear", false}, {WEFT_COLL_SCATTER, 16, 15424, 0, 1024, "shmcoll", false},
        {WEFT_COLL_SCATTER, 16, 15424, 0, 1792, "linear", true}, {WEFT_COLL_ALLGATHER, 3, 32768, 0, 49152, "shmcoll", true},
        {WEFT_COLL_ALLGATHER, 3, 32768, 0, 57344, "linear", true}, {WEFT_COLL_ALLGATHER, 3, 32768, 0, 57344, "shmcoll", false},
        {WEFT_COLL_ALLGATHER, 4, 32768, 0, 65536, "shmcoll", true}, {WEFT_COLL_ALLGATHERV, 4, 32768, 0, 524288, "linear", true},
        {WEFT_COLL_ALLGATHER, 5, 32768, 0, 524288, "shmcoll", true}, {WEFT_COLL_REDUCE, 4, 32768, WEFT_NEED_ORDER, 100000, "shmcoll", true},
        {WEFT_COLL_ALLREDUCE, 16, 15424, WEFT_NEED_COMMUTATIVE, 131072, "shmcoll", false},
        {WEFT_COLL_ALLREDUCE, 16, 15424, WEFT_NEED_COMMUTATIVE, 524288, "Rabenseifner", false},
        {WEFT_COLL_ALLREDUCE, 16, 15424, WEFT_NEED_ORDER, 524288, "blocks", false},
        {WEFT_COLL_ALLREDUCE, 32, 7616, WEFT_NEED_COMMUTATIVE, 4194304, "Rabenseifner", false},
        {WEFT_COLL_ALLREDUCE, 32, 7616, WEFT_NEED_ORDER, 4194304, "shmcoll", false},
        {WEFT_COLL_ALLREDUCE, 8, 29504, WEFT_NEED_COMMUTATIVE, 4194304, "shmcoll", false},
        {WEFT_COLL_REDUCE_SCATTER, 32, 7616, WEFT_NEED_COMMUTATIVE, 1048576, "halving", false},
        {WEFT_COLL_REDUCE_SCATTER_BLOCK, 32, 7616, WEFT_NEED_COMMUTATIVE, 65536, "shmcoll", false},
        {WEFT_COLL_BCAST, 16, 15424, 0, 1048576, "shmcoll", false}, {WEFT_COLL_BCAST, 16, 15424, 0, 4194304, "binomial", false},
        {WEFT_COLL_ALLTOALLV, 3, 32768, 0, 0, "linear", false}, {WEFT_COLL_ALLTOALLV, 4, 32768, 0, 0, "shmcoll", false},
        {WEFT_COLL_ALLTOALLW, 16, 15424, 0, 0, "shmcoll", false}};
    weft_coll_params crowd = params;

    crowd.shares_cpus = 1;
    for (size_t i = 0; i < weft_count(rows); i++) {
        crowd.is_copied_once = rows[i].is_copied_once;
        weft_coll_query query = {.kind = rows[i].kind, .ranks = rows[i].ranks, .nodes = 1, .latency_bytes = 8192,
                                 .slot_bytes = rows[i].slot_bytes, .has = WEFT_NEED_AREA | rows[i].has, .bytes = rows[i].bytes,
                                 .params = &crowd};
        const char *name = weft_coll_select(&query)->name;
        CU_ASSERT_STRING_EQUAL(name, rows[i].name);
        if (strcmp(name, rows[i].name))
            printf("\n    row %zu: %s, not %s", i, name, rows[i].name);
    }
}

/* Calls of kinds with one rule choose nothing. */
static void test_single_rules(void)
{
    for (int kind = 0; kind < WEFT_COLL_KINDS; kind++) {
        size_t count;
        const weft_coll_rule *rules = weft_coll_select_rules(kind, &count);
        CU_ASSERT_EQUAL(weft_coll_has_one_rule(kind), count == 1);
        CU_ASSERT(count > 1 || rules->algorithm);
    }
}

/* Each length is in one class, whose bounds are four for each power of two; a class has one choice. */
static void test_classes(void)
{
    weft_coll_query query = {.kind = WEFT_COLL_BCAST, .ranks = 64, .nodes = 64, .latency_bytes = 10000, .params = &params};
    uint32_t changes = 0, last = 0;

    for (uint32_t i = 0; i < WEFT_COLL_CLASSES; i++) {
        uint64_t first = weft_coll_class_start(i), end = weft_coll_class_start(i + 1);
        CU_ASSERT(end > first);
        CU_ASSERT_EQUAL(weft_coll_class_of(first), i);
        CU_ASSERT_EQUAL(weft_coll_class_of(i + 1 < WEFT_COLL_CLASSES ? end - 1 : end), i);
        CU_ASSERT(i < 8 || i + 1 == WEFT_COLL_CLASSES || (end - first) * 4 <= first);
    }
    for (uint32_t i = 0; i < weft_coll_class_of((uint64_t)1 << 40); i++) {
        uint32_t index = weft_coll_select_class(&query, i);
        changes += i && index != last;
        last = index;
    }
    CU_ASSERT(changes >= 2 && changes <= 4); /* each algorithm has one range of lengths */
}

/* The choice follows the network's parameters, not numbers of the machine where it was written. */
static void test_parameters(void)
{
    weft_coll_params slow = params;
    weft_coll_query query = {.kind = WEFT_COLL_ALLREDUCE, .ranks = 64, .nodes = 64, .bytes = 100000, .has = WEFT_NEED_COMMUTATIVE,
                             .latency_bytes = 10000, .params = &params};
    const weft_coll_rule *choice = weft_coll_select(&query);

    slow.net.latency_ns = 1000000; /* a wire with more bytes per latency: the bounds move up */
    query.params = &slow;
    CU_ASSERT_PTR_NOT_EQUAL(weft_coll_select(&query), choice);
    query = (weft_coll_query){.kind = WEFT_COLL_ALLREDUCE, .ranks = 8, .nodes = 1, .bytes = 1000, .latency_bytes = 10000, .params = &params,
                              .slot_bytes = 32768, .has = WEFT_NEED_AREA};
    CU_ASSERT_PTR_NULL(weft_coll_select(&query)->algorithm);
    CU_ASSERT_EQUAL(weft_coll_link_of(0, 0, &params.net).latency_ns, params.net.latency_ns);
    CU_ASSERT_EQUAL(weft_coll_link_of(8000, 0, &params.net).overhead_ns, 2000);
    CU_ASSERT_EQUAL(weft_coll_link_of(0, 5000, &params.net).mbyte_per_s, 5000);
    CU_ASSERT_EQUAL(weft_coll_link_bytes(&params.net), 18750);
    CU_ASSERT_EQUAL(weft_coll_link_bytes(&slow.net), 1 << 20);
}

/* What a team keeps is what is computed; it forgets when its parameters change. */
static void test_choices(void)
{
    weft_team team = {.size = 64, .nodes = 64, .latency_bytes = 10000, .params = params};
    weft_coll_query query = {.ranks = 64, .nodes = 64, .latency_bytes = 10000, .params = &team.params};

    for (int round = 0; round < 2; round++)
        for (int kind = 0; kind < WEFT_COLL_KINDS; kind++)
            for (query.has = 0; query.has <= WEFT_NEED_COMMUTATIVE; query.has++)
                for (query.bytes = 0; query.bytes < 1 << 26; query.bytes = query.bytes * 2 + 1) {
                    size_t count;
                    query.kind = kind;
                    const weft_coll_rule *rule = weft_coll_select_rules(kind, &count) +
                                                 weft_coll_select_class(&query, weft_coll_class_of(query.bytes));
                    CU_ASSERT_PTR_EQUAL(weft_coll_choose(&team, &query), rule);
                    CU_ASSERT_PTR_NOT_NULL(team.choices[kind]);
                }
    query = (weft_coll_query){.kind = WEFT_COLL_BCAST, .ranks = 64, .nodes = 64, .bytes = 100000, .latency_bytes = 10000,
                              .params = &team.params};
    const weft_coll_rule *before = weft_coll_choose(&team, &query);
    team.params.net.latency_ns = 1000000;
    CU_ASSERT_PTR_EQUAL(weft_coll_choose(&team, &query), before);
    weft_coll_choices_free(&team);
    CU_ASSERT_PTR_NOT_EQUAL(weft_coll_choose(&team, &query), before);
    weft_coll_choices_free(&team);
    CU_ASSERT_PTR_NULL(team.choices[WEFT_COLL_BCAST]);
}

/* ---- prescribed algorithms ---- */

static const char *name_for(const weft_coll_query *query)
{
    const weft_coll_rule *rule = weft_coll_forced(query);
    return (rule ? rule : weft_coll_select(query))->name;
}

static void test_forced(void)
{
    weft_coll_query query = {.kind = WEFT_COLL_BCAST, .ranks = 64, .nodes = 1, .bytes = 1000, .latency_bytes = 8192, .params = &params};
    weft_coll_query reduce = query;
    const char *chosen = name_for(&query);

    reduce.kind = WEFT_COLL_REDUCE;
    CU_ASSERT_EQUAL(weft_coll_forced_read("bcast=scatter-ring:1000-2K, Reduce=binomial", false), 0);
    CU_ASSERT_STRING_EQUAL(name_for(&query), "scatter, ring");
    query.bytes = 2048;
    CU_ASSERT_STRING_EQUAL(name_for(&query), "scatter, ring");
    query.bytes = 999;
    CU_ASSERT_STRING_EQUAL(name_for(&query), chosen);
    CU_ASSERT_STRING_NOT_EQUAL(name_for(&reduce), "binomial"); /* requires an operator that commutes */
    reduce.has |= WEFT_NEED_COMMUTATIVE;
    CU_ASSERT_STRING_EQUAL(name_for(&reduce), "binomial");
    query.bytes = 2049;
    CU_ASSERT_EQUAL(weft_coll_forced_read("bcast=chain,bcast=scatter ring", false), 2); /* a space separates entries, too */
    CU_ASSERT_STRING_EQUAL(name_for(&query), "chain");
    CU_ASSERT_EQUAL(weft_coll_forced_read("bcast=ring,cast=chain,bcast=chain:2K,bcast=chain:5-4,barrier", false), 5);
    CU_ASSERT_EQUAL(weft_coll_forced_count, 0);
    CU_ASSERT_EQUAL(weft_coll_forced_read("@no such file", false), 1);
    CU_ASSERT_EQUAL(weft_coll_forced_read("", false), 0);
    query.bytes = 1000;
    CU_ASSERT_STRING_EQUAL(name_for(&query), chosen);
}

int main(int argc, char **argv)
{
    CU_pSuite suite;
    unsigned failed;

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 0);
    if (argc > 2)
        only = argv[2];
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    cases_open();
    suite = CU_add_suite("plans", NULL, NULL);
    CU_add_test(suite, "every query has a rule, the cheapest that may", test_table);
    CU_add_test(suite, "a fast copy by the kernel saves one through slots", test_copied_once);
    CU_add_test(suite, "ranks that share CPUs: long reductions of many by messages", test_crowd);
    CU_add_test(suite, "lengths are in classes", test_classes);
    CU_add_test(suite, "kinds with one algorithm", test_single_rules);
    CU_add_test(suite, "the choice depends on the network's parameters", test_parameters);
    CU_add_test(suite, "a team keeps its choices", test_choices);
    CU_add_test(suite, "WEFT_COLL prescribes algorithms; wrong entries are counted", test_forced);
    CU_add_test(suite, "algorithms: ranks, counts, types, roots, in place; immediate, recorded, persistent", test_algorithms);
    CU_add_test(suite, "rounded sums: bitwise equal in any order of events, and on all ranks of an allreduce", test_rounded);
    if (!*only) {
        CU_add_test(suite, "intercommunicators: sizes of both groups, counts of both directions, types, roots", test_inter);
        CU_add_test(suite, "many at once do not interfere", test_many_at_once);
    }
    CU_basic_run_tests();
    printf("%llu trials, %llu of them hierarchical, %llu on intercommunicators, %llu messages, %llu sends completed late, %llu unexpected, "
           "%llu turns\n",
           (unsigned long long)trials, (unsigned long long)hier_trials, (unsigned long long)inter_trials,
           (unsigned long long)model_total.messages, (unsigned long long)model_total.late_sends,
           (unsigned long long)model_total.unexpected, (unsigned long long)model_total.turns);
    failed = CU_get_number_of_failures();
    cases_close();
    CU_cleanup_registry();
    return failed != 0;
}

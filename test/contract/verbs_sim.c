/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_sim: the contract suite over transports/verbs on simulated HCAs: each fabric profile, several seeds. Also: a peer's failure is
 * reported once, after all it has sent.
 * verbs_sim [-v] [profile seed [test]]     one profile and seed only
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"
#include "test/sim/verbs_net.h"

static rig_row row = {.name = "verbs", .ops = &verbs_net_ops, .seed = 1};
static bool is_chatty;

/* Under a sanitizer a run takes ten to twenty times as long, and more seeds seldom find more. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SEEDS 1
#else
#define SEEDS 3
#endif

static void run_on(const char *profile, uint64_t seed, void (*run)(const rig_row *row))
{
    weft_knobs_load(false);
    if (seed % 3 == 0)
        weft_knob.eager_ring = WEFT_EAGER_RING_NEVER;
    weft_knob.verbs_mw = seed % 3 == 2 ? WEFT_VERBS_MW_NEVER : WEFT_VERBS_MW_AUTO;
    row.seed = seed;
    CU_ASSERT_FATAL(verbs_net_open(simhca_profile_find(profile), seed, false) != NULL);
    run(&row);
    if (is_chatty)
        simhca_print(stdout);
    CU_ASSERT(verbs_net_mutant || verbs_net_registered.wrong == 0);
    uint32_t left = verbs_net_close(stdout);
    CU_ASSERT(left == 0);
}

/* CUnit gives a test no argument: the suite's name is "profile seed". */
static void run_test(void (*run)(const rig_row *row))
{
    char name[32];
    unsigned long long seed;
    sscanf(CU_get_current_suite()->pName, "%31s %llu", name, &seed);
    run_on(name, seed, run);
}

static void run_named(void) { run_test(rig_find(CU_get_current_test()->pName)->run); }

/* -- puts by several rails, as of long messages -- */

enum { LONG_BYTES = 3 << 20 };

typedef struct long_put {
    uint8_t *from, *to;
} long_put;

static void look_at_long_put(rig_side *side, void *peer, const weft_hdr *hdr, const void *body)
{
    const long_put *put = side->extra;
    (void)peer, (void)body;
    CHECK(rig_is_pattern(put->to, hdr->seq, LONG_BYTES));
}

static void puts_by_rails(const rig_row *what)
{
    weft_rig *rig = rig_open(what, false);
    long_put put = {.from = malloc(LONG_BYTES), .to = calloc(1, LONG_BYTES)};
    weft_mr from, to;
    rig_done done = {0, 0};
    if (!rig)
        return;
    CHECK(rig_map(rig->a, put.from, LONG_BYTES, 0, &from) == 0 && rig_map(rig->b, put.to, LONG_BYTES, WEFT_ACCESS_WRITE, &to) == 0);
    rig->b->extra = &put;
    rig->b->on_arrive = look_at_long_put;
    for (uint32_t i = 0; i < 5; i++) {
        weft_rma rma = {.local = put.from, .mr = &from, .remote = (uintptr_t)put.to, .rkey = &to.rkey, .bytes = LONG_BYTES, .done = &done};
        weft_frame frame = {.hdr = {.seq = i}};
        rig_pattern(put.from, i, LONG_BYTES);
        CHECK(rig_move(rig->a, &rma, false) == 0 && rig_until(rig, &done.times, i + 1) && done.rc == 0);
        CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, i + 1));
    }
    CHECK(rig->a->iface->ops->mr_dereg(rig->a->iface, &from) == 0 && rig->b->iface->ops->mr_dereg(rig->b->iface, &to) == 0);
    rig_close(rig);
    free(put.from);
    free(put.to);
}

static void puts_by_rails_are_visible(void)
{
    static const char *const profiles[] = {"rails", "wild", "mlx5", "torn", "irdma-wild"};
    for (size_t i = 0; i < weft_count(profiles); i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            run_on(profiles[i], seed, puts_by_rails);
}

/* -- relaxed ordering -- */

/* Registrations that must be ordered and are not, and a frame that passes a put by a ring: each is noticed. */
static void misplaced_relaxation_is_detected(void)
{
    static const struct { enum verbs_net_mutant what; const char *name, *profile, *test; } plants[] = {
        {VERBS_NET_RELAXES_WINDOWS, "relaxed windows", "mlx5", "ordered-puts-end-visible"},
        {VERBS_NET_RELAXES_WINDOWS, "relaxed windows", "rails", "ordered-puts-end-visible"},
        {VERBS_NET_RELAXES_RINGS, "relaxed rings", "mlx5", "puts-are-visible-at-frames"},
        {VERBS_NET_RELAXES_RINGS, "relaxed rings", "calm", "puts-are-visible-at-frames"},
        {VERBS_NET_RINGS_AT_ONCE, "frames behind puts by rings", "mlx5", "puts-are-visible-at-frames"},
        {VERBS_NET_RELAXES_RAILS, "relaxed puts by rails", "rails", NULL},
    };
    for (size_t i = 0; i < weft_count(plants); i++) {
        void (*run)(const rig_row *) = plants[i].test ? rig_find(plants[i].test)->run : puts_by_rails;
        uint32_t noticed = 0, healthy = 0, runs = 0;
        rig_counts_only = true;
        setenv("WEFT_LOG", "error", 1);
        for (uint64_t seed = 1; seed <= 12; seed++) {
            if (seed % 3 == 0) /* without rings */
                continue;
            runs++;
            rig_failures = 0;
            run_on(plants[i].profile, seed, run);
            healthy += rig_failures == 0;
            rig_failures = 0;
            verbs_net_mutant = plants[i].what;
            run_on(plants[i].profile, seed, run);
            verbs_net_mutant = VERBS_NET_HEALTHY;
            noticed += rig_failures > 0;
        }
        rig_counts_only = false;
        unsetenv("WEFT_LOG");
        printf("\n    %s on %s: noticed in %u of %u runs; %u healthy runs are good", plants[i].name, plants[i].profile, noticed, runs,
               healthy);
        CU_ASSERT(2 * noticed >= runs && healthy == runs); /* a run depends on addresses, too */
    }
}

/* Which registrations carry the flag, by profile and knob; run_on finds those that never may. */
static void register_kinds(const rig_row *what)
{
    weft_rig *rig = rig_open(what, false);
    static const uint32_t kinds[] = {0, WEFT_ACCESS_READ, WEFT_ACCESS_WRITE, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE | WEFT_ACCESS_ORDERED,
                                     WEFT_ACCESS_ORDERED, WEFT_ACCESS_ATOMIC};
    uint8_t memory[4096];
    if (!rig)
        return;
    for (size_t i = 0; i < weft_count(kinds); i++) {
        weft_mr mr;
        CHECK(rig_map(rig->a, memory, sizeof memory, kinds[i], &mr) == 0);
        CHECK(rig->a->iface->ops->mr_dereg(rig->a->iface, &mr) == 0);
    }
    rig_close(rig);
}

static void bulk_alone_is_relaxed(void)
{
    static const struct { const char *profile; bool never; uint64_t bulk, relaxed; } rows[] = {
        {"mlx5", false, 3, 3}, {"mlx5", true, 3, 0}, {"irdma", false, 3, 3 /* and ignores it */}, {"plain", false, 3, 0},
        {"rails", false, 6, 4 /* of two rails: not what peers write */},
    };
    for (size_t i = 0; i < weft_count(rows); i++) {
        setenv("WEFT_VERBS_RELAXED_ORDERING", rows[i].never ? "never" : "auto", 1);
        run_on(rows[i].profile, 1, register_kinds);
        CU_ASSERT(verbs_net_registered.bulk == rows[i].bulk && verbs_net_registered.relaxed == rows[i].relaxed);
        CU_ASSERT(verbs_net_registered.wrong == 0);
    }
    unsetenv("WEFT_VERBS_RELAXED_ORDERING");
}

/* Frames sent before the death arrive in order and without a gap; then peer_failed is called once. */
static void dies(const rig_row *what)
{
    weft_rig *rig = rig_open(what, false);
    if (!rig)
        return;
    uint32_t sent = 0;
    for (uint32_t i = 0; i < 40; i++) {
        weft_frame frame = {.hdr = {.seq = i, .bytes = sizeof i}, .body = &i};
        sent += rig_send(rig->b, &frame) == 0;
        if (i == 20)
            CHECK(rig_until(rig, &rig->a->arrival_count, 10));
    }
    verbs_net_kill(rig->b->proc_id.rank);
    for (uint32_t i = 0; i < 20 && !rig->a->losts; i++) { /* a side that only receives need not detect it; a sender does */
        weft_frame frame = {.hdr = {.seq = i}};
        int rc = rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame);
        CHECK(rc == 0 || rc == WEFT_AGAIN || rc == WEFT_E_PEER);
        for (uint32_t k = 0; k < 20000 && !rig->a->losts; k++)
            rig_poll(rig->a, 16);
    }
    CHECK(sent == 40 && rig->a->losts == 1 && rig->a->lost_rc_bad == 0);
    uint32_t count = rig->a->arrival_count;
    for (uint32_t i = 0; i < count; i++)
        CHECK(rig->a->arrivals[i].hdr.seq == i);
    for (uint32_t i = 0; i < 2000; i++)
        rig_poll(rig->a, 16);
    CHECK(rig->a->losts == 1 && rig->a->arrival_count == count);
    weft_frame frame = {.hdr = {.seq = 0}};
    CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == WEFT_E_PEER);
    rig->b->ep = NULL; /* killed sides are not closed */
    rig->b->iface = NULL;
    rig_close(rig);
}

/* Memory of killed sides leaks: the leak checker must not report it. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static void peer_fails(void)
{
    if (__lsan_disable)
        __lsan_disable();
    run_test(dies);
    if (__lsan_enable)
        __lsan_enable();
}

/* EFA: its ports are active and have GIDs, but it has no connected queue pairs. No object is left. */
static void adapter_without_connections(void)
{
    static const weft_iface_callbacks callbacks;
    weft_iface_params params = {.callbacks = &callbacks};
    weft_iface *iface = NULL;
    weft_knobs_load(false);
    CU_ASSERT_FATAL(verbs_net_open(simhca_profile_find("efa"), 1, false) != NULL);
    CU_ASSERT_EQUAL(verbs_net_ops.open(&params, &iface), WEFT_E_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(weft_fail_text(WEFT_E_UNSUPPORTED), "no connected queue pairs (EFA: libfabric's provider efa uses it)"));
    CU_ASSERT_EQUAL(verbs_net_close(stdout), 0);
}

/* Three tests need progress while only one side is polled, two need the outcome of every atomic: not where connections break at random. */
static bool is_for(const char *profile, const char *test)
{
    static const char *const fragile[] = {"no-lost-wakeup", "free-space-wakes", "poll-does-not-disarm", "atomics-are-correct",
                                          "own-atomics"};
    const simhca_profile *what = simhca_profile_find(profile);
    bool breaks = what && (what->break_per_100k || what->flap_per_100k || what->refuse_per_100k);
    for (size_t i = 0; breaks && i < weft_count(fragile); i++)
        if (strcmp(test, fragile[i]) == 0)
            return false;
    if (what && what->max_qp == 2 && strcmp(test, "serves-one-peer") == 0)
        return false; /* a second peer evicts the first, whose windows end */
    return strcmp(test, "peer-fails") != 0; /* that test uses sim's own fabric, this one has simhca's */
}

static void add(const char *profile, unsigned long long seed, const char *only)
{
    char *name = malloc(48); /* CUnit keeps the pointer's text, not the pointer */
    snprintf(name, 48, "%s %llu", profile, seed);
    CU_pSuite suite = CU_add_suite(name, NULL, NULL);
    for (const rig_test *const *room = rig_rooms; suite && *room; room++)
        for (const rig_test *test = *room; test->name; test++)
            if ((!only || strcmp(only, test->name) == 0) && is_for(profile, test->name))
                CU_add_test(suite, test->name, run_named);
    if (suite && (!only || strcmp(only, "peer-fails") == 0))
        CU_add_test(suite, "peer-fails", peer_fails);
    free(name);
}

int main(int argc, char **argv)
{
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    argv += is_verbose;
    argc -= is_verbose;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    verbs_net_open(simhca_profile_find("calm"), 1, false); /* fills the table that the row names */
    verbs_net_close(NULL);
    if (argc > 2) {
        is_chatty = true;
        add(argv[1], strtoull(argv[2], NULL, 10), argc > 3 ? argv[3] : NULL);
    }
    for (const simhca_profile *profile = simhca_profiles; argc <= 2 && profile->name; profile++)
        for (unsigned long long seed = 1; seed <= SEEDS && strcmp(profile->name, "flipped") && !profile->no_rc; seed++)
            add(profile->name, seed, NULL);
    if (argc <= 2) {
        CU_pSuite relaxed = CU_add_suite("relaxed ordering", NULL, NULL);
        CU_add_test(relaxed, "bulk-alone-is-relaxed", bulk_alone_is_relaxed);
        CU_add_test(relaxed, "puts-by-rails-are-visible", puts_by_rails_are_visible);
        CU_add_test(relaxed, "misplaced-relaxation-is-detected", misplaced_relaxation_is_detected);
        CU_add_test(CU_add_suite("refused adapters", NULL, NULL), "no-connections-no-iface", adapter_without_connections);
    }
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

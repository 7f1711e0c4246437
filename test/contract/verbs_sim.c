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

/* CUnit gives a test no argument: the suite's name is "profile seed". */
static void run_test(void (*run)(const rig_row *row))
{
    char name[32];
    unsigned long long seed;
    sscanf(CU_get_current_suite()->pName, "%31s %llu", name, &seed);
    weft_knobs_load(false);
    if (seed % 3 == 0)
        weft_knob.eager_ring = WEFT_EAGER_RING_NEVER;
    weft_knob.verbs_mw = seed % 3 == 2 ? WEFT_VERBS_MW_NEVER : WEFT_VERBS_MW_AUTO;
    row.seed = seed;
    CU_ASSERT_FATAL(verbs_net_open(simhca_profile_find(name), seed, false) != NULL);
    run(&row);
    if (is_chatty)
        simhca_print(stdout);
    uint32_t left = verbs_net_close(stdout);
    CU_ASSERT(left == 0);
}

static void run_named(void)
{
    const char *name = CU_get_current_test()->pName;
    for (const rig_test *const *room = rig_rooms; *room; room++)
        for (const rig_test *test = *room; test->name; test++)
            if (strcmp(test->name, name) == 0)
                run_test(test->run);
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

/* Three tests need progress while only one side is polled, one needs the outcome of every atomic: not where connections break at random. */
static bool is_for(const char *profile, const char *test)
{
    static const char *const fragile[] = {"no-lost-wakeup", "free-space-wakes", "poll-does-not-disarm", "atomics-are-correct"};
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
        for (unsigned long long seed = 1; seed <= SEEDS && strcmp(profile->name, "flipped"); seed++)
            add(profile->name, seed, NULL);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

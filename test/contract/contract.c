/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contract: one suite over every transport (rows in rig.c), the null iface, and mutants that must be caught.
 *     contract [-v] [row]
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "test/contract/mutant.h"
#include "test/contract/rig.h"


/* CUnit gives a test no argument: its suite's name is the row's, its own name the test's. */
static void run_named(void)
{
    const char *suite = CU_get_current_suite()->pName;
    for (const rig_row *row = rig_rows; row->name; row++)
        if (strcmp(row->name, suite) == 0)
            rig_run_named(row);
}

static void null_iface_refuses(void)
{
    weft_iface *dead = &weft_null_iface;
    const weft_iface_ops *ops = dead->ops;
    weft_ep *ep = &weft_null_ep, *other;
    weft_frame frame = {.hdr = {.bytes = 0}};
    weft_rma rma = {.bytes = 0};
    weft_atomic atomic = {.op = WEFT_AMO_ADD};
    weft_mr mr;
    weft_shared shared = {0};
    weft_wakeup wakeup;
    weft_proc_id proc_id = {1, 2, 3};
    char addr[WEFT_ADDR_MAX];
    size_t room = sizeof addr;
    CU_ASSERT(ep->iface == dead && ops == &weft_null_ops);
    CU_ASSERT(ops->get_addr(dead, addr, &room) == WEFT_E_PEER);
    CU_ASSERT(ops->ep_open(dead, &proc_id, addr, 0, NULL, &other) == WEFT_E_PEER);
    CU_ASSERT(ops->ep_close(dead, ep) == WEFT_E_PEER);
    CU_ASSERT(ops->mr_reg(dead, addr, 8, 0, WEFT_MEMORY_HOST, &mr) == WEFT_E_PEER);
    CU_ASSERT(ops->mr_dereg(dead, &mr) == WEFT_E_PEER);
    CU_ASSERT(ops->share(dead, 8, &shared) == WEFT_E_PEER && ops->unshare(dead, &shared) == WEFT_E_PEER);
    CU_ASSERT(ops->send(dead, ep, &frame) == WEFT_E_PEER && weft_iface_send(ep, &frame) == WEFT_E_PEER);
    CU_ASSERT(!ops->can_rma(dead, ep));
    CU_ASSERT(ops->get(dead, ep, &rma) == WEFT_E_PEER && ops->put(dead, ep, &rma) == WEFT_E_PEER);
    CU_ASSERT(ops->amo(dead, ep, &atomic) == WEFT_E_PEER && ops->flush(dead, ep, true, NULL) == WEFT_E_PEER);
    CU_ASSERT(ops->poll(dead, 1) == WEFT_E_PEER && ops->arm(dead, &wakeup) == WEFT_E_PEER);
    CU_ASSERT(strstr(weft_fail_text(WEFT_E_PEER), "failed earlier") != NULL);
    const void *const *entries = (const void *const *)ops;
    for (size_t i = 0; i < offsetof(weft_iface_ops, mw_bind) / sizeof *entries; i++)
        CU_ASSERT(entries[i] != NULL);
}

static void self_reaches_itself_only(void)
{
    static const weft_iface_callbacks callbacks;
    weft_iface_params params = {.callbacks = &callbacks, .self = {5, 6, 7}, .local_rank = -1};
    weft_proc_id other = {5, 7, 7}, worker = {5, 6, 8};
    weft_iface *iface;
    weft_ep *ep;
    CU_ASSERT_FATAL(weft_self_ops.open(&params, &iface) == 0);
    CU_ASSERT(weft_self_ops.ep_open(iface, &other, NULL, 0, NULL, &ep) == WEFT_E_UNSUPPORTED);
    CU_ASSERT(weft_self_ops.ep_open(iface, &worker, NULL, 0, NULL, &ep) == WEFT_E_UNSUPPORTED);
    CU_ASSERT(weft_self_ops.ep_open(iface, &params.self, NULL, 0, NULL, &ep) == 0);
    CU_ASSERT(weft_self_ops.ep_close(iface, ep) == 0);
    weft_self_ops.close(iface);
}

/* A network that flips bits is noticed by the payload checks: so the checks work. */
static void flips_are_detected(void)
{
    static const rig_row row = {"sim flipped", &weft_sim_ops, "flipped", 99, false, false};
    rig_counts_only = true;
    rig_failures = 0;
    for (const rig_test *test = frame_tests; test->name; test++)
        if (strcmp(test->name, "keeps-order") == 0)
            test->run(&row);
    CU_ASSERT(rig_failures > 0);
    rig_counts_only = false;
}

static uint32_t failures_under(const mutant *what, const rig_row *row)
{
    rig_counts_only = true;
    rig_failures = 0;
    mutant_choose(what);
    for (const rig_test *const *room = rig_rooms; *room && !rig_failures; room++)
        for (const rig_test *test = *room; test->name && !rig_failures; test++) {
            mutant_reset();
            test->run(row);
            if (rig_failures && getenv("CONTRACT_VERBOSE"))
                printf("    %-20s %-8s caught by %s\n", what ? what->name : "none", row->name, test->name);
        }
    mutant_choose(NULL);
    rig_counts_only = false;
    return rig_failures;
}

/* Most faults are planted in the first two rows, some only in rows with the capability. */
static bool is_for(const mutant *what, const rig_row *row)
{
    if (what->row)
        return strcmp(what->row, row->name) == 0;
    return row < rig_rows + 2 && !(row->is_self ? what->not_self : what->self_only);
}

static bool has_mutants(const rig_row *row)
{
    bool any = false;
    for (const mutant *what = mutants; what->name; what++)
        any |= is_for(what, row);
    return any;
}

static void mutants_are_detected(void)
{
    uint32_t caught = 0, count = 0;
    for (const rig_row *row = rig_rows; row->name; row++) {
        if (!has_mutants(row))
            continue;
        CU_ASSERT(failures_under(NULL, row) == 0); /* without a fault the test passes */
        for (const mutant *what = mutants; what->name; what++) {
            if (!is_for(what, row))
                continue;
            bool is_caught = failures_under(what, row) > 0;
            if (!is_caught)
                printf("\n    mutant %s on %s was not caught\n", what->name, row->name);
            caught += is_caught;
            count++;
            CU_ASSERT(is_caught);
        }
    }
    printf(" %u of %u mutants caught ", caught, count);
}

int main(int argc, char **argv)
{
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const char *only = argc > 1 + is_verbose ? argv[1 + is_verbose] : NULL;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    for (const rig_row *row = rig_rows; row->name; row++) {
        CU_pSuite suite = !only || strcmp(only, row->name) == 0 ? CU_add_suite(row->name, NULL, NULL) : NULL;
        rig_add_rooms(suite, NULL, run_named);
    }
    CU_pSuite others = CU_add_suite("null objects and mutants", NULL, NULL);
    CU_add_test(others, "null-iface-refuses", null_iface_refuses);
    CU_add_test(others, "self-reaches-itself-only", self_reaches_itself_only);
    CU_add_test(others, "flips-are-detected", flips_are_detected);
    if (!only)
        CU_add_test(others, "mutants-are-detected", mutants_are_detected);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs: the contract suite over real verbs devices: two of them, or one with itself. Skipped (77) where there is none. The same over
 * simulated devices is verbs_sim.
 *     verbs [-v] [test]
 */
#include <CUnit/Basic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "test/contract/rig.h"
#include "transports/verbs/verbs.h"

static const rig_row row = {.name = "verbs", .ops = &weft_verbs_ops, .seed = 31};

/* A kernel's software device needs this CPU: yields it after an empty poll. */
static int poll_kindly(weft_iface *iface, int budget)
{
    int events = weft_verbs_ops.poll(iface, budget);
    if (!events)
        sched_yield();
    return events;
}

static void make_kind(weft_iface *iface)
{
    static weft_iface_ops kind;
    kind = *iface->ops;
    kind.poll = poll_kindly;
    iface->ops = &kind;
}

static bool has_rxe(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    bool any = false;
    for (int i = 0; list && list[i]; i++)
        any |= strncmp(ibv_get_device_name(list[i]), "rxe", 3) == 0;
    if (list)
        ibv_free_device_list(list);
    return any;
}

static void run_named(void)
{
    rig_run_named(&row);
}

int main(int argc, char **argv)
{
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const char *why;
    unsigned failed;
    weft_knobs_load(true);
    why = weft_verbs_ops.unavailable();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    rig_patch = make_kind;
    rig_patience = 300; /* rdma_cm repeats its messages after 4 s */
    rig_loose_windows = has_rxe();
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    rig_add_rooms(CU_add_suite("verbs", NULL, NULL), argc > 1 + is_verbose ? argv[1 + is_verbose] : NULL, run_named);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_bounce: slots for short operations of a window whose targets are reached over several networks, in any order of their first use.
 */
#include <CUnit/Basic.h>

#include "base/status.h"
#include "rma/bounce.h"

static struct { uint32_t registered, deregistered; bool refuses; } device;

static int mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    (void)iface, (void)addr, (void)rights, (void)kind;
    if (device.refuses)
        return WEFT_E_NOMEM;
    CU_ASSERT_EQUAL(bytes, (uint64_t)WEFT_BOUNCE_SLOTS * WEFT_BOUNCE_BYTES);
    *mr = (weft_mr){0};
    device.registered++;
    return 0;
}

static int mr_dereg(weft_iface *iface, weft_mr *mr)
{
    (void)iface, (void)mr;
    device.deregistered++;
    return 0;
}

static const weft_iface_ops ops = {.name = "counted", .mr_reg = mr_reg, .mr_dereg = mr_dereg};
static weft_iface node = {.ops = &ops};
static weft_iface net = {.ops = &ops, .caps = {.mr_local = true}}, other_net = {.ops = &ops, .caps = {.mr_local = true}};

/* All slots can be taken, and are apart. */
static void take_all(weft_bounce *bounce)
{
    char *slots[WEFT_BOUNCE_SLOTS];
    for (uint32_t i = 0; i < WEFT_BOUNCE_SLOTS; i++) {
        slots[i] = weft_bounce_take(bounce);
        CU_ASSERT_PTR_EQUAL(slots[i], bounce->block + i * WEFT_BOUNCE_BYTES);
    }
    CU_ASSERT_PTR_NULL(weft_bounce_take(bounce));
    for (uint32_t i = 0; i < WEFT_BOUNCE_SLOTS; i++)
        weft_bounce_give(bounce, slots[i]);
}

/* The network registers the block that a neighbour has used before, slots in use stay where they are. */
static void test_node_first(void)
{
    weft_bounce bounce = {0};
    char *slot;
    device.registered = device.deregistered = 0;
    CU_ASSERT(weft_bounce_serves(&bounce, &node) && device.registered == 0);
    slot = weft_bounce_take(&bounce);
    CU_ASSERT(weft_bounce_serves(&bounce, &net) && device.registered == 1);
    CU_ASSERT_PTR_NOT_EQUAL(weft_bounce_take(&bounce), slot);
    CU_ASSERT(weft_bounce_serves(&bounce, &net) && weft_bounce_serves(&bounce, &node) && device.registered == 1);
    CU_ASSERT(!weft_bounce_serves(&bounce, &other_net) && device.registered == 1);
    weft_bounce_close(&bounce);
    CU_ASSERT(device.deregistered == 1 && !bounce.block);
}

static void test_net_first(void)
{
    weft_bounce bounce = {0};
    device.registered = device.deregistered = 0;
    CU_ASSERT(weft_bounce_serves(&bounce, &net) && weft_bounce_serves(&bounce, &node) && device.registered == 1);
    take_all(&bounce);
    weft_bounce_close(&bounce);
    CU_ASSERT_EQUAL(device.deregistered, 1);
}

/* Memory that cannot be registered serves neighbours. Registration is not tried again. */
static void test_refused(void)
{
    weft_bounce bounce = {0};
    device.registered = device.deregistered = 0;
    device.refuses = true;
    CU_ASSERT(!weft_bounce_serves(&bounce, &net) && weft_bounce_serves(&bounce, &node));
    device.refuses = false;
    CU_ASSERT(!weft_bounce_serves(&bounce, &net) && device.registered == 0);
    take_all(&bounce);
    weft_bounce_close(&bounce);
    CU_ASSERT_EQUAL(device.deregistered, 0);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("bounce", NULL, NULL);
    CU_add_test(suite, "a neighbour first", test_node_first);
    CU_add_test(suite, "a network first", test_net_first);
    CU_add_test(suite, "registration refused", test_refused);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}

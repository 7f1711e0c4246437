/* SPDX-License-Identifier: BSD-3-Clause
 *
 * suites: the tests of all files as CUnit suites; see rig.h.
 */
#include <CUnit/Basic.h>
#include <string.h>

#include "test/contract/rig.h"

const rig_test *const rig_rooms[] = {life_tests, frame_tests, move_tests, amo_tests, order_tests, lend_tests, wait_tests, NULL};

void rig_add_rooms(CU_pSuite suite, const char *only, void (*run)(void))
{
    for (const rig_test *const *room = rig_rooms; suite && *room; room++)
        for (const rig_test *test = *room; test->name; test++)
            if (!only || strcmp(only, test->name) == 0)
                CU_add_test(suite, test->name, run);
}

const rig_test *rig_find(const char *name)
{
    for (const rig_test *const *room = rig_rooms; *room; room++)
        for (const rig_test *test = *room; test->name; test++)
            if (strcmp(test->name, name) == 0)
                return test;
    return NULL;
}

void rig_run_named(const rig_row *row) { rig_find(CU_get_current_test()->pName)->run(row); }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_calls: the log of collective calls and of messages that come before them (collectives/stop.h). Numbers of calls are
 * WEFT_TAG_BITS wide and come again: what an earlier call left in the log must not accuse a later one.
 */
#include <CUnit/Basic.h>
#include <string.h>

#include "collectives/stop.h"

enum { MEMBER = 1 };
static const weft_call one_call = {.what = 1, .bytes = 8}, other_call = {.what = 2, .bytes = 8};

/* A team whose channel is not connected: a difference is not sent. */
static weft_team *open_team(uint32_t sequence)
{
    static weft_team team;
    static weft_chan chan;

    memset(&team, 0, sizeof team);
    memset(&chan, 0, sizeof chan);
    team.chan = &chan;
    team.sequence = sequence;
    weft_list_init(&team.active);
    team.log.newest = UINT32_MAX;
    return &team;
}

static uint32_t tag_of(uint32_t number, weft_call call) { return weft_call_tag(call, number, false); }

static bool is_ahead(const weft_team *team, uint32_t tag) { return team->log.ahead[weft_call_slot(tag)].is_set; }

/* The entry of a message is gone once its call is made, also at the end of the numbers. */
static void test_made(void)
{
    static const uint32_t starts[] = {5, WEFT_TAG_BITS, WEFT_TAG_BITS / 2};

    for (unsigned i = 0; i < sizeof starts / sizeof *starts; i++) {
        weft_team *team = open_team(starts[i]);
        uint32_t tag = tag_of(starts[i], one_call);
        weft_calls_on_message(team, MEMBER, tag);
        CU_ASSERT(is_ahead(team, tag));
        team->sequence++;
        weft_calls_log(team, tag, one_call);
        CU_ASSERT(!is_ahead(team, tag));
    }
}

/* The same for a message of a call that differs, of which this member's is compared once. */
static void test_other(void)
{
    weft_team *team = open_team(7);
    uint32_t tag = tag_of(7, one_call), other = tag_of(7, other_call);

    CU_ASSERT_NOT_EQUAL(tag, other);
    weft_calls_on_message(team, MEMBER, tag);
    weft_calls_on_message(team, MEMBER + 1, other);
    CU_ASSERT(team->log.other[weft_call_slot(tag)].is_set);
    team->sequence++;
    weft_calls_log(team, tag, one_call);
    CU_ASSERT(!is_ahead(team, tag) && !team->log.other[weft_call_slot(tag)].is_set);
}

/* A message of a call that is no longer logged is not taken for one of a later call. */
static void test_past(void)
{
    weft_team *team = open_team(100);
    uint32_t tag = tag_of(50, one_call), next = tag_of(100, one_call);

    weft_calls_on_message(team, MEMBER, tag);
    CU_ASSERT(!is_ahead(team, tag) && team->log.newest == UINT32_MAX);
    weft_calls_on_message(team, MEMBER, next);
    CU_ASSERT(is_ahead(team, next) && team->log.newest == next);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("calls", NULL, NULL);
    CU_add_test(suite, "made", test_made);
    CU_add_test(suite, "other", test_other);
    CU_add_test(suite, "past", test_past);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : CU_get_error();
}

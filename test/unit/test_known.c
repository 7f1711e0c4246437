/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_known: regions of a dynamic window's target as an origin knows them, against a plain model: answers, detaches that are told late or
 * never, keys that are refused, operations that hold regions, more regions than are kept, questions in a burst.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/sched.h"
#include "rma/known.h"
#include "rma/message.h"
#include "test/unit/draw.h"

enum { PLACES = 300, PLACE = 4096, ORIGIN = 1 << 20 };

typedef struct fixture {
    weft_known known;
    weft_window_control control;
} fixture;

static void fixture_open(fixture *self, uint32_t members, bool has_keys)
{
    memset(self, 0, sizeof *self);
    weft_known_open(&self->known, members, has_keys ? NULL : &self->control);
}

static weft_rma_op op_at(uint64_t address, uint64_t bytes)
{
    return (weft_rma_op){.kind = WEFT_RMA_PUT, .target = 1, .offset = address, .target_count = bytes, .target_type = weft_sched_bytes()};
}

/* Like an operation by the device. False: it goes by message. */
static bool reaches(fixture *self, uint64_t address, uint64_t bytes)
{
    weft_rma_op op = op_at(address, bytes);
    weft_known_region *region = weft_known_acquire(&self->known, &op);
    bool is_in = !region || (region->base <= address && address + bytes <= region->base + region->bytes);
    CU_ASSERT(is_in);
    weft_known_release(region);
    return region != NULL;
}

static bool asks(fixture *self, uint64_t address)
{
    weft_rma_op op = op_at(address, 1);
    return weft_known_ask(&self->known, &op);
}

static void answer(fixture *self, uint64_t base, uint64_t bytes, bool has_key)
{
    weft_rma_region_note note = {.kind = WEFT_RMA_REGION, .base = base, .bytes = bytes,
                                 .detaches = atomic_load(weft_window_detaches(&self->control, base)), .rkey = {.length = has_key ? 4 : 0}};
    weft_known_on_note(&self->known, &note, sizeof note);
}

static void revoke(fixture *self, uint64_t base)
{
    weft_rma_region_note note = {.kind = WEFT_RMA_REVOKED, .base = base};
    weft_known_on_note(&self->known, &note, sizeof note);
}

/* A region at random places of the target: attached, asked for, detached. With keys the note of a detach comes at some later time, but
 * before a newer answer; without, the control tells. */
static void check_random(bool has_keys)
{
    static struct { uint64_t base, bytes; bool is_known, is_late; } model[PLACES];
    fixture self;
    fixture_open(&self, 2, has_keys);
    memset(model, 0, sizeof model);
    for (int turn = 0; turn < 30000; turn++) {
        uint64_t i = draw(PLACES), at = ORIGIN + i * PLACE;
        if (model[i].is_late && draw(2)) {
            revoke(&self, model[i].base);
            model[i].is_late = false;
        } else if (model[i].is_known && draw(3) == 0) {
            model[i].is_known = false;
            model[i].is_late = has_keys;
            atomic_fetch_add(weft_window_detaches(&self.control, model[i].base), 1);
        } else if (!model[i].is_known && !model[i].is_late && asks(&self, at + PLACE / 2)) {
            model[i].base = at + draw(100), model[i].bytes = PLACE / 2 + 200 + draw(1000);
            answer(&self, model[i].base, model[i].bytes, true);
            model[i].is_known = true;
        }
        if (model[i].is_known && (has_keys || reaches(&self, model[i].base, 1))) {
            CU_ASSERT(reaches(&self, model[i].base, model[i].bytes));
            CU_ASSERT(!reaches(&self, model[i].base, model[i].bytes + 1) && !reaches(&self, model[i].base - 1, 2));
            CU_ASSERT(!asks(&self, model[i].base + model[i].bytes - 1));
        } else if (!model[i].is_late) { /* unknown; or another region with the same count was detached */
            CU_ASSERT(!reaches(&self, at + PLACE / 2, 1));
            model[i].is_known = false;
        }
    }
    CU_ASSERT_EQUAL(self.known.asking, 0);
    CU_ASSERT(self.known.regions.count > PLACES / 8);
    weft_known_close(&self.known);
}

static void test_random(void)
{
    check_random(true);
    check_random(false);
}

/* What an operation holds stays until it is released, ended or not. */
static void test_held(void)
{
    fixture self;
    weft_rma_op op = op_at(ORIGIN, 8);
    weft_known_region *first, *second;
    fixture_open(&self, 2, true);
    answer(&self, ORIGIN, 64, true);
    first = weft_known_acquire(&self.known, &op), second = weft_known_acquire(&self.known, &op);
    CU_ASSERT_FATAL(first && first == second && weft_known_is_current(&self.known, first));
    revoke(&self, ORIGIN);
    CU_ASSERT(!weft_known_is_current(&self.known, first) && !reaches(&self, ORIGIN, 8));
    answer(&self, ORIGIN, 32, true);
    weft_known_forget(&self.known, first); /* of the old region: the new one stays */
    weft_known_release(first);
    CU_ASSERT(reaches(&self, ORIGIN, 32) && !reaches(&self, ORIGIN, 33));
    first = weft_known_acquire(&self.known, &op);
    weft_known_forget(&self.known, first);
    CU_ASSERT(!reaches(&self, ORIGIN, 8) && asks(&self, ORIGIN));
    weft_known_release(first);
    weft_known_release(second);
    answer(&self, ORIGIN, 64, false); /* not registered: known, not asked for again, by messages */
    CU_ASSERT(!reaches(&self, ORIGIN, 8) && !asks(&self, ORIGIN));
    answer(&self, 0, 0, false);
    CU_ASSERT(asks(&self, ORIGIN + 64));
    weft_known_close(&self.known);
}

/* The table is bounded, and keeps what is used. */
static void test_bounded(void)
{
    static const struct { uint32_t size, kept; } cases[] = {{2, 4096}, {64, 1024}, {100000, 64}};
    for (uint32_t i = 0; i < 3; i++) {
        fixture self;
        uint64_t often = 0;
        fixture_open(&self, cases[i].size, true);
        for (uint64_t k = 0; k < 10000; k++) {
            answer(&self, ORIGIN + k * 64, 64, true);
            CU_ASSERT(reaches(&self, ORIGIN + k * 64, 64));
            if (!reaches(&self, ORIGIN + k % 8 * 64, 64))
                answer(&self, ORIGIN + k % 8 * 64, 64, true);
            else
                often++;
        }
        CU_ASSERT_EQUAL(self.known.regions.count, cases[i].kept);
        CU_ASSERT(often > 9900);
        weft_known_close(&self.known);
    }
}

/* A burst asks 64 times at most, until answers come; damaged and unexpected notes do no harm. */
static void test_burst(void)
{
    fixture self;
    uint32_t asked = 0;
    fixture_open(&self, 2, true);
    for (uint64_t i = 0; i < 1000; i++)
        asked += asks(&self, ORIGIN + i);
    CU_ASSERT_EQUAL(asked, 64);
    answer(&self, ORIGIN, 500, true);
    CU_ASSERT(asks(&self, ORIGIN + 500) && !asks(&self, ORIGIN + 501));
    for (int i = 0; i < 100; i++)
        answer(&self, 0, 0, false);
    CU_ASSERT_EQUAL(self.known.asking, 0);
    weft_known_on_note(&self.known, "\3", 1);
    weft_known_close(&self.known);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("known", NULL, NULL);
    CU_add_test(suite, "random", test_random);
    CU_add_test(suite, "held", test_held);
    CU_add_test(suite, "bounded", test_bounded);
    CU_add_test(suite, "burst", test_burst);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}

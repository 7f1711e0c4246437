/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lock: src/core/lock.c itself under every schedule of three threads with up to two preemptions (and any order at each sleep), on
 * fibres: before each atomic operation another thread may run. Properties: one holder; no endless sleep; a running waiter is passed over at
 * most once by each other thread; a thread that sleeps and runs only while the lock is taken gets it after a bounded number of offers.
 * Without any one rule of the protocol the search must find a schedule that hangs or starves.
 */
#include <CUnit/Basic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/macros.h"
#include "interleave.h"

#define THREADS 3
#define OFFERS 50u

enum rule { NO_WAKE = 1, NO_COMPARE = 2, NO_SLEPT = 4, NO_GIFT = 8 };

static uint32_t since[THREADS]; /* acquisitions of the lock when a thread began to wait, or woke */
static unsigned broken;
static uint32_t acquired, passed_max, offers, offers_max;
static int holders;
static bool is_wrong, hangs, is_served;
static uintptr_t slept_bit = 2;

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
    interleave_point();
    if (atomic_load(word) != value && !(broken & NO_COMPARE))
        return;
    interleave_sleep(word, 0);
    since[interleave_self] = acquired;
}

static void wake(_Atomic uint32_t *word)
{
    interleave_point();
    if (!(broken & NO_WAKE))
        interleave_wake(word);
}

static void pause_once(void) { interleave_pause(); }

#define WEFT_LOCK_POINT() interleave_point()
#define WEFT_LOCK_SLEPT slept_bit
#define SPINS_MIN 2u
#define LOOK_EVERY 1u
#define WAKES_MAX (broken & NO_GIFT ? UINT32_MAX : 2u)
#include "core/lock.c" /* the object under test */

static weft_lock lock;

static void got_it(void)
{
    uint32_t passed = acquired - since[interleave_self];
    passed_max = passed > passed_max ? passed : passed_max;
    acquired++;
    is_wrong |= ++holders != 1;
}

static void work(int me)
{
    for (int i = 0; i < 1 + (me == 0); i++) {
        interleave_point();
        since[me] = acquired;
        weft_lock_acquire(&lock);
        got_it();
        interleave_point();
        if (me == 0 && weft_lock_is_wanted(&lock)) { /* a leader between two polls */
            holders--;
            since[me] = acquired;
            if (weft_lock_offer(&lock))
                offers++, got_it();
            else
                holders++;
        }
        holders--;
        weft_lock_release(&lock);
    }
}

static void begin(void)
{
    acquired = 0;
    holders = 0;
    is_served = false;
    weft_lock_init(&lock, 2);
}

/* Thread 0 keeps the lock and offers it until it has passed; the others run between two offers, as a woken thread does on the holder's CPU:
 * they spin, and sleep again. */
static void hold_and_offer(int me)
{
    uint32_t count = 0;
    if (me) {
        interleave_pause();
        weft_lock_acquire(&lock);
        is_served = true;
        weft_lock_release(&lock);
        return;
    }
    weft_lock_acquire(&lock);
    for (bool has_passed = false; !has_passed && !is_served && count < OFFERS; count++) {
        for (int i = 0; i < 4; i++)
            interleave_pause();
        has_passed = weft_lock_is_wanted(&lock) && weft_lock_offer(&lock);
    }
    offers_max = count > offers_max ? count : offers_max;
    weft_lock_release(&lock);
}

/* Runs schedules until all are done or one fails. */
static uint32_t search_all(unsigned without, uint32_t preemptions, void (*run)(int thread))
{
    interleave test = {.threads = run == work ? THREADS : 2, .preemptions = preemptions, .begin = begin, .run = run};
    interleave_found found;
    broken = without;
    offers_max = 0;
    slept_bit = without & NO_SLEPT ? 0 : 2;
    is_wrong = false;
    passed_max = offers = 0;
    found = interleave_search(&test);
    hangs = found.wrong;
    return found.schedules;
}

static uint32_t search(unsigned without, uint32_t preemptions) { return search_all(without, preemptions, work); }

static void every_schedule_ends(void)
{
    uint32_t count = search(0, 2);
    printf("(%u schedules) ", count);
    CU_ASSERT(!is_wrong);
    CU_ASSERT(!hangs);
    CU_ASSERT(count > 10000);
    CU_ASSERT(offers > 0);
    search(0, 0);
    CU_ASSERT(!is_wrong && !hangs && passed_max <= THREADS - 1);
}

static void every_rule_is_needed(void)
{
    static const unsigned rules[] = {NO_WAKE, NO_COMPARE, NO_SLEPT};
    for (size_t i = 0; i < weft_count(rules); i++) {
        uint32_t count = search(rules[i], 3);
        printf("(%u) ", count);
        CU_ASSERT(hangs);
        CU_ASSERT(!is_wrong);
    }
}

static void sleepers_do_not_starve(void)
{
    uint32_t count = search_all(0, 2, hold_and_offer);
    printf("(%u schedules, at most %u offers) ", count, offers_max);
    CU_ASSERT(!hangs);
    CU_ASSERT(offers_max > 0 && offers_max <= 8);
    search_all(NO_GIFT, 0, hold_and_offer);
    CU_ASSERT(offers_max == OFFERS);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("lock", NULL, NULL);
    CU_add_test(suite, "no schedule hangs or has two holders", every_schedule_ends);
    CU_add_test(suite, "a sleeping waiter is passed the lock after few offers", sleepers_do_not_starve);
    CU_add_test(suite, "without any one rule a schedule hangs", every_rule_is_needed);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}

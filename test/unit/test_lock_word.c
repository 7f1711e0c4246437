/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lock_word: the fair lock of windows (rma/lock_word.h): order of readers and writers, wrapping counts, and threads that hold it at
 * once.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "rma/lock_word.h"

/* A word whose counts are about to wrap. */
static uint64_t near_wrap(void)
{
    uint64_t count = WEFT_LOCK_MASK - 1;
    return count | count << WEFT_LOCK_BITS | count << 2 * WEFT_LOCK_BITS;
}

static void order(uint64_t start)
{
    _Atomic uint64_t lock = start;
    uint32_t writer, reader, other;

    CU_ASSERT(weft_lock_word_try(&lock, false) && weft_lock_word_try(&lock, false)); /* readers together */
    CU_ASSERT(!weft_lock_word_try(&lock, true));
    writer = weft_lock_word_take_ticket(&lock);
    CU_ASSERT(!weft_lock_word_try(&lock, false)); /* later readers do not pass the writer */
    reader = weft_lock_word_take_ticket(&lock);
    other = weft_lock_word_take_ticket(&lock);
    CU_ASSERT(!weft_lock_word_is_turn(&lock, writer, true) && !weft_lock_word_is_turn(&lock, reader, false));
    weft_lock_word_release(&lock, false);
    CU_ASSERT(!weft_lock_word_is_turn(&lock, writer, true));
    weft_lock_word_release(&lock, false);
    CU_ASSERT(weft_lock_word_is_turn(&lock, writer, true) && !weft_lock_word_is_turn(&lock, reader, false));
    weft_lock_word_enter(&lock, true);
    CU_ASSERT(!weft_lock_word_try(&lock, false) && !weft_lock_word_try(&lock, true));
    weft_lock_word_release(&lock, true);
    CU_ASSERT(weft_lock_word_is_turn(&lock, reader, false) && !weft_lock_word_is_turn(&lock, other, false));
    weft_lock_word_enter(&lock, false);
    CU_ASSERT(weft_lock_word_is_turn(&lock, other, false)); /* a reader lets the next one in */
    weft_lock_word_enter(&lock, false);
    weft_lock_word_release(&lock, false);
    CU_ASSERT(!weft_lock_word_try(&lock, true));
    weft_lock_word_release(&lock, false);
    CU_ASSERT(weft_lock_word_try(&lock, true));
    weft_lock_word_release(&lock, true);
}

static void test_order(void)
{
    order(0);
    order(near_wrap());
}

#define THREADS 4
static _Atomic uint64_t lock;
static _Atomic uint32_t readers, writers, wrong;
static uint64_t value; /* changed by writers only */

static void *hold(void *arg)
{
    uint32_t seed = (uint32_t)(uintptr_t)arg;
    uint64_t written = 0;
    for (int turn = 0; turn < 20000; turn++) {
        bool is_exclusive = rand_r(&seed) % 3 == 0;
        if (!weft_lock_word_try(&lock, is_exclusive)) {
            uint32_t ticket = weft_lock_word_take_ticket(&lock);
            while (!weft_lock_word_is_turn(&lock, ticket, is_exclusive))
                sched_yield();
            weft_lock_word_enter(&lock, is_exclusive);
        }
        is_exclusive ? writers++ : readers++;
        wrong += writers > 1 || (writers && readers);
        if (is_exclusive) {
            value++;
            written++;
        }
        is_exclusive ? writers-- : readers--;
        weft_lock_word_release(&lock, is_exclusive);
    }
    return (void *)(uintptr_t)written;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t written = 0;

    lock = near_wrap();
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hold, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) {
        void *part;
        pthread_join(threads[i], &part);
        written += (uintptr_t)part;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(value, written);
    CU_ASSERT(weft_lock_word_try(&lock, true));
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("lock word", NULL, NULL);
    CU_add_test(suite, "order", test_order);
    CU_add_test(suite, "threads", test_threads);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

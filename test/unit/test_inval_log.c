/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_inval_log: the log under many writers, with an aborted writer, with a reader that has read and not yet published; a raw thread that
 * writes.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/raw_thread.h"
#include "memmon_fixture.h"

#define WRITERS 4
#define TELLS 200000

static weft_inval_log entries;
static _Atomic int writing;
static _Atomic uint64_t read_so_far;

static void *writer(void *arg)
{
    uint64_t me = (uint64_t)(uintptr_t)arg;

    for (uint64_t i = 1; i <= TELLS; i++) {
        weft_inval_log_append(&entries, (me << 32 | i) << 1, ~(me << 32 | i)); /* end derived from start, to detect a torn pair */
        /* In every second phase no writer runs ahead of the reader by more than the log's capacity; in the others all do. */
        while (i / 4096 % 2 == 0 && atomic_load(&entries.next) - atomic_load(&read_so_far) > WEFT_INVAL_LOG_CAPACITY / 2)
            sched_yield();
    }
    atomic_fetch_sub(&writing, 1);
    return NULL;
}

typedef struct count {
    uint64_t last[WRITERS], received, torn, backward;
} count;

static void take(void *arg, weft_range range)
{
    count *c = arg;
    uint64_t word = range.start >> 1, me = word >> 32, i = word & 0xffffffff;

    c->torn += range.end != ~word || me >= WRITERS || !i || i > TELLS;
    if (me < WRITERS) {
        c->backward += i <= c->last[me];
        c->last[me] = i;
    }
    c->received++;
}

static void test_inval_log(void)
{
    pthread_t threads[WRITERS];
    count c = {.received = 0};
    uint64_t cursor = 0, lost = 0;

    atomic_store(&writing, WRITERS);
    for (uint64_t i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, writer, (void *)(uintptr_t)i);
    while (atomic_load(&writing) || weft_inval_log_is_new(&entries, cursor)) {
        uint64_t before = c.received, at = cursor;
        if (!weft_inval_log_read(&entries, &cursor, take, &c))
            lost++;
        else if (cursor == at)
            sched_yield();
        else
            CU_ASSERT_EQUAL_FATAL(c.received - before, cursor - at); /* true: nothing was missed */
        atomic_store(&read_so_far, cursor);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(c.torn, 0);
    CU_ASSERT_EQUAL(c.backward, 0);
    CU_ASSERT(c.received > 0);
    printf("(%llu received, lost count %llu times) ", (unsigned long long)c.received, (unsigned long long)lost);
}

static void ignore(void *arg, weft_range range) { (void)arg, (void)range; }

/* A writer aborted between its ticket and its last store: others do not wait for it forever, and its entry is not used. */
static void test_aborted_writer(void)
{
    static weft_inval_log cut;
    uint64_t cursor = 0;

    CU_ASSERT(weft_inval_log_read(&cut, &cursor, ignore, NULL));
    atomic_fetch_add(&cut.next, 1);
    CU_ASSERT(weft_inval_log_is_new(&cut, cursor));
    CU_ASSERT_FALSE(weft_inval_log_read(&cut, &cursor, ignore, NULL));
    CU_ASSERT_EQUAL(cursor, 1);
    atomic_store(&cut.slots[1].turn, (uint64_t)1 << 63 | 2); /* in the middle of its stores */
    atomic_fetch_add(&cut.next, 1);
    CU_ASSERT_FALSE(weft_inval_log_read(&cut, &cursor, ignore, NULL));
    CU_ASSERT_EQUAL(cursor, 2);
    for (int i = 0; i < WEFT_INVAL_LOG_CAPACITY - 1; i++) {
        weft_inval_log_append(&cut, 4096, 8192);
        CU_ASSERT(weft_inval_log_read(&cut, &cursor, ignore, NULL));
    }
    weft_inval_log_append(&cut, 4096, 8192); /* needs that slot: all readers find that entries were lost */
    CU_ASSERT(weft_inval_log_is_new(&cut, cursor));
    CU_ASSERT_FALSE(weft_inval_log_read(&cut, &cursor, ignore, NULL));
    CU_ASSERT_FALSE(weft_inval_log_is_new(&cut, cursor));
    weft_inval_log_append(&cut, 4096, 8192); /* the log continues */
    CU_ASSERT(weft_inval_log_read(&cut, &cursor, ignore, NULL));
    for (int i = 0; i <= WEFT_INVAL_LOG_CAPACITY; i++)
        weft_inval_log_append(&cut, 4096, 8192);
    CU_ASSERT_FALSE(weft_inval_log_read(&cut, &cursor, ignore, NULL)); /* more than its capacity */
}

static _Atomic int raw_ran;
static WEFT_BARE void raw_body(void *arg) { atomic_store((_Atomic int *)arg, 1); }

static void test_raw_thread(void)
{
    int id = weft_raw_thread(raw_body, &raw_ran);

    if (!WEFT_BARE_THREADS) {
        CU_ASSERT(id < 0);
        return;
    }
    CU_ASSERT_FATAL(id > 0);
    while (!atomic_load(&raw_ran))
        sched_yield();
}

/* -- a reader that has read and not yet published -- */

static weft_inval_log slow;
static _Atomic int slow_step;

static void *slow_listener(void *arg)
{
    (void)arg;
    atomic_fetch_add(&slow.busy, 1);
    atomic_store(&slow_step, 1);
    usleep(20000);
    weft_inval_log_append(&slow, 4096, 8192);
    atomic_fetch_add(&slow.busy, 1);
    return NULL;
}

static void test_busy(void)
{
    pthread_t thread;
    uint64_t cursor = 0;
    overlap o = {{4096, 8192}, 0, 0};

    pthread_create(&thread, NULL, slow_listener, NULL);
    while (!atomic_load(&slow_step))
        sched_yield();
    CU_ASSERT(weft_inval_log_is_new(&slow, cursor));
    CU_ASSERT(weft_inval_log_read(&slow, &cursor, see, &o));
    CU_ASSERT_EQUAL(o.times, 1);
    CU_ASSERT_FALSE(weft_inval_log_is_new(&slow, cursor));
    pthread_join(thread, NULL);
}

#define EVENTS 300000

static weft_inval_log between;
static _Atomic int event_wanted, event_read, is_over;

/* Both threads alternate; on one CPU they must yield. */
static void wait_in_turn(const _Atomic int *word, int value)
{
    for (unsigned n = 1; atomic_load_explicit(word, memory_order_acquire) != value; n++)
        if (n % 4096 == 0)
            sched_yield();
}

static void *quick_listener(void *arg)
{
    for (int i = 1; i <= EVENTS; i++) {
        wait_in_turn(&event_wanted, i);
        if (atomic_load(&is_over))
            break;
        atomic_fetch_add_explicit(&between.busy, 1, memory_order_acq_rel);
        atomic_store_explicit(&event_read, i, memory_order_release); /* from here on an unmapping may return */
        weft_inval_log_append(&between, 4096, 8192);
        atomic_fetch_add_explicit(&between.busy, 1, memory_order_acq_rel);
    }
    return arg;
}

/* A look-up after an event was read finds it, tracked or reported, or becoming reported between the two loads of the look-up. */
static void test_no_gap(void)
{
    pthread_t thread;
    int missed = 0;

    pthread_create(&thread, NULL, quick_listener, NULL);
    uint64_t deadline = weft_clock_ns() + 3000000000u; /* a loaded machine does fewer rounds */
    for (int i = 1; i <= EVENTS; i++) {
        uint64_t cursor = atomic_load(&between.next);
        while (atomic_load(&between.busy) & 1)
            sched_yield();
        atomic_store(&is_over, weft_clock_ns() > deadline);
        atomic_store(&event_wanted, i);
        if (atomic_load(&is_over))
            break;
        wait_in_turn(&event_read, i);
        missed += !weft_inval_log_is_new(&between, cursor);
        while (atomic_load(&between.next) == cursor)
            sched_yield();
    }
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(missed, 0);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("inval log", NULL, NULL);
    CU_add_test(suite, "writers", test_inval_log);
    CU_add_test(suite, "aborted writer", test_aborted_writer);
    CU_add_test(suite, "busy", test_busy);
    CU_add_test(suite, "no gap between tracked and reported", test_no_gap);
    CU_add_test(suite, "raw thread", test_raw_thread);
    return run_tests();
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lock: src/core/lock.c itself under every schedule of three threads with up to two preemptions (and any order at each sleep), on
 * fibres: before each atomic operation another thread may run. Properties: one holder; no thread sleeps for good; a thread that waits
 * and runs is passed over at most once by each other thread (without preemptions: one that is kept from running does not wait). Each rule of the protocol, taken away, must make the
 * search find an end that hangs.
 */
#include <CUnit/Basic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "test/transports/sim/fibre.h"

#define THREADS 3
#define STEPS 4000 /* of one schedule: a thread that spins for good passes it */

enum rule { NO_WAKE = 1, NO_COMPARE = 2, NO_SLEPT = 4 };
enum phase { READY, PAUSED, BLOCKED, OVER };

typedef struct thread {
    weft_fibre *fibre;
    enum phase phase;
    _Atomic uint32_t *on; /* BLOCKED */
    bool waits;           /* for the lock */
    uint32_t since;       /* acquisitions of the lock when it began to wait, or woke */
} thread;

/* One schedule: the choices that were made, and how many there were each time. */
static struct {
    uint8_t choice[STEPS], options[STEPS];
    uint32_t depth, steps;
    uint32_t preemptions, preemptions_max;
} path;

static thread threads[THREADS];
static int now;
static unsigned broken;
static uint32_t acquired, passed_most, offers;
static int holders;
static bool is_wrong, hangs;
static uintptr_t slept_bit = 2;

static void hand_back(enum phase phase)
{
    threads[now].phase = phase;
    weft_fibre_pause(threads[now].fibre);
}

static void point(void) { hand_back(READY); }

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
    point();
    if (atomic_load(word) != value && !(broken & NO_COMPARE))
        return;
    threads[now].on = word;
    hand_back(BLOCKED);
    threads[now].since = acquired;
}

static void wake(_Atomic uint32_t *word)
{
    point();
    for (int i = 0; i < THREADS && !(broken & NO_WAKE); i++)
        if (threads[i].phase == BLOCKED && threads[i].on == word)
            threads[i].phase = READY;
}

static void pause_once(void) { hand_back(PAUSED); }

#define WEFT_LOCK_POINT() point()
#define WEFT_LOCK_SLEPT slept_bit
#define SPINS_MIN 2u
#define LOOK_EVERY 1u
#include "core/lock.c" /* the object under test */

static weft_lock lock;

static void got_it(void)
{
    thread *self = &threads[now];
    uint32_t passed = acquired - self->since;
    self->waits = false;
    passed_most = passed > passed_most ? passed : passed_most;
    acquired++;
    is_wrong |= ++holders != 1;
}

static void work(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (int i = 0; i < 1 + (me == 0); i++) {
        point();
        threads[me].since = acquired;
        weft_lock_acquire(&lock);
        got_it();
        point();
        if (me == 0 && weft_lock_is_wanted(&lock)) { /* a leader between two polls */
            holders--;
            threads[me].since = acquired;
            if (weft_lock_offer(&lock))
                offers++, got_it();
            else
                holders++;
        }
        holders--;
        weft_lock_release(&lock);
    }
    threads[me].phase = OVER;
}

/* Which thread runs next. Going on with the same one comes first; another one is a preemption. After a pause others run first. */
static int choose(void)
{
    int options[THREADS], count = 0;
    enum phase phase = threads[now].phase;
    uint32_t at = path.steps;
    if (at >= STEPS)
        return -1;
    if (phase == READY)
        options[count++] = now;
    if (phase != READY || path.preemptions < path.preemptions_max)
        for (int i = 1; i <= THREADS; i++) {
            int next = (now + i) % THREADS;
            if (threads[next].phase == READY && !(next == now && phase == READY))
                options[count++] = next;
        }
    for (int i = 1; i <= THREADS && !count; i++) /* all that could run have paused */
        if (threads[(now + i) % THREADS].phase == PAUSED)
            options[count++] = (now + i) % THREADS;
    if (!count)
        return -1;
    path.options[at] = (uint8_t)count;
    if (at >= path.depth)
        path.choice[at] = 0, path.depth = at + 1;
    path.steps++;
    path.preemptions += phase == READY && path.choice[at] > 0;
    return options[path.choice[at]];
}

static void play(void)
{
    int left = THREADS;
    acquired = 0;
    holders = 0;
    path.steps = path.preemptions = 0;
    now = 0;
    weft_lock_init(&lock, 2);
    for (int i = 0; i < THREADS; i++)
        threads[i] = (thread){.fibre = weft_fibre_new(work, (void *)(intptr_t)i, 65536), .phase = READY};
    while (left) {
        int next = choose();
        if (next < 0) {
            hangs = true;
            break;
        }
        for (int i = 0; i < THREADS; i++) /* those that paused have let others run */
            if (threads[i].phase == PAUSED)
                threads[i].phase = READY;
        now = next;
        if (!weft_fibre_resume(threads[now].fibre))
            left--;
    }
    for (int i = 0; i < THREADS; i++)
        weft_fibre_free(threads[i].fibre);
}

/* The next schedule, depth first. */
static bool next_path(void)
{
    uint32_t at = path.steps;
    while (at > 0 && path.choice[at - 1] + 1 >= path.options[at - 1])
        at--;
    if (!at)
        return false;
    path.choice[at - 1]++;
    path.depth = at;
    return true;
}

/* Schedules tried until all are through or one is bad. */
static uint32_t search(unsigned without, uint32_t preemptions)
{
    uint32_t count = 0;
    broken = without;
    slept_bit = without & NO_SLEPT ? 0 : 2;
    is_wrong = hangs = false;
    passed_most = offers = 0;
    memset(&path, 0, sizeof path);
    path.preemptions_max = preemptions;
    do {
        play();
        count++;
    } while (!is_wrong && !hangs && next_path());
    return count;
}

static void every_schedule_ends(void)
{
    uint32_t count = search(0, 2);
    printf("(%u schedules) ", count);
    CU_ASSERT(!is_wrong);
    CU_ASSERT(!hangs);
    CU_ASSERT(count > 10000);
    CU_ASSERT(offers > 0);
    search(0, 0);
    CU_ASSERT(!is_wrong && !hangs && passed_most <= THREADS - 1);
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

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("lock", NULL, NULL);
    CU_add_test(suite, "no schedule hangs or lets two in", every_schedule_ends);
    CU_add_test(suite, "without any one rule it hangs", every_rule_is_needed);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}

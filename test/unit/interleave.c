/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interleave: see interleave.h. Depth-first search over the choices which thread runs next.
 */
#include "interleave.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/transports/sim/fibre.h"

#define STACK_BYTES 65536
#define RESCUE_NS 1000000000u /* a sleep with this limit or a longer one should have been ended by a wake-up */

enum phase { READY, PAUSED, BLOCKED, OVER };

typedef struct thread {
    weft_fibre *fibre;
    enum phase phase;
    const volatile void *on; /* BLOCKED */
    uint64_t limit_ns;
    bool is_timed_out;
    const char *file; /* last point reached */
    int line;
} thread;

/* One schedule: the choices made, and the number of alternatives of each. */
static struct {
    uint8_t choice[INTERLEAVE_STEPS], options[INTERLEAVE_STEPS];
    uint32_t depth, steps;
    uint32_t preemptions, timeouts, delays;
} path;

static const interleave *test;
static thread threads[INTERLEAVE_THREADS];
static uint64_t now_ns;
static const char *wrong;
static bool is_closing, is_printing;
int interleave_self = -1;

static void hand_back(enum phase phase)
{
    threads[interleave_self].phase = phase;
    weft_fibre_pause(threads[interleave_self].fibre);
}

void interleave_point_at(const char *file, int line)
{
    if (interleave_self < 0)
        return;
    threads[interleave_self].file = file;
    threads[interleave_self].line = line;
    hand_back(READY);
}

void interleave_pause(void)
{
    if (interleave_self >= 0)
        hand_back(PAUSED);
}

bool interleave_sleep(const volatile void *on, uint64_t limit_ns)
{
    thread *self = &threads[interleave_self];
    self->on = on;
    self->limit_ns = limit_ns;
    self->is_timed_out = false;
    hand_back(BLOCKED);
    return !self->is_timed_out;
}

void interleave_wake(const volatile void *on)
{
    for (int i = 0; i < test->threads; i++)
        if (threads[i].phase == BLOCKED && threads[i].on == on)
            threads[i].phase = READY;
}

uint64_t interleave_clock_ns(void) { return ++now_ns; }

void interleave_fail(const char *why)
{
    if (!wrong)
        wrong = why;
}

/* Threads that may run next. The running one comes first; another one is a preemption. After a pause others run first. */
static int count_ready(uint8_t options[])
{
    int count = 0, self = interleave_self;
    enum phase phase = threads[self].phase;
    uint32_t left = test->delays - path.delays;
    if (phase == READY)
        options[count++] = (uint8_t)self;
    if (test->delays || phase != READY || path.preemptions < test->preemptions)
        for (int i = 1; i <= test->threads; i++) {
            int next = (self + i) % test->threads;
            if (threads[next].phase == READY && !(next == self && phase == READY))
                options[count++] = (uint8_t)next;
        }
    for (int i = 1; i <= test->threads && !count; i++) /* all runnable threads have paused */
        if (threads[(self + i) % test->threads].phase == PAUSED)
            options[count++] = (uint8_t)((self + i) % test->threads);
    if (test->delays && count > 1 && (uint32_t)count > left + 1)
        count = (int)left + 1;
    return count;
}

/* Sleepers whose limit may end the sleep: any while others run and the schedule has time-outs left, else the one with the shortest
 * limit. */
static int count_limited(uint8_t options[], bool is_idle)
{
    uint64_t shortest = UINT64_MAX;
    int count = 0;
    for (int i = 0; i < test->threads; i++)
        if (threads[i].phase == BLOCKED && threads[i].limit_ns && threads[i].limit_ns < shortest)
            shortest = threads[i].limit_ns;
    if (is_idle && shortest >= RESCUE_NS && shortest != UINT64_MAX)
        interleave_fail("a lost wake-up: only a long limit ends this sleep");
    for (int i = 0; i < test->threads; i++) {
        const thread *one = &threads[i];
        if (one->phase == BLOCKED && one->limit_ns &&
            (is_idle ? one->limit_ns == shortest : path.timeouts < test->timeouts && one->limit_ns != INTERLEAVE_IDLE_NS))
            options[count++] = (uint8_t)i;
    }
    return count;
}

/* -1: none may */
static int choose(void)
{
    uint8_t options[2 * INTERLEAVE_THREADS];
    int ready = count_ready(options), count = ready + count_limited(options + ready, !ready);
    uint32_t at = path.steps;
    thread *next;
    if (!count || at >= INTERLEAVE_STEPS) {
        interleave_fail(count ? "a thread spins for good" : "threads sleep for good");
        return -1;
    }
    path.options[at] = (uint8_t)count;
    if (at >= path.depth)
        path.choice[at] = 0, path.depth = at + 1;
    path.steps++;
    path.preemptions += threads[interleave_self].phase == READY && path.choice[at] > 0 && path.choice[at] < ready;
    path.delays += path.choice[at] < ready ? path.choice[at] : 0;
    path.timeouts += ready && path.choice[at] >= ready;
    next = &threads[options[path.choice[at]]];
    if (next->phase == BLOCKED) {
        next->is_timed_out = true;
        now_ns += next->limit_ns;
        next->phase = READY;
    }
    return options[path.choice[at]];
}

/* Used for many schedules. */
static void live(void *arg)
{
    int me = (int)(intptr_t)arg;
    while (!is_closing) {
        test->run(me);
        hand_back(OVER);
    }
}

static void close_threads(void)
{
    is_closing = true;
    for (int i = 0; i < test->threads; i++) {
        interleave_self = i;
        if (threads[i].phase == OVER)
            weft_fibre_resume(threads[i].fibre);
        weft_fibre_free(threads[i].fibre);
    }
    interleave_self = -1;
    is_closing = false;
    memset(threads, 0, sizeof threads);
}

static void play(void)
{
    int left = test->threads;
    path.steps = path.preemptions = path.timeouts = path.delays = 0;
    now_ns = 1;
    interleave_self = -1;
    test->begin();
    for (int i = 0; i < test->threads; i++)
        threads[i].phase = READY;
    interleave_self = 0;
    while (left && !wrong) {
        int next = choose();
        if (next < 0)
            break;
        for (int i = 0; i < test->threads; i++) /* threads that paused have let others run */
            if (threads[i].phase == PAUSED)
                threads[i].phase = READY;
        interleave_self = next;
        if (is_printing)
            printf("  %d goes on at %s:%d%s\n", next, threads[next].file, threads[next].line,
                   threads[next].is_timed_out ? " by its limit" : "");
        weft_fibre_resume(threads[next].fibre);
        left -= threads[next].phase == OVER;
        if (test->check)
            test->check();
    }
    interleave_self = -1;
    if (!wrong && test->end)
        test->end();
}

/* Selects the next schedule, depth first. */
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

static void open_threads(void)
{
    wrong = NULL;
    memset(threads, 0, sizeof threads);
    for (int i = 0; i < test->threads; i++)
        threads[i] = (thread){.fibre = weft_fibre_new(live, (void *)(intptr_t)i, STACK_BYTES), .file = "its beginning"};
}

interleave_found interleave_search(const interleave *of)
{
    interleave_found found = {0};
    test = of;
    memset(&path, 0, sizeof path);
    open_threads();
    do {
        play();
        found.schedules++;
    } while (!wrong && next_path());
    close_threads();
    found.wrong = wrong;
    found.steps = path.steps;
    return found;
}

/* Replays the last schedule and prints it. */
static void print_schedule(void)
{
    open_threads();
    path.depth = path.steps;
    is_printing = true;
    play();
    is_printing = false;
    close_threads();
}

bool interleave_passes(const interleave *of, const char *what, uint64_t *schedules)
{
    bool is_verbose = getenv("MODEL_VERBOSE") != NULL;
    interleave_found found = interleave_search(of);
    *schedules += found.schedules;
    if (found.wrong || is_verbose)
        printf("\n  %s: schedule %u of %u steps: %s", what, found.schedules, found.steps, found.wrong ? found.wrong : "good");
    if (found.wrong && is_verbose)
        print_schedule();
    return !found.wrong;
}

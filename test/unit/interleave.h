/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interleave: runs a few threads of a test, as fibres, through all schedules with a bounded number of preemptions and early time-outs.
 * Sequentially consistent. The code under test calls point, pause, sleep and wake where the kernel or another CPU could intervene. A
 * failing schedule is replayed by the same choices.
 */
#ifndef WEFT_TEST_UNIT_INTERLEAVE_H
#define WEFT_TEST_UNIT_INTERLEAVE_H

#include <stdbool.h>
#include <stdint.h>

#define INTERLEAVE_THREADS 4
#define INTERLEAVE_STEPS 6000 /* of one schedule: exceeded by a thread that spins forever */

typedef struct interleave {
    int threads;
    uint32_t preemptions, timeouts; /* bounds of one schedule, if delays is 0 */
    uint32_t delays; /* instead of preemptions: choices of another thread than the default one, also at sleeps */
    void (*begin)(void);            /* before each schedule */
    void (*run)(int thread);
    void (*check)(void);            /* after each step, or NULL */
    void (*end)(void);              /* after each completed schedule, or NULL */
} interleave;

typedef struct interleave_found {
    uint32_t schedules;
    const char *wrong; /* why the last schedule failed; NULL: it did not */
    uint32_t steps;    /* of the last schedule */
} interleave_found;

/* Runs all schedules, or those up to the first failing one. */
interleave_found interleave_search(const interleave *test);
/* Searches, adds to *schedules, and reports a failing schedule (MODEL_VERBOSE: every search, and the steps). */
bool interleave_passes(const interleave *test, const char *what, uint64_t *schedules);

/* -- called by the code under test -- */
extern int interleave_self; /* the running thread; -1: none */
void interleave_point_at(const char *file, int line);
#define interleave_point() interleave_point_at(__FILE__, __LINE__)
void interleave_pause(void); /* lets other threads run first */
/* Sleeps until wake; limit_ns 0: no limit. False: the limit ended it. INTERLEAVE_IDLE_NS: not before all others sleep. */
#define INTERLEAVE_IDLE_NS 1
bool interleave_sleep(const volatile void *on, uint64_t limit_ns);
void interleave_wake(const volatile void *on);
uint64_t interleave_clock_ns(void); /* advances when all sleep */
void interleave_fail(const char *why);

#endif

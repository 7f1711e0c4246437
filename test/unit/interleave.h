/* SPDX-License-Identifier: BSD-3-Clause
 *
 * interleave: runs a few threads of a test, as fibres, through every schedule with a bounded number of preemptions, and of sleeps that
 * their limit ends early. Sequentially consistent. The code under test calls point, pause, sleep and wake where a kernel or another
 * CPU could come between; a schedule that ends ill is played again by the same choices.
 */
#ifndef TEST_UNIT_INTERLEAVE_H
#define TEST_UNIT_INTERLEAVE_H

#include <stdbool.h>
#include <stdint.h>

#define INTERLEAVE_THREADS 4
#define INTERLEAVE_STEPS 6000 /* of one schedule: a thread that spins for good passes it */

typedef struct interleave {
    int threads;
    uint32_t preemptions, timeouts; /* at most so many in one schedule; or, if not 0, ... */
    uint32_t delays; /* ... instead of preemptions: times that another thread runs than the one that would, also where one sleeps */
    void (*begin)(void);            /* before each schedule */
    void (*run)(int thread);
    void (*check)(void);            /* after each step, or NULL */
    void (*end)(void);              /* after each schedule that ended, or NULL */
} interleave;

typedef struct interleave_found {
    uint32_t schedules;
    const char *wrong; /* why the last schedule is bad; NULL: none is */
    uint32_t steps;    /* of the last schedule */
} interleave_found;

/* All schedules, or those up to the first bad one. */
interleave_found interleave_search(const interleave *test);
/* Plays the last one again and prints it. */
void interleave_print(void);

/* -- for the code under test -- */
extern int interleave_self; /* the thread that runs; -1: none */
void interleave_point_at(const char *file, int line);
#define interleave_point() interleave_point_at(__FILE__, __LINE__)
void interleave_pause(void); /* other threads run first */
/* Until wake; limit_ns 0: no limit. False: the limit ended it. INTERLEAVE_IDLE_NS: once all others sleep, and not earlier. */
#define INTERLEAVE_IDLE_NS 1
bool interleave_sleep(const volatile void *on, uint64_t limit_ns);
void interleave_wake(const volatile void *on);
uint64_t interleave_clock_ns(void); /* passes when all sleep */
void interleave_fail(const char *why);

#endif

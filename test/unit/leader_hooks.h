/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leader_hooks: included before the library's files in test_leader's build (-include). Before each atomic operation another thread may run
 * (interleave.h); system calls that sleep, wake, yield and read the clock are replaced. The lock is tested by test_lock: here another
 * thread may run before it is taken, and it sleeps without spinning.
 */
#ifndef WEFT_TEST_UNIT_LEADER_HOOKS_H
#define WEFT_TEST_UNIT_LEADER_HOOKS_H

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "interleave.h"

long hooked_futex(long number, const volatile void *word, int operation, uint32_t value, const struct timespec *limit, ...);
int hooked_poll(struct pollfd *fds, nfds_t count, int limit_ms);
extern int hooked_holder; /* the thread that holds the lock; -1: none */

#define IS_LOCK (__builtin_strstr(__FILE__, "core/lock.") != NULL)
#define POINT() (IS_LOCK ? (void)0 : interleave_point_at(__FILE__, __LINE__))
/* The lock's holder alone accesses what it loads, except what neighbours write; reads by a launcher change nothing. */
#define LOAD_POINT(p) (hooked_holder == interleave_self && !__builtin_strstr(#p, "page->asleep") ? (void)0 : POINT())
#define IS_QUIET(name) (__builtin_strstr(name, "asleep_on") || __builtin_strstr(name, "since_ns") || __builtin_strstr(name, "woken_ns") || \
                        __builtin_strstr(name, "tickets"))
#define STORE_POINT(p) (IS_QUIET(#p) ? (void)0 : POINT())

#undef weft_cpu_relax
#define syscall hooked_futex
#define poll hooked_poll
#define sched_yield() interleave_pause()
#define weft_clock_ns() interleave_clock_ns()
#define weft_cpu_relax() interleave_pause()
#define SPINS_MIN 1u
#define LOOK_EVERY 1u

#include "atomic_hooks.h"
#include "core/lock.h"
#define weft_lock_acquire(lock) \
    (interleave_point_at(__FILE__, __LINE__), (weft_lock_acquire)(lock), (void)(hooked_holder = interleave_self))
#define weft_lock_release(lock) (hooked_holder = -1, (weft_lock_release)(lock))

#endif

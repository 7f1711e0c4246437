/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock: mutex of a worker's threads. Uncontended, acquire and release are one compare-and-swap each. A release passes the lock to the
 * running thread that has waited longest. A sleeping one is woken early, and any thread may take the lock until it runs: the lock never
 * waits for the scheduler. Waiting threads push themselves onto `word`; only the holder moves them into the queue.
 * docs/architecture.md: "Workers".
 */
#ifndef WEFT_CORE_LOCK_H
#define WEFT_CORE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct weft_lock_waiter weft_lock_waiter; /* on the stack of its thread */

typedef struct weft_lock {
    _Atomic uintptr_t word;   /* WEFT_LOCK_HELD, WEFT_LOCK_SLEPT, and the youngest waiter that is not in the queue yet */
    weft_lock_waiter *first, *last; /* queue, oldest first; owned by the holder; NULL: empty */
    _Atomic uint32_t spins;   /* pauses before a waiter sleeps; adapts, at most spins_max */
    uint32_t spins_max;       /* constant */
    _Atomic uint32_t visitors; /* threads that retry weft_lock_try instead of queueing */
    uint64_t passes;          /* times that a waiter got the lock; owned by the holder */
} weft_lock;

#define WEFT_LOCK_HELD ((uintptr_t)1)
#ifndef WEFT_LOCK_SLEPT /* test/unit/test_lock.c */
#define WEFT_LOCK_SLEPT ((uintptr_t)2) /* a waiter went to sleep since the holder's last check */
#endif

void weft_lock_init(weft_lock *lock, uint32_t spins_max);
/* Slow path of weft_lock_acquire: spins, then sleeps, until this thread holds the lock. */
void weft_lock_wait(weft_lock *lock);
/* Slow path of weft_lock_release: passes the lock to a running waiter, or frees it and wakes the oldest. */
void weft_lock_pass(weft_lock *lock);

/* Takes the lock if it is free; true: taken. Does not block or queue. */
static inline bool weft_lock_try(weft_lock *lock)
{
    uintptr_t none = 0;
    return atomic_compare_exchange_strong_explicit(&lock->word, &none, WEFT_LOCK_HELD, memory_order_acquire, memory_order_relaxed);
}

static inline void weft_lock_acquire(weft_lock *lock)
{
    if (__builtin_expect(!weft_lock_try(lock), 0))
        weft_lock_wait(lock);
}

static inline void weft_lock_release(weft_lock *lock)
{
    uintptr_t held = WEFT_LOCK_HELD;
    if (__builtin_expect(lock->first || !atomic_compare_exchange_strong_explicit(&lock->word, &held, 0, memory_order_release,
                                                                                memory_order_relaxed), 0))
        weft_lock_pass(lock);
}

/* Holder: whether a thread waits for the lock. Plain loads. */
static inline bool weft_lock_is_wanted(const weft_lock *lock)
{
    return lock->first || atomic_load_explicit(&lock->word, memory_order_relaxed) != WEFT_LOCK_HELD ||
           atomic_load_explicit(&lock->visitors, memory_order_relaxed);
}

/* Holder, if weft_lock_is_wanted: passes the lock to the longest-waiting running thread and queues behind all others. If all waiters
 * sleep, wakes the oldest and keeps the lock; with visitors, releases it briefly. Returns with the lock held; true: it was released. */
bool weft_lock_offer(weft_lock *lock);

#endif

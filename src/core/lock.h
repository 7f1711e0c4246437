/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock: mutual exclusion among the threads of a worker. Uncontended it is one compare-and-swap each way. Contended it goes to the thread
 * that has waited longest, if that thread runs; a sleeping one is woken ahead, and until it runs any thread may take the lock. So no
 * waiting thread that runs is passed over, and the lock never waits for the scheduler.
 * Threads that wait push themselves onto `word`; only the holder moves them into the queue. docs/architecture.md: "Workers".
 */
#ifndef WEFT_CORE_LOCK_H
#define WEFT_CORE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct weft_lock_waiter weft_lock_waiter; /* lives on the stack of its thread */

typedef struct weft_lock {
    _Atomic uintptr_t word;   /* WEFT_LOCK_HELD, WEFT_LOCK_SLEPT, and the latest thread that waits and is not in the queue yet */
    weft_lock_waiter *first, *last; /* the queue, oldest first; holder's */
    _Atomic uint32_t spins;   /* pauses before a thread that waits sleeps; adapts between ... */
    uint32_t spins_max;       /* ... a few and this */
    _Atomic uint32_t visitors; /* threads that try the lock and do not wait in the queue */
    uint64_t passes;          /* times that the lock went to a thread that waited for it; holder's */
} weft_lock;

#define WEFT_LOCK_HELD ((uintptr_t)1)
#ifndef WEFT_LOCK_SLEPT /* test/unit/test_lock.c */
#define WEFT_LOCK_SLEPT ((uintptr_t)2) /* a waiting thread went to sleep since the holder looked */
#endif

void weft_lock_init(weft_lock *lock, uint32_t spins_max);
void weft_lock_wait(weft_lock *lock);
void weft_lock_pass(weft_lock *lock);

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

/* Holder: does a thread wait for the lock? Plain loads. */
static inline bool weft_lock_is_wanted(const weft_lock *lock)
{
    return lock->first || atomic_load_explicit(&lock->word, memory_order_relaxed) != WEFT_LOCK_HELD ||
           atomic_load_explicit(&lock->visitors, memory_order_relaxed);
}

/* Holder, where is_wanted: lets the thread that has waited longest in and waits for the lock behind all others; if that thread sleeps,
 * wakes it ahead and returns with the lock still held. True: the lock was away. */
bool weft_lock_offer(weft_lock *lock);

#endif

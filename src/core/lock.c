/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock: contended paths. See lock.h. Invariant: no wake-up is lost. A waiter sleeps by changing its state, then the word (SLEPT). The
 * holder reads the state, then releases the word by a compare-and-swap that fails if the word changed. The later one sees the other.
 * test/unit/test_lock.c runs this file through every interleaving.
 */
#include "core/lock.h"

#include <stddef.h>

#ifndef WEFT_LOCK_POINT /* test/unit/test_lock.c defines it as a preemption point, and the functions below */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#define WEFT_LOCK_POINT() ((void)0)

static void sleep_while(_Atomic uint32_t *word, uint32_t value) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0); }
static void wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }
static void pause_once(void) { weft_cpu_relax(); }
#endif

#ifndef SPINS_MIN
#define SPINS_MIN 32u
#endif
#ifndef LOOK_EVERY
#define LOOK_EVERY 8u /* pauses between reads of the word, which the holder writes */
#endif
#define VISIT 64u /* pauses during which the lock is left free for visitors */
#ifndef WAKES_MAX
#define WAKES_MAX 4u /* wake-ups of one waiter that found the lock taken, before it is passed to it asleep */
#endif
#define FLAGS (WEFT_LOCK_HELD | WEFT_LOCK_SLEPT)

enum state { RUNS, SLEEPS, WAKES, OWNS };

struct weft_lock_waiter {
    _Alignas(64) _Atomic uint32_t state; /* enum state; a futex */
    weft_lock_waiter *next, *prev; /* in the queue; on the word: next is the next older waiter */
    uint32_t wakes; /* times that it was woken; owned by the holder */
};

void weft_lock_init(weft_lock *lock, uint32_t spins_max)
{
    *lock = (weft_lock){.spins_max = spins_max};
    atomic_init(&lock->spins, spins_max);
}

/* -- the queue: requires the lock -- */

/* next NULL: appends. */
static void insert_before(weft_lock *lock, weft_lock_waiter *waiter, weft_lock_waiter *next)
{
    waiter->next = next;
    waiter->prev = next ? next->prev : lock->last;
    *(waiter->prev ? &waiter->prev->next : &lock->first) = waiter;
    *(next ? &next->prev : &lock->last) = waiter;
}

static void unlink_waiter(weft_lock *lock, weft_lock_waiter *waiter)
{
    *(waiter->prev ? &waiter->prev->next : &lock->first) = waiter->next;
    *(waiter->next ? &waiter->next->prev : &lock->last) = waiter->prev;
}

/* Moves waiters from the word (youngest first) to the end of the queue (oldest first). */
static void collect(weft_lock *lock)
{
    weft_lock_waiter *waiter, *older, *oldest = NULL;
    uintptr_t word;
    WEFT_LOCK_POINT();
    if (atomic_load_explicit(&lock->word, memory_order_relaxed) == WEFT_LOCK_HELD)
        return;
    WEFT_LOCK_POINT();
    word = atomic_exchange_explicit(&lock->word, WEFT_LOCK_HELD, memory_order_acquire);
    for (waiter = (weft_lock_waiter *)(word & ~FLAGS); waiter; waiter = older) {
        older = waiter->next;
        waiter->next = oldest;
        oldest = waiter;
    }
    for (waiter = oldest; waiter; waiter = older) {
        older = waiter->next;
        insert_before(lock, waiter, NULL);
    }
}

static bool change(weft_lock_waiter *waiter, uint32_t from, uint32_t to)
{
    WEFT_LOCK_POINT();
    return atomic_compare_exchange_strong_explicit(&waiter->state, &from, to, memory_order_acq_rel, memory_order_relaxed);
}

/* Makes a waiter the owner if its state is `from`. True: the caller must not touch the lock any more. */
static bool has_passed_to(weft_lock *lock, weft_lock_waiter *one, uint32_t from)
{
    weft_lock_waiter *next = one->next;
    unlink_waiter(lock, one);
    lock->passes++;
    if (change(one, from, OWNS))
        return true;
    lock->passes--;
    insert_before(lock, one, next);
    return false;
}

/* Passes the lock to the oldest running waiter, or to the oldest one if it was woken often in vain: a thread that is woken on the holder's
 * CPU runs in the holder's place, finds the lock taken and sleeps again. True: passed; the caller must not touch the lock any more.
 * *to_wake: the oldest waiter if it slept. It may have returned before the wake; then the wake hits a futex without sleepers, which is
 * harmless. */
static bool has_passed(weft_lock *lock, weft_lock_waiter **to_wake)
{
    weft_lock_waiter *oldest = lock->first;
    if (oldest && oldest->wakes >= WAKES_MAX) {
        *to_wake = oldest;
        if (has_passed_to(lock, oldest, SLEEPS) || has_passed_to(lock, oldest, WAKES))
            return true;
        *to_wake = NULL; /* it runs */
    }
    if (oldest && change(oldest, SLEEPS, WAKES)) {
        oldest->wakes++;
        *to_wake = oldest;
    }
    for (weft_lock_waiter *one = lock->first, *next; one; one = next) {
        next = one->next;
        WEFT_LOCK_POINT();
        if (atomic_load_explicit(&one->state, memory_order_relaxed) == RUNS && has_passed_to(lock, one, RUNS))
            return true;
    }
    return false;
}

void weft_lock_pass(weft_lock *lock)
{
    weft_lock_waiter *to_wake = NULL;
    uintptr_t held;
    do {
        collect(lock);
        if (has_passed(lock, &to_wake))
            break;
        held = WEFT_LOCK_HELD;
        WEFT_LOCK_POINT();
    } while (!atomic_compare_exchange_strong_explicit(&lock->word, &held, 0, memory_order_release, memory_order_relaxed));
    if (to_wake)
        wake(&to_wake->state);
}

/* -- threads that wait -- */

/* Takes the lock if the word is free and no other thread is faster. */
static bool has_taken(weft_lock *lock)
{
    uintptr_t word;
    WEFT_LOCK_POINT();
    word = atomic_load_explicit(&lock->word, memory_order_relaxed);
    if (word & WEFT_LOCK_HELD)
        return false;
    WEFT_LOCK_POINT();
    return atomic_compare_exchange_strong_explicit(&lock->word, &word, word | WEFT_LOCK_HELD, memory_order_acquire, memory_order_relaxed);
}

static void leave_queue(weft_lock *lock, weft_lock_waiter *self)
{
    collect(lock);
    unlink_waiter(lock, self);
    lock->passes++;
}

/* Moves `spins` an eighth of the way towards its aim: twice the recent need; half after a failure (as glibc's adaptive mutex). */
static void adapt(weft_lock *lock, uint32_t used, bool is_vain)
{
    uint32_t spins = atomic_load_explicit(&lock->spins, memory_order_relaxed), aim = is_vain ? spins / 2 : 2 * used + SPINS_MIN;
    aim = aim < SPINS_MIN ? SPINS_MIN : aim > lock->spins_max ? lock->spins_max : aim;
    atomic_store_explicit(&lock->spins, aim < spins ? spins - (spins - aim + 7) / 8 : spins + (aim - spins + 7) / 8, memory_order_relaxed);
}

/* True: this thread holds the lock. */
static bool has_spun(weft_lock *lock, weft_lock_waiter *self)
{
    uint32_t spins = atomic_load_explicit(&lock->spins, memory_order_relaxed);
    for (uint32_t i = 0; i < spins; i++) {
        WEFT_LOCK_POINT();
        if (atomic_load_explicit(&self->state, memory_order_acquire) == OWNS) {
            adapt(lock, i, false);
            return true;
        }
        if (i % LOOK_EVERY == 0 && has_taken(lock)) {
            leave_queue(lock, self);
            adapt(lock, i, false);
            return true;
        }
        pause_once();
    }
    adapt(lock, spins, true);
    return false;
}

/* Sleeps until the holder wakes this thread or passes the lock to it. */
static void sleep_on_state(weft_lock *lock, weft_lock_waiter *self)
{
    uint32_t state;
    if (!change(self, RUNS, SLEEPS))
        return; /* this thread owns the lock */
    WEFT_LOCK_POINT();
    if (atomic_fetch_or_explicit(&lock->word, WEFT_LOCK_SLEPT, memory_order_acq_rel) & WEFT_LOCK_HELD)
        while (atomic_load_explicit(&self->state, memory_order_acquire) == SLEEPS)
            sleep_while(&self->state, SLEEPS);
    WEFT_LOCK_POINT();
    state = atomic_load_explicit(&self->state, memory_order_acquire);
    while (state != OWNS && !change(self, state, RUNS))
        state = atomic_load_explicit(&self->state, memory_order_acquire);
}

static void wait_in_queue(weft_lock *lock, weft_lock_waiter *self)
{
    while (!has_spun(lock, self))
        sleep_on_state(lock, self);
}

void weft_lock_wait(weft_lock *lock)
{
    weft_lock_waiter self;
    uintptr_t word;
    atomic_init(&self.state, RUNS);
    self.wakes = 0;
    for (;;) {
        if (has_taken(lock))
            return;
        WEFT_LOCK_POINT();
        word = atomic_load_explicit(&lock->word, memory_order_relaxed);
        if (!(word & WEFT_LOCK_HELD))
            continue;
        self.next = (weft_lock_waiter *)(word & ~FLAGS);
        WEFT_LOCK_POINT();
        if (atomic_compare_exchange_strong_explicit(&lock->word, &word, (uintptr_t)&self | (word & FLAGS), memory_order_release,
                                                    memory_order_relaxed))
            break;
    }
    wait_in_queue(lock, &self);
}

bool weft_lock_offer(weft_lock *lock)
{
    weft_lock_waiter self, *to_wake = NULL;
    bool has;
    collect(lock);
    atomic_init(&self.state, WAKES); /* so that has_passed skips it */
    self.wakes = 0;
    insert_before(lock, &self, NULL);
    has = has_passed(lock, &to_wake);
    if (to_wake)
        wake(&to_wake->state);
    if (!has)
        unlink_waiter(lock, &self);
    if (!has && !atomic_load_explicit(&lock->visitors, memory_order_relaxed))
        return false;
    if (!has) {
        weft_lock_release(lock);
        for (uint32_t i = 0; i < VISIT && (atomic_load_explicit(&lock->word, memory_order_relaxed) & WEFT_LOCK_HELD) == 0; i++)
            pause_once();
        weft_lock_acquire(lock);
        return true;
    }
    atomic_store_explicit(&self.state, RUNS, memory_order_release);
    wait_in_queue(lock, &self);
    return true;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * leader: see leader.h.
 */
#include "core/leader.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "core/worker.h"
#include "core/world_type.h"

#define HEIR_NS 250000l   /* sleep of an heir between two checks for a leader */
#define ASIDE_NS 50000l   /* first such sleep of a leader that stepped aside */
#define YIELDS 8u          /* yields of a parked thread before it sleeps, if no CPU is spare */
#define YIELD_DEAR_NS 200000u
#ifndef LOOK_EVERY        /* test/unit/leader_hooks.h */
#define LOOK_EVERY 64u    /* pauses of a spinning parked thread between checks of the clock and the leader */
#endif

enum signal { RUNS, SLEEPS, WOKEN };

static weft_wait *leader_of(const weft_worker *worker) { return atomic_load_explicit(&worker->leader, memory_order_relaxed); }

static void set_leader(weft_worker *worker, weft_wait *wait) { atomic_store_explicit(&worker->leader, wait, memory_order_relaxed); }

/* Requires worker->lock: so `wait` cannot go away meanwhile. */
static void wake(weft_wait *wait)
{
    wait->worker->counters[WEFT_COUNT_UNPARKED] += atomic_load_explicit(&wait->signal, memory_order_relaxed) != WOKEN;
    if (atomic_exchange_explicit(&wait->signal, WOKEN, memory_order_acq_rel) != SLEEPS)
        return;
    wait->worker->has_woken = true;
    syscall(SYS_futex, &wait->signal, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void opened(weft_completion *completion) { wake(weft_container(completion, weft_wait, completion)); }

/* Attaches the wait to what wakes it. False: nothing would wake it. */
static bool attach(weft_wait *wait)
{
    wait->completion = (weft_completion){.left = 1, .open = opened};
    if (wait->attach)
        return wait->attach(wait, &wait->completion);
    if (!wait->req)
        return wait->is_over;
    if (wait->req->completion)
        return false;
    wait->req->completion = &wait->completion;
    return true;
}

static void detach(weft_wait *wait)
{
    if (wait->attach)
        wait->attach(wait, NULL);
    else if (wait->req && wait->req->completion == &wait->completion)
        wait->req->completion = NULL;
}

/* Spins, if a CPU is spare. True: woken, or the heir found no leader at two checks in a row (a leader that left is mostly back by then). */
static bool has_spun(weft_wait *wait, bool is_heir, uint64_t spin_ns)
{
    weft_worker *worker = wait->worker;
    uint64_t begin_ns = weft_clock_ns();
    uint32_t vacant = 0;
    for (uint32_t i = 1; atomic_load_explicit(&wait->signal, memory_order_acquire) != WOKEN; i++) {
        weft_cpu_relax();
        if (i % LOOK_EVERY)
            continue;
        vacant = leader_of(worker) ? 0 : vacant + 1;
        if (is_heir && vacant >= 2)
            return true;
        if (weft_clock_ns() - begin_ns >= spin_ns)
            return false;
    }
    return true;
}

/* Sleeps on wait->signal. True: woken; false: the limit has passed. */
static bool has_slept(weft_wait *wait, const struct timespec *limit)
{
    uint32_t value = RUNS;
    if (!atomic_compare_exchange_strong_explicit(&wait->signal, &value, SLEEPS, memory_order_acq_rel, memory_order_acquire))
        return true;
    while (atomic_load_explicit(&wait->signal, memory_order_acquire) == SLEEPS)
        if (syscall(SYS_futex, &wait->signal, FUTEX_WAIT_PRIVATE, SLEEPS, limit, NULL, 0) != 0 && errno == ETIMEDOUT)
            break;
    value = SLEEPS;
    return !atomic_compare_exchange_strong_explicit(&wait->signal, &value, RUNS, memory_order_acq_rel, memory_order_acquire);
}

/* Yields before it sleeps, if no CPU is spare: the thread it waits for may be about to run, and a yield is cheaper than a sleep. A long
 * yield means that another program got the CPU; then it stops. */
static bool has_yielded(weft_wait *wait)
{
    for (uint32_t i = 0; i < YIELDS; i++) {
        uint64_t begin_ns = weft_clock_ns();
        sched_yield();
        if (atomic_load_explicit(&wait->signal, memory_order_acquire) == WOKEN)
            return true;
        if (weft_clock_ns() - begin_ns > YIELD_DEAR_NS)
            break;
    }
    return false;
}

static void wait_parked(weft_wait *wait, bool is_heir, uint64_t spin_ns)
{
    static const struct timespec heir_limit = {.tv_nsec = HEIR_NS}, aside_limit = {.tv_nsec = ASIDE_NS};
    const struct timespec *limit = !is_heir ? NULL : wait->is_aside ? &aside_limit : &heir_limit;
    weft_worker *worker = wait->worker;
    uint32_t leaves = atomic_load_explicit(&worker->leaves, memory_order_relaxed), seen;
    if (spin_ns && worker->spare_cpus) {
        bool is_woken = false;
        if (atomic_fetch_add_explicit(&worker->spinners, 1, memory_order_relaxed) < worker->spare_cpus)
            is_woken = has_spun(wait, is_heir, spin_ns);
        atomic_fetch_sub_explicit(&worker->spinners, 1, memory_order_relaxed);
        if (is_woken)
            return;
    } else if (has_yielded(wait)) {
        return;
    }
    for (; !has_slept(wait, limit); limit = &heir_limit) {
        seen = atomic_load_explicit(&worker->leaves, memory_order_relaxed);
        wait->is_resigned = seen == leaves;
        if (wait->is_resigned || !leader_of(worker))
            return;
        leaves = seen;
    }
}

/* Parks until woken. An heir resigns after two checks with the same leader; then a leader that leaves wakes a parked thread (call_heir). */
static void park(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    bool is_heir = !worker->heir && !wait->is_resigned;
    uint64_t spin_ns;
    atomic_store_explicit(&wait->signal, RUNS, memory_order_relaxed);
    wait->is_seen = false;
    weft_list_append(worker->parked.next, &wait->link);
    if (is_heir)
        worker->heir = wait;
    wait->is_resigned = false;
    worker->counters[WEFT_COUNT_PARKED]++;
    wait->is_aside = !leader_of(worker);
    if (!wait->is_shown)
        weft_worker_show(wait);
    spin_ns = weft_wait_policy_spin_ns(&worker->world->wait_policy);
    weft_worker_unlock(worker);
    wait_parked(wait, is_heir, spin_ns);
    weft_worker_lock(worker);
    weft_list_remove(&wait->link);
    detach(wait);
    if (worker->heir == wait)
        worker->heir = NULL;
}

/* Nothing wakes this wait (BYE at finalize): it polls beside the leader and does not arm. */
static void poll_beside(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    if (weft_worker_poll(worker) > 0)
        return;
    weft_worker_unlock(worker);
    sched_yield();
    weft_worker_lock(worker);
}

static void step_down(weft_worker *worker)
{
    set_leader(worker, NULL);
    atomic_store_explicit(&worker->leaves, atomic_load_explicit(&worker->leaves, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* If the leader has woken a sleeping thread and no CPU is spare, it parks, else that thread would wait for the end of the leader's time
 * slice. It parks as heir and leads again soon if no other thread does. */
static bool steps_aside(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    bool has_woken = worker->has_woken;
    worker->has_woken = false;
    if (weft_likely(!has_woken) || worker->spare_cpus || worker->heir || wait->is_armed || !attach(wait))
        return false;
    step_down(worker);
    park(wait);
    return true;
}

/* Offers the lock to waiting threads; true: it was dropped. At most once between two polls, else two threads could offer it to each other
 * and never poll. This limit does not hold for visitors (weft_counters_read), which offer nothing. */
static bool offers_lock(weft_wait *wait)
{
    weft_lock *lock = &wait->worker->lock;
    if (weft_likely(!weft_lock_is_wanted(lock)))
        return false;
    wait->has_offered = (!wait->has_offered || atomic_load_explicit(&lock->visitors, memory_order_relaxed)) && weft_lock_offer(lock);
    return wait->has_offered;
}

bool weft_leader_progress(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    weft_wait *leader = leader_of(worker);
    if (weft_unlikely(offers_lock(wait)))
        return false;
    if (weft_likely(leader == wait))
        return !steps_aside(wait);
    if (!wait->has_led || !leader) { /* a sleeping leader is woken, and parks */
        wait->has_led = true;
        wait->is_resigned = false; /* so that it becomes the heir if it steps aside */
        if (leader && worker->is_asleep)
            worker->world->sleep_ops->wake(worker);
        worker->is_asleep = false;
        set_leader(worker, wait);
        return true;
    }
    if (wait->is_armed)
        weft_worker_disarm(worker, worker->iface_count);
    wait->is_armed = false;
    if (attach(wait))
        park(wait);
    else
        poll_beside(wait);
    return false;
}

int weft_leader_wake_parked(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    int n = 0;
    for (weft_list_link *link = worker->parked.next; link != &worker->parked; link = link->next) {
        weft_wait *one = weft_container(link, weft_wait, link);
        if (!one->is_over || one->is_seen || !one->is_over(one))
            continue;
        one->is_seen = true;
        wake(one);
        n++;
    }
    return n;
}

/* Keeps the invariant of leader.h: without leader and heir, the latest parked thread becomes heir and is woken. */
static void call_heir(weft_worker *worker)
{
    if (leader_of(worker) || worker->heir || weft_list_is_empty(&worker->parked))
        return;
    worker->heir = weft_container(worker->parked.next, weft_wait, link);
    wake(worker->heir);
}

void weft_leader_yield(weft_worker *worker)
{
    if (worker->is_asleep) /* another thread leads and sleeps */
        return;
    /* also if no thread has parked: a former leader may be about to park */
    step_down(worker);
    call_heir(worker);
}

void weft_leader_leave(weft_wait *wait)
{
    if (leader_of(wait->worker) == wait)
        step_down(wait->worker);
    call_heir(wait->worker);
    if (weft_unlikely(wait->worker->on_leave != NULL))
        wait->worker->on_leave(wait->worker);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait: turns of a wait: poll, spin, yield, arm, sleep. See wait.h.
 * Invariant: between arm and sleep the caller's condition is checked and every iface is polled once more, so no wake-up is lost.
 */
#include "core/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu_place.h"
#include "base/event.h"
#include "base/knob.h"
#include "base/status.h"
#include "core/callout.h"
#include "core/leader.h"
#include "core/reg.h"
#include "core/worker.h"
#include "mem/wakeup_sock.h"

#define RELAX_EVERY 16
#define CLOCK_EVERY 64               /* empty polls between clock reads */
#define SLEEP_LIMIT_NS 1000000000ull /* safety net for lost wake-ups: longest sleep; work found after it counts as LOST_WAKEUPS */
#define LONG_MAX_NS 4194304u         /* most additional spin time for a long message */
#define PROMPT_NS 100000000ull       /* a later poll means preemption: what it finds may be new and does not count (in sim it does) */

static void disarm(weft_wait *wait)
{
    wait->is_armed = false;
    weft_worker_disarm(wait->worker, wait->worker->iface_count);
}

/* Ifaces with descriptors (networks without shared memory beside them) raise them for their own events only. Work left by other threads,
 * of the program or of the registration cache, needs a descriptor as well; it goes into the slot of self (wakeups[0]), which has no
 * wakeup. */
static void arm_wakeup_sock(weft_wait *wait)
{
    weft_world *world = wait->worker->world;
    if (!wait->worker->is_threaded && !wait->worker->awaited_regs)
        return;
    if (world->wakeup_fd < 0)
        world->wakeup_fd = weft_wakeup_sock_open(&world->page->sock);
    weft_page_sleep_begin(world->page);
    wait->wakeups[0].fd = world->wakeup_fd;
    if (world->wakeup_fd < 0)
        wait->wakeups[0].within_ns = WEFT_WAKEUP_SOCK_NAP_NS;
}

/* If no iface has a wakeup (a rank alone), only other threads can wake this one: through the futex of the rank page. */
static void arm_own_wakeup(weft_wait *wait)
{
    weft_rank_page *page = wait->worker->world->page;
    bool has_fd = false;
    for (uint32_t i = 0; i < wait->worker->iface_count; i++) {
        if (wait->wakeups[i].futex)
            return;
        has_fd |= wait->wakeups[i].fd >= 0;
    }
    if (has_fd) {
        if (!weft_wakeup_sock_name(&page->sock) || wait->worker->world->wakeup_fd >= 0)
            arm_wakeup_sock(wait);
        return;
    }
    wait->wakeups[0] = (weft_wakeup){.futex = (uint32_t *)&page->asleep, .value = weft_page_sleep_begin(page), .fd = -1};
}

/* Arms all ifaces or none. False: an iface still has senders that would not raise its wakeup (AGAIN). */
static bool arm(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    if (weft_unlikely(worker->is_armed)) { /* by the former leader, which was woken and will disarm */
        weft_worker_unlock(worker);
        sched_yield();
        weft_worker_lock(worker);
        return false;
    }
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        wait->wakeups[i] = (weft_wakeup){.futex = NULL, .fd = -1};
        if (worker->ifaces[i]->ops->arm(worker->ifaces[i], &wait->wakeups[i]) == WEFT_AGAIN) {
            weft_worker_disarm(worker, i);
            return false;
        }
    }
    wait->is_armed = worker->is_armed = true;
    arm_own_wakeup(wait);
    return true;
}

static uint64_t shortest_limit(const weft_wait *wait)
{
    uint64_t limit = SLEEP_LIMIT_NS;
    for (uint32_t i = 0; i < wait->worker->iface_count; i++)
        if (wait->wakeups[i].within_ns && wait->wakeups[i].within_ns < limit)
            limit = wait->wakeups[i].within_ns;
    return limit;
}

/* Whether a long yield runs another rank, or another program, decides about the next ones. */
static void look_for_others(weft_world *world, uint64_t now_ns)
{
    bool is_alone;
    if (weft_cpu_share_look(&world->cpu_share, world->boot, now_ns, &is_alone))
        weft_wait_policy_set_alone(&world->wait_policy, is_alone);
}

/* Requires returns_left. */
static void return_home(weft_world *world)
{
    if (sched_getcpu() == world->home_cpu)
        return;
    world->returns_left--;
    weft_cpu_place_at(world->home_cpu);
}

/* sched_yield may run another rank much faster than a futex does, may do nothing, or may cost another program's time slice: the policy
 * measures it. *is_dear: it took long. Returns what it counts for, ns. */
static uint32_t yield(weft_worker *worker, bool *is_dear)
{
    weft_rank_page *page = worker->world->page;
    uint64_t begin, end;
    uint32_t counts_ns;
    weft_worker_unlock(worker);
    begin = weft_clock_ns();
    atomic_store_explicit(&page->yields, 1, memory_order_relaxed);
    sched_yield();
    atomic_store_explicit(&page->yields, 0, memory_order_relaxed);
    end = weft_clock_ns();
    weft_worker_lock(worker);
    counts_ns = weft_wait_policy_yielded(&worker->world->wait_policy, end - begin);
    *is_dear = end - begin >= WEFT_WAIT_YIELD_DEAR_NS;
    if (weft_unlikely(*is_dear))
        look_for_others(worker->world, end);
    return counts_ns;
}

bool weft_wait_yield(weft_worker *worker, weft_wait_yields *yields)
{
    bool is_dear;
    if (!yields->left || worker->is_threaded || !weft_wait_policy_may_yield(&worker->world->wait_policy, 0))
        return false;
    yield(worker, &is_dear);
    if (weft_unlikely(worker->world->returns_left))
        return_home(worker->world);
    yields->left = is_dear ? 0 : yields->left - 1;
    yields->has_yielded = true;
    return true;
}

/* Yields if the policy allows it. */
static bool has_yielded(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    bool is_dear;
    if (!weft_wait_policy_may_yield(&worker->world->wait_policy, wait->yielded_ns))
        return false;
    wait->yielded_ns += yield(worker, &is_dear);
    if (weft_unlikely(worker->world->returns_left) && !wait->is_background) /* the progress thread stays where it is */
        return_home(worker->world);
    return true;
}

/* An event came while the wait yielded, or it ended. */
static inline void end_yields(weft_wait *wait)
{
    if (weft_likely(!wait->yielded_ns))
        return;
    weft_wait_policy_yield_succeeded(&wait->worker->world->wait_policy);
    wait->yielded_ns = 0;
}

/* Records the duration of this wake-up: the waker, if any, stored its time in woken_ns. Returns the time. */
static uint64_t record_wake_up(weft_world *world, uint64_t begin_ns)
{
    uint64_t woken = atomic_load_explicit(&world->page->woken_ns, memory_order_relaxed), now = weft_clock_ns();
    if (woken >= begin_ns && woken <= now)
        weft_wait_policy_woken(&world->wait_policy, now - woken);
    return now;
}

/* After a sleep that its limit ended, before disarm: whether a wakeup was raised since. Checks descriptors as well as page->asleep, since
 * weft_wakeup_sock_send resets the latter first. */
static bool is_wakeup_raised(const weft_wait *wait, uint32_t asleep)
{
    const weft_worker *worker = wait->worker;
    struct pollfd fds[WEFT_WORKER_IFACES];
    nfds_t n = 0;
    if (atomic_load_explicit(&worker->world->page->asleep, memory_order_acquire) != asleep)
        return true;
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        const weft_wakeup *wakeup = &wait->wakeups[i];
        if (wakeup->futex && __atomic_load_n(wakeup->futex, __ATOMIC_ACQUIRE) != wakeup->value)
            return true;
        if (!wakeup->futex && wakeup->fd >= 0)
            fds[n++] = (struct pollfd){.fd = wakeup->fd, .events = POLLIN};
    }
    return n && poll(fds, n, 0) > 0;
}

/* After a sleep: calls worker->on_long_wait when the wait has slept for a second, two, four ... So a program that waits for hours causes
 * few messages. In the simulator, whose time is its own, only sleeps to the limit count. */
static void watch_long(weft_wait *wait, uint64_t slept_ns, bool has_timed_out)
{
    weft_worker *worker = wait->worker;
    if (!wait->has_slept) {
        wait->slept_ns = 0;
        wait->long_ns = SLEEP_LIMIT_NS;
    }
    if (worker->world->sleep_ops->aside)
        slept_ns = has_timed_out ? SLEEP_LIMIT_NS : 0;
    wait->slept_ns += slept_ns;
    if (wait->slept_ns < wait->long_ns)
        return;
    wait->long_ns *= 2;
    if (worker->on_long_wait)
        worker->on_long_wait(worker);
}

static void sleep_on_wakeups(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    weft_world *world = worker->world;
    uint64_t limit = shortest_limit(wait), begin = weft_clock_ns(), end;
    uint32_t asleep = atomic_load_explicit(&world->page->asleep, memory_order_relaxed);
    bool has_timed_out, was_not_woken;
    atomic_store_explicit(&weft_call_wait(world->page)->asleep_on, 1, memory_order_relaxed);
    WEFT_EVENT_RAISE(WEFT_EVENT_SLEEP_BEGUN, NULL, wait->why, wait->peer, wait->tag, (int64_t)wait->bytes);
    worker->is_asleep = true;
    if (worker->is_threaded) { /* not weft_worker_unlock, which would wake the leader: all work was just checked */
        weft_call_lock(WEFT_CALL_FREE);
        weft_lock_release(&worker->lock);
    }
    has_timed_out = world->sleep_ops->sleep(worker, wait->wakeups, worker->iface_count, limit) && limit == SLEEP_LIMIT_NS; /* no timer */
    weft_worker_lock(worker);
    was_not_woken = has_timed_out && !is_wakeup_raised(wait, asleep); /* after the lock, which may take long: events come meanwhile */
    worker->is_asleep = false;
    atomic_store_explicit(&weft_call_wait(world->page)->asleep_on, 0, memory_order_relaxed);
    worker->counters[WEFT_COUNT_SLEEPS]++;
    end = record_wake_up(world, begin);
    WEFT_EVENT_RAISE(WEFT_EVENT_SLEEP_ENDED, NULL, wait->why, (int64_t)(end - begin));
    wait->yielded_ns = 0;
    if (weft_unlikely(world->returns_left) && !wait->is_background)
        return_home(world);
    if (world->wait_policy.yields) {
        look_for_others(world, end);
        weft_wait_policy_slept(&world->wait_policy, end);
    }
    disarm(wait);
    if (!wait->is_background)
        watch_long(wait, end - begin, has_timed_out);
    wait->has_slept = true;
    if (was_not_woken && weft_worker_poll(worker) <= 0)
        return; /* sleeps again: to spin once a second takes a quarter of a CPU where polls are slow */
    if (was_not_woken && (weft_clock_ns() - begin < SLEEP_LIMIT_NS + PROMPT_NS || world->sleep_ops->aside))
        worker->counters[WEFT_COUNT_LOST_WAKEUPS]++;
    wait->idle = 0;
    wait->spin = (weft_wait_spin){0};
}

/* A network may transfer a long message inside polls without events (libfabric's tcp answers a peer's reads there). So a wait for one spins
 * longer, by 1 ns per byte (a slow link). */
static uint64_t long_ns(const weft_wait *wait)
{
    return wait->worker->wants_fd ? wait->bytes < LONG_MAX_NS ? wait->bytes : LONG_MAX_NS : 0;
}

/* Whether to spin on: until the wait has used its CPU time. Preempted time does not count. */
static bool is_spinning(weft_wait *wait, const weft_wait_policy *policy)
{
    uint64_t limit = weft_wait_policy_spin_ns(policy);
    if (!limit)
        return false;
    weft_wait_spin_record(&wait->spin, weft_clock_ns());
    if (limit != UINT64_MAX && wait->spin.had_ns >= limit + long_ns(wait))
        return false;
    wait->idle = policy->spins > CLOCK_EVERY ? policy->spins - CLOCK_EVERY : 0;
    return true;
}

static __attribute__((noinline)) void turn_idle(weft_wait *wait)
{
    const weft_wait_policy *policy = &wait->worker->world->wait_policy;
    if (wait->is_armed) {
        sleep_on_wakeups(wait);
        return;
    }
    if (has_yielded(wait))
        return;
    if (is_spinning(wait, policy))
        return;
    if (!wait->is_shown && !wait->is_background)
        weft_worker_show(wait);
    weft_reg_reclaim(wait->worker);
    arm(wait);
}

/* Delivers events, then polls: callbacks that raise events all the time do not keep the wait from progress. True: the lock was dropped;
 * check the condition again. Not while armed: a callback may take long. */
static bool has_delivered(weft_wait *wait)
{
    if (!atomic_load_explicit(&weft_event_pending_in_wait, memory_order_relaxed) || wait->is_armed || wait->is_background)
        return false;
    weft_worker_callout_begin(wait->worker);
    atomic_load_explicit(&weft_event_deliver, memory_order_relaxed)(true);
    weft_worker_callout_end(wait->worker);
    weft_worker_poll(wait->worker);
    return true;
}

void weft_wait_progress(weft_wait *wait)
{
    weft_worker *worker = wait->worker;
    if (weft_unlikely(weft_worker_is_special(worker)) && (has_delivered(wait) || (worker->is_threaded && !weft_leader_progress(wait))))
        return;
    if (weft_worker_poll(worker) > 0 || (weft_unlikely(worker->is_threaded) && weft_leader_wake_parked(wait))) {
        wait->idle = 0;
        wait->spin = (weft_wait_spin){0};
        end_yields(wait);
        if (weft_unlikely(wait->is_armed))
            disarm(wait);
        return;
    }
    worker->empty_turns++;
    if (weft_likely(++wait->idle <= worker->world->wait_policy.spins) && !wait->is_armed) {
        if (wait->idle % RELAX_EVERY == 0) /* a pause takes as long as a cache line transfer: not at every poll */
            weft_cpu_relax();
        return;
    }
    turn_idle(wait);
}

void weft_wait_pause(weft_wait *wait)
{
    end_yields(wait);
    if (wait->is_armed)
        disarm(wait);
    if (wait->is_shown)
        atomic_store_explicit(&weft_call_wait(wait->worker->world->page)->since_ns, 0, memory_order_release);
    wait->idle = 0;
    wait->is_shown = wait->has_slept = false;
    wait->spin = (weft_wait_spin){0};
}

void weft_wait_close(weft_wait *wait)
{
    weft_wait_pause(wait);
    if (weft_unlikely(wait->has_led))
        weft_leader_leave(wait);
}

static bool sleep_on_futex(const weft_wakeup *wakeup, uint64_t limit_ns)
{
    struct timespec limit = {(time_t)(limit_ns / 1000000000u), (long)(limit_ns % 1000000000u)};
    return syscall(SYS_futex, wakeup->futex, FUTEX_WAIT, wakeup->value, &limit, NULL, 0) != 0 && errno == ETIMEDOUT;
}

/* Sleeps on one futex, or on any number of descriptors. Linux before 6.7 cannot wait on both, so with a second source each iface must
 * offer a descriptor (weft_iface_params.wants_fd). */
static bool sleep_here(weft_worker *worker, const weft_wakeup *wakeups, uint32_t count, uint64_t limit_ns)
{
    struct pollfd fds[WEFT_WORKER_IFACES];
    const weft_wakeup *futex = NULL;
    nfds_t n = 0;
    (void)worker;
    for (uint32_t i = 0; i < count; i++) {
        if (wakeups[i].futex)
            futex = &wakeups[i];
        else if (wakeups[i].fd >= 0)
            fds[n++] = (struct pollfd){.fd = wakeups[i].fd, .events = POLLIN};
    }
    if (futex && !n)
        return sleep_on_futex(futex, limit_ns);
    return poll(fds, n, (int)((limit_ns + 999999u) / 1000000u)) == 0;
}

static void wake_here(weft_worker *worker) { weft_page_wake(worker->world->page); }

const weft_sleep_ops weft_sleep_ops_here = {.sleep = sleep_here, .wake = wake_here};

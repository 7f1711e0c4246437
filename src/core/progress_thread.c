/* SPDX-License-Identifier: BSD-3-Clause
 *
 * progress_thread: see progress_thread.h. The thread waits as the program's threads do (core/wait, core/leader), but leaves the worker to
 * them as soon as one wants the lock or leads, and naps before it looks again.
 * Invariant: between its looks it holds nothing of the worker: is_helping is true only inside of help().
 */
#include "core/progress_thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "core/call_status.h"
#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"

#define NAP_MIN_NS 30000u     /* how long the program must have been outside MPI */
#define NAP_MAX_NS 250000u    /* naps double up to this while the program is inside, or nothing is under way */
#define IDLE_NAPS 4u          /* naps with nothing under way before the thread rests: calling it costs the program a system call */
#define LATE_NS 1000000u      /* a nap that is so much longer shows that no CPU is free */
#define PENALTY_MIN_NS 4000000u
#define PENALTY_MAX_NS 256000000u
#define FRUGAL_POLLS 64u      /* empty polls before the thread sleeps, if no CPU is spare */
#define EXIT_NS 200000000u    /* how long an exit without finalize waits for the thread */

enum state { NONE, RUNS, RESTS, STOPS };
enum sight { IDLE, BUSY, BLOCKED, FREE };

struct weft_progress_thread {
    weft_worker *worker;
    _Atomic uint32_t state;  /* enum state; a futex */
    _Atomic bool has_ended;
    bool has_thread, has_cpus;
    bool is_cautious;        /* stays away for a while where no CPU is free */
    pid_t process;           /* that started the thread; a forked child has none */
    pthread_t thread;        /* owned by close */
    pthread_t itself;        /* of the thread, set by it */
    cpu_set_t cpus;          /* of the process when the world opened: its threads may be bound to fewer now */
    /* owned by the thread: */
    uint64_t nap_ns, penalty_ns;
    uint32_t idle_naps;
};

static uint32_t state_of(const weft_progress_thread *self) { return atomic_load_explicit(&self->state, memory_order_acquire); }

static bool has_changed(weft_progress_thread *self, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&self->state, &from, to);
}

static void sleep_while(weft_progress_thread *self, uint32_t state, const struct timespec *limit)
{
    syscall(SYS_futex, &self->state, FUTEX_WAIT_PRIVATE, state, limit, NULL, 0);
}

static void wake(weft_progress_thread *self) { syscall(SYS_futex, &self->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

static void nap(weft_progress_thread *self)
{
    uint64_t ns = self->nap_ns + self->penalty_ns, begin_ns = weft_clock_ns();
    struct timespec limit = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    sleep_while(self, RUNS, &limit);
    if (!self->is_cautious)
        return;
    if (weft_clock_ns() - begin_ns > ns + LATE_NS)
        self->penalty_ns = !self->penalty_ns ? PENALTY_MIN_NS : self->penalty_ns < PENALTY_MAX_NS ? 2 * self->penalty_ns : PENALTY_MAX_NS;
    else
        self->penalty_ns = self->penalty_ns / 2 < PENALTY_MIN_NS ? 0 : self->penalty_ns / 2;
}

/* Requires worker->lock. Until the worker is lent nothing else of it may be read. */
static enum sight look(weft_worker *worker)
{
    bool was_visited;
    if (!__atomic_load_n(&worker->is_threaded, __ATOMIC_ACQUIRE) || !weft_worker_needs_help(worker))
        return IDLE;
    if (atomic_load_explicit(&worker->leader, memory_order_relaxed))
        return worker->is_asleep ? BLOCKED : BUSY;
    was_visited = worker->was_visited;
    worker->was_visited = false;
    return was_visited ? BUSY : FREE;
}

/* Calls of a node area are performed in order, so one that is left to a thread of the program may hold up others: that thread leads. */
static bool goes_on(const weft_progress_thread *self, const weft_wait *wait)
{
    const weft_worker *worker = self->worker;
    const weft_wait *leader = atomic_load_explicit(&worker->leader, memory_order_relaxed);
    return (!leader || leader == wait) && !weft_lock_is_wanted(&worker->lock) && weft_worker_needs_help(worker) &&
           !(worker->has_barred_area && !weft_list_is_empty(&worker->parked)) && state_of(self) != STOPS;
}

static void help(weft_progress_thread *self)
{
    weft_worker *worker = self->worker;
    weft_wait wait;
    worker->counters[WEFT_COUNT_PROGRESS_TURNS]++;
    worker->is_helping = true;
    weft_wait_begin(&wait, worker, WEFT_WAIT_REASON_NONE, WEFT_ANY, WEFT_ANY_TAG, 0);
    wait.is_background = true;
    do {
        weft_wait_progress(&wait);
        if (!worker->spare_cpus && wait.idle > FRUGAL_POLLS && !wait.is_armed)
            weft_wait_cut_short(&wait);
    } while (goes_on(self, &wait));
    weft_wait_end(&wait);
    worker->is_helping = false;
}

/* worker->on_leave */
static void wake_on_leave(weft_worker *worker)
{
    worker->on_leave = NULL;
    if (has_changed(worker->progress_thread, RESTS, RUNS))
        wake(worker->progress_thread);
}

/* Requires worker->lock, which it releases. */
static void rest(weft_progress_thread *self, bool until_leave)
{
    weft_worker *worker = self->worker;
    bool rests = has_changed(self, RUNS, RESTS), was_lent = __atomic_load_n(&worker->is_threaded, __ATOMIC_SEQ_CST);
    if (until_leave)
        worker->on_leave = rests ? wake_on_leave : NULL;
    weft_lock_release(&worker->lock);
    /* lent since the look: weft_progress_thread_call may have read the state before */
    if (rests && !until_leave && !was_lent && __atomic_load_n(&worker->is_threaded, __ATOMIC_SEQ_CST))
        has_changed(self, RESTS, RUNS);
    while (state_of(self) == RESTS)
        sleep_while(self, RESTS, NULL);
    self->nap_ns = NAP_MIN_NS;
    self->idle_naps = 0;
}

static void turn(weft_progress_thread *self)
{
    weft_worker *worker = self->worker;
    enum sight sight;
    nap(self);
    weft_lock_acquire(&worker->lock);
    sight = state_of(self) == STOPS ? IDLE : look(worker);
    self->idle_naps = sight == IDLE ? self->idle_naps + 1 : 0;
    self->nap_ns = sight == FREE ? NAP_MIN_NS : self->nap_ns < NAP_MAX_NS / 2 ? 2 * self->nap_ns : NAP_MAX_NS;
    if (sight == BLOCKED || self->idle_naps >= IDLE_NAPS) {
        rest(self, sight == BLOCKED);
        return;
    }
    if (sight == FREE)
        help(self);
    weft_lock_release(&worker->lock);
}

static void *run(void *given)
{
    weft_progress_thread *self = given;
    self->itself = pthread_self();
    pthread_setname_np(pthread_self(), "weft-progress");
    prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
    if (self->has_cpus)
        sched_setaffinity(0, sizeof self->cpus, &self->cpus);
    self->nap_ns = NAP_MIN_NS;
    while (state_of(self) != STOPS)
        turn(self);
    atomic_store_explicit(&self->has_ended, true, memory_order_release);
    return NULL;
}

/* -- the program's threads -- */

/* The process exits without finalize: other libraries are about to be torn down. The exit may have come out of a call of MPI, which holds
 * the lock: so this waits only for some time. */
static void stop_at_exit(void)
{
    weft_worker *worker = weft_world_now ? weft_world_now->workers[0] : NULL;
    weft_progress_thread *self = worker ? worker->progress_thread : NULL;
    uint64_t begin_ns = weft_clock_ns();
    if (!self || !self->has_thread || self->process != getpid())
        return;
    atomic_store(&self->state, STOPS);
    wake(self);
    while (!atomic_load_explicit(&self->has_ended, memory_order_acquire) && weft_clock_ns() - begin_ns < EXIT_NS) {
        if (weft_lock_try(&worker->lock)) {
            weft_worker_wake_helper(worker);
            weft_lock_release(&worker->lock);
        }
        usleep(100);
    }
}

static void start(weft_progress_thread *self)
{
    static atomic_flag is_registered = ATOMIC_FLAG_INIT;
    sigset_t all, before;
    int rc;
    sigfillset(&all); /* signals must be handled by the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    self->process = getpid();
    rc = pthread_create(&self->thread, NULL, run, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    self->has_thread = rc == 0;
    if (rc) {
        atomic_store(&self->state, STOPS);
        weft_log_info("no progress thread (%d): operations progress inside of calls of MPI", rc);
    } else if (!atomic_flag_test_and_set(&is_registered)) {
        atexit(stop_at_exit);
    }
}

void weft_progress_thread_call(weft_worker *worker)
{
    weft_progress_thread *self = worker->progress_thread;
    atomic_store_explicit(&worker->wants_thread, false, memory_order_relaxed);
    if (!atomic_load_explicit(&worker->helped, memory_order_relaxed) || weft_call_depth() > 1)
        return;
    if (state_of(self) == NONE && has_changed(self, NONE, RUNS))
        start(self);
    if (state_of(self) == STOPS)
        return;
    if (!worker->is_threaded) {
        worker->is_lent = true;
        __atomic_store_n(&worker->is_threaded, true, __ATOMIC_SEQ_CST);
    }
    if (has_changed(self, RESTS, RUNS))
        wake(self);
}

bool weft_progress_thread_is_barred(const weft_worker *worker)
{
    return worker->is_lent && worker->is_helping && pthread_equal(worker->progress_thread->itself, pthread_self());
}

void weft_progress_thread_open(weft_world *world)
{
    weft_worker *worker = world->workers[0];
    weft_progress_thread *self;
    if (weft_knob.progress_thread == WEFT_PROGRESS_THREAD_OFF || world->boot->size == 1)
        return;
    self = worker->progress_thread = calloc(1, sizeof *self);
    if (!self)
        return;
    self->worker = worker;
    self->is_cautious = weft_knob.progress_thread == WEFT_PROGRESS_THREAD_AUTO;
    self->has_cpus = sched_getaffinity(0, sizeof self->cpus, &self->cpus) == 0;
    worker->helps = !self->is_cautious || worker->spare_cpus;
}

void weft_progress_thread_close(weft_worker *worker)
{
    weft_progress_thread *self = worker->progress_thread;
    if (!self)
        return;
    atomic_store(&self->state, STOPS);
    wake(self);
    if (self->has_thread && self->process == getpid()) {
        weft_lock_acquire(&worker->lock);
        weft_worker_wake_helper(worker);
        weft_lock_release(&worker->lock);
        pthread_join(self->thread, NULL);
    }
    worker->is_threaded &= !worker->is_lent;
    worker->is_lent = false;
    worker->helps = false;
    worker->progress_thread = NULL;
    free(self);
}

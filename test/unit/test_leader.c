/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_leader: threads that wait in one worker. core/leader.c, core/wait.c, core/lock.c and the wakeup of mem/rank_page.c themselves run
 * under every schedule of two and three threads and a neighbour process with bounded numbers of preemptions and time-outs (interleave.h,
 * leader_hooks.h). Properties: see check() and the iface below.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/callout.h"
#include "core/leader.h"
#include "core/world.h"
#include "interleave.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define LESS 1u /* these take ten times as long: fewer schedules suffice, since their property fails in any */
#else
#define LESS 0u
#endif
#define REQS 8
#define TURNS_MAX 200 /* of one wait */

/* Actions of a thread, by letters, each with the digit of a request or flag:
 *   w  waits for the request          a  waits for this request and the next one
 *   o  waits for the flag, which the neighbour sets (a node area's slot)
 *   n  waits for this request and then for the next one, in one wait, with a callback of the program between (MPI_Waitall)
 *   b  waits for the request without being woken
 *   e  completes the request: MPI_Isend to self, MPI_Cancel
 *   c  runs a callback of the program
 * and of the neighbour, which runs last:
 *   s  sends what completes the request    f  sets the flag    i  waits until all threads sleep */
typedef struct scene {
    const char *threads[INTERLEAVE_THREADS]; /* the last one: the neighbour */
    uint32_t preemptions, timeouts, delays;
    uint32_t spare_cpus;
    uint32_t spins; /* empty polls before a wait arms */
    uint64_t spin_ns;
    uint32_t refusals; /* times that the iface refuses to arm */
} scene;

typedef struct waiter {
    weft_wait wait;
    bool waits, is_beside;
    int what, last; /* the request; tie_two: it and those up to the last one */
} waiter;

static const scene *now;
static int thread_count;
static weft_world world;
static weft_rank_page page;
static weft_worker worker;
static weft_iface iface;
static weft_req reqs[REQS];
static waiter waiters[INTERLEAVE_THREADS];
static uint32_t sent[REQS], taken[REQS];
static bool flags[REQS];
static const weft_wait *heir_before; /* when the lock was last free */
static bool is_armed, is_polling;
static uint32_t refusals;
static uint64_t schedules;
int hooked_holder;

/* -- system calls -- */

static waiter *waiter_of(const volatile void *signal)
{
    for (int i = 0; i < INTERLEAVE_THREADS; i++)
        if ((const volatile void *)&waiters[i].wait.signal == signal)
            return &waiters[i];
    return NULL;
}

static bool is_over(const waiter *one)
{
    return one->wait.is_over ? flags[one->what] : reqs[one->what].is_done && reqs[one->last].is_done;
}

static bool is_parked(const weft_wait *wait)
{
    for (const weft_list_link *link = worker.parked.next; link != &worker.parked; link = link->next)
        if (link == &wait->link)
            return true;
    return false;
}

/* A hand-over wakes no more threads than needed. */
static void check_wake(const volatile void *word)
{
    const waiter *one = waiter_of(word);
    if (one && !is_over(one) && heir_before && heir_before != &one->wait && is_parked(heir_before))
        interleave_fail("a second heir is woken");
    if (one && !is_over(one) && !(worker.heir == &one->wait && !worker.leader))
        interleave_fail("a parked thread is woken that has nothing to do");
}

long hooked_futex(long number, const volatile void *word, int operation, uint32_t value, const struct timespec *limit, ...)
{
    (void)number;
    interleave_point();
    if ((operation & ~FUTEX_PRIVATE_FLAG) == FUTEX_WAKE) {
        check_wake(word);
        interleave_wake(word);
        return 1;
    }
    if (*(const volatile uint32_t *)word != value) {
        errno = EAGAIN;
        return -1;
    }
    if (interleave_sleep(word, limit ? (uint64_t)limit->tv_sec * 1000000000u + (uint64_t)limit->tv_nsec : 0))
        return 0;
    errno = ETIMEDOUT;
    return -1;
}

int hooked_poll(struct pollfd *fds, nfds_t count, int limit_ms)
{
    (void)fds;
    (void)count;
    (void)limit_ms;
    return 0;
}

/* -- the iface: polled and armed by the leader only; arm and disarm alternate -- */

static bool leads(void) { return worker.leader == &waiters[interleave_self].wait; }

static int port_poll(weft_iface *self, int budget)
{
    int n = 0;
    (void)self;
    (void)budget;
    if (is_polling || !(leads() || waiters[interleave_self].is_beside || waiters[interleave_self].wait.has_slept))
        interleave_fail("a thread polls that does not lead");
    is_polling = true;
    interleave_point();
    for (int i = 0; i < REQS; i++)
        for (; taken[i] < sent[i]; n++) {
            taken[i]++;
            if (!reqs[i].is_done)
                weft_req_end(&reqs[i], 0);
        }
    is_polling = false;
    return n;
}

static int port_arm(weft_iface *self, weft_wakeup *wakeup)
{
    (void)self;
    if (is_armed || !leads())
        interleave_fail("a second thread arms");
    if (refusals && refusals--)
        return WEFT_AGAIN;
    is_armed = true;
    *wakeup = (weft_wakeup){.futex = (uint32_t *)&page.asleep, .value = weft_page_sleep_begin(&page), .fd = -1};
    return 0;
}

static void port_disarm(weft_iface *self)
{
    (void)self;
    if (!is_armed)
        interleave_fail("disarm without arm");
    is_armed = false;
}

/* -- threads -- */

static bool flag_is_set(weft_wait *wait) { return flags[weft_container(wait, waiter, wait)->what]; }

static bool tie_two(weft_wait *wait, weft_completion *completion)
{
    const waiter *self = weft_container(wait, waiter, wait);
    uint32_t left = 0;
    for (int i = self->what; i <= self->last; i++)
        if (!reqs[i].is_done) {
            reqs[i].completion = completion;
            left++;
        }
    if (completion)
        completion->left = left;
    return true;
}

static void call_back(void)
{
    weft_worker_callout_begin(&worker);
    interleave_point();
    weft_worker_callout_end(&worker);
}

/* Turns until the present event has come: with 'n' the first request, while the wait is for both. */
static void turn(waiter *self, bool (*has_come)(const waiter *self))
{
    for (int i = 0; !has_come(self); i++) {
        if (i == TURNS_MAX) {
            interleave_fail("a wait turns for good");
            break;
        }
        weft_wait_progress(&self->wait);
    }
}

static bool first_is_done(const waiter *self) { return reqs[self->what].is_done; }

/* Between two events the thread may lead, and has armed nothing: others can arm and sleep while it is in a callback. */
static void go_on(waiter *self)
{
    weft_wait_pause(&self->wait);
    if (self->wait.is_armed || self->wait.is_shown)
        interleave_fail("armed or shown between two events");
    self->waits = false;
    call_back();
    self->waits = true;
    self->what++;
    weft_wait_next(&self->wait, WEFT_WAIT_REASON_RECV, 0, 0, 0);
}

static void wait_for(char how, int what)
{
    waiter *self = &waiters[interleave_self];
    weft_worker_lock(&worker);
    self->what = what;
    self->last = what + (how == 'a' || how == 'n');
    weft_wait_begin(&self->wait, &worker, WEFT_WAIT_REASON_RECV, 0, 0, 0);
    self->wait.req = how == 'w' ? &reqs[what] : NULL;
    self->wait.attach = how == 'a' || how == 'n' ? tie_two : NULL;
    self->wait.is_over = how == 'o' ? flag_is_set : NULL;
    self->is_beside = how == 'b';
    self->waits = true;
    if (how == 'n') {
        turn(self, first_is_done);
        go_on(self);
    }
    turn(self, is_over);
    self->waits = self->is_beside = false;
    weft_wait_end(&self->wait);
    weft_worker_unlock(&worker);
}

static void run_thread(char what, int which)
{
    if (what != 'e' && what != 'c') {
        wait_for(what, which);
        return;
    }
    weft_worker_lock(&worker);
    if (what == 'c') {
        call_back();
    } else if (!reqs[which].is_done) {
        weft_req_end(&reqs[which], 0);
    }
    weft_worker_unlock(&worker);
}

static void run_neighbour(char what, int which)
{
    static const char none;
    if (what == 'i') {
        interleave_sleep(&none, INTERLEAVE_IDLE_NS);
        for (int i = 0; i < thread_count - 1 && worker.leader; i++)
            if (waiters[i].waits && is_over(&waiters[i]))
                interleave_fail("all sleep, and a thread's wait is over");
        return;
    }
    interleave_point();
    if (what == 's')
        sent[which]++;
    else
        flags[which] = true;
    weft_page_wake_if_asleep(&page);
}

static void run(int me)
{
    for (const char *at = now->threads[me]; *at; at += 2)
        (me == thread_count - 1 ? run_neighbour : run_thread)(at[0], at[1] - '0');
}

/* -- a schedule -- */

static void begin(void)
{
    static const weft_iface_ops ops = {.name = "played", .poll = port_poll, .arm = port_arm, .disarm = port_disarm};
    memset(&worker, 0, sizeof worker);
    memset(&page, 0, sizeof page);
    memset(reqs, 0, sizeof reqs);
    memset(waiters, 0, sizeof waiters);
    memset(sent, 0, sizeof sent);
    memset(taken, 0, sizeof taken);
    memset(flags, 0, sizeof flags);
    is_armed = is_polling = false;
    heir_before = NULL;
    hooked_holder = -1;
    refusals = now->refusals;
    iface = (weft_iface){.ops = &ops};
    world = (weft_world){.page = &page, .sleep_ops = &weft_sleep_ops_here, .wakeup_fd = -1};
    world.wait_policy = (weft_wait_policy){.spins = now->spins, .spin_ns = now->spin_ns, .is_fixed = true};
    worker.world = &world;
    worker.is_threaded = true;
    worker.ifaces[worker.iface_count++] = &iface;
    worker.spare_cpus = now->spare_cpus;
    weft_list_init(&worker.backlog);
    weft_list_init(&worker.scheds);
    weft_list_init(&worker.areas);
    weft_list_init(&worker.inboxes);
    weft_list_init(&worker.devices);
    weft_list_init(&worker.fragments);
    weft_list_init(&worker.parked);
    weft_lock_init(&worker.lock, 1);
    for (int i = 0; i < REQS; i++)
        reqs[i] = (weft_req){.magic = WEFT_REQ_MAGIC, .kind = WEFT_REQ_RECV, .worker = &worker};
}

/* Whenever the lock is free: while a thread is parked some thread polls, checks for a leader, or is about to; no parked thread's wait is
 * over. */
static void check(void)
{
    bool is_cared_for = worker.leader || worker.heir;
    if (*(uintptr_t *)&worker.lock.word & WEFT_LOCK_HELD)
        return;
    heir_before = worker.heir;
    for (const weft_list_link *link = worker.parked.next; link != &worker.parked; link = link->next) {
        const waiter *one = (const waiter *)weft_container(link, weft_wait, link);
        bool is_woken = one->wait.signal == 2;
        is_cared_for |= is_woken;
        if (worker.leader == &one->wait)
            interleave_fail("the leader is parked");
        if (!one->wait.is_over && is_over(one) && !is_woken)
            interleave_fail("a parked thread's wait is over, and it is not woken");
    }
    if (!is_cared_for && !weft_list_is_empty(&worker.parked))
        interleave_fail("threads are parked without a leader");
}

static void end(void)
{
    if (worker.leader || worker.heir || !weft_list_is_empty(&worker.parked) || is_armed || worker.is_armed || worker.is_asleep ||
        page.asleep ||
        worker.lock.word || worker.lock.first)
        interleave_fail("something is left behind");
    for (int i = 0; i < REQS; i++)
        if (reqs[i].completion && !reqs[i].is_done)
            interleave_fail("a gate is left behind");
}

static bool passes(const scene *of)
{
    uint32_t delays = of->delays > LESS ? of->delays - LESS : of->delays;
    uint32_t preemptions = of->preemptions > LESS ? of->preemptions - LESS : of->preemptions;
    uint32_t more = getenv("MODEL_DEEP") ? 1 : 0;
    interleave test = {.preemptions = preemptions + more, .timeouts = of->timeouts, .delays = delays ? delays + more : 0,
                       .begin = begin, .run = run, .check = check, .end = end};
    char what[200];
    now = of;
    for (thread_count = 0; thread_count < INTERLEAVE_THREADS && of->threads[thread_count];)
        thread_count++;
    test.threads = thread_count;
    snprintf(what, sizeof what, "%s %s %s %s, %u spare CPUs", of->threads[0], of->threads[1], of->threads[2],
             thread_count > 3 ? of->threads[3] : "", of->spare_cpus);
    return interleave_passes(&test, what, &schedules);
}

#define PASS_ALL(scenes) \
    for (size_t i = 0; i < weft_count(scenes); i++) \
        CU_ASSERT(passes(&scenes[i]))

static void two_threads(void)
{
    static const scene scenes[] = {
        {.threads = {"w0", "w1", "s0s1"}, .preemptions = 2},
        {.threads = {"w0", "w1", "s1s0"}, .preemptions = 1, .timeouts = 2},
        {.threads = {"w0", "e0", ""}, .preemptions = 3, .timeouts = 1},
        {.threads = {"w0", "e0w1", "s1"}, .preemptions = 2, .timeouts = 1},
        {.threads = {"o0", "w1", "f0s1"}, .preemptions = 1, .timeouts = 1},
        {.threads = {"o0", "w1", "i0f0i0s1"}, .delays = 2, .timeouts = 1},
        {.threads = {"b0", "w1", "s0s1"}, .preemptions = 1, .timeouts = 1},
        {.threads = {"a0", "w2", "s0s2s1"}, .preemptions = 1, .timeouts = 1},
        {.threads = {"n0", "w2", "s0s2s1"}, .preemptions = 1, .timeouts = 1},
        {.threads = {"n0", "n2", "i0s0s2s3s1"}, .delays = 2, .timeouts = 1},
        {.threads = {"n0", "e0w2", "s2s1"}, .preemptions = 1, .timeouts = 1},
        {.threads = {"n0", "e0w2", "s1i0s2"}, .delays = 2, .timeouts = 1, .spins = 1},
        {.threads = {"w0", "c0w1", "s0s1"}, .preemptions = 1, .timeouts = 1},
        {.threads = {"w0c0w2", "w1c0w3", "s0s1s2s3"}, .preemptions = 1, .timeouts = 1, .spins = 1},
        {.threads = {"w0w2", "w1w3", "s0s1s2s3"}, .delays = 2, .timeouts = 1, .refusals = 2},
        {.threads = {"w0w2", "w1w3", "i0s0s1s2s3"}, .delays = 2, .timeouts = 1, .spins = 1},
        {.threads = {"w0w2", "w1w3", "s0s1s2s3"}, .delays = 2, .timeouts = 1, .spare_cpus = 1, .spin_ns = 10},
    };
    PASS_ALL(scenes);
}

static void three_threads(void)
{
    static const scene scenes[] = {
        {.threads = {"w0", "w1", "w2", "s0s1s2"}, .delays = 3, .timeouts = 1},
        {.threads = {"w0", "w1", "w2", "s2s0s1"}, .delays = 2, .timeouts = 2},
        {.threads = {"w0", "w1", "e0e1", ""}, .delays = 3, .timeouts = 1},
        {.threads = {"w0", "w1w3", "w2", "s1s3s0s2"}, .delays = 2, .timeouts = 1},
        {.threads = {"w0", "w1", "w2e1e0", "i0s2"}, .delays = 2, .timeouts = 1, .spins = 1},
        {.threads = {"w0", "o0", "w2", "i0f0s2s0"}, .delays = 1, .timeouts = 1},
        {.threads = {"w0", "b1", "w2c0", "s2s1s0"}, .delays = 2, .timeouts = 1},
        {.threads = {"w0", "a1", "w3e1", "i0s3s2s0"}, .delays = 1, .timeouts = 1, .spins = 1},
        {.threads = {"w0", "n1", "w3", "s1s3i0s0s2"}, .delays = 1, .timeouts = 1},
        {.threads = {"n0", "n2", "w4e0", "i0s4s2s1s3"}, .delays = 1, .timeouts = 1, .spins = 1},
        {.threads = {"w0", "w1", "w2", "i0s1s0s2"}, .delays = 1, .timeouts = 1, .spare_cpus = 1, .spin_ns = 10},
        {.threads = {"w0", "w1w3", "w2w4", "s1s2s0s3s4"}, .delays = 1, .timeouts = 2},
    };
    PASS_ALL(scenes);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("leader", NULL, NULL);
    CU_add_test(suite, "two threads", two_threads);
    CU_add_test(suite, "three threads", three_threads);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    printf("%llu schedules\n", (unsigned long long)schedules);
    return CU_get_number_of_failures() ? 1 : 0;
}

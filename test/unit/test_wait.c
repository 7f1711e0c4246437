/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_wait: which wake-ups count as lost (counter lost_wakeups). The sleep is simulated: its limit ends it with an arrival for which
 * nothing raised the wakeup, or with a wake-up at the same time, or after the process did not run. Also: duration of spinning, and yields,
 * by series of times.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <unistd.h>

#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"
#include "launch/boot.h"
#include "mpi/calls.h"
#include "mpi/comm.h"
#include "mpi/init.h"
#include "mpi/request.h"
#include "p2p/dispatch.h"
#include "p2p/p2p.h"
#include "type/type.h"

static weft_world *world;
static weft_worker *worker;
static weft_list_link busy; /* keeps worker->scheds from being empty, so that a poll calls progress */
static int news;
static int polls;
static enum { RINGS_NOT, RINGS, RINGS_AFTER_SLEEP, IS_LATE, BRINGS_NOTHING } manner;
static pthread_t holder;
static pthread_barrier_t is_held;

static int play(weft_worker *self)
{
    int found = news;
    (void)self;
    news = 0;
    polls++;
    return found;
}

/* Holds the lock while the sleep ends; the event and its wake-up come before it releases the lock. */
static void *hold_lock(void *arg)
{
    (void)arg;
    weft_lock_acquire(&worker->lock);
    pthread_barrier_wait(&is_held);
    usleep(20000);
    news = 1;
    weft_page_wake(world->page);
    weft_lock_release(&worker->lock);
    return NULL;
}

static bool sleep_here(weft_worker *self, const weft_wakeup *wakeups, uint32_t count, uint64_t limit_ns)
{
    (void)self;
    (void)wakeups;
    (void)count;
    if (manner == RINGS_AFTER_SLEEP) {
        pthread_create(&holder, NULL, hold_lock, NULL);
        pthread_barrier_wait(&is_held);
        return true;
    }
    news = manner != BRINGS_NOTHING;
    if (manner == RINGS)
        weft_page_wake(world->page);
    if (manner == IS_LATE)
        usleep((useconds_t)(limit_ns / 1000 + 300000));
    return true;
}

static void wake_here(weft_worker *self) { (void)self; }

/* Number of lost wake-ups that one sleep counts. */
static uint64_t lost_wakeups(int how)
{
    static const weft_sleep_ops sleep_ops = {.sleep = sleep_here, .wake = wake_here};
    uint64_t before = worker->counters[WEFT_COUNT_LOST_WAKEUPS], slept = worker->counters[WEFT_COUNT_SLEEPS];
    weft_wait wait;

    manner = how;
    world->sleep_ops = &sleep_ops;
    weft_worker_lock(worker);
    weft_wait_begin(&wait, worker, WEFT_WAIT_REASON_RECV, 0, 0, 0);
    while (worker->counters[WEFT_COUNT_SLEEPS] == slept)
        weft_wait_progress(&wait);
    weft_wait_end(&wait);
    weft_worker_unlock(worker);
    CU_ASSERT(worker->counters[WEFT_COUNT_SLEEPS] == slept + 1 && !worker->is_armed && !worker->is_asleep);
    news = 0;
    return worker->counters[WEFT_COUNT_LOST_WAKEUPS] - before;
}

static void lost_wakeups_are_counted(void)
{
    CU_ASSERT_EQUAL(lost_wakeups(RINGS_NOT), 1);
    CU_ASSERT_EQUAL(lost_wakeups(BRINGS_NOTHING), 0);
}

/* The wake-up came between the time-out and the check. */
static void wakeup_during_sleep_is_not_lost(void) { CU_ASSERT_EQUAL(lost_wakeups(RINGS), 0); }

/* The wake-up came between the time-out and the moment at which this thread had the lock. */
static void wakeup_before_lock_is_not_lost(void)
{
    pthread_barrier_init(&is_held, NULL, 2);
    worker->is_threaded = true;
    CU_ASSERT_EQUAL(lost_wakeups(RINGS_AFTER_SLEEP), 0);
    worker->is_threaded = false;
    pthread_join(holder, NULL);
    pthread_barrier_destroy(&is_held);
}

/* A process that does not run sees late what arrived meanwhile. */
static void arrivals_while_not_running_are_not_lost_wakeups(void) { CU_ASSERT_EQUAL(lost_wakeups(IS_LATE), 0); }

/* A program that always finds its message among the unexpected ones polls all the same: others are received from. */
static void early_messages_do_not_end_polling(void)
{
    enum { MESSAGES = 1000 };
    weft_comm *comm = weft_mpi_now()->comm_self;
    weft_req *req;
    const weft_type *type = weft_type_of(MPI_INT);
    MPI_Status status;
    MPI_Request request;
    int value = 0, before;
    CU_ASSERT_PTR_NOT_NULL_FATAL(comm);
    for (int way = 0; way < 2; way++) {
        weft_worker_lock(worker);
        for (int i = 0; i < MESSAGES; i++)
            CU_ASSERT_EQUAL(weft_send(comm->chan, 0, 7, &i, 1, type, 0), 0);
        for (int i = 0; i < MESSAGES; i++) /* until all of them are unexpected */
            weft_worker_poll(worker);
        weft_worker_unlock(worker);
        before = polls;
        for (int i = 0; i < MESSAGES; i++) {
            if (way == 0) {
                weft_worker_lock(worker);
                CU_ASSERT_EQUAL(weft_recv(comm->chan, 0, 7, &value, 1, type, NULL), 0);
                weft_worker_unlock(worker);
            } else {
                weft_worker_lock(worker);
                CU_ASSERT_EQUAL(weft_irecv(comm->chan, 0, 7, &value, 1, type, &req), 0);
                weft_request_hold(comm, comm->chan, req);
                weft_worker_unlock(worker);
                request = (MPI_Request)req;
                CU_ASSERT_EQUAL(weft_mpi_wait(&request, &status), 0);
            }
            CU_ASSERT_EQUAL(value, i);
        }
        CU_ASSERT(polls - before >= MESSAGES / WEFT_UNPOLLED_MAX - 1 && polls - before <= MESSAGES / 8);
    }
}

/* Beside load a wait spins less, and as before once the load is gone; one late wake-up alone is not load. */
static void spins_shorten_beside_load(void)
{
    weft_wait_policy policy = weft_wait_policy_dedicated, fixed = policy, oversubscribed = weft_wait_policy_oversubscribed;
    fixed.is_fixed = true;
    for (int i = 0; i < 100; i++) {
        weft_wait_policy_woken(&policy, i % 10 ? 20000 : 20000000);
        CU_ASSERT_EQUAL(weft_wait_policy_spin_ns(&policy), WEFT_WAIT_SPIN_NS);
    }
    for (int i = 0; i < 100; i++) {
        weft_wait_policy_woken(&policy, i % 3 ? 3000000 : 20000);
        weft_wait_policy_woken(&fixed, 3000000);
        weft_wait_policy_woken(&oversubscribed, 3000000);
        CU_ASSERT(i < 3 || weft_wait_policy_spin_ns(&policy) == WEFT_WAIT_SPIN_LOADED_NS);
    }
    CU_ASSERT_EQUAL(weft_wait_policy_spin_ns(&fixed), WEFT_WAIT_SPIN_NS);
    CU_ASSERT_EQUAL(weft_wait_policy_spin_ns(&oversubscribed), 0);
    for (int i = 0; i < 6; i++)
        weft_wait_policy_woken(&policy, 20000);
    CU_ASSERT_EQUAL(weft_wait_policy_spin_ns(&policy), WEFT_WAIT_SPIN_NS);
}

/* Only CPU time counts: the time in which another program has the CPU does not. A spin ends also where all intervals are long, as in an
 * emulated machine whose polls are slow. */
static void spinning_is_cpu_time(void)
{
    weft_wait_spin spin = {0};
    uint64_t now = 1000000;
    for (int i = 0; i <= 100; i++)
        weft_wait_spin_record(&spin, now += 1000);
    CU_ASSERT_EQUAL(spin.had_ns, 100000);
    weft_wait_spin_record(&spin, now += 20000000);
    CU_ASSERT_EQUAL(spin.had_ns, 100000 + WEFT_WAIT_PREEMPTED_HAD_NS);
    weft_wait_spin_record(&spin, now += 1000);
    CU_ASSERT_EQUAL(spin.had_ns, 101000 + WEFT_WAIT_PREEMPTED_HAD_NS);
    for (int i = 0; i < 20; i++)
        weft_wait_spin_record(&spin, now += WEFT_WAIT_PREEMPTED_NS);
    CU_ASSERT(spin.had_ns >= WEFT_WAIT_SPIN_NS);
}

/* A wait of a rank that shares its CPU: yields of this duration until one of them, the `ending`th, ends the wait, or the policy ends them;
 * then it sleeps for a time. Returns the yields. */
#define NEVER UINT32_MAX
static uint32_t yielding_wait(weft_wait_policy *policy, uint64_t *now, uint64_t yield_ns, uint32_t ending, uint64_t sleep_ns)
{
    uint32_t yields = 0, counted = 0;
    while (yields != ending && weft_wait_policy_may_yield(policy, counted)) {
        counted += weft_wait_policy_yielded(policy, yield_ns);
        *now += yield_ns;
        yields++;
    }
    if (yields == ending) {
        weft_wait_policy_yield_succeeded(policy);
        return yields;
    }
    weft_wait_policy_slept(policy, *now += sleep_ns);
    return yields;
}

/* Yields continue where they help and are cheap, not where they give a slice to another program, even if the wait ends then. They are
 * tried again now and then. */
static void expensive_yields_end(void)
{
    weft_wait_policy policy = weft_wait_policy_oversubscribed, dedicated = weft_wait_policy_dedicated;
    uint64_t now = 1;
    uint32_t yields = 0, sleeps;
    CU_ASSERT(!weft_wait_policy_may_yield(&dedicated, 0));
    for (int i = 0; i < 100; i++) /* a neighbour rank may copy for long, or another program ran once */
        CU_ASSERT_EQUAL(yielding_wait(&policy, &now, i % 10 ? 500 : 3000000, 1, 0), 1);
    for (int i = 0; i < 10; i++)
        yields += yielding_wait(&policy, &now, 2800000, 1, 50000);
    CU_ASSERT_EQUAL(yields, 3);
    for (sleeps = 0; !yielding_wait(&policy, &now, 2800000, 1, 50000) && sleeps < 10000; sleeps++)
        ;
    CU_ASSERT(sleeps > 100 && sleeps < 4000);
}

/* A wait yields for 0.1 ms, then sleeps; a yield in which another rank runs counts as few idle ones. In vain it yields less in the next. */
static void yields_have_a_limit(void)
{
    weft_wait_policy policy = weft_wait_policy_oversubscribed;
    uint64_t now = 1;
    uint32_t first = yielding_wait(&policy, &now, 500, NEVER, 50000), next = yielding_wait(&policy, &now, 500, NEVER, 50000);
    CU_ASSERT(first * 500 >= WEFT_WAIT_YIELDING_NS && first * 500 < WEFT_WAIT_YIELDING_NS + 1000);
    CU_ASSERT(next <= first / 2 + 1);
    policy = weft_wait_policy_oversubscribed;
    CU_ASSERT_EQUAL(yielding_wait(&policy, &now, 20000, NEVER, 50000), WEFT_WAIT_YIELDING_NS / WEFT_WAIT_YIELD_COUNTS_NS);
}

/* Where ranks share CPUs a wait looks once, and longer in few waits, until this ends one. */
static void looks_go_on_where_they_pay(void)
{
    weft_wait_policy policy = weft_wait_policy_oversubscribed, dedicated = weft_wait_policy_dedicated;
    uint32_t longer = 0;
    for (int i = 0; i < 10 * WEFT_WAIT_LOOKS_TRIAL; i++) {
        CU_ASSERT_EQUAL(weft_wait_policy_looks(&dedicated), WEFT_WAIT_LOOKS);
        longer += weft_wait_policy_looks(&policy) == WEFT_WAIT_LOOKS;
        weft_wait_policy_looked(&dedicated, false);
        weft_wait_policy_looked(&policy, false);
    }
    CU_ASSERT_EQUAL(longer, 10);
    weft_wait_policy_looked(&policy, true);
    for (longer = 0; longer < 100 && weft_wait_policy_looks(&policy) == WEFT_WAIT_LOOKS; longer++)
        weft_wait_policy_looked(&policy, false);
    CU_ASSERT_EQUAL(longer, WEFT_WAIT_LOOKS_TRUST);
}

/* The share of yields in the time of waits that they do not end. */
static double vain_share(weft_wait_policy *policy, uint64_t *now, uint64_t yield_ns, uint32_t waits)
{
    uint64_t begin = *now, yields = 0;
    for (uint32_t i = 0; i < waits; i++)
        yields += yielding_wait(policy, now, yield_ns, NEVER, 100000);
    return (double)(yields * yield_ns) / (double)(*now - begin);
}

/* A dear yield costs what a thousand cheap ones save, and a rank that copies for long may make yields dear, too: in vain they take 1.5 % of
 * the time, and what helps again is found within a second. */
static void failed_trials_are_repeated(void)
{
    static const uint64_t durations[] = {2800000, 900000, 1000, 300};
    for (int i = 0; i < 4; i++) {
        weft_wait_policy policy = weft_wait_policy_oversubscribed;
        uint64_t now = 1, begin;
        uint32_t sleeps = 0;
        CU_ASSERT(vain_share(&policy, &now, durations[i], 20000) < 0.02);
        for (begin = now; yielding_wait(&policy, &now, 2000, 2, 50000) != 2; sleeps++)
            ;
        CU_ASSERT(now - begin < 70 * (durations[i] > WEFT_WAIT_YIELDING_NS ? durations[i] : 2 * WEFT_WAIT_YIELDING_NS));
        for (int k = 0; k < 2000; k++) /* from then on all waits yield */
            CU_ASSERT_EQUAL(yielding_wait(&policy, &now, 2000, 2, 50000), 2);
        yielding_wait(&policy, &now, 1000, NEVER, 50000);
        CU_ASSERT_EQUAL(yielding_wait(&policy, &now, 1000, 2, 50000), 2); /* one wait in vain ends nothing */
    }
}

/* Where no other program takes CPU time a yield runs a rank of the job, or takes nothing from anyone: each wait yields as long as a rank
 * with a CPU of its own spins. */
static void yields_to_ranks_go_on(void)
{
    weft_wait_policy policy = weft_wait_policy_oversubscribed;
    uint64_t now = 1;
    vain_share(&policy, &now, 2800000, 200);
    CU_ASSERT_NOT_EQUAL(yielding_wait(&policy, &now, 2000, 2, 50000), 2);
    weft_wait_policy_set_alone(&policy, true);
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 20; k++)
            CU_ASSERT_EQUAL(yielding_wait(&policy, &now, i % 2 ? 2800000 : 500, NEVER, 100000),
                            WEFT_WAIT_SPIN_NS / (i % 2 ? WEFT_WAIT_YIELD_COUNTS_NS : 501) + !(i % 2));
        CU_ASSERT_EQUAL(yielding_wait(&policy, &now, 2000, 2, 50000), 2);
    }
    weft_wait_policy_set_alone(&policy, false);
    CU_ASSERT(vain_share(&policy, &now, 2800000, 20000) < 0.02);
}

/* The kernel counts in hundredths of a second: a third of a CPU is the least that counts. */
/* A job that may use some of the machine's CPUs only. */
static void cpu_shares_of_some(void)
{
    static const char text[] = "cpu  90 9 90 4000 500 9 9 800 9 0\ncpu0 10 2 30 4000 500 6 7 800 9 0\ncpu1 1 1 1 4 5 1 1 8 9 0\n"
                               "cpu11 3 0 0 4 5 0 0 8 9 0\nintr 5\n";
    weft_cpu_share from = {.at_ns = 1000000000, .busy_ns = 70000000000, .ranks_ns = 5000000000},
                   to = {.at_ns = 1100000000, .busy_ns = 70100000000, .ranks_ns = 5099000000};
    bool is_alone;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(0, &cpus);
    CU_ASSERT_EQUAL(weft_cpu_share_parse(text, &cpus, 100), (uint64_t)55 * 10000000);
    CPU_SET(11, &cpus);
    CU_ASSERT_EQUAL(weft_cpu_share_parse(text, &cpus, 100), (uint64_t)58 * 10000000);
    CPU_SET(2, &cpus); /* not online */
    CU_ASSERT_EQUAL(weft_cpu_share_parse(text, &cpus, 100), 0);
    CU_ASSERT_EQUAL(weft_cpu_share_parse("cpu  1 1 1 1 1 1 1\ncpu2 1 1\n", &cpus, 100), 0);
    CU_ASSERT(weft_cpu_share_judge(&from, &to, &is_alone) && is_alone);
    CPU_SET(1, &to.cpus);
    CU_ASSERT(!weft_cpu_share_judge(&from, &to, &is_alone)); /* the ranks were bound meanwhile */
}

static void cpu_shares(void)
{
    static const weft_cpu_share from = {.at_ns = 1000000000, .busy_ns = 70000000000, .ranks_ns = 5000000000};
    weft_cpu_share to = {.at_ns = 1100000000, .busy_ns = 70200000000, .ranks_ns = 5180000000};
    CU_ASSERT(weft_cpu_share_is_alone(&from, &to));
    to.ranks_ns = 5120000000; /* one of two CPUs was shared with another program */
    CU_ASSERT(!weft_cpu_share_is_alone(&from, &to));
    to.busy_ns = 70110000000; /* the other one was idle */
    CU_ASSERT(weft_cpu_share_is_alone(&from, &to));
    CU_ASSERT_EQUAL(weft_cpu_share_least_ns(2, 8), 100000000);
    CU_ASSERT_EQUAL(weft_cpu_share_least_ns(64, 64), 3200000000); /* each CPU has a rounding error of its own */
    CU_ASSERT_EQUAL(weft_cpu_share_least_ns(2, 256), 2560000000); /* 256 ranks make 51,200 system calls a second, not 1.3 million */
    CU_ASSERT_EQUAL(weft_cpu_share_parse("cpu  10 2 30 4000 500 6 7 800 9 0\n", NULL, 100), (uint64_t)55 * 10000000);
    CU_ASSERT_EQUAL(weft_cpu_share_parse("cpu  10 2 30\n", NULL, 100), 0);
    CU_ASSERT_EQUAL(weft_cpu_share_parse("intr 10 2 30 4000 500 6 7 800 9 0\n", NULL, 100), 0);
}

/* A series of readings: alone until it can be told, from the first one on; not alone once a rank's time cannot be read. */
static void judgements(void)
{
    static const weft_cpu_share none = {.at_ns = 0}, first = {.at_ns = 1000000000, .busy_ns = 70000000000, .ranks_ns = 5000000000},
                                busy = {.at_ns = 1100000000, .busy_ns = 70200000000, .ranks_ns = 5100000000},
                                quiet = {.at_ns = 1200000000, .busy_ns = 70400000000, .ranks_ns = 5300000000},
                                blind = {.at_ns = 1300000000, .busy_ns = 70500000000, .ranks_ns = WEFT_CPU_SHARE_UNKNOWN},
                                ended = {.at_ns = 1400000000, .busy_ns = 70600000000, .ranks_ns = 3000000000},
                                fresh = {.at_ns = 900000000, .busy_ns = 65000000000}; /* no CPU time was counted yet */
    bool is_alone = false;
    CU_ASSERT(weft_cpu_share_judge(&none, &fresh, &is_alone) && is_alone);
    CU_ASSERT(weft_cpu_share_judge(&fresh, &first, &is_alone) && is_alone);
    CU_ASSERT(weft_cpu_share_judge(&none, &first, &is_alone) && is_alone);
    CU_ASSERT(weft_cpu_share_judge(&first, &busy, &is_alone) && !is_alone);
    CU_ASSERT(weft_cpu_share_judge(&busy, &quiet, &is_alone) && is_alone);
    CU_ASSERT(weft_cpu_share_judge(&quiet, &blind, &is_alone) && !is_alone);
    CU_ASSERT(weft_cpu_share_judge(&blind, &quiet, &is_alone) && !is_alone);
    CU_ASSERT(!weft_cpu_share_judge(&quiet, &ended, &is_alone));
    CU_ASSERT(weft_cpu_share_judge(&none, &blind, &is_alone) && !is_alone);
}

/* Knobs that fix how long waits take the CPU hold for ranks that are alone, too. */
static void knobs_fix_the_yields(void)
{
    weft_wait_policy fixed = weft_wait_policy_oversubscribed;
    fixed.is_fixed = true;
    fixed.yield_limit_ns = 0;
    weft_wait_policy_set_alone(&fixed, true);
    CU_ASSERT(!weft_wait_policy_may_yield(&fixed, 0));
}

/* The wait of a nonblocking collective has many events, and may yield before each. */
static void each_event_renews_the_yields(void)
{
    weft_wait_policy policy = world->wait_policy;
    weft_wait wait;
    uint64_t slept = worker->counters[WEFT_COUNT_SLEEPS];
    manner = RINGS_NOT;
    world->wait_policy = weft_wait_policy_oversubscribed;
    weft_worker_lock(worker);
    weft_wait_begin(&wait, worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, 0, 0);
    for (int event = 0; event < 100; event++) {
        for (int i = 0; i < 20; i++) {
            news = i == 19;
            weft_wait_progress(&wait);
        }
        CU_ASSERT_EQUAL(wait.yielded_ns, 0);
    }
    weft_wait_end(&wait);
    weft_worker_unlock(worker);
    CU_ASSERT_EQUAL(worker->counters[WEFT_COUNT_SLEEPS], slept);
    world->wait_policy = policy;
}

/* The cost of a wake-up is measured by the waker's stamp; an older stamp, or none, is not used. */
static void wake_ups_are_measured(void)
{
    weft_wait_policy *policy = &world->wait_policy;
    policy->wake_ns = 0;
    atomic_store(&world->page->woken_ns, 1);
    lost_wakeups(BRINGS_NOTHING);
    CU_ASSERT_EQUAL(policy->wake_ns, 0);
    lost_wakeups(RINGS);
    CU_ASSERT(policy->wake_ns > 0);
}

static int open_world(void)
{
    weft_boot *boot;
    if (weft_boot_start(&boot) || weft_p2p_open(boot, MPI_THREAD_MULTIPLE, &world) || weft_mpi_world_open(world))
        return -1;
    worker = world->workers[0];
    worker->is_threaded = true;
    worker->progress_scheds = play;
    weft_list_append(&worker->scheds, &busy);
    return 0;
}

static int close_world(void)
{
    weft_list_remove(&busy);
    world->sleep_ops = &weft_sleep_ops_here;
    weft_mpi_world_close(world);
    return weft_world_close(world);
}

/* Yields of a call that does not wait: as many as it may make, if the policy allows yields and no other thread uses the worker. */
static void yields_outside_of_waits_are_counted(void)
{
    weft_wait_policy *policy = &world->wait_policy, before = *policy;
    weft_wait_yields yields = {.left = 3};
    uint32_t made = 0;

    *policy = weft_wait_policy_dedicated;
    CU_ASSERT(!weft_wait_yield(worker, &yields) && yields.left == 3);
    weft_worker_lock(worker);
    *policy = weft_wait_policy_oversubscribed;
    worker->is_threaded = true;
    CU_ASSERT(!weft_wait_yield(worker, &yields) && yields.left == 3);
    worker->is_threaded = false;
    while (weft_wait_yield(worker, &yields))
        made++;
    CU_ASSERT(yields.left == 0 && yields.has_yielded && made > 0 && made <= 3);
    CU_ASSERT_EQUAL(atomic_load(&world->page->yields), 0);
    weft_worker_unlock(worker);
    *policy = before;
}

int main(void)
{
    CU_pSuite suite;
    if (CU_initialize_registry() || !(suite = CU_add_suite("wait", open_world, close_world)))
        return 1;
    CU_add_test(suite, "lost wake-ups are counted", lost_wakeups_are_counted);
    CU_add_test(suite, "a wake-up during the sleep is not lost", wakeup_during_sleep_is_not_lost);
    CU_add_test(suite, "a wake-up before the lock is held is not lost", wakeup_before_lock_is_not_lost);
    CU_add_test(suite, "spins shorten beside load", spins_shorten_beside_load);
    CU_add_test(suite, "spinning is CPU time", spinning_is_cpu_time);
    CU_add_test(suite, "expensive yields end", expensive_yields_end);
    CU_add_test(suite, "looks go on where they pay", looks_go_on_where_they_pay);
    CU_add_test(suite, "yields have a limit", yields_have_a_limit);
    CU_add_test(suite, "failed trials of yielding are repeated", failed_trials_are_repeated);
    CU_add_test(suite, "yields to ranks go on", yields_to_ranks_go_on);
    CU_add_test(suite, "shares of the CPUs", cpu_shares);
    CU_add_test(suite, "shares of some of the CPUs", cpu_shares_of_some);
    CU_add_test(suite, "judgements by shares", judgements);
    CU_add_test(suite, "knobs fix the yields", knobs_fix_the_yields);
    CU_add_test(suite, "each event renews the yields", each_event_renews_the_yields);
    CU_add_test(suite, "yields outside of waits are counted", yields_outside_of_waits_are_counted);
    CU_add_test(suite, "wake-ups are measured", wake_ups_are_measured);
    CU_add_test(suite, "early messages do not end polling", early_messages_do_not_end_polling);
    CU_add_test(suite, "arrivals while not running are not lost wake-ups", arrivals_while_not_running_are_not_lost_wakeups);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}

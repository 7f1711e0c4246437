/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_callout: several recorded schedules are ready when one thread polls; the operator of the first, a program's, returns only when the
 * others are done. So another thread must be able to lock and to execute the rest, and no schedule is executed by two. Long reductions and
 * copies of collectives run with the worker unlocked: a page that they access faults, and the fault handler checks the lock.
 */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <stdlib.h>
#include <unistd.h>

#include "collectives/sched.h"
#include "launch/boot.h"
#include "mpi/calls.h"
#include "mpi/init.h"
#include "p2p/dispatch.h"

enum { PLANS = 4, ROUNDS = 50 };

static weft_world *world;
static weft_worker *worker;
static weft_req *reqs[PLANS];
static int in[PLANS], got[PLANS], out[PLANS];
static atomic_int entered[PLANS], first, ended;

/* In the first schedule, on whichever thread, returns after those of all others. */
static void slow_sum(void *from, void *to, int *length, MPI_Datatype *type)
{
    int which = (int)((int *)to - out);
    (void)length;
    (void)type;
    CU_ASSERT(atomic_fetch_add(&entered[which], 1) == 0);
    if (atomic_fetch_add(&first, 1) == 0)
        while (atomic_load(&ended) < PLANS - 1)
            usleep(100);
    *(int *)to += *(int *)from;
    atomic_fetch_add(&ended, 1);
}

/* A message to this rank, then its reduction. */
static void send_one(weft_sched *sched, const weft_coll *args)
{
    int which = (int)((int *)args->recvbuf - out);
    weft_sched_recv(sched, 0, &got[which], 1, args->recvtype);
    weft_sched_send(sched, 0, args->sendbuf, 1, args->recvtype);
    weft_sched_fence(sched);
    weft_sched_reduce(sched, &got[which], args->recvbuf, 1, args->recvtype);
}

/* Polls until all schedules but the blocked one are done. */
static void *other_thread(void *nothing)
{
    int done;
    (void)nothing;
    do {
        weft_worker_lock(worker);
        weft_worker_poll(worker);
        done = 0;
        for (int i = 0; i < PLANS; i++)
            done += reqs[i]->is_done;
        weft_worker_unlock(worker);
    } while (done < PLANS - 1);
    return NULL;
}

static void one_round(const weft_op *op)
{
    weft_team *team = &weft_mpi_now()->comm_self->team;
    pthread_t thread;
    atomic_store(&first, 0);
    atomic_store(&ended, 0);
    weft_worker_lock(worker);
    for (int i = 0; i < PLANS; i++) {
        weft_coll args = {.sendbuf = &in[i], .recvbuf = &out[i], .recvcount = 1, .recvtype = weft_type_of(MPI_INT), .op = op};
        in[i] = i + 1;
        out[i] = 10 * i;
        atomic_store(&entered[i], 0);
        CU_ASSERT_FATAL(weft_sched_record(team, send_one, &args, i, &reqs[i]) == 0);
        CU_ASSERT_FATAL(weft_sched_restart(reqs[i]) == 0);
        CU_ASSERT(!reqs[i]->is_done);
    }
    CU_ASSERT_FATAL(!pthread_create(&thread, NULL, other_thread, NULL)); /* gets the lock from a wait below, or from an operator */
    for (int i = 0; i < PLANS; i++)
        weft_req_wait(reqs[i]);
    weft_worker_unlock(worker);
    pthread_join(thread, NULL);
    for (int i = 0; i < PLANS; i++) {
        CU_ASSERT(reqs[i]->rc == 0 && out[i] == 10 * i + i + 1 && atomic_load(&entered[i]) == 1);
        weft_req_free(reqs[i]);
    }
}

static void test_ready_scheds(void)
{
    weft_op *op;
    CU_ASSERT_FATAL(weft_op_make((void *)slow_sum, true, false, &op) == 0);
    for (int i = 0; i < ROUNDS; i++)
        one_round(op);
    CU_ASSERT(weft_list_is_empty(&worker->scheds) && worker->scheds_ready == 0);
    weft_op_drop(op);
}

/* -- long reductions and copies -- */

enum { LONG = 1 << 20, PAGE = 4096 };

static char *trap;
static atomic_int faults, held;

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    if ((char *)info->si_addr < trap || (char *)info->si_addr >= trap + PAGE)
        signal(signal_number, SIG_DFL);
    atomic_fetch_add(&faults, 1);
    atomic_fetch_add(&held, atomic_load(&worker->lock.word) != 0);
    mprotect(trap, PAGE, PROT_READ | PROT_WRITE);
}

static void fold_long(weft_sched *sched, const weft_coll *args)
{
    weft_sched_reduce(sched, args->sendbuf, args->recvbuf, args->recvcount, args->recvtype);
}

static void copy_long(weft_sched *sched, const weft_coll *args)
{
    weft_sched_copy(sched, args->recvbuf, args->recvcount, args->recvtype, args->sendbuf, args->recvcount, args->recvtype);
}

static void run_long(weft_sched_algorithm *algorithm, const weft_coll *args, bool is_live)
{
    weft_team *team = &weft_mpi_now()->comm_self->team;
    weft_req *req;
    if (is_live) {
        weft_sched sched;
        weft_sched_begin_immediate(&sched, team, 0);
        sched.op = args->op;
        algorithm(&sched, args);
        CU_ASSERT(weft_sched_end_immediate(&sched) == 0);
        return;
    }
    CU_ASSERT_FATAL(weft_sched_record(team, algorithm, args, 0, &req) == 0);
    CU_ASSERT_FATAL(weft_sched_restart(req) == 0);
    weft_req_wait(req);
    weft_req_free(req);
}

static void one_long(weft_sched_algorithm *algorithm, bool is_live)
{
    char *from = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *to = calloc(1, LONG);
    weft_coll args = {.sendbuf = from, .recvbuf = to, .recvcount = LONG / sizeof(int), .recvtype = weft_type_of(MPI_INT),
                      .op = weft_op_of(MPI_SUM)};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    CU_ASSERT_FATAL(from != MAP_FAILED && to != NULL);
    memset(from, 1, LONG);
    trap = from + LONG / 2;
    atomic_store(&faults, 0);
    atomic_store(&held, 0);
    mprotect(trap, PAGE, PROT_NONE);
    sigaction(SIGSEGV, &action, &before);
    weft_worker_lock(worker);
    run_long(algorithm, &args, is_live);
    weft_worker_unlock(worker);
    sigaction(SIGSEGV, &before, NULL);
    CU_ASSERT_EQUAL(atomic_load(&faults), 1);
    CU_ASSERT_EQUAL(atomic_load(&held), 0);
    CU_ASSERT(memcmp(from, to, LONG) == 0);
    munmap(from, LONG);
    free(to);
}

static void test_long_work(void)
{
    for (int is_live = 0; is_live < 2; is_live++) {
        one_long(fold_long, is_live);
        one_long(copy_long, is_live);
    }
}

static int open_all(void)
{
    weft_boot *boot;
    if (weft_boot_start(&boot) || weft_p2p_open(boot, MPI_THREAD_MULTIPLE, &world) || weft_mpi_world_open(world))
        return -1;
    worker = world->workers[0];
    worker->is_threaded = true;
    return 0;
}

static int close_all(void)
{
    weft_mpi_world_close(world);
    return weft_world_close(world);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    alarm(120); /* a hang is a failure */
    if (CU_initialize_registry() || !(suite = CU_add_suite("callout", open_all, close_all)))
        return 2;
    CU_add_test(suite, "other threads execute ready schedules", test_ready_scheds);
    CU_add_test(suite, "long reductions and copies run unlocked", test_long_work);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_callout: several recorded plans are ready when one thread polls; the first one's operator, a program's, does not return before the
 * others are done. So another thread must be able to lock, and to play what is left; and no plan is played by two.
 */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "launch/boot.h"
#include "mpi/calls.h"
#include "mpi/init.h"
#include "p2p/arrive.h"

enum { PLANS = 4, ROUNDS = 50 };

static weft_world *world;
static weft_lane *lane;
static weft_req *reqs[PLANS];
static int in[PLANS], got[PLANS], out[PLANS];
static atomic_int entered[PLANS], first, ended;

/* In the plan that comes first, on whichever thread, it returns after those of all others. */
static void patient_sum(void *from, void *to, int *length, MPI_Datatype *type)
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

/* A message to ourselves, then a fold of it. */
static void speak(weft_plan *plan, const weft_coll *args)
{
    int which = (int)((int *)args->recvbuf - out);
    weft_plan_recv(plan, 0, &got[which], 1, args->recvtype);
    weft_plan_send(plan, 0, args->sendbuf, 1, args->recvtype);
    weft_plan_fence(plan);
    weft_plan_fold(plan, &got[which], args->recvbuf, 1, args->recvtype);
}

/* Polls until all plans but the one that cannot end yet are done. */
static void *other_thread(void *nothing)
{
    int done;
    (void)nothing;
    do {
        weft_lane_lock(lane);
        weft_lane_poll(lane);
        done = 0;
        for (int i = 0; i < PLANS; i++)
            done += reqs[i]->is_done;
        weft_lane_unlock(lane);
    } while (done < PLANS - 1);
    return NULL;
}

static void one_round(const weft_op *op)
{
    weft_team *team = &weft_mpi_now()->comm_self->team;
    pthread_t thread;
    atomic_store(&first, 0);
    atomic_store(&ended, 0);
    weft_lane_lock(lane);
    for (int i = 0; i < PLANS; i++) {
        weft_coll args = {.sendbuf = &in[i], .recvbuf = &out[i], .recvcount = 1, .recvtype = weft_type_of(MPI_INT), .op = op};
        in[i] = i + 1;
        out[i] = 10 * i;
        atomic_store(&entered[i], 0);
        CU_ASSERT_FATAL(weft_plan_record(team, speak, &args, i, &reqs[i]) == 0);
        CU_ASSERT_FATAL(weft_plan_restart(reqs[i]) == 0);
        CU_ASSERT(!reqs[i]->is_done);
    }
    CU_ASSERT_FATAL(!pthread_create(&thread, NULL, other_thread, NULL)); /* gets the lock from a wait below, or from an operator */
    for (int i = 0; i < PLANS; i++)
        weft_req_wait(reqs[i]);
    weft_lane_unlock(lane);
    pthread_join(thread, NULL);
    for (int i = 0; i < PLANS; i++) {
        CU_ASSERT(reqs[i]->rc == 0 && out[i] == 10 * i + i + 1 && atomic_load(&entered[i]) == 1);
        weft_req_free(reqs[i]);
    }
}

static void test_ready_plans(void)
{
    weft_op *op;
    CU_ASSERT_FATAL(weft_op_make((void *)patient_sum, true, false, &op) == 0);
    for (int i = 0; i < ROUNDS; i++)
        one_round(op);
    CU_ASSERT(weft_list_is_empty(&lane->plans) && lane->plans_ready == 0);
    weft_op_drop(op);
}

static int open_all(void)
{
    weft_boot *boot;
    if (weft_boot_start(&boot) || weft_p2p_open(boot, MPI_THREAD_MULTIPLE, &world) || weft_mpi_world_open(world))
        return -1;
    lane = world->lanes[0];
    lane->is_threaded = true;
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
    alarm(120); /* a hang is the failure that this looks for */
    if (CU_initialize_registry() || !(suite = CU_add_suite("callout", open_all, close_all)))
        return 2;
    CU_add_test(suite, "ready plans are left to other threads", test_ready_plans);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_requests: the wait and test families of src/mpi over requests of two workers, which no program can make yet. Each worker completes
 * its requests itself, one every few polls, in an order independent of the array's; the workers' locks are real, so that a lock taken twice
 * or never released is found.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>

#include "base/status.h"
#include "launch/boot.h"
#include "mpi/calls.h"
#include "mpi/init.h"
#include "mpi/status.h"
#include "p2p/dispatch.h"

enum { MANY = 24, ROUNDS = 200 };

static weft_world *world;
static weft_worker *workers[2];
static weft_list_link busy[2];                 /* keeps worker->scheds from being empty, so that a poll calls progress */
static weft_req *left[2][MANY];           /* outstanding, in order of completion */
static int left_count[2], polls, failing; /* failing: index of a request that fails, or -1 */

static int play(weft_worker *worker)
{
    int which = worker == workers[1];
    if (left_count[which] && ++polls % 3 == 0) {
        weft_req *req = left[which][--left_count[which]];
        weft_req_end(req, req->tag == failing ? WEFT_E_TRUNCATE : 0);
    }
    return 1;
}

static bool is_free(weft_worker *worker)
{
    bool is = weft_lock_try(&worker->lock);
    if (is)
        weft_lock_release(&worker->lock);
    return is;
}

/* Makes MANY requests on either worker; some are complete, some are MPI_REQUEST_NULL. Returns their number. */
static int make(MPI_Request *handles, unsigned seed)
{
    int made = 0;
    srand(seed);
    left_count[0] = left_count[1] = 0;
    for (int i = 0; i < MANY; i++) {
        int which = rand() % 2, at;
        weft_req *req;
        handles[i] = MPI_REQUEST_NULL;
        if (rand() % 6 == 0)
            continue;
        req = weft_req_new(workers[which], WEFT_REQ_USER);
        req->tag = i;
        req->recv_info = (weft_recv_info){.source = which, .tag = i, .bytes = (uint64_t)i};
        handles[i] = (MPI_Request)req;
        made++;
        if (rand() % 4 == 0) {
            weft_req_end(req, i == failing ? WEFT_E_TRUNCATE : 0);
            continue;
        }
        at = rand() % (left_count[which] + 1);
        left[which][left_count[which]++] = left[which][at];
        left[which][at] = req;
    }
    return made;
}

static void check_over(const MPI_Request *handles)
{
    bool all_null = true;
    for (int i = 0; i < MANY; i++)
        all_null &= handles[i] == MPI_REQUEST_NULL;
    CU_ASSERT(all_null);
    CU_ASSERT(left_count[0] == 0 && left_count[1] == 0);
    CU_ASSERT(is_free(workers[0]) && is_free(workers[1]));
}

static void all_of_two_workers(void)
{
    MPI_Request handles[MANY];
    MPI_Status statuses[MANY];
    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        int flag = 0, there[MANY];
        failing = -1;
        make(handles, seed);
        for (int i = 0; i < MANY; i++)
            there[i] = handles[i] != MPI_REQUEST_NULL;
        if (seed % 2)
            CU_ASSERT(weft_mpi_waitall(MANY, handles, statuses) == 0);
        while (seed % 2 == 0 && !flag)
            CU_ASSERT(weft_mpi_testall(MANY, handles, &flag, statuses) == 0);
        for (int i = 0; i < MANY; i++)
            CU_ASSERT(statuses[i].MPI_TAG == (there[i] ? i : MPI_ANY_TAG));
        check_over(handles);
    }
}

static void one_after_another(void)
{
    MPI_Request handles[MANY];
    MPI_Status status;
    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        int made, index = -1, flag;
        failing = -1;
        for (made = make(handles, seed); made; made -= flag) {
            flag = 1;
            int rc = seed % 2 ? weft_mpi_waitany(MANY, handles, &index, &status)
                              : weft_mpi_testany(MANY, handles, &index, &flag, &status);
            CU_ASSERT(rc == 0);
            CU_ASSERT(!flag || (index >= 0 && status.MPI_TAG == index && handles[index] == MPI_REQUEST_NULL));
        }
        CU_ASSERT(weft_mpi_waitany(MANY, handles, &index, &status) == 0 && index == MPI_UNDEFINED);
        check_over(handles);
    }
}

static void some_at_a_time(void)
{
    MPI_Request handles[MANY];
    MPI_Status statuses[MANY];
    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        int made, count, indices[MANY];
        failing = -1;
        for (made = make(handles, seed); made; made -= count) {
            int rc = seed % 2 ? weft_mpi_waitsome(MANY, handles, &count, indices, statuses)
                              : weft_mpi_testsome(MANY, handles, &count, indices, statuses);
            CU_ASSERT(rc == 0 && count >= (int)(seed % 2));
            for (int i = 0; i < count; i++)
                CU_ASSERT(statuses[i].MPI_TAG == indices[i]);
        }
        check_over(handles);
    }
}

/* One fails: all are completed all the same, and the statuses show which one failed. */
static void one_fails(void)
{
    MPI_Request handles[MANY];
    MPI_Status statuses[MANY];
    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        int there;
        failing = (int)(seed % MANY);
        make(handles, seed);
        there = handles[failing] != MPI_REQUEST_NULL;
        CU_ASSERT(weft_mpi_waitall(MANY, handles, statuses) == (there ? WEFT_E_IN_STATUS : 0));
        for (int i = 0; there && i < MANY; i++)
            CU_ASSERT(statuses[i].MPI_ERROR == (i == failing ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
        check_over(handles);
    }
}

static int open_two_workers(void)
{
    weft_boot *boot;
    if (weft_boot_start(&boot) || weft_p2p_open(boot, MPI_THREAD_MULTIPLE, &world) ||
        weft_worker_open(world, 1, world->workers[0]->callbacks, &world->workers[1]))
        return -1;
    world->worker_count = 2;
    if (weft_mpi_world_open(world)) /* sets its own progress function */
        return -1;
    for (int i = 0; i < 2; i++) {
        workers[i] = world->workers[i];
        workers[i]->is_threaded = true;
        workers[i]->progress_scheds = play;
        weft_list_append(&workers[i]->scheds, &busy[i]);
    }
    return 0;
}

static int close_two_workers(void)
{
    for (int i = 0; i < 2; i++)
        weft_list_remove(&busy[i]);
    weft_mpi_world_close(world);
    return weft_world_close(world);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() || !(suite = CU_add_suite("requests", open_two_workers, close_two_workers)))
        return 1;
    CU_add_test(suite, "waitall and testall", all_of_two_workers);
    CU_add_test(suite, "waitany and testany", one_after_another);
    CU_add_test(suite, "waitsome and testsome", some_at_a_time);
    CU_add_test(suite, "one fails", one_fails);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}

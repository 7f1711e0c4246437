/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_arming: calls of an iface's arm and disarm alternate, however many threads wait in one worker; an additional iface counts them
 * while threads sleep, wake each other and leave. A thread that waits for many requests while another one leads parks once for all.
 */
#include <CUnit/Basic.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/world.h"

enum { THREADS = 4, ROUNDS = 40 };

static uint32_t arms, disarms, wrong; /* guarded by the worker's lock */

static int count_arm(weft_iface *iface, weft_wakeup *wakeup)
{
    (void)iface;
    *wakeup = (weft_wakeup){.futex = NULL, .fd = -1};
    wrong += arms++ != disarms;
    return 0;
}

static void count_disarm(weft_iface *iface)
{
    (void)iface;
    wrong += ++disarms != arms;
}

static void *wait_often(void *arg)
{
    int me = (int)(intptr_t)arg, value;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Recv(&value, 1, MPI_INT, 0, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 0, THREADS + me, MPI_COMM_WORLD);
    }
    return NULL;
}

static void arm_alternates(void)
{
    weft_iface_ops ops = {.name = "count", .arm = count_arm, .disarm = count_disarm};
    weft_iface iface = {.ops = &ops, .is_quiet = true};
    weft_worker *worker = weft_world_now->workers[0];
    pthread_t threads[THREADS];
    int value = 0;
    CU_ASSERT_FATAL(worker->iface_count < WEFT_WORKER_IFACES);
    worker->ifaces[worker->iface_count++] = &iface;
    for (int i = 0; i < THREADS; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, wait_often, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < ROUNDS; i++)
        for (int to = 0; to < THREADS; to++) {
            if (to == i % THREADS)
                usleep(2000); /* long enough for all threads to sleep */
            MPI_Send(&value, 1, MPI_INT, 0, to, MPI_COMM_WORLD);
            MPI_Recv(&value, 1, MPI_INT, 0, THREADS + to, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    worker->iface_count--;
    CU_ASSERT(arms > 0);
    CU_ASSERT_EQUAL(arms, disarms);
    CU_ASSERT_EQUAL(wrong, 0);
}

enum { REQUESTS = 60, TAG_END = 100, TAG_MANY = 200 };

static uint64_t parked_before, parked_at_start;

static uint64_t parks(void)
{
    weft_worker *worker = weft_world_now->workers[0];
    uint64_t count;
    weft_worker_lock(worker);
    count = worker->counters[WEFT_COUNT_PARKED];
    weft_worker_unlock(worker);
    return count;
}

static void *wait_for_many(void *arg)
{
    MPI_Request requests[REQUESTS];
    int values[REQUESTS];
    (void)arg;
    for (int i = 0; i < REQUESTS; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, 0, TAG_MANY, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < REQUESTS; i++)
        wrong += values[i] != i;
    MPI_Send(&values[0], 1, MPI_INT, 0, TAG_END, MPI_COMM_WORLD);
    return NULL;
}

static void *send_many(void *arg)
{
    (void)arg;
    /* The thread of wait_for_many leads until the main thread waits, and parks then. */
    while ((parked_before = parks()) == parked_at_start)
        usleep(1000);
    for (int i = 0; i < REQUESTS; i++) {
        MPI_Send(&i, 1, MPI_INT, 0, TAG_MANY, MPI_COMM_WORLD);
        usleep(2000);
    }
    return NULL;
}

static void many_requests_park_once(void)
{
    pthread_t waits, sends;
    int value;
    parked_at_start = parks();
    CU_ASSERT_FATAL(pthread_create(&waits, NULL, wait_for_many, NULL) == 0);
    while (!atomic_load(&weft_world_now->workers[0]->leader))
        usleep(1000);
    CU_ASSERT_FATAL(pthread_create(&sends, NULL, send_many, NULL) == 0);
    MPI_Recv(&value, 1, MPI_INT, 0, TAG_END, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* began to wait last: leads */
    CU_ASSERT(parks() - parked_before < REQUESTS / 4);
    pthread_join(waits, NULL);
    pthread_join(sends, NULL);
    CU_ASSERT_EQUAL(wrong, 0);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    int level;
    alarm(120); /* a hang is a failure */
    setenv("WEFT_SLEEP", "always", 1);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) || level != MPI_THREAD_MULTIPLE || CU_initialize_registry())
        return 1;
    suite = CU_add_suite("arming", NULL, NULL);
    CU_add_test(suite, "arm and disarm alternate", arm_alternates);
    CU_add_test(suite, "a wait for many requests parks once", many_requests_park_once);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0 || MPI_Finalize();
}

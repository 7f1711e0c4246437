/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_unlocked: calls that read immutable data, or data with a guard of its own, do not wait: they return while another thread holds the
 * worker's lock and counts. src/api/functions.tbl lists them (flag unlocked, via tool); test/api/tested verifies that none is missing.
 */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/world.h"
#include "../mpi/local_calls.h"

enum { THREADS = 2, ROUNDS = 3 };

static atomic_int rounds;

static void *query(void *nothing)
{
    (void)nothing;
    for (int i = 0; i < ROUNDS; i++) {
        unlocked_calls();
        atomic_fetch_add(&rounds, 1);
    }
    return NULL;
}

static void test_unlocked(void)
{
    pthread_t threads[THREADS];
    weft_worker *worker;
    int level;
    CU_ASSERT_FATAL(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == 0 && level == MPI_THREAD_MULTIPLE);
    local_prepare();
    worker = weft_world_now->workers[0];
    weft_worker_lock(worker);
    for (int i = 0; i < THREADS; i++)
        CU_ASSERT_FATAL(!pthread_create(&threads[i], NULL, query, NULL));
    while (atomic_load(&rounds) < THREADS * ROUNDS) { /* ThreadSanitizer must not take the reads of counters for a defect */
        worker->counters[WEFT_COUNT_SLEEPS]++;
        worker->lock.passes++;
        usleep(1000);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    weft_worker_unlock(worker);
    local_release();
    CU_ASSERT(MPI_Finalize() == 0);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    alarm(120); /* a hang is a failure */
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 99;
    suite = CU_add_suite("unlocked", NULL, NULL);
    if (!suite || !CU_add_test(suite, "calls without a lock", test_unlocked))
        return 99;
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed != 0;
}

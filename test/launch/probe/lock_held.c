/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock_held: a rank whose first thread keeps the worker's lock while its second one wants to send. For test/launch/waits.
 */
#include <pthread.h>
#include <unistd.h>

#include <mpi.h>

#include "core/world.h"

static void *send_one(void *nothing)
{
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    return nothing;
}

int main(void)
{
    int provided;
    pthread_t thread;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    weft_worker_lock(weft_world_now->workers[0]);
    if (pthread_create(&thread, NULL, send_one, NULL) == 0)
        pause();
    return 1;
}

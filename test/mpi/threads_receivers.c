/* np: 2 : threads that wait for equal messages are not woken in turn: the running thread receives the message, and no thread is passed
 * over forever */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { RECEIVERS = 4, MESSAGES = 4000, END = -1 };

static _Atomic int received[RECEIVERS];

static void *receive(void *arg)
{
    int me = (int)(intptr_t)arg, value = 0;
    while (value != END) {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        atomic_fetch_add(&received[me], 1);
        if (value != END)
            OK(MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD));
    }
    return NULL;
}

static unsigned long long wakes(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;
    OK(MPI_T_pvar_read(session, handle, &value));
    return value;
}

int main(int argc, char **argv)
{
    int provided, rank, index, count, value, total = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    pthread_t threads[RECEIVERS];
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    check_rank = rank;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_index("weft_unparked", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_start(session, handle));
    for (int i = 0; rank == 1 && i < RECEIVERS; i++)
        CHECK(pthread_create(&threads[i], NULL, receive, (void *)(intptr_t)i) == 0);
    for (int i = 0; rank == 0 && i < MESSAGES; i++) {
        OK(MPI_Send(&i, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Recv(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == i);
    }
    for (int i = 0; rank == 0 && i < RECEIVERS; i++) {
        value = END;
        OK(MPI_Send(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD));
    }
    for (int i = 0; rank == 1 && i < RECEIVERS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(atomic_load(&received[i]) > 0);
        total += atomic_load(&received[i]);
    }
    if (rank == 1) {
        CHECK(total == MESSAGES + RECEIVERS);
        CHECK(wakes(session, handle) < MESSAGES / 2, "%llu wake-ups for %d messages", wakes(session, handle), MESSAGES);
    }
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}

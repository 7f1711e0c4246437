/* np: 2 3 : a thread in MPI_Buffer_detach or flush waits for receives that another thread of the same rank makes; several threads send */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"

enum { LONG = 60000, THREADS = 4, EACH = 30, ROUNDS = 20 };

static int rank, size;

/* Receives the left neighbour's messages of all threads. */
static void *receiver(void *argument)
{
    int left = (rank + size - 1) % size;
    char *in = malloc(LONG);
    (void)argument;
    for (int i = 0; i < THREADS * EACH; i++) {
        MPI_Status status;
        int count;
        OK(MPI_Recv(in, LONG, MPI_BYTE, left, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(check_wrong(in, (size_t)count, (unsigned)status.MPI_TAG) == (size_t)count, "tag %d", status.MPI_TAG);
    }
    free(in);
    return NULL;
}

static void *sender(void *argument)
{
    int me = *(int *)argument, right = (rank + 1) % size;
    char *out = malloc(LONG);
    for (int i = 0; i < EACH; i++) {
        int tag = me * EACH + i, bytes = i % 3 ? i : LONG - i;
        check_fill(out, (size_t)bytes, (unsigned)tag);
        OK(MPI_Bsend(out, bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD));
        if (i % 10 == 9)
            OK(MPI_Buffer_flush());
    }
    free(out);
    return NULL;
}

int main(int argc, char **argv)
{
    static char memory[THREADS * EACH * (LONG + MPI_BSEND_OVERHEAD)];
    int provided, bytes;
    char *back;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t all[THREADS + 1];
        int numbers[THREADS];
        OK(round % 2 ? MPI_Buffer_attach(memory, sizeof memory) : MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
        pthread_create(&all[THREADS], NULL, receiver, NULL);
        for (int i = 0; i < THREADS; i++) {
            numbers[i] = i;
            pthread_create(&all[i], NULL, sender, &numbers[i]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(all[i], NULL);
        OK(MPI_Buffer_detach(&back, &bytes)); /* the receiving threads of all ranks still run */
        CHECK(back == (round % 2 ? memory : MPI_BUFFER_AUTOMATIC));
        pthread_join(all[THREADS], NULL);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Finalize());
    return 0;
}

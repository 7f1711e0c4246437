/* np: 1 2 : a thread that waits is woken by another thread of the same process, also where no transport could wake it */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void *send_later(void *arg)
{
    int rank = *(int *)arg, value;
    for (value = 1; value <= 5; value++) {
        usleep(20000); /* the receiver sleeps by now */
        MPI_Send(&value, 1, MPI_INT, rank, value, MPI_COMM_WORLD);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank, sum = 0;
    pthread_t thread;
    double start;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    start = MPI_Wtime();
    pthread_create(&thread, NULL, send_later, &rank);
    for (int tag = 1; tag <= 5; tag++) {
        int value = 0;
        MPI_Recv(&value, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += value;
    }
    pthread_join(thread, NULL);
    if (sum != 15 || MPI_Wtime() - start > 4.0) { /* 0.1 s is right; a lost wake-up costs 1 s each time */
        fprintf(stderr, "sum %d after %.3f s\n", sum, MPI_Wtime() - start);
        return 1;
    }
    MPI_Finalize();
    return 0;
}

/* np: 1 2 : a thread asleep in MPI_Probe hears of a message that another thread of its lane took in */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static double sent;
static int rank;

static void *probe_and_answer(void *arg)
{
    MPI_Status status;
    double *heard = arg;
    int value;
    MPI_Probe(rank, 5, MPI_COMM_WORLD, &status);
    *heard = MPI_Wtime();
    MPI_Recv(&value, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &status);
    MPI_Send(&value, 1, MPI_INT, rank, 6, MPI_COMM_WORLD);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, one = 1, back, late = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 4; round++) {
        pthread_t thread;
        double heard = 0;
        pthread_create(&thread, NULL, probe_and_answer, &heard);
        usleep(50000); /* it sleeps by now */
        sent = MPI_Wtime();
        MPI_Sendrecv(&one, 1, MPI_INT, rank, 5, &back, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
        late += heard - sent > 0.4; /* unheard, it sleeps on for up to a second */
    }
    if (late > 1)
        fprintf(stderr, "%d of 4 probes were heard late\n", late);
    MPI_Finalize();
    return late > 1;
}

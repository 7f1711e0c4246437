/* np: 1 2 : a thread asleep in MPI_Probe hears of a message that another thread of its worker took in */
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

#define PROMPT_MIN 3 /* rounds */
#define ROUNDS_MAX 30 /* on a slow machine one or the other is late for reasons of its own; unheard all are */

int main(int argc, char **argv)
{
    int provided, one = 1, back, prompt = 0, rounds;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (rounds = 0; prompt < PROMPT_MIN && rounds < ROUNDS_MAX; rounds++) {
        pthread_t thread;
        double heard = 0;
        pthread_create(&thread, NULL, probe_and_answer, &heard);
        usleep(50000); /* it sleeps by now */
        sent = MPI_Wtime();
        MPI_Sendrecv(&one, 1, MPI_INT, rank, 5, &back, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
        prompt += heard - sent < 0.4; /* unheard, it sleeps on for nearly a second */
    }
    if (prompt < PROMPT_MIN)
        fprintf(stderr, "only %d of %d probes were heard in time\n", prompt, rounds);
    MPI_Finalize();
    return prompt < PROMPT_MIN;
}

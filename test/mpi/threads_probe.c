/* np: 1 2 : a thread asleep in MPI_Probe is woken for a message that another thread of its worker received */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static double sent;
static int rank;

static void *probe_and_answer(void *arg)
{
    MPI_Status status;
    double *received = arg;
    int value;
    MPI_Probe(rank, 5, MPI_COMM_WORLD, &status);
    *received = MPI_Wtime();
    MPI_Recv(&value, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &status);
    MPI_Send(&value, 1, MPI_INT, rank, 6, MPI_COMM_WORLD);
    return NULL;
}

#define PROMPT_MIN 3 /* rounds */
#define ROUNDS_MAX 30 /* a slow machine delays some; without the wake-up all are late */

int main(int argc, char **argv)
{
    int provided, one = 1, back, prompt = 0, rounds;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (rounds = 0; prompt < PROMPT_MIN && rounds < ROUNDS_MAX; rounds++) {
        pthread_t thread;
        double received = 0;
        pthread_create(&thread, NULL, probe_and_answer, &received);
        usleep(50000); /* it sleeps by now */
        sent = MPI_Wtime();
        MPI_Sendrecv(&one, 1, MPI_INT, rank, 5, &back, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
        prompt += received - sent < 0.4; /* without the wake-up it sleeps for nearly a second */
    }
    if (prompt < PROMPT_MIN)
        fprintf(stderr, "only %d of %d probes returned in time\n", prompt, rounds);
    MPI_Finalize();
    return prompt < PROMPT_MIN;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * parts: threads fill a message part by part; each part leaves when it is ready (partitioned communication). The receiver adds parts up as
 * they come.
 * mpicc -pthread parts.c -o parts && mpirun -n 2 ./parts        Exit code: 0 the sums are right, 1 they are not.
 * Ranks 0 and 1, 2 and 3, ... are pairs.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, PARTS = 16, EACH = 2000, ROUNDS = 10 };

static double message[PARTS][EACH];
static MPI_Request request; /* persistent: made once, started in each round */
static int now;             /* round */

static void *fill(void *arg)
{
    int thread = *(int *)arg;
    for (int part = thread; part < PARTS; part += THREADS) {
        for (int i = 0; i < EACH; i++)
            message[part][i] = now + part;
        MPI_Pready(part, request); /* may leave now */
    }
    return NULL;
}

static void send(int to)
{
    pthread_t threads[THREADS];
    int ids[THREADS];
    MPI_Psend_init(message, PARTS, EACH, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (now = 0; now < ROUNDS; now++) {
        MPI_Start(&request);
        for (int i = 0; i < THREADS; i++) {
            ids[i] = i;
            pthread_create(&threads[i], NULL, fill, &ids[i]);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* now the buffer may be filled again */
    }
    MPI_Request_free(&request);
}

static double sum_of(const double *part)
{
    double sum = 0;
    for (int i = 0; i < EACH; i++)
        sum += part[i];
    return sum;
}

/* Returns the number of wrong sums. */
static int receive(int from)
{
    int wrong = 0;
    MPI_Precv_init(message, PARTS, EACH, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (now = 0; now < ROUNDS; now++) {
        int is_used[PARTS] = {0}, left = PARTS;
        MPI_Start(&request);
        while (left)
            for (int part = 0; part < PARTS; part++) {
                int is_here = 0;
                if (!is_used[part])
                    MPI_Parrived(request, part, &is_here);
                if (is_here) {
                    wrong += sum_of(message[part]) != (double)(now + part) * EACH;
                    is_used[part] = 1;
                    left--;
                }
            }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, size, provided, wrong = 0, all;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "parts: this MPI has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank % 2 == 0 && rank + 1 < size)
        send(rank + 1);
    else if (rank % 2)
        wrong = receive(rank - 1);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("parts: %d pairs, %d rounds of %d parts, %d wrong\n", size / 2, ROUNDS, PARTS, all);
    MPI_Finalize();
    return all != 0;
}

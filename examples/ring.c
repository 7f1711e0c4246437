/* SPDX-License-Identifier: BSD-3-Clause
 * ring: a token travels around all ranks several times; each rank adds its number, so the expected sum is known.
 * mpicc ring.c -o ring && mpirun -n 4 ./ring [LAPS]        Exit code: 0 the sum is right, 1 it is not, 2 bad usage.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum
{
    TAG_TOKEN = 1
};

int main(int argc, char **argv)
{
    int rank, size, right = 0;
    long laps, token = 0;
    char *end = "";
    double start;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    laps = argc > 1 ? strtol(argv[1], &end, 10) : 1000;
    if (*end || laps < 1 || laps > 100000000) {
        if (!rank) {
            fprintf(stderr, "ring: the number of laps must be from 1 to 100000000, not \"%s\"\n", argv[1]);
        }
        MPI_Finalize();
        return 2;
    }
    start = MPI_Wtime();
    for (long lap = 0; lap < laps; lap++) {
        int next = (rank + 1) % size, before = (rank + size - 1) % size;
        MPI_Request sent;

        /* Rank 0 starts each lap and waits for the token; with one rank it sends to itself, so it must not block. */
        if (rank) {
            MPI_Recv(&token, 1, MPI_LONG, before, TAG_TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        token += rank + 1;
        MPI_Isend(&token, 1, MPI_LONG, next, TAG_TOKEN, MPI_COMM_WORLD, &sent);
        if (!rank) {
            long home;
            MPI_Recv(&home, 1, MPI_LONG, before, TAG_TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&sent, MPI_STATUS_IGNORE);
            token = home;
        } else {
            MPI_Wait(&sent, MPI_STATUS_IGNORE);
        }
    }
    if (!rank) {
        long expected = laps * ((long)size * (size + 1) / 2);
        right = token == expected;
        printf("ring of %d: %ld laps, %.2f us a hop, token %ld%s\n", size, laps,
               (MPI_Wtime() - start) * 1e6 / (double)(laps * size),
               token, right ? "" : ", WRONG");
    }
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return right ? 0 : 1;
}

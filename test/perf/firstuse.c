/* SPDX-License-Identifier: BSD-3-Clause
 *
 * firstuse: cost of the first, second and third transfer from and into memory that was not registered before. Two ranks; both buffers are
 * new mappings in every round, touched before the measurement. Prints bytes and the medians, in microseconds, of a transfer and its empty
 * reply.
 *   WEFT_TRANSPORTS=self,uring WEFT_REG_MODE=pipeline mpirun -n 2 firstuse
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 15, USES = 3, LARGEST = 16 << 20 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double transfer(int rank, char *buffer, int bytes)
{
    double begin = MPI_Wtime();
    if (rank == 0) {
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begin) * 1e6;
}

int main(int argc, char **argv)
{
    static double took[USES][ROUNDS];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int bytes = 64 << 10; bytes <= LARGEST; bytes *= 4) {
        for (int round = 0; round < ROUNDS; round++) {
            char *buffer = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (buffer == MAP_FAILED)
                MPI_Abort(MPI_COMM_WORLD, 1);
            memset(buffer, round, (size_t)bytes);
            for (int use = 0; use < USES; use++) {
                MPI_Barrier(MPI_COMM_WORLD);
                took[use][round] = transfer(rank, buffer, bytes);
            }
            munmap(buffer, (size_t)bytes);
        }
        if (rank == 0) {
            printf("%9d", bytes);
            for (int use = 0; use < USES; use++) {
                qsort(took[use], ROUNDS, sizeof(double), by_value);
                printf("  %9.1f", took[use][ROUNDS / 2]);
            }
            printf("\n");
        }
    }
    MPI_Finalize();
    return 0;
}

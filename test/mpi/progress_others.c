/* np: 3 : a rank that stays out of MPI with much unread traffic does not hold up what its sender tells others */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MANY = 200, BYTES = 16384 };

int main(int argc, char **argv)
{
    static char block[BYTES], large[1 << 20];
    MPI_Request requests[MANY];
    int rank, bad = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 2) {
        MPI_Recv(block, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleep(2);
        for (int i = 0; i < MANY; i++)
            MPI_Recv(block, BYTES, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        double start;
        MPI_Send(block, 1, MPI_CHAR, 2, 1, MPI_COMM_WORLD);
        for (int i = 0; i < MANY; i++)
            MPI_Isend(block, BYTES, MPI_CHAR, 2, 2, MPI_COMM_WORLD, &requests[i]);
        start = MPI_Wtime();
        for (int i = 0; i < 20; i++) {
            MPI_Send(block, BYTES, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
            MPI_Send(large, sizeof large, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
            MPI_Recv(block, 1, MPI_CHAR, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        bad = MPI_Wtime() - start > 1.5;
        if (bad)
            fprintf(stderr, "rank 1 was served after %.3f s only\n", MPI_Wtime() - start);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    } else {
        for (int i = 0; i < 20; i++) {
            MPI_Recv(block, BYTES, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(large, sizeof large, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(block, 1, MPI_CHAR, 0, 4, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return bad;
}

/* np: 3 : a rank outside MPI with much unread traffic does not delay its sender's messages to others */
/* It stays outside until a signal of the others, so the result depends on no time; a delayed rank waits for all of OUT_S. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 200, BYTES = 16384, OUT_S = 300 };

int main(int argc, char **argv)
{
    static char block[BYTES], large[1 << 20];
    MPI_Request requests[MANY];
    int rank, bad = 0, pid = (int)getpid();
    sigset_t served;
    sigemptyset(&served);
    sigaddset(&served, SIGUSR1);
    sigprocmask(SIG_BLOCK, &served, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 2) {
        MPI_Send(&pid, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
        bad = sigtimedwait(&served, NULL, &(struct timespec){.tv_sec = OUT_S}) != SIGUSR1;
        if (bad)
            fprintf(stderr, "rank 1 was not served while rank 2 stayed out\n");
        for (int i = 0; i < MANY; i++)
            MPI_Recv(block, BYTES, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 0) {
        MPI_Recv(&pid, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < MANY; i++)
            MPI_Isend(block, BYTES, MPI_CHAR, 2, 2, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < 20; i++) {
            MPI_Send(block, BYTES, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
            MPI_Send(large, sizeof large, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
            MPI_Recv(block, 1, MPI_CHAR, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        kill((pid_t)pid, SIGUSR1);
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

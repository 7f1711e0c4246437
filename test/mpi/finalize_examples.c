/* np: 2 3 : what the standard's examples of MPI_Finalize show (MPI 5.0 11.2): what may be under way when a process finalizes */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "check.h"

enum { LONG = 300000 };
static int rank, size;
static char freed_message[LONG], got[LONG];

/* Sends whose completion only the library sees: a freed request and a buffered message. Their receiver is late, and finalizes later. */
static void under_way(char *buffer, int bytes)
{
    static char buffered_message[LONG];
    MPI_Request req;
    if (rank == 0) {
        memset(freed_message, 'f', LONG);
        memset(buffered_message, 'b', LONG);
        OK(MPI_Isend(freed_message, LONG, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &req));
        OK(MPI_Request_free(&req));
        OK(MPI_Buffer_attach(buffer, bytes)); /* stays attached: MPI_Finalize leaves it to the program */
        OK(MPI_Bsend(buffered_message, LONG, MPI_CHAR, 1, 2, MPI_COMM_WORLD));
        memset(buffered_message, 0, LONG);
    } else if (rank == 1) {
        usleep(100000);
        OK(MPI_Recv(got, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got[0] == 'f' && got[LONG - 1] == 'f');
        OK(MPI_Recv(got, LONG, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(got[0] == 'b' && got[LONG - 1] == 'b');
    }
}

/* A send without a receive, cancelled: its wait needs nothing of the other process. One that is short and not received at all is
 * wrong; Weft drops it. */
static void without_receive(void)
{
    MPI_Request req;
    MPI_Status status;
    int value = 1, is_cancelled;
    if (rank)
        return;
    OK(MPI_Issend(got, LONG, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &req));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &is_cancelled));
    CHECK(is_cancelled);
    OK(MPI_Send(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
}

/* 11.2.2: the process of rank 0 goes on after MPI_Finalize and writes a result. */
int main(int argc, char **argv)
{
    char name[] = "/tmp/weft-finalize-XXXXXX";
    int bytes = LONG + MPI_BSEND_OVERHEAD, flag = 0, file;
    char *buffer = malloc((size_t)bytes);
    CHECK(buffer != NULL);
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    if (argc > 100) /* 11.2.1: with the arguments of main, or without */
        OK(MPI_Init(&argc, &argv));
    else
        OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    without_receive();
    under_way(buffer, bytes);
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    memset(buffer, 0, (size_t)bytes);
    free(buffer);
    if (rank)
        return 0;
    file = mkstemp(name);
    CHECK(file >= 0 && write(file, "done", 4) == 4 && close(file) == 0 && unlink(name) == 0);
    return 0;
}

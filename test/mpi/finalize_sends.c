/* np: 2 3 4 : sends to ranks that have called MPI_Finalize: short ones end as if sent, long and synchronous ones with an error; none hangs.
   With rank 2 of 4 there is no contact before. */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { SHORTS = 20000, LONG = 1 << 20 };

static char buffer[LONG];

static void error_of(int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    CHECK(rc, "%s: no error", what);
    OK(MPI_Error_class(rc, &class));
    OK(MPI_Error_string(rc, text, &length));
    CHECK((class == MPI_ERR_PROC_ABORTED || class == MPI_ERR_COMM /* the receiver had seen it */) && strstr(text, "MPI_Finalize"), "%s: class %d, %s", what, class, text);
}

/* Sends that begin while the receiver is still in MPI, and end by its MPI_Finalize. */
static void begin(int to, MPI_Comm comm, MPI_Request *reqs)
{
    OK(MPI_Issend(buffer, 8, MPI_CHAR, to, 0, comm, &reqs[0]));
    OK(MPI_Isend(buffer, LONG, MPI_CHAR, to, 0, comm, &reqs[1]));
    for (int i = 0; i < SHORTS; i++) {
        OK(MPI_Isend(buffer, i % 2 ? 8 : 3000, MPI_CHAR, to, 0, comm, &reqs[2]));
        OK(MPI_Request_free(&reqs[2]));
    }
    OK(MPI_Isend(buffer, 3000, MPI_CHAR, to, 0, comm, &reqs[2]));
}

static void end(MPI_Request *reqs)
{
    error_of(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE), "MPI_Issend before");
    error_of(MPI_Wait(&reqs[1], MPI_STATUS_IGNORE), "a long MPI_Isend before");
    OK(MPI_Wait(&reqs[2], MPI_STATUS_IGNORE));
}

static void after(int to, MPI_Comm comm)
{
    MPI_Request req;
    for (int i = 0; i < SHORTS; i++)
        OK(MPI_Send(buffer, i % 2 ? 8 : 3000, MPI_CHAR, to, 0, comm));
    error_of(MPI_Ssend(buffer, 8, MPI_CHAR, to, 0, comm), "MPI_Ssend");
    error_of(MPI_Send(buffer, LONG, MPI_CHAR, to, 0, comm), "a long MPI_Send");
    OK(MPI_Isend(buffer, 8, MPI_CHAR, to, 0, comm, &req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* A message each way. */
static void meet(int other) { OK(MPI_Sendrecv(NULL, 0, MPI_INT, other, 1, NULL, 0, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); }

int main(void)
{
    MPI_Comm comms[2] = {MPI_COMM_WORLD};
    MPI_Request reqs[2][2][3];
    int rank, size, met;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    met = size < 4 ? size - 1 : 2;
    if (rank < met)
        meet(size - 1);
    for (int other = 0; rank == size - 1 && other < met; other++)
        meet(other);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank < size - 1) { /* rank 1 stays after MPI_Finalize */
        usleep(300000);
        OK(MPI_Finalize());
        sleep(rank == 1 ? 2 : 0);
        return 0;
    }
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN));
    for (int to = 0; to < met; to++)
        for (int i = 0; i < 2; i++)
            begin(to, comms[i], reqs[to][i]);
    for (int to = 0; to < met; to++)
        for (int i = 0; i < 2; i++)
            end(reqs[to][i]);
    for (int to = 0; to < rank; to++)
        for (int i = 0; i < 2; i++)
            after(to, comms[i]);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Finalize());
    return 0;
}

/* np: 2 : after MPI_Finalize one rank opens a thousand sessions alone while the other makes no call, then the other, then both one */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { SESSIONS = 1000 };

static char path[64] = "/tmp/weft-sessions-XXXXXX";
static int file;

/* The ranks' order outside MPI: bytes of a file. */
static void await(off_t bytes)
{
    struct stat now;
    do {
        usleep(1000);
        CHECK(fstat(file, &now) == 0);
    } while (now.st_size < bytes);
}

static void tell(void) { CHECK(write(file, "x", 1) == 1); }

static void sessions_alone(void)
{
    MPI_Session session;
    for (int i = 0; i < SESSIONS; i++) {
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
        OK(MPI_Session_finalize(&session));
    }
    tell();
}

static void session_together(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int sum = 1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "together", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == 2);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
}

int main(int argc, char **argv)
{
    char message[64] = "";
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    if (!rank)
        CHECK((file = mkostemp(path, O_APPEND)) >= 0);
    for (int i = 0; i < 3; i++) { /* frames of two cells: the last of a full ring is lost then */
        if (rank)
            OK(MPI_Recv(path, 64, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Send(rank ? message : path, 64, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD));
        if (!rank)
            OK(MPI_Recv(message, 64, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (rank && !i)
            CHECK((file = open(path, O_RDWR | O_APPEND)) >= 0);
    }
    if (!rank)
        unlink(path);
    else
        usleep(300000);
    OK(MPI_Finalize());
    if (rank)
        tell(); /* it rests now */
    await(rank ? 2 : 1);
    usleep(500000);
    sessions_alone();
    await(3);
    session_together();
    return 0;
}

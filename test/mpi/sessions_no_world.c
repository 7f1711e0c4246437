/* np: 1 2 : with sessions alone and after MPI_Finalize MPI_COMM_WORLD and MPI_COMM_SELF are errors that say so; MPI_INFO_ENV used early */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static void no_world(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request;
    MPI_Group group;
    void *value;
    int flag, n, one = 1, sum;
    BAD(MPI_Comm_size(MPI_COMM_WORLD, &n), MPI_ERR_COMM, "MPI_COMM_WORLD", "MPI_Comm_create_from_group");
    BAD(MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COMM, "MPI_COMM_WORLD, which exists from MPI_Init to MPI_Finalize");
    BAD(MPI_Irecv(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request), MPI_ERR_COMM, "MPI_COMM_SELF");
    BAD(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COMM, "MPI_COMM_WORLD");
    BAD(MPI_Comm_dup(MPI_COMM_SELF, &made), MPI_ERR_COMM, "MPI_COMM_SELF");
    BAD(MPI_Comm_group(MPI_COMM_WORLD, &group), MPI_ERR_COMM, "MPI_COMM_WORLD");
    BAD(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag), MPI_ERR_COMM, "MPI_COMM_WORLD");
    BAD(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), MPI_ERR_COMM, "MPI_COMM_SELF");
}

static void maxprocs(int size)
{
    char text[16];
    int length = sizeof text, flag;
    OK(MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &length, text, &flag));
    CHECK(flag == (size > 0) && (!flag || atoi(text) == size), "%s", flag ? text : "none");
}

int main(void)
{
    MPI_Session session;
    int size;
    unsetenv("WEFT_BOOT_MAXPROCS"); /* as with other launchers */
    setenv("WEFT_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
    maxprocs(0); /* used before MPI_Init */
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    no_world();
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    maxprocs(size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_SELF));
    OK(MPI_Finalize());
    no_world();
    OK(MPI_Session_finalize(&session));
    return 0;
}

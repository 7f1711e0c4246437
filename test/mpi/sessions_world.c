/* np: 1 2 3 : sessions before, during and after the World Model, which they outlive */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static void use(MPI_Session session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    int size, one = 1, sum;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size);
    OK(MPI_Comm_free(&comm));
}

/* A communicator of a session without a buffer of its own uses the process's (MPI 5.0, 3.6, MPI_Buffer_attach). */
static void use_buffer(MPI_Session session)
{
    static char memory[1024];
    MPI_Group group;
    MPI_Comm comm;
    void *address;
    int size, rank, value, in = -1;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "buffer", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Comm_rank(comm, &rank));
    value = rank;
    OK(MPI_Buffer_attach(memory, sizeof memory));
    OK(MPI_Bsend(&value, 1, MPI_INT, (rank + 1) % size, 1, comm));
    OK(MPI_Recv(&in, 1, MPI_INT, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE));
    CHECK(in == (rank + size - 1) % size);
    OK(MPI_Buffer_detach(&address, &size));
    CHECK(address == memory && size == (int)sizeof memory);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    MPI_Session before, during;
    int flag, level, rank, size, one = 1, sum;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &before));
    use(before, "before");
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level));
    CHECK(level >= MPI_THREAD_FUNNELED);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &during));
    use(during, "during");
    use_buffer(during);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size);
    OK(MPI_Finalize());
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    use(before, "after"); /* the World Model is over, the sessions are not */
    OK(MPI_Session_finalize(&before));
    use(during, "last");
    OK(MPI_Session_finalize(&during));
    return 0;
}

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

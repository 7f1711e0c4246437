/* np: 1 2 3 4 7 : communicators from groups: create, create_group (also from several threads), idup, info; messages stay inside each */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"

static int rank, size;

/* Sum of the members' values is right, and a ring of messages in the communicator arrives in order. */
static void use(MPI_Comm comm, int expected_size, int expected_rank)
{
    int n, me, one = 1, sum = 0, in = -1, out;
    MPI_Status status;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &me));
    CHECK(n == expected_size && me == expected_rank, "size %d rank %d", n, me);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == n);
    out = me;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, (me + 1) % n, 5, &in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
    CHECK(in == (me + n - 1) % n && status.MPI_SOURCE == in && status.MPI_TAG == 5);
}

static void from_groups(void)
{
    MPI_Group world, odd, rest, reversed;
    MPI_Comm comm;
    int last_first[3] = {size - 1, 0, -1};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, &(int[1][3]){{0, size - 1, 2}}[0], &odd)); /* ranks 0, 2, 4 ... */
    OK(MPI_Group_difference(world, odd, &rest));
    OK(MPI_Comm_create(MPI_COMM_WORLD, rank % 2 ? rest : odd, &comm)); /* disjoint groups in one call */
    if (comm != MPI_COMM_NULL) {
        use(comm, rank % 2 ? size / 2 : (size + 1) / 2, rank / 2);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Group_range_incl(world, 1, &last_first, &reversed));
    OK(MPI_Comm_create(MPI_COMM_WORLD, reversed, &comm));
    use(comm, size, size - 1 - rank);
    OK(MPI_Comm_free(&comm));
    /* only the members call */
    if (rank % 2 == 0) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, odd, 77, &comm));
        use(comm, (size + 1) / 2, rank / 2);
        OK(MPI_Comm_free(&comm));
    } else {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, odd, 77, &comm)); /* local: no member */
        CHECK(comm == MPI_COMM_NULL);
    }
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, reversed, 0x7fffffff, &comm));
    use(comm, size, size - 1 - rank);
    OK(MPI_Comm_free(&comm));
    if (size > 1) { /* no subgroup: all fail */
        MPI_Comm part;
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &part));
        CHECK(class_of(MPI_Comm_create(part, world, &comm)) == MPI_ERR_GROUP);
        CHECK(class_of(MPI_Comm_create_group(part, world, 1, &comm)) == MPI_ERR_GROUP);
        OK(MPI_Comm_free(&part));
    }
    CHECK(class_of(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &comm)) == MPI_ERR_GROUP);
    CHECK(class_of(MPI_Comm_create_group(MPI_COMM_WORLD, world, -1, &comm)) == MPI_ERR_TAG);
    OK(MPI_Group_free(&reversed));
    OK(MPI_Group_free(&odd));
    OK(MPI_Group_free(&rest));
    OK(MPI_Group_free(&world));
}

/* Members make communicators of several groups in different orders by different tags, while collectives run on the parent. */
static void interleaved(void)
{
    MPI_Group world;
    MPI_Comm comms[2];
    MPI_Request barrier;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, i, &comms[i]));
    OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2; i++) {
        use(comms[i], size, rank);
        OK(MPI_Comm_free(&comms[i]));
    }
    OK(MPI_Group_free(&world));
}

static void *make_many(void *tag)
{
    MPI_Group world;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    for (int i = 0; i < 20; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, world, (int)(intptr_t)tag, &comm));
        use(comm, size, rank);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&world));
    return NULL;
}

static void threads(void)
{
    pthread_t thread[3];
    for (intptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&thread[i], NULL, make_many, (void *)(100 + i)) == 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

static void nonblocking(void)
{
    MPI_Comm comms[20], parts;
    MPI_Request reqs[20];
    MPI_Info info;
    int compare;
    for (int i = 0; i < 20; i++)
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &reqs[i]));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Waitall(20, reqs, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 20; i++) {
        use(comms[i], size, rank);
        OK(MPI_Comm_compare(comms[i], MPI_COMM_WORLD, &compare));
        CHECK(compare == MPI_CONGRUENT);
        OK(MPI_Comm_free(&comms[i]));
    }
    /* channel ids differ among the members: a split that only some take part in comes first */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? 0 : MPI_UNDEFINED, 0, &parts));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &comms[0], &reqs[0]));
    OK(MPI_Info_free(&info));
    OK(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_info(comms[0], &info));
    {
        char value[8];
        int length = 8, flag;
        OK(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, value, &flag));
        CHECK(flag && strcmp(value, "true") == 0);
    }
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&comms[0]));
    if (parts != MPI_COMM_NULL)
        OK(MPI_Comm_free(&parts));
}

static const char *hint(MPI_Comm comm, const char *key)
{
    static char value[16];
    MPI_Info info;
    int length = sizeof value, flag;
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    OK(MPI_Info_free(&info));
    return flag ? value : "";
}

static void hints(void)
{
    MPI_Comm comm, dup;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_exact_length", "true"));
    OK(MPI_Info_set(info, "unknown_hint", "x"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    use(comm, size, rank);
    CHECK(strcmp(hint(comm, "mpi_assert_exact_length"), "true") == 0);
    CHECK(strcmp(hint(comm, "mpi_assert_no_any_source"), "false") == 0 && strcmp(hint(comm, "unknown_hint"), "") == 0);
    OK(MPI_Comm_dup(comm, &dup)); /* hints are not copied (MPI 5.0 7.4.2) */
    CHECK(strcmp(hint(dup, "mpi_assert_exact_length"), "false") == 0);
    OK(MPI_Comm_set_info(dup, info));
    CHECK(strcmp(hint(dup, "mpi_assert_exact_length"), "true") == 0);
    OK(MPI_Comm_set_info(dup, MPI_INFO_NULL));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv)
{
    int level;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    from_groups();
    interleaved();
    threads();
    nonblocking();
    hints();
    OK(MPI_Finalize());
    return 0;
}

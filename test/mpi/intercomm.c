/* np: 2 3 4 7 : intercommunicators: create, messages, dup, split, create from a group, merge in both orders, free; errors */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size, side, local_size, local_rank, remote_size;

/* Each process sends to each of the other group; the sum of what comes is right, and sources are ranks of the remote group. */
static void use(MPI_Comm inter, int remote, int own)
{
    int inters = 0, n, me, in, out, sum = 0;
    MPI_Request reqs[16];
    MPI_Status status;
    OK(MPI_Comm_test_inter(inter, &inters));
    OK(MPI_Comm_remote_size(inter, &n));
    OK(MPI_Comm_rank(inter, &me));
    CHECK(inters && n == remote && me == own, "remote size %d, rank %d", n, me);
    out = 100 + me;
    for (int i = 0; i < n; i++)
        OK(MPI_Isend(&out, 1, MPI_INT, i, 3, inter, &reqs[i]));
    for (int i = 0; i < n; i++) {
        OK(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 3, inter, &status));
        CHECK(in == 100 + status.MPI_SOURCE && status.MPI_SOURCE < n);
        sum += in - 100;
    }
    OK(MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE));
    CHECK(sum == n * (n - 1) / 2);
}

static void merges(MPI_Comm inter)
{
    MPI_Comm merged;
    int me, n, one = 1, sum;
    for (int high = 0; high < 4; high++) { /* bit 0: of side 0, bit 1: of side 1 */
        int local_high = high >> side & 1, remote_high = high >> !side & 1;
        OK(MPI_Intercomm_merge(inter, local_high, &merged));
        OK(MPI_Comm_size(merged, &n));
        OK(MPI_Comm_rank(merged, &me));
        CHECK(n == local_size + remote_size);
        if (local_high != remote_high)
            CHECK(me == local_rank + (local_high ? remote_size : 0), "rank %d", me);
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged));
        CHECK(sum == n);
        OK(MPI_Comm_free(&merged));
    }
}

static void groups(MPI_Comm inter)
{
    MPI_Group local, remote;
    int n;
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Comm_remote_group(inter, &remote));
    OK(MPI_Group_size(local, &n));
    CHECK(n == local_size);
    OK(MPI_Group_size(remote, &n));
    CHECK(n == remote_size);
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&remote));
}

static void parts(MPI_Comm inter)
{
    MPI_Comm part;
    MPI_Group local, first;
    int compare;
    OK(MPI_Comm_dup(inter, &part));
    use(part, remote_size, local_rank);
    OK(MPI_Comm_compare(inter, part, &compare));
    CHECK(compare == MPI_CONGRUENT);
    OK(MPI_Comm_free(&part));
    /* only the first of each group, by MPI_Comm_create */
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Group_incl(local, 1, &(int){0}, &first));
    OK(MPI_Comm_create(inter, first, &part));
    CHECK((part != MPI_COMM_NULL) == (local_rank == 0));
    if (part != MPI_COMM_NULL) {
        use(part, 1, 0);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_create(inter, side ? MPI_GROUP_EMPTY : local, &part)); /* one side is empty: no communicator */
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&local));
    /* reversed order by key */
    OK(MPI_Comm_split(inter, 4, -local_rank, &part));
    use(part, remote_size, local_size - 1 - local_rank);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    if (part != MPI_COMM_NULL)
        OK(MPI_Comm_free(&part));
    /* a color that only one side has */
    OK(MPI_Comm_split(inter, side, 0, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Comm_split(inter, local_rank == 0 ? 0 : MPI_UNDEFINED, 0, &part));
    if (part != MPI_COMM_NULL) {
        use(part, 1, 0);
        OK(MPI_Comm_free(&part));
    }
}

static void errors(MPI_Comm local, MPI_Comm inter)
{
    MPI_Comm out;
    int value = 0;
    OK(MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    CHECK(class_of(MPI_Intercomm_create(local, local_size, MPI_COMM_WORLD, 0, 1, &out)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 1, &out)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 0, -1, &out)) == MPI_ERR_TAG);
    if (local_size == 1) /* significant at the leader only */
        CHECK(class_of(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, size, 1, &out)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Intercomm_merge(local, 0, &out)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, remote_size, 0, inter)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Comm_remote_size(local, &value)) == MPI_ERR_COMM);
}

/* The same leaders make several at a time, from threads' point of view in any order of tags. */
static void again(MPI_Comm local)
{
    MPI_Comm inter[3];
    for (int i = 0; i < 3; i++)
        OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, side ? 0 : 1, 40 + i, &inter[i]));
    for (int i = 2; i >= 0; i--) {
        use(inter[i], remote_size, local_rank);
        OK(MPI_Comm_free(&inter[i]));
    }
}

int main(int argc, char **argv)
{
    MPI_Comm local, inter, dup;
    check_start(&argc, &argv, &rank, &size);
    side = rank % 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &local));
    OK(MPI_Comm_size(local, &local_size));
    OK(MPI_Comm_rank(local, &local_rank));
    remote_size = size - local_size;
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, side ? 0 : 1, 12, &inter));
    use(inter, remote_size, local_rank);
    groups(inter);
    merges(inter);
    parts(inter);
    OK(MPI_Comm_dup(inter, &dup));
    OK(MPI_Comm_free(&inter)); /* the duplicate needs neither it nor the peer communicator */
    merges(dup);
    parts(dup);
    again(local);
    errors(local, dup);
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&local));
    OK(MPI_Finalize());
    return 0;
}

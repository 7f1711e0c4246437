/* np: 3 4 7 : leaders of MPI_Intercomm_create and _from_groups that would wait for each other for ever: an error in both groups, and the
 * right call afterwards */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

enum { TAG = 9 };
static int rank, size, side;
static MPI_Comm half, comm, made;

/* Even ranks form one group, odd ranks the other; ranks 0 and 1 lead. */
static int create(MPI_Comm peer, int remote_leader, int tag)
{
    made = MPI_COMM_WORLD;
    return MPI_Intercomm_create(half, 0, peer, remote_leader, tag, &made);
}

static void right(void)
{
    int value = rank, in = -1;
    OK(create(comm, !side, TAG));
    OK(MPI_Bcast(side ? &in : &value, 1, MPI_INT, side ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, made));
    CHECK(!side || in == 0);
    OK(MPI_Comm_free(&made));
    OK(MPI_Barrier(comm));
}

/* The two leaders fail, and the others by their leader. The barrier keeps the next call away until all have. */
static void expect_fail(int line, int code, const char *first, const char *second)
{
    const char *const both[] = {first, second, NULL}, *const none[] = {NULL};
    CHECK(made == MPI_COMM_NULL);
    expect(line, "leader", code, rank < 2 ? MPI_ERR_NOT_SAME : MPI_ERR_OTHER, rank < 2 ? both : none);
    OK(MPI_Barrier(comm));
}

static void tags(void)
{
    int code = create(comm, !side, side ? TAG + 1 : TAG);
    expect_fail(__LINE__, code, "rank 0, a leader, for rank 1 with tag 9", "rank 1, a leader, for rank 0 with tag 10");
    right();
}

static void peer_comms(void)
{
    MPI_Comm other;
    OK(MPI_Comm_dup(comm, &other));
    expect_fail(__LINE__, create(side ? other : comm, !side, TAG), "same tag and peer_comm", "rank 0");
    OK(MPI_Comm_free(&other));
    right();
}

/* Rank 1 names rank 2, a member of the group that rank 0 leads. */
static void member(void)
{
    int code;
    if (size < 4)
        return;
    code = create(comm, side ? 2 : 1, TAG);
    expect_fail(__LINE__, code, "rank 2 for its leader, rank 0", "remote_leader must be the leader");
    right();
}

/* Rank 0 names rank 2, a member of its own group; rank 1 waits for rank 0. */
static void own(void)
{
    int code = create(comm, side ? 0 : 2, TAG);
    if (rank == 0)
        BAD(code, MPI_ERR_NOT_SAME, "rank 2 for its leader, rank 0");
    else
        BAD(code, MPI_ERR_OTHER, rank == 1 ? "rank 0, failed before" : "");
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Barrier(comm));
    right();
}

/* Rank 0's argument is no rank of peer_comm: rank 1 cannot be told at once. */
static void no_rank(void)
{
    int code = create(comm, side ? 0 : size, TAG);
    BAD(code, rank ? MPI_ERR_OTHER : MPI_ERR_RANK, rank == 0 ? "remote_leader" : rank == 1 ? "rank 0, failed before" : "");
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Barrier(comm));
    right();
}

static int create_from(MPI_Group mine, MPI_Group far, int remote_leader, const char *string)
{
    made = MPI_COMM_WORLD;
    return MPI_Intercomm_create_from_groups(mine, 0, far, remote_leader, string, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
}

static void from_groups(void)
{
    int evens[1][3] = {{0, (size - 1) / 2 * 2, 2}}, odds[1][3] = {{1, (size - 2) / 2 * 2 + 1, 2}}, code;
    MPI_Group all, groups[2];
    OK(MPI_Comm_group(comm, &all));
    OK(MPI_Group_range_incl(all, 1, evens, &groups[0]));
    OK(MPI_Group_range_incl(all, 1, odds, &groups[1]));
    code = create_from(groups[side], groups[!side], rank == 0 ? 99 : 0, "weft-test-a");
    BAD(code, rank ? MPI_ERR_OTHER : MPI_ERR_RANK, rank == 0 ? "remote_leader" : rank == 1 ? "rank 0, failed before" : "");
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Barrier(comm));
    OK(create_from(groups[side], groups[!side], 0, "weft-test-a"));
    OK(MPI_Comm_free(&made));
    /* the local members of a call pass the same string; the groups do not */
    expect_fail(__LINE__, create_from(groups[side], groups[!side], 0, side ? "weft-test-b" : "weft-test-c"), "stringtag", "rank 1");
    OK(create_from(groups[side], groups[!side], 0, "weft-test-d"));
    OK(MPI_Comm_free(&made));
    OK(MPI_Group_free(&groups[0]));
    OK(MPI_Group_free(&groups[1]));
    OK(MPI_Group_free(&all));
}

/* Right, and slow: each leader waits for long for one that is in other calls meanwhile. */
static void slow(void)
{
    MPI_Comm self;
    int peers[3] = {0, 1, 2};
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    /* ring of pairs with one tag for all: 0-1, then 1-2, then 2-0; each waits in its first call until its turn */
    for (int i = 0; i < 3; i++) {
        int a = peers[i], b = peers[(i + 1) % 3];
        if (rank == a && i == 0) { /* rank 1 waits for rank 0, rank 2 for rank 1 */
            double begin = MPI_Wtime();
            while (MPI_Wtime() - begin < 2.5)
                ;
        }
        if (rank != a && rank != b)
            continue;
        OK(MPI_Intercomm_create(self, 0, comm, rank == a ? b : a, TAG, &made));
        OK(MPI_Comm_free(&made));
    }
    OK(MPI_Comm_free(&self));
    OK(MPI_Barrier(comm));
}

/* Rank 0 ends without the call that rank 1 waits for. */
static void gone(void)
{
    if (side == 1)
        BAD(create(MPI_COMM_WORLD, 0, TAG), MPI_ERR_OTHER, rank == 1 ? "has called MPI_Finalize" : "");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    side = rank % 2;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_split(comm, side, 0, &half));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    right();
    tags();
    peer_comms();
    member();
    own();
    no_rank();
    from_groups();
    slow();
    OK(MPI_Comm_free(&comm));
    gone();
    OK(MPI_Finalize());
    return 0;
}

/* np: 3 4 6 : a call that makes a communicator and fails on one member fails on all, with texts that name the member; no handle is left */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static int rank, size, side, deleted;
static MPI_Comm comm, made;
static char other[64]; /* what the members that are fine must say */

enum { WRONG = 1 }; /* the member that fails */

/* The call is `good` on all members but one. */
#define ONE_BAD(good, bad, class_, ...) \
    do { \
        made = MPI_COMM_WORLD; \
        if (rank == WRONG) \
            BAD(bad, class_, __VA_ARGS__); \
        else \
            BAD(good, MPI_ERR_OTHER, other); \
        CHECK(made == MPI_COMM_NULL || rank == WRONG); \
    } while (0)

static int copy(MPI_Comm from, int key, void *extra, void *value, void *out, int *flag)
{
    *(void **)out = value;
    *flag = 1;
    return (void)from, (void)key, (void)extra, rank == WRONG && value ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static int delete(MPI_Comm from, int key, void *value, void *extra)
{
    deleted++;
    return (void)from, (void)key, (void)extra, (void)value, MPI_SUCCESS;
}

static int idup_wait(MPI_Comm of, MPI_Comm *newcomm)
{
    MPI_Request req = MPI_REQUEST_NULL;
    int code = MPI_Comm_idup(of, newcomm, &req), freed = MPI_SUCCESS;
    if (code)
        return code;
    if (rank == 0)
        freed = MPI_Request_free(&req);
    CHECK(rank || (class_of(freed) == MPI_ERR_REQUEST && req != MPI_REQUEST_NULL));
    return MPI_Wait(&req, MPI_STATUS_IGNORE);
}

/* The copy function of the second attribute fails on one member: the copy of the first is deleted on all. */
static void copies(MPI_Comm of)
{
    int first, second;
    MPI_Request req;
    OK(MPI_Comm_create_keyval(copy, delete, &first, NULL));
    OK(MPI_Comm_create_keyval(copy, delete, &second, NULL));
    OK(MPI_Comm_set_attr(of, first, NULL));
    OK(MPI_Comm_set_attr(of, second, &rank));
    deleted = 0;
    ONE_BAD(MPI_Comm_dup(of, &made), MPI_Comm_dup(of, &made), MPI_ERR_INTERN, "copy function");
    CHECK(made == MPI_COMM_NULL && deleted == (rank == WRONG ? 1 : 2), "%d copies deleted", deleted);
    ONE_BAD(MPI_Comm_dup_with_info(of, MPI_INFO_NULL, &made), MPI_Comm_dup_with_info(of, MPI_INFO_NULL, &made), MPI_ERR_INTERN, "copy");
    CHECK(made == MPI_COMM_NULL);
    deleted = 0;
    if (side < 0) { /* not of an intercommunicator */
        ONE_BAD(idup_wait(of, &made), idup_wait(of, &made), MPI_ERR_INTERN, "copy function");
        CHECK(made == MPI_COMM_NULL && deleted == (rank == WRONG ? 1 : 2), "%d copies deleted", deleted);
        OK(MPI_Comm_delete_attr(of, second));
        /* several at once, one of them wrong; the handles of the wrong one cannot be used */
        for (int turn = 0; turn < 50; turn++) {
            MPI_Comm kept, good;
            MPI_Request reqs[2];
            int codes[2], value;
            OK(MPI_Comm_set_attr(of, second, &rank));
            codes[0] = MPI_Comm_idup(of, &made, &reqs[0]);
            OK(MPI_Comm_delete_attr(of, second));
            codes[1] = MPI_Comm_idup(of, &good, &reqs[1]);
            kept = made;
            OK(codes[0] | codes[1]);
            OK(MPI_Wait(&reqs[1], MPI_STATUS_IGNORE));
            OK(MPI_Barrier(good));
            CHECK(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE) != MPI_SUCCESS && made == MPI_COMM_NULL);
            if (kept != MPI_COMM_NULL)
                BAD(MPI_Comm_rank(kept, &value), MPI_ERR_COMM, "comm");
            OK(MPI_Comm_free(&good));
        }
        if (rank == WRONG)
            BAD(MPI_Comm_idup(of, NULL, &req), MPI_ERR_ARG, "newcomm is NULL");
        else
            BAD(idup_wait(of, &made), MPI_ERR_OTHER, other);
        if (rank == WRONG)
            BAD(MPI_Comm_idup_with_info(of, (MPI_Info)(void *)&rank, &made, &req), MPI_ERR_INFO, "info");
        else
            BAD(idup_wait(of, &made), MPI_ERR_OTHER, other);
        CHECK(made == MPI_COMM_NULL);
    } else {
        OK(MPI_Comm_delete_attr(of, second));
    }
    OK(MPI_Comm_delete_attr(of, first));
    OK(MPI_Comm_free_keyval(&first));
    OK(MPI_Comm_free_keyval(&second));
}

static void intra(void)
{
    int dims[2] = {1, 2}, zero[2] = {0, 2}, periods[2] = {0}, index[2] = {1, 2}, edges[2] = {1, 0}, one = 1, in = 0;
    MPI_Group group, freed;
    MPI_Comm grid;
    MPI_Info none = MPI_INFO_NULL, wrong = (MPI_Info)(void *)&rank;
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Group_incl(group, 1, &in, &freed));
    OK(MPI_Group_free(&freed));
    freed = MPI_GROUP_NULL;
    ONE_BAD(MPI_Comm_dup(comm, &made), MPI_Comm_dup(comm, NULL), MPI_ERR_ARG, "newcomm is NULL");
    ONE_BAD(MPI_Comm_dup_with_info(comm, none, &made), MPI_Comm_dup_with_info(comm, wrong, &made), MPI_ERR_INFO, "info");
    ONE_BAD(MPI_Comm_create(comm, group, &made), MPI_Comm_create(comm, freed, &made), MPI_ERR_GROUP, "group");
    ONE_BAD(MPI_Comm_create_group(comm, group, 5, &made), MPI_Comm_create_group(comm, group, 5, NULL), MPI_ERR_ARG, "newcomm is NULL");
    ONE_BAD(MPI_Comm_split(comm, 0, 0, &made), MPI_Comm_split(comm, -3, 0, &made), MPI_ERR_ARG, "color is -3");
    ONE_BAD(MPI_Comm_split(comm, 0, 0, &made), MPI_Comm_split(comm, 0, 0, NULL), MPI_ERR_ARG, "newcomm is NULL");
    ONE_BAD(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, none, &made),
            MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, wrong, &made), MPI_ERR_INFO, "info");
    ONE_BAD(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, none, &made), MPI_Comm_split_type(comm, 4711, 0, none, &made), MPI_ERR_ARG,
            "4711");
    for (int reorder = 0; reorder < 2; reorder++) {
        ONE_BAD(MPI_Cart_create(comm, 2, dims, periods, reorder, &made), MPI_Cart_create(comm, 2, NULL, periods, reorder, &made),
                MPI_ERR_ARG, "dims is NULL");
        ONE_BAD(MPI_Cart_create(comm, 2, dims, periods, reorder, &made), MPI_Cart_create(comm, 2, zero, periods, reorder, &made),
                MPI_ERR_DIMS, "dims[0] is 0");
        ONE_BAD(MPI_Graph_create(comm, 2, index, edges, reorder, &made), MPI_Graph_create(comm, 2, NULL, edges, reorder, &made),
                MPI_ERR_ARG, "indx is NULL");
        ONE_BAD(MPI_Dist_graph_create(comm, 1, &in, &one, &one, MPI_UNWEIGHTED, none, reorder, &made),
                MPI_Dist_graph_create(comm, 1, NULL, &one, &one, MPI_UNWEIGHTED, none, reorder, &made), MPI_ERR_ARG, "sources is NULL");
        ONE_BAD(MPI_Dist_graph_create_adjacent(comm, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, none, reorder, &made),
                MPI_Dist_graph_create_adjacent(comm, 1, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, none, reorder, &made), MPI_ERR_ARG,
                "sources is NULL");
    }
    OK(MPI_Cart_create(comm, 1, &size, periods, 0, &grid));
    ONE_BAD(MPI_Cart_sub(grid, &one, &made), MPI_Cart_sub(grid, &one, NULL), MPI_ERR_ARG, "newcomm is NULL");
    OK(MPI_Comm_free(&grid));
    OK(MPI_Group_free(&group));
}

/* Of the members of the failing one's group and of the other group. */
static void expect_inter(int code)
{
    snprintf(other, sizeof other, "rank %d of the %s group", WRONG / 2, side == WRONG % 2 ? "local" : "remote");
    if (rank == WRONG)
        CHECK(code != MPI_SUCCESS);
    else
        BAD(code, MPI_ERR_OTHER, other);
    CHECK(made == MPI_COMM_NULL);
}

static void inter(void)
{
    MPI_Comm half, between;
    MPI_Group group;
    int code;
    side = rank % 2;
    OK(MPI_Comm_split(comm, side, 0, &half));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    made = MPI_COMM_WORLD;
    if (size >= 4) { /* rank 3 is no leader */
        code = MPI_Intercomm_create(half, rank == 3 ? 7 : 0, comm, side ? 0 : 1, 2, &made);
        if (rank == 3)
            BAD(code, MPI_ERR_RANK, "local_leader is 7");
        else
            BAD(code, MPI_ERR_OTHER, side ? "rank 1 of the local group" : "rank 1 of the remote group");
        CHECK(made == MPI_COMM_NULL);
    }
    if (side == 1) { /* the leader cannot reach the other group, which does not call here; the leader's group gets the error */
        code = MPI_Intercomm_create(half, 0, rank == 1 ? MPI_COMM_NULL : comm, 0, 2, &made);
        BAD(code, rank == 1 ? MPI_ERR_COMM : MPI_ERR_OTHER, rank == 1 ? "peer_comm" : "rank 0 of the local group");
        CHECK(made == MPI_COMM_NULL);
    }
    OK(MPI_Intercomm_create(half, 0, comm, side ? 0 : 1, 2, &between));
    OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    OK(MPI_Comm_group(between, &group));
    made = MPI_COMM_NULL;
    expect_inter(MPI_Comm_dup(between, rank == WRONG ? NULL : &made));
    expect_inter(MPI_Comm_split(between, rank == WRONG ? -4 : 0, 0, &made));
    expect_inter(MPI_Comm_create(between, rank == WRONG ? MPI_GROUP_NULL : group, &made));
    expect_inter(MPI_Intercomm_merge(between, side, rank == WRONG ? NULL : &made));
    OK(MPI_Group_free(&group));
    OK(MPI_Intercomm_merge(between, side, &made)); /* all is well afterwards */
    OK(MPI_Barrier(made));
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&half));
    side = -1;
}

static int wrong_leader(MPI_Group own, MPI_Group far, int leads)
{
    return MPI_Intercomm_create_from_groups(own, 0, far, leads && side ? 999 : 0, "weft-test-leader", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                            &made);
}

static void from_groups(void)
{
    MPI_Group all, own, far, some;
    int evens[1][3] = {{0, (size - 1) / 2 * 2, 2}}, odds[1][3] = {{1, (size - 2) / 2 * 2 + 1, 2}}, code, leads;
    OK(MPI_Comm_group(comm, &all));
    OK(MPI_Group_range_incl(all, 1, evens, &some));
    OK(MPI_Group_range_incl(all, 1, odds, &own));
    side = rank % 2;
    far = side ? some : own;
    own = side ? own : some;
    leads = rank < 2;
    made = MPI_COMM_WORLD;
    code = MPI_Comm_create_from_group(all, "weft-test-a", rank == WRONG ? (MPI_Info)(void *)&rank : MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                      &made);
    if (rank == WRONG)
        BAD(code, MPI_ERR_INFO, "info");
    else
        BAD(code, MPI_ERR_OTHER, "rank 1 of the group");
    CHECK(made == MPI_COMM_NULL);
    /* an empty remote group, known to the leader only: the others may pass anything */
    made = MPI_COMM_WORLD;
    OK(MPI_Intercomm_create_from_groups(own, 0, leads ? MPI_GROUP_EMPTY : MPI_GROUP_NULL, 0, "weft-test-b", MPI_INFO_NULL,
       MPI_ERRORS_RETURN,
                                        &made));
    CHECK(made == MPI_COMM_NULL);
    /* the others may pass an empty one where the leader's is not */
    OK(MPI_Intercomm_create_from_groups(own, 0, leads ? far : MPI_GROUP_EMPTY, 0, "weft-test-c", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    CHECK(made != MPI_COMM_NULL);
    OK(MPI_Comm_free(&made));
    /* one side's leader names no rank of the other side: no message can reach that side, so it does not call here */
    if (side) {
        code = wrong_leader(own, far, leads);
        BAD(code, leads ? MPI_ERR_RANK : MPI_ERR_OTHER, leads ? "remote_leader is 999" : "rank 0 of the group");
        CHECK(made == MPI_COMM_NULL);
    }
    OK(MPI_Barrier(comm));
    /* a leader whose newintercomm is NULL reaches the other side */
    code = MPI_Intercomm_create_from_groups(own, 0, far, 0, "weft-test-d", MPI_INFO_NULL, MPI_ERRORS_RETURN, rank == WRONG ? NULL : &made);
    if (rank == WRONG)
        BAD(code, MPI_ERR_ARG, "newintercomm is NULL");
    else
        BAD(code, MPI_ERR_OTHER, side ? "rank 0 of the group" : "rank 0 of the remote group");
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&far));
    OK(MPI_Group_free(&all));
    side = -1;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_name(comm, "the one"));
    snprintf(other, sizeof other, "rank %d of the ", WRONG); /* "the one", or the group */
    side = -1;
    copies(comm);
    intra();
    inter();
    from_groups();
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}

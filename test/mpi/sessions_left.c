/* np: 2 3 6 : processes that have ended are named by MPI_Comm_create_from_group and MPI_Intercomm_create_from_groups: an error on all
 * others, and no hang; then the others make a communicator without them */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <unistd.h>

#include "check.h"

static int rank, size;
static MPI_Session session;

/* The ranks from <= i < to, without those of `gone`. */
static MPI_Group group_of(int from, int to, unsigned gone)
{
    MPI_Group all, some;
    int ranks[64], n = 0;
    for (int i = from; i < to; i++)
        if (!(gone >> i & 1))
            ranks[n++] = i;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    OK(MPI_Group_incl(all, n, ranks, &some));
    OK(MPI_Group_free(&all));
    return some;
}

static void expect_left(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    CHECK(code != MPI_SUCCESS);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    if (class != MPI_ERR_PROC_ABORTED)
        printf("%s: class %d, %s\n", call, class, text);
    CHECK(class == MPI_ERR_PROC_ABORTED);
}

/* All that are not in `gone` call; `leaver`, of the group, has ended or will. */
static void intra(unsigned gone, int leaver, const char *tag)
{
    MPI_Group with = group_of(0, size, gone & ~(1u << leaver)), without = group_of(0, size, gone);
    MPI_Comm comm = MPI_COMM_NULL;
    int one = 1, sum, members;
    expect_left(MPI_Comm_create_from_group(with, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), "MPI_Comm_create_from_group");
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Comm_create_from_group(without, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    OK(MPI_Comm_size(comm, &members));
    CHECK(sum == members);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&with));
    OK(MPI_Group_free(&without));
}

/* The last one left and `leaver`, as the leader of the other group; then `leaver` in the local group. */
static void inter(int leaver)
{
    MPI_Group own = group_of(rank, rank + 1, 0), other = group_of(leaver, leaver + 1, 0);
    MPI_Group both = group_of(0, size, ~(1u << rank | 1u << leaver));
    MPI_Comm comm = MPI_COMM_NULL;
    int leader;
    expect_left(MPI_Intercomm_create_from_groups(own, 0, other, 0, "inter", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), "remote leader");
    OK(MPI_Group_rank(both, &leader));
    expect_left(MPI_Intercomm_create_from_groups(both, leader, other, 0, "inter", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), "member");
    expect_left(MPI_Intercomm_create_from_groups(both, !leader, other, 0, "inter", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), "leader");
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&both));
}

/* In round i rank order(i) ends: the last one, the first one, then those from 1. */
static int order(int i) { return i == 0 ? size - 1 : i - 1; }

int main(int argc, char **argv)
{
    unsigned gone = 0;
    int value = 7;
#ifdef WITHOUT_WORLD
    const char *number = "alone";
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    MPI_Group all;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    OK(MPI_Group_rank(all, &rank));
    OK(MPI_Group_size(all, &size));
    OK(MPI_Group_free(&all));
    check_rank = rank;
    (void)argc, (void)argv, (void)value;
#else
    const char *number = "after";
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Finalize());
#endif
    for (int i = 0; i < size - 1; i++) {
        char tag[32];
        int leaver = order(i);
        gone |= 1u << leaver;
        if (rank == leaver) {
            usleep(i % 2 ? 400000 : 0); /* before and after the others have begun to wait */
            OK(MPI_Session_finalize(&session));
            return 0;
        }
        snprintf(tag, sizeof tag, "%s-%d", number, i);
        intra(gone, leaver, tag);
    }
    inter(order(size - 2));
    OK(MPI_Session_finalize(&session));
    return 0;
}

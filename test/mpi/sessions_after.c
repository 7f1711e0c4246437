/* np: 1 2 4 : sessions opened after MPI_Finalize, again and again, by all ranks or some: groups, communicators, messages of all lengths,
 * splits, intercommunicators */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "check.h"

enum { LONG = 3000000 };
static int rank, size;
static unsigned char *out, *in;

static MPI_Comm make(MPI_Session session, const char *tag)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

static void ring(MPI_Comm comm, size_t bytes, unsigned seed)
{
    int me, n, before;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    before = (me + n - 1) % n;
    check_fill(out, bytes, seed + (unsigned)me);
    OK(MPI_Sendrecv(out, (int)bytes, MPI_BYTE, (me + 1) % n, 5, in, LONG, MPI_BYTE, before, 5, comm, MPI_STATUS_IGNORE));
    CHECK(check_wrong(in, bytes, seed + (unsigned)before) == bytes);
}

/* More short messages than the credit of a peer. */
static void flood(MPI_Comm comm)
{
    enum { N = 4000 };
    static int values[N];
    MPI_Request requests[2];
    int me, n, sum = 0;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    for (int i = 0; i < N; i++) {
        OK(MPI_Isend(&me, 1, MPI_INT, (me + 1) % n, 1, comm, &requests[0]));
        OK(MPI_Irecv(&values[i], 1, MPI_INT, (me + n - 1) % n, 1, comm, &requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        sum += values[i];
    }
    CHECK(sum == N * ((me + n - 1) % n));
}

static void use(MPI_Session session, const char *tag, unsigned seed)
{
    static const size_t lengths[] = {0, 8, 1000, 20000, 200000, LONG};
    MPI_Comm comm = make(session, tag), part;
    int one = 1, sum;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        ring(comm, lengths[i], seed);
    flood(comm);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size);
    OK(MPI_Comm_split(comm, rank % 2, 0, &part));
    ring(part, 5000, seed + 100);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&comm));
}

static void pair_up(MPI_Session session)
{
    MPI_Group all, groups[2];
    MPI_Comm inter;
    int evens[1][3] = {{0, (size - 1) / 2 * 2, 2}}, odds[1][3] = {{1, (size - 2) / 2 * 2 + 1, 2}}, value = rank, got = -1;
    if (size % 2)
        return;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
    OK(MPI_Group_range_incl(all, 1, evens, &groups[0]));
    OK(MPI_Group_range_incl(all, 1, odds, &groups[1]));
    OK(MPI_Intercomm_create_from_groups(groups[rank % 2], 0, groups[!(rank % 2)], 0, "after-inter", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                        &inter));
    OK(MPI_Sendrecv(&value, 1, MPI_INT, rank / 2, 0, &got, 1, MPI_INT, rank / 2, 0, inter, MPI_STATUS_IGNORE));
    CHECK(got == (rank ^ 1));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Group_free(&groups[0]));
    OK(MPI_Group_free(&groups[1]));
    OK(MPI_Group_free(&all));
}

int main(int argc, char **argv)
{
    MPI_Session session, kept = MPI_SESSION_NULL;
    int flag;
    out = malloc(LONG);
    in = malloc(LONG);
    check_start(&argc, &argv, &rank, &size);
    ring(MPI_COMM_WORLD, LONG, 7);
    flood(MPI_COMM_WORLD);
    if (rank == 1) /* ranks finalize and return while others are still in the World Model, or keep a session */
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &kept));
    if (rank == 2)
        usleep(300000);
    OK(MPI_Finalize());
    for (unsigned i = 0; i < 6; i++) {
        char tag[20];
        snprintf(tag, sizeof tag, "after-%u", i);
        if ((unsigned)rank == i)
            usleep(50000);
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
        use(session, tag, i);
        if (i % 2)
            pair_up(session);
        OK(MPI_Session_finalize(&session));
        CHECK(session == MPI_SESSION_NULL);
        for (unsigned k = 0; k < i * (unsigned)rank; k++) { /* some ranks open more sessions than others */
            OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
            OK(MPI_Session_finalize(&session));
        }
    }
    if (rank == 1)
        OK(MPI_Session_finalize(&kept));
    OK(MPI_Finalized(&flag));
    CHECK(flag);
    free(out);
    free(in);
    return 0;
}

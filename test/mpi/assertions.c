/* np: 2 3 : assertions of communicator info: wildcards are errors where the program asserts that it uses none; where messages may overtake,
 * one that is asked for leaves ahead of those that wait for credit before it; exact lengths */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"
#include "tool_counter.h"

enum { MESSAGES = 5000, EARLY = 1, LATE = 2 };
static int rank, size;

static void set(MPI_Comm comm, const char *key, const char *value)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Info_free(&info));
}

static void wildcards(MPI_Comm comm)
{
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    int value = 1, in = 0, flag;
    set(comm, "mpi_assert_no_any_source", "true");
    BAD(MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &status), MPI_ERR_RANK, "MPI_ANY_SOURCE", "mpi_assert_no_any_source");
    BAD(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &request), MPI_ERR_RANK, "mpi_assert_no_any_source");
    BAD(MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &request), MPI_ERR_RANK, "mpi_assert_no_any_source");
    BAD(MPI_Iprobe(MPI_ANY_SOURCE, 1, comm, &flag, &status), MPI_ERR_RANK, "mpi_assert_no_any_source");
    BAD(MPI_Sendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 1, &in, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &status), MPI_ERR_RANK,
        "mpi_assert_no_any_source");
    OK(MPI_Sendrecv(&value, 1, MPI_INT, rank, 1, &in, 1, MPI_INT, rank, MPI_ANY_TAG, comm, &status));
    CHECK(in == 1 && status.MPI_TAG == 1);
    OK(MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &status));
    set(comm, "mpi_assert_no_any_source", "false");
    set(comm, "mpi_assert_no_any_tag", "true");
    BAD(MPI_Recv(&in, 1, MPI_INT, rank, MPI_ANY_TAG, comm, &status), MPI_ERR_TAG, "MPI_ANY_TAG", "mpi_assert_no_any_tag");
    BAD(MPI_Mprobe(rank, MPI_ANY_TAG, comm, &message, &status), MPI_ERR_TAG, "mpi_assert_no_any_tag");
    OK(MPI_Sendrecv(&value, 1, MPI_INT, rank, 1, &in, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &status));
    CHECK(status.MPI_SOURCE == rank);
    set(comm, "mpi_assert_no_any_tag", "false");
    OK(MPI_Sendrecv(&value, 1, MPI_INT, rank, 1, &in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
}

/* Exact lengths are asserted, and the receives are longer all the same: harmless. */
static void lengths(MPI_Comm comm)
{
    static char out[100000], in[200000];
    MPI_Status status;
    int count;
    set(comm, "mpi_assert_exact_length", "true");
    for (int bytes = 1; bytes <= (int)sizeof out; bytes *= 10) {
        check_fill(out, (size_t)bytes, (unsigned)rank);
        OK(MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 3, in, 2 * bytes, MPI_BYTE, (rank + size - 1) % size, 3, comm, &status));
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == bytes && check_wrong(in, (size_t)bytes, (unsigned)((rank + size - 1) % size)) == (size_t)bytes);
    }
}

static void send_all(MPI_Comm comm)
{
    static int values[MESSAGES + 1];
    static MPI_Request requests[MESSAGES + 1];
    for (int i = 0; i <= MESSAGES; i++) {
        values[i] = i;
        OK(MPI_Isend(&values[i], 1, MPI_INT, 1, i == MESSAGES ? LATE : EARLY, comm, &requests[i]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* now all wait, the late one last */
    OK(MPI_Waitall(MESSAGES + 1, requests, MPI_STATUSES_IGNORE));
}

/* Returns how many messages rank 1 kept when it had received the late one. */
static unsigned long long receive_late(MPI_Comm comm)
{
    MPI_T_pvar_handle unexpected = counter("weft_unexpected");
    unsigned long long before = value_of(unexpected), kept;
    int value;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Recv(&value, 1, MPI_INT, 0, LATE, comm, MPI_STATUS_IGNORE));
    kept = value_of(unexpected) - before;
    CHECK(value == MESSAGES);
    for (int i = 0; i < MESSAGES; i++) {
        OK(MPI_Recv(&value, 1, MPI_INT, 0, EARLY, comm, MPI_STATUS_IGNORE));
        CHECK(value == i, "%d came as message %d", value, i);
    }
    return kept;
}

static void overtaking(MPI_Comm comm)
{
    unsigned long long kept[2] = {0, 0};
    for (int may = 0; may < 2; may++) {
        set(comm, "mpi_assert_allow_overtaking", may ? "true" : "false");
        if (rank == 0)
            send_all(comm);
        else if (rank == 1)
            kept[may] = receive_late(comm);
        else
            OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    if (rank == 1)
        fprintf(stderr, "unexpected messages before the late one: %llu in order, %llu with overtaking\n", kept[0], kept[1]);
    CHECK(rank != 1 || (kept[0] > MESSAGES - MESSAGES / 4 && kept[1] < MESSAGES / 2), "%llu %llu", kept[0], kept[1]);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    int provided;
    setenv("WEFT_CREDIT_KIB", "16", 1);
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    wildcards(comm);
    OK(MPI_Barrier(comm)); /* a wildcard could take a message of the next test */
    lengths(comm);
    overtaking(comm);
    OK(MPI_Comm_free(&comm));
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}

/* np: 2 5 80 : many ranks on a node, and many communicators at a time: more than areas of full size */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool_counter.h"

enum { COMMS = 200, COMMS_OF_MANY = 70, LONG = 3000, ROUNDS = 40 };

static int rank, size;

static void sum(MPI_Comm comm, int count, int salt)
{
    static long in[LONG], out[LONG];
    MPI_Request req = MPI_REQUEST_NULL;
    for (int i = 0; i < count; i++)
        in[i] = rank + i + salt;
    if (salt % 2)
        OK(MPI_Iallreduce(in, out, count, MPI_LONG, MPI_SUM, comm, &req));
    else
        OK(MPI_Allreduce(in, out, count, MPI_LONG, MPI_SUM, comm));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    for (int i = 0; i < count; i++)
        CHECK(out[i] == size * (size - 1) / 2 + (long)size * (i + salt), "item %d of %d, salt %d: %ld", i, count, salt, out[i]);
}

/* Blocks of 3 ints. */
static void exchange(MPI_Comm comm, int salt)
{
    int *in = malloc((size_t)size * 3 * sizeof(int)), *out = malloc((size_t)size * 3 * sizeof(int));
    for (int i = 0; i < size * 3; i++)
        in[i] = rank * 1000 + i + salt;
    OK(MPI_Alltoall(in, 3, MPI_INT, out, 3, MPI_INT, comm));
    for (int i = 0; i < size * 3; i++)
        CHECK(out[i] == i / 3 * 1000 + rank * 3 + i % 3 + salt, "alltoall, salt %d, item %d: %d", salt, i, out[i]);
    OK(MPI_Allgather(&in[1], 1, MPI_INT, out, 1, MPI_INT, comm));
    for (int i = 0; i < size; i++)
        CHECK(out[i] == i * 1000 + 1 + salt, "allgather, salt %d, item %d: %d", salt, i, out[i]);
    free(in);
    free(out);
}

/* Each communicator is used, the last ones too, without messages if all ranks are on one node. */
static void many_communicators(int count)
{
    static MPI_Comm comms[COMMS];
    MPI_T_pvar_handle frames;
    MPI_Comm node;
    int members;
    unsigned long long before;
    for (int i = 0; i < count; i++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
        sum(comms[i], 1, 2 * i);
    }
    for (int i = 0; i < count; i++)
        sum(comms[i], i % 5 ? 1 + i : LONG, i);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &members));
    OK(MPI_Comm_free(&node));
    frames = counter("weft_frames_sent");
    before = value_of(frames);
    for (int round = 0; round < ROUNDS; round++)
        sum(comms[count - 1], 1, round);
    CHECK(members != size || value_of(frames) - before < ROUNDS / 4, "%llu frames", value_of(frames) - before);
    for (int i = 0; i < count; i++)
        OK(MPI_Comm_free(&comms[i]));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &(int){0}));
    OK(MPI_T_pvar_session_create(&session));
    for (int i = 0; i < 10; i++) {
        sum(MPI_COMM_WORLD, 1 + i * 100, i);
        exchange(MPI_COMM_WORLD, i);
    }
    many_communicators(size > 8 ? COMMS_OF_MANY : COMMS);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}

/* np: 2 4 5 : wrong collective calls on intercommunicators: arguments; calls of the groups that differ: errors that name both */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_call.h"
#include "expect.h"

static int world_rank, world_size, side, rank, sizes[2];
static char *out, *in; /* LONG bytes for each rank */
enum { LONG = 70000 };

/* ---- arguments: errors of one rank; no other rank has made the call ---- */

static void in_place(MPI_Comm inter)
{
    MPI_Request request;
    BAD(MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER, "MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Iallreduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, inter, &request), MPI_ERR_BUFFER, "MPI_IN_PLACE", "intercommunicator");
    CHECK(request == MPI_REQUEST_NULL);
    BAD(MPI_Allreduce(out, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, inter), MPI_ERR_BUFFER, "MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Allgather_init(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, inter, MPI_INFO_NULL, &request), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    BAD(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, inter), MPI_ERR_BUFFER, "MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, inter), MPI_ERR_BUFFER, "buffer is MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, MPI_ROOT, inter), MPI_ERR_BUFFER, "buffer is MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Reduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, 0, inter), MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, 0, inter), MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Gather(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, MPI_ROOT, inter), MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE");
    BAD(MPI_Scatter(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, inter), MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE", "intercommunicator");
    BAD(MPI_Scatter(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, MPI_ROOT, inter), MPI_ERR_BUFFER, "sendbuf is MPI_IN_PLACE");
}

static void arguments(MPI_Comm inter)
{
    int past = sizes[!side];
    BAD(MPI_Bcast(in, 1, MPI_INT, past, inter), MPI_ERR_ROOT, "root is", "remote group", "MPI_ROOT", "MPI_PROC_NULL");
    BAD(MPI_Bcast(in, 1, MPI_INT, MPI_ANY_SOURCE, inter), MPI_ERR_ROOT, "remote group");
    BAD(MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, past, inter), MPI_ERR_ROOT, "remote group");
    BAD(MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, -17, inter), MPI_ERR_ROOT, "remote group");
    BAD(MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, past, inter), MPI_ERR_ROOT, "remote group");
    /* what is significant depends on the root */
    BAD(MPI_Bcast(NULL, 1, MPI_INT, 0, inter), MPI_ERR_BUFFER, "buffer is NULL");
    BAD(MPI_Bcast(in, -1, MPI_INT, MPI_ROOT, inter), MPI_ERR_COUNT, "count is -1");
    BAD(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, MPI_ROOT, inter), MPI_ERR_TYPE, "MPI_DATATYPE_NULL");
    BAD(MPI_Gather(NULL, 1, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, 0, inter), MPI_ERR_BUFFER, "sendbuf is NULL");
    BAD(MPI_Gather(out, -1, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, 0, inter), MPI_ERR_COUNT, "sendcount is -1");
    BAD(MPI_Gather(NULL, -1, MPI_DATATYPE_NULL, in, -1, MPI_INT, MPI_ROOT, inter), MPI_ERR_COUNT, "recvcount is -1");
    BAD(MPI_Gather(NULL, -1, MPI_DATATYPE_NULL, in, 1, MPI_DATATYPE_NULL, MPI_ROOT, inter), MPI_ERR_TYPE, "recvtype");
    BAD(MPI_Gather(NULL, -1, MPI_DATATYPE_NULL, NULL, 1, MPI_INT, MPI_ROOT, inter), MPI_ERR_BUFFER, "recvbuf is NULL");
    BAD(MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, NULL, 1, MPI_INT, 0, inter), MPI_ERR_BUFFER, "recvbuf is NULL");
    BAD(MPI_Scatter(NULL, 1, MPI_INT, NULL, 1, MPI_DATATYPE_NULL, MPI_ROOT, inter), MPI_ERR_BUFFER, "sendbuf is NULL");
    BAD(MPI_Reduce(NULL, NULL, 1, MPI_INT, MPI_SUM, 0, inter), MPI_ERR_BUFFER, "sendbuf is NULL");
    BAD(MPI_Reduce(NULL, NULL, 1, MPI_INT, MPI_SUM, MPI_ROOT, inter), MPI_ERR_BUFFER, "recvbuf is NULL");
    BAD(MPI_Reduce(NULL, in, 1, MPI_INT, MPI_OP_NULL, MPI_ROOT, inter), MPI_ERR_OP, "op is MPI_OP_NULL");
    BAD(MPI_Reduce(NULL, in, 1, MPI_FLOAT, MPI_BAND, MPI_ROOT, inter), MPI_ERR_OP, "MPI_BAND");
    BAD(MPI_Allgather(in, 1, MPI_INT, in, 1, MPI_INT, inter), MPI_ERR_BUFFER, "must not overlap");
    BAD(MPI_Alltoall(in, 2, MPI_INT, in, 1, MPI_INT, inter), MPI_ERR_BUFFER, "must not overlap");
}

/* ---- calls that differ ---- */

enum { R = MPI_ROOT, N = MPI_PROC_NULL };
/* What the first rank of each side calls, and the other ranks of that side. n: bytes sent; back: bytes received (allgather, alltoall). */
typedef struct what {
    enum call call;
    int n, root, back;
} what;
typedef struct wrong {
    int ranks; /* at least so many in all */
    what first[2], rest[2];
    const char *words[2];
} wrong;

static const wrong wrongs[] = {
    /* roots */
    {4, {{BCAST, 8, R}, {BCAST, 8, 0}}, {{BCAST, 8, N}, {BCAST, 8, 1}}, {"bcast of 8 bytes, root 1", "root "}},
    {4, {{GATHER, 8, R}, {GATHER, 8, 1}}, {{GATHER, 8, N}, {GATHER, 8, 1}}, {"gather, root MPI_PROC_NULL", "8 bytes a rank, root 1"}},
    {4, {{REDUCE, 8, R}, {REDUCE, 8, 1}}, {{REDUCE, 8, N}, {REDUCE, 8, 1}}, {"reduce, root MPI_PROC_NULL", "by MPI_SUM, root 1"}},
    {4, {{SCATTER, 8, R}, {SCATTER, 8, 1}}, {{SCATTER, 8, N}, {SCATTER, 8, 1}}, {"scatter of 8 bytes a rank, root MPI_ROOT", "root 1"}},
    {4, {{BCAST, 8, R}, {BCAST, 8, 0}}, {{BCAST, 8, R}, {BCAST, 8, 0}}, {"root MPI_ROOT", "bcast of 8 bytes, root 0"}},
    {4, {{SCATTER, LONG, R}, {SCATTER, LONG, 0}}, {{SCATTER, LONG, R}, {SCATTER, LONG, 0}}, {"root MPI_ROOT", "root 0"}},
    {2, {{BCAST, 8, R}, {BCAST, 8, R}}, {{BCAST, 8, N}, {BCAST, 8, N}}, {"bcast of 8 bytes, root MPI_ROOT", "called bcast of 8 bytes"}},
    {2, {{SCATTER, 8, R}, {SCATTER, 8, R}}, {{SCATTER, 8, N}, {SCATTER, 8, N}}, {"scatter of 8 bytes a rank, root MPI_ROOT", "root"}},
    {2, {{GATHER, 8, N}, {GATHER, 8, 0}}, {{GATHER, 8, N}, {GATHER, 8, 0}}, {"gather, root MPI_PROC_NULL", "root 0"}},
    {2, {{REDUCE, LONG, N}, {REDUCE, LONG, 0}}, {{REDUCE, LONG, N}, {REDUCE, LONG, 0}}, {"reduce, root MPI_PROC_NULL", "root 0"}},
    /* counts */
    {2, {{BCAST, 16, R}, {BCAST, 8, 0}}, {{BCAST, 8, N}, {BCAST, 8, 0}}, {"bcast of 16 bytes, root MPI_ROOT", "bcast of 8 bytes, root 0"}},
    {2, {{BCAST, 8, R}, {BCAST, LONG, 0}}, {{BCAST, 8, N}, {BCAST, LONG, 0}}, {"bcast of 8 bytes", "bcast of 70000 bytes"}},
    {2, {{GATHER, 8, R}, {GATHER, 16, 0}}, {{GATHER, 8, N}, {GATHER, 16, 0}}, {"8 bytes a rank, root MPI_ROOT", "gather of 16 bytes"}},
    {2, {{ALLREDUCE, 8, 0}, {ALLREDUCE, 16, 0}}, {{ALLREDUCE, 8, 0}, {ALLREDUCE, 16, 0}}, {"allreduce of 8 bytes", "of 16 bytes"}},
    {2, {{ALLGATHER, 8, 0, 4}, {ALLGATHER, 4, 0, 9}}, {{ALLGATHER, 8, 0, 4}, {ALLGATHER, 4, 0, 9}},
     {"allgather that sends 8 and receives 4 bytes a rank", "allgather that sends 4 and receives 9 bytes a rank"}},
    {2, {{ALLTOALL, 8, 0, 8}, {ALLTOALL, 4, 0, 8}}, {{ALLTOALL, 8, 0, 8}, {ALLTOALL, 4, 0, 8}},
     {"alltoall that sends 8 and receives 8 bytes a rank", "alltoall that sends 4 and receives 8 bytes a rank"}},
    /* others */
    {2, {{ALLREDUCE, 8, 0}, {MAXIMUM, 8, 0}}, {{ALLREDUCE, 8, 0}, {MAXIMUM, 8, 0}}, {"by MPI_SUM", "by MPI_MAX"}},
    {2, {{ALLREDUCE, 8, 0}, {BARRIER}}, {{ALLREDUCE, 8, 0}, {BARRIER}}, {"allreduce of 8 bytes (each 8) by MPI_SUM", "barrier"}},
    {2, {{BARRIER}, {IBARRIER}}, {{BARRIER}, {IBARRIER}}, {"barrier", "nonblocking barrier"}},
};

static void go_wrong(int i, MPI_Comm whole)
{
    const wrong *w = &wrongs[i];
    const what *own_call = rank ? &w->rest[side] : &w->first[side];
    char text[MPI_MAX_ERROR_STRING];
    int code, length, later = 0;
    MPI_Comm c;
    if (world_size < w->ranks)
        return;
    OK(MPI_Comm_dup(whole, &c));
    OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
    for (int before = 0; before < i % 5; before++)
        OK(MPI_Barrier(c));
    code = coll_call(own_call->call, out, in, own_call->n, own_call->back, own_call->root, c);
    for (; !code && later < 100000; later++) /* a call that waits for no other member returns before the other group has seen it */
        code = MPI_Barrier(c);
    CHECK(class_of(code) == MPI_ERR_NOT_SAME || (class_of(code) == MPI_ERR_TRUNCATE && !later), "case %d: class %d", i, class_of(code));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, "of its group) called ") && strstr(text, w->words[0]) && strstr(text, w->words[1]), "case %d: %s", i, text);
    for (later = 0; later < 3; later++)
        CHECK(class_of(MPI_Barrier(c)) == MPI_ERR_NOT_SAME, "case %d: a later call works", i);
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* a rank that has freed the communicator does not answer with its call */
    OK(MPI_Comm_free(&c));
    OK(MPI_Barrier(whole)); /* other communicators are not affected */
}

int main(int argc, char **argv)
{
    MPI_Comm local, inter;
    check_start(&argc, &argv, &world_rank, &world_size);
    side = world_rank >= world_size / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &local));
    OK(MPI_Comm_rank(local, &rank));
    OK(MPI_Comm_size(local, &sizes[side]));
    sizes[!side] = world_size - sizes[side];
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, side ? 0 : world_size / 2, 3, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    out = calloc((size_t)world_size, LONG);
    in = calloc((size_t)world_size, LONG);
    in_place(inter);
    arguments(inter);
    OK(MPI_Barrier(inter));
    for (int i = 0; i < (int)(sizeof wrongs / sizeof *wrongs); i++)
        go_wrong(i, inter);
    free(out);
    free(in);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&local));
    OK(MPI_Finalize());
    return 0;
}

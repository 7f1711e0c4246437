/* np: 1 2 3 4 : the large-count collectives, blocking, nonblocking and persistent, against naive results */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { MAX = 9000 };
enum way { BLOCKING, NONBLOCKING, PERSISTENT, WAYS };

static int rank, size;
static long *out, *in;
static MPI_Op product; /* of 2 x 2 matrices modulo 2^64: does not commute; made with a large-count function */
static MPI_Datatype matrix;
static const MPI_Comm world = MPI_COMM_WORLD;
static const MPI_Info none = MPI_INFO_NULL;

static long item(int r, MPI_Count i) { return r * 1000003L + (long)i * 17 + 1; }

/* Completes a call; a persistent one is started twice, with `in` overwritten in between. */
static void finish(enum way way, MPI_Request *req, size_t spoil)
{
    for (int turn = 0; turn < (way == PERSISTENT ? 2 : 1); turn++) {
        if (way == PERSISTENT) {
            memset(in, 0x11, spoil * sizeof *in);
            OK(MPI_Start(req));
        }
        if (way != BLOCKING)
            OK(MPI_Wait(req, MPI_STATUS_IGNORE));
    }
    if (way == PERSISTENT)
        OK(MPI_Request_free(req));
}

static void fill(MPI_Count n)
{
    for (MPI_Count i = 0; i < n; i++)
        out[i] = item(rank, i);
    memset(in, 0x11, (size_t)(n * size + 1) * sizeof *in);
}

static void bcast(enum way way, MPI_Count n)
{
    for (int root = 0; root < size; root++) {
        MPI_Request req;
        for (MPI_Count i = 0; i < n; i++)
            in[i] = rank == root ? item(root, i) : -1;
        if (way == BLOCKING)
            OK(MPI_Bcast_c(in, n, MPI_LONG, root, world));
        else if (way == NONBLOCKING)
            OK(MPI_Ibcast_c(in, n, MPI_LONG, root, world, &req));
        else
            OK(MPI_Bcast_init_c(in, n, MPI_LONG, root, world, none, &req));
        finish(way, &req, rank == root ? 0 : (size_t)n);
        for (MPI_Count i = 0; i < n; i++)
            CHECK(in[i] == item(root, i), "way %d root %d item %lld", way, root, (long long)i);
    }
}

static void gather(enum way way, MPI_Count n)
{
    int root = size - 1;
    MPI_Request req;
    fill(n);
    if (way == BLOCKING)
        OK(MPI_Gather_c(out, n, MPI_LONG, in, n, MPI_LONG, root, world));
    else if (way == NONBLOCKING)
        OK(MPI_Igather_c(out, n, MPI_LONG, in, n, MPI_LONG, root, world, &req));
    else
        OK(MPI_Gather_init_c(out, n, MPI_LONG, in, n, MPI_LONG, root, world, none, &req));
    finish(way, &req, (size_t)(n * size));
    for (MPI_Count i = 0; i < n * size && rank == root; i++)
        CHECK(in[i] == item((int)(i / n), i % n), "way %d item %lld", way, (long long)i);
}

static void scatter(enum way way, MPI_Count n)
{
    int root = size / 2;
    MPI_Request req;
    fill(n);
    for (MPI_Count i = 0; i < n * size; i++)
        out[i] = item(rank, i);
    if (way == BLOCKING)
        OK(MPI_Scatter_c(out, n, MPI_LONG, in, n, MPI_LONG, root, world));
    else if (way == NONBLOCKING)
        OK(MPI_Iscatter_c(out, n, MPI_LONG, in, n, MPI_LONG, root, world, &req));
    else
        OK(MPI_Scatter_init_c(out, n, MPI_LONG, in, n, MPI_LONG, root, world, none, &req));
    finish(way, &req, (size_t)n);
    for (MPI_Count i = 0; i < n; i++)
        CHECK(in[i] == item(root, rank * n + i), "way %d item %lld", way, (long long)i);
}

static void allgather(enum way way, MPI_Count n)
{
    MPI_Request req;
    fill(n);
    if (way == BLOCKING)
        OK(MPI_Allgather_c(out, n, MPI_LONG, in, n, MPI_LONG, world));
    else if (way == NONBLOCKING)
        OK(MPI_Iallgather_c(out, n, MPI_LONG, in, n, MPI_LONG, world, &req));
    else
        OK(MPI_Allgather_init_c(out, n, MPI_LONG, in, n, MPI_LONG, world, none, &req));
    finish(way, &req, (size_t)(n * size));
    for (MPI_Count i = 0; i < n * size; i++)
        CHECK(in[i] == item((int)(i / n), i % n), "way %d item %lld", way, (long long)i);
}

static void alltoall(enum way way, MPI_Count n)
{
    MPI_Request req;
    for (MPI_Count i = 0; i < n * size; i++)
        out[i] = item(rank, i);
    memset(in, 0x11, (size_t)(n * size) * sizeof *in);
    if (way == BLOCKING)
        OK(MPI_Alltoall_c(out, n, MPI_LONG, in, n, MPI_LONG, world));
    else if (way == NONBLOCKING)
        OK(MPI_Ialltoall_c(out, n, MPI_LONG, in, n, MPI_LONG, world, &req));
    else
        OK(MPI_Alltoall_init_c(out, n, MPI_LONG, in, n, MPI_LONG, world, none, &req));
    finish(way, &req, (size_t)(n * size));
    for (MPI_Count i = 0; i < n * size; i++)
        CHECK(in[i] == item((int)(i / n), rank * n + i % n), "way %d item %lld", way, (long long)i);
}

/* inout = in * inout. */
static void multiply(void *left, void *right, MPI_Count *count, MPI_Datatype *type)
{
    MPI_Count bytes;
    OK(MPI_Type_size_c(*type, &bytes));
    CHECK(bytes == 4 * (MPI_Count)sizeof(long));
    for (MPI_Count i = 0; i < *count; i++) {
        const unsigned long *a = (unsigned long *)left + 4 * i;
        unsigned long *b = (unsigned long *)right + 4 * i;
        unsigned long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                              a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

/* n matrices. */
static void reduce(enum way way, MPI_Count n, int all)
{
    MPI_Request req;
    int root = size - 1;
    fill(4 * n);
    if (all && way == BLOCKING)
        OK(MPI_Allreduce_c(out, in, n, matrix, product, world));
    else if (all && way == NONBLOCKING)
        OK(MPI_Iallreduce_c(out, in, n, matrix, product, world, &req));
    else if (all)
        OK(MPI_Allreduce_init_c(out, in, n, matrix, product, world, none, &req));
    else if (way == BLOCKING)
        OK(MPI_Reduce_c(out, in, n, matrix, product, root, world));
    else if (way == NONBLOCKING)
        OK(MPI_Ireduce_c(out, in, n, matrix, product, root, world, &req));
    else
        OK(MPI_Reduce_init_c(out, in, n, matrix, product, root, world, none, &req));
    finish(way, &req, (size_t)(4 * n));
    for (MPI_Count i = 0; i < n && (all || rank == root); i++) {
        long want[4], term[4];
        MPI_Count one = 1;
        for (int r = size - 1; r >= 0; r--) {
            for (int k = 0; k < 4; k++)
                term[k] = item(r, 4 * i + k);
            if (r == size - 1)
                memcpy(want, term, sizeof want);
            else
                multiply(term, want, &one, &matrix);
        }
        CHECK(!memcmp(want, in + 4 * i, sizeof want), "way %d, %s, matrix %lld", way, all ? "allreduce" : "reduce", (long long)i);
    }
}

int main(int argc, char **argv)
{
    static const MPI_Count counts[] = {1, 33, MAX / 4};
    int commutes = -1;
    check_start(&argc, &argv, &rank, &size);
    out = malloc((size_t)(MAX * size + 1) * sizeof *out);
    in = malloc((size_t)(MAX * size + 1) * sizeof *in);
    OK(MPI_Type_contiguous_c(4, MPI_LONG, &matrix));
    OK(MPI_Type_commit(&matrix));
    OK(MPI_Op_create_c(multiply, 0, &product));
    OK(MPI_Op_commutative(product, &commutes));
    CHECK(commutes == 0);
    for (enum way way = BLOCKING; way < WAYS; way++)
        for (int c = 0; c < 3; c++) {
            bcast(way, counts[c]);
            gather(way, counts[c]);
            scatter(way, counts[c]);
            allgather(way, counts[c]);
            alltoall(way, counts[c]);
            reduce(way, counts[c], 0);
            reduce(way, counts[c], 1);
        }
    /* on this process alone: right = left * right */
    out[0] = 1, out[1] = 2, out[2] = 3, out[3] = 4;
    in[0] = 0, in[1] = 1, in[2] = 1, in[3] = 0;
    OK(MPI_Reduce_local_c(out, in, 1, matrix, product));
    CHECK(in[0] == 2 && in[1] == 1 && in[2] == 4 && in[3] == 3);
    OK(MPI_Op_free(&product));
    OK(MPI_Type_free(&matrix));
    free(out);
    free(in);
    OK(MPI_Finalize());
    return 0;
}

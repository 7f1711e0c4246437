/* np: 1 2 3 4 5 : MPI_BOTTOM and absolute types in collectives, in place and as send buffer: address 0 is no missing buffer */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { LONGEST = 30000 };

static int rank, size, length;
static MPI_Aint at;
static long x[LONGEST];
static MPI_Datatype type;
static MPI_Op op;
static MPI_Request request;

static void add(void *in, void *inout, int *count, MPI_Datatype *of)
{
    const long *from = (const long *)(void *)((char *)in + at);
    long *to = (long *)(void *)((char *)inout + at);
    (void)count;
    (void)of;
    for (int i = 0; i < length; i++)
        to[i] += from[i];
}

static void fill(void)
{
    for (int i = 0; i < length; i++)
        x[i] = rank + 1;
}

static void expect(const char *what, int root, long value)
{
    CHECK(x[0] == value && x[length - 1] == value, "%s, root %d, %d longs: %ld, not %ld", what, root, length, x[0], value);
    fill();
}

static void done(void) { OK(MPI_Wait(&request, MPI_STATUS_IGNORE)); }

static void all(void)
{
    long sum = (long)size * (size + 1) / 2, lower = (long)(rank + 1) * (rank + 2) / 2;
    fill();
    OK(MPI_Scan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD));
    expect("scan", 0, lower);
    OK(MPI_Iscan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD, &request));
    done();
    expect("iscan", 0, lower);
    OK(MPI_Exscan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD));
    expect("exscan", 0, rank ? lower - rank - 1 : 1);
    OK(MPI_Iexscan(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD, &request));
    done();
    expect("iexscan", 0, rank ? lower - rank - 1 : 1);
    OK(MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD));
    expect("allreduce", 0, sum);
    OK(MPI_Iallreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, op, MPI_COMM_WORLD, &request));
    done();
    expect("iallreduce", 0, sum);
    for (int root = 0; root < size; root++) {
        const void *from = rank == root ? MPI_IN_PLACE : MPI_BOTTOM;
        OK(MPI_Reduce(from, MPI_BOTTOM, 1, type, op, root, MPI_COMM_WORLD));
        expect("reduce", root, rank == root ? sum : rank + 1);
        OK(MPI_Ireduce(from, MPI_BOTTOM, 1, type, op, root, MPI_COMM_WORLD, &request));
        done();
        expect("ireduce", root, rank == root ? sum : rank + 1);
        OK(MPI_Bcast(MPI_BOTTOM, 1, type, root, MPI_COMM_WORLD));
        expect("bcast", root, root + 1);
    }
}

int main(void)
{
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Get_address(x, &at));
    OK(MPI_Op_create(add, 1, &op));
    for (int i = 0; i < 2; i++) {
        length = i ? LONGEST : 3; /* longer than a slot of shared memory, or not */
        OK(MPI_Type_create_hindexed(1, &length, &at, MPI_LONG, &type));
        OK(MPI_Type_commit(&type));
        all();
        OK(MPI_Type_free(&type));
    }
    OK(MPI_Op_free(&op));
    OK(MPI_Finalize());
    return 0;
}

/* np: 2 3 6 : runs of scans, in which members are far apart: behind calls that a late member still reads, short ones before long ones, and
   with a member that makes another call */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { VECTOR = 2048, LONG = 1 << 18, AHEAD = 64 /* most scans by which a member may be ahead of the next one */ };

static int rank, size, is_slow;
static double in[LONG], out[LONG], vector[VECTOR], sum[VECTOR];

/* The last rank takes long over its first reduction, when the others have what they need of its data. */
static void add(void *from, void *to, int *n, MPI_Datatype *type)
{
    (void)type;
    if (is_slow && rank == size - 1)
        usleep(200000);
    is_slow = 0;
    for (int i = 0; i < *n; i++)
        ((double *)to)[i] += ((double *)from)[i];
}

static void scans(int count)
{
    for (int i = 0; i < count; i++) {
        double one = 1, prefix = 0;
        OK(MPI_Scan(&one, &prefix, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
        CHECK(prefix == rank + 1, "scan %d: %g", i, prefix);
    }
}

static void long_scan(int count)
{
    OK(MPI_Scan(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < count; i++)
        CHECK(out[i] == rank + 1, "item %d of a long scan: %g", i, out[i]);
}

/* The others run through `shorts` scans and a long one while the last rank still reads their vectors. */
static void behind_a_reduction(MPI_Op op, int shorts)
{
    is_slow = 1;
    OK(MPI_Allreduce(vector, sum, VECTOR, MPI_DOUBLE, op, MPI_COMM_WORLD));
    scans(shorts);
    long_scan(LONG / 16);
    for (int i = 0; i < VECTOR; i++)
        CHECK(sum[i] == size * (size + 1) / 2.0, "%d scans behind a reduction, item %d: %g", shorts, i, sum[i]);
}

/* The same while it has not looked at their calls. */
static void behind_a_barrier(int shorts)
{
    MPI_Request request;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    if (rank == size - 1)
        usleep(200000);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    scans(shorts);
    long_scan(LONG);
}

/* The last rank makes another call, when the others are as far ahead as they may be: all get an error, also rank 0, which may be
 * size - 1 times as far ahead. */
static void another_call(int gathers)
{
    double one = 1, prefix, all[64];
    int counts[64], places[64], rc = 0;
    MPI_Comm comm;
    for (int i = 0; i < size; i++)
        counts[i] = 1, places[i] = i;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(comm));
    for (int i = 0; i < 80; i++)
        OK(MPI_Scan(&one, &prefix, 1, MPI_DOUBLE, MPI_SUM, comm));
    if (rank == size - 1) {
        usleep(300000);
        rc = MPI_Barrier(comm);
    }
    for (int i = 0; i < size * AHEAD && !rc; i++) {
        rc = MPI_Scan(&one, &prefix, 1, MPI_DOUBLE, MPI_SUM, comm);
        for (int k = 0; k < gathers && !rc; k++)
            rc = MPI_Gatherv(&one, 1, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, size - 1, comm);
    }
    CHECK(rc, "%d gathers: no error", gathers);
    OK(MPI_Comm_free(&comm));
}

int main(void)
{
    MPI_Op op;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Op_create(add, 1, &op));
    for (int i = 0; i < LONG; i++)
        in[i] = 1;
    for (int i = 0; i < VECTOR; i++)
        vector[i] = rank + 1;
    scans(3);
    for (int shorts = 8; shorts < 64; shorts += 7) {
        behind_a_reduction(op, shorts);
        behind_a_barrier(shorts);
    }
    for (int gathers = 0; gathers < 4; gathers++)
        another_call(gathers);
    OK(MPI_Op_free(&op));
    OK(MPI_Finalize());
    return 0;
}

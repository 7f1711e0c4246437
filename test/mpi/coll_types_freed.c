/* np: 2 3 4 : datatypes and operators that are freed when a nonblocking collective by messages has started, or while it starts */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { ROUNDS = 6, KINDS = 6, REDUCTIONS = 60 };

static int rank, size, *from, *into;

/* Elements of the type lie apart by 2 ints. */
static int sent(int member, int round, int i) { return 100000 * member + 1000 * round + 2 * i; }

/* Types made after the free take the memory of those that were freed. */
static void reuse_memory(void)
{
    MPI_Datatype types[8];
    for (int i = 0; i < 8; i++) {
        OK(MPI_Type_contiguous(3 + i, MPI_DOUBLE, &types[i]));
        OK(MPI_Type_commit(&types[i]));
    }
    for (int i = 0; i < 8; i++)
        OK(MPI_Type_free(&types[i]));
}

static void start(int kind, int count, int root, MPI_Request *req)
{
    int counts[8], displs[8];
    MPI_Datatype gaps, gaps_of[8], ints[8];
    OK(MPI_Type_vector(count, 1, 2, MPI_INT, &gaps));
    OK(MPI_Type_commit(&gaps));
    for (int r = 0; r < size; r++) {
        counts[r] = 1;
        displs[r] = r * 2 * count * (int)sizeof(int);
        gaps_of[r] = gaps;
        OK(MPI_Type_contiguous(count, MPI_INT, &ints[r]));
        OK(MPI_Type_commit(&ints[r]));
    }
    switch (kind) {
    case 0: OK(MPI_Ibcast(rank == root ? from : into, 1, gaps, root, MPI_COMM_WORLD, req)); break;
    case 1: OK(MPI_Igather(from, 1, gaps, into, count, MPI_INT, root, MPI_COMM_WORLD, req)); break;
    case 2: OK(MPI_Iscatter(from, count, MPI_INT, into, 1, gaps, root, MPI_COMM_WORLD, req)); break;
    case 3: OK(MPI_Iallgather(from, 1, gaps, into, count, MPI_INT, MPI_COMM_WORLD, req)); break;
    case 4: OK(MPI_Ialltoall(from, count, MPI_INT, into, 1, gaps, MPI_COMM_WORLD, req)); break;
    default: OK(MPI_Ialltoallw(from, counts, displs, gaps_of, into, counts, displs, ints, MPI_COMM_WORLD, req));
    }
    OK(MPI_Type_free(&gaps));
    for (int r = 0; r < size; r++)
        OK(MPI_Type_free(&ints[r]));
    reuse_memory();
}

static void verify(int kind, int count, int root, int round)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++) {
            int block = 2 * count * r, got = -1, expected = -1;
            if (kind == 0 && rank != root && r == root)
                got = into[2 * i], expected = sent(root, round, i);
            else if ((kind == 1 && rank == root) || kind == 3)
                got = into[count * r + i], expected = sent(r, round, i);
            else if (kind == 2 && r == root)
                got = into[2 * i], expected = 100000 * root + 1000 * round + count * rank + i;
            else if (kind == 5)
                got = into[block + i], expected = 100000 * r + 1000 * round + 2 * count * rank + 2 * i;
            CHECK(got == expected, "kind %d, %d ints, round %d, from %d, %d: %d, not %d", kind, count, round, r, i, got, expected);
        }
}

/* The root is late, or all others are. */
static void types(int count)
{
    size_t ints = (size_t)size * 2 * (size_t)count + 2;
    from = malloc(ints * sizeof *from);
    into = malloc(ints * sizeof *into);
    for (int kind = 0; kind < KINDS; kind++)
        for (int round = 0; round < ROUNDS; round++) {
            int root = round % size;
            MPI_Request req;
            for (size_t i = 0; i < ints; i++)
                from[i] = 100000 * rank + 1000 * round + (int)i, into[i] = -1;
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (round / size % 2 ? rank == root : rank != root)
                usleep(2000);
            start(kind, count, root, &req);
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
            verify(kind, count, root, round);
        }
    free(from);
    free(into);
}

static MPI_Datatype four;
static MPI_Op adds;

static void free_both(void)
{
    if (four == MPI_DATATYPE_NULL)
        return;
    OK(MPI_Type_free(&four));
    OK(MPI_Op_free(&adds));
    reuse_memory();
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < 4 * *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
    free_both();
}

/* The operator frees its type and itself when it is called first. */
static void operators(void)
{
    for (int call = 0; call < REDUCTIONS; call++) {
        int count = 1 + call % 40, mine[160], sums[160];
        MPI_Request req;
        OK(MPI_Type_contiguous(4, MPI_INT, &four));
        OK(MPI_Type_commit(&four));
        OK(MPI_Op_create(add, 1, &adds));
        for (int i = 0; i < 4 * count; i++)
            mine[i] = 1000 * rank + i + call, sums[i] = -1;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (call % 2)
            OK(MPI_Iscan(mine, sums, count, four, adds, MPI_COMM_WORLD, &req));
        else
            OK(MPI_Iallreduce(mine, sums, count, four, adds, MPI_COMM_WORLD, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        free_both();
        for (int i = 0; i < 4 * count; i++) {
            int last = call % 2 ? rank : size - 1;
            CHECK(sums[i] == 1000 * last * (last + 1) / 2 + (last + 1) * (i + call), "reduction %d, %d: %d", call, i, sums[i]);
        }
    }
}

int main(void)
{
    setenv("WEFT_COLL", "bcast=binomial,gather=linear,scatter=linear,alltoall=linear,allgather=ring,allreduce=doubling,scan=doubling", 1);
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    types(100);
    types(3000);
    types(50000);
    operators();
    OK(MPI_Finalize());
    return 0;
}

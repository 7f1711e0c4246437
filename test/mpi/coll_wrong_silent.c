/* np: 2 3 4 : collective calls that differ although no message shows it: errors, after a long wait */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size, odd; /* odd: the rank that makes the other call */
static double one = 1, sum, many[64];

static int wait_for(MPI_Request *request) { return MPI_Wait(request, MPI_STATUS_IGNORE); }

static int test_for(MPI_Request *request)
{
    int done = 0, code = MPI_SUCCESS;
    while (!done && !code)
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    return code;
}

static int nonblocking(MPI_Comm c, int (*complete)(MPI_Request *request))
{
    MPI_Request request;
    if (rank != odd)
        return MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, c);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, c, &request));
    return complete(&request);
}

static int waits(MPI_Comm c) { return nonblocking(c, wait_for); }
static int tests(MPI_Comm c) { return nonblocking(c, test_for); }

static int barriers(MPI_Comm c)
{
    MPI_Request request;
    if (rank != odd)
        return MPI_Barrier(c);
    OK(MPI_Ibarrier(c, &request));
    return wait_for(&request);
}

/* Each member takes its neighbour for the root. */
static int no_root(MPI_Comm c)
{
    MPI_Request request;
    OK(MPI_Ibcast(&one, 1, MPI_DOUBLE, (rank + 1) % size, c, &request));
    return wait_for(&request);
}

/* One member frees the communicator. */
static int frees(MPI_Comm c)
{
    MPI_Request request;
    if (rank == odd)
        return MPI_ERR_NOT_SAME;
    OK(MPI_Ibarrier(c, &request));
    return wait_for(&request);
}

static void expect(int i, int code, const char *word)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    CHECK(class_of(code) == MPI_ERR_NOT_SAME, "case %d: class %d", i, class_of(code));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, word), "case %d: %s", i, text);
}

static void within(int i, int (*calls)(MPI_Comm c), const char *word)
{
    MPI_Comm c;
    int code;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(c));
    code = calls(c);
    if (code != MPI_ERR_NOT_SAME) /* else the call was not made */
        expect(i, code, word);
    OK(MPI_Comm_free(&c));
}

/* -- counts of other blocks, with an equal sum: the error comes in this call -- */

static const int *lopsided(int count)
{
    static int counts[64];
    for (int i = 0; i < size; i++)
        counts[i] = count;
    counts[rank == odd ? 0 : 1] += count;
    return counts;
}

static int other_blocks(MPI_Comm c, int count)
{
    static double from[200000], into[800000];
    static int displs[64];
    const int *counts = lopsided(count);
    return MPI_Allgatherv(from, counts[rank], MPI_DOUBLE, into, counts, displs, MPI_DOUBLE, c);
}

static int few_elsewhere(MPI_Comm c) { return other_blocks(c, 1); }
static int many_elsewhere(MPI_Comm c) { return other_blocks(c, 20000); }

static int reduced_elsewhere(MPI_Comm c)
{
    static double from[64], into[64];
    return MPI_Reduce_scatter(from, into, lopsided(3), MPI_DOUBLE, MPI_SUM, c);
}

/* Between the first rank and the others. Members that the first call returns to find the error in the next one. */
static void between(int i, int (*calls)(MPI_Comm inter, int is_first))
{
    MPI_Comm half, inter;
    int code;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank ? 0 : 1, 3, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    code = calls(inter, rank == 0);
    if (!code)
        code = MPI_Barrier(inter);
    expect(i, code, "called");
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

static int bcast_without_root(MPI_Comm inter, int is_first) { return MPI_Bcast(&one, 1, MPI_DOUBLE, is_first ? MPI_PROC_NULL : 0, inter); }

/* All members of the second group are root. */
static int gather_with_roots(MPI_Comm inter, int is_first)
{
    return MPI_Gather(&one, 1, MPI_DOUBLE, many, 1, MPI_DOUBLE, is_first ? 0 : MPI_ROOT, inter);
}

/* -- calls that make communicators, against others -- */

static int barrier_against_dup(MPI_Comm inter, int is_first)
{
    MPI_Comm made;
    return is_first ? MPI_Barrier(inter) : MPI_Comm_dup(inter, &made);
}

static int split_against_bcast(MPI_Comm inter, int is_first)
{
    MPI_Comm made;
    return is_first ? MPI_Comm_split(inter, 0, 0, &made) : MPI_Bcast(&one, 1, MPI_DOUBLE, 0, inter);
}

static int merge_against_dup(MPI_Comm inter, int is_first)
{
    MPI_Comm made;
    return is_first ? MPI_Intercomm_merge(inter, 0, &made) : MPI_Comm_dup(inter, &made);
}

static int one_splits(MPI_Comm inter, int is_first)
{
    MPI_Comm made;
    (void)is_first;
    return rank == size - 1 ? MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made) : MPI_Barrier(inter);
}

int main(void)
{
    check_start(NULL, NULL, &rank, &size);
    odd = size - 1;
    within(0, waits, "called nonblocking allreduce");
    within(1, tests, "called nonblocking allreduce");
    odd = 0;
    within(2, waits, "called nonblocking allreduce");
    within(3, barriers, "called nonblocking barrier");
    within(4, no_root, "called nonblocking bcast of 8 bytes, root");
    within(12, few_elsewhere, "called allgatherv of ");
    within(13, many_elsewhere, "called allgatherv of ");
    within(14, reduced_elsewhere, "called reduce_scatter of ");
    within(5, frees, "has freed the communicator");
    between(6, bcast_without_root);
    if (size > 2)
        between(7, gather_with_roots);
    between(8, barrier_against_dup);
    between(9, split_against_bcast);
    between(10, merge_against_dup);
    between(11, one_splits);
    OK(MPI_Finalize());
    return 0;
}

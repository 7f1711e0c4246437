/* np: 2 : MPI_Get_elements and _x count basic elements of whole and partial messages of nested, mixed and pair types */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static void counts(const MPI_Status *status, MPI_Datatype type, int count, int elements)
{
    MPI_Count wide = -1;
    int got = -1;
    OK(MPI_Get_count(status, type, &got));
    CHECK(got == count, "count %d, not %d", got, count);
    OK(MPI_Get_elements(status, type, &got));
    CHECK(got == elements, "elements %d, not %d", got, elements);
    OK(MPI_Get_elements_c(status, type, &wide));
    CHECK(wide == elements);
    OK(MPI_Get_elements_x(status, type, &wide));
    CHECK(wide == elements);
}

/* The standard's example (5.1.11): 2 and 3 floats received as pairs of floats. */
static void standard_example(int rank)
{
    float a[4] = {1, 2, 3, 4};
    MPI_Datatype two;
    MPI_Status status;
    OK(MPI_Type_contiguous(2, MPI_FLOAT, &two));
    OK(MPI_Type_commit(&two));
    if (rank == 0) {
        OK(MPI_Send(a, 2, MPI_FLOAT, 1, 0, MPI_COMM_WORLD));
        OK(MPI_Send(a, 3, MPI_FLOAT, 1, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv(a, 2, two, 0, 0, MPI_COMM_WORLD, &status));
        counts(&status, two, 1, 2);
        OK(MPI_Probe(0, 0, MPI_COMM_WORLD, &status)); /* also after a probe */
        counts(&status, two, MPI_UNDEFINED, 3);
        OK(MPI_Recv(a, 2, two, 0, 0, MPI_COMM_WORLD, &status));
        counts(&status, two, MPI_UNDEFINED, 3);
    }
    OK(MPI_Type_free(&two));
}

/* Every length of a message of nested structs, in bytes of its packed form: 2 ints, 1 (double, int), 3 chars. */
static void partial(int rank)
{
    static const int sizes[7] = {4, 4, 8, 4, 1, 1, 1};
    const int lengths[3] = {2, 1, 3};
    const MPI_Aint disps[3] = {0, 16, 40};
    const MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE_INT, MPI_CHAR};
    MPI_Datatype s, v;
    unsigned char packed[2 * 4 * 23], memory[2000];
    MPI_Status status;
    int at = 0, n = 0;
    check_fill(packed, sizeof packed, 5);
    OK(MPI_Type_create_struct(3, lengths, disps, types, &s));
    OK(MPI_Type_create_hvector(2, 2, 200, s, &v));
    OK(MPI_Type_commit(&v));
    for (int bytes = 0; bytes <= (int)sizeof packed; bytes++) {
        if (rank == 0) {
            OK(MPI_Send(packed, bytes, MPI_PACKED, 1, 7, MPI_COMM_WORLD));
            continue;
        }
        OK(MPI_Recv(memory, 2, v, 0, 7, MPI_COMM_WORLD, &status));
        if (bytes == at + sizes[n % 7]) {
            at = bytes;
            n++;
        }
        counts(&status, v, bytes % 92 ? MPI_UNDEFINED : bytes / 92, bytes == at ? n : MPI_UNDEFINED);
    }
    OK(MPI_Type_free(&s));
    OK(MPI_Type_free(&v));
}

static void edges(int rank, int other)
{
    struct { double v; int i; } pair = {1, 2};
    MPI_Datatype none;
    MPI_Status status;
    int count = -1;
    (void)rank;
    OK(MPI_Recv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    counts(&status, MPI_INT, 0, 0);
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_Sendrecv(&pair, 3, none, other, 1, NULL, 5, none, other, 1, MPI_COMM_WORLD, &status));
    counts(&status, none, 0, 0);
    OK(MPI_Type_free(&none));
    OK(MPI_Sendrecv(&pair, 1, MPI_DOUBLE, other, 2, &pair, 1, MPI_DOUBLE_INT, other, 2, MPI_COMM_WORLD, &status));
    counts(&status, MPI_DOUBLE_INT, MPI_UNDEFINED, 1);
    BAD(MPI_Get_elements(&status, MPI_DATATYPE_NULL, &count), MPI_ERR_TYPE, "datatype is MPI_DATATYPE_NULL");
    BAD(MPI_Get_elements(MPI_STATUS_IGNORE, MPI_INT, &count), MPI_ERR_ARG, "status is NULL");
    BAD(MPI_Get_elements(&status, MPI_INT, NULL), MPI_ERR_ARG, "count is NULL");
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    standard_example(rank);
    partial(rank);
    edges(rank, 1 - rank);
    OK(MPI_Finalize());
    return 0;
}

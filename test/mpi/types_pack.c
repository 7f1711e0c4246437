/* np: 1 2 : datatype queries, names, strided messages, MPI_Pack, MPI_Unpack and MPI_Reduce_local, and their error classes */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>

#include "check.h"

static void queries(void)
{
    MPI_Datatype v, h, c, d, stale, big;
    MPI_Aint lb, extent;
    MPI_Count wide;
    int size, length;
    char name[MPI_MAX_OBJECT_NAME];
    OK(MPI_Type_vector(3, 2, 4, MPI_DOUBLE, &v));
    OK(MPI_Type_size(v, &size));
    OK(MPI_Type_get_extent(v, &lb, &extent));
    CHECK(size == 48 && lb == 0 && extent == 80, "%d %ld %ld", size, (long)lb, (long)extent);
    OK(MPI_Type_create_hvector(2, 1, -100, v, &h));
    OK(MPI_Type_get_extent(h, &lb, &extent));
    CHECK(lb == -100 && extent == 184, "%ld %ld", (long)lb, (long)extent); /* 180, rounded up to doubles */
    OK(MPI_Type_get_true_extent(h, &lb, &extent));
    CHECK(lb == -100 && extent == 180);
    OK(MPI_Type_contiguous(5, MPI_DOUBLE_INT, &c));
    OK(MPI_Type_size(c, &size));
    OK(MPI_Type_get_extent(c, &lb, &extent));
    CHECK(size == 60 && extent == 80);
    OK(MPI_Type_dup(MPI_INT, &d));
    OK(MPI_Type_set_name(d, "mine"));
    OK(MPI_Type_get_name(d, name, &length));
    CHECK(!strcmp(name, "mine") && length == 4);
    OK(MPI_Type_get_name(MPI_DATATYPE_NULL, name, &length));
    CHECK(!strcmp(name, "MPI_DATATYPE_NULL") && length == 17);
    OK(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length));
    CHECK(!strcmp(name, "MPI_C_COMPLEX"));
    OK(MPI_Type_get_name(MPI_DOUBLE, name, &length));
    CHECK(!strcmp(name, "MPI_DOUBLE") && length == 10);
    OK(MPI_Type_contiguous(INT_MAX, MPI_DOUBLE, &big));
    OK(MPI_Type_size(big, &size));
    OK(MPI_Type_size_c(big, &wide));
    CHECK(size == MPI_UNDEFINED && wide == 8 * (MPI_Count)INT_MAX);
    OK(MPI_Type_commit(&v));
    OK(MPI_Type_commit(&v));
    OK(MPI_Type_free(&big));
    OK(MPI_Type_free(&c));
    OK(MPI_Type_free(&d));
    stale = v;
    OK(MPI_Type_free(&v));
    CHECK(v == MPI_DATATYPE_NULL);
    CHECK(class_of(MPI_Type_size(stale, &size)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Type_free(&stale)) == MPI_ERR_TYPE);
    OK(MPI_Type_size(h, &size)); /* made of a freed type */
    CHECK(size == 96);
    OK(MPI_Type_free(&h));
    d = MPI_INT;
    CHECK(class_of(MPI_Type_free(&d)) == MPI_ERR_TYPE);
}

static void by_hand(void)
{
    double from[8] = {0, 1, 2, 3, 4, 5, 6, 7}, to[8];
    char capacity[44];
    int position = 0, size, number = 77, back = 0;
    MPI_Datatype every;
    OK(MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &every));
    OK(MPI_Type_commit(&every));
    OK(MPI_Pack_size(1, every, MPI_COMM_WORLD, &size));
    CHECK(size >= 32);
    OK(MPI_Pack(&number, 1, MPI_INT, capacity, sizeof capacity, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(from, 1, every, capacity, sizeof capacity, &position, MPI_COMM_WORLD));
    CHECK(position == 36, "position %d", position);
    CHECK(class_of(MPI_Pack(from, 2, MPI_DOUBLE, capacity, sizeof capacity, &position, MPI_COMM_WORLD)) == MPI_ERR_TRUNCATE);
    CHECK(position == 36);
    size = position;
    position = 0;
    for (int i = 0; i < 8; i++)
        to[i] = -1;
    OK(MPI_Unpack(capacity, size, &position, &back, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Unpack(capacity, size, &position, to, 1, every, MPI_COMM_WORLD));
    CHECK(back == 77 && position == 36);
    for (int i = 0; i < 8; i++)
        CHECK(to[i] == (i % 2 || i > 6 ? -1 : i), "to[%d] = %g", i, to[i]);
    CHECK(class_of(MPI_Unpack(capacity, size, &position, &back, 1, MPI_INT, MPI_COMM_WORLD)) == MPI_ERR_TRUNCATE);
    position = -1;
    CHECK(MPI_Pack(&number, 1, MPI_INT, capacity, sizeof capacity, &position, MPI_COMM_WORLD) != MPI_SUCCESS);
    OK(MPI_Type_free(&every));
}

static void minus(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int size;
    OK(MPI_Type_size(*type, &size));
    for (int i = 0; i < *length * size / (int)sizeof(int); i++)
        ((int *)inout)[i] = ((int *)in)[i] - ((int *)inout)[i];
}

static void reduce_local(void)
{
    struct { double v; int i; } a = {2.5, 9}, b = {2.5, 4};
    int x[3] = {5, 6, 7}, y[3] = {1, 2, 3}, commutes = -1;
    char text[3] = "ab", other[3] = "cd";
    MPI_Op op, stale;
    OK(MPI_Reduce_local(x, y, 3, MPI_INT, MPI_PROD));
    CHECK(y[0] == 5 && y[1] == 12 && y[2] == 21);
    OK(MPI_Reduce_local(&a, &b, 1, MPI_DOUBLE_INT, MPI_MAXLOC));
    CHECK(b.v == 2.5 && b.i == 4);
    CHECK(class_of(MPI_Reduce_local(text, other, 2, MPI_PACKED, MPI_SUM)) == MPI_ERR_OP);
    CHECK(class_of(MPI_Reduce_local(x, y, 1, MPI_FLOAT, MPI_BAND)) == MPI_ERR_OP);
    OK(MPI_Op_create(minus, 0, &op));
    OK(MPI_Op_commutative(op, &commutes));
    CHECK(!commutes);
    OK(MPI_Reduce_local(x, y, 3, MPI_INT, op));
    CHECK(y[0] == 0 && y[1] == -6 && y[2] == -14);
    stale = op;
    OK(MPI_Op_free(&op));
    CHECK(op == MPI_OP_NULL);
    CHECK(class_of(MPI_Reduce_local(x, y, 3, MPI_INT, stale)) == MPI_ERR_OP);
    op = MPI_SUM;
    CHECK(class_of(MPI_Op_free(&op)) == MPI_ERR_OP);
}

/* A column of a matrix to the neighbour's row, and back, short and long. */
static void messages(int rank, int size, int n)
{
    int *matrix = malloc((size_t)n * 4 * sizeof(int)), *row = malloc((size_t)n * sizeof(int)), to = (rank + 1) % size;
    int from = (rank + size - 1) % size;
    MPI_Datatype column;
    for (int i = 0; i < 4 * n; i++)
        matrix[i] = rank * 1000000 + i;
    OK(MPI_Type_vector(n, 1, 4, MPI_INT, &column));
    CHECK(class_of(MPI_Send(matrix, 1, column, rank, 0, MPI_COMM_WORLD)) == MPI_ERR_TYPE); /* not committed */
    OK(MPI_Type_commit(&column));
    OK(MPI_Sendrecv(matrix + 1, 1, column, to, 5, row, n, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++)
        CHECK(row[i] == from * 1000000 + 4 * i + 1, "row[%d] = %d", i, row[i]);
    OK(MPI_Sendrecv(row, n, MPI_INT, from, 6, matrix + 2, 1, column, to, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4 * n; i++)
        CHECK(matrix[i] == rank * 1000000 + (i % 4 == 2 ? i - 1 : i), "matrix[%d] = %d", i, matrix[i]);
    OK(MPI_Type_free(&column));
    free(matrix);
    free(row);
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    queries();
    by_hand();
    reduce_local();
    messages(rank, size, 3);
    messages(rank, size, 1000);
    messages(rank, size, 100000);
    OK(MPI_Finalize());
    return 0;
}

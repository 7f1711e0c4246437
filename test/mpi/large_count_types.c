/* np: 1 2 : datatypes and packing by the large-count functions, with values past 32 bits; the narrow forms' results for those; addresses */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static const MPI_Count giant = (MPI_Count)5 << 32;

static void sizes(MPI_Datatype type, MPI_Count size, MPI_Count extent)
{
    MPI_Count got = -1, lb = -1, got_extent = -1;
    OK(MPI_Type_size_c(type, &got));
    CHECK(got == size, "size %lld, not %lld", (long long)got, (long long)size);
    OK(MPI_Type_size_x(type, &got));
    CHECK(got == size);
    OK(MPI_Type_get_extent_c(type, &lb, &got_extent));
    CHECK(lb == 0 && got_extent == extent, "extent %lld, not %lld", (long long)got_extent, (long long)extent);
    OK(MPI_Type_get_extent_x(type, &lb, &got_extent));
    CHECK(lb == 0 && got_extent == extent);
    OK(MPI_Type_get_true_extent_c(type, &lb, &got_extent));
    CHECK(lb == 0 && got_extent == extent);
    OK(MPI_Type_get_true_extent_x(type, &lb, &got_extent));
    CHECK(lb == 0 && got_extent == extent);
}

static void constructors(void)
{
    MPI_Datatype run, vector, bytes;
    int narrow = 0;
    OK(MPI_Type_contiguous_c(giant, MPI_INT, &run));
    sizes(run, 4 * giant, 4 * giant);
    OK(MPI_Type_size(run, &narrow));
    CHECK(narrow == MPI_UNDEFINED); /* an int cannot hold it (MPI 5.0, 5.1.5) */
    OK(MPI_Type_vector_c(3, giant, 2 * giant, MPI_SHORT, &vector)); /* 3 blocks, the last one without its gap */
    sizes(vector, 6 * giant, 10 * giant);
    OK(MPI_Type_create_hvector_c(giant, 1, 3, MPI_BYTE, &bytes));
    sizes(bytes, giant, 3 * (giant - 1) + 1);
    OK(MPI_Type_free(&run));
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_free(&bytes));
}

/* Every second int, packed and unpacked in two steps. */
static void packing(void)
{
    enum { N = 500 };
    int from[2 * N], to[2 * N];
    char capacity[N * sizeof(int)];
    MPI_Datatype second;
    MPI_Count size = -1, at = 0;
    for (int i = 0; i < 2 * N; i++) {
        from[i] = i;
        to[i] = -1;
    }
    OK(MPI_Type_vector_c(N / 2, 1, 2, MPI_INT, &second));
    OK(MPI_Type_commit(&second));
    OK(MPI_Pack_size_c(2, second, MPI_COMM_WORLD, &size));
    CHECK(size == sizeof capacity, "%lld", (long long)size);
    OK(MPI_Pack_c(from, 1, second, capacity, sizeof capacity, &at, MPI_COMM_WORLD));
    CHECK(at == sizeof capacity / 2);
    OK(MPI_Pack_c(from + N, 1, second, capacity, sizeof capacity, &at, MPI_COMM_WORLD));
    CHECK(at == sizeof capacity);
    at = 0;
    OK(MPI_Unpack_c(capacity, sizeof capacity, &at, to, 1, second, MPI_COMM_WORLD));
    OK(MPI_Unpack_c(capacity, sizeof capacity, &at, to + N, 1, second, MPI_COMM_WORLD));
    CHECK(at == sizeof capacity);
    for (int i = 0; i < 2 * N; i++)
        CHECK(to[i] == (i % 2 ? -1 : i), "int %d is %d", i, to[i]);
    OK(MPI_Pack_size_c(giant, MPI_DOUBLE, MPI_COMM_WORLD, &size));
    CHECK(size == 8 * giant);
    OK(MPI_Type_free(&second));
}

static void addresses(void)
{
    struct { char c; double d[3]; } x;
    MPI_Aint at_c = 0, at_d = 0, high = (MPI_Aint)INTPTR_MAX;
    OK(MPI_Get_address(&x.c, &at_c));
    OK(MPI_Get_address(&x.d[2], &at_d));
    CHECK(MPI_Aint_diff(at_d, at_c) == (char *)&x.d[2] - &x.c);
    CHECK(MPI_Aint_diff(at_c, at_d) == &x.c - (char *)&x.d[2]);
    CHECK(MPI_Aint_add(at_c, MPI_Aint_diff(at_d, at_c)) == at_d && (double *)MPI_Aint_add(at_d, -8) == &x.d[1]);
    CHECK(MPI_Aint_diff(MPI_Aint_add(high, 10), high) == 10); /* across the middle of the address space */
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    constructors();
    packing();
    addresses();
    OK(MPI_Finalize());
    return 0;
}

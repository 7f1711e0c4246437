/* np: 1 : subarrays and distributed arrays of any order and distribution, against an owner computed for each element */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

enum { DIMS = 4, ELEMENTS = 8000 };
static int global[ELEMENTS], found[ELEMENTS + 1], owners[ELEMENTS];

/* Storage index of element `at` of an array. */
static int storage_index(int n, const int *sizes, int order, const int *at)
{
    int index = 0;
    for (int i = 0; i < n; i++) {
        int d = order == MPI_ORDER_C ? i : n - 1 - i;
        index = index * sizes[d] + at[d];
    }
    return index;
}

/* The element at a storage index. */
static void element_at(int n, const int *sizes, int order, int index, int *at)
{
    for (int i = 0; i < n; i++) {
        int d = order == MPI_ORDER_C ? n - 1 - i : i;
        at[d] = index % sizes[d];
        index /= sizes[d];
    }
}

/* Packs one element of the type from `global`, whose values are storage indices, into `found`. Frees it. */
static int packed(MPI_Datatype type, int all)
{
    MPI_Aint lb, extent;
    int position = 0;
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_get_extent(type, &lb, &extent));
    CHECK(lb == 0 && extent == (MPI_Aint)(all * sizeof(int)), "lb %ld, extent %ld of %d ints", (long)lb, (long)extent, all);
    OK(MPI_Pack(global, 1, type, found, sizeof found, &position, MPI_COMM_SELF));
    OK(MPI_Type_free(&type));
    return position / (int)sizeof(int);
}

static void subarray(uint64_t *seed)
{
    int n = 1 + (int)(check_random(seed) % DIMS), order = check_random(seed) % 2 ? MPI_ORDER_C : MPI_ORDER_FORTRAN, all = 1, k = 0, count;
    int sizes[DIMS], subsizes[DIMS], starts[DIMS], at[DIMS];
    MPI_Count sizes_c[DIMS], subsizes_c[DIMS], starts_c[DIMS];
    MPI_Datatype type;
    for (int i = 0; i < n; i++) {
        sizes_c[i] = sizes[i] = 1 + (int)(check_random(seed) % 7);
        subsizes_c[i] = subsizes[i] = 1 + (int)(check_random(seed) % (unsigned)sizes[i]);
        starts_c[i] = starts[i] = (int)(check_random(seed) % (unsigned)(sizes[i] - subsizes[i] + 1));
        all *= sizes[i];
    }
    if (check_random(seed) % 2)
        OK(MPI_Type_create_subarray(n, sizes, subsizes, starts, order, MPI_INT, &type));
    else
        OK(MPI_Type_create_subarray_c(n, sizes_c, subsizes_c, starts_c, order, MPI_INT, &type));
    count = packed(type, all);
    for (int i = 0; i < all; i++) {
        int is_in = 1;
        element_at(n, sizes, order, i, at);
        CHECK(storage_index(n, sizes, order, at) == i);
        for (int d = 0; d < n; d++)
            is_in &= at[d] >= starts[d] && at[d] < starts[d] + subsizes[d];
        if (is_in)
            CHECK(k < count && found[k++] == i, "element %d", i);
    }
    CHECK(k == count);
}

typedef struct grid {
    int n, order, size, gsizes[DIMS], distribs[DIMS], dargs[DIMS], psizes[DIMS];
} grid;

/* Rank that owns element `at`: its coordinates in the row-major grid of processes. */
static int owner_of(const grid *g, const int *at)
{
    int rank = 0;
    for (int d = 0; d < g->n; d++) {
        int block = g->dargs[d], p = g->psizes[d];
        if (g->distribs[d] == MPI_DISTRIBUTE_NONE)
            block = g->gsizes[d];
        else if (block == MPI_DISTRIBUTE_DFLT_DARG)
            block = g->distribs[d] == MPI_DISTRIBUTE_BLOCK ? (g->gsizes[d] + p - 1) / p : 1;
        rank = rank * p + at[d] / block % p;
    }
    return rank;
}

static void darray_check(const grid *g)
{
    MPI_Count gsizes_c[DIMS];
    int at[DIMS], all = 1, seen = 0;
    for (int d = 0; d < g->n; d++) {
        all *= g->gsizes[d];
        gsizes_c[d] = g->gsizes[d];
    }
    CHECK(all <= ELEMENTS);
    for (int i = 0; i < all; i++) {
        element_at(g->n, g->gsizes, g->order, i, at);
        owners[i] = owner_of(g, at);
    }
    for (int rank = 0; rank < g->size; rank++) {
        MPI_Datatype type;
        int count, k = 0;
        if (rank % 2)
            OK(MPI_Type_create_darray(g->size, rank, g->n, g->gsizes, g->distribs, g->dargs, g->psizes, g->order, MPI_INT, &type));
        else
            OK(MPI_Type_create_darray_c(g->size, rank, g->n, gsizes_c, g->distribs, g->dargs, g->psizes, g->order, MPI_INT, &type));
        count = packed(type, all);
        for (int i = 0; i < all; i++)
            if (owners[i] == rank)
                CHECK(k < count && found[k++] == i, "rank %d of %d, element %d", rank, g->size, i);
        CHECK(k == count, "rank %d: %d elements, not %d", rank, count, k);
        seen += count;
    }
    CHECK(seen == all);
}

static void darray(uint64_t *seed)
{
    static const int kinds[3] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
    grid g = {.n = 1 + (int)(check_random(seed) % DIMS), .size = 1};
    g.order = check_random(seed) % 2 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int d = 0; d < g.n; d++) {
        g.gsizes[d] = 1 + (int)(check_random(seed) % 9);
        g.distribs[d] = kinds[check_random(seed) % 3];
        g.psizes[d] = g.distribs[d] == MPI_DISTRIBUTE_NONE ? 1 : 1 + (int)(check_random(seed) % 3);
        g.dargs[d] = MPI_DISTRIBUTE_DFLT_DARG;
        if (check_random(seed) % 2)
            g.dargs[d] = g.distribs[d] == MPI_DISTRIBUTE_BLOCK
                             ? (g.gsizes[d] + g.psizes[d] - 1) / g.psizes[d] + (int)(check_random(seed) % 3)
                             : 1 + (int)(check_random(seed) % 3);
        g.size *= g.psizes[d];
    }
    darray_check(&g);
}

/* The standard's example (5.1.4), a fifth as long: CYCLIC(10), *, BLOCK in Fortran order over 2 x 1 x 3 processes. */
static void standard_example(void)
{
    grid g = {3, MPI_ORDER_FORTRAN, 6, {50, 5, 30}, {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK},
              {10, 0, MPI_DISTRIBUTE_DFLT_DARG}, {2, 1, 3}};
    darray_check(&g);
}

/* Both have lb 0 and the whole array's extent over an old type with bounds of its own. */
static void of_derived(void)
{
    const int sizes[2] = {4, 5}, subsizes[2] = {2, 3}, starts[2] = {1, 2};
    unsigned char from[4 * 5 * 12 + 8], to[2 * 3 * 4];
    MPI_Datatype old, type;
    MPI_Aint lb, extent;
    int position = 0;
    check_fill(from, sizeof from, 3);
    OK(MPI_Type_create_resized(MPI_INT, -4, 12, &old));
    OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, old, &type));
    OK(MPI_Type_free(&old));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_get_extent(type, &lb, &extent));
    CHECK(lb == 0 && extent == 4 * 5 * 12);
    OK(MPI_Pack(from, 1, type, to, sizeof to, &position, MPI_COMM_SELF));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            CHECK(!memcmp(to + 4 * (3 * i + j), from + 12 * (5 * (1 + i) + 2 + j), 4));
    OK(MPI_Type_free(&type));
}

static void invalid(void)
{
    const int sizes[2] = {4, 5}, subsizes[2] = {2, 6}, starts[2] = {3, 0}, ones[2] = {1, 1}, none[2] = {0, 0};
    const int block[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK}, default_[2] = {MPI_DISTRIBUTE_DFLT_DARG, 1};
    const int whole[2] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_NONE}, grid_[2] = {2, 2}, odd[2] = {5, 77};
    const MPI_Count huge[2] = {(MPI_Count)1 << 40, (MPI_Count)1 << 40}, one_c[2] = {1, 1}, zero_c[2] = {0, 0};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    BAD(MPI_Type_create_subarray(0, sizes, ones, none, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "ndims is 0");
    BAD(MPI_Type_create_subarray(-2, sizes, ones, none, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "ndims is -2");
    BAD(MPI_Type_create_subarray(2, none, ones, none, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "array_of_sizes[0] is 0");
    BAD(MPI_Type_create_subarray(2, sizes, subsizes, none, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "array_of_subsizes[1] is 6",
        "1..5");
    BAD(MPI_Type_create_subarray(2, sizes, none, none, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "array_of_subsizes[0] is 0");
    BAD(MPI_Type_create_subarray(1, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "array_of_starts[0] is 3",
        "0..2");
    BAD(MPI_Type_create_subarray(2, sizes, ones, none, 3, MPI_INT, &type), MPI_ERR_ARG, "order is 3", "MPI_ORDER_FORTRAN");
    BAD(MPI_Type_create_subarray(2, NULL, ones, none, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "array_of_sizes is NULL");
    BAD(MPI_Type_create_subarray(2, sizes, ones, none, MPI_ORDER_C, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE, "oldtype");
    BAD(MPI_Type_create_subarray_c(2, huge, one_c, zero_c, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_VALUE_TOO_LARGE, "array_of_sizes");
    BAD(MPI_Type_create_darray(0, 0, 2, sizes, block, default_, ones, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "size is 0");
    BAD(MPI_Type_create_darray(1, 1, 2, sizes, block, default_, ones, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "rank is 1", "0..0");
    BAD(MPI_Type_create_darray(4, 0, 2, sizes, block, default_, grid_, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG,
        "array_of_dargs[1] is 1", "5 elements");
    BAD(MPI_Type_create_darray(3, 0, 1, sizes, block, default_, grid_, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "size is 3",
        "grid of 2");
    BAD(MPI_Type_create_darray(2, 0, 1, sizes, whole, default_, grid_, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG,
        "array_of_psizes[0] is 2");
    BAD(MPI_Type_create_darray(1, 0, 1, sizes, odd, default_, ones, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG,
        "array_of_distribs[0] is 5");
    BAD(MPI_Type_create_darray(1, 0, 1, none, block, default_, ones, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG, "array_of_gsizes[0]");
    BAD(MPI_Type_create_darray(1, 0, 1, sizes, NULL, default_, ones, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG,
        "array_of_distribs is NULL");
    BAD(MPI_Type_create_darray(1, 0, 1, sizes, block, default_, ones, 0, MPI_INT, &type), MPI_ERR_ARG, "order is 0");
    CHECK(type == MPI_DATATYPE_NULL);
}

int main(int argc, char **argv)
{
    int rank, size;
    uint64_t seed = 42;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int i = 0; i < ELEMENTS; i++)
        global[i] = i;
    for (int i = 0; i < 300; i++)
        subarray(&seed);
    standard_example();
    for (int i = 0; i < 300; i++)
        darray(&seed);
    of_derived();
    invalid();
    OK(MPI_Finalize());
    return 0;
}

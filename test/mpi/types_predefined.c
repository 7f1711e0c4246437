/* np: 2 : MPI_Type_match_size, the datatypes of Fortran's precision and range, MPI_Type_get_value_index */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static void match_size(void)
{
    static const struct { int class_, size; MPI_Datatype type; } rows[] = {
        {MPI_TYPECLASS_REAL, 4, MPI_REAL4}, {MPI_TYPECLASS_REAL, 8, MPI_REAL8}, {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},
        {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2}, {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4}, {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
        {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8}, {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16}};
    MPI_Datatype type;
    int size;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OK(MPI_Type_match_size(rows[i].class_, rows[i].size, &type));
        OK(MPI_Type_size(type, &size));
        CHECK(type == rows[i].type && size == rows[i].size);
    }
    BAD(MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &type), MPI_ERR_ARG, "size is 3", "REAL");
    BAD(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 0, &type), MPI_ERR_ARG, "size is 0");
    BAD(MPI_Type_match_size(7, 4, &type), MPI_ERR_ARG, "typeclass is 7");
    BAD(MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, NULL), MPI_ERR_ARG, "datatype is NULL");
}

/* The size, the decoded arguments, and the same handle at the next call. */
static void f90(MPI_Datatype type, MPI_Datatype again, int size, int combiner, int n, int p, int r)
{
    int got = -1, ni = -1, na = -1, nd = -1, numbers[2] = {0, 0}, length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Datatype twin = type;
    CHECK(type == again);
    OK(MPI_Type_size(type, &got));
    CHECK(got == size, "size %d, not %d", got, size);
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &got));
    CHECK(got == combiner && ni == n && na == 0 && nd == 0);
    OK(MPI_Type_get_contents(type, n, 0, 0, numbers, NULL, NULL));
    CHECK(n == 1 ? numbers[0] == r : numbers[0] == p && numbers[1] == r);
    OK(MPI_Type_get_name(type, name, &length));
    CHECK(length == 0);
    OK(MPI_Type_commit(&twin));
    BAD(MPI_Type_free(&twin), MPI_ERR_TYPE, "predefined");
    CHECK(twin == type && MPI_Type_fromint(MPI_Type_toint(type)) == type);
}

static void fortran(void)
{
    static const struct { int p, r, size; } reals[] = {
        {6, 37, 4}, {6, MPI_UNDEFINED, 4}, {MPI_UNDEFINED, 30, 4}, {7, 37, 8}, {6, 38, 8}, {15, 307, 8}, {MPI_UNDEFINED, 307, 8},
        {16, 307, 16}, {15, 308, 16}, {18, 4931, 16}};
    static const struct { int r, size; } integers[] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {5, 4}, {9, 4}, {10, 8}, {18, 8}};
    MPI_Datatype type, again;
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        OK(MPI_Type_create_f90_real(reals[i].p, reals[i].r, &type));
        OK(MPI_Type_create_f90_real(reals[i].p, reals[i].r, &again));
        f90(type, again, reals[i].size, MPI_COMBINER_F90_REAL, 2, reals[i].p, reals[i].r);
        OK(MPI_Type_create_f90_complex(reals[i].p, reals[i].r, &type));
        OK(MPI_Type_create_f90_complex(reals[i].p, reals[i].r, &again));
        f90(type, again, 2 * reals[i].size, MPI_COMBINER_F90_COMPLEX, 2, reals[i].p, reals[i].r);
    }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        OK(MPI_Type_create_f90_integer(integers[i].r, &type));
        OK(MPI_Type_create_f90_integer(integers[i].r, &again));
        f90(type, again, integers[i].size, MPI_COMBINER_F90_INTEGER, 1, 0, integers[i].r);
    }
    OK(MPI_Type_create_f90_real(6, 30, &type));
    OK(MPI_Type_create_f90_real(6, 31, &again));
    CHECK(type != again); /* other arguments, another type (19.1.9) */
    BAD(MPI_Type_create_f90_real(34, 10, &type), MPI_ERR_ARG, "p is 34");
    BAD(MPI_Type_create_f90_complex(3, 5000, &type), MPI_ERR_ARG, "r is 5000");
    BAD(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type), MPI_ERR_ARG, "both MPI_UNDEFINED");
    BAD(MPI_Type_create_f90_integer(39, &type), MPI_ERR_ARG, "r is 39");
    BAD(MPI_Type_create_f90_integer(3, NULL), MPI_ERR_ARG, "newtype is NULL");
}

/* They move, reduce, convert, and make up other types. */
static void in_use(int rank, int other)
{
    MPI_Datatype integer, real, both, parts[2], got[2];
    int64_t ints[3] = {rank, 10, -rank}, sums[3];
    double reals[2] = {1.5 + rank, 2.5}, received[2];
    const int lengths[2] = {1, 2};
    const MPI_Aint disps[2] = {0, 8};
    int numbers[3];
    MPI_Aint addresses[2], size;
    OK(MPI_Type_create_f90_integer(15, &integer)); /* the standard's example (19.1.9) */
    OK(MPI_Type_create_f90_real(12, MPI_UNDEFINED, &real));
    OK(MPI_Allreduce(ints, sums, 3, integer, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sums[0] == 1 && sums[1] == 20 && sums[2] == -1);
    OK(MPI_Sendrecv(reals, 2, real, other, 0, received, 2, real, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(received[0] == 1.5 + other && received[1] == 2.5);
    OK(MPI_Pack_external_size("external32", 3, real, &size));
    CHECK(size == 24);
    parts[0] = integer;
    parts[1] = real;
    OK(MPI_Type_create_struct(2, lengths, disps, parts, &both));
    OK(MPI_Type_get_contents(both, 3, 2, 2, numbers, addresses, got));
    CHECK(got[0] == integer && got[1] == real);
    OK(MPI_Type_free(&both));
}

static void value_index(void)
{
    static const struct { MPI_Datatype value, index, pair; } rows[] = {
        {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT}, {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT}, {MPI_LONG, MPI_INT, MPI_LONG_INT},
        {MPI_INT, MPI_INT, MPI_2INT}, {MPI_SHORT, MPI_INT, MPI_SHORT_INT}, {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
        {MPI_REAL, MPI_REAL, MPI_2REAL}, {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
        {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION}, {MPI_CHAR, MPI_INT, MPI_DATATYPE_NULL},
        {MPI_DOUBLE, MPI_FLOAT, MPI_DATATYPE_NULL}};
    MPI_Datatype pair;
    int ni, na, nd, combiner;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OK(MPI_Type_get_value_index(rows[i].value, rows[i].index, &pair));
        CHECK(pair == rows[i].pair);
    }
    OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair));
    OK(MPI_Type_get_envelope(pair, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED);
    BAD(MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &pair), MPI_ERR_TYPE, "value_type");
    BAD(MPI_Type_get_value_index(MPI_INT, MPI_DATATYPE_NULL, &pair), MPI_ERR_TYPE, "index_type");
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    match_size();
    fortran();
    in_use(rank, 1 - rank);
    value_index();
    OK(MPI_Finalize());
    return 0;
}

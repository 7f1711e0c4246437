/* np: 1 : MPI_Type_get_envelope and _contents give each constructor's arguments, of int and large-count forms, and new references */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

enum { MAX = 64 };

/* What a type must decode to; numbers in the order of the arguments. */
typedef struct decoded {
    int combiner, n_ints, n_addresses, n_counts, n_types;
    long long ints[MAX], addresses[8], counts[MAX];
    MPI_Datatype types[3]; /* MPI_DATATYPE_NULL: a derived one */
} decoded;

/* Decodes the type by the large-count functions, and if it has no large counts by the others too. Frees it. */
static void decode(int line, MPI_Datatype type, decoded must)
{
    MPI_Count ni = -1, na = -1, nc = -1, nd = -1, counts[MAX];
    int combiner = -1, i_ni = -1, i_na = -1, i_nd = -1, ints[MAX];
    MPI_Aint addresses[MAX];
    MPI_Datatype types[MAX];
    char where[32];
    snprintf(where, sizeof where, "line %d", line);
    OK(MPI_Type_get_envelope_c(type, &ni, &na, &nc, &nd, &combiner));
    CHECK(combiner == must.combiner && ni == must.n_ints && na == must.n_addresses && nc == must.n_counts && nd == must.n_types,
          "%s: combiner %d, %lld %lld %lld %lld", where, combiner, (long long)ni, (long long)na, (long long)nc, (long long)nd);
    for (int is_large = must.n_counts > 0; is_large < 2; is_large++) {
        if (is_large) {
            OK(MPI_Type_get_contents_c(type, ni, na, nc, nd, ints, addresses, counts, types));
        } else {
            OK(MPI_Type_get_envelope(type, &i_ni, &i_na, &i_nd, &combiner));
            CHECK(i_ni == ni && i_na == na && i_nd == nd && combiner == must.combiner);
            OK(MPI_Type_get_contents(type, i_ni, i_na, i_nd, ints, addresses, types));
        }
        for (int i = 0; i < must.n_ints; i++)
            CHECK(ints[i] == must.ints[i], "%s: int %d is %d", where, i, ints[i]);
        for (int i = 0; i < must.n_addresses; i++)
            CHECK(addresses[i] == must.addresses[i], "%s: address %d is %ld", where, i, (long)addresses[i]);
        for (int i = 0; i < must.n_counts; i++)
            CHECK(counts[i] == must.counts[i], "%s: count %d is %lld", where, i, (long long)counts[i]);
        for (int i = 0; i < must.n_types; i++) {
            if (must.types[i] != MPI_DATATYPE_NULL)
                CHECK(types[i] == must.types[i], "%s: type %d", where, i);
            else
                OK(MPI_Type_free(&types[i]));
        }
    }
    if (must.n_counts) {
        BAD(MPI_Type_get_envelope(type, &i_ni, &i_na, &i_nd, &combiner), MPI_ERR_TYPE, "large counts", "_c form");
        BAD(MPI_Type_get_contents(type, MAX, MAX, MAX, ints, addresses, types), MPI_ERR_TYPE, "large counts", "_c form");
    }
    OK(MPI_Type_free(&type));
}
#define DECODE(type, ...) decode(__LINE__, type, (decoded){__VA_ARGS__})

static void simple(void)
{
    MPI_Datatype t;
    OK(MPI_Type_dup(MPI_INT, &t));
    DECODE(t, MPI_COMBINER_DUP, .n_types = 1, .types = {MPI_INT});
    OK(MPI_Type_contiguous(5, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_CONTIGUOUS, 1, .n_types = 1, .ints = {5}, .types = {MPI_INT});
    OK(MPI_Type_contiguous_c(5, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_CONTIGUOUS, .n_counts = 1, .n_types = 1, .counts = {5}, .types = {MPI_INT});
    OK(MPI_Type_vector(5, 2, -3, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_VECTOR, 3, .n_types = 1, .ints = {5, 2, -3}, .types = {MPI_INT});
    OK(MPI_Type_vector_c(5, 2, -3, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_VECTOR, .n_counts = 3, .n_types = 1, .counts = {5, 2, -3}, .types = {MPI_INT});
    OK(MPI_Type_create_hvector(5, 2, -30, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_HVECTOR, 2, 1, .n_types = 1, .ints = {5, 2}, .addresses = {-30}, .types = {MPI_INT});
    OK(MPI_Type_create_hvector_c(5, 2, -30, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_HVECTOR, .n_counts = 3, .n_types = 1, .counts = {5, 2, -30}, .types = {MPI_INT});
    OK(MPI_Type_create_resized(MPI_CHAR, -7, 70, &t));
    DECODE(t, MPI_COMBINER_RESIZED, .n_addresses = 2, .n_types = 1, .addresses = {-7, 70}, .types = {MPI_CHAR});
    OK(MPI_Type_create_resized_c(MPI_CHAR, -7, 70, &t));
    DECODE(t, MPI_COMBINER_RESIZED, .n_counts = 2, .n_types = 1, .counts = {-7, 70}, .types = {MPI_CHAR});
}

static void indexed(void)
{
    const int lengths[2] = {3, 1}, disps[2] = {4, -2};
    const MPI_Aint bytes[2] = {40, -20};
    const MPI_Count lengths_c[2] = {3, 1}, disps_c[2] = {4, -2};
    const MPI_Datatype both[2] = {MPI_INT, MPI_DOUBLE};
    MPI_Datatype t;
    OK(MPI_Type_indexed(2, lengths, disps, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_INDEXED, 5, .n_types = 1, .ints = {2, 3, 1, 4, -2}, .types = {MPI_INT});
    OK(MPI_Type_indexed_c(2, lengths_c, disps_c, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_INDEXED, .n_counts = 5, .n_types = 1, .counts = {2, 3, 1, 4, -2}, .types = {MPI_INT});
    OK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_INDEXED, 1, .n_types = 1, .ints = {0}, .types = {MPI_INT});
    OK(MPI_Type_create_hindexed(2, lengths, bytes, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_HINDEXED, 3, 2, .n_types = 1, .ints = {2, 3, 1}, .addresses = {40, -20}, .types = {MPI_INT});
    OK(MPI_Type_create_hindexed_c(2, lengths_c, disps_c, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_HINDEXED, .n_counts = 5, .n_types = 1, .counts = {2, 3, 1, 4, -2}, .types = {MPI_INT});
    OK(MPI_Type_create_indexed_block(2, 9, disps, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_INDEXED_BLOCK, 4, .n_types = 1, .ints = {2, 9, 4, -2}, .types = {MPI_INT});
    OK(MPI_Type_create_indexed_block_c(2, 9, disps_c, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_INDEXED_BLOCK, .n_counts = 4, .n_types = 1, .counts = {2, 9, 4, -2}, .types = {MPI_INT});
    OK(MPI_Type_create_hindexed_block(2, 9, bytes, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_HINDEXED_BLOCK, 2, 2, .n_types = 1, .ints = {2, 9}, .addresses = {40, -20}, .types = {MPI_INT});
    OK(MPI_Type_create_hindexed_block_c(2, 9, disps_c, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_HINDEXED_BLOCK, .n_counts = 4, .n_types = 1, .counts = {2, 9, 4, -2}, .types = {MPI_INT});
    OK(MPI_Type_create_struct(2, lengths, bytes, both, &t));
    DECODE(t, MPI_COMBINER_STRUCT, 3, 2, .n_types = 2, .ints = {2, 3, 1}, .addresses = {40, -20}, .types = {MPI_INT, MPI_DOUBLE});
    OK(MPI_Type_create_struct_c(2, lengths_c, disps_c, both, &t));
    DECODE(t, MPI_COMBINER_STRUCT, .n_counts = 5, .n_types = 2, .counts = {2, 3, 1, 4, -2}, .types = {MPI_INT, MPI_DOUBLE});
    OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &t));
    DECODE(t, MPI_COMBINER_STRUCT, 1, .ints = {0});
}

static void arrays(void)
{
    const int sizes[2] = {7, 8}, subsizes[2] = {3, 4}, starts[2] = {1, 2}, psizes[2] = {2, 1};
    const int distribs[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE}, dargs[2] = {3, MPI_DISTRIBUTE_DFLT_DARG};
    const MPI_Count sizes_c[2] = {7, 8}, subsizes_c[2] = {3, 4}, starts_c[2] = {1, 2};
    MPI_Datatype t;
    OK(MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_SUBARRAY, 8, .n_types = 1, .ints = {2, 7, 8, 3, 4, 1, 2, MPI_ORDER_C}, .types = {MPI_INT});
    OK(MPI_Type_create_subarray_c(2, sizes_c, subsizes_c, starts_c, MPI_ORDER_C, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_SUBARRAY, 2, .n_counts = 6, .n_types = 1, .ints = {2, MPI_ORDER_C}, .counts = {7, 8, 3, 4, 1, 2},
           .types = {MPI_INT});
    OK(MPI_Type_create_darray(2, 1, 2, sizes, distribs, dargs, psizes, MPI_ORDER_FORTRAN, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_DARRAY, 12, .n_types = 1,
           .ints = {2, 1, 2, 7, 8, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, 3, MPI_DISTRIBUTE_DFLT_DARG, 2, 1, MPI_ORDER_FORTRAN},
           .types = {MPI_INT});
    OK(MPI_Type_create_darray_c(2, 1, 2, sizes_c, distribs, dargs, psizes, MPI_ORDER_FORTRAN, MPI_INT, &t));
    DECODE(t, MPI_COMBINER_DARRAY, 10, .n_counts = 2, .n_types = 1,
           .ints = {2, 1, 2, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, 3, MPI_DISTRIBUTE_DFLT_DARG, 2, 1, MPI_ORDER_FORTRAN},
           .counts = {7, 8}, .types = {MPI_INT});
}

/* Handles from _contents are independent: freeing one of them, or the original, leaves the others valid, in any order. */
static void references(void)
{
    MPI_Datatype inner, outer, first, second;
    int numbers[3], combiner = -1, ni, na, nd, size;
    MPI_Aint address;
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &inner));
    OK(MPI_Type_contiguous(2, inner, &outer));
    OK(MPI_Type_get_contents(outer, 1, 0, 1, numbers, NULL, &first));
    OK(MPI_Type_free(&first));
    OK(MPI_Type_size(inner, &size)); /* still valid */
    CHECK(size == 12);
    OK(MPI_Type_free(&inner));
    OK(MPI_Type_get_contents(outer, 3, 1, 1, numbers, &address, &first));
    OK(MPI_Type_get_contents(outer, 1, 0, 1, numbers, NULL, &second));
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_free(&first));
    OK(MPI_Type_get_envelope(second, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_VECTOR && ni == 3 && na == 0 && nd == 1);
    OK(MPI_Type_get_contents(second, 3, 0, 1, numbers, NULL, &first));
    CHECK(numbers[0] == 3 && numbers[1] == 1 && numbers[2] == 2 && first == MPI_INT);
    OK(MPI_Type_commit(&second));
    OK(MPI_Type_free(&second));
    OK(MPI_Type_vector(3, 1, 2, MPI_INT, &inner));
    OK(MPI_Type_dup(inner, &outer));
    OK(MPI_Type_free(&inner));
    DECODE(outer, MPI_COMBINER_DUP, .n_types = 1, .types = {MPI_DATATYPE_NULL});
}

/* Builds an equal type from decoded parts: packs the same bytes. */
static void again(void)
{
    const int lengths[2] = {2, 3};
    const MPI_Aint disps[2] = {0, 40};
    MPI_Datatype vector, type, parts[2], rebuilt;
    const MPI_Datatype types[2] = {MPI_DOUBLE_INT, MPI_SHORT};
    int numbers[3], at = 0, at_again = 0;
    MPI_Aint addresses[2];
    char memory[200], one[100], two[100];
    OK(MPI_Type_create_struct(2, lengths, disps, types, &vector));
    OK(MPI_Type_contiguous(2, vector, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_get_contents(type, 1, 0, 1, numbers, NULL, parts));
    OK(MPI_Type_get_contents(parts[0], 3, 2, 2, numbers, addresses, parts));
    OK(MPI_Type_create_struct(numbers[0], numbers + 1, addresses, parts, &rebuilt));
    OK(MPI_Type_commit(&rebuilt));
    check_fill(memory, sizeof memory, 9);
    OK(MPI_Pack(memory, 1, type, one, sizeof one, &at, MPI_COMM_SELF));
    OK(MPI_Pack(memory, 2, rebuilt, two, sizeof two, &at_again, MPI_COMM_SELF));
    CHECK(at == at_again && !memcmp(one, two, (size_t)at));
    OK(MPI_Type_free(&rebuilt));
    OK(MPI_Type_free(&type));
}

static void invalid(void)
{
    MPI_Datatype t, types[1];
    int ni = -1, na = -1, nd = -1, combiner = -1, ints[3];
    MPI_Aint addresses[1];
    OK(MPI_Type_get_envelope(MPI_DOUBLE_INT, &ni, &na, &nd, &combiner));
    CHECK(combiner == MPI_COMBINER_NAMED && ni == 0 && na == 0 && nd == 0);
    BAD(MPI_Type_get_contents(MPI_INT, 0, 0, 0, ints, addresses, types), MPI_ERR_TYPE, "MPI_INT", "MPI_COMBINER_NAMED");
    BAD(MPI_Type_get_envelope(MPI_DATATYPE_NULL, &ni, &na, &nd, &combiner), MPI_ERR_TYPE, "datatype is MPI_DATATYPE_NULL");
    BAD(MPI_Type_get_envelope(MPI_INT, &ni, NULL, &nd, &combiner), MPI_ERR_ARG, "num_addresses is NULL");
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
    BAD(MPI_Type_get_contents(t, 2, 0, 1, ints, addresses, types), MPI_ERR_ARG, "max_integers is 2", "3");
    BAD(MPI_Type_get_contents(t, 3, 0, 0, ints, addresses, types), MPI_ERR_ARG, "max_datatypes is 0");
    BAD(MPI_Type_get_contents(t, -3, 0, 1, ints, addresses, types), MPI_ERR_ARG, "max_integers is -3");
    BAD(MPI_Type_get_contents(t, 3, 0, 1, NULL, addresses, types), MPI_ERR_ARG, "array_of_integers is NULL");
    BAD(MPI_Type_get_contents_c(t, 3, 0, 1, 1, ints, addresses, NULL, types), MPI_ERR_ARG, "array_of_large_counts is NULL");
    BAD(MPI_Type_get_contents_c(t, 3, 0, -1, 1, ints, addresses, NULL, types), MPI_ERR_ARG, "max_large_counts is -1");
    OK(MPI_Type_get_contents_c(t, 3, 0, 0, 1, ints, NULL, NULL, types));
    OK(MPI_Type_free(&t));
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    simple();
    indexed();
    arrays();
    references();
    again();
    invalid();
    OK(MPI_Finalize());
    return 0;
}

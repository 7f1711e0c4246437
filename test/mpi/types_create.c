/* np: 1 : indexed, hindexed, block, struct and resized datatypes: type maps, bounds, zero counts, large-count forms, invalid arguments */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <stddef.h>

#include "expect.h"

/* Entry of an expected type map: bytes at a displacement. */
typedef struct entry {
    int disp, bytes;
} entry;

enum { MEMORY = 4096, ORIGIN = 1024 };
static unsigned char memory[MEMORY], back[MEMORY], packed[MEMORY];

/* Packs two elements from the middle of `memory`, compares with the map, and unpacks them again. */
static void map_check(int line, MPI_Datatype type, int n, const entry *map)
{
    MPI_Aint lb, extent;
    int position = 0, at = 0, size;
    char where[32];
    snprintf(where, sizeof where, "line %d", line);
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_get_extent(type, &lb, &extent));
    OK(MPI_Type_size(type, &size));
    check_fill(memory, MEMORY, 7);
    memset(back, 0, MEMORY);
    memset(packed, 0, MEMORY);
    OK(MPI_Pack(memory + ORIGIN, 2, type, packed, MEMORY, &position, MPI_COMM_SELF));
    for (int e = 0; e < 2; e++) {
        for (int i = 0; i < n; at += map[i++].bytes)
            CHECK(!memcmp(packed + at, memory + ORIGIN + e * extent + map[i].disp, (size_t)map[i].bytes), "%s: element %d, entry %d",
                  where, e, i);
    }
    CHECK(at == position && at == 2 * size, "%s: packed %d, not %d", where, position, at);
    position = 0;
    OK(MPI_Unpack(packed, at, &position, back + ORIGIN, 2, type, MPI_COMM_SELF));
    for (int e = 0; e < 2; e++)
        for (int i = 0; i < n; i++)
            CHECK(!memcmp(back + ORIGIN + e * extent + map[i].disp, memory + ORIGIN + e * extent + map[i].disp, (size_t)map[i].bytes),
                  "%s: entry %d unpacked", where, i);
}
#define MAP(type, ...) map_check(__LINE__, type, (int)(sizeof((entry[]){__VA_ARGS__}) / sizeof(entry)), (entry[]){__VA_ARGS__})

static void bounds(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent, MPI_Aint true_lb, MPI_Aint true_extent)
{
    MPI_Aint got[4];
    OK(MPI_Type_get_extent(type, &got[0], &got[1]));
    OK(MPI_Type_get_true_extent(type, &got[2], &got[3]));
    CHECK(got[0] == lb && got[1] == extent && got[2] == true_lb && got[3] == true_extent, "lb %ld extent %ld true %ld %ld",
          (long)got[0], (long)got[1], (long)got[2], (long)got[3]);
}

/* {(double, 0), (char, 8)}, extent 16: the old type of the standard's examples (5.1.2). */
static MPI_Datatype double_char(void)
{
    const int lengths[2] = {1, 1};
    const MPI_Aint disps[2] = {0, 8};
    const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype type;
    OK(MPI_Type_create_struct(2, lengths, disps, types, &type));
    bounds(type, 0, 16, 0, 9);
    return type;
}

static void indexed(void)
{
    const int lengths[3] = {3, 0, 1}, disps[3] = {4, 100, 0};
    const MPI_Count lengths_c[3] = {3, 0, 1}, disps_c[3] = {4, 100, 0};
    MPI_Datatype old = double_char(), type;
    OK(MPI_Type_indexed(3, lengths, disps, old, &type));
    bounds(type, 0, 112, 0, 105);
    MAP(type, {64, 8}, {72, 1}, {80, 8}, {88, 1}, {96, 8}, {104, 1}, {0, 8}, {8, 1});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_indexed_c(3, lengths_c, disps_c, old, &type));
    MAP(type, {64, 8}, {72, 1}, {80, 8}, {88, 1}, {96, 8}, {104, 1}, {0, 8}, {8, 1});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_indexed(0, NULL, NULL, old, &type));
    bounds(type, 0, 0, 0, 0);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&old));
}

static void hindexed(void)
{
    const int lengths[2] = {2, 1};
    const MPI_Aint disps[2] = {7, -40};
    const MPI_Count lengths_c[2] = {2, 1}, disps_c[2] = {7, -40};
    MPI_Datatype type;
    OK(MPI_Type_create_hindexed(2, lengths, disps, MPI_SHORT, &type));
    bounds(type, -40, 52, -40, 51);
    MAP(type, {7, 2}, {9, 2}, {-40, 2});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_hindexed_c(2, lengths_c, disps_c, MPI_SHORT, &type));
    MAP(type, {7, 4}, {-40, 2});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_hindexed(0, NULL, NULL, MPI_SHORT, &type));
    bounds(type, 0, 0, 0, 0);
    OK(MPI_Type_free(&type));
}

static void blocks(void)
{
    const int disps[3] = {5, 2, -3};
    const MPI_Aint byte_disps[3] = {50, 21, -3};
    const MPI_Count disps_c[3] = {5, 2, -3}, byte_disps_c[3] = {50, 21, -3};
    MPI_Datatype type;
    OK(MPI_Type_create_indexed_block(3, 2, disps, MPI_INT, &type));
    bounds(type, -12, 40, -12, 40);
    MAP(type, {20, 8}, {8, 8}, {-12, 8});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_indexed_block_c(3, 2, disps_c, MPI_INT, &type));
    MAP(type, {20, 8}, {8, 8}, {-12, 8});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_hindexed_block(3, 1, byte_disps, MPI_DOUBLE, &type));
    MAP(type, {50, 8}, {21, 8}, {-3, 8});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_hindexed_block_c(3, 1, byte_disps_c, MPI_DOUBLE, &type));
    MAP(type, {50, 8}, {21, 8}, {-3, 8});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_indexed_block(3, 0, disps, MPI_INT, &type)); /* empty blocks bound nothing */
    bounds(type, 0, 0, 0, 0);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_hindexed_block(0, 9, NULL, MPI_INT, &type));
    bounds(type, 0, 0, 0, 0);
    OK(MPI_Type_free(&type));
}

/* The standard's example of a struct (5.1.2), and a struct of nothing. */
static void structs(void)
{
    const int lengths[3] = {2, 1, 3};
    const MPI_Aint disps[3] = {0, 16, 26};
    const MPI_Count lengths_c[3] = {2, 1, 3}, disps_c[3] = {0, 16, 26};
    MPI_Datatype old = double_char(), type;
    MPI_Datatype types[3] = {MPI_FLOAT, old, MPI_CHAR};
    OK(MPI_Type_create_struct(3, lengths, disps, types, &type));
    bounds(type, 0, 32, 0, 29);
    MAP(type, {0, 4}, {4, 4}, {16, 8}, {24, 1}, {26, 3});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_struct_c(3, lengths_c, disps_c, types, &type));
    MAP(type, {0, 8}, {16, 9}, {26, 3});
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&old));
    OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &type));
    bounds(type, 0, 0, 0, 0);
    OK(MPI_Type_free(&type));
}

/* The standard's example of explicit bounds (5.1.6), and shrinking below the data. */
static void resized(void)
{
    MPI_Datatype one, two, column, narrow;
    OK(MPI_Type_create_resized(MPI_INT, -3, 9, &one));
    bounds(one, -3, 9, 0, 4);
    OK(MPI_Type_contiguous(2, one, &two));
    bounds(two, -3, 18, 0, 13);
    MAP(two, {0, 4}, {9, 4});
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_create_resized_c(MPI_INT, 2, -8, &one)); /* elements run downwards */
    bounds(one, 2, -8, 0, 4);
    OK(MPI_Type_contiguous(3, one, &two));
    MAP(two, {0, 4}, {-8, 4}, {-16, 4});
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&one));
    OK(MPI_Type_vector(4, 1, 5, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, 4, &narrow));
    bounds(narrow, 0, 4, 0, 64);
    MAP(narrow, {0, 4}, {20, 4}, {40, 4}, {60, 4});
    OK(MPI_Type_free(&narrow));
    OK(MPI_Type_free(&column));
}

static void invalid(void)
{
    const int lengths[3] = {1, 2, -3}, disps[3] = {0, 1, 2};
    const MPI_Aint far[2] = {0, LONG_MAX};
    const MPI_Count huge[1] = {(MPI_Count)1 << 62};
    const MPI_Datatype types[3] = {MPI_INT, MPI_DATATYPE_NULL, MPI_INT};
    MPI_Datatype type = MPI_DATATYPE_NULL;
    BAD(MPI_Type_indexed(3, lengths, disps, MPI_INT, &type), MPI_ERR_ARG, "MPI_Type_indexed", "array_of_blocklengths[2] is -3");
    BAD(MPI_Type_indexed(3, NULL, disps, MPI_INT, &type), MPI_ERR_ARG, "array_of_blocklengths is NULL", "3 elements");
    BAD(MPI_Type_indexed(2, lengths, NULL, MPI_INT, &type), MPI_ERR_ARG, "array_of_displacements is NULL");
    BAD(MPI_Type_indexed(-1, lengths, disps, MPI_INT, &type), MPI_ERR_COUNT, "count is -1");
    BAD(MPI_Type_indexed(2, lengths, disps, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE, "oldtype is MPI_DATATYPE_NULL");
    BAD(MPI_Type_indexed(2, lengths, disps, MPI_INT, NULL), MPI_ERR_ARG, "newtype is NULL");
    BAD(MPI_Type_create_hindexed(1, lengths + 2, far, MPI_INT, &type), MPI_ERR_ARG, "array_of_blocklengths[0] is -3");
    BAD(MPI_Type_create_hindexed(2, lengths, far, MPI_INT, &type), MPI_ERR_VALUE_TOO_LARGE, "63 bits");
    BAD(MPI_Type_create_indexed_block(3, -2, disps, MPI_INT, &type), MPI_ERR_ARG, "blocklength is -2");
    BAD(MPI_Type_create_indexed_block(3, 1, NULL, MPI_INT, &type), MPI_ERR_ARG, "array_of_displacements is NULL");
    BAD(MPI_Type_create_indexed_block_c(1, 1, huge, MPI_INT, &type), MPI_ERR_VALUE_TOO_LARGE, "array_of_displacements[0]");
    BAD(MPI_Type_create_hindexed_block(1, 1, NULL, MPI_INT, &type), MPI_ERR_ARG, "array_of_displacements is NULL");
    BAD(MPI_Type_vector(3, -1, 2, MPI_INT, &type), MPI_ERR_ARG, "blocklength is -1");
    BAD(MPI_Type_create_struct(3, lengths, far, types, &type), MPI_ERR_ARG, "array_of_blocklengths[2] is -3");
    BAD(MPI_Type_create_struct(2, lengths, far, types, &type), MPI_ERR_TYPE, "array_of_types[1] is MPI_DATATYPE_NULL");
    BAD(MPI_Type_create_struct(2, lengths, far, NULL, &type), MPI_ERR_ARG, "array_of_types is NULL");
    BAD(MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 4, &type), MPI_ERR_TYPE, "oldtype");
    BAD(MPI_Type_create_resized(MPI_INT, LONG_MAX, 4, &type), MPI_ERR_VALUE_TOO_LARGE, "63 bits");
    CHECK(type == MPI_DATATYPE_NULL);
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    indexed();
    hindexed();
    blocks();
    structs();
    resized();
    invalid();
    OK(MPI_Finalize());
    return 0;
}

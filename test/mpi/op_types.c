/* np: 1 2 3 4 : reductions beyond the standard's table (MPI_CHAR as a signed integer, logical operators on every integer); invalid ones */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { MAX = 5000 };

static int rank, size;

enum way { BLOCKING, NONBLOCKING, PERSISTENT, WAYS };

static int allreduce(enum way way, const void *in, void *out, int count, MPI_Datatype type, MPI_Op op)
{
    MPI_Request req;
    int code;
    if (way == BLOCKING)
        return MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD);
    if (way == NONBLOCKING)
        code = MPI_Iallreduce(in, out, count, type, op, MPI_COMM_WORLD, &req);
    else
        code = MPI_Allreduce_init(in, out, count, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &req);
    if (code)
        return code;
    if (way == PERSISTENT)
        OK(MPI_Start(&req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    if (way == PERSISTENT)
        OK(MPI_Request_free(&req));
    return MPI_SUCCESS;
}

static int reduce(enum way way, const void *in, void *out, int count, MPI_Datatype type, MPI_Op op)
{
    MPI_Request req;
    int code;
    if (way == BLOCKING)
        return MPI_Reduce(in, out, count, type, op, 0, MPI_COMM_WORLD);
    if (way == NONBLOCKING)
        code = MPI_Ireduce(in, out, count, type, op, 0, MPI_COMM_WORLD, &req);
    else
        code = MPI_Reduce_init(in, out, count, type, op, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &req);
    if (code)
        return code;
    if (way == PERSISTENT)
        OK(MPI_Start(&req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    if (way == PERSISTENT)
        OK(MPI_Request_free(&req));
    return MPI_SUCCESS;
}

/* Element i on rank r, as a number: both signs. */
static int value(int r, int i) { return (i * 7 + r * 11) % 13 - 6; }

static void chars(enum way way, int count, MPI_Datatype type)
{
    static signed char in[MAX], out[MAX];
    static const struct { MPI_Op op; const char *name; } ops[] = {{MPI_SUM, "SUM"}, {MPI_PROD, "PROD"}, {MPI_MIN, "MIN"},
        {MPI_MAX, "MAX"}, {MPI_BAND, "BAND"}, {MPI_BOR, "BOR"}, {MPI_BXOR, "BXOR"}, {MPI_LAND, "LAND"}, {MPI_LOR, "LOR"},
        {MPI_LXOR, "LXOR"}};
    for (int i = 0; i < count; i++)
        in[i] = (signed char)value(rank, i);
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (int all = 0; all < 2; all++) {
            memset(out, 0x55, sizeof out);
            OK(all ? allreduce(way, in, out, count, type, ops[o].op) : reduce(way, in, out, count, type, ops[o].op));
            for (int i = 0; i < count && (all || rank == 0); i++) {
                signed char want = (signed char)value(0, i);
                for (int r = 1; r < size; r++) {
                    signed char x = (signed char)value(r, i), y = want;
                    want = (signed char)(o == 0 ? x + y : o == 1 ? x * y : o == 2 ? (x < y ? x : y) : o == 3 ? (x > y ? x : y)
                        : o == 4 ? (x & y) : o == 5 ? (x | y) : o == 6 ? (x ^ y) : o == 7 ? (x && y) : o == 8 ? (x || y)
                        : !x != !y);
                }
                CHECK(out[i] == want, "way %d, %s, element %d of %d: %d, not %d", way, ops[o].name, i, count, out[i], want);
            }
        }
}

/* Logical operators on integers of `width` bytes that are not C types. */
static void logicals(enum way way, MPI_Datatype type, size_t width)
{
    static const MPI_Op ops[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
    enum { COUNT = 6 };
    unsigned char in[COUNT * 8] = {0}, out[COUNT * 8];
    for (int i = 0; i < COUNT; i++)
        in[(size_t)i * width + (size_t)i % width] = (unsigned char)(((rank + 1) >> (i % 3)) & 1 ? 4 : 0); /* true in any byte */
    for (int o = 0; o < 3; o++) {
        OK(allreduce(way, in, out, COUNT, type, ops[o]));
        for (int i = 0; i < COUNT; i++) {
            int want = 0 + ((1 >> (i % 3)) & 1);
            unsigned char expected[8] = {0};
            for (int r = 1; r < size; r++) {
                int x = ((r + 1) >> (i % 3)) & 1;
                want = o == 0 ? x && want : o == 1 ? x || want : x != want;
            }
            expected[0] = (unsigned char)want;
            if (size > 1)
                CHECK(!memcmp(out + (size_t)i * width, expected, width), "way %d, operator %d, element %d", way, o, i);
        }
    }
}

/* Operators for one-sided calls only; MPI_BYTE: bitwise only; pairs: no sum. */
static void refused(enum way way)
{
    char in[16] = {0}, out[16] = {0};
    static const struct { MPI_Op op; MPI_Datatype type; } wrong[] = {{MPI_REPLACE, MPI_INT}, {MPI_NO_OP, MPI_INT},
        {MPI_REPLACE, MPI_DOUBLE_INT}, {MPI_SUM, MPI_2INT}, {MPI_SUM, MPI_BYTE}, {MPI_LAND, MPI_DOUBLE}, {MPI_SUM, MPI_WCHAR}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int code = allreduce(way, in, out, 1, wrong[i].type, wrong[i].op);
        CHECK(code == MPI_ERR_OP, "way %d, case %zu: %d", way, i, code);
        code = reduce(way, in, out, 1, wrong[i].type, wrong[i].op);
        CHECK(code == MPI_ERR_OP, "way %d, case %zu: %d", way, i, code);
        code = MPI_Reduce_local(in, out, 1, wrong[i].type, wrong[i].op);
        CHECK(code == MPI_ERR_OP, "case %zu: %d", i, code);
    }
}

int main(int argc, char **argv)
{
    signed char a[3] = {-3, 4, 0}, b[3] = {2, 5, -1};
    check_start(&argc, &argv, &rank, &size);
    for (enum way way = BLOCKING; way < WAYS; way++) {
        chars(way, 1, MPI_CHAR);
        chars(way, 17, MPI_CHARACTER);
        chars(way, MAX, MPI_CHAR);
        logicals(way, MPI_AINT, sizeof(MPI_Aint));
        logicals(way, MPI_OFFSET, sizeof(MPI_Offset));
        logicals(way, MPI_COUNT, sizeof(MPI_Count));
        logicals(way, MPI_INTEGER, 4);
        logicals(way, MPI_INTEGER8, 8);
    }
    OK(MPI_Reduce_local(a, b, 3, MPI_CHAR, MPI_MIN));
    CHECK(b[0] == -3 && b[1] == 4 && b[2] == -1, "%d %d %d", b[0], b[1], b[2]);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (enum way way = BLOCKING; way < WAYS; way++)
        refused(way);
    OK(MPI_Finalize());
    return 0;
}

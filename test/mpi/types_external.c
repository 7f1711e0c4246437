/* np: 1 : MPI_Pack_external and _Unpack_external: the bytes of external32 for each kind of element, mixed types, partial buffers, errors */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <wchar.h>

#include "expect.h"

static unsigned char packed[1000];

/* Packs count elements, compares with the bytes (a string of hexadecimal digits), unpacks into `again` and compares with the source. */
static void external(int line, const void *from, int count, MPI_Datatype type, size_t bytes, const char *digits)
{
    MPI_Aint position = 0, size = -1, must = (MPI_Aint)strlen(digits) / 2;
    MPI_Count size_c = -1, position_c = 0;
    unsigned char again[256];
    char text[2001] = "", where[32];
    snprintf(where, sizeof where, "line %d", line);
    OK(MPI_Pack_external_size("external32", count, type, &size));
    CHECK(size == must, "%s: size %ld", where, (long)size);
    OK(MPI_Pack_external_size_c("external32", count, type, &size_c));
    CHECK(size_c == must);
    OK(MPI_Pack_external("external32", from, count, type, packed, sizeof packed, &position));
    CHECK(position == must);
    for (int i = 0; i < must; i++)
        snprintf(text + 2 * i, 3, "%02x", packed[i]);
    CHECK(!strcmp(text, digits), "%s: %s", where, text);
    memcpy(again, from, bytes);
    memset(again, 0, bytes);
    position = 0;
    OK(MPI_Unpack_external("external32", packed, must, &position, again, count, type));
    CHECK(position == must && !memcmp(again, from, bytes), "%s: unpacked", where);
    OK(MPI_Pack_external_c("external32", from, count, type, packed, must, &position_c));
    CHECK(position_c == must);
    position_c = 0;
    OK(MPI_Unpack_external_c("external32", packed, must, &position_c, again, count, type));
    CHECK(position_c == must && !memcmp(again, from, bytes));
}
#define EXTERNAL(c_type, type, digits, ...) \
    do { \
        c_type array[] = {__VA_ARGS__}; \
        external(__LINE__, array, (int)(sizeof array / sizeof *array), type, sizeof array, digits); \
    } while (0)

static void basic(void)
{
    EXTERNAL(char, MPI_CHAR, "6162", 'a', 'b');
    EXTERNAL(short, MPI_SHORT, "0102fffe", 0x102, -2);
    EXTERNAL(int, MPI_INT, "0102030480000000", 0x1020304, -0x7fffffff - 1);
    EXTERNAL(long, MPI_LONG, "01020304fffffffe", 0x1020304, -2); /* 4 bytes there */
    EXTERNAL(unsigned long, MPI_UNSIGNED_LONG, "fffffffe", 0xfffffffe);
    EXTERNAL(long long, MPI_LONG_LONG, "0102030405060708", 0x102030405060708);
    EXTERNAL(MPI_Aint, MPI_AINT, "fffffffffffffffd", -3);
    EXTERNAL(MPI_Offset, MPI_OFFSET, "0000000000000102", 0x102);
    EXTERNAL(float, MPI_FLOAT, "3f800000c0200000", 1.0f, -2.5f);
    EXTERNAL(double, MPI_DOUBLE, "3ff0000000000000c004000000000000", 1.0, -2.5);
    EXTERNAL(_Bool, MPI_C_BOOL, "0100", 1, 0);
    EXTERNAL(wchar_t, MPI_WCHAR, "00e92260", 0xe9, 0x2260);
    EXTERNAL(unsigned char, MPI_BYTE, "00ff7f", 0, 255, 127);
    EXTERNAL(int8_t, MPI_INTEGER1, "fe", -2);
    EXTERNAL(int64_t, MPI_INTEGER8, "fffffffffffffffe", -2);
    EXTERNAL(float complex, MPI_C_COMPLEX, "3f800000c0200000", CMPLXF(1.0f, -2.5f));
    EXTERNAL(double complex, MPI_DOUBLE_COMPLEX, "3ff0000000000000c004000000000000", CMPLX(1.0, -2.5));
}

/* The value of a long double, whose padding is undefined. */
static void extended(void)
{
    long double from[2] = {-2.5L, 0x1.8p+1000L}, to[2] = {0, 0};
    MPI_Aint position = 0, size = 0;
    OK(MPI_Pack_external_size("external32", 2, MPI_LONG_DOUBLE, &size));
    CHECK(size == 32);
    OK(MPI_Pack_external("external32", from, 2, MPI_LONG_DOUBLE, packed, sizeof packed, &position));
    CHECK(position == 32 && !memcmp(packed, "\xc0\x00\x40\0\0\0\0\0\0\0\0\0\0\0\0\0\x43\xe7\x80", 19));
    position = 0;
    OK(MPI_Unpack_external("external32", packed, 32, &position, to, 2, MPI_LONG_DOUBLE));
    CHECK(to[0] == from[0] && to[1] == from[1]);
}

/* Mixed types lose their padding and displacements; pairs are members after each other. */
static void mixed(void)
{
    struct row { char c; double d; long l; int unused; short s[2]; } from[2] = {{'x', 1.0, 7, 0, {1, 2}}, {'y', -2.5, -7, 0, {3, 4}}};
    struct row to[2];
    struct { double v; int i; } pairs[2] = {{1.0, 5}, {-2.5, 6}}, pairs_to[2];
    const int lengths[4] = {1, 1, 1, 2};
    const MPI_Aint disps[4] = {offsetof(struct row, c), offsetof(struct row, d), offsetof(struct row, l), offsetof(struct row, s)};
    const MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_LONG, MPI_SHORT};
    static const char must[] = "x\x3f\xf0\0\0\0\0\0\0\0\0\0\7\0\1\0\2y\xc0\4\0\0\0\0\0\0\xff\xff\xff\xf9\0\3\0\4";
    MPI_Datatype type, row;
    MPI_Aint position = 0;
    memset(to, 0, sizeof to);
    OK(MPI_Type_create_struct(4, lengths, disps, types, &type));
    OK(MPI_Type_create_resized(type, 0, sizeof(struct row), &row));
    OK(MPI_Type_commit(&row));
    OK(MPI_Pack_external("external32", from, 2, row, packed, sizeof packed, &position));
    CHECK(position == sizeof must - 1 && !memcmp(packed, must, sizeof must - 1));
    position = 0;
    OK(MPI_Unpack_external("external32", packed, sizeof must - 1, &position, to, 2, row));
    for (int i = 0; i < 2; i++)
        CHECK(to[i].c == from[i].c && to[i].d == from[i].d && to[i].l == from[i].l && to[i].s[0] == from[i].s[0] &&
              to[i].s[1] == from[i].s[1] && !to[i].unused);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&row));
    position = 0;
    OK(MPI_Pack_external("external32", pairs, 2, MPI_DOUBLE_INT, packed, sizeof packed, &position));
    CHECK(position == 24 && packed[11] == 5 && packed[12] == 0xc0 && packed[23] == 6);
    position = 0;
    OK(MPI_Unpack_external("external32", packed, 24, &position, pairs_to, 2, MPI_DOUBLE_INT));
    CHECK(pairs_to[0].v == 1.0 && pairs_to[0].i == 5 && pairs_to[1].v == -2.5 && pairs_to[1].i == 6);
}

/* A strided type of many elements, longer than any buffer inside, in two calls. */
static void strided(void)
{
    enum { N = 5000 };
    static int from[2 * N], to[2 * N];
    static unsigned char big[4 * N];
    MPI_Datatype half;
    MPI_Aint position = 0;
    for (int i = 0; i < 2 * N; i++)
        from[i] = i * 1000;
    OK(MPI_Type_vector(N / 2, 1, 2, MPI_INT, &half));
    OK(MPI_Type_commit(&half));
    OK(MPI_Pack_external("external32", from, 1, half, big, sizeof big, &position));
    OK(MPI_Pack_external("external32", from + N, 1, half, big, sizeof big, &position));
    CHECK(position == sizeof big);
    for (int i = 0; i < N; i++)
        CHECK((big[4 * i] << 24 | big[4 * i + 1] << 16 | big[4 * i + 2] << 8 | big[4 * i + 3]) == 2000 * i, "element %d", i);
    position = 0;
    OK(MPI_Unpack_external("external32", big, sizeof big, &position, to, 1, half));
    OK(MPI_Unpack_external("external32", big, sizeof big, &position, to + N, 1, half));
    for (int i = 0; i < 2 * N; i++)
        CHECK(to[i] == (i % 2 ? 0 : from[i]));
    OK(MPI_Type_free(&half));
}

static void invalid(void)
{
    int x[2] = {1, 2};
    MPI_Aint position = 0, size = -1;
    BAD(MPI_Pack_external("native", x, 1, MPI_INT, packed, 4, &position), MPI_ERR_ARG, "datarep is 'native'", "external32");
    BAD(MPI_Pack_external(NULL, x, 1, MPI_INT, packed, 4, &position), MPI_ERR_ARG, "datarep is NULL");
    BAD(MPI_Pack_external("external32", x, 2, MPI_INT, packed, 7, &position), MPI_ERR_TRUNCATE, "8 bytes at position 0", "7 bytes");
    BAD(MPI_Pack_external("external32", x, -1, MPI_INT, packed, 7, &position), MPI_ERR_COUNT, "incount is -1");
    BAD(MPI_Pack_external_size("external32", 1, MPI_DATATYPE_NULL, &size), MPI_ERR_TYPE, "datatype");
    BAD(MPI_Pack_external_size("internal", 1, MPI_INT, &size), MPI_ERR_ARG, "internal");
    position = 2;
    BAD(MPI_Unpack_external("external32", packed, 5, &position, x, 1, MPI_INT), MPI_ERR_TRUNCATE, "position 2");
    position = -1;
    BAD(MPI_Unpack_external("external32", packed, 5, &position, x, 1, MPI_INT), MPI_ERR_ARG, "position -1");
    position = 0;
    OK(MPI_Pack_external("external32", NULL, 0, MPI_INT, NULL, 0, &position));
    CHECK(position == 0 && x[0] == 1 && size == -1);
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    basic();
    extended();
    mixed();
    strided();
    invalid();
    OK(MPI_Finalize());
    return 0;
}

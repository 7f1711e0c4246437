/* np: 1 2 3 4 : accumulate, fetch and swap calls with every predefined operator and type, against MPI_Reduce_local */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <complex.h>
#include <stdbool.h>

#include "check.h"

enum { MAX = 7, SPAN = MAX * 32 };

typedef enum kind { INTEGER, REAL, COMPLEX, LOGICAL, BYTES, PAIR, OTHER } kind;

/* Data are at [0, bytes) of an element and, if second, at [second, second + second_bytes): the rest is padding. */
typedef struct kind_row
{
    const char *name;
    MPI_Datatype type;
    kind kind;
    size_t extent, bytes, second, second_bytes;
} kind_row;

typedef struct operator_row
{
    const char *name;
    MPI_Op op;
    unsigned kinds; /* bit of each kind that it takes */
} operator_row;

#define WHOLE(type, kind, c) {#type, type, kind, sizeof(c), sizeof(c), 0, 0}
#define PART(type, kind, c, bytes, second, second_bytes) {#type, type, kind, sizeof(c), bytes, second, second_bytes}
#define BIT(kind) (1u << (kind))

typedef struct short_int { short a; int b; } short_int;
typedef struct long_int { long a; int b; } long_int;
typedef struct float_int { float a; int b; } float_int;
typedef struct double_int { double a; int b; } double_int;
typedef struct long_double_int { long double a; int b; } long_double_int;

static int rank, size;
static unsigned char *mine;
static MPI_Win win;

static size_t types(const kind_row **rows)
{
    static kind_row all[60];
    const kind_row table[] = {
        WHOLE(MPI_SIGNED_CHAR, INTEGER, char), WHOLE(MPI_UNSIGNED_CHAR, INTEGER, char), WHOLE(MPI_SHORT, INTEGER, short),
        WHOLE(MPI_UNSIGNED_SHORT, INTEGER, short), WHOLE(MPI_INT, INTEGER, int), WHOLE(MPI_UNSIGNED, INTEGER, int),
        WHOLE(MPI_LONG, INTEGER, long), WHOLE(MPI_UNSIGNED_LONG, INTEGER, long), WHOLE(MPI_LONG_LONG, INTEGER, long long),
        WHOLE(MPI_UNSIGNED_LONG_LONG, INTEGER, long long), WHOLE(MPI_INT8_T, INTEGER, int8_t), WHOLE(MPI_INT16_T, INTEGER, int16_t),
        WHOLE(MPI_INT32_T, INTEGER, int32_t), WHOLE(MPI_INT64_T, INTEGER, int64_t), WHOLE(MPI_UINT8_T, INTEGER, int8_t),
        WHOLE(MPI_UINT16_T, INTEGER, int16_t), WHOLE(MPI_UINT32_T, INTEGER, int32_t), WHOLE(MPI_UINT64_T, INTEGER, int64_t),
        WHOLE(MPI_AINT, INTEGER, MPI_Aint), WHOLE(MPI_OFFSET, INTEGER, MPI_Offset), WHOLE(MPI_COUNT, INTEGER, MPI_Count),
        WHOLE(MPI_INTEGER, INTEGER, int), WHOLE(MPI_FLOAT, REAL, float), WHOLE(MPI_DOUBLE, REAL, double),
        PART(MPI_LONG_DOUBLE, REAL, long double, 10, 0, 0), WHOLE(MPI_REAL, REAL, float), WHOLE(MPI_DOUBLE_PRECISION, REAL, double),
        WHOLE(MPI_C_FLOAT_COMPLEX, COMPLEX, float complex), WHOLE(MPI_C_DOUBLE_COMPLEX, COMPLEX, double complex),
        PART(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, long double complex, 10, 16, 10), WHOLE(MPI_C_BOOL, LOGICAL, bool),
        WHOLE(MPI_LOGICAL, LOGICAL, int), WHOLE(MPI_BYTE, BYTES, char), WHOLE(MPI_CHAR, OTHER, char), WHOLE(MPI_WCHAR, OTHER, wchar_t),
        PART(MPI_SHORT_INT, PAIR, short_int, 2, 4, 4), PART(MPI_2INT, PAIR, int[2], 4, 4, 4), PART(MPI_LONG_INT, PAIR, long_int, 8, 8, 4),
        PART(MPI_FLOAT_INT, PAIR, float_int, 4, 4, 4), PART(MPI_DOUBLE_INT, PAIR, double_int, 8, 8, 4),
        PART(MPI_LONG_DOUBLE_INT, PAIR, long_double_int, 10, 16, 4),
    };
    memcpy(all, table, sizeof table);
    *rows = all;
    return sizeof table / sizeof *table;
}

static size_t operators(const operator_row **rows)
{
    static operator_row all[20];
    const unsigned numbers = BIT(INTEGER) | BIT(REAL), every = (1u << (OTHER + 1)) - 1;
    const operator_row table[] = {
        {"MAX", MPI_MAX, numbers}, {"MIN", MPI_MIN, numbers}, {"SUM", MPI_SUM, numbers | BIT(COMPLEX)},
        {"PROD", MPI_PROD, numbers | BIT(COMPLEX)}, {"LAND", MPI_LAND, BIT(INTEGER) | BIT(LOGICAL)},
        {"LOR", MPI_LOR, BIT(INTEGER) | BIT(LOGICAL)}, {"LXOR", MPI_LXOR, BIT(INTEGER) | BIT(LOGICAL)},
        {"BAND", MPI_BAND, BIT(INTEGER) | BIT(BYTES)}, {"BOR", MPI_BOR, BIT(INTEGER) | BIT(BYTES)},
        {"BXOR", MPI_BXOR, BIT(INTEGER) | BIT(BYTES)}, {"MINLOC", MPI_MINLOC, BIT(PAIR)}, {"MAXLOC", MPI_MAXLOC, BIT(PAIR)},
        {"REPLACE", MPI_REPLACE, every}, {"NO_OP", MPI_NO_OP, every},
    };
    memcpy(all, table, sizeof table);
    *rows = all;
    return sizeof table / sizeof *table;
}

/* Writes a small number as a value of a C type. */
static void number(const kind_row *t, unsigned char *at, int x)
{
    int32_t second = 3 - x;
    int64_t integer = t->kind == LOGICAL ? x & 1 : x;
    if (t->kind == REAL || t->kind == COMPLEX || (t->kind == PAIR && strstr(t->name, "DOUBLE")) || t->type == MPI_FLOAT_INT) {
        size_t part = t->kind == COMPLEX ? t->extent / 2 : t->bytes;
        for (size_t i = 0; i < (t->kind == COMPLEX ? 2 : 1); i++, x = 1 - x) {
            if (part == sizeof(float))
                *(float *)(at + i * part) = (float)x;
            else if (part == sizeof(double))
                *(double *)(at + i * part) = x;
            else
                *(long double *)(at + i * part) = x;
        }
    } else {
        memcpy(at, &integer, t->bytes); /* little endian */
    }
    if (t->kind == PAIR)
        memcpy(at + t->second, &second, sizeof second);
}

static void fill(const kind_row *t, unsigned char *at, int n, int seed)
{
    memset(at, 0, SPAN);
    for (int i = 0; i < n; i++)
        number(t, at + (size_t)i * t->extent, (i * 5 + seed * 3) % 7 - 2);
}

static void same(const kind_row *t, const char *op, const char *what, const unsigned char *is, const unsigned char *must, int n)
{
    for (int i = 0; i < n; i++) {
        const unsigned char *a = is + (size_t)i * t->extent, *b = must + (size_t)i * t->extent;
        CHECK(!memcmp(a, b, t->bytes) && (!t->second || !memcmp(a + t->second, b + t->second, t->second_bytes)),
              "%s of %s, %s %s, element %d", op, t->name, what, "is wrong", i);
    }
}

/* *target becomes *target op *in, by MPI_Reduce_local where that takes the operator. */
static void apply(const kind_row *t, MPI_Op op, const unsigned char *in, unsigned char *target, int n)
{
    if (op == MPI_REPLACE)
        memcpy(target, in, (size_t)n * t->extent);
    else if (op != MPI_NO_OP)
        OK(MPI_Reduce_local(in, target, n, t->type, op));
}

/* Each rank combines with the next rank's window: once for each call. */
static void combine(const kind_row *t, const operator_row *o)
{
    _Alignas(16) unsigned char out[SPAN], old[SPAN], must[SPAN], was[SPAN], first[SPAN];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int call = o->op == MPI_NO_OP; call < 3; call++) {
        int n = call == 2 ? 1 : MAX;
        fill(t, mine, MAX, rank);
        fill(t, out, MAX, 20 + rank);
        memset(old, 0, sizeof old);
        OK(MPI_Win_sync(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (call == 0)
            OK(MPI_Accumulate(out, n, t->type, next, 0, n, t->type, o->op, win));
        else if (call == 1)
            OK(MPI_Get_accumulate(o->op == MPI_NO_OP ? NULL : out, o->op == MPI_NO_OP ? 0 : n, t->type, old, n, t->type, next, 0, n,
                                  t->type, o->op, win));
        else
            OK(MPI_Fetch_and_op(out, old, t->type, next, 0, o->op, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_sync(win));
        fill(t, was, MAX, next);
        if (call)
            same(t, o->name, "the fetched value", old, was, n);
        fill(t, must, MAX, rank);
        fill(t, first, MAX, 20 + before);
        apply(t, o->op, first, must, n);
        same(t, o->name, call == 0 ? "MPI_Accumulate" : call == 1 ? "MPI_Get_accumulate" : "MPI_Fetch_and_op", mine, must, MAX);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* One swap that happens and one that does not. */
static void swap(const kind_row *t)
{
    _Alignas(16) unsigned char out[SPAN], compare[SPAN], old[SPAN], must[SPAN];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int equal = 0; equal < 2; equal++) {
        memset(mine, 0, SPAN);
        memset(out, 0, sizeof out), memset(compare, 0, sizeof compare), memset(old, 0, sizeof old), memset(must, 0, sizeof must);
        number(t, mine + t->extent, 1), number(t, compare, equal), number(t, out, t->kind == LOGICAL ? 0 : 2 + rank);
        OK(MPI_Win_sync(win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Compare_and_swap(out, compare, old, t->type, next, (MPI_Aint)t->extent, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_sync(win));
        number(t, must, 1);
        same(t, "compare and swap", "the old value", old, must, 1);
        memset(must, 0, sizeof must);
        number(t, must + t->extent, !equal ? 1 : t->kind == LOGICAL ? 0 : 2 + before);
        CHECK(!memcmp(mine, must, 4 * t->extent), "%s, equal %d", t->name, equal);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void all(void)
{
    const kind_row *t;
    const operator_row *o;
    size_t n = types(&t), operators_n = operators(&o);
    OK(MPI_Win_lock_all(0, win));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < operators_n; k++)
            if (o[k].kinds & BIT(t[i].kind))
                combine(&t[i], &o[k]);
    for (size_t i = 0; i < n; i++)
        if (t[i].kind == INTEGER || t[i].kind == LOGICAL || t[i].kind == BYTES)
            swap(&t[i]);
    OK(MPI_Win_unlock_all(win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Win_allocate(SPAN, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    all();
    OK(MPI_Win_free(&win));
    OK(MPI_Alloc_mem(SPAN, MPI_INFO_NULL, &mine));
    OK(MPI_Win_create(mine, SPAN, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    all();
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(mine));
    OK(MPI_Finalize());
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_op: every operator on every predefined type against plain C, element by element, with odd counts and addresses and guards behind the
 * buffers; all kernel levels against each other, bit by bit; the table of permitted pairs (a second copy, by name, from MPI 5.0, 6.9.2);
 * users' operators.
 */
#include <CUnit/Basic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/status.h"
#include "type/kernels.h"
#include "type/op.h"
#include "test/unit/draw.h"

enum { SUM = 0x21, MIN, MAX, PROD, BAND = 0x28, BOR, BXOR, LAND = 0x30, LOR, LXOR, MINLOC = 0x38, MAXLOC, REPLACE = 0x3c, NO_OP };
static const int all_ops[] = {SUM, MIN, MAX, PROD, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, REPLACE, NO_OP};

/* One element of each C type, by the definition; 0 if the standard does not permit the pair. */
#define INTEGER(f, T, U)                                                                                                           \
    static int f(int op, const void *in, void *inout)                                                                              \
    {                                                                                                                              \
        T x, y, z;                                                                                                                 \
        memcpy(&x, in, sizeof(x));                                                                                                 \
        memcpy(&y, inout, sizeof(y));                                                                                              \
        switch (op) {                                                                                                              \
        case SUM: z = (T)((U)x + (U)y); break;                                                                                     \
        case PROD: z = (T)((U)x * (U)y); break;                                                                                    \
        case MIN: z = x < y ? x : y; break;                                                                                        \
        case MAX: z = x < y ? y : x; break;                                                                                        \
        case BAND: z = (T)(x & y); break;                                                                                          \
        case BOR: z = (T)(x | y); break;                                                                                           \
        case BXOR: z = (T)(x ^ y); break;                                                                                          \
        case LAND: z = x && y; break;                                                                                              \
        case LOR: z = x || y; break;                                                                                               \
        case LXOR: z = !x != !y; break;                                                                                            \
        default: return 0;                                                                                                         \
        }                                                                                                                          \
        memcpy(inout, &z, sizeof(z));                                                                                              \
        return 1;                                                                                                                  \
    }
#define LOGICAL(f, T)                                                                                                              \
    static int f(int op, const void *in, void *inout)                                                                              \
    {                                                                                                                              \
        T x, y, z;                                                                                                                 \
        memcpy(&x, in, sizeof(x));                                                                                                 \
        memcpy(&y, inout, sizeof(y));                                                                                              \
        if (op == LAND) z = x && y;                                                                                                \
        else if (op == LOR) z = x || y;                                                                                            \
        else if (op == LXOR) z = !x != !y;                                                                                         \
        else return 0;                                                                                                             \
        memcpy(inout, &z, sizeof(z));                                                                                              \
        return 1;                                                                                                                  \
    }
#define FLOATING(f, T)                                                                                                             \
    static int f(int op, const void *in, void *inout)                                                                              \
    {                                                                                                                              \
        T x, y, z;                                                                                                                 \
        memcpy(&x, in, sizeof(x));                                                                                                 \
        memcpy(&y, inout, sizeof(y));                                                                                              \
        if (op == SUM) z = x + y;                                                                                                  \
        else if (op == PROD) z = x * y;                                                                                            \
        else if (op == MIN) z = x != x ? x : y != y ? y : x < y ? x : y;                                                           \
        else if (op == MAX) z = x != x ? x : y != y ? y : x > y ? x : y;                                                           \
        else return 0;                                                                                                             \
        memcpy(inout, &z, sizeof(z));                                                                                              \
        return 1;                                                                                                                  \
    }
#define COMPLEXES(f, T)                                                                                                            \
    static int f(int op, const void *in, void *inout)                                                                              \
    {                                                                                                                              \
        struct { T r, i; } x, y, z;                                                                                                \
        memcpy(&x, in, sizeof(x));                                                                                                 \
        memcpy(&y, inout, sizeof(y));                                                                                              \
        if (op == SUM) { z.r = x.r + y.r; z.i = x.i + y.i; }                                                                       \
        else if (op == PROD) { z.r = x.r * y.r - x.i * y.i; z.i = x.r * y.i + x.i * y.r; }                                         \
        else return 0;                                                                                                             \
        memcpy(inout, &z, sizeof(z));                                                                                              \
        return 1;                                                                                                                  \
    }
#define PAIRED(f, V, I)                                                                                                            \
    static int f(int op, const void *in, void *inout)                                                                              \
    {                                                                                                                              \
        struct pair { V v; I i; } x, y;                                                                                            \
        bool less, more;                                                                                                           \
        memcpy(&x, in, sizeof(x));                                                                                                 \
        memcpy(&y, inout, sizeof(y));                                                                                              \
        less = x.v < y.v;                                                                                                          \
        more = x.v > y.v;                                                                                                          \
        if (op != MINLOC && op != MAXLOC)                                                                                          \
            return 0;                                                                                                              \
        if (op == MINLOC ? less : more)                                                                                            \
            y = x;                                                                                                                 \
        else if (!less && !more && x.i < y.i)                                                                                      \
            y.i = x.i;                                                                                                             \
        memcpy(inout, &y.v, sizeof(y.v));                                                                                          \
        memcpy((char *)inout + offsetof(struct pair, i), &y.i, sizeof(y.i));                                                       \
        return 1;                                                                                                                  \
    }
INTEGER(s8, int8_t, uint64_t) INTEGER(u8, uint8_t, uint64_t) INTEGER(s16, int16_t, uint64_t) INTEGER(u16, uint16_t, uint64_t)
INTEGER(s32, int32_t, uint64_t) INTEGER(u32, uint32_t, uint64_t) INTEGER(s64, int64_t, uint64_t) INTEGER(u64, uint64_t, uint64_t)
INTEGER(s128, weft_int128, weft_uint128)
LOGICAL(l8, int8_t) LOGICAL(l16, int16_t) LOGICAL(l32, int32_t) LOGICAL(l64, int64_t) LOGICAL(l128, weft_int128)
FLOATING(f16, weft_float16) FLOATING(f32, float) FLOATING(f64, double) FLOATING(fl, long double) FLOATING(f128, weft_float128)
COMPLEXES(c16, weft_float16) COMPLEXES(c32, float) COMPLEXES(c64, double) COMPLEXES(cl, long double) COMPLEXES(c128, weft_float128)
PAIRED(pfi, float, int) PAIRED(pdi, double, int) PAIRED(pli, long, int) PAIRED(pii, int, int) PAIRED(psi, short, int)
PAIRED(pLi, long double, int) PAIRED(pff, float, float) PAIRED(pdd, double, double)
static int bytes1(int op, const void *in, void *inout) { return op >= BAND && op <= BXOR ? u8(op, in, inout) : 0; }
static int text(int op, const void *in, void *inout) { (void)op, (void)in, (void)inout; return 0; }

/* Contents of an element: 'i' any bits, 'b' 0 or 1, else floats of that kind with few NaN; pairs have few values, for ties. */
static const struct { const char *name; int (*one)(int, const void *, void *); char fill; } kinds[] = {
    {"MPI_SHORT", s16, 'i'}, {"MPI_INT", s32, 'i'}, {"MPI_LONG", s64, 'i'}, {"MPI_LONG_LONG", s64, 'i'}, {"MPI_SIGNED_CHAR", s8, 'i'},
    {"MPI_UNSIGNED_CHAR", u8, 'i'}, {"MPI_UNSIGNED_SHORT", u16, 'i'}, {"MPI_UNSIGNED", u32, 'i'}, {"MPI_UNSIGNED_LONG", u64, 'i'},
    {"MPI_UNSIGNED_LONG_LONG", u64, 'i'}, {"MPI_INT8_T", s8, 'i'}, {"MPI_INT16_T", s16, 'i'}, {"MPI_INT32_T", s32, 'i'},
    {"MPI_INT64_T", s64, 'i'}, {"MPI_UINT8_T", u8, 'i'}, {"MPI_UINT16_T", u16, 'i'}, {"MPI_UINT32_T", u32, 'i'}, {"MPI_UINT64_T", u64, 'i'},
    {"MPI_INTEGER", s32, 'i'}, {"MPI_INTEGER1", s8, 'i'}, {"MPI_INTEGER2", s16, 'i'}, {"MPI_INTEGER4", s32, 'i'},
    {"MPI_INTEGER8", s64, 'i'}, {"MPI_INTEGER16", s128, 'i'}, {"MPI_AINT", s64, 'i'}, {"MPI_OFFSET", s64, 'i'}, {"MPI_COUNT", s64, 'i'},
    {"MPI_FLOAT", f32, 'f'}, {"MPI_DOUBLE", f64, 'd'}, {"MPI_REAL", f32, 'f'}, {"MPI_DOUBLE_PRECISION", f64, 'd'},
    {"MPI_LONG_DOUBLE", fl, 'l'}, {"MPI_REAL2", f16, 'h'}, {"MPI_REAL4", f32, 'f'}, {"MPI_REAL8", f64, 'd'}, {"MPI_REAL16", f128, 'q'},
    {"MPI_C_BOOL", l8, 'b'}, {"MPI_CXX_BOOL", l8, 'b'}, {"MPI_LOGICAL", l32, 'b'}, {"MPI_LOGICAL1", l8, 'b'}, {"MPI_LOGICAL2", l16, 'b'},
    {"MPI_LOGICAL4", l32, 'b'}, {"MPI_LOGICAL8", l64, 'b'}, {"MPI_LOGICAL16", l128, 'b'},
    {"MPI_COMPLEX", c32, 'f'}, {"MPI_C_COMPLEX", c32, 'f'}, {"MPI_CXX_FLOAT_COMPLEX", c32, 'f'}, {"MPI_C_DOUBLE_COMPLEX", c64, 'd'},
    {"MPI_CXX_DOUBLE_COMPLEX", c64, 'd'}, {"MPI_DOUBLE_COMPLEX", c64, 'd'}, {"MPI_C_LONG_DOUBLE_COMPLEX", cl, 'l'},
    {"MPI_CXX_LONG_DOUBLE_COMPLEX", cl, 'l'}, {"MPI_COMPLEX4", c16, 'h'}, {"MPI_COMPLEX8", c32, 'f'}, {"MPI_COMPLEX16", c64, 'd'},
    {"MPI_COMPLEX32", c128, 'q'}, {"MPI_BYTE", bytes1, 'i'},
    {"MPI_FLOAT_INT", pfi, 'f'}, {"MPI_DOUBLE_INT", pdi, 'd'}, {"MPI_LONG_INT", pli, 'L'}, {"MPI_2INT", pii, 'I'},
    {"MPI_SHORT_INT", psi, 'S'},
    {"MPI_LONG_DOUBLE_INT", pLi, 'l'}, {"MPI_2REAL", pff, 'f'}, {"MPI_2DOUBLE_PRECISION", pdd, 'd'}, {"MPI_2INTEGER", pii, 'I'},
    {"MPI_CHAR", s8, 'i'}, {"MPI_CHARACTER", s8, 'i'}, {"MPI_WCHAR", text, 'i'}, {"MPI_PACKED", text, 'i'}};

static int kind_of(const weft_type *type)
{
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        if (!strcmp(kinds[k].name, type->name))
            return (int)k;
    return -1;
}

#define FILL_WITH(T, value)                                                                                                        \
    for (uint64_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {                                                                 \
        T v = (value);                                                                                                             \
        memcpy(p + i, &v, sizeof(v));                                                                                              \
    }
/* NaN only where MIN and MAX define it, and never in pairs, which have their own test. */
static void fill(char how, char *p, uint64_t bytes, bool nans)
{
#define SMALL(T) (nans && !draw(9) ? (T)NAN : (T)((int)draw(13) - 6))
    memset(p, 0, bytes);
    switch (how) {
    case 'b': for (uint64_t i = 0; i < bytes; i++) p[i] = 0; break;
    case 'h': FILL_WITH(weft_float16, SMALL(weft_float16)) break;
    case 'f': FILL_WITH(float, SMALL(float)) break;
    case 'd': FILL_WITH(double, SMALL(double)) break;
    case 'l': FILL_WITH(long double, SMALL(long double)) break;
    case 'q': FILL_WITH(weft_float128, SMALL(weft_float128)) break;
    default: for (uint64_t i = 0; i < bytes; i++) p[i] = (char)draw(256);
    }
}

/* Pairs: values 0..2, so that ties are frequent; indices in any order; padding is marked. */
static void fill_pairs(const weft_type *t, char how, char *p, uint64_t count)
{
    bool real_index = !strcmp(t->name, "MPI_2REAL"), double_index = !strcmp(t->name, "MPI_2DOUBLE_PRECISION");
    memset(p, 0x77, count * (uint64_t)t->extent);
    for (uint64_t i = 0; i < count; i++, p += t->extent) {
        int v = (int)draw(3), index = (int)draw(100);
        char *q = p + (how == 'S' || how == 'I' || how == 'f' ? 4 : how == 'l' ? (int)sizeof(long double) : 8);
        float fi = (float)index, fv = (float)v;
        double di = index, dv = v;
        long double lv = v;
        long Lv = v;
        short sv = (short)v;
        memcpy(p, how == 'f' ? (void *)&fv : how == 'd' ? (void *)&dv : how == 'l' ? (void *)&lv : how == 'L' ? (void *)&Lv
               : how == 'S' ? (void *)&sv : (void *)&v,
               how == 'S' ? 2 : how == 'f' || how == 'I' ? 4 : how == 'l' ? sizeof(lv) : 8);
        memcpy(q, real_index ? (void *)&fi : double_index ? (void *)&di : (void *)&index, double_index ? 8 : 4);
    }
}

static void fill_logical(char *p, uint64_t count, uint64_t size)
{
    for (uint64_t i = 0; i < count; i++)
        p[i * size] = (char)draw(2);
}

/* NaNs compare equal whatever their bits; of a long double's 16 bytes x87 writes ten. */
static bool are_equal_floats(const weft_type *t, char fill, const char *a, const char *b, uint64_t bytes)
{
    uint64_t part = t->class_ == WEFT_CLASS_COMPLEX ? sizeof(long double) : (uint64_t)t->size;
    bool same = true;
    for (uint64_t i = 0; i < bytes / part && same; i++) {
        const char *y = a + i * part, *z = b + i * part;
        float f[2];
        double d[2];
        long double l[2];
        weft_float128 q[2];
        weft_float16 h[2];
#define SAME(v) (memcpy(&v[0], y, sizeof(v[0])), memcpy(&v[1], z, sizeof(v[1])), v[0] == v[1] || (v[0] != v[0] && v[1] != v[1]))
        same = fill == 'f' ? SAME(f) : fill == 'd' ? SAME(d) : fill == 'l' ? SAME(l) : fill == 'h' ? SAME(h) : SAME(q);
    }
    return same;
}

#define SENTINEL 64
/* The same bits, but for the padding of x86's long doubles. */
static bool are_equal(const weft_type *t, const char *x, const char *y, size_t bytes)
{
    bool same = true;
    if (!strstr(t->name, "LONG_DOUBLE") || LDBL_MANT_DIG != 64)
        return !memcmp(x, y, bytes);
    for (size_t at = 0; at < bytes; at += sizeof(long double))
        same &= !memcmp(x + at, y + at, 10);
    return same;
}

/* a op b in a third place, in that of a, and in that of b. result: a op b as weft_op_apply has it. */
static void test_combine(const weft_op *op, const weft_type *t, const char *a, const char *b, const char *result, uint64_t count)
{
    size_t bytes = (size_t)(count * (uint64_t)t->size);
    char *places = calloc(1, 3 * bytes + 1), *second = places + bytes, *third = second + bytes;
    CU_ASSERT_FATAL(places != NULL);
    memcpy(second, b, bytes);
    memcpy(third, a, bytes);
    weft_op_combine(op, t, a, b, places, count);
    CU_ASSERT(are_equal(t, places, result, bytes));
    weft_op_combine(op, t, a, second, second, count);
    CU_ASSERT(are_equal(t, second, result, bytes));
    weft_op_combine(op, t, third, b, third, count);
    CU_ASSERT(are_equal(t, third, result, bytes));
    free(places);
}

static void check_pair(const weft_op *op, const weft_type *t, int k, uint64_t count, unsigned shift_in, unsigned shift_out)
{
    uint64_t bytes = count * (uint64_t)t->extent;
    char *in = malloc(bytes + 16), *got = malloc(bytes + 16 + SENTINEL), *want = malloc(bytes + 16 + SENTINEL);
    char *a = in + shift_in, *b = got + shift_out, *c = want + shift_out;
    bool nans = (op->handle == MIN || op->handle == MAX), same = true;
    if (t->class_ == WEFT_CLASS_PAIR) {
        fill_pairs(t, kinds[k].fill, a, count);
        fill_pairs(t, kinds[k].fill, b, count);
    } else {
        fill(kinds[k].fill, a, bytes, nans);
        fill(kinds[k].fill, b, bytes, nans);
    }
    if (kinds[k].fill == 'b') {
        fill_logical(a, count, (uint64_t)t->size);
        fill_logical(b, count, (uint64_t)t->size);
    }
    if (kinds[k].fill == 'i' && op->handle >= LAND)
        for (uint64_t i = 0; i < bytes; i++) /* zeros, for false */
            if (draw(2)) {
                memset(a + i / (uint64_t)t->size * (uint64_t)t->size, 0, (size_t)t->size);
                i += (uint64_t)t->size * 2;
            }
    memset(b + bytes, 0x33, SENTINEL);
    memcpy(c, b, bytes + SENTINEL);
    weft_op_apply(op, t, a, b, count);
    if (op->handle != REPLACE && op->handle != NO_OP && t->is_dense)
        test_combine(op, t, a, c, b, count);
    for (uint64_t i = 0; i < count; i++) {
        char *x = a + i * (uint64_t)t->extent, *y = c + i * (uint64_t)t->extent;
        if (op->handle == REPLACE && t->class_ != WEFT_CLASS_PAIR)
            memcpy(y, x, (size_t)t->extent);
        else if (op->handle != REPLACE && op->handle != NO_OP)
            kinds[k].one(op->handle, x, y);
    }
    if (op->handle == REPLACE && t->class_ == WEFT_CLASS_PAIR) {
        for (uint64_t i = 0; i < count * (uint64_t)t->extent; i++) { /* value and index from in, padding unchanged */
            int64_t at = (int64_t)i % t->extent, second = !strcmp(t->name, "MPI_SHORT_INT") ? 4 : -1;
            bool is_data = second < 0 ? at < t->size : at < 2 || at >= second;
            if (is_data)
                c[i] = a[i];
        }
    }
    same = !memcmp(b, c, bytes + SENTINEL);
    if (!same && (t->class_ == WEFT_CLASS_FLOAT ? nans || kinds[k].fill == 'l' : t->class_ == WEFT_CLASS_COMPLEX && kinds[k].fill == 'l'))
        same = !memcmp(b + bytes, c + bytes, SENTINEL) && are_equal_floats(t, kinds[k].fill, b, c, bytes);
    CU_ASSERT(same);
    if (!same)
        printf("\n  op 0x%x on %s, %llu elements\n", (unsigned)op->handle, t->name, (unsigned long long)count);
    free(in);
    free(got);
    free(want);
}

static void test_every_pair(void)
{
    static const uint64_t counts[] = {0, 1, 2, 3, 7, 13, 31, 67, 129, 1001};
    int fitting = 0, refused = 0;
    for (int h = 0; h < 256; h++) {
        const weft_type *t = weft_type_table[h];
        int k = t ? kind_of(t) : -1;
        if (!t)
            continue;
        CU_ASSERT_FATAL(k >= 0);
        for (size_t o = 0; o < sizeof(all_ops) / sizeof(*all_ops); o++) {
            const weft_op *op = weft_op_of((void *)(uintptr_t)all_ops[o]);
            char zero[64] = {0}, zero2[64] = {0};
            bool expected = op->handle == REPLACE || op->handle == NO_OP || kinds[k].one(op->handle, zero, zero2);
            int rc = weft_op_fits(op, t);
            if (t->is_absent) {
                CU_ASSERT(rc == WEFT_E_TYPE);
                continue;
            }
            CU_ASSERT(rc == (expected ? 0 : WEFT_E_OP));
            if ((rc == 0) != expected)
                printf("\n  %s with op 0x%x: %d\n", t->name, (unsigned)op->handle, rc);
            refused += rc != 0;
            if (rc) {
                CU_ASSERT(strstr(weft_fail_text(rc), t->name) && strstr(weft_fail_text(rc), "MPI_"));
                continue;
            }
            fitting++;
            for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++)
                check_pair(op, t, k, counts[c], (unsigned)draw(16), (unsigned)draw(16));
        }
    }
    printf("%d pairs fit, %d do not ", fitting, refused);
}

/* For instance a sum of long doubles: no slot reached by elem_of may be empty. */
static void test_levels_agree(void)
{
    char a[1040], b[3][1040];
    for (int slot = 0; slot < WEFT_OP_KINDS; slot++)
        for (int unit = 0; unit < WEFT_ELEMS; unit++) {
            if (!weft_kernels0.kernel[slot][unit])
                continue;
            CU_ASSERT_FATAL(weft_kernels1.kernel[slot][unit] && weft_kernels2.kernel[slot][unit]);
            for (int turn = 0; turn < 8; turn++) {
                for (size_t i = 0; i < sizeof(a); i++) {
                    a[i] = (char)draw(256); /* any bits, so NaN of all kinds among the floats */
                    b[0][i] = b[1][i] = b[2][i] = (char)draw(256);
                }
                for (int level = 0; level <= weft_arith_level(); level++) {
                    weft_kernel_find(slot, unit, level)(a + turn, b[level] + 2 * turn, b[level] + 2 * turn, 61);
                    if (slot == WEFT_OP_SUM || slot == WEFT_OP_PROD) /* which NaN results may differ */
                        for (int i = 0; unit == WEFT_ELEM_F32 && i < 61; i++) {
                            float f;
                            memcpy(&f, b[level] + 2 * turn + 4 * i, 4);
                            if (f != f)
                                memset(b[level] + 2 * turn + 4 * i, 0x7f, 4);
                        }
                    for (int i = 0; (slot == WEFT_OP_PROD && (unit == WEFT_ELEM_C32 || unit == WEFT_ELEM_C64)) && i < 122; i++) {
                        float f;
                        double d;
                        memcpy(&f, b[level] + 2 * turn + 4 * i, 4);
                        memcpy(&d, b[level] + 2 * turn + 8 * i, 8);
                        if (unit == WEFT_ELEM_C32 && f != f)
                            memset(b[level] + 2 * turn + 4 * i, 0x7f, 4);
                        if (unit == WEFT_ELEM_C64 && d != d)
                            memset(b[level] + 2 * turn + 8 * i, 0x7f, 8);
                    }
                    CU_ASSERT(!memcmp(b[level], b[0], sizeof(a)));
                    if (memcmp(b[level], b[0], sizeof(a)))
                        printf("\n  slot %d unit %d level %d\n", slot, unit, level);
                }
            }
        }
    printf("levels 0 to %d ", weft_arith_level());
}

/* MINLOC and MAXLOC are symmetric, NaN included. */
static void test_loc_nan(void)
{
    struct { double v; int i; } x[3] = {{1, 5}, {NAN, 7}, {NAN, 3}}, a, b;
    const weft_type *t = weft_type_of((void *)0x229);
    for (int op = MINLOC; op <= MAXLOC; op++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                a = x[i];
                b = x[j];
                weft_op_apply(weft_op_of((void *)(uintptr_t)op), t, &x[i], &b, 1);
                weft_op_apply(weft_op_of((void *)(uintptr_t)op), t, &x[j], &a, 1);
                CU_ASSERT(a.i == b.i && (a.v == b.v || (a.v != a.v && b.v != b.v)));
                CU_ASSERT(i + j == 0 ? b.i == 5 : b.i == (i == 2 || j == 2 ? 3 : 7));
            }
}

static weft_type *seen_type;
static int64_t seen_calls, seen_length;
static void user_small(void *in, void *inout, int *length, weft_type **type)
{
    const int *a = in;
    int *b = inout;
    seen_type = *type;
    seen_calls++;
    seen_length += *length;
    for (int i = 0; *type && i < *length && *length < 1000; i++)
        b[i] = a[i] - b[i]; /* order matters */
}
static void user_large(void *in, void *inout, int64_t *length, weft_type **type)
{
    (void)in, (void)inout;
    seen_type = *type;
    seen_calls++;
    seen_length += *length;
}
static void user_derived(void *in, void *inout, int *length, weft_type **type)
{
    (void)in;
    seen_type = *type;
    CU_ASSERT(weft_type_of(*type) == *type); /* a valid handle */
    CU_ASSERT((*type)->extent == 8 && *length == 2);
    memset(inout, 1, 8);
}

static void test_user_operators(void)
{
    weft_op *op;
    weft_type *pair;
    int a[3] = {10, 20, 30}, b[3] = {1, 2, 3}, first;
    CU_ASSERT_EQUAL_FATAL(weft_op_make((void *)user_small, false, false, &op), 0);
    CU_ASSERT(weft_op_of(op) == op && weft_op_fits(op, weft_type_of((void *)0x243)) == 0);
    weft_op_apply(op, weft_type_of((void *)0x209), a, b, 3);
    CU_ASSERT(b[0] == 9 && b[1] == 18 && b[2] == 27);
    CU_ASSERT((uintptr_t)seen_type == 0x209);
    seen_calls = seen_length = 0; /* an int cannot hold 5e9: several calls, each within an int */
    weft_op_apply(op, weft_type_of((void *)0x247), a, b, UINT64_C(5000000000));
    CU_ASSERT(seen_calls > 2 && seen_length == INT64_C(5000000000));
    weft_op_hold(op);
    weft_op_retire(op);
    CU_ASSERT(!weft_op_of(op));
    seen_calls = 0; /* an operation in flight continues */
    weft_op_apply(op, weft_type_of((void *)0x209), a, b, 1);
    CU_ASSERT(seen_calls == 1);
    weft_op_drop(op);
    CU_ASSERT(!weft_op_of(op));

    CU_ASSERT_EQUAL_FATAL(weft_op_make((void *)user_large, true, true, &op), 0);
    seen_calls = seen_length = 0;
    weft_op_apply(op, weft_type_of((void *)0x247), a, b, UINT64_C(5000000000));
    CU_ASSERT(seen_calls == 1 && seen_length == INT64_C(5000000000));
    weft_op_retire(op);

    CU_ASSERT_EQUAL_FATAL(weft_op_make((void *)user_derived, true, false, &op), 0);
    CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(2, weft_type_of((void *)0x209), &pair), 0);
    CU_ASSERT(weft_op_fits(op, pair) == 0 && weft_op_fits(weft_op_of((void *)SUM), pair) == WEFT_E_OP);
    weft_op_apply(op, pair, a, b, 2);
    CU_ASSERT(seen_type == pair);
    memcpy(&first, b, sizeof(first));
    CU_ASSERT(first == 0x01010101);
    weft_type_hold(pair); /* freed by the user while a reduction holds it: the function still gets a valid handle */
    weft_type_retire(pair);
    seen_type = NULL;
    weft_op_apply(op, pair, a, b, 2);
    CU_ASSERT(seen_type && seen_type != pair);
    weft_type_drop(pair);
    weft_op_retire(op);
}

static void test_handles(void)
{
    CU_ASSERT(!weft_op_of((void *)0x20) && !weft_op_of((void *)0x25) && !weft_op_of(NULL) && !weft_op_of((void *)0x40));
    for (size_t o = 0; o < sizeof(all_ops) / sizeof(*all_ops); o++) {
        const weft_op *op = weft_op_of((void *)(uintptr_t)all_ops[o]);
        CU_ASSERT(op && op->handle == all_ops[o]);
        weft_op_drop(op); /* no effect */
        CU_ASSERT(op->object.refs == 1 && op->is_commutative == (all_ops[o] < REPLACE));
    }
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() || !(suite = CU_add_suite("op", NULL, NULL)))
        return 2;
    CU_add_test(suite, "handles", test_handles);
    CU_add_test(suite, "every operator on every type", test_every_pair);
    CU_add_test(suite, "all kernel levels give equal bits", test_levels_agree);
    CU_add_test(suite, "NaN in MINLOC and MAXLOC", test_loc_nan);
    CU_add_test(suite, "users' operators", test_user_operators);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_type: the table of predefined types, bounds by the standard's examples, collapsed layouts, lifetime of handles, envelopes,
 * signatures, types shared by threads, rejection of sizes beyond 63 bits.
 */
#include <CUnit/Basic.h>
#include <complex.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/status.h"
#include "type/layout.h"
#include "type/pack.h"
#include "type/signature.h"
#include "type/type.h"

__attribute__((noinline)) static const weft_type *predefined(int handle) { return weft_type_of((void *)(uintptr_t)handle); }

static void test_table(void)
{
    static const struct { int handle; const char *name; size_t size, extent; } some[] = {
        {0x201, "MPI_AINT", sizeof(void *), sizeof(void *)}, {0x202, "MPI_COUNT", 8, 8}, {0x203, "MPI_OFFSET", 8, 8},
        {0x207, "MPI_PACKED", 1, 1}, {0x209, "MPI_INT", sizeof(int), sizeof(int)}, {0x20a, "MPI_LONG", sizeof(long), sizeof(long)},
        {0x210, "MPI_FLOAT", 4, 4}, {0x214, "MPI_DOUBLE", 8, 8}, {0x216, "MPI_C_DOUBLE_COMPLEX", 16, 16},
        {0x218, "MPI_LOGICAL", 4, 4}, {0x219, "MPI_INTEGER", 4, 4}, {0x21e, "MPI_CHARACTER", 1, 1},
        {0x220, "MPI_LONG_DOUBLE", sizeof(long double), sizeof(long double)}, {0x238, "MPI_C_BOOL", sizeof(_Bool), sizeof(_Bool)},
        {0x23c, "MPI_WCHAR", sizeof(wchar_t), sizeof(wchar_t)}, {0x243, "MPI_CHAR", 1, 1}, {0x247, "MPI_BYTE", 1, 1},
        {0x228, "MPI_FLOAT_INT", 8, 8}, {0x229, "MPI_DOUBLE_INT", 12, sizeof(struct { double v; int i; })},
        {0x22a, "MPI_LONG_INT", sizeof(long) + 4, sizeof(struct { long v; int i; })}, {0x22b, "MPI_2INT", 8, 8},
        {0x22c, "MPI_SHORT_INT", 6, 8}, {0x22d, "MPI_LONG_DOUBLE_INT", sizeof(long double) + 4, sizeof(struct { long double v; int i; })},
        {0x230, "MPI_2REAL", 8, 8}, {0x231, "MPI_2DOUBLE_PRECISION", 16, 16}, {0x232, "MPI_2INTEGER", 8, 8}};
    int count = 0;
    for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
        const weft_type *t = predefined(some[i].handle);
        CU_ASSERT_FATAL(t != NULL);
        CU_ASSERT(!strcmp(t->name, some[i].name));
        CU_ASSERT((size_t)t->size == some[i].size && (size_t)t->extent == some[i].extent && !t->lb);
        CU_ASSERT(t->is_dense == (some[i].size == some[i].extent));
    }
    for (int h = 0; h < 256; h++) {
        const weft_type *t = weft_type_table[h];
        if (!t)
            continue;
        count++;
        CU_ASSERT(t->handle == 0x200 + h && t->object.magic == WEFT_TYPE_MAGIC && t->is_committed && t->is_predefined &&
                  t->elements == (t->class_ == WEFT_CLASS_PAIR ? 2 : 1));
        CU_ASSERT((t->layout == NULL) == t->is_dense && t->basic_handle == t->handle);
        if ((h >= 0x40 && h < 0x80) || h >= 0xc0) /* the ABI: the handle has their size */
            CU_ASSERT(t->is_absent || t->size == 1 << (t->handle >> 3 & 7));
        weft_type_hold(t);
        weft_type_drop(t);
        weft_type_drop(t);
        CU_ASSERT(t->object.refs == 1);
    }
    CU_ASSERT(count == 70);
    CU_ASSERT(!predefined(0x200) && !predefined(0) && !predefined(0x211) && !predefined(0x2ff) && !predefined(0x309) && !predefined(0x109));
}

/* MPI 5.0, 5.1, examples: {(double,0),(char,8)} has extent 16; and types derived from it. */
static void test_standard_examples(void)
{
    const weft_type *parts[2] = {predefined(0x214), predefined(0x243)};
    int64_t ones[2] = {1, 1}, at[2] = {0, 8}, lengths[2] = {3, 1}, disps[2] = {4, 0};
    weft_type *s, *c, *v, *h, *x;
    CU_ASSERT_EQUAL_FATAL(weft_type_struct(2, ones, at, parts, &s), 0);
    CU_ASSERT(s->size == 9 && s->lb == 0 && s->extent == 16 && s->true_extent == 9 && s->elements == 2 && s->basic_handle == 0);
    CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(3, s, &c), 0);
    CU_ASSERT(c->size == 27 && c->extent == 48 && c->true_extent == 41);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(2, 3, 4 * 16, s, &v), 0); /* (2, 3, 4): the last one ends at 64 + 41 */
    CU_ASSERT(v->size == 54 && v->extent == 112 && v->true_extent == 105);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(3, 1, -2 * 16, s, &h), 0);
    CU_ASSERT(h->lb == -64 && h->true_lb == -64 && h->extent == 80);
    disps[0] *= 16;
    CU_ASSERT_EQUAL_FATAL(weft_type_hindexed(2, lengths, disps, s, &x), 0); /* B = (3, 1), D = (4, 0) */
    CU_ASSERT(x->size == 36 && x->lb == 0 && x->extent == 112);
    weft_type_drop(s);
    weft_type_drop(c);
    weft_type_drop(v);
    weft_type_drop(h);
    weft_type_drop(x);
}

/* Explicit bounds of resized override the data's, also in derived types; padding is not added to them. */
static void test_resized(void)
{
    const weft_type *i = predefined(0x209);
    const weft_type *both[2];
    int64_t ones[2] = {1, 1}, at[2] = {0, 100};
    weft_type *r, *t;
    CU_ASSERT_EQUAL_FATAL(weft_type_resized(i, -3, 9, &r), 0);
    CU_ASSERT(r->lb == -3 && r->extent == 9 && r->true_lb == 0 && r->true_extent == 4 && !r->is_dense && r->size == 4);
    both[0] = r;
    both[1] = i;
    CU_ASSERT_EQUAL_FATAL(weft_type_struct(2, ones, at, both, &t), 0);
    CU_ASSERT(t->lb == -3 && t->extent == 9 && t->true_lb == 0 && t->true_extent == 104);
    weft_type_drop(t);
    CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(4, r, &t), 0);
    CU_ASSERT(t->lb == -3 && t->extent == 36 && t->true_extent == 31);
    weft_type_drop(t);
    CU_ASSERT_EQUAL_FATAL(weft_type_resized(i, 0, 4, &t), 0);
    CU_ASSERT(t->is_dense);
    weft_type_drop(t);
    weft_type_drop(r);
    CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(0, i, &t), 0);
    CU_ASSERT(t->size == 0 && t->lb == 0 && t->extent == 0 && t->true_extent == 0);
    weft_type_drop(t);
}

/* Types that must become one dense run or one strided run, and types that cannot. */
static void test_collapse(void)
{
    const weft_type *d = predefined(0x214);
    int64_t lengths[3] = {2, 2, 2}, dense[3] = {0, 16, 32}, even[3] = {0, 64, 128}, odd[3] = {0, 64, 100};
    weft_type *t, *u;
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(10, 3, 24, d, &t), 0);
    CU_ASSERT(t->is_dense && !t->layout && t->basic_handle == 0x214 && t->class_ == WEFT_CLASS_FLOAT && t->elements == 30);
    weft_type_drop(t);
    CU_ASSERT_EQUAL_FATAL(weft_type_hindexed(3, lengths, dense, d, &t), 0);
    CU_ASSERT(t->is_dense);
    weft_type_drop(t);
    CU_ASSERT_EQUAL_FATAL(weft_type_hindexed(3, lengths, even, d, &t), 0);
    CU_ASSERT(t->layout->kind == WEFT_LAYOUT_RUN && t->layout->count == 3 && t->layout->stride == 64 && t->layout->bytes == 16);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(5, 1, 192, t, &u), 0); /* continues at the same distance */
    CU_ASSERT(u->layout->kind == WEFT_LAYOUT_RUN && u->layout->count == 15 && u->layout->stride == 64);
    weft_type_drop(u);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(5, 1, 200, t, &u), 0);
    CU_ASSERT(u->layout->kind == WEFT_LAYOUT_LOOP && u->layout->child->kind == WEFT_LAYOUT_RUN);
    weft_type_drop(u);
    weft_type_drop(t);
    CU_ASSERT_EQUAL_FATAL(weft_type_hindexed(3, lengths, odd, d, &t), 0);
    CU_ASSERT(t->layout->kind == WEFT_LAYOUT_TABLE && t->layout->count == 3);
    weft_type_drop(t);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(3, 1, -8, d, &t), 0);
    CU_ASSERT(!t->is_dense && t->lb == -16 && t->extent == 24); /* no holes, but not in order */
    weft_type_drop(t);
}

/* A handle is invalid once the user frees it; the type lives while it is referenced. */
static void test_life(void)
{
    weft_type *a, *b, *stale;
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(4, 1, 16, predefined(0x214), &a), 0);
    CU_ASSERT(weft_type_of(a) == a && !a->is_committed);
    CU_ASSERT(weft_type_commit(a) == 0 && weft_type_commit(a) == 0 && a->is_committed);
    CU_ASSERT(weft_type_commit((weft_type *)predefined(0x214)) == 0);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(2, 1, 100, a, &b), 0);
    CU_ASSERT(a->object.refs == 2 && !b->is_committed);
    weft_type_retire(a);
    CU_ASSERT(!weft_type_of(a) && a->object.refs == 1 && a->size == 32); /* b still uses it */
    CU_ASSERT(b->layout->child->size == 32);
    stale = b;
    weft_type_hold(b); /* a request */
    weft_type_retire(b);
    CU_ASSERT(!weft_type_of(stale) && stale->size == 64);
    weft_type_drop(b);
    for (int i = 0; i < 60; i++) { /* its memory is reused later, and never freed */
        CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(1, predefined(0x209), &a), 0);
        CU_ASSERT(a != stale && !weft_type_of(stale));
        weft_type_retire(a);
    }
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(4, 1, 16, predefined(0x214), &a), 0);
    CU_ASSERT_EQUAL_FATAL(weft_type_dup(a, &b), 0);
    CU_ASSERT(!b->is_committed);
    weft_type_drop(b);
    weft_type_commit(a);
    CU_ASSERT_EQUAL_FATAL(weft_type_dup(a, &b), 0);
    CU_ASSERT(b->is_committed && b != a && b->size == a->size && b->extent == a->extent && b->layout->stride == 16);
    weft_type_drop(a);
    weft_type_drop(b);
}

static void test_envelope(void)
{
    int64_t lengths[2] = {1, 2}, disps[2] = {0, 16}, *again = malloc(3 * sizeof *again);
    const weft_type *types[2] = {predefined(0x209), predefined(0x214)};
    const weft_envelope *e;
    weft_type *t, *u;
    CU_ASSERT_EQUAL_FATAL(weft_type_struct(2, lengths, disps, types, &t), 0);
    e = t->envelope;
    CU_ASSERT(e->combiner == WEFT_COMBINER_STRUCT && e->number_count == 3 && e->address_count == 2 && e->type_count == 2);
    CU_ASSERT(e->values[0] == 2 && e->values[1] == 1 && e->values[2] == 2 && e->values[4] == 16 && e->types[1] == types[1]);
    again[0] = 7;
    again[1] = 8;
    again[2] = 9;
    weft_type_set_envelope(t, WEFT_COMBINER_VECTOR, 3, 0, 0, again);
    CU_ASSERT(e->combiner == WEFT_COMBINER_VECTOR && e->values[2] == 9 && e->address_count == 0 && e->type_count == 2);
    weft_type_drop(t);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(2, 3, -40, types[0], &t), 0);
    e = t->envelope;
    CU_ASSERT(e->combiner == WEFT_COMBINER_HVECTOR && e->values[0] == 2 && e->values[1] == 3 && e->values[2] == -40);
    CU_ASSERT_EQUAL_FATAL(weft_type_clone(t, &u), 0);
    CU_ASSERT(u != t && u->envelope == e && u->layout == t->layout && t->object.refs == 2);
    weft_type_retire(t);
    CU_ASSERT(!weft_type_of(t) && weft_type_of(u) == u && u->size == 24 && e->combiner == WEFT_COMBINER_HVECTOR);
    weft_type_retire(u);
}

/* Basic elements in the first bytes of a message, and back, over nested mixed types and pairs. */
static void test_signature(void)
{
    const weft_type *parts[3] = {predefined(0x209), predefined(0x229), predefined(0x243)};
    int64_t lengths[3] = {2, 1, 3}, disps[3] = {0, 16, 40}, bytes = 0, external;
    weft_type *s, *v;
    CU_ASSERT_EQUAL_FATAL(weft_type_struct(3, lengths, disps, parts, &s), 0); /* int int (double int) char char char: 23 bytes */
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(3, 2, 200, s, &v), 0);
    CU_ASSERT(s->size == 23 && s->elements == 7 && v->elements == 42);
    for (int64_t n = 0; n < 100; n++) {
        static const int sizes[7] = {4, 4, 8, 4, 1, 1, 1};
        CU_ASSERT(weft_type_elements_in(v, (uint64_t)bytes) == n && weft_type_bytes_of(v, n) == bytes);
        for (int within = 1; within < sizes[n % 7]; within++)
            CU_ASSERT(weft_type_elements_in(v, (uint64_t)(bytes + within)) == -1);
        bytes += sizes[n % 7];
    }
    CU_ASSERT(weft_external_size(v, &external) == 0 && external == 6 * 23);
    CU_ASSERT(weft_external_size(predefined(0x20a), &external) == 0 && external == 4);
    CU_ASSERT(weft_external_size(predefined(0x22a), &external) == 0 && external == 8);
    CU_ASSERT(weft_external_size(predefined(0x224), &external) == 0 && external == 32);
    CU_ASSERT(weft_type_elements_in(predefined(0x229), 8) == 1 && weft_type_elements_in(predefined(0x229), 10) == -1);
    weft_type_drop(v);
    weft_type_drop(s);
    CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(0, predefined(0x209), &s), 0);
    CU_ASSERT(weft_type_elements_in(s, 0) == 0 && weft_type_elements_in(s, 4) == -1);
    CU_ASSERT(weft_type_bytes_of(s, 0) == 0 && weft_type_bytes_of(s, 1) == -1);
    weft_type_drop(s);
}

/* Lists of many blocks of one length (their own loops in pack.c), each length up to 70 bytes: any part of two elements, both ways. */
static void test_equal_blocks(void)
{
    enum { N = 100 };
    static unsigned char memory[2 * N * 100], back[2 * N * 100], all[2 * N * 70], part[2 * N * 70];
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (unsigned char)(i * 7 + i / 251);
    for (int64_t length = 1; length <= 70; length++) {
        int64_t lengths[N], disps[N], total = 2 * N * length;
        weft_type *t;
        for (int i = 0; i < N; i++) {
            lengths[i] = length;
            disps[i] = (i * 37 % N) * 99 + i % 3; /* no order, no even distances */
        }
        CU_ASSERT_EQUAL_FATAL(weft_type_hindexed(N, lengths, disps, predefined(0x247), &t), 0);
        CU_ASSERT_FATAL(t->layout->kind == WEFT_LAYOUT_PLACES && t->layout->bytes == (uint64_t)length);
        for (int64_t i = 0; i < 2 * N; i++)
            memcpy(all + i * length, memory + i / N * t->extent + disps[i % N], (size_t)length);
        for (int k = 0; k < 40; k++) {
            seed = seed * 1103515245u + 12345u;
            uint64_t from = k ? (seed >> 8) % (uint64_t)(total + 1) : 0;
            uint64_t bytes = k ? (seed >> 4) % ((uint64_t)total - from + 1) : (uint64_t)total;
            memset(part, 0, sizeof part);
            weft_pack(t, memory, 2, from, bytes, part);
            CU_ASSERT(!memcmp(part, all + from, bytes) && (from + bytes == (uint64_t)total || !part[bytes]));
            memset(back, 0, sizeof back);
            weft_unpack(t, back, 2, from, bytes, part);
            memset(part, 0, sizeof part);
            weft_pack(t, back, 2, 0, (uint64_t)total, part);
            for (uint64_t i = 0; i < (uint64_t)total; i++)
                if (part[i] != (i >= from && i < from + bytes ? all[i] : 0)) {
                    CU_FAIL("unpacked");
                    break;
                }
        }
        weft_type_drop(t);
    }
}

/* Blocks whole pages apart, up and down, which are unpacked by a loop of their own. */
static void test_columns(void)
{
    enum { N = 20 };
    static unsigned char memory[(N + 1) * 8192], packed[N * 20];
    for (int64_t length = 1; length <= 20; length++) {
        for (int64_t stride = -8192; stride <= 8192; stride += 4096) {
            unsigned char *first = memory + (stride < 0 ? -stride * (N - 1) : 0);
            int wrong = 0;
            weft_type *t;
            if (!stride)
                continue;
            CU_ASSERT_EQUAL_FATAL(weft_type_vector(N, length, stride, predefined(0x247), &t), 0);
            for (size_t i = 0; i < sizeof packed; i++)
                packed[i] = (unsigned char)(i * 5 + (size_t)length);
            memset(memory, 0, sizeof memory);
            weft_unpack(t, first, 1, 0, (uint64_t)t->size, packed);
            for (int64_t i = 0; i < N * length; i++)
                wrong += first[i / length * stride + i % length] != packed[i];
            for (int64_t i = 0; i < N; i++)
                wrong += first[i * stride + length] != 0;
            CU_ASSERT_EQUAL(wrong, 0);
            weft_type_drop(t);
        }
    }
}

/* Threads that make, commit, use, clone and free types over common old ones, and search the common predefined ones of Fortran. */
static void *type_user(void *argument)
{
    const weft_type *old = argument, *real, *again;
    for (int i = 0; i < 2000; i++) {
        const weft_type *both[2] = {old, predefined(0x209)};
        int64_t lengths[2] = {2, 1}, disps[2] = {0, 1000}, ints[64];
        char packed[512];
        weft_type *a, *b, *c;
        if (weft_type_struct(2, lengths, disps, both, &a) || weft_type_contiguous(1 + i % 3, a, &b) || weft_type_clone(b, &c))
            return argument;
        weft_type_commit(b);
        weft_type_commit((weft_type *)old);
        weft_type_hold(b);
        weft_type_retire(a);
        memset(ints, i, sizeof ints);
        weft_pack(old, ints, 2, 0, (uint64_t)old->size * 2, packed);
        weft_type_retire(b);
        weft_type_drop(b);
        weft_type_retire(c);
        if (weft_type_f90(WEFT_COMBINER_F90_REAL, i % 20, 30 + i % 5, &real) ||
            weft_type_f90(WEFT_COMBINER_F90_REAL, i % 20, 30 + i % 5, &again) || real != again)
            return argument;
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[4];
    weft_type *old;
    void *failed;
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(4, 1, 16, predefined(0x214), &old), 0);
    for (int i = 0; i < 4; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, type_user, old) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        CU_ASSERT(!failed);
    }
    CU_ASSERT(old->object.refs == 1);
    weft_type_drop(old);
}

static void test_too_large(void)
{
    const weft_type *d = predefined(0x214);
    int64_t lengths[2] = {INT64_C(1) << 59, INT64_C(1) << 59}, far[2] = {INT64_MAX - 4, 0};
    weft_type *t = NULL, *big;
    CU_ASSERT(weft_type_contiguous(INT64_C(1) << 60, d, &t) == WEFT_E_TOOLARGE);
    CU_ASSERT(weft_type_vector(INT64_C(1) << 40, INT64_C(1) << 30, 8, d, &t) == WEFT_E_TOOLARGE);
    CU_ASSERT(weft_type_vector(3, 1, INT64_MAX / 2 + 1, d, &t) == WEFT_E_TOOLARGE);
    CU_ASSERT(weft_type_hindexed(1, (int64_t[]){1}, far, d, &t) == WEFT_E_TOOLARGE);
    CU_ASSERT(weft_type_hindexed(2, lengths, (int64_t[]){0, 0}, d, &t) == WEFT_E_TOOLARGE);
    CU_ASSERT(weft_type_resized(d, INT64_MAX, 1, &t) == WEFT_E_TOOLARGE);
    /* each end fits, the range between does not */
    CU_ASSERT(weft_type_hindexed(2, (int64_t[]){1, 1}, (int64_t[]){-(INT64_C(1) << 62) - 8, INT64_C(1) << 62}, d, &t) == WEFT_E_TOOLARGE);
    CU_ASSERT(t == NULL);
    CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(INT64_C(1) << 59, d, &big), 0); /* 2^62 bytes fit */
    CU_ASSERT(big->size == INT64_C(1) << 62 && big->count_max == 1);
    weft_type_drop(big);
    CU_ASSERT_EQUAL_FATAL(weft_type_hindexed(2, (int64_t[]){1, 1}, (int64_t[]){-(INT64_C(1) << 61), INT64_C(1) << 61}, d, &big), 0);
    CU_ASSERT(big->true_extent == (INT64_C(1) << 62) + 8 && big->count_max == 0); /* one element is too long already */
    weft_type_drop(big);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(3, 1, -1000, d, &big), 0);
    CU_ASSERT(big->count_max == (UINT64_C(1) << 62) / 2008);
    weft_type_drop(big);
    CU_ASSERT_EQUAL_FATAL(weft_type_contiguous(0, d, &big), 0);
    CU_ASSERT(big->count_max == INT64_MAX);
    weft_type_drop(big);
    CU_ASSERT(d->count_max == UINT64_C(1) << 59);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() || !(suite = CU_add_suite("type", NULL, NULL)))
        return 2;
    CU_add_test(suite, "predefined types", test_table);
    CU_add_test(suite, "the standard's examples", test_standard_examples);
    CU_add_test(suite, "resized bounds", test_resized);
    CU_add_test(suite, "layouts collapse", test_collapse);
    CU_add_test(suite, "lifetime", test_life);
    CU_add_test(suite, "envelopes", test_envelope);
    CU_add_test(suite, "signatures", test_signature);
    CU_add_test(suite, "lists of equal blocks", test_equal_blocks);
    CU_add_test(suite, "columns", test_columns);
    CU_add_test(suite, "threads", test_threads);
    CU_add_test(suite, "too large", test_too_large);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

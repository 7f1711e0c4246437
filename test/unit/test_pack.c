/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pack: the pack engine against a walker independent of layouts: it keeps each type's whole type map and takes bounds from the
 * definitions of MPI 5.0, 5.1. Types are random and nested; a failing seed is printed and may be given as the first argument. Buffers have
 * exactly the bytes of the map, so that AddressSanitizer sees any other access.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/raw_thread.h"
#include "type/layout.h"
#include "type/pack.h"
#include "type/runs.h"
#include "type/type.h"
#include "type/wire.h"
#include "test/unit/draw.h"

#define MAX 600 /* entries in a map */

typedef struct entry { int64_t disp, bytes, align; } entry;
typedef struct map { /* a type and its expected properties */
    weft_type *type;
    entry entries[MAX];
    int count;
    bool is_marked;
    int64_t lb, ub; /* explicit bounds, if set */
} map;

static uint64_t seed_now, failures_seen;
static int64_t between(int64_t low, int64_t high) { return low + (int64_t)draw((uint64_t)(high - low + 1)); }

static int64_t map_size(const map *m)
{
    int64_t n = 0;
    for (int i = 0; i < m->count; i++)
        n += m->entries[i].bytes;
    return n;
}

static void map_data(const map *m, int64_t *low, int64_t *high, int64_t *align)
{
    *low = *high = 0;
    *align = 1;
    for (int i = 0; i < m->count; i++) {
        const entry *e = &m->entries[i];
        if (!i || e->disp < *low)
            *low = e->disp;
        if (!i || e->disp + e->bytes > *high)
            *high = e->disp + e->bytes;
        if (e->align > *align)
            *align = e->align;
    }
}

static void map_bounds(const map *m, int64_t *lb, int64_t *extent)
{
    int64_t high, align;
    map_data(m, lb, &high, &align);
    *extent = high - *lb;
    while (*extent % align)
        ++*extent;
    if (m->is_marked) {
        *lb = m->lb;
        *extent = m->ub - m->lb;
    }
}

/* Appends a copy of `old` at `disp`. False: too many entries. */
static bool map_put(map *m, const map *old, int64_t disp)
{
    if (m->count + old->count > MAX)
        return false;
    for (int i = 0; i < old->count; i++) {
        m->entries[m->count] = old->entries[i];
        m->entries[m->count++].disp += disp;
    }
    if (old->is_marked) {
        if (!m->is_marked || disp + old->lb < m->lb)
            m->lb = disp + old->lb;
        if (!m->is_marked || disp + old->ub > m->ub)
            m->ub = disp + old->ub;
        m->is_marked = true;
    }
    return true;
}

static bool map_block(map *m, const map *old, int64_t disp, int64_t length)
{
    int64_t lb, extent;
    map_bounds(old, &lb, &extent);
    for (int64_t j = 0; j < length; j++)
        if (!map_put(m, old, disp + j * extent))
            return false;
    return true;
}

static void basic_make(map *m)
{
    static const struct { int handle, n; entry e[2]; int64_t extent; } basics[] = {
        {0x247, 1, {{0, 1, 1}}, 1},  {0x208, 1, {{0, 2, 2}}, 2},   {0x209, 1, {{0, 4, 4}}, 4},
        {0x214, 1, {{0, 8, 8}}, 8},  {0x216, 1, {{0, 16, 8}}, 16}, {0x220, 1, {{0, 16, 16}}, 16},
        {0x229, 2, {{0, 8, 8}, {8, 4, 4}}, 16}, {0x22c, 2, {{0, 2, 2}, {4, 4, 4}}, 8}, {0x22d, 2, {{0, 16, 16}, {16, 4, 4}}, 32}};
    int which = (int)draw(sizeof(basics) / sizeof(*basics));
    memset(m, 0, sizeof(*m));
    m->type = (weft_type *)weft_type_of((void *)(uintptr_t)basics[which].handle);
    m->count = basics[which].n;
    memcpy(m->entries, basics[which].e, sizeof(basics[which].e));
}

static void random_make(map *m, int depth);

/* One constructor over older maps. */
static bool constructor_make(map *m, int depth)
{
    map *old = malloc(3 * sizeof(*old));
    int kind = (int)draw(6), olds = kind == 5 ? 3 : 1, rc = -1;
    bool fits = true;
    int64_t n = draw(12) ? between(1, 5) : 0, length = draw(12) ? between(1, 5) : 0, extent, lb, stride, lengths[5], disps[5];
    const weft_type *types[5];
    memset(m, 0, sizeof(*m));
    for (int i = 0; i < olds; i++)
        random_make(&old[i], depth - 1);
    map_bounds(&old[0], &lb, &extent);
    if (kind == 0) {
        rc = weft_type_contiguous(n, old->type, &m->type);
        fits = map_block(m, old, 0, n);
    } else if (kind == 1) {
        stride = draw(3) ? between(-5, 6) * extent : draw(2) ? length * extent : between(-40, 40);
        rc = weft_type_vector(n, length, stride, old->type, &m->type);
        for (int64_t i = 0; i < n; i++)
            fits = fits && map_block(m, old, i * stride, length);
    } else if (kind == 2) {
        rc = weft_type_dup(old->type, &m->type);
        fits = map_put(m, old, 0);
    } else if (kind == 3) {
        int64_t new_lb = between(-20, 20), new_extent = draw(2) ? map_size(old) : between(-30, 60);
        rc = weft_type_resized(old->type, new_lb, new_extent, &m->type);
        fits = map_put(m, old, 0);
        m->is_marked = true;
        m->lb = new_lb;
        m->ub = new_lb + new_extent;
    } else {
        int64_t where = between(-30, 30);
        bool is_even = draw(2);
        for (int i = 0; i < n; i++) {
            const map *o = &old[draw((uint64_t)olds)];
            int64_t o_lb, o_extent;
            map_bounds(o, &o_lb, &o_extent);
            lengths[i] = is_even ? length : between(0, 3);
            disps[i] = where;
            types[i] = o->type;
            where += draw(2) ? lengths[i] * o_extent : is_even ? 24 : between(-50, 90);
            fits = fits && map_block(m, o, disps[i], lengths[i]);
        }
        rc = kind == 4 ? weft_type_hindexed(n, lengths, disps, old->type, &m->type) : weft_type_struct(n, lengths, disps, types, &m->type);
    }
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    for (int i = 0; i < olds; i++)
        weft_type_drop(old[i].type); /* the new type must keep what it needs */
    free(old);
    if (!fits)
        weft_type_drop(m->type);
    return fits;
}

static void random_make(map *m, int depth)
{
    if (!depth || !draw(4) || !constructor_make(m, depth))
        basic_make(m);
}

static void check(bool good, const char *what)
{
    CU_ASSERT(good);
    if (!good && failures_seen++ < 5)
        printf("\n  seed %llu: %s\n", (unsigned long long)seed_now, what);
}

static void check_facts(const map *m)
{
    const weft_type *t = m->type;
    int64_t low, high, align, lb, extent, end = 0;
    bool in_order = true;
    map_data(m, &low, &high, &align);
    map_bounds(m, &lb, &extent);
    check(t->size == map_size(m), "size");
    check(t->lb == lb && t->extent == extent, "lb, extent");
    check(t->true_lb == low && t->true_extent == high - low, "true lb, true extent");
    for (int i = 0; i < m->count; i++) {
        in_order = in_order && m->entries[i].disp == end;
        end = m->entries[i].disp + m->entries[i].bytes;
    }
    check(t->is_dense == (in_order && !lb && extent == map_size(m)), "is_dense");
    check(!t->is_dense || !t->layout, "a dense type has no program");
}

/* All entries of count elements in order, their packed bytes and the memory range. */
static entry *walk(const map *m, int count, int64_t *low, int64_t *high)
{
    int64_t lb, extent;
    entry *all = malloc(((size_t)m->count * (size_t)count + 1) * sizeof(*all));
    map_bounds(m, &lb, &extent);
    *low = *high = 0;
    for (int k = 0, n = 0; k < count; k++)
        for (int i = 0; i < m->count; i++, n++) {
            all[n] = m->entries[i];
            all[n].disp += k * extent;
            if (!n || all[n].disp < *low)
                *low = all[n].disp;
            if (!n || all[n].disp + all[n].bytes > *high)
                *high = all[n].disp + all[n].bytes;
        }
    return all;
}

/* The runs have the packed bytes in their order. */
static void check_runs(const weft_type *type, int count, const void *buf, const uint8_t *packed, uint64_t from, uint64_t bytes)
{
    weft_runs runs;
    uint64_t at = 0;
    if (!bytes)
        return;
    weft_runs_begin(&runs, type, buf, (uint64_t)count, from, bytes);
    while (weft_runs_next(&runs)) {
        check(runs.bytes && at + runs.bytes <= bytes && !memcmp(runs.at, packed + from + at, runs.bytes), "run");
        at += runs.bytes;
    }
    check(at == bytes, "all runs");
}

/* A type that was sent to another process moves the same bytes. */
static void check_wire(const map *m, int count, const void *buf, const uint8_t *packed, uint64_t total)
{
    weft_type *copy;
    uint8_t *out = malloc(total + 1);
    uint64_t bytes;
    void *wire;
    CU_ASSERT_EQUAL_FATAL(weft_type_encode(m->type, &wire, &bytes), 0);
    CU_ASSERT_EQUAL_FATAL(weft_type_decode(wire, bytes, &copy), 0);
    weft_pack(copy, buf, (uint64_t)count, 0, total, out);
    check(!memcmp(out, packed, total), "pack by a decoded type");
    check(copy->extent == m->type->extent && copy->lb == m->type->lb && copy->true_extent == m->type->true_extent &&
              copy->is_dense == m->type->is_dense && copy->basic_handle == m->type->basic_handle, "decoded type");
    weft_type_drop(copy);
    if (bytes > 8) {
        int rc = weft_type_decode(wire, draw(bytes / 8) * 8, &copy);
        check(rc, "a type that was cut off is refused");
        if (!rc)
            weft_type_drop(copy);
    }
    free(wire);
    free(out);
}

static void check_window(const map *m, int count, const void *buf, void *target, const uint8_t *memory, uint8_t *memory_out, size_t span,
                         const uint8_t *packed, const uint8_t *owner, uint64_t from, uint64_t bytes, int64_t low, const entry *all)
{
    uint8_t *out = malloc(bytes + 1), *want = malloc(span + 1);
    uint64_t at = 0;
    out[bytes] = 0x5a;
    weft_pack(m->type, buf, (uint64_t)count, from, bytes, out);
    check(!memcmp(out, packed + from, bytes) && out[bytes] == 0x5a, "pack");
    check_runs(m->type, count, buf, packed, from, bytes);
    if (owner) { /* no byte lies in two entries: unpacking is defined */
        memset(memory_out, 0xee, span);
        memset(want, 0xee, span);
        for (int n = 0; n < m->count * count; n++)
            for (int64_t i = 0; i < all[n].bytes; i++, at++)
                if (at >= from && at < from + bytes)
                    want[all[n].disp + i - low] = memory[all[n].disp + i - low];
        weft_unpack(m->type, target, (uint64_t)count, from, bytes, packed + from);
        check(!memcmp(want, memory_out, span), "unpack");
    }
    free(out);
    free(want);
}

static void check_moves(const map *m, int count)
{
    int64_t low, high;
    entry *all = walk(m, count, &low, &high);
    size_t span = (size_t)(high - low), total = (size_t)map_size(m) * (size_t)count, at = 0;
    uint8_t *memory = malloc(span + 1), *memory_out = malloc(span ? span : 1), *packed = malloc(total + 1), *owner = calloc(1, span + 1);
    uint8_t *exact = malloc(span ? span : 1);
    void *buf = (void *)((uintptr_t)exact - (uintptr_t)low), *target = (void *)((uintptr_t)memory_out - (uintptr_t)low);
    bool is_disjoint = true;
    for (size_t i = 0; i < span; i++)
        memory[i] = exact[i] = (uint8_t)draw(256);
    for (int n = 0; n < m->count * count; n++)
        for (int64_t i = 0; i < all[n].bytes; i++, at++) {
            packed[at] = memory[all[n].disp + i - low];
            is_disjoint = is_disjoint && !owner[all[n].disp + i - low]++;
        }
    if (total <= 300)
        for (size_t s = 0; s <= total; s++) {
            check_window(m, count, buf, target, memory, memory_out, span, packed, is_disjoint ? owner : NULL, 0, s, low, all);
            check_window(m, count, buf, target, memory, memory_out, span, packed, is_disjoint ? owner : NULL, s, total - s, low, all);
        }
    for (int i = 0; i < 20; i++) {
        size_t from = (size_t)draw(total + 1), bytes = (size_t)draw(total - from + 1);
        check_window(m, count, buf, target, memory, memory_out, span, packed, is_disjoint ? owner : NULL, from, bytes, low, all);
    }
    check_window(m, count, buf, target, memory, memory_out, span, packed, is_disjoint ? owner : NULL, 0, total, low, all);
    check_wire(m, count, buf, packed, total);
    free(all);
    free(memory);
    free(memory_out);
    free(packed);
    free(owner);
    free(exact);
}

static uint64_t only_seed;
static void test_random_types(void)
{
    const int scale = WEFT_IS_SANITIZED ? 1 : 3; /* a sanitizer takes ten times as long */
    int kinds[5] = {0}, big = 0;
    map *m = malloc(sizeof(*m));
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : 1000 * (uint64_t)scale); seed++) {
        seed_now = seed;
        draw_state = seed * 0x9e3779b97f4a7c15u + 1;
        random_make(m, (int)between(1, 4));
        check_facts(m);
        kinds[m->type->layout ? m->type->layout->kind : 4]++;
        big += map_size(m) > 100;
        check_moves(m, map_size(m) > 64 || draw(4) ? (int)between(0, 3) : (int)between(60, 200)); /* longer than a tile of pack.c */
        weft_type_drop(m->type);
    }
    free(m);
    printf("%d runs, %d loops, %d lists, %d tables, %d dense; %d beyond 100 bytes ", kinds[0], kinds[1], kinds[2], kinds[3], kinds[4], big);
    CU_ASSERT(only_seed || (kinds[0] > 33 * scale && kinds[1] > 33 * scale && kinds[2] > 17 * scale && kinds[3] > 17 * scale &&
                            kinds[4] > 33 * scale && big > 100 * scale));
}

/* Strides by which lines fall into few sets of a cache, counts on both sides of the limit from which pack.c treats them apart. */
static void test_columns(void)
{
    map *m = malloc(sizeof(*m));
    for (uint64_t seed = 1; seed <= 300; seed++) {
        int64_t stride, bytes;
        seed_now = seed;
        draw_state = seed * 0x9e3779b97f4a7c15u + 1;
        stride = (INT64_C(512) << draw(5)) * between(1, 3) * (draw(3) ? 1 : -1);
        bytes = between(1, draw(2) ? 8 : 70);
        memset(m, 0, sizeof(*m));
        m->count = (int)between(2, 80);
        CU_ASSERT_EQUAL_FATAL(weft_type_vector(m->count, bytes, stride, weft_type_of((void *)0x247), &m->type), 0);
        for (int i = 0; i < m->count; i++)
            m->entries[i] = (entry){i * stride, bytes, 1};
        check_facts(m);
        check_moves(m, 1);
        weft_type_drop(m->type);
    }
    free(m);
}

static void test_copy_between_types(void)
{
    const weft_type *d = weft_type_of((void *)0x214);
    weft_type *even, *reverse;
    double from[4096], to[4096];
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(2048, 1, 16, d, &even), 0);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(2048, 1, -8, d, &reverse), 0);
    for (int i = 0; i < 4096; i++) {
        from[i] = i;
        to[i] = -1;
    }
    weft_copy(reverse, to + 2047, 1, even, from, 1); /* 16 KB: several bounce buffers */
    for (int i = 0; i < 2048; i++)
        CU_ASSERT(to[2047 - i] == 2 * i && to[2048 + i] == -1);
    weft_copy(d, to, 2048, even, from, 1);
    for (int i = 0; i < 2048; i++)
        CU_ASSERT(to[i] == 2 * i);
    weft_copy(even, to, 1, d, from, 100); /* the shorter side decides */
    for (int i = 0; i < 100; i++)
        CU_ASSERT(to[2 * i] == i);
    CU_ASSERT(to[200] == 400);
    weft_type_drop(even);
    weft_type_drop(reverse);
}

/* 5 GiB packed, with a map of a few bytes: no offset may be truncated to 32 bits. Stride 0: the elements share memory. */
static void test_wide_offsets(void)
{
    const weft_type *byte = weft_type_of((void *)0x247);
    weft_type *five, *pair;
    uint8_t text[8] = "abcdefg", out[16];
    int64_t one = 3, disps[2] = {0, 4}, lengths[2] = {3, 2};
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(INT64_C(1) << 31, one, 0, byte, &five), 0);
    CU_ASSERT_EQUAL(five->size, 3 * (INT64_C(1) << 31));
    weft_pack(five, text, 1, (uint64_t)five->size - 4, 4, out);
    CU_ASSERT(!memcmp(out, "cabc", 4));
    weft_type_drop(five);
    CU_ASSERT_EQUAL_FATAL(weft_type_hindexed(2, lengths, disps, byte, &pair), 0);
    CU_ASSERT_EQUAL_FATAL(weft_type_vector(INT64_C(1) << 32, 1, 0, pair, &five), 0);
    weft_pack(five, text, 1, UINT64_C(5) * 0xfffffff0 + 2, 9, out);
    CU_ASSERT(!memcmp(out, "cefabcefa", 9));
    weft_type_drop(five);
    weft_type_drop(pair);
}

int main(int argc, char **argv)
{
    CU_pSuite suite;
    unsigned failed;
    only_seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    if (CU_initialize_registry() || !(suite = CU_add_suite("pack", NULL, NULL)))
        return 2;
    CU_add_test(suite, "random nested types, every split", test_random_types);
    CU_add_test(suite, "columns", test_columns);
    CU_add_test(suite, "copy between types", test_copy_between_types);
    CU_add_test(suite, "offsets beyond 32 bits", test_wide_offsets);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

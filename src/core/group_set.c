/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group_set: union, intersection, difference, comparison (MPI 5.0 7.3.1, 7.3.2). See group.h.
 * Two runs have a run in common: its first member solves a linear congruence. So groups of runs are never enumerated; their common members
 * are at most WEFT_GROUP_RUNS sequences in each run, which are merged by rank.
 */
#include <stdlib.h>

#include "base/status.h"
#include "core/group_internal.h"

static int64_t modulo(int64_t a, int64_t m) { return (a % m + m) % m; }
static int64_t floor_div(int64_t a, int64_t b) { return (a - modulo(a, b)) / b; } /* b > 0 */
static int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* x with a * x = 1 modulo m; a and m have no common divisor, 0 <= a < m. */
static int64_t inverse(int64_t a, int64_t m)
{
    int64_t x = 0, next = 1, r = m, rest = a;
    while (rest) {
        int64_t q = r / rest, t = x - q * next;
        x = next;
        next = t;
        t = r - q * rest;
        r = rest;
        rest = t;
    }
    return modulo(x, m);
}

/* All values are below 2^31, so no product overflows. */
weft_group_hits weft_group_run_hits(const weft_group_run *a, const weft_group_run *b)
{
    int64_t stride = a->stride, width = b->stride, low = b->first, high = low + (int64_t)(b->count - 1) * width;
    int64_t from, to, divisor, step, first;
    if (a->job != b->job)
        return (weft_group_hits){0};
    if (width < 0) {
        int64_t last = high;
        high = low;
        low = last;
        width = -width;
    }
    from = stride > 0 ? ceil_div(low - a->first, stride) : ceil_div(a->first - high, -stride);
    to = stride > 0 ? floor_div(high - a->first, stride) : floor_div(a->first - low, -stride);
    from = from < 0 ? 0 : from;
    to = to < a->count ? to : (int64_t)a->count - 1;
    divisor = gcd(stride < 0 ? -stride : stride, width);
    if (from > to || (low - a->first) % divisor)
        return (weft_group_hits){0};
    step = width / divisor;
    first = modulo((low - a->first) / divisor, step) * inverse(modulo(stride / divisor, step), step);
    first = from + modulo(first - from, step);
    if (first > to)
        return (weft_group_hits){0};
    return (weft_group_hits){first, step, (uint32_t)((to - first) / step) + 1};
}

/* The next ranks of `from` that are in `by`: first, first + step, ... */
static void cut_piece(weft_group_cut *cut, int64_t first, int64_t step, uint32_t count)
{
    if (cut->keeps) {
        weft_group_append_ranks(cut->out, cut->from, first, step, count);
        return;
    }
    weft_group_append_ranks(cut->out, cut->from, cut->next, 1, (uint32_t)(first - cut->next));
    if (step == 2 && count > 1)
        weft_group_append_ranks(cut->out, cut->from, first + 1, 2, count - 1);
    for (uint32_t i = 0; step > 2 && i + 1 < count && !cut->out->rc; i++)
        weft_group_append_ranks(cut->out, cut->from, first + i * step + 1, 1, (uint32_t)(step - 1));
    cut->next = (uint32_t)(first + (count - 1) * step + 1);
}

/* One run of `of` by the runs of `by`: merges the sequences of common members. */
static void cut_one_run(weft_group_cut *cut, const weft_group_run *run, const weft_group *by)
{
    weft_group_hits hits[WEFT_GROUP_RUNS];
    uint32_t left = 0;
    for (uint32_t i = 0; i < by->run_count; i++) {
        hits[left] = weft_group_run_hits(run, &by->runs[i]);
        left += hits[left].count > 0;
    }
    while (left && !cut->out->rc) {
        weft_group_hits *least = &hits[0];
        int64_t next = INT64_MAX; /* the first rank of the others */
        uint32_t fit;
        for (uint32_t i = 1; i < left; i++)
            if (hits[i].first < least->first)
                least = &hits[i];
        for (uint32_t i = 0; i < left; i++)
            if (&hits[i] != least && hits[i].first < next)
                next = hits[i].first;
        fit = least->count;
        if (next <= least->first + (int64_t)(fit - 1) * least->step)
            fit = (uint32_t)((next - least->first - 1) / least->step) + 1;
        cut_piece(cut, run->begin + least->first, least->step, fit);
        least->first += fit * least->step;
        least->count -= fit;
        if (!least->count)
            *least = hits[--left];
    }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* `by` is a shorter list: sorts the ranks of its members in `of`. */
static void cut_by_list(weft_group_cut *cut, const weft_group *of, const weft_group *by)
{
    uint32_t *ranks = malloc(by->size * sizeof *ranks), count = 0;
    if (!ranks) {
        cut->out->rc = weft_fail(WEFT_E_NOMEM, "no memory to compare %u members", by->size);
        return;
    }
    for (uint32_t i = 0; i < by->size; i++) {
        int rank = weft_group_rank_of(of, weft_group_process(by, i));
        if (rank >= 0)
            ranks[count++] = (uint32_t)rank;
    }
    qsort(ranks, count, sizeof *ranks, by_value);
    for (uint32_t i = 0; i < count && !cut->out->rc; i++)
        cut_piece(cut, ranks[i], 1, 1);
    free(ranks);
}

void weft_group_cut_run(weft_group_cut *cut, const weft_group *of, const weft_group *by)
{
    if (of->run_count && (by->run_count || !by->size)) {
        for (uint32_t i = 0; i < of->run_count; i++)
            cut_one_run(cut, &of->runs[i], by);
    } else if (of->run_count && by->size < of->size) {
        cut_by_list(cut, of, by);
    } else {
        for (uint32_t i = 0; i < of->size && !cut->out->rc; i++)
            if (weft_group_rank_of(by, weft_group_process(of, i)) >= 0)
                cut_piece(cut, i, 1, 1);
    }
    if (!cut->keeps)
        weft_group_append_ranks(cut->out, cut->from, cut->next, 1, of->size - cut->next);
}

int weft_group_union(const weft_group *a, const weft_group *b, weft_group **group)
{
    weft_group_builder builder = {0};
    weft_group_cut cut = {.out = &builder, .from = b};
    weft_group_append_ranks(&builder, a, 0, 1, a->size);
    weft_group_cut_run(&cut, b, a);
    return weft_group_finish(&builder, group);
}

int weft_group_intersection(const weft_group *a, const weft_group *b, weft_group **group)
{
    weft_group_builder builder = {0};
    weft_group_cut cut = {.out = &builder, .from = a, .keeps = true};
    weft_group_cut_run(&cut, a, b);
    return weft_group_finish(&builder, group);
}

int weft_group_difference(const weft_group *a, const weft_group *b, weft_group **group)
{
    weft_group_builder builder = {0};
    weft_group_cut cut = {.out = &builder, .from = a};
    weft_group_cut_run(&cut, a, b);
    return weft_group_finish(&builder, group);
}

/* Both have the same size. */
static bool has_same_order(const weft_group *a, const weft_group *b)
{
    for (uint32_t rank = 0; rank < a->size;) {
        weft_group_run x = weft_group_run_at(a, rank), y = weft_group_run_at(b, rank);
        uint32_t count = x.count < y.count ? x.count : y.count;
        if (x.job != y.job || x.first != y.first || (count > 1 && x.stride != y.stride))
            return false;
        rank += count;
    }
    return true;
}

/* Both have the same size. */
static bool has_same_members(const weft_group *a, const weft_group *b)
{
    uint64_t common = 0;
    bool are_runs = a->run_count && b->run_count;
    for (uint32_t i = 0; i < a->run_count * b->run_count; i++)
        common += weft_group_run_hits(&a->runs[i / b->run_count], &b->runs[i % b->run_count]).count;
    for (uint32_t i = 0; !are_runs && i < a->size; i++) {
        if (weft_group_rank_of(b, weft_group_process(a, i)) < 0)
            return false;
        common++;
    }
    return common == a->size;
}

enum weft_group_relation weft_group_compare(const weft_group *a, const weft_group *b)
{
    if (a->size != b->size)
        return WEFT_GROUP_UNEQUAL;
    if (a == b || has_same_order(a, b))
        return WEFT_GROUP_IDENT;
    return has_same_members(a, b) ? WEFT_GROUP_SIMILAR : WEFT_GROUP_UNEQUAL;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group_select: subsets by ranks: incl, excl and their range forms (MPI 5.0 7.3.2). See group.h.
 * The ranks given are themselves a group, of "processes" of job 0, so that ranges of them are runs and are never enumerated.
 */
#include <stdio.h>

#include "base/status.h"
#include "core/group_internal.h"

typedef int range[3];

/* Error: the rank is not in the group. */
static int outside(const weft_group *from, const char *what, int rank)
{
    if (!from->size)
        return weft_fail(WEFT_E_RANK, "%s: rank %d is not in the group, which is empty", what, rank);
    return weft_fail(WEFT_E_RANK, "%s: rank %d is not in the group (0..%u)", what, rank, from->size - 1);
}

static int discard(weft_group_builder *builder, int rc)
{
    builder->rc = rc;
    return weft_group_finish(builder, NULL);
}

/* The ranks as a group. */
static int ranks_given(const weft_group *from, uint32_t n, const int *ranks, weft_group **out)
{
    weft_group_builder builder = {0};
    uint32_t i, j;
    int rc;
    for (i = 0; i < n; i++) {
        if ((uint32_t)ranks[i] >= from->size) {
            char what[48];
            snprintf(what, sizeof what, "argument ranks[%u] is %d", i, ranks[i]);
            return discard(&builder, outside(from, what, ranks[i]));
        }
        weft_group_append(&builder, 0, ranks[i], 1, 1);
    }
    rc = weft_group_finish(&builder, out);
    if (!rc && weft_group_find_twice(*out, &i, &j, &rc))
        rc = weft_fail(WEFT_E_RANK, "argument ranks[%u] is %d, as ranks[%u] is: each rank may be given once", j, ranks[j], i);
    if (rc)
        weft_group_drop(*out);
    return rc;
}

/* Number of ranks in a range whose stride leads to its last rank. */
static uint32_t length(const range at) { return (uint32_t)(((int64_t)at[1] - at[0]) / at[2]) + 1; }

static int check_range(const weft_group *from, uint32_t i, const range at)
{
    char what[96];
    int64_t last;
    snprintf(what, sizeof what, "argument ranges[%u] is (%d, %d, %d)", i, at[0], at[1], at[2]);
    if (!at[2])
        return weft_fail(WEFT_E_ARG, "%s: the stride cannot be 0", what);
    if ((at[1] > at[0] && at[2] < 0) || (at[1] < at[0] && at[2] > 0))
        return weft_fail(WEFT_E_ARG, "%s: the stride leads away from the last rank", what);
    last = at[0] + (int64_t)(length(at) - 1) * at[2];
    if ((uint32_t)at[0] >= from->size)
        return outside(from, what, at[0]);
    return last < 0 || last >= from->size ? outside(from, what, (int)last) : 0;
}

/* Index of the range that gives the rank at this place of the whole sequence. */
static uint32_t range_of(range *ranges, uint64_t place)
{
    uint32_t i = 0;
    for (; place >= length(ranges[i]); i++)
        place -= length(ranges[i]);
    return i;
}

static int ranges_given(const weft_group *from, uint32_t n, range *ranges, weft_group **out)
{
    weft_group_builder builder = {0};
    uint32_t i, j;
    int rc;
    for (i = 0; i < n; i++) {
        rc = check_range(from, i, ranges[i]);
        if (rc)
            return discard(&builder, rc);
        weft_group_append(&builder, 0, ranges[i][0], ranges[i][2], length(ranges[i]));
    }
    rc = weft_group_finish(&builder, out);
    if (!rc && weft_group_find_twice(*out, &i, &j, &rc)) {
        uint32_t first = range_of(ranges, i), second = range_of(ranges, j);
        rc = weft_fail(WEFT_E_RANK, "argument ranges[%u] is (%d, %d, %d): it has rank %u, as ranges[%u] has: each rank may be given once",
                       second, ranges[second][0], ranges[second][1], ranges[second][2], weft_group_process(*out, j).rank, first);
    }
    if (rc)
        weft_group_drop(*out);
    return rc;
}

/* Members with these ranks, in their order. Drops `ranks`. */
static int incl(const weft_group *from, weft_group *ranks, weft_group **group)
{
    weft_group_builder builder = {0};
    for (uint32_t i = 0; i < ranks->size && !builder.rc;) {
        weft_group_run run = weft_group_run_at(ranks, i);
        weft_group_append_ranks(&builder, from, run.first, run.stride, run.count);
        i += run.count;
    }
    weft_group_drop(ranks);
    return weft_group_finish(&builder, group);
}

/* The other members. Drops `ranks`. */
static int excl(const weft_group *from, weft_group *ranks, weft_group **group)
{
    weft_group_builder builder = {0};
    weft_group_cut cut = {.out = &builder, .from = from};
    weft_group *all;
    int rc = weft_group_range(0, 0, 1, from->size, &all);
    if (!rc) {
        weft_group_cut_run(&cut, all, ranks);
        weft_group_drop(all);
        rc = weft_group_finish(&builder, group);
    }
    weft_group_drop(ranks);
    return rc;
}

int weft_group_incl(const weft_group *from, uint32_t n, const int *ranks, weft_group **group)
{
    weft_group *given = NULL;
    int rc = ranks_given(from, n, ranks, &given);
    return rc ? rc : incl(from, given, group);
}

int weft_group_excl(const weft_group *from, uint32_t n, const int *ranks, weft_group **group)
{
    weft_group *given = NULL;
    int rc = ranks_given(from, n, ranks, &given);
    return rc ? rc : excl(from, given, group);
}

int weft_group_range_incl(const weft_group *from, uint32_t n, range *ranges, weft_group **group)
{
    weft_group *given = NULL;
    int rc = ranges_given(from, n, ranges, &given);
    return rc ? rc : incl(from, given, group);
}

int weft_group_range_excl(const weft_group *from, uint32_t n, range *ranges, weft_group **group)
{
    weft_group *given = NULL;
    int rc = ranges_given(from, n, ranges, &given);
    return rc ? rc : excl(from, given, group);
}

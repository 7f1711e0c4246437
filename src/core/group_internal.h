/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group_internal: building of groups, shared by group.c, group_set.c and group_select.c. A builder collects members run by run, merges runs
 * that continue each other, and turns into a list when there are more than WEFT_GROUP_RUNS. Owned by the thread that builds.
 */
#ifndef WEFT_CORE_GROUP_INTERNAL_H
#define WEFT_CORE_GROUP_INTERNAL_H

#include "core/group.h"

typedef struct weft_group_builder {
    weft_group_run runs[WEFT_GROUP_RUNS];
    uint32_t run_count;
    uint32_t size;
    uint32_t capacity;       /* of ranks or processes */
    uint32_t *ranks;         /* list of ranks of `job`; NULL: still runs, or processes */
    weft_process *processes; /* list of several jobs' processes */
    uint64_t job;
    int rc;                  /* first error; later members are dropped */
} weft_group_builder;

/* A builder starts as zeroes. Members must be distinct. */
void weft_group_append(weft_group_builder *builder, uint64_t job, int64_t first, int64_t stride, uint32_t count);
/* Appends the members of `from` with ranks first, first + step, ... */
void weft_group_append_ranks(weft_group_builder *builder, const weft_group *from, int64_t first, int64_t step, uint32_t count);
/* The group, or the error of an append. The builder is empty then. */
int weft_group_finish(weft_group_builder *builder, weft_group **group);

/* The longest known run that begins at this rank of the group. */
weft_group_run weft_group_run_at(const weft_group *group, uint32_t rank);
/* Ranks i and j > i in the group that name one process: a group of distinct members has none. False: none. WEFT_E_NOMEM in *rc. */
bool weft_group_find_twice(const weft_group *group, uint32_t *i, uint32_t *j, int *rc);

/* Parts of `from`: each member of `from` that is in `by` is kept, or dropped. Used with by = ranks too (job 0). */
typedef struct weft_group_cut {
    weft_group_builder *out;
    const weft_group *from; /* members are appended from here */
    bool keeps;             /* true: members in `by`; false: the others */
    uint32_t next;          /* ranks of `from` below it are done */
} weft_group_cut;

/* Cuts `from` by the ranks, in a group `of` of the same size, of members that are in `by`. */
void weft_group_cut_run(weft_group_cut *cut, const weft_group *of, const weft_group *by);

/* The members of run a that are in run b: positions first, first + step, ... of a, ascending. count 0: none. */
typedef struct weft_group_hits {
    int64_t first, step;
    uint32_t count;
} weft_group_hits;
weft_group_hits weft_group_run_hits(const weft_group_run *a, const weft_group_run *b);

#endif

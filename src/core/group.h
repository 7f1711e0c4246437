/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group: ordered sets of processes (MPI 5.0 7.2.1, 7.3). An MPI_Group points to a weft_group or is MPI_GROUP_EMPTY (0x109).
 * Held by user handles (src/mpi/group.c), communicators and channels. Any thread, no lock.
 * Invariant: a group never changes, but for its counts of references and handles and its index, which is built once. Members are distinct.
 * Groups of no members are one object, weft_group_empty, which is never freed.
 */
#ifndef WEFT_CORE_GROUP_H
#define WEFT_CORE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/object.h"

#define WEFT_GROUP_MAGIC WEFT_OBJECT_MAGIC('G', 'R', 'O', 'U')
#define WEFT_GROUP_RUNS 16         /* a group that is a sequence of more runs is a list */
#define WEFT_GROUP_MAX INT32_MAX   /* members */

/* A process. Ranks are at most INT32_MAX - 1. */
typedef struct weft_process {
    uint64_t job; /* hash of the namespace, by the launcher (weft_boot.job) */
    uint32_t rank; /* in the job */
} weft_process;

/* Consecutive members: ranks first, first + stride, ... of one job. */
typedef struct weft_group_run {
    uint64_t job;
    uint32_t first, count;
    int32_t stride; /* not 0; 1 if count is 1 */
    uint32_t begin; /* rank in the group of the first member */
} weft_group_run;

struct weft_group_index;

typedef struct MPI_ABI_Group weft_group;
struct MPI_ABI_Group {
    weft_object object; /* refs: user handles, communicators, channels */
    uint32_t size;
    uint32_t handles;   /* atomic: handles of the user; 0: the user's handle is invalid, or there was none */
    int32_t session;    /* number of the session from whose process set it was made; 0: none. Set before others see the group */
    uint32_t run_count; /* 0: a list, or empty */
    weft_group_run one; /* if run_count is 1 */
    /* Exactly one of the three is not NULL, unless the group is empty. */
    weft_group_run *runs;     /* [run_count] owned, or &one */
    uint32_t *ranks;          /* [size] owned: list of ranks of `job` */
    weft_process *processes;  /* [size] owned: list of processes of several jobs */
    uint64_t job;
    struct weft_group_table *_Atomic tables; /* weft_group_pointers */
    struct weft_group_index *_Atomic index; /* process to rank in the group, for lists; built at first use; NULL: not yet */
};

extern weft_group weft_group_empty;

static inline void weft_group_hold(weft_group *group)
{
    if (group->size)
        weft_object_hold(&group->object);
}
void weft_group_drop(weft_group *group); /* NULL: no effect */
/* The object of a handle. NULL: MPI_GROUP_NULL, freed or never a group. */
static inline weft_group *weft_group_of(const void *handle)
{
    weft_group *group = (weft_group *)handle;
    if (weft_object_is_constant(handle))
        return (uintptr_t)handle == 0x109 ? &weft_group_empty : NULL;
    return group->object.magic == WEFT_GROUP_MAGIC && __atomic_load_n(&group->handles, __ATOMIC_RELAXED) ? group : NULL;
}
extern weft_object_pool weft_group_pool;

/* Constructors. Each returns 0 and a group with one reference of the caller, or WEFT_E_NOMEM or WEFT_E_TOOLARGE. They copy their arrays,
 * and find runs in them: a list that is a range costs no memory. Members must be distinct; O(count). */
int weft_group_range(uint64_t job, uint32_t first, int32_t stride, uint32_t count, weft_group **group); /* O(1) */
int weft_group_list(uint64_t job, const uint32_t *ranks, uint32_t count, weft_group **group);
int weft_group_processes(const weft_process *processes, uint32_t count, weft_group **group);

/* The member with this rank in the group, 0..size - 1. O(1). */
weft_process weft_group_process(const weft_group *group, uint32_t rank);
/* Rank of a process in the group; -1: not a member. O(1); a list's first call builds the index, O(size), or if there is no memory for it,
 * this and each later call searches the list. */
int weft_group_rank_of(const weft_group *group, weft_process process);
/* Do all members belong to this job, and is each member's rank in the group its rank in the job? O(1). */
static inline bool weft_group_is_identity(const weft_group *group, uint64_t job)
{
    return group->run_count == 1 && group->one.job == job && group->one.first == 0 && group->one.stride == 1;
}
/* Are all members processes of this job? O(size) for a list of several jobs, else O(1). */
bool weft_group_is_of_job(const weft_group *group, uint64_t job);
/* Bytes of memory that the group owns beside the struct. */
size_t weft_group_bytes(const weft_group *group);

/* An array of a pointer for each member, NULL at first, of one owner; the same array in each call. Memory is used for the parts that are
 * touched. Freed with the group; entries are not. owner: not 0, and never used again after the owner's end. NULL: out of memory. */
void **weft_group_pointers(weft_group *group, uint64_t owner);

/* Set operations (MPI 5.0 7.3.2); order of the members: as in a, then as in b. 0 and a group with one reference of the caller, else
 * WEFT_E_NOMEM or WEFT_E_TOOLARGE. Groups of runs: O(runs of a * runs of b), whatever their sizes, unless the result is a list. Of lists:
 * O(size of a + size of b); O(size of b * log) where a has runs and is larger than a list b. */
int weft_group_union(const weft_group *a, const weft_group *b, weft_group **group);
int weft_group_intersection(const weft_group *a, const weft_group *b, weft_group **group);
int weft_group_difference(const weft_group *a, const weft_group *b, weft_group **group);

/* The members with ranks[0..n - 1] in this order; the others in the order of the group. Texts of errors name `ranks` and the index.
 * WEFT_E_RANK: a rank is not in the group, or occurs twice. incl is O(n), excl O(n log n) where ranks is irregular, plus O(size) if the
 * group is a list. */
int weft_group_incl(const weft_group *from, uint32_t n, const int *ranks, weft_group **group);
int weft_group_excl(const weft_group *from, uint32_t n, const int *ranks, weft_group **group);
/* The same with ranges {first rank, last rank, stride}. WEFT_E_ARG: a stride is 0, or leads away from the last rank. O(n), not O(ranks
 * in the ranges), if the group is of runs and `ranges` are at most WEFT_GROUP_RUNS. */
int weft_group_range_incl(const weft_group *from, uint32_t n, int (*ranges)[3], weft_group **group);
int weft_group_range_excl(const weft_group *from, uint32_t n, int (*ranges)[3], weft_group **group);

enum weft_group_relation { WEFT_GROUP_IDENT, WEFT_GROUP_SIMILAR, WEFT_GROUP_UNEQUAL }; /* SIMILAR: in another order */
/* O(runs of a * runs of b), or O(size) if one is a list. */
enum weft_group_relation weft_group_compare(const weft_group *a, const weft_group *b);

#endif

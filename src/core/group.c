/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group: building, freeing and looking up. See group.h, group_internal.h.
 */
#include "core/group.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/status.h"
#include "core/group_internal.h"

#define SEARCHED_MAX 8u /* lists up to this size are searched: an index gains nothing */

/* Open addressing: rank in the group + 1 of the member that hashes to a slot or one before it; 0: free. Immutable once published. */
typedef struct weft_group_index {
    uint32_t mask;
    uint32_t slots[];
} weft_group_index;

weft_object_pool weft_group_pool = WEFT_OBJECT_POOL(weft_group, WEFT_GROUP_MAGIC);
weft_group weft_group_empty = {.object = {.magic = WEFT_GROUP_MAGIC, .refs = 1, .number = 0x109}, .handles = 1};

size_t weft_group_bytes(const weft_group *group)
{
    const weft_group_index *index = atomic_load_explicit(&((weft_group *)group)->index, memory_order_acquire);
    size_t bytes = index ? sizeof *index + ((size_t)index->mask + 1) * sizeof *index->slots : 0;
    if (group->run_count > 1)
        return bytes + group->run_count * sizeof *group->runs;
    return bytes + group->size * ((group->ranks ? sizeof *group->ranks : 0) + (group->processes ? sizeof *group->processes : 0));
}

/* Arrays of owners. */

#define LAZY_BYTES (32u << 10) /* from this size on, an array is mapped: pages that are not touched cost nothing */

typedef struct weft_group_table {
    struct weft_group_table *next;
    uint64_t owner;
    size_t bytes;
    void **pointers;
} weft_group_table;

static void table_free(weft_group_table *table)
{
    if (table->bytes < LAZY_BYTES)
        free(table->pointers);
    else
        munmap(table->pointers, table->bytes);
    free(table);
}

static weft_group_table *table_make(const weft_group *group, uint64_t owner)
{
    weft_group_table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->owner = owner;
    table->bytes = (size_t)group->size * sizeof *table->pointers;
    if (table->bytes < LAZY_BYTES) {
        table->pointers = calloc(1, table->bytes);
    } else {
        table->pointers = mmap(NULL, table->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (table->pointers == MAP_FAILED)
            table->pointers = NULL;
    }
    if (table->pointers)
        return table;
    free(table);
    return NULL;
}

/* Each owner serializes its own calls; calls of several owners may run at the same time. */
void **weft_group_pointers(weft_group *group, uint64_t owner)
{
    weft_group_table *first = atomic_load_explicit(&group->tables, memory_order_acquire), *table = first;
    while (table && table->owner != owner)
        table = table->next;
    if (table)
        return table->pointers;
    table = table_make(group, owner);
    if (!table)
        return NULL;
    table->next = first;
    while (!atomic_compare_exchange_weak(&group->tables, &table->next, table))
        ;
    return table->pointers;
}

void weft_group_drop(weft_group *group)
{
    if (!group || !group->size || !weft_object_drop(&group->object))
        return;
    if (group->runs != &group->one)
        free(group->runs);
    free(group->ranks);
    free(group->processes);
    free(atomic_load_explicit(&group->index, memory_order_relaxed));
    for (weft_group_table *table = atomic_load_explicit(&group->tables, memory_order_acquire), *next; table; table = next) {
        next = table->next;
        table_free(table);
    }
    weft_object_free(&weft_group_pool, group);
}

/* Look-up. */

bool weft_group_is_of_job(const weft_group *group, uint64_t job)
{
    bool is = true;
    for (uint32_t i = 0; i < group->run_count; i++)
        is &= group->runs[i].job == job;
    for (uint32_t i = 0; group->processes && is && i < group->size; i++)
        is = group->processes[i].job == job;
    return is && (!group->ranks || group->job == job);
}

weft_process weft_group_process(const weft_group *group, uint32_t rank)
{
    weft_group_run run = weft_group_run_at(group, rank);
    return (weft_process){run.job, run.first};
}

weft_group_run weft_group_run_at(const weft_group *group, uint32_t rank)
{
    weft_group_run run = {.count = 1, .stride = 1, .begin = rank};
    if (group->run_count) {
        const weft_group_run *at = group->runs;
        while (rank - at->begin >= at->count)
            at++;
        run.job = at->job;
        run.first = (uint32_t)(at->first + (int64_t)(rank - at->begin) * at->stride);
        run.count = at->count - (rank - at->begin);
        run.stride = run.count > 1 ? at->stride : 1;
    } else if (group->ranks) {
        run.job = group->job;
        run.first = group->ranks[rank];
    } else {
        run.job = group->processes[rank].job;
        run.first = group->processes[rank].rank;
    }
    return run;
}

static uint32_t hash_of(uint64_t job, uint32_t rank) { return (uint32_t)(((job ^ rank) * UINT64_C(0x9e3779b97f4a7c15)) >> 32); }

static bool is_at(const weft_group *group, uint32_t rank, weft_process process)
{
    if (group->ranks)
        return group->ranks[rank] == process.rank && group->job == process.job;
    return group->processes[rank].rank == process.rank && group->processes[rank].job == process.job;
}

/* Rank of the process among those indexed; UINT32_MAX: none, and *slot is free for it. */
static uint32_t index_lookup(const weft_group *group, const weft_group_index *index, weft_process process, uint32_t *slot)
{
    uint32_t at = hash_of(process.job, process.rank) & index->mask;
    while (index->slots[at] && !is_at(group, index->slots[at] - 1, process))
        at = (at + 1) & index->mask;
    *slot = at;
    return index->slots[at] - 1;
}

/* Indexes a list. A process that occurs twice is indexed once, and *twice is the rank of its second place. NULL: out of memory. */
static weft_group_index *index_make(const weft_group *group, uint32_t *twice)
{
    uint64_t slots = 16;
    weft_group_index *index;
    while (slots < 2 * (uint64_t)group->size)
        slots *= 2;
    index = calloc(1, sizeof *index + slots * sizeof *index->slots);
    if (!index)
        return NULL;
    index->mask = (uint32_t)(slots - 1);
    for (uint32_t rank = 0; rank < group->size; rank++) {
        uint32_t slot;
        if (index_lookup(group, index, weft_group_process(group, rank), &slot) == UINT32_MAX)
            index->slots[slot] = rank + 1;
        else
            *twice = rank;
    }
    return index;
}

/* The index, built by the first thread that needs it. NULL: out of memory. */
static const weft_group_index *index_of(const weft_group *group)
{
    weft_group_index *_Atomic *at = &((weft_group *)group)->index;
    weft_group_index *index = atomic_load_explicit(at, memory_order_acquire), *other = NULL;
    uint32_t twice;
    if (index)
        return index;
    index = index_make(group, &twice);
    if (index && !atomic_compare_exchange_strong(at, &other, index)) {
        free(index);
        return other;
    }
    return index;
}

static int search(const weft_group *group, weft_process process)
{
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (is_at(group, rank, process))
            return (int)rank;
    return -1;
}

static int rank_in_run(const weft_group_run *run, weft_process process)
{
    int64_t distance = (int64_t)process.rank - run->first;
    if (run->job != process.job)
        return -1;
    if (run->stride != 1) {
        if (distance % run->stride)
            return -1;
        distance /= run->stride;
    }
    return distance >= 0 && distance < run->count ? (int)(run->begin + distance) : -1;
}

int weft_group_rank_of(const weft_group *group, weft_process process)
{
    const weft_group_index *index;
    uint32_t slot;
    int rank = -1;
    for (uint32_t i = 0; i < group->run_count && rank < 0; i++)
        rank = rank_in_run(&group->runs[i], process);
    if (group->run_count || !group->size)
        return rank;
    index = group->size > SEARCHED_MAX ? index_of(group) : NULL;
    return index ? (int)index_lookup(group, index, process, &slot) : search(group, process);
}

bool weft_group_find_twice(const weft_group *group, uint32_t *i, uint32_t *j, int *rc)
{
    uint32_t twice = UINT32_MAX, slot;
    weft_group_index *index;
    for (uint32_t b = 1; b < group->run_count; b++) {
        for (uint32_t a = 0; a < b; a++) {
            weft_group_hits hits = weft_group_run_hits(&group->runs[a], &group->runs[b]);
            if (!hits.count)
                continue;
            *i = group->runs[a].begin + (uint32_t)hits.first;
            *j = (uint32_t)rank_in_run(&group->runs[b], weft_group_process(group, *i));
            return true;
        }
    }
    if (group->run_count || !group->size)
        return false;
    index = index_make(group, &twice);
    if (!index)
        *rc = weft_fail(WEFT_E_NOMEM, "no memory for the index of a group of %u members", group->size);
    if (twice != UINT32_MAX) {
        *i = index_lookup(group, index, weft_group_process(group, twice), &slot);
        *j = twice;
    }
    free(index);
    return twice != UINT32_MAX;
}

/* Building. */

static void fail(weft_group_builder *builder, int rc)
{
    free(builder->ranks);
    free(builder->processes);
    *builder = (weft_group_builder){.rc = rc};
}

/* Does the run continue the last one? Then extends that. */
static bool merge(weft_group_builder *builder, uint64_t job, int64_t first, int64_t stride, uint32_t count)
{
    weft_group_run *last = builder->run_count ? &builder->runs[builder->run_count - 1] : NULL;
    int64_t next;
    if (!last || last->job != job)
        return false;
    next = first - last->first; /* the stride, if both have one member */
    if (last->count > 1)
        next = last->stride;
    else if (!next)
        return false;
    if (first != last->first + (int64_t)last->count * next || (count > 1 && stride != next))
        return false;
    last->stride = (int32_t)next;
    last->count += count;
    return true;
}

static void *grown(weft_group_builder *builder, void *memory, size_t width, uint64_t size)
{
    uint64_t capacity = builder->capacity ? builder->capacity : 64;
    void *more;
    if (size <= builder->capacity)
        return memory;
    while (capacity < size)
        capacity *= 2;
    more = capacity > SIZE_MAX / width ? NULL : realloc(memory, (size_t)capacity * width);
    if (more)
        builder->capacity = (uint32_t)capacity;
    return more;
}

/* The list of ranks becomes one of processes: the next member is of another job. False: out of memory. */
static bool mix(weft_group_builder *builder)
{
    weft_process *processes = malloc(builder->capacity * sizeof *processes);
    if (!processes)
        return false;
    for (uint32_t i = 0; i < builder->size; i++)
        processes[i] = (weft_process){builder->job, builder->ranks[i]};
    free(builder->ranks);
    builder->ranks = NULL;
    builder->processes = processes;
    return true;
}

static bool append_to_list(weft_group_builder *builder, uint64_t job, int64_t first, int64_t stride, uint32_t count)
{
    uint64_t size = (uint64_t)builder->size + count;
    void *more;
    if (!builder->processes && !builder->ranks)
        builder->job = job;
    if (!builder->processes && job != builder->job && !mix(builder))
        return false;
    more = grown(builder, builder->processes ? (void *)builder->processes : builder->ranks,
                 builder->processes ? sizeof(weft_process) : sizeof(uint32_t), size);
    if (!more)
        return false;
    if (builder->processes)
        builder->processes = more;
    else
        builder->ranks = more;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = (uint32_t)(first + i * stride);
        if (builder->processes)
            builder->processes[builder->size + i] = (weft_process){job, rank};
        else
            builder->ranks[builder->size + i] = rank;
    }
    builder->size = (uint32_t)size;
    return true;
}

/* There are too many runs: they become a list. False: out of memory. */
static bool spill(weft_group_builder *builder)
{
    bool is_fine = true;
    builder->size = 0;
    for (uint32_t i = 0; i < builder->run_count && is_fine; i++) {
        const weft_group_run *run = &builder->runs[i];
        is_fine = append_to_list(builder, run->job, run->first, run->stride, run->count);
    }
    builder->run_count = 0;
    return is_fine;
}

void weft_group_append(weft_group_builder *builder, uint64_t job, int64_t first, int64_t stride, uint32_t count)
{
    uint64_t size = (uint64_t)builder->size + count;
    bool is_list = builder->ranks || builder->processes;
    if (builder->rc || !count)
        return;
    if (size > WEFT_GROUP_MAX) {
        fail(builder, weft_fail(WEFT_E_TOOLARGE, "the group would have %llu members: at most %d are possible", (unsigned long long)size,
                                WEFT_GROUP_MAX));
        return;
    }
    if (!is_list && merge(builder, job, first, stride, count)) {
        builder->size = (uint32_t)size;
        return;
    }
    if (!is_list && builder->run_count < WEFT_GROUP_RUNS) {
        builder->runs[builder->run_count++] = (weft_group_run){.job = job, .first = (uint32_t)first, .count = count,
                                                               .stride = count > 1 ? (int32_t)stride : 1, .begin = builder->size};
        builder->size = (uint32_t)size;
        return;
    }
    if ((!is_list && !spill(builder)) || !append_to_list(builder, job, first, stride, count))
        fail(builder, weft_fail(WEFT_E_NOMEM, "no memory for a group of %llu members", (unsigned long long)size));
}

void weft_group_append_ranks(weft_group_builder *builder, const weft_group *from, int64_t first, int64_t step, uint32_t count)
{
    while (count && !builder->rc) {
        const weft_group_run *run;
        uint32_t in_run, fit = 1;
        if (!from->run_count) {
            weft_process process = weft_group_process(from, (uint32_t)first);
            weft_group_append(builder, process.job, process.rank, 1, 1);
        } else {
            for (run = from->runs; (uint32_t)first - run->begin >= run->count;)
                run++;
            in_run = (uint32_t)first - run->begin;
            fit = (uint32_t)(step > 0 ? (run->count - 1 - in_run) / step : in_run / -step) + 1;
            fit = fit < count ? fit : count;
            weft_group_append(builder, run->job, run->first + (int64_t)in_run * run->stride, step * run->stride, fit);
        }
        first += step * fit;
        count -= fit;
    }
}

static void *shrunk(void *memory, size_t bytes)
{
    void *less = realloc(memory, bytes);
    return less ? less : memory;
}

static weft_group *make(weft_group_builder *builder)
{
    weft_group *group = weft_object_new(&weft_group_pool);
    if (!group)
        return NULL;
    group->size = builder->size;
    group->run_count = builder->run_count;
    group->ranks = builder->ranks ? shrunk(builder->ranks, builder->size * sizeof *group->ranks) : NULL;
    group->processes = builder->processes ? shrunk(builder->processes, builder->size * sizeof *group->processes) : NULL;
    group->job = builder->job;
    group->runs = builder->run_count == 1 ? &group->one : NULL;
    if (builder->run_count == 1) {
        group->one = builder->runs[0];
    } else if (builder->run_count) {
        group->runs = malloc(builder->run_count * sizeof *group->runs);
        if (!group->runs) {
            weft_object_free(&weft_group_pool, group);
            return NULL;
        }
        memcpy(group->runs, builder->runs, builder->run_count * sizeof *group->runs);
    }
    *builder = (weft_group_builder){0};
    return group;
}

int weft_group_finish(weft_group_builder *builder, weft_group **out)
{
    uint32_t size = builder->size;
    if (builder->rc) {
        int rc = builder->rc;
        fail(builder, 0);
        return rc;
    }
    if (!size) {
        *out = &weft_group_empty;
        return 0;
    }
    *out = make(builder);
    if (*out)
        return 0;
    fail(builder, 0);
    return weft_fail(WEFT_E_NOMEM, "no memory for a group of %u members", size);
}

int weft_group_range(uint64_t job, uint32_t first, int32_t stride, uint32_t count, weft_group **group)
{
    weft_group_builder builder = {0};
    weft_group_append(&builder, job, first, stride, count);
    return weft_group_finish(&builder, group);
}

int weft_group_list(uint64_t job, const uint32_t *ranks, uint32_t count, weft_group **group)
{
    weft_group_builder builder = {0};
    for (uint32_t i = 0; i < count; i++)
        weft_group_append(&builder, job, ranks[i], 1, 1);
    return weft_group_finish(&builder, group);
}

int weft_group_processes(const weft_process *processes, uint32_t count, weft_group **group)
{
    weft_group_builder builder = {0};
    for (uint32_t i = 0; i < count; i++)
        weft_group_append(&builder, processes[i].job, processes[i].rank, 1, 1);
    return weft_group_finish(&builder, group);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_memory: temporary memory of schedules: what is short lies in the schedule, the rest is blocks, which the worker keeps for later
 * schedules. Fresh pages fault, and a fault costs 0.2 us on metal and up to 10 us in a virtual machine, more than a copy of the page.
 * Called by the algorithms and sched.c; requires worker->lock.
 * Invariant: temporary memory lives as long as the schedule.
 */
#include <stdlib.h>

#include "base/memory_size.h"
#include "base/status.h"
#include "collectives/sched_internal.h"
#include "core/worker.h"
#include "core/world.h"

/* Bounds of what a worker keeps: a share of the machine's memory among the ranks of the node, within limits; and a number of blocks. */
#define OF_MEMORY 64
#define KEPT_MIN ((uint64_t)4 << 20)
#define KEPT_MAX ((uint64_t)64 << 20)
#define KEPT_BLOCKS 16
#define FIT 4 /* a kept block serves requests down to this part of its length, so that long ones stay for long requests */

typedef struct weft_sched_block {
    struct weft_sched_block *next;
    uint64_t bytes; /* usable, after this header */
} __attribute__((aligned(64))) block;

/* Blocks that no schedule uses, the latest first. */
struct weft_sched_blocks {
    block *first;
    uint32_t count;
    uint64_t bytes, bytes_max;
};

static uint64_t kept_max(const weft_worker *worker)
{
    uint32_t ranks = worker->world->boot->local_size ? worker->world->boot->local_size : 1;
    uint64_t share = weft_memory_size(0) / OF_MEMORY / ranks;
    return share < KEPT_MIN ? KEPT_MIN : share > KEPT_MAX ? KEPT_MAX : share;
}

/* The shortest kept block that fits; NULL: none. */
static block *take_kept(struct weft_sched_blocks *kept, uint64_t bytes)
{
    block **best = NULL, *found;
    for (block **at = kept ? &kept->first : NULL; at && *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (*at)->bytes / FIT <= bytes && (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    if (!best)
        return NULL;
    found = *best;
    *best = found->next;
    kept->count--;
    kept->bytes -= found->bytes;
    return found;
}

static void free_last(struct weft_sched_blocks *kept)
{
    block **at = &kept->first, *last;
    while ((*at)->next)
        at = &(*at)->next;
    last = *at;
    *at = NULL;
    kept->count--;
    kept->bytes -= last->bytes;
    free(last);
}

static void keep(weft_worker *worker, block *at)
{
    struct weft_sched_blocks *kept = worker->spare_blocks;
    if (!kept && (kept = worker->spare_blocks = calloc(1, sizeof *kept)))
        kept->bytes_max = kept_max(worker);
    if (!kept || at->bytes > kept->bytes_max) {
        free(at);
        return;
    }
    at->next = kept->first;
    kept->first = at;
    kept->count++;
    kept->bytes += at->bytes;
    while (kept->count > KEPT_BLOCKS || kept->bytes > kept->bytes_max)
        free_last(kept);
}

void weft_sched_free_blocks(weft_worker *worker)
{
    while (worker->spare_blocks && worker->spare_blocks->first)
        free_last(worker->spare_blocks);
    free(worker->spare_blocks);
    worker->spare_blocks = NULL;
}

static void *temp_bytes(weft_sched *sched, uint64_t bytes)
{
    block *fresh;

    bytes = weft_round_up(bytes ? bytes : 1, 64);
    if (bytes <= WEFT_SCHED_SMALL - sched->small_used) {
        void *place = sched->small + sched->small_used;
        sched->small_used += (uint32_t)bytes;
        return place;
    }
    fresh = take_kept(sched->team->chan->worker->spare_blocks, bytes);
    if (!fresh) {
        fresh = bytes < UINT64_MAX / 2 ? aligned_alloc(64, sizeof *fresh + bytes) : NULL;
        if (!fresh) {
            weft_sched_fail(sched, weft_fail(WEFT_E_NOMEM, "no memory for a collective: it needs %llu bytes of temporary memory",
                                             (unsigned long long)bytes));
            return NULL;
        }
        fresh->bytes = bytes;
    }
    fresh->next = sched->blocks;
    sched->blocks = fresh;
    return fresh + 1;
}

void *weft_sched_temp(weft_sched *sched, uint64_t count, const weft_type *type)
{
    int64_t span = type->true_extent;
    char *place;

    if (sched->rc)
        return NULL;
    if (count > 1) /* a negative extent grows downwards */
        span += (int64_t)(count - 1) * (type->extent < 0 ? -type->extent : type->extent);
    place = temp_bytes(sched, count ? (uint64_t)span : 0);
    if (!place)
        return NULL;
    if (count > 1 && type->extent < 0)
        place += (int64_t)(count - 1) * -type->extent;
    return place - type->true_lb;
}

void weft_sched_free_memory(weft_sched *sched)
{
    while (sched->blocks) {
        block *at = sched->blocks;
        sched->blocks = at->next;
        keep(sched->team->chan->worker, at);
    }
    if (sched->reqs != sched->few)
        free(sched->reqs);
    sched->reqs = sched->few;
    sched->req_capacity = WEFT_SCHED_FEW;
}

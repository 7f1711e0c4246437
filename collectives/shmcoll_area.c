/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_area: attaches and leaves node areas, and posts. The protocol is described in shmcoll_area.h.
 */
#include "collectives/shmcoll_area.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/worker.h"
#include "core/world.h"

#define SLOT_BYTES_MIN 256
#define SLOT_BYTES_MAX 32768u

/* ---- flags ---- */

static inline void wake(weft_shmcoll *node, uint32_t member)
{
    if (weft_unlikely(atomic_load_explicit(&node->pages[member]->asleep, memory_order_relaxed)))
        weft_page_wake(node->pages[member]);
}

static void wake_others(weft_shmcoll *node)
{
    for (uint32_t i = 0; i < node->ranks; i++)
        if (i != node->rank)
            wake(node, i);
}

void weft_shmcoll_wake_all(weft_shmcoll *node)
{
    atomic_thread_fence(memory_order_seq_cst);
    wake_others(node);
}

/* Counts a post; the last post of s wakes the members that wait for all. Pairs with has_come(): both operations are seq_cst, so either the
 * sleeper's bit is seen here, or the sleeper sees the complete count. */
static void count_post(weft_shmcoll *node, uint64_t s)
{
    weft_shmcoll_count *count = &node->hdr->count[s % WEFT_SHMCOLL_DEPTH];
    uint64_t posts = atomic_fetch_add_explicit(&count->posts, 1, memory_order_seq_cst) + 1;
    uint64_t wanted;

    if (posts % node->ranks)
        return;
    wanted = atomic_exchange_explicit(&count->wanted, 0, memory_order_seq_cst);
    for (; wanted; wanted &= wanted - 1)
        wake(node, (uint32_t)__builtin_ctzll(wanted));
}

void weft_shmcoll_post(weft_shmcoll *node, uint64_t s, int to)
{
    atomic_store_explicit(&weft_shmcoll_line_of(node, node->rank, s)->posted, s, memory_order_release); /* pairs with has_posted */
    if (node->is_oversubscribed)
        count_post(node, s);
    else if (weft_unlikely(node->needs_fence))
        atomic_thread_fence(memory_order_seq_cst); /* no membarrier(): orders the store before the load of asleep */
    else
        atomic_signal_fence(memory_order_seq_cst); /* store before load; pairs with the sleeper's membarrier() */
    if (to == WEFT_SHMCOLL_ALL || !node->is_oversubscribed) /* dedicated: make_room() of any member may wait for this post */
        wake_others(node);
    else if (to >= 0)
        wake(node, (uint32_t)to);
}

/* ---- attach and close ---- */

static uint64_t csum_bytes(uint32_t ranks)
{
    return weft_round_up((uint64_t)ranks * ranks * WEFT_SHMCOLL_DEPTH * sizeof(struct weft_shmcoll_csum), WEFT_PAGE);
}

static uint64_t lines_offset(void) { return weft_round_up(sizeof(weft_shmcoll_hdr), WEFT_PAGE); }

static uint64_t notes_offset(uint32_t ranks)
{
    return lines_offset() + (uint64_t)ranks * WEFT_SHMCOLL_DEPTH * sizeof(weft_shmcoll_line);
}

static uint64_t sums_offset(uint32_t ranks)
{
    return weft_round_up(notes_offset(ranks) + ranks * sizeof(weft_shmcoll_notes), WEFT_PAGE);
}

static uint64_t slots_offset(uint32_t ranks, unsigned flags)
{
    return sums_offset(ranks) + (flags & WEFT_SHMCOLL_CSUM ? csum_bytes(ranks) : 0);
}

static uint32_t slot_bytes(uint64_t bytes, uint32_t ranks, unsigned flags)
{
    uint64_t slot = (bytes - slots_offset(ranks, flags)) / ((uint64_t)ranks * WEFT_SHMCOLL_DEPTH) / WEFT_LINE * WEFT_LINE;
    return slot < SLOT_BYTES_MAX ? (uint32_t)slot : SLOT_BYTES_MAX;
}

uint64_t weft_shmcoll_used_bytes(uint64_t bytes, uint32_t ranks, unsigned flags)
{
    uint64_t used;

    if (bytes < slots_offset(ranks, flags))
        return bytes;
    used = slots_offset(ranks, flags) + (uint64_t)ranks * WEFT_SHMCOLL_DEPTH * slot_bytes(bytes, ranks, flags);
    return weft_round_up(used, WEFT_PAGE) < bytes ? weft_round_up(used, WEFT_PAGE) : bytes;
}

weft_shmcoll *weft_shmcoll_attach(weft_worker *worker, void *base, uint64_t bytes, uint32_t rank, uint32_t ranks,
                            weft_rank_page *const *pages, unsigned flags)
{
    weft_shmcoll *node;
    uint32_t slot;

    if (ranks < 2 || ranks > WEFT_SHMCOLL_RANKS || bytes < slots_offset(ranks, flags))
        return NULL;
    slot = slot_bytes(bytes, ranks, flags);
    if (slot < SLOT_BYTES_MIN)
        return NULL;
    node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->worker = worker;
    node->hdr = base;
    node->lines = (weft_shmcoll_line *)((char *)base + lines_offset());
    node->notes = (weft_shmcoll_notes *)((char *)base + notes_offset(ranks));
    if (flags & WEFT_SHMCOLL_CSUM)
        node->sums = (struct weft_shmcoll_csum *)((char *)base + sums_offset(ranks));
    node->slots = (char *)base + slots_offset(ranks, flags);
    node->slot_bytes = slot;
    node->rank = rank;
    node->ranks = ranks;
    node->is_oversubscribed = flags & WEFT_SHMCOLL_CROWDED;
    node->needs_fence = flags & WEFT_SHMCOLL_FENCE;
    memcpy(node->pages, pages, ranks * sizeof *pages);
    return node;
}

void weft_shmcoll_go(weft_shmcoll *node, enum weft_shmcoll_gone how)
{
    atomic_store_explicit(&node->notes[node->rank].gone, how, memory_order_release); /* pairs with weft_shmcoll_is_astray */
    weft_shmcoll_wake_all(node);
}

/* Publishes the cause, if this member is the first to stop. */
static void leave_cause(weft_shmcoll *node, int rc)
{
    weft_shmcoll_hdr *hdr = node->hdr;

    if (atomic_fetch_add_explicit(&hdr->causes, 1, memory_order_relaxed))
        return;
    hdr->cause_code = rc;
    snprintf(hdr->cause, sizeof hdr->cause, "%s", weft_fail_text(rc));
    atomic_store_explicit(&hdr->has_cause, 1, memory_order_release); /* pairs with say_gone */
}

void weft_shmcoll_leave(weft_shmcoll *node, int rc)
{
    if (node->rc)
        return;
    node->rc = rc;
    leave_cause(node, rc);
    weft_shmcoll_go(node, WEFT_SHMCOLL_STOPPED);
}

uint32_t weft_shmcoll_slot_bytes(const weft_shmcoll *node) { return node->slot_bytes; }

void weft_shmcoll_mark(weft_shmcoll *node, bool is_tainted) { node->is_tainted = is_tainted; }

bool weft_shmcoll_is_second(const weft_shmcoll *node) { return node->is_second; }

bool weft_shmcoll_is_waiting(const weft_shmcoll *node) { return node->is_waiting; }

void weft_shmcoll_close(weft_shmcoll *node)
{
    if (!node)
        return;
    weft_shmcoll_go(node, WEFT_SHMCOLL_LEFT);
    if (node->bytes) {
        const weft_segment *segment = &node->worker->world->boot->segment;
        uint32_t closed = atomic_fetch_add_explicit(&node->hdr->closed, 1, memory_order_acq_rel) + 1;

        weft_segment_drop(node->hdr, node->bytes);
        if (closed == node->ranks)
            weft_segment_release_area(segment, node->area);
    }
    free(node);
}

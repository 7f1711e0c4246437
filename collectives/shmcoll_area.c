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
#include "mem/membarrier.h"

#define SLOT_BYTES_MIN 256
#define RANKS_DEEP 64    /* members; more need the memory of lines for slots */
#define SHORT_BYTES 1024
#define SLOT_BYTES_MAX 32768u

/* ---- flags ---- */

static inline void wake(weft_shmcoll *area, uint32_t member)
{
    if (weft_unlikely(atomic_load_explicit(&area->pages[member]->asleep, memory_order_relaxed)))
        weft_page_wake(area->pages[member]);
}

static void wake_others(weft_shmcoll *area)
{
    for (uint32_t i = 0; i < area->ranks; i++)
        if (i != area->rank)
            wake(area, i);
}

/* What this member has stored precedes its loads of `asleep`; pairs with the sleeper's membarrier(). */
static inline void order_for_waker(const weft_shmcoll *area)
{
    if (weft_unlikely(area->needs_fence)) /* a member has no membarrier() */
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
}

void weft_shmcoll_wake_all(weft_shmcoll *area)
{
    order_for_waker(area);
    wake_others(area);
}

/* Member 64 * word + bit sleeps, or is about to. Wakes it if all have posted what it awaits. The fence orders this member's post before
 * the loads of the others': of the last posters at least one sees all posts. Clears the bit first: the woken member may set it again. */
static __attribute__((noinline)) void wake_if_complete(weft_shmcoll *area, uint32_t word, uint64_t bit)
{
    uint32_t member = word * 64 + (uint32_t)__builtin_ctzll(bit);

    atomic_thread_fence(memory_order_seq_cst); /* also after the load of its bit: it has set `wants` before */
    if (!weft_shmcoll_is_complete(area, atomic_load_explicit(&area->call_logs[member].wants, memory_order_relaxed)))
        return;
    atomic_fetch_and_explicit(&area->hdr->wanted[word], ~bit, memory_order_seq_cst);
    weft_page_wake(area->pages[member]);
}

/* Wakes the members that this post of theirs completes what they await. Pairs with weft_shmcoll_want(): either the bit is seen here, or the
 * sleeper sees the post. */
static inline void wake_wanting(weft_shmcoll *area)
{
    for (uint32_t i = 0; i * 64 < area->ranks; i++) {
        uint64_t wanted = atomic_load_explicit(&area->hdr->wanted[i], memory_order_relaxed);
        for (; weft_unlikely(wanted); wanted &= wanted - 1)
            wake_if_complete(area, i, wanted & -wanted);
    }
}

void weft_shmcoll_want(weft_shmcoll *area, uint64_t s)
{
    _Atomic uint64_t *wanted = &area->hdr->wanted[area->rank / 64];
    uint64_t bit = (uint64_t)1 << area->rank % 64;

    atomic_store_explicit(&area->call_logs[area->rank].wants, s, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(wanted, memory_order_relaxed) & bit)
        return; /* the posters that have seen it issue a fence, those that have not were ordered when it was set */
    atomic_fetch_or_explicit(wanted, bit, memory_order_seq_cst);
    if (!area->needs_fence)
        weft_membarrier();
}

static inline void publish(weft_shmcoll *area, uint64_t s)
{
    atomic_store_explicit(&weft_shmcoll_line_of(area, area->rank, s)->posted, s, memory_order_release); /* pairs with has_posted */
    weft_prefetch_write(weft_shmcoll_line_of(area, area->rank, s + 2)); /* not s + 1: others may poll it */
    order_for_waker(area);
    if (area->is_oversubscribed)
        wake_wanting(area);
}

void weft_shmcoll_post_relay(weft_shmcoll *area, uint64_t s)
{
    publish(area, s);
    if (!area->is_oversubscribed) {
        wake_others(area);
        return;
    }
    if (area->rank + 1 < area->ranks)
        wake(area, area->rank + 1);
    if (area->rank)
        wake(area, area->rank - 1);
}

void weft_shmcoll_post(weft_shmcoll *area, uint64_t s, int to)
{
    publish(area, s);
    if (to == WEFT_SHMCOLL_ALL || !area->is_oversubscribed) /* dedicated: await_reusable() of any member may wait for this post */
        wake_others(area);
    else if (to >= 0)
        wake(area, (uint32_t)to);
}

/* ---- attach and close ---- */

static uint64_t csum_bytes(uint32_t ranks)
{
    return weft_round_up((uint64_t)ranks * ranks * WEFT_SHMCOLL_SLOTS * sizeof(struct weft_shmcoll_csum), WEFT_PAGE);
}

static uint64_t lines_offset(void) { return weft_round_up(sizeof(weft_shmcoll_hdr), WEFT_PAGE); }

static uint32_t depth_of(uint32_t ranks, unsigned flags)
{
    if (!(flags & WEFT_SHMCOLL_OVERSUBSCRIBED))
        return WEFT_SHMCOLL_SLOTS;
    return flags & WEFT_SHMCOLL_LANE || ranks > RANKS_DEEP ? WEFT_SHMCOLL_SHALLOW : WEFT_SHMCOLL_DEPTH;
}

/* A slot has one part for each SLOTS lines. If such a part is shorter than SHORT_BYTES, a slot has half as many parts. */
static uint32_t parts_of(const weft_shmcoll *area)
{
    uint32_t parts = area->depth / WEFT_SHMCOLL_SLOTS;

    return area->depth == WEFT_SHMCOLL_DEPTH && area->slot_bytes / parts < SHORT_BYTES ? parts / 2 : parts;
}

static uint64_t call_logs_offset(uint32_t ranks, unsigned flags)
{
    return lines_offset() + (uint64_t)ranks * depth_of(ranks, flags) * sizeof(weft_shmcoll_line);
}

static uint64_t csums_offset(uint32_t ranks, unsigned flags)
{
    return weft_round_up(call_logs_offset(ranks, flags) + ranks * sizeof(weft_shmcoll_call_log), WEFT_PAGE);
}

static uint64_t slots_offset(uint32_t ranks, unsigned flags)
{
    return csums_offset(ranks, flags) + (flags & WEFT_SHMCOLL_CSUM ? csum_bytes(ranks) : 0);
}

static uint32_t slot_bytes(uint64_t bytes, uint32_t ranks, unsigned flags)
{
    uint64_t slot = (bytes - slots_offset(ranks, flags)) / ((uint64_t)ranks * WEFT_SHMCOLL_SLOTS) / WEFT_LINE * WEFT_LINE;
    return slot < SLOT_BYTES_MAX ? (uint32_t)slot : SLOT_BYTES_MAX;
}

uint64_t weft_shmcoll_used_bytes(uint64_t bytes, uint32_t ranks, unsigned flags)
{
    uint64_t used;

    if (bytes < slots_offset(ranks, flags))
        return bytes;
    used = slots_offset(ranks, flags) + (uint64_t)ranks * WEFT_SHMCOLL_SLOTS * slot_bytes(bytes, ranks, flags);
    return weft_round_up(used, WEFT_PAGE) < bytes ? weft_round_up(used, WEFT_PAGE) : bytes;
}

/* Sets what depends on the memory and the flags. area->ranks is set. */
static void lay_out(weft_shmcoll *area, void *base, uint64_t bytes, unsigned flags)
{
    uint32_t ranks = area->ranks;

    area->hdr = base;
    area->depth = depth_of(ranks, flags);
    area->lines = (weft_shmcoll_line *)((char *)base + lines_offset());
    area->call_logs = (weft_shmcoll_call_log *)((char *)base + call_logs_offset(ranks, flags));
    if (flags & WEFT_SHMCOLL_CSUM)
        area->csums = (struct weft_shmcoll_csum *)((char *)base + csums_offset(ranks, flags));
    area->slots = (char *)base + slots_offset(ranks, flags);
    area->slot_bytes = slot_bytes(bytes, ranks, flags);
    area->parts = parts_of(area);
    area->short_bytes = area->parts > 1 ? area->slot_bytes / area->parts / WEFT_LINE * WEFT_LINE : 0;
    area->is_oversubscribed = flags & WEFT_SHMCOLL_OVERSUBSCRIBED;
    area->needs_fence = flags & WEFT_SHMCOLL_FENCE;
    weft_list_init(&area->pending);
    weft_list_init(&area->link);
    weft_list_init(&area->lanes_taken);
}

weft_shmcoll *weft_shmcoll_attach(weft_worker *worker, void *base, uint64_t bytes, uint32_t rank, uint32_t ranks,
                            weft_rank_page *const *pages, unsigned flags)
{
    weft_shmcoll *area;

    if (ranks < 2 || ranks > WEFT_SHMCOLL_RANKS || bytes < slots_offset(ranks, flags) ||
        slot_bytes(bytes, ranks, flags) < SLOT_BYTES_MIN)
        return NULL;
    area = calloc(1, sizeof *area);
    if (!area)
        return NULL;
    area->worker = worker;
    area->rank = rank;
    area->ranks = ranks;
    lay_out(area, base, bytes, flags);
    memcpy(area->pages, pages, ranks * sizeof *pages);
    return area;
}

static unsigned flags_of(const weft_shmcoll *area)
{
    return (area->is_oversubscribed ? WEFT_SHMCOLL_OVERSUBSCRIBED : 0) | (area->needs_fence ? WEFT_SHMCOLL_FENCE : 0) |
           (area->csums ? WEFT_SHMCOLL_CSUM : 0);
}

uint64_t weft_shmcoll_bytes_of(const weft_shmcoll *area, uint32_t slot_bytes, uint64_t *head)
{
    uint64_t slot = weft_round_up(slot_bytes ? slot_bytes : 1, WEFT_LINE);

    *head = slots_offset(area->ranks, flags_of(area) | WEFT_SHMCOLL_LANE);
    return weft_round_up(*head + area->ranks * WEFT_SHMCOLL_SLOTS * slot, WEFT_PAGE);
}

void weft_shmcoll_attach_lane(weft_shmcoll *area, void *base, uint64_t bytes, weft_shmcoll *lane)
{
    lane->worker = area->worker;
    lane->rank = area->rank;
    lane->ranks = area->ranks;
    lane->team = area->team;
    lane->node_ranks = area->node_ranks;
    lane->is_lane = true;
    lay_out(lane, base, bytes, flags_of(area) | WEFT_SHMCOLL_LANE);
    memcpy(lane->pages, area->pages, area->ranks * sizeof *area->pages);
}

void weft_shmcoll_set_gone(weft_shmcoll *area, enum weft_shmcoll_gone how)
{
    atomic_store_explicit(&area->call_logs[area->rank].gone, how, memory_order_release); /* pairs with weft_shmcoll_never_posts */
    weft_shmcoll_wake_all(area);
}

/* Publishes the cause, if this member is the first to stop. */
static void publish_cause(weft_shmcoll *area, int rc)
{
    weft_shmcoll_hdr *hdr = area->hdr;

    if (atomic_fetch_add_explicit(&hdr->causes, 1, memory_order_relaxed))
        return;
    hdr->cause_code = rc;
    snprintf(hdr->cause, sizeof hdr->cause, "%s", weft_fail_text(rc));
    atomic_store_explicit(&hdr->has_cause, 1, memory_order_release); /* pairs with describe_gone */
}

void weft_shmcoll_leave(weft_shmcoll *area, int rc)
{
    if (area->rc)
        return;
    area->rc = rc;
    publish_cause(area, rc);
    weft_shmcoll_set_gone(area, WEFT_SHMCOLL_STOPPED);
}

uint32_t weft_shmcoll_slot_bytes(const weft_shmcoll *area) { return area->slot_bytes; }

void weft_shmcoll_set_tainted(weft_shmcoll *area, bool is_tainted) { area->is_tainted = is_tainted; }

bool weft_shmcoll_is_second(const weft_shmcoll *area) { return area->is_second; }

bool weft_shmcoll_is_waiting(const weft_shmcoll *area) { return area->is_waiting; }

void weft_shmcoll_close(weft_shmcoll *area)
{
    weft_list_link *link;
    uint32_t closed;

    if (!area)
        return;
    weft_shmcoll_set_gone(area, WEFT_SHMCOLL_LEFT);
    closed = atomic_fetch_add_explicit(&area->hdr->closed, 1, memory_order_acq_rel) + 1; /* a lane may be taken again from here on */
    if (area->bytes) {
        const weft_segment *segment = &area->worker->world->boot->segment;

        weft_segment_drop(area->hdr, area->bytes);
        if (closed == area->ranks)
            weft_segment_free_area(segment, area->area_index);
    }
    while ((link = weft_list_take(&area->lanes_taken)))
        free(weft_container(link, weft_shmcoll_taken, link));
    free(area->exchange);
    free(area->shorts);
    free(area);
}

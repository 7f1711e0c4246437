/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex_node: see modex_node.h.
 */
#include "tools/mpirun/modex_node.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status.h"
#include "mem/wakeup_sock.h"
#include "tools/mpirun/report.h"

static void futex_wake(void *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint64_t modex_node_bytes(const map *map)
{
    return map && map->node_count > 1 ? weft_modex_cache_bytes(map->ranks) : 0;
}

int modex_node_open(modex_node *self, const weft_segment *segment, const node_rank *ranks, const map *map, uint32_t index,
                    const modex_node_callbacks *up)
{
    void *view;

    *self = (modex_node){.segment = segment, .ranks = ranks, .count = map->nodes[index].count, .map = map, .up = *up, .wakeup = -1};
    if (!segment->hdr->extra_bytes)
        return 0;
    int rc = weft_segment_claim(segment, segment->hdr->extra, weft_modex_cache_front_bytes(map->ranks));
    if (!rc)
        rc = weft_segment_view(segment, segment->hdr->extra, segment->hdr->extra_bytes, &view);
    if (rc)
        return report(1, "%s", weft_fail_text(rc));
    self->cache = view;
    self->requested = calloc(self->count, 1);
    if (!self->requested)
        return report(1, "out of memory");
    weft_modex_cache_make(self->cache, map->ranks, map->node_count, index, map->node_of, map->local_of);
    self->wakeup = weft_wakeup_sock_open(&self->cache->wakeup); /* if -1, modex_node_progress is called once a second */
    return 0;
}

/* Replies to requests for local ranks whose address is published, or which ended or finalized without one. */
static void requests_answer(modex_node *self)
{
    for (uint32_t i = 0; i < self->count && self->requested_count; i++) {
        weft_rank_page *page = weft_segment_rank(self->segment, i);
        if (!self->requested[i])
            continue;
        uint32_t stage = atomic_load(&page->state) << WEFT_MODEX_STAGE_SHIFT;
        if (atomic_load(&page->modex_ready)) {
            uint32_t bytes = page->modex_bytes < WEFT_MODEX_CAPACITY ? page->modex_bytes : WEFT_MODEX_CAPACITY;
            self->up.data(self->up.owner, self->ranks[i].rank, stage | WEFT_MODEX_READY, page->modex, bytes);
        } else if (self->ranks[i].is_gone || atomic_load(&page->state) == WEFT_RANK_FINAL) {
            self->up.data(self->up.owner, self->ranks[i].rank, stage | WEFT_MODEX_FAILED, NULL, 0);
        } else {
            continue;
        }
        self->requested[i] = 0;
        self->requested_count--;
    }
    atomic_store(&self->cache->has_requests, self->requested_count != 0);
}

void modex_node_progress(modex_node *self)
{
    if (!self->cache)
        return;
    if (self->wakeup >= 0)
        weft_wakeup_sock_drain(self->wakeup);
    for (uint32_t w = 0; w * 64 < self->map->ranks; w++) {
        _Atomic uint64_t *word = &weft_modex_requested(self->cache)[w];
        uint64_t bits = atomic_load_explicit(word, memory_order_relaxed) ? atomic_exchange(word, 0) : 0;
        for (; bits; bits &= bits - 1) {
            uint32_t rank = w * 64 + (uint32_t)__builtin_ctzll(bits);
            if (rank < self->map->ranks)
                self->up.request(self->up.owner, rank);
        }
    }
    if (self->requested_count)
        requests_answer(self);
    while (atomic_load(&self->segment->hdr->fences[0]) >= (self->fences + 1) * self->count)
        self->up.fence(self->up.owner, ++self->fences);
}

void modex_node_request(modex_node *self, uint32_t rank)
{
    if (!self->cache || rank >= self->map->ranks || self->map->node_of[rank] != self->cache->node)
        return;
    uint32_t local = self->map->local_of[rank];
    self->requested_count += !self->requested[local];
    self->requested[local] = 1;
    atomic_store(&self->cache->has_requests, 1); /* before modex_ready is read; pairs with the commit in launch/boot_mpirun.c */
    requests_answer(self);
}

void modex_node_fill(modex_node *self, uint32_t rank, uint32_t state, const void *data, size_t bytes)
{
    if (!self->cache || rank >= self->map->ranks || bytes > WEFT_MODEX_CAPACITY)
        return;
    weft_modex_entry *entry = weft_modex_entry_of(self->cache, rank);
    if (state >> WEFT_MODEX_STAGE_SHIFT) /* not set where the head knows no more than that the address is not to be had */
        atomic_store_explicit(weft_modex_stage(self->cache, rank), 1 + (state >> WEFT_MODEX_STAGE_SHIFT), memory_order_release);
    state &= WEFT_MODEX_STATE_MASK;
    if (atomic_load_explicit(weft_modex_state(self->cache, rank), memory_order_relaxed) == WEFT_MODEX_READY)
        return; /* ranks may be reading it */
    uint64_t at = self->segment->hdr->extra + (uint64_t)((char *)entry - (char *)self->cache);
    if (state == WEFT_MODEX_READY && weft_segment_claim(self->segment, at, sizeof(*entry)))
        state = WEFT_MODEX_FAILED; /* out of memory here: the requesting rank reports an error */
    if (state == WEFT_MODEX_READY) {
        memcpy(entry->modex, data, bytes);
        entry->bytes = (uint32_t)bytes;
    }
    atomic_store_explicit(weft_modex_state(self->cache, rank),
                          state == WEFT_MODEX_READY ? WEFT_MODEX_READY : WEFT_MODEX_FAILED, memory_order_release);
    futex_wake(weft_modex_state(self->cache, rank));
}

void modex_node_fenced(modex_node *self, uint64_t number)
{
    if (!self->cache)
        return;
    atomic_store_explicit(&self->cache->fenced, number, memory_order_release);
    futex_wake(weft_modex_futex(&self->cache->fenced));
}

void modex_node_close(modex_node *self)
{
    if (self->wakeup >= 0)
        weft_wakeup_sock_close(&self->cache->wakeup, self->wakeup);
    self->wakeup = -1;
    if (self->cache)
        weft_segment_drop(self->cache, self->segment->hdr->extra_bytes);
    self->cache = NULL;
    free(self->requested);
    self->requested = NULL;
}

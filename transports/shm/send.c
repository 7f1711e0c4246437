/* SPDX-License-Identifier: BSD-3-Clause
 *
 * send: the sender's half of shared memory: puts a frame into the pair's ring and its body into the cell, the ring's blocks or a chunk of
 * the bulk pool. p2p calls it through transport/iface.h. If ring or pool are full it returns WEFT_AGAIN and sets `wanted`; the receiver
 * then wakes the sender. Ordering with a receiver that sleeps: recv.c.
 */
#include "transports/shm/shm.h"

#include <stdlib.h>

#include "base/status.h"

static __attribute__((noinline)) int open_out(shm_iface *shm, shm_ep *ep)
{
    uint64_t offset = shm_ring_offset(shm, ep->local, shm->local);
    void *addr;
    int rc = weft_segment_claim(shm->segment, offset, WEFT_RING_FRONT);
    if (rc == 0)
        rc = weft_segment_view(shm->segment, offset, WEFT_RING_BYTES, &addr);
    if (rc == 0)
        weft_ring_out_open(&ep->out, addr);
    return rc;
}

static int alloc_chunk(shm_iface *shm, shm_ep *ep, const weft_frame *frame, uint32_t *place, void **body)
{
    uint32_t index;
    int rc;
    if (frame->hdr.bytes > WEFT_BULK_CHUNK)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes does not fit a chunk of %d", frame->hdr.bytes, WEFT_BULK_CHUNK);
    rc = weft_bulk_alloc(&shm->bulk, &ep->share, &index);
    if (rc)
        return rc;
    *place = WEFT_PLACE_CHUNK | index;
    *body = shm->bulk.bulk->chunks[index];
    return 0;
}

static int claim_blocks(shm_iface *shm, shm_ep *ep)
{
    uint64_t offset = shm_ring_offset(shm, ep->local, shm->local);
    int rc = weft_segment_claim(shm->segment, offset + WEFT_RING_FRONT, WEFT_RING_BYTES - WEFT_RING_FRONT);
    if (rc == 0 && !(ep->out.bodies = malloc(WEFT_RING_BODIES * sizeof *ep->out.bodies)))
        rc = weft_fail(WEFT_E_NOMEM, "no memory to send to local rank %u", ep->local);
    return rc;
}

/* Allocates a chunk or blocks for a body longer than a cell. */
static __attribute__((noinline)) int find_place(shm_iface *shm, shm_ep *ep, const weft_frame *frame, uint32_t *place, void **body)
{
    int rc;
    if (frame->hdr.bytes > WEFT_SHM_HOT_MAX) {
        rc = alloc_chunk(shm, ep, frame, place, body);
        if (rc != WEFT_AGAIN || frame->hdr.bytes > WEFT_RING_BODY_MAX)
            return rc;
    }
    if (weft_unlikely(!ep->out.bodies) && (rc = claim_blocks(shm, ep)))
        return rc;
    if (!weft_ring_reserve(&ep->out, frame->hdr.bytes, place))
        return WEFT_AGAIN;
    *body = weft_ring_body_at(ep->out.ring, *place);
    return 0;
}

/* The receiver does not poll this ring: sets the sender's active bit and wakes it. Pairs with weft_shm_activate_rings(). */
static __attribute__((noinline)) void raise_wakeup(shm_iface *shm, shm_ep *ep)
{
    weft_rank_page *page = ep->page;
    uint32_t word = shm->local / 64;
    atomic_fetch_or_explicit(&page->active[word], 1ull << (shm->local % 64), memory_order_seq_cst);
    atomic_fetch_or_explicit(&page->active_summary, 1ull << word, memory_order_seq_cst);
    weft_page_wake(page);
}

/* Requests a wakeup when space is free. Only the sender clears `wanted`, in clear_blocked(). */
static int refuse(shm_ep *ep)
{
    ep->is_blocked = true;
    atomic_store_explicit(&ep->out.ring->wanted, 1, memory_order_relaxed);
    return WEFT_AGAIN;
}

static void clear_blocked(shm_ep *ep)
{
    ep->is_blocked = false;
    atomic_store_explicit(&ep->out.ring->wanted, 0, memory_order_relaxed);
}

/* The cell is published: notifies a receiver that sleeps or does not poll this ring. */
static inline void announce(shm_iface *shm, shm_ep *ep)
{
    uint32_t flags;
    atomic_signal_fence(memory_order_seq_cst); /* pairs with the membarrier of order_for_senders(): publish before loads */
    flags = atomic_load_explicit(&ep->out.ring->flags, memory_order_relaxed);
    if (weft_unlikely(flags != ep->announce_flags)) {
        if (!(flags & WEFT_RING_OPEN)) {
            raise_wakeup(shm, ep);
            return;
        }
        atomic_thread_fence(memory_order_seq_cst);
        if (!(atomic_load_explicit(&ep->out.ring->flags, memory_order_relaxed) & WEFT_RING_OPEN)) { /* closed before the fence */
            raise_wakeup(shm, ep);
            return;
        }
    }
    weft_page_wake_if_asleep(ep->page);
}

void weft_shm_send_short(weft_ep *generic, uint64_t head0, uint64_t head1, uint64_t head2, const void *body)
{
    shm_ep *ep = (shm_ep *)generic;
    weft_cell *cell = weft_ring_next(&ep->out);
    uint64_t *head = (uint64_t *)&cell->hdr;
    uint32_t bytes = (uint32_t)(head2 >> 32);
    cell->place = 0;
    memcpy(&head[0], &head0, 8);
    memcpy(&head[1], &head1, 8);
    memcpy(&head[2], &head2, 8);
    if (weft_likely(bytes == 8))
        memcpy(cell->body, body, 8);
    else
        weft_copy_short(cell->body, body, bytes);
    ep->ep.cells_free--;
    weft_ring_publish(&ep->out, cell);
    weft_prefetch_write(cell + WEFT_RING_AHEAD_OUT);
    announce((shm_iface *)ep->ep.iface, ep);
}

static bool has_scratch(shm_iface *shm)
{
    if (!shm->scratch)
        shm->scratch = malloc(WEFT_BULK_CHUNK);
    return shm->scratch;
}

/* Copies a body into its place. Returns flags for the place. */
static inline uint32_t copy_body(shm_iface *shm, const shm_ep *ep, uint32_t place, void *body, const void *from, uint32_t bytes)
{
    enum weft_warmth warmth = weft_ring_warmth(place);
    weft_nt_copy *store = &shm->store[warmth];
    uint32_t how = weft_nt_copy_body(store, body, from, bytes);
    if (weft_unlikely(weft_nt_copy_wants_report(store, how))) {
        const _Atomic uint32_t *read_ps = ep->out.ring->read_ps[warmth];
        weft_nt_copy_report(store, atomic_load_explicit(&read_ps[WEFT_STORE_CACHED], memory_order_relaxed),
                            atomic_load_explicit(&read_ps[WEFT_STORE_PAST], memory_order_relaxed));
    }
    return (how & WEFT_COPY_TIMED ? WEFT_PLACE_TIMED : 0) | (how & WEFT_COPY_PAST ? WEFT_PLACE_PAST : 0);
}

/* Packs a body into its place; with non-temporal stores, or while these are measured, into private memory first. Returns flags for the
 * place. */
static __attribute__((noinline)) uint32_t fill(shm_iface *shm, const shm_ep *ep, uint32_t place, void *body, const weft_frame *frame)
{
    weft_nt_copy *store = &shm->store[weft_ring_warmth(place)];
    if (frame->hdr.bytes >= WEFT_NT_COPY_MIN && weft_nt_copy_is_wanted(store) && has_scratch(shm)) {
        frame->pack(frame, shm->scratch);
        return copy_body(shm, ep, place, body, shm->scratch, frame->hdr.bytes);
    }
    frame->pack(frame, body);
    store->count += frame->hdr.bytes >= WEFT_NT_COPY_MIN;
    return 0;
}

int weft_shm_send(weft_iface *iface, weft_ep *generic, const weft_frame *frame)
{
    shm_iface *shm = (shm_iface *)iface;
    shm_ep *ep = (shm_ep *)generic;
    weft_cell *cell;
    uint32_t place = 0;
    void *body;
    int rc;
    if (weft_unlikely(!ep->out.ring) && (rc = open_out(shm, ep)))
        return rc;
    ep->ep.cells_free = weft_ring_cells_free(&ep->out);
    if (weft_unlikely(!ep->ep.cells_free))
        return refuse(ep);
    cell = weft_ring_next(&ep->out);
    body = cell->body;
    if (frame->hdr.bytes > WEFT_RING_INLINE && (rc = find_place(shm, ep, frame, &place, &body)))
        return rc == WEFT_AGAIN ? refuse(ep) : rc;
    cell->hdr = frame->hdr;
    if (place)
        cell->body[0] = ep->in.consumed;
    if (weft_unlikely(frame->pack != NULL))
        place |= fill(shm, ep, place, body, frame);
    else if (place)
        place |= copy_body(shm, ep, place, body, frame->body, frame->hdr.bytes);
    else
        weft_copy_short(body, frame->body, frame->hdr.bytes);
    cell->place = place;
    ep->ep.cells_free--;
    weft_ring_publish(&ep->out, cell);
    weft_prefetch_write(cell + WEFT_RING_AHEAD_OUT);
    if (weft_unlikely(ep->is_blocked))
        clear_blocked(ep);
    announce(shm, ep);
    return 0;
}

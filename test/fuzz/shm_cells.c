/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm_cells: what a damaged neighbour writes into shared memory (transports/shm): cells of its ring, the count of cells that it has
 * consumed, flags of chunks that it frees. Rank 0 receives and answers; no body may lie outside of the ring and the chunks. The input, in
 * turn until its end: a cell (64 bytes; its lap is replaced by the awaited one), the count (4), a chunk of rank 0 (1; 240 and more: none),
 * the length of rank 0's next frame (2; 0: none).
 */
#include "base/macros.h"
#include "test/fuzz/fuzz.h"
#include "test/unit/shm_ranks.h"
#include "transports/shm/shm.h"

static shm_ranks ranks;
static bool has_failed; /* the neighbour */
static volatile uint8_t seen;

static shm_ep *neighbour(void) { return ((shm_iface *)ranks.ifaces[0])->eps[1]; }

static bool is_within(const void *body, uint32_t bytes, const void *memory, size_t capacity)
{
    size_t at = (size_t)((const char *)body - (const char *)memory);
    return at <= capacity && bytes <= capacity - at;
}

static void recv_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    const shm_ep *ep = neighbour();
    (void)owner, (void)peer;
    if (!is_within(body, hdr->bytes, ep->in.ring, sizeof *ep->in.ring) &&
        !(ep->bulk && is_within(body, hdr->bytes, ep->bulk->chunks, sizeof ep->bulk->chunks)))
        abort();
    for (uint32_t i = 0; i < hdr->bytes; i++)
        seen = ((const uint8_t *)body)[i];
}

static void peer_failed(void *owner, void *peer, int rc)
{
    (void)owner, (void)peer, (void)rc;
    has_failed = true;
}

static void *accept_peer(void *owner, const weft_proc_id *proc_id) { return shm_ranks_accept(&ranks, owner, proc_id); }

static void answer(weft_ep *ep, uint32_t bytes)
{
    static uint8_t body[WEFT_BULK_CHUNK];
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .bytes = bytes}, .body = body};
    if (bytes <= sizeof body && bytes <= ep->iface->caps.frame_max)
        weft_shm_ops.send(ep->iface, ep, &frame);
}

/* What the neighbour writes before rank 0 looks. ring: from it; out: to it, NULL before the first frame. */
static void write_cell(fuzz_input *in, weft_ring *ring, uint32_t count)
{
    const shm_ep *ep = neighbour();
    weft_cell cell;
    uint8_t chunk;
    uint32_t consumed;
    fuzz_take(in, &cell, sizeof cell);
    consumed = fuzz_take_u32(in);
    fuzz_take(in, &chunk, sizeof chunk);
    atomic_store(&cell.lap, 1 + count / WEFT_RING_CELLS);
    memcpy(&ring->cells[count % WEFT_RING_CELLS], &cell, sizeof cell);
    if (ep->out.ring)
        atomic_store(&ep->out.ring->consumed, consumed);
    if (((shm_iface *)ranks.ifaces[0])->bulk.bulk && chunk < WEFT_BULK_COUNT)
        weft_bulk_free(((shm_iface *)ranks.ifaces[0])->bulk.bulk, chunk);
    weft_rank_page *page = weft_segment_rank(&ranks.segment, 0);
    atomic_fetch_or(&page->active[0], 2);
    atomic_fetch_or(&page->active_summary, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = recv_frame, .accept_peer = accept_peer, .peer_failed = peer_failed};
    fuzz_input in = {data, size};
    void *ring;
    weft_ep *ep;
    if (!shm_ranks_open(&ranks, 2, &callbacks, NULL) || !(ep = shm_ranks_connect(&ranks, 0, 1, &ranks)) ||
        weft_segment_view(&ranks.segment, shm_ring_offset((shm_iface *)ranks.ifaces[0], 0, 1), WEFT_RING_BYTES, &ring))
        abort();
    has_failed = false;
    for (uint32_t count = 0; in.left && !has_failed; count++) {
        uint16_t bytes;
        write_cell(&in, ring, count);
        weft_shm_ops.poll(ranks.ifaces[0], 32);
        fuzz_take(&in, &bytes, sizeof bytes);
        if (bytes && !has_failed)
            answer(ep, bytes);
    }
    weft_segment_drop(ring, WEFT_RING_BYTES);
    shm_ranks_close(&ranks);
    return 0;
}

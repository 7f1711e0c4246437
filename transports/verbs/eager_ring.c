/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager_ring: short frames of a busy peer, written by RDMA into memory that the receiver polls (docs/verbs.md, "A frame"). Called by
 * flow.c, replay.c and iface.c. The reader offers the memory (RING_OPEN) and reclaims it before it sleeps (RING_SHUT); it owns it again
 * when RING_DONE has come, which is behind the writer's last write on the same QP. The end of an epoch ends its rings.
 *
 * A cell holds one frame, aligned to its end; the last word is {turn, length, check}. If the device makes the bytes of a write visible in
 * order, that word proves that all have arrived. If a knob forces rings without that guarantee, `check` covers the frame and the reader
 * polls until it matches. A cell is free when prefix.ack of a received frame covers its frame. Frames that are too long or find no free
 * cell use the queue; frame numbers restore the common order (flow.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#define CELLS 64u
#define CELL_BYTES 2048u
#define RINGS_MAX 8u         /* rings that an iface offers at one time: 1 MiB */
#define BUSY_NS 50000000ull   /* a peer that sends VERBS_RING_BUSY frames in this time is busy */
#define IDLE_NS 20000000ull   /* a ring without frames for this time may be taken back for another peer */
#define SHUT_SPIN_NS 200000ull /* arm returns AGAIN this long for RING_DONE, then limits sleeps to NAP_NS */
#define NAP_NS 1000000ull

typedef struct ring_tail {
    uint32_t turn; /* number of the frame in the ring, from 1 */
    uint16_t bytes; /* on the wire */
    uint16_t check;
} ring_tail;
_Static_assert(sizeof(ring_tail) == 8, "one word, stored at once");

enum ring_state { RING_NONE, RING_OPEN, RING_SHUTTING };

struct verbs_eager_ring {
    weft_list_link by_iface; /* in iface->rings while in != RING_NONE */
    verbs_ep *ep;
    /* reader's side */
    enum ring_state in;
    verbs_slab *slab;
    uint32_t consumed;    /* frames read */
    uint64_t last_ns;  /* time of the last frame, sampled */
    uint64_t shut_ns;  /* time when RING_SHUT was sent; 0: it was not */
    /* writer's side */
    bool is_out, done_due;
    uint64_t remote_addr;
    uint32_t remote_rkey, remote_cells, written, freed;
    uint32_t seqs[CELLS]; /* frame numbers in the cells */
};

bool verbs_eager_ring_can_use(const verbs_ep *ep)
{
    const verbs_rail *rail = ep->home ? ep->home->rail : NULL;
    if (!rail || rail->is_iwarp || ep->iface->is_small || weft_knob.eager_ring == WEFT_EAGER_RING_NEVER)
        return false;
    return verbs_rc_qp_is_in_order(ep->home) || weft_knob.eager_ring == WEFT_EAGER_RING_FORCE;
}

/* Cheap checksum that differs if a cache line is old. */
static uint16_t check_of(const void *from, uint32_t bytes, uint32_t turn)
{
    const uint8_t *at = from;
    uint64_t sum = turn * 0x9e3779b97f4a7c15ull, word;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        memcpy(&word, at, 8);
        sum = (sum ^ word) * 0xff51afd7ed558ccdull;
        sum ^= sum >> 32;
    }
    for (; bytes; bytes--)
        sum = (sum ^ *at++) * 0x100000001b3ull;
    return (uint16_t)(sum ^ sum >> 16 ^ sum >> 32 ^ sum >> 48);
}

static struct verbs_eager_ring *ring_of(verbs_ep *ep)
{
    struct verbs_eager_ring *ring = ep->ring ? ep->ring : calloc(1, sizeof *ring);
    if (ring && !ep->ring) {
        ring->ep = ep;
        weft_list_init(&ring->by_iface);
        ep->ring = ring;
    }
    return ring;
}

/* -- writing -- */

static void free_cells(verbs_ep *ep, struct verbs_eager_ring *ring)
{
    while (ring->freed != ring->written && verbs_seq_diff(ep->remote_rx, ring->seqs[ring->freed % CELLS]) >= 0)
        ring->freed++;
}

bool verbs_eager_ring_has_space(verbs_ep *ep, uint32_t bytes)
{
    struct verbs_eager_ring *ring = ep->ring;
    if (!ring->is_out || weft_round_up(bytes, 8) + sizeof(ring_tail) > CELL_BYTES)
        return false;
    if (ring->written - ring->freed >= ring->remote_cells)
        free_cells(ep, ring);
    return ring->written - ring->freed < ring->remote_cells;
}

void verbs_eager_ring_send(verbs_ep *ep, verbs_slot *slot, bool signals)
{
    struct verbs_eager_ring *ring = ep->ring;
    verbs_rc_qp *qp = ep->home;
    verbs_rail *rail = qp->rail;
    uint32_t whole = weft_round_up(slot->bytes, 8), cell = ring->written % ring->remote_cells;
    ring_tail tail = {.turn = ring->written + 1, .bytes = (uint16_t)slot->bytes};
    struct ibv_sge sge = {(uintptr_t)slot->wire, whole + (uint32_t)sizeof tail, slot->slab->lkey[rail->index]};
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&slot->work, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
    memset((uint8_t *)slot->wire + slot->bytes, 0, whole - slot->bytes);
    tail.check = check_of(slot->wire, whole, tail.turn);
    memcpy((uint8_t *)slot->wire + whole, &tail, sizeof tail);
    request.wr.rdma.rkey = ring->remote_rkey;
    request.wr.rdma.remote_addr = ring->remote_addr + (uint64_t)(cell + 1) * CELL_BYTES - sizeof tail - whole;
    if (sge.length <= rail->max_inline)
        request.send_flags |= IBV_SEND_INLINE;
    if (signals)
        request.send_flags |= IBV_SEND_SIGNALED;
    ring->seqs[ring->written % CELLS] = slot->seq;
    ring->written++;
    slot->work = (verbs_work){.kind = VERBS_WORK_RING, .rail = rail->index, .qp = qp};
    slot->is_posted = true;
    ep->iface->counts[VERBS_COUNT_RING_FRAMES]++;
    verbs_post(qp, &request, 1);
}

static void send_done(verbs_ep *ep)
{
    struct verbs_eager_ring *ring = ep->ring;
    ring->done_due = verbs_flow_control(ep, VERBS_KIND_RING_DONE, NULL) != 0;
    if (ring->done_due)
        verbs_flow_queue_due(ep);
}

bool verbs_eager_ring_send_due(verbs_ep *ep)
{
    if (ep->ring && ep->ring->done_due)
        send_done(ep);
    return ep->ring && ep->ring->done_due;
}

static bool open_out(verbs_ep *ep, const weft_hdr *hdr)
{
    struct verbs_eager_ring *ring = ring_of(ep);
    bool fits = ring && ep->home && ep->home->remote_rail == hdr->credits && hdr->bytes && hdr->bytes <= CELLS;
    if (!ring)
        return false;
    if (!fits) { /* frames to the peer use another rail: refuses */
        send_done(ep);
        return true;
    }
    ring->is_out = true;
    ring->remote_addr = (uint64_t)(uint32_t)hdr->src << 32 | (uint32_t)hdr->tag;
    ring->remote_rkey = hdr->chan;
    ring->remote_cells = hdr->bytes;
    ring->written = ring->freed = 0;
    return true;
}

/* -- reading -- */

/* Asks the writer to stop; repeated by poll until RING_SHUT was sent. */
static void shut(struct verbs_eager_ring *ring)
{
    ring->in = RING_SHUTTING;
    if (!ring->shut_ns && verbs_flow_control(ring->ep, VERBS_KIND_RING_SHUT, NULL) == 0)
        ring->shut_ns = ring->ep->iface->now_ns();
}

static void shut_an_idle_one(verbs_iface *iface, uint64_t now)
{
    for (weft_list_link *link = iface->rings.next; link != &iface->rings; link = link->next) {
        struct verbs_eager_ring *ring = weft_container(link, struct verbs_eager_ring, by_iface);
        if (ring->in == RING_OPEN && now - ring->last_ns > IDLE_NS) {
            shut(ring);
            return;
        }
    }
}

static void free_in(struct verbs_eager_ring *ring)
{
    if (ring->in == RING_NONE)
        return;
    verbs_slab_free(ring->slab);
    ring->slab = NULL;
    ring->in = RING_NONE;
    weft_list_remove(&ring->by_iface);
    ring->ep->iface->ring_count--;
    ring->ep->recent = 0;
}

static void open_in(verbs_ep *ep, uint64_t now)
{
    verbs_iface *iface = ep->iface;
    struct verbs_eager_ring *ring = ring_of(ep);
    uint8_t rail = ep->home->rail->index;
    weft_hdr hdr = {.credits = rail, .bytes = CELLS};
    if (!ring || ring->in != RING_NONE ||
        verbs_slab_alloc(iface, CELLS * CELL_BYTES, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &ring->slab))
        return;
    ring->in = RING_OPEN;
    ring->consumed = 0;
    ring->last_ns = now;
    ring->shut_ns = 0;
    weft_list_append(&iface->rings, &ring->by_iface);
    iface->ring_count++;
    hdr.chan = ring->slab->mr[rail] ? ring->slab->mr[rail]->rkey : 0;
    hdr.src = (int32_t)(uint32_t)((uintptr_t)ring->slab->memory >> 32);
    hdr.tag = (int32_t)(uint32_t)(uintptr_t)ring->slab->memory;
    if (!hdr.chan || verbs_flow_control(ep, VERBS_KIND_RING_OPEN, &hdr))
        free_in(ring);
}

void verbs_eager_ring_consider(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    uint64_t now;
    bool is_busy;
    ep->recent = 0;
    if (ep->state != VERBS_UP || !verbs_eager_ring_can_use(ep) || (ep->ring && ep->ring->in != RING_NONE))
        return;
    now = iface->now_ns();
    is_busy = now - ep->recent_ns < BUSY_NS || weft_knob.eager_ring == WEFT_EAGER_RING_FORCE;
    ep->recent_ns = now;
    if (!is_busy)
        return;
    if (iface->ring_count < RINGS_MAX)
        open_in(ep, now);
    else
        shut_an_idle_one(iface, now);
}

/* The next frame if it is complete, else NULL. */
static const verbs_wire *peek(const struct verbs_eager_ring *ring, uint32_t *bytes)
{
    const uint8_t *end = ring->slab->memory + (size_t)(ring->consumed % CELLS + 1) * CELL_BYTES - sizeof(ring_tail);
    uint64_t word = __atomic_load_n((const uint64_t *)end, __ATOMIC_ACQUIRE);
    const verbs_wire *wire;
    ring_tail tail;
    memcpy(&tail, &word, sizeof tail);
    if (tail.turn != ring->consumed + 1 || tail.bytes < sizeof *wire || tail.bytes > CELL_BYTES - sizeof tail)
        return NULL;
    wire = (const verbs_wire *)(end - weft_round_up(tail.bytes, 8));
    if (!ring->ep->home || !ring->ep->home->in_order) { /* forced: the device does not guarantee the order */
        if (check_of(wire, weft_round_up(tail.bytes, 8), tail.turn) != tail.check)
            return NULL;
    }
    *bytes = tail.bytes;
    return wire;
}

static int read_some(struct verbs_eager_ring *ring, int budget)
{
    verbs_ep *ep = ring->ep;
    const verbs_wire *wire;
    uint32_t bytes;
    int n = 0;
    while (n < budget && ring->in != RING_NONE && (wire = peek(ring, &bytes)) != NULL) {
        ring->consumed++;
        n++;
        if (!ep->is_confirmed)
            verbs_conn_on_arrival(ep);
        ep->in_ring = 1; /* the cell must not be acknowledged before recv_frame has returned */
        verbs_flow_apply_prefix(ep, &wire->prefix);
        if (!verbs_flow_recv(ep, wire, bytes)) {
            ep->in_ring = 0;
            ep->is_garbled = true;
            verbs_conn_break(ep->home ? ep->home : &ep->qps[0], NULL, "an invalid frame was received by an eager ring");
            break;
        }
        ep->in_ring = 0;
    }
    return n;
}

int verbs_eager_ring_catch_up(verbs_ep *ep)
{
    struct verbs_eager_ring *ring = ep->ring;
    return ring && ring->in != RING_NONE && !ep->in_ring ? read_some(ring, (int)CELLS) : 0;
}

int verbs_eager_ring_poll(verbs_iface *iface, int budget)
{
    int n = 0;
    if (weft_likely(weft_list_is_empty(&iface->rings)))
        return 0;
    for (weft_list_link *link = iface->rings.next, *next; link != &iface->rings && n < budget; link = next) {
        struct verbs_eager_ring *ring = weft_container(link, struct verbs_eager_ring, by_iface);
        int came = read_some(ring, budget - n);
        next = link->next;
        if (came && iface->ring_count == RINGS_MAX)
            ring->last_ns = iface->now_ns();
        if (ring->in == RING_SHUTTING && !ring->shut_ns)
            shut(ring);
        n += came;
    }
    return n;
}

bool verbs_eager_ring_handle(verbs_ep *ep, uint8_t kind, const weft_hdr *hdr)
{
    struct verbs_eager_ring *ring = ep->ring;
    if (kind == VERBS_KIND_RING_OPEN)
        return open_out(ep, hdr);
    if (!ring)
        return kind == VERBS_KIND_RING_SHUT;
    if (kind == VERBS_KIND_RING_SHUT) {
        if (ring->is_out)
            send_done(ep);
        ring->is_out = false;
    } else if (ring->in != RING_NONE) { /* all its writes have arrived */
        verbs_eager_ring_catch_up(ep);
        free_in(ring);
    }
    return true;
}

/* RING_DONE comes by the queue and wakes the sleeper, which then reads what was written before. A writer that does not poll for long could
 * leave a frame unread in a ring: sleeps are limited to NAP_NS until all have replied. */
int verbs_eager_ring_shut_all(verbs_iface *iface, uint64_t *within_ns)
{
    uint64_t now = 0;
    for (weft_list_link *link = iface->rings.next; link != &iface->rings; link = link->next) {
        struct verbs_eager_ring *ring = weft_container(link, struct verbs_eager_ring, by_iface);
        if (!ring->shut_ns)
            shut(ring);
        now = now ? now : iface->now_ns();
        if (!ring->shut_ns || now - ring->shut_ns < SHUT_SPIN_NS)
            return WEFT_AGAIN;
        if (!*within_ns || *within_ns > NAP_NS)
            *within_ns = NAP_NS;
    }
    return 0;
}

/* The QPs are flushed: complete frames in the ring are delivered before rx_seq is sent to the peer. */
void verbs_eager_ring_down(verbs_ep *ep)
{
    struct verbs_eager_ring *ring = ep->ring;
    if (!ring)
        return;
    verbs_eager_ring_catch_up(ep);
    free_in(ring);
    ep->ring = NULL;
    free(ring);
}

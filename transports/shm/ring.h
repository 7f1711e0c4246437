/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring: frames of one sender to one receiver through shared memory. A 64-byte cell has lap, header and up to 32 bytes of body; longer
 * bodies are in the ring's data lines, or (`place` says so) in a chunk of the sender (bulk.h).
 * Protocol: a cell is full when its lap equals the reader's. The sender stores lap last (release), the reader loads it first (acquire).
 * The reader acknowledges in large steps. All-zero is an empty ring. One sender, one reader, no locks. Checked by test/unit/test_ring
 * (two threads under TSan, and every interleaving of a small model).
 */
#ifndef WEFT_TRANSPORTS_SHM_RING_H
#define WEFT_TRANSPORTS_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/copy.h"
#include "base/macros.h"
#include "base/status.h"
#include "transport/frame.h"

#define WEFT_RING_CELLS 126
#define WEFT_RING_INLINE 32
#define WEFT_RING_FRONT 8192 /* control lines and cells: claimed at the first frame */
#define WEFT_RING_BYTES 65536
#define WEFT_RING_LINES ((WEFT_RING_BYTES - WEFT_RING_FRONT) / WEFT_LINE)
#define WEFT_RING_BODY_MAX 8192 /* longer bodies go into chunks */
#define WEFT_RING_AHEAD_OUT 4   /* cells that the sender prefetches ahead: never the one that the reader polls */
#define WEFT_RING_AHEAD_IN 8    /* cells that the reader of a stream prefetches ahead */
#define WEFT_RING_STEP 32       /* cells that the reader consumes before it acknowledges */
#define WEFT_RING_LINE_STEP (WEFT_RING_LINES / 4) /* data lines, likewise */

enum weft_ring_flag {
    WEFT_RING_OPEN = 1,  /* the reader polls this ring; else the sender must raise the wakeup after each frame */
    WEFT_RING_FENCE = 2  /* the reader has no membarrier: the sender must fence */
};

/* Flags with which a sender may load `asleep` without a fence after its publish: an open ring whose reader issues membarriers, if the
 * sender is registered for them itself. Else a value that no flags equal. */
static inline uint32_t weft_ring_announce_flags(bool is_registered) { return is_registered ? WEFT_RING_OPEN : UINT32_MAX; }

typedef struct weft_cell {
    _Atomic uint32_t lap; /* pairs with weft_ring_peek */
    uint32_t place;        /* 0: body in the cell; WEFT_PLACE_CHUNK | index; else 1 + first data line */
    weft_hdr hdr;
    uint64_t body[4];
} weft_cell;

#define WEFT_PLACE_CHUNK 0x80000000u

_Static_assert(sizeof(weft_cell) == WEFT_LINE, "a cell is a cache line");

typedef struct weft_ring { /* in shared memory */
    _Alignas(WEFT_LINE) _Atomic uint64_t consumed; /* by the reader: cells, and data lines << 32, both wrapping */
    _Atomic uint32_t flags;                     /* by the reader: enum weft_ring_flag */
    _Alignas(WEFT_LINE) _Atomic uint32_t wanted; /* by the sender: wake it when space is freed */
    _Alignas(WEFT_LINE) weft_cell cells[WEFT_RING_CELLS];
    _Alignas(WEFT_LINE) uint8_t lines[WEFT_RING_LINES][WEFT_LINE];
} weft_ring;

_Static_assert(sizeof(weft_ring) == WEFT_RING_BYTES, "a ring fills its slot");

typedef struct weft_ring_out { /* sender's private state */
    weft_ring *ring;
    uint32_t cell, lap;             /* next cell to fill, and its lap */
    uint32_t consumed;                 /* last acknowledged count */
    uint32_t line;                  /* next data line */
    uint32_t lines_sent, lines_consumed;
    bool has_lines;                 /* the data lines are claimed */
} weft_ring_out;

typedef struct weft_ring_in { /* reader's private state */
    weft_ring *ring;
    uint32_t cell, lap;
    uint32_t consumed, acked;
    uint32_t line;
    uint32_t lines_consumed, lines_acked;
} weft_ring_in;

static inline void weft_ring_out_open(weft_ring_out *out, weft_ring *ring) { *out = (weft_ring_out){.ring = ring, .lap = 1}; }
static inline void weft_ring_in_open(weft_ring_in *in, weft_ring *ring) { *in = (weft_ring_in){.ring = ring, .lap = 1}; }

static inline void weft_ring_refresh(weft_ring_out *out)
{
    uint64_t consumed = atomic_load_explicit(&out->ring->consumed, memory_order_acquire); /* pairs with weft_ring_ack */
    out->consumed = (uint32_t)consumed;
    out->lines_consumed = (uint32_t)(consumed >> 32);
}

/* Free cells, a lower bound; loads the reader's count only when there seems to be none. */
static inline uint32_t weft_ring_room(weft_ring_out *out)
{
    uint32_t sent = (out->lap - 1) * WEFT_RING_CELLS + out->cell;
    if (weft_unlikely(sent - out->consumed == WEFT_RING_CELLS))
        weft_ring_refresh(out);
    return WEFT_RING_CELLS - (sent - out->consumed);
}

/* The next cell to fill. Requires weft_ring_room() > 0. */
static inline weft_cell *weft_ring_next(const weft_ring_out *out) { return &out->ring->cells[out->cell]; }

/* Reserves contiguous data lines for a body; false: not enough are free. */
static inline bool weft_ring_reserve(weft_ring_out *out, uint32_t bytes, uint32_t *line)
{
    uint32_t need = (bytes + WEFT_LINE - 1) / WEFT_LINE;
    bool is_round = out->line + need > WEFT_RING_LINES; /* wraps: the lines left at the end count as sent */
    uint32_t skip = is_round ? WEFT_RING_LINES - out->line : 0;
    if (out->lines_sent + skip + need - out->lines_consumed > WEFT_RING_LINES) {
        weft_ring_refresh(out);
        if (out->lines_sent + skip + need - out->lines_consumed > WEFT_RING_LINES)
            return false;
    }
    *line = is_round ? 0 : out->line;
    out->line = *line + need;
    out->lines_sent += skip + need;
    return true;
}

/* Makes the filled cell visible. */
static inline void weft_ring_publish(weft_ring_out *out, weft_cell *cell)
{
    atomic_store_explicit(&cell->lap, out->lap, memory_order_release); /* pairs with weft_ring_peek */
    if (weft_unlikely(++out->cell == WEFT_RING_CELLS)) {
        out->cell = 0;
        out->lap++;
    }
}

/* The next full cell, or NULL. */
static inline weft_cell *weft_ring_peek(const weft_ring_in *in)
{
    weft_cell *cell = &in->ring->cells[in->cell];
    return atomic_load_explicit(&cell->lap, memory_order_acquire) == in->lap ? cell : NULL;
}

/* Consumes the cell of weft_ring_peek and its data lines. */
static inline void weft_ring_consume(weft_ring_in *in, const weft_cell *cell)
{
    uint32_t place = cell->place;
    if (place && !(place & WEFT_PLACE_CHUNK)) {
        uint32_t line = place - 1, need = (cell->hdr.bytes + WEFT_LINE - 1) / WEFT_LINE;
        in->lines_consumed += need + (line < in->line ? WEFT_RING_LINES - in->line : 0);
        in->line = line + need;
    }
    in->consumed++;
    if (weft_unlikely(++in->cell == WEFT_RING_CELLS)) {
        in->cell = 0;
        in->lap++;
    }
}

/* Acknowledges to the sender; pairs with weft_ring_refresh(). The caller must then check `wanted`. */
static inline void weft_ring_ack(weft_ring_in *in)
{
    in->acked = in->consumed;
    in->lines_acked = in->lines_consumed;
    atomic_store_explicit(&in->ring->consumed, (uint64_t)in->lines_consumed << 32 | in->consumed, memory_order_release);
}

/* True if enough was consumed for an acknowledgement. */
static inline bool weft_ring_should_ack(const weft_ring_in *in)
{
    return in->consumed - in->acked >= WEFT_RING_STEP || in->lines_consumed - in->lines_acked >= WEFT_RING_LINE_STEP;
}

#endif

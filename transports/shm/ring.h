/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring: frames of one sender to one receiver through shared memory. A 64-byte cell has lap, header and up to 32 bytes of body; longer
 * bodies are in blocks of the ring, or (`place` says so) in a chunk of the sender (bulk.h).
 * Protocol: a cell is full when its lap equals the reader's. The sender stores lap last (release), the reader loads it first (acquire).
 * The reader acknowledges cells in steps, and at once a cell with WEFT_PLACE_ASK; frames of the other direction with a placed body carry
 * the count too. The sender allocates the blocks and frees them when it reads that the cell is consumed. It takes the first free ones:
 * bodies that are read soon stay in few lines, which both caches hold. A sender without space for the largest body has set WEFT_PLACE_ASK
 * in the last one, so a reader that has consumed all frees all. All-zero is an empty ring. One sender, one reader, no locks. Checked by
 * test/unit/test_ring (two threads under TSan, and random runs of one) and test_shm_wait (all schedules of two ranks).
 */
#ifndef WEFT_TRANSPORTS_SHM_RING_H
#define WEFT_TRANSPORTS_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/copy.h"
#include "base/macros.h"
#include "base/nt_copy.h"
#include "base/status.h"
#include "transport/frame.h"

#define WEFT_RING_CELLS 126
#define WEFT_RING_INLINE 32
#define WEFT_RING_FRONT 8192 /* control lines and cells: claimed at the first frame */
#define WEFT_RING_BYTES 65536
#define WEFT_RING_BLOCK 512     /* bytes: unit of the data area */
#define WEFT_RING_BLOCK_LINES (WEFT_RING_BLOCK / WEFT_LINE)
#define WEFT_RING_BLOCKS ((WEFT_RING_BYTES - WEFT_RING_FRONT) / WEFT_RING_BLOCK)
#define WEFT_RING_HALF (WEFT_RING_BLOCKS / 2) /* no body lies in both halves */
#define WEFT_RING_BODY_MAX 8192 /* longer bodies go into chunks */
#define WEFT_RING_BLOCKS_MAX (WEFT_RING_BODY_MAX / WEFT_RING_BLOCK)
#define WEFT_RING_AHEAD_OUT 4   /* cells that the sender prefetches ahead: never the one that the reader polls */
#define WEFT_RING_AHEAD_IN 8    /* cells that the reader of a stream prefetches ahead */
#define WEFT_RING_STEP 32       /* cells that the reader consumes before it acknowledges */
#define WEFT_RING_BYTE_STEP 2048 /* bytes of bodies from WEFT_RING_LOOK on, likewise */
#define WEFT_RING_HOT 16        /* the first blocks: a sender that can, stays there, as the first-level caches of both sides hold them */
#define WEFT_RING_LOOK 256       /* bytes of a body from which on a look at the reader's count pays, to get back to the first blocks */
#define WEFT_RING_BODIES 128    /* bodies in the blocks, at most: a power of two, not less than the cells */

enum weft_ring_flag {
    WEFT_RING_OPEN = 1,  /* the reader polls this ring; else the sender must raise the wakeup after each frame */
    WEFT_RING_FENCE = 2  /* the reader has no membarrier: the sender must fence */
};

/* Flags with which a sender may load `asleep` without a fence after its publish: an open ring whose reader issues membarriers, if the
 * sender is registered for them itself. Else a value that no flags equal. */
static inline uint32_t weft_ring_announce_flags(bool is_registered) { return is_registered ? WEFT_RING_OPEN : UINT32_MAX; }

typedef struct weft_cell {
    _Atomic uint32_t lap; /* pairs with weft_ring_peek */
    uint32_t place;        /* 0: body in the cell; WEFT_PLACE_CHUNK | index; else 1 + first line; and flags */
    weft_hdr hdr;
    uint64_t body[4];      /* place is not 0: body[0] is the count of cells that the sender has consumed of the other direction */
} weft_cell;

#define WEFT_PLACE_CHUNK 0x80000000u
#define WEFT_PLACE_ASK 0x40000000u /* the next body may find no blocks: the reader acknowledges this cell at once */
#define WEFT_PLACE_TIMED 0x20000000u /* the reader times its handling of the body */
#define WEFT_PLACE_PAST 0x10000000u  /* the body was written with non-temporal stores */
#define WEFT_PLACE_INDEX 0xffffu     /* the chunk, or 1 + the first line */

_Static_assert(sizeof(weft_cell) == WEFT_LINE, "a cell is a cache line");

enum weft_warmth { WEFT_COLD, WEFT_HOT, WEFT_WARMTHS }; /* of the place of a body: chunks and most blocks; the first WEFT_RING_HOT blocks */

typedef struct weft_ring { /* in shared memory */
    _Alignas(WEFT_LINE) _Atomic uint32_t consumed; /* by the reader: cells, wrapping */
    _Atomic uint32_t read_ps[WEFT_WARMTHS][WEFT_STORES]; /* by the reader: its ps per byte of such bodies; 0: unknown */
    _Alignas(WEFT_LINE) _Atomic uint32_t wanted; /* by the sender: wake it when space is freed */
    _Atomic uint32_t flags;                      /* by the reader: enum weft_ring_flag; the sender loads it after each frame */
    _Alignas(WEFT_LINE) weft_cell cells[WEFT_RING_CELLS];
    _Alignas(WEFT_LINE) uint8_t lines[WEFT_RING_BLOCKS * WEFT_RING_BLOCK_LINES][WEFT_LINE];
} weft_ring;

_Static_assert(sizeof(weft_ring) == WEFT_RING_BYTES, "a ring fills its slot");

/* A body in the blocks that the reader may not have consumed, in one word: count of cells sent with its own (16 bits, wraps), its first
 * block (8 bits), and how many blocks are freed with it (8 bits). */
typedef uint32_t weft_ring_body;

static inline weft_ring_body weft_ring_body_of(uint32_t cell, uint32_t block, uint32_t blocks)
{
    return (cell & 0xffff) | block << 16 | blocks << 24;
}

typedef struct weft_ring_out { /* sender's private state */
    weft_ring *ring;
    uint32_t cell, lap;             /* next cell to fill, and its lap */
    uint32_t consumed;              /* cells: last known count */
    uint32_t unseen;                /* bytes of bodies from WEFT_RING_LOOK on since the last look at the reader's count */
    uint64_t busy[2];               /* bit sets of the blocks of each half */
    uint32_t bodies_begin, bodies_end; /* the oldest body, and behind the last; wrap */
    uint32_t shared, shared_line;   /* the last body in the block that short bodies share, and the next line; wraps, see weft_ring_share */
    weft_ring_body *bodies;         /* [WEFT_RING_BODIES] owned by the ep; NULL: the blocks are not claimed */
} weft_ring_out;

typedef struct weft_ring_in { /* reader's private state */
    weft_ring *ring;
    uint32_t cell, lap;
    uint32_t consumed, acked;
    uint32_t bytes; /* of long bodies, consumed since the last acknowledgement */
} weft_ring_in;

static inline void weft_ring_out_open(weft_ring_out *out, weft_ring *ring) { *out = (weft_ring_out){.ring = ring, .lap = 1}; }
static inline void weft_ring_in_open(weft_ring_in *in, weft_ring *ring) { *in = (weft_ring_in){.ring = ring, .lap = 1}; }

static inline uint32_t weft_ring_sent(const weft_ring_out *out) { return (out->lap - 1) * WEFT_RING_CELLS + out->cell; }

/* The reader has consumed this many cells, or more. An older count has no effect, however old, nor has one of cells not sent: it would let
 * the sender overwrite what was not read, for as long as the ring lasts. */
static inline void weft_ring_update_consumed(weft_ring_out *out, uint32_t consumed)
{
    if (consumed - out->consumed <= weft_ring_sent(out) - out->consumed)
        out->consumed = consumed;
}

static inline void weft_ring_refresh(weft_ring_out *out)
{
    weft_ring_update_consumed(out, atomic_load_explicit(&out->ring->consumed, memory_order_acquire)); /* pairs with weft_ring_ack */
}

/* The reader may not have consumed the last body in the block that short bodies share. */
static inline bool weft_ring_is_shared(const weft_ring_out *out)
{
    return out->shared - out->bodies_begin < out->bodies_end - out->bodies_begin;
}

/* Frees the blocks of bodies that the reader is known to have consumed. */
static inline void weft_ring_free_consumed(weft_ring_out *out)
{
    while (out->bodies_begin != out->bodies_end) {
        weft_ring_body body = out->bodies[out->bodies_begin % WEFT_RING_BODIES];
        uint32_t block = body >> 16 & 0xff;
        if ((int16_t)(out->consumed - body) < 0)
            break;
        out->busy[block / WEFT_RING_HALF] &= ~(((1ull << (body >> 24)) - 1) << block % WEFT_RING_HALF);
        out->bodies_begin++;
    }
    if (!weft_ring_is_shared(out))
        out->shared_line = 0; /* not remembered for as long as the count of bodies takes to wrap */
}

/* Free cells, a lower bound; loads the reader's count only when there seems to be none. Frees blocks too: between two calls are at most
 * WEFT_RING_CELLS cells, so no body stays noted for as long as its count of cells takes to wrap. */
static inline uint32_t weft_ring_cells_free(weft_ring_out *out)
{
    uint32_t sent = weft_ring_sent(out);
    if (weft_unlikely(sent - out->consumed == WEFT_RING_CELLS))
        weft_ring_refresh(out);
    weft_ring_free_consumed(out);
    return WEFT_RING_CELLS - (sent - out->consumed);
}

/* The next cell to fill. Requires weft_ring_cells_free() > 0. */
static inline weft_cell *weft_ring_next(const weft_ring_out *out) { return &out->ring->cells[out->cell]; }

/* Bit i: `blocks` blocks from i on are free. */
static inline uint64_t weft_ring_runs(uint64_t busy, uint32_t blocks)
{
    uint64_t runs = ~busy & ((1ull << WEFT_RING_HALF) - 1);
    for (uint32_t have = 1, step; have < blocks; have += step) {
        step = have < blocks - have ? have : blocks - have;
        runs &= runs >> step;
    }
    return runs;
}

/* The first free blocks in a row, within one half, for a body; WEFT_RING_BLOCKS: no space is known. */
static inline uint32_t weft_ring_find(const weft_ring_out *out, uint32_t blocks)
{
    for (uint32_t half = 0; half < 2; half++) {
        uint64_t runs = weft_ring_runs(out->busy[half], blocks);
        if (weft_likely(runs != 0))
            return half * WEFT_RING_HALF + (uint32_t)__builtin_ctzll(runs);
    }
    return WEFT_RING_BLOCKS;
}

/* A line for a short body behind the last one in its block, which the reader has not consumed: then the block is freed with the new body.
 * 0: none, else 1 + line. A stream of short bodies lies in adjacent lines, which processors prefetch. */
static inline uint32_t weft_ring_share(weft_ring_out *out, uint32_t lines)
{
    uint32_t rest = -out->shared_line % WEFT_RING_BLOCK_LINES;
    weft_ring_body *last = &out->bodies[out->shared % WEFT_RING_BODIES];
    if (lines > rest || !weft_ring_is_shared(out))
        return 0;
    out->bodies[out->bodies_end % WEFT_RING_BODIES] = weft_ring_body_of(weft_ring_sent(out) + 1, *last >> 16 & 0xff, *last >> 24);
    *last &= 0xffffff;
    return 1 + out->shared_line;
}

/* May the largest body find no space? The last blocks are used last. */
static inline bool weft_ring_is_tight(const weft_ring_out *out)
{
    return weft_unlikely(out->busy[1] >> (WEFT_RING_HALF - WEFT_RING_BLOCKS_MAX)) && !weft_ring_runs(out->busy[1], WEFT_RING_BLOCKS_MAX) &&
           !weft_ring_runs(out->busy[0], WEFT_RING_BLOCKS_MAX);
}

/* Blocks for a body, none of them shared yet. A body that would leave the hot blocks is worth a look at the reader's count, if the reader
 * may have acknowledged since the last look. 0: not enough are free, else 1 + line. */
static inline uint32_t weft_ring_take(weft_ring_out *out, uint32_t bytes)
{
    uint32_t blocks = (bytes + WEFT_RING_BLOCK - 1) / WEFT_RING_BLOCK, block = weft_ring_find(out, blocks);
    out->unseen += bytes >= WEFT_RING_LOOK ? bytes : 0;
    if (block >= (out->unseen >= WEFT_RING_BYTE_STEP ? WEFT_RING_HOT : WEFT_RING_BLOCKS)) {
        out->unseen = 0;
        weft_ring_refresh(out);
        weft_ring_free_consumed(out);
        block = weft_ring_find(out, blocks);
        if (block == WEFT_RING_BLOCKS)
            return 0;
    }
    out->busy[block / WEFT_RING_HALF] |= ((1ull << blocks) - 1) << block % WEFT_RING_HALF;
    out->bodies[out->bodies_end % WEFT_RING_BODIES] = weft_ring_body_of(weft_ring_sent(out) + 1, block, blocks);
    return 1 + block * WEFT_RING_BLOCK_LINES;
}

/* Reserves lines for the body of the next cell, after weft_ring_cells_free; false: not enough are free. Sets `place`. */
static inline bool weft_ring_reserve(weft_ring_out *out, uint32_t bytes, uint32_t *place)
{
    uint32_t lines = (bytes + WEFT_LINE - 1) / WEFT_LINE, at;
    at = weft_ring_share(out, lines);
    if (!at && !(at = weft_ring_take(out, bytes)))
        return false;
    if (lines < WEFT_RING_BLOCK_LINES) {
        out->shared = out->bodies_end;
        out->shared_line = at - 1 + lines;
    }
    out->bodies_end++;
    *place = at | (weft_unlikely(weft_ring_is_tight(out)) ? WEFT_PLACE_ASK : 0);
    return true;
}

static inline enum weft_warmth weft_ring_warmth(uint32_t place)
{
    return place & WEFT_PLACE_CHUNK || (place & WEFT_PLACE_INDEX) > WEFT_RING_HOT * WEFT_RING_BLOCK_LINES ? WEFT_COLD : WEFT_HOT;
}

/* Whether a body of `bytes` bytes can be at this place in the blocks. False: the cell is damaged. */
static inline bool weft_ring_is_place(uint32_t place, uint32_t bytes)
{
    uint32_t lines = (bytes + WEFT_LINE - 1) / WEFT_LINE;
    return bytes <= WEFT_RING_BODY_MAX && (place & WEFT_PLACE_INDEX) - 1 <= WEFT_RING_BLOCKS * WEFT_RING_BLOCK_LINES - lines;
}

/* The body in the blocks of a cell with this place. */
static inline uint8_t *weft_ring_body_at(weft_ring *ring, uint32_t place) { return ring->lines[(place & WEFT_PLACE_INDEX) - 1]; }

/* Makes the filled cell visible. */
static inline void weft_ring_publish(weft_ring_out *out, weft_cell *cell)
{
    atomic_store_explicit(&cell->lap, out->lap, memory_order_release); /* pairs with weft_ring_peek */
    if (weft_unlikely(++out->cell == WEFT_RING_CELLS)) {
        out->cell = 0;
        out->lap++;
    }
}

/* Fetches the line that weft_ring_peek will look at. */
static inline void weft_ring_prefetch(const weft_ring_in *in) { __builtin_prefetch(&in->ring->cells[in->cell]); }

/* The next full cell, or NULL. */
static inline weft_cell *weft_ring_peek(const weft_ring_in *in)
{
    weft_cell *cell = &in->ring->cells[in->cell];
    return atomic_load_explicit(&cell->lap, memory_order_acquire) == in->lap ? cell : NULL;
}

/* Consumes the cell of weft_ring_peek and its body. */
static inline void weft_ring_consume(weft_ring_in *in, const weft_cell *cell)
{
    if (cell->place & WEFT_PLACE_ASK)
        in->bytes = WEFT_RING_BYTE_STEP;
    else if (cell->hdr.bytes >= WEFT_RING_LOOK)
        in->bytes += cell->hdr.bytes;
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
    in->bytes = 0;
    atomic_store_explicit(&in->ring->consumed, in->consumed, memory_order_release);
}

/* True if enough was consumed for an acknowledgement. */
static inline bool weft_ring_should_ack(const weft_ring_in *in)
{
    return in->consumed - in->acked >= WEFT_RING_STEP || in->bytes >= WEFT_RING_BYTE_STEP;
}

#endif

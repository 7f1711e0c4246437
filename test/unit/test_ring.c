/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_ring: the shared-memory ring by two threads on one mapping (for TSan, valid without it too): every frame arrives once, in order,
 * complete, for all sizes, through laps, full rings and reused blocks, one way and both ways. Then random runs of one thread, also where
 * the counts of cells and bodies wrap, and counts that no reader could have sent.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "transports/shm/ring.h"

#define FRAMES 200000

static weft_ring *ring;

static weft_ring *ring_new(void)
{
    weft_ring *new = aligned_alloc(4096, sizeof *new);
    memset(new, 0, sizeof *new);
    return new;
}

static uint32_t size_of(uint32_t i)
{
    uint32_t r = i * 2654435761u;
    return r % 8 == 0 ? (r >> 8) % WEFT_RING_BODY_MAX : r % 3 == 0 ? (r >> 8) % 200 : (r >> 8) % (WEFT_RING_INLINE + 1);
}

static void *send_all(void *arg)
{
    static uint8_t body[WEFT_RING_BODY_MAX];
    weft_ring_body bodies[WEFT_RING_BODIES];
    weft_ring_out out;
    (void)arg;
    weft_ring_out_open(&out, ring);
    out.bodies = bodies;
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t bytes = size_of(i), place = 0;
        weft_cell *cell;
        void *to;
        for (uint32_t b = 0; b < bytes; b++)
            body[b] = (uint8_t)(i + b);
        while (!weft_ring_cells_free(&out))
            sched_yield();
        cell = weft_ring_next(&out);
        to = cell->body;
        if (bytes > WEFT_RING_INLINE) {
            while (!weft_ring_reserve(&out, bytes, &place))
                sched_yield();
            to = weft_ring_body_at(ring, place);
            memcpy(to, body, bytes);
        } else {
            weft_copy_short(to, body, bytes);
        }
        cell->place = place;
        cell->hdr = (weft_hdr){.seq = i, .bytes = bytes};
        weft_ring_publish(&out, cell);
    }
    return NULL;
}

static bool is_whole(weft_ring *of, const weft_cell *cell, uint32_t i)
{
    const uint8_t *body = cell->place ? weft_ring_body_at(of, cell->place) : (const uint8_t *)cell->body;
    if (cell->hdr.seq != i || cell->hdr.bytes != size_of(i))
        return false;
    for (uint32_t b = 0; b < cell->hdr.bytes; b++)
        if (body[b] != (uint8_t)(i + b))
            return false;
    return true;
}

static void two_threads(void)
{
    weft_ring_in in;
    pthread_t sender;
    bool is_good = true;
    ring = ring_new();
    weft_ring_in_open(&in, ring);
    pthread_create(&sender, NULL, send_all, NULL);
    for (uint32_t i = 0; i < FRAMES && is_good; i++) {
        weft_cell *cell;
        while (!(cell = weft_ring_peek(&in)))
            sched_yield();
        is_good = is_whole(ring, cell, i);
        weft_ring_consume(&in, cell);
        if (weft_ring_should_ack(&in))
            weft_ring_ack(&in);
    }
    CU_ASSERT_TRUE(is_good);
    if (is_good)
        pthread_join(sender, NULL);
    CU_ASSERT_PTR_NULL(weft_ring_peek(&in));
    free(ring);
}

/* One of two ranks that send to each other: each frame carries how many cells its sender has consumed. Acknowledges rarely, so that
 * blocks are freed by these counts. */
typedef struct side {
    weft_ring *out, *in;
    bool is_good;
} side;

static bool has_sent(weft_ring_out *out, const weft_ring_in *in, uint32_t i)
{
    uint32_t bytes = size_of(i), place = 0;
    weft_cell *cell = weft_ring_next(out);
    uint8_t *to = (uint8_t *)cell->body;
    if (!weft_ring_cells_free(out) || (bytes > WEFT_RING_INLINE && !weft_ring_reserve(out, bytes, &place)))
        return false;
    if (place) {
        cell->body[0] = in->consumed;
        to = weft_ring_body_at(out->ring, place);
    }
    for (uint32_t b = 0; b < bytes; b++)
        to[b] = (uint8_t)(i + b);
    cell->place = place;
    cell->hdr = (weft_hdr){.seq = i, .bytes = bytes};
    weft_ring_publish(out, cell);
    return true;
}

static void *exchange(void *arg)
{
    side *self = arg;
    weft_ring_body bodies[WEFT_RING_BODIES];
    weft_ring_out out;
    weft_ring_in in;
    weft_ring_out_open(&out, self->out);
    weft_ring_in_open(&in, self->in);
    out.bodies = bodies;
    self->is_good = true;
    for (uint32_t sent = 0, got = 0; sent < FRAMES || got < FRAMES;) {
        const weft_cell *cell = weft_ring_peek(&in);
        bool has_progressed = sent < FRAMES && has_sent(&out, &in, sent);
        sent += has_progressed;
        if (cell) {
            if (cell->place)
                weft_ring_update_consumed(&out, (uint32_t)cell->body[0]);
            self->is_good &= is_whole(self->in, cell, got++);
            weft_ring_consume(&in, cell);
            if (weft_ring_should_ack(&in) && (sent == FRAMES || got % 512 == 0))
                weft_ring_ack(&in);
        } else if (!has_progressed) {
            weft_ring_ack(&in); /* or both could wait for space */
            sched_yield();
        }
    }
    return NULL;
}

static void two_threads_both_ways(void)
{
    weft_ring *rings[2] = {ring_new(), ring_new()};
    side sides[2] = {{rings[0], rings[1], false}, {rings[1], rings[0], false}};
    pthread_t other;
    pthread_create(&other, NULL, exchange, &sides[1]);
    exchange(&sides[0]);
    pthread_join(other, NULL);
    CU_ASSERT(sides[0].is_good && sides[1].is_good);
    free(rings[0]);
    free(rings[1]);
}

/* Without a reader the ring accepts exactly its cells, then is full; after one frame is read it accepts again. */
static void full_and_again(void)
{
    weft_ring_out out;
    weft_ring_in in;
    weft_cell *cell;
    uint32_t n = 0;
    ring = ring_new();
    weft_ring_out_open(&out, ring);
    weft_ring_in_open(&in, ring);
    while (weft_ring_cells_free(&out)) {
        cell = weft_ring_next(&out);
        cell->place = 0;
        cell->hdr = (weft_hdr){.seq = n++};
        weft_ring_publish(&out, cell);
    }
    CU_ASSERT_EQUAL(n, WEFT_RING_CELLS);
    for (uint32_t i = 0; i < WEFT_RING_STEP; i++) {
        cell = weft_ring_peek(&in);
        CU_ASSERT_PTR_NOT_NULL_FATAL(cell);
        CU_ASSERT_EQUAL(cell->hdr.seq, i);
        weft_ring_consume(&in, cell);
        if (weft_ring_should_ack(&in))
            weft_ring_ack(&in);
    }
    CU_ASSERT(weft_ring_cells_free(&out) > 0);
    free(ring);
}

/* Bodies that fill the data lines again and again: a full data area is freed once its contents were read. */
static void data_lines_never_block(void)
{
    static const uint32_t sizes[] = {WEFT_RING_BODY_MAX, 8191, 4097, 64, 65, 33};
    for (size_t s = 0; s < weft_count(sizes); s++) {
        weft_ring_body bodies[WEFT_RING_BODIES];
        weft_ring_out out;
        weft_ring_in in;
        ring = ring_new();
        weft_ring_out_open(&out, ring);
        weft_ring_in_open(&in, ring);
        out.bodies = bodies;
        for (uint32_t i = 0; i < 2000; i++) {
            uint32_t place = 0;
            weft_cell *cell;
            while (!weft_ring_cells_free(&out) || !weft_ring_reserve(&out, sizes[s], &place)) {
                weft_cell *full = weft_ring_peek(&in);
                CU_ASSERT_PTR_NOT_NULL_FATAL(full);
                weft_ring_consume(&in, full);
                if (weft_ring_should_ack(&in))
                    weft_ring_ack(&in);
            }
            cell = weft_ring_next(&out);
            CU_ASSERT_TRUE_FATAL((place & WEFT_PLACE_INDEX) - 1 + (sizes[s] + 63) / 64 <= sizeof ring->lines / WEFT_LINE);
            cell->place = place;
            cell->hdr = (weft_hdr){.seq = i, .bytes = sizes[s]};
            weft_ring_publish(&out, cell);
        }
        free(ring);
    }
}

/* A ring after so many laps, all consumed and acknowledged. */
static void open_after(weft_ring_out *out, weft_ring_in *in, uint32_t laps, uint32_t bodies_before)
{
    weft_ring_out_open(out, ring);
    weft_ring_in_open(in, ring);
    out->lap = in->lap = 1 + laps;
    out->consumed = in->consumed = in->acked = laps * WEFT_RING_CELLS;
    out->bodies_begin = out->bodies_end = bodies_before;
    out->shared = bodies_before - 1;
    for (uint32_t i = 0; i < WEFT_RING_CELLS; i++)
        atomic_init(&ring->cells[i].lap, laps);
    atomic_init(&ring->consumed, in->consumed);
}

typedef struct outstanding {
    uint32_t first, end; /* lines */
} outstanding;

static void check_apart(const outstanding *all, uint32_t from, uint32_t to, outstanding fresh)
{
    for (uint32_t i = from; i != to; i++) {
        const outstanding *one = &all[i % WEFT_RING_BODIES];
        CU_ASSERT_TRUE_FATAL(fresh.end <= one->first || one->end <= fresh.first);
    }
}

/* Random sizes, a reader that lags by a random number of frames and whose count comes by acknowledgement or by the other direction: no two
 * bodies that it has not consumed overlap, and a sender is refused only while there are some. */
static void run_randomly(uint32_t laps, uint32_t bodies_before, uint32_t count)
{
    weft_ring_body bodies[WEFT_RING_BODIES];
    outstanding all[WEFT_RING_BODIES];
    weft_ring_out out;
    weft_ring_in in;
    uint32_t random = 1;
    ring = ring_new();
    open_after(&out, &in, laps, bodies_before);
    out.bodies = bodies;
    for (uint32_t sent = weft_ring_sent(&out), end = sent + count; sent != end; sent++) {
        uint32_t place, bytes, lag;
        weft_cell *cell;
        random = random * 1664525u + 1013904223u;
        bytes = 33 + (random >> 8) % (random >> 29 ? (sent >> 12 & 1 ? 400 : 3000) : WEFT_RING_BODY_MAX - 32);
        lag = (random >> 4) % (sent >> 10 & 1 ? 3 : WEFT_RING_BODIES);
        while (sent - in.consumed > lag || !weft_ring_cells_free(&out) || !weft_ring_reserve(&out, bytes, &place)) {
            CU_ASSERT_PTR_NOT_NULL_FATAL(cell = weft_ring_peek(&in));
            weft_ring_consume(&in, cell);
            if (weft_ring_should_ack(&in))
                weft_ring_ack(&in);
            if (random & 1)
                weft_ring_update_consumed(&out, in.consumed);
        }
        all[sent % WEFT_RING_BODIES] = (outstanding){(place & WEFT_PLACE_INDEX) - 1, (place & WEFT_PLACE_INDEX) - 1 + (bytes + 63) / 64};
        CU_ASSERT_TRUE_FATAL(all[sent % WEFT_RING_BODIES].end <= sizeof ring->lines / WEFT_LINE);
        check_apart(all, in.consumed, sent, all[sent % WEFT_RING_BODIES]);
        cell = weft_ring_next(&out);
        cell->place = place;
        cell->hdr = (weft_hdr){.seq = sent, .bytes = bytes};
        weft_ring_publish(&out, cell);
    }
    free(ring);
}

static void bodies_stay_apart(void)
{
    static const uint32_t laps_to_wrap = UINT32_MAX / WEFT_RING_CELLS;
    run_randomly(0, 0, 100000);
    run_randomly(laps_to_wrap - 20, 0u - 1000, 20000);     /* the counts of cells and of bodies wrap */
    run_randomly(0x7fffffffu / WEFT_RING_CELLS - 20, 0x7fffffffu - 1000, 20000);
    run_randomly(0u - 20, 0, 20000);                       /* the lap wraps */
}

static void send_one(weft_ring_out *out, uint32_t place, uint32_t bytes)
{
    weft_cell *cell = weft_ring_next(out);
    cell->place = place;
    cell->hdr = (weft_hdr){.bytes = bytes};
    weft_ring_publish(out, cell);
}

/* A body that is consumed at once. The sender learns it from a frame of the other direction, or reads the count. Returns its place. */
static uint32_t pass_body(weft_ring_out *out, weft_ring_in *in, uint32_t bytes, bool is_reported)
{
    uint32_t place = 0;
    CU_ASSERT_TRUE_FATAL(weft_ring_cells_free(out) && weft_ring_reserve(out, bytes, &place));
    send_one(out, place, bytes);
    weft_ring_consume(in, weft_ring_peek(in));
    if (is_reported)
        weft_ring_update_consumed(out, in->consumed);
    else if (weft_ring_should_ack(in))
        weft_ring_ack(in);
    return place;
}

/* Each body is consumed, as the other direction reports, before the next is sent: all begin at the first line. */
static void ping_pong_stays_hot(void)
{
    weft_ring_body bodies[WEFT_RING_BODIES];
    weft_ring_out out;
    weft_ring_in in;
    ring = ring_new();
    open_after(&out, &in, 0, 0);
    out.bodies = bodies;
    for (uint32_t i = 0; i < 1000; i++)
        CU_ASSERT_EQUAL(pass_body(&out, &in, i % 2 ? 64 : WEFT_RING_BODY_MAX, true), 1);
    free(ring);
}

/* A reader that follows: the sender looks at its count before it would leave the hot blocks. */
static void stream_stays_hot(void)
{
    for (uint32_t bytes = WEFT_RING_LOOK; bytes <= WEFT_RING_BODY_MAX / 2; bytes *= 2) {
        weft_ring_body bodies[WEFT_RING_BODIES];
        weft_ring_out out;
        weft_ring_in in;
        ring = ring_new();
        open_after(&out, &in, 0, 0);
        out.bodies = bodies;
        for (uint32_t i = 0; i < 1000; i++)
            CU_ASSERT_EQUAL(weft_ring_warmth(pass_body(&out, &in, bytes, false)), WEFT_HOT);
        free(ring);
    }
}

/* A count of the reader is between what is known and what was sent; another one is old (also by more than half of the numbers: a frame that
 * waited long in the other ring) or damaged. */
static void impossible_counts_are_ignored(void)
{
    static const uint32_t laps[] = {0, UINT32_MAX / WEFT_RING_CELLS, 0x7fffffffu / WEFT_RING_CELLS, 0x80000000u / WEFT_RING_CELLS};
    for (size_t k = 0; k < weft_count(laps); k++) {
        weft_ring_out out;
        weft_ring_in in;
        uint32_t start;
        ring = ring_new();
        open_after(&out, &in, laps[k], 0);
        start = out.consumed;
        for (int i = 0; i < 100; i++)
            send_one(&out, 0, 0);
        weft_ring_update_consumed(&out, start + 40);
        CU_ASSERT_EQUAL(out.consumed, start + 40);
        for (uint32_t i = 0; i < 32; i++) {
            weft_ring_update_consumed(&out, start + 40 - (1u << i));
            weft_ring_update_consumed(&out, start + 100 + (1u << i));
            CU_ASSERT_EQUAL(out.consumed, start + 40);
        }
        CU_ASSERT_EQUAL(weft_ring_cells_free(&out), WEFT_RING_CELLS - 60);
        weft_ring_update_consumed(&out, start + 100);
        CU_ASSERT_EQUAL(out.consumed, start + 100);
        free(ring);
    }
}

/* The count of bodies wraps without a short one: the block that short bodies shared is another's by now. */
static void old_shares_are_forgotten(void)
{
    weft_ring_body bodies[WEFT_RING_BODIES];
    weft_ring_out out;
    weft_ring_in in;
    uint32_t place, line;
    ring = ring_new();
    open_after(&out, &in, 0, 0);
    out.bodies = bodies;
    CU_ASSERT_TRUE(weft_ring_reserve(&out, 64, &place));
    send_one(&out, place, 64);
    weft_ring_update_consumed(&out, 1);
    for (uint32_t i = 0; i < 2 * WEFT_RING_CELLS; i++) {
        send_one(&out, 0, 0);
        weft_ring_update_consumed(&out, weft_ring_sent(&out));
        CU_ASSERT(weft_ring_cells_free(&out) > 0);
    }
    out.bodies_begin = out.bodies_end = 0; /* 2^32 long bodies later */
    CU_ASSERT_TRUE(weft_ring_reserve(&out, WEFT_RING_BODY_MAX, &place));
    send_one(&out, place, WEFT_RING_BODY_MAX);
    line = (place & WEFT_PLACE_INDEX) - 1;
    CU_ASSERT_TRUE(weft_ring_reserve(&out, 64, &place));
    place = (place & WEFT_PLACE_INDEX) - 1;
    CU_ASSERT(place < line || place >= line + WEFT_RING_BODY_MAX / WEFT_LINE);
    free(ring);
}

/* One body, and then more frames without one than its count of cells (16 bits) can distinguish: its block is free. As in the iface, the
 * sender reads the free cells when it has used those that it knew of. */
static void counts_of_cells_wrap(void)
{
    weft_ring_body bodies[WEFT_RING_BODIES];
    weft_ring_out out;
    weft_ring_in in;
    uint32_t place, room = 0;
    ring = ring_new();
    weft_ring_out_open(&out, ring);
    weft_ring_in_open(&in, ring);
    out.bodies = bodies;
    for (uint32_t i = 0; i < 40000; i++) {
        weft_cell *cell;
        if (!room)
            room = weft_ring_cells_free(&out);
        CU_ASSERT_TRUE_FATAL(room-- > 0);
        cell = weft_ring_next(&out);
        cell->place = 0;
        if (!i)
            CU_ASSERT_TRUE_FATAL(weft_ring_reserve(&out, 64, &cell->place));
        cell->hdr = (weft_hdr){.seq = i, .bytes = 8};
        weft_ring_publish(&out, cell);
        weft_ring_consume(&in, weft_ring_peek(&in));
        if (weft_ring_should_ack(&in))
            weft_ring_ack(&in);
        weft_ring_update_consumed(&out, in.consumed); /* from the other direction: free cells never run out */
    }
    CU_ASSERT_TRUE(weft_ring_cells_free(&out) && weft_ring_reserve(&out, WEFT_RING_BODY_MAX, &place));
    CU_ASSERT_EQUAL(place, 1);
    free(ring);
}

/* Without a reader bodies of each size fill the blocks to the end of each half, and short ones share them; all are free once it is known
 * that they are consumed. */
static void blocks_are_filled(void)
{
    for (uint32_t blocks = 0; blocks <= WEFT_RING_BLOCKS_MAX; blocks++) {
        uint32_t bytes = blocks ? blocks * WEFT_RING_BLOCK : WEFT_LINE, n = 0, place;
        weft_ring_body bodies[WEFT_RING_BODIES];
        weft_ring_out out;
        weft_ring_in in;
        ring = ring_new();
        open_after(&out, &in, 0, 0);
        out.bodies = bodies;
        for (; weft_ring_cells_free(&out) && weft_ring_reserve(&out, bytes, &place); n++)
            send_one(&out, place, bytes);
        CU_ASSERT_EQUAL(n, blocks ? WEFT_RING_HALF / blocks * 2 : WEFT_RING_CELLS);
        weft_ring_update_consumed(&out, n);
        CU_ASSERT_TRUE(weft_ring_cells_free(&out) && weft_ring_reserve(&out, WEFT_RING_BODY_MAX, &place));
        CU_ASSERT_EQUAL(place, 1);
        CU_ASSERT_EQUAL(out.bodies_end - out.bodies_begin, 1);
        free(ring);
    }
}

/* Places a body of so many blocks there. */
static void send_at(weft_ring_out *out, uint32_t block, uint32_t blocks)
{
    uint64_t busy[2] = {out->busy[0], out->busy[1]};
    uint32_t half = block / WEFT_RING_HALF, place;
    out->busy[!half] = (1ull << WEFT_RING_HALF) - 1;
    out->busy[half] |= (1ull << block % WEFT_RING_HALF) - 1;
    CU_ASSERT_TRUE_FATAL(weft_ring_cells_free(out) && weft_ring_reserve(out, blocks * WEFT_RING_BLOCK, &place));
    CU_ASSERT_EQUAL_FATAL((place & WEFT_PLACE_INDEX) - 1, block * WEFT_RING_BLOCK_LINES);
    busy[half] |= ((1ull << blocks) - 1) << block % WEFT_RING_HALF;
    memcpy(out->busy, busy, sizeof busy);
    send_one(out, place, blocks * WEFT_RING_BLOCK);
}

static void read_one(weft_ring_in *in)
{
    weft_cell *cell = weft_ring_peek(in);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cell);
    weft_ring_consume(in, cell);
    if (weft_ring_should_ack(in))
        weft_ring_ack(in);
}

/* Few short bodies can lie so that the longest one has no room: each in the first block that was free then. They are too few and too short
 * for an acknowledgement of their own, so the sender must have asked for it: once all are consumed, there is room. */
static void who_has_read_all_has_said_so(void)
{
    static const uint32_t holes[][2] = {{99, 13}, {83, 16}, {67, 16}, {56, 11}, {48, 8}, {32, 16}, {16, 16}, {0, 16}};
    weft_ring_body bodies[WEFT_RING_BODIES];
    weft_ring_out out;
    weft_ring_in in;
    uint32_t place;
    ring = ring_new();
    open_after(&out, &in, 0, 0);
    out.bodies = bodies;
    for (size_t i = 0; i < weft_count(holes); i++)
        send_at(&out, holes[i][0], holes[i][1]);
    for (size_t i = 0; i < weft_count(holes); i++) {
        read_one(&in);
        weft_ring_update_consumed(&out, in.consumed); /* by a frame of the other direction */
        CU_ASSERT_EQUAL(in.acked, in.consumed);
        for (int k = 0; k < 2; k++) {
            CU_ASSERT_TRUE_FATAL(weft_ring_cells_free(&out) && weft_ring_reserve(&out, 255, &place));
            CU_ASSERT_EQUAL(((place & WEFT_PLACE_INDEX) - 1) / WEFT_RING_BLOCK_LINES, holes[i][0]);
            send_one(&out, place, 255);
        }
    }
    CU_ASSERT(weft_ring_cells_free(&out) > 0);
    CU_ASSERT_FALSE(weft_ring_reserve(&out, WEFT_RING_BODY_MAX, &place));
    while (weft_ring_peek(&in))
        read_one(&in);
    CU_ASSERT_TRUE(weft_ring_cells_free(&out) && weft_ring_reserve(&out, WEFT_RING_BODY_MAX, &place));
    free(ring);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("ring", NULL, NULL);
    CU_add_test(suite, "two threads, every size, in order and complete", two_threads);
    CU_add_test(suite, "two threads, both ways", two_threads_both_ways);
    CU_add_test(suite, "full, and free again", full_and_again);
    CU_add_test(suite, "data lines never block", data_lines_never_block);
    CU_add_test(suite, "bodies stay apart", bodies_stay_apart);
    CU_add_test(suite, "a ping-pong stays in the hot blocks", ping_pong_stays_hot);
    CU_add_test(suite, "a stream stays in the hot blocks", stream_stays_hot);
    CU_add_test(suite, "impossible counts are ignored", impossible_counts_are_ignored);
    CU_add_test(suite, "old shares are forgotten", old_shares_are_forgotten);
    CU_add_test(suite, "counts of cells wrap", counts_of_cells_wrap);
    CU_add_test(suite, "blocks are filled to the end", blocks_are_filled);
    CU_add_test(suite, "a reader that has consumed all has acknowledged all", who_has_read_all_has_said_so);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}

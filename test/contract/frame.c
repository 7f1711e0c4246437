/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame: the contract's send and poll: sizes, order, refusal, replies from within recv_frame, budgets.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"

/* All fields follow from n and bytes: a changed header or a truncated body is detected. */
static weft_hdr hdr_of(uint32_t n, uint32_t bytes)
{
    return (weft_hdr){.seq = n, .kind = WEFT_FRAME_EAGER, .flags = 0x5a, .credits = (uint16_t)(n * 7), .chan = n * 31 + 5,
                       .src = (int32_t)(bytes - 3), .tag = (int32_t)(n * 1000003u), .bytes = bytes};
}

/* Sends message n with its pattern; the buffer is overwritten as soon as send returns. */
static int send_pattern(rig_side *side, uint32_t n, uint32_t bytes)
{
    uint8_t *body = malloc(bytes + 1);
    rig_pattern(body, n, bytes);
    weft_frame frame = {.hdr = hdr_of(n, bytes), .body = body};
    int rc = rig_send(side, &frame);
    memset(body, 0xee, bytes);
    free(body);
    return rc;
}

static void check_arrival(const rig_side *side, const rig_arrival *one)
{
    weft_hdr want = hdr_of(one->hdr.seq, (uint32_t)one->hdr.src + 3);
    CHECK(memcmp(&one->hdr, &want, sizeof want) == 0);
    CHECK(one->peer == side->other);
    CHECK(one->is_aligned);
    CHECK(rig_is_pattern(one->body, one->hdr.seq, one->hdr.bytes));
}

/* Each of `count` frames exactly once, and in order if caps.ordered. */
static void check_all(const rig_side *side, uint32_t count)
{
    uint8_t *seen = calloc(count, 1);
    CHECK(side->arrival_count == count);
    for (uint32_t i = 0; i < side->arrival_count; i++) {
        const rig_arrival *one = &side->arrivals[i];
        CHECK(one->hdr.seq < count);
        if (one->hdr.seq < count)
            seen[one->hdr.seq]++;
        CHECK(!side->iface->caps.ordered || one->hdr.seq == i);
        check_arrival(side, one);
    }
    for (uint32_t i = 0; i < count; i++)
        CHECK(seen[i] == 1);
    free(seen);
}

static void all_sizes(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    uint32_t max = rig->a->iface->caps.frame_max, n = 0;
    for (uint32_t bytes = 0; bytes <= max; n++) {
        CHECK(send_pattern(rig->a, n, bytes) == 0);
        uint32_t next = bytes < 300 ? bytes + 1 : bytes + bytes / 16;
        bytes = bytes < max && next > max ? max : next;
    }
    CHECK(rig_until(rig, &rig->b->arrival_count, n));
    rig_settle(rig);
    check_all(rig->b, n);
    CHECK(rig->b->arrived_outside_poll == 0);
    rig_close(rig);
}

static uint32_t fills;

static void fill_pattern(const weft_frame *frame, void *place)
{
    fills++;
    rig_pattern(place, frame->hdr.seq, frame->hdr.bytes);
}

static void filled_in_place(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    uint32_t max = rig->a->iface->caps.frame_max, count = 100;
    fills = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bytes = i < 10 ? i : (uint32_t)(rig_random(rig) % max) + 1;
        weft_frame frame = {.hdr = hdr_of(i, bytes), .body = NULL, .pack = fill_pattern};
        CHECK(rig_send(rig->a, &frame) == 0);
    }
    CHECK(fills >= count - 1); /* pack need not be called for a body of 0 bytes */
    CHECK(rig_until(rig, &rig->b->arrival_count, count));
    check_all(rig->b, count);
    rig_close(rig);
}

static void keeps_order(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    uint32_t max = rig->a->iface->caps.frame_max, count = 1500;
    if (max > 3000)
        max = 3000;
    for (uint32_t i = 0; i < count; i++) {
        CHECK(send_pattern(rig->a, i, (uint32_t)(rig_random(rig) % (rig_random(rig) % 4 ? 100 : max))) == 0);
        if (rig_random(rig) % 3 == 0)
            rig_poll(rig->b, (int)(rig_random(rig) % 8));
    }
    CHECK(rig_until(rig, &rig->b->arrival_count, count));
    rig_settle(rig);
    check_all(rig->b, count);
    rig_close(rig);
}

static void both_ways(const rig_row *row)
{
    weft_rig *rig = row->is_self ? NULL : rig_open(row, false);
    if (!rig)
        return;
    uint32_t sent[2] = {0, 0}, count = 400;
    while (sent[0] < count || sent[1] < count) {
        uint32_t side = sent[0] == count ? 1 : sent[1] == count ? 0 : rig_random(rig) & 1;
        CHECK(send_pattern(&rig->sides[side], sent[side], (uint32_t)(rig_random(rig) % 90)) == 0);
        sent[side]++;
        if (rig_random(rig) % 5 == 0)
            rig_turn(rig);
    }
    CHECK(rig_until(rig, &rig->b->arrival_count, count) && rig_until(rig, &rig->a->arrival_count, count));
    check_all(rig->a, count);
    check_all(rig->b, count);
    rig_close(rig);
}

/* Zcopy bodies: unchanged until done, which comes once for each INPROGRESS and only within poll. */
static void holds_bodies(const rig_row *row)
{
    enum { COUNT = 60 };
    static rig_done ends[COUNT];
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    uint32_t max = rig->a->iface->caps.frame_max, held = 0, min = rig->a->iface->caps.zcopy_min;
    uint8_t *bodies[COUNT];
    bool is_held[COUNT];
    memset(ends, 0, sizeof ends);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t bytes = i % 3 ? max - (uint32_t)(rig_random(rig) % 9 % max) : (uint32_t)(rig_random(rig) % max) + 1;
        bodies[i] = malloc(bytes);
        rig_pattern(bodies[i], i, bytes);
        weft_frame frame = {.hdr = hdr_of(i, bytes), .body = bodies[i], .zcopy_ctx = &ends[i]};
        int rc = rig_send(rig->a, &frame);
        CHECK(rc == 0 || (rc == WEFT_INPROGRESS && min && bytes >= min));
        is_held[i] = rc == WEFT_INPROGRESS;
        held += is_held[i];
        if (!is_held[i])
            memset(bodies[i], 0xee, bytes);
        if (rig_random(rig) % 4 == 0)
            rig_turn(rig);
    }
    CHECK(!min || max < min || held);
    CHECK(rig_until(rig, &rig->b->arrival_count, COUNT));
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(!is_held[i] || rig_until(rig, &ends[i].times, 1));
        CHECK(ends[i].rc == 0);
    }
    rig_settle(rig);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(ends[i].times == is_held[i]);
        free(bodies[i]);
    }
    check_all(rig->b, COUNT);
    rig_close(rig);
}

/* Without polls a bounded queue returns AGAIN; a refused frame does not arrive and can be sent later. */
static void refuses_when_full(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    weft_iface *iface = rig->a->iface;
    uint32_t n = 0, refused = 0, bytes = iface->caps.frame_max < 1024 ? iface->caps.frame_max : 1024;
    uint8_t *body = malloc(bytes);
    for (uint32_t tries = 0; refused < 50 && tries < 100000; tries++) {
        rig_pattern(body, n, bytes);
        weft_frame frame = {.hdr = hdr_of(n, bytes), .body = body};
        int rc = iface->ops->send(iface, rig->a->ep, &frame);
        CHECK(rc == 0 || rc == WEFT_AGAIN);
        n += rc == 0;
        refused += rc == WEFT_AGAIN;
    }
    CHECK(refused == 50);
    free(body);
    uint32_t before = n;
    for (; n < before + 20; n++)
        CHECK(send_pattern(rig->a, n, bytes) == 0);
    CHECK(rig_until(rig, &rig->b->arrival_count, n));
    rig_settle(rig);
    check_all(rig->b, n);
    rig_close(rig);
}

/* Ping-pong by replies from within recv_frame; the test sends a refused reply later. */
typedef struct pong {
    uint32_t left, owed, next;
} pong;

static void reply(rig_side *side, void *peer, const weft_hdr *hdr, const void *body)
{
    pong *game = side->extra;
    (void)peer;
    (void)body;
    if (!game->left)
        return;
    weft_frame frame = {.hdr = hdr_of(hdr->seq + 1, 0)};
    game->left--;
    game->next = hdr->seq + 1;
    int rc = side->iface->ops->send(side->iface, side->ep, &frame);
    CHECK(rc == 0 || rc == WEFT_AGAIN);
    game->owed += rc == WEFT_AGAIN;
}

static void replies_from_recv_frame(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    pong game = {.left = 600};
    for (int i = 0; i < 2; i++) {
        rig->sides[i].on_arrive = reply;
        rig->sides[i].extra = &game;
    }
    CHECK(send_pattern(rig->a, 0, 0) == 0);
    for (uint32_t i = 0; i < 400000 * rig_patience && (game.left || game.owed); i++) {
        rig_turn(rig);
        if (game.owed) {
            /* the refused reply belongs to the side that received last */
            rig_side *side = row->is_self || game.next % 2 == 0 ? rig->a : rig->b;
            weft_frame frame = {.hdr = hdr_of(game.next, 0)};
            game.owed -= side->iface->ops->send(side->iface, side->ep, &frame) == 0;
        }
    }
    if (row->is_self)
        rig_until(rig, &rig->a->arrival_count, 601);
    else
        CHECK(rig_until(rig, &rig->a->arrival_count, 300) && rig_until(rig, &rig->b->arrival_count, 301));
    rig_settle(rig);
    CHECK(game.left == 0);
    CHECK(rig->a->deepest <= 1 && rig->b->deepest <= 1);
    CHECK(rig->a->arrived_outside_poll == 0 && rig->b->arrived_outside_poll == 0);
    CHECK(rig->a->arrival_count + (row->is_self ? 0 : rig->b->arrival_count) == 601);
    rig_close(rig);
}

static void keeps_to_budget(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    uint32_t n = 0;
    for (; n < 60; n++)
        if (send_pattern(rig->a, n, 8))
            break;
    static const int budgets[] = {1, 1, 3, 7, 2, 16};
    for (uint32_t i = 0; i < 20000 && rig->b->arrival_count < n; i++) {
        int budget = budgets[i % weft_count(budgets)];
        uint32_t before = rig->b->arrival_count;
        int events = rig_poll(rig->b, budget);
        uint32_t came = rig->b->arrival_count - before;
        CHECK(events >= 0 && events <= budget && came <= (uint32_t)budget);
        CHECK(came <= (uint32_t)events); /* received frames are counted */
        if (rig->b != rig->a)
            rig_poll(rig->a, 1);
    }
    CHECK(rig->b->arrival_count == n);
    n = UINT32_MAX;
    for (int tries = 0; n > 2 && tries < 5; tries++) { /* an iface may have internal events now and then, a reconnect many */
        rig_settle(rig);
        n = 0;
        for (int i = 0; i < 50; i++)
            n += rig_turn(rig) != 0;
    }
    CHECK(n <= 2);
    rig_close(rig);
}

const rig_test frame_tests[] = {
    {"all-sizes", all_sizes}, {"filled-in-place", filled_in_place}, {"keeps-order", keeps_order}, {"both-ways", both_ways},
    {"holds-bodies", holds_bodies},
    {"refuses-when-full", refuses_when_full}, {"replies-from-recv-frame", replies_from_recv_frame}, {"keeps-to-budget", keeps_to_budget},
    {NULL, NULL},
};

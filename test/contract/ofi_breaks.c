/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_breaks: see ofi_breaks.h. A connection is reset as a firewall does it: connect() to AF_UNSPEC makes the kernel send RST, and drops
 * what is in both sockets' buffers; shutdown() makes the local end readable, as an RST that comes in does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/ofi_breaks.h"
#include "test/contract/tcp_reset.h"
#include "transports/ofi/ofi.h"

enum { MESSAGES = 600, BODY_MAX = 65000, LONG_FRAGMENT = 8192 };

typedef struct flow { /* one direction */
    rig_side *from, *to;
    uint8_t *bodies[MESSAGES];
    uint32_t lengths[MESSAGES];
    rig_done dones[MESSAGES];
    uint32_t sent, lent; /* lent: bodies sent without copy so far */
} flow;

static uint32_t random_length(weft_rig *rig)
{
    uint64_t kind = rig_random(rig) % 8;
    return (uint32_t)(kind < 4 ? rig_random(rig) % 100 : kind < 6 ? rig_random(rig) % 5000 : rig_random(rig) % BODY_MAX);
}

/* Sends the next message if it is taken. */
static void send_next(weft_rig *rig, flow *flow)
{
    uint32_t i = flow->sent;
    weft_frame frame = {.hdr = {.seq = i + 1}};
    int rc;
    if (i == MESSAGES)
        return;
    if (!flow->bodies[i]) {
        flow->lengths[i] = random_length(rig);
        flow->bodies[i] = malloc(flow->lengths[i] + 1);
        rig_pattern(flow->bodies[i], i, flow->lengths[i]);
    }
    frame.hdr.bytes = flow->lengths[i];
    frame.body = flow->bodies[i];
    frame.zcopy_ctx = frame.hdr.bytes >= OFI_ZCOPY_MIN ? &flow->dones[i] : NULL;
    rc = flow->from->iface->ops->send(flow->from->iface, flow->from->ep, &frame);
    CHECK(rc == 0 || rc == WEFT_AGAIN || (rc == WEFT_INPROGRESS && frame.zcopy_ctx));
    if (rc == WEFT_AGAIN)
        return;
    flow->sent++;
    if (rc == WEFT_INPROGRESS)
        flow->lent++;
    else
        memset(flow->bodies[i], 0xee, flow->lengths[i]); /* the library has a copy */
}

/* Bodies that were given back are overwritten; each is given back once. */
static uint32_t reclaim(flow *flow)
{
    uint32_t back = 0;
    for (uint32_t i = 0; i < flow->sent; i++) {
        back += flow->dones[i].times;
        if (flow->dones[i].times && flow->bodies[i])
            memset(flow->bodies[i], 0xdd, flow->lengths[i]);
    }
    return back;
}

static void check_flow(const flow *flow)
{
    CHECK(flow->to->arrival_count == MESSAGES);
    for (uint32_t i = 0; i < flow->to->arrival_count; i++) {
        const rig_arrival *one = &flow->to->arrivals[i];
        bool is_right = one->hdr.seq == i + 1 && one->hdr.bytes == flow->lengths[i] && rig_is_pattern(one->body, i, one->hdr.bytes);
        CHECK(is_right);
        if (!is_right)
            return;
    }
}

/* A put and then, where the network can, a get of the same bytes, one after the other, while the messages run. */
typedef struct mover {
    rig_side *side;
    uint8_t *local, *remote;
    weft_mr mr, far;
    rig_done done;
    uint32_t rounds, notifies;
    bool is_busy, is_get, may_get;
} mover;

enum { MOVE_BYTES = 1200000 };

static void move_next(mover *mover)
{
    weft_rma rma = {.local = mover->local, .mr = &mover->mr, .remote = (uintptr_t)mover->remote, .rkey = &mover->far.rkey,
                    .bytes = MOVE_BYTES, .done = &mover->done, .notify = mover->is_get ? 0 : mover->rounds + 1};
    weft_iface *iface = mover->side->iface;
    if (mover->is_busy && !mover->done.times)
        return;
    if (mover->is_busy) {
        CHECK(mover->done.rc == 0 && mover->done.times == 1);
        if (mover->done.rc)
            printf("  %s\n", weft_fail_text(mover->done.rc));
        CHECK(rig_is_pattern(mover->is_get ? mover->local : mover->remote, mover->rounds, MOVE_BYTES));
        mover->is_busy = false;
        mover->rounds += mover->is_get || !mover->may_get;
        mover->is_get = !mover->is_get && mover->may_get;
        return;
    }
    if (mover->is_get)
        memset(mover->local, 0, MOVE_BYTES);
    else
        rig_pattern(mover->local, mover->rounds, MOVE_BYTES);
    mover->done = (rig_done){0};
    mover->is_busy = (mover->is_get ? iface->ops->get : iface->ops->put)(iface, mover->side->ep, &rma) == 0;
    mover->notifies += mover->is_busy && !mover->is_get;
}

static void mover_open(weft_rig *rig, mover *mover)
{
    mover->side = rig->a;
    mover->may_get = rig->a->iface->caps.get;
    mover->local = calloc(1, MOVE_BYTES);
    mover->remote = calloc(1, MOVE_BYTES);
    CHECK(rig_map(rig->a, mover->local, MOVE_BYTES, 0, &mover->mr) == 0);
    CHECK(rig_map(rig->b, mover->remote, MOVE_BYTES, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, &mover->far) == 0);
}

static void mover_close(weft_rig *rig, mover *mover)
{
    CHECK(rig->a->iface->ops->mr_dereg(rig->a->iface, &mover->mr) == 0);
    CHECK(rig->b->iface->ops->mr_dereg(rig->b->iface, &mover->far) == 0);
    free(mover->local);
    free(mover->remote);
}

static bool is_finished(const weft_rig *rig, flow *flows, const mover *mover)
{
    for (int i = 0; i < 2; i++)
        if (flows[i].to->arrival_count < MESSAGES || reclaim(&flows[i]) < flows[i].lent)
            return false;
    return !mover->is_busy && rig->b->notifies == mover->notifies;
}

uint64_t breaks_random(const rig_row *row, uint64_t seed)
{
    weft_rig *rig = rig_open(row, false);
    flow *flows = calloc(2, sizeof *flows);
    mover mover = {0};
    uint32_t resets = 0, idle = 0;
    uint64_t resent;
    if (!rig)
        return 0;
    rig->random = seed * 0x9e3779b97f4a7c15u;
    flows[0] = (flow){.from = rig->a, .to = rig->b};
    flows[1] = (flow){.from = rig->b, .to = rig->a};
    mover_open(rig, &mover);
    for (uint32_t k = 0; idle < 200000 && !rig->a->losts && !rig->b->losts; k++) {
        uint32_t before = rig->a->arrival_count + rig->b->arrival_count + mover.rounds;
        bool sends = flows[0].sent < MESSAGES || flows[1].sent < MESSAGES;
        for (uint64_t n = rig_random(rig) % 6; n; n--)
            send_next(rig, &flows[rig_random(rig) % 2]);
        if (sends || mover.is_busy)
            move_next(&mover);
        if (sends && rig_random(rig) % 40 == 0)
            resets += tcp_reset_one(3, rig_random(rig));
        for (uint64_t n = rig_random(rig) % 4; n; n--)
            rig_poll(&rig->sides[rig_random(rig) % 2], 1 + (int)(rig_random(rig) % 16));
        idle = before == rig->a->arrival_count + rig->b->arrival_count + mover.rounds ? idle + 1 : 0;
        if (idle > 100)
            usleep(50);
        if (!sends && is_finished(rig, flows, &mover))
            break;
    }
    CHECK(rig->a->losts == 0 && rig->b->losts == 0);
    CHECK(resets > 0);
    rig_settle(rig); /* nothing comes twice */
    CHECK(rig->b->notifies == mover.notifies && mover.rounds > 0);
    for (int i = 0; i < 2; i++) {
        check_flow(&flows[i]);
        CHECK(reclaim(&flows[i]) == flows[i].lent);
    }
    resent = ((ofi_iface *)rig->a->iface)->counts[OFI_COUNT_RESENT] + ((ofi_iface *)rig->b->iface)->counts[OFI_COUNT_RESENT];
    mover_close(rig, &mover);
    rig_close(rig);
    for (int i = 0; i < MESSAGES; i++) {
        free(flows[0].bodies[i]);
        free(flows[1].bodies[i]);
    }
    free(flows);
    return resent;
}

void breaks_long_fragments(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    mover mover = {0};
    uint32_t resets = 0;
    if (!rig)
        return;
    mover_open(rig, &mover);
    for (int k = 0; k < 400000 && !mover.rounds && !rig->a->losts; k++) {
        move_next(&mover);
        if (mover.is_busy && !mover.done.times && ((const ofi_ep *)rig->a->ep)->bytes_out > LONG_FRAGMENT)
            resets += tcp_reset_one(3, 0);
        rig_turn(rig);
        if (resets && k % 16 == 0)
            usleep(50);
    }
    CHECK(resets > 64 && mover.rounds > 0 && rig->a->losts == 0 && rig->b->losts == 0);
    mover_close(rig, &mover);
    rig_close(rig);
}

static weft_rig *open_met(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    weft_frame frame = {.hdr = {.seq = 1}};
    if (!rig)
        return NULL;
    CHECK(rig_send(rig->a, &frame) == 0 && rig_send(rig->b, &frame) == 0);
    CHECK(rig_until(rig, &rig->b->arrival_count, 1) && rig_until(rig, &rig->a->arrival_count, 1));
    return rig;
}

static void reset_all(void)
{
    for (int i = 0; i < 16 && tcp_reset_one(3, 0); i++)
        ;
}

/* Polls with pauses until *count is `want`. */
static bool patiently(weft_rig *rig, const uint32_t *count, uint32_t want)
{
    for (int k = 0; k < 200000 && *count < want; k++, usleep(50))
        rig_turn(rig);
    return *count == want;
}

void breaks_last_frame(const rig_row *row)
{
    weft_rig *rig = open_met(row);
    weft_frame frame = {.hdr = {.seq = 2}};
    if (!rig)
        return;
    CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == 0);
    reset_all();
    CHECK(patiently(rig, &rig->b->arrival_count, 2));
    CHECK(rig->a->losts == 0 && rig->b->losts == 0);
    rig_close(rig);
}

void breaks_before_close(const rig_row *row)
{
    weft_rig *rig = open_met(row);
    weft_frame frame = {.hdr = {.seq = 2}};
    int rcs[2] = {WEFT_AGAIN, WEFT_AGAIN};
    if (!rig)
        return;
    CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == 0);
    reset_all();
    for (int k = 0; k < 200000 && (rcs[0] || rcs[1]); k++, usleep(50)) {
        if (rcs[0])
            rcs[0] = rig->a->iface->ops->ep_close(rig->a->iface, rig->a->ep);
        if (rcs[1] && rig->b->arrival_count == 2)
            rcs[1] = rig->b->iface->ops->ep_close(rig->b->iface, rig->b->ep);
        rig_turn(rig);
    }
    CHECK(rcs[0] == 0 && rcs[1] == 0 && rig->b->arrival_count == 2 && rig->b->losts == 0);
    rig->a->ep = rig->b->ep = NULL;
    rig_close(rig);
}

void breaks_late_copy(const rig_row *row)
{
    weft_rig *rig = open_met(row);
    uint8_t *body = malloc(BODY_MAX);
    rig_done done = {0};
    weft_frame frame = {.hdr = {.seq = 2, .bytes = BODY_MAX}, .body = body, .zcopy_ctx = &done};
    if (!rig)
        return;
    rig_pattern(body, 7, BODY_MAX);
    CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == WEFT_INPROGRESS);
    for (int k = 0; k < 100000 && !done.times; k++, usleep(50))
        rig_poll(rig->a, 16); /* b does not poll */
    CHECK(done.times == 1 && ((ofi_iface *)rig->a->iface)->counts[OFI_COUNT_COPIED_LATE] == 1);
    memset(body, 0, BODY_MAX);
    reset_all();
    CHECK(patiently(rig, &rig->b->arrival_count, 2));
    CHECK(rig->b->arrival_count == 2 && rig_is_pattern(rig->b->arrivals[1].body, 7, BODY_MAX));
    CHECK(done.times == 1 && rig->a->losts == 0 && rig->b->losts == 0);
    rig_close(rig);
    free(body);
}

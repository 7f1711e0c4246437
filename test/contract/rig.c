/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rig: see rig.h.
 */
#include "test/contract/rig.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"

#define TURNS 200000u /* polls of both sides before a loop gives up, times rig_patience */

const rig_row rig_rows[] = {
    {"self", &weft_self_ops, NULL, 1, true, false},
    {"sim calm 1", &weft_sim_ops, "calm", 1, false, false},
    {"sim calm 2", &weft_sim_ops, "calm", 2, false, false},
    {"sim slow 3", &weft_sim_ops, "slow", 3, false, false},
    {"sim storm 4", &weft_sim_ops, "storm", 4, false, false},
    {"sim storm 5", &weft_sim_ops, "storm", 5, false, false},
    {"sim narrow 6", &weft_sim_ops, "narrow", 6, false, false},
    {"sim shuffled 7", &weft_sim_ops, "shuffled", 7, false, false},
    {"sim shuffled 8", &weft_sim_ops, "shuffled", 8, false, false},
    {"sim torn 9", &weft_sim_ops, "torn", 9, false, false},
    {"sim copyonly 10", &weft_sim_ops, "copyonly", 10, false, false},
    {"sim pinched 11", &weft_sim_ops, "pinched", 11, false, false},
    {"sim tiny 12", &weft_sim_ops, "tiny", 12, false, false},
    {"sim wild 13", &weft_sim_ops, "wild", 13, false, false},
    {"sim wild 14", &weft_sim_ops, "wild", 14, false, false},
    {"sim kernel 15", &weft_sim_ops, "kernel", 15, false, false},
    {"sim grudging 16", &weft_sim_ops, "grudging", 16, false, false},
    {"sim lopsided 18", &weft_sim_ops, "lopsided", 18, false, false},
    {"sim pinning 20", &weft_sim_ops, "pinning", 20, false, false},
    {"sim scarce 21", &weft_sim_ops, "scarce", 21, false, false},
    {"sim starved 22", &weft_sim_ops, "starved", 22, false, false},
    {"sim rails 23", &weft_sim_ops, "rails", 23, false, false},
    {"sim flapping 24", &weft_sim_ops, "flapping", 24, false, false},
    {"sim pressed 25", &weft_sim_ops, "pressed", 25, false, false},
    {"sim ticking 26", &weft_sim_ops, "ticking", 26, false, false},
    {"sim hca 27", &weft_sim_ops, "hca", 27, false, false},
    {"sim hca 28", &weft_sim_ops, "hca", 28, false, false},
    {"sim holding 29", &weft_sim_ops, "holding", 29, false, false},
    {"shm", &weft_shm_ops, NULL, 17, false, false},
    {"shm by descriptor", &weft_shm_ops, NULL, 19, false, true},
    {NULL, NULL, NULL, 0, false, false},
};

void (*rig_patch)(weft_iface *iface);
bool rig_loose_windows;
uint32_t rig_patience = 1;
uint32_t rig_failures;
bool rig_counts_only;

void rig_check(bool ok, const char *text, const char *file, unsigned line)
{
    if (!ok)
        rig_failures++;
    if (!rig_counts_only)
        CU_assertImplementation(ok, line, text, file, "", CU_FALSE);
}

uint64_t rig_random(weft_rig *rig)
{
    rig->random ^= rig->random << 13;
    rig->random ^= rig->random >> 7;
    rig->random ^= rig->random << 17;
    return rig->random;
}

void rig_pattern(uint8_t *to, uint32_t n, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = rig_byte(n, i);
}

bool rig_is_pattern(const uint8_t *at, uint32_t n, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (at[i] != rig_byte(n, i))
            return false;
    return true;
}

/* -- callbacks -- */

static void up_recv_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    rig_side *side = owner;
    if (side->arrival_count == side->arrival_room) {
        side->arrival_room = side->arrival_room ? 2 * side->arrival_room : 64;
        side->arrivals = realloc(side->arrivals, side->arrival_room * sizeof *side->arrivals);
    }
    rig_arrival *one = &side->arrivals[side->arrival_count++];
    *one = (rig_arrival){.hdr = *hdr, .peer = peer, .is_aligned = (uintptr_t)body % 8 == 0};
    one->body = malloc(hdr->bytes + 1);
    if (hdr->bytes)
        memcpy(one->body, body, hdr->bytes);
    side->arrived_outside_poll += !side->is_in_poll;
    if (++side->depth > side->deepest)
        side->deepest = side->depth;
    if (side->on_arrive)
        side->on_arrive(side, peer, hdr, body);
    side->depth--;
}

static void up_done(void *owner, void *done, int rc)
{
    rig_done *what = done;
    (void)owner;
    what->times++;
    what->rc = rc;
}

static void up_notified(void *owner, void *peer, uint32_t notify)
{
    rig_side *side = owner;
    side->notifies++;
    side->last_notify = notify;
    side->last_notify_peer = peer;
    if (side->on_notify)
        side->on_notify(side);
}

static void up_peer_failed(void *owner, void *peer, int rc)
{
    rig_side *side = owner;
    side->losts++;
    side->lost_rc_bad += rc >= 0 || peer != side->other;
}

static bool reach(rig_side *side)
{
    char addr[WEFT_ADDR_MAX];
    size_t bytes = sizeof addr;
    weft_iface *iface = side->iface, *remote = side->other->iface;
    if (remote->ops->get_addr(remote, addr, &bytes))
        return false;
    return iface->ops->ep_open(iface, &side->other->proc_id, addr, bytes, side->other, &side->ep) == 0;
}

static void *greet_third(rig_side *side)
{
    char addr[WEFT_ADDR_MAX];
    size_t bytes = sizeof addr;
    rig_side *third = side->rig->third;
    if (third->iface->ops->get_addr(third->iface, addr, &bytes))
        return NULL;
    return side->iface->ops->ep_open(side->iface, &third->proc_id, addr, bytes, third, &side->rig->to_third) == 0 ? third : NULL;
}

static void *up_accept_peer(void *owner, const weft_proc_id *proc_id)
{
    rig_side *side = owner;
    if (side->rig->third && side == side->rig->b && proc_id->rank == side->rig->third->proc_id.rank)
        return greet_third(side);
    side->greets++;
    if (proc_id->rank != side->other->proc_id.rank || proc_id->job != side->proc_id.job || !reach(side))
        return NULL;
    return side->other;
}

static const weft_iface_callbacks ups = {.recv_frame = up_recv_frame, .done = up_done, .notify = up_notified, .peer_failed = up_peer_failed,
                                         .accept_peer = up_accept_peer};

/* -- opening -- */

static const void *medium(weft_rig *rig)
{
    if (rig->row->profile) {
        const weft_sim_profile *profile = weft_sim_profile_find(rig->row->profile);
        return rig->sim = profile ? weft_sim_open(profile, rig->row->seed) : NULL;
    }
    if (rig->row->is_self)
        return NULL;
    rig->has_segment = weft_segment_make(2, 77, 0, &rig->segment) == 0;
    return rig->has_segment ? &rig->segment : NULL;
}

weft_rig *rig_open(const rig_row *row, bool skip_b_reach)
{
    weft_rig *rig = calloc(1, sizeof *rig);
    rig->row = row;
    rig->random = row->seed * 0x9e3779b97f4a7c15u + 1;
    rig->segment.fd = -1;
    rig->a = &rig->sides[0];
    rig->b = &rig->sides[row->is_self ? 0 : 1];
    const void *over = medium(rig);
    bool ok = over || row->is_self;
    for (uint32_t i = 0; ok && i < (row->is_self ? 1 : 2); i++) {
        rig_side *side = &rig->sides[i];
        side->rig = rig;
        side->proc_id = (weft_proc_id){77, i, 0};
        side->other = row->is_self ? side : &rig->sides[1 - i];
        weft_iface_params params = {.owner = side, .callbacks = &ups, .self = side->proc_id, .segment = over, .local_rank = (int)i,
                             .wants_fd = row->wants_fd};
        ok = row->ops->open(&params, &side->iface) == 0;
        if (ok && rig_patch)
            rig_patch(side->iface);
    }
    ok = ok && reach(rig->a) && (row->is_self || skip_b_reach || reach(rig->b));
    CHECK(ok);
    if (ok)
        return rig;
    rig_close(rig);
    return NULL;
}

rig_side *rig_third(weft_rig *rig)
{
    rig_side *side = calloc(1, sizeof *side);
    side->rig = rig;
    side->proc_id = (weft_proc_id){77, 2, 0};
    side->other = rig->b;
    weft_iface_params params = {.owner = side, .callbacks = &ups, .self = side->proc_id, .local_rank = 2, .wants_fd = rig->row->wants_fd};
    bool ok = rig->row->ops->open(&params, &side->iface) == 0;
    if (ok && rig_patch)
        rig_patch(side->iface);
    rig->third = side;
    ok = ok && reach(side);
    CHECK(ok);
    return ok ? side : NULL;
}

static void close_third(weft_rig *rig)
{
    rig_side *third = rig->third;
    if (third->ep)
        rig_leave(third);
    for (uint32_t i = 0; rig->to_third && i < TURNS * rig_patience &&
                         rig->b->iface->ops->ep_close(rig->b->iface, rig->to_third) == WEFT_AGAIN; i++)
        rig_turn(rig);
    if (third->iface)
        third->iface->ops->close(third->iface);
    rig_forget(third);
    free(third->arrivals);
    free(third);
    rig->third = NULL;
}

void rig_forget(rig_side *side)
{
    for (uint32_t i = 0; i < side->arrival_count; i++)
        free(side->arrivals[i].body);
    side->arrival_count = 0;
}

void rig_close(weft_rig *rig)
{
    if (rig->third)
        close_third(rig);
    for (int i = 0; i < 2; i++) {
        rig_side *side = &rig->sides[i];
        if (side->ep)
            rig_leave(side);
    }
    for (int i = 0; i < 2; i++) {
        rig_side *side = &rig->sides[i];
        if (side->iface)
            side->iface->ops->close(side->iface);
        rig_forget(side);
        free(side->arrivals);
    }
    if (rig->sim)
        weft_sim_close(rig->sim);
    if (rig->has_segment)
        weft_segment_close(&rig->segment);
    free(rig);
}

/* -- operations -- */

int rig_poll(rig_side *side, int budget)
{
    side->is_in_poll = true;
    int n = side->iface->ops->poll(side->iface, budget);
    side->is_in_poll = false;
    return n;
}

int rig_turn(weft_rig *rig)
{
    int n = rig_poll(rig->a, 16) + (rig->third && rig->third->iface ? rig_poll(rig->third, 16) : 0);
    return rig->b == rig->a ? n : n + rig_poll(rig->b, 16);
}

bool rig_until(weft_rig *rig, const uint32_t *count, uint32_t want)
{
    for (uint32_t i = 0; *count < want && i < TURNS * rig_patience && !rig->gave_up; i++)
        rig_turn(rig);
    if (*count < want)
        rig->gave_up = true; /* one long wait fails the test */
    return *count >= want;
}

void rig_settle(weft_rig *rig)
{
    for (uint32_t quiet = 0, i = 0; quiet < 2000 && i < TURNS * rig_patience; i++)
        quiet = rig_turn(rig) ? 0 : quiet + 1;
}

#define RETRY(call)                                                             \
    int rc = WEFT_AGAIN;                                                        \
    for (uint32_t i = 0; i < TURNS * rig_patience && (rc = (call)) == WEFT_AGAIN; i++)         \
        rig_turn(side->rig);                                                    \
    return rc

int rig_send(rig_side *side, const weft_frame *frame)
{
    RETRY(side->iface->ops->send(side->iface, side->ep, frame));
}

int rig_move(rig_side *side, const weft_rma *rma, bool is_get)
{
    RETRY(is_get ? side->iface->ops->get(side->iface, side->ep, rma) : side->iface->ops->put(side->iface, side->ep, rma));
}

int rig_amo(rig_side *side, const weft_atomic *atomic)
{
    RETRY(side->iface->ops->amo(side->iface, side->ep, atomic));
}

int rig_flush(rig_side *side, bool remotely, rig_done *done)
{
    RETRY(side->iface->ops->flush(side->iface, side->ep, remotely, done));
}

int rig_move_wait(rig_side *side, weft_rma rma, bool is_get)
{
    rig_done done = {0, 0};
    rma.done = &done;
    int rc = rig_move(side, &rma, is_get);
    if (rc) {
        rig_settle(side->rig);
        CHECK(done.times == 0); /* failed within the call: no done */
        return rc;
    }
    CHECK(rig_until(side->rig, &done.times, 1));
    for (int i = 0; i < 300; i++)
        rig_turn(side->rig);
    CHECK(done.times == 1);
    return done.rc;
}

int rig_map(rig_side *side, void *addr, uint64_t bytes, uint32_t rights, weft_mr *mr)
{
    int rc = WEFT_E_NOMEM;
    for (int i = 0; i < 200 && rc == WEFT_E_NOMEM; i++)
        rc = side->iface->ops->mr_reg(side->iface, addr, bytes, rights, WEFT_MEMORY_HOST, mr);
    return rc;
}

bool rig_leave(rig_side *side)
{
    int rc = WEFT_AGAIN;
    for (uint32_t i = 0; i < TURNS * rig_patience && rc == WEFT_AGAIN; i++) {
        rc = side->iface->ops->ep_close(side->iface, side->ep);
        if (rc == WEFT_AGAIN)
            rig_turn(side->rig);
    }
    side->ep = NULL;
    return rc == 0;
}

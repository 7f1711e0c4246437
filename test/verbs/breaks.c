/* SPDX-License-Identifier: BSD-3-Clause
 *
 * breaks: two ifaces exchange traffic while their queue pairs are put into error at random steps. Each frame must arrive exactly once, in
 * order, intact; each put, get and notification once, correct; each atomic once, or fail with an unknown result.
 *     breaks [breaks [seed [profile]]]       WEFT_TEST_BREAKS=N: default number of breaks; WEFT_EAGER_RING=force: over rings too
 * breaks_early is the same over devices that complete sends and writes when these have left, as iWARP's do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/verbs/bench.h"
#include "transports/verbs/verbs.h"

#ifndef USUAL_PROFILE
#define USUAL_PROFILE NULL
#endif
#define BLOCK 150000u      /* more than uses one QP only */
#define BLOCK_SHORT 40000u /* mostly */
#define MOVES 6u
#define WIPED 0x5a
#define IDLE_MAX (bench_is_real ? 30000000ull : 3000000ull) /* real devices may need a kernel thread that gets no CPU for seconds */

typedef struct side side;
typedef struct motion { /* a put or get under way: block i of both sides is its own */
    side *owner;
    uint32_t number, bytes, value;
    bool is_busy, is_get;
    bool awaits_notice; /* the peer is not notified yet; then it owns the block, wipes it, and no write may follow */
    bool is_wiped;
} motion;

struct side {
    side *other;
    weft_iface *iface;
    weft_ep *ep;
    weft_proc_id proc_id;
    uint32_t sent, came, lost, greets;
    uint8_t next[1 << 16];   /* next body to send */
    uint32_t next_bytes;
    bool has_next;
    uint8_t *memory;         /* MOVES blocks of this side's RMA, MOVES of the peer's, one word for atomics */
    weft_mr mr;
    motion motions[MOVES];
    uint32_t moves, notifies_due, notified;
    uint64_t notify_sum, notified_sum;
    bool is_amo_busy;
    uint64_t amo_before;
    uint32_t amos, amos_unknown;
};

static uint64_t seed_now;
static bool is_early; /* simulated devices that are not iWARP but complete early as those do */
static uint32_t last_broken; /* epoch: each is broken once */
static uint32_t failures;
static side sides[2];

#define CHECK(x)                                                                                             \
    do {                                                                                                     \
        if (!(x) && failures++ < 20)                                                                         \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #x);                                           \
    } while (0)

static uint64_t chance(void)
{
    seed_now ^= seed_now << 13;
    seed_now ^= seed_now >> 7;
    seed_now ^= seed_now << 17;
    return seed_now;
}

static uint8_t byte_of(uint32_t n, uint32_t at)
{
    uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u + at * 0xff51afd7ed558ccdu;
    return (uint8_t)(x >> 56 ^ x >> 17);
}

static void fill(uint8_t *to, uint32_t n, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        to[i] = byte_of(n, i);
}

static bool is_whole(const uint8_t *at, uint32_t n, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (at[i] != byte_of(n, i))
            return false;
    return true;
}

static uint8_t *near_block(side *me, uint32_t i) { return me->memory + (size_t)i * BLOCK; }
static uint8_t *far_block(side *me, uint32_t i) { return me->other->memory + (size_t)(MOVES + i) * BLOCK; }
static uint64_t *far_word(side *me) { return (uint64_t *)(me->other->memory + (size_t)2 * MOVES * BLOCK); }

static bool is_clean(const uint8_t *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (at[i] != WIPED)
            return false;
    return true;
}

/* -- callbacks -- */

static void up_recv_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    side *me = owner;
    CHECK(peer == me->other);
    CHECK(hdr->seq == me->came); /* in order, none lost, none twice */
    CHECK(is_whole(body, hdr->seq, hdr->bytes));
    me->came = hdr->seq + 1;
}

static void up_done(void *owner, void *done, int rc)
{
    side *me = owner;
    if (done == &me->is_amo_busy) {
        CHECK(me->is_amo_busy && (rc == 0 || rc == WEFT_E_OTHER));
        me->is_amo_busy = false;
        me->amos += rc == 0;
        me->amos_unknown += rc != 0;
        return;
    }
    motion *what = done;
    uint32_t i = (uint32_t)(what - me->motions);
    CHECK(what->is_busy && rc == 0);
    CHECK(what->is_wiped ? is_clean(far_block(me, i), what->bytes)
                         : is_whole(what->is_get ? near_block(me, i) : far_block(me, i), what->number, what->bytes));
    what->is_busy = false;
    me->moves++;
}

static void up_notified(void *owner, void *peer, uint32_t value)
{
    side *me = owner;
    CHECK(peer == me->other);
    me->notified++;
    me->notified_sum += value;
    motion *what = &me->other->motions[value % MOVES];
    uint8_t *block = far_block(me->other, value % MOVES);
    CHECK(value && what->awaits_notice && what->value == value); /* each once */
    CHECK(is_whole(block, what->number, what->bytes));
    memset(block, WIPED, what->bytes);
    what->awaits_notice = false;
    what->is_wiped = true;
}

static void up_peer_failed(void *owner, void *peer, int rc)
{
    side *me = owner;
    (void)peer;
    printf("rank %u lost its peer: %s\n", me->proc_id.rank, weft_fail_text(rc));
    me->lost++;
}

static void *up_accept_peer(void *owner, const weft_proc_id *proc_id)
{
    side *me = owner;
    (void)proc_id;
    me->greets++;
    return NULL;
}

static const weft_iface_callbacks ups = {.recv_frame = up_recv_frame, .done = up_done, .notify = up_notified, .peer_failed = up_peer_failed,
                                         .accept_peer = up_accept_peer};

/* -- operations -- */

static bool open_side(uint32_t i)
{
    side *me = &sides[i];
    weft_iface_params params = {.owner = me, .callbacks = &ups, .self = {4711, i, 0}, .local_rank = -1, .wants_fd = true};
    size_t bytes = (size_t)2 * MOVES * BLOCK + 64;
    int rc;
    bench_next(i, &params);
    me->proc_id = params.self;
    me->other = &sides[1 - i];
    me->memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memset(me->memory, 0, bytes);
    rc = weft_verbs_ops.open(&params, &me->iface);
    for (uint8_t k = 0; is_early && !rc && k < ((verbs_iface *)me->iface)->rail_count; k++)
        ((verbs_iface *)me->iface)->rails[k].completes_early = true;
    if (!rc)
        rc = verbs_read_fence_open((verbs_iface *)me->iface);
    if (!rc)
        rc = weft_verbs_ops.mr_reg(me->iface, me->memory, bytes, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE | WEFT_ACCESS_ATOMIC,
                                   WEFT_MEMORY_HOST, &me->mr);
    if (rc)
        printf("rank %u cannot begin: %s\n", i, weft_fail_text(rc));
    return rc == 0;
}

static bool reach(side *me)
{
    return bench_reach(me->iface, me->other->iface, &me->other->proc_id, me->other, &me->ep);
}

static void say_one(side *me)
{
    uint32_t max = me->iface->caps.frame_max;
    if (!me->has_next) {
        me->next_bytes = (uint32_t)(chance() % (chance() % 8 ? 200 : max + 1));
        fill(me->next, me->sent, me->next_bytes);
        me->has_next = true;
    }
    weft_frame frame = {.hdr = {.seq = me->sent, .kind = WEFT_FRAME_EAGER, .bytes = me->next_bytes}, .body = me->next};
    int rc = weft_verbs_ops.send(me->iface, me->ep, &frame);
    CHECK(rc == 0 || rc == WEFT_AGAIN);
    me->has_next = rc == WEFT_AGAIN;
    me->sent += rc == 0;
}

static void move_one(side *me)
{
    uint32_t i = (uint32_t)(chance() % MOVES);
    motion *what = &me->motions[i];
    weft_rma rma = {.local = near_block(me, i), .mr = &me->mr, .remote = (uintptr_t)far_block(me, i), .rkey = &me->other->mr.rkey,
                      .done = what};
    int rc;
    if (what->is_busy || what->awaits_notice)
        return;
    *what = (motion){.owner = me, .number = (uint32_t)chance(), .is_get = chance() % 2};
    what->bytes = 1 + (uint32_t)(chance() % (chance() % 4 ? BLOCK_SHORT : BLOCK));
    fill(what->is_get ? far_block(me, i) : near_block(me, i), what->number, what->bytes);
    memset(what->is_get ? near_block(me, i) : far_block(me, i), 0, what->bytes);
    rma.bytes = what->bytes;
    rma.notify = !what->is_get && chance() % 2 ? (uint32_t)(1 + chance() % 1000) * MOVES + i : 0;
    what->value = rma.notify;
    what->awaits_notice = rma.notify != 0;
    what->is_busy = true;
    rc = what->is_get ? weft_verbs_ops.get(me->iface, me->ep, &rma) : weft_verbs_ops.put(me->iface, me->ep, &rma);
    CHECK(rc == 0 || rc == WEFT_AGAIN);
    if (rc)
        what->is_busy = what->awaits_notice = false;
    else if (rma.notify)
        me->notifies_due++, me->notify_sum += rma.notify;
}

static void count_one(side *me)
{
    weft_atomic atomic = {.op = WEFT_AMO_ADD, .remote = (uintptr_t)far_word(me), .rkey = &me->other->mr.rkey,
                          .operand = 1, .before = &me->amo_before, .done = &me->is_amo_busy};
    if (me->is_amo_busy || me->iface->caps.amo == WEFT_AMO_NONE)
        return;
    me->is_amo_busy = true;
    if (weft_verbs_ops.amo(me->iface, me->ep, &atomic))
        me->is_amo_busy = false;
}

static bool break_one(side *me)
{
    verbs_ep *ep = (verbs_ep *)me->ep;
    verbs_rc_qp *qp = &ep->qps[chance() % (ep->qp_count ? ep->qp_count : 1)];
    if (ep->state != VERBS_UP || !qp->ibv_qp || ep->epoch == last_broken)
        return false;
    last_broken = ep->epoch;
    bench_fault(qp->ibv_qp, chance());
    return true;
}

static int poll_one(side *me)
{
    int n = weft_verbs_ops.poll(me->iface, 1 + (int)(chance() % 32));
    CHECK(n >= 0);
    return n;
}

static void step(side *me)
{
    uint64_t what = chance() % 32;
    if (what < 14)
        poll_one(me) ? (void)0 : bench_idle();
    else if (what < 28)
        say_one(me);
    else if (what < 31)
        move_one(me);
    else
        count_one(me);
}

static bool is_settled(const side *me)
{
    for (uint32_t i = 0; i < MOVES; i++)
        if (me->motions[i].is_busy || me->motions[i].awaits_notice)
            return false;
    return !me->is_amo_busy && me->other->came == me->sent && me->other->notified == me->notifies_due;
}

static void settle(void)
{
    uint64_t idle = 0;
    while (!(is_settled(&sides[0]) && is_settled(&sides[1])) && idle < IDLE_MAX && !sides[0].lost && !sides[1].lost) {
        int n = poll_one(&sides[0]) + poll_one(&sides[1]);
        idle = n ? 0 : idle + 1;
        if (!n)
            bench_idle();
    }
    CHECK(is_settled(&sides[0]) && is_settled(&sides[1]));
}

static void finish(void)
{
    for (int i = 0; i < 2; i++) {
        side *me = &sides[i];
        CHECK(me->lost == 0 && me->greets == 0);
        CHECK(me->notified_sum == me->other->notify_sum);
        CHECK(*far_word(me) >= me->amos && *far_word(me) <= me->amos + me->amos_unknown);
    }
    for (int left = 0; left != 3;)
        for (int i = 0; i < 2; i++) {
            side *me = &sides[i];
            if (!(left & 1 << i) && weft_verbs_ops.ep_close(me->iface, me->ep) != WEFT_AGAIN)
                left |= 1 << i;
            if (!poll_one(me))
                bench_idle();
        }
    for (int i = 0; i < 2; i++) {
        CHECK(weft_verbs_ops.mr_dereg(sides[i].iface, &sides[i].mr) == 0);
        weft_verbs_ops.close(sides[i].iface);
        free(sides[i].memory);
    }
}

static void tell(uint32_t forced)
{
    for (int i = 0; i < 2; i++) {
        const side *me = &sides[i];
        const uint64_t *counts = ((verbs_iface *)me->iface)->counts;
        printf("rank %d: %u frames out, %u in, %u moves, %u notified, %u atomics and %u unknown; %llu breaks, %llu frames sent again, "
               "%llu pieces posted again, %llu by ring, %llu requests, %llu completions\n", i, me->sent, me->came, me->moves, me->notified,
               me->amos, me->amos_unknown, (unsigned long long)counts[VERBS_COUNT_BREAKS], (unsigned long long)counts[VERBS_COUNT_RESENT],
               (unsigned long long)counts[VERBS_COUNT_REPOSTED_FRAGS], (unsigned long long)counts[VERBS_COUNT_RING_FRAMES],
               (unsigned long long)counts[VERBS_COUNT_REQUESTS], (unsigned long long)counts[VERBS_COUNT_COMPLETIONS]);
        CHECK(forced == 0 || counts[VERBS_COUNT_BREAKS] >= forced * 9 / 10);
        CHECK(forced < 100 || (counts[VERBS_COUNT_RESENT] && counts[VERBS_COUNT_REPOSTED_FRAGS]));
    }
    printf("%u queue pairs put into error, %u failures\n", forced, failures);
}

int main(int argc, char **argv)
{
    const char *fewer = getenv("WEFT_TEST_BREAKS");
    uint32_t want = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : fewer ? (uint32_t)strtoul(fewer, NULL, 0) : 1000, forced = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    const char *profile = argc > 3 ? argv[3] : USUAL_PROFILE, *why = bench_open(profile, seed);
    int64_t until_next = 200;
    is_early = profile && strcmp(profile, "early") == 0;
    seed_now = seed * 0x9e3779b97f4a7c15u + 1;
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (!open_side(0) || !open_side(1) || !reach(&sides[0]) || !reach(&sides[1]))
        return 1;
    while (forced < want && !sides[0].lost && !sides[1].lost && failures < 20) {
        side *me = &sides[chance() & 1];
        step(me);
        if (--until_next <= 0 && break_one(me)) {
            forced++;
            until_next = (int64_t)(chance() % 400);
        }
    }
    settle();
    tell(forced);
    finish();
    CHECK(bench_close() == 0);
    return failures != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * costs: work requests and completions of verbs for each message, by its counters (no clock): puts with a notification,
 * lone frames and bursts of them, large RMA. Prints the rows of docs/verbs.md's table and checks what they promise. Then a
 * flood both ways, with receivers that poll rarely: no RNR NAK may occur.
 *     costs [messages [profile]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "test/verbs/bench.h"
#include "transports/verbs/verbs.h"

#define MEMORY (24u << 20) /* RMA fragments of 1 MiB, eight in flight */
#define IDLE_MAX (bench_is_real ? 30000000ull : 300000ull) /* real devices may need a kernel thread that gets no CPU for seconds */

typedef struct side {
    struct side *other;
    weft_iface *iface;
    weft_ep *ep;
    weft_proc_id proc_id;
    uint8_t *memory;
    weft_mr mr;
    uint32_t came, done, notified, bad;
    uint64_t values;
    uint32_t came_before; /* frames, when it was last notified */
} side;

static side sides[2];
static uint32_t failures;
static bool has_rings; /* the device writes in order */

#define CHECK(x)                                                                                             \
    do {                                                                                                     \
        if (!(x) && failures++ < 20)                                                                         \
            printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #x);                                           \
    } while (0)

/* -- callbacks -- */

static void up_recv_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    side *me = owner;
    (void)peer, (void)body;
    me->bad += hdr->seq != me->came;
    me->came++;
}

static void up_done(void *owner, void *done, int rc)
{
    side *me = owner;
    (void)done;
    me->bad += rc != 0;
    me->done++;
}

static void up_notified(void *owner, void *peer, uint32_t value)
{
    side *me = owner;
    (void)peer;
    me->notified++; /* in any order */
    me->values += value;
    me->came_before = me->came;
}

static void up_peer_failed(void *owner, void *peer, int rc)
{
    (void)owner, (void)peer;
    printf("a peer was lost: %s\n", weft_fail_text(rc));
    exit(1);
}

static void *up_accept_peer(void *owner, const weft_proc_id *proc_id)
{
    (void)owner, (void)proc_id;
    return NULL;
}

static const weft_iface_callbacks ups = {.recv_frame = up_recv_frame, .done = up_done, .notify = up_notified, .peer_failed = up_peer_failed,
                                         .accept_peer = up_accept_peer};

/* -- operations -- */

static void turn(void)
{
    if (weft_verbs_ops.poll(sides[0].iface, 64) + weft_verbs_ops.poll(sides[1].iface, 64) == 0)
        bench_idle();
}

static void until(const uint32_t *count, uint32_t want)
{
    for (uint64_t i = 0; *count < want && i < IDLE_MAX; i++)
        turn();
    CHECK(*count == want);
    if (*count != want) /* the next one would wait as long */
        exit(1);
}

static void settle(void)
{
    for (int i = 0; i < 2000; i++)
        turn();
}

static bool try_send(side *me, uint32_t seq, uint32_t bytes, bool more)
{
    weft_frame frame = {.hdr = {.seq = seq, .bytes = bytes}, .body = me->memory, .more = more};
    int rc = weft_verbs_ops.send(me->iface, me->ep, &frame);
    CHECK(rc == 0 || rc == WEFT_AGAIN);
    return rc == 0;
}

static void send_one(side *me, uint32_t seq, uint32_t bytes)
{
    for (uint64_t i = 0; !try_send(me, seq, bytes, false) && i < IDLE_MAX; i++)
        turn();
}

static bool try_move(side *me, uint64_t bytes, uint32_t notify, bool is_get)
{
    weft_rma rma = {.local = me->memory, .mr = &me->mr, .remote = (uintptr_t)me->other->memory, .rkey = &me->other->mr.rkey,
                      .bytes = bytes, .notify = notify, .done = me};
    int rc = is_get ? weft_verbs_ops.get(me->iface, me->ep, &rma) : weft_verbs_ops.put(me->iface, me->ep, &rma);
    CHECK(rc == 0 || rc == WEFT_AGAIN);
    return rc == 0;
}

static bool open_side(uint32_t i)
{
    side *me = &sides[i];
    weft_iface_params params = {.owner = me, .callbacks = &ups, .self = {4711, i, 0}, .local_rank = -1, .wants_fd = true};
    int rc;
    bench_next(i, &params);
    me->proc_id = params.self;
    me->other = &sides[1 - i];
    me->memory = aligned_alloc(4096, MEMORY);
    memset(me->memory, (int)i, MEMORY);
    rc = weft_verbs_ops.open(&params, &me->iface);
    if (!rc)
        rc = weft_verbs_ops.mr_reg(me->iface, me->memory, MEMORY, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, WEFT_MEMORY_HOST, &me->mr);
    if (rc)
        printf("rank %u cannot begin: %s\n", i, weft_fail_text(rc));
    return rc == 0;
}

static bool reach(side *me)
{
    return bench_reach(me->iface, me->other->iface, &me->other->proc_id, me->other, &me->ep);
}

/* -- counting -- */

static uint64_t before[2][VERBS_COUNT_LAST];

static uint64_t count_of(int i, enum verbs_print_counters what)
{
    return ((verbs_iface *)sides[i].iface)->counts[what] - before[i][what];
}

static void begin(void)
{
    settle();
    for (int i = 0; i < 2; i++)
        memcpy(before[i], ((verbs_iface *)sides[i].iface)->counts, sizeof before[i]);
}

static bool is_few(enum verbs_print_counters what, uint32_t messages, double max)
{
    return (bench_is_real && what == VERBS_COUNT_POSTS) || (double)count_of(0, what) <= max * messages + 8;
}

static void row(const char *what, uint32_t messages)
{
    settle();
    printf("%-34s %9.3f %9.3f %9.3f | %9.3f %9.3f\n", what, (double)count_of(0, VERBS_COUNT_POSTS) / messages,
           (double)count_of(0, VERBS_COUNT_REQUESTS) / messages, (double)count_of(0, VERBS_COUNT_COMPLETIONS) / messages,
           (double)count_of(1, VERBS_COUNT_REQUESTS) / messages, (double)count_of(1, VERBS_COUNT_COMPLETIONS) / messages);
}

/* -- the rows -- */

static void puts_with_notice(uint32_t messages, uint64_t bytes, const char *what)
{
    uint32_t first = sides[1].notified;
    uint64_t told_ns = 0;
    begin();
    for (uint32_t i = 1; i <= messages; i++) {
        uint32_t done = sides[0].done;
        uint64_t since = ((verbs_iface *)sides[0].iface)->now_ns();
        CHECK(try_move(&sides[0], bytes, first + i, false));
        until(&sides[1].notified, first + i);
        told_ns += ((verbs_iface *)sides[0].iface)->now_ns() - since;
        until(&sides[0].done, done + 1);
    }
    row(what, messages);
    CHECK(is_few(VERBS_COUNT_REQUESTS, messages, (double)((bytes + (1 << 20) - 1) >> 20) + 0.1));
    CHECK(is_few(VERBS_COUNT_POSTS, messages, 1.1) && count_of(0, VERBS_COUNT_IMMEDIATES) >= messages / 2);
    printf("%-34s %9llu ns\n", "    until the peer is told", (unsigned long long)(told_ns / messages));
}

static void lone_frames(uint32_t messages)
{
    begin();
    for (uint32_t i = 0; i < messages; i++) {
        send_one(&sides[0], sides[1].came, 8);
        until(&sides[1].came, sides[1].came + 1);
    }
    row("frame, 8 bytes, lone", messages);
}

static void large_moves(uint32_t messages, bool is_get)
{
    begin();
    for (uint32_t i = 0; i < messages; i++) {
        uint32_t done = sides[0].done;
        CHECK(try_move(&sides[0], MEMORY, 0, is_get));
        until(&sides[0].done, done + 1);
    }
    row(is_get ? "get, 24 MiB" : "put, 24 MiB", messages);
    CHECK(is_few(VERBS_COUNT_POSTS, messages, 12) && count_of(0, VERBS_COUNT_REQUESTS) == 24 * messages);
}

/* Frames that had waited for space, as the library pushes them. */
static void bursts(uint32_t messages, uint32_t together)
{
    begin();
    for (uint32_t sent = 0; sent < messages; sent += together) {
        uint32_t first = sides[1].came;
        for (uint32_t i = 0; i < together;)
            if (try_send(&sides[0], first + i, 8, i + 1 < together))
                i++;
            else
                turn();
        until(&sides[1].came, first + together);
    }
    row("frame, 8 bytes, 16 together", messages);
    CHECK(is_few(VERBS_COUNT_POSTS, messages, 0.25)); /* a list holds 16, and credits end some early */
}

/* Frames unread in the ring are delivered before a notification from the CQ that is numbered behind them. */
static void ring_before_notice(uint32_t rounds)
{
    uint64_t by_ring;
    begin();
    for (uint32_t i = 1; i <= rounds; i++) {
        uint32_t first = sides[1].came, told = sides[1].notified, done = sides[0].done;
        for (uint32_t k = 0; k < 3; k++)
            send_one(&sides[0], first + k, 8);
        CHECK(try_move(&sides[0], 100, told + 1, false));
        for (int k = 0; k < 200 && sides[1].notified == told; k++) {
            bench_idle();
            verbs_poll_cqs((verbs_iface *)sides[1].iface, 64); /* the ring is not polled */
        }
        until(&sides[1].notified, told + 1);
        CHECK(sides[1].came_before == first + 3);
        until(&sides[1].came, first + 3);
        until(&sides[0].done, done + 1);
    }
    by_ring = count_of(0, VERBS_COUNT_RING_FRAMES);
    printf("%u puts with a notification behind frames, %llu of these by a ring\n", rounds, (unsigned long long)by_ring);
    CHECK(by_ring > 0 || !has_rings);
}

/* Each as fast as its iface accepts; the receivers poll now and then. */
static void flood(uint32_t messages)
{
    uint32_t next[2] = {sides[1].came, sides[0].came}, moves[2] = {sides[1].notified, sides[0].notified}, done[2];
    uint32_t last_frame[2] = {next[0] + messages, next[1] + messages}, last_move[2] = {moves[0] + messages / 4, moves[1] + messages / 4};
    for (int i = 0; i < 2; i++)
        done[i] = sides[i].done + messages / 4;
    begin();
    while (next[0] < last_frame[0] || next[1] < last_frame[1] || moves[0] < last_move[0] || moves[1] < last_move[1]) {
        for (int i = 0; i < 2; i++) {
            while (next[i] < last_frame[i] && try_send(&sides[i], next[i], 8 + next[i] % 900, false))
                next[i]++;
            for (int k = 0; k < 8 && moves[i] < last_move[i] && try_move(&sides[i], 1 + moves[i] * 37 % 200000, moves[i] + 1, false); k++)
                moves[i]++;
        }
        bench_idle();
        turn();
    }
    for (int i = 0; i < 2; i++) {
        until(&sides[1 - i].came, last_frame[i]);
        until(&sides[1 - i].notified, last_move[i]);
        until(&sides[i].done, done[i]);
    }
    printf("flood: %u frames and %u puts with a notification each way; %llu times a receiver was not ready\n", messages, messages / 4,
           (unsigned long long)bench_not_ready());
    CHECK(bench_not_ready() == 0);
}

static void finish(void)
{
    for (int left = 0; left != 3; turn())
        for (int i = 0; i < 2; i++)
            if (!(left & 1 << i) && weft_verbs_ops.ep_close(sides[i].iface, sides[i].ep) != WEFT_AGAIN)
                left |= 1 << i;
    for (int i = 0; i < 2; i++) {
        uint64_t count = sides[i].notified;
        CHECK(sides[i].bad == 0 && sides[i].values == count * (count + 1) / 2);
        CHECK(weft_verbs_ops.mr_dereg(sides[i].iface, &sides[i].mr) == 0);
        weft_verbs_ops.close(sides[i].iface);
        free(sides[i].memory);
    }
}

int main(int argc, char **argv)
{
    uint32_t messages = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 2000;
    const char *why = bench_open(argc > 2 ? argv[2] : NULL, 1);
    has_rings = !bench_is_real && argc <= 2 && weft_knob.eager_ring != WEFT_EAGER_RING_NEVER;
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (!open_side(0) || !open_side(1) || !reach(&sides[0]) || !reach(&sides[1]))
        return 1;
    CHECK(!try_send(&sides[0], 0, 8, false)); /* begins to connect */
    for (uint32_t i = 0; i < 200; i++) { /* warm: credits are as many as a busy peer's */
        send_one(&sides[0], i, 8);
        send_one(&sides[1], i, 8);
    }
    until(&sides[0].came, 200);
    until(&sides[1].came, 200);
    printf("%-34s %9s %9s %9s | %9s %9s\n", "per message", "posts", "requests", "completed", "requests", "completed");
    lone_frames(messages);
    bursts(messages, 16);
    puts_with_notice(messages, 8, "put, 8 bytes, notifies");
    puts_with_notice(messages, 65536, "put, 64 KiB, notifies");
    puts_with_notice(messages / 50, 4u << 20, "put, 4 MiB, notifies");
    large_moves(messages / 100, false);
    large_moves(messages / 100, true);
    ring_before_notice(messages / 10);
    flood(messages);
    finish();
    CHECK(bench_close() == 0);
    printf("%u failures\n", failures);
    return failures != 0;
}

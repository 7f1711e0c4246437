/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_shm_wait: two ranks whose shm ifaces (transports/shm and the wakeup of mem/rank_page.c themselves) run under every schedule with
 * a bounded number of preemptions (interleave.h, shm_hooks.h). One sends bodies of all sizes until rings, blocks and chunks are full, and
 * sleeps when it finds no room; the other reads, answers, closes its ring and sleeps. Properties: no endless sleep, no endless turns;
 * bodies arrive once, in order, and are not overwritten before they are read.
 */
#include <CUnit/Basic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/shm/shm.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define PREEMPTIONS_MAX 1u /* these take ten times as long */
#else
#define PREEMPTIONS_MAX 2u
#endif
#define TURNS_MAX 400 /* of one wait */
#define FRAMES_MAX 160

typedef struct scene {
    const char *what;
    uint32_t repeats, sizes[24]; /* of rank 0's bodies, in turn, until the first 0, and so often; UINT32_MAX: waits for all answers */
    uint32_t answer_every, answer_bytes; /* rank 1 answers each so many frames; 0: never */
    bool answers_inside;         /* rank 1 sends its answers while it still reads the body, as p2p does */
    bool is_late;                /* rank 1 reads only when rank 0 sleeps */
    bool closes;                 /* rank 1 closes its ring before each sleep */
    bool is_unregistered;        /* membarrier is refused */
    uint32_t preemptions;
} scene;

typedef struct rank {
    weft_iface *iface;
    weft_ep *ep;
    uint32_t got, sent, answers_due, answers_sent;
} rank;

static const scene *now;
static weft_segment segment;
static rank ranks[2];
static uint32_t frames, order[FRAMES_MAX];
static uint64_t time_ns, schedules;

/* The library only wakes by its futexes; turn() sleeps. */
long hooked_syscall(long number, ...)
{
    va_list args;
    if (number == SYS_membarrier)
        return now && now->is_unregistered ? -1 : 0;
    interleave_point();
    va_start(args, number);
    interleave_wake(va_arg(args, const volatile void *));
    va_end(args);
    return 0;
}

static uint64_t now_ns(void) { return time_ns; }

/* -- bodies: each word tells its frame and place -- */

static uint64_t word_of(uint32_t from, uint32_t seq, uint32_t i) { return (uint64_t)(from + 1) << 56 | (uint64_t)seq << 32 | i; }

static void fill_body(uint8_t *body, uint32_t from, uint32_t seq, uint32_t bytes)
{
    for (uint32_t i = 0; i + 8 <= bytes; i += 64) {
        uint64_t word = word_of(from, seq, i);
        memcpy(body + i, &word, 8);
    }
}

static bool is_body(const uint8_t *body, uint32_t from, uint32_t seq, uint32_t bytes)
{
    for (uint32_t i = 0; i + 8 <= bytes; i += 64) {
        uint64_t word = word_of(from, seq, i);
        if (memcmp(body + i, &word, 8) != 0)
            return false;
    }
    return true;
}

static int flush(rank *self);

static void arrive(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    rank *self = owner;
    uint32_t from = self == &ranks[0];
    (void)peer;
    interleave_point(); /* the body is read while the sender runs */
    if (hdr->seq != self->got || !is_body(body, from, hdr->seq, hdr->bytes))
        interleave_fail(hdr->seq != self->got ? "a frame comes out of order" : "a body is not what was sent");
    self->got++;
    if (!from && now->answer_every && self->got % now->answer_every == 0)
        self->answers_due++;
    if (!from && now->answers_inside)
        flush(self);
    interleave_point();
    if (!is_body(body, from, hdr->seq, hdr->bytes))
        interleave_fail("a body is overwritten while it is read");
}

static void *greet(void *owner, const weft_proc_id *proc_id)
{
    rank *self = owner;
    return self->iface->ops->ep_open(self->iface, proc_id, &proc_id->rank, sizeof proc_id->rank, self, &self->ep) ? NULL : self;
}

/* -- ranks -- */

static bool has_sent(rank *self, uint32_t seq, uint32_t bytes)
{
    static uint8_t bodies[2][WEFT_BULK_CHUNK];
    int me = self == &ranks[1], rc;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .src = me, .seq = seq, .bytes = bytes}, .body = bodies[me]};
    fill_body(bodies[me], (uint32_t)me, seq, bytes);
    rc = weft_iface_send(self->ep, &frame);
    if (rc < 0)
        interleave_fail("a send fails");
    return rc == 0;
}

/* As the backlog of a worker: sends what is due. Returns the number of frames sent. */
static int flush(rank *self)
{
    int n = 0;
    while (self->answers_sent < self->answers_due && has_sent(self, self->answers_sent, now->answer_bytes)) {
        self->answers_sent++;
        n++;
    }
    return n;
}

static uint32_t answers_of(uint32_t count) { return now->answer_every ? count / now->answer_every : 0; }

/* Sends the next frame. 1: done; 0: no room, or it must wait. */
static int send_next(rank *self)
{
    if (order[self->sent] == UINT32_MAX) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < self->sent; i++)
            count += order[i] != UINT32_MAX;
        if (self->got < answers_of(count))
            return 0;
    } else {
        uint32_t seq = 0;
        for (uint32_t i = 0; i < self->sent; i++)
            seq += order[i] != UINT32_MAX;
        if (!has_sent(self, seq, order[self->sent]))
            return 0;
    }
    self->sent++;
    return 1;
}

static int work(rank *self)
{
    int n = weft_shm_poll(self->iface, 32);
    if (self == &ranks[0])
        return n + (self->sent < frames ? send_next(self) : 0);
    return n + flush(self);
}

static bool is_over(const rank *self)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < frames; i++)
        count += order[i] != UINT32_MAX;
    if (self == &ranks[0])
        return self->sent == frames && self->got == answers_of(count);
    return self->got == count && self->answers_sent == answers_of(count);
}

/* As core/wait.c: poll, arm, poll again, sleep. */
static void turn(rank *self)
{
    weft_wakeup wakeup = {.fd = -1};
    shm_iface *shm = (shm_iface *)self->iface;
    if (work(self) || is_over(self))
        return;
    if (now->closes && self == &ranks[1]) {
        time_ns += 10 * (uint64_t)WEFT_SHM_PATIENCE_MAX_NS;
        weft_shm_deactivate_rings(shm, time_ns);
        time_ns += 10 * (uint64_t)WEFT_SHM_PATIENCE_MAX_NS;
        if (weft_shm_deactivate_rings(shm, time_ns))
            return;
    }
    self->iface->ops->arm(self->iface, &wakeup);
    if (!work(self) && !is_over(self)) {
        interleave_point();
        if (*wakeup.futex == wakeup.value)
            interleave_sleep(wakeup.futex, 0);
    }
    self->iface->ops->disarm(self->iface);
}

static void run(int me)
{
    static const char none;
    rank *self = &ranks[me];
    if (me && now->is_late)
        interleave_sleep(&none, INTERLEAVE_IDLE_NS);
    for (int i = 0; !is_over(self); i++) {
        if (i == TURNS_MAX) {
            interleave_fail("a rank turns for good");
            return;
        }
        turn(self);
    }
}

static void begin(void)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = arrive, .accept_peer = greet};
    weft_proc_id other = {.job = 1, .rank = 1};
    memset(ranks, 0, sizeof ranks);
    time_ns = 1;
    if (weft_segment_make(2, 1, 0, &segment))
        abort();
    for (int i = 0; i < 2; i++) {
        weft_iface_params params = {.owner = &ranks[i], .callbacks = &callbacks, .self = {.job = 1, .rank = (uint32_t)i},
                                    .segment = &segment, .local_rank = i, .now_ns = now_ns};
        if (weft_shm_ops.open(&params, &ranks[i].iface))
            abort();
    }
    if (weft_shm_ops.ep_open(ranks[0].iface, &other, &other.rank, sizeof other.rank, &ranks[0], &ranks[0].ep))
        abort();
}

static void end(void)
{
    for (int i = 0; i < 2; i++)
        weft_shm_ops.close(ranks[i].iface);
    weft_segment_close(&segment);
}

static bool passes(const scene *of)
{
    uint32_t preemptions = of->preemptions < PREEMPTIONS_MAX ? of->preemptions : PREEMPTIONS_MAX;
    interleave test = {.threads = 2, .preemptions = preemptions + (getenv("MODEL_DEEP") != NULL), .begin = begin, .run = run, .end = end};
    now = of;
    frames = 0;
    for (uint32_t k = 0; k < of->repeats; k++)
        for (const uint32_t *size = of->sizes; *size && frames < FRAMES_MAX; size++)
            order[frames++] = *size;
    return interleave_passes(&test, of->what, &schedules);
}

#define PASS_ALL(scenes) \
    for (size_t i = 0; i < weft_count(scenes); i++) \
        CU_ASSERT(passes(&scenes[i]))

/* The sender finds no room until the reader has read; then it must be woken, and find room for the longest body. */
static void one_way(void)
{
    static const scene scenes[] = {
        {"blocks full", 8, {8192}, .preemptions = 2},
        {"blocks full, a reader that is late", 14, {8192}, .is_late = true, .preemptions = 1},
        {"blocks full, without membarrier", 8, {8192}, .is_late = true, .is_unregistered = true, .preemptions = 1},
        {"blocks full, a reader that closes its ring", 9, {8192}, .is_late = true, .closes = true, .preemptions = 1},
        {"pieces of all sizes", 5, {8192, 64, 64, 513, 8192, 449, 33, 4096, 8, 100, 8191, 512, 300}, .is_late = true, .preemptions = 1},
        {"short ones that share, then long ones", 2, {64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 8192, 8192, 8192, 8192, 8192, 8192, 8192},
         .is_late = true, .preemptions = 1},
        {"cells full", 150, {8}, .is_late = true, .preemptions = 1},
        {"cells full of lines", 140, {40}, .is_late = true, .preemptions = 1},
        {"chunks full", 19, {WEFT_BULK_CHUNK}, .is_late = true, .preemptions = 1},
        {"chunks and blocks", 4, {WEFT_BULK_CHUNK, WEFT_BULK_CHUNK, 8192, 8192, 8192, 100}, .preemptions = 1},
    };
    PASS_ALL(scenes);
}

/* Blocks are freed by the counts in the frames of the other direction. */
static void both_ways(void)
{
    static const scene scenes[] = {
        {"in turn", 4, {8192, UINT32_MAX, 100, UINT32_MAX}, 1, 64, .preemptions = 2},
        {"in turn, the reader closes its ring", 3, {8192, UINT32_MAX, 8, UINT32_MAX}, 1, 8192, .closes = true, .preemptions = 1},
        {"answers in the midst", 12, {8192, 100, 8192}, 1, 64, .answers_inside = true, .preemptions = 1},
        {"long answers", 16, {4096}, 1, 8192, .preemptions = 1},
        {"long answers to short questions", 12, {8}, 1, 8192, .is_late = true, .preemptions = 1},
        {"answers now and then", 5, {8192, 2048, 500, 64, 64}, 3, 100, .is_late = true, .preemptions = 1},
        {"chunks both ways", 20, {WEFT_BULK_CHUNK}, 1, WEFT_BULK_CHUNK, .is_late = true, .preemptions = 1},
    };
    PASS_ALL(scenes);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("shm wait", NULL, NULL);
    CU_add_test(suite, "one way", one_way);
    CU_add_test(suite, "both ways", both_ways);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    printf("%llu schedules\n", (unsigned long long)schedules);
    return CU_get_number_of_failures() ? 1 : 0;
}

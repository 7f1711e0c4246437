/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_polling: 64 ranks on one segment, all ifaces in one process. The cost of a poll does not grow with neighbours that sent once: their
 * rings are closed, and a new frame from them is received at once. Memory is that of active pairs. No sender delays the reception from
 * another, by many frames or by a failure. The test sets the time.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "test/unit/shm_ranks.h"

#define RANKS 64

static shm_ranks ranks;
static weft_ep *to_first[RANKS];
static int arrived[RANKS];
static uint64_t now;         /* ns */
static uint32_t unreachable; /* rank whose ep cannot be made; 0: none */
static int greeted;          /* tries */
static int losts;

static uint64_t now_ns(void) { return now; }

static void on_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    (void)owner, (void)peer, (void)body;
    arrived[hdr->src]++;
}

static void *on_accept(void *owner, const weft_proc_id *proc_id)
{
    greeted++;
    return unreachable && proc_id->rank == unreachable ? NULL : shm_ranks_accept(&ranks, owner, proc_id);
}

static void on_failed(void *owner, void *peer, int rc)
{
    (void)owner, (void)peer;
    CU_ASSERT(rc < 0);
    losts++;
}

static const weft_iface_callbacks callbacks = {.recv_frame = on_frame, .accept_peer = on_accept, .peer_failed = on_failed};

static int open_all(void)
{
    now = 1;
    unreachable = 0;
    memset(arrived, 0, sizeof arrived);
    if (!shm_ranks_open(&ranks, RANKS, &callbacks, now_ns))
        return 1;
    for (uint32_t i = 1; i < RANKS; i++)
        if (!(to_first[i] = shm_ranks_connect(&ranks, i, 0, NULL)))
            return 1;
    return 0;
}

static int close_all(void) { return shm_ranks_close(&ranks); }

static void send_one(int i)
{
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .src = i, .bytes = 8}, .body = "8 bytes"};
    CU_ASSERT_EQUAL(weft_iface_send(to_first[i], &frame), 0);
}

static double poll_ns(void)
{
    enum { POLLS = 20000 };
    uint64_t start = weft_clock_ns();
    for (int i = 0; i < POLLS; i++)
        weft_shm_poll(ranks.ifaces[0], 32);
    return (double)(weft_clock_ns() - start) / POLLS;
}

/* As many polls as a check for silent rings needs, after that time. */
static void pass(uint64_t ns)
{
    now += ns;
    for (int i = 0; i < 1024; i++)
        weft_shm_poll(ranks.ifaces[0], 32);
}

static void idle_rings_cost_nothing(void)
{
    shm_iface *first = (shm_iface *)ranks.ifaces[0];
    double alone, among;
    send_one(1);
    CU_ASSERT_EQUAL(weft_shm_poll(ranks.ifaces[0], 32), 1);
    alone = poll_ns();
    for (int i = 2; i < RANKS; i++)
        send_one(i);
    for (int i = 0; i < 10; i++)
        weft_shm_poll(ranks.ifaces[0], 32);
    for (int i = 1; i < RANKS; i++)
        CU_ASSERT_EQUAL(arrived[i], 1);
    CU_ASSERT_EQUAL(first->hot_count, RANKS - 1);
    pass(0); /* the time of silence begins at the check that saw the last frame */
    pass(WEFT_SHM_PATIENCE_MIN_NS);
    CU_ASSERT(first->hot_count <= WEFT_SHM_HOT_FEW);
    among = poll_ns();
    printf("(an empty poll: %.1f ns with one neighbour, %.1f ns among %d silent ones) ", alone, among, RANKS - 1);
}

static void active_sender_is_polled_again(void)
{
    for (int round = 2; round < 50; round++) {
        for (int i = 1; i < RANKS; i++)
            send_one(i);
        for (int i = 0; i < 4; i++)
            weft_shm_poll(ranks.ifaces[0], 32);
        for (int i = 1; i < RANKS; i++)
            CU_ASSERT_EQUAL(arrived[i], round);
        pass(WEFT_SHM_PATIENCE_MIN_NS);
        pass(WEFT_SHM_PATIENCE_MAX_NS);
        CU_ASSERT_EQUAL(((shm_iface *)ranks.ifaces[0])->hot_count, 0);
    }
}

/* A program that computes between exchanges with eight neighbours: their rings stay open once its period is known. */
static void iterations_keep_their_rings(void)
{
    static const uint64_t pauses_ms[] = {5, 20, 100, 200};
    const weft_iface_counts *counts = &ranks.ifaces[0]->counts;
    for (size_t k = 0; k < weft_count(pauses_ms); k++) {
        weft_iface_counts before = *counts;
        uint64_t barriers;
        for (int round = 0; round < 100; round++) {
            for (int i = 1; i <= 8; i++)
                send_one(i);
            for (uint64_t ms = 0; ms < pauses_ms[k]; ms++)
                pass(1000000);
        }
        barriers = counts->barriers - before.barriers;
        printf("(%d ms: %d barriers, %d rings closed) ", (int)pauses_ms[k], (int)barriers,
               (int)(counts->rings_closed - before.rings_closed));
        CU_ASSERT(barriers <= 8 && counts->rings_closed - before.rings_closed <= 64);
    }
    CU_ASSERT(counts->barriers > 0);
    /* and are closed when it stops sending */
    pass(WEFT_SHM_PATIENCE_MAX_NS);
    CU_ASSERT_EQUAL(((shm_iface *)ranks.ifaces[0])->hot_count, 0);
}

/* Silent and active in turn, with a period that defeats any patience: at most one barrier per minimum patience. */
static void barriers_are_rare(void)
{
    weft_iface_counts before = ranks.ifaces[0]->counts;
    uint64_t begin = now, lasted;
    for (int round = 0; round < 2000; round++) {
        for (int i = 1; i <= 8; i++)
            if ((round * 7 + i) % 5 == 0)
                send_one(i);
        pass(1000 * (uint64_t)(round % 3000));
    }
    lasted = now - begin;
    CU_ASSERT(ranks.ifaces[0]->counts.barriers - before.barriers <= lasted / WEFT_SHM_PATIENCE_MIN_NS + 1);
}

static void fill(int i)
{
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .src = i, .bytes = 8}, .body = "8 bytes"};
    while (weft_iface_send(to_first[i], &frame) == 0)
        ;
}

/* Senders fill their rings before each poll, so each uses up the budget: the next poll receives a new_sender's first frame, and its later
 * frames come within one turn of all rings. */
static void floods_delay_no_new_sender(void)
{
    for (int flooders = 1; flooders <= 8; flooders += 7) {
        int new_sender = 20 + flooders, polls = 0;
        for (int round = 0; round < 100; round++) {
            for (int i = 1; i <= flooders; i++)
                fill(i);
            CU_ASSERT(weft_shm_poll(ranks.ifaces[0], 32) >= 32);
        }
        send_one(new_sender);
        for (int i = 1; i <= flooders; i++)
            fill(i);
        weft_shm_poll(ranks.ifaces[0], 32);
        CU_ASSERT_EQUAL(arrived[new_sender], 1);
        send_one(new_sender);
        for (; arrived[new_sender] < 2 && polls < 1000; polls++) {
            for (int i = 1; i <= flooders; i++)
                fill(i);
            weft_shm_poll(ranks.ifaces[0], 32);
        }
        CU_ASSERT(polls <= flooders + 1);
    }
}

/* One sender cannot be received from: all others are; it is tried again in time, also out of a sleep, and not at each poll. */
static void a_failure_delays_no_other_sender(void)
{
    weft_wakeup wakeup = {.fd = -1};
    uint64_t until = 0;
    greeted = 0;
    unreachable = 5;
    for (int i = 1; i < RANKS; i++)
        send_one(i);
    for (int i = 0; i < 1000; i++)
        weft_shm_poll(ranks.ifaces[0], 32);
    CU_ASSERT_EQUAL(greeted, RANKS - 1);
    for (int i = 1; i < RANKS; i++)
        CU_ASSERT_EQUAL(arrived[i], i != 5);
    for (int tries = 1; tries < 20; tries++) { /* the sleeper wakes by its limit, each time later, within the bound */
        CU_ASSERT_EQUAL(weft_shm_arm(ranks.ifaces[0], &wakeup), 0);
        CU_ASSERT(wakeup.within_ns > 0 && wakeup.within_ns >= until && wakeup.within_ns <= WEFT_SHM_RETRY_MAX_NS);
        until = wakeup.within_ns;
        CU_ASSERT_EQUAL(weft_shm_poll(ranks.ifaces[0], 32), 0);
        now += until;
        weft_shm_disarm(ranks.ifaces[0]);
        CU_ASSERT_EQUAL(greeted, RANKS - 2 + tries);
        weft_shm_poll(ranks.ifaces[0], 32);
    }
    send_one(5);
    unreachable = 0;
    now += until;
    for (int i = 0; i < 10; i++)
        weft_shm_poll(ranks.ifaces[0], 32);
    CU_ASSERT_EQUAL(arrived[5], 2);
    wakeup = (weft_wakeup){.fd = -1};
    CU_ASSERT_EQUAL(weft_shm_arm(ranks.ifaces[0], &wakeup), 0);
    CU_ASSERT_EQUAL(wakeup.within_ns, 0);
    weft_shm_disarm(ranks.ifaces[0]);
}

/* A place out of bounds: its sender has failed, once, and nothing is read there; the others go on. */
static void damage_is_a_failure(void)
{
    static const struct {
        uint32_t place, bytes;
    } wrong[] = {{0xffff, 100}, {WEFT_PLACE_ASK, 100}, {1, WEFT_RING_BODY_MAX + 1}, {1, UINT32_MAX},
                 {896, 65}, {897, 64}, {WEFT_PLACE_CHUNK | WEFT_BULK_COUNT, 100},
                 {WEFT_PLACE_CHUNK | WEFT_PLACE_TIMED | 0xffff, 100}, {WEFT_PLACE_CHUNK, WEFT_BULK_CHUNK + 1}};
    static char body[100];
    losts = 0;
    memset(arrived, 0, sizeof arrived);
    for (size_t i = 0; i < weft_count(wrong); i++) {
        int rank = 10 + (int)i;
        weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .src = rank, .bytes = sizeof body}, .body = body};
        weft_cell *cell;
        CU_ASSERT_EQUAL(weft_iface_send(to_first[rank], &frame), 0);
        weft_shm_poll(ranks.ifaces[0], 32);
        CU_ASSERT_EQUAL(arrived[rank], 1);
        cell = weft_ring_next(&((shm_ep *)to_first[rank])->out);
        CU_ASSERT_EQUAL(weft_iface_send(to_first[rank], &frame), 0);
        cell->place = wrong[i].place;
        cell->hdr.bytes = wrong[i].bytes;
        send_one(rank == 10 ? 9 : rank - 1); /* nothing more of the others that have failed */
        for (int k = 0; k < 10; k++)
            weft_shm_poll(ranks.ifaces[0], 32);
        CU_ASSERT_EQUAL(losts, (int)i + 1);
        CU_ASSERT_EQUAL(arrived[rank], 1);
    }
    CU_ASSERT_EQUAL(arrived[9], 1);
}

static void ep_opened_twice_continues(void)
{
    for (int i = 0; i < 10; i++) {
        send_one(1);
        send_one(1);
        CU_ASSERT_PTR_EQUAL(shm_ranks_connect(&ranks, 1, 0, NULL), to_first[1]);
        weft_shm_poll(ranks.ifaces[0], 32);
        CU_ASSERT_EQUAL(arrived[1], 2 * (i + 1));
    }
}

static void memory_is_that_of_active_pairs(void)
{
    struct stat before, after;
    CU_ASSERT_EQUAL(fstat(ranks.segment.fd, &before), 0);
    /* header, rank pages, two of the heap's bitmap, and 8 KiB for each of the 63 active pairs */
    CU_ASSERT(before.st_blocks * 512 <= (RANKS + 4) * 4096 + (RANKS - 1) * 8192);
    for (int i = 1; i < RANKS; i++)
        send_one(i);
    CU_ASSERT_EQUAL(fstat(ranks.segment.fd, &after), 0);
    CU_ASSERT_EQUAL(before.st_blocks, after.st_blocks);
}

/* The worker is locked during a poll. */
static void a_poll_copies_little(void)
{
    enum { LONG = WEFT_BULK_CHUNK, SENDERS = 6, MAX = 256 << 10 };
    static char body[LONG];
    int sent = 0, total = 0, had;
    while (weft_shm_poll(ranks.ifaces[0], 32)) /* of earlier tests */
        ;
    memset(arrived, 0, sizeof arrived);
    for (int i = 1; i <= SENDERS; i++) {
        weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .src = i, .bytes = LONG}, .body = body};
        while (weft_iface_send(to_first[i], &frame) == 0)
            sent++;
    }
    CU_ASSERT(sent * LONG > 3 * MAX);
    do {
        had = total;
        total = 0;
        weft_shm_poll(ranks.ifaces[0], 32);
        for (int i = 1; i <= SENDERS; i++)
            total += arrived[i];
        CU_ASSERT((total - had) * LONG <= MAX);
    } while (total > had);
    CU_ASSERT_EQUAL(total, sent);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("polling", open_all, close_all);
    CU_add_test(suite, "silent neighbours cost nothing", idle_rings_cost_nothing);
    CU_add_test(suite, "an active sender is received from at once", active_sender_is_polled_again);
    CU_add_test(suite, "memory is that of active pairs", memory_is_that_of_active_pairs);
    suite = CU_add_suite("rings", open_all, close_all);
    CU_add_test(suite, "iterations keep rings open", iterations_keep_their_rings);
    CU_add_test(suite, "barriers are rare", barriers_are_rare);
    suite = CU_add_suite("fairness", open_all, close_all);
    CU_add_test(suite, "floods delay no new_sender", floods_delay_no_new_sender);
    CU_add_test(suite, "a poll copies a bounded amount", a_poll_copies_little);
    suite = CU_add_suite("failure", open_all, close_all);
    CU_add_test(suite, "a failure delays no other sender", a_failure_delays_no_other_sender);
    CU_add_test(suite, "damage is a failure", damage_is_a_failure);
    suite = CU_add_suite("ep_open", open_all, close_all);
    CU_add_test(suite, "an ep opened twice continues", ep_opened_twice_continues);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}

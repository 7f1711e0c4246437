/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_rndv_select: selection of rendezvous protocols, by transfers with made-up times. A protocol's value is bytes per time, also where
 * many transfers overlap and each takes long; transfers of other protocols in flight do not distort it for long.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel_copy.h"
#include "base/knob.h"
#include "core/world.h"
#include "p2p/bidir.h"
#include "p2p/rndv_select.h"

#define MB ((uint64_t)1 << 20)
#define NS(gb_per_s, bytes) ((uint64_t)((double)(bytes) / (gb_per_s)))

static weft_iface iface = {.caps = {.get = true, .put = true, .frame_max = 16384, .rma_max = UINT64_MAX / 2}};
static weft_ep ep = {.iface = &iface};
static weft_world world;
static weft_worker worker = {.world = &world};
static weft_peer peer = {.ep = &ep, .worker = &worker};
static weft_rndv_stats stats;
static uint64_t now;
static const weft_rndv_caps rndv_caps = {.can_move = true};

static void start_anew(void)
{
    memset(&stats, 0, sizeof stats);
    now = 1000;
}

static weft_rndv_xfer begin(uint64_t bytes)
{
    weft_rndv_xfer xfer = {.proto = weft_rndv_select(&stats, &peer, bytes, &rndv_caps, false), .bytes = bytes};
    weft_rndv_xfer_begin(&stats, &xfer, now);
    return xfer;
}

/* One transfer at a time: the protocol that is fastest alone. */
static void test_alone(void)
{
    static const double speed[] = {[WEFT_RNDV_COPY] = 5, [WEFT_RNDV_GET] = 13, [WEFT_RNDV_SPLIT] = 12};
    int of[WEFT_RNDV_LAST] = {0};
    start_anew();
    for (int i = 0; i < 1000; i++) {
        weft_rndv_xfer xfer = begin(MB);
        uint64_t began = now;
        of[xfer.proto]++;
        now += NS(speed[xfer.proto], MB);
        weft_rndv_xfer_end(&stats, &xfer, false, began, now);
    }
    CU_ASSERT(of[WEFT_RNDV_COPY] >= 1 && of[WEFT_RNDV_COPY] <= 12); /* rejected at once, and measured again now and then */
    CU_ASSERT(of[WEFT_RNDV_SPLIT] >= 3 && of[WEFT_RNDV_SPLIT] <= 20);
    CU_ASSERT_EQUAL(of[WEFT_RNDV_COPY] + of[WEFT_RNDV_SPLIT] + of[WEFT_RNDV_GET], 1000);
    CU_ASSERT_EQUAL(stats.in_flight, 0);
}

/* Windows of messages started at one time. A get ends before the next one can begin, at 13 GB/s. The others share both sides' time, so
 * that each ends late, but together they reach 8 and 22 GB/s. */
static void play_window(int messages, int of[])
{
    static const double speed[] = {[WEFT_RNDV_COPY] = 8, [WEFT_RNDV_SPLIT] = 22};
    weft_rndv_xfer open[WEFT_RNDV_LAST][128];
    uint64_t began[WEFT_RNDV_LAST][128];
    int n[WEFT_RNDV_LAST] = {0};
    for (int i = 0; i < messages; i++) {
        uint64_t start = now;
        weft_rndv_xfer xfer = begin(MB);
        of[xfer.proto]++;
        if (xfer.proto == WEFT_RNDV_GET) {
            now += NS(13, MB);
            weft_rndv_xfer_end(&stats, &xfer, false, start, now);
            continue;
        }
        began[xfer.proto][n[xfer.proto]] = start;
        open[xfer.proto][n[xfer.proto]++] = xfer;
    }
    for (int proto = 0; proto < WEFT_RNDV_LAST; proto++)
        for (int i = 0; i < n[proto]; i++) {
            now += NS(speed[proto], MB);
            weft_rndv_xfer_end(&stats, &open[proto][i], false, began[proto][i], now);
        }
}

static void test_window_of(int messages)
{
    int of[WEFT_RNDV_LAST];
    start_anew();
    for (int i = 0; i < 12; i++)
        memset(of, 0, sizeof of), play_window(messages, of);
    CU_ASSERT_EQUAL(of[WEFT_RNDV_SPLIT], messages);
    CU_ASSERT_EQUAL(stats.in_flight, 0);
}

static void test_windows(void)
{
    test_window_of(2);
    test_window_of(16);
    test_window_of(64);
    test_window_of(128);
}

/* A continuous stream: always eight in flight, each takes eight times its cost. Trials are repeated, and a protocol that has become
 * faster is found. */
static void test_stream(void)
{
    double speed[] = {[WEFT_RNDV_COPY] = 8, [WEFT_RNDV_GET] = 13, [WEFT_RNDV_SPLIT] = 22};
    weft_rndv_xfer open[8];
    uint64_t began[8];
    int of[WEFT_RNDV_LAST] = {0};
    start_anew();
    for (int i = 0; i < 8; i++)
        open[i] = begin(MB), began[i] = now;
    for (int i = 0; i < 30000; i++) {
        if (i == 5000)
            CU_ASSERT_EQUAL(open[i % 8].proto, WEFT_RNDV_SPLIT);
        if (i == 5000)
            speed[WEFT_RNDV_GET] = 40;
        now += NS(speed[open[i % 8].proto], MB);
        weft_rndv_xfer_end(&stats, &open[i % 8], false, began[i % 8], now);
        open[i % 8] = begin(MB), began[i % 8] = now;
        of[open[i % 8].proto]++;
    }
    CU_ASSERT_EQUAL(open[0].proto, WEFT_RNDV_GET);
    CU_ASSERT(of[WEFT_RNDV_COPY] < 30000 / 20);
    CU_ASSERT_EQUAL(stats.in_flight, 8);
}

/* Sizes that are always in flight together cannot be told apart; still no protocol stays on trial forever. */
static void test_mixed(void)
{
    int of[WEFT_RNDV_LAST] = {0};
    weft_rndv_xfer open[2];
    start_anew();
    open[0] = begin(MB);
    for (int i = 1; i < 10000; i++) {
        uint64_t began = now;
        open[i % 2] = begin(i % 2 ? 4 * MB : MB);
        of[open[i % 2].proto]++;
        now += NS(open[(i + 1) % 2].proto == WEFT_RNDV_GET ? 13 : 8, open[(i + 1) % 2].bytes);
        weft_rndv_xfer_end(&stats, &open[(i + 1) % 2], false, began, now);
    }
    CU_ASSERT(of[WEFT_RNDV_COPY] <= 512 && of[WEFT_RNDV_SPLIT] <= 512);
    CU_ASSERT_EQUAL(stats.in_flight, 1);
}

/* A transfer that failed at once was not fast; one that was nearly complete when the others ended has no rate. */
static void test_misleading(void)
{
    start_anew();
    for (int i = 0; i < 100; i++) {
        weft_rndv_xfer xfer = begin(MB);
        bool has_failed = xfer.proto == WEFT_RNDV_SPLIT;
        uint64_t began = now;
        now += has_failed ? 1 : NS(xfer.proto == WEFT_RNDV_GET ? 13 : 8, MB);
        weft_rndv_xfer_end(&stats, &xfer, has_failed, began, now);
    }
    CU_ASSERT_EQUAL(weft_rndv_select(&stats, &peer, MB, &rndv_caps, false), WEFT_RNDV_GET);
    weft_rndv_xfer late = {.proto = WEFT_RNDV_COPY, .bytes = MB}, other = {.proto = WEFT_RNDV_GET, .bytes = MB};
    uint64_t began = now;
    weft_rndv_xfer_begin(&stats, &late, now);
    weft_rndv_xfer_begin(&stats, &other, now);
    now += 100000000;
    weft_rndv_xfer_end(&stats, &other, false, began, now);
    weft_rndv_xfer_end(&stats, &late, false, began, now + 1);
    CU_ASSERT_EQUAL(weft_rndv_select(&stats, &peer, MB, &rndv_caps, false), WEFT_RNDV_GET);
}

/* Near CPUs become far ones: the selection follows, in both directions. */
static void test_speeds_change(void)
{
    static const double speed[2][WEFT_RNDV_LAST] = {{[WEFT_RNDV_COPY] = 30, [WEFT_RNDV_GET] = 13, [WEFT_RNDV_SPLIT] = 26},
                                                    {[WEFT_RNDV_COPY] = 2, [WEFT_RNDV_GET] = 12, [WEFT_RNDV_SPLIT] = 24}};
    start_anew();
    for (int turn = 0; turn < 4; turn++) {
        uint64_t bytes = 0, since = now;
        for (int i = 0; i < 4000; i++) {
            weft_rndv_xfer xfer = begin(MB);
            uint64_t began = now;
            now += NS(speed[turn % 2][xfer.proto], MB);
            weft_rndv_xfer_end(&stats, &xfer, false, began, now);
            bytes += MB;
        }
        CU_ASSERT((double)bytes / (double)(now - since) > 0.9 * speed[turn % 2][turn % 2 ? WEFT_RNDV_SPLIT : WEFT_RNDV_COPY]);
    }
}

/* In one direction split is best: both sides work on a message. With messages in both directions they disturb each other: each such
 * message is counted together with the opposite one, in a row of its own. */
static void exchange(int turns, int of[])
{
    static const double speed[] = {[WEFT_RNDV_COPY] = 8, [WEFT_RNDV_GET] = 25, [WEFT_RNDV_SPLIT] = 20}; /* of both messages */
    for (int i = 0; i < turns; i++) {
        weft_rndv_xfer xfer = {.proto = weft_rndv_select(&stats, &peer, MB, &rndv_caps, true), .is_both_ways = true, .bytes = MB};
        uint64_t began = now + 50000; /* the other side is late */
        weft_rndv_send_begin(&stats);
        weft_rndv_xfer_begin(&stats, &xfer, began);
        of[xfer.proto]++;
        now = began + NS(speed[xfer.proto], 2 * MB);
        weft_rndv_xfer_end(&stats, &xfer, false, began, i % 2 ? now : now - 1000);
        weft_rndv_send_end(&stats, MB, now);
    }
}

static void test_bidir(void)
{
    static const double alone[] = {[WEFT_RNDV_COPY] = 8, [WEFT_RNDV_GET] = 13, [WEFT_RNDV_SPLIT] = 24};
    int of[WEFT_RNDV_LAST] = {0}, one_way[WEFT_RNDV_LAST] = {0};
    start_anew();
    for (int turn = 0; turn < 4; turn++) {
        exchange(250, of);
        for (int i = 0; i < 250; i++) {
            weft_rndv_xfer xfer = begin(MB);
            uint64_t began = now;
            one_way[xfer.proto]++;
            now += NS(alone[xfer.proto], MB);
            weft_rndv_xfer_end(&stats, &xfer, false, began, now);
        }
    }
    CU_ASSERT(of[WEFT_RNDV_GET] > 950);
    CU_ASSERT(one_way[WEFT_RNDV_SPLIT] > 950);
    CU_ASSERT_EQUAL(stats.in_flight, 0);
    CU_ASSERT_EQUAL(stats.sends, 0);
    CU_ASSERT_DOUBLE_EQUAL(1 / stats.rows[0][1][8].record[WEFT_RNDV_GET].ns_per_byte, 25, 1); /* lateness is not counted */
    CU_ASSERT_DOUBLE_EQUAL(1 / stats.rows[0][0][8].record[WEFT_RNDV_SPLIT].ns_per_byte, 24, 1);
}

/* A kernel copy that follows another protocol finds the buffers in the wrong caches: the first takes three times as long, the second 1.5
 * times. Single trials would always prefer the protocol in use. */
static void test_cold_caches(void)
{
    static const double speed[] = {[WEFT_RNDV_COPY] = 15, [WEFT_RNDV_GET] = 24, [WEFT_RNDV_SPLIT] = 20};
    int of[WEFT_RNDV_LAST] = {0}, same = 0;
    enum weft_rndv_proto last = WEFT_RNDV_LAST;
    start_anew();
    for (int i = 0; i < 4000; i++) {
        weft_rndv_xfer xfer = begin(MB / 2);
        uint64_t began = now;
        same = xfer.proto == last ? same + 1 : 0;
        last = xfer.proto;
        of[xfer.proto]++;
        now += NS(speed[xfer.proto], MB / 2) * (xfer.proto == WEFT_RNDV_COPY || same > 1 ? 2 : same == 1 ? 3 : 6) / 2;
        weft_rndv_xfer_end(&stats, &xfer, false, began, now);
    }
    CU_ASSERT(of[WEFT_RNDV_GET] > 3700);
}

/* An interruption now and then does not change the selection: two protocols of about equal speed do not alternate. */
static void test_interrupted(void)
{
    static const double speed[] = {[WEFT_RNDV_COPY] = 8, [WEFT_RNDV_GET] = 24, [WEFT_RNDV_SPLIT] = 23.5};
    enum weft_rndv_proto last = WEFT_RNDV_LAST;
    int changes = 0;
    start_anew();
    for (int i = 0; i < 4000; i++) {
        weft_rndv_xfer xfer = begin(MB / 2);
        uint64_t began = now;
        changes += xfer.proto != last;
        last = xfer.proto;
        now += NS(speed[xfer.proto], MB / 2) * (100 + (uint64_t)(i * 7 % 10)) / 100;
        weft_rndv_xfer_end(&stats, &xfer, false, began, now);
    }
    CU_ASSERT(changes < 4000 / 64);
}

/* Windows in both directions. By copy all messages progress at once and end together: one that ends just after a sample began has no
 * rate. */
static void test_windows_bidir(void)
{
    enum { MESSAGES = 64 };
    static const double speed[] = {[WEFT_RNDV_COPY] = 10, [WEFT_RNDV_GET] = 20, [WEFT_RNDV_SPLIT] = 15};
    int of[WEFT_RNDV_LAST] = {0}, others = 0;
    start_anew();
    for (int turn = 0; turn < 200; turn++) {
        weft_rndv_xfer open[MESSAGES];
        uint64_t began = now;
        int slow = 0;
        enum weft_rndv_proto hint = WEFT_RNDV_LAST;
        for (int i = 0; i < MESSAGES; i++) {
            hint = weft_rndv_select(&stats, &peer, MB, &rndv_caps, true);
            weft_rndv_send_begin(&stats);
        }
        for (int i = 0; i < MESSAGES; i++) {
            uint64_t start = now;
            open[slow] = (weft_rndv_xfer){.proto = weft_rndv_select(&stats, &peer, MB, &rndv_caps, true),
                                          .is_both_ways = true, .bytes = MB};
            of[open[slow].proto]++;
            others += i == 0 && open[slow].proto != hint; /* the peer's receives use another protocol than this rank's */
            weft_rndv_xfer_begin(&stats, &open[slow], start);
            if (open[slow].proto != WEFT_RNDV_GET) {
                slow++;
                continue;
            }
            now += NS(speed[WEFT_RNDV_GET], 2 * MB);
            weft_rndv_xfer_end(&stats, &open[slow], false, start, now);
            weft_rndv_send_end(&stats, MB, now);
        }
        now += slow ? NS(speed[open[0].proto], (uint64_t)slow * 2 * MB) : 0;
        for (int i = 0; i < slow; i++) {
            weft_rndv_xfer_end(&stats, &open[i], false, began, ++now);
            weft_rndv_send_end(&stats, MB, ++now);
        }
    }
    CU_ASSERT(of[WEFT_RNDV_GET] > 180 * MESSAGES);
    CU_ASSERT(others == 0);
    CU_ASSERT_EQUAL(stats.in_flight, 0);
    CU_ASSERT_EQUAL(stats.sends, 0);
}

/* A window of sends is one direction, however many are in flight; so is, soon, what follows an exchange, also for a side that only
 * sends. */
static void test_directions(void)
{
    weft_bidir bidir = {0};
    uint32_t seen[16];
    for (int i = 0; i < 16; i++) {
        CU_ASSERT(!weft_bidir_expects_recv(&bidir));
        seen[i] = weft_bidir_send_begin(&bidir);
    }
    for (int i = 0; i < 16; i++)
        weft_bidir_send_end(&bidir, seen[i]);
    CU_ASSERT(!weft_bidir_expects_recv(&bidir) && !weft_bidir_expects_send(&bidir));
    for (int i = 0; i < 8; i++) { /* exchanges: either side begins first, either ends first */
        uint32_t sent;
        if (i % 2)
            weft_bidir_recv_begin(&bidir, true);
        sent = weft_bidir_send_begin(&bidir);
        if (i % 2 == 0)
            weft_bidir_recv_begin(&bidir, true);
        CU_ASSERT(weft_bidir_expects_recv(&bidir) && weft_bidir_expects_send(&bidir));
        weft_bidir_recv_end(&bidir);
        weft_bidir_send_end(&bidir, sent);
    }
    CU_ASSERT(weft_bidir_expects_recv(&bidir) && weft_bidir_expects_send(&bidir));
    for (int i = 0; i < 16; i++) { /* the peer sends no RTS any more: the last one's mark is forgotten */
        weft_bidir_send_end(&bidir, weft_bidir_send_begin(&bidir));
    }
    CU_ASSERT(!weft_bidir_expects_recv(&bidir) && !weft_bidir_expects_send(&bidir));
    for (int i = 0; i < 16; i++) {
        weft_bidir_recv_begin(&bidir, false);
        weft_bidir_recv_end(&bidir);
    }
    CU_ASSERT(!weft_bidir_expects_recv(&bidir));
}

/* Two ifaces and two kinds of peers in one job: rates of memory are not used for a network, nor those of the own node for others. */
static void test_ifaces(void)
{
    static const uint32_t node_of[] = {0, 0, 1, 1};
    weft_boot boot = {.rank = 0, .size = 4, .node = 0, .nodes = 2, .node_of = node_of};
    weft_world world = {.boot = &boot};
    weft_iface ifaces[3] = {iface, iface, iface}; /* self, memory, a network */
    weft_ep eps[3] = {{.iface = &ifaces[0]}, {.iface = &ifaces[1]}, {.iface = &ifaces[2]}};
    weft_worker worker = {.world = &world, .ifaces = {&ifaces[0], &ifaces[1], &ifaces[2]}, .iface_count = 3};
    weft_peer peers[] = {{.ep = &eps[0], .proc_id.rank = 0}, {.ep = &eps[1], .proc_id.rank = 1}, {.ep = &eps[2], .proc_id.rank = 2},
                         {.ep = &eps[2], .proc_id.rank = 3}, {.ep = &eps[2], .proc_id.rank = 1}};
    for (int p = 0; p < 5; p++)
        peers[p].worker = &worker;
    static const double speed[5][WEFT_RNDV_LAST] = {
        {[WEFT_RNDV_COPY] = 40, [WEFT_RNDV_GET] = 10, [WEFT_RNDV_SPLIT] = 9},
        {[WEFT_RNDV_COPY] = 8, [WEFT_RNDV_GET] = 13, [WEFT_RNDV_SPLIT] = 24},
        {[WEFT_RNDV_COPY] = 1, [WEFT_RNDV_GET] = 3, [WEFT_RNDV_SPLIT] = 2},
        {[WEFT_RNDV_COPY] = 1, [WEFT_RNDV_GET] = 3, [WEFT_RNDV_SPLIT] = 2},
        {[WEFT_RNDV_COPY] = 4, [WEFT_RNDV_GET] = 1, [WEFT_RNDV_SPLIT] = 2}};
    int of[5][WEFT_RNDV_LAST] = {0};
    worker.rndv_stats = weft_rndv_stats_open(&worker);
    CU_ASSERT_FATAL(worker.rndv_stats != NULL);
    CU_ASSERT_PTR_EQUAL(weft_rndv_stats_of(&worker, &peers[2]), weft_rndv_stats_of(&worker, &peers[3]));
    now = 1000;
    for (int i = 0; i < 1000; i++) /* in turn: what one learns would be used by the next */
        for (int p = 0; p < 5; p++) {
            weft_rndv_stats *its = weft_rndv_stats_of(&worker, &peers[p]);
            weft_rndv_xfer xfer = {.proto = weft_rndv_select(its, &peers[p], MB, &rndv_caps, false), .bytes = MB};
            uint64_t began = now;
            weft_rndv_xfer_begin(its, &xfer, now);
            now += NS(speed[p][xfer.proto], MB);
            weft_rndv_xfer_end(its, &xfer, false, began, now);
            of[p][xfer.proto]++;
        }
    CU_ASSERT(of[0][WEFT_RNDV_COPY] > 950 && of[1][WEFT_RNDV_SPLIT] > 950 && of[2][WEFT_RNDV_GET] > 950);
    CU_ASSERT(of[4][WEFT_RNDV_COPY] > 950); /* the network's protocol to a rank on the own node */
    for (int p = 0; p < 5; p++) /* each was tried with its own records */
        for (enum weft_rndv_proto proto = WEFT_RNDV_COPY; proto <= WEFT_RNDV_SPLIT; proto++)
            CU_ASSERT(of[p][proto] >= 1 || p == 3);
    free(worker.rndv_stats);
}

/* Ranks that share CPUs: one copy by the kernel, whatever the times say, unless the kernel takes too long, or does not copy, as between
 * nodes. */
static void test_shared_cpus(void)
{
    bool is_cheap = weft_kernel_copy_ns() <= WEFT_KERNEL_COPY_MAX_NS;
    int of[WEFT_RNDV_LAST] = {0};
    start_anew();
    world.is_oversubscribed = true;
    for (int i = 0; i < 100; i++) {
        weft_rndv_xfer xfer = begin(MB);
        uint64_t began = now;
        of[xfer.proto]++;
        now += NS(xfer.proto == WEFT_RNDV_GET ? 1 : 10, MB);
        weft_rndv_xfer_end(&stats, &xfer, false, began, now);
    }
    CU_ASSERT_EQUAL(of[WEFT_RNDV_GET] == 100, is_cheap);
    iface.caps.key_bytes = 8;
    start_anew();
    CU_ASSERT_EQUAL(weft_rndv_select(&stats, &peer, MB, &rndv_caps, false), WEFT_RNDV_COPY); /* the first of the trials */
    iface.caps.key_bytes = 0;
    world.is_oversubscribed = false;
    CU_ASSERT_EQUAL(weft_rndv_select(&stats, &peer, MB, &rndv_caps, false), WEFT_RNDV_COPY);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("rndv select", NULL, NULL);
    CU_add_test(suite, "alone", test_alone);
    CU_add_test(suite, "windows", test_windows);
    CU_add_test(suite, "stream", test_stream);
    CU_add_test(suite, "mixed", test_mixed);
    CU_add_test(suite, "misleading", test_misleading);
    CU_add_test(suite, "speeds change", test_speeds_change);
    CU_add_test(suite, "bidirectional", test_bidir);
    CU_add_test(suite, "cold caches", test_cold_caches);
    CU_add_test(suite, "interrupted", test_interrupted);
    CU_add_test(suite, "bidirectional windows", test_windows_bidir);
    CU_add_test(suite, "directions", test_directions);
    CU_add_test(suite, "ifaces", test_ifaces);
    CU_add_test(suite, "shared CPUs", test_shared_cpus);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : CU_get_error();
}

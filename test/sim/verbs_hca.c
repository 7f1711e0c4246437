/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_hca: tests the simulated HCA itself, by plain ibv_ calls without transports/verbs: every status occurs and looks as from
 * libibverbs; order, queue capacity, states, limits, events; a seed replays.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/verbs_hca.h"

/* -- successful operations -- */

static void ping_pong(void)
{
    for (const simhca_profile *profile = simhca_profiles; profile->name; profile++) {
        end ends[2];
        struct ibv_wc wc;
        uint32_t bad = 0;
        simhca_profile gentle = *profile;
        if (profile->no_rc)
            continue;
        gentle.break_per_100k = gentle.refuse_per_100k = gentle.reg_refuse_permille = gentle.flip_permille = 0;
        gentle.flap_per_100k = 0;
        if (gentle.max_srq_wr < END_DEPTH)
            gentle.max_srq_wr = 0; /* an end's queue is longer */
        CU_ASSERT_FATAL(ends_open(ends, &gentle, 1, NULL));
        for (uint32_t n = 0; n < 200; n++) {
            end *from = &ends[n % 2], *to = &ends[1 - n % 2];
            uint32_t bytes = n * 37 % 8000;
            bad += end_recv(to, 1000 + n, 0, 8192) != 0;
            memset(from->memory + 16384, (int)n, bytes);
            bad += end_post(from, n, IBV_WR_SEND, 16384, bytes, IBV_SEND_SIGNALED, NULL, 0) != 0;
            bad += !end_wait(to, &wc) || wc.wr_id != 1000 + n || wc.status || wc.opcode != IBV_WC_RECV || wc.byte_len != bytes ||
                   wc.qp_num != to->qp->qp_num;
            bad += bytes && (to->memory[0] != (uint8_t)n || to->memory[bytes - 1] != (uint8_t)n);
            bad += !end_wait(from, &wc) || wc.wr_id != n || wc.status || wc.opcode != IBV_WC_SEND;
        }
        CU_ASSERT(bad == 0);
        if (bad)
            printf("\n    %s: %u things are wrong", profile->name, bad);
        CU_ASSERT(ends_close(ends) == 0);
    }
}

static void one_sided(void)
{
    static const char *const names[] = {"calm", "torn", "ordered", "ib"};
    for (int p = 0; p < 4; p++) {
        end ends[2], *a = &ends[0], *b = &ends[1];
        struct ibv_wc wc;
        CU_ASSERT_FATAL(ends_open(ends, simhca_profile_find(names[p]), 3, NULL));
        for (int i = 0; i < 5000; i++)
            a->memory[i] = (uint8_t)(i * 7);
        CU_ASSERT(end_post(a, 1, IBV_WR_RDMA_WRITE, 0, 5000, IBV_SEND_SIGNALED, b, 333) == 0);
        CU_ASSERT(end_wait(a, &wc) && wc.status == 0 && wc.opcode == IBV_WC_RDMA_WRITE && wc.wr_id == 1);
        CU_ASSERT(memcmp(a->memory, b->memory + 333, 5000) == 0 && b->memory[332] == 0 && b->memory[5333] == 0);
        CU_ASSERT(end_post(a, 2, IBV_WR_RDMA_READ, 20000, 4999, IBV_SEND_SIGNALED, b, 334) == 0);
        CU_ASSERT(end_wait(a, &wc) && wc.status == 0 && wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == 4999);
        CU_ASSERT(memcmp(a->memory + 20000, a->memory + 1, 4999) == 0);
        CU_ASSERT(end_recv(b, 9, 40000, 100) == 0);
        CU_ASSERT(end_post(a, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 100, IBV_SEND_SIGNALED, b, 6000) == 0);
        CU_ASSERT(end_wait(b, &wc) && wc.status == 0 && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wr_id == 9);
        CU_ASSERT((wc.wc_flags & IBV_WC_WITH_IMM) && wc.imm_data == 0x01020304 && wc.byte_len == 100);
        CU_ASSERT(memcmp(b->memory + 6000, a->memory, 100) == 0 && b->memory[40000] == 0);
        CU_ASSERT(end_wait(a, &wc) && wc.wr_id == 3);
        uint64_t *word = (uint64_t *)(b->memory + 8000), *before = (uint64_t *)(a->memory + 30000);
        *word = 40;
        CU_ASSERT(end_post(a, 4, IBV_WR_ATOMIC_FETCH_AND_ADD, 30000, 8, IBV_SEND_SIGNALED, b, 8000) == 0);
        CU_ASSERT(end_wait(a, &wc) && wc.status == 0 && wc.opcode == IBV_WC_FETCH_ADD && *word == 45 && *before == 40);
        *word = 5;
        CU_ASSERT(end_post(a, 5, IBV_WR_ATOMIC_CMP_AND_SWP, 30000, 8, IBV_SEND_SIGNALED, b, 8000) == 0);
        CU_ASSERT(end_wait(a, &wc) && wc.status == 0 && wc.opcode == IBV_WC_COMP_SWAP && *word == 7 && *before == 5);
        CU_ASSERT(simhca_counter(SIMHCA_TORN) > 0 || p == 0 || p == 3);
        CU_ASSERT(ends_close(ends) == 0);
    }
}

/* Sent memory is read when the message leaves, inline bytes when it is posted. */
static void gathers_late(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    struct ibv_wc wc;
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 5, &(end_wish){.inlined = 64}));
    for (int is_inline = 0; is_inline < 2; is_inline++) {
        CU_ASSERT(end_recv(b, 1, 0, 64) == 0);
        memset(a->memory, 1, 64);
        CU_ASSERT(end_post(a, 2, IBV_WR_SEND, 0, 64, IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0), NULL, 0) == 0);
        memset(a->memory, 2, 64); /* too early */
        CU_ASSERT(end_wait(b, &wc) && wc.status == 0);
        CU_ASSERT(b->memory[0] == (is_inline ? 1 : 2));
        CU_ASSERT(end_wait(a, &wc) && wc.status == 0);
    }
    CU_ASSERT(ends_close(ends) == 0);
}

/* Line by line: partly visible, from the front only if the device guarantees order. */
static void torn_writes(void)
{
    static const char *const names[] = {"torn", "ordered", "calm"};
    for (int p = 0; p < 3; p++) {
        end ends[2], *a = &ends[0], *b = &ends[1];
        struct ibv_wc wc;
        uint32_t halves = 0, disorders = 0;
        CU_ASSERT_FATAL(ends_open(ends, simhca_profile_find(names[p]), 7, NULL));
        CU_ASSERT(ibv_query_qp_data_in_order(b->qp, IBV_WR_RDMA_WRITE, 0) == (p != 0));
        for (int round = 1; round <= 30; round++) {
            memset(a->memory, round, 2048);
            CU_ASSERT(end_post(a, 1, IBV_WR_RDMA_WRITE, 0, 2048, IBV_SEND_SIGNALED, b, 0) == 0);
            bool is_over = false;
            for (int i = 0; i < 100000 && !is_over; i++) {
                is_over = ibv_poll_cq(a->cq, 1, &wc) == 1;
                bool first = b->memory[0] == round, last = b->memory[2047] == round;
                halves += !is_over && first != last;
                disorders += last && memchr(b->memory, round - 1, 2048) != NULL;
            }
            CU_ASSERT(is_over && wc.status == 0 && memcmp(a->memory, b->memory, 2048) == 0);
        }
        CU_ASSERT(p == 2 ? halves == 0 : halves > 10);
        CU_ASSERT(p == 0 ? disorders > 5 : disorders == 0);
        CU_ASSERT(ends_close(ends) == 0);
    }
}

/* As mlx5: the order is known of a queue pair in RTS only. */
static void order_of_state(void)
{
    end ends[2];
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    CU_ASSERT_FATAL(simhca_open(hca_calm(), 1, 0) && end_open(&ends[0], 0, NULL) && end_open(&ends[1], 1, NULL));
    CU_ASSERT(ibv_query_qp_data_in_order(ends[0].qp, IBV_WR_RDMA_WRITE, 0) == 0);
    CU_ASSERT(end_to_init(&ends[0], &(end_wish){0}) == 0 && ibv_query_qp_data_in_order(ends[0].qp, IBV_WR_RDMA_WRITE, 0) == 0);
    CU_ASSERT(end_to_rtr(&ends[0], &ends[1], &(end_wish){0}) == 0);
    CU_ASSERT(ibv_query_qp_data_in_order(ends[0].qp, IBV_WR_RDMA_WRITE, 0) == 0);
    CU_ASSERT(end_to_rts(&ends[0], &(end_wish){0}) == 0 && ibv_query_qp_data_in_order(ends[0].qp, IBV_WR_RDMA_WRITE, 0) == 1);
    CU_ASSERT(ibv_modify_qp(ends[0].qp, &error, IBV_QP_STATE) == 0);
    CU_ASSERT(ibv_query_qp_data_in_order(ends[0].qp, IBV_WR_RDMA_WRITE, 0) == 0);
    CU_ASSERT(ends_close(ends) == 0);
}

/* Lost acknowledgements cause retransmission; each operation is performed once. */
static void exactly_once(void)
{
    simhca_profile profile = {.name = "ack-loss", .delay_ns = 2000, .ack_loss_permille = 300};
    end ends[2], *a = &ends[0], *b = &ends[1];
    struct ibv_wc wc;
    uint32_t bad = 0;
    CU_ASSERT_FATAL(ends_open(ends, &profile, 8, &(end_wish){.retries = 7, .timeout = 6}));
    uint64_t *word = (uint64_t *)b->memory;
    for (uint32_t n = 0; n < 300; n++) {
        bad += end_recv(b, n, 4096, 64) != 0;
        bad += end_post(a, n, IBV_WR_SEND, 0, 8, 0, NULL, 0) != 0;
        bad += end_post(a, n, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, 8, IBV_SEND_SIGNALED, b, 0) != 0;
        bad += !end_wait(a, &wc) || wc.status;
        bad += *word != 5ull * (n + 1) || *(uint64_t *)(a->memory + 64) != 5ull * n;
        bad += !end_wait(b, &wc) || wc.status || wc.wr_id != n;
    }
    CU_ASSERT(bad == 0);
    CU_ASSERT(end_is_silent(b));
    CU_ASSERT(simhca_counter(SIMHCA_ACKS_LOST) > 50 && simhca_counter(SIMHCA_RESENT) > 50);
    CU_ASSERT(ends_close(ends) == 0);
}

/* The same calls give the same run, to the nanosecond; another seed gives another. */
static void replays(void)
{
    uint64_t times[3], counts[3];
    for (int run = 0; run < 3; run++) {
        end ends[2];
        struct ibv_wc wc;
        CU_ASSERT_FATAL(ends_open(ends, simhca_profile_find("torn"), run == 2 ? 12 : 11, NULL));
        for (uint32_t n = 0; n < 100; n++) {
            CU_ASSERT(end_post(&ends[0], n, IBV_WR_RDMA_WRITE, 0, 3000, IBV_SEND_SIGNALED, &ends[1], 0) == 0);
            CU_ASSERT(end_wait(&ends[0], &wc) && !wc.status);
        }
        times[run] = simhca_now_ns();
        counts[run] = simhca_counter(SIMHCA_TORN);
        CU_ASSERT(ends_close(ends) == 0);
    }
    CU_ASSERT(times[0] == times[1] && counts[0] == counts[1] && times[0] != times[2]);
}

static const hca_test works[] = {
    {"ping-pong", ping_pong}, {"one-sided", one_sided}, {"gather-at-send", gathers_late}, {"torn-writes", torn_writes},
    {"order-of-state", order_of_state},
    {"exactly-once", exactly_once}, {"replays", replays}, {NULL, NULL},
};

static void add(const char *name, const hca_test *tests)
{
    CU_pSuite suite = CU_add_suite(name, NULL, NULL);
    for (; suite && tests->name; tests++)
        CU_add_test(suite, tests->name, tests->run);
}

int main(int argc, char **argv)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    add("what works", works);
    add("what fails", hca_fails);
    add("limits and events", hca_limits);
    add("windows", hca_windows);
    add("relaxed ordering", hca_relaxed);
    CU_basic_set_mode(argc > 1 && strcmp(argv[1], "-v") == 0 ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

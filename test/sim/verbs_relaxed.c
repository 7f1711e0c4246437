/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_relaxed: regions for relaxed ordering of the simulated HCA: when written bytes are visible, and what devices do with the flag.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <string.h>

#include "test/sim/verbs_hca.h"

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
#define BYTES 3000u

/* b's memory is registered once more, for relaxed ordering. False: refused. */
static bool open_relaxed(end *ends, const char *profile)
{
    CU_ASSERT_FATAL(ends_open(ends, simhca_profile_find(profile), 21, NULL));
    struct ibv_mr *mr = ibv_reg_mr(ends[1].pd, ends[1].memory, END_BYTES, ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING);
    if (!mr)
        return false;
    CU_ASSERT(ibv_dereg_mr(ends[1].mr) == 0);
    ends[1].mr = mr;
    return true;
}

/* Writes BYTES of value n into b's memory; true: they are visible at the acknowledgement. */
static bool is_visible_at_ack(end *a, end *b, int n)
{
    struct ibv_wc wc;
    memset(a->memory, n, BYTES);
    CU_ASSERT(end_post(a, 1, IBV_WR_RDMA_WRITE, 0, BYTES, IBV_SEND_SIGNALED, b, 0) == 0);
    CU_ASSERT(end_wait(a, &wc) && wc.status == IBV_WC_SUCCESS);
    return memcmp(a->memory, b->memory, BYTES) == 0;
}

static void acknowledged_before_visible(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    uint32_t late = 0;
    CU_ASSERT_FATAL(open_relaxed(ends, "mlx5"));
    for (int n = 1; n <= 50; n++) {
        late += !is_visible_at_ack(a, b, n);
        simhca_pass(1000000000);
        CU_ASSERT(memcmp(a->memory, b->memory, BYTES) == 0); /* some time */
    }
    CU_ASSERT(late > 25 && simhca_counter(SIMHCA_RELAXED_WRITES) == 50);
    CU_ASSERT(ends_close(ends) == 0);
}

/* What comes behind the writes on their queue pair: a received message, immediate data, a read. */
static void own_queue_pair_orders(void)
{
    static const enum ibv_wr_opcode behind[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
    end ends[2], *a = &ends[0], *b = &ends[1];
    struct ibv_wc wc;
    CU_ASSERT_FATAL(open_relaxed(ends, "mlx5"));
    for (int n = 1; n <= 90; n++) {
        enum ibv_wr_opcode opcode = behind[n % 3];
        is_visible_at_ack(a, b, n);
        CU_ASSERT(opcode == IBV_WR_RDMA_READ || end_recv(b, 2, 20000, 64) == 0);
        CU_ASSERT(end_post(a, 3, opcode, 40000, 64, IBV_SEND_SIGNALED, opcode == IBV_WR_SEND ? NULL : b,
                           opcode == IBV_WR_RDMA_READ ? 64 : 30000) == 0);
        if (opcode == IBV_WR_RDMA_READ)
            CU_ASSERT(end_wait(a, &wc) && memcmp(a->memory + 40000, a->memory + 64, 64) == 0);
        if (opcode == IBV_WR_RDMA_READ)
            continue;
        CU_ASSERT(end_wait(b, &wc) && wc.wr_id == 2 && memcmp(a->memory, b->memory, BYTES) == 0);
        CU_ASSERT(end_wait(a, &wc) && wc.wr_id == 3);
    }
    CU_ASSERT(ends_close(ends) == 0);
}

/* A read into such memory completes behind its bytes. */
static void own_reads_complete_last(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    struct ibv_wc wc;
    CU_ASSERT_FATAL(open_relaxed(ends, "mlx5"));
    for (int n = 1; n <= 50; n++) {
        memset(a->memory, n, BYTES);
        CU_ASSERT(end_post(b, 1, IBV_WR_RDMA_READ, 0, BYTES, IBV_SEND_SIGNALED, a, 0) == 0);
        CU_ASSERT(end_wait(b, &wc) && wc.status == IBV_WC_SUCCESS && memcmp(a->memory, b->memory, BYTES) == 0);
    }
    CU_ASSERT(ends_close(ends) == 0);
}

static void ends_show_all(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    for (int is_dereg = 0; is_dereg < 2; is_dereg++) {
        CU_ASSERT_FATAL(open_relaxed(ends, "mlx5"));
        is_visible_at_ack(a, b, 7);
        CU_ASSERT((is_dereg ? ibv_dereg_mr(b->mr) : ibv_destroy_qp(b->qp)) == 0);
        CU_ASSERT(memcmp(a->memory, b->memory, BYTES) == 0);
        b->mr = is_dereg ? NULL : b->mr;
        b->qp = is_dereg ? b->qp : NULL;
        CU_ASSERT(ends_close(ends) == 0);
    }
}

static void devices_differ(void)
{
    static const char *const ignoring[] = {"irdma", "mlx4", "calm", "hfi1"};
    end ends[2];
    for (size_t i = 0; i < sizeof ignoring / sizeof ignoring[0]; i++) {
        CU_ASSERT_FATAL(open_relaxed(ends, ignoring[i]));
        for (int n = 1; n <= 20; n++)
            CU_ASSERT(is_visible_at_ack(&ends[0], &ends[1], n));
        CU_ASSERT(simhca_counter(SIMHCA_RELAXED_WRITES) == 0 && ends_close(ends) == 0);
    }
    CU_ASSERT(!open_relaxed(ends, "plain") && errno == EOPNOTSUPP);
    CU_ASSERT(ends_close(ends) == 0);
}

const hca_test hca_relaxed[] = {
    {"acknowledged-before-visible", acknowledged_before_visible}, {"own-queue-pair-orders", own_queue_pair_orders},
    {"own-reads-complete-last", own_reads_complete_last}, {"ends-show-all", ends_show_all}, {"devices-differ", devices_differ},
    {NULL, NULL},
};

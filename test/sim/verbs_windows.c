/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_windows: memory windows of the simulated HCA: what a bound window permits, to which queue pair, until when; completions of invalid
 * requests.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "test/sim/verbs_hca.h"

#define FROM 1000u
#define BYTES 500u

typedef struct pane { /* b exposes, a accesses */
    end ends[2], *a, *b;
    struct ibv_mr *mr;
    struct ibv_mw *mw;
} pane;

static bool pane_open(pane *pane, const simhca_profile *profile)
{
    if (!ends_open(pane->ends, profile, 9, NULL))
        return false;
    pane->a = &pane->ends[0];
    pane->b = &pane->ends[1];
    pane->mr = ibv_reg_mr(pane->b->pd, pane->b->memory, END_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    pane->mw = ibv_alloc_mw(pane->b->pd, IBV_MW_TYPE_2);
    return pane->mr && pane->mw;
}

static void pane_close(pane *pane)
{
    CU_ASSERT(ibv_dealloc_mw(pane->mw) == 0);
    CU_ASSERT(ibv_dereg_mr(pane->mr) == 0);
    CU_ASSERT(ends_close(pane->ends) == 0);
}

static int bind(pane *pane, end *by, struct ibv_mr *mr, uint32_t key, uint32_t from, uint32_t bytes, unsigned access)
{
    struct ibv_send_wr wr = {.wr_id = 70, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.bind_mw.mw = pane->mw;
    wr.bind_mw.rkey = key;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){mr, (uintptr_t)pane->b->memory + from, bytes, access};
    return ibv_post_send(by->qp, &wr, &bad);
}

static int take_back(end *by, uint32_t key)
{
    struct ibv_send_wr wr = {.wr_id = 71, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key}, *bad;
    return ibv_post_send(by->qp, &wr, &bad);
}

static enum ibv_wc_status status_of(end *end, uint64_t wr_id)
{
    struct ibv_wc wc;
    bool came = end_wait(end, &wc);
    CU_ASSERT(came && wc.wr_id == wr_id);
    return came ? wc.status : IBV_WC_GENERAL_ERR;
}

/* Binds [FROM, FROM + BYTES) with a new key. */
static void lend(pane *pane, unsigned access)
{
    uint32_t key = ibv_inc_rkey(pane->mw->rkey);
    CU_ASSERT(bind(pane, pane->b, pane->mr, key, FROM, BYTES, access) == 0);
    CU_ASSERT(status_of(pane->b, 70) == IBV_WC_SUCCESS);
    pane->mw->rkey = key;
}

/* Writes or reads [from, from + 8) by the window's key; returns the completion's status. */
static enum ibv_wc_status use(pane *pane, end *by, enum ibv_wr_opcode opcode, uint32_t from)
{
    struct ibv_sge sge = {(uintptr_t)by->memory, 8, by->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}, *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)pane->b->memory + from;
    wr.wr.rdma.rkey = pane->mw->rkey;
    CU_ASSERT(ibv_post_send(by->qp, &wr, &bad) == 0);
    return status_of(by, 5);
}

static void bound_range_is_accessible(void)
{
    pane pane;
    CU_ASSERT_FATAL(pane_open(&pane, hca_calm()));
    lend(&pane, IBV_ACCESS_REMOTE_WRITE);
    memset(pane.a->memory, 7, 8);
    CU_ASSERT(use(&pane, pane.a, IBV_WR_RDMA_WRITE, FROM) == IBV_WC_SUCCESS);
    CU_ASSERT(use(&pane, pane.a, IBV_WR_RDMA_WRITE, FROM + BYTES - 8) == IBV_WC_SUCCESS);
    CU_ASSERT(pane.b->memory[FROM] == 7 && pane.b->memory[FROM - 1] == 0 && pane.b->memory[FROM + BYTES - 1] == 7);
    CU_ASSERT(ibv_dereg_mr(pane.mr) == EBUSY); /* a window is bound to it */
    CU_ASSERT(take_back(pane.b, pane.mw->rkey) == 0 && status_of(pane.b, 71) == IBV_WC_SUCCESS);
    lend(&pane, IBV_ACCESS_REMOTE_READ);
    CU_ASSERT(use(&pane, pane.a, IBV_WR_RDMA_READ, FROM) == IBV_WC_SUCCESS);
    CU_ASSERT(simhca_counter(SIMHCA_BINDS) == 2 && simhca_counter(SIMHCA_KEYS_REFUSED) == 0);
    pane_close(&pane);
}

static void other_access_fails(void)
{
    static const struct { unsigned access; enum ibv_wr_opcode opcode; uint32_t from; bool is_back; } wrongs[] = {
        {IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, FROM - 1, false},
        {IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, FROM + BYTES - 7, false},
        {IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ, FROM, false}, {IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE, FROM, false},
        {IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, FROM + BYTES, false}, {IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE, FROM, true},
        {IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ, FROM, true},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        pane pane;
        CU_ASSERT_FATAL(pane_open(&pane, hca_calm()));
        lend(&pane, wrongs[i].access);
        if (wrongs[i].is_back)
            CU_ASSERT(take_back(pane.b, pane.mw->rkey) == 0 && status_of(pane.b, 71) == IBV_WC_SUCCESS);
        memset(pane.a->memory, 7, 8);
        CU_ASSERT(use(&pane, pane.a, wrongs[i].opcode, wrongs[i].from) == IBV_WC_REM_ACCESS_ERR);
        CU_ASSERT(simhca_counter(SIMHCA_KEYS_REFUSED) == 1);
        for (uint32_t k = 0; k < END_BYTES; k++)
            if (pane.b->memory[k])
                CU_FAIL("memory changed although the key was refused");
        ibv_dealloc_mw(pane.mw); /* before its queue pair, which is in error by now */
        CU_ASSERT(ibv_dereg_mr(pane.mr) == 0);
        CU_ASSERT(ends_close(pane.ends) == 0);
    }
}

/* Another connection between the same two processes, in the same domain. */
static bool connect_more(end *more, const end *ends)
{
    static const end_wish plain;
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = {.send_cq = ends[i].cq, .recv_cq = ends[i].cq, .srq = ends[i].srq, .qp_type = IBV_QPT_RC,
                                        .cap = {.max_send_wr = 4, .max_send_sge = 1}};
        more[i] = ends[i];
        more[i].qp = ibv_create_qp(ends[i].pd, &init);
        if (!more[i].qp || end_to_init(&more[i], &plain))
            return false;
    }
    for (int i = 0; i < 2; i++)
        if (end_to_rtr(&more[i], &more[1 - i], &plain) || end_to_rts(&more[i], &plain))
            return false;
    return true;
}

static void serves_one_queue_pair(void)
{
    pane pane;
    end more[2];
    CU_ASSERT_FATAL(pane_open(&pane, hca_calm()) && connect_more(more, pane.ends));
    lend(&pane, IBV_ACCESS_REMOTE_WRITE);
    CU_ASSERT(use(&pane, &more[0], IBV_WR_RDMA_WRITE, FROM) == IBV_WC_REM_ACCESS_ERR);
    CU_ASSERT(use(&pane, pane.a, IBV_WR_RDMA_WRITE, FROM) == IBV_WC_SUCCESS);
    CU_ASSERT(take_back(pane.b, pane.mw->rkey) == 0 && status_of(pane.b, 71) == IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++) {
        struct ibv_async_event event;
        while (simhca_next_due() != UINT64_MAX && simhca_next_due() < simhca_now_ns() + 1000000000)
            simhca_pass(1000000);
        fcntl(more[i].context->async_fd, F_SETFL, O_NONBLOCK);
        while (ibv_get_async_event(more[i].context, &event) == 0)
            ibv_ack_async_event(&event);
        CU_ASSERT(ibv_destroy_qp(more[i].qp) == 0);
    }
    pane_close(&pane);
}

/* Each invalid request has its own status and leaves the window as it was. */
static void invalid_requests(void)
{
    for (int what = 0; what < 7; what++) {
        pane pane;
        CU_ASSERT_FATAL(pane_open(&pane, hca_calm()));
        uint32_t next = ibv_inc_rkey(pane.mw->rkey);
        int rc = -1;
        if (what == 0) /* the region does not permit windows */
            rc = bind(&pane, pane.b, pane.b->mr, next, FROM, BYTES, IBV_ACCESS_REMOTE_READ);
        else if (what == 1) /* longer than the region */
            rc = bind(&pane, pane.b, pane.mr, next, FROM, END_BYTES, IBV_ACCESS_REMOTE_READ);
        else if (what == 2) /* length 0 */
            rc = bind(&pane, pane.b, pane.mr, next, FROM, 0, IBV_ACCESS_REMOTE_READ);
        else if (what == 3) /* another window's key */
            rc = bind(&pane, pane.b, pane.mr, next + 0x100, FROM, BYTES, IBV_ACCESS_REMOTE_READ);
        else if (what == 4) /* not bound: nothing to invalidate */
            rc = take_back(pane.b, pane.mw->rkey);
        if (what > 4)
            lend(&pane, IBV_ACCESS_REMOTE_READ);
        if (what == 5) /* already bound */
            rc = bind(&pane, pane.b, pane.mr, next + 1, FROM, BYTES, IBV_ACCESS_REMOTE_READ);
        else if (what == 6) /* an old key */
            rc = take_back(pane.b, next - 1);
        CU_ASSERT(rc == 0 && status_of(pane.b, what == 4 || what == 6 ? 71 : 70) == IBV_WC_MW_BIND_ERR);
        ibv_dealloc_mw(pane.mw);
        CU_ASSERT(ibv_dereg_mr(pane.mr) == 0);
        CU_ASSERT(ends_close(pane.ends) == 0);
    }
}

/* A message posted behind a bind in the same queue is sent when the bind is done: its completion need not be awaited. */
static void send_follows_bind(void)
{
    simhca_profile slow = {.name = "slow", .delay_ns = 50000, .ack_ns = 900000};
    pane pane;
    struct ibv_wc wc;
    CU_ASSERT_FATAL(pane_open(&pane, &slow));
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t key = ibv_inc_rkey(pane.mw->rkey);
        CU_ASSERT(end_recv(pane.a, 9, 0, 64) == 0);
        CU_ASSERT(bind(&pane, pane.b, pane.mr, key, FROM, BYTES, IBV_ACCESS_REMOTE_READ) == 0);
        CU_ASSERT(end_post(pane.b, 2, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
        pane.mw->rkey = key;
        CU_ASSERT(end_wait(pane.a, &wc) && wc.wr_id == 9 && wc.status == 0);
        CU_ASSERT(use(&pane, pane.a, IBV_WR_RDMA_READ, FROM) == IBV_WC_SUCCESS);
        CU_ASSERT(status_of(pane.b, 70) == IBV_WC_SUCCESS);
        CU_ASSERT(take_back(pane.b, key) == 0 && status_of(pane.b, 71) == IBV_WC_SUCCESS);
    }
    pane_close(&pane);
}

static void windows_run_out(void)
{
    simhca_profile few = {.name = "few", .max_mw = 3};
    struct ibv_mw *more[4];
    pane pane;
    CU_ASSERT_FATAL(pane_open(&pane, &few));
    CU_ASSERT(!ibv_alloc_mw(pane.b->pd, IBV_MW_TYPE_1) && errno == EOPNOTSUPP);
    for (int i = 0; i < 4; i++)
        more[i] = ibv_alloc_mw(pane.b->pd, IBV_MW_TYPE_2);
    CU_ASSERT(more[0] && more[1] && !more[2] && !more[3] && errno == ENOMEM);
    CU_ASSERT(ibv_dealloc_mw(more[0]) == 0 && ibv_dealloc_mw(more[1]) == 0);
    pane_close(&pane);
    end ends[2];
    CU_ASSERT_FATAL(ends_open(ends, simhca_profile_find("plain"), 1, NULL));
    CU_ASSERT(!ibv_alloc_mw(ends[0].pd, IBV_MW_TYPE_2) && errno == EOPNOTSUPP);
    CU_ASSERT(ends_close(ends) == 0);
}

const hca_test hca_windows[] = {
    {"bound-range-is-accessible", bound_range_is_accessible}, {"other-access-fails", other_access_fails},
    {"serves-one-queue-pair", serves_one_queue_pair}, {"invalid-requests", invalid_requests},
    {"send-follows-bind", send_follows_bind}, {"windows-run-out", windows_run_out}, {NULL, NULL},
};

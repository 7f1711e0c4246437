/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_fails: each failure of a simulated queue pair, as seen by both sides.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/verbs_hca.h"

static enum ibv_qp_state state_of(const end *end)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

static bool is_wc(end *end, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;
    bool came = end_wait(end, &wc);
    CU_ASSERT(came);
    if (came && (wc.wr_id != wr_id || wc.status != status || wc.qp_num != end->qp->qp_num))
        printf("\n    got %s for %llu, not %s for %llu", ibv_wc_status_str(wc.status), (unsigned long long)wc.wr_id,
               ibv_wc_status_str(status), (unsigned long long)wr_id);
    return came && wc.wr_id == wr_id && wc.status == status && wc.qp_num == end->qp->qp_num;
}

/* Returns the next asynchronous event within a virtual second. */
static int event_of(end *end)
{
    struct ibv_async_event event;
    fcntl(end->context->async_fd, F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 1000; i++) {
        if (ibv_get_async_event(end->context, &event) == 0) {
            ibv_ack_async_event(&event);
            if (event.event_type != IBV_EVENT_COMM_EST)
                return event.event_type;
        }
        simhca_pass(1000000);
    }
    return -1;
}

static void receive_too_short(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(end_recv(b, 7, 0, 63) == 0);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 64, 0, NULL, 0) == 0); /* unsignalled: a failure is reported all the same */
    CU_ASSERT(end_post(a, 2, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
    CU_ASSERT(is_wc(a, 1, IBV_WC_REM_INV_REQ_ERR) && is_wc(a, 2, IBV_WC_WR_FLUSH_ERR));
    CU_ASSERT(is_wc(b, 7, IBV_WC_LOC_LEN_ERR));
    CU_ASSERT(state_of(a) == IBV_QPS_ERR && state_of(b) == IBV_QPS_ERR);
    CU_ASSERT(end_post(a, 3, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0); /* in error: flushed */
    CU_ASSERT(is_wc(a, 3, IBV_WC_WR_FLUSH_ERR));
    CU_ASSERT(event_of(b) == IBV_EVENT_QP_LAST_WQE_REACHED);
    CU_ASSERT(ends_close(ends) == 0);
}

static void bad_local_key(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(end_recv(b, 7, 0, 64) == 0);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, IBV_SEND_SIGNALED, NULL, 0) == 0);
    CU_ASSERT(end_post(a, 2, IBV_WR_SEND, END_BYTES - 4, 8, 0, NULL, 0) == 0); /* beyond the region */
    CU_ASSERT(is_wc(a, 1, IBV_WC_SUCCESS) && is_wc(a, 2, IBV_WC_LOC_PROT_ERR));
    CU_ASSERT(is_wc(b, 7, IBV_WC_SUCCESS) && state_of(b) == IBV_QPS_RTS); /* the other side does not see it */
    CU_ASSERT(ends_close(ends) == 0);
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(end_recv(b, 7, END_BYTES - 4, 64) == 0);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
    CU_ASSERT(is_wc(b, 7, IBV_WC_LOC_PROT_ERR) && is_wc(a, 1, IBV_WC_REM_OP_ERR));
    CU_ASSERT(ends_close(ends) == 0);
}

static void one_access(enum ibv_wr_opcode opcode, int access, uint32_t far_at, uint32_t spoil)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.access = access}));
    memset(a->memory, 0x11, 64);
    memset(b->memory, 0x22, END_BYTES);
    b->mr->rkey ^= spoil;
    CU_ASSERT(end_post(a, 1, opcode, 0, 8, IBV_SEND_SIGNALED, b, far_at) == 0);
    CU_ASSERT(is_wc(a, 1, IBV_WC_REM_ACCESS_ERR));
    CU_ASSERT(event_of(b) == IBV_EVENT_QP_ACCESS_ERR && state_of(b) == IBV_QPS_ERR);
    CU_ASSERT(b->memory[0] == 0x22 && b->memory[END_BYTES - 1] == 0x22 && a->memory[0] == 0x11);
    b->mr->rkey ^= spoil;
    CU_ASSERT(ends_close(ends) == 0);
}

static void no_remote_access(void)
{
    enum { ALL = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };
    one_access(IBV_WR_RDMA_WRITE, 0, END_BYTES - 4, 0);
    one_access(IBV_WR_RDMA_READ, 0, END_BYTES - 4, 0);
    one_access(IBV_WR_RDMA_WRITE, 0, 0, 1);
    one_access(IBV_WR_RDMA_READ, 0, 0, 0x100);
    one_access(IBV_WR_RDMA_WRITE, 0, 0, 0x80000000u); /* the local key instead */
    one_access(IBV_WR_RDMA_WRITE, ALL & ~IBV_ACCESS_REMOTE_WRITE, 0, 0);
    one_access(IBV_WR_RDMA_READ, ALL & ~IBV_ACCESS_REMOTE_READ, 0, 0);
    one_access(IBV_WR_ATOMIC_FETCH_AND_ADD, ALL & ~IBV_ACCESS_REMOTE_ATOMIC, 0, 0);
}

/* A region with few rights, and a deregistered one whose place another has taken. */
static void stale_keys(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(ibv_dereg_mr(b->mr) == 0);
    b->mr = ibv_reg_mr(b->pd, b->memory, END_BYTES, IBV_ACCESS_REMOTE_READ);
    CU_ASSERT(end_post(a, 1, IBV_WR_RDMA_READ, 0, 8, IBV_SEND_SIGNALED, b, 0) == 0 && is_wc(a, 1, IBV_WC_SUCCESS));
    uint32_t old = b->mr->rkey;
    CU_ASSERT(ibv_dereg_mr(b->mr) == 0);
    for (int i = 0; i < 200; i++) { /* the old key is not reused soon */
        b->mr = ibv_reg_mr(b->pd, b->memory, END_BYTES, IBV_ACCESS_REMOTE_READ);
        CU_ASSERT(b->mr->rkey != old && b->mr->lkey != b->mr->rkey);
        if (i < 199)
            CU_ASSERT(ibv_dereg_mr(b->mr) == 0);
    }
    uint32_t now = b->mr->rkey;
    b->mr->rkey = old;
    CU_ASSERT(end_post(a, 2, IBV_WR_RDMA_READ, 0, 8, IBV_SEND_SIGNALED, b, 0) == 0 && is_wc(a, 2, IBV_WC_REM_ACCESS_ERR));
    b->mr->rkey = now;
    CU_ASSERT(ends_close(ends) == 0);
}

static void misaligned_atomic(void)
{
    end ends[2];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(end_post(&ends[0], 1, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, IBV_SEND_SIGNALED, &ends[1], 4) == 0);
    CU_ASSERT(is_wc(&ends[0], 1, IBV_WC_REM_INV_REQ_ERR) && state_of(&ends[1]) == IBV_QPS_ERR);
    CU_ASSERT(ends_close(ends) == 0);
}

static void receiver_not_ready(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, IBV_SEND_SIGNALED, NULL, 0) == 0);
    CU_ASSERT(end_is_silent(a) && simhca_counter(SIMHCA_RNR) > 10); /* 7: retries forever */
    CU_ASSERT(end_recv(b, 7, 0, 64) == 0);
    CU_ASSERT(is_wc(b, 7, IBV_WC_SUCCESS) && is_wc(a, 1, IBV_WC_SUCCESS));
    CU_ASSERT(ends_close(ends) == 0);
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.rnr_retries = 2}));
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
    CU_ASSERT(is_wc(a, 1, IBV_WC_RNR_RETRY_EXC_ERR) && simhca_counter(SIMHCA_RNR) == 3);
    CU_ASSERT(state_of(b) == IBV_QPS_RTS);
    CU_ASSERT(ends_close(ends) == 0);
}

/* No answer: wrong packet number, dead process, link down, destroyed queue pair. */
static void no_answer(void)
{
    for (int how = 0; how < 4; how++) {
        end ends[2], *a = &ends[0], *b = &ends[1];
        CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.wrong_psn = how == 0, .timeout = 14, .retries = 4}));
        CU_ASSERT(end_recv(b, 7, 0, 64) == 0);
        if (how == 1) {
            simhca_kill(1);
            b->context = NULL;
            free(b->memory);
        } else if (how == 2)
            simhca_link(1, 0, 1, false);
        else if (how == 3)
            CU_ASSERT(ibv_destroy_qp(b->qp) == 0);
        uint64_t since = simhca_now_ns();
        CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
        CU_ASSERT(end_post(a, 2, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
        CU_ASSERT(is_wc(a, 1, IBV_WC_RETRY_EXC_ERR) && is_wc(a, 2, IBV_WC_WR_FLUSH_ERR));
        uint64_t took = simhca_now_ns() - since, one = 4096ull << 14;
        CU_ASSERT(took >= 5 * one && took < 6 * one); /* the time-out and four retries */
        if (how == 3)
            b->qp = NULL;
        CU_ASSERT(ends_close(ends) == 0);
    }
}

/* The link comes back before the retries are exhausted: no error. */
static void short_flap(void)
{
    end ends[2], *a = &ends[0], *b = &ends[1];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.timeout = 14, .retries = 7}));
    CU_ASSERT(end_recv(b, 7, 0, 64) == 0);
    simhca_link(0, 0, 1, false);
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, IBV_SEND_SIGNALED, NULL, 0) == 0);
    struct ibv_port_attr port;
    CU_ASSERT(ibv_query_port(a->context, 1, &port) == 0 && port.state == IBV_PORT_DOWN);
    CU_ASSERT(event_of(a) == IBV_EVENT_PORT_ERR);
    simhca_pass(200000000);
    simhca_link(0, 0, 1, true);
    CU_ASSERT(ibv_query_port(a->context, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE);
    CU_ASSERT(event_of(a) == IBV_EVENT_PORT_ACTIVE);
    CU_ASSERT(is_wc(b, 7, IBV_WC_SUCCESS) && is_wc(a, 1, IBV_WC_SUCCESS));
    CU_ASSERT(ends_close(ends) == 0);
}

/* Each failure on command: completions of both sides, and whether the message arrived. */
static void breaks_on_command(void)
{
    static const struct { enum simhca_break_kind kind; int status, far_event; bool arrives; } ways[] = {
        {SIMHCA_BREAK_LOST, IBV_WC_RETRY_EXC_ERR, -1, false}, {SIMHCA_BREAK_ACK, IBV_WC_RETRY_EXC_ERR, -1, true},
        {SIMHCA_BREAK_LOCAL, IBV_WC_LOC_QP_OP_ERR, -1, false},
        {SIMHCA_BREAK_REMOTE, IBV_WC_RETRY_EXC_ERR, IBV_EVENT_QP_FATAL, false},
        {SIMHCA_BREAK_BOTH, IBV_WC_FATAL_ERR, IBV_EVENT_QP_FATAL, false}, {SIMHCA_BREAK_EVENT, IBV_WC_WR_FLUSH_ERR, -1, false},
    };
    for (uint32_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        end ends[2], *a = &ends[0], *b = &ends[1];
        CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
        CU_ASSERT(simhca_any_qp() == a->qp || simhca_any_qp() != NULL);
        CU_ASSERT(end_recv(b, 7, 0, 64) == 0);
        memset(a->memory, 9, 8);
        CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
        CU_ASSERT(end_post(a, 2, IBV_WR_SEND, 0, 8, 0, NULL, 0) == 0);
        simhca_break(a->qp, ways[i].kind);
        CU_ASSERT(is_wc(a, 1, (enum ibv_wc_status)ways[i].status) && is_wc(a, 2, IBV_WC_WR_FLUSH_ERR));
        CU_ASSERT(state_of(a) == IBV_QPS_ERR && end_is_silent(a));
        if (ways[i].arrives)
            CU_ASSERT(is_wc(b, 7, IBV_WC_SUCCESS) && b->memory[0] == 9);
        CU_ASSERT(end_is_silent(b) && (b->memory[0] == 9) == ways[i].arrives);
        CU_ASSERT(event_of(b) == (ways[i].far_event >= 0 ? ways[i].far_event : -1));
        CU_ASSERT(simhca_counter(SIMHCA_BREAKS) == 1);
        CU_ASSERT(ends_close(ends) == 0);
    }
}

static void device_fails(void)
{
    end ends[2], *a = &ends[0];
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, NULL));
    CU_ASSERT(end_post(a, 1, IBV_WR_SEND, 0, 8, IBV_SEND_SIGNALED, NULL, 0) == 0);
    simhca_device_fatal(0, 0);
    CU_ASSERT(event_of(a) == IBV_EVENT_DEVICE_FATAL);
    CU_ASSERT(end_is_silent(a)); /* no completion at all */
    CU_ASSERT(end_post(a, 2, IBV_WR_SEND, 0, 8, IBV_SEND_SIGNALED, NULL, 0) == EIO);
    struct ibv_device_attr attr;
    CU_ASSERT(ibv_query_device(a->context, &attr) == EIO);
    CU_ASSERT(ends_close(ends) == 0);
}

/* A receive queue's own requests are flushed in order. */
static void receives_flush(void)
{
    end ends[2], *b = &ends[1];
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    CU_ASSERT_FATAL(ends_open(ends, hca_calm(), 1, &(end_wish){.no_srq = true}));
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT(end_recv(b, i, 0, 64) == 0);
    CU_ASSERT(ibv_modify_qp(b->qp, &attr, IBV_QP_STATE) == 0);
    for (uint32_t i = 0; i < 5; i++)
        CU_ASSERT(is_wc(b, i, IBV_WC_WR_FLUSH_ERR));
    CU_ASSERT(end_is_silent(b));
    CU_ASSERT(ends_close(ends) == 0);
}

const hca_test hca_fails[] = {
    {"receive-too-short", receive_too_short}, {"bad-local-key", bad_local_key}, {"no-remote-access", no_remote_access},
    {"stale-keys", stale_keys}, {"misaligned-atomic", misaligned_atomic}, {"receiver-not-ready", receiver_not_ready},
    {"no-answer", no_answer}, {"short-flap", short_flap}, {"breaks-on-command", breaks_on_command},
    {"device-fails", device_fails}, {"receives-flush", receives_flush}, {NULL, NULL},
};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modify: the states of queue pairs: which change needs which attributes and which it may have beside (InfiniBand, chapters 10
 * and 11), and whether their values make sense here.
 */
#include <errno.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

typedef struct change {
    enum ibv_qp_state from, to;
    enum ibv_qp_type type;
    int needs, may;
} change;

static const change changes[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC,
     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC,
     IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0,
     IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
};

static const change *find(const hca_qp *qp, enum ibv_qp_state to)
{
    for (uint32_t i = 0; i < weft_count(changes); i++)
        if (changes[i].from == qp->attr.qp_state && changes[i].to == to && changes[i].type == qp->base.qp_type)
            return &changes[i];
    return NULL;
}

static int check_values(const hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibv_port_attr port;
    int max = (int)hca_limit(hca.profile.max_rd_atomic, 16), init_max = (int)hca_limit(hca.profile.max_init_rd_atomic, (uint32_t)max);
    const hca_port *own = &qp->device->port;
    ibv_query_port(qp->base.context, 1, &port);
    if ((mask & IBV_QP_PORT) && attr->port_num != 1)
        return EINVAL;
    if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index != hca.profile.pkey_index)
        return EINVAL;
    if ((mask & IBV_QP_PATH_MTU) && (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > port.active_mtu))
        return EINVAL;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > init_max)
        return EINVAL;
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > max)
        return EINVAL;
    if ((mask & IBV_QP_TIMEOUT) && attr->timeout > 31)
        return EINVAL;
    if (((mask & IBV_QP_RETRY_CNT) && attr->retry_cnt > 7) || ((mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7))
        return EINVAL;
    if (!(mask & IBV_QP_AV))
        return 0;
    if (attr->ah_attr.port_num != 1 || (!hca.profile.is_ib && !attr->ah_attr.is_global))
        return EINVAL;
    if (hca.profile.needs_grh && !attr->ah_attr.is_global)
        return EINVAL;
    if (attr->ah_attr.is_global && !hca_gid_is_own(own, attr->ah_attr.grh.sgid_index))
        return EINVAL;
    return hca.profile.is_ib && !attr->ah_attr.dlid ? EINVAL : 0;
}

static void take_over(hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_attr *own = &qp->attr;
#define TAKE(bit, field)     \
    if (mask & (bit))        \
    own->field = attr->field
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    TAKE(IBV_QP_PKEY_INDEX, pkey_index);
    TAKE(IBV_QP_PORT, port_num);
    TAKE(IBV_QP_QKEY, qkey);
    TAKE(IBV_QP_AV, ah_attr);
    TAKE(IBV_QP_PATH_MTU, path_mtu);
    TAKE(IBV_QP_TIMEOUT, timeout);
    TAKE(IBV_QP_RETRY_CNT, retry_cnt);
    TAKE(IBV_QP_RNR_RETRY, rnr_retry);
    TAKE(IBV_QP_RQ_PSN, rq_psn);
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(IBV_QP_SQ_PSN, sq_psn);
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
    own->rq_psn &= 0xffffff;
    own->sq_psn &= 0xffffff;
}

/* Resets the state. */
static void reset(hca_qp *qp)
{
    if (hca.purges) {
        hca_cq_purge((hca_cq *)qp->base.send_cq, qp->id);
        hca_cq_purge((hca_cq *)qp->base.recv_cq, qp->id);
    }
    hca_cq_forget_rq(qp->context, &qp->own_rq);
    hca_visibility_settle(qp, 0, UINT64_MAX);
    hca_qp_reset(qp);
    qp->attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET};
    qp->expected = 0;
    qp->head = qp->sent = qp->done = qp->freed = 0;
    qp->flush_posted = qp->was_established = qp->was_last_early = false;
}

static int modify(hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = qp->attr.qp_state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
    if (qp->device->is_dead)
        return EIO;
    if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
        return EINVAL;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
        if (mask & ~(IBV_QP_STATE | IBV_QP_CUR_STATE) || (to == IBV_QPS_ERR && from == IBV_QPS_RESET))
            return EINVAL;
        if (to == IBV_QPS_RESET)
            reset(qp);
        else
            hca_qp_error(qp, -1);
        qp->base.state = to;
        return 0;
    }
    const change *how = find(qp, to);
    int given = mask & ~IBV_QP_STATE;
    if (!how || (given & how->needs) != how->needs || (given & ~(how->needs | how->may)))
        return EINVAL;
    int rc = check_values(qp, attr, mask);
    if (rc)
        return rc;
    take_over(qp, attr, mask);
    qp->attr.qp_state = qp->base.state = to;
    if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
        qp->rnr_left = qp->attr.rnr_retry;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    hca_lock();
    int rc = modify((hca_qp *)base, attr, mask);
    hca_unlock();
    return rc;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    const hca_qp *qp = (const hca_qp *)base;
    (void)mask;
    *attr = qp->attr;
    attr->cur_qp_state = qp->attr.qp_state;
    attr->cap = qp->cap;
    *init = (struct ibv_qp_init_attr){.qp_context = base->qp_context, .send_cq = base->send_cq, .recv_cq = base->recv_cq,
                                      .srq = base->srq, .cap = qp->cap, .qp_type = base->qp_type, .sq_sig_all = qp->sig_all};
    return 0;
}

/* In other states than RTS mlx5's provider answers 0 (rdma-core, providers/mlx5/verbs.c, mlx5_query_qp_data_in_order). */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    return !flags && op == IBV_WR_RDMA_WRITE && hca.profile.in_order && ((const hca_qp *)qp)->attr.qp_state == IBV_QPS_RTS;
}

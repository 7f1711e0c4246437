/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops: operations in flight, completed steps later by any family of calls; receives that are cancelled; generalized requests.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { MOST = 16 };

rp_op *rp_op_add(rp *rp, const char *what, void (*done)(struct rp *, rp_op *, const MPI_Status *), void *arg)
{
    for (int i = 0; i < RP_OPS; i++)
        if (!rp->ops[i].is_used) {
            rp->ops[i] = (rp_op){.req = MPI_REQUEST_NULL, .step = rp->now, .what = what, .is_used = true, .done = done, .arg = arg};
            rp->flying++;
            return &rp->ops[i];
        }
    rp_fail(rp, "more operations in flight than the plan allows");
}

static void complete(rp *rp, rp_op *op, MPI_Request req, const MPI_Status *status)
{
    uint32_t now = rp->now;
    op->req = req;
    op->is_used = false;
    rp->flying--;
    if (!op->is_persistent && req != MPI_REQUEST_NULL)
        rp_fail(rp, "%s of step %u: a completed request is not null", op->what, op->step);
    rp->now = op->step; /* a failure names the step that began it */
    op->done(rp, op, status);
    rp->now = now;
}

void rp_op_finish(rp *rp, rp_op *op)
{
    MPI_Status status;
    MPI_Request req = op->req;
    if (op->ready)
        op->ready(rp, op);
    RP_OK(rp, MPI_Wait(&req, &status));
    complete(rp, op, req, &status);
}

typedef struct group {
    int n;
    rp_op *ops[MOST];
    MPI_Request reqs[MOST];
    MPI_Status statuses[MOST];
} group;

static void some_done(rp *rp, group *g, int count, const int *indices)
{
    for (int i = 0; i < count; i++) {
        if (indices[i] < 0 || indices[i] >= g->n || !g->ops[indices[i]])
            rp_fail(rp, "index %d of %d requests, or one completed twice", indices[i], g->n);
        complete(rp, g->ops[indices[i]], g->reqs[indices[i]], &g->statuses[i]);
        g->ops[indices[i]] = NULL;
    }
}

static void all_done(rp *rp, group *g)
{
    for (int i = 0; i < g->n; i++)
        complete(rp, g->ops[i], g->reqs[i], &g->statuses[i]);
}

/* Asks for states without completing anything (MPI 5.0, 3.7.6). */
static void ask(rp *rp, group *g)
{
    int flag = 0, which = (int)rp_draw(&rp->own, (uint32_t)g->n);
    MPI_Status status;
#if RP_MPI(4, 1)
    int index, count, indices[MOST];
    switch (rp_draw(&rp->own, 4)) {
    case 0:
        RP_OK(rp, MPI_Request_get_status_all(g->n, g->reqs, &flag, g->statuses));
        return;
    case 1:
        RP_OK(rp, MPI_Request_get_status_any(g->n, g->reqs, &index, &flag, &status));
        return;
    case 2:
        RP_OK(rp, MPI_Request_get_status_some(g->n, g->reqs, &count, indices, g->statuses));
        return;
    }
#endif
    RP_OK(rp, MPI_Request_get_status(g->reqs[which], &flag, &status));
    if (g->reqs[which] == MPI_REQUEST_NULL)
        rp_fail(rp, "MPI_Request_get_status freed a request");
}

static void test_group(rp *rp, group *g)
{
    int flag = 0, index = -1, count, indices[MOST];
    switch (rp_draw(&rp->own, 5)) {
    case 0:
        RP_OK(rp, MPI_Test(&g->reqs[0], &flag, &g->statuses[0]));
        index = 0;
        break;
    case 1:
        RP_OK(rp, MPI_Testany(g->n, g->reqs, &index, &flag, &g->statuses[0]));
        break;
    case 2:
        RP_OK(rp, MPI_Testall(g->n, g->reqs, &flag, g->statuses));
        if (flag)
            all_done(rp, g);
        return;
    case 3:
        RP_OK(rp, MPI_Testsome(g->n, g->reqs, &count, indices, g->statuses));
        some_done(rp, g, count, indices);
        return;
    default:
        ask(rp, g);
        return;
    }
    if (flag)
        some_done(rp, g, 1, &index);
}

static void wait_group(rp *rp, group *g)
{
    int index = 0, count, indices[MOST], flag = 0;
    switch (rp_draw(&rp->own, 5)) {
    case 0:
        RP_OK(rp, MPI_Wait(&g->reqs[0], &g->statuses[0]));
        some_done(rp, g, 1, &index);
        return;
    case 1:
        RP_OK(rp, MPI_Waitany(g->n, g->reqs, &index, &g->statuses[0]));
        some_done(rp, g, 1, &index);
        return;
    case 2:
        RP_OK(rp, MPI_Waitsome(g->n, g->reqs, &count, indices, g->statuses));
        some_done(rp, g, count, indices);
        return;
    case 3:
        while (!flag)
            RP_OK(rp, MPI_Testall(g->n, g->reqs, &flag, g->statuses));
        break;
    default:
        RP_OK(rp, MPI_Waitall(g->n, g->reqs, g->statuses));
    }
    all_done(rp, g);
}

void rp_ops_some(rp *rp, bool must)
{
    group g = {.n = 0};
    rp_op *list[RP_OPS];
    int n = 0, most;
    for (int i = 0; i < RP_OPS; i++)
        if (rp->ops[i].is_used)
            list[n++] = &rp->ops[i];
    if (!n)
        return;
    most = 1 + (int)rp_draw(&rp->own, n < MOST ? (uint32_t)n : MOST);
    for (int i = 0; i < most; i++) {
        int j = i + (int)rp_draw(&rp->own, (uint32_t)(n - i));
        rp_op *op = list[j];
        list[j] = list[i];
        g.ops[g.n] = op;
        g.reqs[g.n++] = op->req;
        if (op->ready)
            op->ready(rp, op);
    }
    if (must)
        wait_group(rp, &g);
    else
        test_group(rp, &g);
}

void rp_ops_all(rp *rp)
{
    while (rp->flying)
        rp_ops_some(rp, true);
}

/* -- receives without a sender, cancelled -- */

static void cancelled(rp *rp, rp_op *op, const MPI_Status *status)
{
    int flag = 0;
    RP_OK(rp, MPI_Test_cancelled(status, &flag));
    RP_SAME(rp, flag, 1, "MPI_Test_cancelled of a receive that nothing is sent to");
    free(op->arg);
}

void plan_cancel(rp *rp, rp_step *step)
{
    step->comm = rp_comm_pick(rp, &step->dice, true, false);
    step->shift = (int)rp_draw(&step->dice, (uint32_t)rp->comms[step->comm].n[0]);
    rp_say(step, "rank %d of communicator %d cancels a receive", step->shift, step->comm);
}

void run_cancel(rp *rp, rp_step *step)
{
    const rp_comm *comm = &rp->comms[step->comm];
    if (!comm->is_member || comm->side || comm->rank != step->shift)
        return;
    int from = (int)rp_draw(&rp->own, (uint32_t)(comm->is_inter ? comm->n[1] : comm->n[0]) + 1) - 1, *buf = rp_alloc(64 * sizeof *buf);
    rp_op *op = rp_op_add(rp, "cancelled receive", cancelled, buf);
    RP_OK(rp, MPI_Irecv(buf, (int)rp_draw(&rp->own, 65), MPI_INT, from < 0 ? MPI_ANY_SOURCE : from, RP_TAG_NEVER, comm->mpi, &op->req));
    RP_OK(rp, MPI_Cancel(&op->req));
    if (rp_draw(&rp->own, 2))
        rp_op_finish(rp, op);
}

/* -- generalized requests: local; completed before the wait for them begins -- */

typedef struct greq {
    int elements, source;
    int frees;
    bool is_complete;
} greq;

static int greq_query(void *extra, MPI_Status *status)
{
    greq *g = extra;
    MPI_Status_set_elements(status, MPI_INT, g->elements);
    MPI_Status_set_cancelled(status, g->source % 2);
    status->MPI_SOURCE = g->source;
    status->MPI_TAG = g->elements + 1;
    return MPI_SUCCESS;
}

static int greq_free(void *extra)
{
    ((greq *)extra)->frees++;
    return MPI_SUCCESS;
}

static int greq_cancel(void *extra, int is_complete)
{
    (void)extra;
    (void)is_complete;
    return MPI_SUCCESS;
}

static void greq_ready(rp *rp, rp_op *op)
{
    greq *g = op->arg;
    if (!g->is_complete)
        RP_OK(rp, MPI_Grequest_complete(op->req));
    g->is_complete = true;
}

static void greq_done(rp *rp, rp_op *op, const MPI_Status *status)
{
    greq *g = op->arg;
    int count, flag;
    RP_OK(rp, MPI_Get_count(status, MPI_INT, &count));
    RP_OK(rp, MPI_Test_cancelled(status, &flag));
    RP_SAME(rp, count, g->elements, "generalized request: count");
    RP_SAME(rp, flag, g->source % 2, "generalized request: cancelled");
    RP_SAME(rp, status->MPI_SOURCE, g->source, "generalized request: source");
    RP_SAME(rp, status->MPI_TAG, g->elements + 1, "generalized request: tag");
    RP_SAME(rp, g->frees, 1, "generalized request: calls of its free function");
    free(g);
}

void plan_greq(rp *rp, rp_step *step)
{
    step->shift = (int)rp_draw(&step->dice, (uint32_t)rp->size);
    step->count = (int)rp_draw(&step->dice, 1000);
    rp_say(step, "rank %d starts a generalized request, %d elements", step->shift, step->count);
}

void run_greq(rp *rp, rp_step *step)
{
    if (rp->rank != step->shift)
        return;
    greq *g = rp_alloc(sizeof *g);
    *g = (greq){.elements = step->count, .source = step->count % 7};
    rp_op *op = rp_op_add(rp, "generalized request", greq_done, g);
    op->ready = greq_ready;
    RP_OK(rp, MPI_Grequest_start(greq_query, greq_free, greq_cancel, g, &op->req));
}

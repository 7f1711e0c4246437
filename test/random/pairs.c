/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pairs: persistent and partitioned pairs of requests that live over several steps and are started now and then.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { WIDTH = 60 }; /* items of a partitioned message per unit: divisible by every number of partitions */

void plan_pair(rp *rp, rp_step *step)
{
    static const int divisors[] = {1, 2, 3, 5, 6, 12, 30};
    rp_dice *dice = &step->dice;
    rp_pair *pair;
    step->comm = rp_comm_pick(rp, dice, true, false);
    for (step->slot = 0; step->slot < RP_PAIRS && rp->pairs[step->slot].is_used; step->slot++)
        ;
    if (step->slot == RP_PAIRS) {
        rp_say(step, "pair: no slot is free");
        return;
    }
    const rp_comm *comm = &rp->comms[step->comm];
    pair = &rp->pairs[step->slot];
    *pair = (rp_pair){.is_used = true, .comm = step->comm, .born = step->index, .is_partitioned = rp_draw(dice, 2)};
    rp_message *m = &pair->message;
    m->side = comm->is_inter ? (int)rp_draw(dice, 2) : 0;
    m->from = (int)rp_draw(dice, (uint32_t)comm->n[m->side]);
    m->to = (int)rp_draw(dice, (uint32_t)comm->n[comm->is_inter ? 1 - m->side : 0]);
    rp_message_draw(rp, dice, m, 100000);
    m->mode = (int)rp_draw(dice, 3);
    m->is_packed_out = m->is_packed_in = false;
    m->any_tag = false;
    if (pair->is_partitioned) {
        m->sdepth = m->rdepth = (int)rp_draw(dice, 2);
        m->is_same = true;
        pair->parts[0] = divisors[rp_draw(dice, 7)];
        pair->parts[1] = divisors[rp_draw(dice, 7)];
    }
    rp_say(step, "%s pair %d on %d: %d%s>%d, tag %d, %u bytes, %d to %d partitions", pair->is_partitioned ? "partitioned" : "persistent",
           step->slot, step->comm, m->from, m->side ? "-" : "", m->to, m->tag, m->bytes, pair->parts[0], pair->parts[1]);
}

typedef struct half {
    rp_end end;
    rp_pair *pair;
    int which;
    MPI_Request req; /* while no operation is in flight */
} half;

/* The halves that this rank has. */
static bool is_half(const rp *rp, const rp_pair *pair, int which)
{
    const rp_comm *comm = &rp->comms[pair->comm];
    int side = which == 0 || !comm->is_inter ? pair->message.side : 1 - pair->message.side;
    return rp_comm_rank_in(rp, comm, side) == (which ? pair->message.to : pair->message.from);
}

static void init_persistent(rp *rp, const rp_pair *pair, half *h, MPI_Comm comm)
{
    const rp_message *m = &pair->message;
    void *buf = rp_buf_at(&h->end.buf, &h->end.type, 0);
    int n = (int)h->end.count;
    if (h->which)
        RP_OK(rp, MPI_Recv_init(buf, n, h->end.type.mpi, m->from, m->tag, comm, &h->req));
    else if (m->mode == 1)
        RP_OK(rp, MPI_Ssend_init(buf, n, h->end.type.mpi, m->to, m->tag, comm, &h->req));
    else
        RP_OK(rp, MPI_Send_init(buf, n, h->end.type.mpi, m->to, m->tag, comm, &h->req));
}

/* Items of both sides: WIDTH times the same number; the types are equal. */
static void init_partitioned(rp *rp, rp_pair *pair, half *h, MPI_Comm comm)
{
#if RP_MPI(4, 0)
    const rp_message *m = &pair->message;
    uint64_t units = (uint64_t)m->bytes / (uint64_t)h->end.type.size / WIDTH % 40;
    int parts = pair->parts[h->which];
    h->end.count = units * WIDTH;
    h->end.basics = h->end.count * h->end.type.entries;
    rp_buf_close(&h->end.buf);
    rp_buf_close(&h->end.want);
    rp_buf_open(&h->end.buf, &h->end.type, h->end.count + 1);
    rp_buf_open(&h->end.want, &h->end.type, h->end.count + 1);
    void *buf = rp_buf_at(&h->end.buf, &h->end.type, 0);
    MPI_Count each = (MPI_Count)h->end.count / parts;
    if (h->which)
        RP_OK(rp, MPI_Precv_init(buf, parts, each, h->end.type.mpi, m->from, m->tag, comm, MPI_INFO_NULL, &h->req));
    else
        RP_OK(rp, MPI_Psend_init(buf, parts, each, h->end.type.mpi, m->to, m->tag, comm, MPI_INFO_NULL, &h->req));
#else
    init_persistent(rp, pair, h, comm);
#endif
}

void run_pair(rp *rp, rp_step *step)
{
    if (step->slot == RP_PAIRS)
        return;
    rp_pair *pair = &rp->pairs[step->slot];
    for (int which = 0; which < 2; which++) {
        if (!is_half(rp, pair, which))
            continue;
        half *h = rp_alloc(sizeof *h);
        *h = (half){.pair = pair, .which = which};
        if (which)
            rp_end_receive(rp, &h->end, &pair->message, 0);
        else
            rp_end_send(rp, &h->end, &pair->message, 0);
        MPI_Comm comm = rp->comms[pair->comm].mpi;
        if (pair->is_partitioned)
            init_partitioned(rp, pair, h, comm);
        else
            init_persistent(rp, pair, h, comm);
        pair->halves[which] = h;
    }
}

static void half_done(rp *rp, rp_op *op, const MPI_Status *status)
{
    half *h = op->arg;
    h->req = op->req;
    if (h->req == MPI_REQUEST_NULL)
        rp_fail(rp, "a completed persistent request is null");
    h->pair->op[h->which] = NULL;
    if (h->which)
        rp_end_verify(rp, &h->end, h->pair->is_partitioned ? NULL : status,
                      h->pair->is_partitioned ? "partitioned receive" : "persistent receive");
}

#if RP_MPI(4, 0)
/* Partitions become ready in a random order, by each of the calls. */
static void ready_all(rp *rp, MPI_Request req, int parts)
{
    int order[WIDTH], n = 0;
    if (rp_draw(&rp->own, 3) == 0) {
        int cut = (int)rp_draw(&rp->own, (uint32_t)parts);
        if (cut)
            RP_OK(rp, MPI_Pready_range(0, cut - 1, req));
        for (int i = cut; i < parts; i++)
            order[n++] = i;
        RP_OK(rp, MPI_Pready_list(n, order, req));
        return;
    }
    for (int i = 0; i < parts; i++) {
        int j = (int)rp_draw(&rp->own, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < parts; i++)
        RP_OK(rp, MPI_Pready(order[i], req));
}
#endif

/* Starts one half, after its previous operation. */
static void start_half(rp *rp, rp_step *step, rp_pair *pair, int which)
{
    half *h = pair->halves[which];
    uint64_t key = rp_key(rp, step->index, 0, 0);
    if (pair->op[which])
        rp_op_finish(rp, pair->op[which]);
    if (which) {
        memset(h->end.buf.mem, RP_GAP, h->end.buf.bytes);
        rp_end_expect(rp, &h->end, key);
    } else {
        rp->may_plant = true;
        rp_end_fill(rp, &h->end, key);
        rp->may_plant = false;
    }
    rp_op *op = rp_op_add(rp, pair->is_partitioned ? "partitioned pair" : "persistent pair", half_done, h);
    op->req = h->req;
    op->is_persistent = true;
    pair->op[which] = op;
    if (rp_draw(&rp->own, 2))
        RP_OK(rp, MPI_Start(&op->req));
    else
        RP_OK(rp, MPI_Startall(1, &op->req));
#if RP_MPI(4, 0)
    if (pair->is_partitioned && !which)
        ready_all(rp, op->req, pair->parts[0]);
    else if (pair->is_partitioned && rp_draw(&rp->own, 2)) {
        int flag;
        RP_OK(rp, MPI_Parrived(op->req, (int)rp_draw(&rp->own, (uint32_t)pair->parts[1]), &flag));
    }
#endif
}

void plan_start(rp *rp, rp_step *step)
{
    step->slot = (int)rp_draw(&step->dice, RP_PAIRS);
    for (int i = 0; i < RP_PAIRS && !rp->pairs[step->slot].is_used; i++)
        step->slot = (step->slot + 1) % RP_PAIRS;
    rp_pair *pair = &rp->pairs[step->slot];
    step->form = pair->is_used;
    pair->starts += pair->is_used;
    rp_say(step, step->form ? "start pair %d" : "start pair %d: none", step->slot);
}

void run_start(rp *rp, rp_step *step)
{
    rp_pair *pair = &rp->pairs[step->slot];
    for (int which = 1; step->form && which >= 0; which--)
        if (is_half(rp, pair, which))
            start_half(rp, step, pair, which);
}

static void close_pair(rp *rp, rp_pair *pair)
{
    for (int which = 0; which < 2; which++) {
        half *h = pair->halves[which];
        if (!h)
            continue;
        if (pair->op[which])
            rp_op_finish(rp, pair->op[which]);
        RP_OK(rp, MPI_Request_free(&h->req));
        rp_end_close(rp, &h->end);
        free(h);
        pair->halves[which] = NULL;
    }
    pair->is_used = false;
}

void plan_unpair(rp *rp, rp_step *step)
{
    step->slot = (int)rp_draw(&step->dice, RP_PAIRS);
    step->form = rp->pairs[step->slot].is_used;
    rp->pairs[step->slot].is_used = false;
    rp_say(step, step->form ? "free pair %d" : "free pair %d: none", step->slot);
}

void run_unpair(rp *rp, rp_step *step)
{
    if (step->form)
        close_pair(rp, &rp->pairs[step->slot]);
}

void rp_pairs_close(rp *rp)
{
    for (int i = 0; i < RP_PAIRS; i++)
        if (rp->pairs[i].is_used)
            close_pair(rp, &rp->pairs[i]);
}

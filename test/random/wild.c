/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wild: receives from any source, and exchanges in which every rank of a communicator takes part. Which message a wildcard matches is
 * predicted as a set: of each source its messages come in order. Tags occur in one step only, or the communicator does.
 */
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { WILD_ANY_TAG = 1 };

static int step_tag(const rp_step *step, int nth) { return 100 + (int)(step->index % 4000) * 4 + nth; }

/* -- many to one -- */

void plan_wild(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->comm = rp_comm_pick(rp, dice, false, false);
    uint32_t n = (uint32_t)rp->comms[step->comm].n[0];
    step->root = (int)rp_draw(dice, n);
    step->variant = rp_draw(dice, 3) == 0 ? WILD_ANY_TAG : 0; /* on a duplicate that is freed while messages are in flight */
    step->n = 1 + (int)rp_draw(dice, RP_MESSAGES - 8);
    rp_sig sig = rp_sig_draw(dice);
    uint64_t stype = rp_draw(dice, 1u << 30);
    rp_say(step, "wild on %d%s: to %d from", step->comm, step->variant ? "'s duplicate, any tag" : "", step->root);
    for (int i = 0; i < step->n; i++) {
        rp_message *m = &step->messages[i];
        rp_message_draw(rp, dice, m, 20000);
        m->side = 0;
        m->from = (int)rp_draw(dice, n);
        m->to = step->root;
        m->sig = sig;
        m->stype = stype;
        m->sdepth = 1;
        m->is_packed_out = m->is_packed_in = false;
        m->mode = (int)rp_draw(dice, 3); /* not ready */
        m->sform = 1 + m->sform % 3; /* not blocking: the receiver chooses the order of tags */
        m->tag = step_tag(step, (int)rp_draw(dice, 2));
        rp_say(step, " %d:%d(%u)", m->from, m->tag, m->bytes);
    }
}

typedef struct arrival {
    rp_end end;
    MPI_Request req;
    MPI_Status status;
    int tag; /* asked for */
} arrival;

static void post_any(rp *rp, const rp_comm *comm, const rp_message *most, arrival *a)
{
    MPI_Message message;
    int flag = 0, n;
    rp_end_receive(rp, &a->end, most, 0);
    void *buf = rp_buf_at(&a->end.buf, &a->end.type, 0);
    MPI_Datatype type = a->end.type.mpi;
    n = (int)a->end.count;
    a->req = MPI_REQUEST_NULL;
    switch (rp_draw(&rp->own, 5)) {
    case 0:
        RP_OK(rp, MPI_Recv(buf, n, type, MPI_ANY_SOURCE, a->tag, comm->mpi, &a->status));
        break;
    case 1:
        RP_OK(rp, MPI_Mprobe(MPI_ANY_SOURCE, a->tag, comm->mpi, &message, &a->status));
        RP_OK(rp, MPI_Imrecv(buf, n, type, &message, &a->req));
        break;
    case 2:
        while (!flag)
            RP_OK(rp, MPI_Improbe(MPI_ANY_SOURCE, a->tag, comm->mpi, &flag, &message, &a->status));
        RP_OK(rp, MPI_Mrecv(buf, n, type, &message, &a->status));
        break;
    case 3: { /* no other receive is posted here: what the probe shows is what its source and tag receive */
        MPI_Status probed;
        RP_OK(rp, MPI_Probe(MPI_ANY_SOURCE, a->tag, comm->mpi, &probed));
        RP_OK(rp, MPI_Irecv(buf, n, type, probed.MPI_SOURCE, probed.MPI_TAG, comm->mpi, &a->req));
        break;
    }
    default:
        RP_OK(rp, MPI_Irecv(buf, n, type, MPI_ANY_SOURCE, a->tag, comm->mpi, &a->req));
    }
}

/* In the order in which the receives were posted, the messages of a source with the tag asked for come in the order of their sends. */
static void verify_any(rp *rp, rp_step *step, arrival *a, bool *taken)
{
    int source = a->status.MPI_SOURCE, tag = a->status.MPI_TAG, i = 0;
    while (i < step->n && (taken[i] || step->messages[i].from != source || (a->tag != MPI_ANY_TAG && step->messages[i].tag != a->tag)))
        i++;
    if (i == step->n)
        rp_fail(rp, "wildcard: a message from %d with tag %d, of which none is left", source, tag);
    RP_SAME(rp, tag, step->messages[i].tag, "wildcard: tag of the source's next message");
    rp_end expected;
    taken[i] = true;
    rp_end_receive(rp, &expected, &step->messages[i], rp_key(rp, step->index, source, (uint32_t)i));
    expected.source = source;
    /* the posted buffer has the capacity of the longest message */
    memset(a->end.want.mem, RP_GAP, a->end.want.bytes);
    a->end.basics = expected.basics;
    rp_end_expect(rp, &a->end, expected.key);
    a->end.source = source;
    a->end.tag = tag;
    rp_end_verify(rp, &a->end, &a->status, "wildcard");
    rp_end_close(rp, &expected);
    rp_end_close(rp, &a->end);
}

static void receive_all(rp *rp, rp_step *step, const rp_comm *comm)
{
    arrival *list = calloc(RP_MESSAGES, sizeof *list);
    bool taken[RP_MESSAGES] = {false};
    int tags[RP_MESSAGES];
    rp_message most = step->messages[0];
    for (int i = 0; i < step->n; i++) {
        int j = (int)rp_draw(&rp->own, (uint32_t)i + 1);
        tags[i] = tags[j];
        tags[j] = step->messages[i].tag;
        if (step->messages[i].bytes > most.bytes)
            most.bytes = step->messages[i].bytes;
    }
    most.is_same = true;
    for (int i = 0; i < step->n; i++) {
        list[i].tag = step->variant == WILD_ANY_TAG ? MPI_ANY_TAG : tags[i];
        post_any(rp, comm, &most, &list[i]);
    }
    for (int i = 0; i < step->n; i++)
        if (list[i].req != MPI_REQUEST_NULL)
            RP_OK(rp, MPI_Wait(&list[i].req, &list[i].status));
    for (int i = 0; i < step->n; i++)
        verify_any(rp, step, &list[i], taken);
    free(list);
}

void run_wild(rp *rp, rp_step *step)
{
    rp_comm *comm = &rp->comms[step->comm];
    if (!comm->is_member)
        return;
    MPI_Comm kept = comm->mpi;
    bool is_buffered = comm->is_buffered;
    if (step->variant == WILD_ANY_TAG) {
        RP_OK(rp, MPI_Comm_dup(kept, &comm->mpi));
        comm->is_buffered = false;
    }
    for (int i = 0; i < step->n; i++)
        if (step->messages[i].from == comm->rank)
            rp_send_message(rp, comm, &step->messages[i], rp_key(rp, step->index, comm->rank, (uint32_t)i));
    if (comm->rank == step->root)
        receive_all(rp, step, comm);
    if (step->variant == WILD_ANY_TAG) {
        RP_OK(rp, MPI_Comm_free(&comm->mpi));
        comm->mpi = kept;
        comm->is_buffered = is_buffered;
    }
}

/* -- everybody to the one at a distance -- */

enum { SENDRECV, SENDRECV_REPLACE, ISENDRECV, ISENDRECV_REPLACE, SHIFTS };

void plan_shift(rp *rp, rp_step *step)
{
    static const char *const names[] = {"sendrecv", "sendrecv_replace", "isendrecv", "isendrecv_replace"};
    rp_dice *dice = &step->dice;
    step->comm = rp_comm_pick(rp, dice, false, false);
    int n = rp->comms[step->comm].n[0];
    step->shift = (int)rp_draw(dice, (uint32_t)n);
    step->form = (int)rp_draw(dice, SHIFTS);
    step->variant = (int)rp_draw(dice, 3) == 0; /* ends are open */
    rp_message_draw(rp, dice, &step->messages[0], 200000);
    step->messages[0].is_packed_in = step->messages[0].is_packed_out = false;
    step->messages[0].is_same = step->form % 2 == 1;
    rp_say(step, "%s on %d: shift %d%s, tag %d%s, %u bytes", names[step->form], step->comm, step->shift, step->variant ? ", open" : "",
           step->messages[0].tag, step->messages[0].any_tag ? "*" : "", step->messages[0].bytes);
}

typedef struct exchange {
    rp_end out, in;
    bool has_in, is_replace;
} exchange;

static void exchanged(rp *rp, rp_op *op, const MPI_Status *status)
{
    exchange *x = op->arg;
#ifdef MPICH_VERSION
    if (op->what) /* MPICH 4.0.2 gives MPI_Isendrecv's status a tag of its own */
        status = NULL;
#endif
    if (x->has_in) {
        rp_end_verify(rp, &x->in, status, "exchange");
    } else {
        if (status)
            RP_SAME(rp, status->MPI_SOURCE, MPI_PROC_NULL, "exchange with MPI_PROC_NULL: source");
        if (status)
            RP_SAME(rp, status->MPI_TAG, MPI_ANY_TAG, "exchange with MPI_PROC_NULL: tag");
        memset(x->in.want.mem, RP_GAP, x->in.want.bytes);
        if (x->is_replace)
            rp_buf_put(&x->in.want, &x->in.type, 0, x->out.key, x->out.basics);
        rp_buf_same(rp, &x->in.buf, &x->in.want, "exchange with MPI_PROC_NULL");
    }
    rp_end_close(rp, &x->out);
    rp_end_close(rp, &x->in);
    free(x);
}

static void exchange_call(rp *rp, rp_step *step, const rp_comm *comm, exchange *x, int to, int from)
{
    const rp_message *m = &step->messages[0];
    int rtag = m->any_tag ? MPI_ANY_TAG : m->tag;
    void *in = rp_buf_at(&x->in.buf, &x->in.type, 0);
    MPI_Status status;
    MPI_Request req = MPI_REQUEST_NULL;
    rp_op op = {.req = MPI_REQUEST_NULL, .arg = x};
    switch (step->form) {
    case SENDRECV:
        RP_OK(rp, MPI_Sendrecv(rp_buf_at(&x->out.buf, &x->out.type, 0), (int)x->out.count, x->out.type.mpi, to, m->tag, in,
                               (int)x->in.count, x->in.type.mpi, from, rtag, comm->mpi, &status));
        break;
    case SENDRECV_REPLACE:
        RP_OK(rp, MPI_Sendrecv_replace(in, (int)x->in.count, x->in.type.mpi, to, m->tag, from, rtag, comm->mpi, &status));
        break;
#if RP_MPI(4, 0)
    case ISENDRECV:
        RP_OK(rp, MPI_Isendrecv(rp_buf_at(&x->out.buf, &x->out.type, 0), (int)x->out.count, x->out.type.mpi, to, m->tag, in,
                                (int)x->in.count, x->in.type.mpi, from, rtag, comm->mpi, &req));
        break;
    default:
        RP_OK(rp, MPI_Isendrecv_replace(in, (int)x->in.count, x->in.type.mpi, to, m->tag, from, rtag, comm->mpi, &req));
#endif
    }
    if (req == MPI_REQUEST_NULL)
        exchanged(rp, &op, &status);
    else
        rp_op_add(rp, "exchange", exchanged, x)->req = req;
}

void run_shift(rp *rp, rp_step *step)
{
    const rp_comm *comm = &rp->comms[step->comm];
    if (!comm->is_member)
        return;
    int n = comm->n[0], to = comm->rank + step->shift, from = comm->rank - step->shift;
    exchange *x = rp_alloc(sizeof *x);
    if (!RP_MPI(4, 0))
        step->form %= 2;
    to = to < n ? to : step->variant ? MPI_PROC_NULL : to - n;
    from = from >= 0 ? from : step->variant ? MPI_PROC_NULL : from + n;
    x->has_in = from != MPI_PROC_NULL;
    x->is_replace = step->form % 2 == 1;
    rp->may_plant = to != MPI_PROC_NULL && !x->is_replace;
    rp_end_send(rp, &x->out, &step->messages[0], rp_key(rp, step->index, comm->rank, 0));
    rp->may_plant = false;
    rp_end_receive(rp, &x->in, &step->messages[0], rp_key(rp, step->index, from, 0));
    x->in.source = from;
    if (x->is_replace) { /* the buffer has what is sent; what comes has the same length */
        rp_buf_put(&x->in.buf, &x->in.type, 0, x->out.key, x->out.basics);
    }
    exchange_call(rp, step, comm, x, to, from);
}

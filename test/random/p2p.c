/* SPDX-License-Identifier: BSD-3-Clause
 *
 * p2p: messages between two ranks: every mode and form of sends and receives, types of one signature on both ends.
 * Invariant: on a communicator the messages of a pair are sent, and their receives posted, in the order of the plan, so that tags and
 * MPI_ANY_TAG leave no choice; receives from any source have tags of their own (wild.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };
enum { BLOCKING, NONBLOCKING, PERSISTENT, FREED, SFORMS };
enum { RECV, IRECV, RECV_INIT, PROBE, IPROBE, MPROBE, IMPROBE, RFORMS };
static const char *const mode_names[] = {"", "synchronous ", "buffered ", "ready "};
static const char *const sform_names[] = {"send", "isend", "send_init", "isend+free"};
static const char *const rform_names[] = {"recv", "irecv", "recv_init", "probe", "iprobe", "mprobe", "improbe"};

#if RP_MPI(4, 0)
#define CALL(is_large, name, ...) ((is_large) ? MPI_##name##_c(__VA_ARGS__) : MPI_##name(__VA_ARGS__))
#else
#define CALL(is_large, name, ...) MPI_##name(__VA_ARGS__)
#define MPI_Count int
#endif
#define INT(value) (int)(value)

/* -- ends -- */

static uint64_t items_in(const rp_type *type, uint64_t bytes)
{
    uint64_t n = bytes / (uint64_t)type->size, most = (1u << 20) / (uint64_t)(type->ub - type->lb > 0 ? type->ub - type->lb : 1);
    return n < most ? n : most;
}

void rp_end_fill(rp *rp, rp_end *end, uint64_t key)
{
    end->key = key;
    if (end->basics && rp->may_plant && rp_plants(rp, "swap"))
        key = rp_hash(key, 1);
    rp_buf_put(&end->buf, &end->type, 0, key, end->basics);
    if (end->basics && rp->may_plant && rp_plants(rp, "flip"))
        ((uint8_t *)rp_buf_at(&end->buf, &end->type, 0))[end->type.map[0].at] ^= 4;
}

void rp_end_send(rp *rp, rp_end *end, const rp_message *m, uint64_t key)
{
    memset(end, 0, sizeof *end);
    rp_type_open(rp, &end->type, m->stype, m->sdepth, &m->sig);
    end->count = items_in(&end->type, m->bytes);
    if (end->count && rp->may_plant && rp_plants(rp, "count"))
        end->count--;
    end->basics = end->count * end->type.entries;
    end->is_large = m->is_large;
    rp_buf_open(&end->buf, &end->type, end->count + 1);
    rp_end_fill(rp, end, key);
    if (m->is_packed_out) { /* in two calls */
        uint64_t half = end->count / 2;
        int bytes, position = 0;
        RP_OK(rp, MPI_Pack_size(INT(end->count), end->type.mpi, MPI_COMM_SELF, &bytes));
        bytes += 64;
        uint8_t *packed = rp_alloc((size_t)bytes);
        RP_OK(rp, MPI_Pack(rp_buf_at(&end->buf, &end->type, 0), INT(half), end->type.mpi, packed, bytes, &position, rp->base));
        RP_OK(rp, MPI_Pack(rp_buf_at(&end->buf, &end->type, half), INT(end->count - half), end->type.mpi, packed, bytes, &position,
                           rp->base));
        rp_buf_close(&end->buf);
        end->buf.mem = packed;
        end->is_packed = true;
        end->count = (uint64_t)position;
    }
}

void rp_end_expect(rp *rp, rp_end *end, uint64_t key)
{
    (void)rp;
    end->key = key;
    rp_buf_put(&end->want, &end->type, 0, key, end->basics);
}

void rp_end_receive(rp *rp, rp_end *end, const rp_message *m, uint64_t key)
{
    rp_type sender;
    uint64_t sent;
    memset(end, 0, sizeof *end);
    rp_type_open(NULL, &sender, m->stype, m->sdepth, &m->sig);
    sent = items_in(&sender, m->bytes);
    end->basics = sent * sender.entries;
    if (m->is_same || m->is_packed_in) {
        rp_type_open(rp, &end->type, m->stype, m->sdepth, &m->sig);
        end->count = sent + (m->is_same ? 0 : m->spare);
    } else {
        rp_type_open(rp, &end->type, m->rtype, m->rdepth, &m->sig);
        end->count = (end->basics + end->type.entries - 1) / end->type.entries + m->spare;
    }
    end->is_large = m->is_large;
    end->tag = m->tag;
    end->source = m->from;
    rp_buf_open(&end->buf, &end->type, end->count + 1);
    rp_buf_open(&end->want, &end->type, end->count + 1);
    rp_end_expect(rp, end, key);
    if (m->is_packed_in) {
        int bytes;
        RP_OK(rp, MPI_Pack_size(INT(end->count), end->type.mpi, rp->base, &bytes));
        rp_buf_close(&end->buf);
        end->count = (uint64_t)bytes + 64;
        end->buf.mem = rp_alloc(end->count);
        end->is_packed = true;
    }
    rp_type_close(NULL, &sender);
}

static void *end_address(const rp_end *end) { return end->is_packed ? end->buf.mem : rp_buf_at(&end->buf, &end->type, 0); }
static MPI_Datatype end_type(const rp_end *end) { return end->is_packed ? MPI_PACKED : end->type.mpi; }

static void verify_counts(rp *rp, rp_end *end, const MPI_Status *status, const char *what)
{
    char text[80];
    int count, elements, want = end->basics % end->type.entries ? MPI_UNDEFINED : INT(end->basics / end->type.entries);
    MPI_Datatype type = end->type.mpi;
    snprintf(text, sizeof text, "%s: MPI_Get_elements", what);
    RP_OK(rp, MPI_Get_elements(status, type, &elements));
    RP_SAME(rp, elements, end->basics, text);
    snprintf(text, sizeof text, "%s: MPI_Get_count", what);
    RP_OK(rp, MPI_Get_count(status, type, &count));
    RP_SAME(rp, count, want, text);
#if RP_MPI(4, 0)
    MPI_Count large;
    RP_OK(rp, MPI_Get_count_c(status, type, &large));
    RP_SAME(rp, large, want, text);
#endif
}

void rp_end_verify(rp *rp, rp_end *end, const MPI_Status *status, const char *what)
{
    char text[80];
    if (status) {
        int flag;
        snprintf(text, sizeof text, "%s: source", what);
        RP_SAME(rp, status->MPI_SOURCE, end->source, text);
        snprintf(text, sizeof text, "%s: tag", what);
        RP_SAME(rp, status->MPI_TAG, end->tag, text);
        RP_OK(rp, MPI_Test_cancelled(status, &flag));
        RP_SAME(rp, flag, 0, "MPI_Test_cancelled of a received message");
    }
    if (end->is_packed) {
        int position = 0;
        rp_buf typed;
        rp_buf_open(&typed, &end->type, (end->want.bytes ? end->basics / end->type.entries : 0) + 1);
        RP_OK(rp, MPI_Unpack(end->buf.mem, INT(end->count), &position, rp_buf_at(&typed, &end->type, 0),
                             INT(end->basics / end->type.entries), end->type.mpi, rp->base));
        rp_buf_close(&end->buf);
        end->buf = typed;
        end->want.bytes = typed.bytes < end->want.bytes ? typed.bytes : end->want.bytes;
    } else if (status)
        verify_counts(rp, end, status, what);
    rp_buf_same(rp, &end->buf, &end->want, what);
}

void rp_end_close(rp *rp, rp_end *end)
{
    rp_type_close(rp, &end->type);
    rp_buf_close(&end->buf);
    rp_buf_close(&end->want);
}

/* -- buffers of MPI_Bsend -- */

enum { BUFFER = 1 << 20 };

/* Room for a buffered message? Detaching and flushing wait for messages of earlier places only, so they may block. */
bool rp_buffer_room(rp *rp, rp_comm *comm, uint64_t bytes)
{
    void *address;
    int size;
    bytes += MPI_BSEND_OVERHEAD + 64;
    if (bytes > BUFFER / 4)
        return false;
#if RP_MPI(4, 1)
    if (comm->is_buffered) {
        if (!comm->buffer)
            return true;
        if (comm->buffered + bytes > BUFFER) {
            if (rp_draw(&rp->own, 2))
                RP_OK(rp, MPI_Comm_flush_buffer(comm->mpi));
            else {
                MPI_Request req;
                RP_OK(rp, MPI_Comm_iflush_buffer(comm->mpi, &req));
                RP_OK(rp, MPI_Wait(&req, MPI_STATUS_IGNORE));
            }
            comm->buffered = 0;
        }
        comm->buffered += bytes;
        return true;
    }
#else
    (void)comm;
#endif
    if (!rp->buffer)
        return false;
    if (rp->buffered + bytes > BUFFER) {
        RP_OK(rp, MPI_Buffer_detach(&address, &size));
        RP_SAME(rp, address == rp->buffer && size == BUFFER, 1, "MPI_Buffer_detach: the attached buffer");
        RP_OK(rp, MPI_Buffer_attach(rp->buffer, BUFFER));
        rp->buffered = 0;
    }
    rp->buffered += bytes;
    return true;
}

/* -- drawing -- */

void rp_message_draw(rp *rp, rp_dice *dice, rp_message *m, uint32_t most)
{
    static const uint32_t sizes[] = {1, 40, 40, 200, 200, 2000, 9000, 70000};
    (void)rp;
    m->sig = rp_sig_draw(dice);
    m->stype = rp_draw(dice, 1u << 30);
    m->rtype = rp_draw(dice, 1u << 30);
    m->sdepth = (int)rp_draw(dice, 2) * (int)rp_draw(dice, 4);
    m->rdepth = (int)rp_draw(dice, 2) * (int)rp_draw(dice, 4);
    m->bytes = rp_draw(dice, sizes[rp_draw(dice, 8)]);
    if (rp_draw(dice, 60) == 0)
        m->bytes = rp_draw(dice, 600000);
    m->bytes = m->bytes < most ? m->bytes : most;
    m->spare = rp_draw(dice, 2) * rp_draw(dice, 3);
    m->mode = (int)rp_draw(dice, MODES);
    m->sform = (int)rp_draw(dice, SFORMS);
    m->rform = (int)rp_draw(dice, RFORMS);
    m->is_large = rp_draw(dice, 4) == 0;
    m->is_packed_out = m->bytes < 20000 && rp_draw(dice, 10) == 0;
    m->is_packed_in = m->is_packed_out && rp_draw(dice, 2);
    m->any_tag = rp_draw(dice, 3) == 0;
    m->tag = (int)rp_draw(dice, 3);
}

void rp_message_say(rp_step *step, const rp_message *m)
{
    rp_say(step, " %d%s>%d tag %d%s %s%s%s/%s %u bytes", m->from, m->side ? "-" : "", m->to, m->tag, m->any_tag ? "*" : "",
           m->is_packed_out ? "packed " : "", mode_names[m->mode], sform_names[m->sform], rform_names[m->rform], m->bytes);
}

static bool is_posted(const rp_message *m) { return m->rform == IRECV || m->rform == RECV_INIT; }

void plan_messages(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->comm = rp_comm_pick(rp, dice, true, false);
    const rp_comm *comm = &rp->comms[step->comm];
    step->n = rp_draw(dice, 5) ? 1 + (int)rp_draw(dice, 3) : 4 + (int)rp_draw(dice, RP_MESSAGES - 4);
    rp_say(step, "messages on %d:", step->comm);
    for (int i = 0; i < step->n; i++) {
        rp_message *m = &step->messages[i];
        memset(m, 0, sizeof *m);
        m->side = comm->is_inter ? (int)rp_draw(dice, 2) : 0;
        m->from = (int)rp_draw(dice, (uint32_t)comm->n[m->side]);
        m->to = (int)rp_draw(dice, (uint32_t)comm->n[comm->is_inter ? 1 - m->side : 0]);
        rp_message_draw(rp, dice, m, step->n > 3 ? 40000 : UINT32_MAX);
        bool is_self = !comm->is_inter && m->from == m->to;
        if (m->mode == READY && (is_self || !is_posted(m)))
            m->mode = STANDARD;
        if (is_self && m->rform == RECV)
            m->rform = IRECV;
        if (is_self && !is_posted(m) && m->sform == BLOCKING)
            m->sform = NONBLOCKING;
        rp_message_say(step, m);
    }
}

/* -- sending -- */

static void sent(rp *rp, rp_op *op, const MPI_Status *status)
{
    rp_end *end = op->arg;
    int flag;
    RP_OK(rp, MPI_Test_cancelled(status, &flag));
    RP_SAME(rp, flag, 0, "MPI_Test_cancelled of a send");
    if (op->is_persistent)
        RP_OK(rp, MPI_Request_free(&op->req));
    rp_end_close(rp, end);
    free(end);
}

#define BY_MODE(prefix, suffix, ...)                                               \
    (mode == SYNCHRONOUS ? CALL(end->is_large, prefix##ssend##suffix, __VA_ARGS__) \
     : mode == BUFFERED  ? CALL(end->is_large, prefix##bsend##suffix, __VA_ARGS__) \
     : mode == READY     ? CALL(end->is_large, prefix##rsend##suffix, __VA_ARGS__) \
                         : CALL(end->is_large, prefix##send##suffix, __VA_ARGS__))
#define MPI_ssend MPI_Ssend
#define MPI_bsend MPI_Bsend
#define MPI_rsend MPI_Rsend
#define MPI_send MPI_Send
#define MPI_ssend_c MPI_Ssend_c
#define MPI_bsend_c MPI_Bsend_c
#define MPI_rsend_c MPI_Rsend_c
#define MPI_send_c MPI_Send_c
#define MPI_ssend_init MPI_Ssend_init
#define MPI_bsend_init MPI_Bsend_init
#define MPI_rsend_init MPI_Rsend_init
#define MPI_send_init MPI_Send_init
#define MPI_ssend_init_c MPI_Ssend_init_c
#define MPI_bsend_init_c MPI_Bsend_init_c
#define MPI_rsend_init_c MPI_Rsend_init_c
#define MPI_send_init_c MPI_Send_init_c

static int peer_base_rank(const rp_comm *comm, const rp_message *m, bool is_sender)
{
    int group = comm->is_inter ? (is_sender ? m->side : 1 - m->side) : 0;
    return comm->members[group][is_sender ? m->from : m->to];
}

void rp_send_message(rp *rp, const rp_comm *comm, const rp_message *m, uint64_t key)
{
    rp_end *end = rp_alloc(sizeof *end);
    int mode = m->mode;
    MPI_Request req;
    rp->may_plant = true;
    rp_end_send(rp, end, m, key);
    rp->may_plant = false;
    void *buf = end_address(end);
    MPI_Datatype type = end_type(end);
    int n = INT(end->count);
    if (mode == BUFFERED && !rp_buffer_room(rp, (rp_comm *)comm, end->is_packed ? end->count : end->count * (uint64_t)end->type.size))
        mode = STANDARD;
    if (mode == READY)
        RP_OK(rp, MPI_Recv(NULL, 0, MPI_BYTE, peer_base_rank(comm, m, false), (int)(rp->now % 30000), rp->control, MPI_STATUS_IGNORE));
    switch (m->sform) {
    case BLOCKING:
        RP_OK(rp, BY_MODE(, , buf, n, type, m->to, m->tag, comm->mpi));
        break;
    case PERSISTENT:
        RP_OK(rp, BY_MODE(, _init, buf, n, type, m->to, m->tag, comm->mpi, &req));
        RP_OK(rp, MPI_Start(&req));
        break;
    default:
        RP_OK(rp, BY_MODE(I, , buf, n, type, m->to, m->tag, comm->mpi, &req));
    }
    if (m->sform != BLOCKING && rp_draw(&rp->own, 2) && !end->type.is_named)
        RP_OK(rp, MPI_Type_free(&end->type.mpi)); /* in use still */
    if (m->sform == BLOCKING) {
        rp_end_close(rp, end);
        free(end);
    } else if (m->sform == FREED) {
        RP_OK(rp, MPI_Request_free(&req));
        rp_garbage(rp, end->buf.mem);
        end->buf.mem = NULL;
        rp_end_close(rp, end);
        free(end);
    } else {
        rp_op *op = rp_op_add(rp, "send", sent, end);
        op->req = req;
        op->is_persistent = m->sform == PERSISTENT;
    }
}

/* -- receiving -- */

static void received(rp *rp, rp_op *op, const MPI_Status *status)
{
    rp_end *end = op->arg;
    rp_end_verify(rp, end, status, "receive");
    if (op->is_persistent)
        RP_OK(rp, MPI_Request_free(&op->req));
    rp_end_close(rp, end);
    free(end);
}

static void verify_probed(rp *rp, const rp_end *end, const MPI_Status *status)
{
    int count;
    RP_SAME(rp, status->MPI_SOURCE, end->source, "probe: source");
    RP_SAME(rp, status->MPI_TAG, end->tag, "probe: tag");
    if (end->is_packed)
        return;
    RP_OK(rp, MPI_Get_elements(status, end->type.mpi, &count));
    RP_SAME(rp, count, end->basics, "probe: MPI_Get_elements");
}

/* Matched and other probes. True if a request was started. */
static bool receive_probed(rp *rp, const rp_comm *comm, const rp_message *m, rp_end *end, int tag, MPI_Request *req, MPI_Status *status)
{
    MPI_Message message;
    int flag = 0;
    void *buf = end_address(end);
    MPI_Datatype type = end_type(end);
    int n = INT(end->count);
    switch (m->rform) {
    case PROBE:
        RP_OK(rp, MPI_Probe(m->from, tag, comm->mpi, status));
        break;
    case IPROBE:
        while (!flag)
            RP_OK(rp, MPI_Iprobe(m->from, tag, comm->mpi, &flag, status));
        break;
    case MPROBE:
        RP_OK(rp, MPI_Mprobe(m->from, tag, comm->mpi, &message, status));
        break;
    default:
        while (!flag)
            RP_OK(rp, MPI_Improbe(m->from, tag, comm->mpi, &flag, &message, status));
    }
    verify_probed(rp, end, status);
    if (m->rform == PROBE || m->rform == IPROBE)
        RP_OK(rp, CALL(end->is_large, Recv, buf, n, type, status->MPI_SOURCE, status->MPI_TAG, comm->mpi, status));
    else if (rp_draw(&rp->own, 2))
        RP_OK(rp, CALL(end->is_large, Mrecv, buf, n, type, &message, status));
    else {
        RP_OK(rp, CALL(end->is_large, Imrecv, buf, n, type, &message, req));
        return true;
    }
    return false;
}

void rp_receive_message(rp *rp, const rp_comm *comm, const rp_message *m, uint64_t key)
{
    rp_end *end = rp_alloc(sizeof *end);
    int tag = m->any_tag ? MPI_ANY_TAG : m->tag;
    MPI_Status status;
    MPI_Request req = MPI_REQUEST_NULL;
    bool is_started = true;
    rp_end_receive(rp, end, m, key);
    void *buf = end_address(end);
    MPI_Datatype type = end_type(end);
    int n = INT(end->count);
    if (m->rform == RECV) {
        RP_OK(rp, CALL(end->is_large, Recv, buf, n, type, m->from, tag, comm->mpi, &status));
        is_started = false;
    } else if (m->rform == IRECV)
        RP_OK(rp, CALL(end->is_large, Irecv, buf, n, type, m->from, tag, comm->mpi, &req));
    else if (m->rform == RECV_INIT) {
        RP_OK(rp, CALL(end->is_large, Recv_init, buf, n, type, m->from, tag, comm->mpi, &req));
        RP_OK(rp, MPI_Start(&req));
    } else
        is_started = receive_probed(rp, comm, m, end, tag, &req, &status);
    if (m->mode == READY) {
        RP_OK(rp, MPI_Send(NULL, 0, MPI_BYTE, peer_base_rank(comm, m, true), (int)(rp->now % 30000), rp->control));
    }
    if (is_started) {
        rp_op *op = rp_op_add(rp, "receive", received, end);
        op->req = req;
        op->is_persistent = m->rform == RECV_INIT;
        return;
    }
    rp_end_verify(rp, end, &status, "receive");
    rp_end_close(rp, end);
    free(end);
}

void run_messages(rp *rp, rp_step *step)
{
    const rp_comm *comm = &rp->comms[step->comm];
    for (int i = 0; i < step->n; i++) {
        const rp_message *m = &step->messages[i];
        int sender = rp_comm_rank_in(rp, comm, m->side), receiver = rp_comm_rank_in(rp, comm, comm->is_inter ? 1 - m->side : 0);
        uint64_t key = rp_key(rp, step->index, m->from, (uint32_t)i);
        if (receiver == m->to && is_posted(m))
            rp_receive_message(rp, comm, m, key);
        if (sender == m->from)
            rp_send_message(rp, comm, m, key);
        if (receiver == m->to && !is_posted(m))
            rp_receive_message(rp, comm, m, key);
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_frames: what a stranger or a peer sends to rank 0 over transports/verbs on simulated HCAs: datagrams, private data of rdma_cm's
 * requests, frames on a queue pair, cells of an eager ring. Rank 1 is a second iface: it also connects and sends as it should, and the rest
 * goes by its queue pairs. No frame that comes up is longer than the longest, none comes after its peer has failed, and nothing of the
 * device is left at the end. The input: a byte, bits 0 and 1: the device, bit 2: rdma_cm connects, bit 3: rank 0 opens its side first;
 * then steps, each a byte whose lower four bits are the step's number.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "test/fuzz/fuzz.h"
#include "test/transports/simhca/hca.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

enum { JOB = 7, RANKS = 3 /* rank 2 exists in messages only */, DATAGRAM_MAX = 344, RING_BYTES = 64 * 2048, BODY_MAX = 4096 };

unsigned fuzz_stride = 8; /* an input takes a millisecond: worlds of devices are made and freed */

typedef struct peer {
    weft_ep *ep;
    bool has_failed;
} peer;

typedef struct side {
    verbs_iface *iface;
    uint32_t rank;
    peer peers[RANKS];
} side;

typedef struct cm_data { /* as transports/verbs/rdmacm.c has it */
    uint32_t magic, nonce, to_nonce, incarnation, to_incarnation, epoch, rx_seq;
    uint16_t credits;
    uint8_t from_rail, to_rail;
    uint64_t job;
    uint32_t rank;
    uint16_t worker;
    uint8_t rails, no;
} cm_data;

typedef struct held { /* a frame ahead of order, as transports/verbs/flow.c has it */
    weft_list_link link;
    uint32_t seq;
} held;

static side sides[2];
static struct rdma_event_channel *channel; /* of the stranger's requests */
static struct rdma_cm_id *request;
static struct ibv_mr *body_mr;
static uint8_t body[BODY_MAX];
static volatile uint8_t seen;

/* -- both ranks -- */

static verbs_ep *ep_of(const side *at, uint32_t rank) { return (verbs_ep *)at->peers[rank].ep; }

static void enter(const side *at) { simhca_process(at->rank); }

static void recv_frame(void *owner, void *from, const weft_hdr *hdr, const void *at)
{
    const side *self = owner;
    if (((peer *)from)->has_failed || hdr->bytes > self->iface->iface.caps.frame_max)
        abort();
    for (uint32_t i = 0; i < hdr->bytes; i++)
        seen = ((const uint8_t *)at)[i];
}

static void notify(void *owner, void *from, uint32_t value)
{
    (void)owner, (void)value;
    if (((peer *)from)->has_failed)
        abort();
}

static void done(void *owner, void *what, int rc) { (void)owner, (void)what, (void)rc; }

static void peer_failed(void *owner, void *from, int rc)
{
    (void)owner, (void)rc;
    if (((peer *)from)->has_failed)
        abort();
    ((peer *)from)->has_failed = true;
}

static uint32_t nonce_of(uint32_t rank) { return rank < 2 ? sides[rank].iface->nonce : ~sides[1].iface->nonce; }

/* Rank 2 is said to be where rank 1 is. */
static bool peer_open(side *self, uint32_t rank)
{
    weft_proc_id id = {.job = JOB, .rank = rank};
    verbs_iface_addr addr;
    size_t bytes = sizeof addr;
    side *other = &sides[1 - self->rank];
    if (rank == self->rank || self->peers[rank].ep || weft_verbs_ops.get_addr(&other->iface->iface, &addr, &bytes))
        return false;
    addr.nonce = nonce_of(rank);
    enter(self);
    self->peers[rank].has_failed = false;
    return weft_verbs_ops.ep_open(&self->iface->iface, &id, &addr, bytes, &self->peers[rank], &self->peers[rank].ep) == 0;
}

static void *accept_peer(void *owner, const weft_proc_id *id)
{
    side *self = owner;
    return id->job == JOB && !id->worker && id->rank < RANKS && peer_open(self, id->rank) ? &self->peers[id->rank] : NULL;
}

static void side_open(side *self, uint32_t rank)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = recv_frame, .done = done, .notify = notify, .peer_failed = peer_failed,
                                                   .accept_peer = accept_peer};
    weft_iface_params params = {.owner = self, .callbacks = &callbacks, .self = {.job = JOB, .rank = rank}, .now_ns = simhca_now_ns,
                                .is_far = true, .local_rank = -1, .peers = RANKS, .ranks = 1};
    *self = (side){.rank = rank};
    enter(self);
    if (weft_verbs_ops.open(&params, (weft_iface **)&self->iface))
        abort();
}

static void poll(uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        for (int s = 0; s < 2; s++) {
            enter(&sides[s]);
            weft_verbs_ops.poll(&sides[s].iface->iface, 32);
        }
}

static void send_from(side *from, uint32_t to, uint32_t bytes)
{
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .bytes = bytes}, .body = body};
    peer_open(from, to);
    enter(from);
    if (bytes <= BODY_MAX && bytes <= from->iface->iface.caps.frame_max)
        weft_verbs_ops.send(&from->iface->iface, from->peers[to].ep, &frame);
}

static void close_ep(side *self, uint32_t rank)
{
    enter(self);
    if (self->peers[rank].ep && weft_verbs_ops.ep_close(&self->iface->iface, self->peers[rank].ep) == 0)
        self->peers[rank].ep = NULL;
}

/* -- what comes to rank 0 -- */

/* Bits: 4 from rank 2, 5 that rank's identity, 6 the numbers of its ep, 7 the rails of rank 1 and an epoch near rank 0's. */
static void datagram(fuzz_input *in, uint8_t how)
{
    uint32_t rank = 1 + (how >> 4 & 1);
    const verbs_ep *ep = ep_of(&sides[0], rank);
    const verbs_iface_addr *far = &sides[1].iface->conn->addr;
    union { verbs_conn_msg msg; uint8_t bytes[DATAGRAM_MAX]; } what;
    verbs_conn_msg *msg = &what.msg;
    uint16_t bytes;
    fuzz_take(in, &bytes, sizeof bytes);
    bytes = bytes % DATAGRAM_MAX + 1;
    memset(&what, 0, sizeof what);
    fuzz_take(in, &what, bytes);
    if (how & 32) {
        const verbs_conn_msg given = *msg;
        *msg = (verbs_conn_msg){.magic = VERBS_MSG_MAGIC, .version = VERBS_MSG_VERSION, .kind = given.kind, .from_rail = given.from_rail,
                                .to_rail = given.to_rail, .job = JOB, .to_job = JOB, .rank = rank, .nonce = nonce_of(rank),
                                .to_nonce = nonce_of(0), .incarnation = given.incarnation, .to_incarnation = given.to_incarnation,
                                .epoch = given.epoch, .rx_seq = given.rx_seq, .credits = given.credits, .rails = given.rails};
        memcpy(msg->rail, given.rail, sizeof msg->rail);
    }
    if (how & 64 && ep) {
        msg->incarnation = ep->hs->remote_incarnation ? ep->hs->remote_incarnation : msg->incarnation;
        msg->to_incarnation = ep->hs->incarnation;
    }
    if (how & 128) {
        msg->epoch = (ep ? ep->epoch : 0) + (uint32_t)(int32_t)(int8_t)msg->epoch;
        msg->rails = far->rails;
        for (uint8_t i = 0; i < far->rails; i++)
            msg->rail[i].address = far->address[i];
    }
    enter(&sides[1]);
    verbs_ud_send(&sides[1].iface->rails[0], &sides[0].iface->conn->addr.address[0], msg, bytes);
}

static void request_end(void)
{
    if (request)
        rdma_destroy_id(request);
    request = NULL;
}

/* Bits: 4 from rank 2, 5 that rank's identity, 6 the numbers of its ep, 7 an epoch near rank 0's. */
static void cm_request(fuzz_input *in, uint8_t how)
{
    uint32_t rank = 1 + (how >> 4 & 1);
    const verbs_ep *ep = ep_of(&sides[0], rank);
    struct rdma_conn_param param = {.private_data_len = 56};
    struct sockaddr_in to = {.sin_family = AF_INET}, from = to;
    uint8_t data[56];
    cm_data *what = (cm_data *)(void *)data;
    fuzz_take(in, data, sizeof data);
    param.private_data = data;
    param.responder_resources = data[50];
    param.initiator_depth = data[51];
    param.qp_num = data[52];
    if (how & 32) {
        what->magic = 0x57656650u;
        what->nonce = nonce_of(rank);
        what->to_nonce = nonce_of(0);
        what->job = JOB;
        what->rank = rank;
        what->worker = 0;
    }
    if (how & 64 && ep) {
        what->incarnation = ep->hs->remote_incarnation ? ep->hs->remote_incarnation : what->incarnation;
        what->to_incarnation = ep->hs->incarnation;
    }
    if (how & 128)
        what->epoch = (ep ? ep->epoch : 0) + (uint32_t)(int32_t)(int8_t)what->epoch;
    request_end();
    enter(&sides[1]);
    memcpy(&to.sin_addr, sides[0].iface->rails[0].gid.raw + 12, 4);
    memcpy(&from.sin_addr, sides[1].iface->rails[0].gid.raw + 12, 4);
    to.sin_port = htons(sides[0].iface->rails[0].cm_port);
    if (!sides[0].iface->conn->cm || rdma_create_id(channel, &request, NULL, RDMA_PS_TCP) ||
        rdma_resolve_addr(request, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000))
        return;
    rdma_connect(request, &param);
}

/* The queue pair of rank 1 to rank 0; NULL: none is connected. */
static verbs_rc_qp *rank1_qp(void)
{
    verbs_ep *ep = ep_of(&sides[1], 0);
    return ep && ep->state == VERBS_UP && ep->home && ep->home->ibv_qp && !ep->home->is_broken ? ep->home : NULL;
}

static void post(struct ibv_send_wr *wr, uint32_t bytes)
{
    static verbs_work work; /* a request that completes in error breaks the queue pair */
    verbs_rc_qp *qp = rank1_qp();
    struct ibv_sge sge = {(uintptr_t)body, bytes, body_mr->lkey};
    struct ibv_send_wr *bad;
    if (qp)
        work = (verbs_work){.kind = VERBS_WORK_SYNC, .qp = qp};
    wr->wr_id = (uintptr_t)&work;
    wr->sg_list = &sge;
    wr->num_sge = 1;
    enter(&sides[1]);
    if (qp)
        ibv_post_send(qp->ibv_qp, wr, &bad);
    poll(2);
}

/* Bits: 4 its length is right, 5 its number is near the next one, 6 by immediate data. */
static void rc_frame(fuzz_input *in, uint8_t how)
{
    const verbs_ep *ep = ep_of(&sides[0], 1);
    verbs_wire *wire = (verbs_wire *)(void *)body;
    struct ibv_send_wr wr = {.opcode = how & 64 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND};
    uint16_t bytes;
    fuzz_take(in, &bytes, sizeof bytes);
    bytes %= BODY_MAX + 1;
    fuzz_take(in, wire, sizeof *wire);
    if (how & 16)
        wire->hdr.bytes = bytes - (uint32_t)sizeof *wire;
    if (how & 32 && ep) {
        wire->prefix.seq = (uint16_t)(ep->rx_seq + 1 + (uint32_t)(int8_t)wire->prefix.seq);
        wire->prefix.ack = (uint16_t)(ep->tx_seq + (uint32_t)(int8_t)wire->prefix.ack);
    }
    post(&wr, bytes);
}

/* Writes anywhere into the ring that rank 0 offers. */
static void ring_cell(fuzz_input *in)
{
    const hca_context *context = hca_context_of(sides[0].iface->rails[0].context);
    uint16_t at, bytes;
    fuzz_take(in, &at, sizeof at);
    fuzz_take(in, &bytes, sizeof bytes);
    bytes %= BODY_MAX + 1;
    for (const weft_list_link *link = context->mrs.next; link != &context->mrs; link = link->next) {
        const hca_mr *mr = weft_container(link, hca_mr, link);
        if (mr->bytes != RING_BYTES || !(mr->access & IBV_ACCESS_REMOTE_WRITE))
            continue;
        uint32_t from = at * 8u % RING_BYTES;
        fuzz_take(in, (uint8_t *)mr->base.addr + from, bytes < RING_BYTES - from ? bytes : RING_BYTES - from);
        return;
    }
}

static void break_qp(uint8_t how)
{
    verbs_rc_qp *qp = rank1_qp();
    if (qp)
        simhca_break(qp->ibv_qp, (enum simhca_break_kind)(how >> 4) % SIMHCA_BREAK_LAST);
}

/* The first held frame is still to be delivered; else those behind it never would be. */
static void check_held(uint32_t rank)
{
    const verbs_ep *ep = ep_of(&sides[0], rank);
    if (ep && ep->state == VERBS_UP && !weft_list_is_empty(&ep->held) &&
        verbs_seq_diff(weft_container(ep->held.next, held, link)->seq, ep->rx_seq) <= 0)
        abort();
}

/* -- the input -- */

static void step(fuzz_input *in, uint8_t how)
{
    uint16_t bytes = 0;
    if ((how & 15) == 4 || (how & 15) == 5)
        fuzz_take(in, &bytes, sizeof bytes);
    switch (how & 15) {
    case 0: datagram(in, how); break;
    case 1: cm_request(in, how); break;
    case 2: rc_frame(in, how); break;
    case 3: ring_cell(in); break;
    case 4: send_from(&sides[0], how & 16 ? 2 : 1, bytes); break;
    case 5: send_from(&sides[1], 0, bytes); break;
    case 6: poll(1 + (how >> 4) * 8); break;
    case 7: simhca_pass(1000ull << (how >> 4) * 2); break;
    case 8: break_qp(how); break;
    case 9: close_ep(&sides[0], 1 + (how >> 4 & 1)); break;
    default: poll(1); break;
    }
}

static void open_all(uint8_t how)
{
    static const char *const names[] = {"calm", "irdma", "mlx5-roce", "narrow"};
    weft_knobs_load(false);
    weft_knob.verbs_connect = how & 4 ? WEFT_VERBS_CONNECT_RDMACM : WEFT_VERBS_CONNECT_AUTO;
    weft_knob.eager_ring = WEFT_EAGER_RING_FORCE;
    weft_knob.peer_timeout_s = 2;
    if (!simhca_open(simhca_profile_find(names[how & 3]), 1, 0))
        abort();
    side_open(&sides[0], 0);
    side_open(&sides[1], 1);
    channel = rdma_create_event_channel();
    body_mr = ibv_reg_mr(sides[1].iface->rails[0].pd, body, sizeof body, IBV_ACCESS_LOCAL_WRITE);
    if (!channel || !body_mr)
        abort();
    if (how & 8)
        peer_open(&sides[0], 1);
}

static void close_all(void)
{
    request_end();
    enter(&sides[1]);
    rdma_destroy_event_channel(channel);
    ibv_dereg_mr(body_mr);
    for (int s = 0; s < 2; s++) {
        enter(&sides[s]);
        weft_verbs_ops.close(&sides[s].iface->iface);
    }
    if (simhca_close(stdout))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint8_t how;
    fuzz_take(&in, &how, 1);
    open_all(how);
    for (uint32_t steps = 0; in.left && steps < 300; steps++) {
        fuzz_take(&in, &how, 1);
        step(&in, how);
        if ((how & 15) <= 1)
            poll(2);
        check_held(1);
        check_held(2);
    }
    poll(8);
    close_all();
    return 0;
}

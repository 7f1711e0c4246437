/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdmacm: connecting by rdma_cm in place of UD messages. One rdma_cm connection per QP and epoch; its private data has the contents of a
 * conn_msg (conn.h). Both sides may request; of two crossing requests the smaller proc_id's stands. QPs are created by rc_qp.c, as
 * librdmacm has device contexts of its own, and go through their states with librdmacm's attributes.
 *
 *     active:  address, route, CONNECT -> response: QP to RTS, establish           (iWARP: by the kernel)
 *     passive: request: QP to RTS, ACCEPT -> established, or the first frame
 *
 * iWARP: the passive side must not send first. The active side sends a frame of credits when it is up, and the passive side waits for it.
 *
 * A side that lacks a queue pair, or receives, refuses the request as BUSY or SHORT while another connection may give way (evict.c). The
 * requester's deadline then starts anew, and it keeps its queue pair for the next attempt, by either side, unless another ep needs it: so
 * two sides that lack one in turn come to have both. A rejection tells the refuser's epoch, which it may not be able to tell otherwise.
 * Invariants: no call here blocks; events are acknowledged before an id is destroyed.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "transports/verbs/cm_listen.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/slots.h"
#include "transports/verbs/gid.h"

#define RESOLVE_MS 2000
#define STRAGGLER_NS 1000000000ull /* QPs that are this much later than the first wait for another epoch */
#define REPEAT_NS 600000000ull     /* an attempt without an answer for so long is made anew: the kernel repeats messages after 4 s; */
#define REPEATS 3                  /* ... so often, each time after twice as long: a peer that computes keeps all requests in its queue */
#define CM_DATA_MAGIC 0x57656650u

/* Private data; rdma_cm has 56 bytes for it in a request. */
typedef struct cm_data {
    uint32_t magic, nonce, to_nonce, incarnation, to_incarnation, epoch, rx_seq;
    uint16_t credits;
    uint8_t from_rail, to_rail;
    uint64_t job;
    uint32_t rank;
    uint16_t worker;
    uint8_t rails; /* bit mask of the sender's rails that it connects in this epoch */
    uint8_t no;    /* rejections: enum refusal */
} cm_data;
_Static_assert(sizeof(cm_data) <= 56, "fits a request");

enum refusal {
    REFUSED_NOT = 0, REFUSED_LATER, REFUSED_CROSSED, REFUSED_GONE, REFUSED_STRANGER,
    REFUSED_FULL,  /* no queue pair, and no other connection that could give way: the requester's deadline goes on */
    REFUSED_BUSY,  /* no queue pair until another connection gives way */
    REFUSED_SHORT, /* no receives to grant until another connection gives way */
    REFUSED_PAIR,  /* no queue pair for this pair of rails; there is one for another */
    REFUSED_LAST
};

/* Copy of an event after it was acknowledged. */
typedef struct cm_event {
    enum rdma_cm_event_type type;
    struct rdma_cm_id *id;
    verbs_rail *rail; /* of the listener, for a request */
    int status;
    uint8_t reads_in, reads_out;
    uint32_t qpn;
    bool has_data;
    cm_data data;
} cm_event;

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

bool verbs_rdmacm_is_for(const verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (!ep->qps[i].rail->cm_port || !ep->remote.address[ep->qps[i].remote_rail].cm_port)
            return false;
    return true;
}

/* -- private data, error text -- */

static void write_data(const verbs_rc_qp *qp, uint8_t no, cm_data *out)
{
    const verbs_ep *ep = qp->ep;
    const verbs_iface *iface = ep->iface;
    *out = (cm_data){.magic = CM_DATA_MAGIC, .nonce = iface->nonce, .to_nonce = ep->remote.nonce, .incarnation = ep->hs->incarnation,
                   .to_incarnation = ep->hs->remote_incarnation, .epoch = ep->epoch, .rx_seq = ep->rx_seq,
                   .credits = (uint16_t)ep->hs->local_credits, .from_rail = qp->rail->index, .to_rail = qp->remote_rail,
                   .job = iface->self.job, .rank = iface->self.rank, .worker = (uint16_t)iface->self.worker, .no = no};
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp)
            out->rails |= (uint8_t)(1u << ep->qps[i].rail->index);
}

static void set_error(verbs_ep *ep, const verbs_rc_qp *qp, const char *what, const char *words)
{
    char there[VERBS_GID_TEXT];
    snprintf(ep->last_error, sizeof ep->last_error, "rdma_cm could not %s rank %u at %s by %s: %s", what, ep->proc_id.rank,
             verbs_gid_text(&ep->remote.address[qp->remote_rail].gid, there), qp->rail->name, words);
}

/* -- QP states -- */

static int to_state(verbs_rc_qp *qp, struct rdma_cm_id *id, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask = 0;
    if (rdma_init_qp_attr(id, &attr, &mask))
        return errno;
    if (state == IBV_QPS_INIT) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
        if (qp->rail->attr.atomic_cap != IBV_ATOMIC_NONE)
            attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    /* The peer's depth as a requester may exceed what this device answers, and the device then refuses the state. */
    attr.max_dest_rd_atomic = (uint8_t)min(attr.max_dest_rd_atomic, (uint32_t)qp->rail->attr.max_qp_rd_atom);
    attr.max_rd_atomic = (uint8_t)min(attr.max_rd_atomic, qp->rail->max_rd_atomic);
    int error = ibv_modify_qp(qp->ibv_qp, &attr, mask);
    return error || state != IBV_QPS_INIT ? error : verbs_recv_queue_open(qp);
}

static int make_ready(verbs_rc_qp *qp, struct rdma_cm_id *id)
{
    int error = qp->rail->is_iwarp ? 0 : to_state(qp, id, IBV_QPS_RTR);
    return error || qp->rail->is_iwarp ? error : to_state(qp, id, IBV_QPS_RTS);
}

static struct rdma_conn_param params_of(const verbs_rc_qp *qp, const cm_data *data)
{
    return (struct rdma_conn_param){.private_data = data, .private_data_len = sizeof *data,
                                    .responder_resources = (uint8_t)min((uint32_t)qp->rail->attr.max_qp_rd_atom, 255),
                                    .initiator_depth = (uint8_t)min(qp->rail->max_rd_atomic, 255),
                                    .retry_count = VERBS_RETRIES,
                                    .rnr_retry_count = 7, .srq = qp->rail->srq != NULL, .qp_num = qp->ibv_qp->qp_num};
}

void verbs_rdmacm_disconnect(verbs_rc_qp *qp)
{
    if (qp->cm_id && verbs_qp_handshake_of(qp)->is_connected && verbs_cm_deferred_can_send(qp->rail))
        rdma_disconnect(qp->cm_id);
}

void verbs_rdmacm_forget(verbs_rc_qp *qp)
{
    if (qp->cm_id)
        verbs_cm_deferred_end(qp->rail, qp->cm_id);
    qp->cm_id = NULL;
    verbs_qp_handshake_of(qp)->is_connected = false;
}

/* A failed attempt: the next one needs a new QP, as some devices leave the old one in ERR. */
static void give_up_attempt(verbs_rc_qp *qp, const char *what, const char *words)
{
    set_error(qp->ep, qp, what, words);
    weft_log_debug("connection %u: %s", qp->ep->epoch, qp->ep->last_error);
    verbs_rc_qp_close(qp);
}

/* The peer refused, but will be ready: the QP, still in INIT, is kept for the next attempt. iWARP's kernel leaves it in ERR. */
static void pause_attempt(verbs_rc_qp *qp, const char *words)
{
    if (qp->rail->is_iwarp) {
        give_up_attempt(qp, "connect to", words);
        return;
    }
    set_error(qp->ep, qp, "connect to", words);
    weft_log_debug("connection %u: %s", qp->ep->epoch, qp->ep->last_error);
    verbs_rdmacm_forget(qp);
}

/* -- active -- */

static void begin(verbs_rc_qp *qp)
{
    const verbs_address *remote = &qp->ep->remote.address[qp->remote_rail];
    struct rdma_cm_id *id;
    struct sockaddr_storage from, to;
    if (rdma_create_id(qp->ep->iface->conn->cm->channel, &id, qp, RDMA_PS_TCP)) {
        set_error(qp->ep, qp, "begin to connect to", strerror(errno));
        return;
    }
    qp->cm_id = id;
    verbs_qp_handshake_of(qp)->is_active = true;
    qp->ep->hs->attempt_ns = verbs_qp_handshake_of(qp)->asked_ns = verbs_conn_now(qp->ep);
    verbs_cm_address(&qp->rail->gid, 0, &from);
    verbs_cm_address(&remote->gid, remote->cm_port, &to);
    if (rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, RESOLVE_MS))
        give_up_attempt(qp, "find", strerror(errno));
}

static void request(verbs_rc_qp *qp)
{
    struct rdma_conn_param param;
    cm_data data;
    int error = to_state(qp, qp->cm_id, IBV_QPS_INIT);
    write_data(qp, REFUSED_NOT, &data);
    param = params_of(qp, &data);
    if (error || rdma_connect(qp->cm_id, &param))
        give_up_attempt(qp, "send a request to", strerror(error ? error : errno));
}

static void advance(verbs_rc_qp *qp, const cm_event *event)
{
    if (event->type == RDMA_CM_EVENT_ADDR_RESOLVED && rdma_resolve_route(qp->cm_id, RESOLVE_MS))
        give_up_attempt(qp, "find a route to", strerror(errno));
    else if (event->type == RDMA_CM_EVENT_ROUTE_RESOLVED)
        request(qp);
}

/* -- both sides: a QP is connected -- */

/* QPs refused because requests crossed, or came too early, are still to come: going up without them would soon end this epoch. */
static bool all_connected(const verbs_ep *ep)
{
    const verbs_handshake *hs = ep->hs;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp ? !hs->qp_hs[i].is_connected
                              : ((hs->remote_rails >> ep->qps[i].remote_rail & 1) && !(hs->refused_qps >> i & 1)) ||
                                    (hs->due_qps >> i & 1))
            return false;
    return true;
}

static void on_connected(verbs_rc_qp *qp, const cm_data *data, uint32_t reads)
{
    verbs_ep *ep = qp->ep;
    verbs_handshake *hs = ep->hs;
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    qp_hs->is_made = false;
    qp_hs->is_connected = true;
    qp_hs->repeats = 0;
    qp->reads_capacity = min(qp->rail->max_rd_atomic, reads);
    hs->offer.epoch = ep->epoch;
    hs->offer.rx_seq = data->rx_seq;
    hs->offer.credits = data->credits;
    if (!qp_hs->is_active)
        hs->remote_rails = data->rails; /* the passive side waits for all of these */
    hs->due_qps &= (uint8_t)~(1u << (qp - ep->qps));
    if (!hs->is_connected)
        hs->connected_ns = ep->iface->now_ns();
    hs->is_connected = true;
    hs->remote_incarnation = data->incarnation;
    ep->silent_since_ns = 0;
    verbs_cm_deferred_flush(ep->iface, qp->rail);
}

bool verbs_rdmacm_finish(verbs_ep *ep)
{
    ep->home = NULL;
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        verbs_rc_qp *qp = &ep->qps[i];
        if (qp->ibv_qp && !ep->hs->qp_hs[i].is_connected) {
            if (ep->iface->now_ns() - ep->hs->connected_ns > STRAGGLER_NS)
                verbs_rail_probe_missed(qp);
            verbs_rc_qp_close(qp);
        }
        if (qp->ibv_qp && !ep->home)
            ep->home = qp;
    }
    return ep->home != NULL;
}

static bool is_iwarp_passive(const verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp && ep->qps[i].rail->is_iwarp && ep->hs->qp_hs[i].is_connected &&
            !ep->hs->qp_hs[i].is_active)
            return true;
    return false;
}

static void go_up_if_all(verbs_ep *ep, bool is_late)
{
    if (ep->state != VERBS_CONNECTING || !ep->hs->is_connected || is_iwarp_passive(ep) || !(is_late || all_connected(ep)))
        return;
    verbs_conn_on_arrival(ep);
}

/* -- passive -- */

/* ep: of the request; NULL: none. */
static void refuse(verbs_rail *rail, struct rdma_cm_id *id, const cm_data *request, const verbs_ep *ep, enum refusal no)
{
    cm_data data = {.magic = CM_DATA_MAGIC, .nonce = rail->iface->nonce, .to_nonce = request->nonce, .to_incarnation = request->incarnation,
                   .epoch = ep ? ep->epoch : request->epoch,
                   .no = (uint8_t)no};
    if (no == REFUSED_STRANGER)
        rail->iface->conn->dropped++;
    rdma_reject(id, &data, sizeof data);
    rdma_destroy_id(id);
}

static verbs_rc_qp *qp_for(verbs_ep *ep, const verbs_rail *rail, uint8_t remote_rail)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].rail == rail && ep->qps[i].remote_rail == remote_rail)
            return &ep->qps[i];
    return NULL;
}

/* Brings the QP to RTS and accepts the request. */
static bool accept_request(verbs_rc_qp *qp, const cm_event *event)
{
    struct rdma_conn_param param;
    cm_data data;
    int error = to_state(qp, event->id, IBV_QPS_INIT);
    if (!error)
        error = make_ready(qp, event->id);
    write_data(qp, REFUSED_NOT, &data);
    param = params_of(qp, &data);
    param.responder_resources = (uint8_t)min(param.responder_resources, event->reads_out);
    param.initiator_depth = (uint8_t)min(param.initiator_depth, event->reads_in);
    if (!error && rdma_accept(event->id, &param) == 0)
        return true;
    set_error(qp->ep, qp, "accept the request of", strerror(error ? error : errno));
    return false;
}

/* The peer requests again what was accepted: it has given up that attempt, and its word of it is lost, or was overtaken. */
static void drop_accepted(verbs_rc_qp *qp)
{
    verbs_ep *ep = qp->ep;
    if (ep->state != VERBS_CONNECTING) {
        verbs_conn_renew(qp, "the peer requests again what was accepted");
        return;
    }
    verbs_rc_qp_close(qp);
    ep->hs->is_connected = false;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        ep->hs->is_connected |= ep->hs->qp_hs[i].is_connected;
}

/* Why there is no QP for a request, or no credits to grant. */
static enum refusal refusal_of(const verbs_rc_qp *qp)
{
    const verbs_handshake *hs = qp->ep->hs;
    if (hs->lacks_qps)
        return hs->is_alone ? REFUSED_FULL : REFUSED_BUSY;
    if (!qp->ibv_qp)
        return hs->refused_qps >> (qp - qp->ep->qps) & 1 ? REFUSED_PAIR : REFUSED_LATER;
    return REFUSED_SHORT;
}

static void on_request(const cm_event *event)
{
    verbs_rail *rail = event->rail;
    const cm_data *data = &event->data;
    weft_proc_id proc_id = {data->job, data->rank, data->worker};
    bool is_for_self = event->has_data && data->to_nonce == rail->iface->nonce;
    verbs_ep *ep = is_for_self ? verbs_conn_ep_of(rail->iface, &proc_id, data->incarnation, data->to_incarnation) : NULL;
    verbs_rc_qp *qp = ep ? qp_for(ep, rail, data->from_rail) : NULL;
    verbs_qp_handshake *qp_hs;
    if (!ep && is_for_self && verbs_conn_was_closed(rail->iface->conn, &proc_id, data->incarnation)) {
        refuse(rail, event->id, data, NULL, REFUSED_GONE);
        return;
    }
    if (!qp || ep->remote.nonce != data->nonce) {
        refuse(rail, event->id, data, NULL, REFUSED_STRANGER);
        return;
    }
    ep->hs->remote_incarnation = data->incarnation;
    ep->silent_since_ns = 0;
    qp_hs = verbs_qp_handshake_of(qp);
    if (!data->credits && !ep->hs->is_alone) /* the peer waits for receives */
        ep->hs->trouble_ns = verbs_conn_now(ep);
    if (ep->epoch == data->epoch && qp_hs->is_connected && !qp_hs->is_active && !qp_hs->is_established && !rail->is_iwarp)
        drop_accepted(qp);
    if (!verbs_conn_follow(ep, data->epoch) || qp_hs->is_connected || !data->credits) {
        refuse(rail, event->id, data, ep, REFUSED_LATER);
        return;
    }
    if (qp->cm_id && verbs_conn_precedes(ep)) {
        refuse(rail, event->id, data, ep, REFUSED_CROSSED);
        return;
    }
    if (qp->cm_id)
        verbs_rc_qp_close(qp);
    ep->hs->absent_qps &= (uint8_t)~(1u << (qp - ep->qps)); /* the peer has one for it now */
    if (!verbs_conn_open_qp(ep, qp)) {
        refuse(rail, event->id, data, ep, refusal_of(qp));
        return;
    }
    if (!accept_request(qp, event)) {
        refuse(rail, event->id, data, ep, REFUSED_LATER);
        verbs_rc_qp_close(qp);
        return;
    }
    qp->cm_id = event->id;
    event->id->context = qp;
    qp_hs->is_active = qp_hs->is_established = false;
    on_connected(qp, data, event->reads_in);
}

/* -- events -- */

static void on_response(verbs_rc_qp *qp, const cm_event *event)
{
    int error = make_ready(qp, qp->cm_id);
    if (!event->has_data || event->data.to_nonce != qp->ep->iface->nonce || event->data.epoch != qp->ep->epoch) {
        give_up_attempt(qp, "connect to", "the reply belongs to another connection");
        return;
    }
    if (error || (event->type == RDMA_CM_EVENT_CONNECT_RESPONSE && rdma_establish(qp->cm_id))) {
        give_up_attempt(qp, "connect to", strerror(error ? error : errno));
        return;
    }
    on_connected(qp, &event->data, event->reads_in);
    go_up_if_all(qp->ep, false);
}

static const char *refusal_text(uint8_t no)
{
    static const char *const words[REFUSED_LAST] = {
        "it rejected the request without giving a reason", "it is not ready", "requests crossed", "it has closed",
        "it does not know this process", "its device's queue pairs are used up, and no other connection could give way",
        "its device's queue pairs are used up, and it waits until one is free", "it waits for receives to grant",
        "its device has no queue pair for this pair of ports"};
    return words[no < REFUSED_LAST ? no : 0];
}

/* The peer itself refused a QP that comes about later. */
static void on_refusal(verbs_rc_qp *qp, const cm_data *data)
{
    verbs_ep *ep = qp->ep;
    verbs_handshake *hs = ep->hs;
    pause_attempt(qp, refusal_text(data->no));
    verbs_qp_handshake_of(qp)->repeats = 0;
    hs->due_qps |= (uint8_t)(1u << (qp - ep->qps));
    if ((data->no == REFUSED_BUSY || data->no == REFUSED_SHORT) && !hs->is_alone)
        hs->trouble_ns = verbs_conn_now(ep);
    verbs_conn_follow(ep, data->epoch);
}

static void on_reject(verbs_rc_qp *qp, const cm_event *event)
{
    verbs_ep *ep = qp->ep;
    const cm_data *data = &event->data;
    uint8_t no = event->has_data && data->to_nonce == ep->iface->nonce ? data->no : 0;
    bool is_peer = no && data->nonce == ep->remote.nonce && data->to_incarnation == ep->hs->incarnation;
    if (no) /* a process of the job answers there */
        ep->silent_since_ns = 0;
    if (is_peer && no < REFUSED_LAST && no != REFUSED_GONE && no != REFUSED_STRANGER && no != REFUSED_PAIR) {
        on_refusal(qp, data);
        return;
    }
    give_up_attempt(qp, "connect to", refusal_text(no));
    if (no == REFUSED_GONE && data->to_incarnation == ep->hs->incarnation)
        verbs_conn_on_gone(ep);
    if (is_peer && no == REFUSED_PAIR) {
        if (!ep->hs->is_alone)
            ep->hs->trouble_ns = verbs_conn_now(ep);
        ep->hs->absent_qps |= (uint8_t)(1u << (qp - ep->qps));
        go_up_if_all(ep, false);
    }
}

static void on_disconnect(verbs_rc_qp *qp)
{
    if (qp->ep->state == VERBS_UP && qp->ep->evict == VERBS_EVICT_ACKED) /* the peer has closed, as agreed */
        verbs_conn_end(qp->ep);
    else if (verbs_qp_handshake_of(qp)->is_connected)
        verbs_conn_renew(qp, "the peer ended the connection, or the network did");
    else
        give_up_attempt(qp, "connect to", "it ended the connection");
}

/* The accept did not reach the peer in time: it goes on without this QP, which may carry frames and fragments already. A new epoch repeats
 * them. */
static bool is_late_no(verbs_rc_qp *qp)
{
    if (verbs_qp_handshake_of(qp)->is_connected)
        verbs_conn_renew(qp, "a queue pair was accepted too late for the peer, which continues without it");
    return verbs_qp_handshake_of(qp)->is_connected;
}

static void handle(const cm_event *event)
{
    verbs_rc_qp *qp = event->type == RDMA_CM_EVENT_CONNECT_REQUEST ? NULL : event->id->context;
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        on_request(event);
        return;
    }
    if (!qp || qp->cm_id != event->id || !qp->ibv_qp) /* of a listener, or of an attempt that has ended */
        return;
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        advance(qp, event);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        on_response(qp, event);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        verbs_qp_handshake_of(qp)->is_established = true;
        if (verbs_qp_handshake_of(qp)->is_active && !verbs_qp_handshake_of(qp)->is_connected)
            on_response(qp, event);
        else
            go_up_if_all(qp->ep, false);
        break;
    case RDMA_CM_EVENT_REJECTED:
        if (!is_late_no(qp))
            on_reject(qp, event);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        if (!is_late_no(qp))
            give_up_attempt(qp, "reach", event->status < 0 ? strerror(-event->status) : rdma_event_str(event->type));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        on_disconnect(qp);
        break;
    default:
        break;
    }
}

static void copy_event(const struct rdma_cm_event *event, cm_event *out)
{
    const struct rdma_conn_param *param = &event->param.conn;
    *out = (cm_event){.type = event->event, .id = event->id, .status = event->status,
                  .rail = event->listen_id ? event->listen_id->context : NULL};
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST && event->event != RDMA_CM_EVENT_CONNECT_RESPONSE &&
        event->event != RDMA_CM_EVENT_ESTABLISHED && event->event != RDMA_CM_EVENT_REJECTED)
        return;
    out->reads_in = param->responder_resources;
    out->reads_out = param->initiator_depth;
    out->qpn = param->qp_num;
    if (param->private_data && param->private_data_len >= sizeof(cm_data)) {
        memcpy(&out->data, param->private_data, sizeof(cm_data));
        out->has_data = out->data.magic == CM_DATA_MAGIC;
    }
}

int verbs_rdmacm_progress(verbs_iface *iface)
{
    struct verbs_rdmacm *cm = iface->conn->cm;
    struct rdma_cm_event *event;
    int n = 0;
    while (cm && rdma_get_cm_event(cm->channel, &event) == 0) {
        cm_event copy;
        copy_event(event, &copy);
        rdma_ack_cm_event(event);
        handle(&copy);
        n++;
    }
    return n;
}

/* A lost connection message is repeated here before the kernel repeats it. On iWARP TCP does that. An ep with a connected rail does not
 * repeat either: the kernel's time-out excludes a rail that never answers. */
static void drop_silent_attempt(verbs_rc_qp *qp)
{
    verbs_qp_handshake *qp_hs = verbs_qp_handshake_of(qp);
    if (!qp->cm_id || !qp_hs->is_active || qp_hs->is_connected || qp->ep->hs->is_connected || qp->rail->is_iwarp ||
        qp_hs->repeats >= REPEATS ||
        verbs_conn_now(qp->ep) - qp_hs->asked_ns < REPEAT_NS << qp_hs->repeats)
        return;
    qp_hs->repeats++;
    pause_attempt(qp, "no answer yet");
}

void verbs_rdmacm_try(verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        drop_silent_attempt(&ep->qps[i]);
        if (ep->qps[i].ibv_qp && !ep->qps[i].cm_id)
            begin(&ep->qps[i]);
    }
    if (ep->hs->is_connected)
        go_up_if_all(ep, ep->iface->now_ns() - ep->hs->connected_ns > STRAGGLER_NS);
}

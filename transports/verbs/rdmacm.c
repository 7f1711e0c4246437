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
 * Invariants: no call here blocks; events are acknowledged before an id is destroyed.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/slots.h"
#include "transports/verbs/gid.h"

#define RESOLVE_MS 2000
#define BACKLOG 256
#define STRAGGLER_NS 1000000000ull /* QPs that are this much later than the first wait for another epoch */
#define CM_DATA_MAGIC 0x57656650u

struct verbs_rdmacm {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listeners[VERBS_RAILS];
};

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

enum refusal { REFUSED_NOT = 0, REFUSED_LATER, REFUSED_CROSSED, REFUSED_GONE, REFUSED_STRANGER, REFUSED_FULL };

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

/* -- active -- */

static void address_of(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *to)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
    memset(to, 0, sizeof *to);
    if (verbs_gid_is_ipv4(gid)) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, gid->raw + 12, 4);
    } else {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        memcpy(&v6->sin6_addr, gid->raw, 16);
    }
}

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
    address_of(&qp->rail->gid, 0, &from);
    address_of(&remote->gid, remote->cm_port, &to);
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
                              : (hs->remote_rails >> ep->qps[i].remote_rail & 1) || (hs->due_qps >> i & 1))
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

static void refuse(verbs_rail *rail, struct rdma_cm_id *id, const cm_data *request, enum refusal no)
{
    cm_data data = {.magic = CM_DATA_MAGIC, .nonce = rail->iface->nonce, .to_nonce = request->nonce, .to_incarnation = request->incarnation,
                   .epoch = request->epoch,
                   .no = (uint8_t)no};
    if (no == REFUSED_STRANGER)
        rail->iface->conn->dropped++;
    rdma_reject(id, &data, sizeof data);
    rdma_destroy_id(id);
}

static bool is_smaller(const verbs_ep *ep)
{
    const weft_proc_id *us = &ep->iface->self, *them = &ep->proc_id;
    return us->job != them->job ? us->job < them->job : us->rank != them->rank ? us->rank < them->rank : us->worker < them->worker;
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
        refuse(rail, event->id, data, REFUSED_GONE);
        return;
    }
    if (!qp || ep->remote.nonce != data->nonce) {
        refuse(rail, event->id, data, REFUSED_STRANGER);
        return;
    }
    ep->hs->remote_incarnation = data->incarnation;
    ep->silent_since_ns = 0;
    qp_hs = verbs_qp_handshake_of(qp);
    if (!verbs_conn_follow(ep, data->epoch) || qp_hs->is_connected || !data->credits) {
        refuse(rail, event->id, data, REFUSED_LATER);
        return;
    }
    if (qp->cm_id && is_smaller(ep)) {
        refuse(rail, event->id, data, REFUSED_CROSSED);
        return;
    }
    if (qp->cm_id)
        verbs_rc_qp_close(qp);
    if (!verbs_conn_open_qp(ep, qp)) {
        refuse(rail, event->id, data, ep->hs->lacks_qps ? REFUSED_FULL : REFUSED_LATER);
        return;
    }
    if (!accept_request(qp, event)) {
        refuse(rail, event->id, data, REFUSED_LATER);
        verbs_rc_qp_close(qp);
        return;
    }
    qp->cm_id = event->id;
    event->id->context = qp;
    qp_hs->is_active = false;
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

static void on_reject(verbs_rc_qp *qp, const cm_event *event)
{
    static const char *const words[] = {"it rejected the request without giving a reason",
                                        "it is not ready", "requests crossed", "it has closed",
                                        "it does not know this process",
                                        "its device's queue pairs are used up, and it waits until one is free"};
    verbs_ep *ep = qp->ep;
    uint8_t no = event->has_data && event->data.to_nonce == ep->iface->nonce ? event->data.no : 0;
    give_up_attempt(qp, "connect to", words[no < sizeof words / sizeof words[0] ? no : 0]);
    if (no == REFUSED_CROSSED || no == REFUSED_LATER || no == REFUSED_FULL)
        ep->hs->due_qps |= (uint8_t)(1u << (qp - ep->qps));
    if (no)
        ep->silent_since_ns = 0;
    if (no == REFUSED_GONE && event->data.to_incarnation == ep->hs->incarnation)
        verbs_conn_on_gone(ep);
}

static void on_disconnect(verbs_rc_qp *qp)
{
    if (verbs_qp_handshake_of(qp)->is_connected)
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

void verbs_rdmacm_try(verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp && !ep->qps[i].cm_id)
            begin(&ep->qps[i]);
    if (ep->hs->is_connected)
        go_up_if_all(ep, ep->iface->now_ns() - ep->hs->connected_ns > STRAGGLER_NS);
}

/* -- opening -- */

static int listen_on(struct verbs_rdmacm *cm, verbs_rail *rail)
{
    struct rdma_cm_id *id;
    struct sockaddr_storage at;
    if (rdma_create_id(cm->channel, &id, rail, RDMA_PS_TCP))
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm cannot listen on %s: %s", rail->name, strerror(errno));
    cm->listeners[rail->index] = id;
    address_of(&rail->gid, 0, &at);
    if (rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, BACKLOG))
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm cannot listen on %s: %s (is rdma_ucm loaded, has its interface an address?)",
                         rail->name,
                         strerror(errno));
    rail->cm_port = ntohs(rdma_get_src_port(id));
    return 0;
}

static int open_all(verbs_iface *iface)
{
    struct verbs_rdmacm *cm = iface->conn->cm = calloc(1, sizeof *cm);
    struct epoll_event event = {.events = EPOLLIN};
    int rc = 0, flags;
    if (!cm)
        return weft_fail(WEFT_E_NOMEM, "no memory for rdma_cm");
    cm->channel = rdma_create_event_channel();
    if (!cm->channel)
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm cannot be used: %s (may this user open /dev/infiniband/rdma_cm?)",
                         strerror(errno));
    event.data.fd = cm->channel->fd;
    flags = fcntl(cm->channel->fd, F_GETFL);
    if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        epoll_ctl(iface->epoll, EPOLL_CTL_ADD, cm->channel->fd, &event) < 0)
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm's descriptor cannot be slept on: %s", strerror(errno));
    for (uint8_t i = 0; rc == 0 && i < iface->rail_count; i++)
        rc = listen_on(cm, &iface->rails[i]);
    return rc;
}

int verbs_rdmacm_open(verbs_iface *iface)
{
    sigset_t all, before;
    bool is_needed = false;
    int rc;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        is_needed |= iface->rails[i].is_iwarp;
    if (weft_knob.verbs_connect != WEFT_VERBS_CONNECT_RDMACM && (!is_needed || weft_knob.verbs_connect == WEFT_VERBS_CONNECT_UD))
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = open_all(iface);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0 || is_needed)
        return rc;
    weft_log_warn("WEFT_VERBS_CONNECT=rdmacm is not possible: %s. Connecting by datagrams", weft_fail_text(rc));
    verbs_rdmacm_close(iface);
    return 0;
}

void verbs_rdmacm_close(verbs_iface *iface)
{
    struct verbs_rdmacm *cm = iface->conn->cm;
    verbs_cm_deferred_flush(iface, NULL);
    for (uint8_t i = 0; cm && i < VERBS_RAILS; i++) {
        if (cm->listeners[i])
            rdma_destroy_id(cm->listeners[i]);
        iface->rails[i].cm_port = 0;
    }
    if (cm && cm->channel)
        rdma_destroy_event_channel(cm->channel);
    free(cm);
    iface->conn->cm = NULL;
}

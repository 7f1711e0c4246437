/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdmacm: connecting by rdma_cm in place of UD messages. One rdma_cm connection per QP and epoch; its private data has the contents of a conn_msg (conn.h). Both sides may
 * request; of two crossing requests the smaller proc_id's stands. QPs are created by rc_qp.c, as librdmacm has device contexts of its
 * own, and go through their states with librdmacm's attributes.
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
#include "transports/verbs/gid.h"

#define RESOLVE_MS 2000
#define BACKLOG 256
#define STRAGGLER_NS 1000000000ull /* QPs that are this much later than the first wait for another epoch */
#define HELLO_MAGIC 0x57656650u

struct verbs_rdmacm {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listeners[VERBS_RAILS];
};

/* Private data; rdma_cm has 56 bytes for it in a request. */
typedef struct hello {
    uint32_t magic, nonce, to_nonce, incarnation, to_incarnation, epoch, rx_seq;
    uint16_t credits;
    uint8_t from_rail, to_rail;
    uint64_t job;
    uint32_t rank;
    uint16_t worker;
    uint8_t links; /* bit mask of the sender's rails that it connects in this epoch */
    uint8_t no;    /* rejections: enum refusal */
} hello;
_Static_assert(sizeof(hello) <= 56, "fits a request");

enum refusal { REFUSED_NOT = 0, REFUSED_LATER, REFUSED_CROSSED, REFUSED_GONE, REFUSED_STRANGER };

/* Copy of an event after it was acknowledged. */
typedef struct news {
    enum rdma_cm_event_type type;
    struct rdma_cm_id *id;
    verbs_rail *rail; /* of the listener, for a request */
    int status;
    uint8_t reads_in, reads_out;
    uint32_t qpn;
    bool has_hello;
    hello hello;
} news;

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

bool verbs_rdmacm_is_for(const verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (!ep->links[i].rail->cm_port || !ep->far.address[ep->links[i].far_rail].cm_port)
            return false;
    return true;
}

/* -- private data, error text -- */

static void write_hello(const verbs_rc_qp *link, uint8_t no, hello *out)
{
    const verbs_ep *ep = link->ep;
    const verbs_iface *iface = ep->iface;
    *out = (hello){.magic = HELLO_MAGIC, .nonce = iface->nonce, .to_nonce = ep->far.nonce, .incarnation = ep->meet->incarnation,
                   .to_incarnation = ep->meet->remote_incarnation, .epoch = ep->epoch, .rx_seq = ep->rx_seq,
                   .credits = (uint16_t)ep->meet->my_credits, .from_rail = link->rail->index, .to_rail = link->far_rail,
                   .job = iface->self.job, .rank = iface->self.rank, .worker = (uint16_t)iface->self.worker, .no = no};
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp)
            out->links |= (uint8_t)(1u << ep->links[i].rail->index);
}

static void trouble(verbs_ep *ep, const verbs_rc_qp *link, const char *what, const char *words)
{
    char there[VERBS_GID_TEXT];
    snprintf(ep->last_error, sizeof ep->last_error, "rdma_cm could not %s rank %u at %s by %s: %s", what, ep->proc_id.rank,
             verbs_gid_text(&ep->far.address[link->far_rail].gid, there), link->rail->name, words);
}

/* -- QP states -- */

static int to_state(verbs_rc_qp *link, struct rdma_cm_id *id, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask = 0;
    if (rdma_init_qp_attr(id, &attr, &mask))
        return errno;
    if (state == IBV_QPS_INIT) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
        if (link->rail->attr.atomic_cap != IBV_ATOMIC_NONE)
            attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    return ibv_modify_qp(link->qp, &attr, mask);
}

static int make_ready(verbs_rc_qp *link, struct rdma_cm_id *id)
{
    int error = link->rail->is_iwarp ? 0 : to_state(link, id, IBV_QPS_RTR);
    return error || link->rail->is_iwarp ? error : to_state(link, id, IBV_QPS_RTS);
}

static struct rdma_conn_param params_of(const verbs_rc_qp *link, const hello *words)
{
    return (struct rdma_conn_param){.private_data = words, .private_data_len = sizeof *words,
                                    .responder_resources = (uint8_t)min((uint32_t)link->rail->attr.max_qp_rd_atom, 255),
                                    .initiator_depth = (uint8_t)min(link->rail->max_rd_atomic, 255),
                                    .retry_count = VERBS_RETRIES,
                                    .rnr_retry_count = 7, .srq = 1, .qp_num = link->qp->qp_num};
}

void verbs_rdmacm_disconnect(verbs_rc_qp *link)
{
    if (link->cm && verbs_qp_handshake_of(link)->is_joined && verbs_cm_deferred_may_speak(link->rail))
        rdma_disconnect(link->cm);
}

void verbs_rdmacm_forget(verbs_rc_qp *link)
{
    if (link->cm)
        verbs_cm_deferred_end(link->rail, link->cm);
    link->cm = NULL;
    verbs_qp_handshake_of(link)->is_joined = false;
}

/* A failed attempt: the next one needs a new QP, as some devices leave the old one in ERR. */
static void give_up_attempt(verbs_rc_qp *link, const char *what, const char *words)
{
    trouble(link->ep, link, what, words);
    weft_log_debug("connection %u: %s", link->ep->epoch, link->ep->last_error);
    verbs_rc_qp_close(link);
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

static void begin(verbs_rc_qp *link)
{
    const verbs_address *far = &link->ep->far.address[link->far_rail];
    struct rdma_cm_id *id;
    struct sockaddr_storage from, to;
    if (rdma_create_id(link->ep->iface->conn->cm->channel, &id, link, RDMA_PS_TCP)) {
        trouble(link->ep, link, "begin to connect to", strerror(errno));
        return;
    }
    link->cm = id;
    verbs_qp_handshake_of(link)->is_active = true;
    address_of(&link->rail->gid, 0, &from);
    address_of(&far->gid, far->cm_port, &to);
    if (rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, RESOLVE_MS))
        give_up_attempt(link, "find", strerror(errno));
}

static void request(verbs_rc_qp *link)
{
    struct rdma_conn_param param;
    hello words;
    int error = to_state(link, link->cm, IBV_QPS_INIT);
    write_hello(link, REFUSED_NOT, &words);
    param = params_of(link, &words);
    if (error || rdma_connect(link->cm, &param))
        give_up_attempt(link, "ask", strerror(error ? error : errno));
}

static void step_on(verbs_rc_qp *link, const news *event)
{
    if (event->type == RDMA_CM_EVENT_ADDR_RESOLVED && rdma_resolve_route(link->cm, RESOLVE_MS))
        give_up_attempt(link, "find a route to", strerror(errno));
    else if (event->type == RDMA_CM_EVENT_ROUTE_RESOLVED)
        request(link);
}

/* -- both sides: a QP is connected -- */

/* QPs refused because requests crossed, or came too early, are still to come: going up without them would soon end this epoch. */
static bool all_joined(const verbs_ep *ep)
{
    const verbs_handshake *meet = ep->meet;
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp ? !meet->halves[i].is_joined
                              : (meet->far_links >> ep->links[i].far_rail & 1) || (meet->due_links >> i & 1))
            return false;
    return true;
}

static void joined(verbs_rc_qp *link, const hello *words, uint32_t reads)
{
    verbs_ep *ep = link->ep;
    verbs_handshake *meet = ep->meet;
    verbs_qp_handshake *half = verbs_qp_handshake_of(link);
    half->is_made = false;
    half->is_joined = true;
    link->reads_room = min(link->rail->max_rd_atomic, reads);
    meet->offer.epoch = ep->epoch;
    meet->offer.rx_seq = words->rx_seq;
    meet->offer.credits = words->credits;
    if (!half->is_active)
        meet->far_links = words->links; /* the passive side waits for all of these */
    meet->due_links &= (uint8_t)~(1u << (link - ep->links));
    if (!meet->is_linked)
        meet->linked_ns = ep->iface->now_ns();
    meet->is_linked = true;
    meet->remote_incarnation = words->incarnation;
    ep->silent_since_ns = 0;
    verbs_cm_deferred_over(ep->iface, link->rail);
}

bool verbs_rdmacm_settle(verbs_ep *ep)
{
    ep->home = NULL;
    for (uint8_t i = 0; i < ep->link_count; i++) {
        verbs_rc_qp *link = &ep->links[i];
        if (link->qp && !ep->meet->halves[i].is_joined) {
            if (ep->iface->now_ns() - ep->meet->linked_ns > STRAGGLER_NS)
                verbs_rail_probe_missed(link);
            verbs_rc_qp_close(link);
        }
        if (link->qp && !ep->home)
            ep->home = link;
    }
    return ep->home != NULL;
}

static bool is_iwarp_passive(const verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp && ep->links[i].rail->is_iwarp && ep->meet->halves[i].is_joined &&
            !ep->meet->halves[i].is_active)
            return true;
    return false;
}

static void go_up_if_all(verbs_ep *ep, bool is_late)
{
    if (ep->state != VERBS_CONNECTING || !ep->meet->is_linked || is_iwarp_passive(ep) || !(is_late || all_joined(ep)))
        return;
    verbs_conn_heard(ep);
}

/* -- passive -- */

static void refuse(verbs_rail *rail, struct rdma_cm_id *id, const hello *asked, enum refusal no)
{
    hello words = {.magic = HELLO_MAGIC, .nonce = rail->iface->nonce, .to_nonce = asked->nonce, .to_incarnation = asked->incarnation,
                   .epoch = asked->epoch,
                   .no = (uint8_t)no};
    if (no == REFUSED_STRANGER)
        rail->iface->conn->dropped++;
    rdma_reject(id, &words, sizeof words);
    rdma_destroy_id(id);
}

static bool is_smaller(const verbs_ep *ep)
{
    const weft_proc_id *us = &ep->iface->self, *them = &ep->proc_id;
    return us->job != them->job ? us->job < them->job : us->rank != them->rank ? us->rank < them->rank : us->worker < them->worker;
}

static verbs_rc_qp *link_for(verbs_ep *ep, const verbs_rail *rail, uint8_t far_rail)
{
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].rail == rail && ep->links[i].far_rail == far_rail)
            return &ep->links[i];
    return NULL;
}

/* Brings the QP to RTS and accepts the request. */
static bool accept_request(verbs_rc_qp *link, const news *event)
{
    struct rdma_conn_param param;
    hello words;
    int error = to_state(link, event->id, IBV_QPS_INIT);
    if (!error)
        error = make_ready(link, event->id);
    write_hello(link, REFUSED_NOT, &words);
    param = params_of(link, &words);
    param.responder_resources = (uint8_t)min(param.responder_resources, event->reads_out);
    param.initiator_depth = (uint8_t)min(param.initiator_depth, event->reads_in);
    if (!error && rdma_accept(event->id, &param) == 0)
        return true;
    trouble(link->ep, link, "answer", strerror(error ? error : errno));
    return false;
}

static void asked(const news *event)
{
    verbs_rail *rail = event->rail;
    const hello *words = &event->hello;
    weft_proc_id proc_id = {words->job, words->rank, words->worker};
    bool is_ours = event->has_hello && words->to_nonce == rail->iface->nonce;
    verbs_ep *ep = is_ours ? verbs_conn_named(rail->iface, &proc_id, words->incarnation, words->to_incarnation) : NULL;
    verbs_rc_qp *link = ep ? link_for(ep, rail, words->from_rail) : NULL;
    verbs_qp_handshake *half;
    if (!ep && is_ours && verbs_conn_was_left(rail->iface->conn, &proc_id, words->incarnation)) {
        refuse(rail, event->id, words, REFUSED_GONE);
        return;
    }
    if (!link || ep->far.nonce != words->nonce) {
        refuse(rail, event->id, words, REFUSED_STRANGER);
        return;
    }
    ep->meet->remote_incarnation = words->incarnation;
    ep->silent_since_ns = 0;
    half = verbs_qp_handshake_of(link);
    if (!verbs_conn_follow(ep, words->epoch) || half->is_joined || !words->credits) {
        refuse(rail, event->id, words, REFUSED_LATER);
        return;
    }
    if (link->cm && is_smaller(ep)) {
        refuse(rail, event->id, words, REFUSED_CROSSED);
        return;
    }
    if (link->cm)
        verbs_rc_qp_close(link);
    if (!verbs_conn_make_qp_handshake(ep, link)) {
        refuse(rail, event->id, words, REFUSED_LATER);
        return;
    }
    if (!accept_request(link, event)) {
        refuse(rail, event->id, words, REFUSED_LATER);
        verbs_rc_qp_close(link);
        return;
    }
    link->cm = event->id;
    event->id->context = link;
    half->is_active = false;
    joined(link, words, event->reads_in);
}

/* -- events -- */

static void answered(verbs_rc_qp *link, const news *event)
{
    int error = make_ready(link, link->cm);
    if (!event->has_hello || event->hello.to_nonce != link->ep->iface->nonce || event->hello.epoch != link->ep->epoch) {
        give_up_attempt(link, "connect to", "the answer is not meant for us");
        return;
    }
    if (error || (event->type == RDMA_CM_EVENT_CONNECT_RESPONSE && rdma_establish(link->cm))) {
        give_up_attempt(link, "connect to", strerror(error ? error : errno));
        return;
    }
    joined(link, &event->hello, event->reads_in);
    go_up_if_all(link->ep, false);
}

static void rejected(verbs_rc_qp *link, const news *event)
{
    static const char *const words[] = {"it rejected us, without a word", "it is not ready", "requests crossed", "it has left",
                                        "it does not know us"};
    verbs_ep *ep = link->ep;
    uint8_t no = event->has_hello && event->hello.to_nonce == ep->iface->nonce ? event->hello.no : 0;
    give_up_attempt(link, "connect to", words[no < sizeof words / sizeof words[0] ? no : 0]);
    if (no == REFUSED_CROSSED || no == REFUSED_LATER)
        ep->meet->due_links |= (uint8_t)(1u << (link - ep->links));
    if (no)
        ep->silent_since_ns = 0;
    if (no == REFUSED_GONE && event->hello.to_incarnation == ep->meet->incarnation)
        verbs_conn_gone(ep);
}

static void disconnected(verbs_rc_qp *link)
{
    if (verbs_qp_handshake_of(link)->is_joined)
        verbs_conn_renew(link, "the peer ended the connection, or the network did");
    else
        give_up_attempt(link, "connect to", "it ended the connection");
}

/* The accept did not reach the peer in time: it goes on without this QP, which may carry frames and fragments already. A new epoch repeats
 * them. */
static bool is_late_no(verbs_rc_qp *link)
{
    if (verbs_qp_handshake_of(link)->is_joined)
        verbs_conn_renew(link, "the peer did not hear in time that a link is connected, and goes on without");
    return verbs_qp_handshake_of(link)->is_joined;
}

static void handle(const news *event)
{
    verbs_rc_qp *link = event->type == RDMA_CM_EVENT_CONNECT_REQUEST ? NULL : event->id->context;
    if (event->type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        asked(event);
        return;
    }
    if (!link || link->cm != event->id || !link->qp) /* of a listener, or of an attempt that has ended */
        return;
    switch (event->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        step_on(link, event);
        break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        answered(link, event);
        break;
    case RDMA_CM_EVENT_ESTABLISHED:
        if (verbs_qp_handshake_of(link)->is_active && !verbs_qp_handshake_of(link)->is_joined)
            answered(link, event);
        else
            go_up_if_all(link->ep, false);
        break;
    case RDMA_CM_EVENT_REJECTED:
        if (!is_late_no(link))
            rejected(link, event);
        break;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        if (!is_late_no(link))
            give_up_attempt(link, "reach", event->status < 0 ? strerror(-event->status) : rdma_event_str(event->type));
        break;
    case RDMA_CM_EVENT_DISCONNECTED:
        disconnected(link);
        break;
    default:
        break;
    }
}

static void take(const struct rdma_cm_event *event, news *out)
{
    const struct rdma_conn_param *param = &event->param.conn;
    *out = (news){.type = event->event, .id = event->id, .status = event->status,
                  .rail = event->listen_id ? event->listen_id->context : NULL};
    if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST && event->event != RDMA_CM_EVENT_CONNECT_RESPONSE &&
        event->event != RDMA_CM_EVENT_ESTABLISHED && event->event != RDMA_CM_EVENT_REJECTED)
        return;
    out->reads_in = param->responder_resources;
    out->reads_out = param->initiator_depth;
    out->qpn = param->qp_num;
    if (param->private_data && param->private_data_len >= sizeof(hello)) {
        memcpy(&out->hello, param->private_data, sizeof(hello));
        out->has_hello = out->hello.magic == HELLO_MAGIC;
    }
}

int verbs_rdmacm_turn(verbs_iface *iface)
{
    struct verbs_rdmacm *cm = iface->conn->cm;
    struct rdma_cm_event *event;
    int n = 0;
    while (cm && rdma_get_cm_event(cm->channel, &event) == 0) {
        news copy;
        take(event, &copy);
        rdma_ack_cm_event(event);
        handle(&copy);
        n++;
    }
    return n;
}

void verbs_rdmacm_try(verbs_ep *ep)
{
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp && !ep->links[i].cm)
            begin(&ep->links[i]);
    if (ep->meet->is_linked)
        go_up_if_all(ep, ep->iface->now_ns() - ep->meet->linked_ns > STRAGGLER_NS);
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
    verbs_cm_deferred_over(iface, NULL);
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

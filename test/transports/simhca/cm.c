/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm: rdma_cm between simulated devices, by IPv4 addresses: messages of the kernels' connection managers, repeated every few seconds until
 * answered, and their events. As with soft-RoCE, a device that posts such a message while its port is down receives no more of them
 * (simhca_deafen).
 * Invariant: a message names ids by number, never by pointer; a destroyed id drops its events.
 */
#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define AGAIN_NS 4300000000ull
#define TRIES 15
#define DATA_BYTES 148 /* private data of a request by RDMA_PS_TCP: 56 bytes are the user's */
#define REJECT_TIMEOUT 4
#define REJECT_NO_LISTENER 8
#define REJECT_BY_USER 28

enum word { RESOLVED, UNRESOLVED, ROUTED, TIMER, REQUEST, REPLY, READY, REJECT, END };

typedef struct message {
    enum word word;
    uint64_t from, to; /* ids; to 0: the listener */
    hca_device *from_device, *to_device;
    uint16_t port;
    int status;
    uint32_t qpn, psn, tries;
    uint8_t reads_in, reads_out, retries, rnr_retries, bytes;
    uint8_t data[DATA_BYTES];
} message;

enum state { IDLE, LISTENS, ASKS, ASKED, ANSWERED /* by the peer */, ANSWERS, CONNECTED, OVER };

typedef struct cm_id {
    struct rdma_cm_id base;
    weft_list_link link; /* in hca.cm_ids */
    uint64_t number, far;
    enum state state;
    hca_device *device, *far_device;
    uint16_t port, far_port;
    uint32_t psn, tries;
    uint8_t reads_in, reads_out, retries, rnr_retries;
    message said, heard; /* the latest ones needed */
} cm_id;

typedef struct cm_event {
    struct rdma_cm_event base;
    weft_list_link link;
    uint8_t data[DATA_BYTES];
} cm_event;

typedef struct cm_channel {
    struct rdma_event_channel base;
    weft_list_link link, events; /* in hca.cm_channels */
    uint32_t process;            /* that opened it */
} cm_channel;

static cm_id *id_by_number(uint64_t number)
{
    for (weft_list_link *at = hca.cm_ids.next; at != &hca.cm_ids; at = at->next)
        if (weft_container(at, cm_id, link)->number == number)
            return weft_container(at, cm_id, link);
    return NULL;
}

/* -- events -- */

static void tell(cm_id *id, enum rdma_cm_event_type type, int status, cm_id *listener, const message *heard)
{
    cm_event *event = calloc(1, sizeof *event);
    cm_channel *channel = (cm_channel *)id->base.channel;
    event->base = (struct rdma_cm_event){.id = &id->base, .event = type, .status = status, .listen_id = listener ? &listener->base : NULL};
    if (heard && heard->bytes) {
        memcpy(event->data, heard->data, heard->bytes);
        event->base.param.conn = (struct rdma_conn_param){.private_data = event->data, .private_data_len = heard->bytes,
                                                          .responder_resources = heard->reads_out, .initiator_depth = heard->reads_in,
                                                          .qp_num = heard->qpn};
    }
    weft_list_append(&channel->events, &event->link);
    hca_ring(channel->base.fd);
}

int rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **out)
{
    cm_channel *channel = (cm_channel *)base;
    uint64_t one;
    hca_lock();
    weft_list_link *link = weft_list_take(&channel->events);
    if (link && read(base->fd, &one, sizeof one) != sizeof one)
        hca_misuse("a descriptor of rdma_cm's was read by somebody else");
    hca_unlock();
    if (!link) {
        errno = EAGAIN;
        return -1;
    }
    *out = &weft_container(link, cm_event, link)->base;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    free(weft_container(event, cm_event, base));
    return 0;
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    cm_channel *channel = calloc(1, sizeof *channel);
    hca_open_default();
    hca_lock();
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    channel->process = hca.process;
    weft_list_init(&channel->events);
    weft_list_append(&hca.cm_channels, &channel->link);
    hca_unlock();
    return &channel->base;
}

static void forget_events(cm_channel *channel, const cm_id *id)
{
    uint64_t one;
    for (weft_list_link *at = channel->events.next, *next; at != &channel->events; at = next) {
        cm_event *event = weft_container(at, cm_event, link);
        next = at->next;
        if (id && event->base.id != &id->base)
            continue;
        weft_list_remove(at);
        if (read(channel->base.fd, &one, sizeof one) != sizeof one)
            hca_misuse("a descriptor of rdma_cm's was read by somebody else");
        free(event);
    }
}

static void free_channel(cm_channel *channel)
{
    forget_events(channel, NULL);
    weft_list_remove(&channel->link);
    close(channel->base.fd);
    free(channel);
}

void rdma_destroy_event_channel(struct rdma_event_channel *base)
{
    hca_lock();
    free_channel((cm_channel *)base);
    hca_unlock();
}

/* -- messages -- */

static void post(const message *words, uint64_t after)
{
    hca_event *event = hca_event_new(HCA_CM);
    event->body = malloc(sizeof *words);
    memcpy(event->body, words, sizeof *words);
    hca_event_post(event, hca.now + after);
}

static void transmit(const message *words)
{
    hca.counts[SIMHCA_DATAGRAMS]++;
    if (!words->from_device->port.is_up)
        words->from_device->is_deaf = true;
    if (words->from_device->is_dead || !hca_reaches(words->from_device, words->to_device) || hca_chance(hca.profile.lose_permille, 1000))
        hca.counts[SIMHCA_DATAGRAMS_LOST]++;
    else
        post(words, hca_delay(hca.profile.delay_ns, sizeof *words));
}

static message words_of(const cm_id *id, enum word word)
{
    return (message){.word = word, .from = id->number, .to = id->far, .from_device = id->device, .to_device = id->far_device,
                     .port = id->far_port, .psn = id->psn};
}

static void wait_for_answer(cm_id *id)
{
    message timer = {.word = TIMER, .to = id->number, .tries = ++id->tries};
    post(&timer, AGAIN_NS);
}

static void say_again(cm_id *id)
{
    transmit(&id->said);
    wait_for_answer(id);
}

static void reject(const cm_id *id, int status, const void *data, uint8_t bytes)
{
    message no = words_of(id, REJECT);
    no.status = status;
    no.bytes = bytes;
    if (bytes)
        memcpy(no.data, data, bytes);
    transmit(&no);
}

static void say(cm_id *id, enum word word)
{
    message words = words_of(id, word);
    transmit(&words);
}

/* -- receiving -- */

static cm_id *listener_at(const hca_device *device, uint16_t port)
{
    for (weft_list_link *at = hca.cm_ids.next; at != &hca.cm_ids; at = at->next) {
        cm_id *id = weft_container(at, cm_id, link);
        if (id->state == LISTENS && id->device == device && id->port == port)
            return id;
    }
    return NULL;
}

static cm_id *id_of_far(uint64_t far)
{
    for (weft_list_link *at = hca.cm_ids.next; at != &hca.cm_ids; at = at->next)
        if (weft_container(at, cm_id, link)->far == far)
            return weft_container(at, cm_id, link);
    return NULL;
}

static cm_id *make_id(cm_channel *channel, void *context, enum rdma_port_space ps)
{
    cm_id *id = calloc(1, sizeof *id);
    id->base.channel = &channel->base;
    id->base.context = context;
    id->base.ps = ps;
    id->number = ++hca.cm_last;
    id->psn = (uint32_t)hca_random() & 0xffffff;
    weft_list_append(&hca.cm_ids, &id->link);
    return id;
}

static void requested(const message *heard)
{
    cm_id *listener = listener_at(heard->to_device, heard->port), *id = id_of_far(heard->from);
    if (id) {
        if (id->state == ANSWERS)
            transmit(&id->said);
        return;
    }
    if (!listener) {
        message no = {.word = REJECT, .to = heard->from, .from_device = heard->to_device, .to_device = heard->from_device,
                      .status = REJECT_NO_LISTENER};
        transmit(&no);
        return;
    }
    id = make_id((cm_channel *)listener->base.channel, listener->base.context, listener->base.ps);
    id->state = ASKED;
    id->device = heard->to_device;
    id->far_device = heard->from_device;
    id->far = heard->from;
    id->heard = *heard;
    id->reads_in = heard->reads_out; /* the user may set the queue pair to RTS before it answers */
    id->reads_out = heard->reads_in;
    id->retries = heard->retries;
    id->rnr_retries = heard->rnr_retries;
    tell(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, listener, heard);
}

static void replied(cm_id *id, const message *heard)
{
    if (id->state == CONNECTED)
        say(id, READY);
    if (id->state != ASKS)
        return;
    id->state = ANSWERED;
    id->far = heard->from;
    id->heard = *heard;
    tell(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NULL, heard);
}

static void is_over(cm_id *id, enum rdma_cm_event_type type, const message *heard, int status)
{
    if (id->state < ASKS || id->state == OVER)
        return;
    id->state = OVER;
    tell(id, type, status, NULL, heard);
}

/* No answer came. */
static void tire(cm_id *id, const message *timer)
{
    if (timer->tries != id->tries || (id->state != ASKS && id->state != ANSWERS))
        return;
    if (id->tries > TRIES)
        is_over(id, RDMA_CM_EVENT_UNREACHABLE, NULL, -ETIMEDOUT);
    else
        say_again(id);
}

void hca_cm_arrive(hca_event *event)
{
    const message *heard = (const message *)event->body;
    cm_id *id = heard->to ? id_by_number(heard->to) : heard->word == REQUEST ? NULL : id_of_far(heard->from);
    bool is_wired = heard->word >= REQUEST;
    if (is_wired && (heard->to_device->is_deaf || !hca_reaches(heard->from_device, heard->to_device))) {
        hca.counts[SIMHCA_DROPPED]++;
        return;
    }
    if (heard->word == REQUEST)
        requested(heard);
    if (!id)
        return;
    switch (heard->word) {
    case RESOLVED: tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, NULL); break;
    case UNRESOLVED: tell(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, NULL, NULL); break;
    case ROUTED: tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, NULL); break;
    case TIMER: tire(id, heard); break;
    case REQUEST: break;
    case REPLY: replied(id, heard); break;
    case READY:
        if (id->state == ANSWERS) {
            id->state = CONNECTED;
            tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, NULL);
        }
        break;
    case REJECT: is_over(id, RDMA_CM_EVENT_REJECTED, heard, heard->status); break;
    case END: is_over(id, RDMA_CM_EVENT_DISCONNECTED, NULL, 0); break;
    }
}

/* -- ids -- */

static int fails(int error)
{
    hca_unlock();
    errno = error;
    return -1;
}

static int works(void)
{
    hca_unlock();
    return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
    hca_lock();
    *id = &make_id((cm_channel *)channel, context, ps)->base;
    return works();
}

/* Messages that the kernel sends for an id destroyed in the middle of a handshake. */
static void say_goodbye(cm_id *id)
{
    if (id->state == CONNECTED)
        say(id, END);
    else if (id->state == ASKS)
        reject(id, REJECT_TIMEOUT, NULL, 0);
    else if (id->state == ASKED || id->state == ANSWERED || id->state == ANSWERS)
        reject(id, REJECT_BY_USER, NULL, 0);
}

static void free_id(cm_id *id)
{
    say_goodbye(id);
    forget_events((cm_channel *)id->base.channel, id);
    weft_list_remove(&id->link);
    free(id);
}

/* Requests not read are dropped with their listener. */
static void forget_requests(const cm_id *listener)
{
    cm_channel *channel = (cm_channel *)listener->base.channel;
    for (weft_list_link *at = channel->events.next; at != &channel->events;) {
        const struct rdma_cm_event *event = &weft_container(at, cm_event, link)->base;
        at = at->next;
        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->listen_id == &listener->base) {
            free_id((cm_id *)event->id);
            at = channel->events.next;
        }
    }
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    if (id->state == LISTENS)
        forget_requests(id);
    free_id(id);
    return works();
}

static hca_device *device_at(const struct sockaddr *addr)
{
    const struct sockaddr_in *v4 = (const void *)addr;
    for (uint32_t i = 0; addr->sa_family == AF_INET && !hca.profile.is_ib && i < hca.device_count; i++)
        if (hca.devices[i] && memcmp(hca.devices[i]->port.gids[2].raw + 12, &v4->sin_addr, 4) == 0)
            return hca.devices[i];
    return NULL;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *addr)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    id->device = device_at(addr);
    id->port = (uint16_t)(20000 + id->number % 40000);
    return id->device ? works() : fails(EADDRNOTAVAIL);
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
    (void)backlog;
    ((cm_id *)base)->state = LISTENS;
    return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *base) { return htons(((cm_id *)base)->port); }

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    id->device = device_at(from);
    id->far_device = device_at(to);
    id->far_port = ntohs(((const struct sockaddr_in *)(const void *)to)->sin_port);
    if (!id->device || !id->far_device)
        return fails(EADDRNOTAVAIL);
    bool is_there = hca_reaches(id->device, id->far_device);
    message words = {.word = is_there ? RESOLVED : UNRESOLVED, .to = id->number};
    post(&words, is_there ? hca_delay(hca.profile.delay_ns, 0) : (uint64_t)timeout_ms * 1000000);
    return works();
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
    message words = {.word = ROUTED, .to = ((cm_id *)base)->number};
    (void)timeout_ms;
    hca_lock();
    post(&words, hca_delay(hca.profile.delay_ns, 0));
    return works();
}

/* -- connecting -- */

static void say_of(cm_id *id, enum word word, const struct rdma_conn_param *param)
{
    id->said = words_of(id, word);
    id->said.qpn = param->qp_num;
    id->said.reads_in = id->reads_in = param->responder_resources;
    id->said.reads_out = id->reads_out = param->initiator_depth;
    id->said.bytes = param->private_data_len;
    memcpy(id->said.data, param->private_data, param->private_data_len);
    id->said.retries = id->retries = param->retry_count;
    id->said.rnr_retries = id->rnr_retries = param->rnr_retry_count;
    id->tries = 0;
    say_again(id);
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    if (id->state != IDLE || !id->far_device || param->private_data_len > 56)
        return fails(EINVAL);
    id->state = ASKS;
    say_of(id, REQUEST, param);
    return works();
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    if (id->state != ASKED)
        return fails(EINVAL);
    id->state = ANSWERS;
    say_of(id, REPLY, param);
    return works();
}

int rdma_reject(struct rdma_cm_id *base, const void *data, uint8_t bytes)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    if (id->state != ASKED)
        return fails(EINVAL);
    id->state = OVER;
    reject(id, REJECT_BY_USER, data, bytes);
    return works();
}

int rdma_establish(struct rdma_cm_id *base)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    if (id->state != ANSWERED)
        return fails(EINVAL);
    id->state = CONNECTED;
    say(id, READY);
    return works();
}

int rdma_disconnect(struct rdma_cm_id *base)
{
    cm_id *id = (cm_id *)base;
    hca_lock();
    if (id->state != CONNECTED)
        return fails(EINVAL);
    id->state = OVER;
    say(id, END);
    return works();
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
    const cm_id *id = (const cm_id *)base;
    struct ibv_qp_attr to = {.qp_state = attr->qp_state, .port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = id->heard.qpn,
                             .rq_psn = id->heard.psn, .max_dest_rd_atomic = id->reads_in, .max_rd_atomic = id->reads_out, .sq_psn = id->psn,
                             .timeout = 18, .retry_cnt = id->retries, .rnr_retry = id->rnr_retries};
    *attr = to;
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (to.qp_state == IBV_QPS_RTR) {
        attr->ah_attr = (struct ibv_ah_attr){.port_num = 1, .is_global = 1,
                                             .grh = {.dgid = id->far_device->port.gids[3], .sgid_index = 3, .hop_limit = 64}};
        *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                IBV_QP_MIN_RNR_TIMER;
    } else if (to.qp_state == IBV_QPS_RTS) {
        *mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    return event == RDMA_CM_EVENT_UNREACHABLE ? "unreachable" : event == RDMA_CM_EVENT_ADDR_ERROR ? "no such address" : "an event";
}

/* -- the fabric's -- */

bool simhca_deafen(uint32_t host, uint32_t device, int how)
{
    hca_lock();
    hca_device *at = hca_device_at(host, device);
    bool was = at->is_deaf;
    if (how >= 0)
        at->is_deaf = how;
    hca_unlock();
    return was;
}

void hca_cm_kill(uint32_t process)
{
    for (weft_list_link *at = hca.cm_ids.next, *next; at && at != &hca.cm_ids; at = next) {
        cm_id *id = weft_container(at, cm_id, link);
        next = at->next;
        if (((cm_channel *)id->base.channel)->process != process)
            continue;
        if (id->state == LISTENS)
            forget_requests(id);
        free_id(id);
        next = hca.cm_ids.next; /* requests to a listener are ids too */
    }
}

uint32_t hca_cm_close(FILE *out)
{
    uint32_t ids = 0;
    if (!hca.cm_ids.next)
        return 0;
    for (weft_list_link *at; (at = weft_list_take(&hca.cm_ids)) != NULL; ids++)
        free(weft_container(at, cm_id, link));
    while (!weft_list_is_empty(&hca.cm_channels))
        free_channel(weft_container(hca.cm_channels.next, cm_channel, link));
    if (ids && out)
        fprintf(out, "simhca: %u ids of rdma_cm were left open\n", ids);
    return ids;
}

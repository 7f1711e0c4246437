/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame_sock: frames between two ifaces. Each direction has a socket, connected by its sender at the first frame, so simultaneous
 * connections need no agreement. A socket keeps packets whole and in order, also after its sender has ended. A closing iface sends LEAVE on
 * every socket of the pair; a socket that ends without LEAVE means that the peer has failed, which is reported when all its frames were
 * received.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/uring/uring.h"

enum packet_kind { PACKET_HELLO = 1, PACKET_FRAME, PACKET_LEAVE };
typedef struct packet { /* in front of every packet; 8 bytes, so that bodies keep their alignment */
    uint32_t kind, magic;
} packet;
typedef struct framed {
    packet packet;
    weft_hdr hdr;
    uint8_t body[];
} framed;
typedef struct hello {
    packet packet;
    weft_proc_id proc_id;
} hello;
#define MAGIC 0x77656674u
#define PACKET_MAX (sizeof(framed) + URING_FRAME_MAX)

static uring_ep *ep_of(uring_iface *iface, const weft_proc_id *proc_id)
{
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        uring_ep *ep = weft_container(link, uring_ep, link);
        if (ep->proc_id.job == proc_id->job && ep->proc_id.rank == proc_id->rank && ep->proc_id.worker == proc_id->worker)
            return ep;
    }
    return NULL;
}

int uring_ep_open(weft_iface *base, const weft_proc_id *proc_id, const void *bytes_of_addr, size_t bytes, void *peer, weft_ep **out)
{
    uring_iface *iface = (uring_iface *)base;
    uring_iface_addr addr;
    uring_ep *ep;
    if (bytes != sizeof addr)
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u has no address for uring", proc_id->rank);
    memcpy(&addr, bytes_of_addr, sizeof addr);
    if (addr.magic != iface->addr.magic || addr.boot != iface->addr.boot || addr.netns != iface->addr.netns)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "uring reaches processes of its own machine and network namespace; rank %u is elsewhere", proc_id->rank);
    ep = calloc(1, sizeof *ep);
    if (!ep)
        return weft_fail(WEFT_E_NOMEM, "no memory for an ep of %zu bytes", sizeof *ep);
    ep->ep = (weft_ep){.iface = base, .peer = peer};
    ep->proc_id = *proc_id;
    ep->remote = addr;
    ep->out = (uring_source){URING_OUT, -1};
    uring_rma_init(&ep->rma, iface, false);
    weft_list_append(&iface->eps, &ep->link);
    *out = &ep->ep;
    return 0;
}

void uring_frame_sock_break(uring_iface *iface, uring_ep *ep)
{
    uring_unwatch(iface->epoll, &ep->out);
    if (ep->is_broken || ep->has_left)
        return;
    ep->is_broken = true;
    iface->broken++;
}

/* -- out -- */

static void want(uring_iface *iface, uring_ep *ep, bool wants_room)
{
    struct epoll_event event = {.events = wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = &ep->out};
    if (ep->wants_writable == wants_room)
        return;
    ep->wants_writable = wants_room;
    epoll_ctl(iface->epoll, EPOLL_CTL_MOD, ep->out.fd, &event);
}

/* 0, AGAIN or an error. */
static int connect_out(uring_iface *iface, uring_ep *ep)
{
    hello hello = {{PACKET_HELLO, MAGIC}, iface->self};
    int rc;
    ep->out.fd = uring_socket_connect(&ep->remote, 'f');
    if (ep->out.fd < 0 && errno == EAGAIN) {
        iface->tries_again = true;
        return WEFT_AGAIN;
    }
    if (ep->out.fd < 0 && errno != ECONNREFUSED)
        return weft_fail(WEFT_E_SYSTEM, "no socket to rank %u: %s", ep->proc_id.rank, strerror(errno));
    ep->wants_writable = false;
    rc = ep->out.fd < 0 ? 0 : uring_watch(iface->epoll, &ep->out, EPOLLIN);
    if (rc)
        return rc;
    if (ep->out.fd < 0 || send(ep->out.fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof hello) {
        uring_frame_sock_break(iface, ep);
        return WEFT_AGAIN;
    }
    return 0;
}

/* Handles an event of a sending socket: LEAVE, end of file, or writable. */
static int out_event(uring_iface *iface, uring_ep *ep, uint32_t events)
{
    packet packet;
    ssize_t bytes;
    if (!(events & ~(uint32_t)EPOLLOUT)) {
        want(iface, ep, false);
        return 1;
    }
    bytes = recv(ep->out.fd, &packet, sizeof packet, MSG_DONTWAIT);
    if (bytes < 0 && errno == ECONNRESET) /* checked first, even if a packet waits */
        bytes = recv(ep->out.fd, &packet, sizeof packet, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (bytes == sizeof packet && packet.kind == PACKET_LEAVE)
        ep->has_left = true;
    uring_frame_sock_break(iface, ep);
    return 1;
}

int uring_send(weft_iface *base, weft_ep *base_ep, const weft_frame *frame)
{
    uring_iface *iface = (uring_iface *)base;
    uring_ep *ep = (uring_ep *)base_ep;
    packet packet = {PACKET_FRAME, MAGIC};
    struct iovec parts[] = {{&packet, sizeof packet}, {(void *)&frame->hdr, sizeof frame->hdr},
                            {(void *)frame->body, frame->hdr.bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = frame->hdr.bytes ? 3 : 2};
    int rc;
    if (frame->hdr.bytes > URING_FRAME_MAX)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", frame->hdr.bytes, URING_FRAME_MAX);
    if (ep->is_failed)
        return weft_fail(WEFT_E_PEER, "rank %u has ended", ep->proc_id.rank);
    if (ep->has_left)
        return 0; /* the peer has left and receives nothing more: this side's LEAVE and credits are dropped */
    if (ep->is_broken)
        return WEFT_AGAIN; /* reported by poll */
    if (ep->out.fd < 0 && (rc = connect_out(iface, ep)))
        return rc;
    if (frame->pack && frame->hdr.bytes) {
        frame->pack(frame, iface->frame_out);
        parts[2].iov_base = iface->frame_out;
    }
    if (sendmsg(ep->out.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
        want(iface, ep, false);
        return 0;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM)
        want(iface, ep, true);
    else if (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED)
        out_event(iface, ep, EPOLLIN); /* has it left, or failed? */
    else
        return weft_fail(WEFT_E_SYSTEM, "a frame of %u bytes to rank %u: sendmsg failed: %s", frame->hdr.bytes,
                         ep->proc_id.rank, strerror(errno));
    return WEFT_AGAIN;
}

/* -- in -- */

static void close_in(uring_iface *iface, uring_in *in)
{
    uring_unwatch(iface->epoll, &in->source);
    weft_list_remove(&in->link);
    free(in);
}

static int accept_in(uring_iface *iface)
{
    int fd = uring_socket_accept(iface->listen.fd);
    uring_in *in = fd >= 0 ? calloc(1, sizeof *in) : NULL;
    if (!in) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    in->source = (uring_source){URING_IN, fd};
    weft_list_append(&iface->ins, &in->link);
    if (uring_watch(iface->epoll, &in->source, EPOLLIN))
        close_in(iface, in);
    return 1;
}

static void on_hello(uring_iface *iface, uring_in *in, const hello *hello, size_t bytes)
{
    if (bytes == sizeof *hello && hello->packet.kind == PACKET_HELLO && hello->packet.magic == MAGIC) {
        weft_proc_id proc_id = hello->proc_id;
        in->ep = ep_of(iface, &proc_id);
        if (!in->ep && iface->iface.callbacks->accept_peer(iface->iface.owner, &proc_id))
            in->ep = ep_of(iface, &proc_id);
    }
    if (!in->ep)
        close_in(iface, in);
}

static int in_event(uring_iface *iface, uring_in *in)
{
    framed *frame = iface->frame_in;
    uring_ep *ep = in->ep;
    ssize_t bytes = recv(in->source.fd, frame, PACKET_MAX, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (bytes <= 0) {
        if (ep && in->has_left)
            ep->has_left = true;
        close_in(iface, in);
        if (ep)
            uring_frame_sock_break(iface, ep);
    } else if (!ep) {
        on_hello(iface, in, (const hello *)frame, (size_t)bytes);
    } else if (frame->packet.kind == PACKET_LEAVE) {
        in->has_left = true;
    } else if ((size_t)bytes >= sizeof *frame && (size_t)bytes == sizeof *frame + frame->hdr.bytes) {
        iface->iface.callbacks->recv_frame(iface->iface.owner, ep->ep.peer, &frame->hdr, frame->body);
    }
    return 1;
}

int uring_frame_sock_event(uring_iface *iface, uring_source *source, uint32_t events)
{
    if (source->kind == URING_LISTEN)
        return accept_in(iface);
    if (source->kind == URING_IN)
        return in_event(iface, weft_container(source, uring_in, source));
    return out_event(iface, weft_container(source, uring_ep, out), events);
}

/* May frames of this peer still come? */
static bool is_drained(uring_iface *iface, const uring_ep *ep)
{
    struct pollfd listen = {.fd = iface->listen.fd, .events = POLLIN};
    for (weft_list_link *link = iface->ins.next; link != &iface->ins; link = link->next) {
        uring_in *in = weft_container(link, uring_in, link);
        if (in->ep == ep || !in->ep)
            return false;
    }
    return poll(&listen, 1, 0) == 0;
}

int uring_frame_sock_deaths(uring_iface *iface)
{
    int told = 0;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps;) {
        uring_ep *ep = weft_container(link, uring_ep, link);
        link = link->next;
        if (!ep->is_broken || ep->is_failed || !is_drained(iface, ep))
            continue;
        iface->broken--;
        if (ep->has_left) { /* its LEAVE came after the end of another socket */
            ep->is_broken = false;
            continue;
        }
        ep->is_failed = true;
        told++;
        iface->iface.callbacks->peer_failed(iface->iface.owner, ep->ep.peer,
                            weft_fail(WEFT_E_PEER, "rank %u hung up without a word: its process ended", ep->proc_id.rank));
        break; /* the callback may close eps: scan again next time */
    }
    return told;
}

/* -- closing -- */

/* false: not yet, the socket is full. */
static bool send_leave(uring_iface *iface, uring_source *source)
{
    packet packet = {PACKET_LEAVE, MAGIC};
    if (source->fd >= 0 && send(source->fd, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EAGAIN)
        return false;
    uring_unwatch(iface->epoll, source);
    return true;
}

static void close_ep(uring_iface *iface, uring_ep *ep)
{
    for (weft_list_link *link = iface->ins.next; link != &iface->ins;) {
        uring_in *in = weft_container(link, uring_in, link);
        link = link->next;
        if (in->ep != ep)
            continue;
        send_leave(iface, &in->source); /* nothing else was written there: it is not full */
        close_in(iface, in);
    }
    uring_unwatch(iface->epoll, &ep->out);
    iface->broken -= ep->is_broken && !ep->is_failed;
    weft_list_remove(&ep->link);
    free(ep);
}

static int close_rma(uring_iface *iface, uring_ep *ep)
{
    uring_op *op = calloc(1, sizeof *op);
    if (!op)
        return weft_fail(WEFT_E_NOMEM, "no memory to close the ep to rank %u", ep->proc_id.rank);
    op->kind = URING_CLOSE;
    op->ep = ep;
    ep->is_closing = true;
    ep->ops_open++;
    uring_hca_post(iface, op);
    return WEFT_AGAIN;
}

int uring_ep_close(weft_iface *base, weft_ep *base_ep)
{
    uring_iface *iface = (uring_iface *)base;
    uring_ep *ep = (uring_ep *)base_ep;
    if (ep->ops_open)
        return WEFT_AGAIN;
    if (!ep->is_closing)
        return close_rma(iface, ep);
    if (!send_leave(iface, &ep->out)) {
        want(iface, ep, true);
        return WEFT_AGAIN;
    }
    close_ep(iface, ep);
    return 0;
}

void uring_frame_sock_close(uring_iface *iface)
{
    weft_list_link *link;
    while ((link = weft_list_first(&iface->eps)))
        close_ep(iface, weft_container(link, uring_ep, link));
    while ((link = weft_list_first(&iface->ins)))
        close_in(iface, weft_container(link, uring_in, link));
}

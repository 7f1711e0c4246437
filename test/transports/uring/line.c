/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line: frames between two ports. Each direction has a socket of its own, connected by the sender at its first frame, so that two
 * who meet at the same time need no agreement. A socket keeps packets whole and in order, and holds what was sent by a process
 * that has ended. Who parts in peace says LEAVE on every socket of the pair; one that ends without is a death, told when both its
 * frames are read to the end and nothing of it can still wait to be accepted.
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
    weft_head head;
    uint8_t body[];
} framed;
typedef struct hello {
    packet packet;
    weft_name name;
} hello;
#define MAGIC 0x77656674u
#define PACKET_MAX (sizeof(framed) + URING_FRAME_MAX)

static uring_path *path_of(uring_port *port, const weft_name *name)
{
    for (weft_link *link = port->paths.next; link != &port->paths; link = link->next) {
        uring_path *path = weft_container(link, uring_path, link);
        if (path->name.job == name->job && path->name.rank == name->rank && path->name.lane == name->lane)
            return path;
    }
    return NULL;
}

int uring_reach(weft_port *base, const weft_name *who, const void *bytes_of_card, size_t bytes, void *peer, weft_path **out)
{
    uring_port *port = (uring_port *)base;
    uring_card card;
    uring_path *path;
    if (bytes != sizeof card)
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u has no address for uring", who->rank);
    memcpy(&card, bytes_of_card, sizeof card);
    if (card.magic != port->card.magic || card.boot != port->card.boot || card.netns != port->card.netns)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "uring reaches processes of its own machine and network namespace; rank %u is elsewhere", who->rank);
    path = calloc(1, sizeof *path);
    if (!path)
        return weft_fail(WEFT_E_NOMEM, "no memory for a path of %zu bytes", sizeof *path);
    path->path = (weft_path){.port = base, .peer = peer};
    path->name = *who;
    path->far = card;
    path->out = (uring_source){URING_OUT, -1};
    uring_wire_init(&path->wire, port, false);
    weft_list_append(&port->paths, &path->link);
    *out = &path->path;
    return 0;
}

void uring_line_break(uring_port *port, uring_path *path)
{
    uring_unwatch(port->epoll, &path->out);
    if (path->is_broken || path->has_left)
        return;
    path->is_broken = true;
    port->broken++;
}

/* -- out -- */

static void want(uring_port *port, uring_path *path, bool wants_room)
{
    struct epoll_event event = {.events = wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = &path->out};
    if (path->wants_room == wants_room)
        return;
    path->wants_room = wants_room;
    epoll_ctl(port->epoll, EPOLL_CTL_MOD, path->out.fd, &event);
}

/* 0, AGAIN or an error. */
static int connect_out(uring_port *port, uring_path *path)
{
    hello hello = {{PACKET_HELLO, MAGIC}, port->self};
    int rc;
    path->out.fd = uring_socket_connect(&path->far, 'f');
    if (path->out.fd < 0 && errno == EAGAIN) {
        port->tries_again = true;
        return WEFT_AGAIN;
    }
    if (path->out.fd < 0 && errno != ECONNREFUSED)
        return weft_fail(WEFT_E_SYSTEM, "no socket to rank %u: %s", path->name.rank, strerror(errno));
    path->wants_room = false;
    rc = path->out.fd < 0 ? 0 : uring_watch(port->epoll, &path->out, EPOLLIN);
    if (rc)
        return rc;
    if (path->out.fd < 0 || send(path->out.fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof hello) {
        uring_line_break(port, path);
        return WEFT_AGAIN;
    }
    return 0;
}

/* What a socket that we send on has to say: LEAVE, its end, or room. */
static int out_event(uring_port *port, uring_path *path, uint32_t events)
{
    packet packet;
    ssize_t bytes;
    if (!(events & ~(uint32_t)EPOLLOUT)) {
        want(port, path, false);
        return 1;
    }
    bytes = recv(path->out.fd, &packet, sizeof packet, MSG_DONTWAIT);
    if (bytes < 0 && errno == ECONNRESET) /* told first, also when a packet waits */
        bytes = recv(path->out.fd, &packet, sizeof packet, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (bytes == sizeof packet && packet.kind == PACKET_LEAVE)
        path->has_left = true;
    uring_line_break(port, path);
    return 1;
}

int uring_send(weft_port *base, weft_path *base_path, const weft_frame *frame)
{
    uring_port *port = (uring_port *)base;
    uring_path *path = (uring_path *)base_path;
    packet packet = {PACKET_FRAME, MAGIC};
    struct iovec parts[] = {{&packet, sizeof packet}, {(void *)&frame->head, sizeof frame->head},
                            {(void *)frame->body, frame->head.bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = frame->head.bytes ? 3 : 2};
    int rc;
    if (frame->head.bytes > URING_FRAME_MAX)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", frame->head.bytes, URING_FRAME_MAX);
    if (path->is_lost)
        return weft_fail(WEFT_E_PEER, "rank %u has ended", path->name.rank);
    if (path->has_left)
        return 0; /* it parted in peace and hears no more: our own word of parting, or credits, are lost on it */
    if (path->is_broken)
        return WEFT_AGAIN; /* poll will tell */
    if (path->out.fd < 0 && (rc = connect_out(port, path)))
        return rc;
    if (frame->fill && frame->head.bytes) {
        frame->fill(frame, port->frame_out);
        parts[2].iov_base = port->frame_out;
    }
    if (sendmsg(path->out.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
        want(port, path, false);
        return 0;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM)
        want(port, path, true);
    else if (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED)
        out_event(port, path, EPOLLIN); /* did it part, or die? */
    else
        return weft_fail(WEFT_E_SYSTEM, "a frame of %u bytes to rank %u: sendmsg failed: %s", frame->head.bytes,
                         path->name.rank, strerror(errno));
    return WEFT_AGAIN;
}

/* -- in -- */

static void close_in(uring_port *port, uring_in *in)
{
    uring_unwatch(port->epoll, &in->source);
    weft_list_remove(&in->link);
    free(in);
}

static int accept_in(uring_port *port)
{
    int fd = uring_socket_accept(port->listen.fd);
    uring_in *in = fd >= 0 ? calloc(1, sizeof *in) : NULL;
    if (!in) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    in->source = (uring_source){URING_IN, fd};
    weft_list_append(&port->ins, &in->link);
    if (uring_watch(port->epoll, &in->source, EPOLLIN))
        close_in(port, in);
    return 1;
}

static void greet(uring_port *port, uring_in *in, const hello *hello, size_t bytes)
{
    if (bytes == sizeof *hello && hello->packet.kind == PACKET_HELLO && hello->packet.magic == MAGIC) {
        weft_name name = hello->name;
        in->path = path_of(port, &name);
        if (!in->path && port->port.up->greet(port->port.owner, &name))
            in->path = path_of(port, &name);
    }
    if (!in->path)
        close_in(port, in);
}

static int in_event(uring_port *port, uring_in *in)
{
    framed *frame = port->frame_in;
    uring_path *path = in->path;
    ssize_t bytes = recv(in->source.fd, frame, PACKET_MAX, MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (bytes <= 0) {
        if (path && in->has_left)
            path->has_left = true;
        close_in(port, in);
        if (path)
            uring_line_break(port, path);
    } else if (!path) {
        greet(port, in, (const hello *)frame, (size_t)bytes);
    } else if (frame->packet.kind == PACKET_LEAVE) {
        in->has_left = true;
    } else if ((size_t)bytes >= sizeof *frame && (size_t)bytes == sizeof *frame + frame->head.bytes) {
        port->port.up->arrive(port->port.owner, path->path.peer, &frame->head, frame->body);
    }
    return 1;
}

int uring_line_event(uring_port *port, uring_source *source, uint32_t events)
{
    if (source->kind == URING_LISTEN)
        return accept_in(port);
    if (source->kind == URING_IN)
        return in_event(port, weft_container(source, uring_in, source));
    return out_event(port, weft_container(source, uring_path, out), events);
}

/* May frames of this peer still come? */
static bool is_drained(uring_port *port, const uring_path *path)
{
    struct pollfd listen = {.fd = port->listen.fd, .events = POLLIN};
    for (weft_link *link = port->ins.next; link != &port->ins; link = link->next) {
        uring_in *in = weft_container(link, uring_in, link);
        if (in->path == path || !in->path)
            return false;
    }
    return poll(&listen, 1, 0) == 0;
}

int uring_line_deaths(uring_port *port)
{
    int told = 0;
    for (weft_link *link = port->paths.next; link != &port->paths;) {
        uring_path *path = weft_container(link, uring_path, link);
        link = link->next;
        if (!path->is_broken || path->is_lost || !is_drained(port, path))
            continue;
        port->broken--;
        if (path->has_left) { /* its word came after the end of another socket */
            path->is_broken = false;
            continue;
        }
        path->is_lost = true;
        told++;
        port->port.up->lost(port->port.owner, path->path.peer,
                            weft_fail(WEFT_E_PEER, "rank %u hung up without a word: its process ended", path->name.rank));
        break; /* who was told may leave paths: look anew next time */
    }
    return told;
}

/* -- parting -- */

/* false: not yet, the socket is full. */
static bool say_leave(uring_port *port, uring_source *source)
{
    packet packet = {PACKET_LEAVE, MAGIC};
    if (source->fd >= 0 && send(source->fd, &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EAGAIN)
        return false;
    uring_unwatch(port->epoll, source);
    return true;
}

static void close_path(uring_port *port, uring_path *path)
{
    for (weft_link *link = port->ins.next; link != &port->ins;) {
        uring_in *in = weft_container(link, uring_in, link);
        link = link->next;
        if (in->path != path)
            continue;
        say_leave(port, &in->source); /* nothing else was ever written there: it is not full */
        close_in(port, in);
    }
    uring_unwatch(port->epoll, &path->out);
    port->broken -= path->is_broken && !path->is_lost;
    weft_list_remove(&path->link);
    free(path);
}

static int close_wire(uring_port *port, uring_path *path)
{
    uring_op *op = calloc(1, sizeof *op);
    if (!op)
        return weft_fail(WEFT_E_NOMEM, "no memory to part from rank %u", path->name.rank);
    op->kind = URING_CLOSE;
    op->path = path;
    path->is_closing = true;
    path->ops_open++;
    uring_hca_post(port, op);
    return WEFT_AGAIN;
}

int uring_leave(weft_port *base, weft_path *base_path)
{
    uring_port *port = (uring_port *)base;
    uring_path *path = (uring_path *)base_path;
    if (path->ops_open)
        return WEFT_AGAIN;
    if (!path->is_closing)
        return close_wire(port, path);
    if (!say_leave(port, &path->out)) {
        want(port, path, true);
        return WEFT_AGAIN;
    }
    close_path(port, path);
    return 0;
}

void uring_line_close(uring_port *port)
{
    weft_link *link;
    while ((link = weft_list_first(&port->paths)))
        close_path(port, weft_container(link, uring_path, link));
    while ((link = weft_list_first(&port->ins)))
        close_in(port, weft_container(link, uring_in, link));
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * acceptor: see acceptor.h. A pending_conn gets one answer from the head, after a hello that was made with the secret.
 */
#include "tools/mpirun/acceptor.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/mpirun/contact.h"

#define HANDSHAKE_LIMIT_NS 5000000000u

int acceptor_open(acceptor *self, const unsigned char *secret, const acceptor_callbacks *up)
{
    *self = (acceptor){.secret = secret, .up = *up, .listener = contact_listen()};
    for (int i = 0; i < PENDING_CONNS_MAX; i++)
        self->pending_conns[i].fd = -1;
    return self->listener < 0 ? -1 : 0;
}

static void pending_conn_drop(pending_conn *one)
{
    if (one->fd >= 0)
        close(one->fd);
    one->fd = -1;
}

static void on_hello(acceptor *self, pending_conn *one)
{
    ctrl_hello hello;

    memcpy(&hello, one->bytes, sizeof(hello));
    uint32_t node = le32toh(hello.node);
    if (!ctrl_hello_is_valid(self->secret, &hello) || !self->up.is_expected(self->up.owner, node)) {
        pending_conn_drop(one);
        return;
    }
    ctrl_answer_make(self->secret, &hello, &one->answer);
    one->is_answered = true;
    bool is_sent = send(one->fd, &one->answer, sizeof(one->answer), MSG_NOSIGNAL) == (ssize_t)sizeof(one->answer);
    if (!one->answer.is_other && is_sent)
        return;
    pending_conn_drop(one);
    if (one->answer.is_other) {
        char why[160];
        snprintf(why, sizeof(why), "it has Weft %.31s (protocol %u), and this mpirun is Weft " PACKAGE_VERSION " (protocol %u)",
                 hello.release, le32toh(hello.version), CTRL_VERSION);
        self->up.other_release(self->up.owner, node, why);
    }
}

static void on_proof(acceptor *self, pending_conn *one)
{
    unsigned char proof[32];
    ctrl_hello hello;
    int fd = one->fd;

    memcpy(&hello, one->bytes, sizeof(hello));
    ctrl_proof_make(self->secret, &hello, &one->answer, proof);
    if (!weft_bytes_equal(proof, one->bytes + sizeof(hello), sizeof(proof)) || !self->up.is_expected(self->up.owner, le32toh(hello.node))) {
        pending_conn_drop(one);
        return;
    }
    one->fd = -1;
    self->up.connected(self->up.owner, le32toh(hello.node), fd, &hello, &one->answer);
}

static void pending_conn_progress(acceptor *self, pending_conn *one)
{
    size_t want = one->is_answered ? sizeof(one->bytes) : sizeof(ctrl_hello);
    ssize_t n = recv(one->fd, one->bytes + one->used, want - one->used, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        pending_conn_drop(one);
        return;
    }
    one->used += (size_t)n;
    if (one->used == sizeof(ctrl_hello) && !one->is_answered)
        on_hello(self, one);
    else if (one->used == sizeof(one->bytes))
        on_proof(self, one);
}

static void source_of(const struct sockaddr_storage *name, unsigned char *source)
{
    memset(source, 0, SOURCE_BYTES);
    if (name->ss_family == AF_INET) {
        source[10] = source[11] = 0xff;
        memcpy(source + 12, &((const struct sockaddr_in *)name)->sin_addr, 4);
    } else if (name->ss_family == AF_INET6) {
        const struct in6_addr *address = &((const struct sockaddr_in6 *)name)->sin6_addr;
        memcpy(source, address, IN6_IS_ADDR_V4MAPPED(address) ? 16 : 8);
    }
}

/* Connections of that source without a valid hello. */
static int strangers_of(const acceptor *self, const unsigned char *source)
{
    int count = 0;

    for (int i = 0; i < PENDING_CONNS_MAX; i++) {
        const pending_conn *one = &self->pending_conns[i];
        count += one->fd >= 0 && !one->is_answered && !memcmp(one->source, source, SOURCE_BYTES);
    }
    return count;
}

/* An unused one, else the one that is displaced; NULL: all have sent a valid hello. */
static pending_conn *pending_conn_place(acceptor *self)
{
    pending_conn *place = NULL;
    int most = 0;

    for (int i = 0; i < PENDING_CONNS_MAX; i++) {
        pending_conn *one = &self->pending_conns[i];
        if (one->fd < 0)
            return one;
        int count = one->is_answered ? 0 : strangers_of(self, one->source);
        if (count > most || (count && count == most && one->deadline_ns < place->deadline_ns)) {
            most = count;
            place = one;
        }
    }
    return place;
}

static void pending_conns_accept(acceptor *self)
{
    for (int i = 0; i < PENDING_CONNS_MAX && self->listener >= 0; i++) {
        pending_conn *place = pending_conn_place(self);
        struct sockaddr_storage name = {0};
        socklen_t bytes = sizeof(name);
        int fd = place ? accept4(self->listener, (struct sockaddr *)&name, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        if (fd < 0)
            return;
        pending_conn_drop(place);
        *place = (pending_conn){.fd = fd, .deadline_ns = weft_clock_ns() + HANDSHAKE_LIMIT_NS};
        source_of(&name, place->source);
        pending_conn_progress(self, place); /* a hello that is there already keeps its connection */
    }
}

/* Entry 0 is the listener, then the pending connections; absent ones are -1. */
void acceptor_pollfds(const acceptor *self, struct pollfd *set)
{
    bool has_room = false;

    for (int i = 0; i < PENDING_CONNS_MAX; i++) {
        set[1 + i] = (struct pollfd){.fd = self->pending_conns[i].fd, .events = POLLIN};
        has_room |= self->pending_conns[i].fd < 0 || !self->pending_conns[i].is_answered;
    }
    set[0] = (struct pollfd){.fd = has_room ? self->listener : -1, .events = POLLIN}; /* none free: the listen backlog holds them */
}

void acceptor_progress(acceptor *self, const struct pollfd *set)
{
    for (int i = 0; i < PENDING_CONNS_MAX; i++)
        if (set[1 + i].revents && self->pending_conns[i].fd >= 0)
            pending_conn_progress(self, &self->pending_conns[i]);
    if (set[0].revents)
        pending_conns_accept(self);
}

uint64_t acceptor_deadlines(acceptor *self)
{
    uint64_t now = weft_clock_ns(), next = 0;

    for (int i = 0; i < PENDING_CONNS_MAX; i++) {
        pending_conn *one = &self->pending_conns[i];
        if (one->fd >= 0 && now >= one->deadline_ns)
            pending_conn_drop(one);
        if (one->fd >= 0 && (!next || one->deadline_ns < next))
            next = one->deadline_ns;
    }
    return next;
}

void acceptor_close(acceptor *self)
{
    for (int i = 0; i < PENDING_CONNS_MAX; i++)
        pending_conn_drop(&self->pending_conns[i]);
    if (self->listener >= 0)
        close(self->listener);
    self->listener = -1;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wakeup_sock: see wakeup_sock.h. Datagram sockets with abstract names.
 */
#include "mem/wakeup_sock.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_TRIES 4
#define DRAIN_MAX 4096 /* bound per call, against a flood by a foreign sender */

/* The process's sending socket, opened at the first wake-up; -1 before. If the program closed it, the next send fails and another is
 * opened. */
static _Atomic int sender = -1;

static socklen_t address_of(uint64_t name, struct sockaddr_un *address)
{
    int n;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "weft-wakeup-%016llx", (unsigned long long)name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int datagram_socket(void)
{
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Binds to a random name, which no other process can have bound before, nor a stale sender mean. */
static bool bind_to_fresh_name(int fd, uint64_t *name)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        struct sockaddr_un address;
        socklen_t bytes;
        if (getrandom(name, sizeof *name, GRND_NONBLOCK) != (ssize_t)sizeof *name || !*name)
            continue;
        bytes = address_of(*name, &address);
        if (bind(fd, (struct sockaddr *)&address, bytes) == 0)
            return true;
    }
    return false;
}

int weft_wakeup_sock_open(weft_wakeup_sock *sock)
{
    uint64_t name = 0;
    int fd = datagram_socket();
    if (fd < 0)
        return -1;
    if (!bind_to_fresh_name(fd, &name)) {
        close(fd);
        return -1;
    }
    atomic_store_explicit(&sock->is_unreachable, 0, memory_order_relaxed);
    /* release: a waker that then finds `asleep` set sees the name; pairs with weft_page_wake()'s exchange */
    atomic_store_explicit(&sock->name, name, memory_order_release);
    return fd;
}

void weft_wakeup_sock_close(weft_wakeup_sock *sock, int fd)
{
    atomic_store_explicit(&sock->name, 0, memory_order_release);
    close(fd);
}

void weft_wakeup_sock_drain(int fd)
{
    char byte;
    for (int i = 0; i < DRAIN_MAX && recv(fd, &byte, sizeof byte, MSG_DONTWAIT) >= 0; i++)
        ;
}

/* 0 or errno. */
static int send_to(int fd, uint64_t name)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(name, &address);
    ssize_t sent;
    do
        sent = sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address, bytes);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

/* Sends by a new socket with no unread bytes pending: EAGAIN then means that the owner's queue is full. may_store: may become sender. */
static int send_afresh(uint64_t name, bool may_store)
{
    int fd = datagram_socket(), rc, none = -1;
    if (fd < 0)
        return errno;
    rc = send_to(fd, name);
    if (!may_store || !atomic_compare_exchange_strong_explicit(&sender, &none, fd, memory_order_relaxed, memory_order_relaxed))
        close(fd);
    return rc;
}

void weft_wakeup_sock_send(weft_wakeup_sock *sock, uint64_t name)
{
    int keep = errno, fd = atomic_load_explicit(&sender, memory_order_relaxed);
    int rc = fd < 0 ? send_afresh(name, true) : send_to(fd, name);
    if (rc == EBADF || rc == ENOTSOCK || rc == EINVAL || rc == EAFNOSUPPORT || rc == EISCONN || rc == EOPNOTSUPP || rc == EPROTOTYPE) {
        /* the program closed it; the number may be another file's now */
        atomic_compare_exchange_strong_explicit(&sender, &fd, -1, memory_order_relaxed, memory_order_relaxed);
        rc = send_afresh(name, true);
    } else if (rc == EAGAIN) { /* unread bytes at other receivers may fill the send buffer */
        rc = send_afresh(name, false);
    }
    if (rc && rc != EAGAIN)
        atomic_store_explicit(&sock->is_unreachable, 1, memory_order_relaxed);
    errno = keep;
}

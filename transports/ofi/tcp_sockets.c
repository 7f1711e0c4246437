/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_sockets: the TCP connections of libfabric's tcp, found in its epoll set as /proc shows it. libfabric sets no keepalive, so a
 * connection that a firewall has forgotten, or whose other end broke unseen, would be kept for ever, and libfabric refuses the peer's new
 * one meanwhile. The kernel alone gives up a connection with data under way after a quarter of an hour. TCP_USER_TIMEOUT would be simpler,
 * but ends a connection to a peer that computes behind a full receive buffer, too. So a connection is shut down if the kernel has
 * retransmitted several times and heard nothing for long; libfabric then completes its operations with errors.
 */
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/knob.h"
#include "base/log.h"
#include "transports/ofi/ofi.h"

#define RETRANSMITS 4u     /* without an answer: 3 s and more */
#define SYN_RETRANSMITS 2u /* of the first packet: after 3 s the kernel waits ever longer, while the link may work again */

/* A share of the deadline after which a peer is lost, s. */
static int share_s(int divisor) { return weft_knob.peer_timeout_s / divisor < 1 ? 1 : weft_knob.peer_timeout_s / divisor; }

void ofi_tcp_keep_alive(int fd)
{
    const int on = 1, idle = share_s(4), interval = share_s(8), count = 4;
    int is_on = 1;
    socklen_t bytes = sizeof is_on;
    if (getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &is_on, &bytes) || is_on)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static bool is_dead(int fd)
{
    struct tcp_info info;
    socklen_t bytes = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes))
        return false;
    if (info.tcpi_state == TCP_SYN_SENT)
        return info.tcpi_retransmits >= SYN_RETRANSMITS;
    if (info.tcpi_state == TCP_CLOSE)
        return true; /* libfabric does not look for EPOLLHUP alone */
    return info.tcpi_state == TCP_ESTABLISHED && info.tcpi_unacked && info.tcpi_retransmits >= RETRANSMITS &&
           info.tcpi_last_ack_recv > 1000u * (uint32_t)share_s(4);
}

static void check(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof type;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &type, &bytes) || type != IPPROTO_TCP)
        return;
    ofi_tcp_keep_alive(fd);
    if (!is_dead(fd))
        return;
    weft_log_info("a TCP connection is ended: the peer's host does not answer");
    shutdown(fd, SHUT_RDWR);
}

void ofi_tcp_sockets_check(ofi_iface *iface)
{
    char line[256];
    FILE *info;
    int fd;
    if (iface->sockets < 0)
        return;
    snprintf(line, sizeof line, "/proc/self/fdinfo/%d", iface->sockets);
    info = fopen(line, "re");
    if (!info)
        return;
    pthread_mutex_lock(&iface->flusher.lock); /* a send may close a socket, and its number would be another file's */
    while (fgets(line, sizeof line, info))
        if (sscanf(line, "tfd: %d", &fd) == 1)
            check(fd);
    pthread_mutex_unlock(&iface->flusher.lock);
    fclose(info);
}

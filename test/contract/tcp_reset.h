/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_reset: resets a TCP connection of the process itself: connect() to AF_UNSPEC sends RST and drops what is in the buffers.
 */
#ifndef WEFT_TEST_CONTRACT_TCP_RESET_H
#define WEFT_TEST_CONTRACT_TCP_RESET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define TCP_RESET_FDS 1024

static inline bool tcp_reset_is_connection(int fd)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer, size = sizeof(int);
    int protocol = 0;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP &&
           getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0;
}

/* Resets one connection whose descriptor is not below `first`, chosen by `random`. False: there is none, or it could not be reset. */
static inline bool tcp_reset_one(int first, uint64_t random)
{
    int fds[TCP_RESET_FDS], count = 0;
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    for (int fd = first; fd < TCP_RESET_FDS; fd++)
        if (tcp_reset_is_connection(fd))
            fds[count++] = fd;
    if (!count)
        return false;
    const int fd = fds[random % (uint64_t)count];
    if (connect(fd, &none, sizeof none))
        return false;
    shutdown(fd, SHUT_RDWR);
    return true;
}

#endif

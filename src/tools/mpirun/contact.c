/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contact: see contact.h. The line holds all addresses of the head: each daemon finds one that works (head_connect.c). Loopback addresses
 * serve agents that start a daemon on this machine.
 */
#include "tools/mpirun/contact.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDRESSES_MAX 32

/* Connections inherit the receive buffer, which must hold a daemon's WINDOW; the kernel doubles the size and caps it at rmem_max. */
static int listen_at(int fd, const void *name, socklen_t bytes)
{
    int capacity = 1 << 20;

    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &capacity, sizeof(capacity));
    return bind(fd, name, bytes) || listen(fd, 1024) ? -1 : 0;
}

uint64_t contact_timeout_ns(void)
{
    const char *text = getenv("WEFT_START_TIMEOUT_S");
    long seconds = text ? atol(text) : 0;

    return (uint64_t)(seconds > 0 && seconds < 86400 ? seconds : 60) * 1000000000u;
}

int contact_listen(void)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET};
    int both = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both)) == 0 &&
        listen_at(fd, &six, sizeof(six)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && listen_at(fd, &four, sizeof(four)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int daemon_program(char *path, size_t capacity)
{
    ssize_t length = readlink("/proc/self/exe", path, capacity - 1);

    if (length <= 0)
        return -1;
    path[length] = '\0';
    return 0;
}

int daemon_command(char *text, size_t capacity)
{
    char path[2048];

    if (daemon_program(path, sizeof(path)))
        return -1;
    /* a remote shell parses it; quoted only if needed, so that agents without a shell work with usual paths */
    const char *quote = path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-")] ? "'" : "";
    if (strchr(path, '\'')) {
        errno = EINVAL;
        return -1;
    }
    snprintf(text, capacity, "%s%s%s %s", quote, path, quote, DAEMON_OPTION);
    return 0;
}

/* Adds the loopback addresses, or all others. */
static size_t addresses_add(const struct ifaddrs *all, int is_loopback, char *text, size_t capacity)
{
    size_t used = 0;
    int count = 0;

    for (const struct ifaddrs *one = all; one && count < ADDRESSES_MAX / 2; one = one->ifa_next) {
        char address[INET6_ADDRSTRLEN];
        if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || !!(one->ifa_flags & IFF_LOOPBACK) != is_loopback)
            continue;
        const void *bytes = NULL;
        if (one->ifa_addr->sa_family == AF_INET)
            bytes = &((const struct sockaddr_in *)one->ifa_addr)->sin_addr;
        else if (one->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)one->ifa_addr)->sin6_addr))
            bytes = &((const struct sockaddr_in6 *)one->ifa_addr)->sin6_addr;
        if (!bytes || !inet_ntop(one->ifa_addr->sa_family, bytes, address, sizeof(address)) || used + sizeof(address) + 2 > capacity)
            continue;
        used += (size_t)snprintf(text + used, capacity - used, "%s,", address);
        count++;
    }
    return used;
}

int contact_write(int listener, const unsigned char *secret, uint32_t node, char *text, size_t capacity)
{
    struct sockaddr_storage name;
    socklen_t bytes = sizeof(name);
    struct ifaddrs *all = NULL;
    char hex[2 * CTRL_SECRET_BYTES + 1];

    if (getsockname(listener, (struct sockaddr *)&name, &bytes) || getifaddrs(&all))
        return -1;
    for (size_t i = 0; i < CTRL_SECRET_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", secret[i]);
    unsigned port = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port : ((struct sockaddr_in *)&name)->sin_port);
    size_t used = (size_t)snprintf(text, capacity, "WEFT-DAEMON %u %s %u ", node, hex, port);
    explicit_bzero(hex, sizeof(hex));
    used += addresses_add(all, 0, text + used, capacity - used - 2);
    used += addresses_add(all, 1, text + used, capacity - used - 2);
    snprintf(text + used, capacity - used, "\n");
    freeifaddrs(all);
    return 0;
}

int contact_read(const char *text, contact *order)
{
    char hex[2 * CTRL_SECRET_BYTES + 1];

    if (sscanf(text, "WEFT-DAEMON %u %64[0-9a-f] %u %3499s", &order->node, hex, &order->port, order->addresses) != 4 ||
        strlen(hex) != sizeof(hex) - 1 || order->port > 65535)
        return -1;
    for (size_t i = 0; i < CTRL_SECRET_BYTES; i++) {
        unsigned byte;
        sscanf(hex + 2 * i, "%2x", &byte);
        order->secret[i] = (unsigned char)byte;
    }
    explicit_bzero(hex, sizeof(hex));
    return 0;
}

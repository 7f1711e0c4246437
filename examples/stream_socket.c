/* SPDX-License-Identifier: BSD-3-Clause
 * stream_socket: blocks by one TCP connection for each source, without MPI; TCP's own window holds a source back.
 */
#include "stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct socket_state
{
    int *connections; /* sink: of each source; source: one */
} socket_state;

static void need(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "stream: %s: %s\n", what, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The sink's address in *at: of its host's name. */
static void listen_at(int *listener, struct sockaddr_in *at)
{
    char host[256] = "";
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    socklen_t bytes = sizeof *at;

    need(!gethostname(host, sizeof host - 1), "gethostname");
    *at = (struct sockaddr_in){.sin_family = AF_INET};
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!getaddrinfo(host, NULL, &hints, &found) && found) {
        at->sin_addr = ((struct sockaddr_in *)(void *)found->ai_addr)->sin_addr;
        freeaddrinfo(found);
    }
    *listener = socket(AF_INET, SOCK_STREAM, 0);
    need(*listener >= 0, "socket");
    need(!bind(*listener, (struct sockaddr *)at, sizeof *at), "bind");
    need(!listen(*listener, 1024), "listen");
    need(!getsockname(*listener, (struct sockaddr *)at, &bytes), "getsockname");
}

/* The whole of `bytes`; ends the job if the connection ends. */
static void read_all(int fd, void *to, size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        ssize_t n = read(fd, (char *)to + got, bytes - got);
        need(n > 0 || (n < 0 && errno == EINTR), "read");
        got += n > 0 ? (size_t)n : 0;
    }
}

static void write_all(int fd, const void *from, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(fd, (const char *)from + done, bytes - done);
        need(n > 0 || (n < 0 && errno == EINTR), "write");
        done += n > 0 ? (size_t)n : 0;
    }
}

void socket_open(stream *s)
{
    socket_state *p = take(sizeof *p);
    struct sockaddr_in at;
    int listener = -1, now = 1;

    s->state = p;
    p->connections = take((size_t)s->sources * sizeof *p->connections);
    if (!s->rank) {
        listen_at(&listener, &at);
    }
    MPI_Bcast(&at, sizeof at, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (s->rank) {
        p->connections[0] = socket(AF_INET, SOCK_STREAM, 0);
        need(!connect(p->connections[0], (struct sockaddr *)&at, sizeof at), "connect");
        setsockopt(p->connections[0], IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
        write_all(p->connections[0], &s->rank, sizeof s->rank);
        return;
    }
    for (int i = 0; i < s->sources; i++) {
        int source = 0, fd = accept(listener, NULL, NULL);
        need(fd >= 0, "accept");
        read_all(fd, &source, sizeof source);
        p->connections[source - 1] = fd;
    }
    close(listener);
}

void socket_source(stream *s)
{
    socket_state *p = s->state;
    uint64_t *block = take(s->block);

    for (long i = 0; i < s->blocks; i++) {
        block_fill(s, block, i);
        write_all(p->connections[0], block, s->block);
    }
    free(block);
}

/* Reads what has come from any source, each into its own block. */
int socket_sink(stream *s)
{
    socket_state *p = s->state;
    size_t n = (size_t)s->sources, *got = take(n * sizeof *got);
    long *number = take(n * sizeof *number), left = s->blocks * s->sources;
    unsigned char *blocks = take(n * s->block);
    struct pollfd *set = take(n * sizeof *set);
    int wrong = 0;

    for (size_t r = 0; r < n; r++) {
        set[r] = (struct pollfd){.fd = p->connections[r], .events = POLLIN};
    }
    while (left) {
        need(poll(set, n, -1) > 0 || errno == EINTR, "poll");
        for (size_t r = 0; r < n; r++) {
            if (!set[r].revents || number[r] == s->blocks) {
                continue;
            }
            ssize_t some = read(set[r].fd, blocks + r * s->block + got[r], s->block - got[r]);
            need(some > 0 || (some < 0 && errno == EINTR), "read");
            got[r] += some > 0 ? (size_t)some : 0;
            if (got[r] == s->block) {
                wrong += block_wrong(s, (const uint64_t *)(void *)(blocks + r * s->block), (int)r + 1, number[r]++);
                got[r] = 0;
                set[r].fd = number[r] == s->blocks ? -1 : set[r].fd;
                left--;
            }
        }
    }
    free(got);
    free(number);
    free(blocks);
    free(set);
    return wrong;
}

void socket_close(stream *s)
{
    socket_state *p = s->state;

    for (int i = 0; i < (s->rank ? 1 : s->sources); i++) {
        close(p->connections[i]);
    }
    free(p->connections);
    free(p);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sockets: two processes over one TCP connection without any MPI, either spinning (nonblocking recv) or sleeping (blocking recv). Latency
 * is half the round trip of a ping-pong; bandwidth and rate are windows of messages acknowledged by a byte, as in weft-bench; a barrier is
 * an exchange of a byte, an allreduce one of 8. No headers, no matching; a message of no bytes is one of one byte.
 * //   sockets serve PORT                  serves connections until its first client leaves
 *   sockets ADDRESS PORT spin|sleep     measures; prints one JSON object
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 4 << 20, WINDOW = 64, SAMPLES = 11, ROW_MS = 60, CONNECT_S = 20 };

/* Request of the client; rounds 0: end. window 0: both send at the same time, as in a barrier of two. */
typedef struct order {
    uint32_t bytes, window, rounds, spins;
} order;

static char *buffer;

static void fail(const char *what)
{
    fprintf(stderr, "sockets: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void put(int fd, const void *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = send(fd, (const char *)from + at, bytes - at, MSG_NOSIGNAL);
        if (n < 0)
            fail("send");
        at += (size_t)n;
    }
}

static void take(int fd, void *into, size_t bytes, uint32_t spins)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = recv(fd, (char *)into + at, bytes - at, spins ? MSG_DONTWAIT : 0);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            fail(n ? "recv" : "the other side has left");
    }
}

/* One message in each direction, or a window of messages and one byte back. Small messages are read in batches. */
static void rounds(int fd, const order *o, int calls)
{
    size_t bytes = o->bytes ? o->bytes : 1;
    for (uint32_t i = 0; i < o->rounds && !o->window; i++) {
        put(fd, buffer, bytes); /* short: the socket's buffer holds it when both sides send */
        take(fd, buffer, bytes, o->spins);
    }
    for (uint32_t i = 0; i < o->rounds && o->window; i++) {
        if (calls)
            for (uint32_t k = 0; k < o->window; k++)
                put(fd, buffer, bytes);
        if (o->window > 1 && bytes < 4096 && !calls)
            take(fd, buffer, bytes * o->window, o->spins);
        else
            for (uint32_t k = 0; k < (calls ? 1 : o->window); k++)
                take(fd, buffer, calls && o->window > 1 ? 1 : bytes, o->spins);
        if (!calls)
            put(fd, buffer, o->window > 1 ? 1 : bytes);
    }
}

static void serve(int fd)
{
    order o;
    for (;;) {
        take(fd, &o, sizeof o, 0);
        if (!o.rounds)
            return;
        rounds(fd, &o, 0);
    }
}

static double timed(int fd, order o)
{
    double begin;
    put(fd, &o, sizeof o);
    begin = now_us();
    rounds(fd, &o, 1);
    return (now_us() - begin) / o.rounds;
}

static int less(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of samples, in us for a round. */
static double row(int fd, uint32_t bytes, uint32_t window, uint32_t spins)
{
    order o = {bytes, window, 3, spins};
    double samples[SAMPLES], once = timed(fd, o);
    o.rounds = (uint32_t)(ROW_MS * 1000.0 / SAMPLES / once) + 1;
    for (int i = 0; i < SAMPLES; i++)
        samples[i] = timed(fd, o);
    qsort(samples, SAMPLES, sizeof *samples, less);
    return samples[SAMPLES / 2];
}

static void measure(int fd, uint32_t spins)
{
    static const uint32_t sizes[] = {0, 8, 1024, 16384, 65536, 1 << 20, 4 << 20};
    const char *comma = "";
    printf("{");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, comma = ", ")
        printf("%s\"latency %u\": %.3f", comma, sizes[i], row(fd, sizes[i], 1, spins) / 2);
    for (size_t i = 4; i < sizeof sizes / sizeof *sizes; i++)
        printf(", \"bandwidth %u\": %.4f", sizes[i], (double)sizes[i] * WINDOW / row(fd, sizes[i], WINDOW, spins) / 1e3);
    printf(", \"rate 8\": %.4f", WINDOW / row(fd, 8, WINDOW, spins));
    printf(", \"barrier 0\": %.3f, \"allreduce 8\": %.3f}\n", row(fd, 1, 0, spins), row(fd, 8, 0, spins));
}

static int listener(uint16_t port)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) || bind(fd, (struct sockaddr *)&own, sizeof own) ||
        listen(fd, 1))
        fail("listen");
    fd = accept(fd, NULL, NULL);
    if (fd < 0)
        fail("accept");
    return fd;
}

static int caller(const char *address, uint16_t port)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, address, &there.sin_addr) != 1)
        errno = EINVAL, fail(address);
    for (int tries = 0;; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&there, sizeof there) == 0)
            return fd;
        if (fd < 0 || tries == CONNECT_S * 100)
            fail("connect");
        close(fd);
        usleep(10000); /* the server may not listen yet */
    }
}

int main(int argc, char **argv)
{
    int one = 1, fd;
    buffer = calloc(1, LARGEST);
    if (!buffer || argc < 3 || (argc < 4 && strcmp(argv[1], "serve"))) {
        fprintf(stderr, "usage: sockets serve PORT | sockets ADDRESS PORT spin|sleep\n");
        return 2;
    }
    fd = argc < 4 ? listener((uint16_t)atoi(argv[2])) : caller(argv[1], (uint16_t)atoi(argv[2]));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (argc < 4) {
        serve(fd);
    } else {
        measure(fd, strcmp(argv[3], "spin") == 0);
        put(fd, &(order){0}, sizeof(order));
    }
    return 0;
}

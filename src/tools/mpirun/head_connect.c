/* SPDX-License-Identifier: BSD-3-Clause
 *
 * head_connect: see head_connect.h. Every listener gets the hello, which reveals the node's number and the release only; the proof is sent
 * to the authenticated head alone.
 */
#include "tools/mpirun/head_connect.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define ADDRESSES_MAX 32

typedef struct head_attempt {
    int fd; /* -1: failed or closed */
    bool has_sent_hello;
    size_t received;
    ctrl_answer answer;
} head_attempt;

static int connect_begin(const char *address, unsigned port)
{
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found = NULL;
    char service[8];
    int fd = -1;

    snprintf(service, sizeof(service), "%u", port);
    if (getaddrinfo(address, service, &hint, &found))
        return -1;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) && errno != EINPROGRESS) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static int attempts_begin(const contact *order, head_attempt *all)
{
    char copy[sizeof(order->addresses)], *save = NULL;
    int count = 0;

    memcpy(copy, order->addresses, sizeof(copy));
    for (char *one = strtok_r(copy, ",", &save); one && count < ADDRESSES_MAX; one = strtok_r(NULL, ",", &save)) {
        all[count] = (head_attempt){.fd = connect_begin(one, order->port)};
        count += all[count].fd >= 0;
    }
    return count;
}

static void attempt_close(head_attempt *one)
{
    if (one->fd >= 0)
        close(one->fd);
    one->fd = -1;
}

/* connect() has finished: sends the hello, or closes the socket on failure. */
static void attempt_send_hello(head_attempt *one, const ctrl_hello *hello, const char **why)
{
    socklen_t bytes = sizeof(int);
    int error = 0;

    if (getsockopt(one->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) || error ||
        send(one->fd, hello, sizeof(*hello), MSG_NOSIGNAL) != (ssize_t)sizeof(*hello)) {
        attempt_close(one);
        return;
    }
    one->has_sent_hello = true;
    *why = "the head does not answer";
}

/* Reads the answer. True: complete, and its proof is valid. */
static bool attempt_recv_answer(head_attempt *one, const contact *order, const ctrl_hello *hello, const char **why)
{
    ssize_t n = recv(one->fd, (char *)&one->answer + one->received, sizeof(one->answer) - one->received, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    one->received += n > 0 ? (size_t)n : 0;
    if (n > 0 && one->received < sizeof(one->answer))
        return false;
    if (n > 0 && !one->answer.is_other && ctrl_answer_is_valid(order->secret, hello, &one->answer))
        return true;
    if (n > 0)
        *why = one->answer.is_other ? "the head runs another version of Weft"
                                    : "the listener at the head's address does not know the job's secret";
    attempt_close(one);
    return false;
}

int head_connect(const contact *order, const ctrl_hello *hello, ctrl_answer *answer, const char **why)
{
    /* to connect, renewed by each connection for its answer; shorter than the head's wait, so that the reason is reported */
    uint64_t limit = contact_timeout_ns() / 6 * 5, now = weft_clock_ns(), deadline = now + limit;
    struct pollfd set[ADDRESSES_MAX];
    head_attempt all[ADDRESSES_MAX];
    int count = attempts_begin(order, all), result = -1;

    *why = "no address of the head can be reached from this host";
    for (int open = count; open && result < 0 && now < deadline; now = weft_clock_ns()) {
        for (int i = 0; i < count; i++)
            set[i] = (struct pollfd){.fd = all[i].fd, .events = all[i].has_sent_hello ? POLLIN : POLLOUT};
        if (poll(set, (nfds_t)count, (int)((deadline - now) / 1000000 + 1)) <= 0)
            continue;
        for (int i = open = 0; i < count && result < 0; i++) {
            if (set[i].revents && !all[i].has_sent_hello) {
                attempt_send_hello(&all[i], hello, why);
                deadline = weft_clock_ns() + limit;
            } else if (set[i].revents && attempt_recv_answer(&all[i], order, hello, why)) {
                *answer = all[i].answer;
                result = all[i].fd;
                all[i].fd = -1;
            }
            open += all[i].fd >= 0;
        }
    }
    for (int i = 0; i < count; i++)
        attempt_close(&all[i]);
    if (result >= 0)
        fcntl(result, F_SETFL, fcntl(result, F_GETFL) & ~O_NONBLOCK);
    return result;
}

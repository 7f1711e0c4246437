/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_fd: see segment_fd.h. A Unix socket file (abstract names are per network namespace, /proc/PID/fd needs ptrace rights) and
 * SCM_RIGHTS. A nonce restricts the descriptor to ranks of the job. The file exists only during start-up.
 */
#include "launch/segment_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/random.h"
#include "base/status.h"

#define ACCEPT_NAP_NS 10000000

typedef struct request {
    uint64_t nonce[2];
    uint32_t index;
} request;

static uint64_t deadline_ns(void)
{
    return weft_clock_ns() + (uint64_t)weft_knob.start_timeout_s * 1000000000u;
}

/* Waits for input: 1, or 0 after the deadline or an error. */
static int input_wait(int fd, uint64_t deadline)
{
    for (;;) {
        uint64_t now = weft_clock_ns();
        struct pollfd set = {.fd = fd, .events = POLLIN};
        if (now >= deadline)
            return 0;
        int rc = poll(&set, 1, (int)((deadline - now) / 1000000 + 1));
        if (rc > 0)
            return 1;
        if (rc < 0 && errno != EINTR)
            return 0;
    }
}

int weft_segment_fd_open(const char *dir, uint64_t members, weft_segment_fd *offer)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    memset(offer, 0, sizeof(*offer));
    offer->members = members;
    int rc = weft_random(offer->nonce, sizeof(offer->nonce));
    if (rc)
        return rc;
    int length = snprintf(offer->path, sizeof(offer->path), "%s/weft-%ld-%08x", dir, (long)getpid(), (unsigned)offer->nonce[0]);
    if (length >= (int)sizeof(offer->path)) /* `dir` is too long for a socket's name */
        snprintf(offer->path, sizeof(offer->path), "/tmp/weft-%ld-%08x", (long)getpid(), (unsigned)offer->nonce[0]);
    memcpy(name.sun_path, offer->path, sizeof(name.sun_path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return weft_fail(WEFT_E_SYSTEM, "no Unix socket for passing on the node's shared memory: %s", strerror(errno));
    if (bind(fd, (struct sockaddr *)&name, sizeof(name)) || chmod(offer->path, 0600) || listen(fd, 1024)) {
        int rc = weft_fail(WEFT_E_SYSTEM, "cannot listen at %s for the other ranks of this node: %s", offer->path,
                           strerror(errno));
        weft_segment_fd_close(fd, offer);
        return rc;
    }
    return fd;
}

void weft_segment_fd_close(int fd, const weft_segment_fd *offer)
{
    unlink(offer->path);
    close(fd);
}

static int descriptor_send(int to, int fd)
{
    char byte = 'w';
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr head;
        char capacity[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.capacity)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    return sendmsg(to, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int serve_timed_out(const uint32_t *ranks, const unsigned char *is_served, uint32_t count)
{
    char text[256];
    size_t used = 0;
    int shown = 0;

    text[0] = '\0';
    for (uint32_t i = 1; i < count; i++)
        if (!is_served[i] && ++shown <= 16 && used < sizeof(text))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u", shown > 1 ? ", " : "", ranks[i]);
    return weft_fail(WEFT_E_TIMEOUT,
                     "start-up: the node's shared memory was not fetched by %s %s%s after %d s (WEFT_START_TIMEOUT_S): "
                     "have they called MPI_Init?",
                     shown > 1 ? "ranks" : "rank", text, shown > 16 ? ", ..." : "", weft_knob.start_timeout_s);
}

/* Handles an errno of accept: 0 after a nap if descriptors or memory may become free, or an error that is permanent. */
static int accept_failed(int error, uint64_t deadline)
{
    if (error == EINTR || error == ECONNABORTED || error == EAGAIN)
        return WEFT_OK;
    if ((error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) && weft_clock_ns() < deadline) {
        nanosleep(&(struct timespec){.tv_nsec = ACCEPT_NAP_NS}, NULL);
        return WEFT_OK;
    }
    return weft_fail(WEFT_E_SYSTEM, "start-up: cannot accept connections of ranks that fetch the node's shared memory: %s%s",
                     strerror(error), error == EMFILE ? " (ulimit -n)" : "");
}

int weft_segment_fd_serve(int fd, const weft_segment_fd *offer, const weft_segment *segment, const uint32_t *ranks, uint32_t count)
{
    unsigned char *is_served = calloc(count, 1);
    uint64_t deadline = deadline_ns();
    uint32_t left = count - 1;
    int rc = WEFT_OK, accept_errno = 0; /* errno of the last accept */

    if (!is_served)
        return weft_fail(WEFT_E_NOMEM, "no memory for %u ranks", count);
    while (left && !rc) {
        request asked;
        if (!input_wait(fd, deadline)) {
            rc = accept_errno ? accept_failed(accept_errno, 0) : serve_timed_out(ranks, is_served, count);
            break;
        }
        int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        accept_errno = one < 0 ? errno : 0;
        if (accept_errno) {
            rc = accept_failed(accept_errno, deadline);
            continue;
        }
        /* a foreign process that connects and sends nothing delays this by one second only */
        uint64_t request_deadline = weft_clock_ns() + 1000000000u;
        if (input_wait(one, request_deadline) && recv(one, &asked, sizeof(asked), 0) == (ssize_t)sizeof(asked) &&
            !memcmp(asked.nonce, offer->nonce, sizeof(asked.nonce)) && asked.index > 0 && asked.index < count &&
            !is_served[asked.index] && descriptor_send(one, segment->fd) == 0) {
            is_served[asked.index] = 1;
            left--;
        }
        close(one);
    }
    free(is_served);
    return rc;
}

static int descriptor_receive(int from)
{
    char byte;
    int fd = -1;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr head;
        char capacity[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.capacity)};

    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(head), sizeof(fd));
    return fd;
}

int weft_segment_fd_fetch(const weft_segment_fd *offer, size_t bytes, uint64_t members, uint32_t index, const char *peer,
                          weft_segment *segment)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    request asked = {.index = index};
    int fd = -1, rc = WEFT_OK;

    if (bytes != sizeof(*offer) || offer->path[sizeof(offer->path) - 1])
        return weft_fail(WEFT_E_OTHER, "start-up: %s runs another version of this library", peer);
    if (offer->members != members)
        return weft_fail(WEFT_E_OTHER,
                         "start-up: the launcher's data are contradictory: %s and this process have different lists of the node's ranks",
                         peer);
    memcpy(name.sun_path, offer->path, sizeof(name.sun_path));
    memcpy(asked.nonce, offer->nonce, sizeof(asked.nonce));
    int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (to < 0 || connect(to, (struct sockaddr *)&name, sizeof(name)) ||
        send(to, &asked, sizeof(asked), MSG_NOSIGNAL) != (ssize_t)sizeof(asked))
        rc = weft_fail(WEFT_E_SYSTEM,
                       "start-up: this process cannot connect to %s, which passes on the node's shared memory at %s: %s. Do the ranks "
                       "of this node share that directory?",
                       peer, offer->path, strerror(errno));
    else if (!input_wait(to, deadline_ns()))
        rc = weft_fail(WEFT_E_TIMEOUT,
                       "start-up: the node's shared memory was not received from %s after %d s (WEFT_START_TIMEOUT_S)", peer,
                       weft_knob.start_timeout_s);
    else if ((fd = descriptor_receive(to)) < 0)
        rc = weft_fail(WEFT_E_OTHER, "start-up: %s has not passed on the node's shared memory, or has ended", peer);
    if (to >= 0)
        close(to);
    return rc ? rc : weft_segment_open(fd, segment);
}

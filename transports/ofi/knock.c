/* SPDX-License-Identifier: BSD-3-Clause
 *
 * knock: a rank that shares memory with the first rank of its node opens libfabric at its first contact with another host only. Until then
 * its address has the port of a listening socket of its own. A peer connects to that socket and sends the rank's nonce: a knock. The rank
 * opens libfabric, unless it is open, and answers with libfabric's port, or with the reason why it cannot; the handshake follows
 * (handshake.c). The socket stays open as long as the iface, as the published address does not change.
 * No call waits: an unanswered knock is a state of the ep, as an unanswered handshake is. The kernel keeps the knock while the rank computes.
 * The socket's descriptor wakes a rank that sleeps. With TCP_DEFER_ACCEPT a connection is accepted once its knock has come: the rank keeps
 * no connection, and a silent one costs it nothing. Connections without the nonce are closed without an answer.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define MAGIC 0x6b636f6e6b746677u
#define DEFER_S 30           /* how long the kernel holds a silent connection back */
#define BACKLOG 4096         /* knocks that may wait while the owner computes; the kernel has a limit, too */
#define ANSWERS_MAX 16       /* of one poll */
#define AGAIN_NS 50000000u   /* pause before a knock is repeated */
#define REFUSALS_MAX 40u     /* connections that may end without an answer: of a process that is just ending, or another one's */

typedef struct knock {
    uint64_t magic, nonce; /* of the process that is meant */
    weft_proc_id from;
} knock;

typedef struct knock_answer {
    uint64_t magic, nonce; /* of the process that answers */
    uint32_t protocol;     /* libfabric's number, to be compared */
    uint16_t port;         /* libfabric's, in network order */
    uint16_t has_failed;   /* libfabric cannot be opened: `text` says why */
    char text[232];
} knock_answer;
_Static_assert(sizeof(knock) == 32 && sizeof(knock_answer) == 256, "the wire");

/* -- the deferred rank -- */

static int make_listener(ofi_iface *iface, int family)
{
    const int seconds = DEFER_S;
    ofi_address own = {.any.sa_family = (sa_family_t)family};
    socklen_t bytes = family == AF_INET ? sizeof own.in : sizeof own.in6;
    iface->listener = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (iface->listener < 0 || setsockopt(iface->listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) ||
        bind(iface->listener, &own.any, bytes) || listen(iface->listener, BACKLOG) || getsockname(iface->listener, &own.any, &bytes))
        return weft_fail(WEFT_E_SYSTEM, "no listening socket: %s", strerror(errno));
    return ofi_addr_defer(iface, family, family == AF_INET ? own.in.sin_port : own.in6.sin6_port);
}

int ofi_knock_listen(ofi_iface *iface)
{
    int rc = make_listener(iface, ofi_host_family());
    if (rc == 0)
        rc = ofi_sleep_on(iface, iface->listener, 0);
    if (rc == 0)
        return 0;
    weft_log_info("libfabric is opened at once: %s", weft_fail_text(rc));
    ofi_knock_close(iface);
    iface->addr = (ofi_iface_addr){.version = 0};
    return rc;
}

void ofi_knock_close(ofi_iface *iface)
{
    if (iface->listener >= 0)
        close(iface->listener);
    iface->listener = -1;
}

/* The peer will connect: if both are about to, it need not cross the other connection (handshake.c, must_wait). */
static void await(ofi_iface *iface, const weft_proc_id *from)
{
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        ofi_ep *ep = weft_container(link, ofi_ep, link);
        if (ep->proc_id.rank == from->rank && ep->proc_id.job == from->job && ep->proc_id.worker == from->worker &&
            ep->state == OFI_CONNECTING && !ep->addr.knocks && !ep->called_ns)
            ep->began_ns = iface->now_ns();
    }
}

/* Once: polls meet the cause again. */
static void complain(ofi_iface *iface, enum weft_log_level level, const char *why)
{
    if (!iface->has_complained)
        weft_log(level, "a peer on another host waits for this rank's first answer: %s", why);
    iface->has_complained = true;
}

static void answer(ofi_iface *iface, int fd)
{
    knock_answer back = {.magic = MAGIC, .nonce = iface->addr.nonce};
    knock one;
    int rc;
    if (recv(fd, &one, sizeof one, MSG_DONTWAIT) != (ssize_t)sizeof one || one.magic != MAGIC || one.nonce != iface->addr.nonce)
        return;
    rc = ofi_contact(iface);
    back.protocol = iface->addr.protocol;
    back.port = iface->port;
    back.has_failed = rc != 0;
    if (rc) {
        snprintf(back.text, sizeof back.text, "%s", weft_fail_text(rc));
        complain(iface, WEFT_LOG_ERROR, weft_fail_text(rc));
    }
    await(iface, &one.from);
    (void)!send(fd, &back, sizeof back, MSG_DONTWAIT | MSG_NOSIGNAL); /* fits an empty buffer; else the peer asks again */
}

/* accept4 reports a lack of descriptors also if no connection waits. */
static bool has_pending(const ofi_iface *iface)
{
    struct pollfd fd = {.fd = iface->listener, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

int ofi_knock_answer(ofi_iface *iface)
{
    int n = 0, fd, error;
    while (n < ANSWERS_MAX && (fd = accept4(iface->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        answer(iface, fd);
        close(fd);
        n++;
    }
    error = n == 0 ? errno : 0;
    if ((error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) && has_pending(iface))
        complain(iface, WEFT_LOG_WARN, strerror(error));
    return n;
}

/* -- the calling rank -- */

static void fail(ofi_candidate *candidate, const char *words)
{
    ofi_tcp_probe_end(candidate);
    candidate->state = OFI_CANDIDATE_FAILED;
    snprintf(candidate->why, sizeof candidate->why, "%s", words);
}

/* The connection ended without an answer. */
static void repeat(ofi_candidate *candidate, int error, uint64_t now)
{
    if (error != ETIMEDOUT && ++candidate->refusals > REFUSALS_MAX) { /* a host that is gone does not let the next one connect */
        fail(candidate, error ? strerror(error) : "another process answers");
        return;
    }
    ofi_tcp_probe_end(candidate);
    candidate->state = OFI_CANDIDATE_NEW;
    candidate->probed_ns = now;
}

static void begin(const ofi_ep *ep, ofi_candidate *candidate, uint64_t now)
{
    const unsigned int silence_ms = 1000u * (unsigned int)weft_knob.peer_timeout_s;
    if (candidate->probed_ns && now - candidate->probed_ns < AGAIN_NS)
        return;
    ofi_tcp_probe_begin(candidate, now);
    if (candidate->state != OFI_CANDIDATE_PROBED)
        return;
    if (candidate->probe < 0) { /* knocks at other peers may end, and give theirs back */
        candidate->state = OFI_CANDIDATE_NEW;
        if (now - ep->began_ns > 1000000ull * silence_ms)
            fail(candidate, "no socket can be made (ulimit -n)");
        return;
    }
    ofi_tcp_keep_alive(candidate->probe);
    setsockopt(candidate->probe, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
}

/* The connection is being made: sends the knock once it is. */
static void speak(const ofi_iface *iface, const ofi_ep *ep, ofi_candidate *candidate, uint64_t now)
{
    const knock one = {.magic = MAGIC, .nonce = ep->addr.nonce, .from = iface->self};
    struct pollfd fd = {.fd = candidate->probe, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof error;
    if (poll(&fd, 1, 0) != 1) {
        if (now - candidate->probed_ns > OFI_PROBE_NS)
            fail(candidate, "no answer within 3 s");
        return;
    }
    if (getsockopt(candidate->probe, SOL_SOCKET, SO_ERROR, &error, &bytes))
        error = errno;
    if (error)
        fail(candidate, strerror(error));
    else if (send(candidate->probe, &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof one)
        repeat(candidate, errno, now);
    else
        candidate->state = OFI_CANDIDATE_LISTENS;
}

/* True: the knock was answered. */
static bool hear(const ofi_ep *ep, ofi_candidate *candidate, knock_answer *answer, uint64_t now)
{
    ssize_t n = recv(candidate->probe, answer, sizeof *answer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n == (ssize_t)sizeof *answer && answer->magic == MAGIC && answer->nonce == ep->addr.nonce)
        return true;
    repeat(candidate, n < 0 ? errno : 0, now);
    return false;
}

void ofi_knock_learn(const ofi_iface *iface, ofi_ep *ep, uint16_t port)
{
    for (uint32_t i = 0; i < ep->candidate_count; i++) {
        ofi_candidate *candidate = &ep->candidates[i];
        ofi_tcp_probe_end(candidate);
        if (candidate->address.any.sa_family == AF_INET)
            candidate->address.in.sin_port = port;
        else
            candidate->address.in6.sin6_port = port;
        if (candidate->state != OFI_CANDIDATE_FAILED)
            candidate->state = OFI_CANDIDATE_NEW;
    }
    ep->addr.port = port;
    ep->addr.knocks = 0;
    ep->began_ns = ep->tried_ns = iface->now_ns();
}

static void take(ofi_iface *iface, ofi_ep *ep, uint32_t from, knock_answer *answer)
{
    char text[400];
    answer->text[sizeof answer->text - 1] = 0;
    if (answer->has_failed)
        snprintf(text, sizeof text, "it has no network: %s", answer->text);
    else if (answer->protocol != iface->addr.protocol)
        snprintf(text, sizeof text, "its libfabric speaks protocol %u, this one's %s %u: install the same version", answer->protocol,
                 iface->addr.provider, iface->addr.protocol);
    if (answer->has_failed || answer->protocol != iface->addr.protocol) {
        ofi_peer_failed(iface, ep, text);
        return;
    }
    ofi_knock_learn(iface, ep, answer->port);
    ep->candidate = from;
}

int ofi_knock_turn(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    bool asks_all = now - ep->began_ns > OFI_HANDSHAKE_NS;
    knock_answer answer;
    for (uint32_t i = 0; i < ep->candidate_count; i++) {
        ofi_candidate *candidate = &ep->candidates[i];
        if (candidate->state == OFI_CANDIDATE_NEW && (i == ep->candidate || asks_all))
            begin(ep, candidate, now);
        if (candidate->state == OFI_CANDIDATE_PROBED)
            speak(iface, ep, candidate, now);
        if (candidate->state != OFI_CANDIDATE_LISTENS || !hear(ep, candidate, &answer, now))
            continue;
        take(iface, ep, i, &answer);
        return 1;
    }
    return 0;
}

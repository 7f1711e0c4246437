/* SPDX-License-Identifier: BSD-3-Clause
 *
 * knock: a rank that shares memory with the first rank of its node opens libfabric at its first contact with another host only. Until then
 * its address has the port of a listening socket of its own. A peer connects to that socket and sends the rank's nonce: a knock. The rank
 * opens libfabric, unless it is open, and answers with libfabric's port, or with the reason why it cannot; the handshake follows
 * (handshake.c). The socket stays open as long as the iface, as the published address does not change.
 * No call waits for the peer: an unanswered knock is a state of the ep, as an unanswered handshake is. The kernel keeps the knock while the
 * rank computes. The number of sockets for knocks is bounded. A knock that waits for long closes its socket for a knock that finds none
 * free. The peer's kernel keeps the closed knock too; the peer cannot answer on its socket, so it connects to the calling rank.
 * The socket's descriptor wakes a rank that sleeps. With TCP_DEFER_ACCEPT a connection is accepted once its knock has come: the rank keeps
 * no connection, and a silent one costs it nothing. Connections without the nonce are closed without an answer.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
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
#define REFUSALS_MIN 8u      /* connections that end without an answer, of a process that is just ending, or another one's, and ... */
#define REFUSED_NS 2000000000u /* ... their time, until the address has failed */
#define LATE_NS 1000000000u  /* a knock that follows its connection later may be too late (DEFER_S, and the owner takes none without) */
#define HURRY_MS 2           /* then the next one waits so long for its connection */
#define SOCKETS_MIN 8u       /* for own knocks: ... */
#define SOCKETS_MAX 1024u
#define SOCKETS_PART 8u      /* ... this part of the descriptors that the process may have */
#define HOLD_NS 1000000000u  /* how long a knock keeps its socket from others, at least */
#define RELEASED_NS 10000000000u /* pause before a knock that was given up is repeated, doubled each time: it may be lost, or its peer */
#define LOOKS_EVERY 32u      /* most polls between two looks for knocks */
#define LOOK_NS 1000000u     /* the time of so many: an owner that polls less often looks in each poll */

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
    ofi_ep *ep = ofi_ep_of(iface, from);
    if (ep && ep->state == OFI_CONNECTING && !ep->addr.knocks && !ep->called_ns)
        ep->began_ns = iface->now_ns();
}

/* The peer has closed its knock's socket, so this side connects. */
static void call_back(ofi_iface *iface, const weft_proc_id *from)
{
    ofi_ep *ep = ofi_ep_find_or_accept(iface, from);
    if (ep)
        ofi_handshake_begin(iface, ep);
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
    char end;
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
    if (!rc && recv(fd, &end, 1, MSG_DONTWAIT) == 0) {
        call_back(iface, &one.from);
        return;
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

/* A look is a system call. Its interval is a number of polls, because a poll reads no clock. A process that polls rarely looks in each
 * poll. */
static void time_looks(ofi_iface *iface)
{
    uint64_t now = iface->now_ns();
    iface->looks_every = now - iface->looked_ns > LOOK_NS || !iface->looks_every ? 1 : 2 * iface->looks_every;
    if (iface->looks_every > LOOKS_EVERY)
        iface->looks_every = LOOKS_EVERY;
    iface->looks_in = iface->looks_every - 1;
    iface->looked_ns = now;
}

int ofi_knock_answer(ofi_iface *iface)
{
    int n = 0, fd, error;
    time_looks(iface);
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

static void try_again(ofi_candidate *candidate, uint64_t when)
{
    ofi_tcp_probe_end(candidate);
    candidate->state = OFI_CANDIDATE_NEW;
    candidate->begin_ns = when;
}

/* The connection ended without an answer. It does not count if the knock came late, or if the host is gone, which does not let the next one
 * connect. */
static void repeat(ofi_candidate *candidate, int error, uint64_t now)
{
    bool counts = error != ETIMEDOUT && candidate->is_prompt;
    candidate->hurries |= !candidate->is_prompt;
    if (counts && !candidate->refusals++)
        candidate->refused_ns = now;
    if (counts && candidate->refusals > REFUSALS_MIN && now - candidate->refused_ns > REFUSED_NS)
        fail(candidate, error ? strerror(error) : "another process answers");
    else
        try_again(candidate, now + AGAIN_NS);
}

static uint32_t sockets_max(void)
{
    struct rlimit limit;
    rlim_t part = getrlimit(RLIMIT_NOFILE, &limit) ? 0 : limit.rlim_cur / SOCKETS_PART;
    return part < SOCKETS_MIN ? SOCKETS_MIN : part > SOCKETS_MAX ? SOCKETS_MAX : (uint32_t)part;
}

/* Is there a socket for one more knock? */
static bool has_socket(ofi_iface *iface, uint64_t now)
{
    if (!iface->knocks_max)
        iface->knocks_max = sockets_max();
    if (iface->knocks < iface->knocks_max)
        return true;
    iface->denied_ns = now;
    return false;
}

/* Gives the socket up, if a knock has found none free. */
static void release(ofi_iface *iface, ofi_candidate *candidate, uint64_t now)
{
    if (!iface->denied_ns || now - iface->denied_ns > HOLD_NS || now - candidate->probed_ns < HOLD_NS)
        return;
    iface->denied_ns = 0;
    try_again(candidate, now + ((uint64_t)RELEASED_NS << candidate->releases));
    candidate->releases += candidate->releases < 6;
}

/* The connection is being made: sends the knock once it is. */
static void speak(const ofi_iface *iface, const ofi_ep *ep, ofi_candidate *candidate, uint64_t now)
{
    const knock one = {.magic = MAGIC, .nonce = ep->addr.nonce, .from = iface->self};
    struct pollfd fd = {.fd = candidate->probe, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof error;
    bool hurries = candidate->hurries;
    candidate->hurries = false; /* waits once: with many such peers each wait would delay all */
    if (poll(&fd, 1, hurries ? HURRY_MS : 0) != 1) {
        if (now - candidate->probed_ns <= OFI_PROBE_NS)
            return;
        if (candidate->releases)
            try_again(candidate, now + AGAIN_NS); /* it has answered before: too many knocks may wait there */
        else
            fail(candidate, "no answer within 3 s");
        return;
    }
    candidate->is_prompt = now - candidate->probed_ns < LATE_NS;
    if (getsockopt(candidate->probe, SOL_SOCKET, SO_ERROR, &error, &bytes))
        error = errno;
    if (error && (error != ECONNRESET || candidate->is_prompt))
        fail(candidate, strerror(error));
    else if (error || send(candidate->probe, &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof one)
        repeat(candidate, error ? error : errno, now);
    else
        candidate->state = OFI_CANDIDATE_LISTENS;
}

static void begin(ofi_iface *iface, const ofi_ep *ep, ofi_candidate *candidate, uint64_t now)
{
    const unsigned int silence_ms = 1000u * (unsigned int)weft_knob.peer_timeout_s;
    if (now < candidate->begin_ns || !has_socket(iface, now))
        return;
    ofi_tcp_probe_begin(candidate, now);
    if (candidate->state != OFI_CANDIDATE_PROBED)
        return;
    if (candidate->probe < 0) { /* knocks at other peers may end and close their sockets */
        iface->denied_ns = now;
        candidate->state = OFI_CANDIDATE_NEW;
        candidate->begin_ns = now + AGAIN_NS;
        if (now - ep->began_ns > 1000000ull * silence_ms)
            fail(candidate, "no socket can be made (ulimit -n)");
        return;
    }
    candidate->counter = &iface->knocks;
    iface->knocks++;
    ofi_tcp_keep_alive(candidate->probe);
    setsockopt(candidate->probe, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence_ms, sizeof silence_ms);
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
            begin(iface, ep, candidate, now);
        if (candidate->state == OFI_CANDIDATE_PROBED)
            speak(iface, ep, candidate, now);
        if (candidate->state == OFI_CANDIDATE_LISTENS && hear(ep, candidate, &answer, now)) {
            take(iface, ep, i, &answer);
            return 1;
        }
        if (candidate->state == OFI_CANDIDATE_LISTENS)
            release(iface, candidate, now);
    }
    return 0;
}

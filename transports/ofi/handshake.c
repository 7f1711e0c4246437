/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handshake: verifies which process answers at an address. A CALL message has its sender's identity, the receiver's nonce and a number;
 * the answer has that number and opens the ep. The receiver answers with a CALL of its own, to the address in the hint, so three messages
 * open both directions. Addresses are tried in order, best first; after OFI_HANDSHAKE_NS without an answer the kernel is asked about all
 * (tcp_probe.c). While the peer's kernel answers, no time limit applies: the peer may compute. When all addresses have failed, the peer
 * is lost, and the error lists them.
 *
 * The same handshake follows a failed operation: it compares the numbers of frames sent and received, and what the peer has not received
 * is sent again (keep.c). A peer whose addresses all fail is tried again until WEFT_PEER_TIMEOUT_S, or REFUSED_NS where all refuse, as
 * nobody listens there. Where nothing is kept, a missing frame means that the peer is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define ROTATE_NS 2000000000u  /* an address listens but does not answer: tries the others meanwhile */
#define MISSING_NS 5000000000u /* frames may still come by the old connection for this time */
#define RETRY_NS 50000000u
#define REPEAT_NS 500000000u
#define SENIOR_REPEAT_NS 50000000u
#define JUNIOR_DELAY_NS 1000000u
#define BROKEN_DELAY_NS 5000000u /* as JUNIOR_DELAY_NS, after a break, which the other side may notice later */
#define REFUSED_NS 3000000000u
#define AGAIN_NS 250000000u     /* pause before a failed address of a broken connection is probed again */
#define REPORT_NS 2000000000u   /* a connection that is broken for this long is reported */

static uint64_t peer_timeout_ns(void) { return (uint64_t)weft_knob.peer_timeout_s * 1000000000u; }

ofi_ep *ofi_ep_of(const ofi_iface *iface, const weft_proc_id *proc_id)
{
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        ofi_ep *ep = weft_container(link, ofi_ep, link);
        if (ep->proc_id.job == proc_id->job && ep->proc_id.rank == proc_id->rank && ep->proc_id.worker == proc_id->worker)
            return ep;
    }
    return NULL;
}

/* -- eps -- */

static void chase(ofi_iface *iface, ofi_ep *ep)
{
    if (!ep->is_handshaking)
        weft_list_append(&iface->handshaking, &ep->handshaking);
    ep->is_handshaking = true;
}

static void rest(ofi_ep *ep)
{
    if (ep->is_handshaking)
        weft_list_remove(&ep->handshaking);
    ep->is_handshaking = false;
    for (uint32_t i = 0; i < ep->candidate_count; i++)
        ofi_tcp_probe_end(&ep->candidates[i]);
}

void ofi_ep_free(ofi_iface *iface, ofi_ep *ep)
{
    rest(ep);
    ofi_coalesce_drop(iface, ep);
    ofi_rma_fail(iface, ep, WEFT_E_PEER, NULL);
    ofi_keep_orphan(iface, ep);
    ofi_flow_drop(ep);
    iface->by_index[ep->index] = NULL;
    weft_list_remove(&ep->link);
    free(ep->candidates);
    free(ep);
}

void ofi_peer_failed(ofi_iface *iface, ofi_ep *ep, const char *why)
{
    char text[400];
    if (ep->state == OFI_FAILED || ep->peer_closed)
        return;
    snprintf(text, sizeof text, "%s", why); /* `why` may be the text of the last failure */
    ep->state = OFI_FAILED;
    rest(ep);
    ofi_coalesce_drop(iface, ep);
    ofi_rma_fail(iface, ep, WEFT_E_PEER, text);
    ofi_keep_drop(iface, ep);
    iface->iface.callbacks->peer_failed(iface->iface.owner, ep->ep.peer, weft_fail(WEFT_E_PEER, "%s", text));
}

/* -- active side -- */

static bool is_inserted(ofi_iface *iface, ofi_candidate *candidate)
{
    if (!candidate->is_inserted)
        candidate->is_inserted = fi_av_insert(iface->av, &candidate->address, 1, &candidate->to, 0, NULL) == 1;
    return candidate->is_inserted;
}

/* Sends a handshake to a candidate. 0, or AGAIN. */
static int send_handshake(ofi_iface *iface, ofi_ep *ep, ofi_candidate *candidate, uint32_t attempt, uint32_t echo, uint8_t flags)
{
    ofi_handshake msg = {.proc_id = iface->self, .nonce = iface->addr.nonce, .attempt = attempt, .echo = echo, .ep_index = ep->index,
                         .sent = ep->sent - ofi_coalesce_frames(iface, ep), .received = ep->received};
    if (!is_inserted(iface, candidate)) {
        candidate->state = OFI_CANDIDATE_FAILED;
        snprintf(candidate->why, sizeof candidate->why, "libfabric rejects the address");
        return WEFT_AGAIN;
    }
    msg.wire = (ofi_wire){.nonce = ep->addr.nonce, .kind = OFI_HANDSHAKE, .flags = flags, .ack = ep->received};
    if (!candidate->has_hint)
        candidate->hint_bytes = ofi_hint(iface, candidate, candidate->hint, sizeof candidate->hint);
    candidate->has_hint = true;
    msg.hint_bytes = candidate->hint_bytes;
    memcpy(msg.hint, candidate->hint, candidate->hint_bytes);
    if (ofi_handshake_send(iface, candidate->to, &msg, sizeof msg))
        return WEFT_AGAIN;
    iface->counts[OFI_COUNT_HANDSHAKES]++;
    return 0;
}

static void begin(ofi_iface *iface, ofi_ep *ep)
{
    for (uint32_t i = 0; i < ep->candidate_count; i++) {
        ofi_tcp_probe_end(&ep->candidates[i]);
        ep->candidates[i].attempt = 0;
        if (ep->candidates[i].state != OFI_CANDIDATE_FAILED)
            ep->candidates[i].state = OFI_CANDIDATE_NEW;
    }
    ep->called_ns = 0;
    ep->repeats = ep->tries = 0;
    ep->began_ns = ep->tried_ns = iface->now_ns();
    chase(iface, ep);
}

void ofi_handshake_begin(ofi_iface *iface, ofi_ep *ep)
{
    if (ep->state != OFI_IDLE)
        return;
    ep->state = OFI_CONNECTING;
    begin(iface, ep);
}

void ofi_break(ofi_iface *iface, ofi_ep *ep, const char *why)
{
    if ((ep->state != OFI_OPEN && ep->state != OFI_RESUMING) || ep->peer_closed)
        return;
    weft_log_info("the connection to rank %u is made anew: %s", ep->proc_id.rank, why);
    snprintf(ep->broken_by, sizeof ep->broken_by, "%s", why);
    iface->counts[OFI_COUNT_BREAKS]++;
    ep->state = OFI_BROKEN;
    ep->breaks++;
    ep->is_reported = false;
    begin(iface, ep);
}

void ofi_refused(ofi_iface *iface, ofi_ep *ep, ssize_t rc)
{
    ofi_wake_soon(iface);
    if (rc != -FI_EAGAIN)
        ofi_break(iface, ep, ofi_error_text(rc));
    else if (iface->keeps)
        ofi_break(iface, ep, "the connection was closed");
}

/* Loses the peer with a text of every address and its error. */
static void fail_unreached(ofi_iface *iface, ofi_ep *ep)
{
    char text[400], where[64];
    size_t at;
    bool is_refused = false;
    at = (size_t)snprintf(text, sizeof text, "no answer by libfabric's %s%s%s", iface->addr.provider, *ep->broken_by ? " after: " : "",
                          ep->broken_by);
    for (uint32_t i = 0; i < ep->candidate_count && at < sizeof text - 130; i++) {
        const ofi_candidate *candidate = &ep->candidates[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s: %.80s", i ? "; " : ": ",
                               ofi_address_text(&candidate->address, candidate->bytes, where, sizeof where), candidate->why);
        is_refused |= strstr(candidate->why, "refused") != NULL;
    }
    snprintf(text + at, sizeof text - at, "%s; WEFT_OFI_IFACE chooses interfaces", is_refused
             ? ". Nobody listens: its process is gone, or an address is another host's" : ". A firewall, or no route");
    ofi_peer_failed(iface, ep, text);
}

/* Proceeds to the next address that has not failed; false: there is none. */
static bool next_candidate(ofi_iface *iface, ofi_ep *ep)
{
    for (uint32_t i = 1; i <= ep->candidate_count; i++) {
        uint32_t k = (ep->candidate + i) % ep->candidate_count;
        if (ep->candidates[k].state == OFI_CANDIDATE_FAILED)
            continue;
        ep->candidate = k;
        ep->called_ns = 0;
        ep->tried_ns = iface->now_ns();
        return true;
    }
    return false;
}

/* Probes the addresses, after a time without an answer. */
static void probe(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    for (uint32_t i = 0; i < ep->candidate_count; i++) {
        ofi_candidate *candidate = &ep->candidates[i];
        if (!ofi_can_probe(iface)) {
            if (candidate->state != OFI_CANDIDATE_FAILED && now - ep->began_ns > peer_timeout_ns()) {
                candidate->state = OFI_CANDIDATE_FAILED;
                snprintf(candidate->why, sizeof candidate->why, "no answer within %d s (WEFT_PEER_TIMEOUT_S)", weft_knob.peer_timeout_s);
            }
        } else if (candidate->state == OFI_CANDIDATE_NEW ||
                   (candidate->state == OFI_CANDIDATE_LISTENS && now - candidate->probed_ns > peer_timeout_ns() / 4)) {
            ofi_tcp_probe_begin(candidate, now);
        } else {
            ofi_tcp_probe_poll(candidate, now);
        }
    }
}

/* True on one of two sides that connect at the same time. */
static bool is_senior(const ofi_iface *iface, const ofi_ep *ep) { return iface->addr.nonce > ep->addr.nonce; }

/* Crossing connections both end: libfabric's tcp keeps one of them by comparing addresses, and the local one is bound to all addresses. So
 * the junior waits a moment for the senior's handshake, and repeats a lost one much later. */
static bool must_wait(const ofi_iface *iface, const ofi_ep *ep, uint64_t now)
{
    return now - ep->began_ns < (ep->state == OFI_BROKEN ? BROKEN_DELAY_NS : JUNIOR_DELAY_NS) && !is_senior(iface, ep);
}

/* Repeats a handshake that may be lost with its connection, at growing intervals. */
static void repeat(const ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    uint64_t min = is_senior(iface, ep) ? SENIOR_REPEAT_NS : REPEAT_NS;
    if (ep->called_ns && now - ep->called_ns > min << ep->repeats) {
        ep->called_ns = 0;
        ep->repeats += ep->repeats < 5;
    }
}

/* All addresses of a peer have failed. True: it was reached before and may come back: they are tried again. */
static bool may_come_back(const ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    uint64_t limit = peer_timeout_ns();
    bool are_refused = true;
    if (!iface->keeps || ep->state == OFI_CONNECTING)
        return false;
    for (uint32_t i = 0; i < ep->candidate_count; i++)
        if (ep->candidates[i].probed_ns >= ep->began_ns)
            are_refused &= strstr(ep->candidates[i].why, "refused") != NULL;
    if (are_refused && limit > REFUSED_NS)
        limit = REFUSED_NS;
    if (now - ep->began_ns > limit)
        return false;
    for (uint32_t i = 0; i < ep->candidate_count; i++) {
        ofi_candidate *candidate = &ep->candidates[i];
        if (candidate->state == OFI_CANDIDATE_FAILED && candidate->probed_ns >= ep->began_ns && now - candidate->probed_ns > AGAIN_NS)
            candidate->state = OFI_CANDIDATE_NEW;
    }
    return true;
}

/* Warns, once per break, that the connection is not restored after REPORT_NS. */
static void report(ofi_ep *ep, uint64_t now)
{
    if (ep->state != OFI_BROKEN || ep->is_reported || now - ep->began_ns < REPORT_NS)
        return;
    ep->is_reported = true;
    weft_log(WEFT_LOG_WARN, "the connection to rank %u is being made anew for %.0f s, try %u, until WEFT_PEER_TIMEOUT_S (%d): %s",
             ep->proc_id.rank, (double)(now - ep->began_ns) / 1e9, ep->tries, weft_knob.peer_timeout_s, ep->broken_by);
}

static int pursue(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    ofi_candidate *candidate = &ep->candidates[ep->candidate];
    if (ep->addr.knocks && ofi_knock_turn(iface, ep, now))
        return 1;
    if (ep->addr.knocks && candidate->state != OFI_CANDIDATE_FAILED)
        return 0;
    repeat(iface, ep, now);
    if (!ep->called_ns && candidate->state != OFI_CANDIDATE_FAILED && !must_wait(iface, ep, now)) {
        if (!candidate->attempt)
            candidate->attempt = ++ep->attempt;
        if (send_handshake(iface, ep, candidate, candidate->attempt, 0, 0) == 0) {
            ep->called_ns = now;
            ep->tries++;
        }
    }
    report(ep, now);
    if (!ep->addr.knocks && now - ep->began_ns > OFI_HANDSHAKE_NS)
        probe(iface, ep, now);
    if (candidate->state == OFI_CANDIDATE_FAILED) {
        if (next_candidate(iface, ep))
            return 1;
        if (may_come_back(iface, ep, now))
            return 0;
        fail_unreached(iface, ep);
        return 1;
    }
    if (candidate->state == OFI_CANDIDATE_LISTENS && now - ep->tried_ns > ROTATE_NS && ep->state == OFI_CONNECTING)
        next_candidate(iface, ep);
    return 0;
}

/* -- passive side -- */

static uint32_t candidate_of_hint(const ofi_iface *iface, ofi_ep *ep, const ofi_handshake *msg)
{
    if (!ofi_hint_is_address(iface, msg->hint, msg->hint_bytes))
        return ep->has_remote_index ? ep->candidate : 0;
    for (uint32_t i = 0; i < ep->candidate_count; i++)
        if (ep->candidates[i].bytes == msg->hint_bytes && memcmp(&ep->candidates[i].address, msg->hint, msg->hint_bytes) == 0)
            return i;
    if (ep->candidate_count >= ep->candidate_max)
        return ep->candidate;
    ofi_candidate *candidate = &ep->candidates[ep->candidate_count];
    *candidate = (ofi_candidate){.bytes = msg->hint_bytes, .probe = -1};
    memcpy(&candidate->address, msg->hint, msg->hint_bytes);
    return ep->candidate_count++;
}

/* Answers the handshake in reply_due. 0: sent. */
static int answer(ofi_iface *iface, ofi_ep *ep)
{
    ofi_candidate *candidate = &ep->candidates[ep->echo_candidate];
    bool calls = ep->state == OFI_CONNECTING || ep->state == OFI_BROKEN;
    if (calls && !candidate->attempt)
        candidate->attempt = ++ep->attempt;
    if (send_handshake(iface, ep, candidate, calls ? candidate->attempt : 0, ep->reply_due, 0))
        return WEFT_AGAIN;
    ep->reply_due = 0;
    if (calls && ep->candidate != ep->echo_candidate) {
        ep->candidate = ep->echo_candidate;
        ep->tried_ns = iface->now_ns();
    }
    if (calls)
        ep->called_ns = iface->now_ns();
    return 0;
}

/* Answers the close of a process without ep. */
static void answer_close(ofi_iface *iface, const ofi_handshake *msg)
{
    ofi_handshake back = {.proc_id = iface->self, .nonce = iface->addr.nonce, .echo = msg->attempt};
    ofi_address address;
    fi_addr_t to;
    back.wire = (ofi_wire){.nonce = msg->nonce, .to = msg->ep_index, .kind = OFI_HANDSHAKE};
    if (!ofi_hint_is_address(iface, msg->hint, msg->hint_bytes))
        return;
    memcpy(&address, msg->hint, msg->hint_bytes);
    if (fi_av_insert(iface->av, &address, 1, &to, 0, NULL) == 1)
        ofi_handshake_send(iface, to, &back, sizeof back); /* not repeated: the caller's other means end its wait */
}

static void opened(ofi_iface *iface, ofi_ep *ep)
{
    ep->state = OFI_OPEN;
    ep->candidates[ep->candidate].state = OFI_CANDIDATE_LISTENS;
    if (*ep->broken_by) {
        weft_failover what = {.paths = 1, .breaks = ep->breaks};
        if (ep->is_reported)
            weft_log(WEFT_LOG_WARN, "the connection to rank %u goes on", ep->proc_id.rank);
        if (iface->iface.callbacks->failover)
            iface->iface.callbacks->failover(iface->iface.owner, ep->ep.peer, &what);
    }
    *ep->broken_by = 0;
    ep->watched = ep->acked;
    ep->ping_ns = 0;
    iface->sockets_ns = 0; /* the next check sees the new connection */
    if (!ep->reply_due && !ep->is_closing)
        rest(ep);
    ofi_rma_progress(iface, ep);
}

/* The handshake has the peer's count of received frames: sends the rest again. */
static void resume(ofi_iface *iface, ofi_ep *ep)
{
    ep->state = OFI_RESUMING;
    ofi_keep_rewind(iface, ep);
    chase(iface, ep);
    if (ofi_keep_resend(iface, ep))
        opened(iface, ep);
}

/* True if the peer lacks frames that are kept here. */
static bool is_behind(ofi_iface *iface, ofi_ep *ep, const ofi_handshake *msg)
{
    uint32_t sent = ep->sent - ofi_coalesce_frames(iface, ep);
    return iface->keeps && (int32_t)(sent - msg->received) > 0 && (int32_t)(msg->received - ep->acked) >= 0;
}

/* A peer without ep, which has no index, needs nothing. */
static void close_echoed(ofi_iface *iface, ofi_ep *ep, const ofi_handshake *msg)
{
    if (msg->ep_index && is_behind(iface, ep, msg)) {
        resume(iface, ep); /* `repeat` sends the close again */
        return;
    }
    ep->peer_closed = true;
    ofi_keep_drop(iface, ep);
}

static void echoed(ofi_iface *iface, ofi_ep *ep, const ofi_handshake *msg)
{
    if (ep->is_closing && msg->echo == ep->close_attempt) {
        close_echoed(iface, ep, msg);
        return;
    }
    for (uint32_t i = 0; i < ep->candidate_count; i++) {
        if (ep->candidates[i].attempt != msg->echo)
            continue;
        if (ep->state == OFI_CONNECTING) {
            ep->candidate = i;
            opened(iface, ep);
        } else if (ep->state == OFI_BROKEN && iface->keeps) {
            ep->candidate = i;
            resume(iface, ep);
        } else if (ep->state == OFI_BROKEN && msg->received == ep->sent - ofi_coalesce_frames(iface, ep) &&
                   msg->sent == ep->received) {
            opened(iface, ep);
        } else if (ep->state == OFI_BROKEN) {
            ep->candidates[i].attempt = 0; /* a later turn sends a new number */
            ep->tried_ns = iface->now_ns();
        }
        return;
    }
}

ofi_ep *ofi_ep_find_or_accept(ofi_iface *iface, const weft_proc_id *proc_id)
{
    ofi_ep *ep = ofi_ep_of(iface, proc_id);
    return ep || !iface->iface.callbacks->accept_peer(iface->iface.owner, proc_id) ? ep : ofi_ep_of(iface, proc_id);
}

static ofi_ep *known(ofi_iface *iface, const ofi_handshake *msg)
{
    bool is_first = msg->attempt && !(msg->wire.flags & OFI_HANDSHAKE_CLOSE);
    ofi_ep *ep = is_first ? ofi_ep_find_or_accept(iface, &msg->proc_id) : ofi_ep_of(iface, &msg->proc_id);
    return ep && ep->addr.nonce == msg->nonce ? ep : NULL;
}

/* The return address of the message has the port of a peer whose published address does not have it. Without, that peer is asked, and
 * repeats its handshake meanwhile. */
static bool has_port(ofi_iface *iface, ofi_ep *ep, const ofi_handshake *msg)
{
    ofi_address back;
    if (!ep->addr.knocks)
        return true;
    ofi_handshake_begin(iface, ep);
    if (!ofi_hint_is_address(iface, msg->hint, msg->hint_bytes))
        return false;
    memcpy(&back, msg->hint, msg->hint_bytes);
    ofi_knock_learn(iface, ep, back.any.sa_family == AF_INET ? back.in.sin_port : back.in6.sin6_port);
    return true;
}

void ofi_handshake_recv(ofi_iface *iface, const ofi_handshake *msg)
{
    bool leaves = msg->wire.flags & OFI_HANDSHAKE_CLOSE;
    ofi_ep *ep;
    ep = known(iface, msg);
    if (!ep) {
        if (msg->attempt && leaves)
            answer_close(iface, msg);
        return;
    }
    if (ep->state == OFI_FAILED || !has_port(iface, ep, msg))
        return;
    ep->remote_index = msg->ep_index ? msg->ep_index : ep->remote_index; /* an answer to LEAVE from a freed ep has no index */
    ep->has_remote_index = true;
    ep->received_ns = 0;
    if (msg->attempt) {
        ep->reply_due_ns = iface->now_ns();
        ep->reply_due = msg->attempt;
        ep->echo_candidate = candidate_of_hint(iface, ep, msg);
        ofi_handshake_begin(iface, ep); /* opens the direction to the peer at once */
        chase(iface, ep);
        answer(iface, ep);
    }
    if (iface->keeps && (int32_t)(msg->received - ep->acked) > 0 && (int32_t)(ep->sent - msg->received) >= 0) {
        ep->acked = msg->received;
        ofi_keep_acked(iface, ep);
    }
    if (msg->echo)
        echoed(iface, ep, msg);
    else if ((ep->state == OFI_OPEN || ep->state == OFI_RESUMING) && is_behind(iface, ep, msg))
        resume(iface, ep); /* the peer has noticed a break first */
    if (leaves && msg->attempt && (!iface->keeps || (int32_t)(msg->sent - ep->received) <= 0)) {
        ep->peer_closed = true;
        ofi_keep_drop(iface, ep);
    }
    if (ep->is_handshaking && ep->state == OFI_OPEN && !ep->reply_due && !ep->is_closing)
        rest(ep);
}

/* -- closing -- */

static void pursue_leave(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    ofi_candidate *candidate = &ep->candidates[ep->candidate];
    if (ep->peer_closed)
        return;
    if (ep->state == OFI_RESUMING) {
        if (!ofi_keep_resend(iface, ep))
            return;
        opened(iface, ep);
        ep->called_ns = 0; /* the close follows what was sent again */
    }
    repeat(iface, ep, now);
    if (!ep->called_ns && send_handshake(iface, ep, candidate, ep->close_attempt, 0, OFI_HANDSHAKE_CLOSE) == 0)
        ep->called_ns = now;
    if (now - ep->began_ns > OFI_HANDSHAKE_NS)
        probe(iface, ep, now);
    if (candidate->state == OFI_CANDIDATE_FAILED && !weft_list_is_empty(&ep->kept) && may_come_back(iface, ep, now))
        return;
    if (candidate->state != OFI_CANDIDATE_FAILED && now - ep->began_ns <= peer_timeout_ns())
        return;
    ep->peer_closed = true; /* the peer is gone, which it may be after BYE */
    ofi_keep_drop(iface, ep);
}

int ofi_ep_close(weft_iface *base, weft_ep *base_ep)
{
    ofi_iface *iface = (ofi_iface *)base;
    ofi_ep *ep = (ofi_ep *)base_ep;
    if (ep->state != OFI_FAILED && (ep->slots_out || !weft_list_is_empty(&ep->ops)))
        return WEFT_AGAIN;
    if (ep->state == OFI_FAILED || (ep->peer_closed && !ep->reply_due) || (!ep->has_remote_index && !ep->sent)) {
        ofi_ep_free(iface, ep);
        return 0;
    }
    if (!ep->is_closing) {
        ep->is_closing = true;
        ep->close_attempt = ++ep->attempt;
        begin(iface, ep);
    }
    return WEFT_AGAIN;
}

/* -- progress -- */

/* Sends an answer that could not be sent before. A peer that has closed may be gone with its listener: then the answer is dropped, so that
 * it does not delay the local close. */
static void repay(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    ofi_candidate *candidate = &ep->candidates[ep->echo_candidate];
    if (answer(iface, ep) == 0 || !ep->peer_closed || now - ep->reply_due_ns < OFI_HANDSHAKE_NS)
        return;
    probe(iface, ep, now);
    if (candidate->state == OFI_CANDIDATE_FAILED || now - ep->reply_due_ns > peer_timeout_ns())
        ep->reply_due = 0;
}

static int turn(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    if (ep->reply_due)
        repay(iface, ep, now);
    if (ep->is_closing) {
        pursue_leave(iface, ep, now);
        return ep->peer_closed;
    }
    if (ep->state == OFI_RESUMING) {
        if (ofi_keep_resend(iface, ep))
            opened(iface, ep);
        return ep->state == OFI_OPEN;
    }
    if (ep->state == OFI_CONNECTING || (ep->state == OFI_BROKEN && (iface->keeps || ep->candidates[ep->candidate].attempt)))
        return pursue(iface, ep, now);
    if (ep->state == OFI_BROKEN && now - ep->began_ns > MISSING_NS) {
        char text[256];
        snprintf(text, sizeof text, "its connection broke (%s), and frames in flight were lost: is the network unstable?",
                 ep->broken_by);
        ofi_peer_failed(iface, ep, text);
        return 1;
    }
    if (ep->state == OFI_BROKEN && now - ep->tried_ns > RETRY_NS) {
        ep->called_ns = 0;
        return pursue(iface, ep, now);
    }
    if (ep->state == OFI_OPEN && !ep->reply_due)
        rest(ep);
    return 0;
}

int ofi_handshake_turn(ofi_iface *iface)
{
    uint64_t now = iface->now_ns();
    int n = 0;
    if (now - iface->progress_ns < OFI_TURN_NS)
        return 0;
    iface->progress_ns = now;
    for (weft_list_link *link = iface->handshaking.next; link != &iface->handshaking && !n;) {
        ofi_ep *ep = weft_container(link, ofi_ep, handshaking);
        link = link->next;
        n += turn(iface, ep, now); /* a callback may have changed the list: stops here */
    }
    ofi_watch(iface, now);
    return n;
}

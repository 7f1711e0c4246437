/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rest: a process at rest after MPI_Finalize does not poll, so it has no connection: there is no epoch that could end. Called by core
 * (weft_iface_ops.ep_rest), conn.c and epoch.c.
 *
 * Each side closes alone, asks nobody and tells nobody: as if an error had ended the epoch, but the next one begins with the next frame. So
 * there is no last message that could be lost. The ep stays with its frame numbers and the frames that have not arrived.
 * A peer may still call in an epoch that this side has abandoned; the answer is a later one (verbs_conn_follow).
 *
 * A peer that is called and does not answer may be at rest, or have ended there: the owner knows (callbacks.absence). One at rest is called
 * once a second while there is something for it, for any time. It finds a call among its datagrams when it returns. A call has no queue
 * pair, as calls without an answer would keep all those of a small device from peers that answer: the epoch begins when it calls back.
 */
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

#include "base/macros.h"
#include "base/status.h"

#define SCAN_NS 1000000u   /* interval of checks whether all has arrived at a peer that rests */
#define CALLED_NS (50u * VERBS_MS) /* a peer that has connected has something to send: its first frame is awaited so long */
#define LOOK_NS (50u * VERBS_MS)   /* longest sleep of an owner on its way to rest */
#define DOUBT_NS (2u * VERBS_SECOND) /* silence of a peer of which the owner knows nothing, before its calls have no queue pairs */
#define MAYBE_TIMEOUTS 60u /* a peer of which the owner knows nothing is lost after so many times WEFT_PEER_TIMEOUT_S */

/* All numbered frames are known to have arrived, by their completions or by the peer's acks; does not ask for that. Not the others: credits
 * that were returned to a peer which has closed its end complete with an error, two seconds later. */
static bool has_arrived(const verbs_ep *ep) { return !ep->ops_open && ep->tx_acked == ep->tx_seq; }

/* The peer was connected in this epoch, as it has sent or acknowledged a frame: it does not call in it any more. */
static bool was_answered(const verbs_ep *ep) { return ep->tx_acked + ep->rx_seq != ep->hs->up_frames; }

bool verbs_rest_ends_epoch(const verbs_ep *ep)
{
    const verbs_handshake *hs = ep->hs;
    if (hs->rest == WEFT_EP_RETURN || hs->rest == WEFT_EP_LEAVE)
        return hs->rest == WEFT_EP_LEAVE;
    return has_arrived(ep) && (int32_t)(hs->remote_epoch - ep->epoch) <= 0 && !(hs->rest == WEFT_EP_IDLE && ep->is_blocked);
}

int verbs_rest_progress(verbs_ep *ep, uint64_t now)
{
    if (ep->state != VERBS_UP || ep->hs->rest != WEFT_EP_IDLE || ep->hs->is_closing)
        return 0;
    if (verbs_rest_ends_epoch(ep)) {
        verbs_conn_end(ep);
        return 1;
    }
    verbs_rc_qp_sync(ep->home);
    verbs_conn_due(ep, now + SCAN_NS);
    return 0;
}

void verbs_rest_abandon(verbs_ep *ep)
{
    verbs_handshake *hs = ep->hs;
    hs->rest = WEFT_EP_RETURN;
    hs->is_abandoned = !was_answered(ep);
    hs->trouble_ns = hs->lack_ns = ep->silent_since_ns = 0;
    hs->trouble_count = 0;
    hs->gives_way = hs->lacks_qps = hs->is_alone = hs->is_excused = false;
    ep->evict = VERBS_EVICT_NONE;
    verbs_conn_set_state(ep, VERBS_NEW);
}

/* The owner waits for the peer's answer, or for word of it from the launcher, which comes without an event: it must not sleep for long. */
static void look_again(verbs_ep *ep)
{
    uint64_t when = verbs_conn_now(ep) + LOOK_NS;
    if (!ep->hs->is_busy || ep->hs->due_ns > when)
        verbs_conn_due(ep, when);
}

int verbs_ep_rest(weft_iface *base, weft_ep *of, enum weft_ep_rest how)
{
    verbs_ep *ep = (verbs_ep *)of;
    verbs_handshake *hs = ep->hs;
    bool is_unanswered = ep->state == VERBS_CONNECTING && !verbs_conn_has_offer(ep) && !hs->is_connected;
    (void)base;
    if (how == WEFT_EP_IDLE) {
        if (ep->state == VERBS_UP || ep->state == VERBS_DRAINING)
            hs->rest = how;
        if (ep->state == VERBS_UP)
            verbs_conn_due(ep, verbs_conn_now(ep));
        return 0;
    }
    hs->is_left = how == WEFT_EP_LEAVE;
    if (how == WEFT_EP_RETURN) {
        if (ep->state == VERBS_NEW && !has_arrived(ep))
            verbs_conn_begin(ep);
        if (ep->state == VERBS_UP)
            look_again(ep);
        return 0;
    }
    if (ep->state == VERBS_NEW || ep->state == VERBS_FAILED)
        return 0;
    hs->rest = how;
    if (ep->state == VERBS_DRAINING)
        return WEFT_AGAIN;
    if (ep->state == VERBS_UP && ep->home)
        verbs_rc_qp_sync(ep->home);
    if (how == WEFT_EP_REST && ep->state == VERBS_UP && !was_answered(ep) && verbs_conn_now(ep) - hs->up_ns < CALLED_NS) {
        verbs_conn_due(ep, hs->up_ns + CALLED_NS);
        return WEFT_AGAIN;
    }
    if (how == WEFT_EP_LEAVE || ((ep->state == VERBS_UP || is_unanswered) && has_arrived(ep)))
        verbs_conn_end(ep);
    else
        look_again(ep);
    return WEFT_AGAIN;
}

/* Others may need its queue pairs. */
static void give_qps_back(verbs_ep *ep)
{
    ep->hs->is_excused = true;
    if (!verbs_conn_has_qps(ep))
        return;
    ep->hs->gives_way = true;
    verbs_conn_renew(&ep->qps[0], "the peer rests: its queue pairs are given back");
}

bool verbs_rest_excuses(verbs_ep *ep, uint64_t now)
{
    const weft_iface *iface = &ep->iface->iface;
    verbs_handshake *hs = ep->hs;
    uint64_t silent = now - ep->silent_since_ns;
    switch (iface->callbacks->absence ? iface->callbacks->absence(iface->owner, ep->ep.peer) : WEFT_ABSENCE_NONE) {
    case WEFT_ABSENCE_MAYBE:
        if (silent > MAYBE_TIMEOUTS * verbs_conn_timeout_ns())
            return false;
        break;
    case WEFT_ABSENCE_REST:
        ep->silent_since_ns = now; /* its timeout begins when it has returned */
        hs->rest = has_arrived(ep) && !ep->is_blocked ? WEFT_EP_LEAVE : WEFT_EP_RETURN;
        silent = UINT64_MAX;
        break;
    case WEFT_ABSENCE_END:
        hs->has_ended = true;
        verbs_conn_peer_failed(ep, "its process has ended, after MPI_Finalize or its last MPI_Session_finalize");
        return true;
    default:
        hs->is_excused = false;
        return false;
    }
    hs->trouble_ns = now;
    if (hs->rest == WEFT_EP_LEAVE)
        verbs_conn_end(ep);
    else if (silent > DOUBT_NS && !hs->by_cm) /* the launcher may not have answered yet */
        give_qps_back(ep);
    return true;
}

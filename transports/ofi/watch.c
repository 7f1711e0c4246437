/* SPDX-License-Identifier: BSD-3-Clause
 *
 * watch: looks at open peers now and then. Losses that no operation reports are found by frames that stay unacknowledged for WATCH_NS: a
 * ping asks, and carries the number of the last frame before it, so that the peer sees what is missing. A peer that is silent for long is
 * pinged, too, as libfabric's tcp does not report a dead peer to a side that only receives.
 */
#include "transports/ofi/ofi.h"

#define SILENT_NS 5000000000u
#define WATCH_NS 100000000u     /* a frame without acknowledgement is asked about after this time ... */
#define PING_NS_MAX 5000000000u /* ... and at growing intervals up to this */
#define SOCKETS_NS 1000000000u

/* False: it cannot be sent. */
static bool ping(ofi_iface *iface, ofi_ep *ep)
{
    ofi_wire wire;
    ssize_t rc;
    ofi_sign(iface, ep, &wire, OFI_PING);
    wire.seq = ep->sent - ofi_coalesce_frames(iface, ep);
    wire.flags = iface->keeps ? OFI_ASKS : 0;
    rc = ofi_wire_send(iface, ep, &wire);
    if (rc)
        ofi_refused(iface, ep, rc);
    return rc == 0;
}

/* Checks an OPEN peer that is silent, or does not take frames, by a ping and a probe. */
static void watch(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    ofi_candidate *candidate = &ep->candidates[ep->candidate];
    if (!ep->received_ns) {
        ep->received_ns = now;
        ofi_tcp_probe_end(candidate);
        return;
    }
    if (candidate->state == OFI_CANDIDATE_PROBED) {
        ofi_tcp_probe_poll(candidate, now);
        if (candidate->state == OFI_CANDIDATE_FAILED)
            ofi_break(iface, ep, "the peer did not answer");
        return;
    }
    if (now - ep->received_ns < (ep->is_blocked ? SILENT_NS / 5 : SILENT_NS) || !ofi_can_probe(iface))
        return;
    if (!ping(iface, ep) && ep->state == OFI_OPEN)
        ofi_tcp_probe_begin(candidate, now); /* cannot be sent: probes whether the connection is gone */
    ep->received_ns = now;
}

/* Asks about frames that are not acknowledged. */
static void watch_kept(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    if (!ep->ping_ns || (int32_t)(ep->acked - ep->watched) >= 0) {
        ep->watched = ep->sent - ofi_coalesce_frames(iface, ep);
        ep->ping_gap_ns = WATCH_NS;
        ep->ping_ns = now + ep->ping_gap_ns;
        return;
    }
    if (now < ep->ping_ns || !ping(iface, ep))
        return;
    ep->ping_gap_ns = 2 * ep->ping_gap_ns < PING_NS_MAX ? 2 * ep->ping_gap_ns : PING_NS_MAX;
    ep->ping_ns = now + ep->ping_gap_ns;
}

uint64_t ofi_watch_within(const ofi_iface *iface)
{
    for (const weft_list_link *link = iface->eps.next; iface->keeps && link != &iface->eps; link = link->next) {
        const ofi_ep *ep = weft_container(link, ofi_ep, link);
        if (ep->sent != ep->acked && ep->state == OFI_OPEN && !ep->peer_closed)
            return WATCH_NS;
    }
    return 0;
}

void ofi_watch(ofi_iface *iface, uint64_t now)
{
    bool is_second = now - iface->checked_ns >= 1000000000u;
    if (!is_second && (!iface->keeps || now - iface->watched_ns < WATCH_NS / 2))
        return;
    iface->watched_ns = now;
    if (is_second)
        iface->checked_ns = now;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) {
        ofi_ep *ep = weft_container(link, ofi_ep, link);
        if (ep->state != OFI_OPEN || ep->peer_closed || ep->is_closing)
            continue;
        if (is_second)
            watch(iface, ep, now);
        if (iface->keeps && ep->sent != ep->acked && ep->state == OFI_OPEN)
            watch_kept(iface, ep, now);
    }
    if (now - iface->sockets_ns < SOCKETS_NS)
        return;
    iface->sockets_ns = now;
    ofi_tcp_sockets_check(iface);
}


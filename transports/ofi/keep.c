/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keep: messages that were sent. Over plain TCP each is kept until the peer has acknowledged its frames, as a connection may break with
 * messages on the way; then the handshake tells what the peer received, and the rest is sent again in order. A frame that comes twice is
 * dropped by its number. Acknowledgements ride on every frame; a sender that keeps much asks for one. Elsewhere a message is kept only
 * while it is in flight.
 * Memory: a message stays in its slot, except a short one in a big slot, which is moved. A body that was sent without copy stays the
 * caller's until the acknowledgement, or COPY_NS after the provider has released it, or until the caller wants to sleep: then it is copied,
 * as its owner may wait while the peer computes.
 * Order: ep->kept is sorted by number; only its last message may still be filled (coalesce.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "transports/ofi/ofi.h"

#define ASK_BYTES (512u << 10)  /* sent to a peer without a request for an acknowledgement */
#define ASK_SOON (8u << 10)     /* likewise if the iface keeps more than MANY_BYTES */
#define MANY_BYTES (16u << 20)
#define COPY_NS 50000u

static bool is_acked(const ofi_ep *ep, const ofi_slot *slot) { return (int32_t)(ep->acked - slot->last) >= 0; }

/* Nothing is sent to this peer any more. */
static bool is_over(const ofi_ep *ep) { return ep->state == OFI_FAILED || ep->peer_closed; }

uint8_t ofi_keep_flags(ofi_iface *iface, ofi_ep *ep, size_t bytes)
{
    if (!iface->keeps)
        return 0;
    ep->unasked += (uint32_t)bytes;
    if (ep->unasked < (iface->kept_bytes > MANY_BYTES ? ASK_SOON : ASK_BYTES))
        return 0;
    ep->unasked = 0;
    return OFI_ASKS;
}

void ofi_keep(ofi_iface *iface, ofi_ep *ep, ofi_slot *slot, uint32_t last, size_t bytes)
{
    if (slot->link.next == &slot->link) {
        weft_list_append(&ep->kept, &slot->link);
        slot->work.ep = ep;
        slot->bytes = 0;
    }
    slot->last = last;
    slot->bytes += (uint32_t)bytes;
    ep->kept_bytes += (uint32_t)bytes;
    iface->kept_bytes += bytes;
}

static void take_out(ofi_iface *iface, ofi_ep *ep, ofi_slot *slot)
{
    if (ep->resend == &slot->link)
        ep->resend = slot->link.next;
    weft_list_remove(&slot->link);
    weft_list_remove(&slot->by_held);
    ep->kept_bytes -= slot->bytes;
    iface->kept_bytes -= slot->bytes;
}

static void end(ofi_iface *iface, ofi_slot *slot)
{
    void *held = slot->held;
    ofi_slot_free(iface, slot);
    if (held)
        iface->iface.callbacks->done(iface->iface.owner, held, 0);
}

static void release(ofi_iface *iface, ofi_ep *ep, ofi_slot *slot)
{
    take_out(iface, ep, slot);
    end(iface, slot);
}

/* Moves the message to memory of its own length; the slot is then in no list. False: no memory. */
static bool move_out(ofi_ep *ep, ofi_slot *slot)
{
    ofi_slot *copy = malloc(sizeof *copy + slot->bytes);
    size_t head = slot->body ? sizeof(ofi_framed) : slot->bytes;
    if (!copy)
        return false;
    *copy = (ofi_slot){.work = {.kind = OFI_WORK_SLOT, .ep = ep}, .is_extra = true, .place = (uint8_t *)(copy + 1), .last = slot->last,
                       .bytes = slot->bytes};
    weft_list_init(&copy->by_held);
    memcpy(copy->place, slot->place, head);
    if (slot->body) {
        size_t bytes = ((const ofi_framed *)slot->place)->hdr.bytes;
        memcpy(copy->place + head, slot->body, bytes);
        memset(copy->place + head + bytes, 0, slot->bytes - head - bytes);
    }
    weft_list_append(slot->link.next, &copy->link); /* inserts before the next one */
    if (ep->resend == &slot->link)
        ep->resend = &copy->link;
    weft_list_remove(&slot->link);
    weft_list_remove(&slot->by_held);
    return true;
}

void ofi_keep_done(ofi_iface *iface, ofi_ep *ep, ofi_slot *slot)
{
    if (!iface->keeps || is_over(ep) || is_acked(ep, slot)) {
        release(iface, ep, slot);
        ofi_keep_acked(iface, ep);
    } else if (slot->held) {
        slot->held_ns = iface->now_ns();
        weft_list_append(&iface->held, &slot->by_held);
    } else if (!slot->is_small && !slot->is_extra && slot->bytes <= iface->message_max / 2 && move_out(ep, slot)) {
        ofi_slot_free(iface, slot);
    }
}

void ofi_keep_acked(ofi_iface *iface, ofi_ep *ep)
{
    for (weft_list_link *link; (link = weft_list_first(&ep->kept)) != NULL;) {
        ofi_slot *slot = weft_container(link, ofi_slot, link);
        if (slot->is_posted || !(is_over(ep) || is_acked(ep, slot)))
            break;
        release(iface, ep, slot);
    }
}

int ofi_keep_copy(ofi_iface *iface)
{
    uint64_t now = iface->now_ns();
    int n = 0;
    for (weft_list_link *link; (link = weft_list_first(&iface->held)) != NULL; n++) {
        ofi_slot *slot = weft_container(link, ofi_slot, by_held);
        if ((now - slot->held_ns < COPY_NS && !iface->wants_sleep) || !move_out(slot->work.ep, slot))
            break;
        iface->counts[OFI_COUNT_COPIED_LATE]++;
        end(iface, slot);
    }
    iface->wants_sleep = false;
    return n;
}

void ofi_keep_rewind(ofi_iface *iface, ofi_ep *ep)
{
    ofi_coalesce_frames(iface, ep); /* updates `last` of a bundle that the flusher has sent */
    ep->resend = ep->kept.next;
}

bool ofi_keep_resend(ofi_iface *iface, ofi_ep *ep)
{
    while (ep->resend && ep->resend != &ep->kept) {
        ofi_slot *slot = weft_container(ep->resend, ofi_slot, link);
        ssize_t rc;
        if (slot == ep->coalesce.slot)
            break; /* not sent yet */
        if (slot->is_posted)
            return false; /* its completion or its error comes */
        weft_list_remove(&slot->by_held); /* the provider has the body again */
        rc = ofi_slot_post(iface, slot, ep, slot->bytes);
        if (rc) {
            if (slot->held)
                weft_list_append(&iface->held, &slot->by_held);
            ofi_refused(iface, ep, rc);
            return false;
        }
        iface->counts[OFI_COUNT_RESENT]++;
        ep->resend = slot->link.next;
    }
    ep->resend = NULL;
    return true;
}

void ofi_keep_drop(ofi_iface *iface, ofi_ep *ep)
{
    for (weft_list_link *link = ep->kept.next, *next; link != &ep->kept; link = next) {
        ofi_slot *slot = weft_container(link, ofi_slot, link);
        next = link->next;
        if (slot->is_posted)
            continue;
        release(iface, ep, slot);
        next = ep->kept.next; /* a callback may have changed the list */
    }
}

void ofi_keep_orphan(ofi_iface *iface, ofi_ep *ep)
{
    for (weft_list_link *link; (link = weft_list_first(&ep->kept)) != NULL;) {
        ofi_slot *slot = weft_container(link, ofi_slot, link);
        take_out(iface, ep, slot);
        slot->work.ep = NULL;
        if (slot->is_posted)
            weft_list_append(&iface->orphans, &slot->link);
        else
            ofi_slot_free(iface, slot);
    }
}

void ofi_keep_close(ofi_iface *iface)
{
    for (weft_list_link *link; (link = weft_list_take(&iface->orphans)) != NULL;)
        ofi_slot_free(iface, weft_container(link, ofi_slot, link));
}

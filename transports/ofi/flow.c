/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow: frames as messages. Short ones are sent by fi_inject, others from a slot of registered memory. Frames are numbered from 1 per peer.
 * Where the provider keeps no order they are sorted; where it does, a missing number shows that a connection broke. The receiver
 * acknowledges, so that a sender is at most OFI_WINDOW frames ahead, and knows what arrived (keep.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define SLOTS_PATH 24u /* big slots that one peer may occupy */
#define STACK_MAX 512u /* largest message built on the stack */
#define ACK_EVERY (OFI_WINDOW / 8)

typedef struct early { /* a frame received ahead of order */
    weft_list_link link;
    uint32_t seq;
    size_t bytes;
    _Alignas(8) uint8_t message[];
} early;

static void lay_out_slots(ofi_iface *iface, uint8_t *at)
{
    weft_list_init(&iface->free_big);
    weft_list_init(&iface->free_small);
    weft_list_init(&iface->free_frags);
    for (uint32_t i = 0; i < OFI_SLOTS + OFI_SMALL_SLOTS; i++) {
        ofi_slot *slot = &iface->slots[i];
        *slot = (ofi_slot){.work = {.kind = OFI_WORK_SLOT}, .is_small = i >= OFI_SLOTS, .place = at};
        weft_list_init(&slot->by_held);
        at += slot->is_small ? OFI_SMALL : iface->message_max;
        weft_list_append(slot->is_small ? &iface->free_small : &iface->free_big, &slot->link);
    }
    for (uint32_t i = 0; i < OFI_FRAGS; i++, at += 64) {
        iface->frags[i] = (ofi_frag){.work = {.kind = OFI_WORK_FRAG}, .words = (uint64_t *)at};
        weft_list_append(&iface->free_frags, &iface->frags[i].link);
    }
}

int ofi_flow_open(ofi_iface *iface)
{
    uint32_t recv_bytes = iface->has_multi_recv ? OFI_RECV_BYTES : iface->message_max;
    int rc = 0;
    iface->recv_posted = iface->entry = iface->entry_count = 0; /* of an earlier try */
    iface->entry_at = 0;
    iface->recv_count = iface->has_multi_recv ? OFI_RECVS : OFI_SINGLES;
    iface->recv_min = iface->recv_max = ofi_is_plain_tcp(iface->info) ? OFI_TCP_RECVS : iface->recv_count;
    iface->arena_bytes =
        (uint64_t)iface->recv_count * recv_bytes + (uint64_t)OFI_SLOTS * iface->message_max + OFI_SMALL_SLOTS * OFI_SMALL + OFI_FRAGS * 64;
    iface->arena = mmap(NULL, iface->arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    iface->bounce = malloc(iface->message_max);
    if (iface->arena == MAP_FAILED)
        iface->arena = NULL;
    if (!iface->arena || !iface->bounce)
        return weft_fail(WEFT_E_NOMEM, "no memory for %llu bytes of buffers", (unsigned long long)iface->arena_bytes);
    if (iface->needs_desc) {
        rc = ofi_register(iface, iface->arena, iface->arena_bytes, FI_SEND | FI_RECV | FI_READ | FI_WRITE, &iface->arena_mr);
        if (rc)
            return rc;
        iface->arena_desc = fi_mr_desc(iface->arena_mr);
    }
    lay_out_slots(iface, iface->arena + (uint64_t)iface->recv_count * recv_bytes);
    for (uint32_t i = 0; i < iface->recv_count; i++)
        iface->recvs[i] =
            (ofi_recv){.work = {.kind = OFI_WORK_RECV}, .place = iface->arena + (uint64_t)i * recv_bytes, .bytes = recv_bytes};
    rc = ofi_post_recvs(iface);
    return rc == WEFT_AGAIN ? 0 : rc;
}

static int post_recv(ofi_iface *iface, ofi_recv *recv)
{
    struct iovec part = {recv->place, recv->bytes};
    struct fi_msg message = {.msg_iov = &part, .desc = &iface->arena_desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &recv->work};
    ssize_t rc = fi_recvmsg(iface->ep, &message, iface->has_multi_recv ? FI_MULTI_RECV : 0);
    recv->is_posted = rc == 0;
    iface->recv_posted += recv->is_posted;
    if (rc == 0 || rc == -FI_EAGAIN)
        return rc ? WEFT_AGAIN : 0;
    return weft_fail(WEFT_E_SYSTEM, "no receive buffer can be posted with %s: %s", iface->addr.provider, ofi_error_text(rc));
}

int ofi_post_recvs(ofi_iface *iface)
{
    int rc = 0;
    for (uint32_t i = 0; i < iface->recv_count && iface->recv_posted < iface->recv_max && rc == 0; i++)
        if (!iface->recvs[i].is_posted)
            rc = post_recv(iface, &iface->recvs[i]);
    return rc;
}

void ofi_recv_done(ofi_iface *iface, ofi_recv *recv)
{
    recv->is_posted = false;
    iface->recv_posted--;
    if (iface->recv_max > iface->recv_min)
        iface->recv_max--; /* a receive beyond recv_min was consumed */
    if (iface->recv_posted < iface->recv_max)
        post_recv(iface, recv);
}

/* -- sending -- */

void ofi_sign(const ofi_iface *iface, ofi_ep *ep, ofi_wire *wire, enum ofi_kind kind)
{
    (void)iface;
    *wire = (ofi_wire){.nonce = ep->addr.nonce, .to = ep->remote_index, .ack = ep->received, .kind = (uint8_t)kind};
    ep->acked_to_peer = ep->received;
}

static ofi_slot *alloc_small(ofi_iface *iface)
{
    weft_list_link *link = weft_list_take(&iface->free_small);
    return link ? weft_container(link, ofi_slot, link) : NULL;
}

/* Where messages are kept for long the arena's slots may not suffice; the provider needs no registered memory there. */
static ofi_slot *alloc_extra(ofi_iface *iface, size_t bytes)
{
    ofi_slot *slot = iface->keeps ? malloc(sizeof *slot + bytes) : NULL;
    if (!slot)
        return NULL;
    *slot = (ofi_slot){.work = {.kind = OFI_WORK_SLOT}, .is_extra = true, .place = (uint8_t *)(slot + 1)};
    weft_list_init(&slot->link);
    weft_list_init(&slot->by_held);
    return slot;
}

ofi_slot *ofi_slot_alloc(ofi_iface *iface, size_t bytes)
{
    ofi_slot *slot = bytes <= OFI_SMALL ? alloc_small(iface) : NULL;
    weft_list_link *link = slot || (iface->keeps && bytes <= OFI_SMALL) ? NULL : weft_list_take(&iface->free_big);
    if (link)
        slot = weft_container(link, ofi_slot, link);
    return slot ? slot : alloc_extra(iface, bytes);
}

/* LIFO: the last slot used is still in the cache. */
void ofi_slot_free(ofi_iface *iface, ofi_slot *slot)
{
    if (slot->is_extra) {
        free(slot);
        return;
    }
    slot->work.ep = NULL;
    slot->held = NULL;
    slot->body = NULL;
    slot->is_posted = false;
    weft_list_append((slot->is_small ? &iface->free_small : &iface->free_big)->next, &slot->link);
}

ofi_slot *ofi_flow_slot(ofi_iface *iface, ofi_ep *ep)
{
    ofi_slot *slot = ep->slots_out < SLOTS_PATH ? ofi_slot_alloc(iface, iface->message_max) : NULL;
    if (!slot)
        return NULL;
    slot->work.ep = ep;
    slot->is_posted = true;
    ep->slots_out++;
    return slot;
}

static ssize_t post_zcopy(ofi_iface *iface, ofi_slot *slot, fi_addr_t to)
{
    ofi_framed *head = (ofi_framed *)slot->place;
    size_t pad = weft_round_up(head->hdr.bytes, 8) - head->hdr.bytes;
    struct iovec parts[3] = {{head, sizeof *head}, {(void *)slot->body, head->hdr.bytes}, {head->body, pad}};
    struct fi_msg message = {.msg_iov = parts, .iov_count = pad ? 3 : 2, .addr = to, .context = &slot->work};
    return fi_sendmsg(iface->ep, &message, FI_COMPLETION);
}

ssize_t ofi_slot_post(ofi_iface *iface, ofi_slot *slot, ofi_ep *ep, size_t bytes)
{
    fi_addr_t to = ep->candidates[ep->candidate].to;
    ssize_t rc;
    if (bytes <= iface->inject_max) {
        rc = fi_inject(iface->ep, slot->place, bytes, to);
        iface->counts[OFI_COUNT_INJECTED] += rc == 0;
        return rc;
    }
    slot->work.ep = ep;
    rc = slot->body ? post_zcopy(iface, slot, to) : fi_send(iface->ep, slot->place, bytes, iface->arena_desc, to, &slot->work);
    if (rc)
        return rc;
    slot->is_posted = true;
    ep->slots_out++;
    return 0;
}

void ofi_slot_done(ofi_iface *iface, ofi_slot *slot)
{
    ofi_ep *ep = slot->work.ep;
    slot->is_posted = false;
    if (ep) {
        ep->slots_out--;
        ofi_keep_done(iface, ep, slot);
        return;
    }
    void *held = slot->held;
    weft_list_remove(&slot->link); /* an orphan's */
    ofi_slot_free(iface, slot);
    if (held)
        iface->iface.callbacks->done(iface->iface.owner, held, 0);
}

int ofi_handshake_send(ofi_iface *iface, fi_addr_t to, const void *message, size_t bytes)
{
    ofi_slot *slot = NULL;
    ssize_t rc;
    if (bytes <= iface->inject_max) {
        rc = fi_inject(iface->ep, message, bytes, to);
    } else {
        slot = ofi_slot_alloc(iface, bytes);
        if (!slot)
            return WEFT_AGAIN;
        memcpy(slot->place, message, bytes);
        slot->about = ((const ofi_wire *)message)->kind == OFI_HANDSHAKE ? ((const ofi_handshake *)message)->ep_index : 0;
        slot->work.ep = NULL;
        rc = fi_send(iface->ep, slot->place, bytes, iface->arena_desc, to, &slot->work);
        if (rc)
            ofi_slot_free(iface, slot);
        else
            weft_list_append(&iface->orphans, &slot->link);
    }
    if (rc)
        ofi_wake_soon(iface);
    return rc ? WEFT_AGAIN : 0;
}

ssize_t ofi_wire_send(ofi_iface *iface, const ofi_ep *ep, const ofi_wire *wire)
{
    fi_addr_t to = ep->candidates[ep->candidate].to;
    if (sizeof *wire > iface->inject_max)
        return ofi_handshake_send(iface, to, wire, sizeof *wire) ? -FI_EAGAIN : 0;
    return fi_inject(iface->ep, wire, sizeof *wire, to);
}

/* True if nothing can be sent now; *rc is the return code for that. Begins the handshake if needed. */
static bool is_refused(ofi_iface *iface, ofi_ep *ep, int *rc)
{
    if (ep->state == OFI_FAILED) {
        *rc = weft_fail(WEFT_E_PEER, "rank %u is lost", ep->proc_id.rank);
        return true;
    }
    *rc = WEFT_AGAIN;
    if (weft_likely(ep->state == OFI_OPEN && ep->sent - ep->acked < OFI_WINDOW && (!iface->keeps || ep->kept_bytes < OFI_KEEP_BYTES)))
        return false;
    ofi_handshake_begin(iface, ep);
    ep->is_blocked = true;
    iface->counts[OFI_COUNT_AGAIN]++;
    return true;
}

static int refused(ofi_iface *iface, ofi_ep *ep, ssize_t rc)
{
    ep->is_blocked = true;
    iface->counts[OFI_COUNT_AGAIN]++;
    if (rc < 0)
        ofi_refused(iface, ep, rc);
    return WEFT_AGAIN;
}

static int went(ofi_iface *iface, ofi_ep *ep)
{
    ep->sent++;
    ep->is_blocked = false;
    iface->counts[OFI_COUNT_SENT]++;
    return 0;
}

static void sign_numbered(ofi_iface *iface, ofi_ep *ep, ofi_wire *wire, enum ofi_kind kind, size_t bytes)
{
    ofi_sign(iface, ep, wire, kind);
    wire->seq = ep->sent + 1;
    wire->flags = ofi_keep_flags(iface, ep, bytes + sizeof(ofi_framed));
}

void ofi_flow_fill(ofi_iface *iface, ofi_ep *ep, ofi_framed *place, const weft_frame *frame)
{
    sign_numbered(iface, ep, &place->wire, OFI_FRAME, frame->hdr.bytes);
    place->hdr = frame->hdr;
    if (frame->pack)
        frame->pack(frame, place->body);
    else if (frame->hdr.bytes)
        memcpy(place->body, frame->body, frame->hdr.bytes);
}

/* Posts the message in a slot, whose only frame is the next one of the ep. */
static int send_slot(ofi_iface *iface, ofi_ep *ep, ofi_slot *slot, size_t bytes)
{
    ssize_t rc = ofi_slot_post(iface, slot, ep, bytes);
    if (rc) {
        ofi_slot_free(iface, slot);
        return refused(iface, ep, rc);
    }
    went(iface, ep);
    if (iface->keeps || slot->is_posted)
        ofi_keep(iface, ep, slot, ep->sent, bytes);
    else
        ofi_slot_free(iface, slot);
    return 0;
}

/* Sends without copy: header and padding from a small slot, the body from the caller's memory. INPROGRESS: callbacks.done follows. */
static int send_held(ofi_iface *iface, ofi_ep *ep, const weft_frame *frame, size_t bytes)
{
    ofi_slot *slot = ep->slots_out >= SLOTS_PATH ? NULL : ofi_slot_alloc(iface, sizeof(ofi_framed) + 8);
    ofi_framed *head;
    int rc;
    if (!slot)
        return refused(iface, ep, 0);
    head = (ofi_framed *)slot->place;
    sign_numbered(iface, ep, &head->wire, OFI_FRAME, frame->hdr.bytes);
    head->hdr = frame->hdr;
    memset(head->body, 0, 8);
    slot->body = frame->body;
    rc = send_slot(iface, ep, slot, bytes);
    if (rc)
        return rc;
    slot->held = frame->zcopy_ctx;
    return WEFT_INPROGRESS;
}

int ofi_send(weft_iface *base, weft_ep *base_ep, const weft_frame *frame)
{
    ofi_iface *iface = (ofi_iface *)base;
    ofi_ep *ep = (ofi_ep *)base_ep;
    size_t bytes = weft_round_up(sizeof(ofi_framed) + frame->hdr.bytes, 8);
    _Alignas(8) uint8_t small[STACK_MAX];
    enum ofi_is_coalescing gathering;
    ofi_slot *slot;
    ssize_t sent;
    int rc;
    if (frame->hdr.bytes > base->caps.frame_max)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", frame->hdr.bytes, base->caps.frame_max);
    if (ep->peer_closed && ep->state != OFI_FAILED)
        return 0; /* the peer has closed: the frame is dropped */
    if (is_refused(iface, ep, &rc))
        return rc;
    gathering = ofi_coalesce_has(iface, ep, frame, bytes);
    if (gathering != OFI_ALONE)
        return gathering == OFI_COALESCED ? 0 : refused(iface, ep, 0);
    if (bytes <= iface->inject_max && !iface->keeps) {
        ofi_flow_fill(iface, ep, (ofi_framed *)small, frame);
        sent = fi_inject(iface->ep, small, bytes, ep->candidates[ep->candidate].to);
        iface->counts[OFI_COUNT_INJECTED] += sent == 0;
        return sent ? refused(iface, ep, sent) : went(iface, ep);
    }
    if (frame->zcopy_ctx && base->caps.zcopy_min && frame->hdr.bytes >= base->caps.zcopy_min)
        return send_held(iface, ep, frame, bytes);
    slot = bytes > OFI_SMALL && ep->slots_out >= SLOTS_PATH ? NULL : ofi_slot_alloc(iface, bytes);
    if (!slot)
        return refused(iface, ep, 0);
    ofi_flow_fill(iface, ep, (ofi_framed *)slot->place, frame);
    return send_slot(iface, ep, slot, bytes);
}

int ofi_notify(ofi_iface *iface, ofi_ep *ep, uint32_t value)
{
    ofi_slot *slot;
    ofi_notification *notice;
    int rc;
    if (is_refused(iface, ep, &rc))
        return rc;
    if (!ofi_coalesce_flush_ep(iface, ep))
        return refused(iface, ep, 0);
    slot = ofi_slot_alloc(iface, sizeof *notice);
    if (!slot)
        return refused(iface, ep, 0);
    notice = (ofi_notification *)slot->place;
    *notice = (ofi_notification){.value = value};
    sign_numbered(iface, ep, &notice->wire, OFI_NOTIFY, sizeof *notice);
    rc = send_slot(iface, ep, slot, sizeof *notice);
    return rc;
}

void ofi_acknowledge(ofi_iface *iface, ofi_ep *ep, uint32_t min)
{
    uint32_t told = ep->acked_to_peer;
    ofi_wire wire;
    ssize_t rc;
    if (ep->received - told < min || ep->state != OFI_OPEN || ep->peer_closed)
        return;
    ofi_sign(iface, ep, &wire, OFI_ACK);
    rc = ofi_wire_send(iface, ep, &wire);
    if (rc == 0)
        return;
    ep->acked_to_peer = told; /* the next frame or acknowledgement carries it */
    ofi_refused(iface, ep, rc);
}

/* -- receiving -- */

static int deliver(ofi_iface *iface, ofi_ep *ep, const void *message, size_t bytes)
{
    const ofi_framed *framed = message;
    const ofi_notification *notice = message;
    if (framed->wire.kind == OFI_NOTIFY ? bytes < sizeof *notice : bytes < sizeof *framed || bytes - sizeof *framed < framed->hdr.bytes) {
        ofi_peer_failed(iface, ep, "a frame has come that is shorter than it says: memory or network hardware fails");
        return 1;
    }
    ep->received++;
    if (framed->wire.kind == OFI_NOTIFY) {
        iface->iface.callbacks->notify(iface->iface.owner, ep->ep.peer, notice->value);
        return 1;
    }
    iface->counts[OFI_COUNT_ARRIVED]++;
    iface->iface.callbacks->recv_frame(iface->iface.owner, ep->ep.peer, &framed->hdr, framed->body);
    return 1;
}

static int deliver_early(ofi_iface *iface, ofi_ep *ep)
{
    int n = 0;
    while (!weft_list_is_empty(&ep->early) && ep->state != OFI_FAILED) {
        early *one = weft_container(ep->early.next, early, link);
        if (one->seq != ep->received + 1)
            break;
        weft_list_remove(&one->link);
        n += deliver(iface, ep, one->message, one->bytes);
        free(one);
    }
    return n;
}

/* Copies a frame received ahead of order, sorted by number; drops duplicates. */
static int hold_early(ofi_iface *iface, ofi_ep *ep, const ofi_wire *wire, size_t bytes)
{
    weft_list_link *at = ep->early.prev;
    early *one = malloc(sizeof *one + bytes);
    if (!one) {
        ofi_peer_failed(iface, ep, "no memory for a frame received out of order");
        return 1;
    }
    while (at != &ep->early && (int32_t)(weft_container(at, early, link)->seq - wire->seq) > 0)
        at = at->prev;
    if (at != &ep->early && weft_container(at, early, link)->seq == wire->seq) {
        free(one);
        return 0;
    }
    one->seq = wire->seq;
    one->bytes = bytes;
    memcpy(one->message, wire, bytes);
    weft_list_append(at->next, &one->link); /* inserts before the next one */
    if (!iface->sorts)
        ofi_break(iface, ep, "frames were lost: a frame number is missing");
    return 0;
}

void ofi_flow_drop(ofi_ep *ep)
{
    weft_list_link *link;
    while ((link = weft_list_take(&ep->early)))
        free(weft_container(link, early, link));
}

static int numbered(ofi_iface *iface, ofi_ep *ep, const ofi_wire *wire, size_t bytes)
{
    int n;
    if ((int32_t)(wire->seq - ep->received) <= 0 || ep->state == OFI_FAILED)
        return 0;
    if (wire->seq - ep->received > OFI_WINDOW) { /* the sender would have waited */
        ofi_peer_failed(iface, ep, "a frame with an impossible number has come: memory or network hardware fails");
        return 1;
    }
    if (wire->seq != ep->received + 1)
        return hold_early(iface, ep, wire, bytes);
    n = deliver(iface, ep, wire, bytes);
    n += deliver_early(iface, ep);
    ofi_acknowledge(iface, ep, ACK_EVERY);
    return n;
}

/* Length of the first frame in a message. */
static size_t length_of(const ofi_framed *first, size_t bytes)
{
    size_t length =
        bytes < sizeof *first || first->wire.kind != OFI_FRAME ? bytes : weft_round_up(sizeof *first + (size_t)first->hdr.bytes, 8);
    return length < bytes ? length : bytes;
}

static int take(ofi_iface *iface, const void *message, size_t bytes)
{
    const ofi_wire *wire = message;
    ofi_ep *ep;
    int n = 1;
    if (bytes < sizeof *wire || wire->nonce != iface->addr.nonce)
        return 0; /* meant for an earlier owner of this address, or from a process outside the job */
    if (wire->kind == OFI_HANDSHAKE) {
        if (bytes >= sizeof(ofi_handshake))
            ofi_handshake_recv(iface, message);
        return 1;
    }
    ep = wire->to < iface->index_capacity ? iface->by_index[wire->to] : NULL;
    if (!ep || !ep->has_remote_index)
        return 0;
    ep->received_ns = 0; /* set to the time by the next watch() */
    if ((int32_t)(wire->ack - ep->acked) > 0 && (int32_t)(ep->sent - wire->ack) >= 0) {
        ep->acked = wire->ack;
        ofi_keep_acked(iface, ep);
    }
    if (wire->kind == OFI_FRAME || wire->kind == OFI_NOTIFY)
        n = numbered(iface, ep, wire, bytes);
    else if (wire->kind == OFI_PING && iface->keeps && (int32_t)(wire->seq - ep->received) > 0)
        ofi_break(iface, ep, "frames were lost: a ping came without them");
    if (iface->keeps && weft_unlikely(wire->flags & OFI_ASKS))
        ofi_acknowledge(iface, ep, 0);
    return n;
}

int ofi_recv_message(ofi_iface *iface, const struct fi_cq_data_entry *entry, size_t *at, int budget)
{
    ofi_recv *recv = entry->op_context;
    const uint8_t *message = iface->has_multi_recv ? entry->buf : recv->place;
    size_t bytes = entry->len;
    int n = 0;
    if (message && weft_unlikely((uintptr_t)message % 8)) { /* lengths are multiples of 8: only if buffers are unaligned */
        bytes = bytes < iface->message_max ? bytes : iface->message_max;
        if (*at == 0)
            memcpy(iface->bounce, message, bytes);
        message = iface->bounce;
    }
    for (size_t length; message && *at < bytes && n < budget; *at += length) {
        length = length_of((const ofi_framed *)(message + *at), bytes - *at);
        n += take(iface, message + *at, length);
    }
    if (message && *at < bytes)
        return n;
    if (!iface->has_multi_recv || entry->flags & FI_MULTI_RECV)
        ofi_recv_done(iface, recv);
    *at = entry->len;
    return n;
}

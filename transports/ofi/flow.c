/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow: frames as messages. What fits is handed over inline (fi_inject), the rest is filled into a slot of registered memory, which is
 * free again when the provider says so. Frames count from 1 for each peer: where the provider keeps no order they are sorted by that, and
 * a number that is missing on one that does tells that a connection broke between. A receiver says how much it has had, so that nobody
 * sends more than a window ahead of one who does not read.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define SLOTS_PATH 24u /* big slots that one peer may hold up */
#define STACK_MAX 512u /* a message that is built on the stack */
#define TELL_EVERY (OFI_WINDOW / 8)

typedef struct early { /* a frame that came before its turn */
    weft_link link;
    uint32_t seq;
    size_t bytes;
    _Alignas(8) uint8_t message[];
} early;

static void lay_out_slots(ofi_port *port, uint8_t *at)
{
    for (uint32_t i = 0; i < OFI_SLOTS + OFI_SMALL_SLOTS; i++) {
        ofi_slot *slot = &port->slots[i];
        *slot = (ofi_slot){.work = {.kind = OFI_WORK_SLOT}, .is_small = i >= OFI_SLOTS, .place = at};
        at += slot->is_small ? OFI_SMALL : port->message_max;
        weft_list_append(slot->is_small ? &port->free_small : &port->free_big, &slot->link);
    }
    for (uint32_t i = 0; i < OFI_PIECES; i++, at += 64) {
        port->pieces[i] = (ofi_piece){.work = {.kind = OFI_WORK_PIECE}, .words = (uint64_t *)at};
        weft_list_append(&port->free_pieces, &port->pieces[i].link);
    }
}

int ofi_flow_open(ofi_port *port)
{
    uint32_t recv_bytes = port->has_multi_recv ? OFI_RECV_BYTES : port->message_max;
    int rc = 0;
    port->recv_count = port->has_multi_recv ? OFI_RECVS : OFI_SINGLES;
    port->recv_least = port->recv_most = ofi_is_plain_tcp(port->info) ? OFI_TCP_RECVS : port->recv_count;
    port->arena_bytes = (uint64_t)port->recv_count * recv_bytes + (uint64_t)OFI_SLOTS * port->message_max + OFI_SMALL_SLOTS * OFI_SMALL + OFI_PIECES * 64;
    port->arena = mmap(NULL, port->arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    port->bounce = malloc(port->message_max);
    if (port->arena == MAP_FAILED)
        port->arena = NULL;
    if (!port->arena || !port->bounce)
        return weft_fail(WEFT_E_NOMEM, "no memory for %llu bytes of buffers", (unsigned long long)port->arena_bytes);
    if (port->needs_desc) {
        rc = ofi_register(port, port->arena, port->arena_bytes, FI_SEND | FI_RECV | FI_READ | FI_WRITE, &port->arena_mr);
        if (rc)
            return rc;
        port->arena_desc = fi_mr_desc(port->arena_mr);
    }
    lay_out_slots(port, port->arena + (uint64_t)port->recv_count * recv_bytes);
    for (uint32_t i = 0; i < port->recv_count; i++)
        port->recvs[i] = (ofi_recv){.work = {.kind = OFI_WORK_RECV}, .place = port->arena + (uint64_t)i * recv_bytes, .bytes = recv_bytes};
    rc = ofi_post_recvs(port);
    return rc == WEFT_AGAIN ? 0 : rc;
}

static int post_recv(ofi_port *port, ofi_recv *recv)
{
    struct iovec part = {recv->place, recv->bytes};
    struct fi_msg message = {.msg_iov = &part, .desc = &port->arena_desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &recv->work};
    ssize_t rc = fi_recvmsg(port->ep, &message, port->has_multi_recv ? FI_MULTI_RECV : 0);
    recv->is_posted = rc == 0;
    port->recv_posted += recv->is_posted;
    if (rc == 0 || rc == -FI_EAGAIN)
        return rc ? WEFT_AGAIN : 0;
    return weft_fail(WEFT_E_SYSTEM, "no receive buffer can be posted with %s: %s", port->card.provider, ofi_words(rc));
}

int ofi_post_recvs(ofi_port *port)
{
    int rc = 0;
    for (uint32_t i = 0; i < port->recv_count && port->recv_posted < port->recv_most && rc == 0; i++)
        if (!port->recvs[i].is_posted)
            rc = post_recv(port, &port->recvs[i]);
    return rc;
}

void ofi_recv_ended(ofi_port *port, ofi_recv *recv)
{
    recv->is_posted = false;
    port->recv_posted--;
    if (port->recv_most > port->recv_least)
        port->recv_most--; /* what was posted beyond the least is used up */
    if (port->recv_posted < port->recv_most)
        post_recv(port, recv);
}

/* -- out -- */

void ofi_sign(const ofi_port *port, ofi_path *path, ofi_wire *wire, enum ofi_kind kind)
{
    (void)port;
    *wire = (ofi_wire){.to = path->theirs, .ack = path->received, .check = (uint16_t)path->card.nonce, .kind = (uint8_t)kind};
    path->told = path->received;
}

static ofi_slot *take_small(ofi_port *port)
{
    weft_link *link = weft_list_take(&port->free_small);
    return link ? weft_container(link, ofi_slot, link) : NULL;
}

static ofi_slot *take_slot(ofi_port *port, size_t bytes)
{
    ofi_slot *slot = bytes <= OFI_SMALL ? take_small(port) : NULL;
    weft_link *link = slot ? NULL : weft_list_take(&port->free_big);
    return link ? weft_container(link, ofi_slot, link) : slot;
}

/* The last one given is the first one taken: it is still in the cache. */
static void give_slot(ofi_port *port, ofi_slot *slot)
{
    weft_list_append((slot->is_small ? &port->free_small : &port->free_big)->next, &slot->link);
}

ofi_slot *ofi_flow_slot(ofi_port *port, ofi_path *path)
{
    weft_link *link = path->slots_out < SLOTS_PATH ? weft_list_take(&port->free_big) : NULL;
    ofi_slot *slot = link ? weft_container(link, ofi_slot, link) : NULL;
    if (!slot)
        return NULL;
    slot->work.path = path;
    path->slots_out++;
    return slot;
}

/* 0, AGAIN, or the provider's negative word. */
static ssize_t post_slot(ofi_port *port, ofi_slot *slot, ofi_path *path, fi_addr_t to, size_t bytes)
{
    ssize_t rc;
    slot->work.path = path;
    rc = fi_send(port->ep, slot->place, bytes, port->arena_desc, to, &slot->work);
    if (rc) {
        give_slot(port, slot);
        return rc;
    }
    if (path)
        path->slots_out++;
    return 0;
}

void ofi_slot_ended(ofi_port *port, ofi_slot *slot)
{
    void *held = slot->held;
    if (slot->work.path)
        slot->work.path->slots_out--;
    slot->held = NULL;
    give_slot(port, slot);
    if (held)
        port->port.up->done(port->port.owner, held, 0);
}

int ofi_say(ofi_port *port, fi_addr_t to, const void *message, size_t bytes)
{
    ofi_slot *slot = NULL;
    ssize_t rc;
    if (bytes <= port->inject_max) {
        rc = fi_inject(port->ep, message, bytes, to);
    } else {
        slot = take_slot(port, bytes);
        if (!slot)
            return WEFT_AGAIN;
        memcpy(slot->place, message, bytes);
        slot->about = ((const ofi_wire *)message)->kind == OFI_CALL ? ((const ofi_call *)message)->path : 0;
        rc = post_slot(port, slot, NULL, to, bytes);
    }
    if (rc)
        ofi_ring_soon(port);
    return rc ? WEFT_AGAIN : 0;
}

/* Why nothing can be sent now, 0 when it can; *rc is what the call answers then. */
static bool is_refused(ofi_port *port, ofi_path *path, int *rc)
{
    if (path->state == OFI_LOST) {
        *rc = weft_fail(WEFT_E_PEER, "rank %u is lost", path->name.rank);
        return true;
    }
    *rc = WEFT_AGAIN;
    if (weft_likely(path->state == OFI_OPEN && path->sent - path->acked < OFI_WINDOW))
        return false;
    ofi_call_begin(port, path);
    path->wants_room = true;
    port->counts[OFI_COUNT_AGAIN]++;
    return true;
}

static int refused(ofi_port *port, ofi_path *path, ssize_t rc)
{
    path->wants_room = true;
    port->counts[OFI_COUNT_AGAIN]++;
    if (rc == -FI_EAGAIN)
        ofi_ring_soon(port);
    else if (rc < 0)
        ofi_break(port, path, ofi_words(rc));
    return WEFT_AGAIN;
}

static int went(ofi_port *port, ofi_path *path)
{
    path->sent++;
    path->wants_room = false;
    port->counts[OFI_COUNT_SENT]++;
    return 0;
}

void ofi_flow_fill(ofi_port *port, ofi_path *path, ofi_framed *place, const weft_frame *frame)
{
    ofi_sign(port, path, &place->wire, OFI_FRAME);
    place->wire.seq = path->sent + 1;
    place->head = frame->head;
    if (frame->fill)
        frame->fill(frame, place->body);
    else if (frame->head.bytes)
        memcpy(place->body, frame->body, frame->head.bytes);
}

/* Header and what rounds the length up come from a small slot, the body from where it lies. */
static int send_held(ofi_port *port, ofi_path *path, const weft_frame *frame)
{
    ofi_slot *slot = path->slots_out >= SLOTS_PATH ? NULL : take_small(port);
    size_t pad = weft_round_up(frame->head.bytes, 8) - frame->head.bytes;
    ofi_framed *head;
    struct iovec parts[3];
    struct fi_msg message = {.msg_iov = parts, .iov_count = pad ? 3 : 2, .addr = path->spots[path->spot].to};
    ssize_t rc;
    if (!slot)
        return refused(port, path, 0);
    head = (ofi_framed *)slot->place;
    ofi_sign(port, path, &head->wire, OFI_FRAME);
    head->wire.seq = path->sent + 1;
    head->head = frame->head;
    memset(head->body, 0, 8);
    parts[0] = (struct iovec){head, sizeof *head};
    parts[1] = (struct iovec){(void *)frame->body, frame->head.bytes};
    parts[2] = (struct iovec){head->body, pad};
    slot->work.path = path;
    message.context = &slot->work;
    rc = fi_sendmsg(port->ep, &message, FI_COMPLETION);
    if (rc) {
        give_slot(port, slot);
        return refused(port, path, rc);
    }
    slot->held = frame->held;
    path->slots_out++;
    went(port, path);
    return WEFT_HELD;
}

int ofi_send(weft_port *base, weft_path *base_path, const weft_frame *frame)
{
    ofi_port *port = (ofi_port *)base;
    ofi_path *path = (ofi_path *)base_path;
    size_t bytes = weft_round_up(sizeof(ofi_framed) + frame->head.bytes, 8);
    _Alignas(8) uint8_t small[STACK_MAX];
    enum ofi_gathering gathering;
    ofi_slot *slot;
    ssize_t sent;
    int rc;
    if (frame->head.bytes > base->caps.frame_max)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", frame->head.bytes, base->caps.frame_max);
    if (path->has_left && path->state != OFI_LOST)
        return 0; /* it parted in peace and hears no more */
    if (is_refused(port, path, &rc))
        return rc;
    gathering = ofi_bundle_meet(port, path, frame, bytes);
    if (gathering != OFI_ALONE)
        return gathering == OFI_GATHERED ? 0 : refused(port, path, 0);
    if (bytes <= port->inject_max) {
        ofi_flow_fill(port, path, (ofi_framed *)small, frame);
        sent = fi_inject(port->ep, small, bytes, path->spots[path->spot].to);
        port->counts[OFI_COUNT_INJECTED] += sent == 0;
        return sent ? refused(port, path, sent) : went(port, path);
    }
    if (frame->held && base->caps.held_min && frame->head.bytes >= base->caps.held_min)
        return send_held(port, path, frame);
    slot = bytes > OFI_SMALL && path->slots_out >= SLOTS_PATH ? NULL : take_slot(port, bytes);
    if (!slot)
        return refused(port, path, 0);
    ofi_flow_fill(port, path, (ofi_framed *)slot->place, frame);
    sent = post_slot(port, slot, path, path->spots[path->spot].to, bytes);
    return sent ? refused(port, path, sent) : went(port, path);
}

int ofi_notify(ofi_port *port, ofi_path *path, uint32_t value)
{
    ofi_notice notice = {.value = value};
    int rc;
    if (is_refused(port, path, &rc))
        return rc;
    if (!ofi_bundle_out(port, path))
        return refused(port, path, 0);
    ofi_sign(port, path, &notice.wire, OFI_NOTIFY);
    notice.wire.seq = path->sent + 1;
    rc = ofi_say(port, path->spots[path->spot].to, &notice, sizeof notice);
    return rc ? refused(port, path, 0) : went(port, path);
}

void ofi_acknowledge(ofi_port *port, ofi_path *path, uint32_t least)
{
    uint32_t told = path->told;
    ofi_wire wire;
    if (path->received - told < least || path->state != OFI_OPEN || path->has_left)
        return;
    ofi_sign(port, path, &wire, OFI_ACK);
    if (ofi_say(port, path->spots[path->spot].to, &wire, sizeof wire))
        path->told = told; /* the next frame tells, or the next one that goes */
}

/* -- in -- */

static int deliver(ofi_port *port, ofi_path *path, const void *message, size_t bytes)
{
    const ofi_framed *framed = message;
    const ofi_notice *notice = message;
    path->received++;
    if (framed->wire.kind == OFI_NOTIFY && bytes >= sizeof *notice) {
        port->port.up->notified(port->port.owner, path->path.peer, notice->value);
        return 1;
    }
    if (bytes < sizeof *framed || bytes - sizeof *framed < framed->head.bytes)
        return 1; /* no frame of ours: the numbers go on, the payload's checksum is for who wants it */
    port->counts[OFI_COUNT_ARRIVED]++;
    port->port.up->arrive(port->port.owner, path->path.peer, &framed->head, framed->body);
    return 1;
}

static int deliver_early(ofi_port *port, ofi_path *path)
{
    int n = 0;
    while (!weft_list_is_empty(&path->early)) {
        early *one = weft_container(path->early.next, early, link);
        if (one->seq != path->received + 1)
            break;
        weft_list_remove(&one->link);
        n += deliver(port, path, one->message, one->bytes);
        free(one);
    }
    return n;
}

/* In order of number; one that is there already is not kept twice. */
static int keep_early(ofi_port *port, ofi_path *path, const ofi_wire *wire, size_t bytes)
{
    weft_link *at = path->early.prev;
    early *one = malloc(sizeof *one + bytes);
    if (!one) {
        ofi_lose(port, path, "no memory to keep a frame that came before its turn");
        return 1;
    }
    while (at != &path->early && (int32_t)(weft_container(at, early, link)->seq - wire->seq) > 0)
        at = at->prev;
    if (at != &path->early && weft_container(at, early, link)->seq == wire->seq) {
        free(one);
        return 0;
    }
    one->seq = wire->seq;
    one->bytes = bytes;
    memcpy(one->message, wire, bytes);
    weft_list_append(at->next, &one->link); /* before the next one */
    if (!port->sorts)
        ofi_break(port, path, "a frame is missing between two that came");
    return 0;
}

void ofi_flow_drop(ofi_path *path)
{
    weft_link *link;
    while ((link = weft_list_take(&path->early)))
        free(weft_container(link, early, link));
}

static int numbered(ofi_port *port, ofi_path *path, const ofi_wire *wire, size_t bytes)
{
    int n;
    if ((int32_t)(wire->seq - path->received) <= 0 || path->state == OFI_LOST)
        return 0;
    if (wire->seq != path->received + 1)
        return keep_early(port, path, wire, bytes);
    n = deliver(port, path, wire, bytes);
    n += deliver_early(port, path);
    ofi_acknowledge(port, path, TELL_EVERY);
    return n;
}

/* Of the first thing in a message. */
static size_t length_of(const ofi_framed *first, size_t bytes)
{
    size_t length = bytes < sizeof *first || first->wire.kind != OFI_FRAME ? bytes : weft_round_up(sizeof *first + (size_t)first->head.bytes, 8);
    return length < bytes ? length : bytes;
}

static int take(ofi_port *port, const void *message, size_t bytes)
{
    const ofi_wire *wire = message;
    ofi_path *path;
    if (bytes < sizeof *wire || wire->check != (uint16_t)port->card.nonce)
        return 0; /* for an earlier owner of this address */
    if (wire->kind == OFI_CALL) {
        if (bytes >= sizeof(ofi_call))
            ofi_call_arrive(port, message);
        return 1;
    }
    path = wire->to < port->index_room ? port->by_index[wire->to] : NULL;
    if (!path || !path->is_heard)
        return 0;
    path->heard_ns = 0; /* somebody looks at the clock later */
    if ((int32_t)(wire->ack - path->acked) > 0 && (int32_t)(path->sent - wire->ack) >= 0)
        path->acked = wire->ack;
    return wire->kind == OFI_FRAME || wire->kind == OFI_NOTIFY ? numbered(port, path, wire, bytes) : 1;
}

int ofi_arrived(ofi_port *port, const struct fi_cq_data_entry *entry, size_t *at, int budget)
{
    ofi_recv *recv = entry->op_context;
    const uint8_t *message = port->has_multi_recv ? entry->buf : recv->place;
    int n = 0;
    if (message && weft_unlikely((uintptr_t)message % 8)) { /* all lengths are multiples of 8, so only a strange provider does this */
        if (*at == 0)
            memcpy(port->bounce, message, entry->len < port->message_max ? entry->len : port->message_max);
        message = port->bounce;
    }
    for (size_t length; message && *at < entry->len && n < budget; *at += length) {
        length = length_of((const ofi_framed *)(message + *at), entry->len - *at);
        n += take(port, message + *at, length);
    }
    if (message && *at < entry->len)
        return n;
    if (!port->has_multi_recv || entry->flags & FI_MULTI_RECV)
        ofi_recv_ended(port, recv);
    *at = entry->len;
    return n;
}

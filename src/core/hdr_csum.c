/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hdr_csum: see hdr_csum.h. If a single wrong bit explains the difference, the text names it. If that bit is in the checksum, the frame
 * is accepted.
 */
#include "core/hdr_csum.h"

#include <stdio.h>
#include <string.h>

#include "base/crc.h"
#include "base/log.h"
#include "core/world_type.h"

static bool is_control(uint8_t kind)
{
    return kind != WEFT_FRAME_EAGER && kind != WEFT_FRAME_EAGER_CSUM && kind != WEFT_FRAME_DATA && kind != WEFT_FRAME_FRAG;
}

/* bytes: length of the body without the checksum. */
static uint32_t csum_of(const weft_hdr *hdr, const void *body, uint32_t bytes)
{
    uint32_t sum = weft_crc32c(0, hdr, sizeof *hdr);
    return is_control(hdr->kind) && bytes ? weft_crc32c(sum, body, bytes) : sum;
}

static void fill_csum(const weft_frame *frame, void *place)
{
    const weft_frame *inner = frame->body;
    uint32_t bytes = inner->hdr.bytes, sum;
    if (inner->pack)
        inner->pack(inner, place);
    else if (bytes)
        memcpy(place, inner->body, bytes);
    sum = csum_of(&frame->hdr, inner->pack ? place : inner->body, bytes);
    memcpy((char *)place + bytes, &sum, sizeof sum);
}

int weft_hdr_csum_send(weft_ep *ep, const weft_frame *frame)
{
    weft_frame checked = {.hdr = frame->hdr, .body = frame, .pack = fill_csum};
    checked.hdr.flags |= WEFT_HDR_CSUM;
    checked.hdr.bytes += WEFT_HDR_CSUM_BYTES;
    return weft_iface_send(ep, &checked);
}

/* Describes the damage. false: only the checksum is wrong; the frame is intact. */
static bool describe_damage(char *text, size_t capacity, uint32_t difference, uint32_t body_bytes)
{
    static const struct {
        uint32_t bits;
        const char *name;
    } fields[] = {{32, "number"}, {40, "kind"}, {48, "flags"}, {64, "credits"}, {96, "channel or request"}, {128, "source"},
                  {160, "tag"}, {192, "length"}};
    uint64_t bit;
    if (!weft_crc32c_find_bit(difference, sizeof(weft_hdr) + body_bytes, &bit)) {
        snprintf(text, capacity, "more than one bit of it is wrong, or its length or kind");
        return true;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (bit < fields[i].bits) {
            snprintf(text, capacity, "bit %d of byte %d of its header is wrong, in its %s", (int)(bit % 8), (int)(bit / 8),
                     fields[i].name);
            return true;
        }
    bit -= 8 * sizeof(weft_hdr);
    if (bit >= 8ull * body_bytes)
        return false;
    snprintf(text, capacity, "bit %d of byte %d of its body is wrong", (int)(bit % 8), (int)(bit / 8));
    return true;
}

static void __attribute__((noreturn, cold)) abort_job(const weft_peer *peer, const weft_hdr *hdr, const char *where)
{
    static const char *const kinds[] = {"?", "EAGER", "RTS", "CTS", "DATA", "FIN", "CREDIT", "BYE", "EAGER_CSUM", "CSUM", "NOTIFY",
                                        "EAGER_FRAGS", "FRAG", "STALLED", "DRAINED", "ASK", "CANCEL", "PROMISE", "USE",
                                        "REVOKE", "REVOKED"};
    weft_boot *boot = peer->worker->world->boot;
    char text[500];
    snprintf(text, sizeof text,
             "a frame from rank %u was damaged in transit: %s.\n"
             "(it arrived as %s with source %d, tag %d and %u bytes, over %s)\n"
             "Memory or network hardware fails. The purpose of the frame is uncertain: the job ends.",
             peer->proc_id.rank, where, kinds[hdr->kind < WEFT_FRAME_LAST ? hdr->kind : 0], hdr->src, hdr->tag, hdr->bytes,
             peer->ep->iface->ops->name);
    boot->ops->abort(boot, 1, text);
}

void weft_hdr_csum_verify(weft_peer *peer, const weft_hdr *hdr, const void *body, weft_hdr *plain)
{
    uint32_t bytes = hdr->bytes - WEFT_HDR_CSUM_BYTES, sent, got;
    char where[120];
    if (hdr->bytes < WEFT_HDR_CSUM_BYTES || (peer->state == WEFT_PEER_ALIVE && hdr->bytes > peer->ep->iface->caps.frame_max))
        abort_job(peer, hdr, "its length is impossible");
    memcpy(&sent, (const char *)body + bytes, sizeof sent);
    got = csum_of(hdr, body, bytes);
    if (weft_unlikely(sent != got)) {
        if (describe_damage(where, sizeof where, sent ^ got, is_control(hdr->kind) ? bytes : 0))
            abort_job(peer, hdr, where);
        weft_log_warn("the checksum of a frame from rank %u was damaged in transit (%08x, not %08x); the frame is intact.",
                      peer->proc_id.rank, sent, got);
    }
    peer->sends_hdr_csum = true;
    *plain = *hdr;
    plain->bytes = bytes;
    plain->flags &= (uint8_t)~WEFT_HDR_CSUM;
}

void weft_hdr_csum_missing(const weft_peer *peer, const weft_hdr *hdr)
{
    if (peer->sends_hdr_csum || hdr->kind == WEFT_FRAME_EAGER_CSUM || hdr->flags & WEFT_HDR_MSG_CSUM)
        abort_job(peer, hdr, "its checksum flag is wrong");
}

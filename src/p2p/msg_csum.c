/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msg_csum: see msg_csum.h. The checksum of strided data runs over its packed form.
 */
#include "p2p/msg_csum.h"

#include <stdio.h>
#include <string.h>

#include "base/crc.h"
#include "base/log.h"
#include "base/status.h"
#include "p2p/chan.h"
#include "p2p/req_data.h"
#include "type/pack.h"

#define PACK_BYTES 2048 /* bytes packed at a time, on the stack */

/* The checksum covers this and then the payload. */
typedef struct envelope {
    uint32_t chan;
    int32_t src, tag;
} envelope;

static uint32_t begin(uint32_t chan, int32_t src, int32_t tag)
{
    envelope envelope = {chan, src, tag};
    return weft_crc32c(0, &envelope, sizeof envelope);
}

static uint32_t begin_found(const weft_req *req) { return begin(req->chan->id, req->recv_info.source, req->recv_info.tag); }

/* XORed into the checksum of tainted data: the receiver's comparison fails and recognizes the cause. */
#define TAINT UINT32_MAX

static uint32_t taint_of(const weft_req *req) { return req->send_mode == WEFT_SEND_TAINTED ? TAINT : 0; }

/* The first `bytes` packed bytes of req's buffer. */
static uint32_t sum_buffer(uint32_t sum, const weft_req *req, uint64_t bytes)
{
    uint8_t packed[PACK_BYTES];
    if (req->is_dense)
        return weft_crc32c(sum, weft_req_start(req), bytes);
    for (uint64_t at = 0; at < bytes; at += PACK_BYTES) {
        uint64_t count = bytes - at < PACK_BYTES ? bytes - at : PACK_BYTES;
        weft_pack(req->type, req->buf, weft_req_count(req), at, count, packed);
        sum = weft_crc32c(sum, packed, count);
    }
    return sum;
}

uint32_t weft_msg_csum_of_send(const weft_req *req, const weft_hdr *hdr)
{
    return sum_buffer(begin(hdr->chan, hdr->src, hdr->tag), req, req->bytes) ^ taint_of(req);
}

uint32_t weft_msg_csum_of_prefix(const weft_req *req, uint64_t bytes)
{
    const weft_chan *chan = req->chan;
    uint32_t id = chan->ids_out ? chan->ids_out[req->rank] : chan->id_out;
    return sum_buffer(begin(id, (int32_t)chan->rank, req->tag), req, bytes) ^ taint_of(req);
}

static void fill_csum(const weft_frame *frame, void *place)
{
    const weft_req *req = frame->body;
    uint32_t sum = weft_msg_csum_of_send(req, &frame->hdr);
    if (!req->is_dense)
        weft_pack(req->type, req->buf, weft_req_count(req), 0, req->bytes, place);
    else if (req->bytes) /* the buffer of nothing may be NULL */
        memcpy(place, weft_req_start(req), req->bytes);
    memcpy((char *)place + req->bytes, &sum, sizeof sum);
}

void weft_msg_csum_frame(weft_frame *frame, weft_req *req)
{
    frame->hdr.kind = WEFT_FRAME_EAGER_CSUM;
    frame->hdr.bytes = (uint32_t)req->bytes + WEFT_MSG_CSUM_BYTES;
    frame->body = req;
    frame->pack = fill_csum;
}

/* Describes the damage; a single wrong bit is located, counted from the first byte of the message. */
static void describe_damage(char *text, size_t capacity, uint32_t difference, uint64_t bytes)
{
    uint64_t bit, before = 8 * sizeof(envelope);
    if (difference == TAINT)
        snprintf(text, capacity, "its sender reports that it was made of damaged or truncated data");
    else if (!weft_crc32c_find_bit(difference, bytes + sizeof(envelope), &bit))
        snprintf(text, capacity, "more than one bit is wrong, somewhere in its bytes 0 to %llu",
                 bytes ? (unsigned long long)bytes - 1 : 0ull);
    else if (bit < before)
        snprintf(text, capacity, "its %s is wrong", bit < 32 ? "communicator" : bit < 64 ? "source" : "tag");
    else if (bit >= before + 8 * bytes)
        snprintf(text, capacity, "the checksum itself is wrong, the message is intact");
    else
        snprintf(text, capacity, "bit %d of its byte %llu is wrong", (int)(bit % 8), (unsigned long long)(bit - before) / 8);
}

/* The checksum covers `bytes` of the message's `whole` bytes. */
static int compare(const weft_req *req, const weft_peer *peer, uint64_t whole, uint64_t bytes, uint32_t sent, uint32_t got,
                 const char *way)
{
    char where[100];
    if (weft_likely(sent == got))
        return 0;
    describe_damage(where, sizeof where, sent ^ got, bytes);
    return weft_fail(WEFT_E_CORRUPT,
                     "the message from rank %d with tag %d, %llu bytes, was damaged in transit: %s.\n"
                     "(communicator's context %u, world rank %u, %s over %s; CRC32C %08x sent, %08x arrived)\n"
                     "Memory or network hardware fails, or the sender changed its buffer before its send was complete.",
                     req->recv_info.source, req->recv_info.tag, (unsigned long long)whole, where, req->chan->id, peer->proc_id.rank, way,
                     peer->ep->iface->ops->name, sent, got);
}

int weft_msg_csum_check(const weft_req *req, const weft_peer *peer, uint64_t bytes, uint32_t sum, const char *way)
{
    return compare(req, peer, req->recv_info.bytes, bytes, sum, sum_buffer(begin_found(req), req, bytes), way);
}

/* A truncated message is checked in two parts: the prefix in the user's buffer, the rest in the frame. */
int weft_msg_csum_copy_out(const weft_peer *peer, weft_req *req, const weft_hdr *hdr, const void *body)
{
    uint64_t bytes = weft_msg_csum_payload(hdr), fits = bytes < req->bytes ? bytes : req->bytes;
    uint32_t sum, got;
    int rc;
    memcpy(&sum, (const char *)body + bytes, sizeof sum);
    req->recv_info = (weft_recv_info){.source = hdr->src, .tag = hdr->tag, .bytes = fits};
    if (!req->is_dense)
        weft_unpack(req->type, req->buf, weft_req_count(req), 0, fits, body);
    else if (fits)
        memcpy(weft_req_start(req), body, fits);
    if (fits == bytes)
        return weft_msg_csum_check(req, peer, bytes, sum, "eager");
    got = weft_crc32c(sum_buffer(begin_found(req), req, fits), (const char *)body + fits, bytes - fits);
    rc = compare(req, peer, bytes, bytes, sum, got, "eager");
    return rc ? rc : weft_fail(WEFT_E_TRUNCATE, "the message from rank %d with tag %d has %llu bytes, the receive buffer %llu",
                               hdr->src, hdr->tag, (unsigned long long)bytes, (unsigned long long)req->bytes);
}

void weft_msg_csum_missing(weft_peer *peer)
{
    if (!peer->is_without_csum)
        weft_log_warn("rank %u sends without checksums: its messages are not checked. WEFT_CHECKSUM must be set alike on all "
                      "ranks (it is in the environment here, and not there).", peer->proc_id.rank);
    peer->is_without_csum = true;
}

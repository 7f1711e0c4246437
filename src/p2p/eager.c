/* SPDX-License-Identifier: BSD-3-Clause
 *
 * eager: eager sends by copy and by zcopy. See eager.h.
 */
#include "p2p/eager.h"

#include "base/status.h"
#include "p2p/eager_frags.h"
#include "p2p/frag.h"
#include "p2p/msg_csum.h"
#include "p2p/rndv.h"
#include "type/pack.h"

#define OVERDRAFT_MAX 256 /* bytes; an RTS takes as much of the receiver's memory */

static void fill_packed(const weft_frame *frame, void *place)
{
    const weft_req *req = frame->body;
    weft_pack(req->type, req->buf, weft_req_count(req), 0, frame->hdr.bytes, place);
}

static void on_zcopy_done(weft_frag *frag, int rc)
{
    weft_req *req = frag->req;
    weft_frag_free(frag);
    weft_req_end(req, rc);
}

/* Zcopy: the iface reads the user's buffer; the send ends with callbacks.done. */
static int send_zcopy(weft_peer *peer, weft_req *req, weft_frame *frame)
{
    weft_frag *frag;
    int rc;
    frag = weft_frag_new(req, NULL, WEFT_FRAG_ZCOPY, 0, req->bytes, on_zcopy_done);
    if (!frag)
        return weft_fail(WEFT_E_NOMEM, "no memory for a message in flight to rank %u", peer->proc_id.rank);
    frame->zcopy_ctx = frag;
    peer->credit -= weft_peer_cost(req->bytes); /* before the send: its completion may send more */
    peer->worker->counters[WEFT_COUNT_EAGER]++;
    peer->worker->counters[WEFT_COUNT_EAGER_BYTES] += req->bytes;
    rc = weft_peer_send(peer, frame, NULL, NULL);
    if (rc)
        weft_frag_free(frag);
    return rc;
}

static int send_eager(weft_peer *peer, weft_req *req)
{
    weft_frame frame = {.hdr = weft_eager_hdr(req->chan, req->rank, req->tag, req->bytes),
                        .body = weft_req_start(req)};
    bool sent;
    int rc;
    if (weft_knob.checksum) {
        weft_msg_csum_frame(&frame, req);
    } else if (!req->is_dense) {
        frame.body = req;
        frame.pack = fill_packed;
    } else if (weft_peer_is_zcopy(peer, req->bytes)) {
        return send_zcopy(peer, req, &frame);
    }
    rc = weft_peer_send(peer, &frame, req, &sent);
    if (rc)
        return rc;
    peer->credit -= weft_peer_cost(frame.hdr.bytes);
    weft_eager_count(peer->worker, req->bytes);
    if (sent)
        weft_req_end(req, 0);
    return 0;
}

/* A message that is too long for one eager frame, in fragments, if the credit suffices. WEFT_AGAIN: it must be announced. */
static int send_frags(weft_peer *peer, weft_req *req, int32_t credit)
{
    weft_frame frame = {.hdr = weft_eager_hdr(req->chan, req->rank, req->tag, req->bytes), .body = weft_req_start(req)};
    int rc;
    if (!req->is_dense || req->send_mode == WEFT_SEND_SYNC || req->is_persistent || !weft_list_is_empty(&peer->waiting) ||
        weft_peer_cost(req->bytes) > credit || !weft_eager_frags_help_long(peer, req->bytes))
        return WEFT_AGAIN;
    rc = weft_eager_frags_send(peer, &frame);
    if (rc)
        return rc;
    peer->credit -= weft_peer_cost(req->bytes);
    weft_eager_count(peer->worker, req->bytes);
    weft_req_end(req, 0);
    return 0;
}

int weft_eager_start(weft_peer *peer, weft_req *req, int32_t credit)
{
    int rc;
    bool fits = req->bytes <= peer->eager_max && req->send_mode != WEFT_SEND_SYNC;
    if (fits && (credit > 0 ? weft_peer_cost(req->bytes + weft_msg_csum_bytes()) <= credit : req->bytes <= OVERDRAFT_MAX))
        return send_eager(peer, req);
    if (req->bytes > peer->eager_max && (rc = send_frags(peer, req, credit)) != WEFT_AGAIN)
        return rc;
    return weft_rndv_send_rts(peer, req);
}

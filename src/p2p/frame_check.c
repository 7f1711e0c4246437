/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frame_check: see frame_check.h. What depends on the state of a rendezvous is checked with its state (rndv.c).
 */
#include "p2p/frame_check.h"

#include <stdio.h>
#include <string.h>

#include "core/world.h"
#include "p2p/eager_frags.h"
#include "p2p/msg_csum.h"
#include "p2p/rndv_wire.h"
#include "p2p/stall.h"

static bool is_rts_sound(const weft_hdr *hdr, const void *body)
{
    const weft_rts *rts = body;
    return hdr->bytes >= WEFT_RTS_BYTES && rts->key_bytes <= WEFT_RKEY_BYTES && rts->key_bytes <= hdr->bytes - WEFT_RTS_BYTES;
}

/* Also of a PROMISE. */
static bool is_cts_sound(const weft_hdr *hdr, const void *body)
{
    const weft_cts *cts = body;
    return hdr->bytes >= WEFT_CTS_BYTES && cts->key_bytes <= WEFT_RKEY_BYTES && cts->key_bytes <= hdr->bytes - WEFT_CTS_BYTES &&
           cts->from <= cts->to && cts->to <= cts->want;
}

static bool is_under_way(const weft_eager_frags *frags)
{
    return frags->arrived < frags->hdr.bytes;
}

/* Memory for all of an unexpected message is taken at its first frame. A peer sends one message after the other. */
static bool is_first_sound(const weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    const weft_caps *caps;
    uint64_t total = 0;
    if (!peer->ep || is_under_way(&peer->frags))
        return false;
    caps = &peer->ep->iface->caps;
    if (hdr->bytes == sizeof total)
        memcpy(&total, body, sizeof total);
    return total && total <= (caps->frags_max > caps->frame_max ? caps->frags_max : caps->frame_max);
}

static bool is_next_sound(const weft_eager_frags *frags, const weft_hdr *hdr)
{
    return hdr->bytes && is_under_way(frags) && hdr->bytes <= frags->hdr.bytes - frags->arrived;
}

bool weft_frame_is_sound(const weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    switch (hdr->kind) {
    case WEFT_FRAME_RTS: return is_rts_sound(hdr, body);
    case WEFT_FRAME_CTS:
    case WEFT_FRAME_PROMISE: return is_cts_sound(hdr, body);
    case WEFT_FRAME_EAGER_CSUM: return hdr->bytes >= WEFT_MSG_CSUM_BYTES;
    case WEFT_FRAME_EAGER_FRAGS: return is_first_sound(peer, hdr, body);
    case WEFT_FRAME_FRAG: return is_next_sound(&peer->frags, hdr);
    case WEFT_FRAME_STALLED: return hdr->bytes >= sizeof(weft_stalled);
    case WEFT_FRAME_ASK: return hdr->bytes >= sizeof(weft_ask);
    default: return true; /* these have no body, or their handlers check its length */
    }
}

void weft_frame_refuse(const weft_peer *peer, const weft_hdr *hdr)
{
    weft_boot *boot = peer->worker->world->boot;
    char text[300];
    snprintf(text, sizeof text,
             "a frame from rank %u was damaged on its way: of kind %u, %u bytes, its fields do not fit each other.\n"
             "Memory or network hardware fails, or the ranks run different versions of Weft. WEFT_CHECKSUM=yes finds where.",
             peer->proc_id.rank, hdr->kind, hdr->bytes);
    boot->ops->abort(boot, 1, text);
}

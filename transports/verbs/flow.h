/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow: internal interface of the frame path. Called by eager_ring.c, rma.c, replay.c, evict.c, mw.c and iface.c.
 */
#ifndef WEFT_TRANSPORTS_VERBS_FLOW_H
#define WEFT_TRANSPORTS_VERBS_FLOW_H

#include "transports/verbs/slots.h"

/* Sends a frame without number, by credit, or by the token if it returns credits. 0, or AGAIN. The end of the epoch drops it. */
int verbs_flow_control(verbs_ep *ep, enum verbs_kind kind, const weft_hdr *hdr);
/* Sends a put's notification as a numbered frame. 0, or AGAIN. */
int verbs_flow_notify(verbs_ep *ep, uint32_t value);
/* alloc: takes a credit and a number for the notification of a write that is about to be posted on ep->home. NULL: not now. Kind NOP: the
 * write carries it as immediate data; kind NOTIFY: send() must follow the write. done: the write has completed. detach: the write will not
 * arrive, its number is sent as an empty frame. free: frees the slot and records in the op whether it was delivered. */
verbs_slot *verbs_notify_alloc(verbs_ep *ep, struct verbs_op *op);
void verbs_notify_send(verbs_ep *ep, verbs_slot *slot);
void verbs_notify_done(verbs_slot *slot);
void verbs_notify_detach(verbs_slot *slot);
void verbs_notify_free(verbs_ep *ep, verbs_slot *slot, bool is_delivered);
/* Receives a numbered frame, by queue or ring: delivers it and frames that waited for it, or holds it until its turn. False: unreadable. */
bool verbs_flow_recv(verbs_ep *ep, const verbs_wire *wire, uint32_t bytes);
/* Applies credits, token and acknowledgement of a received frame. */
void verbs_flow_apply_prefix(verbs_ep *ep, const verbs_prefix *prefix);
/* Fills in the prefix of a frame that is posted next, with acknowledgement, credits and token that are due. */
void verbs_flow_stamp(verbs_ep *ep, verbs_slot *slot, enum verbs_kind kind, uint8_t flags);
/* Queues the ep for verbs_flow_progress: credits, replies or resends are due. */
void verbs_flow_queue_due(verbs_ep *ep);
/* Work requests of frames up to `seq` have completed: frees their slots where that proves arrival. */
void verbs_flow_done(verbs_ep *ep, uint32_t seq);
/* Requests a completion for all work posted on the QP, unless one is pending or not needed. */
void verbs_rc_qp_sync(verbs_rc_qp *qp);
/* Posts a slot on the home QP. must_signal: with a completion. */
void verbs_flow_post(verbs_ep *ep, verbs_slot *slot, bool must_signal);
/* Frees the frames that were received ahead of order. */
void verbs_flow_drop_held(verbs_ep *ep);
/* Resends frames of the last epoch, as credits allow. Returns their number. */
int verbs_flow_resend(verbs_ep *ep);

/* -- read_fence.c -- */
/* Posts a read fence (or an empty write); a completed fence increments ep->fences_done. */
void verbs_rc_qp_fence(verbs_rc_qp *qp);
/* True if only a read fence proves that a send or write was placed at the peer (iWARP). */
bool verbs_read_fence_needed(const verbs_rc_qp *qp);
void verbs_read_fence_fill(const verbs_rc_qp *qp, verbs_work *work, struct ibv_sge *sge, struct ibv_send_wr *request);

/* -- credit.c -- */
/* Credits to put into a frame that is posted now; their receives are posted before. */
uint32_t verbs_credit_grant(verbs_ep *ep);
/* The peer has used `count` credits, or given them up. */
void verbs_credit_return(verbs_ep *ep, uint32_t count);
/* The epoch has ended: revokes all credits. */
void verbs_credit_end(verbs_ep *ep);

/* -- evict.c -- */
void verbs_evict_handle(verbs_ep *ep, enum verbs_kind kind); /* received EVICT_REQ or EVICT_ACK */

/* -- eager_ring.c -- */
/* True if the peer's ring has a free cell for `bytes`. Requires ep->ring. */
bool verbs_eager_ring_has_space(verbs_ep *ep, uint32_t bytes);
void verbs_eager_ring_send(verbs_ep *ep, verbs_slot *slot, bool signals); /* a stamped frame, already in ep->sent */
/* Called after each VERBS_RING_BUSY delivered frames: opens a ring for a busy peer. */
#define VERBS_RING_BUSY 128u
void verbs_eager_ring_consider(verbs_ep *ep);
/* Delivers the frames that are in the ring now; their number. */
int verbs_eager_ring_catch_up(verbs_ep *ep);
/* Sends a RING_DONE that is due; true: it is still due. */
bool verbs_eager_ring_send_due(verbs_ep *ep);

/* Numbered frames may be posted: connected, and no older frame waits to be resent. */
static inline bool verbs_flow_is_ready(const verbs_ep *ep)
{
    return ep->state == VERBS_UP && ep->is_confirmed && ep->home && ep->home->ibv_qp && !ep->home->is_broken && !ep->unsent;
}
/* New frames may be posted. */
static inline bool verbs_flow_is_open(const verbs_ep *ep) { return verbs_flow_is_ready(ep) && ep->evict == VERBS_EVICT_NONE; }
/* Notifications may be posted: an eviction in QUIESCE waits for the end of their puts. */
static inline bool verbs_flow_may_notify(const verbs_ep *ep) { return verbs_flow_is_ready(ep) && ep->evict <= VERBS_EVICT_QUIESCE; }
/* Room for `count` work requests on the QP and its CQ; three are reserved for credits and syncs. */
static inline bool verbs_rc_qp_has_room(const verbs_rc_qp *qp, uint32_t count)
{
    return qp->sq_used + count + 3 <= qp->sq_capacity && qp->rail->cq_used + count + 3 <= qp->rail->cq_capacity;
}
/* a - b modulo 2^32, signed. */
static inline int32_t verbs_seq_diff(uint32_t a, uint32_t b) { return (int32_t)(a - b); }
/* Bound of numbered frames in flight; far below the range of 16-bit numbers. */
#define VERBS_IN_FLIGHT_MAX 8192
static inline bool verbs_flow_has_number(const verbs_ep *ep)
{
    return verbs_seq_diff(ep->tx_seq, ep->tx_acked) < VERBS_IN_FLIGHT_MAX;
}
/* The peer has used at least half of its credits. */
static inline bool verbs_flow_credits_due(const verbs_ep *ep) { return ep->has_grant && ep->granted <= ep->target / 2; }

#endif

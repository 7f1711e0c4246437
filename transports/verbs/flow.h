/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flow: what ring and move ask of the half that carries frames. Called by eager_ring.c, rma.c and iface.c.
 */
#ifndef WEFT_TRANSPORTS_VERBS_FLOW_H
#define WEFT_TRANSPORTS_VERBS_FLOW_H

#include "transports/verbs/slots.h"

/* A frame without number; by credit, or by the token when it gives credits back. 0, or AGAIN when it cannot go now. A break drops it. */
int verbs_flow_control(verbs_ep *ep, enum verbs_kind kind, const weft_hdr *hdr);
/* A put's notification as a frame: numbered, exactly once. 0, or AGAIN. */
int verbs_flow_notify(verbs_ep *ep, uint32_t value);
/* The same for a write that its op is about to post on path->home: takes a credit and a number, whose slot this is. NULL: not now. Of kind
 * VOID: the write is to have it as immediate data; of kind NOTIFY: notice_frame is to follow it. `over`: that write has completed.
 * `disown`: it will not arrive, its number goes as an empty frame. `let_go`: its slot goes back, its op is told what became of it. */
verbs_slot *verbs_flow_notice(verbs_ep *ep, struct verbs_op *op);
void verbs_flow_notice_frame(verbs_ep *ep, verbs_slot *notice);
void verbs_flow_notice_over(verbs_slot *notice);
void verbs_flow_disown(verbs_slot *notice);
void verbs_flow_let_go(verbs_ep *ep, verbs_slot *slot, bool is_delivered);
/* A numbered frame has come, by queue or ring: delivers it and whatever waited for it, keeps it when others come first. false: it is
 * none that we can read. */
bool verbs_flow_take(verbs_ep *ep, const verbs_wire *wire, uint32_t bytes);
/* Credits, token and acknowledgement that came with a frame. */
void verbs_flow_news(verbs_ep *ep, const verbs_prefix *prefix);
/* Fills in a prefix of a frame about to leave: takes what is owed along. */
void verbs_flow_stamp(verbs_ep *ep, verbs_slot *slot, enum verbs_kind kind, uint8_t flags);
/* flow_turn is to look at the path: something waits to be told. */
void verbs_flow_tell(verbs_ep *ep);
/* All frames up to `seq` that were posted are over: their slots are free where that is proof enough. */
void verbs_flow_done(verbs_ep *ep, uint32_t seq);
/* Asks the link to tell when all that was posted is over. */
void verbs_rc_qp_sync(verbs_rc_qp *link);
/* Posts a slot on the home link. */
void verbs_flow_post(verbs_ep *ep, verbs_slot *slot, bool must_signal);
/* Forgets what came ahead of others. */
void verbs_flow_drop_held(verbs_ep *ep);
/* replay.c: sends again what the last epoch did not bring over, as far as credits go. How many. */
int verbs_flow_resend(verbs_ep *ep);

/* -- read_fence.c -- */
/* Asks it whether it carries anything: path->proofs grows by one. */
void verbs_rc_qp_prove(verbs_rc_qp *link);
/* A completion of a send or write says nothing of the other side here, but a request of this kind behind it does. */
bool verbs_read_fence_needed(const verbs_rc_qp *link);
void verbs_read_fence_fill(const verbs_rc_qp *link, verbs_work *work, struct ibv_sge *sge, struct ibv_send_wr *request);

/* -- credit.c -- */
/* Credits to put into a frame that leaves now. */
uint32_t verbs_lend_credit(verbs_ep *ep);
/* So many were used, or given up. */
void verbs_credit_return(verbs_ep *ep, uint32_t count);
/* The epoch is over, and with it all that was lent. */
void verbs_credit_end(verbs_ep *ep);

/* -- evict.c -- */
void verbs_evict_handle(verbs_ep *ep, enum verbs_kind kind); /* REST, RESTED */

/* -- eager_ring.c -- */
/* Is there a ring of the peer's with a free cell for so many bytes? Only asked when path->ring is there. */
bool verbs_eager_ring_takes(verbs_ep *ep, uint32_t bytes);
void verbs_eager_ring_launch(verbs_ep *ep, verbs_slot *slot, bool signals); /* a stamped frame, already in path->sent */
/* The peer has sent VERBS_RING_BUSY frames since it was last thought of. */
#define VERBS_RING_BUSY 128u
void verbs_eager_ring_think(verbs_ep *ep);
/* Reads what is there now. */
int verbs_eager_ring_catch_up(verbs_ep *ep);
/* Says what could not be said before; true: still cannot. */
bool verbs_eager_ring_chores(verbs_ep *ep);

/* Frames may be posted: connected, not about to rest, and nothing older waits to be sent again. */
static inline bool verbs_flow_is_open(const verbs_ep *ep)
{
    return ep->state == VERBS_UP && ep->is_confirmed && ep->home && ep->home->qp && !ep->home->is_broken && !ep->unsent && ep->rest == VERBS_EVICT_NONE;
}
/* Room for `count` work requests on the link and its completion queue, some kept for credits and syncs. */
static inline bool verbs_rc_qp_has_room(const verbs_rc_qp *link, uint32_t count)
{
    return link->sq_used + count + 3 <= link->sq_room && link->rail->cq_used + count + 3 <= link->rail->cq_room;
}
/* a - b of numbers that wrap around. */
static inline int32_t verbs_seq_diff(uint32_t a, uint32_t b) { return (int32_t)(a - b); }
/* One more numbered frame may be under way. So many: far below what 16 bits can tell apart. */
#define VERBS_IN_FLIGHT_MAX 8192
static inline bool verbs_flow_has_number(const verbs_ep *ep)
{
    return verbs_seq_diff(ep->tx_seq, ep->tx_acked) < VERBS_IN_FLIGHT_MAX;
}
/* The peer has used up half of what it may be lent. */
static inline bool verbs_flow_owes_much(const verbs_ep *ep) { return ep->is_lent && ep->lent <= ep->target / 2; }

#endif

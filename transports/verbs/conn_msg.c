/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_msg: connection messages: encoded, sent, and validated on receipt. Called by conn.c and ud.c; a valid message goes on to conn.c
 * and rail_probe.c. Messages of another job, iface, ep or epoch are dropped: they may be arbitrarily late.
 */
#include <stddef.h>
#include <string.h>

#include "transports/verbs/conn.h"

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

static size_t length_of(uint8_t rails) { return offsetof(verbs_conn_msg, rail) + rails * sizeof(verbs_conn_msg_rail); }

/* -- sending -- */

static void write_rails(const verbs_ep *ep, verbs_conn_msg *msg)
{
    const verbs_iface *iface = ep->iface;
    msg->rails = iface->rail_count;
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        verbs_rail_address(&iface->rails[i], &msg->rail[i].address);
        msg->rail[i].reads = (uint8_t)min((uint32_t)iface->rails[i].attr.max_qp_rd_atom, 255);
    }
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        const verbs_rc_qp *qp = &ep->qps[i];
        verbs_conn_msg_rail *rail = &msg->rail[qp->rail->index];
        if (!qp->ibv_qp)
            continue;
        rail->qpn = qp->ibv_qp->qp_num;
        rail->psn = ep->hs->qp_hs[i].psn;
        rail->remote_rail = qp->remote_rail;
        rail->flags = ep->hs->qp_hs[i].is_proven ? VERBS_MSG_PROVEN : 0;
    }
}

void verbs_conn_msg_write(const verbs_ep *ep, uint8_t kind, verbs_conn_msg *msg)
{
    const verbs_iface *iface = ep->iface;
    const verbs_handshake *hs = ep->hs;
    *msg = (verbs_conn_msg){.magic = VERBS_MSG_MAGIC, .version = VERBS_MSG_VERSION, .kind = kind, .job = iface->self.job,
                         .to_job = ep->proc_id.job, .rank = iface->self.rank, .worker = iface->self.worker, .to_rank = ep->proc_id.rank,
                         .to_worker = ep->proc_id.worker, .nonce = iface->nonce, .to_nonce = ep->remote.nonce,
                         .incarnation = hs->incarnation,
                         .to_incarnation = hs->remote_incarnation, .epoch = ep->epoch, .rx_seq = ep->rx_seq, .credits = hs->local_credits};
    write_rails(ep, msg);
}

int verbs_conn_msg_send(const verbs_rc_qp *qp, uint8_t kind)
{
    verbs_conn_msg msg;
    verbs_conn_msg_write(qp->ep, kind, &msg);
    msg.from_rail = qp->rail->index;
    msg.to_rail = qp->remote_rail;
    return verbs_ud_send(qp->rail, &qp->ep->remote.address[qp->remote_rail], &msg, length_of(msg.rails));
}

/* To the peer of a closed ep; the addresses come from its message. */
static void reply_gone(verbs_rail *rail, const verbs_conn_msg *msg_in)
{
    verbs_conn_msg msg = {.magic = VERBS_MSG_MAGIC, .version = VERBS_MSG_VERSION, .kind = VERBS_MSG_GONE,
                       .from_rail = msg_in->to_rail,
                       .to_rail = msg_in->from_rail, .job = msg_in->to_job, .to_job = msg_in->job, .rank = msg_in->to_rank,
                       .worker = msg_in->to_worker, .to_rank = msg_in->rank, .to_worker = msg_in->worker, .nonce = msg_in->to_nonce,
                       .to_nonce = msg_in->nonce, .incarnation = msg_in->to_incarnation,
                       .to_incarnation = msg_in->incarnation, .epoch = msg_in->epoch};
    verbs_ud_send(rail, &msg_in->rail[msg_in->from_rail].address, &msg, length_of(0));
}

/* -- receiving -- */

static bool is_wellformed(const verbs_iface *iface, const verbs_conn_msg *msg, size_t bytes)
{
    return bytes >= length_of(0) && msg->magic == VERBS_MSG_MAGIC && msg->version == VERBS_MSG_VERSION &&
        msg->rails <= VERBS_RAILS &&
           bytes >= length_of(msg->rails) && (msg->kind == VERBS_MSG_GONE || msg->from_rail < msg->rails) &&
           msg->to_nonce == iface->nonce && msg->to_job == iface->self.job && msg->to_rank == iface->self.rank &&
           msg->to_worker == iface->self.worker;
}

bool verbs_conn_was_closed(const struct verbs_conn *conn, const weft_proc_id *proc_id, uint32_t remote_incarnation)
{
    for (uint32_t i = 0; i < conn->gone_count; i++) {
        const verbs_gone *one = &conn->gone[i];
        if (one->proc_id.rank == proc_id->rank && one->proc_id.job == proc_id->job && one->proc_id.worker == proc_id->worker &&
            one->remote_incarnation == remote_incarnation)
            return true;
    }
    return false;
}

static verbs_ep *accept_peer(verbs_iface *iface, const weft_proc_id *proc_id)
{
    verbs_ep *ep = iface->iface.callbacks->accept_peer(iface->iface.owner, proc_id) ? verbs_ep_lookup(iface, proc_id) : NULL;
    if (ep)
        ep->was_greeted = true;
    return ep;
}

verbs_ep *verbs_conn_ep_of(verbs_iface *iface, const weft_proc_id *proc_id, uint32_t incarnation, uint32_t to_incarnation)
{
    verbs_ep *ep = verbs_ep_lookup(iface, proc_id);
    if (!ep && !to_incarnation && !verbs_conn_was_closed(iface->conn, proc_id, incarnation))
        ep = accept_peer(iface, proc_id);
    if (!ep || (ep->hs->remote_incarnation && ep->hs->remote_incarnation != incarnation) ||
        (to_incarnation && to_incarnation != ep->hs->incarnation))
        return NULL;
    return ep;
}

/* ep of the message; created for a new peer that sends CONNECT. NULL: none. */
static verbs_ep *ep_of(verbs_rail *rail, const verbs_conn_msg *msg)
{
    verbs_iface *iface = rail->iface;
    weft_proc_id proc_id = {msg->job, msg->rank, msg->worker};
    verbs_ep *ep = verbs_ep_lookup(iface, &proc_id);
    if (ep)
        return ep;
    if (verbs_conn_was_closed(iface->conn, &proc_id, msg->incarnation)) {
        if (msg->kind != VERBS_MSG_GONE)
            reply_gone(rail, msg);
        return NULL;
    }
    return msg->kind == VERBS_MSG_CONNECT && !msg->to_incarnation ? accept_peer(iface, &proc_id) : NULL;
}

static bool is_of_incarnation(const verbs_ep *ep, const verbs_conn_msg *msg)
{
    const verbs_handshake *hs = ep->hs;
    return ep->remote.nonce == msg->nonce && (!hs->remote_incarnation || hs->remote_incarnation == msg->incarnation) &&
           (msg->to_incarnation == hs->incarnation || (!msg->to_incarnation && msg->kind == VERBS_MSG_CONNECT));
}

/* Addresses may change while a job runs (the GID table is rewritten): the last message is right. */
static void store_addresses(verbs_ep *ep, const verbs_conn_msg *msg)
{
    for (uint8_t i = 0; i < msg->rails && i < ep->remote.rails; i++)
        ep->remote.address[i] = msg->rail[i].address;
}

/* Answers by the pair of rails of the probe; a suspect not before silent_until_ns, as datagrams may pass where connections fail. */
static void answer(verbs_ep *ep, const verbs_rail *rail, const verbs_conn_msg *msg)
{
    for (uint8_t i = 0; i < ep->qp_count; i++) {
        const verbs_qp_handshake *qp_hs = &ep->hs->qp_hs[i];
        if (ep->qps[i].rail == rail && ep->qps[i].remote_rail == msg->from_rail &&
            !(qp_hs->is_suspect && ep->iface->now_ns() < qp_hs->silent_until_ns))
            verbs_conn_msg_send(&ep->qps[i], VERBS_MSG_ANSWER);
    }
}

void verbs_conn_msg_recv(verbs_rail *rail, const verbs_conn_msg *msg, size_t bytes)
{
    verbs_iface *iface = rail->iface;
    verbs_ep *ep = is_wellformed(iface, msg, bytes) ? ep_of(rail, msg) : NULL;
    if (!ep || !is_of_incarnation(ep, msg)) {
        iface->conn->dropped++;
        return;
    }
    ep->hs->remote_incarnation = msg->incarnation;
    switch (msg->kind) {
    case VERBS_MSG_CONNECT:
    case VERBS_MSG_ACCEPT:
    case VERBS_MSG_READY:
        store_addresses(ep, msg);
        verbs_conn_on_offer(ep, msg);
        break;
    case VERBS_MSG_GONE:
        verbs_conn_on_gone(ep);
        break;
    case VERBS_MSG_PROBE:
        answer(ep, rail, msg);
        break;
    case VERBS_MSG_ANSWER:
        verbs_conn_on_answer(ep, rail, msg->from_rail);
        break;
    default:
        iface->conn->dropped++;
    }
}

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

static void write_rails(const verbs_ep *ep, verbs_conn_msg *note)
{
    const verbs_iface *iface = ep->iface;
    note->rails = iface->rail_count;
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        verbs_rail_address(&iface->rails[i], &note->rail[i].address);
        note->rail[i].reads = (uint8_t)min((uint32_t)iface->rails[i].attr.max_qp_rd_atom, 255);
    }
    for (uint8_t i = 0; i < ep->link_count; i++) {
        const verbs_rc_qp *link = &ep->links[i];
        verbs_conn_msg_rail *rail = &note->rail[link->rail->index];
        if (!link->qp)
            continue;
        rail->qpn = link->qp->qp_num;
        rail->psn = ep->meet->halves[i].psn;
        rail->far_rail = link->far_rail;
        rail->flags = ep->meet->halves[i].is_proven ? VERBS_NOTE_PROVEN : 0;
    }
}

void verbs_conn_msg_write(const verbs_ep *ep, uint8_t kind, verbs_conn_msg *note)
{
    const verbs_iface *iface = ep->iface;
    const verbs_handshake *meet = ep->meet;
    *note = (verbs_conn_msg){.magic = VERBS_NOTE_MAGIC, .version = VERBS_NOTE_VERSION, .kind = kind, .job = iface->self.job,
                         .to_job = ep->proc_id.job, .rank = iface->self.rank, .worker = iface->self.worker, .to_rank = ep->proc_id.rank,
                         .to_worker = ep->proc_id.worker, .nonce = iface->nonce, .to_nonce = ep->far.nonce, .incarnation = meet->incarnation,
                         .to_incarnation = meet->remote_incarnation, .epoch = ep->epoch, .rx_seq = ep->rx_seq, .credits = meet->my_credits};
    write_rails(ep, note);
}

int verbs_conn_msg_send(const verbs_rc_qp *link, uint8_t kind)
{
    verbs_conn_msg note;
    verbs_conn_msg_write(link->ep, kind, &note);
    note.from_rail = link->rail->index;
    note.to_rail = link->far_rail;
    return verbs_ud_send(link->rail, &link->ep->far.address[link->far_rail], &note, length_of(note.rails));
}

/* To the peer of a closed ep; the addresses come from its message. */
static void say_gone(verbs_rail *rail, const verbs_conn_msg *heard)
{
    verbs_conn_msg note = {.magic = VERBS_NOTE_MAGIC, .version = VERBS_NOTE_VERSION, .kind = VERBS_NOTE_GONE,
                       .from_rail = heard->to_rail,
                       .to_rail = heard->from_rail, .job = heard->to_job, .to_job = heard->job, .rank = heard->to_rank,
                       .worker = heard->to_worker, .to_rank = heard->rank, .to_worker = heard->worker, .nonce = heard->to_nonce,
                       .to_nonce = heard->nonce, .incarnation = heard->to_incarnation, .to_incarnation = heard->incarnation, .epoch = heard->epoch};
    verbs_ud_send(rail, &heard->rail[heard->from_rail].address, &note, length_of(0));
}

/* -- receiving -- */

static bool is_wellformed(const verbs_iface *iface, const verbs_conn_msg *note, size_t bytes)
{
    return bytes >= length_of(0) && note->magic == VERBS_NOTE_MAGIC && note->version == VERBS_NOTE_VERSION &&
        note->rails <= VERBS_RAILS &&
           bytes >= length_of(note->rails) && (note->kind == VERBS_NOTE_GONE || note->from_rail < note->rails) &&
           note->to_nonce == iface->nonce && note->to_job == iface->self.job && note->to_rank == iface->self.rank &&
           note->to_worker == iface->self.worker;
}

bool verbs_conn_was_left(const struct verbs_conn *conn, const weft_proc_id *proc_id, uint32_t remote_incarnation)
{
    for (uint32_t i = 0; i < conn->gone_count; i++) {
        const verbs_gone *one = &conn->gone[i];
        if (one->proc_id.rank == proc_id->rank && one->proc_id.job == proc_id->job && one->proc_id.worker == proc_id->worker &&
            one->remote_incarnation == remote_incarnation)
            return true;
    }
    return false;
}

static verbs_ep *greet(verbs_iface *iface, const weft_proc_id *proc_id)
{
    verbs_ep *ep = iface->iface.callbacks->accept_peer(iface->iface.owner, proc_id) ? verbs_names_find(iface, proc_id) : NULL;
    if (ep)
        ep->was_greeted = true;
    return ep;
}

verbs_ep *verbs_conn_named(verbs_iface *iface, const weft_proc_id *proc_id, uint32_t incarnation, uint32_t to_incarnation)
{
    verbs_ep *ep = verbs_names_find(iface, proc_id);
    if (!ep && !to_incarnation && !verbs_conn_was_left(iface->conn, proc_id, incarnation))
        ep = greet(iface, proc_id);
    if (!ep || (ep->meet->remote_incarnation && ep->meet->remote_incarnation != incarnation) || (to_incarnation && to_incarnation != ep->meet->incarnation))
        return NULL;
    return ep;
}

/* ep of the message; created for a new peer that sends CONNECT. NULL: none. */
static verbs_ep *path_of(verbs_rail *rail, const verbs_conn_msg *note)
{
    verbs_iface *iface = rail->iface;
    weft_proc_id proc_id = {note->job, note->rank, note->worker};
    verbs_ep *ep = verbs_names_find(iface, &proc_id);
    if (ep)
        return ep;
    if (verbs_conn_was_left(iface->conn, &proc_id, note->incarnation)) {
        if (note->kind != VERBS_NOTE_GONE)
            say_gone(rail, note);
        return NULL;
    }
    return note->kind == VERBS_NOTE_CONNECT && !note->to_incarnation ? greet(iface, &proc_id) : NULL;
}

static bool is_of_this_life(const verbs_ep *ep, const verbs_conn_msg *note)
{
    const verbs_handshake *meet = ep->meet;
    return ep->far.nonce == note->nonce && (!meet->remote_incarnation || meet->remote_incarnation == note->incarnation) &&
           (note->to_incarnation == meet->incarnation || (!note->to_incarnation && note->kind == VERBS_NOTE_CONNECT));
}

/* Addresses may change while a job runs (the GID table is rewritten): the last message is right. */
static void take_addresses(verbs_ep *ep, const verbs_conn_msg *note)
{
    for (uint8_t i = 0; i < note->rails && i < ep->far.rails; i++)
        ep->far.address[i] = note->rail[i].address;
}

/* Answers by the pair of rails of the probe; a suspect not before rests_ns, as datagrams may pass where connections fail. */
static void answer(verbs_ep *ep, const verbs_rail *rail, const verbs_conn_msg *note)
{
    for (uint8_t i = 0; i < ep->link_count; i++) {
        const verbs_qp_handshake *half = &ep->meet->halves[i];
        if (ep->links[i].rail == rail && ep->links[i].far_rail == note->from_rail &&
            !(half->is_suspect && ep->iface->now_ns() < half->rests_ns))
            verbs_conn_msg_send(&ep->links[i], VERBS_NOTE_ANSWER);
    }
}

void verbs_conn_msg_recv(verbs_rail *rail, const verbs_conn_msg *note, size_t bytes)
{
    verbs_iface *iface = rail->iface;
    verbs_ep *ep = is_wellformed(iface, note, bytes) ? path_of(rail, note) : NULL;
    if (!ep || !is_of_this_life(ep, note)) {
        iface->conn->dropped++;
        return;
    }
    ep->meet->remote_incarnation = note->incarnation;
    switch (note->kind) {
    case VERBS_NOTE_CONNECT:
    case VERBS_NOTE_ACCEPT:
    case VERBS_NOTE_READY:
        take_addresses(ep, note);
        verbs_conn_offered(ep, note);
        break;
    case VERBS_NOTE_GONE:
        verbs_conn_gone(ep);
        break;
    case VERBS_NOTE_PROBE:
        answer(ep, rail, note);
        break;
    case VERBS_NOTE_ANSWER:
        verbs_conn_answered(ep, rail, note->from_rail);
        break;
    default:
        iface->conn->dropped++;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * note: what ports say to each other about a path: written, sent by the rail that seems best, and judged when it comes. Called by
 * conn.c; a note that comes goes on to the path's states there. Whatever is of another job, port, path or epoch is dropped
 * here: it may be years late.
 */
#include <stddef.h>
#include <string.h>

#include "transports/verbs/conn.h"

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static size_t length_of(uint8_t rails) { return offsetof(verbs_note, rail) + rails * sizeof(verbs_note_rail); }

/* -- writing -- */

static void write_rails(const verbs_path *path, verbs_note *note)
{
    const verbs_port *port = path->port;
    note->rails = port->rail_count;
    for (uint8_t i = 0; i < port->rail_count; i++) {
        verbs_rail_address(&port->rails[i], &note->rail[i].address);
        note->rail[i].reads = (uint8_t)least((uint32_t)port->rails[i].attr.max_qp_rd_atom, 255);
    }
    for (uint8_t i = 0; i < path->link_count; i++) {
        const verbs_link *link = &path->links[i];
        verbs_note_rail *rail = &note->rail[link->rail->index];
        if (!link->qp)
            continue;
        rail->qpn = link->qp->qp_num;
        rail->psn = path->meet->halves[i].psn;
        rail->far_rail = link->far_rail;
        rail->flags = path->meet->halves[i].is_proven ? VERBS_NOTE_PROVEN : 0;
    }
}

void verbs_note_write(const verbs_path *path, uint8_t kind, verbs_note *note)
{
    const verbs_port *port = path->port;
    const verbs_meet *meet = path->meet;
    *note = (verbs_note){.magic = VERBS_NOTE_MAGIC, .version = VERBS_NOTE_VERSION, .kind = kind, .job = port->self.job,
                         .to_job = path->name.job, .rank = port->self.rank, .lane = port->self.lane, .to_rank = path->name.rank,
                         .to_lane = path->name.lane, .nonce = port->nonce, .to_nonce = path->far.nonce, .life = meet->life,
                         .to_life = meet->far_life, .epoch = path->epoch, .rx_seq = path->rx_seq, .credits = meet->my_credits};
    write_rails(path, note);
}

int verbs_note_send(const verbs_link *link, uint8_t kind)
{
    verbs_note note;
    verbs_note_write(link->path, kind, &note);
    note.from_rail = link->rail->index;
    note.to_rail = link->far_rail;
    return verbs_datagram_send(link->rail, &link->path->far.address[link->far_rail], &note, length_of(note.rails));
}

/* To somebody whose path is no more: only what he said is known. */
static void say_gone(verbs_rail *rail, const verbs_note *heard)
{
    verbs_note note = {.magic = VERBS_NOTE_MAGIC, .version = VERBS_NOTE_VERSION, .kind = VERBS_NOTE_GONE,
                       .from_rail = heard->to_rail,
                       .to_rail = heard->from_rail, .job = heard->to_job, .to_job = heard->job, .rank = heard->to_rank,
                       .lane = heard->to_lane, .to_rank = heard->rank, .to_lane = heard->lane, .nonce = heard->to_nonce,
                       .to_nonce = heard->nonce, .life = heard->to_life, .to_life = heard->life, .epoch = heard->epoch};
    verbs_datagram_send(rail, &heard->rail[heard->from_rail].address, &note, length_of(0));
}

/* -- hearing -- */

static bool is_wellformed(const verbs_port *port, const verbs_note *note, size_t bytes)
{
    return bytes >= length_of(0) && note->magic == VERBS_NOTE_MAGIC && note->version == VERBS_NOTE_VERSION &&
        note->rails <= VERBS_RAILS &&
           bytes >= length_of(note->rails) && (note->kind == VERBS_NOTE_GONE || note->from_rail < note->rails) &&
           note->to_nonce == port->nonce && note->to_job == port->self.job && note->to_rank == port->self.rank &&
           note->to_lane == port->self.lane;
}

bool verbs_conn_was_left(const struct verbs_conn *conn, const weft_name *name, uint32_t far_life)
{
    for (uint32_t i = 0; i < conn->gone_count; i++) {
        const verbs_gone *one = &conn->gone[i];
        if (one->name.rank == name->rank && one->name.job == name->job && one->name.lane == name->lane &&
            one->far_life == far_life)
            return true;
    }
    return false;
}

static verbs_path *greet(verbs_port *port, const weft_name *name)
{
    verbs_path *path = port->port.up->greet(port->port.owner, name) ? verbs_names_find(port, name) : NULL;
    if (path)
        path->was_greeted = true;
    return path;
}

verbs_path *verbs_conn_named(verbs_port *port, const weft_name *name, uint32_t life, uint32_t to_life)
{
    verbs_path *path = verbs_names_find(port, name);
    if (!path && !to_life && !verbs_conn_was_left(port->conn, name, life))
        path = greet(port, name);
    if (!path || (path->meet->far_life && path->meet->far_life != life) || (to_life && to_life != path->meet->life))
        return NULL;
    return path;
}

/* The path it is about; makes one for somebody new who wants to connect. */
static verbs_path *path_of(verbs_rail *rail, const verbs_note *note)
{
    verbs_port *port = rail->port;
    weft_name name = {note->job, note->rank, note->lane};
    verbs_path *path = verbs_names_find(port, &name);
    if (path)
        return path;
    if (verbs_conn_was_left(port->conn, &name, note->life)) {
        if (note->kind != VERBS_NOTE_GONE)
            say_gone(rail, note);
        return NULL;
    }
    return note->kind == VERBS_NOTE_CONNECT && !note->to_life ? greet(port, &name) : NULL;
}

static bool is_of_this_life(const verbs_path *path, const verbs_note *note)
{
    const verbs_meet *meet = path->meet;
    return path->far.nonce == note->nonce && (!meet->far_life || meet->far_life == note->life) &&
           (note->to_life == meet->life || (!note->to_life && note->kind == VERBS_NOTE_CONNECT));
}

/* Addresses may change while a job runs (a GID table is written anew): what the peer says last is right. */
static void take_addresses(verbs_path *path, const verbs_note *note)
{
    for (uint8_t i = 0; i < note->rails && i < path->far.rails; i++)
        path->far.address[i] = note->rail[i].address;
}

/* By the pair of rails that the probe came by; not while we mean to leave it alone: datagrams may pass where connections fail. */
static void answer(verbs_path *path, const verbs_rail *rail, const verbs_note *note)
{
    for (uint8_t i = 0; i < path->link_count; i++) {
        const verbs_half *half = &path->meet->halves[i];
        if (path->links[i].rail == rail && path->links[i].far_rail == note->from_rail &&
            !(half->is_suspect && path->port->now_ns() < half->rests_ns))
            verbs_note_send(&path->links[i], VERBS_NOTE_ANSWER);
    }
}

void verbs_conn_note(verbs_rail *rail, const verbs_note *note, size_t bytes)
{
    verbs_port *port = rail->port;
    verbs_path *path = is_wellformed(port, note, bytes) ? path_of(rail, note) : NULL;
    if (!path || !is_of_this_life(path, note)) {
        port->conn->dropped++;
        return;
    }
    path->meet->far_life = note->life;
    switch (note->kind) {
    case VERBS_NOTE_CONNECT:
    case VERBS_NOTE_ACCEPT:
    case VERBS_NOTE_READY:
        take_addresses(path, note);
        verbs_conn_offered(path, note);
        break;
    case VERBS_NOTE_GONE:
        verbs_conn_gone(path);
        break;
    case VERBS_NOTE_PROBE:
        answer(path, rail, note);
        break;
    case VERBS_NOTE_ANSWER:
        verbs_conn_answered(path, rail, note->from_rail);
        break;
    default:
        port->conn->dropped++;
    }
}

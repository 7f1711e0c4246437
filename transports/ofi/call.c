/* SPDX-License-Identifier: BSD-3-Clause
 *
 * call: who answers at an address is who was meant. A call names its sender, the nonce of whom it is for, and a number; the answer has
 * that number, and opens the way for frames. The called one calls back in the same breath, at the address that the caller says it is seen
 * by, so three messages open both ways. Addresses are tried one after the other, best first; where nobody answers for a quarter of a
 * second the kernel is asked about all of them at once (probe.c). No time limit ends a call that the peer's kernel would take: the peer
 * computes. When every address has failed the peer is lost, and all of them are named with what the system said.
 *
 * The same call is made when an operation failed later: it tells how many frames each side has sent and had. If nothing is missing the
 * connection was mended by libfabric and all goes on; else the peer is lost, because frames are not kept to be sent again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define ROTATE_NS 2000000000u  /* somebody listens, but does not answer: try the others meanwhile */
#define MISSING_NS 5000000000u /* frames may still come by the old connection for so long */
#define ASK_AGAIN_NS 50000000u
#define REPEAT_NS 500000000u
#define SENIOR_REPEAT_NS 50000000u
#define GIVE_WAY_NS 1000000u
#define SILENT_NS 5000000000u

static bool can_probe(const ofi_port *port) { return ofi_is_socket(port->info) && strncmp(port->card.provider, "udp", 3) != 0; }

static uint64_t patience_ns(void) { return (uint64_t)weft_knob.peer_timeout_s * 1000000000u; }

static ofi_path *path_of(const ofi_port *port, const weft_name *name)
{
    for (weft_link *link = port->paths.next; link != &port->paths; link = link->next) {
        ofi_path *path = weft_container(link, ofi_path, link);
        if (path->name.job == name->job && path->name.rank == name->rank && path->name.lane == name->lane)
            return path;
    }
    return NULL;
}

/* -- paths -- */

static int give_index(ofi_port *port, ofi_path *path)
{
    uint32_t i = 1;
    while (i < port->index_room && port->by_index[i])
        i++;
    if (i >= port->index_room) {
        uint32_t room = port->index_room ? 2 * port->index_room : 16;
        ofi_path **table = realloc(port->by_index, room * sizeof *table);
        if (!table)
            return weft_fail(WEFT_E_NOMEM, "no memory for a table of %u peers", room);
        memset(table + port->index_room, 0, (room - port->index_room) * sizeof *table);
        port->by_index = table;
        port->index_room = room;
    }
    port->by_index[i] = path;
    path->index = i;
    return 0;
}

int ofi_reach(weft_port *base, const weft_name *who, const void *card, size_t bytes, void *peer, weft_path **out)
{
    ofi_port *port = (ofi_port *)base;
    ofi_path *path;
    ofi_card far;
    int rc;
    if (bytes != sizeof far)
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u has no address for libfabric", who->rank);
    memcpy(&far, card, sizeof far);
    if (far.version != port->card.version || far.protocol != port->card.protocol || far.form != port->card.form || far.key_form != port->card.key_form)
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u uses libfabric's %.23s, this one %s: they do not understand each other (WEFT_OFI_PROVIDER)",
                         who->rank, far.provider, port->card.provider);
    if (far.host != port->card.host && ofi_is_local(port->info))
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u is on another host, which libfabric's %s does not reach (WEFT_OFI_PROVIDER)", who->rank,
                         port->card.provider);
    path = calloc(1, sizeof *path);
    if (!path)
        return weft_fail(WEFT_E_NOMEM, "no memory for a path of %zu bytes", sizeof *path);
    path->path = (weft_path){.port = base, .peer = peer};
    path->name = *who;
    path->card = far;
    weft_list_init(&path->early);
    weft_list_init(&path->ops);
    weft_list_init(&path->again);
    rc = ofi_spots_make(port, path);
    if (rc == 0)
        rc = give_index(port, path);
    if (rc) {
        free(path->spots);
        free(path);
        return rc;
    }
    weft_list_append(&port->paths, &path->link);
    *out = &path->path;
    return 0;
}

static void chase(ofi_port *port, ofi_path *path)
{
    if (!path->is_calling)
        weft_list_append(&port->calling, &path->calling);
    path->is_calling = true;
}

static void rest(ofi_path *path)
{
    if (path->is_calling)
        weft_list_remove(&path->calling);
    path->is_calling = false;
    for (uint32_t i = 0; i < path->spot_count; i++)
        ofi_probe_end(&path->spots[i]);
}

void ofi_path_free(ofi_port *port, ofi_path *path)
{
    rest(path);
    ofi_bundle_drop(port, path);
    ofi_moves_fail(port, path, WEFT_E_PEER, NULL);
    for (size_t i = 0; i < weft_count(port->slots); i++)
        if (port->slots[i].work.path == path)
            port->slots[i].work.path = NULL;
    ofi_flow_drop(path);
    port->by_index[path->index] = NULL;
    weft_list_remove(&path->link);
    free(path->spots);
    free(path);
}

void ofi_lose(ofi_port *port, ofi_path *path, const char *why)
{
    char text[400];
    if (path->state == OFI_LOST || path->has_left)
        return;
    snprintf(text, sizeof text, "%s", why); /* it may be the text of the last failure */
    path->state = OFI_LOST;
    rest(path);
    ofi_bundle_drop(port, path);
    ofi_moves_fail(port, path, WEFT_E_PEER, text);
    port->port.up->lost(port->port.owner, path->path.peer, weft_fail(WEFT_E_PEER, "%s", text));
}

/* -- calling -- */

static bool is_inserted(ofi_port *port, ofi_spot *spot)
{
    if (!spot->is_inserted)
        spot->is_inserted = fi_av_insert(port->av, &spot->address, 1, &spot->to, 0, NULL) == 1;
    return spot->is_inserted;
}

/* 0: it is on its way. */
static int say_call(ofi_port *port, ofi_path *path, ofi_spot *spot, uint32_t attempt, uint32_t echo, uint8_t flags)
{
    ofi_call call = {.name = port->self, .nonce = port->card.nonce, .to_nonce = path->card.nonce, .attempt = attempt, .echo = echo,
                     .path = path->index, .sent = path->sent - ofi_bundle_frames(port, path), .received = path->received};
    if (!is_inserted(port, spot)) {
        spot->state = OFI_SPOT_FAILED;
        snprintf(spot->why, sizeof spot->why, "libfabric takes it for no address");
        return WEFT_AGAIN;
    }
    call.wire = (ofi_wire){.check = (uint16_t)path->card.nonce, .kind = OFI_CALL, .flags = flags, .ack = path->received};
    if (!spot->has_hint)
        spot->hint_bytes = ofi_hint(port, spot, spot->hint, sizeof spot->hint);
    spot->has_hint = true;
    call.hint_bytes = spot->hint_bytes;
    memcpy(call.hint, spot->hint, spot->hint_bytes);
    if (ofi_say(port, spot->to, &call, sizeof call))
        return WEFT_AGAIN;
    port->counts[OFI_COUNT_CALLS]++;
    return 0;
}

static void begin(ofi_port *port, ofi_path *path)
{
    for (uint32_t i = 0; i < path->spot_count; i++) {
        ofi_probe_end(&path->spots[i]);
        path->spots[i].attempt = 0;
        if (path->spots[i].state != OFI_SPOT_FAILED)
            path->spots[i].state = OFI_SPOT_NEW;
    }
    path->called_ns = 0;
    path->repeats = 0;
    path->began_ns = path->tried_ns = port->now_ns();
    chase(port, path);
}

void ofi_call_begin(ofi_port *port, ofi_path *path)
{
    if (path->state != OFI_IDLE)
        return;
    path->state = OFI_CALLING;
    begin(port, path);
}

void ofi_break(ofi_port *port, ofi_path *path, const char *why)
{
    if (path->state != OFI_OPEN || path->has_left)
        return;
    snprintf(path->broken_by, sizeof path->broken_by, "%s", why);
    port->counts[OFI_COUNT_BREAKS]++;
    path->state = OFI_BROKEN;
    begin(port, path);
}

/* Every address, and what became of it. */
static void lose_unreached(ofi_port *port, ofi_path *path)
{
    char text[400], where[64];
    size_t at;
    bool is_refused = false;
    at = (size_t)snprintf(text, sizeof text, "no answer by libfabric's %s%s%s", port->card.provider, *path->broken_by ? " after: " : "", path->broken_by);
    for (uint32_t i = 0; i < path->spot_count && at < sizeof text - 130; i++) {
        const ofi_spot *spot = &path->spots[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s: %.80s", i ? "; " : ": ", ofi_address_text(&spot->address, spot->bytes, where, sizeof where),
                               spot->why);
        is_refused |= strstr(spot->why, "refused") != NULL;
    }
    snprintf(text + at, sizeof text - at, "%s; WEFT_OFI_IFACE chooses interfaces", is_refused
             ? ". Nobody listens: its process is gone, or an address is another host's" : ". A firewall, or no route");
    ofi_lose(port, path, text);
}

/* The next address that has not failed, after this one; false: there is none. */
static bool next_spot(ofi_port *port, ofi_path *path)
{
    for (uint32_t i = 1; i <= path->spot_count; i++) {
        uint32_t k = (path->spot + i) % path->spot_count;
        if (path->spots[k].state == OFI_SPOT_FAILED)
            continue;
        path->spot = k;
        path->called_ns = 0;
        path->tried_ns = port->now_ns();
        return true;
    }
    return false;
}

/* What the kernel says of them, when nobody has answered for a while. */
static void probe(ofi_port *port, ofi_path *path, uint64_t now)
{
    for (uint32_t i = 0; i < path->spot_count; i++) {
        ofi_spot *spot = &path->spots[i];
        if (!can_probe(port)) {
            if (spot->state != OFI_SPOT_FAILED && now - path->began_ns > patience_ns()) {
                spot->state = OFI_SPOT_FAILED;
                snprintf(spot->why, sizeof spot->why, "no answer within %d s (WEFT_PEER_TIMEOUT_S)", weft_knob.peer_timeout_s);
            }
        } else if (spot->state == OFI_SPOT_NEW || (spot->state == OFI_SPOT_LISTENS && now - spot->probed_ns > patience_ns() / 4)) {
            ofi_probe_begin(spot, now);
        } else {
            ofi_probe_look(spot, now);
        }
    }
}

/* Of two that call each other. */
static bool is_senior(const ofi_port *port, const ofi_path *path) { return port->card.nonce > path->card.nonce; }

/* Two connections that cross are the end of both: libfabric's tcp keeps one of them by comparing addresses, and ours is bound to all of the
 * host. So the junior waits for a moment whether the senior calls, and says a lost call again much later. */
static bool gives_way(const ofi_port *port, const ofi_path *path, uint64_t now)
{
    return now - path->began_ns < GIVE_WAY_NS && !is_senior(port, path);
}

/* A call may go down with the connection that it was given to: it is said again, ever more rarely. */
static void repeat(const ofi_port *port, ofi_path *path, uint64_t now)
{
    uint64_t least = is_senior(port, path) ? SENIOR_REPEAT_NS : REPEAT_NS;
    if (path->called_ns && now - path->called_ns > least << path->repeats) {
        path->called_ns = 0;
        path->repeats += path->repeats < 5;
    }
}

static int pursue(ofi_port *port, ofi_path *path, uint64_t now)
{
    ofi_spot *spot = &path->spots[path->spot];
    repeat(port, path, now);
    if (!path->called_ns && spot->state != OFI_SPOT_FAILED && !gives_way(port, path, now)) {
        if (!spot->attempt)
            spot->attempt = ++path->attempt;
        if (say_call(port, path, spot, spot->attempt, 0, 0) == 0)
            path->called_ns = now;
    }
    if (now - path->began_ns > OFI_CALL_NS)
        probe(port, path, now);
    if (spot->state == OFI_SPOT_FAILED) {
        if (next_spot(port, path))
            return 1;
        lose_unreached(port, path);
        return 1;
    }
    if (spot->state == OFI_SPOT_LISTENS && now - path->tried_ns > ROTATE_NS && path->state == OFI_CALLING)
        next_spot(port, path);
    return 0;
}

/* -- being called -- */

static uint32_t spot_of_hint(ofi_path *path, const ofi_call *call)
{
    if (!call->hint_bytes || call->hint_bytes > sizeof call->hint)
        return path->is_heard ? path->spot : 0;
    for (uint32_t i = 0; i < path->spot_count; i++)
        if (path->spots[i].bytes == call->hint_bytes && memcmp(&path->spots[i].address, call->hint, call->hint_bytes) == 0)
            return i;
    if (path->spot_count >= path->card.count + 2u)
        return path->spot; /* room for two was made (host.c) */
    ofi_spot *spot = &path->spots[path->spot_count];
    *spot = (ofi_spot){.bytes = call->hint_bytes, .probe = -1};
    memcpy(&spot->address, call->hint, call->hint_bytes);
    return path->spot_count++;
}

/* 0: it went. */
static int answer(ofi_port *port, ofi_path *path)
{
    ofi_spot *spot = &path->spots[path->echo_spot];
    bool calls = path->state == OFI_CALLING || path->state == OFI_BROKEN;
    if (calls && !spot->attempt)
        spot->attempt = ++path->attempt;
    if (say_call(port, path, spot, calls ? spot->attempt : 0, path->owes_echo, 0))
        return WEFT_AGAIN;
    path->owes_echo = 0;
    if (calls && path->spot != path->echo_spot) {
        path->spot = path->echo_spot;
        path->tried_ns = port->now_ns();
    }
    if (calls)
        path->called_ns = port->now_ns();
    return 0;
}

/* To one whom we do not know, or not any more: `flags` says what he should know. He is not heard otherwise. */
static void answer_stranger(ofi_port *port, const ofi_call *call, uint8_t flags)
{
    ofi_call back = {.name = port->self, .nonce = port->card.nonce, .to_nonce = call->nonce, .echo = call->attempt};
    ofi_address address;
    fi_addr_t to;
    back.wire = (ofi_wire){.to = call->path, .check = (uint16_t)call->nonce, .kind = OFI_CALL, .flags = flags};
    if (!call->hint_bytes || call->hint_bytes > sizeof call->hint)
        return;
    memcpy(&address, call->hint, call->hint_bytes);
    if (fi_av_insert(port->av, &address, 1, &to, 0, NULL) == 1)
        ofi_say(port, to, &back, sizeof back); /* one that is refused for now is not tried again: the caller's other ways end its wait */
}

static void opened(ofi_port *port, ofi_path *path)
{
    path->state = OFI_OPEN;
    path->spots[path->spot].state = OFI_SPOT_LISTENS;
    *path->broken_by = 0;
    if (!path->owes_echo && !path->is_leaving)
        rest(path);
    ofi_moves_turn(port, path);
}

static void echoed(ofi_port *port, ofi_path *path, const ofi_call *call)
{
    if (path->is_leaving && call->echo == path->leave_attempt) {
        path->has_left = true;
        return;
    }
    for (uint32_t i = 0; i < path->spot_count; i++) {
        if (path->spots[i].attempt != call->echo)
            continue;
        if (path->state == OFI_CALLING) {
            path->spot = i;
            opened(port, path);
        } else if (path->state == OFI_BROKEN && call->received == path->sent - ofi_bundle_frames(port, path) &&
                   call->sent == path->received) {
            opened(port, path);
        } else if (path->state == OFI_BROKEN) {
            path->spots[i].attempt = 0; /* the next turn but some asks anew */
            path->tried_ns = port->now_ns();
        }
        return;
    }
}

static void misled(ofi_port *port, const ofi_call *call)
{
    ofi_path *path = call->wire.to < port->index_room ? port->by_index[call->wire.to] : NULL;
    for (uint32_t i = 0; path && i < path->spot_count; i++) {
        ofi_spot *spot = &path->spots[i];
        if (!spot->attempt || spot->attempt != call->echo)
            continue;
        ofi_probe_end(spot);
        spot->state = OFI_SPOT_FAILED;
        snprintf(spot->why, sizeof spot->why, "another process answers there");
    }
}

static ofi_path *known(ofi_port *port, const ofi_call *call)
{
    ofi_path *path = path_of(port, &call->name);
    if (!path && call->attempt && !(call->wire.flags & OFI_CALL_LEAVE) && port->port.up->greet(port->port.owner, &call->name))
        path = path_of(port, &call->name);
    return path && path->card.nonce == call->nonce ? path : NULL;
}

void ofi_call_arrive(ofi_port *port, const ofi_call *call)
{
    bool leaves = call->wire.flags & OFI_CALL_LEAVE;
    ofi_path *path;
    if (call->wire.flags & OFI_CALL_WRONG || call->to_nonce != port->card.nonce) {
        if (call->to_nonce == port->card.nonce)
            misled(port, call);
        else
            answer_stranger(port, call, OFI_CALL_WRONG);
        return;
    }
    path = known(port, call);
    if (!path) {
        if (call->attempt && leaves)
            answer_stranger(port, call, 0);
        return;
    }
    if (path->state == OFI_LOST)
        return;
    path->theirs = call->path ? call->path : path->theirs; /* one who has forgotten us answers a parting without */
    path->is_heard = true;
    path->heard_ns = 0;
    if (call->attempt) {
        path->owed_ns = port->now_ns();
        path->owes_echo = call->attempt;
        path->echo_spot = spot_of_hint(path, call);
        ofi_call_begin(port, path); /* the way back is made sure of at once */
        chase(port, path);
        answer(port, path);
    }
    if (call->echo)
        echoed(port, path, call);
    if (leaves && call->attempt)
        path->has_left = true;
    if (path->is_calling && path->state == OFI_OPEN && !path->owes_echo && !path->is_leaving)
        rest(path);
}

/* -- parting -- */

static void pursue_leave(ofi_port *port, ofi_path *path, uint64_t now)
{
    ofi_spot *spot = &path->spots[path->spot];
    if (path->has_left)
        return;
    repeat(port, path, now);
    if (!path->called_ns && say_call(port, path, spot, path->leave_attempt, 0, OFI_CALL_LEAVE) == 0)
        path->called_ns = now;
    if (now - path->began_ns > OFI_CALL_NS)
        probe(port, path, now);
    if (spot->state == OFI_SPOT_FAILED || now - path->began_ns > patience_ns())
        path->has_left = true; /* it has gone: who has said BYE may */
}

int ofi_leave(weft_port *base, weft_path *base_path)
{
    ofi_port *port = (ofi_port *)base;
    ofi_path *path = (ofi_path *)base_path;
    if (path->state != OFI_LOST && (path->slots_out || !weft_list_is_empty(&path->ops)))
        return WEFT_AGAIN;
    if (path->state == OFI_LOST || (path->has_left && !path->owes_echo) || (!path->is_heard && !path->sent)) {
        ofi_path_free(port, path);
        return 0;
    }
    if (!path->is_leaving) {
        path->is_leaving = true;
        path->leave_attempt = ++path->attempt;
        begin(port, path);
    }
    return WEFT_AGAIN;
}

/* -- turns -- */

/* A peer that is open, but silent for long or deaf: does its process live? */
static void watch(ofi_port *port, ofi_path *path, uint64_t now)
{
    ofi_spot *spot = &path->spots[path->spot];
    ofi_wire ping;
    if (!path->heard_ns) {
        path->heard_ns = now;
        ofi_probe_end(spot);
        return;
    }
    if (spot->state == OFI_SPOT_PROBED) {
        ofi_probe_look(spot, now);
        if (spot->state == OFI_SPOT_FAILED)
            ofi_break(port, path, "the peer was silent");
        return;
    }
    if (now - path->heard_ns < (path->wants_room ? SILENT_NS / 5 : SILENT_NS) || !can_probe(port))
        return;
    ofi_sign(port, path, &ping, OFI_PING);
    if (ofi_say(port, spot->to, &ping, sizeof ping))
        ofi_probe_begin(spot, now); /* what cannot be sent: is its connection gone? */
    path->heard_ns = now;
}

/* An answer that could not be sent. Who has parted may be gone meanwhile, with what it listened on: then nobody waits for it, and our own
 * parting shall not either. */
static void repay(ofi_port *port, ofi_path *path, uint64_t now)
{
    ofi_spot *spot = &path->spots[path->echo_spot];
    if (answer(port, path) == 0 || !path->has_left || now - path->owed_ns < OFI_CALL_NS)
        return;
    probe(port, path, now);
    if (spot->state == OFI_SPOT_FAILED || now - path->owed_ns > patience_ns())
        path->owes_echo = 0;
}

static int turn(ofi_port *port, ofi_path *path, uint64_t now)
{
    if (path->owes_echo)
        repay(port, path, now);
    if (path->is_leaving) {
        pursue_leave(port, path, now);
        return path->has_left;
    }
    if (path->state == OFI_CALLING || (path->state == OFI_BROKEN && path->spots[path->spot].attempt))
        return pursue(port, path, now);
    if (path->state == OFI_BROKEN && now - path->began_ns > MISSING_NS) {
        char text[256];
        snprintf(text, sizeof text, "its connection broke (%s), and frames that were under way did not arrive: is the network unsteady?", path->broken_by);
        ofi_lose(port, path, text);
        return 1;
    }
    if (path->state == OFI_BROKEN && now - path->tried_ns > ASK_AGAIN_NS) {
        path->called_ns = 0;
        return pursue(port, path, now);
    }
    if (path->state == OFI_OPEN && !path->owes_echo)
        rest(path);
    return 0;
}

int ofi_call_turn(ofi_port *port)
{
    uint64_t now = port->now_ns();
    int n = 0;
    if (now - port->turned_ns < OFI_TURN_NS)
        return 0;
    port->turned_ns = now;
    for (weft_link *link = port->calling.next; link != &port->calling && !n;) {
        ofi_path *path = weft_container(link, ofi_path, calling);
        link = link->next;
        n += turn(port, path, now); /* who was told something may have changed the list: no further */
    }
    if (now - port->looked_ns < 1000000000u)
        return n;
    port->looked_ns = now;
    for (weft_link *link = port->paths.next; link != &port->paths; link = link->next) {
        ofi_path *path = weft_container(link, ofi_path, link);
        if (path->state == OFI_OPEN && !path->has_left && !path->is_leaving)
            watch(port, path, now);
    }
    return n;
}

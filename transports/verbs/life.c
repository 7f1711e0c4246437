/* SPDX-License-Identifier: BSD-3-Clause
 *
 * life: how paths come and go: reach, leave, and the opening and closing of what conn keeps. Called by port.c and the table.
 * The invariant: a path is freed only when no work request of it is anywhere; who was left in peace is remembered, so that a
 * peer which missed our last word is told and need not wait for its timeout.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/cm.h"

/* -- open, close -- */

int verbs_conn_open(verbs_port *port)
{
    struct verbs_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return weft_fail(WEFT_E_NOMEM, "no memory for connections");
    port->conn = conn;
    conn->port = port;
    conn->next_ns = UINT64_MAX;
    conn->random = port->nonce * 2654435769u | 1;
    weft_list_init(&conn->busy);
    int rc = verbs_datagrams_open(port);
    if (rc == 0)
        rc = verbs_cm_open(port);
    conn->card = (verbs_card){.rails = port->rail_count};
    for (uint8_t i = 0; i < port->rail_count; i++)
        verbs_rail_address(&port->rails[i], &conn->card.address[i]);
    return rc;
}

void verbs_conn_close(verbs_port *port)
{
    struct verbs_conn *conn = port->conn;
    if (!conn)
        return;
    while (!weft_list_is_empty(&port->paths))
        verbs_conn_forget(weft_container(port->paths.next, verbs_path, by_port));
    verbs_cm_close(port);
    verbs_datagrams_close(port);
    free(conn->gone);
    free(port->by_name_map);
    free(conn);
    port->conn = NULL;
}

/* -- reach -- */

static int read_card(const weft_name *who, const void *card, size_t bytes, verbs_card *far)
{
    if (bytes < sizeof *far)
        return weft_fail(WEFT_E_UNSUPPORTED, "the card of rank %u is too short: is it of another version?", who->rank);
    memcpy(far, card, sizeof *far);
    if (far->version != 2 || far->rails == 0 || far->rails > VERBS_RAILS)
        return weft_fail(WEFT_E_UNSUPPORTED, "the card of rank %u cannot be read: is it of another version?", who->rank);
    return 0;
}

static void free_path(verbs_path *path)
{
    free(path->meet);
    free(path);
}

int verbs_reach(weft_port *base, const weft_name *who, const void *card, size_t bytes, void *peer, weft_path **out)
{
    verbs_port *port = (verbs_port *)base;
    verbs_path *path;
    verbs_card far;
    int rc = read_card(who, card, bytes, &far);
    if (rc)
        return rc;
    if (verbs_names_find(port, who))
        return weft_fail(WEFT_E_INTERN, "rank %u is reached twice", who->rank);
    if (far.frame_max_kib != base->caps.frame_max >> 10)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "rank %u takes frames of %u KiB over RDMA, we send %u KiB: the limits on locked memory (ulimit -l) differ, "
                         "make them the same",
                         who->rank, far.frame_max_kib, base->caps.frame_max >> 10);
    path = calloc(1, sizeof *path);
    if (!path || !(path->meet = calloc(1, sizeof *path->meet))) {
        free(path);
        return weft_fail(WEFT_E_NOMEM, "no memory for one more peer");
    }
    path->path = (weft_path){.port = base, .peer = peer};
    path->port = port;
    path->name = *who;
    path->far = far;
    path->meet->path = path;
    path->meet->life = verbs_conn_random(port->conn);
    verbs_pair(path, &port->conn->card);
    path->meet->by_cm = verbs_cm_is_for(path);
    rc = path->link_count ? verbs_names_add(port, path)
                          : weft_fail(WEFT_E_UNSUPPORTED,
                                      "no RDMA port here shares a kind of network with one of rank %u's (WEFT_DEVICES?)",
                                      who->rank);
    if (rc) {
        free_path(path);
        return rc;
    }
    weft_list_init(&path->meet->by_busy);
    verbs_flow_begin(path);
    weft_list_append(&port->paths, &path->by_port);
    *out = &path->path;
    return 0;
}

/* -- leave -- */

static void remember(const verbs_path *path)
{
    struct verbs_conn *conn = path->port->conn;
    verbs_gone *grown;
    if (!path->meet->far_life)
        return;
    if (conn->gone_count == conn->gone_room) {
        uint32_t room = conn->gone_room ? 2 * conn->gone_room : 16;
        grown = realloc(conn->gone, room * sizeof *grown);
        if (!grown)
            return;
        conn->gone = grown;
        conn->gone_room = room;
    }
    conn->gone[conn->gone_count++] = (verbs_gone){path->name, path->meet->life, path->meet->far_life};
}

void verbs_conn_forget(verbs_path *path)
{
    verbs_port *port = path->port;
    bool was_counted = path->state == VERBS_CONNECTING || path->state == VERBS_DRAINING;
    for (uint8_t i = 0; i < path->link_count; i++)
        if (path->links[i].qp)
            verbs_link_close(&path->links[i]);
    port->connecting -= was_counted;
    weft_list_remove(&path->meet->by_busy);
    weft_list_remove(&path->by_port);
    weft_list_remove(&path->by_move);
    verbs_names_remove(port, path);
    free_path(path);
}

/* One that was never connected, that rests, or that is lost, has nothing anywhere. */
static bool is_nothing_left(const verbs_path *path) { return path->state == VERBS_NEW || path->state == VERBS_LOST; }

int verbs_leave(weft_port *base, weft_path *of)
{
    verbs_path *path = (verbs_path *)of;
    verbs_meet *meet = path->meet;
    (void)base;
    path->has_bye = meet->is_leaving = true;
    if (is_nothing_left(path)) {
        if (path->state == VERBS_NEW ? meet->far_life != 0 : meet->is_over) /* again: a datagram may be lost, and costs a peer seconds */
            verbs_conn_farewell(path);
        if (path->state == VERBS_NEW || meet->is_over)
            remember(path);
        verbs_flow_give_up(path);
        verbs_conn_forget(path);
        return 0;
    }
    if (path->state == VERBS_UP && (meet->far_is_gone || (verbs_flow_is_quiet(path) && !path->ops_open)))
        verbs_conn_part(path);
    return WEFT_AGAIN;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ep: creation and removal of eps, and the hash proc_id -> ep (open addressing, grown on demand). Called through weft_iface_ops; the hash
 * by conn_msg.c for each connection message, never per frame.
 * Invariant: an ep is freed only when no work request names it. Peers of closed eps are remembered: one that missed GONE gets it again
 * and need not wait for its timeout.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/conn.h"

/* -- proc_id -> ep -- */

static uint32_t hash(const weft_proc_id *proc_id)
{
    uint64_t mixed = (proc_id->job ^ ((uint64_t)proc_id->worker << 32 | proc_id->rank)) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(mixed >> 32);
}

static bool is_same(const weft_proc_id *a, const weft_proc_id *b)
{
    return a->job == b->job && a->rank == b->rank && a->worker == b->worker;
}

verbs_ep *verbs_names_find(const verbs_iface *iface, const weft_proc_id *proc_id)
{
    for (uint32_t i = hash(proc_id); iface->name_room; i++) {
        verbs_ep *ep = iface->by_name_map[i & (iface->name_room - 1)];
        if (!ep || is_same(&ep->proc_id, proc_id))
            return ep;
    }
    return NULL;
}

static void place(verbs_iface *iface, verbs_ep *ep)
{
    uint32_t i = hash(&ep->proc_id);
    while (iface->by_name_map[i & (iface->name_room - 1)])
        i++;
    iface->by_name_map[i & (iface->name_room - 1)] = ep;
}

int verbs_names_add(verbs_iface *iface, verbs_ep *ep)
{
    if (2 * (iface->conn->path_count + 1) > iface->name_room) {
        uint32_t before = iface->name_room, room = before ? 2 * before : 16;
        verbs_ep **old = iface->by_name_map, **map = calloc(room, sizeof(verbs_ep *));
        if (!map)
            return weft_fail(WEFT_E_NOMEM, "no memory for one more peer");
        iface->by_name_map = map;
        iface->name_room = room;
        for (uint32_t i = 0; i < before; i++)
            if (old[i])
                place(iface, old[i]);
        free(old);
    }
    place(iface, ep);
    iface->conn->path_count++;
    return 0;
}

void verbs_names_remove(verbs_iface *iface, verbs_ep *ep)
{
    uint32_t mask = iface->name_room - 1, i = hash(&ep->proc_id);
    while (iface->by_name_map[i & mask] != ep)
        i++;
    iface->by_name_map[i & mask] = NULL;
    iface->conn->path_count--;
    for (i++; iface->by_name_map[i & mask]; i++) { /* entries behind the gap would not be found any more */
        verbs_ep *moved = iface->by_name_map[i & mask];
        iface->by_name_map[i & mask] = NULL;
        place(iface, moved);
    }
}

/* -- ep_open -- */

static int read_addr(const weft_proc_id *who, const void *addr, size_t bytes, verbs_iface_addr *far)
{
    if (bytes < sizeof *far)
        return weft_fail(WEFT_E_UNSUPPORTED, "the address of rank %u is too short: is it of another version?", who->rank);
    memcpy(far, addr, sizeof *far);
    if (far->version != 2 || far->rails == 0 || far->rails > VERBS_RAILS)
        return weft_fail(WEFT_E_UNSUPPORTED, "the address of rank %u cannot be read: is it of another version?", who->rank);
    return 0;
}

static void free_path(verbs_ep *ep)
{
    free(ep->meet);
    free(ep);
}

int verbs_ep_open(weft_iface *base, const weft_proc_id *who, const void *addr, size_t bytes, void *peer, weft_ep **out)
{
    verbs_iface *iface = (verbs_iface *)base;
    verbs_ep *ep;
    verbs_iface_addr far;
    int rc = read_addr(who, addr, bytes, &far);
    if (rc)
        return rc;
    if (verbs_names_find(iface, who))
        return weft_fail(WEFT_E_INTERN, "rank %u is reached twice", who->rank);
    if (far.frame_max_kib != base->caps.frame_max >> 10)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "rank %u takes frames of %u KiB over RDMA, we send %u KiB: the limits on locked memory (ulimit -l) differ, "
                         "make them the same",
                         who->rank, far.frame_max_kib, base->caps.frame_max >> 10);
    ep = calloc(1, sizeof *ep);
    if (!ep || !(ep->meet = calloc(1, sizeof *ep->meet))) {
        free(ep);
        return weft_fail(WEFT_E_NOMEM, "no memory for one more peer");
    }
    ep->ep = (weft_ep){.iface = base, .peer = peer};
    ep->iface = iface;
    ep->proc_id = *who;
    ep->far = far;
    ep->meet->ep = ep;
    ep->meet->incarnation = verbs_conn_random(iface->conn);
    verbs_rail_pair(ep, &iface->conn->addr);
    ep->meet->by_cm = verbs_rdmacm_is_for(ep);
    rc = ep->link_count ? verbs_names_add(iface, ep)
                          : weft_fail(WEFT_E_UNSUPPORTED,
                                      "no RDMA port here shares a kind of network with one of rank %u's (WEFT_DEVICES?)",
                                      who->rank);
    if (rc) {
        free_path(ep);
        return rc;
    }
    weft_list_init(&ep->meet->by_busy);
    verbs_flow_begin(ep);
    weft_list_append(&iface->paths, &ep->by_port);
    *out = &ep->ep;
    return 0;
}

/* -- ep_close -- */

static void remember(const verbs_ep *ep)
{
    struct verbs_conn *conn = ep->iface->conn;
    verbs_gone *grown;
    if (!ep->meet->remote_incarnation)
        return;
    if (conn->gone_count == conn->gone_room) {
        uint32_t room = conn->gone_room ? 2 * conn->gone_room : 16;
        grown = realloc(conn->gone, room * sizeof *grown);
        if (!grown)
            return;
        conn->gone = grown;
        conn->gone_room = room;
    }
    conn->gone[conn->gone_count++] = (verbs_gone){ep->proc_id, ep->meet->incarnation, ep->meet->remote_incarnation};
}

void verbs_conn_forget(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    bool was_counted = ep->state == VERBS_CONNECTING || ep->state == VERBS_DRAINING;
    for (uint8_t i = 0; i < ep->link_count; i++)
        if (ep->links[i].qp)
            verbs_rc_qp_close(&ep->links[i]);
    iface->connecting -= was_counted;
    weft_list_remove(&ep->meet->by_busy);
    weft_list_remove(&ep->by_port);
    weft_list_remove(&ep->by_move);
    verbs_names_remove(iface, ep);
    free_path(ep);
}

/* An ep that was never connected, is evicted or is lost has no work posted. */
static bool is_nothing_left(const verbs_ep *ep) { return ep->state == VERBS_NEW || ep->state == VERBS_LOST; }

int verbs_ep_close(weft_iface *base, weft_ep *of)
{
    verbs_ep *ep = (verbs_ep *)of;
    verbs_handshake *meet = ep->meet;
    (void)base;
    ep->has_bye = meet->is_leaving = true;
    if (is_nothing_left(ep)) {
        /* GONE is repeated: a datagram may be lost, which costs the peer seconds */
        if (ep->state == VERBS_NEW ? meet->remote_incarnation != 0 : meet->is_over)
            verbs_conn_farewell(ep);
        if (ep->state == VERBS_NEW || meet->is_over)
            remember(ep);
        verbs_flow_give_up(ep);
        verbs_conn_forget(ep);
        return 0;
    }
    if (ep->state == VERBS_UP && (meet->far_is_gone || (verbs_flow_is_quiet(ep) && !ep->ops_open)))
        verbs_conn_part(ep);
    return WEFT_AGAIN;
}

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

verbs_ep *verbs_ep_lookup(const verbs_iface *iface, const weft_proc_id *proc_id)
{
    for (uint32_t i = hash(proc_id); iface->ep_map_capacity; i++) {
        verbs_ep *ep = iface->ep_map[i & (iface->ep_map_capacity - 1)];
        if (!ep || is_same(&ep->proc_id, proc_id))
            return ep;
    }
    return NULL;
}

static void place(verbs_iface *iface, verbs_ep *ep)
{
    uint32_t i = hash(&ep->proc_id);
    while (iface->ep_map[i & (iface->ep_map_capacity - 1)])
        i++;
    iface->ep_map[i & (iface->ep_map_capacity - 1)] = ep;
}

int verbs_ep_map_add(verbs_iface *iface, verbs_ep *ep)
{
    if (2 * (iface->conn->ep_count + 1) > iface->ep_map_capacity) {
        uint32_t before = iface->ep_map_capacity, capacity = before ? 2 * before : 16;
        verbs_ep **old = iface->ep_map, **map = calloc(capacity, sizeof(verbs_ep *));
        if (!map)
            return weft_fail(WEFT_E_NOMEM, "no memory for another peer");
        iface->ep_map = map;
        iface->ep_map_capacity = capacity;
        for (uint32_t i = 0; i < before; i++)
            if (old[i])
                place(iface, old[i]);
        free(old);
    }
    place(iface, ep);
    iface->conn->ep_count++;
    return 0;
}

void verbs_ep_map_remove(verbs_iface *iface, verbs_ep *ep)
{
    uint32_t mask = iface->ep_map_capacity - 1, i = hash(&ep->proc_id);
    while (iface->ep_map[i & mask] != ep)
        i++;
    iface->ep_map[i & mask] = NULL;
    iface->conn->ep_count--;
    for (i++; iface->ep_map[i & mask]; i++) { /* entries behind the gap would not be found any more */
        verbs_ep *moved = iface->ep_map[i & mask];
        iface->ep_map[i & mask] = NULL;
        place(iface, moved);
    }
}

/* -- ep_open -- */

static int read_addr(const weft_proc_id *proc_id, const void *addr, size_t bytes, verbs_iface_addr *remote)
{
    if (bytes < sizeof *remote)
        return weft_fail(WEFT_E_UNSUPPORTED, "the address of rank %u is too short: does it run another version?", proc_id->rank);
    memcpy(remote, addr, sizeof *remote);
    if (remote->version != 2 || remote->rails == 0 || remote->rails > VERBS_RAILS)
        return weft_fail(WEFT_E_UNSUPPORTED, "the address of rank %u is invalid: does it run another version?", proc_id->rank);
    return 0;
}

static void free_ep(verbs_ep *ep)
{
    free(ep->hs);
    free(ep);
}

int verbs_ep_open(weft_iface *base, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **out)
{
    verbs_iface *iface = (verbs_iface *)base;
    verbs_ep *ep;
    verbs_iface_addr remote;
    int rc = read_addr(proc_id, addr, bytes, &remote);
    if (rc)
        return rc;
    if (verbs_ep_lookup(iface, proc_id))
        return weft_fail(WEFT_E_INTERN, "rank %u has an ep already", proc_id->rank);
    if (remote.frame_max_kib != base->caps.frame_max >> 10)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "rank %u accepts RDMA frames of %u KiB, this rank sends %u KiB: the limits on locked memory (ulimit -l) differ, "
                         "make them the same",
                         proc_id->rank, remote.frame_max_kib, base->caps.frame_max >> 10);
    ep = calloc(1, sizeof *ep);
    if (!ep || !(ep->hs = calloc(1, sizeof *ep->hs))) {
        free(ep);
        return weft_fail(WEFT_E_NOMEM, "no memory for another peer");
    }
    ep->ep = (weft_ep){.iface = base, .peer = peer};
    ep->iface = iface;
    ep->proc_id = *proc_id;
    ep->remote = remote;
    ep->hs->ep = ep;
    ep->hs->incarnation = verbs_conn_random(iface->conn);
    verbs_rail_pair(ep, &iface->conn->addr);
    ep->hs->by_cm = verbs_rdmacm_is_for(ep);
    rc = ep->qp_count ? verbs_ep_map_add(iface, ep)
                          : weft_fail(WEFT_E_UNSUPPORTED,
                                      "no RDMA port here shares a kind of network with one of rank %u (WEFT_DEVICES?)",
                                      proc_id->rank);
    if (rc) {
        free_ep(ep);
        return rc;
    }
    weft_list_init(&ep->hs->by_busy);
    verbs_flow_begin(ep);
    weft_list_append(&iface->eps, &ep->by_iface);
    *out = &ep->ep;
    return 0;
}

/* -- ep_close -- */

static void record_closed(const verbs_ep *ep)
{
    struct verbs_conn *conn = ep->iface->conn;
    verbs_gone *grown;
    if (!ep->hs->remote_incarnation)
        return;
    if (conn->gone_count == conn->gone_capacity) {
        uint32_t capacity = conn->gone_capacity ? 2 * conn->gone_capacity : 16;
        grown = realloc(conn->gone, capacity * sizeof *grown);
        if (!grown)
            return;
        conn->gone = grown;
        conn->gone_capacity = capacity;
    }
    conn->gone[conn->gone_count++] = (verbs_gone){ep->proc_id, ep->hs->incarnation, ep->hs->remote_incarnation};
}

void verbs_ep_free(verbs_ep *ep)
{
    verbs_iface *iface = ep->iface;
    bool was_counted = ep->state == VERBS_CONNECTING || ep->state == VERBS_DRAINING;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        if (ep->qps[i].ibv_qp)
            verbs_rc_qp_close(&ep->qps[i]);
    iface->connecting -= was_counted;
    verbs_evict_has_qps(ep);
    weft_list_remove(&ep->hs->by_busy);
    weft_list_remove(&ep->by_iface);
    weft_list_remove(&ep->by_rma);
    verbs_ep_map_remove(iface, ep);
    free_ep(ep);
}

/* An ep that was never connected, is evicted or is lost has no work posted. */
static bool has_no_work(const verbs_ep *ep) { return ep->state == VERBS_NEW || ep->state == VERBS_FAILED; }

int verbs_ep_close(weft_iface *base, weft_ep *of)
{
    verbs_ep *ep = (verbs_ep *)of;
    verbs_handshake *hs = ep->hs;
    (void)base;
    ep->has_bye = hs->is_closing = true;
    if (has_no_work(ep)) {
        /* GONE is repeated: a datagram may be lost, which costs the peer seconds */
        if (ep->state == VERBS_NEW ? hs->remote_incarnation != 0 : hs->is_closed)
            verbs_conn_send_gone(ep);
        if (ep->state == VERBS_NEW || hs->is_closed)
            record_closed(ep);
        verbs_flow_give_up(ep);
        verbs_ep_free(ep);
        return 0;
    }
    if (ep->state == VERBS_UP && (hs->remote_is_gone || (verbs_flow_is_quiet(ep) && !ep->ops_open)))
        verbs_ep_begin_close(ep);
    return WEFT_AGAIN;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * names: hash of proc_id -> ep with open addressing, grown on demand, with removal. Called by conn_msg.c for each connection message, by
 * life.c for each new or removed ep; never per frame.
 */
#include <stdlib.h>

#include "base/status.h"
#include "transports/verbs/conn.h"

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

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * names: paths by the names of their peers: a hash of open addresses, grown on demand, from which paths can be taken out.
 * Called by conn.c for each note that comes and each path that comes or goes; never on the way of a message.
 */
#include <stdlib.h>

#include "base/status.h"
#include "transports/verbs/conn.h"

static uint32_t hash(const weft_name *name)
{
    uint64_t mixed = (name->job ^ ((uint64_t)name->lane << 32 | name->rank)) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(mixed >> 32);
}

static bool is_same(const weft_name *a, const weft_name *b)
{
    return a->job == b->job && a->rank == b->rank && a->lane == b->lane;
}

verbs_path *verbs_names_find(const verbs_port *port, const weft_name *name)
{
    for (uint32_t i = hash(name); port->name_room; i++) {
        verbs_path *path = port->by_name_map[i & (port->name_room - 1)];
        if (!path || is_same(&path->name, name))
            return path;
    }
    return NULL;
}

static void place(verbs_port *port, verbs_path *path)
{
    uint32_t i = hash(&path->name);
    while (port->by_name_map[i & (port->name_room - 1)])
        i++;
    port->by_name_map[i & (port->name_room - 1)] = path;
}

int verbs_names_add(verbs_port *port, verbs_path *path)
{
    if (2 * (port->conn->path_count + 1) > port->name_room) {
        uint32_t before = port->name_room, room = before ? 2 * before : 16;
        verbs_path **old = port->by_name_map, **map = calloc(room, sizeof(verbs_path *));
        if (!map)
            return weft_fail(WEFT_E_NOMEM, "no memory for one more peer");
        port->by_name_map = map;
        port->name_room = room;
        for (uint32_t i = 0; i < before; i++)
            if (old[i])
                place(port, old[i]);
        free(old);
    }
    place(port, path);
    port->conn->path_count++;
    return 0;
}

void verbs_names_remove(verbs_port *port, verbs_path *path)
{
    uint32_t mask = port->name_room - 1, i = hash(&path->name);
    while (port->by_name_map[i & mask] != path)
        i++;
    port->by_name_map[i & mask] = NULL;
    port->conn->path_count--;
    for (i++; port->by_name_map[i & mask]; i++) { /* what stood behind the gap would not be found any more */
        verbs_path *moved = port->by_name_map[i & mask];
        port->by_name_map[i & mask] = NULL;
        place(port, moved);
    }
}

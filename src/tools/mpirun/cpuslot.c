/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpuslot: see cpuslot.h. The head checks the syntax only; each host resolves the cores.
 */
#include "tools/mpirun/cpuslot.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#define ALL UINT_MAX

/* Cores `from` to `to` of a socket, or of all sockets (ALL). "*" is 0 to ALL. */
typedef struct item {
    unsigned socket, from, to;
} item;

static bool number_read(const char **at, unsigned *value)
{
    if (!isdigit((unsigned char)**at))
        return false;
    for (*value = 0; isdigit((unsigned char)**at); ++*at) {
        if (*value > 99999)
            return false;
        *value = *value * 10 + (unsigned)(**at - '0');
    }
    return true;
}

/* Reads the next item; a socket applies until the next socket. */
static bool item_read(const char **at, item *one)
{
    one->from = 0;
    one->to = ALL;
    if (**at == '*')
        return ++*at;
    if (!number_read(at, &one->from))
        return false;
    if (**at == ':') {
        one->socket = one->from;
        one->from = 0;
        ++*at;
        if (**at == '*')
            return ++*at;
        if (!number_read(at, &one->from))
            return false;
    }
    one->to = one->from;
    if (**at != '-')
        return true;
    ++*at;
    return number_read(at, &one->to) && one->to >= one->from;
}

bool cpuslot_is_sound(const char *text)
{
    item one = {.socket = ALL};

    while (item_read(&text, &one))
        if (!*text)
            return true;
        else if (*text++ != ',')
            return false;
    return false;
}

static int item_fill(hwloc_topology_t topology, const item *one, hwloc_bitmap_t set, char *why, size_t capacity)
{
    hwloc_const_bitmap_t within = hwloc_topology_get_topology_cpuset(topology);
    hwloc_obj_type_t type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;

    if (one->socket != ALL) {
        hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, one->socket);
        if (!package) {
            snprintf(why, capacity, "there is no socket %u (of %d)", one->socket, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
            return -1;
        }
        within = package->cpuset;
    }
    int count = hwloc_get_nbobjs_inside_cpuset_by_type(topology, within, type);
    if (one->to == ALL) {
        hwloc_bitmap_or(set, set, within);
        return 0;
    }
    for (unsigned i = one->from; i <= one->to; i++) {
        hwloc_obj_t core = hwloc_get_obj_inside_cpuset_by_type(topology, within, type, i);
        if (!core) {
            snprintf(why, capacity, "there is no core %u (of %d %s)", i, count, one->socket == ALL ? "on this host" : "in that socket");
            return -1;
        }
        hwloc_bitmap_or(set, set, core->cpuset);
    }
    return 0;
}

int cpuslot_fill(hwloc_topology_t topology, const char *text, hwloc_bitmap_t set, char *why, size_t capacity)
{
    item one = {.socket = ALL};

    for (;; text++) {
        if (!item_read(&text, &one) || (*text && *text != ',')) {
            snprintf(why, capacity, "invalid syntax");
            return -1;
        }
        if (item_fill(topology, &one, set, why, capacity))
            return -1;
        if (!*text)
            return 0;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bind: see bind.h. Distributes the CPUs that hwloc reports as allowed.
 * The topology is loaded in this process only, without I/O devices, and not at all if no rank is bound.
 */
#include "tools/mpirun/bind.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu_count.h"
#include "tools/mpirun/cpuslot.h"
#include "tools/mpirun/report.h"

/* The units (cores, sockets, ...) that ranks are bound to, in the order of assignment. */
typedef struct unit_list {
    hwloc_obj_t *units;
    uint32_t count;
} unit_list;

static hwloc_obj_type_t unit_type(enum bind_unit unit)
{
    return unit == BIND_HWTHREAD ? HWLOC_OBJ_PU : unit == BIND_CORE ? HWLOC_OBJ_CORE :
           unit == BIND_NUMA ? HWLOC_OBJ_NUMANODE : HWLOC_OBJ_PACKAGE;
}

static int topology_load(hwloc_topology_t *topology)
{
    if (hwloc_topology_init(topology))
        return -1;
    hwloc_topology_set_all_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(*topology)) {
        hwloc_topology_destroy(*topology);
        return -1;
    }
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc(); /* honour the affinity mask (taskset) like the cgroup */
    if (allowed && hwloc_get_cpubind(*topology, allowed, HWLOC_CPUBIND_PROCESS) == 0)
        hwloc_topology_restrict(*topology, allowed, 0);
    hwloc_bitmap_free(allowed);
    return 0;
}

/* Lists all units of a type, or the hardware threads if there are none (some virtual machines report no cores). */
static int units_list(hwloc_topology_t topology, hwloc_obj_type_t type, unit_list *list)
{
    int count = hwloc_get_nbobjs_by_type(topology, type);

    if (count <= 0) {
        type = HWLOC_OBJ_PU;
        count = hwloc_get_nbobjs_by_type(topology, type);
    }
    list->units = calloc((size_t)(count > 0 ? count : 1), sizeof(*list->units));
    if (!list->units || count <= 0)
        return -1;
    for (int i = 0; i < count; i++)
        list->units[i] = hwloc_get_obj_by_type(topology, type, (unsigned)i);
    list->count = (uint32_t)count;
    return 0;
}

/* Orders units round-robin over the `over` objects, `run` units at a time. */
static int units_interleave(hwloc_topology_t topology, enum bind_unit over, uint32_t run, unit_list *list)
{
    unit_list groups = {0};
    hwloc_obj_t *order = calloc(list->count, sizeof(*order));
    uint32_t done = 0;

    if (!order || units_list(topology, unit_type(over), &groups)) {
        free(order);
        free(groups.units);
        return -1;
    }
    for (uint32_t turn = 0; done < list->count && turn < list->count; turn++)
        for (uint32_t g = 0; g < groups.count; g++) {
            uint32_t seen = 0;
            for (uint32_t u = 0; u < list->count; u++)
                if (hwloc_bitmap_intersects(list->units[u]->cpuset, groups.units[g]->cpuset) && seen++ / run == turn && done < list->count)
                    order[done++] = list->units[u];
        }
    free(groups.units);
    free(list->units);
    list->units = order;
    list->count = done;
    return 0;
}

static char *binding_text(hwloc_topology_t topology, hwloc_const_bitmap_t set)
{
    char cpus[256], *text = NULL;
    char cores[256] = "";
    size_t used = 0;
    hwloc_obj_t core = NULL;

    hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), set);
    while ((core = hwloc_get_next_obj_covering_cpuset_by_type(topology, set, HWLOC_OBJ_CORE, core)) && used < sizeof(cores) - 16)
        used += (size_t)snprintf(cores + used, sizeof(cores) - used, "%s%u", used ? "," : "", core->logical_index);
    if (asprintf(&text, "bound to CPUs %s%s%s", cpus, used ? " (cores " : "", used ? cores : "") < 0)
        return NULL;
    if (used) {
        char *closed = NULL;
        if (asprintf(&closed, "%s)", text) < 0)
            closed = NULL;
        free(text);
        text = closed;
    }
    return text;
}

/* Sets the units of rank r of n among u. per_rank: that many each, consecutively, wrapping around. Else is_share and n <= u: [r*u/n,
 * (r+1)*u/n). Else one unit, round-robin. */
static void share_fill(const unit_list *list, uint32_t rank, uint32_t ranks, uint32_t per_rank, bool is_share, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    for (uint32_t i = 0; i < per_rank && i < list->count; i++)
        hwloc_bitmap_or(set, set, list->units[((uint64_t)rank * per_rank + i) % list->count]->cpuset);
    if (per_rank)
        return;
    if (is_share && ranks <= list->count) {
        uint32_t to = (uint32_t)((uint64_t)(rank + 1) * list->count / ranks);
        for (uint32_t u = (uint32_t)((uint64_t)rank * list->count / ranks); u < to; u++)
            hwloc_bitmap_or(set, set, list->units[u]->cpuset);
        return;
    }
    hwloc_bitmap_or(set, set, list->units[rank % list->count]->cpuset);
}

/* Sets the CPUs that a rankfile gives the rank. 0; 1: it gives none; -1 after a message. */
static int slot_fill(hwloc_topology_t topology, const options *opts, uint32_t rank, hwloc_bitmap_t set)
{
    char why[120];

    if (!opts->slots || !opts->slots[rank])
        return 1;
    hwloc_bitmap_zero(set);
    if (!cpuslot_fill(topology, opts->slots[rank], set, why, sizeof(why)))
        return 0;
    report(2, "rank %u: slot=%s: %s", rank, opts->slots[rank], why);
    return -1;
}

static int masks_make(hwloc_topology_t topology, const unit_list *list, const options *opts, const uint32_t *ranks, binding *self)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc(), all = hwloc_bitmap_alloc();
    int rc = set && all ? 0 : -1;

    self->mask_bytes = CPU_ALLOC_SIZE((size_t)hwloc_bitmap_last(hwloc_topology_get_topology_cpuset(topology)) + 1);
    if (self->mask_bytes < sizeof(cpu_set_t))
        self->mask_bytes = sizeof(cpu_set_t);
    self->masks = calloc(opts->ranks, sizeof(*self->masks));
    self->texts = calloc(opts->ranks, sizeof(*self->texts));
    self->count = opts->ranks;
    self->is_disjoint = true;
    if (!self->masks || !self->texts)
        rc = -1;
    for (uint32_t r = 0; r < opts->ranks && !rc; r++) {
        int given = slot_fill(topology, opts, ranks[r], set);
        if (given < 0)
            rc = 2;
        else if (given && list->count)
            share_fill(list, r, opts->ranks, opts->per_rank, opts->bind == BIND_AUTO, set);
        else if (given)
            hwloc_bitmap_copy(set, hwloc_topology_get_topology_cpuset(topology));
        if (rc)
            break;
        if (hwloc_bitmap_intersects(all, set))
            self->is_disjoint = false;
        hwloc_bitmap_or(all, all, set);
        self->masks[r] = calloc(1, self->mask_bytes);
        if (!self->masks[r] || hwloc_cpuset_to_glibc_sched_affinity(topology, set, self->masks[r], self->mask_bytes))
            rc = -1;
        else if (opts->is_bind_reported)
            self->texts[r] = binding_text(topology, set);
    }
    hwloc_bitmap_free(set);
    hwloc_bitmap_free(all);
    return rc;
}

static bool has_slots(const options *opts, uint32_t count, const uint32_t *ranks)
{
    for (uint32_t i = 0; opts->slots && i < count; i++)
        if (opts->slots[ranks[i]])
            return true;
    return false;
}

static bool no_rank_is_bound(const options *opts)
{
    if (opts->bind == BIND_AUTO && opts->map != BIND_AUTO)
        return false; /* --map-by core binds to cores */
    if (opts->bind == BIND_NONE)
        return true;
    if (opts->per_rank)
        return false;
    return opts->bind == BIND_AUTO && (opts->ranks == 1 || opts->ranks > (uint32_t)weft_cpu_count());
}

int bind_make(const options *opts, uint32_t count, const uint32_t *ranks, binding *self)
{
    hwloc_topology_t topology;
    unit_list list = {0};
    options chosen = *opts;
    int rc;

    *self = (binding){0};
    chosen.ranks = count;
    bool is_by_file = has_slots(opts, count, ranks), is_free = no_rank_is_bound(&chosen);
    if (is_free && !is_by_file)
        return 0;
    if (topology_load(&topology))
        return report(1, "hwloc cannot determine the CPUs: use --bind-to none");
    if (chosen.per_rank && chosen.bind != BIND_HWTHREAD) /* --map-by socket:PE=2: two cores of a socket */
        chosen.bind = chosen.bind == BIND_AUTO && chosen.map == BIND_HWTHREAD ? BIND_HWTHREAD : BIND_CORE;
    else if (chosen.bind == BIND_AUTO && chosen.map != BIND_AUTO)
        chosen.bind = chosen.map;
    hwloc_obj_type_t type = chosen.bind == BIND_AUTO ? HWLOC_OBJ_CORE : unit_type(chosen.bind);
    if (chosen.bind == BIND_AUTO && count > (uint32_t)hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE))
        type = HWLOC_OBJ_PU;
    rc = is_free ? 0 : units_list(topology, type, &list); /* free: ranks without a slot get all CPUs */
    if (!rc && !is_free && (chosen.map == BIND_SOCKET || chosen.map == BIND_NUMA) && chosen.bind != chosen.map)
        rc = units_interleave(topology, chosen.map, chosen.per_rank ? chosen.per_rank : 1, &list);
    if (!rc)
        rc = masks_make(topology, &list, &chosen, ranks, self);
    free(list.units);
    hwloc_topology_destroy(topology);
    return rc < 0 ? report(1, "out of memory for the binding of %u ranks", count) : rc;
}

void bind_report(const binding *self, uint32_t index, uint32_t rank, const char *host)
{
    report(0, "rank %u on host %s is %s", rank, host, self->masks && self->texts[index] ? self->texts[index] : "not bound");
}

void bind_free(binding *self)
{
    for (uint32_t r = 0; r < self->count; r++) {
        if (self->masks)
            free(self->masks[r]);
        if (self->texts)
            free(self->texts[r]);
    }
    free(self->masks);
    free(self->texts);
    *self = (binding){0};
}

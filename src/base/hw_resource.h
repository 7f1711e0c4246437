/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hw_resource: kinds of hardware (core, cache, NUMA node, ...) and whether this process is restricted to one instance of each, by its
 * affinity mask and /sys. Used by MPI_Get_hw_resource_info and where communicators are split by hardware. Reads files; any thread.
 * hwloc is not used: it would read the whole machine.
 */
#ifndef WEFT_BASE_HW_RESOURCE_H
#define WEFT_BASE_HW_RESOURCE_H

#include <sched.h>
#include <stdbool.h>

#define WEFT_HW_RESOURCES_MAX 10

typedef struct weft_hw_resource {
    const char *type; /* "hwloc://Core": hwloc's names of kinds */
    int instance;     /* lowest CPU number of the one instance that this process may use; equal on processes of one node that share it.
                         -1: the process may use several */
} weft_hw_resource;

/* The kinds that the machine has, larger ones first ("hwloc://Machine" always); returns their number. */
int weft_hw_resources(weft_hw_resource found[WEFT_HW_RESOURCES_MAX]);
/* The same below another root directory and for another mask, for tests. */
int weft_hw_resources_under(const char *root, const cpu_set_t *mask, weft_hw_resource found[WEFT_HW_RESOURCES_MAX]);
/* This process's instance of a kind, by its name without regard to case; -1: several. False: the machine has no such kind. */
bool weft_hw_resource_find(const char *type, int *instance);

#endif

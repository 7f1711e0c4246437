/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpuslot: the CPUs that a rankfile's slot=... names, as Open MPI's users write them: "0-3" are cores, "1:0-2" those of a socket,
 * "0:0,1" two of socket 0, "1:*" all of socket 1, "*" all. Numbers count what mpirun may use on that host.
 */
#ifndef WEFT_MPIRUN_CPUSLOT_H
#define WEFT_MPIRUN_CPUSLOT_H

#include <hwloc.h>
#include <stdbool.h>

/* Is it written so? */
bool cpuslot_is_sound(const char *text);
/* Adds them to `set`. 0, or -1: this machine has not all of them; `why` says which. */
int cpuslot_fill(hwloc_topology_t topology, const char *text, hwloc_bitmap_t set, char *why, size_t room);

#endif

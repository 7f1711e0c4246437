/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpuslot: parses the CPUs of a rankfile's slot=..., in Open MPI's syntax.
 * "0-3": cores; "1:0-2": cores of socket 1; "0:0,1": two cores of socket 0; "1:*": all of socket 1; "*": all. Numbers count the CPUs that
 * mpirun may use on that host.
 */
#ifndef WEFT_MPIRUN_CPUSLOT_H
#define WEFT_MPIRUN_CPUSLOT_H

#include <hwloc.h>
#include <stdbool.h>

/* True if the syntax is valid. */
bool cpuslot_is_sound(const char *text);
/* Adds the CPUs to `set`. 0, or -1: this machine lacks one of them; `why` names it. */
int cpuslot_fill(hwloc_topology_t topology, const char *text, hwloc_bitmap_t set, char *why, size_t capacity);

#endif

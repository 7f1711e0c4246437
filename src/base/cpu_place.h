/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_place: places a thread on one of the CPUs that it may use, without binding it there. Called by core where ranks share CPUs: ranks that
 * poll and yield never sleep, so the kernel has no occasion to place them anew. A start with six ranks on one CPU and two on the other
 * lasts for a second, in which each collective takes twice as long.
 */
#ifndef WEFT_BASE_CPU_PLACE_H
#define WEFT_BASE_CPU_PLACE_H

#include <stdint.h>

/* CPU number index % n of the n CPUs in the calling thread's affinity mask; -1: there is only one, or the mask cannot be read. */
int weft_cpu_place_of(uint32_t index);
/* Moves the calling thread to the CPU, and sets its mask again. No effect if it is there, if it may not use that CPU (any
 * more), or where the kernel refuses. */
void weft_cpu_place_at(int cpu);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_count: number of CPUs that this process may use, by affinity, cpuset and the cgroup's CPU quota. Reads files and makes system calls;
 * does not use hwloc, which would add milliseconds to a rank's start. Called at start by core and the launcher. Any thread.
 */
#ifndef WEFT_BASE_CPU_COUNT_H
#define WEFT_BASE_CPU_COUNT_H

/* CPUs in this process's affinity mask, at least 1. */
int weft_cpu_count_affinity(void);
/* Smallest CPU quota of this process's cgroups up to the root (v2, or v1's cfs quota), in CPUs, rounded up; 0: unlimited. */
int weft_cpu_count_quota(void);
/* The same, read below another root directory; for tests. */
int weft_cpu_count_quota_under(const char *root);
/* The smaller of affinity and quota, at least 1. */
int weft_cpu_count(void);

#endif

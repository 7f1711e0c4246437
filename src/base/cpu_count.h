/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_count: which CPUs this process may really use: its affinity, its cpuset and its cgroup's cpu.max together.
 * Reads files and system calls only; hwloc is the launcher's (it costs milliseconds that a rank must not pay).
 */
#ifndef WEFT_BASE_CPU_COUNT_H
#define WEFT_BASE_CPU_COUNT_H

/* CPUs this process may run on by affinity, at least 1. */
int weft_cpu_count_affinity(void);
/* CPUs' worth of time that the cgroups (v2, or v1's cfs quota) from ours up to the root allow, rounded up; 0 when unlimited. */
int weft_cpu_count_quota(void);
/* The same, read below another root directory: for tests. */
int weft_cpu_count_quota_under(const char *root);
/* The smaller of both: what the node can run of us at one time. At least 1. */
int weft_cpu_count(void);

#endif

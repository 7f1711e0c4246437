/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_share: whether programs other than the node's ranks take a part of its CPUs: the CPU time of the ranks' processes, beside that of
 * all programs on the same CPUs in /proc/stat. Called by core/wait where ranks share CPUs; requires the worker's lock.
 */
#ifndef WEFT_CORE_CPU_SHARE_H
#define WEFT_CORE_CPU_SHARE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch/boot.h"
#include "mem/rank_page.h"

typedef struct weft_cpu_share {
    uint64_t least_ns; /* between two readings; 0: none is made */
    uint64_t at_ns, busy_ns, ranks_ns; /* time of the latest reading, 0: none; CPU time used by all programs on `cpus`, 0: it cannot be read,
                                        * and by the node's ranks, WEFT_CPU_SHARE_UNKNOWN: it cannot be read */
    cpu_set_t cpus;    /* those that the ranks may use */
} weft_cpu_share;

#define WEFT_CPU_SHARE_UNKNOWN UINT64_MAX

/* Tells the other ranks in which pid namespace page->pid is valid. Never looks without shared memory, or with a CPU quota (the machine's CPUs
 * may be idle all the same). */
void weft_cpu_share_open(weft_cpu_share *share, const weft_boot *boot, weft_rank_page *page);
/* Whether the ranks were alone since the call before. The first call says that they are, so that short jobs do not begin slowly. False: not
 * now, or a rank has ended, or was bound to other CPUs, meanwhile. If a rank's time cannot be read (another pid namespace, no /proc/stat)
 * they are not alone. */
bool weft_cpu_share_look(weft_cpu_share *share, const weft_boot *boot, uint64_t now_ns, bool *is_alone);

/* -- parts, for tests -- */

/* The kernel counts in 10 ms, with a rounding error for each CPU; a reading costs three system calls for each rank. */
uint64_t weft_cpu_share_least_ns(uint64_t cpus, uint64_t ranks);
/* The result of weft_cpu_share_look for two readings. */
bool weft_cpu_share_judge(const weft_cpu_share *from, const weft_cpu_share *to, bool *is_alone);
/* Between two readings: did others than the ranks use less than a third of one CPU? */
bool weft_cpu_share_is_alone(const weft_cpu_share *from, const weft_cpu_share *to);
/* CPU time of these CPUs (NULL: all) by the text of /proc/stat; ticks: per second. 0: not understood, or one of them is not there. */
uint64_t weft_cpu_share_parse(const char *text, const cpu_set_t *cpus, uint64_t ticks);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_share: whether programs other than the node's ranks take a part of its CPUs: the CPU time of the ranks' processes, beside that of
 * all programs in /proc/stat. Called by core/wait where ranks share CPUs; requires the worker's lock.
 */
#ifndef WEFT_CORE_CPU_SHARE_H
#define WEFT_CORE_CPU_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "launch/boot.h"
#include "mem/rank_page.h"

typedef struct weft_cpu_share { /* all zero: nothing is known */
    uint64_t at_ns, busy_ns, ranks_ns; /* time of the latest reading, 0: none; CPU time used by all programs, and by the node's ranks */
} weft_cpu_share;

/* Tells the others in which pid namespace page->pid is valid. */
void weft_cpu_share_show(weft_rank_page *page);
/* At most every 100 ms, or 50 ms for each CPU if that is longer: whether the ranks were alone since the call before; the first call says
 * that they are, so that short jobs do not begin slowly. False: not now, or it cannot be told: no shared memory, no /proc/stat, ranks in
 * several pid namespaces, or a process that may use some CPUs only. */
bool weft_cpu_share_look(weft_cpu_share *share, const weft_boot *boot, uint64_t now_ns, bool *is_alone);

/* Between two readings: did others than the ranks use less than a third of one CPU? */
bool weft_cpu_share_is_alone(const weft_cpu_share *from, const weft_cpu_share *to);
/* CPU time of all CPUs, from the first line of /proc/stat; ticks: per second. 0: not understood. */
uint64_t weft_cpu_share_parse(const char *line, uint64_t ticks);

#endif

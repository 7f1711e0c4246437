/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_internal: constructors of weft_boot, one file for each source; boot.c selects among them. Also helpers shared by these files.
 */
#ifndef WEFT_LAUNCH_BOOT_INTERNAL_H
#define WEFT_LAUNCH_BOOT_INTERNAL_H

#include "launch/boot.h"
#include "launch/boot_env.h"

/* WEFT_OK: this process is a rank of Weft's mpirun. WEFT_AGAIN: it is not (a rank's child). Else an error with its text. */
int weft_boot_by_mpirun(const weft_boot_env *env, weft_boot **boot);
/* By the PMIx server named in the environment. */
int weft_boot_by_pmix(weft_boot **boot);
/* By the PMI server named in the environment (launch/pmi). */
int weft_boot_by_pmi(weft_boot **boot);
/* Without a launcher: a job of one. */
int weft_boot_singleton(weft_boot **boot);

/* Opens the job's segment for a process that is, was or will be this rank but has no boot now. WEFT_AGAIN: it is not this rank, or the
 * job has ended. */
int weft_boot_segment_reopen(const weft_boot_env *env, weft_segment *segment);
/* Prints the fatal text unless another rank of the segment has; returns when it is printed (may block). The caller must then exit. */
void weft_abort_text_print(const weft_segment *segment, uint32_t local, const char *text);
/* Called by the launcher, which reports a rank's end itself: from now on no rank starts to print. */
void weft_abort_text_suppress(const weft_segment *segment);

/* True if the environment shows that this process is one of several tasks of a step. text: what was seen, cut at `capacity`. *instead: how
 * that launcher starts MPI programs; NULL: unknown. */
bool weft_task_env_find(char *text, size_t capacity, const char **instead);

/* Abort of a rank that has parted from a foreign launcher: those of this node that wait for it see it as dead, and end the job. */
void weft_boot_abort_parted(weft_boot *boot, int exit_code) __attribute__((noreturn));
/* For boots of foreign launchers: marks this rank as started in its segment, if any, and sets boot->oversubscribed. */
void weft_boot_begin(weft_boot *boot);
/* Writes the host's name; never empty. */
void weft_boot_host(char *host, size_t capacity);
/* True if `local` ranks are more than the CPUs they may use. is_bound: ranks have their own CPUs; only the cgroup's quota counts. */
bool weft_boot_is_oversubscribed(uint32_t local, bool is_bound);

#endif

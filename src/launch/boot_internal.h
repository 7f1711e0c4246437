/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_internal: the ways to an answer of "who am I", one room each; boot.c alone chooses among them.
 */
#ifndef WEFT_LAUNCH_BOOT_INTERNAL_H
#define WEFT_LAUNCH_BOOT_INTERNAL_H

#include "launch/boot.h"
#include "launch/boot_env.h"

/* WEFT_OK: we are a rank of our mpirun. WEFT_AGAIN: the word is not for us (a rank's child). Else an error with its text. */
int weft_boot_by_mpirun(const weft_boot_env *word, weft_boot **boot);
/* Asks the PMIx server that the environment names. `who` tells for texts what was seen there. */
int weft_boot_by_pmix(weft_boot **boot);
/* Asks the PMI server that the environment names (launch/pmi). */
int weft_boot_by_pmi(weft_boot **boot);
/* Nobody started us: a world of one. */
int weft_boot_alone(weft_boot **boot);

/* Opens our job's segment once more, for a process that has no boot, yet or any more, but is this rank or will be. WEFT_AGAIN: it
 * is not, or the job is gone. */
int weft_boot_segment_again(const weft_boot_env *word, weft_segment *segment);
/* Writes the fatal text, unless another rank of the segment has; returns when it is out. The caller is about to end. */
void weft_abort_text_print(const weft_segment *segment, uint32_t local, const char *text);
/* Of the launcher, which tells a rank's end itself: ranks that have not begun to speak are silent from now on. */
void weft_abort_text_suppress(const weft_segment *segment);

/* If the environment says that this process is one of several tasks of a step: what was seen (cut at `room`), and the launcher's own way
 * to start MPI programs (NULL: none is known). Else false. */
bool weft_task_env_seen(char *text, size_t room, const char **instead);

/* Where no launcher of ours did: this rank begins in its segment, if it has one, and knows whether its node is oversubscribed. */
void weft_boot_begin(weft_boot *boot);
/* The host's name; never empty. */
void weft_boot_host(char *host, size_t room);
/* Whether `local` ranks outnumber the CPUs that this process may use. */
bool weft_boot_is_oversubscribed(uint32_t local, bool is_bound);

#endif

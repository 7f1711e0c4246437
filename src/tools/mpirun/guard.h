/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard: guardian process that kills a job's processes if mpirun vanishes. Used by the head and by every daemon, on one thread.
 */
#ifndef WEFT_MPIRUN_GUARD_H
#define WEFT_MPIRUN_GUARD_H

#include <stdint.h>
#include <sys/types.h>

typedef struct guard {
    pid_t pid;    /* 0: none */
    int fd;       /* write end of its pipe */
    const char *mark; /* suffix of "WEFT_BOOT=...:<job>" in every rank's environment; the caller's memory */
    const char *dir;  /* directory that the guardian removes with its contents; NULL: none */
    pid_t *groups;    /* process groups of the job, for a guardian that is restarted */
    uint32_t group_count, group_capacity;
} guard;

/* Forks the guardian. 0 or -1 with errno. */
int guard_start(guard *self);
/* Registers a process group. */
void guard_add_group(guard *self, pid_t group);
/* Withdraws a group without processes: the kernel may reuse its number for unrelated ones. */
void guard_remove_group(guard *self, pid_t group);
/* Registers self->dir. Must be called before the directory is made. */
void guard_add_dir(guard *self);
/* To call when the guardian was killed: forks another, which starts with the groups and directory registered so far. */
int guard_restart(guard *self);
/* Ends the guardian, which kills nothing, and waits for it. */
void guard_stop(guard *self);

/* Sends SIGKILL to every process but the caller whose environment holds `mark`, until two scans find none, or
 * 200 scans are done. */
void marked_end(const char *mark);
/* Removes a directory and its contents. */
void dir_remove(const char *path);

#endif

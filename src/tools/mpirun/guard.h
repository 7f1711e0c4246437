/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard: the guardian process that ends the job when mpirun itself vanishes.
 */
#ifndef WEFT_MPIRUN_GUARD_H
#define WEFT_MPIRUN_GUARD_H

#include <stdint.h>
#include <sys/types.h>

typedef struct guard {
    pid_t pid;    /* 0: none */
    int fd;       /* write end of its pipe */
    const char *mark; /* "WEFT_BOOT=...:<job>" ends so in every rank's environment; stays the caller's */
    const char *dir;  /* removed with all that is in it; NULL: none */
    pid_t *groups;    /* that may have processes, for a guardian that must be started anew */
    uint32_t group_count, group_room;
} guard;

/* Forks it. 0 or -1 with errno. */
int guard_start(guard *self);
/* Tells it of one more process group. */
void guard_tell_group(guard *self, pid_t group);
/* That group has no process any more: its number may come to belong to strangers, who must not be killed for ours. */
void guard_tell_empty(guard *self, pid_t group);
/* Tells it of self->dir, before the directory is made. */
void guard_tell_dir(guard *self);
/* It was killed: start another, which knows from the first what the killed one was told. */
int guard_again(guard *self);
/* The job is over: the guardian ends without doing anything. */
void guard_stop(guard *self);

/* Kills with SIGKILL every process whose environment holds `mark` (but ourselves); how many were found. */
int marked_kill(const char *mark);
/* Removes a directory with its files and directories. */
void dir_remove(const char *path);

#endif

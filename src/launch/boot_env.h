/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_env: what our mpirun says to its ranks. The environment variable WEFT_BOOT holds
 *     2:<descriptor>:<rank>:<index on the node>:<MPMD part>:<pid of the launcher there>:<name of the job>
 * and the descriptor is the node's segment, whose first page also holds the job's record. A process that inherited the variable
 * but not the descriptor is a child of a rank (or of a wrapper that closes descriptors) and no rank by itself; see boot_mpirun.
 */
#ifndef WEFT_LAUNCH_BOOT_ENV_H
#define WEFT_LAUNCH_BOOT_ENV_H

#include <stdint.h>

#define WEFT_WORD_NAME "WEFT_BOOT"
/* Beside PMI_FD of our mpirun, for MPICH's programs: "<descriptor>:<inode>" of that socket. A
 * launcher below ours has another. */
#define WEFT_WORD_PMI_NAME "WEFT_BOOT_PMI"
#define WEFT_WORD_VERSION 2
#define WEFT_WORD_JOB_AT 2048 /* the record's offset in the segment's first page */
#define WEFT_WORD_JOB_MAGIC 0x4a4f4221u

/* Written by mpirun before the first rank starts, never changed after. */
typedef struct weft_boot_env_job {
    uint32_t magic, version;
    uint32_t size, universe; /* of the job; what it has on other nodes stands in the segment's extra part, see modex_cache.h */
    uint32_t is_oversubscribed, is_bound;
    char name[256], host[256];
} weft_boot_env_job;

typedef struct weft_boot_env {
    int fd;
    uint32_t rank, local, app;
    long launcher; /* pid */
    char name[256];
} weft_boot_env;

/* Reads the variable's text. False when it is not of this form or version. */
int weft_boot_env_parse(const char *text, weft_boot_env *word);
/* Hash of a job's name, never 0 (FNV-1a). */
uint64_t weft_boot_env_hash(const char *name);

#endif

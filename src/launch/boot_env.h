/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_env: what Weft's mpirun passes to its ranks. The environment variable WEFT_BOOT holds
 *     2:<descriptor>:<rank>:<index on the node>:<MPMD part>:<pid of the launcher there>:<name of the job>
 * The descriptor is the node's segment, whose first page also holds weft_boot_env_job. A process with the variable but without the
 * descriptor is a child of a rank, or was started by a wrapper that closes descriptors; see boot_mpirun.
 */
#ifndef WEFT_LAUNCH_BOOT_ENV_H
#define WEFT_LAUNCH_BOOT_ENV_H

#include <stdint.h>

#define WEFT_BOOT_ENV_NAME "WEFT_BOOT"
/* Set with PMI_FD by Weft's mpirun, for programs of other MPIs: "<descriptor>:<inode>" of that socket. Another launcher below has
 * another socket. */
#define WEFT_BOOT_ENV_PMI_NAME "WEFT_BOOT_PMI"
#define WEFT_BOOT_ENV_VERSION 2
#define WEFT_BOOT_ENV_JOB_AT 2048 /* offset of weft_boot_env_job in the segment's first page */
#define WEFT_BOOT_ENV_JOB_MAGIC 0x4a4f4221u

/* Written by mpirun before the first rank starts, constant afterwards. */
typedef struct weft_boot_env_job {
    uint32_t magic, version;
    uint32_t size, universe; /* of the job; other nodes: see modex_cache.h */
    uint32_t is_oversubscribed, is_bound;
    char name[256], host[256];
} weft_boot_env_job;

typedef struct weft_boot_env {
    int fd;                    /* of the segment; may be closed or reused */
    uint32_t rank, local, app; /* local: node-local rank; app: MPI_APPNUM */
    long launcher;             /* pid of the launcher on this node */
    char name[256];            /* of the job */
} weft_boot_env;

/* Parses the variable's text. 0: not of this form or version. */
int weft_boot_env_parse(const char *text, weft_boot_env *env);
/* Hash of a job's name, never 0 (FNV-1a). */
uint64_t weft_boot_env_hash(const char *name);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_desc: serializes a job for its daemons: options, environment, working directory and map.
 */
#ifndef WEFT_MPIRUN_JOB_DESC_H
#define WEFT_MPIRUN_JOB_DESC_H

#include "tools/mpirun/ctrl_conn.h"
#include "tools/mpirun/map.h"
#include "tools/mpirun/options.h"

typedef struct job_desc {
    options opts;
    map map;
    char name[256];    /* of the job */
    uint32_t node;     /* index of this daemon's node in the map */
    uint32_t head;     /* index of the head's node; map.node_count: the head runs no rank */
    char *directory;   /* the head's working directory, and the ranks' without -wdir */
    char **environment;
    char *bytes;       /* the frame's body; the strings above point into it */
    size_t size;
} job_desc;

/* Packs the job_desc, which is the same for every node. `host`: name of the head's machine. */
void job_desc_pack(const options *opts, const map *map, const char *name, const char *host, pack *to);
/* Unpacks the CTRL_START frame for `node`. 0, or -1: malformed or out of memory. The result must not be passed to options_free or map_free,
 * and a daemon keeps it until it ends. */
int job_desc_unpack(const ctrl_frame *frame, uint32_t node, job_desc *self);
/* Frees what was unpacked, also after a failure. */
void job_desc_free(job_desc *self);

#endif

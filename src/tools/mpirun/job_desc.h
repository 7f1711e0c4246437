/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_desc: a job as a daemon is told it: options, environment, working directory, and who stands where.
 */
#ifndef WEFT_MPIRUN_DESCRIBE_H
#define WEFT_MPIRUN_DESCRIBE_H

#include "tools/mpirun/map.h"
#include "tools/mpirun/options.h"
#include "tools/mpirun/wire.h"

typedef struct description {
    options opts;
    map map;
    char name[256];    /* of the job */
    uint32_t node;     /* which of the map's we are */
    uint32_t head;     /* which is the head's; map.node_count: none */
    char *directory;   /* the head's own, where the ranks stand unless -wdir says otherwise */
    char **environment;
    char *bytes;       /* as it came; what the texts stand in */
    size_t size;
} description;

/* Adds all of it, the same for every node. */
void describe(const options *opts, const map *map, const char *name, const char *host, pack *to);
/* 0, or -1: not understood, or out of memory. Stays until the process ends: options_free and map_free are not for it. */
int description_read(const wire_frame *frame, uint32_t node, description *self);

#endif

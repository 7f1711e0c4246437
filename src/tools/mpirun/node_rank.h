/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_rank: a rank's process, as node (which writes it) and modex_node see it. One thread.
 */
#ifndef WEFT_MPIRUN_NODE_RANK_H
#define WEFT_MPIRUN_NODE_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct node_rank {
    uint32_t rank; /* in the job */
    pid_t pid;
    pid_t group;   /* process group, led by the rank; 0: known to be empty */
    bool is_gone;
    int raw_status;
} node_rank;

#endif

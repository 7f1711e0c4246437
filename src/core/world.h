/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world: this process as a member of a job, the library's only mutable global besides knobs. sim holds many and makes one after
 * another current (weft_world_now is switched with the fibre); everybody else has one.
 */
#ifndef WEFT_CORE_WORLD_H
#define WEFT_CORE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/wait.h"
#include "core/worker.h"
#include "launch/boot.h"

typedef struct weft_world {
    weft_boot *boot;
    weft_worker *workers[16];
    uint32_t worker_count;
    int thread_level;      /* MPI_THREAD_*, as provided */
    const weft_sleep_ops *sleep_ops; /* weft_sleep_ops_here, or sim's */
    weft_wait_policy wait_policy;
    bool is_oversubscribed;       /* ranks share CPUs: hand over at once */
    weft_rank_page *page;  /* our status page: in the segment, or private */
    weft_rank_page *own_page; /* behind `page` where there is no segment */
    uint32_t *node_of;     /* behind boot->node_of while the knob split_node is set */
    int chime;             /* how threads wake each other where ifaces sleep on descriptors of their own; -1: not needed so far */
    void *mpi;             /* src/mpi's: predefined communicators, attributes */
} weft_world;

extern weft_world *weft_world_now; /* NULL before init and after finalize */

/* Opens the world over a boot and makes it current: worker 0 and its ifaces. Takes the boot over, also on error (then it is finished).
 * `up` is what ifaces tell: floor 4's, see weft_p2p_open, which callers use. */
int weft_world_open(weft_boot *boot, int thread_level, const weft_iface_callbacks *callbacks, weft_world **world);
/* Drains and closes all: says BYE to every peer spoken to, waits for theirs. */
int weft_world_close(weft_world *world);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world: this process as a member of a job (World Model). Owns boot, workers, wait policy and status page. With the knobs the only mutable
 * global of the library. A process has one world; sim has many and switches weft_world_now with the fibre.
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
    bool is_oversubscribed; /* ranks share CPUs: yield at once */
    weft_rank_page *page;  /* status page of this rank: in the segment, or own_page */
    weft_rank_page *own_page; /* private page, used without a segment */
    uint32_t *node_of;     /* memory of boot->node_of while the knob split_node is set; NULL: not set */
    int wakeup_fd;         /* descriptor that wakes a leader that sleeps on descriptors (mem/wakeup_sock); -1: none yet */
    void *mpi;             /* of src/mpi: predefined communicators, attributes */
} weft_world;

extern weft_world *weft_world_now; /* NULL before init and after finalize */

/* Opens worker 0 and its ifaces over a boot and makes the world current. Takes ownership of the boot; on error finalizes it.
 * `callbacks` are the ifaces' upcalls of p2p. Call weft_p2p_open instead. */
int weft_world_open(weft_boot *boot, int thread_level, const weft_iface_callbacks *callbacks, weft_world **world);
/* Drains all workers: sends BYE to every contacted peer and waits for theirs (blocks). Then closes and frees everything. Returns 0. */
int weft_world_close(weft_world *world);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world_type: this process as a member of a job (World Model): boot, workers, wait policy and status page. See world.h for the calls.
 */
#ifndef WEFT_CORE_WORLD_TYPE_H
#define WEFT_CORE_WORLD_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/cpu_share.h"
#include "core/group.h"
#include "core/wait_policy.h"
#include "core/worker_type.h"
#include "launch/boot.h"

/* How a world sleeps: processes on a futex or on descriptors; sim switches fibres. core/wait_policy decides when. */
typedef struct weft_sleep_ops {
    /* Sleeps until one of the armed wakeups is raised or limit_ns has passed. The worker must be unlocked. True: ended by the limit. */
    bool (*sleep)(struct weft_worker *worker, const weft_wakeup *wakeups, uint32_t count, uint64_t limit_ns);
    /* Wakes the sleeping leader of this worker. */
    void (*wake)(struct weft_worker *worker);
    /* Simulator only, NULL elsewhere. aside: work between true and false is that of a second thread of this rank, on another CPU; false
     * returns the time at which it has done this and all before, when the rank is woken. now_ns: virtual time. */
    uint64_t (*aside)(bool begins);
    uint64_t (*now_ns)(void);
} weft_sleep_ops;

typedef struct weft_world {
    weft_boot *boot;
    weft_group *group;     /* all processes of the job */
    weft_worker *workers[16];
    uint32_t worker_count;
    int thread_level;      /* MPI_THREAD_*, as provided */
    const weft_sleep_ops *sleep_ops; /* weft_sleep_ops_here, or sim's */
    weft_wait_policy wait_policy;
    weft_cpu_share cpu_share;
    bool is_resting;       /* the last user left; weft_world_return opens it again */
    bool has_rested;       /* it rested and is open again: peers may have to be told (core/bye) */
    bool is_oversubscribed; /* ranks share CPUs: yield at once */
    int home_cpu;          /* then: the CPU on which this rank starts; -1: it may use one only */
    uint32_t returns_left; /* how often the rank, moved elsewhere, still returns to home_cpu: the first wake-ups crowd ranks on the
                            * waker's CPU. Later the kernel decides */
    weft_rank_page *page;  /* status page of this rank: in the segment, or own_page */
    weft_rank_page *own_page; /* private page, used without a segment */
    uint32_t *node_of;     /* memory of boot->node_of while the knob split_node is set; NULL: not set */
    int wakeup_fd;         /* descriptor that wakes a leader that sleeps on descriptors (mem/wakeup_sock); -1: none yet */
    void *mpi;             /* of src/mpi: predefined communicators, attributes */
} weft_world;

/* Time in ns of the clock of waits: the simulator's, or weft_clock_ns. */
static inline uint64_t weft_world_clock_ns(const weft_world *world)
{
    return world->sleep_ops->now_ns ? world->sleep_ops->now_ns() : weft_clock_ns();
}

#endif

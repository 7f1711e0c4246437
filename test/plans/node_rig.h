/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_rig: members of a node area as threads on one mapping, with waits that sleep on the member's futex by the same steps as core/wait.
 * Used by test_node.
 */
#ifndef WEFT_TEST_PLANS_NODE_RIG_H
#define WEFT_TEST_PLANS_NODE_RIG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cases.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_queue.h"
#include "collectives/shmcoll_short.h"
#include "core/worker.h"
#include "core/world.h"

#define RANKS_MAX 9

typedef struct member {
    weft_worker worker;
    weft_world world;
    weft_rank_page *page;
    uint32_t rank;
    uint64_t sleeps;
    uint64_t offers; /* of the lock to other threads */
    pthread_t thread;
    weft_shmcoll *area;
    int rc;
    bool is_right;
    char text[600]; /* of rc */
} member;

typedef struct node_rig {
    uint32_t ranks;
    bool is_oversubscribed, needs_fence, has_csum;
    bool is_lagging; /* bcasts with changing roots, while the last member is late: writers must not overrun it */
    uint64_t seed, bytes;
    void *memory;
    weft_rank_page *pages[RANKS_MAX];
    member members[RANKS_MAX];
    _Atomic int failures;
    _Atomic uint64_t alltoallvs, lefts, longs; /* rig_take_left */
    _Atomic uint64_t shorts, begun_shorts;     /* blocking and nonblocking calls that a member made as repeated ones */
    /* one flipped bit: the writer's slots are damaged before the reader reads them */
    bool is_flipping;
    uint32_t writer;
    uint64_t flip_bytes, flip_at; /* bytes that the writer writes in its first operation; offset of the damaged byte */
    _Atomic bool is_flipped;
    cases_call call;
    /* one member makes another call than the others, once */
    uint32_t odd, common; /* that member; number of equal calls before */
    enum { ODD_CALLS, ODD_PASSES, ODD_LEAVES } how;
    cases_call odd_call;
    _Atomic uint32_t reported; /* members with an error */
    uint32_t flip_parts; /* allreduce by its halves, blocks of the vector; 0: whole */
} node_rig;

extern node_rig rig;

uint64_t rig_draw(uint64_t *state);
/* Counts a failure; prints the first one. */
void rig_complain(const char *what, uint32_t rank, uint64_t number);
/* Damages the writer's slots, once, if this is the writer of a rig that flips. */
void rig_flip(member *self);
/* Operation i of the sequence, equal on all members. Runs of one rooted kind let writers run ahead. */
cases_call rig_call(uint32_t i);
/* The same, with alltoallv and alltoallw in place of some alltoalls, where the area has cells for them. */
cases_call rig_call_of(const weft_shmcoll *area, uint32_t i);
/* An alltoallv has ended in the area, and left blocks: they come, as by messages. rig.alltoallvs counts
 * calls, rig.lefts those with such blocks, rig.longs others with blocks longer than a cell. */
void rig_take_left(const weft_shmcoll *area, const weft_moved *moved, uint32_t left, cases_side *side);
/* An allreduce by its halves; the second's data is tainted if the first was damaged. */
int rig_run_halves(weft_shmcoll *area, const weft_coll *args, uint32_t parts);
/* A blocking call, performed by rounds or, if it is short, perhaps as one that is repeated (shmcoll_short.h): each member decides for
 * itself. rig.shorts counts the latter. */
int rig_call_now(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args);
/* A nonblocking call: begin makes it; wait waits for it, and returns its result or that of begin. */
typedef struct rig_request {
    weft_shmcoll_pending pending;
    bool is_done;
    int rc;
    weft_moved moved; /* of an alltoallv */
    uint32_t left;
} rig_request;
void rig_begin(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, rig_request *request);
int rig_wait(weft_shmcoll *area, rig_request *request);
/* Flags of weft_shmcoll_attach. */
unsigned rig_flags(void);
/* Maps pages and an area of `bytes`, and clears the rig. */
void rig_open(uint32_t ranks, bool is_oversubscribed, bool needs_fence, uint64_t bytes);
/* Runs body in a thread for each member, and unmaps. */
void rig_run(void *(*body)(void *));

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan: a collective operation in verbs. An algorithm is one function that speaks verbs to a plan, once, for its own rank:
 *     weft_plan_send / _recv / _copy / _fold / _fence / _temp
 * A *live* plan performs each verb at once (blocking calls); a *recorded* plan keeps them as steps which progress plays
 * (nonblocking calls) and which may be played again (persistent calls). Algorithms hold no error checks, allocate nothing and do no
 * datatype arithmetic: an error sticks to the plan (plan->rc) and the rest of the verbs do nothing.
 *
 * Verbs between two fences may run in any order; a fence waits for all before it. fold and copy run in order after what the last
 * fence waited for.
 */
#ifndef WEFT_COLLECTIVES_PLAN_H
#define WEFT_COLLECTIVES_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "p2p/p2p.h"
#include "type/op.h"
#include "type/type.h"

typedef struct weft_plan weft_plan;

/* What a collective is asked for; algorithms read it, the chooser reads it. Buffers are the user's; MPI_IN_PLACE is told by in_place. */
typedef struct weft_coll {
    const void *sendbuf;
    void *recvbuf;
    uint64_t sendcount, recvcount;      /* per rank where the operation is per rank */
    const weft_type *sendtype, *recvtype;
    const weft_op *op;
    int root;
    bool in_place;
} weft_coll;

enum weft_coll_kind {
    WEFT_COLL_BARRIER, WEFT_COLL_BCAST, WEFT_COLL_REDUCE, WEFT_COLL_ALLREDUCE,
    WEFT_COLL_GATHER, WEFT_COLL_SCATTER, WEFT_COLL_ALLGATHER, WEFT_COLL_ALLTOALL, WEFT_COLL_LAST
};

/* What a collective runs on: one per communicator, made with it (weft_team_open), owned by it. */
typedef struct weft_team {
    weft_chan *chan;          /* the communicator's collective channel */
    uint32_t rank, size;
    uint32_t sequence;        /* of collective calls, gives tags to plans */
    struct weft_node *node;   /* shared slots and flags when all members are on one node; NULL: none */
    void *cache;
} weft_team;

/* Collective over the team's members when `share` (they agree on a node area); needs a connected channel. */
int weft_team_open(weft_chan *chan, bool share, weft_team *team);
void weft_team_close(weft_team *team);

/* Blocking call: chooses and performs. 0 or an error. */
int weft_coll_run(weft_team *team, enum weft_coll_kind kind, const weft_coll *args);
/* Nonblocking call: chooses, records, starts. The request owns the plan. */
int weft_coll_start(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req);
/* Persistent call: records; start with weft_plan_restart(req). */
int weft_coll_prepare(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req);
int weft_plan_restart(weft_req *req);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * team: the types of collectives: the arguments of a call, the team of a communicator, a schedule under way. No functions.
 */
#ifndef WEFT_COLLECTIVES_TEAM_H
#define WEFT_COLLECTIVES_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/counts.h"
#include "collectives/attempts.h"
#include "collectives/params.h"
#include "core/req.h"
#include "p2p/p2p.h"
#include "type/op.h"
#include "type/type.h"

typedef struct weft_sched weft_sched;

/* One member's collective call, in a form that members compare (calls.h). */
typedef struct weft_call {
    uint64_t what;  /* kind | form << 5 | operator's handle << 8 | element size << 16 | root << 32; operator and size: reductions only */
    uint64_t bytes; /* weft_coll_bytes */
} weft_call;

#define WEFT_CALLS 16
/* The last calls of this member on a team, and unexpected messages of calls that it has not made yet. */
typedef struct weft_call_log {
    struct {
        uint32_t tag, is_set;
        weft_call call;
    } made[2 * WEFT_CALLS]; /* this member's calls, by weft_call_slot; persistent ones from when they are made */
    struct {
        uint32_t tag, is_set, from;
    } ahead[2 * WEFT_CALLS], other[2 * WEFT_CALLS]; /* messages from `from`, by weft_call_slot; other: same number, but a different call */
    uint32_t newest;         /* tag of the latest entry of ahead that is not persistent; UINT32_MAX: none */
    bool has_reported;          /* this member sent its call to a member with a different one (weft_calls_differ) */
    uint32_t reported_to, reported_tag; /* that member, and the tag of its message; valid if has_reported */
    weft_call reported_call;    /* this member's call under that number; valid if has_reported */
} weft_call_log;
struct weft_shmcoll;
struct weft_topology;

/* Arguments of a collective, read by the selection and the algorithms. Buffers are the user's. in_place: the caller of this rank passed
 * MPI_IN_PLACE; the arguments that it replaces are ignored.
 *   barrier            nothing
 *   bcast              recvbuf, recvcount, recvtype on every rank (the root's recvbuf is read); root
 *   reduce             sendbuf; recvcount, recvtype, op on every rank; recvbuf at the root; in_place at the root: data in recvbuf
 *   allreduce          sendbuf (in_place: recvbuf); recvbuf, recvcount, recvtype, op
 *   gather             send* on every rank; recv* at the root, counts per rank; in_place at the root: send* ignored
 *   scatter            send* at the root, counts per rank; recv* on every rank; in_place at the root: recv* ignored
 *   allgather, alltoall  send* and recv*, counts per rank; in_place on every rank: send* ignored
 *   gatherv, scatterv, allgatherv, alltoallv, alltoallw  the same with is_v, and a layout on the side with counts per rank
 *   scan, exscan       as allreduce
 *   reduce_scatter(_block)  as allreduce; recvcount: elements of the whole vector; reduce_scatter: recv_layout.counts, the blocks of a rank
 *   neighbor_*         as the dense ones, never in_place; a block for each of `neighbors`
 * With a layout, that side's count is the sum of all blocks; where types differ by rank, count and type are not read.
 * root is a member of the team. Intercommunicators (MPI 5.0 6.2.3): never in_place. Where there is a root, it only sends or only receives,
 * the other group's members do the opposite, and the other members of its own group have root WEFT_ROOT_NONE, counts 0 and no op. */
#define WEFT_ROOT_NONE (-1)

/* Blocks of a buffer with a count and a displacement for each rank (v), and a type (w): the caller's arrays. */
typedef struct weft_layout {
    weft_counts counts; /* elements */
    weft_counts displs; /* in extents of the buffer's type; with types: in bytes */
    const void *const *types; /* handles; NULL: all blocks have the buffer's type */
    const weft_type *const *held; /* the same types, held by a copy of the layout: their handles may be freed; NULL: read `types` */
} weft_layout;

/* This member's edges in a topology. MPI_PROC_NULL (negative): no message. */
typedef struct weft_neighbors {
    const int *sources, *destinations; /* members */
    uint32_t source_count, destination_count;
    bool is_grid; /* each dimension has two of both: one step down, one step up */
} weft_neighbors;

#define WEFT_MOVED_MEMBERS 256u
/* Sets of members whose blocks have moved by slots (shmcoll_alltoallv.c), the own one among them: the others go by messages. */
typedef struct weft_moved {
    uint64_t sent[WEFT_MOVED_MEMBERS / 64], received[WEFT_MOVED_MEMBERS / 64];
} weft_moved;

typedef struct weft_coll {
    const void *sendbuf;
    void *recvbuf;
    uint64_t sendcount, recvcount;      /* elements; per rank in gather, scatter, allgather, alltoall */
    const weft_type *sendtype, *recvtype;
    const weft_op *op;
    int root;
    bool in_place;
    bool is_v;                          /* each rank has its own count, even if this member has no layout: empty blocks need no message */
    const weft_layout *send_layout, *recv_layout; /* of the side with a block for each rank; NULL: sendcount, recvcount elements each */
    uint32_t blocks_hash;               /* weft_call_blocks_hash of allgatherv and reduce_scatter on intracommunicators; else 0 */
    const weft_neighbors *neighbors;    /* of neighborhood collectives: a block is an edge's */
    const weft_moved *moved;            /* the call is the rest of one that has gone through slots; NULL: it is not */
} weft_coll;

enum weft_coll_kind {
    WEFT_COLL_BARRIER, WEFT_COLL_BCAST, WEFT_COLL_REDUCE, WEFT_COLL_ALLREDUCE,
    WEFT_COLL_GATHER, WEFT_COLL_SCATTER, WEFT_COLL_ALLGATHER, WEFT_COLL_ALLTOALL,
    WEFT_COLL_GATHERV, WEFT_COLL_SCATTERV, WEFT_COLL_ALLGATHERV, WEFT_COLL_ALLTOALLV, WEFT_COLL_ALLTOALLW,
    WEFT_COLL_SCAN, WEFT_COLL_EXSCAN, WEFT_COLL_REDUCE_SCATTER_BLOCK, WEFT_COLL_REDUCE_SCATTER, WEFT_COLL_LAST,
    /* along the edges of a topology */
    WEFT_COLL_NEIGHBOR_ALLGATHER = WEFT_COLL_LAST, WEFT_COLL_NEIGHBOR_ALLGATHERV, WEFT_COLL_NEIGHBOR_ALLTOALL,
    WEFT_COLL_NEIGHBOR_ALLTOALLV, WEFT_COLL_NEIGHBOR_ALLTOALLW, WEFT_COLL_KINDS
};

/* Consecutive members of a team. */
typedef struct weft_members {
    uint32_t first, count;
} weft_members;

/* A communicator's collective state: opened with it (weft_team_open), owned by it. Members are 0 .. size - 1: the ranks of an
 * intracommunicator; of an intercommunicator the processes of one group, then those of the other. */
typedef struct weft_team {
    weft_chan *chan;          /* the communicator's collective channel (MPI 5.0 7.1) */
    uint32_t rank, size;      /* rank: this member */
    weft_members local, remote; /* this member's group and the other one; intracommunicator: both are all members */
    bool is_inter;            /* of an intercommunicator */
    bool is_reproducible;     /* the order of a reduction depends on operation, ranks, root and length only (weft_team_set_reproducible) */
    uint32_t sequence;        /* number of the next blocking or nonblocking schedule; its low bits (WEFT_TAG_BITS) go into the tag */
    struct weft_topology *topology; /* members per node; NULL: all on one node, or each on its own; owned */
    struct weft_shmcoll *area; /* shared area of the members on this node (of all, if topology is NULL); NULL: none; owned */
    uint32_t prepared;        /* number of the next persistent schedule; a persistent schedule keeps its tag when it is restarted */
    uint32_t nodes;           /* with members; 1: all on one node, size: each on its own; equal on all members */
    weft_coll_params params;  /* by which algorithms are chosen (cost.h); equal on all members */
    struct weft_coll_choice *choices[WEFT_COLL_KINDS]; /* the choices so far (choice.h); owned */
    uint32_t latency_bytes;   /* bytes that the wire carries in one latency, a quarter of a segment; equal on all members */
    uint32_t eager_bytes;     /* blocks to other nodes are split into messages of this length; 0: not split; equal on all members */
    uint32_t eager_total_max; /* bytes; longer blocks are not split, as they would exhaust the peer's credit; equal on all members */
    uint32_t long_run;        /* alltoallv: calls after one with long blocks that go by messages at once; equal on all members */
    uint32_t long_left;       /* those that are left */
    weft_attempts attempts;   /* of nonblocking calls by messages */
    uint32_t stream;          /* root and direction of the latest schedule that sends one way; 0: there was none */
    bool needs_setup;        /* the next call must first look at may_share, agreement and stopped */
    bool has_areas;           /* its nodes may have areas: blocking calls of an intracommunicator of this job; equal on all members */
    bool may_share;           /* the members have not begun to agree on a node area; the first call does */
    bool is_origin;           /* the team stopped by an error of this member */
    bool has_notified_all;    /* of that stop, since a member has freed the communicator and forwards nothing */
    int stopped;              /* error that later calls return (stop.h); 0: the team has not stopped */
    uint32_t stop_tag;        /* tag of the schedule that failed; it and all later ones are over */
    uint64_t stop_calls;      /* calls in the area (weft_shmcoll.calls) that its origin had made: they go on; used without topology */
    uint32_t stop_origin;     /* member on which it failed */
    bool is_making;           /* intercommunicator: this member is inside a call that makes a communicator of it */
    bool awaits_remote;       /* is_making: it is this group's leader, and waits for the other one's */
    uint32_t making_tag, maker; /* number and hash of that call; enum weft_call_maker. Valid if is_making */
    struct weft_team *making_local; /* team of this group, whose collectives that call uses: stops with this one. Valid if is_making */
    struct weft_agreement *agreement; /* of a nonblocking call, under way (agreement.h); NULL: none */
    weft_call_log log;
    weft_list_link active;    /* schedules under way (weft_sched.active) */
    weft_list_link children;  /* teams created by collectives of this one (weft_team_adopt) */
    weft_list_link sibling;   /* in the parent's children */
    uint32_t created_by;         /* parent's schedule number that created this team; if it is over, this team stops */
    char stop_text[WEFT_NOTIFY_BYTES + 120]; /* reason; valid if stopped */
} weft_team;

/* A schedule's tag: its number on the team, and a hash of the call, so that messages of different calls do not match (calls.h). At most
 * half of the numbers may be under way at a time. */
#define WEFT_TAG_BITS 0x3fffffu
#define WEFT_TAG_HASH_SHIFT 22
#define WEFT_TAG_PREPARED 0x40000000u /* set in tags of persistent schedules: their numbers never expire, and are counted apart */

enum weft_step_op { WEFT_STEP_SEND, WEFT_STEP_RECV, WEFT_STEP_COPY, WEFT_STEP_REDUCE, WEFT_STEP_CALL, WEFT_STEP_AWAIT, WEFT_STEP_FENCE,
                    WEFT_STEP_HOLD /* no effect: holds the type of a message that the start has posted */ };

typedef void weft_sched_callback(weft_sched *sched, void *arg);

typedef struct weft_step {
    enum weft_step_op op;
    union {
        int32_t peer;               /* send, recv: rank in the team's channel */
        uint32_t message;           /* await */
    };
    union {
        const void *from;           /* send, copy, reduce */
        weft_sched_callback *call;  /* call */
    };
    void *to;                       /* recv, copy, reduce; call: its argument */
    uint64_t from_count, to_count;  /* elements; only copy uses from_count and from_type */
    const weft_type *from_type, *to_type;
} weft_step;

#define WEFT_SCHED_SMALL 512
#define WEFT_SCHED_FEW 8

/* Errors of a schedule are of two kinds.
 * Damage (weft_status_is_damage): a message was received, but truncated or with a wrong checksum. The schedule performs all its steps, so
 *   that no other member hangs. Counts and addresses never come from messages, so only values are wrong. Messages sent after the next
 *   fence are marked as tainted, where messages are checked, and their receivers return an error too.
 * All other errors (out of memory, a failed peer) stop the schedule: later steps do nothing and receives are cancelled. A failed peer ends
 *   the job; any other error stops the team on all members (stop.h). */
struct weft_sched {
    weft_req_ext ext;           /* recorded: the schedule is its request's extra */
    uint32_t rank, size;        /* in the current view (weft_sched_sub and weft_sched_among narrow it) */
    int rc;                     /* error that stopped the schedule; 0: none */
    int damage;                 /* first damage, as known at the last fence; 0: none */
    bool is_immediate;          /* of a blocking call; else recorded, or started (sched_start.c) */
    bool performs;              /* steps are performed when the algorithm calls them, not recorded */
    bool announces;             /* sends of more than WEFT_SCHED_ANNOUNCED bytes are synchronous (weft_sched_one_way) */
    int tag;
    const uint32_t *map;        /* rank in the view to member of the team; NULL: base + rank */
    uint32_t base;
    weft_team *team;
    const weft_op *op;          /* for reduce; immediate: the caller's, recorded: own_op */
    /* messages begun since the last fence; message n is reqs[n - message_first] */
    weft_completion completion; /* left: 1 + messages under way, without the awaited one */
    weft_completion awaited;    /* recorded: of the message for which the schedule waits */
    weft_req **reqs;            /* few, or allocated; NULL: the message has ended */
    uint32_t req_count, req_capacity; /* used, capacity */
    uint32_t message_first, message_next; /* numbers; next: of the next message that the algorithm begins or records */
    bool has_deferred;          /* `deferred` is a receive that is not posted yet */
    uint32_t deferred_message;    /* its number; valid if has_deferred */
    weft_step deferred;
    weft_call call;             /* persistent and deferred (agreement.h) only */
    bool is_helped;             /* recorded: counts in worker->helped */
    bool is_parked;             /* recorded: has failed by WEFT_E_REVOKED and waits for the notification with the reason */
    weft_req *receiving;        /* immediate: receive that a fence waits for; NULL: none */
    weft_list_link active;      /* in team->active while the schedule is under way */
    /* recorded schedules only */
    weft_sched *next_spare;     /* in worker->spare_scheds; valid there only */
    weft_step *steps;
    uint32_t step_count, step_capacity, next; /* used, capacity; index of the next step to perform */
    weft_list_link link;        /* in worker->scheds while the schedule can progress */
    weft_req *req;              /* the user's request; it owns the schedule */
    weft_op own_op;             /* copy: the user may free the operator meanwhile */
    struct weft_shmcoll_pending *pending; /* the only step is this call through the node area (sched_area.c); NULL: it has steps */
    void *regs;                 /* persistent: registrations of its memory, owned by src/mpi; NULL: none */
    void (*free_regs)(void *regs); /* frees regs; called before the schedule's memory is freed */
    /* temporary memory: first small, then blocks */
    struct weft_sched_block *blocks;
    uint32_t small_used;        /* bytes */
    weft_req *few[WEFT_SCHED_FEW];
    _Alignas(64) char small[WEFT_SCHED_SMALL];
};

#endif

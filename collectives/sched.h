/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched: a collective operation in verbs. An algorithm is one function that speaks verbs to a schedule, once, for its own rank:
 *     weft_sched_send / _recv / _copy / _fold / _fence / _temp / _sub
 * A *live* schedule performs each verb at once (blocking calls); a *recorded* schedule keeps them as steps which progress plays
 * (nonblocking calls) and which may be played again (persistent calls). Algorithms hold no error checks, allocate nothing and
 * do no datatype arithmetic: errors stick to the schedule. There are two sorts.
 *   damage   what came is not what was sent (its checksum is wrong, or it did not fit), but it came: weft_status_is_damage. The
 *            rank goes on with all its verbs, on data that is wrong, so that everybody else ends and the next schedule finds all in step;
 *            the first such error is what the call returns. Counts and places come from the caller's arguments, never from a message,
 *            so wrong data is wrong values and no more. What is sent after the next fence is marked as made of damaged data where
 *            messages are checked, so that whoever gets it returns an error too: no checked result is wrong without a word.
 *   others   (no memory, a lost peer) stop the schedule: the rest of the verbs do nothing, receives are cancelled, and the call returns the
 *            error. A lost peer ends the job; the rest stop the team on all members (stop.h): their calls return an error, too.
 *
 * Order: verbs begin in the order spoken. copy and fold are over when the next verb begins; sends and receives are over at the
 * next fence and not before, so what was received is read, and what was sent is overwritten, only behind a fence. The end of an
 * algorithm is a fence. Messages between two ranks match in the order in which each side speaks them.
 */
#ifndef WEFT_COLLECTIVES_SCHED_H
#define WEFT_COLLECTIVES_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "p2p/p2p.h"
#include "type/op.h"
#include "type/type.h"

typedef struct weft_sched weft_sched;

/* What a member calls, in few words (calls.h). */
typedef struct weft_call {
    uint64_t what; /* kind, form << 5, operator's handle << 8, element size (of reductions) << 16, root << 32 */
    uint64_t bytes; /* weft_coll_select_bytes */
} weft_call;

#define WEFT_CALLS 16
/* A team's latest calls, and messages that were here before the call was. */
typedef struct weft_call_log {
    struct {
        uint32_t tag, is_set;
        weft_call call;
    } made[WEFT_CALLS]; /* by number */
    struct {
        uint32_t tag, is_set, from;
    } ahead[WEFT_CALLS], other[WEFT_CALLS]; /* other: of the same number as ahead's, and another call: one of them is not ours */
    uint32_t newest;         /* tag of the latest of them */
    bool has_asked;          /* a member that calls something else was told so, and shall say what: which, ... */
    uint32_t asked, asked_tag; /* ... what its message was, ... */
    weft_call asked_call;    /* ... what we call */
} weft_call_log;
struct weft_shmcoll;
struct weft_topology;

/* What a collective is asked for; algorithms read it, the chooser reads it. Buffers are the user's; MPI_IN_PLACE is told by
 * in_place (set on every rank where the caller passed it; the side that it replaces is then ignored).
 *   barrier            nothing
 *   bcast              recvbuf, recvcount, recvtype on every rank (the root's recvbuf is read); root
 *   reduce             sendbuf; recvcount, recvtype, op on every rank; recvbuf at the root; in_place only at the root: data in
 *                     recvbuf
 *   allreduce          sendbuf (in_place: recvbuf); recvbuf, recvcount, recvtype, op
 *   gather             send* on every rank; recv* at the root, counts per rank; in_place at the root: send* ignored
 *   scatter            send* at the root, counts per rank; recv* on every rank; in_place at the root: recv* ignored
 *   allgather, alltoall  send* and recv*, counts per rank; in_place on every rank: send* ignored */
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
    uint32_t sequence;        /* of schedules on this team: the low 30 bits are a schedule's tag */
    struct weft_topology *topology; /* who stands on which node; NULL: all on one, or no two on one; owned */
    struct weft_shmcoll *node;   /* shared slots and flags of the members on our node (all, where hosts is NULL); NULL: none */
    void *cache;              /* a spare block of temporary memory; owned */
    uint32_t prepared;        /* of persistent schedules: their tags have bit 30 set and stay theirs for life */
    uint32_t latency_bytes;   /* what the wire carries in one latency: the chooser's unit; all members hold the same value */
    uint32_t eager_bytes;   /* messages to other nodes are best so long at most, because those go eagerly; 0: no matter. Alike on all */
    uint32_t eager_total_max;    /* longer blocks go whole: in pieces they would outrun the credit of a peer. Alike on all */
    bool is_unsettled;        /* a blocking call has something to do first: one of the next two */
    bool may_share;           /* the node area is agreed on by the first blocking call */
    bool is_origin;           /* the error that stopped the team is ours */
    int stopped;              /* the error that later calls return (stop.h); 0: none */
    uint32_t stop_tag;        /* of the schedule that failed: this one and later ones are over */
    uint32_t stop_origin;     /* the member on which it failed */
    weft_call present;        /* the blocking call that agrees on an area */
    weft_call_log log;
    weft_list_link active;         /* schedules under way */
    weft_list_link children;       /* teams that this one's last collectives have made ... */
    weft_list_link sibling;        /* ... of which this is one ... */
    uint32_t made_by;         /* ... made by the schedule with this number: if that is over, so are they */
    char stop_text[WEFT_NOTIFY_BYTES + 60];
} weft_team;

/* A schedule's tag: its number on this team (half of them may be under way at a time) and a hash of the call, so that messages of calls that differ
 * never match (calls.h). */
#define WEFT_TAG_BITS 0x3fffffu
#define WEFT_TAG_HASH_SHIFT 22
#define WEFT_TAG_PREPARED 0x40000000u /* a persistent schedule keeps its tag: it must not meet one that comes round again */

/* Local: the members agree on a node area (when `share`) in their first blocking collective, which is the same call on all of
 * them. The channel must be connected by then. */
int weft_team_open(weft_chan *chan, bool share, weft_team *team);
/* Local; all collectives on the team are over here. The last member to close gives the node area back. */
void weft_team_close(weft_team *team);

/* The members of `team` have just agreed on this one: it stops if that turns out not to be so. */
void weft_team_adopt(weft_team *team, weft_team *child);
/* An error of ours that stopped the team: 0, or which. */
int weft_team_stopped(const weft_team *team);
/* rc of a collective whose data is the library's own, by which members decide what they do next. Damage to it ends the job: they
 * would go different ways, and wait for each other for ever. */
int weft_team_trust(const weft_team *team, int rc);

/* Blocking call: chooses and performs. 0 or an error. */
int weft_coll_run(weft_team *team, enum weft_coll_kind kind, const weft_coll *args);
/* Nonblocking call: chooses, records, starts. The request owns the schedule. */
int weft_coll_start(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req);
/* Persistent call: records; start with weft_sched_restart(req). */
int weft_coll_prepare(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req);
int weft_sched_restart(weft_req *req);

/* ---- for algorithms ---- */

typedef void weft_sched_algorithm(weft_sched *sched, const weft_coll *args);

enum weft_step_op { WEFT_STEP_SEND, WEFT_STEP_RECV, WEFT_STEP_COPY, WEFT_STEP_REDUCE, WEFT_STEP_FENCE };

typedef struct weft_step {
    enum weft_step_op verb;
    int32_t peer;                   /* rank in the team's channel */
    const void *from;
    void *to;
    uint64_t from_count, to_count;  /* a message or a fold uses to_count and to_type */
    const weft_type *from_type, *to_type;
} weft_step;

#define WEFT_SCHED_SMALL 512
#define WEFT_SCHED_FEW 8

struct weft_sched {
    uint32_t rank, size;        /* ours in the present view (weft_sched_sub narrows it) */
    int rc;                     /* the error that stopped it; verbs do nothing once it is set */
    int damage;                 /* the first error that did not, as it was known at the last fence */
    bool is_immediate;
    int tag;
    const uint32_t *map;        /* the view's ranks to the team's; NULL: the same */
    weft_team *team;
    const weft_op *op;          /* what folds use: the caller's, or our copy of it when recorded */
    /* requests begun since the last fence */
    weft_completion completion;             /* left is one more than the requests under way */
    weft_req **reqs;            /* few, or allocated */
    uint32_t req_count, req_room;
    bool is_holding;            /* live: `held` is a receive not yet posted, so that a fence may perform it as a blocking one */
    weft_step held;
    weft_call call;
    bool is_parked;             /* recorded: it is over but for the reason, which a notification brings */
    weft_req *receiving;        /* live: the receive that a fence waits for */
    weft_list_link active;           /* in team->active while it is under way */
    /* recorded */
    weft_step *steps;
    uint32_t step_count, step_room, next;
    weft_list_link link;             /* in worker->schedules while it can go on */
    weft_req *req;
    weft_op own_op;
    void *kept;                 /* what src/mpi keeps for as long as a persistent schedule lives (registrations of its memory) ... */
    void (*drop_kept)(void *kept); /* ... given back before the memory is */
    /* temporary memory: small, then blocks */
    struct weft_sched_block *blocks;
    uint32_t small_used;
    weft_req *few[WEFT_SCHED_FEW];
    _Alignas(64) char small[WEFT_SCHED_SMALL];
};

/* Verbs. Ranks are those of the view. count elements of type at buf. */
void weft_sched_send(weft_sched *sched, uint32_t to, const void *buf, uint64_t count, const weft_type *type);
void weft_sched_recv(weft_sched *sched, uint32_t from, void *buf, uint64_t count, const weft_type *type);
/* Nothing happens when both are the same place. */
void weft_sched_copy(weft_sched *sched, void *to, uint64_t to_count, const weft_type *to_type, const void *from, uint64_t from_count,
                    const weft_type *from_type);
/* inout = in op inout with the schedule's operator. */
void weft_sched_reduce(weft_sched *sched, const void *in, void *inout, uint64_t count, const weft_type *type);
void weft_sched_fence(weft_sched *sched);
/* Room for count elements of type, in memory form, until the schedule ends (and through replays); the address is that of element 0.
 * On shortage the error sticks and NULL is returned: further verbs never touch it. */
void *weft_sched_temp(weft_sched *sched, uint64_t count, const weft_type *type);
/* The same schedule seen by some of the ranks: `ranks` (the view's, ours among them, valid during the call) speak `algorithm`. */
void weft_sched_sub(weft_sched *sched, const uint32_t *ranks, uint32_t size, weft_sched_algorithm *algorithm, const weft_coll *args);

#define WEFT_COLL_FEW 1024 /* elements: shorter folds and copies do not look for threads that wait for the worker */
void weft_coll_call_op(weft_worker *worker, const weft_op *op, const weft_type *type, const void *in, void *inout, uint64_t count);
/* weft_op_apply of every collective: a program's operator, and what takes long, runs with the worker unlocked. The caller holds op and type. */
static inline void weft_coll_apply_op(weft_worker *worker, const weft_op *op, const weft_type *type, const void *in, void *inout,
                                      uint64_t count)
{
    if (weft_likely(op->handle && count <= WEFT_COLL_FEW))
        weft_op_apply(op, type, in, inout, count);
    else
        weft_coll_call_op(worker, op, type, in, inout, count);
}

/* weft_copy of every collective. What takes long is done with the worker unlocked. */
void weft_coll_copy(weft_worker *worker, const weft_type *to_type, void *to, uint64_t to_count, const weft_type *from_type, const void *from,
                    uint64_t from_count);

/* Element i of buf. */
static inline void *weft_sched_at(const void *buf, const weft_type *type, uint64_t i)
{
    return (char *)buf + (int64_t)i * type->extent;
}

/* Where block i of `blocks` begins when count elements are spread as evenly as can be; block `blocks` is the end. */
static inline uint64_t weft_sched_block_start(uint64_t count, uint32_t blocks, uint32_t i)
{
    uint64_t each = count / blocks, more = count % blocks;
    return each * i + (i < more ? i : more);
}

#define WEFT_SCHED_BYTE_HANDLE 0x247 /* MPI_BYTE in the ABI; floor 5 sees no mpi.h */
/* The type of raw bytes. */
static inline const weft_type *weft_sched_bytes(void) { return weft_type_of((const void *)(uintptr_t)WEFT_SCHED_BYTE_HANDLE); }

/* ---- for coll.c, sched_progress.c and tests ---- */

void weft_sched_begin_immediate(weft_sched *sched, weft_team *team, int tag);
/* Waits for what is under way, frees all that the schedule holds (not the schedule); the schedule's error. */
int weft_sched_end_immediate(weft_sched *sched);
int weft_sched_record(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, int tag, weft_req **req);
/* worker->play: goes on with all schedules that can. */
int weft_sched_progress(weft_worker *worker);
int weft_sched_begin_message(weft_sched *sched, const weft_step *step);
void weft_sched_free_requests(weft_sched *sched);
/* Cancels its receives that no message has matched. */
void weft_sched_cancel(weft_sched *sched);
/* rc (not 0) sticks to the schedule. */
void weft_sched_fail(weft_sched *sched, int rc) __attribute__((cold));
static inline int weft_sched_code(const weft_sched *sched) { return weft_unlikely(sched->rc) ? sched->rc : sched->damage; }
void weft_sched_free_memory(weft_sched *sched);

#endif

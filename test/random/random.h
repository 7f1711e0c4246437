/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random: random MPI programs. Every rank draws the same plan of steps from a seed (plan_*), performs its part (run_*), and knows each
 * result from the plan alone. Compiled with any MPI (test/stress/random) and into a simulated world (test/sim/random.c).
 * Invariant: no deadlock. Every rank performs its parts in the order of places: (step, index within the step). A call that blocks depends
 * only on calls of other ranks at the same or an earlier place, and calls at the same place meet. No state but rp's: ranks may share one
 * process.
 */
#ifndef TEST_RANDOM_RANDOM_H
#define TEST_RANDOM_RANDOM_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RP_MPI(version, subversion) (MPI_VERSION > (version) || (MPI_VERSION == (version) && MPI_SUBVERSION >= (subversion)))

/* MPICH 4.0.2 crashes in these. */
#ifdef MPICH_VERSION
#define RP_HAS_PERSISTENT 0
#define RP_HAS_EXTERNAL 0
#else
#define RP_HAS_PERSISTENT RP_MPI(4, 0)
#define RP_HAS_EXTERNAL 1
#endif

enum { RP_RANKS = 16, RP_COMMS = 12, RP_PAIRS = 6, RP_MESSAGES = 20, RP_SIG = 3, RP_TEXT = 900, RP_OPS = 64, RP_TAG_NEVER = 32000,
       RP_WINDOWS = 3, RP_ACCESSES = 8, RP_REGIONS = 3 };

/* -- draws -- */

typedef struct rp_dice {
    uint64_t state;
} rp_dice;
uint64_t rp_hash(uint64_t a, uint64_t b);
/* 0 .. below - 1; 0 if below is 0 */
uint32_t rp_draw(rp_dice *dice, uint32_t below);

/* -- types -- */

/* Signature of one unit of a message. */
typedef struct rp_sig {
    int n;
    uint8_t basics[RP_SIG]; /* of rp_basics */
} rp_sig;

typedef struct rp_basic {
    const char *name;
    uint8_t bytes, align;
} rp_basic;
extern const rp_basic rp_basics[];
MPI_Datatype rp_basic_type(uint8_t basic);
rp_sig rp_sig_draw(rp_dice *dice);

typedef struct rp_entry {
    int64_t at;
    uint32_t basic;
} rp_entry;

/* A datatype and its model: the basics of one item in the order of the type map. */
typedef struct rp_type {
    rp_sig sig;
    rp_entry *map;
    uint32_t entries;
    int64_t lb, ub, true_lb, true_ub, size;
    MPI_Datatype mpi;
    bool is_named;
    int combiner;
    int depth;
} rp_type;

typedef struct rp rp;

/* The type that a seed stands for. rp NULL: the model alone. depth 0: a basic, or a struct of the signature's basics. */
void rp_type_open(rp *rp, rp_type *type, uint64_t seed, int depth, const rp_sig *sig);
void rp_type_close(rp *rp, rp_type *type);
/* Units of the signature in one item. */
uint32_t rp_type_units(const rp_type *type);

/* A buffer of items; its bytes outside of data keep RP_GAP. */
#define RP_GAP 0xa5
typedef struct rp_buf {
    uint8_t *mem;
    size_t bytes;
    int64_t origin; /* offset of the address given to MPI */
} rp_buf;
void rp_buf_open(rp_buf *buf, const rp_type *type, uint64_t items);
void rp_buf_close(rp_buf *buf);
void *rp_buf_at(const rp_buf *buf, const rp_type *type, uint64_t item);
/* Writes basics first .. first + n - 1 of message `key`, from item `item` on. */
void rp_buf_put(rp_buf *buf, const rp_type *type, uint64_t item, uint64_t key, uint64_t n);
/* Ends the program with a text if `got` differs from `want`. */
void rp_buf_same(rp *rp, const rp_buf *got, const rp_buf *want, const char *what);
/* Basic `at` of message `key`: its `bytes` bytes. */
uint64_t rp_value(uint64_t key, uint64_t at);

/* -- communicators -- */

enum rp_comm_state { RP_EMPTY, RP_LIVE, RP_STARTED }; /* RP_STARTED: an MPI_Comm_idup whose request was not waited for */

typedef struct rp_comm {
    enum rp_comm_state state;
    bool is_inter, is_order_known; /* order unknown: a topology with reorder; its members have learned it, others have not */
    int n[2];                      /* ranks of each group; n[1] 0: intracommunicator */
    int members[2][RP_RANKS];      /* ranks in the base communicator */
    uint32_t born, parent;         /* step; slot that it duplicates, for MPI_Comm_compare */
    int dims;                      /* of a Cartesian topology; 0: none */
    int dim[3], periodic[3];
    int marks;      /* value of the copied attribute; -1: not set */
    bool is_buffered; /* a buffer for MPI_Bsend is attached */
    /* of this rank, valid if is_member */
    bool is_member;
    int side, rank; /* group and rank in it */
    MPI_Comm mpi;
    MPI_Request started;
    void *session; /* MPI_Session *, if it is one's */
    void *buffer;
    uint64_t buffered;
} rp_comm;

/* -- operations in flight -- */

typedef struct rp_op rp_op;
struct rp_op {
    MPI_Request req;
    uint32_t step;
    const char *what;
    bool is_used, is_persistent;
    void (*ready)(rp *rp, rp_op *op);                           /* called before the op is waited for; NULL: nothing to do */
    void (*done)(rp *rp, rp_op *op, const MPI_Status *status);  /* verifies and frees */
    void *arg;
};

rp_op *rp_op_add(rp *rp, const char *what, void (*done)(struct rp *, rp_op *, const MPI_Status *), void *arg);
/* Waits for one op. */
void rp_op_finish(rp *rp, rp_op *op);
/* Tests or waits for some of the ops by a random call. must: the call may block. */
void rp_ops_some(rp *rp, bool must);
void rp_ops_all(rp *rp);

/* -- the plan -- */

typedef struct rp_message {
    int from, to, side; /* ranks; side: the sender's group */
    int to_side;        /* of a collective: the root's group */
    int tag;
    rp_sig sig;
    uint64_t stype, rtype; /* seeds */
    int sdepth, rdepth;
    uint32_t bytes, spare;   /* most bytes sent; more items at the receiver than the message needs */
    int mode, sform, rform;  /* enums of p2p.c */
    bool any_tag, is_packed_out, is_packed_in, is_large;
    bool is_same; /* the receiver's type and count are the sender's; of a collective: in place */
    bool is_wide; /* of a collective: many ranks, so blocks are shorter */
} rp_message;

typedef struct rp_pair {
    bool is_used, is_partitioned;
    int comm;
    uint32_t born, starts;
    rp_message message;
    int parts[2]; /* partitions of sender and receiver */
    /* of this rank */
    rp_op *op[2];    /* sender's, receiver's, in flight */
    void *halves[2];
} rp_pair;

/* -- windows -- */

enum rp_use { RP_PUT, RP_GET, RP_ACCUMULATE, RP_GET_ACCUMULATE, RP_FETCH, RP_SWAP, RP_USES };

/* One access by one rank: a place of the target that no other access of the epoch changes, but for those of one chain. */
typedef struct rp_access {
    enum rp_use use;
    int origin, target; /* ranks in the window's group */
    int op;             /* of ops in access.c */
    rp_sig sig;
    uint64_t types[3]; /* seeds: target, origin, result */
    int depths[3];
    uint32_t counts[3]; /* items */
    int64_t at;         /* bytes from the target's base to its first item's origin */
    uint64_t key;
    bool is_chained;    /* at the place of an earlier access of the step, in its order */
    bool is_after_flush, is_by_request, is_large, is_null, is_equal;
} rp_access;

enum rp_way { RP_FENCE, RP_PSCW, RP_LOCK, RP_LOCK_ALL, RP_WAYS };

typedef struct rp_window {
    bool is_used, is_dynamic, is_shared, is_created; /* none: MPI_Win_allocate */
    bool has_no_locks;
    rp_comm group; /* as it was: the communicator may be freed before the window */
    uint32_t born, bytes[RP_RANKS];
    int unit[RP_RANKS];
    bool is_open; /* an epoch, or accesses with locks since all ranks last met */
    enum rp_way way;
    bool is_exclusive;
    int roles[RP_RANKS];       /* 1: origin, 2: target, 3: both */
    uint32_t used[RP_RANKS];   /* bytes of the target taken by accesses of the epoch */
    /* of this rank */
    MPI_Win mpi;
    MPI_Comm comm;
    uint8_t *mem, *model[RP_RANKS];
    MPI_Aint base[RP_RANKS]; /* of a dynamic window: addresses */
    uint32_t region[RP_REGIONS], regions; /* own regions of a dynamic window: first bytes, and number */
    struct rp_pending *pending;
} rp_window;

typedef struct rp_step {
    uint32_t index;
    int kind;
    rp_dice dice; /* further draws that all ranks share */
    int comm, other, slot, count, form, root, shift, variant;
    int n;
    rp_message messages[RP_MESSAGES];
    int colors[RP_RANKS], keys[RP_RANKS];
    rp_comm made[2]; /* models of new communicators, for slots slots[] */
    int slots[2];
    rp_access accesses[RP_ACCESSES];
    char text[RP_TEXT];
} rp_step;

typedef struct rp_options {
    uint64_t seed;
    uint32_t steps;
    uint8_t *only; /* [steps]: nonzero: performed; NULL: all */
    const char *plant;
    uint32_t plant_step;
    bool lists, is_verbose;
} rp_options;

struct rp {
    const rp_options *options;
    uint64_t seed;
    int thread;
    int rank, size;
    MPI_Comm base, control; /* control: tokens before ready sends */
    rp_dice own;   /* this rank's draws: forms that the others need not know */
    uint32_t now;  /* step under way */
    bool is_planted, may_plant; /* may_plant: another rank will see what is sent now */
    rp_comm comms[RP_COMMS];
    rp_pair pairs[RP_PAIRS];
    rp_window windows[RP_WINDOWS];
    int nodes[RP_RANKS]; /* of each rank of the base communicator: the least rank that shares memory with it */
    rp_op ops[RP_OPS];
    int flying;
    int keyval;
    MPI_Op ops_user[2]; /* commutative, not */
    void *garbage;      /* list of blocks to be freed at the end */
    void *buffer;       /* for MPI_Bsend */
    uint64_t buffered;
    rp_step step;
};

/* Draws step `index` from the seed and the state of the plan, and advances that state. */
void rp_plan(rp *rp, rp_step *step, uint32_t index);
/* One text per line: steps around `index`. */
void rp_list(const rp *rp, uint32_t first, uint32_t last);
/* Runs a plan on a communicator. Every failure ends the job by MPI_Abort. Returns 0. */
int rp_run(const rp_options *options, MPI_Comm comm, int thread);
/* Fault to plant now? Each once. */
bool rp_plants(rp *rp, const char *what);

void rp_fail(rp *rp, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void rp_check(rp *rp, int code, const char *call, int line);
#define RP_OK(rp, call) rp_check(rp, call, #call, __LINE__)
#define RP_SAME(rp, got, want, what)                                                                       \
    do {                                                                                                   \
        long long rp_got = (long long)(got), rp_want = (long long)(want);                                  \
        if (rp_got != rp_want)                                                                             \
            rp_fail(rp, "%s: expected %lld, got %lld (line %d)", what, rp_want, rp_got, __LINE__);          \
    } while (0)
void *rp_alloc(size_t bytes);
/* Freed at the end of the program. */
void rp_garbage(rp *rp, void *block);
void rp_say(rp_step *step, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t rp_key(const rp *rp, uint32_t step, int source, uint32_t nth);
/* My rank in group `side`; -1: not in it. */
int rp_comm_rank_in(const rp *rp, const rp_comm *comm, int side);
/* A free slot above `after`; -1: none. */
int rp_comm_slot(const rp *rp, int after);
/* Finds this rank in the model's groups. */
void rp_comm_find_self(rp *rp, rp_comm *comm);
/* Enters a new communicator of the plan into its slot. */
rp_comm *rp_comm_enter(rp *rp, rp_step *step, int slot, const rp_comm *model);
/* The communicator that a call made must be the one of the plan. */
void rp_comm_verify(rp *rp, rp_comm *comm);
int rp_comm_pick(const rp *rp, rp_dice *dice, bool may_inter, bool is_known);

/* Kinds of steps. plan draws the step; run performs this rank's part. */
#define RP_KIND(name) \
    void plan_##name(rp *rp, rp_step *step); \
    void run_##name(rp *rp, rp_step *step)
RP_KIND(messages);
RP_KIND(wild);
RP_KIND(shift);
RP_KIND(pair);
RP_KIND(start);
RP_KIND(unpair);
RP_KIND(cancel);
RP_KIND(greq);
RP_KIND(coll);
RP_KIND(colls);
RP_KIND(dup);
RP_KIND(finish_dup);
RP_KIND(split);
RP_KIND(create);
RP_KIND(inter);
RP_KIND(merge);
RP_KIND(topology);
RP_KIND(session);
RP_KIND(free);
RP_KIND(queries);
RP_KIND(groups);
RP_KIND(types);
RP_KIND(pack);
RP_KIND(window);
RP_KIND(access);
RP_KIND(unwindow);

/* Ends what a plan leaves: pairs, windows, communicators. */
void rp_pairs_close(rp *rp);
void rp_windows_close(rp *rp);
void rp_nodes_find(rp *rp);
void rp_comms_close(rp *rp);
void rp_comm_release(rp *rp, rp_comm *comm);
int rp_attr_open(rp *rp);
void rp_user_ops_open(rp *rp);
/* Sends and receives of one message: used by p2p.c, wild.c, pairs.c. */
void rp_send_message(rp *rp, const rp_comm *comm, const rp_message *message, uint64_t key);
void rp_receive_message(rp *rp, const rp_comm *comm, const rp_message *message, uint64_t key);
void rp_message_draw(rp *rp, rp_dice *dice, rp_message *message, uint32_t most_bytes);
void rp_message_say(rp_step *step, const rp_message *message);

/* A side of a message: type, buffer and count. */
typedef struct rp_end {
    rp_type type;
    rp_buf buf, want;
    uint64_t count;  /* items given to MPI */
    uint64_t basics; /* of the message */
    uint64_t key;
    int source, tag;
    bool is_packed, is_large;
} rp_end;
void rp_end_send(rp *rp, rp_end *end, const rp_message *message, uint64_t key);
void rp_end_receive(rp *rp, rp_end *end, const rp_message *message, uint64_t key);
void rp_end_verify(rp *rp, rp_end *end, const MPI_Status *status, const char *what);
void rp_end_fill(rp *rp, rp_end *end, uint64_t key);
void rp_end_expect(rp *rp, rp_end *end, uint64_t key);
void rp_end_close(rp *rp, rp_end *end);
bool rp_buffer_room(rp *rp, rp_comm *comm, uint64_t bytes);

/* Draws an access of the open epoch; false: the target has no room left. */
bool rp_access_draw(rp *rp, rp_step *step, rp_window *window, rp_access *access);
/* Performs it, if it is this rank's, and changes the model of the target. Every member calls it, in the order of the plan. */
void rp_access_run(rp *rp, rp_window *window, const rp_access *access);
/* Verifies and frees this rank's accesses of `target` (-1: all) that a flush or the epoch's end has completed. */
void rp_accesses_done(rp *rp, rp_window *window, int target);
/* Completes the requests of `target`'s accesses (-1: all). */
void rp_accesses_wait(rp *rp, rp_window *window, int target);

#endif

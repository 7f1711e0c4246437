/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_area: flags and slots of a node area. Implemented by shmcoll_area.c; used by the other files shmcoll*.
 * All functions require worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_AREA_H
#define WEFT_COLLECTIVES_SHMCOLL_AREA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/nt_copy.h"
#include "collectives/team.h"
#include "core/wait.h"
#include "core/worker.h"
#include "mem/segment.h"
#include "type/kernels.h"

typedef struct weft_shmcoll weft_shmcoll;

/* Protocol. Operations are numbered from 1, equal on all members. Operation s uses line s % depth of each member. Its data is in the line,
 * or, if it is longer, in slot s % SLOTS: short data in part s / SLOTS % parts of the slot, so that members may be further apart.
 * Every member posts s once: it has finished all operations before s - LAG, and its data of s is in its line or slot. Then it waits for the
 * posts that it needs. A scan is a chain instead: each member awaits the next lower member's post of s, reads its data, writes its own data
 * and posts s. So a post of s says that the member reads no data of s or older (shmcoll.c, relay_round).
 * Reuse is safe by these rules (weft_shmcoll_begin):
 *   - A member that writes in s has seen all posts of s - ahead + 1 + LAG: no member still reads what it overwrites, the data of s - ahead
 *     or older (weft_shmcoll_ahead).
 *   - In a run of scans (relays_since), once all posts of its operation LAG are seen, no member reads older data than the run's, and of
 *     those only the next member reads: its post of s - ahead suffices. So each member may be `ahead` operations ahead of the next one
 *     (weft_shmcoll_begin_relay).
 *   - A member that only posts s has seen all posts of s - ahead: no flag that a member still awaits is older than a line.
 * Dedicated CPUs: there are as many lines as slots, which stay in the nearest cache, and each post wakes the members that sleep.
 * Oversubscribed: there are more lines, so that writers of short data run far ahead of the readers, and each reads many operations while it
 * has a CPU. A member that sleeps until all have posted an operation says which one (`wanted`): only the last post wakes it. */
#define WEFT_SHMCOLL_SLOTS 8   /* slots of a member; lines if CPUs are dedicated */
#define WEFT_SHMCOLL_DEPTH 64  /* lines of a member if they are oversubscribed; published calls */
#define WEFT_SHMCOLL_SHALLOW 32 /* then, of many members or in a lane */
#define WEFT_SHMCOLL_LAG 2     /* operations before the last posted one that a member may still read (allreduce's pipeline) */
#define WEFT_SHMCOLL_RANKS 256 /* most members of an area */
#define WEFT_SHMCOLL_BYTES (WEFT_SEGMENT_AREA_BYTES / 2) /* most bytes of lines and slots; lanes (shmcoll_lane.h) take the rest */
#define WEFT_SHMCOLL_INLINE 48 /* bytes; data up to this length is in the line, not in the slot */

typedef struct weft_shmcoll_line {
    _Alignas(WEFT_LINE) _Atomic uint64_t posted; /* last operation posted here; release by its member, acquire by readers */
    _Atomic uint64_t call_hash; /* hash of the member's calls, if it writes in `posted`; else older and not read by correct programs */
    char data[WEFT_SHMCOLL_INLINE]; /* aligned for every basic type */
} weft_shmcoll_line;

typedef struct weft_shmcoll_hdr {
    /* Mask of the members that sleep until all have posted call_logs[].wants. */
    _Alignas(WEFT_LINE) _Atomic uint64_t wanted[WEFT_SHMCOLL_RANKS / 64];
    _Alignas(WEFT_LINE) _Atomic uint32_t closed; /* members that have closed the area */
    _Atomic uint32_t stopped; /* 1: a member has found that calls differ, and reports it */
    _Atomic uint32_t causes;  /* members that stopped; the first one writes the cause */
    _Atomic uint32_t has_cause; /* 1: cause_code and cause are valid; release, pairs with describe_gone() */
    int32_t cause_code;       /* enum weft_status */
    char cause[WEFT_NOTIFY_BYTES + 60];
} weft_shmcoll_hdr;

typedef struct weft_shmcoll_call {
    _Atomic uint64_t call_hash; /* hash of the member's calls up to this one */
    _Atomic uint64_t what;  /* weft_call.what */
    _Atomic uint64_t bytes; /* weft_call.bytes */
} weft_shmcoll_call;

enum weft_shmcoll_gone { WEFT_SHMCOLL_HERE, WEFT_SHMCOLL_LEFT, WEFT_SHMCOLL_STOPPED };

/* One member's published calls. All stores are releases, so that read_call() detects an entry that is being overwritten. */
typedef struct weft_shmcoll_call_log {
    _Alignas(WEFT_LINE) _Atomic uint64_t calls; /* calls published so far; number n is in call[n % DEPTH] */
    _Atomic uint64_t gone;                      /* enum weft_shmcoll_gone; not HERE: the member posts no more */
    _Atomic uint64_t wants;                     /* if its bit in `wanted` is set: an operation */
    weft_shmcoll_call call[WEFT_SHMCOLL_DEPTH];
} weft_shmcoll_call_log;

struct weft_shmcoll_csum {
    uint32_t sum;        /* CRC32C of the packed bytes */
    uint32_t is_tainted; /* the writer derived the data from damaged data */
};

/* A nonblocking call through an area (shmcoll_queue.h), or each start of a persistent one through its lane. Owned by its schedule. */
typedef struct weft_shmcoll_pending {
    weft_list_link link;      /* in area->pending while the call is under way */
    weft_shmcoll *area;
    enum weft_coll_kind kind;
    weft_coll args;           /* what they point to is valid while the call is under way */
    weft_call call;
    uint32_t tag;             /* of its schedule */
    uint64_t call_hash, number; /* of the member's calls up to this one, and their count (shmcoll_check.h) */
    bool is_begun;            /* has performed operations of the area, or may have */
    int rc;                   /* error that ends the call, also set by stop.c; 0: none */
    int damage;               /* first damage that this member found, 0: none */
    void (*end)(struct weft_shmcoll_pending *pending); /* the call has ended, by rc or damage, but for area->left blocks */
    void (*rest)(weft_sched *sched, const weft_coll *args); /* the algorithm for these (weft_sched_algorithm); NULL: there are none */
    void *owner;
} weft_shmcoll_pending;

/* A call whose data fits one line of each member, with what follows from its arguments (shmcoll_short.h). */
typedef struct weft_shmcoll_short {
    uint64_t sendcount, recvcount; /* the arguments: a call is the same if these are equal */
    const weft_type *sendtype, *recvtype;
    const weft_op *op;
    bool in_place;
    bool is_valid; /* false: there was no such call */
    bool from_recv, has_own; /* this member writes from recvbuf; it copies its own block past its line */
    uint32_t bytes;          /* of a block, 0: a barrier */
    uint32_t written;        /* that this member writes */
    uint32_t from, part, own_from, own_to; /* offsets: of these in its buffer; of its part in each line; of its own block */
    uint64_t elements;       /* of a block, for the kernel */
    weft_op_kernel *kernel;
    weft_call call;          /* blocking, root 0 */
    const struct weft_coll_rule *rule; /* by which the area was chosen */
} weft_shmcoll_short;

/* A lane in use: only member 0 keeps them. */
typedef struct weft_shmcoll_taken {
    weft_list_link link; /* in area->lanes_taken */
    uint64_t from, end;  /* in area->lanes */
} weft_shmcoll_taken;

struct weft_shmcoll {
    uint64_t op;    /* current operation of this member */
    uint64_t known; /* an operation that all members are known to have posted */
    uint64_t last_long; /* the last operation whose data took a whole slot, 0: none; before the current call */
    bool was_long;      /* the current call's operations take whole slots */
    uint32_t stream;   /* root and direction of the current call; 0: members both write and read. Equal on all members */
    bool is_streaming; /* the previous call has the same `stream`: writers may be whole calls ahead of the readers */
    uint64_t relays_since; /* all operations from this one on are those of scans and exscans; 0: the latest call is neither */
    uint64_t next_known;   /* an operation that the next member is known to have posted */
    uint64_t call_hash; /* hash of this member's calls up to the current one */
    uint64_t log_hash, calls; /* hash and count of all its calls (shmcoll_check.h) */
    weft_shmcoll_line *lines;
    weft_shmcoll_call_log *call_logs; /* [ranks], in the area */
    char *slots;    /* [ranks][SLOTS] of slot_bytes, in the area */
    uint32_t rank, ranks, slot_bytes;
    uint32_t depth;       /* lines of a member, a power of two */
    uint32_t parts;       /* of a slot, for short data: a power of two, depth / SLOTS or half of that */
    uint32_t short_bytes; /* longest data that takes a part of a slot only; 0: none does */
    bool is_oversubscribed, needs_fence, is_tainted; /* is_tainted: weft_shmcoll_set_tainted() */
    int rc; /* a member failed, or calls differ: the area is not used any more; 0: none */
    bool is_late_compared; /* a call that came after the team had stopped was compared (weft_shmcoll_truncation) */
    bool is_second; /* another member found before this one that calls differ */
    bool is_waiting; /* this member waits in the area, and polls */
    uint64_t awaited; /* operation whose posts it waits for; 0: it does not wait */
    int32_t awaited_member; /* nonblocking calls: whose post that is; < 0: all */
    uint32_t arrived; /* awaited_member < 0: members 0 .. arrived - 1 have posted `awaited` */
    weft_list_link pending; /* nonblocking calls under way, oldest first: performed one after the other */
    weft_list_link link; /* in worker->areas while there are any */
    weft_shmcoll_pending *current; /* the one that is performed; NULL: none, or not begun */
    struct weft_shmcoll_exchange *exchange; /* its state; kept for the next one; NULL: there was none yet */
    bool pauses; /* of the current call: a look at a flag that is not set yet is followed by a pause (weft_shmcoll_looked) */
    uint32_t idle_polls; /* polls since it last advanced */
    int attempted;       /* result of weft_shmcoll_attempt() until the call is queued; 0: none */
    uint64_t polled;     /* operation before which a nonblocking call polled last */
    uint32_t turns;         /* of looks or yields that an attempted call may still take; 0 unless ranks share CPUs */
    weft_wait_yields yields; /* of these */
    weft_attempts attempts; /* of calls that weft_shmcoll_may_attempt() allows */
    char damage_text[400]; /* of its damage */
    weft_moved moved;      /* of the latest alltoallv (shmcoll_alltoallv.c) */
    bool was_sent;         /* it went on by messages: some member has long blocks; equal on all members */
    weft_shmcoll_short (*shorts)[2]; /* [WEFT_COLL_LAST]: the latest short call of each kind; [1]: with this member as the root; NULL: none */
    uint32_t left;         /* blocks, sent or received, that it leaves to messages; of a nonblocking call of another kind 0 */
    struct {
        uint64_t call;     /* number of a nonblocking call, or a call by messages */
        uint32_t sequence; /* number of its schedule */
    } numbered[WEFT_SHMCOLL_DEPTH]; /* the latest of them: entry call % DEPTH */
    weft_team *team; /* stops when this member does; NULL: none (tests) */
    const uint32_t *node_ranks; /* members' ranks in the communicator; NULL: equal */
    struct weft_shmcoll_csum *csums; /* [ranks][SLOTS][ranks], in the area; NULL: no checksums, and the next three are unused */
    enum weft_coll_kind kind;   /* current call */
    int root, damage;           /* current call; damage: first damage that this member found, 0: none */
    uint32_t damages;           /* fragments found damaged since attach */
    weft_shmcoll_hdr *hdr;
    weft_worker *worker;
    weft_nt_copy store; /* chooses between cached and non-temporal stores into slots */
    weft_rank_page *pages[WEFT_SHMCOLL_RANKS];
    uint64_t bytes; /* mapped length, unmapped by weft_shmcoll_close(); 0: the caller owns the mapping */
    uint32_t area_index;  /* index in the segment; valid if bytes */
    bool is_lane;   /* of one persistent call (shmcoll_lane.h) */
    char *lanes;    /* memory for lanes, in the area */
    uint64_t lanes_bytes; /* 0: none */
    weft_list_link lanes_taken; /* member 0: lanes in use, by place */
};

/* Recipients of a post: all members, none in particular. */
#define WEFT_SHMCOLL_ALL (-1)
#define WEFT_SHMCOLL_NONE (-2)
/* Bytes of an area of `bytes` that are used; only these are reserved and mapped. */
uint64_t weft_shmcoll_used_bytes(uint64_t bytes, uint32_t ranks, unsigned flags);
/* Posts s. Does not block. `to`: members that may wait for this one alone: WEFT_SHMCOLL_ALL, WEFT_SHMCOLL_NONE, or a member. */
void weft_shmcoll_post(weft_shmcoll *area, uint64_t s, int to);
/* The same in a scan, for the next member and the lower one. */
void weft_shmcoll_post_relay(weft_shmcoll *area, uint64_t s);
/* Flags of an area; equal on all members. */
enum weft_shmcoll_flags {
    WEFT_SHMCOLL_OVERSUBSCRIBED = 1, /* oversubscribed: more ranks than CPUs */
    WEFT_SHMCOLL_FENCE = 2,   /* a member has no membarrier() */
    WEFT_SHMCOLL_LANE = 8,    /* the area is a lane (shmcoll_lane.h) */
    WEFT_SHMCOLL_CSUM = 4,    /* a member has set WEFT_CHECKSUM: data in slots is checked (shmcoll_csum.h) */
};
/* Attaches an area: `base` is zeroed memory of `bytes`, mapped by all `ranks` (2..WEFT_SHMCOLL_RANKS) members; pages[i] is member
 * i's rank page. NULL: out of memory, or `bytes` is too small. */
weft_shmcoll *weft_shmcoll_attach(weft_worker *worker, void *base, uint64_t bytes, uint32_t rank, uint32_t ranks,
                            weft_rank_page *const *pages, unsigned flags);
/* Attaches a lane of `area` in zeroed memory. lane: zeroed; its exchange may be set. */
void weft_shmcoll_attach_lane(weft_shmcoll *area, void *base, uint64_t bytes, weft_shmcoll *lane);
/* Bytes of a lane with slots of slot_bytes at least; *head: of these the first that must be zero. */
uint64_t weft_shmcoll_bytes_of(const weft_shmcoll *area, uint32_t slot_bytes, uint64_t *head);
/* area may be NULL. The last member to close frees the area. */
void weft_shmcoll_close(weft_shmcoll *area);
/* Bytes that one member can write in one operation. */
uint32_t weft_shmcoll_slot_bytes(const weft_shmcoll *area);
/* Another member has found before this one that calls differ. */
bool weft_shmcoll_is_second(const weft_shmcoll *area);
/* A call of this member waits in the area. */
bool weft_shmcoll_is_waiting(const weft_shmcoll *area);
/* This member leaves the area by error rc, unless it has left before: members that wait for it, now or later, return an error. */
void weft_shmcoll_leave(weft_shmcoll *area, int rc) __attribute__((cold));
/* Whether data that this member writes from now on derives from damaged data. */
void weft_shmcoll_set_tainted(weft_shmcoll *area, bool is_tainted);
/* Oversubscribed: the post that completes operation s wakes this member. Call before a sleep only, once the ifaces are armed; then look
 * again. */
void weft_shmcoll_want(weft_shmcoll *area, uint64_t s);
/* Wakes all sleeping members; they compare calls again. */
void weft_shmcoll_wake_all(weft_shmcoll *area);
/* This member posts no more, after close (LEFT) or an error (STOPPED). Wakes the others. */
void weft_shmcoll_set_gone(weft_shmcoll *area, enum weft_shmcoll_gone how);

/* s % depth */
static inline uint64_t weft_shmcoll_index(const weft_shmcoll *area, uint64_t s) { return s & (area->depth - 1); }

static inline weft_shmcoll_line *weft_shmcoll_line_of(const weft_shmcoll *area, uint32_t member, uint64_t s)
{
    return &area->lines[(uint64_t)member * area->depth + weft_shmcoll_index(area, s)];
}

/* Where `member` writes its data of s. bytes: most that a writer writes in an operation of the call, equal on all members. */
static inline char *weft_shmcoll_place(const weft_shmcoll *area, uint32_t member, uint64_t s, uint64_t bytes)
{
    char *slot;

    if (bytes <= WEFT_SHMCOLL_INLINE)
        return weft_shmcoll_line_of(area, member, s)->data;
    slot = area->slots + ((uint64_t)member * WEFT_SHMCOLL_SLOTS + s % WEFT_SHMCOLL_SLOTS) * area->slot_bytes;
    return bytes <= area->short_bytes ? slot + (s / WEFT_SHMCOLL_SLOTS & (area->parts - 1)) * area->short_bytes : slot;
}

/* A call begins whose writers write so many bytes in an operation at most. Returns `ahead` for its operations: what a writer overwrites in
 * s is data of s - ahead or older. A slot's last long data is as many operations old as there are slots, or more. Equal on all members. */
static inline uint32_t weft_shmcoll_ahead(weft_shmcoll *area, uint64_t bytes)
{
    uint32_t shorts;
    uint64_t age;

    if (weft_unlikely(area->was_long))
        area->last_long = area->op;
    area->was_long = bytes > WEFT_SHMCOLL_INLINE && bytes > area->short_bytes;
    if (bytes <= WEFT_SHMCOLL_INLINE && !area->csums)
        return area->depth;
    shorts = area->parts * WEFT_SHMCOLL_SLOTS;
    age = area->last_long ? area->op + 1 - area->last_long : shorts;
    if (area->was_long || area->csums || age <= WEFT_SHMCOLL_SLOTS)
        return WEFT_SHMCOLL_SLOTS;
    return age < shorts ? (uint32_t)age : shorts;
}

/* Value of area->stream for a call in which the root only writes, or only reads. */
static inline uint32_t weft_shmcoll_stream_of(int root, bool is_from_root) { return 2 * (uint32_t)root + 2 + is_from_root; }

/* A call begins. stream: weft_shmcoll_stream_of(), or 0. */
static inline void weft_shmcoll_note_stream(weft_shmcoll *area, uint32_t stream)
{
    area->is_streaming = stream && area->stream == stream;
    area->stream = stream;
}

static inline bool weft_shmcoll_has_posted(const weft_shmcoll *area, uint32_t member, uint64_t s)
{
    return atomic_load_explicit(&weft_shmcoll_line_of(area, member, s)->posted, memory_order_acquire) >= s;
}

/* The first member from `at` on that has not posted s. */
static inline uint32_t weft_shmcoll_skip_posted(const weft_shmcoll *area, uint32_t at, uint64_t s)
{
    while (at < area->ranks && weft_shmcoll_has_posted(area, at, s))
        at++;
    return at;
}

/* All members have posted s, this one too. */
static inline bool weft_shmcoll_is_complete(const weft_shmcoll *area, uint64_t s)
{
    return weft_shmcoll_skip_posted(area, 0, s) == area->ranks;
}

/* Rank of `member` in the communicator. */
static inline uint32_t weft_shmcoll_rank_of(const weft_shmcoll *area, uint32_t member)
{
    return area->node_ranks ? area->node_ranks[member] : member;
}

/* Whether the post for which nonblocking calls wait has come, or some of the posts; or they wait for none. */
static inline bool weft_shmcoll_has_news(const weft_shmcoll *area)
{
    uint32_t member = area->awaited_member < 0 ? area->arrived : (uint32_t)area->awaited_member;

    return !area->awaited || member == area->ranks || weft_shmcoll_has_posted(area, member, area->awaited);
}

#define WEFT_SHMCOLL_PAUSE 4 /* looks that a pause counts for */
/* Called after a look at a flag that is not set. left: looks so far, at least 1. Returns the looks that remain. */
static inline uint32_t weft_shmcoll_looked(const weft_shmcoll *area, uint32_t left)
{
    if (!area->pauses)
        return left - 1;
    weft_cpu_relax();
    return left > 1 + WEFT_SHMCOLL_PAUSE ? left - 1 - WEFT_SHMCOLL_PAUSE : 0;
}

#define WEFT_SHMCOLL_POLL_EVERY 64 /* operations between two polls of the ifaces by a member that never waits here */
/* Whether the next nonblocking call polls. */
static inline bool weft_shmcoll_is_poll_due(const weft_shmcoll *area) { return area->op - area->polled >= WEFT_SHMCOLL_POLL_EVERY; }

/* Whether a nonblocking call waits for a post of `member` (all members are on this node). */
static inline bool weft_shmcoll_awaits(const weft_shmcoll_pending *pending, uint32_t member)
{
    const weft_shmcoll *area = pending->area;

    return area->current == pending && area->awaited && member != area->rank &&
           (area->awaited_member < 0 || (uint32_t)area->awaited_member == member) &&
           !weft_shmcoll_has_posted(area, member, area->awaited);
}

#define WEFT_SHMCOLL_OFFER_BYTES 4096

/* Call before each copy of `bytes`: before a long one, offers the lock to other threads. At most one slot is copied between two offers. */
static inline void weft_shmcoll_offer(const weft_shmcoll *area, uint64_t bytes)
{
    if (bytes > WEFT_SHMCOLL_OFFER_BYTES)
        weft_worker_offer(area->worker);
}

#endif

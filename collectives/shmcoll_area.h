/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_area: the flags and slots of a node area. shmcoll_area.c attaches it, shmcoll.c's operations use it.
 *
 * Operations are numbered from 1, alike on all members. Operation s uses line and slot s % DEPTH of each member. In it every
 * member *posts* s once: "I have finished all operations before s - LAG, and what I write in s stands in my line or slot". Then
 * it waits for those posts that it needs. Hence the rule that makes reuse safe (weft_shmcoll_begin):
 *   who writes in s has seen that all posted s - DEPTH + 1 + LAG, so nobody still reads what s - DEPTH left there;
 *   who only posts has seen that all posted s - DEPTH, so that no counter of s - DEPTH is still filling.
 * Dedicated: flags are looked at one by one, each in its member's own line. Oversubscribed: the posts are counted too, and the last one
 * wakes those who wait for all, so that nobody is woken in vain.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_AREA_H
#define WEFT_COLLECTIVES_SHMCOLL_AREA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/nt_copy.h"
#include "collectives/shmcoll.h"
#include "core/worker.h"
#include "mem/segment.h"

#define WEFT_SHMCOLL_DEPTH 8
#define WEFT_SHMCOLL_LAG 2 /* operations before the one just posted that a member may still be reading (allreduce's pipeline) */
#define WEFT_SHMCOLL_RANKS 64
#define WEFT_SHMCOLL_INLINE 48

typedef struct weft_shmcoll_line {
    _Alignas(WEFT_LINE) _Atomic uint64_t posted; /* release by its member, acquire by who waits */
    _Atomic uint64_t chain; /* of its calls, where it wrote; else of an earlier operation, which no right program reads (shmcoll_check.h) */
    char data[WEFT_SHMCOLL_INLINE];                 /* aligned for every basic type */
} weft_shmcoll_line;

typedef struct weft_shmcoll_count {
    _Alignas(WEFT_LINE) _Atomic uint64_t posts; /* of all operations that use this place, ever */
    _Alignas(WEFT_LINE) _Atomic uint64_t wanted; /* members who sleep until the present one is complete */
} weft_shmcoll_count;

typedef struct weft_shmcoll_hdr {
    weft_shmcoll_count count[WEFT_SHMCOLL_DEPTH];
    _Alignas(WEFT_LINE) _Atomic uint32_t closed; /* members that are through with the area */
    _Atomic uint32_t stopped; /* a member stopped: calls differ, which one of them says aloud */
    _Atomic uint32_t causes;  /* members that stopped; the first of them wrote the cause, and then has_cause */
    _Atomic uint32_t has_cause;
    int32_t cause_code;
    char cause[WEFT_NOTIFY_BYTES + 60];
} weft_shmcoll_hdr;

struct weft_shmcoll {
    uint64_t op;    /* the operation that we are in */
    uint64_t known; /* all members have posted this one */
    uint64_t chain, calls; /* shmcoll_check.h: of our calls so far, and how many */
    weft_shmcoll_line *lines;
    struct weft_shmcoll_notes *notes; /* [ranks], in the area */
    char *slots;
    uint32_t rank, ranks, slot_bytes;
    bool is_oversubscribed, needs_fence, is_tainted;
    int rc; /* a member is lost, or calls differ: the area is of no more use */
    bool is_second; /* another one found first that they do */
    bool is_waiting; /* in a wait of ours, which polls */
    weft_team *team; /* stops with us; NULL: none (tests) */
    const uint32_t *node_ranks; /* members' ranks in the communicator; NULL: the same */
    struct weft_shmcoll_csum *sums; /* [ranks][DEPTH][ranks], in the area; NULL: nothing is checked. Then, of the present call: */
    enum weft_coll_kind kind;
    int root, damage;           /* damage: 0, or the error that it ends with here */
    uint32_t damages;
    weft_shmcoll_hdr *hdr;
    weft_worker *worker;
    weft_nt_copy store; /* how what we write reaches its readers soonest */
    weft_rank_page *pages[WEFT_SHMCOLL_RANKS];
    uint64_t bytes; /* of the view, when it is ours to unmap; 0: the caller's */
    uint32_t area;  /* its index in the segment */
};

/* Enters the next operation and gives its number; 0 on error (node->rc). is_writer: we shall write to our place in it. */
uint64_t weft_shmcoll_begin(weft_shmcoll *node, bool is_writer);
/* Says that our part in s stands. to: who may be waiting for us alone: WEFT_SHMCOLL_ALL, WEFT_SHMCOLL_NONE, or a member. */
#define WEFT_SHMCOLL_ALL (-1)
#define WEFT_SHMCOLL_NONE (-2)
/* What of an area of `bytes` is used: only that is reserved and mapped. */
uint64_t weft_shmcoll_used_bytes(uint64_t bytes, uint32_t ranks, unsigned flags);
void weft_shmcoll_post(weft_shmcoll *node, uint64_t s, int to);
/* Waits until `member` posted s, having written in it; it must have called what we call. */
int weft_shmcoll_await(weft_shmcoll *node, uint32_t member, uint64_t s);
/* Waits until all posted s, the others having written in it. */
int weft_shmcoll_await_all(weft_shmcoll *node, uint64_t s);

/* Where `member` writes in s when all writers of s write at most `bytes`. */
static inline char *weft_shmcoll_place(const weft_shmcoll *node, uint32_t member, uint64_t s, uint64_t bytes)
{
    uint64_t i = (uint64_t)member * WEFT_SHMCOLL_DEPTH + s % WEFT_SHMCOLL_DEPTH;
    return bytes <= WEFT_SHMCOLL_INLINE ? node->lines[i].data : node->slots + i * node->slot_bytes;
}

static inline weft_shmcoll_line *weft_shmcoll_line_of(const weft_shmcoll *node, uint32_t member, uint64_t s)
{
    return &node->lines[(uint64_t)member * WEFT_SHMCOLL_DEPTH + s % WEFT_SHMCOLL_DEPTH];
}

static inline bool weft_shmcoll_has_posted(const weft_shmcoll *node, uint32_t member, uint64_t s)
{
    return atomic_load_explicit(&weft_shmcoll_line_of(node, member, s)->posted, memory_order_acquire) >= s;
}

/* For texts. */
static inline uint32_t weft_shmcoll_name(const weft_shmcoll *node, uint32_t member) { return node->node_ranks ? node->node_ranks[member] : member; }

#define WEFT_SHMCOLL_OFFER_BYTES 4096

/* Before a part is copied: a thread that waits for the worker waits no longer than for one slot's copy. */
static inline void weft_shmcoll_offer(const weft_shmcoll *node, uint64_t bytes)
{
    if (bytes > WEFT_SHMCOLL_OFFER_BYTES)
        weft_worker_offer(node->worker);
}

#endif

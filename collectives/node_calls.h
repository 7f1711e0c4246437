/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_calls: each member of a node area notes its blocking calls where the others can read them, so that a wrong program (one
 * member calls something else, or with another count, root or operator) is told what is wrong, and nobody waits for ever.
 * A hash of all calls so far, the chain, is the same on members that called the same. Who writes in an operation leaves its chain
 * beside its flag (node_area.h), in the cache line that readers fetch anyway: one word is compared for each flag. Who waits long also looks
 * at the notes of those for whom it waits. Called by coll.c for each call, by node.c where flags are read.
 * Invariant: members that differ stop: they post no more, and all that wait for their posts, now or later, find them stopped.
 */
#ifndef WEFT_COLLECTIVES_NODE_CALLS_H
#define WEFT_COLLECTIVES_NODE_CALLS_H

#include "collectives/calls.h"
#include "collectives/choose.h"
#include "collectives/node_area.h"

typedef struct weft_node_call {
    _Atomic uint64_t chain;
    _Atomic uint64_t what; /* as weft_call has it */
    _Atomic uint64_t bytes;
} weft_node_call;

enum weft_node_gone { WEFT_NODE_HERE, WEFT_NODE_LEFT, WEFT_NODE_STOPPED };

/* A member's. All that it stores is a release, so that who reads a call sees whether it still stands (read_call). */
typedef struct weft_node_notes {
    _Alignas(WEFT_LINE) _Atomic uint64_t calls; /* so many were noted; number n stands in call[n % DEPTH] */
    _Atomic uint64_t gone;                      /* enum weft_node_gone; it posts no more */
    weft_node_call call[WEFT_NODE_DEPTH];
} weft_node_notes;

#define WEFT_NODE_MIX 0x9E3779B97F4A7C15ull

/* Notes our next call, before anything of it is done. On the way of small calls: some thirty instructions. */
static inline void weft_node_note(weft_node *node, enum weft_coll_kind kind, const weft_coll *args, uint64_t bytes)
{
    uint64_t n = ++node->calls, what = weft_call_of(kind, WEFT_CALL_BLOCKING, args, bytes).what;
    weft_node_notes *notes = &node->notes[node->rank];
    weft_node_call *call = &notes->call[n % WEFT_NODE_DEPTH];

    node->chain = (node->chain ^ what) * WEFT_NODE_MIX + bytes;
    atomic_store_explicit(&call->chain, node->chain, memory_order_release);
    atomic_store_explicit(&call->what, what, memory_order_release);
    atomic_store_explicit(&call->bytes, bytes, memory_order_release);
    atomic_store_explicit(&notes->calls, n, memory_order_release); /* pairs with last_common */
}

/* Of a call after the area stopped: its error. The one that was cut said so, those after it are not cut. */
int weft_node_refuse(weft_node *node) __attribute__((cold));
/* Wakes all who sleep, to look once more at what we noted. */
void weft_node_wake_all(weft_node *node);
/* Our part is over, well (LEFT) or not: wakes who waits for it. */
void weft_node_go(weft_node *node, enum weft_node_gone how);
/* An error of ours after which we post no more: `rc`, back again. */
int weft_node_stop(weft_node *node, int rc) __attribute__((cold));
/* What `member` calls is not what we call, or it is gone: says how, and stops us. */
int weft_node_differ(weft_node *node, uint32_t member) __attribute__((cold));
/* For a long wait for `member` to post s: it never will (weft_node_differ says why). */
/* For a long wait: a member that sent messages of a later call without its post in s skipped this call; it is sent a description of it. */
void weft_node_tell_passed(const weft_node *node, uint64_t s);
bool weft_node_is_astray(const weft_node *node, uint32_t member, uint64_t s);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_check: each member of a node area notes its blocking calls where the others can read them, so that a wrong program (one
 * member calls something else, or with another count, root or operator) is told what is wrong, and nobody waits for ever.
 * A hash of all calls so far, the chain, is the same on members that called the same. Who writes in an operation leaves its chain
 * beside its flag (shmcoll_area.h), in the cache line that readers fetch anyway: one word is compared for each flag. Who waits long also looks
 * at the notes of those for whom it waits. Called by coll.c for each call, by shmcoll_area.c where flags are read.
 * Invariant: members that differ stop: they post no more, and all that wait for their posts, now or later, find them stopped.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_CHECK_H
#define WEFT_COLLECTIVES_SHMCOLL_CHECK_H

#include "collectives/calls.h"
#include "collectives/select.h"
#include "collectives/shmcoll_area.h"

typedef struct weft_shmcoll_call {
    _Atomic uint64_t chain;
    _Atomic uint64_t what; /* as weft_call has it */
    _Atomic uint64_t bytes;
} weft_shmcoll_call;

enum weft_shmcoll_gone { WEFT_SHMCOLL_HERE, WEFT_SHMCOLL_LEFT, WEFT_SHMCOLL_STOPPED };

/* A member's. All that it stores is a release, so that who reads a call sees whether it still stands (read_call). */
typedef struct weft_shmcoll_notes {
    _Alignas(WEFT_LINE) _Atomic uint64_t calls; /* so many were noted; number n stands in call[n % DEPTH] */
    _Atomic uint64_t gone;                      /* enum weft_shmcoll_gone; it posts no more */
    weft_shmcoll_call call[WEFT_SHMCOLL_DEPTH];
} weft_shmcoll_notes;

#define WEFT_SHMCOLL_MIX 0x9E3779B97F4A7C15ull

/* Notes our next call, before anything of it is done. On the way of small calls: some thirty instructions. */
static inline void weft_shmcoll_note(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args, uint64_t bytes)
{
    uint64_t n = ++node->calls, what = weft_call_of(kind, WEFT_CALL_BLOCKING, args, bytes).what;
    weft_shmcoll_notes *notes = &node->notes[node->rank];
    weft_shmcoll_call *call = &notes->call[n % WEFT_SHMCOLL_DEPTH];

    node->chain = (node->chain ^ what) * WEFT_SHMCOLL_MIX + bytes;
    atomic_store_explicit(&call->chain, node->chain, memory_order_release);
    atomic_store_explicit(&call->what, what, memory_order_release);
    atomic_store_explicit(&call->bytes, bytes, memory_order_release);
    atomic_store_explicit(&notes->calls, n, memory_order_release); /* pairs with last_common */
}

/* Of a call after the area stopped: its error. The one that was cut said so, those after it are not cut. */
int weft_shmcoll_refuse(weft_shmcoll *node) __attribute__((cold));
/* Wakes all who sleep, to look once more at what we noted. */
void weft_shmcoll_wake_all(weft_shmcoll *node);
/* Our part is over, well (LEFT) or not: wakes who waits for it. */
void weft_shmcoll_go(weft_shmcoll *node, enum weft_shmcoll_gone how);
/* An error of ours after which we post no more: `rc`, back again. */
int weft_shmcoll_stop(weft_shmcoll *node, int rc) __attribute__((cold));
/* What `member` calls is not what we call, or it is gone: says how, and stops us. */
int weft_shmcoll_differ(weft_shmcoll *node, uint32_t member) __attribute__((cold));
/* For a long wait for `member` to post s: it never will (weft_shmcoll_differ says why). */
/* For a long wait: a member that sent messages of a later call without its post in s skipped this call; it is sent a description of it. */
void weft_shmcoll_tell_passed(const weft_shmcoll *node, uint64_t s);
bool weft_shmcoll_is_astray(const weft_shmcoll *node, uint32_t member, uint64_t s);

#endif

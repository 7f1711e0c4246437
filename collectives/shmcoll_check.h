/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_check: detects members of a node area whose calls differ (operation, count, root, operator), which would hang.
 * Each member publishes its last calls in the area, and a hash of all its calls (call_hash). A writer in an operation stores it beside
 * its flag, so readers compare one word. A member that waits long also compares the published calls.
 * Called by coll.c and shmcoll.c for each call, and by shmcoll_area.c; requires worker->lock.
 * Invariant: a member that finds a difference posts no more, and members that wait for its posts, now or later, find it stopped.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_CHECK_H
#define WEFT_COLLECTIVES_SHMCOLL_CHECK_H

#include "collectives/calls.h"
#include "collectives/shmcoll_area.h"

#define WEFT_SHMCOLL_MIX 0x9E3779B97F4A7C15ull

/* Publishes this member's next call; must precede every operation of it. Calls are published in the order in which they are made, also
 * nonblocking ones, which are performed later: each is performed with the hash after it as area->call_hash. */
static inline void weft_shmcoll_log_call(weft_shmcoll *area, weft_call made)
{
    uint64_t n = ++area->calls, what = made.what, bytes = made.bytes;
    weft_shmcoll_call_log *call_logs = &area->call_logs[area->rank];
    weft_shmcoll_call *call = &call_logs->call[n % WEFT_SHMCOLL_DEPTH];

    area->log_hash = (area->log_hash ^ what) * WEFT_SHMCOLL_MIX + bytes;
    atomic_store_explicit(&call->call_hash, area->log_hash, memory_order_release);
    atomic_store_explicit(&call->what, what, memory_order_release);
    atomic_store_explicit(&call->bytes, bytes, memory_order_release);
    atomic_store_explicit(&call_logs->calls, n, memory_order_release); /* pairs with last_common */
}

/* Notes which schedule performs the call just published: its number or tag. */
static inline void weft_shmcoll_log_number(weft_shmcoll *area, uint32_t sequence)
{
    area->numbered[area->calls % WEFT_SHMCOLL_DEPTH].call = area->calls;
    area->numbered[area->calls % WEFT_SHMCOLL_DEPTH].sequence = sequence & WEFT_TAG_BITS;
}

/* Error of a call after the area stopped. Truncation is returned once; later calls return WEFT_E_NOT_SAME. */
int weft_shmcoll_stop_error(weft_shmcoll *area) __attribute__((cold));
/* This member stops by its error rc, and stops the team. Returns rc. */
int weft_shmcoll_stop(weft_shmcoll *area, int rc) __attribute__((cold));
/* Calls of `member` differ from this member's, or it is gone: sets the text, stops and returns the error. */
int weft_shmcoll_differ(weft_shmcoll *area, uint32_t member) __attribute__((cold));
/* The team has stopped at this member's call: sets the text, by the member whose call differs if one does, and returns the error. */
int weft_shmcoll_end(weft_shmcoll *area) __attribute__((cold));
/* This member's next call comes after the team has stopped. WEFT_E_TRUNCATE, with a text, if it is the first one of these and a member's
 * call with its number sends more than it takes; else WEFT_OK. */
int weft_shmcoll_truncation(weft_shmcoll *area, weft_call call) __attribute__((cold));
/* The call that this member performs. */
weft_call weft_shmcoll_latest_call(const weft_shmcoll *area);
/* For long waits in s: a member that has not posted s but sent messages of a later call skipped this call; sends it this member's call. */
void weft_shmcoll_report_passed(const weft_shmcoll *area, uint64_t s);
/* For long waits: `member` will never post s (weft_shmcoll_differ sets the text). for_all: the wait is for the posts of all members, so a
 * member whose calls differ ends it even if it has posted s: another member may wait for that error before it posts. */
bool weft_shmcoll_never_posts(const weft_shmcoll *area, uint32_t member, uint64_t s, bool for_all);

#endif

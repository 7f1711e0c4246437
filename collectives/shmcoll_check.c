/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_check: see shmcoll_check.h.
 */
#include "collectives/shmcoll_check.h"

#include <stdio.h>

#include "base/status.h"
#include "collectives/stop.h"

int weft_shmcoll_refuse(weft_shmcoll *node)
{
    if (node->rc == WEFT_E_TRUNCATE)
        node->rc = WEFT_E_NOT_SAME;
    return node->rc;
}

/* ---- comparing calls ---- */

typedef struct noted { /* a copy of weft_shmcoll_call */
    uint64_t chain, what, bytes;
} noted;

/* Number of the last call that both members have published; 0: none. Pairs with weft_shmcoll_note(). */
static uint64_t last_common(const weft_shmcoll *node, uint32_t member)
{
    uint64_t theirs = atomic_load_explicit(&node->notes[member].calls, memory_order_acquire);
    return theirs < node->calls ? theirs : node->calls;
}

/* Reads call n of a member. False: n is 0, or the entry is overwritten, or may be during the read. */
static bool read_call(const weft_shmcoll *node, uint32_t member, uint64_t n, noted *call)
{
    const weft_shmcoll_notes *notes = &node->notes[member];
    const weft_shmcoll_call *from = &notes->call[n % WEFT_SHMCOLL_DEPTH];

    call->chain = atomic_load_explicit(&from->chain, memory_order_acquire);
    call->what = atomic_load_explicit(&from->what, memory_order_acquire);
    call->bytes = atomic_load_explicit(&from->bytes, memory_order_acquire);
    return n && atomic_load_explicit(&notes->calls, memory_order_acquire) < n + WEFT_SHMCOLL_DEPTH - 1;
}

static bool is_apart(const weft_shmcoll *node, uint32_t member)
{
    uint64_t n = last_common(node, member);
    noted ours, theirs;

    return read_call(node, node->rank, n, &ours) && read_call(node, member, n, &theirs) && ours.chain != theirs.chain;
}

void weft_shmcoll_tell_passed(const weft_shmcoll *node, uint64_t s)
{
    noted latest;
    uint32_t tag;

    for (uint32_t i = 0; i < node->ranks && weft_calls_has_ahead(node->team); i++)
        if (i != node->rank && !weft_shmcoll_has_posted(node, i, s) && read_call(node, node->rank, node->calls, &latest) &&
            weft_calls_has_passed(node->team, weft_shmcoll_name(node, i), &tag))
            weft_calls_differ(node->team, weft_shmcoll_name(node, i), tag, (weft_call){latest.what, latest.bytes});
}

bool weft_shmcoll_is_astray(const weft_shmcoll *node, uint32_t member, uint64_t s)
{
    bool is_gone = atomic_load_explicit(&node->notes[member].gone, memory_order_acquire) != WEFT_SHMCOLL_HERE;

    if (weft_likely(!is_gone && !is_apart(node, member)))
        return false;
    return !weft_shmcoll_has_posted(node, member, s); /* it may have posted before it left */
}

/* ---- error texts ---- */

static weft_call call_of(const noted *of) { return (weft_call){of->what, of->bytes}; }

/* The first published call in which both members differ. False: none among those still readable. */
static bool first_difference(const weft_shmcoll *node, uint32_t member, uint64_t *n, noted *ours, noted *theirs)
{
    uint64_t last = last_common(node, member);

    for (*n = last >= WEFT_SHMCOLL_DEPTH ? last - WEFT_SHMCOLL_DEPTH + 1 : 1; *n <= last; ++*n)
        if (read_call(node, node->rank, *n, ours) && read_call(node, member, *n, theirs) &&
            (ours->what != theirs->what || ours->bytes != theirs->bytes))
            return true;
    return false;
}

static bool is_cut(const weft_shmcoll *node, uint32_t member, uint64_t n, const noted *ours, const noted *theirs)
{
    return n == node->calls && weft_call_is_cut(call_of(ours), weft_shmcoll_name(node, node->rank), call_of(theirs),
                                                weft_shmcoll_name(node, member));
}

static int say_difference(const weft_shmcoll *node, uint32_t member)
{
    noted ours, theirs;
    char here[100], there[100];
    uint64_t n;

    if (!first_difference(node, member, &n, &ours, &theirs))
        return WEFT_OK;
    weft_call_describe(call_of(&ours), here, sizeof here);
    weft_call_describe(call_of(&theirs), there, sizeof there);
    return weft_fail(is_cut(node, member, n, &ours, &theirs) ? WEFT_E_TRUNCATE : WEFT_E_NOT_SAME,
                     "rank %u called %s; rank %u called %s.\n"
                     "  All members must call the same collectives (this is blocking call %llu here), with equal counts, "
                     "roots and operators.",
                     weft_shmcoll_name(node, node->rank), here, weft_shmcoll_name(node, member), there, (unsigned long long)n);
}

/* Error with the cause that the first stopped member left. */
static int say_cause(const weft_shmcoll *node, uint32_t member, const char *here)
{
    const weft_shmcoll_hdr *hdr = node->hdr;

    return weft_fail(weft_stop_code(hdr->cause_code), "rank %u called %s; rank %u takes no part in it, after an error: %s",
                     weft_shmcoll_name(node, node->rank), here, weft_shmcoll_name(node, member), hdr->cause);
}

static int say_gone(const weft_shmcoll *node, uint32_t member)
{
    char here[100] = "a collective";
    noted ours;

    if (read_call(node, node->rank, node->calls, &ours))
        weft_call_describe(call_of(&ours), here, sizeof here);
    if (atomic_load_explicit(&node->hdr->has_cause, memory_order_acquire)) /* pairs with leave_cause */
        return say_cause(node, member, here);
    switch (atomic_load_explicit(&node->notes[member].gone, memory_order_acquire)) {
    case WEFT_SHMCOLL_LEFT:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u has freed the communicator, or finalized MPI.",
                         weft_shmcoll_name(node, node->rank), here, weft_shmcoll_name(node, member));
    case WEFT_SHMCOLL_STOPPED:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u makes no more collective calls here, after an error.",
                         weft_shmcoll_name(node, node->rank), here, weft_shmcoll_name(node, member));
    default:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u made other collective calls before.",
                         weft_shmcoll_name(node, node->rank), here, weft_shmcoll_name(node, member));
    }
}

int weft_shmcoll_stop(weft_shmcoll *node, int rc)
{
    weft_shmcoll_leave(node, rc);
    if (node->team)
        weft_team_stop(node->team, rc, (int)(node->team->sequence & WEFT_TAG_BITS));
    return rc;
}

int weft_shmcoll_differ(weft_shmcoll *node, uint32_t member)
{
    int rc = say_difference(node, member);

    for (uint32_t i = 0; i < node->ranks && !rc; i++) /* `member` may have stopped because of a third one */
        if (i != node->rank && i != member)
            rc = say_difference(node, i);
    if (!rc)
        rc = say_gone(node, member);
    node->is_second = atomic_exchange_explicit(&node->hdr->stopped, 1, memory_order_relaxed) != 0;
    return weft_shmcoll_stop(node, rc);
}

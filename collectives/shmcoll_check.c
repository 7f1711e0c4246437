/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_check: see shmcoll_check.h.
 */
#include "collectives/shmcoll_check.h"

#include <stdio.h>

#include "base/status.h"
#include "collectives/stop.h"

int weft_shmcoll_stop_error(weft_shmcoll *area)
{
    if (area->rc == WEFT_E_TRUNCATE)
        area->rc = WEFT_E_NOT_SAME;
    return area->rc;
}

/* ---- comparing calls ---- */

typedef struct call_copy { /* a copy of weft_shmcoll_call */
    uint64_t call_hash, what, bytes;
} call_copy;

/* Number of the call that this member performs, among its published ones. */
static uint64_t current_number(const weft_shmcoll *area) { return area->current ? area->current->number : area->calls; }

/* Number of the last call that both members have published; 0: none. Pairs with weft_shmcoll_log_call(). */
static uint64_t last_common(const weft_shmcoll *area, uint32_t member)
{
    uint64_t remote = atomic_load_explicit(&area->call_logs[member].calls, memory_order_acquire);
    return remote < area->calls ? remote : area->calls;
}

/* Reads call n of a member. False: n is 0, or the entry is overwritten, or may be during the read. */
static bool read_call(const weft_shmcoll *area, uint32_t member, uint64_t n, call_copy *call)
{
    const weft_shmcoll_call_log *call_logs = &area->call_logs[member];
    const weft_shmcoll_call *from = &call_logs->call[n % WEFT_SHMCOLL_DEPTH];

    call->call_hash = atomic_load_explicit(&from->call_hash, memory_order_acquire);
    call->what = atomic_load_explicit(&from->what, memory_order_acquire);
    call->bytes = atomic_load_explicit(&from->bytes, memory_order_acquire);
    return n && atomic_load_explicit(&call_logs->calls, memory_order_acquire) < n + WEFT_SHMCOLL_DEPTH - 1;
}

/* Whether the members' calls differ, in this member's current one or an older one: both perform calls that are older than a difference. */
static bool calls_differ(const weft_shmcoll *area, uint32_t member)
{
    uint64_t n = last_common(area, member), current = current_number(area);
    call_copy local = {.call_hash = area->call_hash}, remote;

    if (n >= current)
        n = current;
    else if (!read_call(area, area->rank, n, &local))
        return false;
    return read_call(area, member, n, &remote) && local.call_hash != remote.call_hash;
}

weft_call weft_shmcoll_latest_call(const weft_shmcoll *area)
{
    call_copy latest;

    if (area->current)
        return area->current->call;
    read_call(area, area->rank, area->calls, &latest);
    return (weft_call){latest.what, latest.bytes};
}

void weft_shmcoll_report_passed(const weft_shmcoll *area, uint64_t s)
{
    uint32_t tag;

    for (uint32_t i = 0; i < area->ranks && weft_calls_has_ahead(area->team); i++)
        if (i != area->rank && !weft_shmcoll_has_posted(area, i, s) &&
            weft_calls_has_passed(area->team, weft_shmcoll_rank_of(area, i), &tag))
            weft_calls_differ(area->team, weft_shmcoll_rank_of(area, i), tag, weft_shmcoll_latest_call(area));
}

bool weft_shmcoll_never_posts(const weft_shmcoll *area, uint32_t member, uint64_t s, bool for_all)
{
    bool is_gone = atomic_load_explicit(&area->call_logs[member].gone, memory_order_acquire) != WEFT_SHMCOLL_HERE;
    bool differs = calls_differ(area, member);

    if (weft_likely(!is_gone && !differs))
        return false;
    return (differs && for_all) || !weft_shmcoll_has_posted(area, member, s); /* it may have posted before it left */
}

/* ---- error texts ---- */

static weft_call call_of(const call_copy *of) { return (weft_call){of->what, of->bytes}; }

/* The first published call in which both members differ. False: none among those still readable. */
static bool first_difference(const weft_shmcoll *area, uint32_t member, uint64_t *n, call_copy *local, call_copy *remote)
{
    uint64_t last = last_common(area, member);

    for (*n = last >= WEFT_SHMCOLL_DEPTH ? last - WEFT_SHMCOLL_DEPTH + 1 : 1; *n <= last; ++*n)
        if (read_call(area, area->rank, *n, local) && read_call(area, member, *n, remote) &&
            (local->what != remote->what || local->bytes != remote->bytes))
            return true;
    return false;
}

static bool is_truncated(const weft_shmcoll *area, uint32_t member, uint64_t n, const call_copy *local, const call_copy *remote)
{
    return n == current_number(area) && weft_call_is_truncated(call_of(local), weft_shmcoll_rank_of(area, area->rank), call_of(remote),
                                                      weft_shmcoll_rank_of(area, member));
}

/* Sets the text for calls n of this member and `member`, which differ. Returns code. */
static int describe_calls(const weft_shmcoll *area, int code, uint64_t n, weft_call local, uint32_t member, weft_call remote)
{
    char here[100], there[100];

    weft_call_describe(NULL, 0, local, here, sizeof here);
    weft_call_describe(NULL, 0, remote, there, sizeof there);
    return weft_fail(code,
                     "rank %u called %s; rank %u called %s.\n"
                     "  All members must call the same collectives (this is call %llu here), with equal counts, "
                     "roots and operators.",
                     weft_shmcoll_rank_of(area, area->rank), here, weft_shmcoll_rank_of(area, member), there, (unsigned long long)n);
}

/* *call: number of the call in which they differ. */
static int describe_difference(const weft_shmcoll *area, uint32_t member, uint64_t *call)
{
    call_copy local, remote;

    if (!first_difference(area, member, call, &local, &remote))
        return WEFT_OK;
    return describe_calls(area, is_truncated(area, member, *call, &local, &remote) ? WEFT_E_TRUNCATE : WEFT_E_NOT_SAME, *call,
                          call_of(&local), member, call_of(&remote));
}

/* Error with the cause that the first stopped member left. */
static int describe_cause(const weft_shmcoll *area, uint32_t member, const char *here)
{
    const weft_shmcoll_hdr *hdr = area->hdr;

    return weft_fail(weft_stop_code(hdr->cause_code), "rank %u called %s; rank %u does not take part after an error: %.*s",
                     weft_shmcoll_rank_of(area, area->rank), here, weft_shmcoll_rank_of(area, member), (int)sizeof hdr->cause - 1,
                     hdr->cause);
}

static int describe_gone(const weft_shmcoll *area, uint32_t member)
{
    char here[100] = "a collective";

    if (area->calls)
        weft_call_describe(NULL, 0, weft_shmcoll_latest_call(area), here, sizeof here);
    if (atomic_load_explicit(&area->hdr->has_cause, memory_order_acquire)) /* pairs with publish_cause */
        return describe_cause(area, member, here);
    switch (atomic_load_explicit(&area->call_logs[member].gone, memory_order_acquire)) {
    case WEFT_SHMCOLL_LEFT:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u has freed the %s, or finalized MPI.",
                         weft_shmcoll_rank_of(area, area->rank), here, weft_shmcoll_rank_of(area, member),
                         area->is_lane ? "persistent request" : "communicator");
    case WEFT_SHMCOLL_STOPPED:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u makes no more collective calls here, after an error.",
                         weft_shmcoll_rank_of(area, area->rank), here, weft_shmcoll_rank_of(area, member));
    default:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u made other collective calls before.",
                         weft_shmcoll_rank_of(area, area->rank), here, weft_shmcoll_rank_of(area, member));
    }
}

static int stop_at(weft_shmcoll *area, int rc, uint64_t call)
{
    weft_shmcoll_leave(area, rc);
    if (area->is_lane && area->team)
        weft_team_stop(area->team, rc, (int)area->current->tag);
    else if (area->team)
        weft_team_stop_in_area(area->team, rc, call);
    return rc;
}

int weft_shmcoll_stop(weft_shmcoll *area, int rc) { return stop_at(area, rc, current_number(area)); }

int weft_shmcoll_differ(weft_shmcoll *area, uint32_t member)
{
    uint64_t call = current_number(area);
    int rc = describe_difference(area, member, &call);

    for (uint32_t i = 0; i < area->ranks && !rc; i++) /* `member` may have stopped because of a third one */
        if (i != area->rank && i != member)
            rc = describe_difference(area, i, &call);
    if (!rc)
        rc = describe_gone(area, member);
    area->is_second = atomic_exchange_explicit(&area->hdr->stopped, 1, memory_order_relaxed) != 0;
    return stop_at(area, rc, call);
}

int weft_shmcoll_truncation(weft_shmcoll *area, weft_call call)
{
    uint64_t n = area->calls + 1;
    call_copy remote;

    if (area->is_late_compared)
        return WEFT_OK;
    area->is_late_compared = true;
    for (uint32_t i = 0; i < area->ranks; i++) {
        bool has_made = i != area->rank && atomic_load_explicit(&area->call_logs[i].calls, memory_order_acquire) >= n;
        if (!has_made || !read_call(area, i, n, &remote) ||
            !weft_call_is_truncated(call, weft_shmcoll_rank_of(area, area->rank), call_of(&remote), weft_shmcoll_rank_of(area, i)))
            continue;
        return describe_calls(area, WEFT_E_TRUNCATE, n, call, i, call_of(&remote));
    }
    return WEFT_OK;
}

int weft_shmcoll_end(weft_shmcoll *area)
{
    uint64_t call;
    int rc = WEFT_OK;

    for (uint32_t i = 0; i < area->ranks && !rc; i++)
        if (i != area->rank)
            rc = describe_difference(area, i, &call);
    if (!rc)
        rc = weft_team_stop_error_of_call(area->team, weft_shmcoll_latest_call(area));
    return weft_shmcoll_stop(area, rc);
}

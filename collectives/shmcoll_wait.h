/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_wait: begins operations of a node area and waits for their posts. Called by shmcoll.c; requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_WAIT_H
#define WEFT_COLLECTIVES_SHMCOLL_WAIT_H

#include "base/status.h"
#include "collectives/shmcoll_area.h"

/* Begins the next operation and returns its number, or 0 on error (area->rc). is_writer: this member writes data in it. May block.
 * ahead: weft_shmcoll_ahead(). */
uint64_t weft_shmcoll_begin(weft_shmcoll *area, uint32_t ahead, bool is_writer);
/* The same in a scan that `ahead` operations of scans precede. may_wait: else it returns 0 with area->rc 0, as weft_shmcoll_try_begin. */
uint64_t weft_shmcoll_begin_relay(weft_shmcoll *area, uint32_t ahead, bool may_wait);
/* Blocks until `member`, a writer in s, has posted s. Returns an error if it is gone or its calls differ; then area->rc is set. */
int weft_shmcoll_await(weft_shmcoll *area, uint32_t member, uint64_t s);
/* The same for all members, all other ones being writers in s. */
int weft_shmcoll_await_all(weft_shmcoll *area, uint64_t s);

/* Nonblocking calls: the same without waiting. If they would have to wait, they set area->awaited, and begin returns 0 with area->rc 0, the
 * others WEFT_AGAIN; a member that sleeps then is woken by the post. */
uint64_t weft_shmcoll_try_begin(weft_shmcoll *area, uint32_t ahead, bool is_writer);
int weft_shmcoll_test(weft_shmcoll *area, uint32_t member, uint64_t s);
int weft_shmcoll_test_all(weft_shmcoll *area, uint64_t s);
/* How often a wait that begins now may look for the post that these await, before it yields or polls all ifaces: 0 if the member has given
 * its CPU away, or shares this member's CPU; or, in a wait for all, if a later one that has not posted shares it. */
uint32_t weft_shmcoll_looks(weft_shmcoll *area);
/* After these, from time to time and before a sleep: looks for members that will never post area->awaited. 0, or the error as above. */
int weft_shmcoll_check_awaited(weft_shmcoll *area);

/* may_wait: blocking calls. Else these return WEFT_AGAIN, or 0 with area->rc 0, without effect, if they would have to wait. */
static inline uint64_t weft_shmcoll_begin_as(weft_shmcoll *area, uint32_t ahead, bool writes, bool may_wait)
{
    return may_wait ? weft_shmcoll_begin(area, ahead, writes) : weft_shmcoll_try_begin(area, ahead, writes);
}

static inline int weft_shmcoll_await_all_as(weft_shmcoll *area, uint64_t s, bool may_wait)
{
    return may_wait ? weft_shmcoll_await_all(area, s) : weft_shmcoll_test_all(area, s);
}

static inline int weft_shmcoll_await_as(weft_shmcoll *area, uint32_t member, uint64_t s, bool may_wait)
{
    return may_wait ? weft_shmcoll_await(area, member, s) : weft_shmcoll_test(area, member, s);
}

/* Operation s of a scan. */
static inline uint64_t weft_shmcoll_begin_relay_as(weft_shmcoll *area, uint32_t ahead, bool may_wait)
{
    if (weft_likely(area->known >= area->relays_since + WEFT_SHMCOLL_LAG)) /* what precedes the scans is read by all */
        return weft_shmcoll_begin_relay(area, ahead, may_wait);
    return weft_shmcoll_begin_as(area, ahead, area->rank + 1 < area->ranks, may_wait);
}

/* The root has posted s: the posts that it had to see before (weft_shmcoll_begin) are made. */
static inline void weft_shmcoll_on_root_posted(weft_shmcoll *area, uint64_t s, uint32_t ahead)
{
    uint64_t seen = s + 1 + WEFT_SHMCOLL_LAG;

    if (seen > area->known + ahead)
        area->known = seen - ahead;
}

/* Pauses once if the writer has not posted s. A reader that polls the line takes it from the writer, and the post takes twice as long. */
static inline void weft_shmcoll_back_off(const weft_shmcoll *area, uint32_t writer, uint64_t s)
{
    if (!weft_shmcoll_has_posted(area, writer, s))
        weft_cpu_relax();
}

/* Looks for the awaited post, *left times, then while area->turns and area->yields last: a call of the application's thread may yield here.
 * A post that has come may not be the one that is missing. Each look and each turn counts, so the caller's loop ends. */
bool weft_shmcoll_look(weft_shmcoll *area, uint32_t *left);

#endif

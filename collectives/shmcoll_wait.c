/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_wait: see shmcoll_wait.h. Spins on a flag first, then waits by core/wait.h, and looks for members that will never post.
 */
#include "collectives/shmcoll_wait.h"

#include "base/status.h"
#include "collectives/shmcoll_check.h"
#include "collectives/stop.h"
#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"

#define SPINS 400         /* polls of a flag before the full wait (core/wait.h); longer than some cache line transfers */
#define POLL_EVERY 64     /* operations between two polls of the ifaces by a member that never waits here */

/* All members have posted s: each operation with its index so far brought one post of each. */
static inline bool is_complete(const weft_shmcoll *node, uint64_t s)
{
    uint64_t uses = s / WEFT_SHMCOLL_DEPTH + (s % WEFT_SHMCOLL_DEPTH != 0);
    return atomic_load_explicit(&node->hdr->count[s % WEFT_SHMCOLL_DEPTH].posts, memory_order_acquire) >= uses * node->ranks;
}

static int member_lost(weft_shmcoll *node, uint32_t member)
{
    return node->rc = weft_fail(WEFT_E_PEER, "member %u of a collective is gone", member);
}

typedef struct long_wait {
    weft_wait wait;
    weft_shmcoll *node;
    int32_t member; /* < 0: all */
    uint64_t s;     /* operation whose post is awaited */
} long_wait;

/* The team has stopped at this call or an earlier one. */
static bool is_stopped(const weft_shmcoll *node)
{
    return weft_unlikely(node->team && weft_team_is_over(node->team, node->team->sequence - 1));
}

/* A member that will never post. -1: none. *is_dead: its process has failed, else its calls differ or it has left. */
static int32_t find_lost(const long_wait *self, bool *is_dead)
{
    const weft_shmcoll *node = self->node;

    *is_dead = true;
    for (uint32_t i = 0; i < node->ranks; i++)
        if (weft_unlikely(atomic_load_explicit(&node->pages[i]->state, memory_order_relaxed) == WEFT_RANK_DEAD))
            return (int32_t)i;
    *is_dead = false;
    if (node->team)
        weft_shmcoll_tell_passed(node, self->s);
    for (uint32_t i = 0; i < node->ranks; i++)
        if (i != node->rank && (self->member < 0 || (uint32_t)self->member == i) && weft_shmcoll_is_astray(node, i, self->s))
            return (int32_t)i;
    return -1;
}

/* Wait condition. Sets this member's bit again if count_post(), which clears the bits of the members that it wakes, has cleared it. */
static bool has_come(const long_wait *self)
{
    const weft_shmcoll *node = self->node;
    _Atomic uint64_t *wanted = &node->hdr->count[self->s % WEFT_SHMCOLL_DEPTH].wanted;
    uint64_t bit = (uint64_t)1 << node->rank;

    if (self->member < 0 && node->is_oversubscribed && !(atomic_load_explicit(wanted, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(wanted, bit, memory_order_seq_cst);
    return self->member >= 0 ? weft_shmcoll_has_posted(node, (uint32_t)self->member, self->s) : is_complete(node, self->s);
}

/* Wait condition for core/leader: may be called by another thread of this process, under the lock. */
static bool is_over(weft_wait *wait)
{
    const long_wait *self = weft_container(wait, long_wait, wait);
    bool is_dead;

    return has_come(self) || is_stopped(self->node) || find_lost(self, &is_dead) >= 0;
}

/* Slow path of both waits; member < 0: all. */
static __attribute__((noinline)) int wait_long(weft_shmcoll *node, int32_t member, uint64_t s)
{
    long_wait self = {.node = node, .member = member, .s = s};
    bool is_dead;
    int rc = WEFT_OK;

    node->is_waiting = true;
    weft_wait_begin(&self.wait, node->worker, WEFT_WAIT_REASON_COLLECTIVE, member, (int32_t)s, 0);
    self.wait.is_over = is_over;
    while (!has_come(&self)) {
        int32_t lost = find_lost(&self, &is_dead);
        if (is_stopped(node)) {
            rc = weft_shmcoll_stop(node, weft_team_refuse(node->team));
            break;
        }
        if (lost >= 0) {
            rc = is_dead ? member_lost(node, (uint32_t)lost) : weft_shmcoll_differ(node, (uint32_t)lost);
            break;
        }
        if (node->is_oversubscribed) /* spinning would keep the awaited members from running */
            self.wait.idle = node->worker->world->wait_policy.spins;
        weft_wait_progress(&self.wait);
    }
    weft_wait_end(&self.wait);
    node->is_waiting = false;
    return rc;
}

/* The member has posted s, and its calls are equal. Its data of s stays valid until this member posts again. */
static inline bool has_met(const weft_shmcoll *node, const weft_shmcoll_line *line, uint64_t s)
{
    return atomic_load_explicit(&line->posted, memory_order_acquire) >= s &&
           atomic_load_explicit(&line->chain, memory_order_relaxed) == node->chain;
}

static int await_post(weft_shmcoll *node, uint32_t member, uint64_t s)
{
    for (uint32_t i = node->is_oversubscribed ? 1 : SPINS; i; i--)
        if (weft_likely(weft_shmcoll_has_posted(node, member, s)))
            return WEFT_OK;
    return wait_long(node, (int32_t)member, s);
}

static __attribute__((noinline)) int meet(weft_shmcoll *node, uint32_t member, uint64_t s)
{
    int rc = await_post(node, member, s);

    if (rc || has_met(node, weft_shmcoll_line_of(node, member, s), s))
        return rc;
    return weft_shmcoll_differ(node, member);
}

int weft_shmcoll_await(weft_shmcoll *node, uint32_t member, uint64_t s)
{
    return weft_likely(has_met(node, weft_shmcoll_line_of(node, member, s), s)) ? WEFT_OK : meet(node, member, s);
}

static int await_count(weft_shmcoll *node, uint64_t s) { return is_complete(node, s) ? WEFT_OK : wait_long(node, -1, s); }

static __attribute__((noinline)) int meet_rest(weft_shmcoll *node, uint32_t first, uint64_t s)
{
    int rc = node->is_oversubscribed ? await_count(node, s) : WEFT_OK;

    for (uint32_t i = first; i < node->ranks && !rc; i++)
        if (i != node->rank)
            rc = meet(node, i, s);
    return rc;
}

int weft_shmcoll_await_all(weft_shmcoll *node, uint64_t s)
{
    const weft_shmcoll_line *line = weft_shmcoll_line_of(node, 0, s);
    uint32_t i = 0, ranks = node->ranks, rank = node->rank;

    for (; i < ranks && (has_met(node, line, s) || i == rank); i++)
        line += WEFT_SHMCOLL_DEPTH;
    if (s > node->known)
        node->known = s;
    return i == ranks ? WEFT_OK : meet_rest(node, i, s);
}

static bool have_all_posted(const weft_shmcoll *node, uint64_t s)
{
    if (node->is_oversubscribed)
        return is_complete(node, s);
    for (uint32_t i = 0; i < node->ranks; i++)
        if (i != node->rank && !weft_shmcoll_has_posted(node, i, s))
            return false;
    return true;
}

/* Waits until all members have posted `safe` - DEPTH; does not compare their calls. */
static __attribute__((noinline)) int make_room(weft_shmcoll *node, uint64_t s, uint64_t safe)
{
    uint64_t past = safe - WEFT_SHMCOLL_DEPTH;
    int rc = WEFT_OK;

    if (have_all_posted(node, s - 1)) /* saves the next operations this call */
        past = s - 1;
    else if (node->is_oversubscribed)
        rc = await_count(node, past);
    else
        for (uint32_t i = 0; i < node->ranks && !rc; i++)
            if (i != node->rank)
                rc = await_post(node, i, past);
    node->known = past;
    return rc;
}

static __attribute__((noinline)) void poll_once(weft_shmcoll *node)
{
    weft_wait wait;

    node->is_waiting = true;
    weft_wait_begin(&wait, node->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, 0, 0);
    weft_wait_progress(&wait);
    weft_wait_end(&wait);
    node->is_waiting = false;
}

/* Stores the chain for readers of s (has_met). The post releases it. */
static inline void mark(weft_shmcoll *node, uint64_t s)
{
    atomic_store_explicit(&weft_shmcoll_line_of(node, node->rank, s)->chain, node->chain, memory_order_relaxed);
}

static __attribute__((noinline)) uint64_t begin_slowly(weft_shmcoll *node, uint64_t s, uint64_t safe, bool is_writer)
{
    if (node->rc)
        return 0;
    if (s % POLL_EVERY == 0)
        poll_once(node);
    if (node->known + WEFT_SHMCOLL_DEPTH < safe && make_room(node, s, safe))
        return 0;
    if (is_writer)
        mark(node, s);
    return s;
}

uint64_t weft_shmcoll_begin(weft_shmcoll *node, bool is_writer)
{
    uint64_t s = ++node->op, safe = s + (is_writer ? 1 + WEFT_SHMCOLL_LAG : 0);

    if (weft_unlikely(node->rc || s % POLL_EVERY == 0 || node->known + WEFT_SHMCOLL_DEPTH < safe))
        return begin_slowly(node, s, safe, is_writer);
    if (is_writer)
        mark(node, s);
    return s;
}

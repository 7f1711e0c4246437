/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_wait: see shmcoll_wait.h. Spins on a flag first, then waits by core/wait.h, and looks for members that will never post.
 */
#include "collectives/shmcoll_wait.h"

#include <sched.h>

#include "base/status.h"
#include "collectives/shmcoll_check.h"
#include "collectives/stop.h"
#include "core/wait.h"
#include "core/worker.h"
#include "core/world.h"

#define FIND_EVERY 16     /* turns of a wait between two looks for members that will never post */

static int member_failed(weft_shmcoll *area, uint32_t member)
{
    return area->rc = weft_fail(WEFT_E_PEER, "a collective has failed: the process of member %u on this node has died", member);
}

typedef struct long_wait {
    weft_wait wait;
    weft_shmcoll *area;
    int32_t member; /* < 0: all */
    bool compares;  /* member < 0: all write in s, so their calls can be compared by their lines */
    uint64_t s;     /* operation whose post is awaited */
} long_wait;

/* The team has stopped at an earlier call. */
static bool is_past(const weft_shmcoll *area)
{
    return weft_unlikely(area->team && weft_team_is_over(area->team, area->team->sequence - 1));
}

/* The team has stopped at this call or an earlier one. */
static bool is_stopped(const weft_shmcoll *area)
{
    return weft_unlikely(area->team && area->team->stopped && weft_team_call_is_over(area->team));
}

/* The member has posted s in another call, while some have not posted: in a scan these may wait for this member. A line that is written
 * again for a later operation shows another call, too: then all have posted s. */
static bool has_posted_other(const weft_shmcoll *area, uint32_t member, uint64_t s)
{
    const weft_shmcoll_line *line = weft_shmcoll_line_of(area, member, s);

    if (atomic_load_explicit(&line->posted, memory_order_acquire) != s ||
        atomic_load_explicit(&line->call_hash, memory_order_acquire) == area->call_hash)
        return false;
    return !weft_shmcoll_is_complete(area, s);
}

/* A member that will never post. -1: none. *is_dead: its process has failed, else its calls differ or it has left. */
static int32_t find_gone(const long_wait *self, bool *is_dead)
{
    const weft_shmcoll *area = self->area;

    *is_dead = true;
    for (uint32_t i = 0; i < area->ranks; i++)
        if (weft_unlikely(atomic_load_explicit(&area->pages[i]->state, memory_order_relaxed) == WEFT_RANK_DEAD))
            return (int32_t)i;
    *is_dead = false;
    for (uint32_t i = 0; i < area->ranks; i++)
        if (i != area->rank && (self->member < 0 || (uint32_t)self->member == i) &&
            (weft_shmcoll_never_posts(area, i, self->s, self->member < 0) ||
             (self->compares && has_posted_other(area, i, self->s))))
            return (int32_t)i;
    /* messages of later calls may pass nonblocking ones; what the logs show names the call that differs */
    if (area->team && !area->current)
        weft_shmcoll_report_passed(area, self->s);
    return -1;
}

/* Before each look of a wait for all: if the ifaces are armed, the look may be the last one before a sleep. */
static inline void prepare_sleep(weft_shmcoll *area, uint64_t s)
{
    if (weft_unlikely(area->worker->is_armed) && area->is_oversubscribed)
        weft_shmcoll_want(area, s);
}

/* Wait condition. */
static bool has_arrived(const long_wait *self)
{
    weft_shmcoll *area = self->area;

    if (self->member >= 0)
        return weft_shmcoll_has_posted(area, (uint32_t)self->member, self->s);
    prepare_sleep(area, self->s);
    return weft_shmcoll_is_complete(area, self->s);
}

/* Wait condition for core/leader: may be called by another thread of this process, under the lock. */
static bool is_over(weft_wait *wait)
{
    const long_wait *self = weft_container(wait, long_wait, wait);
    bool is_dead;

    return has_arrived(self) || is_stopped(self->area) || find_gone(self, &is_dead) >= 0;
}

/* Slow path of both waits; member < 0: all. */
static __attribute__((noinline)) int wait_long(weft_shmcoll *area, int32_t member, bool compares, uint64_t s)
{
    long_wait self = {.area = area, .member = member, .compares = compares, .s = s};
    uint32_t turns = 0;
    bool is_dead;
    int rc = WEFT_OK;

    area->is_waiting = true;
    area->awaited = s;
    weft_wait_begin(&self.wait, area->worker, WEFT_WAIT_REASON_COLLECTIVE, member, (int32_t)s, 0);
    self.wait.is_over = is_over;
    while (!has_arrived(&self)) {
        /* it reads lines that members write in each call: now and then, and before each sleep */
        int32_t lost = ++turns % FIND_EVERY && !self.wait.is_armed ? -1 : find_gone(&self, &is_dead);
        if (is_past(area) || (lost < 0 && is_stopped(area))) {
            rc = weft_shmcoll_end(area);
            break;
        }
        if (lost >= 0) {
            rc = is_dead ? member_failed(area, (uint32_t)lost) : weft_shmcoll_differ(area, (uint32_t)lost);
            break;
        }
        if (area->is_oversubscribed) /* spinning would keep the awaited members from running */
            self.wait.idle = area->worker->world->wait_policy.spins;
        weft_wait_progress(&self.wait);
    }
    weft_wait_end(&self.wait);
    area->is_waiting = false;
    area->awaited = 0;
    return rc;
}

/* The member has posted s, and its calls are equal. Its data of s stays valid until this member posts again. */
static inline bool has_posted_same(const weft_shmcoll *area, const weft_shmcoll_line *line, uint64_t s)
{
    return atomic_load_explicit(&line->posted, memory_order_acquire) >= s &&
           atomic_load_explicit(&line->call_hash, memory_order_relaxed) == area->call_hash;
}

/* ---- ranks that share CPUs ---- */

/* The CPU of this member, as it is published: 1 + its number, 0: unknown. It may change between calls. */
static uint32_t publish_cpu(const weft_shmcoll *area)
{
    uint32_t cpu = (uint32_t)sched_getcpu() + 1;

    if (atomic_load_explicit(&area->pages[area->rank]->cpu, memory_order_relaxed) != cpu)
        atomic_store_explicit(&area->pages[area->rank]->cpu, cpu, memory_order_relaxed);
    return cpu;
}

/* The member waited last on this CPU. If it is this member's CPU, the other one runs only after this one yields. */
static bool is_on_cpu(const weft_shmcoll *area, uint32_t member, uint32_t cpu)
{
    return cpu && atomic_load_explicit(&area->pages[member]->cpu, memory_order_relaxed) == cpu;
}

/* Whether looks for the member's post of s may find it soon. Not if the member has given its CPU to another rank, or if it, or a later one
 * that is awaited too (for_all), shares this member's CPU and has not posted: to yield is better. */
static bool may_look(const weft_shmcoll *area, uint32_t member, bool for_all, uint64_t s)
{
    uint32_t cpu = publish_cpu(area), end = for_all ? area->ranks : member + 1;

    if (atomic_load_explicit(&area->pages[member]->yields, memory_order_relaxed))
        return false;
    for (uint32_t i = member; i < end; i++)
        if (i != area->rank && is_on_cpu(area, i, cpu) && !weft_shmcoll_has_posted(area, i, s))
            return false;
    return true;
}

/* Looks for the post for a short time. */
static bool is_seen(weft_shmcoll *area, uint32_t member, uint64_t s)
{
    weft_wait_policy *policy = &area->worker->world->wait_policy;
    uint32_t left = weft_wait_policy_looks(policy);

    while (left && !weft_shmcoll_has_posted(area, member, s))
        left = weft_shmcoll_looked(area, left);
    weft_wait_policy_looked(policy, left);
    return left;
}

/* A yield costs less than a turn of a wait: no iface is polled. The long wait follows soon. */
static __attribute__((noinline)) int await_post_crowded(weft_shmcoll *area, uint32_t member, uint64_t s)
{
    weft_wait_yields yields = {.left = WEFT_ATTEMPTS_YIELDS};
    bool has_posted;

    do
        has_posted = may_look(area, member, false, s) ? is_seen(area, member, s) : weft_shmcoll_has_posted(area, member, s);
    while (!has_posted && weft_wait_yield(area->worker, &yields));
    if (!has_posted)
        return wait_long(area, (int32_t)member, false, s);
    weft_wait_yields_succeeded(area->worker, &yields);
    return WEFT_OK;
}

static int await_post(weft_shmcoll *area, uint32_t member, uint64_t s)
{
    if (area->is_oversubscribed)
        return await_post_crowded(area, member, s);
    return weft_likely(is_seen(area, member, s)) ? WEFT_OK : wait_long(area, (int32_t)member, false, s);
}

static __attribute__((noinline)) int await_member(weft_shmcoll *area, uint32_t member, uint64_t s)
{
    int rc = await_post(area, member, s);

    if (rc || has_posted_same(area, weft_shmcoll_line_of(area, member, s), s))
        return rc;
    return weft_shmcoll_differ(area, member);
}

int weft_shmcoll_await(weft_shmcoll *area, uint32_t member, uint64_t s)
{
    return weft_likely(has_posted_same(area, weft_shmcoll_line_of(area, member, s), s)) ? WEFT_OK : await_member(area, member, s);
}

/* first: lower members have posted s. It looks for one post at a time: a look at one that is not made yet delays it. */
static int await_count(weft_shmcoll *area, uint32_t first, bool compares, uint64_t s)
{
    weft_wait_yields yields = {.left = WEFT_ATTEMPTS_YIELDS};
    uint32_t at = first;

    do {
        at = weft_shmcoll_skip_posted(area, at, s);
        while (at < area->ranks && may_look(area, at, true, s) && is_seen(area, at, s))
            at = weft_shmcoll_skip_posted(area, at, s);
    } while (at < area->ranks && weft_wait_yield(area->worker, &yields));
    if (at < area->ranks)
        return wait_long(area, -1, compares, s);
    weft_wait_yields_succeeded(area->worker, &yields);
    return WEFT_OK;
}

static __attribute__((noinline)) int await_rest(weft_shmcoll *area, uint32_t first, uint64_t s)
{
    int rc = area->is_oversubscribed ? await_count(area, first, true, s) : WEFT_OK;

    for (uint32_t i = first; i < area->ranks && !rc; i++)
        if (i != area->rank)
            rc = await_member(area, i, s);
    return rc;
}

int weft_shmcoll_await_all(weft_shmcoll *area, uint64_t s)
{
    const weft_shmcoll_line *line = weft_shmcoll_line_of(area, 0, s);
    uint32_t i = 0, ranks = area->ranks, rank = area->rank;

    for (; i < ranks && (has_posted_same(area, line, s) || i == rank); i++)
        line += area->depth;
    if (s > area->known)
        area->known = s;
    return i == ranks ? WEFT_OK : await_rest(area, i, s);
}

static int await_posts(weft_shmcoll *area, uint64_t s)
{
    int rc = WEFT_OK;

    if (area->is_oversubscribed)
        return await_count(area, 0, false, s);
    for (uint32_t i = 0; i < area->ranks && !rc; i++)
        if (i != area->rank)
            rc = await_post(area, i, s);
    return rc;
}

/* Waits until all members have posted `past`, or a later operation than that; does not compare their calls. */
static __attribute__((noinline)) int await_reusable(weft_shmcoll *area, uint64_t s, uint64_t past)
{
    int rc = WEFT_OK;

    if (weft_shmcoll_is_complete(area, s - 1)) /* saves the next operations this call */
        past = s - 1;
    else
        rc = await_posts(area, past);
    area->known = past;
    return rc;
}

/* Another thread may be the leader, which polls. A wait yields after a poll without events: not here. */
static __attribute__((noinline)) void poll_once(weft_shmcoll *area)
{
    weft_wait wait;

    area->is_waiting = true;
    if (!area->worker->is_threaded) {
        weft_worker_poll(area->worker);
    } else {
        weft_wait_begin(&wait, area->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, 0, 0);
        weft_wait_progress(&wait);
        weft_wait_end(&wait);
    }
    area->is_waiting = false;
}

/* Stores the hash of the calls for readers of s (has_posted_same). The post releases it. */
static inline void store_call_hash(weft_shmcoll *area, uint64_t s)
{
    atomic_store_explicit(&weft_shmcoll_line_of(area, area->rank, s)->call_hash, area->call_hash, memory_order_relaxed);
}

/* A writer in s needs the posts of s - ahead and so many more operations. */
static inline uint64_t reuse_lag(bool is_writer) { return is_writer ? 1 + WEFT_SHMCOLL_LAG : 0; }

static __attribute__((noinline)) uint64_t begin_slowly(weft_shmcoll *area, uint64_t s, uint32_t ahead, bool is_writer)
{
    uint64_t safe = s + reuse_lag(is_writer);

    if (area->rc)
        return 0;
    if (s % WEFT_SHMCOLL_POLL_EVERY == 0)
        poll_once(area);
    if (area->known + ahead < safe && await_reusable(area, s, safe - ahead))
        return 0;
    if (is_writer)
        store_call_hash(area, s);
    return s;
}

uint64_t weft_shmcoll_begin(weft_shmcoll *area, uint32_t ahead, bool is_writer)
{
    uint64_t s = ++area->op;

    if (weft_unlikely(area->rc || s % WEFT_SHMCOLL_POLL_EVERY == 0 || area->known + ahead < s + reuse_lag(is_writer)))
        return begin_slowly(area, s, ahead, is_writer);
    if (is_writer)
        store_call_hash(area, s);
    return s;
}

static void set_awaited(weft_shmcoll *area, int32_t member, uint64_t s)
{
    if (area->awaited == s && area->awaited_member == member)
        return;
    area->awaited = s;
    area->awaited_member = member;
    area->arrived = 0;
}

/* Waits for the next member's post that frees the slot of s, or returns WEFT_AGAIN. A lower member is always as far ahead as it may be: it
 * waits until half of that is free, instead of looking at lines that the next one is about to write. That is a post of a scan, which wakes
 * the lower member: older operations are known to be posted. */
static __attribute__((noinline)) int await_next(weft_shmcoll *area, uint64_t s, uint32_t ahead, bool may_wait)
{
    uint32_t next = area->rank + 1;
    uint64_t past = s - ahead + ahead / 2;

    if (weft_shmcoll_has_posted(area, next, s - 1)) {
        past = s - 1;
    } else if (may_wait) {
        int rc = await_post(area, next, past);
        if (rc)
            return rc;
    } else if (!weft_shmcoll_has_posted(area, next, past)) {
        set_awaited(area, (int32_t)next, past);
        return WEFT_AGAIN;
    }
    area->next_known = past;
    return WEFT_OK;
}

uint64_t weft_shmcoll_begin_relay(weft_shmcoll *area, uint32_t ahead, bool may_wait)
{
    uint64_t s = area->op + 1;
    bool has_next = area->rank + 1 < area->ranks;

    if (ahead == WEFT_SHMCOLL_DEPTH) /* two neighbours whose calls differ should find them in their logs, to name them */
        ahead -= WEFT_SHMCOLL_DEPTH / 8;
    if (weft_unlikely(area->rc))
        return 0;
    if (may_wait && s % WEFT_SHMCOLL_POLL_EVERY == 0)
        poll_once(area);
    if (has_next && area->next_known + ahead < s && await_next(area, s, ahead, may_wait))
        return 0;
    area->op = s;
    if (has_next)
        store_call_hash(area, s);
    return s;
}

/* ---- nonblocking calls ---- */

/* All members have posted s. If not, and members are oversubscribed, the last post will wake this one. */
static bool test_complete(weft_shmcoll *area, uint64_t s)
{
    if (weft_shmcoll_is_complete(area, s))
        return true;
    set_awaited(area, -1, s);
    prepare_sleep(area, s);
    area->arrived = weft_shmcoll_skip_posted(area, area->arrived, s);
    return area->arrived == area->ranks;
}

/* Whether all members have posted `past`, on which operation s depends. */
static __attribute__((noinline)) bool may_begin(weft_shmcoll *area, uint64_t s, uint64_t past)
{
    if (area->rc)
        return false;
    if (area->awaited != past && weft_shmcoll_is_complete(area, s - 1)) /* once in a wait */
        past = s - 1;
    else if (!test_complete(area, past))
        return false;
    area->known = past;
    return true;
}

uint64_t weft_shmcoll_try_begin(weft_shmcoll *area, uint32_t ahead, bool is_writer)
{
    uint64_t s = area->op + 1, safe = s + reuse_lag(is_writer);

    if (weft_unlikely(area->rc || area->known + ahead < safe) && !may_begin(area, s, safe - ahead))
        return 0;
    area->op = s;
    if (is_writer)
        store_call_hash(area, s);
    return s;
}

int weft_shmcoll_test(weft_shmcoll *area, uint32_t member, uint64_t s)
{
    const weft_shmcoll_line *line = weft_shmcoll_line_of(area, member, s);

    if (has_posted_same(area, line, s))
        return WEFT_OK;
    if (weft_shmcoll_has_posted(area, member, s) && !has_posted_same(area, line, s))
        return weft_shmcoll_differ(area, member);
    set_awaited(area, (int32_t)member, s);
    return WEFT_AGAIN;
}

/* Counts members that have posted s in area->arrived. */
static int count_arrived(weft_shmcoll *area, uint64_t s)
{
    for (uint32_t i = area->arrived; i < area->ranks; area->arrived = ++i) {
        if (i == area->rank || has_posted_same(area, weft_shmcoll_line_of(area, i, s), s))
            continue;
        if (!weft_shmcoll_has_posted(area, i, s))
            return WEFT_AGAIN;
        if (!has_posted_same(area, weft_shmcoll_line_of(area, i, s), s))
            return weft_shmcoll_differ(area, i);
    }
    return WEFT_OK;
}

int weft_shmcoll_test_all(weft_shmcoll *area, uint64_t s)
{
    int rc;

    set_awaited(area, -1, s);
    prepare_sleep(area, s);
    rc = count_arrived(area, s);
    if (!rc && s > area->known)
        area->known = s;
    return rc;
}

/* A turn after the looks of an attempt, if ranks share CPUs: looks for a post of a member that runs, or yields. False: neither helps. */
static __attribute__((noinline)) bool look_on(weft_shmcoll *area)
{
    weft_wait_policy *policy = &area->worker->world->wait_policy;
    uint32_t looks = weft_shmcoll_looks(area), left = looks;

    area->turns--;
    while (left && !weft_shmcoll_has_news(area))
        left = weft_shmcoll_looked(area, left);
    if (looks)
        weft_wait_policy_looked(policy, left);
    return left || weft_wait_yield(area->worker, &area->yields);
}

bool weft_shmcoll_look(weft_shmcoll *area, uint32_t *left)
{
    do {
        while (*left) {
            if (weft_shmcoll_has_news(area)) {
                --*left;
                return true;
            }
            *left = weft_shmcoll_looked(area, *left);
        }
    } while (area->turns && (*left = look_on(area)));
    return false;
}

uint32_t weft_shmcoll_looks(weft_shmcoll *area)
{
    bool for_all = area->awaited_member < 0;

    if (!area->is_oversubscribed)
        return WEFT_WAIT_LOOKS;
    if (!weft_shmcoll_has_news(area) && !may_look(area, for_all ? area->arrived : (uint32_t)area->awaited_member, for_all, area->awaited))
        return 0;
    return weft_wait_policy_looks(&area->worker->world->wait_policy);
}

int weft_shmcoll_check_awaited(weft_shmcoll *area)
{
    long_wait self = {.area = area, .member = area->awaited_member, .s = area->awaited};
    bool is_dead;
    int32_t lost = find_gone(&self, &is_dead);

    if (lost < 0)
        return WEFT_OK;
    return is_dead ? member_failed(area, (uint32_t)lost) : weft_shmcoll_differ(area, (uint32_t)lost);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_rig: see node_rig.h. A lost wake-up ends the test at a deadline.
 */
#include "node_rig.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collectives/blocks.h"
#include "collectives/calls.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_area.h"
#include "core/callout.h"
#include "core/wait.h"
#include "mem/membarrier.h"

#define DEADLINE_S 100 /* of one sleep: far beyond any scheduling delay */

node_rig rig;

uint64_t rig_draw(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void rig_complain(const char *what, uint32_t rank, uint64_t number)
{
    if (atomic_fetch_add(&rig.failures, 1) == 0)
        fprintf(stderr, "rank %u of %u, %s, seed %llu, operation %llu: %s\n", rank, rig.ranks,
                rig.is_oversubscribed ? "oversubscribed" : "dedicated",
                (unsigned long long)rig.seed, (unsigned long long)number, what);
}

/* ---- in place of core/wait: spin, arm (asleep is set, then the sleeper's barrier), poll again, sleep ---- */

static void order_for_sleeper(void)
{
    if (rig.needs_fence)
        atomic_thread_fence(memory_order_seq_cst);
    else
        weft_membarrier();
}

void rig_flip(member *self)
{
    if (!rig.is_flipping || self->rank != rig.writer || rig.is_flipped)
        return;
    weft_shmcoll_place(self->area, rig.writer, 1, rig.flip_bytes)[rig.flip_at] ^= 8;
    rig.is_flipped = true;
}

void weft_wait_progress(weft_wait *wait)
{
    member *self = weft_container(wait->worker, member, worker);
    struct timespec limit = {DEADLINE_S, 0};

    rig_flip(self);
    if (weft_shmcoll_progress(&self->worker) > 0) {
        wait->is_armed = self->worker.is_armed = false;
        wait->idle = 0;
        return;
    }
    if (!wait->is_armed) {
        if (wait->idle++ < self->world.wait_policy.spins)
            return;
        wait->is_armed = self->worker.is_armed = true;
        atomic_store_explicit(&self->page->asleep, 1, memory_order_relaxed);
        order_for_sleeper();
        return;
    }
    self->sleeps++;
    while (atomic_load_explicit(&self->page->asleep, memory_order_acquire) == 1)
        if (syscall(SYS_futex, &self->page->asleep, FUTEX_WAIT, 1, &limit, NULL, 0) && errno == ETIMEDOUT) {
            fprintf(stderr, "rank %u of %u sleeps forever: a wake-up was lost (seed %llu)\n", self->rank, rig.ranks,
                    (unsigned long long)rig.seed);
            _exit(1);
        }
    wait->is_armed = self->worker.is_armed = false;
    wait->idle = 0;
}

void weft_wait_close(weft_wait *wait)
{
    member *self = weft_container(wait->worker, member, worker);
    atomic_store_explicit(&self->page->asleep, 0, memory_order_relaxed);
    self->worker.is_armed = false;
}

/* Half of the members yield before they wait. */
bool weft_wait_yield(weft_worker *worker, weft_wait_yields *yields)
{
    member *self = weft_container(worker, member, worker);

    rig_flip(self);
    if (!yields->left || (rig.seed + self->rank) % 2)
        return false;
    yields->left--;
    yields->has_yielded = true;
    sched_yield();
    return true;
}

int weft_worker_poll(weft_worker *worker) { return weft_shmcoll_progress(worker); }

/* The workers are never locked: counts the offers. */
bool weft_lock_offer(weft_lock *lock)
{
    weft_container(lock, member, worker.lock)->offers++;
    return false;
}

/* Unlocked work counts as an offer. */
void weft_worker_callout_begin(weft_worker *worker) { weft_container(worker, member, worker)->offers++; }
void weft_worker_callout_end(weft_worker *worker) { (void)worker; }

/* Short data, in lines and in slots, and long data in the same slots. */
static uint64_t lagging_count(uint32_t i) { return i % 17 == 3 ? 1500 : i % 3 ? 1 + i % 9 : 30; }

cases_call rig_call(uint32_t i)
{
    uint64_t run = rig.seed * 131 + i / 18, random = rig.seed * 7919 + i, kind = rig_draw(&run);
    cases_call call = {.ranks = rig.ranks, .round = i, .kind = cases_area_kinds[kind % CASES_AREA_KINDS], .type =
                       rig_draw(&random) % CASES_AREA_TYPES};

    if (rig.is_lagging)
        return (cases_call){.ranks = rig.ranks, .round = i, .kind = WEFT_COLL_BCAST, .count = lagging_count(i), .root = i / 5 % 2};
    call.root = (int)(rig_draw(&run) % rig.ranks);
    switch (rig_draw(&random) % 8) {
    case 0:
        call.count = rig_draw(&random) % 6000;
        break;
    case 1:
        call.count = rig_draw(&random) % 400;
        break;
    case 2:
        call.count = 0;
        break;
    default:
        call.count = 1 + rig_draw(&random) % 8;
    }
    call.in_place = call.kind != WEFT_COLL_BCAST && call.kind != WEFT_COLL_BARRIER && rig_draw(&random) % 2;
    return call;
}

cases_call rig_call_of(const weft_shmcoll *area, uint32_t i)
{
    cases_call call = rig_call(i);

    if (call.kind != WEFT_COLL_ALLTOALL || i % 4 == 0 || !weft_shmcoll_has_cells(area))
        return call;
    call.kind = i % 2 ? WEFT_COLL_ALLTOALLV : WEFT_COLL_ALLTOALLW;
    if (i % 3 == 0) /* blocks of up to one and a half or three cells */
        call.count = area->slot_bytes / rig.ranks / 8;
    return call;
}

void rig_take_left(const weft_shmcoll *area, const weft_moved *moved, uint32_t left, cases_side *side)
{
    weft_blocks blocks = weft_blocks_received(&side->args);
    uint64_t longest = 0;

    for (uint32_t i = 0; i < rig.ranks; i++) {
        weft_block block = weft_blocks_at(&blocks, i);
        int64_t at = (char *)block.at - side->recv;
        if (i != area->rank && weft_block_bytes(&block) > longest)
            longest = weft_block_bytes(&block);
        if (left && !weft_moved_has(moved->received, i))
            memcpy(side->recv + at, side->expect_recv + at, block.count * (uint64_t)block.type->extent);
    }
    atomic_fetch_add(&rig.alltoallvs, 1);
    atomic_fetch_add(&rig.lefts, left > 0);
    atomic_fetch_add(&rig.longs, !left && longest > area->slot_bytes / rig.ranks);
}

int rig_run_halves(weft_shmcoll *area, const weft_coll *args, uint32_t parts)
{
    weft_call call = weft_call_of(WEFT_COLL_ALLREDUCE, WEFT_CALL_BLOCKING, args, weft_coll_bytes(WEFT_COLL_ALLREDUCE, args, false));
    int rc = weft_shmcoll_publish(area, call, 0, false), rc_spread;

    if (rc)
        return rc;
    rc = weft_shmcoll_reduce_scatter(area, args, parts);
    weft_shmcoll_set_tainted(area, rc != 0);
    rc_spread = weft_shmcoll_allgather(area, args, parts);
    weft_shmcoll_set_tainted(area, false);
    return rc ? rc : rc_spread;
}

static void on_end(weft_shmcoll_pending *pending)
{
    rig_request *request = pending->owner;

    request->rc = pending->rc ? pending->rc : pending->damage;
    request->moved = pending->area->moved;
    request->left = pending->area->left;
    request->is_done = true;
}

/* The call as a repeated one, for half of those that can be, or all; NULL: by rounds. */
static const weft_shmcoll_short *short_of(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    uint64_t random = rig.seed * 6151 + area->calls * 97 + area->rank;
    const weft_shmcoll_short *same = weft_shmcoll_find_short(area, kind, args);

    if (!same)
        weft_shmcoll_note_short(area, kind, args, NULL);
    same = weft_shmcoll_find_short(area, kind, args);
    return rig.seed % 3 == 0 || rig_draw(&random) % 2 ? same : NULL;
}

int rig_call_now(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    const weft_shmcoll_short *same = area->rc ? NULL : short_of(area, kind, args);

    if (!same)
        return weft_shmcoll_run(area, kind, args);
    atomic_fetch_add(&rig.shorts, 1);
    return weft_shmcoll_run_short(area, kind, same, args);
}

/* Whether the call has ended at once. */
static bool begin_short(weft_shmcoll *area, const weft_shmcoll_pending *pending)
{
    const weft_shmcoll_short *same = short_of(area, pending->kind, &pending->args);

    if (!same || !weft_shmcoll_may_attempt_short(area))
        return false;
    atomic_fetch_add(&rig.begun_shorts, 1);
    return !weft_shmcoll_attempt_short(area, pending->kind, &pending->args, same, pending->call, 0);
}

void rig_begin(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, rig_request *request)
{
    uint64_t bytes = weft_coll_bytes(kind, args, args->root == (int)area->rank);
    int rc;

    *request = (rig_request){.pending = {.area = area, .kind = kind, .args = *args,
                                         .call = weft_call_of(kind, WEFT_CALL_NONBLOCKING, args, bytes), .end = on_end, .owner = request}};
    if (begin_short(area, &request->pending)) {
        request->is_done = true;
        return;
    }
    rc = weft_shmcoll_enqueue(&request->pending); /* may call on_end */
    if (rc) {
        request->rc = rc;
        request->is_done = true;
    }
}

int rig_wait(weft_shmcoll *area, rig_request *request)
{
    weft_wait wait;

    if (!request->is_done)
        weft_shmcoll_spin(&request->pending);
    weft_wait_begin(&wait, area->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, 0, 0);
    while (!request->is_done)
        weft_wait_progress(&wait);
    weft_wait_end(&wait);
    return request->rc;
}

unsigned rig_flags(void)
{
    return (rig.is_oversubscribed ? WEFT_SHMCOLL_OVERSUBSCRIBED : 0) | (rig.needs_fence ? WEFT_SHMCOLL_FENCE : 0) |
           (rig.has_csum ? WEFT_SHMCOLL_CSUM : 0);
}

void rig_open(uint32_t ranks, bool is_oversubscribed, bool needs_fence, uint64_t bytes)
{
    char *pages = mmap(NULL, RANKS_MAX * WEFT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    memset(&rig, 0, sizeof rig);
    rig.ranks = ranks;
    rig.is_oversubscribed = is_oversubscribed;
    rig.needs_fence = needs_fence;
    rig.bytes = bytes;
    rig.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (uint32_t i = 0; i < ranks; i++) {
        member *self = &rig.members[i];
        self->rank = i;
        self->page = rig.pages[i] = (weft_rank_page *)(pages + i * WEFT_PAGE);
        self->worker.world = &self->world;
        weft_list_init(&self->worker.areas);
        weft_list_init(&self->worker.inboxes);
        weft_list_init(&self->worker.devices);
        self->world.wait_policy.spins = is_oversubscribed ? 0 : 20;
    }
}

void rig_run(void *(*body)(void *))
{
    for (uint32_t i = 0; i < rig.ranks; i++)
        pthread_create(&rig.members[i].thread, NULL, body, &rig.members[i]);
    for (uint32_t i = 0; i < rig.ranks; i++)
        pthread_join(rig.members[i].thread, NULL);
    munmap(rig.memory, rig.bytes);
    munmap(rig.pages[0], RANKS_MAX * WEFT_PAGE);
}

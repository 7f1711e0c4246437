/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pscw: general active target synchronization (MPI 5.0 12.5.2), and what all synchronization shares: its messages and waits. A post says
 * that the teller's memory may be accessed, a complete that the teller's operations are performed; each goes from one member to one other:
 * as a count in memory of the node, which the teller alone writes, or as a message to another node. A member that waits names the first one
 * that is missing (control->awaited) and looks again; a teller wakes it only if it is named, so a sleeper is not woken in vain by others.
 * With MPI_MODE_NOCHECK nothing is posted or awaited: the program promises that the memory is posted.
 */
#include <stdlib.h>

#include "base/status.h"
#include "core/worker.h"
#include "core/world.h"
#include "p2p/lost.h"
#include "rma/memory.h"
#include "rma/op.h"
#include "rma/sync_state.h"

#define POLL_EVERY 64 /* calls between two polls of the ifaces by a member that never waits */

int weft_window_sync_open(weft_window *window)
{
    window->sync = calloc(1, sizeof *window->sync + window->size * sizeof *window->sync->members);
    if (!window->sync)
        return weft_fail(WEFT_E_NOMEM, "no memory for the synchronization of a window of %u members", window->size);
    window->sync->first = window->sync->last = UINT32_MAX;
    weft_list_init(&window->sync->waits);
    for (uint32_t i = 0; i < window->size; i++)
        window->sync->members[i].from = &window->sync->members[i].told;
    window->sync->members[window->rank].to = &window->sync->members[window->rank].told;
    return 0;
}

void weft_window_sync_map(weft_window *window)
{
    const weft_window_memory *memory = window->memory;
    for (uint32_t i = 0; i < memory->count && memory->told; i++) {
        weft_sync_member *at = &window->sync->members[memory->members[i]];
        if (i == memory->index)
            continue;
        at->from = weft_window_memory_told(memory, memory->index, i);
        at->to = weft_window_memory_told(memory, i, memory->index);
        at->page = memory->pages[i];
    }
}

void weft_window_sync_close(weft_window *window)
{
    free(window->sync);
    window->sync = NULL;
}

int weft_window_sync_tell(weft_window *window, uint32_t to, enum weft_sync_kind kind, bool is_exclusive)
{
    weft_sync_note note = {.kind = (uint8_t)kind, .is_exclusive = is_exclusive};
    return weft_chan_notify(window->chan, to, &note, sizeof note);
}

/* By the only writer. */
static void add(weft_window_told *told, enum weft_window_epoch_end end)
{
    uint32_t count = atomic_load_explicit(&told->counts[end], memory_order_relaxed);
    atomic_store_explicit(&told->counts[end], count + 1, memory_order_release);
}

void weft_window_sync_on_notify(weft_window *window, uint32_t from, const void *body, uint32_t bytes)
{
    const weft_sync_note *note = body;
    if (bytes < sizeof *note)
        return;
    switch (note->kind) {
    case WEFT_SYNC_POST: add(&window->sync->members[from].told, WEFT_WINDOW_POST); break;
    case WEFT_SYNC_COMPLETE: add(&window->sync->members[from].told, WEFT_WINDOW_COMPLETE); break;
    default: weft_window_lock_on_note(window, from, note);
    }
}

const char *weft_window_gone_text(const weft_window *window, uint32_t member)
{
    return window->targets[member].is_lost ? "has died" : "has called MPI_Finalize, or has freed the window";
}

static void set_left(weft_window *window, uint32_t member)
{
    window->targets[member].has_left = true;
    weft_lost_left(window->chan, member, weft_fail(WEFT_E_PEER, "the process of member %u of the window %s", member,
                                                           weft_window_gone_text(window, member)));
}

void weft_window_sync_on_gone(weft_window *window, uint32_t from)
{
    window->has_lost = window->chan->lost_count;
    for (uint32_t i = 0; i < window->size; i++) {
        weft_window_target *at = &window->targets[i];
        if (i == window->rank)
            continue;
        at->is_lost = at->is_lost || weft_lost_is_member(window->chan, i);
        if (!weft_window_target_is_gone(at) && (i == from || weft_chan_has_closed(window->chan, i)))
            set_left(window, i);
        if (weft_window_target_is_gone(at))
            weft_window_lock_on_gone(window, i);
    }
}

bool weft_window_is_gone(weft_window *window, uint32_t member)
{
    weft_window_target *at = &window->targets[member];
    if (weft_window_target_is_gone(at) || (!at->left_turn && !weft_chan_has_left(window->chan, member)))
        return weft_window_target_is_gone(at);
    if (!at->left_turn)
        at->left_turn = window->worker->empty_turns + 1;
    else if (window->worker->empty_turns >= at->left_turn) /* its last frames have been read */
        set_left(window, member);
    return at->has_left;
}

bool weft_window_look_gone(weft_window *window, uint32_t member)
{
    weft_window_target *at = &window->targets[member];
    if (!weft_window_target_is_gone(at) && weft_chan_has_left(window->chan, member) && weft_worker_poll(window->worker) <= 0 &&
        !weft_window_target_is_gone(at))
        set_left(window, member);
    return weft_window_target_is_gone(at);
}

bool weft_window_has_closed(weft_window *window, uint32_t member)
{
    return weft_window_target_is_gone(&window->targets[member]) || weft_chan_has_left(window->chan, member) ||
           weft_chan_ask(window->chan, member);
}

void weft_window_ask_gone(weft_window *window, uint32_t member)
{
    weft_window_target *at = &window->targets[member];
    if (weft_window_is_gone(window, member))
        return;
    if (!at->left_turn && weft_chan_ask(window->chan, member))
        at->left_turn = window->worker->empty_turns + 1;
}

void weft_window_sync_ask_gone(weft_window *window)
{
    const weft_list_link *waits = &window->sync->waits;
    for (const weft_list_link *link = waits->next; link != waits; link = link->next)
        weft_window_ask_gone(window, weft_container(link, weft_sync_wait, link)->member);
}

static bool is_over(weft_wait *wait)
{
    weft_sync_wait *self = weft_container(wait, weft_sync_wait, wait);
    return self->is_over(self);
}

void weft_window_sync_await(weft_sync_wait *self)
{
    weft_window *window = self->window;
    if (self->is_over(self))
        return;
    weft_wait_begin(&self->wait, window->worker, WEFT_WAIT_REASON_WINDOW, weft_chan_job_rank(window->chan, (int)self->member), 0, 0);
    self->wait.is_over = is_over;
    weft_list_append(&window->sync->waits, &self->link);
    while (!self->is_over(self))
        weft_wait_progress(&self->wait);
    weft_list_remove(&self->link);
    weft_wait_end(&self->wait);
}

static inline bool is_told(const weft_sync_member *at, enum weft_window_epoch_end end)
{
    return atomic_load_explicit(&at->from->counts[end], memory_order_acquire) != at->taken[end];
}

/* Has every member of the group told it? Else self->member is the first that has not. */
static bool have_told(weft_sync_wait *self)
{
    for (uint32_t i = 0; i < self->count; i++) {
        self->member = self->ranks[i];
        const weft_window_target *at = &self->window->targets[self->member];
        if (!is_told(&self->window->sync->members[self->member], self->end) && !weft_window_target_is_gone(at))
            return false;
    }
    return true;
}

/* Wait condition. Names the member that is missing before the look that decides. */
static bool have_told_or_named(weft_sync_wait *self)
{
    _Atomic uint32_t *awaited = &self->window->targets[self->window->rank].control->awaited[self->end];
    while (!have_told(self)) {
        if (atomic_load_explicit(awaited, memory_order_relaxed) == self->member + 1) {
            if (!weft_window_is_gone(self->window, self->member))
                return false;
            continue;
        }
        atomic_store_explicit(awaited, self->member + 1, memory_order_seq_cst);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with wake_if_named() */
    }
    return true;
}

static bool have_told_soon(weft_sync_wait *self)
{
    weft_wait_policy *policy = &self->window->worker->world->wait_policy;
    uint32_t left = weft_wait_policy_looks(policy);
    while (left && !have_told(self))
        left--;
    weft_wait_policy_looked(policy, left);
    return left;
}

/* wait false: looks once. Returns whether all have told, or, with *rc set, will not since they are gone. */
static bool await_told(weft_window *window, const uint32_t *ranks, uint32_t count, enum weft_window_epoch_end end, bool wait, int *rc)
{
    weft_sync_wait self = {.window = window, .is_over = have_told_or_named, .ranks = ranks, .count = count, .end = end};
    if (weft_unlikely(window->sync->calls++ % POLL_EVERY == 0))
        weft_worker_poll(window->worker);
    if (wait && weft_unlikely(!have_told_soon(&self))) {
        weft_window_sync_await(&self);
        atomic_store_explicit(&window->targets[window->rank].control->awaited[end], 0, memory_order_relaxed);
    } else if (!wait && !have_told(&self)) {
        weft_worker_poll(window->worker);
        if (!have_told(&self))
            return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (is_told(&window->sync->members[ranks[i]], end))
            window->sync->members[ranks[i]].taken[end]++;
        else
            *rc = weft_fail(WEFT_E_PEER, "the process of member %u of the window %s", ranks[i], weft_window_gone_text(window, ranks[i]));
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

static void wake_if_named(weft_window *window, const weft_sync_member *at, uint32_t member, enum weft_window_epoch_end end)
{
    if (atomic_load_explicit(&window->targets[member].control->awaited[end], memory_order_relaxed) == window->rank + 1)
        weft_page_wake_if_asleep(at->page);
}

/* By memory first, then fences once, then wakes and sends messages. */
static int tell_all(weft_window *window, const uint32_t *ranks, uint32_t count, enum weft_window_epoch_end end)
{
    int rc = 0;
    atomic_thread_fence(memory_order_seq_cst); /* what this member stored is seen by those that it tells */
    for (uint32_t i = 0; i < count; i++)
        if (window->sync->members[ranks[i]].to)
            add(window->sync->members[ranks[i]].to, end);
    atomic_thread_fence(memory_order_seq_cst); /* store before load of awaited and asleep; pairs with the sleeper */
    for (uint32_t i = 0; i < count; i++) {
        const weft_sync_member *at = &window->sync->members[ranks[i]];
        int told = 0;
        if (at->page)
            wake_if_named(window, at, ranks[i], end);
        else if (!at->to)
            told = weft_window_sync_tell(window, ranks[i], end == WEFT_WINDOW_POST ? WEFT_SYNC_POST : WEFT_SYNC_COMPLETE, false);
        rc = rc ? rc : told;
    }
    return rc;
}

int weft_rma_post(weft_window *window, const uint32_t *ranks, uint32_t count, bool is_checked)
{
    if (is_checked)
        return tell_all(window, ranks, count, WEFT_WINDOW_POST);
    atomic_thread_fence(memory_order_seq_cst);
    return 0;
}

int weft_rma_start_epoch(weft_window *window, const uint32_t *ranks, uint32_t count, bool is_checked)
{
    int rc = 0;
    if (is_checked)
        await_told(window, ranks, count, WEFT_WINDOW_POST, true, &rc);
    return rc;
}

int weft_rma_complete(weft_window *window, const uint32_t *ranks, uint32_t count)
{
    int rc = 0, told;
    for (uint32_t i = 0; i < count; i++) {
        int flushed = weft_rma_flush(window, (int)ranks[i]);
        rc = rc ? rc : flushed;
    }
    told = tell_all(window, ranks, count, WEFT_WINDOW_COMPLETE);
    return rc ? rc : told;
}

int weft_rma_wait(weft_window *window, const uint32_t *ranks, uint32_t count, bool wait, bool *is_over)
{
    int rc = 0;
    *is_over = await_told(window, ranks, count, WEFT_WINDOW_COMPLETE, wait, &rc);
    return rc;
}

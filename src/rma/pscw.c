/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pscw: general active target synchronization (MPI 5.0 12.5.2), and what all synchronization shares: its messages and waits. A POST says
 * that the sender's memory may be accessed, a COMPLETE that the sender's operations are performed; each goes from one member to one other.
 * With MPI_MODE_NOCHECK no POST is sent or awaited: the program promises that the memory is posted.
 */
#include <stdlib.h>

#include "base/status.h"
#include "core/worker.h"
#include "rma/op.h"
#include "rma/sync_state.h"

int weft_window_sync_open(weft_window *window)
{
    window->sync = calloc(1, sizeof *window->sync + window->size * sizeof *window->sync->members);
    if (!window->sync)
        return weft_fail(WEFT_E_NOMEM, "no memory for the synchronization of a window of %u members", window->size);
    window->sync->first = window->sync->last = UINT32_MAX;
    return 0;
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

void weft_window_sync_on_notify(weft_window *window, uint32_t from, const void *body, uint32_t bytes)
{
    const weft_sync_note *note = body;
    if (bytes < sizeof *note)
        return;
    switch (note->kind) {
    case WEFT_SYNC_POST: window->sync->members[from].posts++; break;
    case WEFT_SYNC_COMPLETE: window->sync->members[from].completes++; break;
    default: weft_window_lock_on_note(window, from, note);
    }
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
    while (!self->is_over(self))
        weft_wait_progress(&self->wait);
    weft_wait_end(&self->wait);
}

/* The first member of the group that has not posted, or completed, its number in *missing. */
static bool find_missing(const weft_sync_wait *self, bool posts, uint32_t *missing)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const weft_sync_member *at = &self->window->sync->members[self->ranks[i]];
        if (posts ? at->posts : at->completes)
            continue;
        *missing = self->ranks[i];
        return true;
    }
    return false;
}

static bool have_posted(weft_sync_wait *self)
{
    uint32_t missing;
    return !find_missing(self, true, &missing);
}

static bool have_completed(weft_sync_wait *self)
{
    uint32_t missing;
    return !find_missing(self, false, &missing);
}

static int tell_all(weft_window *window, const uint32_t *ranks, uint32_t count, enum weft_sync_kind kind)
{
    int rc = 0;
    for (uint32_t i = 0; i < count; i++) {
        int told = 0;
        if (ranks[i] != window->rank)
            told = weft_window_sync_tell(window, ranks[i], kind, false);
        else if (kind == WEFT_SYNC_POST)
            window->sync->members[window->rank].posts++;
        else
            window->sync->members[window->rank].completes++;
        rc = rc ? rc : told;
    }
    return rc;
}

int weft_rma_post(weft_window *window, const uint32_t *ranks, uint32_t count, bool is_checked)
{
    atomic_thread_fence(memory_order_seq_cst); /* what this member stored is seen by those that it tells */
    return is_checked ? tell_all(window, ranks, count, WEFT_SYNC_POST) : 0;
}

int weft_rma_start_epoch(weft_window *window, const uint32_t *ranks, uint32_t count, bool is_checked)
{
    weft_sync_wait self = {.window = window, .is_over = have_posted, .ranks = ranks, .count = count};
    if (!is_checked)
        return 0;
    if (find_missing(&self, true, &self.member))
        weft_window_sync_await(&self);
    for (uint32_t i = 0; i < count; i++)
        window->sync->members[ranks[i]].posts--;
    return 0;
}

int weft_rma_complete(weft_window *window, const uint32_t *ranks, uint32_t count)
{
    int rc = 0, told;
    for (uint32_t i = 0; i < count; i++) {
        int flushed = weft_rma_flush(window, (int)ranks[i]);
        rc = rc ? rc : flushed;
    }
    atomic_thread_fence(memory_order_seq_cst);
    told = tell_all(window, ranks, count, WEFT_SYNC_COMPLETE);
    return rc ? rc : told;
}

int weft_rma_wait(weft_window *window, const uint32_t *ranks, uint32_t count, bool wait, bool *is_over)
{
    weft_sync_wait self = {.window = window, .is_over = have_completed, .ranks = ranks, .count = count};
    bool is_missing = find_missing(&self, false, &self.member);
    if (is_missing && wait) {
        weft_window_sync_await(&self);
    } else if (is_missing) {
        weft_worker_poll(window->worker);
        if (!have_completed(&self)) {
            *is_over = false;
            return 0;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        window->sync->members[ranks[i]].completes--;
    *is_over = true;
    return 0;
}

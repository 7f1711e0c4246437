/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lock: passive target locks (MPI 5.0 12.5.3). The lock of a target is a word of its control (lock_word.h). Members that map the control
 * use the word; the others ask the target by a message, and the target uses it for them: it takes a ticket for each in the order of the
 * messages. A member that changes the word wakes the members of the node that sleep (control->waiting), and the target, if others
 * queue there (control->queued). Both counts are raised before their owner looks at the word, and are read after it was changed, so that no
 * wake-up is lost.
 * If the job goes on when a member dies (mpirun --enable-recovery), what a dead member had by messages is given back by the target. A lock
 * of the word that it held or awaited stays taken: the word does not tell its owners. Each member notes its own in control->holds, so that
 * those that wait get an error which names the dead. A target that has left (MPI_Finalize without MPI_Win_free) answers no LOCK:
 * the call fails. Where the word is mapped the lock can still be taken, unless members hold or await it by messages: their UNLOCK is not
 * performed any more (control->by_message).
 */
#include "base/status.h"
#include "core/worker.h"
#include "rma/memory.h"
#include "rma/op.h"
#include "rma/lock_word.h"
#include "rma/sync_state.h"

#define NONE UINT32_MAX

/* A dead member that holds the target's lock by the word, or waits for it; NONE. */
static uint32_t dead_holder(const weft_window *window, uint32_t target)
{
    for (uint32_t i = 0; window->has_lost && i < window->size; i++) {
        const weft_window_target *at = &window->targets[i];
        uint32_t holds = at->is_lost && at->control ? atomic_load_explicit(&at->control->holds, memory_order_acquire) : 0;
        if (holds == target + 1 || holds == UINT32_MAX)
            return i;
    }
    return NONE;
}

static int held_by_dead(uint32_t holder, uint32_t target)
{
    return weft_fail(WEFT_E_PEER, "the lock of target %u cannot be given: the process of member %u, which held or awaited it, has died",
                     target, holder);
}

/* Notes, for the case of this member's death, the lock of the word that it will hold, or has given back. */
static void note_lock(weft_window *window, uint32_t target, bool is_taken)
{
    uint32_t locks = window->sync->locks += is_taken ? 1 : UINT32_MAX;
    uint32_t holds = !locks ? 0 : locks == 1 && is_taken ? target + 1 : UINT32_MAX; /* UINT32_MAX: several, or one of several */
    atomic_store_explicit(&window->targets[window->rank].control->holds, holds, memory_order_seq_cst);
}

static void count_by_message(weft_window *window, bool is_added)
{
    _Atomic uint32_t *count = &window->targets[window->rank].control->by_message;
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + (is_added ? 1 : UINT32_MAX), memory_order_release);
}

static void refuse(weft_window *window)
{
    weft_window_sync *sync = window->sync;
    weft_window_control *control = window->targets[window->rank].control;
    for (uint32_t member; (member = sync->first) != NONE; sync->first = sync->members[member].next) {
        sync->members[member].queues = false;
        atomic_fetch_sub_explicit(&control->queued, 1, memory_order_seq_cst);
        count_by_message(window, false);
        weft_window_sync_tell(window, member, WEFT_SYNC_REFUSE, false);
    }
    sync->last = NONE;
}

static void give_back(weft_window *window, bool is_exclusive)
{
    count_by_message(window, false);
    weft_lock_word_release(&window->targets[window->rank].control->lock, is_exclusive);
}

/* Grants the lock to members that queue by messages, as far as it is their turn. */
static void serve(weft_window *window)
{
    weft_window_sync *sync = window->sync;
    weft_window_control *control = window->targets[window->rank].control;
    while (sync->first != NONE) {
        uint32_t member = sync->first;
        weft_sync_member *at = &sync->members[member];
        if (!weft_lock_word_is_turn(&control->lock, at->ticket, at->is_exclusive)) {
            if (weft_unlikely(window->has_lost) && dead_holder(window, window->rank) != NONE)
                refuse(window);
            return;
        }
        weft_lock_word_enter(&control->lock, at->is_exclusive);
        at->queues = false;
        sync->first = at->next;
        if (sync->first == NONE)
            sync->last = NONE;
        atomic_fetch_sub_explicit(&control->queued, 1, memory_order_seq_cst);
        at->holds = !weft_window_target_is_gone(&window->targets[member]);
        if (at->holds)
            weft_window_sync_tell(window, member, WEFT_SYNC_GRANT, at->is_exclusive);
        else
            give_back(window, at->is_exclusive); /* for the dead */
        if (atomic_load_explicit(&control->waiting, memory_order_seq_cst))
            weft_window_memory_wake(window); /* a reader lets the next one in */
    }
}

/* After a change of the target's word. */
static void wake(weft_window *window, uint32_t target)
{
    weft_window_control *control = window->targets[target].control;
    if (weft_unlikely(atomic_load_explicit(&control->waiting, memory_order_seq_cst)))
        weft_window_memory_wake(window);
    if (weft_likely(!atomic_load_explicit(&control->queued, memory_order_seq_cst)))
        return;
    if (target == window->rank)
        serve(window);
    else
        weft_window_sync_tell(window, target, WEFT_SYNC_SERVE, false);
}

/* A member asks for this member's lock. */
static void enqueue(weft_window *window, uint32_t from, bool is_exclusive)
{
    weft_window_sync *sync = window->sync;
    weft_window_control *control = window->targets[window->rank].control;
    weft_sync_member *at = &sync->members[from];
    if (at->queues) /* a correct member asks once */
        return;
    atomic_fetch_add_explicit(&control->queued, 1, memory_order_seq_cst);
    count_by_message(window, true);
    at->queues = true;
    at->is_exclusive = is_exclusive;
    at->ticket = weft_lock_word_take_ticket(&control->lock);
    at->next = NONE;
    if (sync->last == NONE)
        sync->first = from;
    else
        sync->members[sync->last].next = from;
    sync->last = from;
    serve(window);
}

void weft_window_lock_on_note(weft_window *window, uint32_t from, const weft_sync_note *note)
{
    switch (note->kind) {
    case WEFT_SYNC_LOCK: enqueue(window, from, note->is_exclusive); break;
    case WEFT_SYNC_GRANT: window->sync->members[from].is_granted = true; break;
    case WEFT_SYNC_REFUSE: window->sync->members[from].is_refused = true; break;
    case WEFT_SYNC_UNLOCK:
        window->sync->members[from].holds = false;
        give_back(window, note->is_exclusive);
        wake(window, window->rank);
        break;
    case WEFT_SYNC_SERVE: serve(window); break;
    }
}

void weft_window_lock_on_gone(weft_window *window, uint32_t member)
{
    weft_sync_member *at = &window->sync->members[member];
    if (at->holds) {
        at->holds = false;
        give_back(window, at->is_exclusive);
        wake(window, window->rank);
    }
    serve(window);
}

/* The target has left, and members of other nodes hold or await its lock. Reads the target's state only if there are such members. */
static bool is_held_remotely(weft_window *window, uint32_t target)
{
    const weft_window_control *control = window->targets[target].control;
    return weft_unlikely(atomic_load_explicit(&control->by_message, memory_order_relaxed) && target != window->rank) &&
           weft_window_is_gone(window, target) && atomic_load_explicit(&control->by_message, memory_order_acquire);
}

static bool is_turn(weft_sync_wait *self)
{
    if (weft_unlikely(self->window->has_lost) && dead_holder(self->window, self->member) != NONE)
        return true;
    return weft_lock_word_is_turn(&self->window->targets[self->member].control->lock, self->ticket, self->is_exclusive) ||
           is_held_remotely(self->window, self->member);
}

/* Slow path: gets in line. */
static __attribute__((noinline)) int lock_in_line(weft_window *window, uint32_t target, bool is_exclusive)
{
    weft_window_control *control = window->targets[target].control;
    weft_sync_wait self = {.window = window, .is_over = is_turn, .member = target, .is_exclusive = is_exclusive};
    atomic_fetch_add_explicit(&control->waiting, 1, memory_order_seq_cst);
    self.ticket = weft_lock_word_take_ticket(&control->lock);
    weft_window_sync_await(&self);
    atomic_fetch_sub_explicit(&control->waiting, 1, memory_order_seq_cst);
    if (!weft_lock_word_is_turn(&control->lock, self.ticket, is_exclusive)) {
        uint32_t dead = dead_holder(window, target);
        return dead != NONE ? held_by_dead(dead, target)
                            : weft_fail(WEFT_E_PEER, "the lock of target %u cannot be given: its process %s, and members of other nodes "
                                        "held or awaited it", target, weft_window_gone_text(window, target));
    }
    weft_lock_word_enter(&control->lock, is_exclusive);
    if (!is_exclusive)
        wake(window, target);
    return 0;
}

static bool is_granted(weft_sync_wait *self)
{
    const weft_sync_member *at = &self->window->sync->members[self->member];
    return at->is_granted || at->is_refused || weft_window_is_gone(self->window, self->member);
}

static int lock_by_message(weft_window *window, uint32_t target, bool is_exclusive)
{
    weft_sync_wait self = {.window = window, .is_over = is_granted, .member = target, .is_exclusive = is_exclusive};
    int rc;
    window->sync->members[target].is_granted = window->sync->members[target].is_refused = false;
    rc = weft_window_look_gone(window, target) ? 0 : weft_window_sync_tell(window, target, WEFT_SYNC_LOCK, is_exclusive);
    if (!rc) /* not at all if it is gone */
        weft_window_sync_await(&self);
    if (rc || window->sync->members[target].is_granted)
        return rc;
    if (weft_window_target_is_gone(&window->targets[target]))
        return weft_fail(WEFT_E_PEER, "the lock of target %u cannot be given: its process %s", target,
                         weft_window_gone_text(window, target));
    return weft_fail(WEFT_E_PEER, "the lock of target %u cannot be given: the process of a member on its node, which held or awaited it, "
                     "has died", target);
}

int weft_rma_lock(weft_window *window, uint32_t target, bool is_exclusive, bool is_checked)
{
    weft_window_control *control = window->targets[target].control;
    int rc;
    if (!is_checked)
        return 0;
    if (!control)
        return lock_by_message(window, target, is_exclusive);
    if (weft_unlikely(window->worker->recovery != NULL))
        note_lock(window, target, true);
    if (weft_likely(weft_lock_word_try(&control->lock, is_exclusive)))
        return 0;
    rc = lock_in_line(window, target, is_exclusive);
    if (weft_unlikely(rc))
        note_lock(window, target, false);
    return rc;
}

int weft_rma_unlock(weft_window *window, uint32_t target, bool is_exclusive, bool is_checked)
{
    weft_window_control *control = window->targets[target].control;
    int rc = weft_rma_flush(window, (int)target);
    if (!is_checked)
        return rc;
    if (!control) {
        int told = weft_window_sync_tell(window, target, WEFT_SYNC_UNLOCK, is_exclusive);
        return rc ? rc : told;
    }
    weft_lock_word_release(&control->lock, is_exclusive);
    if (weft_unlikely(window->worker->recovery != NULL))
        note_lock(window, target, false);
    wake(window, target);
    return rc;
}

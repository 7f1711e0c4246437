/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_epoch: see win_epoch.h. Access epochs of a window exclude each other: fence; start to complete; locks; lock_all. An epoch of fences
 * without operations is none: other synchronization may follow (MPI 5.0 12.5.1).
 */
#include "mpi/win_epoch.h"

#include "base/status.h"
#include "rma/sync.h"

/* The call that has opened the epoch which is in the way, or NULL. */
static const char *open_access(const weft_win_epoch *epoch)
{
    return epoch->is_lock_all                     ? "MPI_Win_lock_all"
           : epoch->locks                         ? "MPI_Win_lock"
           : epoch->started.is_open               ? "MPI_Win_start"
           : epoch->is_fence && epoch->is_used    ? "MPI_Win_fence"
                                                  : NULL;
}

/* What ends the epoch that open_access names. */
static const char *end_of(const weft_win_epoch *epoch)
{
    return epoch->is_lock_all         ? "MPI_Win_unlock_all"
           : epoch->locks             ? "MPI_Win_unlock"
           : epoch->started.is_open   ? "MPI_Win_complete"
                                      : "MPI_Win_fence with MPI_MODE_NOSUCCEED";
}

static int no_epoch(uint32_t target) __attribute__((cold));
static int no_epoch(uint32_t target)
{
    return weft_fail(WEFT_E_RMA_SYNC, "target %u is accessed outside of any epoch: call MPI_Win_fence, MPI_Win_start with its rank in the "
                     "group, MPI_Win_lock or MPI_Win_lock_all before", target);
}

int weft_win_epoch_access_slow(weft_win *win, uint32_t target)
{
    weft_win_epoch *epoch = &win->epoch;
    int rc;
    if (epoch->is_lock_all) {
        rc = weft_rma_lock(win->window, target, false, true);
        if (rc)
            return rc;
        epoch->access[target] = WEFT_WIN_SHARED;
        epoch->is_used = true;
        return 0;
    }
    if (epoch->started.is_open)
        return weft_fail(WEFT_E_RMA_SYNC, "target %u is not in the group of MPI_Win_start", target);
    if (epoch->locks)
        return weft_fail(WEFT_E_RMA_SYNC, "target %u is accessed, but not locked: call MPI_Win_lock for it before", target);
    return no_epoch(target);
}

int weft_win_epoch_check_passive(const weft_win *win, uint32_t target)
{
    if (weft_win_epoch_is_passive(win, target))
        return 0;
    return weft_fail(WEFT_E_RMA_SYNC, "target %u is not locked: this call is for passive target epochs, after MPI_Win_lock or "
                     "MPI_Win_lock_all", target);
}

int weft_win_epoch_check_passive_all(const weft_win *win)
{
    if (win->epoch.is_lock_all || win->epoch.locks)
        return 0;
    return weft_fail(WEFT_E_RMA_SYNC, "no target is locked: this call is for passive target epochs, after MPI_Win_lock or "
                     "MPI_Win_lock_all");
}

static int in_the_way(const weft_win_epoch *epoch) __attribute__((cold));
static int in_the_way(const weft_win_epoch *epoch)
{
    return weft_fail(WEFT_E_RMA_SYNC, "an epoch that %s has opened is not ended: call %s first", open_access(epoch), end_of(epoch));
}

int weft_win_epoch_check_fence(const weft_win *win)
{
    const weft_win_epoch *epoch = &win->epoch;
    if (epoch->is_lock_all || epoch->locks || epoch->started.is_open)
        return in_the_way(epoch);
    if (epoch->posted.is_open)
        return weft_fail(WEFT_E_RMA_SYNC, "the exposure epoch that MPI_Win_post has opened is not ended: call MPI_Win_wait first");
    return 0;
}

int weft_win_epoch_check_start(const weft_win *win) { return open_access(&win->epoch) ? in_the_way(&win->epoch) : 0; }

int weft_win_epoch_check_post(const weft_win *win)
{
    const weft_win_epoch *epoch = &win->epoch;
    if (epoch->posted.is_open)
        return weft_fail(WEFT_E_RMA_SYNC, "the window is posted already: call MPI_Win_wait first");
    if (epoch->is_fence && epoch->is_used)
        return in_the_way(epoch);
    return 0;
}

int weft_win_epoch_check_complete(const weft_win *win)
{
    if (win->epoch.started.is_open)
        return 0;
    return weft_fail(WEFT_E_RMA_SYNC, "there is no epoch to complete: call MPI_Win_start before");
}

int weft_win_epoch_check_wait(const weft_win *win)
{
    if (win->epoch.posted.is_open)
        return 0;
    return weft_fail(WEFT_E_RMA_SYNC, "the window is not posted: call MPI_Win_post before");
}

static int check_locks_allowed(const weft_win *win)
{
    if (!(win->hints & WEFT_WIN_NO_LOCKS))
        return 0;
    return weft_fail(WEFT_E_RMA_SYNC, "the window was made with the info key no_locks: it cannot be locked");
}

int weft_win_epoch_check_lock(const weft_win *win, uint32_t target)
{
    const weft_win_epoch *epoch = &win->epoch;
    if (epoch->locks && epoch->access[target])
        return weft_fail(WEFT_E_RMA_SYNC, "target %u is locked already by this process: call MPI_Win_unlock first", target);
    if (open_access(epoch) && !epoch->locks)
        return in_the_way(epoch);
    if (epoch->posted.is_open && target == win->window->rank)
        return weft_fail(WEFT_E_RMA_SYNC, "this process has posted its memory, which cannot be locked before MPI_Win_wait");
    return check_locks_allowed(win);
}

int weft_win_epoch_check_unlock(const weft_win *win, uint32_t target)
{
    const weft_win_epoch *epoch = &win->epoch;
    if (epoch->locks && epoch->access[target])
        return 0;
    if (epoch->is_lock_all)
        return weft_fail(WEFT_E_RMA_SYNC, "all targets were locked by MPI_Win_lock_all: call MPI_Win_unlock_all");
    return weft_fail(WEFT_E_RMA_SYNC, "target %u is not locked by this process: call MPI_Win_lock before", target);
}

int weft_win_epoch_check_lock_all(const weft_win *win)
{
    if (open_access(&win->epoch))
        return in_the_way(&win->epoch);
    return check_locks_allowed(win);
}

int weft_win_epoch_check_unlock_all(const weft_win *win)
{
    if (win->epoch.is_lock_all)
        return 0;
    return weft_fail(WEFT_E_RMA_SYNC, win->epoch.locks ? "targets were locked one by one: call MPI_Win_unlock for each"
                                                       : "no target is locked: call MPI_Win_lock_all before");
}

int weft_win_epoch_check_free(const weft_win *win)
{
    static const char *const others = "the other processes of the window wait in MPI_Win_free until this one frees it, too";
    const weft_win_epoch *epoch = &win->epoch;
    if (open_access(epoch))
        return weft_fail(WEFT_E_RMA_SYNC, "an epoch that %s has opened is not ended: call %s first; %s", open_access(epoch), end_of(epoch),
                         others);
    if (epoch->posted.is_open)
        return weft_fail(WEFT_E_RMA_SYNC, "the exposure epoch that MPI_Win_post has opened is not ended: call MPI_Win_wait first; %s",
                         others);
    return 0;
}

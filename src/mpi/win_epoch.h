/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_epoch: whether a call fits to the epochs of a window that are open at this member (MPI 5.0 12.5): each misuse of synchronization that
 * can be seen here is an error of class MPI_ERR_RMA_SYNC whose text says what to do. Requires the worker's lock.
 */
#ifndef WEFT_MPI_WIN_EPOCH_H
#define WEFT_MPI_WIN_EPOCH_H

#include "base/macros.h"
#include "mpi/win.h"

/* MPI_Win_lock_all locks most targets at the first access: locks it, or describes the misuse. */
int weft_win_epoch_access_slow(weft_win *win, uint32_t target) __attribute__((cold));
/* May an operation access this target now? 0 or WEFT_E_RMA_SYNC; may block for a lock of MPI_Win_lock_all. */
static inline int weft_win_epoch_access(weft_win *win, uint32_t target)
{
    if (weft_unlikely(!(win->epoch.to_all | win->epoch.access[target])))
        return weft_win_epoch_access_slow(win, target);
    win->epoch.is_used = true;
    return 0;
}

/* The same for calls that are allowed in passive target epochs only: with a request, or flush. */
int weft_win_epoch_check_passive(const weft_win *win, uint32_t target);
static inline bool weft_win_epoch_is_passive(const weft_win *win, uint32_t target)
{
    return win->epoch.is_lock_all || (win->epoch.locks && win->epoch.access[target]);
}

/* May each kind of synchronization begin or end now? 0 or WEFT_E_RMA_SYNC. */
int weft_win_epoch_check_fence(const weft_win *win);
int weft_win_epoch_check_start(const weft_win *win);
int weft_win_epoch_check_post(const weft_win *win);
int weft_win_epoch_check_complete(const weft_win *win);
int weft_win_epoch_check_wait(const weft_win *win);
int weft_win_epoch_check_lock(const weft_win *win, uint32_t target);
int weft_win_epoch_check_unlock(const weft_win *win, uint32_t target);
int weft_win_epoch_check_lock_all(const weft_win *win);
int weft_win_epoch_check_unlock_all(const weft_win *win);
int weft_win_epoch_check_passive_all(const weft_win *win);
int weft_win_epoch_check_free(const weft_win *win);

#endif

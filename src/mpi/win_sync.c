/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_sync: synchronization calls of windows (MPI 5.0 12.5). Called by the generated entries, under the worker's lock. Rules: win_epoch.c.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/worker.h"
#include "mpi/calls.h"
#include "mpi/win_epoch.h"
#include "rma/op.h"
#include "rma/sync.h"

static int check_rank(const weft_win *win, int rank)
{
    if (weft_likely((uint32_t)rank < win->window->size))
        return 0;
    return weft_fail(WEFT_E_RANK, "argument rank is %d: not a rank of the window (0..%u)", rank, win->window->size - 1);
}

/* allowed: MPI_MODE_ bits of the call. */
static int check_assert(int assertion, int allowed)
{
    if (weft_likely(!(assertion & ~allowed)))
        return 0;
    return weft_fail(WEFT_E_ASSERT, "argument assert is %#x: the bits %#x are none of the assertions of this call", (unsigned)assertion,
                     (unsigned)(assertion & ~allowed));
}

int weft_mpi_win_fence(int assert, weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    int rc = check_assert(assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED);
    if (!rc)
        rc = weft_win_epoch_check_fence(win);
    if (!rc && assert & MPI_MODE_NOPRECEDE && epoch->is_fence && epoch->is_used)
        rc = weft_fail(WEFT_E_RMA_SYNC, "argument assert has MPI_MODE_NOPRECEDE, but there were operations since the latest MPI_Win_fence");
    if (rc)
        return rc;
    rc = weft_rma_fence(win->window, !(assert & MPI_MODE_NOPRECEDE), !(assert & MPI_MODE_NOSUCCEED));
    epoch->is_fence = epoch->to_all = !(assert & MPI_MODE_NOSUCCEED);
    epoch->is_used = false;
    return rc;
}

/* The fence before has opened no epoch, as no operation followed. */
static void forget_fence(weft_win_epoch *epoch) { epoch->is_fence = epoch->to_all = epoch->is_used = false; }

/* Ranks of the group's members in the window. */
static int ranks_of(const weft_win *win, weft_group *group, weft_win_ranks *found)
{
    const weft_group *all = win->comm->group;
    found->ranks = malloc((group->size + (size_t)1) * sizeof *found->ranks);
    found->count = group->size;
    if (!found->ranks)
        return weft_fail(WEFT_E_NOMEM, "no memory for the ranks of a group of %u", group->size);
    for (uint32_t i = 0; i < group->size; i++) {
        int rank = weft_group_rank_of(all, weft_group_process(group, i));
        if (rank < 0) {
            free(found->ranks);
            return weft_fail(WEFT_E_GROUP, "rank %u of argument group is no member of the window", i);
        }
        found->ranks[i] = (uint32_t)rank;
    }
    found->is_open = true;
    return 0;
}

static void forget_ranks(weft_win_ranks *ranks)
{
    free(ranks->ranks);
    *ranks = (weft_win_ranks){0};
}

int weft_mpi_win_post(weft_group *group, int assert, weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    int rc = check_assert(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT);
    if (!rc)
        rc = weft_win_epoch_check_post(win);
    if (!rc)
        rc = ranks_of(win, group, &epoch->posted);
    if (rc)
        return rc;
    forget_fence(epoch);
    return weft_rma_post(win->window, epoch->posted.ranks, epoch->posted.count, !(assert & MPI_MODE_NOCHECK));
}

int weft_mpi_win_start(weft_group *group, int assert, weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    weft_win_ranks ranks;
    int rc = check_assert(assert, MPI_MODE_NOCHECK);
    if (!rc)
        rc = weft_win_epoch_check_start(win);
    if (!rc)
        rc = ranks_of(win, group, &ranks);
    if (rc)
        return rc;
    forget_fence(epoch);
    epoch->started = ranks;
    rc = weft_rma_start_epoch(win->window, ranks.ranks, ranks.count, !(assert & MPI_MODE_NOCHECK));
    for (uint32_t i = 0; i < ranks.count && !rc; i++)
        epoch->access[ranks.ranks[i]] = WEFT_WIN_STARTED;
    if (rc)
        forget_ranks(&epoch->started);
    return rc;
}

int weft_mpi_win_complete(weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    int rc = weft_win_epoch_check_complete(win);
    if (rc)
        return rc;
    rc = weft_rma_complete(win->window, epoch->started.ranks, epoch->started.count);
    for (uint32_t i = 0; i < epoch->started.count; i++)
        epoch->access[epoch->started.ranks[i]] = 0;
    forget_ranks(&epoch->started);
    return rc;
}

static int wait_or_test(weft_win *win, bool wait, bool *is_over)
{
    weft_win_ranks *posted = &win->epoch.posted;
    int rc = weft_win_epoch_check_wait(win);
    if (!rc)
        rc = weft_rma_wait(win->window, posted->ranks, posted->count, wait, is_over);
    if (!rc && *is_over)
        forget_ranks(posted);
    return rc;
}

int weft_mpi_win_wait(weft_win *win)
{
    bool is_over;
    return wait_or_test(win, true, &is_over);
}

int weft_mpi_win_test(weft_win *win, int *flag)
{
    bool is_over = false;
    int rc = wait_or_test(win, false, &is_over);
    *flag = is_over;
    return rc;
}

int weft_mpi_win_lock(int lock_type, int rank, int assert, weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    bool is_exclusive = lock_type == MPI_LOCK_EXCLUSIVE, is_checked = !(assert & MPI_MODE_NOCHECK);
    int rc = check_assert(assert, MPI_MODE_NOCHECK);
    if (weft_unlikely(!is_exclusive && lock_type != MPI_LOCK_SHARED))
        rc = weft_fail(WEFT_E_LOCKTYPE, "argument lock_type is %d: neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE", lock_type);
    if (rank == MPI_PROC_NULL && !rc) /* has no memory to lock */
        return 0;
    if (!rc)
        rc = check_rank(win, rank);
    if (!rc)
        rc = weft_win_epoch_check_lock(win, (uint32_t)rank);
    if (rc)
        return rc;
    forget_fence(epoch);
    rc = weft_rma_lock(win->window, (uint32_t)rank, is_exclusive, is_checked);
    if (rc)
        return rc;
    epoch->access[rank] = (uint8_t)((is_exclusive ? WEFT_WIN_EXCLUSIVE : WEFT_WIN_SHARED) | (is_checked ? 0 : WEFT_WIN_NOCHECK));
    epoch->locks++;
    return 0;
}

int weft_mpi_win_unlock(int rank, weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    uint8_t access;
    int rc;
    if (rank == MPI_PROC_NULL)
        return 0;
    rc = check_rank(win, rank);
    if (!rc)
        rc = weft_win_epoch_check_unlock(win, (uint32_t)rank);
    if (rc)
        return rc;
    access = epoch->access[rank];
    epoch->access[rank] = 0;
    epoch->locks--;
    return weft_rma_unlock(win->window, (uint32_t)rank, (access & WEFT_WIN_ACCESS_KIND) == WEFT_WIN_EXCLUSIVE,
                           !(access & WEFT_WIN_NOCHECK));
}

/* Targets whose lock is in memory of this node are locked now, as their memory may be accessed by loads and stores without a call of MPI;
 * the others at the first operation (win_epoch.c), so that a target without operations costs no message. */
int weft_mpi_win_lock_all(int assert, weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    const weft_window *window = win->window;
    int rc = check_assert(assert, MPI_MODE_NOCHECK);
    if (!rc)
        rc = weft_win_epoch_check_lock_all(win);
    if (rc)
        return rc;
    forget_fence(epoch);
    epoch->is_unchecked = epoch->to_all = assert & MPI_MODE_NOCHECK;
    for (uint32_t i = 0; i < window->size && !epoch->is_unchecked && !rc; i++)
        if (window->targets[i].control) {
            rc = weft_rma_lock(win->window, i, false, true);
            epoch->access[i] = WEFT_WIN_SHARED;
        }
    epoch->is_lock_all = true;
    return rc;
}

int weft_mpi_win_unlock_all(weft_win *win)
{
    weft_win_epoch *epoch = &win->epoch;
    int rc = weft_win_epoch_check_unlock_all(win), unlocked;
    if (rc)
        return rc;
    rc = weft_rma_flush(win->window, WEFT_ANY);
    for (uint32_t i = 0; i < win->window->size; i++) {
        if (!epoch->access[i])
            continue;
        unlocked = weft_rma_unlock(win->window, i, false, true);
        rc = rc ? rc : unlocked;
        epoch->access[i] = 0;
    }
    epoch->is_lock_all = epoch->is_unchecked = epoch->to_all = false;
    return rc;
}

/* Why no target is flushed: an error, or 0 for MPI_PROC_NULL. */
static __attribute__((cold, noinline)) int refuse_flush(const weft_win *win, int rank)
{
    int rc = rank == MPI_PROC_NULL ? 0 : check_rank(win, rank);
    return rc || rank == MPI_PROC_NULL ? rc : weft_win_epoch_check_passive(win, (uint32_t)rank);
}

static inline bool may_flush(const weft_win *win, int rank)
{
    return weft_likely((uint32_t)rank < win->window->size && weft_win_epoch_is_passive(win, (uint32_t)rank));
}

int weft_mpi_win_flush(int rank, weft_win *win)
{
    return may_flush(win, rank) ? weft_rma_flush(win->window, rank) : refuse_flush(win, rank);
}

int weft_mpi_win_flush_local(int rank, weft_win *win)
{
    return may_flush(win, rank) ? weft_rma_flush_local(win->window, rank) : refuse_flush(win, rank);
}

int weft_mpi_win_flush_all(weft_win *win)
{
    int rc = weft_win_epoch_check_passive_all(win);
    return rc ? rc : weft_rma_flush(win->window, WEFT_ANY);
}

int weft_mpi_win_flush_local_all(weft_win *win)
{
    int rc = weft_win_epoch_check_passive_all(win);
    return rc ? rc : weft_rma_flush_local(win->window, WEFT_ANY);
}

/* The memory model is unified: memory has one copy, so that ordering is all that is needed (MPI 5.0 12.4). */
int weft_mpi_win_sync(weft_win *win)
{
    atomic_thread_fence(memory_order_seq_cst);
    weft_worker_poll(win->worker); /* the program may loop until another member's operation, which is a message, is seen */
    return 0;
}

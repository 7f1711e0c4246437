/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_windows: windows and their synchronization. See apps.h. What the synchronization promises is checked in memory that simulated ranks
 * share: who holds a lock, who has posted, who has completed.
 */
#include <mpi.h>
#include <stdlib.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"

/* Lets other ranks run while a lock is held. */
static int linger(app_self *self)
{
    int flag;
    for (uint64_t polls = app_draw(&self->own, 4); polls; polls--)
        APP_TRY(MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    return 0;
}

/* Holds the lock of a random target, exclusive or shared; many times. */
static int locks(app_self *self, MPI_Win win)
{
    for (int turn = 0; turn < 8; turn++) {
        int target = (int)app_draw(&self->own, (uint64_t)self->size);
        bool is_exclusive = app_draw(&self->own, 3) == 0;
        app_window *at = &self->what->windows[target];
        APP_TRY(MPI_Win_lock(is_exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win));
        if (at->writers || (is_exclusive && at->readers))
            return app_fail(self, "the lock of %d is held by %u writers and %u readers beside me", target, at->writers, at->readers);
        is_exclusive ? at->writers++ : at->readers++;
        if (linger(self))
            return 1;
        is_exclusive ? at->writers-- : at->readers--;
        APP_TRY(MPI_Win_unlock(target, win));
    }
    return 0;
}

/* Does `from` access `to` in this round? The same answer on all ranks. */
static bool accesses(uint64_t salt, int from, int to)
{
    uint64_t state = salt * 64 + (uint64_t)from * 8 + (uint64_t)to;
    return app_draw(&state, 2);
}

static MPI_Group partners(const app_self *self, uint64_t salt, MPI_Group all, bool targets)
{
    int ranks[APP_WINDOWS], count = 0;
    MPI_Group group;
    for (int i = 0; i < self->size; i++)
        if (targets ? accesses(salt, self->rank, i) : accesses(salt, i, self->rank))
            ranks[count++] = i;
    MPI_Group_incl(all, count, ranks, &group);
    return group;
}

/* One epoch of post, start, complete, wait with random groups. */
static int epochs(app_self *self, MPI_Win win, MPI_Group all)
{
    uint64_t salt = app_draw(&self->shared, 1u << 30);
    app_window *own = &self->what->windows[self->rank];
    MPI_Group targets = partners(self, salt, all, true), origins = partners(self, salt, all, false);
    int is_over = 0;
    own->posts++;
    APP_TRY(MPI_Win_post(origins, 0, win));
    APP_TRY(MPI_Win_start(targets, 0, win));
    for (int i = 0; i < self->size; i++)
        if (accesses(salt, self->rank, i) && self->what->windows[i].posts < own->posts)
            return app_fail(self, "MPI_Win_start has ended, but %d has not posted", i);
    if (linger(self))
        return 1;
    own->completes++;
    APP_TRY(MPI_Win_complete(win));
    if (app_draw(&self->own, 2))
        APP_TRY(MPI_Win_wait(win));
    else
        while (!is_over)
            APP_TRY(MPI_Win_test(win, &is_over));
    for (int i = 0; i < self->size; i++)
        if (accesses(salt, i, self->rank) && self->what->windows[i].completes < own->completes)
            return app_fail(self, "MPI_Win_wait has ended, but %d has not completed", i);
    MPI_Group_free(&targets);
    MPI_Group_free(&origins);
    return 0;
}

static int fences(app_self *self, MPI_Win win)
{
    uint32_t before = ++self->barriers;
    self->what->windows[self->rank].fences++;
    APP_TRY(MPI_Win_fence(0, win));
    for (int i = 0; i < self->size; i++)
        if (self->what->windows[i].fences < before)
            return app_fail(self, "MPI_Win_fence has ended, but %d has not called it", i);
    return 0;
}

static int use(app_self *self, MPI_Win win)
{
    MPI_Group all;
    APP_TRY(MPI_Win_get_group(win, &all));
    for (int turn = 0; turn < 4; turn++) {
        int rc = app_draw(&self->shared, 2) ? locks(self, win) : 0;
        if (!rc && app_draw(&self->shared, 2))
            rc = epochs(self, win, all);
        if (!rc && app_draw(&self->shared, 2))
            rc = fences(self, win);
        if (rc)
            return rc;
    }
    APP_TRY(MPI_Group_free(&all));
    APP_TRY(MPI_Win_lock_all(0, win));
    APP_TRY(MPI_Win_unlock_all(win));
    return 0;
}

int app_windows(int rank, void *arg)
{
    app_self me, *self = &me;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t round = 0; round < self->what->rounds; round++) {
        static int64_t memory[APP_WINDOWS][16];
        void *base;
        MPI_Win win;
        if (app_draw(&self->shared, 2))
            APP_TRY(MPI_Win_allocate((MPI_Aint)app_draw(&self->own, 9000), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        else
            APP_TRY(MPI_Win_create(memory[self->rank], sizeof memory[0], 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        if (use(self, win))
            return 1;
        APP_TRY(MPI_Win_free(&win));
    }
    return MPI_Finalize();
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_gone: the last rank calls MPI_Finalize, without MPI_Win_free, while the others put into its window, get from it and update it: an
 * operation that needs the target ends with an error, and what was under way harms nobody. See apps.h.
 */
#include <mpi.h>
#include <string.h>

#include "test/sim/apps.h"
#include "test/transports/sim/sim.h"

enum { LONGEST = 40000, PUT = LONGEST, GOT = 2 * LONGEST /* places in the window; updates are at 0 */,
       TURNS_MAX = 500, KINDS = 7, OPEN_MAX = 4 /* operations under way */ };

typedef struct use {
    MPI_Win win;
    int target;
    uint64_t one, zero, old[OPEN_MAX];
    uint8_t block[LONGEST], got[OPEN_MAX][LONGEST];
} use;

/* nth: of those under way. */
static int operate(app_self *self, use *use, uint64_t kind, int nth)
{
    int length = app_draw(&self->own, 2) ? LONGEST : 8 * (int)(1 + app_draw(&self->own, 40)), rc;
    MPI_Request req;
    switch (kind) {
    case 0: return MPI_Fetch_and_op(&use->one, &use->old[nth], MPI_UINT64_T, use->target, 0, MPI_SUM, use->win);
    case 1: return MPI_Compare_and_swap(&use->one, &use->zero, &use->old[nth], MPI_UINT64_T, use->target, 0, use->win);
    case 2:
        return MPI_Get_accumulate(use->block, length, MPI_BYTE, use->got[nth], length, MPI_BYTE, use->target, 0, length, MPI_BYTE, MPI_BOR,
                                  use->win);
    case 3: return MPI_Get(use->got[nth], length, MPI_BYTE, use->target, GOT, length, MPI_BYTE, use->win);
    case 4: return MPI_Put(use->block, length, MPI_BYTE, use->target, PUT, length, MPI_BYTE, use->win);
    case 5: return MPI_Accumulate(use->block, length, MPI_BYTE, use->target, 0, length, MPI_BYTE, MPI_BOR, use->win);
    default:
        rc = MPI_Rput(use->block, length, MPI_BYTE, use->target, PUT, length, MPI_BYTE, use->win, &req);
        return rc ? rc : MPI_Wait(&req, MPI_STATUS_IGNORE);
    }
}

static int is_expected(const app_self *self, int rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = MPI_SUCCESS, length;
    if (rc) {
        MPI_Error_class(rc, &class);
        MPI_Error_string(rc, text, &length);
    }
    if (class == MPI_ERR_OTHER && strstr(text, "key")) /* the device refuses the key before the target's BYE arrives */
        return 0;
    return class == MPI_ERR_PROC_ABORTED ? 0 : app_fail(self, "gone: an operation gave %d, class %d: %s", rc, class, text);
}

static int use_until_gone(app_self *self, use *use)
{
    int rc = MPI_SUCCESS;
    APP_TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, use->win));
    for (int i = 0; i < TURNS_MAX && !rc; i++) { /* those of the last turns need the target */
        int count = 1 + (int)app_draw(&self->own, OPEN_MAX);
        for (int nth = 0; nth < count && !rc; nth++)
            rc = operate(self, use, i < TURNS_MAX - 20 ? app_draw(&self->own, KINDS) : 0, nth);
        rc = rc ? rc : MPI_Win_flush(use->target, use->win);
    }
    return is_expected(self, rc);
}

static int run(app_self *self, use *use)
{
    void *memory;
    use->target = self->size - 1;
    APP_TRY(MPI_Win_allocate(GOT + LONGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &use->win));
    APP_TRY(MPI_Win_set_errhandler(use->win, MPI_ERRORS_RETURN));
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    if (self->rank == use->target) {
        int flag;
        for (uint64_t turns = app_draw(&self->own, 300); turns; turns--)
            APP_TRY(MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    } else if (use_until_gone(self, use)) {
        return 1;
    }
    return MPI_Finalize();
}

int app_gone(int rank, void *arg)
{
    app_self about, *self = &about;
    static use uses[APP_WINDOWS]; /* data of operations that have failed may come later */
    uses[rank].one = 1;
    if (!app_begin(self, arg))
        return 1;
    return self->size == 1 ? MPI_Finalize() : run(self, &uses[rank]);
}

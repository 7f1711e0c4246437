/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_leaders: an MPI program in which pairs of ranks make intercommunicators in one order for all, so that ranks wait for partners that
 * are busy with others. In some pairs the two pass different tags or peer_comms: these two get an error, all others are right. See apps.h.
 */
#include <mpi.h>

#include "test/sim/apps.h"

enum { PAIRS = 8, RIGHT = 0, OTHER_TAG, OTHER_COMM };

typedef struct meeting {
    int a, b, how;
} meeting;

static int meet(app_self *self, const meeting *what, int tag, MPI_Comm own, MPI_Comm other)
{
    bool is_b = self->rank == what->b;
    int remote = is_b ? what->a : what->b, value = self->rank, in = -1, code, class = 0;
    MPI_Comm inter = MPI_COMM_WORLD;

    code = MPI_Intercomm_create(own, 0, is_b && what->how == OTHER_COMM ? other : MPI_COMM_WORLD, remote,
                                is_b && what->how == OTHER_TAG ? tag + PAIRS : tag, &inter);
    MPI_Error_class(code, &class);
    if (what->how != RIGHT)
        return class == MPI_ERR_NOT_SAME && inter == MPI_COMM_NULL
                   ? 0 : app_fail(self, "ranks %d and %d differ: class %d", what->a, what->b, class);
    if (code)
        return app_fail(self, "ranks %d and %d are right: class %d", what->a, what->b, class);
    APP_TRY(MPI_Sendrecv(&value, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
    APP_TRY(MPI_Comm_free(&inter));
    return in == remote ? 0 : app_fail(self, "%d came from rank %d", in, remote);
}

int app_leaders(int rank, void *arg)
{
    app_self about, *self = &about;
    MPI_Comm own, other;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    APP_TRY(MPI_Comm_dup(MPI_COMM_SELF, &own));
    APP_TRY(MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN));
    APP_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int i = 0; self->size > 1 && i < PAIRS; i++) {
        meeting what;
        what.a = (int)app_draw(&self->shared, (uint64_t)self->size);
        what.b = (what.a + 1 + (int)app_draw(&self->shared, (uint64_t)self->size - 1)) % self->size;
        what.how = app_draw(&self->shared, 4) ? RIGHT : app_draw(&self->shared, 2) ? OTHER_TAG : OTHER_COMM;
        if ((self->rank == what.a || self->rank == what.b) && meet(self, &what, i, own, other))
            return 1;
    }
    APP_TRY(MPI_Comm_free(&own));
    APP_TRY(MPI_Comm_free(&other));
    APP_TRY(MPI_Finalize());
    return 0;
}

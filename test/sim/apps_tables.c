/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_tables: regions of dynamic windows that origins find in the target's table. See apps.h.
 * app_tables: ranks put to and get from regions that stay attached, while they attach and detach others all the time, so that tables change
 * and grow while they are read. app_steady_tables: the regions that are used are the same to the end, so that no reason is left for a
 * message or a refused key.
 * app_finds: a target that calls no function of MPI while the others find its regions, put to them and get from them.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "core/counters.h"
#include "core/worker.h"
#include "core/world.h"
#include "test/sim/apps.h"
#include "test/transports/sim/sim.h"

enum { PLACES = 6, LONGEST = 700, SCRATCH = 200, WORD = 16, STEPS = 60, EPOCHS = 3 };

/* Memory of a rank: PLACES regions with a slice for each origin, between SCRATCH words that it attaches and detaches. */
typedef struct tables {
    app_self *self;
    MPI_Win win;
    MPI_Aint *bases;      /* [size] addresses of the places */
    unsigned char *own;   /* [SCRATCH / 2 words, places, SCRATCH / 2 words] */
    unsigned char *model; /* [size * PLACES * LONGEST] of all ranks' places, this rank's slices only */
    unsigned char *buffer; /* the same, of what is put or got */
    int cuts[APP_WINDOWS][PLACES]; /* attached bytes of each place; less for each epoch than LONGEST */
    bool is_attached[SCRATCH], is_steady;
} tables;

static unsigned char *place_of(const tables *all, int i) { return all->own + SCRATCH / 2 * WORD + i * LONGEST; }

static unsigned char *scratch_of(const tables *all, int i)
{
    return i < SCRATCH / 2 ? all->own + i * WORD : place_of(all, PLACES) + (i - SCRATCH / 2) * WORD;
}

/* Attaches or detaches one of the SCRATCH words, so that the table changes. No rank accesses them. */
static int stir(tables *all)
{
    const app_self *self = all->self;
    int i = (int)app_draw(&all->self->own, SCRATCH);
    if (all->is_attached[i])
        APP_TRY(MPI_Win_detach(all->win, scratch_of(all, i)));
    else
        APP_TRY(MPI_Win_attach(all->win, scratch_of(all, i), WORD));
    all->is_attached[i] = !all->is_attached[i];
    return 0;
}

/* A transfer of a part of this rank's slice of a place. */
static int transfer(tables *all, int target, int i)
{
    app_self *self = all->self;
    int slice = all->cuts[target][i] / self->size, at = self->rank * slice;
    int bytes = slice ? 1 + (int)app_draw(&self->own, (uint64_t)slice) : 0;
    size_t index = (size_t)(target * PLACES + i) * LONGEST + (size_t)at;
    MPI_Aint there = all->bases[target] + i * LONGEST + at;
    if (!bytes)
        return 0;
    APP_TRY(MPI_Win_flush(target, all->win)); /* the same bytes may be under way */
    if (app_draw(&self->own, 3) == 0) {
        APP_TRY(MPI_Get(all->buffer + index, bytes, MPI_BYTE, target, there, bytes, MPI_BYTE, all->win));
        APP_TRY(MPI_Win_flush(target, all->win));
        if (memcmp(all->buffer + index, all->model + index, (size_t)bytes))
            return app_fail(self, "%d bytes got from place %d of %d are wrong", bytes, i, target);
        return 0;
    }
    for (int k = 0; k < bytes; k++)
        all->buffer[index + (size_t)k] = all->model[index + (size_t)k] = (unsigned char)app_draw(&self->own, 256);
    return MPI_Put(all->buffer + index, bytes, MPI_BYTE, target, there, bytes, MPI_BYTE, all->win);
}

static int attach_places(tables *all, bool attaches)
{
    const app_self *self = all->self;
    for (int i = 0; i < PLACES; i++)
        if (attaches)
            APP_TRY(MPI_Win_attach(all->win, place_of(all, i), all->cuts[self->rank][i]));
        else
            APP_TRY(MPI_Win_detach(all->win, place_of(all, i)));
    return 0;
}

/* The slices of this rank's places hold what their origins have put. */
static int check(tables *all, int turn)
{
    app_self *self = all->self;
    size_t bytes = (size_t)PLACES * LONGEST;
    unsigned char *theirs = malloc(bytes * (size_t)self->size);
    APP_TRY(MPI_Alltoall(all->model, (int)bytes, MPI_BYTE, theirs, (int)bytes, MPI_BYTE, MPI_COMM_WORLD));
    for (int origin = 0; origin < self->size; origin++)
        for (int i = 0; i < PLACES; i++) {
            int slice = all->cuts[self->rank][i] / self->size;
            size_t at = (size_t)(i * LONGEST + origin * slice);
            if (memcmp(place_of(all, 0) + at, theirs + (size_t)origin * bytes + at, (size_t)slice))
                return app_fail(self, "what %d has put into place %d is wrong after epoch %d", origin, i, turn);
        }
    free(theirs);
    return 0;
}

static int epoch(tables *all, int turn)
{
    app_self *self = all->self;
    bool is_new = !all->is_steady || !turn;
    for (int i = 0; i < self->size * PLACES && is_new; i++)
        all->cuts[i / PLACES][i % PLACES] = 1 + (int)app_draw(&self->shared, LONGEST);
    memset(place_of(all, 0), 0, (size_t)PLACES * LONGEST);
    memset(all->model, 0, (size_t)self->size * PLACES * LONGEST);
    if (is_new && attach_places(all, true))
        return 1;
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    for (int step = 0; step < STEPS; step++) {
        if (app_draw(&self->own, 3) && stir(all))
            return 1;
        if (app_draw(&self->own, 3) == 0 &&
            transfer(all, (int)app_draw(&self->own, (uint64_t)self->size), (int)app_draw(&self->own, PLACES)))
            return 1;
    }
    APP_TRY(MPI_Win_flush_all(all->win));
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    return check(all, turn) || (!all->is_steady && attach_places(all, false));
}

static int open_tables(tables *all, size_t bytes)
{
    const app_self *self = all->self;
    MPI_Aint own;
    all->own = calloc(1, bytes);
    all->bases = calloc((size_t)self->size, sizeof *all->bases);
    APP_TRY(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &all->win));
    APP_TRY(MPI_Get_address(place_of(all, 0), &own));
    APP_TRY(MPI_Allgather(&own, 1, MPI_AINT, all->bases, 1, MPI_AINT, MPI_COMM_WORLD));
    return MPI_Win_lock_all(MPI_MODE_NOCHECK, all->win);
}

static int close_tables(tables *all)
{
    const app_self *self = all->self;
    APP_TRY(MPI_Win_unlock_all(all->win));
    APP_TRY(MPI_Win_free(&all->win));
    free(all->own);
    free(all->bases);
    free(all->model);
    free(all->buffer);
    free(all);
    return MPI_Finalize();
}

static int run(void *arg, bool is_steady)
{
    app_self me, *self = &me;
    tables *all = calloc(1, sizeof *all);
    if (!app_begin(self, arg))
        return 1;
    all->self = self;
    all->is_steady = is_steady;
    all->model = malloc((size_t)self->size * PLACES * LONGEST);
    all->buffer = malloc((size_t)self->size * PLACES * LONGEST);
    if (open_tables(all, (size_t)SCRATCH * WORD + (size_t)PLACES * LONGEST))
        return 1;
    for (uint64_t i = app_draw(&self->own, 2 * SCRATCH); i; i--)
        if (stir(all))
            return 1;
    for (int i = 0; i < EPOCHS; i++)
        if (epoch(all, i))
            return 1;
    self->what->messages += weft_world_now->workers[0]->counters[WEFT_COUNT_WINDOW_MESSAGES];
    return close_tables(all);
}

int app_tables(int rank, void *arg)
{
    (void)rank;
    return run(arg, false);
}

int app_steady_tables(int rank, void *arg)
{
    (void)rank;
    return run(arg, true);
}

/* -- a target that computes -- */

enum { MANY = 150 }; /* regions: more than the first array of a table holds */

/* Region i of rank 0 has a word of each rank. Puts its own into all, in an order of its own, gets them back, and puts a mark. */
static int find(tables *all)
{
    app_self *self = all->self;
    int start = (int)app_draw(&self->own, MANY), turns = 20 + (int)app_draw(&self->own, MANY - 20);
    for (int k = 0; k <= turns; k++) {
        int i = k < turns ? 1 + (start + k * 7) % (MANY - 1) : 0;
        int64_t out = i * 100 + self->rank, in = -1;
        MPI_Aint there = all->bases[0] + (i * APP_WINDOWS * 2 + self->rank) * 8;
        bool gets_first = i && app_draw(&self->own, 4) == 0;
        if (gets_first) {
            APP_TRY(MPI_Get(&in, 1, MPI_INT64_T, 0, there, 1, MPI_INT64_T, all->win));
            APP_TRY(MPI_Win_flush(0, all->win));
            if (in != 0 && in != out)
                return app_fail(self, "region %d has %lld", i, (long long)in);
        }
        APP_TRY(MPI_Put(&out, 1, MPI_INT64_T, 0, there, 1, MPI_INT64_T, all->win));
        APP_TRY(MPI_Win_flush(0, all->win));
        APP_TRY(MPI_Get(&in, 1, MPI_INT64_T, 0, there, 1, MPI_INT64_T, all->win));
        APP_TRY(MPI_Win_flush_local(0, all->win));
        if (in != out)
            return app_fail(self, "region %d has %lld, not %lld", i, (long long)in, (long long)out);
        if (!i) { /* the mark, which is no 0 */
            int64_t mark = 1 + self->rank;
            APP_TRY(MPI_Put(&mark, 1, MPI_INT64_T, 0, there, 1, MPI_INT64_T, all->win));
            APP_TRY(MPI_Win_flush(0, all->win));
        }
    }
    return 0;
}

int app_finds(int rank, void *arg)
{
    app_self me, *self = &me;
    tables *all = calloc(1, sizeof *all);
    int value = 0;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    all->self = self;
    if (open_tables(all, (size_t)SCRATCH * WORD + (size_t)MANY * APP_WINDOWS * 16))
        return 1;
    for (int i = 0; i < MANY && !self->rank; i++) /* each has a gap behind it */
        APP_TRY(MPI_Win_attach(all->win, place_of(all, 0) + i * 7 % MANY * APP_WINDOWS * 16, APP_WINDOWS * 8));
    for (int i = 1; i < self->size; i++)
        if (!self->rank)
            APP_TRY(MPI_Sendrecv(&value, 1, MPI_INT, i, 0, &value, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        else if (i == self->rank)
            APP_TRY(MPI_Sendrecv(&value, 1, MPI_INT, 0, 0, &value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (self->rank && find(all))
        return 1;
    for (int i = 1; i < self->size && !self->rank; i++)
        while (__atomic_load_n((int64_t *)(void *)place_of(all, 0) + i, __ATOMIC_ACQUIRE) != 1 + i)
            weft_sim_yield();
    return close_tables(all);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_regions: regions of a dynamic window, attached and detached at random between epochs, with other borders each time, in which all
 * ranks put and get. See apps.h. All ranks draw all regions and all transfers, so that each knows what every rank's memory must hold. Who
 * may access a new region often knows so from a third rank, before the target's own message has come that the old one has gone: then keys
 * are stale. Some transfers are to memory that is no longer attached: they are errors, and the memory stays as it was.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/apps.h"

enum { PLACES = 5, LONGEST = 6000, EPOCHS = 7, TIMES = 3 };

/* A place's attached bytes [from, to) in two regions that touch at `cut`, or in one. */
typedef struct place {
    int from, cut, to; /* to 0: nothing is attached */
} place;

typedef struct transfer {
    int target, place, at, bytes;
    bool is_get, is_wrong;
    unsigned char salt, *buffer;
} transfer;

typedef struct space {
    MPI_Win win;
    MPI_Aint *base;      /* [size] addresses of the ranks' memory */
    unsigned char *own;  /* [PLACES * LONGEST] */
    unsigned char *model; /* [size * PLACES * LONGEST] */
    place *places;       /* [size * PLACES] */
    transfer transfers[APP_WINDOWS * PLACES];
    int count;
} space;

static unsigned char data_of(const transfer *at, int i) { return (unsigned char)(at->salt + i * 5 + i / 250); }

static int attach(app_self *self, space *all, int which, bool attaches)
{
    const place *at = &all->places[self->rank * PLACES + which];
    unsigned char *memory = all->own + which * LONGEST;
    if (!at->to)
        return 0;
    for (int part = 0; part < 2; part++) {
        int from = part ? at->cut : at->from, to = part ? at->to : at->cut;
        if (from == to)
            continue;
        if (attaches)
            APP_TRY(MPI_Win_attach(all->win, memory + from, to - from));
        else
            APP_TRY(MPI_Win_detach(all->win, memory + from));
    }
    return 0;
}

/* Many places change: what was attached there is detached, and the memory is stored to. */
static int draw_places(app_self *self, space *all)
{
    for (int i = 0; i < self->size * PLACES; i++) {
        place *at = &all->places[i];
        unsigned char salt = (unsigned char)app_draw(&self->shared, 256);
        bool is_own = i / PLACES == self->rank;
        if (app_draw(&self->shared, 2))
            continue;
        if (is_own && attach(self, all, i % PLACES, false))
            return 1;
        memset(all->model + i * LONGEST, salt, LONGEST);
        if (is_own)
            memset(all->own + i % PLACES * LONGEST, salt, LONGEST);
        at->from = (int)app_draw(&self->shared, 3) * 64;
        at->to = !app_draw(&self->shared, 5) ? 0
                 : at->from + 64 + (int)app_draw(&self->shared, app_draw(&self->shared, 2) ? 400 : LONGEST - 300);
        at->cut = app_draw(&self->shared, 3) || !at->to ? at->to : at->from + (int)app_draw(&self->shared, (uint64_t)(at->to - at->from));
        if (is_own && attach(self, all, i % PLACES, true))
            return 1;
    }
    return 0;
}

/* A part of the bytes of a region that this origin alone transfers; or some bytes that are not attached. */
static bool draw_part(app_self *self, const space *all, int origin, transfer *at)
{
    const place *where = &all->places[at->target * PLACES + at->place];
    int slice = (where->to - where->from) / self->size;
    uint64_t at_draw = app_draw(&self->shared, 1u << 30), bytes_draw = app_draw(&self->shared, 1u << 30);
    at->is_get = app_draw(&self->shared, 3) == 0;
    at->salt = (unsigned char)app_draw(&self->shared, 256);
    at->is_wrong = !where->to && at->target != origin && app_draw(&self->shared, 4) == 0;
    if (at->is_wrong) {
        at->at = (int)(at_draw % 500);
        at->bytes = 1 + (int)(bytes_draw % 1000);
        return true;
    }
    if (!where->to || !slice)
        return false;
    at->at = (int)(at_draw % (uint64_t)slice);
    at->bytes = 1 + (int)(bytes_draw % (uint64_t)(slice - at->at));
    at->at += where->from + slice * origin;
    return true;
}

static void draw_transfers(app_self *self, space *all)
{
    all->count = 0;
    for (int origin = 0; origin < self->size; origin++)
        for (int i = 0; i < self->size * PLACES; i++) {
            transfer at = {.target = i / PLACES, .place = i % PLACES};
            unsigned char *model = all->model + i * LONGEST;
            if (!draw_part(self, all, origin, &at))
                continue;
            if (origin == self->rank) {
                at.buffer = malloc((size_t)at.bytes);
                for (int k = 0; k < at.bytes; k++)
                    at.buffer[k] = at.is_get ? 0xee : data_of(&at, k);
                all->transfers[all->count++] = at;
            }
            for (int k = 0; k < at.bytes && !at.is_get && !at.is_wrong; k++)
                model[at.at + k] = data_of(&at, k);
        }
}

/* In all ways of completion. Returns the code of the call that fails. */
static int move(app_self *self, space *all, transfer *at)
{
    MPI_Aint to = all->base[at->target] + at->place * LONGEST + at->at;
    uint64_t how = at->is_wrong ? 1 : app_draw(&self->own, 4);
    MPI_Request req;
    int code;
    if (at->is_get && how == 0)
        code = MPI_Rget(at->buffer, at->bytes, MPI_BYTE, at->target, to, at->bytes, MPI_BYTE, all->win, &req);
    else if (at->is_get)
        code = MPI_Get(at->buffer, at->bytes, MPI_BYTE, at->target, to, at->bytes, MPI_BYTE, all->win);
    else if (how == 0)
        code = MPI_Rput(at->buffer, at->bytes, MPI_BYTE, at->target, to, at->bytes, MPI_BYTE, all->win, &req);
    else
        code = MPI_Put(at->buffer, at->bytes, MPI_BYTE, at->target, to, at->bytes, MPI_BYTE, all->win);
    if (code)
        return code;
    return how == 0   ? MPI_Wait(&req, MPI_STATUS_IGNORE)
           : how == 1 ? MPI_Win_flush(at->target, all->win)
           : how == 2 ? MPI_Win_flush_local_all(all->win)
                      : 0;
}

/* A wrong one fails alone: nothing else is under way. */
static int perform(app_self *self, space *all, transfer *at)
{
    int code;
    if (at->is_wrong) {
        APP_TRY(MPI_Win_flush(at->target, all->win));
        APP_TRY(MPI_Win_set_errhandler(all->win, MPI_ERRORS_RETURN));
    }
    code = move(self, all, at);
    if (at->is_wrong) {
        APP_TRY(MPI_Error_class(code, &code));
        APP_TRY(MPI_Win_set_errhandler(all->win, MPI_ERRORS_ARE_FATAL));
    }
    if (code != (at->is_wrong ? MPI_ERR_RMA_RANGE : 0))
        return app_fail(self, "a %s of %d bytes at %d in place %d of %d gave %d", at->is_get ? "get" : "put", at->bytes, at->at, at->place,
                        at->target, code);
    return 0;
}

/* A token goes round the ranks twice: each rank knows that all have entered, from its neighbour alone. */
static int go_round(app_self *self)
{
    int token = 0, next = (self->rank + 1) % self->size, before = (self->rank + self->size - 1) % self->size;
    for (int lap = 0; lap < 2; lap++) {
        if (self->rank)
            APP_TRY(MPI_Recv(&token, 1, MPI_INT, before, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        APP_TRY(MPI_Send(&token, 1, MPI_INT, next, lap, MPI_COMM_WORLD));
        if (!self->rank)
            APP_TRY(MPI_Recv(&token, 1, MPI_INT, before, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    return 0;
}

static int meet(app_self *self) { return app_draw(&self->shared, 2) ? MPI_Barrier(MPI_COMM_WORLD) : go_round(self); }

/* Each access is performed several times: the first one by message, others by a device. */
static int epoch(app_self *self, space *all)
{
    unsigned char *start = malloc((size_t)(self->size * PLACES * LONGEST));
    if (draw_places(self, all))
        return 1;
    memcpy(start, all->model, (size_t)(self->size * PLACES * LONGEST));
    draw_transfers(self, all);
    APP_TRY(meet(self));
    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < all->count; i++)
            if (perform(self, all, &all->transfers[i]))
                return 1;
        APP_TRY(MPI_Win_flush_all(all->win));
    }
    for (int i = 0; i < all->count; i++) {
        transfer *at = &all->transfers[i];
        if (at->is_get && !at->is_wrong &&
            memcmp(at->buffer, start + (at->target * PLACES + at->place) * LONGEST + at->at, (size_t)at->bytes))
            return app_fail(self, "%d bytes got at %d of place %d of %d are wrong", at->bytes, at->at, at->place, at->target);
        free(at->buffer);
    }
    free(start);
    APP_TRY(meet(self));
    for (int i = 0; i < PLACES * LONGEST; i++)
        if (all->own[i] != all->model[self->rank * PLACES * LONGEST + i])
            return app_fail(self, "byte %d of place %d is %u, not %u", i % LONGEST, i / LONGEST, all->own[i],
                            all->model[self->rank * PLACES * LONGEST + i]);
    return 0;
}

int app_regions(int rank, void *arg)
{
    app_self me, *self = &me;
    static MPI_Aint bases[APP_WINDOWS][APP_WINDOWS]; /* not on a fibre's stack */
    space *all = calloc(1, sizeof *all);
    MPI_Aint own;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    all->base = bases[self->rank];
    all->own = calloc(PLACES, LONGEST);
    all->model = calloc((size_t)self->size * PLACES, LONGEST);
    all->places = calloc((size_t)self->size * PLACES, sizeof *all->places);
    APP_TRY(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &all->win));
    APP_TRY(MPI_Get_address(all->own, &own));
    APP_TRY(MPI_Allgather(&own, 1, MPI_AINT, all->base, 1, MPI_AINT, MPI_COMM_WORLD));
    APP_TRY(MPI_Win_lock_all(0, all->win));
    for (int i = 0; i < EPOCHS; i++)
        if (epoch(self, all))
            return 1;
    APP_TRY(MPI_Win_unlock_all(all->win));
    APP_TRY(MPI_Win_free(&all->win));
    free(all->own), free(all->model), free(all->places), free(all);
    return MPI_Finalize();
}

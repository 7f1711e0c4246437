/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_moves: puts and gets on windows, of all lengths and with gaps on either side, completed in every way. See apps.h. In an epoch each
 * rank writes parts of its own of every window, and reads others of its own; so the outcome does not depend on order, and each byte is
 * checked: what was put at the target, after the target knows that the epoch is over, and what was got at the origin.
 * app_computes: a target that calls no function of MPI while the others put, flush and get.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/apps.h"
#include "test/transports/sim/sim.h"

enum { PARTS = 12, LONGEST = 9000, SHORT = 600, EPOCHS = 5 }; /* a rank has PARTS places of LONGEST or SHORT bytes in each window */

typedef enum way { FENCE, PSCW, LOCK, LOCK_ALL, REQUESTS, WAYS } way;

typedef struct move {
    int target, place;
    bool is_get, has_origin_gaps, has_target_gaps;
    int blocks, length; /* bytes */
    unsigned char salt;
    unsigned char *buffer;
    MPI_Request request;
} move;

typedef struct area {
    MPI_Win win;
    int longest;             /* bytes of a place */
    unsigned char *own;      /* [size * PARTS * longest] */
    unsigned char *expected; /* what own must hold */
    move moves[PARTS];
    int count;
} area;

static size_t part_at(const area *area, int origin, int place)
{
    return ((size_t)origin * PARTS + (size_t)place) * (size_t)area->longest;
}

static unsigned char data_of(unsigned char salt, int i) { return (unsigned char)(salt + i * 7 + i / 251); }
static int step_of(bool has_gaps, int length) { return has_gaps ? length + 1 + length / 8 : length; }

/* Any length, often short; blocks leave space for gaps. */
static void draw_shape(uint64_t *state, int longest, move *at)
{
    int bytes = (int)app_draw(state, 3) ? (int)app_draw(state, 200) : (int)app_draw(state, (uint64_t)longest * 3 / 4);
    at->blocks = 1 + (int)app_draw(state, 4);
    at->length = bytes / at->blocks;
    at->has_origin_gaps = app_draw(state, 3) == 0;
    at->has_target_gaps = app_draw(state, 3) == 0;
    at->salt = (unsigned char)app_draw(state, 256);
    at->is_get = app_draw(state, 3) == 0;
    at->target = -1;
}

/* All ranks draw all moves, so that each knows what its window must hold. */
static void draw_moves(app_self *self, area *area)
{
    area->count = 0;
    for (int origin = 0; origin < self->size; origin++)
        for (int place = 0; place < PARTS; place++) {
            move at = {.place = place, .request = MPI_REQUEST_NULL};
            draw_shape(&self->shared, area->longest, &at);
            at.target = (int)app_draw(&self->shared, (uint64_t)self->size);
            if (origin == self->rank)
                area->moves[area->count++] = at;
            if (at.target != self->rank || at.is_get)
                continue;
            for (int i = 0; i < at.blocks * at.length; i++) {
                int block = i / at.length;
                area->expected[part_at(area, origin, place) + (size_t)(block * step_of(at.has_target_gaps, at.length) + i % at.length)] =
                    data_of(at.salt, i);
            }
        }
}

static MPI_Datatype type_of(const move *at, bool has_gaps)
{
    MPI_Datatype type;
    MPI_Type_vector(at->blocks, at->length, step_of(has_gaps, at->length), MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return type;
}

static int start(app_self *self, area *area, move *at, bool by_request)
{
    int step = step_of(at->has_origin_gaps, at->length);
    MPI_Aint disp = (MPI_Aint)part_at(area, self->rank, at->place);
    MPI_Datatype here = type_of(at, at->has_origin_gaps), there = type_of(at, at->has_target_gaps);
    at->buffer = malloc((size_t)(at->blocks * step) + 1);
    for (int i = 0; i < at->blocks * at->length; i++)
        at->buffer[i / at->length * step + i % at->length] = at->is_get ? 0xee : data_of(at->salt, i);
    if (at->is_get && by_request)
        APP_TRY(MPI_Rget(at->buffer, 1, here, at->target, disp, 1, there, area->win, &at->request));
    else if (at->is_get)
        APP_TRY(MPI_Get(at->buffer, 1, here, at->target, disp, 1, there, area->win));
    else if (by_request)
        APP_TRY(MPI_Rput(at->buffer, 1, here, at->target, disp, 1, there, area->win, &at->request));
    else
        APP_TRY(MPI_Put(at->buffer, 1, here, at->target, disp, 1, there, area->win));
    APP_TRY(MPI_Type_free(&here));
    return MPI_Type_free(&there);
}

/* A get reads a place that only this rank writes: what the last puts of earlier epochs left there. So it is compared with a second get. */
static int check_get(app_self *self, area *area, const move *at)
{
    int step = step_of(at->has_origin_gaps, at->length), from = step_of(at->has_target_gaps, at->length), bytes = at->blocks * from;
    unsigned char *whole = malloc((size_t)bytes + 1);
    int wrong = -1;
    APP_TRY(MPI_Win_lock(MPI_LOCK_SHARED, at->target, 0, area->win));
    APP_TRY(MPI_Get(whole, bytes, MPI_BYTE, at->target, (MPI_Aint)part_at(area, self->rank, at->place), bytes, MPI_BYTE, area->win));
    APP_TRY(MPI_Win_unlock(at->target, area->win));
    for (int i = 0; i < at->blocks * at->length && wrong < 0; i++)
        if (at->buffer[i / at->length * step + i % at->length] != whole[i / at->length * from + i % at->length])
            wrong = i;
    free(whole);
    return wrong < 0 ? 0 : app_fail(self, "byte %d of %d got from %d is wrong", wrong, at->blocks * at->length, at->target);
}

static int begin(area *area, way how, MPI_Group all)
{
    if (how == FENCE)
        return MPI_Win_fence(0, area->win);
    if (how == PSCW)
        return MPI_Win_post(all, 0, area->win) || MPI_Win_start(all, 0, area->win);
    return how == LOCK ? 0 : MPI_Win_lock_all(0, area->win);
}

static int end(area *area, way how)
{
    if (how == FENCE)
        return MPI_Win_fence(0, area->win);
    if (how == PSCW)
        return MPI_Win_complete(area->win) || MPI_Win_wait(area->win);
    return (how == LOCK ? 0 : MPI_Win_unlock_all(area->win)) || MPI_Barrier(MPI_COMM_WORLD);
}

/* One move within the epoch; LOCK: in an epoch of its own; some are flushed. */
static int perform(app_self *self, area *area, move *at, way how)
{
    if (how == LOCK)
        APP_TRY(MPI_Win_lock(app_draw(&self->own, 4) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, at->target, 0, area->win));
    if (start(self, area, at, how == REQUESTS))
        return 1;
    if (how == LOCK)
        return MPI_Win_unlock(at->target, area->win);
    if (how == REQUESTS && app_draw(&self->own, 2))
        return MPI_Wait(&at->request, MPI_STATUS_IGNORE);
    if (how == LOCK_ALL && app_draw(&self->own, 3) == 0)
        return app_draw(&self->own, 2) ? MPI_Win_flush(at->target, area->win) : MPI_Win_flush_local_all(area->win);
    return 0;
}

static int finish(app_self *self, area *area, way how)
{
    for (int i = 0; i < area->count; i++)
        APP_TRY(MPI_Wait(&area->moves[i].request, MPI_STATUS_IGNORE));
    APP_TRY(end(area, how));
    for (size_t i = 0; i < part_at(area, self->size, 0); i++)
        if (area->own[i] != area->expected[i])
            return app_fail(self, "byte %zu of the window is %u, not %u, after an epoch of kind %d", i, area->own[i], area->expected[i],
                            how);
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < area->count; i++) {
        if (area->moves[i].is_get && check_get(self, area, &area->moves[i]))
            return 1;
        free(area->moves[i].buffer);
    }
    return 0;
}

static int epoch(app_self *self, area *area, MPI_Group all)
{
    way how = (way)app_draw(&self->shared, WAYS);
    draw_moves(self, area);
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    APP_TRY(begin(area, how, all));
    for (int i = 0; i < area->count; i++)
        APP_TRY(perform(self, area, &area->moves[i], how));
    return finish(self, area, how);
}

int app_moves(int rank, void *arg)
{
    app_self me, *self = &me;
    area area;
    MPI_Group all;
    size_t bytes;
    bool is_own;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    area.longest = app_draw(&self->shared, 2) ? LONGEST : SHORT;
    bytes = part_at(&area, self->size, 0);
    is_own = app_draw(&self->shared, 2);
    area.expected = calloc(1, bytes);
    if (is_own) {
        area.own = calloc(1, bytes);
        APP_TRY(MPI_Win_create(area.own, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &area.win));
    } else {
        APP_TRY(MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &area.own, &area.win));
    }
    APP_TRY(MPI_Win_get_group(area.win, &all));
    for (int i = 0; i < EPOCHS; i++)
        if (epoch(self, &area, all))
            return 1;
    APP_TRY(MPI_Group_free(&all));
    APP_TRY(MPI_Win_free(&area.win));
    free(area.expected);
    if (is_own)
        free(area.own);
    return MPI_Finalize();
}

enum { BLOCK = 3000 };

/* Puts, flushes, gets back, and leaves a mark at rank 0, which calls no function of MPI meanwhile. */
static int use_computing(app_self *self, MPI_Win win)
{
    unsigned char out[BLOCK], in[BLOCK];
    MPI_Aint place = self->size * 8 + (MPI_Aint)self->rank * BLOCK;
    int64_t mark = self->rank;
    memset(out, self->rank, BLOCK);
    memset(in, 0, BLOCK);
    APP_TRY(MPI_Put(out, BLOCK, MPI_BYTE, 0, place, BLOCK, MPI_BYTE, win));
    APP_TRY(MPI_Win_flush(0, win));
    APP_TRY(MPI_Get(in, BLOCK, MPI_BYTE, 0, place, BLOCK, MPI_BYTE, win));
    APP_TRY(MPI_Win_flush(0, win));
    if (memcmp(in, out, BLOCK))
        return app_fail(self, "what was put into a computing target's window does not come back");
    APP_TRY(MPI_Put(&mark, 1, MPI_INT64_T, 0, self->rank * 8, 1, MPI_INT64_T, win));
    return MPI_Win_flush(0, win);
}

static int compute(app_self *self, const int64_t *marks)
{
    for (int i = 1; i < self->size; i++)
        while (__atomic_load_n(&marks[i], __ATOMIC_ACQUIRE) != i)
            weft_sim_yield();
    for (int i = 1; i < self->size; i++)
        for (size_t k = 0; k < BLOCK; k++)
            if (((const unsigned char *)(marks + self->size))[(size_t)i * BLOCK + k] != i)
                return app_fail(self, "%d has left its mark, but not its data", i);
    return 0;
}

int app_computes(int rank, void *arg)
{
    app_self me, *self = &me;
    MPI_Aint bytes;
    int64_t *own;
    MPI_Win win;
    int rc, value = 0;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    bytes = self->size * (8 + BLOCK);
    own = calloc(1, (size_t)bytes);
    APP_TRY(MPI_Win_create(own, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    APP_TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (self->rank)
        APP_TRY(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    for (int i = 1; i < self->size && !self->rank; i++)
        APP_TRY(MPI_Recv(&value, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    rc = self->rank ? use_computing(self, win) : compute(self, own);
    if (rc)
        return rc;
    APP_TRY(MPI_Win_unlock_all(win));
    APP_TRY(MPI_Win_free(&win));
    free(own);
    return MPI_Finalize();
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_atomics: accumulates of all ranks on each other's windows, so short that a device may perform them, among longer and other ones that
 * it cannot. See apps.h. Sums, tickets and swaps are checked for all ranks together; a series of operations on words that one rank alone
 * changes has one result, whatever the ways are, because they are ordered: each value fetched is predicted.
 * app_counts: a target that calls no function of MPI while the others count in its window.
 * app_unknown: where connections break, an atomic is performed once, or not at all and reported, or reported as one of unknown outcome.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/apps.h"
#include "test/transports/sim/sim.h"

enum { STEPS = 60, VECTOR = 24, PENDING = 12, TICKETS = STEPS, OWN = 3 };
/* Words of a window; those from SERIES on: OWN of each rank, of which the second is not used, and then a word that is not aligned. */
enum { COUNTER, SWAPPED, BITS, LARGEST, LIST, SERIES = LIST + VECTOR };

typedef struct atomics {
    app_self *self;
    MPI_Win win;
    MPI_Datatype pair;        /* first and last of the words of a series */
    int64_t *own;
    int64_t *tickets;         /* [size * size * TICKETS] how often each value was fetched from each rank's counter */
    int64_t *added;           /* [size * SERIES] by this rank, LARGEST and BITS apart */
    int64_t *series;          /* [size * OWN] what this rank's words hold */
    int64_t *odd;             /* [size] sums in words that are not aligned */
    int64_t fetched[PENDING][2], expected[PENDING][2], operands[PENDING][2];
    int pending;
} atomics;

static size_t words_of(const atomics *all) { return SERIES + (size_t)all->self->size * OWN + 2; }
static MPI_Aint byte_of(size_t word) { return (MPI_Aint)(word * 8); }

static int check_pending(atomics *all)
{
    app_self *self = all->self;
    APP_TRY(MPI_Win_flush_all(all->win));
    for (int i = 0; i < all->pending; i++)
        if (memcmp(all->fetched[i], all->expected[i], sizeof all->fetched[i]))
            return app_fail(self, "operation %d of a series fetched %lld and %lld, not %lld and %lld", i,
                            (long long)all->fetched[i][0], (long long)all->fetched[i][1], (long long)all->expected[i][0],
                            (long long)all->expected[i][1]);
    all->pending = 0;
    return 0;
}

static int64_t apply(MPI_Op op, int64_t have, int64_t with)
{
    if (op == MPI_SUM)
        return have + with;
    if (op == MPI_REPLACE)
        return with;
    if (op == MPI_BXOR)
        return have ^ with;
    if (op == MPI_BOR)
        return have | with;
    if (op == MPI_BAND)
        return have & with;
    if (op == MPI_MAX)
        return have > with ? have : with;
    return have; /* MPI_NO_OP */
}

/* The result's datatype is freed before the operation ends, and its memory used for another one (MPI 5.0 5.1.9). */
static int get_accumulate(atomics *all, int i, int count, MPI_Datatype type, int target, size_t at, MPI_Op op)
{
    app_self *self = all->self;
    MPI_Datatype result, other;
    APP_TRY(MPI_Type_contiguous(count, MPI_INT64_T, &result));
    APP_TRY(MPI_Type_commit(&result));
    APP_TRY(MPI_Get_accumulate(all->operands[i], count, MPI_INT64_T, all->fetched[i], 1, result, target, byte_of(at), 1, type, op,
                               all->win));
    APP_TRY(MPI_Type_free(&result));
    APP_TRY(MPI_Type_contiguous(3, MPI_CHAR, &other));
    return MPI_Type_free(&other);
}

/* One of a series; MPI_MAX is performed by no device. Nothing is waited for. */
static int series(atomics *all, int target)
{
    app_self *self = all->self;
    const MPI_Op ops[] = {MPI_SUM, MPI_REPLACE, MPI_BXOR, MPI_BOR, MPI_BAND, MPI_MAX, MPI_NO_OP};
    uint64_t *draw = &self->own;
    MPI_Op op = ops[app_draw(draw, sizeof ops / sizeof ops[0])];
    bool is_pair = app_draw(draw, 3) == 0, is_fetched = op == MPI_NO_OP || app_draw(draw, 3);
    int i = all->pending++, word = is_pair ? 0 : (int)app_draw(draw, 2) * 2, count = is_pair ? 2 : 1;
    size_t at = SERIES + (size_t)self->rank * OWN + (size_t)word;
    MPI_Datatype type = is_pair ? all->pair : MPI_INT64_T;
    memset(all->fetched[i], 0, sizeof all->fetched[i]);
    memset(all->expected[i], 0, sizeof all->expected[i]);
    for (int k = 0; k < count; k++) {
        int64_t *have = &all->series[target * OWN + word + 2 * k];
        all->operands[i][k] = (int64_t)app_draw(draw, 1u << 30) - 1000;
        all->expected[i][k] = is_fetched ? *have : 0;
        *have = apply(op, *have, all->operands[i][k]);
    }
    if (!is_fetched)
        APP_TRY(MPI_Accumulate(all->operands[i], count, MPI_INT64_T, target, byte_of(at), 1, type, op, all->win));
    else if (!is_pair && app_draw(draw, 2))
        APP_TRY(MPI_Fetch_and_op(all->operands[i], all->fetched[i], MPI_INT64_T, target, byte_of(at), op, all->win));
    else if (get_accumulate(all, i, count, type, target, at, op))
        return 1;
    return all->pending == PENDING || app_draw(draw, 8) == 0 ? check_pending(all) : 0;
}

static int ticket(atomics *all, int target)
{
    app_self *self = all->self;
    const int64_t one = 1;
    int64_t value = -1;
    MPI_Request request;
    if (app_draw(&self->own, 2)) {
        APP_TRY(MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &value, 1, MPI_INT64_T, target, byte_of(COUNTER), 1, MPI_INT64_T, MPI_SUM,
                                    all->win, &request));
        APP_TRY(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        APP_TRY(MPI_Fetch_and_op(&one, &value, MPI_INT64_T, target, byte_of(COUNTER), MPI_SUM, all->win));
        APP_TRY(MPI_Win_flush_local(target, all->win));
    }
    if (value < 0 || value >= (int64_t)self->size * TICKETS)
        return app_fail(self, "ticket %lld of %d", (long long)value, target);
    all->tickets[(size_t)target * (size_t)self->size * TICKETS + (size_t)value]++;
    all->added[target * SERIES + COUNTER]++;
    return 0;
}

/* Adds 1 by compare and swap. */
static int swap(atomics *all, int target)
{
    app_self *self = all->self;
    int64_t have = 0, seen = -1, next;
    for (;; have = seen) {
        next = have + 1;
        APP_TRY(MPI_Compare_and_swap(&next, &have, &seen, MPI_INT64_T, target, byte_of(SWAPPED), all->win));
        APP_TRY(MPI_Win_flush(target, all->win));
        if (seen == have)
            break;
        if (seen < have)
            return app_fail(self, "the word that is only counted up fell from %lld to %lld", (long long)have, (long long)seen);
    }
    all->added[target * SERIES + SWAPPED]++;
    return 0;
}

/* Adds to some words of the list, few or many. */
static int list(atomics *all, int target)
{
    app_self *self = all->self;
    int64_t with[VECTOR];
    int count = 1 + (int)app_draw(&self->own, app_draw(&self->own, 3) ? 4 : VECTOR);
    int from = (int)app_draw(&self->own, (uint64_t)(VECTOR - count + 1));
    MPI_Request request;
    for (int i = 0; i < count; i++) {
        with[i] = (int64_t)app_draw(&self->own, 1000);
        all->added[target * SERIES + LIST + from + i] += with[i];
    }
    APP_TRY(MPI_Raccumulate(with, count, MPI_INT64_T, target, byte_of((size_t)(LIST + from)), count, MPI_INT64_T, MPI_SUM, all->win,
                            &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int step(atomics *all)
{
    app_self *self = all->self;
    int target = (int)app_draw(&self->own, (uint64_t)self->size);
    int64_t bit = (int64_t)1 << self->rank, rank = self->rank, one = 1;
    switch (app_draw(&self->own, 8)) {
    case 0: return ticket(all, target);
    case 1: return swap(all, target);
    case 2: return list(all, target);
    case 3:
        APP_TRY(MPI_Accumulate(&bit, 1, MPI_INT64_T, target, byte_of(BITS), 1, MPI_INT64_T, MPI_BOR, all->win));
        APP_TRY(MPI_Accumulate(&rank, 1, MPI_INT64_T, target, byte_of(LARGEST), 1, MPI_INT64_T, MPI_MAX, all->win));
        return MPI_Win_flush_local(target, all->win);
    case 4:
        all->odd[target]++;
        APP_TRY(MPI_Accumulate(&one, 1, MPI_INT64_T, target, byte_of(words_of(all) - 2) + 4, 1, MPI_INT64_T, MPI_SUM, all->win));
        return MPI_Win_flush_local(target, all->win);
    default: return series(all, target);
    }
}

/* The same bytes that this rank has are at all ranks' words, by the sums of all. */
static int check(atomics *all)
{
    app_self *self = all->self;
    int size = self->size, tickets = size * size * TICKETS;
    int64_t odd;
    APP_TRY(MPI_Allreduce(MPI_IN_PLACE, all->tickets, tickets, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    APP_TRY(MPI_Allreduce(MPI_IN_PLACE, all->added, size * SERIES, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    APP_TRY(MPI_Allreduce(MPI_IN_PLACE, all->odd, size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size * TICKETS; i++)
        if (all->tickets[self->rank * size * TICKETS + i] != (i < all->own[COUNTER]))
            return app_fail(self, "%lld ranks have got ticket %d of %lld", (long long)all->tickets[self->rank * size * TICKETS + i], i,
                            (long long)all->own[COUNTER]);
    for (int i = 0; i < SERIES; i++)
        if (i != BITS && i != LARGEST && all->own[i] != all->added[self->rank * SERIES + i])
            return app_fail(self, "word %d is %lld, but %lld were added", i, (long long)all->own[i],
                            (long long)all->added[self->rank * SERIES + i]);
    if (all->own[LARGEST] > size || (all->own[BITS] >> size) || (all->own[BITS] && all->own[BITS] >> all->own[LARGEST] != 1))
        return app_fail(self, "bits %llx, but the largest is %lld", (long long)all->own[BITS], (long long)all->own[LARGEST]);
    memcpy(&odd, (const char *)(all->own + words_of(all) - 2) + 4, sizeof odd);
    return odd == all->odd[self->rank] ? 0 : app_fail(self, "%lld were added to the word that is not aligned, which is %lld",
                                                      (long long)all->odd[self->rank], (long long)odd);
}

int app_atomics(int rank, void *arg)
{
    app_self me, *self = &me;
    atomics all = {.self = self};
    size_t size, bytes;
    bool is_own;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    size = (size_t)self->size;
    bytes = words_of(&all) * 8;
    is_own = app_draw(&self->shared, 3);
    all.tickets = calloc(size * size * TICKETS, sizeof *all.tickets);
    all.added = calloc(size * SERIES, sizeof *all.added);
    all.series = calloc(size * OWN, sizeof *all.series);
    all.odd = calloc(size, sizeof *all.odd);
    if (is_own) {
        all.own = calloc(1, bytes);
        APP_TRY(MPI_Win_create(all.own, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all.win));
    } else {
        APP_TRY(MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &all.own, &all.win));
        memset(all.own, 0, bytes);
        APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    }
    APP_TRY(MPI_Type_vector(2, 1, 2, MPI_INT64_T, &all.pair));
    APP_TRY(MPI_Type_commit(&all.pair));
    APP_TRY(MPI_Win_lock_all(0, all.win));
    for (int i = 0; i < STEPS; i++)
        if (step(&all))
            return 1;
    if (check_pending(&all))
        return 1;
    APP_TRY(MPI_Win_unlock_all(all.win));
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    if (check(&all))
        return 1;
    APP_TRY(MPI_Type_free(&all.pair));
    APP_TRY(MPI_Win_free(&all.win));
    free(all.tickets);
    free(all.added);
    free(all.series);
    free(all.odd);
    if (is_own)
        free(all.own);
    return MPI_Finalize();
}

enum { COUNTS = 20 };

/* Counts at rank 0, which calls no function of MPI meanwhile. Its last values are the others' only. */
static int count(app_self *self, MPI_Win win)
{
    const int64_t one = 1;
    int64_t last = -1, value = -1;
    for (int i = 0; i < COUNTS; i++) {
        APP_TRY(MPI_Fetch_and_op(&one, &value, MPI_INT64_T, 0, 0, MPI_SUM, win));
        APP_TRY(MPI_Win_flush(0, win));
        if (value <= last || value >= (int64_t)COUNTS * self->size)
            return app_fail(self, "a counter gave %lld after %lld", (long long)value, (long long)last);
        last = value;
    }
    return 0;
}

int app_counts(int rank, void *arg)
{
    app_self me, *self = &me;
    int64_t *own;
    MPI_Win win;
    int value = 0;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    own = calloc(1, sizeof *own);
    APP_TRY(MPI_Win_create(own, sizeof *own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    APP_TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (self->rank)
        APP_TRY(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    for (int i = 1; i < self->size && !self->rank; i++)
        APP_TRY(MPI_Recv(&value, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (self->rank && count(self, win))
        return 1;
    while (!self->rank && __atomic_load_n(own, __ATOMIC_ACQUIRE) < (int64_t)COUNTS * (self->size - 1))
        weft_sim_yield();
    APP_TRY(MPI_Win_unlock_all(win));
    APP_TRY(MPI_Win_free(&win));
    free(own);
    return MPI_Finalize();
}

enum { MANY = 9 }; /* words at a time, which are one message */

/* Adds 1 to the first word or all of a target. The error of the call, its completion or the flush. */
static int add_once(app_self *self, MPI_Win win, int target, int64_t *value)
{
    static const int64_t ones[MANY] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    int64_t values[MANY] = {-1};
    int rc, count = app_draw(&self->own, 3) ? 1 : MANY;
    MPI_Request request;
    if (app_draw(&self->own, 2)) {
        rc = MPI_Get_accumulate(ones, count, MPI_INT64_T, values, count, MPI_INT64_T, target, 0, count, MPI_INT64_T, MPI_SUM, win);
        if (!rc)
            rc = MPI_Win_flush(target, win);
    } else {
        rc = MPI_Rget_accumulate(ones, count, MPI_INT64_T, values, count, MPI_INT64_T, target, 0, count, MPI_INT64_T, MPI_SUM, win,
                                 &request);
        if (!rc)
            rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    *value = values[0];
    return rc;
}

/* Counts at random ranks. Failures are counted, and what was fetched without one is unique. */
static int count_on(app_self *self, MPI_Win win, int64_t *fetched, int64_t *done, int64_t *failed)
{
    for (int i = 0; i < STEPS; i++) {
        int target = (int)app_draw(&self->own, (uint64_t)self->size);
        int64_t value;
        int rc = add_once(self, win, target, &value);
        if (!rc && (value < 0 || value >= (int64_t)self->size * STEPS))
            return app_fail(self, "a counter gave %lld", (long long)value);
        if (!rc)
            fetched[target * self->size * STEPS + value]++;
        done[target] += !rc;
        failed[target] += rc != 0;
    }
    return 0;
}

int app_unknown(int rank, void *arg)
{
    app_self me, *self = &me;
    app *app = arg;
    int64_t *own, *fetched, *done, *failed;
    MPI_Win win;
    int values;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    values = self->size * STEPS;
    own = calloc(MANY, sizeof *own);
    fetched = calloc((size_t)(self->size * values), sizeof *fetched);
    done = calloc(2 * (size_t)self->size, sizeof *done);
    failed = done + self->size;
    APP_TRY(MPI_Win_create(own, MANY * sizeof *own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    APP_TRY(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    APP_TRY(MPI_Win_lock_all(0, win));
    if (count_on(self, win, fetched, done, failed))
        return 1;
    APP_TRY(MPI_Win_unlock_all(win));
    APP_TRY(MPI_Allreduce(MPI_IN_PLACE, fetched, self->size * values, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    APP_TRY(MPI_Allreduce(MPI_IN_PLACE, done, 2 * self->size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    if (*own < done[self->rank] || *own > done[self->rank] + failed[self->rank])
        return app_fail(self, "%lld counted, %lld of unknown outcome, but the counter is %lld", (long long)done[self->rank],
                        (long long)failed[self->rank], (long long)*own);
    for (int i = 0; i < values; i++)
        if (fetched[self->rank * values + i] > 1)
            return app_fail(self, "%lld atomics have fetched %d", (long long)fetched[self->rank * values + i], i);
    app->unknown += (uint32_t)failed[self->rank];
    APP_TRY(MPI_Win_free(&win));
    free(fetched);
    free(done);
    free(own);
    return MPI_Finalize();
}

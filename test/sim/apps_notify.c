/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_notify: windows with notifications. See apps.h. Each rank puts to and gets from each other, mixed, with and without notifications;
 * the target waits for counts in any order. When it sees a count, what the origin put up to that operation is there, and what it read up to
 * then is marked as free: an origin that still reads it finds the mark. app_notify_regions does so in a dynamic window, in regions that are
 * detached and attached between rounds, with other borders: keys that origins know are stale then, some before they are told.
 */
#include <mpi-ext.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"

enum { OPS = 6, LONGEST = 24000, COUNTERS = 2, FREE = 0xee, PARTS = 3 };

typedef struct notify_op {
    int bytes, at, id; /* at: in the area of the pair; id: -1: no notification */
    bool is_get, is_accumulate;
    bool is_words;     /* an accumulate that a device's atomics may perform */
    uint64_t name;     /* of the bytes (rig_fill) */
} notify_op;

typedef struct notify_app {
    app_self *self;
    MPI_Win win;
    uint8_t *memory;  /* [size][OPS * LONGEST]: for each origin */
    uint8_t *buffers; /* the same for each target */
    MPI_Aint *bases;  /* [size] addresses of the ranks' memory, if the window is dynamic; else 0 */
    int (*cuts)[PARTS + 1]; /* [size] borders of the regions of each origin's area; [PARTS] 0: none are attached. NULL: not dynamic */
} notify_app;

static uint8_t *area(uint8_t *base, int rank) { return base + (size_t)rank * OPS * LONGEST; }

/* The same on both sides. */
static void plan(notify_op ops[OPS], uint64_t salt, int origin, int target)
{
    uint64_t state = salt * 4096 + (uint64_t)origin * 64 + (uint64_t)target;
    int at = 0;
    for (int i = 0; i < OPS; i++) {
        notify_op *op = &ops[i];
        int longest = app_draw(&state, 3) ? 600 : LONGEST;
        op->bytes = (int)app_draw(&state, (uint64_t)longest) + 1;
        op->id = (int)app_draw(&state, COUNTERS + 1) - 1;
        op->is_get = app_draw(&state, 3) == 0;
        op->is_accumulate = !op->is_get && op->id < 0 && app_draw(&state, 3) == 0;
        op->name = app_draw(&state, 1u << 30) * 2 + 1;
        op->is_words = op->is_accumulate && app_draw(&state, 2);
        if (op->is_words) {
            op->bytes = 8 * (1 + op->bytes % 8);
            at = (at + 7) & ~7;
        }
        op->at = at;
        at += op->bytes;
    }
}

static int issue(notify_app *app, const notify_op *op, int target)
{
    const app_self *self = app->self;
    uint8_t *buffer = area(app->buffers, target) + op->at;
    MPI_Aint there = app->bases[target] + (MPI_Aint)self->rank * OPS * LONGEST + op->at;
    int id = self->rank * COUNTERS + op->id;
    if (!op->is_get)
        rig_fill(buffer, op->name, (uint64_t)op->bytes);
    if (op->is_words)
        APP_TRY(MPI_Accumulate(buffer, op->bytes / 8, MPI_INT64_T, target, there, op->bytes / 8, MPI_INT64_T, MPI_REPLACE, app->win));
    else if (op->is_accumulate)
        APP_TRY(MPI_Accumulate(buffer, op->bytes, MPI_BYTE, target, there, op->bytes, MPI_BYTE, MPI_REPLACE, app->win));
    else if (op->is_get && op->id < 0)
        APP_TRY(MPI_Get(buffer, op->bytes, MPI_BYTE, target, there, op->bytes, MPI_BYTE, app->win));
    else if (op->is_get)
        APP_TRY(MPIX_Get_notify(buffer, op->bytes, MPI_BYTE, target, there, op->bytes, MPI_BYTE, app->win, id));
    else if (op->id < 0)
        APP_TRY(MPI_Put(buffer, op->bytes, MPI_BYTE, target, there, op->bytes, MPI_BYTE, app->win));
    else
        APP_TRY(MPIX_Put_notify(buffer, op->bytes, MPI_BYTE, target, there, op->bytes, MPI_BYTE, app->win, id));
    return 0;
}

/* Operations up to the count-th on a counter are there, or have read what was there, which is then overwritten. */
static int check_up_to(notify_app *app, const notify_op ops[OPS], int origin, int id, MPI_Count count)
{
    app_self *self = app->self;
    int last = -1;
    for (int i = 0, n = 0; i < OPS; i++)
        if (ops[i].id == id && n++ < count)
            last = i;
    for (int i = 0; i <= last; i++) {
        uint8_t *at = area(app->memory, origin) + ops[i].at;
        if (ops[i].is_get)
            memset(at, FREE, (size_t)ops[i].bytes);
        else if (rig_wrong(at, ops[i].name, (uint64_t)ops[i].bytes) != (uint64_t)ops[i].bytes)
            return app_fail(self, "count %d of counter %d of rank %d came before the data of its operation %d", (int)count, id, origin, i);
    }
    return 0;
}

/* Waits for a random number of notifications. */
static int look(notify_app *app, uint64_t salt, int origin, int id)
{
    app_self *self = app->self;
    notify_op ops[OPS];
    int all = 0, flag = 0, index = 0, counter = origin * COUNTERS + id;
    MPI_Count want, value = -1;
    plan(ops, salt, origin, self->rank);
    for (int i = 0; i < OPS; i++)
        all += ops[i].id == id;
    want = (MPI_Count)app_draw(&self->own, (uint64_t)all + 1);
    switch (app_draw(&self->own, 3)) {
    case 0: APP_TRY(MPIX_Win_notify_wait(app->win, counter, want, &value)); break;
    case 1: APP_TRY(MPIX_Win_notify_waitany(app->win, 1, &counter, &want, &index, &value)); break;
    default:
        while (!flag)
            APP_TRY(MPIX_Win_notify_test(app->win, counter, want, &flag, &value));
    }
    if (value < want || value > all)
        return app_fail(self, "counter %d of rank %d is %d: %d to %d", id, origin, (int)value, (int)want, all);
    return check_up_to(app, ops, origin, id, value);
}

/* What gets must find. */
static void prepare(notify_app *app, uint64_t salt)
{
    notify_op ops[OPS];
    for (int origin = 0; origin < app->self->size; origin++) {
        plan(ops, salt, origin, app->self->rank);
        for (int i = 0; i < OPS; i++)
            if (ops[i].is_get)
                rig_fill(area(app->memory, origin) + ops[i].at, ops[i].name, (uint64_t)ops[i].bytes);
    }
}

/* All ranks have flushed: puts that notified by message are counted, and so is what came before them. */
static int check_flushed(notify_app *app, uint64_t salt)
{
    const app_self *self = app->self;
    const char *device = getenv("WEFT_RMA_DEVICE");
    notify_op ops[OPS];
    if (!device || strcmp(device, "never"))
        return 0;
    for (int origin = 0; origin < self->size; origin++) {
        int last = -1;
        plan(ops, salt, origin, self->rank);
        for (int i = 0; i < OPS; i++)
            last = ops[i].id >= 0 && !ops[i].is_get ? i : last;
        for (int id = 0; id < COUNTERS; id++) {
            MPI_Count sure = 0, value;
            int flag;
            for (int i = 0; i <= last; i++)
                sure += ops[i].id == id;
            APP_TRY(MPIX_Win_notify_test(app->win, origin * COUNTERS + id, 0, &flag, &value));
            if (value < sure)
                return app_fail(self, "counter %d of rank %d is %d after its flush, which has completed %d", id, origin, (int)value,
                                (int)sure);
        }
    }
    return 0;
}

/* All operations of this rank are complete: what it got is right. Its counters have what was sent. */
static int finish(notify_app *app, uint64_t salt)
{
    app_self *self = app->self;
    notify_op ops[OPS];
    for (int other = 0; other < self->size; other++) {
        MPI_Count left[COUNTERS] = {0}, value;
        plan(ops, salt, self->rank, other);
        for (int i = 0; i < OPS; i++)
            if (ops[i].is_get &&
                rig_wrong(area(app->buffers, other) + ops[i].at, ops[i].name, (uint64_t)ops[i].bytes) != (uint64_t)ops[i].bytes)
                return app_fail(self, "operation %d read from rank %d after its notification was counted", i, other);
        plan(ops, salt, other, self->rank);
        for (int i = 0; i < OPS; i++)
            if (ops[i].id >= 0)
                left[ops[i].id]++;
        for (int id = 0; id < COUNTERS; id++) {
            APP_TRY(MPIX_Win_notify_wait(app->win, other * COUNTERS + id, left[id], &value)); /* those of gets may come after the flush */
            APP_TRY(MPIX_Win_notify_reset(app->win, other * COUNTERS + id, &value));
            if (value != left[id])
                return app_fail(self, "counter %d of rank %d ended at %d, not %d", id, other, (int)value, (int)left[id]);
        }
    }
    return 0;
}

static int attach(notify_app *app, int origin, bool attaches)
{
    const app_self *self = app->self;
    const int *cuts = app->cuts[origin];
    for (int i = 0; i < PARTS && cuts[PARTS]; i++) {
        uint8_t *from = area(app->memory, origin) + cuts[i];
        if (cuts[i] == cuts[i + 1])
            continue;
        if (attaches)
            APP_TRY(MPI_Win_attach(app->win, from, cuts[i + 1] - cuts[i]));
        else
            APP_TRY(MPI_Win_detach(app->win, from));
    }
    return 0;
}

/* Most areas stay as they are: their keys are known. */
static int draw_regions(notify_app *app)
{
    app_self *self = app->self;
    for (int origin = 0; app->cuts && origin < self->size; origin++) {
        int *cuts = app->cuts[origin];
        if (cuts[PARTS] && app_draw(&self->own, 3))
            continue;
        if (attach(app, origin, false))
            return 1;
        for (int i = 1; i < PARTS; i++)
            cuts[i] = cuts[i - 1] + (int)app_draw(&self->own, LONGEST / 4);
        cuts[PARTS] = OPS * LONGEST;
        if (attach(app, origin, true))
            return 1;
    }
    return 0;
}

static int round_of(notify_app *app)
{
    app_self *self = app->self;
    uint64_t salt = app_draw(&self->shared, 1u << 30);
    notify_op ops[OPS];
    if (draw_regions(app))
        return 1;
    prepare(app, salt);
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < OPS; i++)
        for (int target = 0; target < self->size; target++) {
            plan(ops, salt, self->rank, target);
            if (issue(app, &ops[i], target))
                return 1;
        }
    for (int turn = 0; turn < 2 * self->size; turn++)
        if (look(app, salt, (int)app_draw(&self->own, (uint64_t)self->size), (int)app_draw(&self->own, COUNTERS)))
            return 1;
    APP_TRY(MPI_Win_flush_all(app->win));
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    if (check_flushed(app, salt) || finish(app, salt))
        return 1;
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    return 0;
}

static int open_window(notify_app *app, size_t bytes, bool is_dynamic)
{
    const app_self *self = app->self;
    MPI_Aint own;
    if (!is_dynamic) {
        APP_TRY(MPI_Win_create(app->memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &app->win));
        return 0;
    }
    app->cuts = calloc((size_t)self->size, sizeof *app->cuts);
    APP_TRY(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &app->win));
    APP_TRY(MPI_Get_address(app->memory, &own));
    APP_TRY(MPI_Allgather(&own, 1, MPI_AINT, app->bases, 1, MPI_AINT, MPI_COMM_WORLD));
    return 0;
}

static int run(void *arg, bool is_dynamic)
{
    app_self me, *self = &me;
    notify_app app = {.self = self};
    int rc = 0;
    if (!app_begin(self, arg))
        return 1;
    size_t bytes = (size_t)self->size * OPS * LONGEST;
    app.memory = malloc(bytes);
    app.buffers = malloc(bytes);
    app.bases = calloc((size_t)self->size, sizeof *app.bases);
    if (open_window(&app, bytes, is_dynamic))
        return 1;
    APP_TRY(MPIX_Win_notify_init(app.win, self->size * COUNTERS));
    APP_TRY(MPI_Win_lock_all(0, app.win));
    for (uint32_t i = 0; i < self->what->rounds * (is_dynamic ? 2 : 1) && !rc; i++)
        rc = round_of(&app);
    if (rc)
        return rc;
    APP_TRY(MPI_Win_unlock_all(app.win));
    APP_TRY(MPI_Win_free(&app.win));
    free(app.memory);
    free(app.buffers);
    free(app.bases);
    free(app.cuts);
    return MPI_Finalize();
}

int app_notify(int rank, void *arg)
{
    (void)rank;
    return run(arg, false);
}

int app_notify_regions(int rank, void *arg)
{
    (void)rank;
    return run(arg, true);
}

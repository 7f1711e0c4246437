/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_comms: MPI programs with communicators and collectives. See apps.h.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"

/* Element i that rank r sends to rank `to` (0 where all ranks receive the same). */
static int64_t element(uint64_t salt, int r, int to, int i)
{
    return (int64_t)((salt + (uint64_t)r * 1000003 + (uint64_t)to * 77777) * ((uint64_t)i * 2 + 1) & 0xffffffffffu);
}

typedef struct coll {
    MPI_Comm comm;
    int rank, size, root, count;
    uint64_t salt;
    bool is_blocking;
    int64_t *send, *receive;
} coll;

static int sums(app_self *self, const coll *c)
{
    MPI_Request req;
    for (int i = 0; i < c->count; i++)
        c->send[i] = element(c->salt, c->rank, 0, i);
    if (c->is_blocking)
        APP_TRY(MPI_Allreduce(c->send, c->receive, c->count, MPI_INT64_T, MPI_SUM, c->comm));
    else {
        APP_TRY(MPI_Iallreduce(c->send, c->receive, c->count, MPI_INT64_T, MPI_SUM, c->comm, &req));
        APP_TRY(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < c->count; i++) {
        int64_t want = 0;
        for (int r = 0; r < c->size; r++)
            want += element(c->salt, r, 0, i);
        if (c->receive[i] != want)
            return app_fail(self, "allreduce of %d over %d ranks: element %d is wrong", c->count, c->size, i);
    }
    return 0;
}

static int casts(app_self *self, const coll *c)
{
    MPI_Request req;
    for (int i = 0; i < c->count; i++)
        c->receive[i] = c->rank == c->root ? element(c->salt, c->root, 0, i) : -1;
    if (c->is_blocking)
        APP_TRY(MPI_Bcast(c->receive, c->count, MPI_INT64_T, c->root, c->comm));
    else {
        APP_TRY(MPI_Ibcast(c->receive, c->count, MPI_INT64_T, c->root, c->comm, &req));
        APP_TRY(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < c->count; i++)
        if (c->receive[i] != element(c->salt, c->root, 0, i))
            return app_fail(self, "bcast of %d from %d of %d: element %d is wrong", c->count, c->root, c->size, i);
    return 0;
}

static int swaps(app_self *self, const coll *c)
{
    MPI_Request req;
    for (int to = 0; to < c->size; to++)
        for (int i = 0; i < c->count; i++)
            c->send[to * c->count + i] = element(c->salt, c->rank, to, i);
    if (c->is_blocking)
        APP_TRY(MPI_Alltoall(c->send, c->count, MPI_INT64_T, c->receive, c->count, MPI_INT64_T, c->comm));
    else {
        APP_TRY(MPI_Ialltoall(c->send, c->count, MPI_INT64_T, c->receive, c->count, MPI_INT64_T, c->comm, &req));
        APP_TRY(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
    for (int from = 0; from < c->size; from++)
        for (int i = 0; i < c->count; i++)
            if (c->receive[from * c->count + i] != element(c->salt, from, c->rank, i))
                return app_fail(self, "alltoall of %d over %d ranks: element %d of block %d is wrong", c->count, c->size, i,
                                from);
    return 0;
}

/* No rank leaves the barrier before the last one has entered. */
static int barriers(app_self *self, const coll *c)
{
    MPI_Request req;
    bool is_world = c->comm == MPI_COMM_WORLD;
    if (is_world)
        self->what->arrived++, self->barriers++;
    if (c->is_blocking)
        APP_TRY(MPI_Barrier(c->comm));
    else {
        APP_TRY(MPI_Ibarrier(c->comm, &req));
        APP_TRY(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
    if (is_world && self->what->arrived < self->barriers * (uint32_t)self->size)
        return app_fail(self, "barrier %u let us through when %u had come to it", self->barriers,
                        self->what->arrived - (self->barriers - 1) * (uint32_t)self->size);
    return 0;
}

/* One collective of the drawn kind. */
static int perform(app_self *self, MPI_Comm comm, uint64_t *shared)
{
    static int (*const kinds[])(app_self *, const coll *) = {sums, casts, swaps, barriers};
    coll c = {.comm = comm, .count = (int)app_draw(shared, app_draw(shared, 4) ? 20 : 2500), .salt = rig_random(shared) >> 32,
              .is_blocking = app_draw(shared, 2)};
    uint64_t kind = app_draw(shared, 4);
    APP_TRY(MPI_Comm_rank(comm, &c.rank));
    APP_TRY(MPI_Comm_size(comm, &c.size));
    c.root = (int)app_draw(shared, (uint64_t)c.size);
    c.send = malloc(((size_t)c.count * (size_t)c.size + 1) * sizeof *c.send);
    c.receive = malloc(((size_t)c.count * (size_t)c.size + 1) * sizeof *c.receive);
    int rc = kinds[kind](self, &c);
    free(c.send);
    free(c.receive);
    return rc;
}

int app_colls(int rank, void *arg)
{
    app_self about, *self = &about;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t round = 0; round < 4 * self->what->rounds; round++)
        if (perform(self, MPI_COMM_WORLD, &self->shared))
            return 1;
    APP_TRY(MPI_Finalize());
    return 0;
}

/* A split by drawn colors and keys. The draws are equal on all ranks, so each knows the expected groups. */
static int split(app_self *self, MPI_Comm *part, int *color)
{
    int colors[64], keys[64], rank, size, want_rank = 0, want_size = 0;
    for (int r = 0; r < self->size; r++) {
        colors[r] = (int)app_draw(&self->shared, 4) - 1; /* -1: in no group */
        keys[r] = (int)app_draw(&self->shared, 5) - 2;
    }
    *color = colors[self->rank];
    APP_TRY(MPI_Comm_split(MPI_COMM_WORLD, *color < 0 ? MPI_UNDEFINED : *color, keys[self->rank], part));
    if ((*part == MPI_COMM_NULL) != (*color < 0))
        return app_fail(self, "split: color %d gave %s", *color, *part == MPI_COMM_NULL ? "no communicator" : "one");
    if (*color < 0)
        return 0;
    for (int r = 0; r < self->size; r++) {
        bool is_before = keys[r] < keys[self->rank] || (keys[r] == keys[self->rank] && r < self->rank);
        want_size += colors[r] == *color;
        want_rank += colors[r] == *color && is_before;
    }
    APP_TRY(MPI_Comm_rank(*part, &rank));
    APP_TRY(MPI_Comm_size(*part, &size));
    if (rank != want_rank || size != want_size)
        return app_fail(self, "split: rank %d of %d, where %d of %d should be", rank, size, want_rank, want_size);
    return 0;
}

enum { COMMS = 3, LONGEST = 9000 };

/* Messages with one tag to the next rank of each communicator, received by wildcards in another order: no message crosses communicators.
 * The duplicate's handle is freed while its messages are in flight (MPI 5.0, 7.4.3). */
static int cross(app_self *self, MPI_Comm comms[COMMS], uint64_t salt)
{
    MPI_Request reqs[2 * COMMS];
    MPI_Status statuses[2 * COMMS];
    uint8_t *bytes = malloc(2 * COMMS * LONGEST);
    uint64_t lengths[COMMS];
    int n = 0, ranks[COMMS], sizes[COMMS];

    for (int c = 0; c < COMMS; c++) {
        lengths[c] = app_draw_bytes(&self->shared) % LONGEST;
        if (comms[c] == MPI_COMM_NULL)
            continue;
        APP_TRY(MPI_Comm_rank(comms[c], &ranks[c]));
        APP_TRY(MPI_Comm_size(comms[c], &sizes[c]));
        rig_fill(bytes + c * LONGEST, salt + (uint64_t)(c * 64 + ranks[c]), lengths[c]);
        APP_TRY(MPI_Isend(bytes + c * LONGEST, (int)lengths[c], MPI_BYTE, (ranks[c] + 1) % sizes[c], 5, comms[c], &reqs[n++]));
    }
    int first = n;
    for (int c = COMMS - 1; c >= 0; c--)
        if (comms[c] != MPI_COMM_NULL)
            APP_TRY(MPI_Irecv(bytes + (COMMS + c) * LONGEST, LONGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[c],
                              &reqs[n++]));
    APP_TRY(MPI_Comm_free(&comms[1]));
    APP_TRY(MPI_Waitall(n, reqs, statuses));
    for (int c = COMMS - 1, i = first; c >= 0; c--) {
        if (c != 1 && comms[c] == MPI_COMM_NULL)
            continue;
        int from = (ranks[c] + sizes[c] - 1) % sizes[c], count;
        APP_TRY(MPI_Get_count(&statuses[i], MPI_BYTE, &count));
        if (statuses[i].MPI_SOURCE != from || (uint64_t)count != lengths[c] ||
            rig_wrong(bytes + (COMMS + c) * LONGEST, salt + (uint64_t)(c * 64 + from), lengths[c]) != lengths[c])
            return app_fail(self, "communicator %d got a message of %d bytes from %d that is not its own", c, count,
                            statuses[i].MPI_SOURCE);
        i++;
    }
    free(bytes);
    return 0;
}

/* Reductions on two communicators in flight at once, started in either order. */
static int both(app_self *self, MPI_Comm one, MPI_Comm other)
{
    int64_t send[2] = {self->rank, 1}, receive[2] = {-1, -1};
    MPI_Comm comms[2] = {one, other};
    MPI_Request reqs[2];
    int first = (int)app_draw(&self->own, 2);
    for (int i = 0; i < 2; i++) {
        int which = i ^ first;
        APP_TRY(MPI_Iallreduce(&send[which], &receive[which], 1, MPI_INT64_T, MPI_SUM, comms[which], &reqs[which]));
    }
    APP_TRY(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
    if (receive[0] != (int64_t)self->size * (self->size - 1) / 2 || receive[1] != self->size)
        return app_fail(self, "two sums at once: %lld and %lld", (long long)receive[0], (long long)receive[1]);
    return 0;
}

static int comms_round(app_self *self, uint64_t salt)
{
    MPI_Comm comms[COMMS] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
    int color;
    APP_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    if (split(self, &comms[2], &color))
        return 1;
    uint64_t part = self->shared + (uint64_t)(color + 1); /* the same draws on all ranks of a color */
    if (perform(self, comms[1], &self->shared) || (color >= 0 && perform(self, comms[2], &part)))
        return 1;
    if (both(self, comms[0], comms[1]) || cross(self, comms, salt))
        return 1;
    if (comms[1] != MPI_COMM_NULL)
        return app_fail(self, "a freed communicator's handle is not null");
    if (color >= 0)
        APP_TRY(MPI_Comm_free(&comms[2]));
    return 0;
}

int app_comms(int rank, void *arg)
{
    app_self about, *self = &about;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t round = 0; round < self->what->rounds; round++)
        if (comms_round(self, (self->what->seed * 100 + round) << 20))
            return 1;
    APP_TRY(MPI_Finalize());
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_rest: ranks that finalize the World Model at different times, rest, open sessions again with some of the others, rest again, and end
 * one after the other, also while others call them. Connections with a rank that has met the others for the last time, and rests, may
 * break. See apps.h.
 */
#include "test/sim/apps.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/world.h"
#include "test/sim/rig.h"
#include "test/transports/sim/sim.h"

#define BYTES 70000 /* the longest message: by rendezvous */
#define RANKS_MAX 64
#define LONG_NS UINT64_C(100000000000) /* several times as long as a peer may be silent that does not rest */

/* Computes outside MPI: at times longer than all that the others do meanwhile; at rest also for as long as it likes. */
static void compute(app_self *self, bool rests)
{
    static const uint64_t below[] = {1, 1, 30, 300, 4000};
    uint64_t scale = app_draw(&self->own, 12);
    if (rests && scale < 3)
        weft_sim_compute(app_draw(&self->own, scale == 0 ? LONG_NS : scale == 1 ? LONG_NS / 50 : LONG_NS / 10000));
    for (uint64_t turns = app_draw(&self->own, below[app_draw(&self->own, 5)]); turns; turns--)
        weft_sim_yield();
}

static int speak(const app_self *self, MPI_Comm comm, uint64_t *draws, uint8_t *out, uint8_t *in)
{
    uint64_t bytes = app_draw(draws, 4) ? app_draw_bytes(draws) : BYTES, name = app_draw(draws, 1u << 30);
    int me, size, left, one = 1, sum = 0;
    APP_TRY(MPI_Comm_rank(comm, &me));
    APP_TRY(MPI_Comm_size(comm, &size));
    left = (me + size - 1) % size;
    rig_fill(out, name + (uint64_t)me, bytes);
    APP_TRY(MPI_Sendrecv(out, (int)bytes, MPI_BYTE, (me + 1) % size, 3, in, BYTES, MPI_BYTE, left, 3, comm, MPI_STATUS_IGNORE));
    if (rig_wrong(in, name + (uint64_t)left, bytes) < bytes)
        return app_fail(self, "rest: wrong bytes of %d", left);
    if (app_draw(draws, 2))
        APP_TRY(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    else
        sum = size;
    return sum == size ? 0 : app_fail(self, "rest: %d of %d ranks were added", sum, size);
}

/* Opens a session with the other ranks of `members`, a bit mask, and speaks to them. */
static int join(app_self *self, uint64_t members, uint32_t round, uint64_t *draws, uint8_t *out, uint8_t *in)
{
    int ranks[RANKS_MAX], count = 0;
    MPI_Session session;
    MPI_Group world, group;
    MPI_Comm comm;
    char tag[20];
    for (int i = 0; i < self->size; i++)
        if (members >> i & 1)
            ranks[count++] = i;
    snprintf(tag, sizeof tag, "round %u", round);
    APP_TRY(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    APP_TRY(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    APP_TRY(MPI_Group_incl(world, count, ranks, &group));
    APP_TRY(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    APP_TRY(MPI_Group_free(&world));
    APP_TRY(MPI_Group_free(&group));
    for (uint64_t turns = 1 + app_draw(draws, 3); turns; turns--)
        if (speak(self, comm, draws, out, in))
            return 1;
    APP_TRY(MPI_Comm_free(&comm));
    return MPI_Session_finalize(&session);
}

static int open_alone(const app_self *self)
{
    MPI_Session session;
    APP_TRY(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    return MPI_Session_finalize(&session);
}

/* Every rank draws the same members and the same leavers, who take no part any more. */
static int meet(app_self *self, bool rests, uint8_t *out, uint8_t *in)
{
    uint64_t left = 0;
    for (uint32_t round = 0; round < self->what->rounds && !(left >> self->rank & 1); round++) {
        uint64_t members = 0, draws = self->what->seed * 1000 + round;
        for (int i = 0; i < self->size; i++)
            members |= (uint64_t)(app_draw(&self->shared, 3) > 0 && !(left >> i & 1)) << i;
        for (int i = 0; i < self->size; i++)
            left |= (uint64_t)(app_draw(&self->shared, 8) == 0) << i;
        compute(self, rests);
        if (members >> self->rank & 1) {
            if (join(self, members, round, &draws, out, in))
                return 1;
        } else if (app_draw(&self->own, 3) == 0 && open_alone(self)) {
            return 1;
        }
    }
    compute(self, rests);
    return 0;
}

/* This rank rests until it ends: nobody minds a loss of its connections. */
static void be_cut(app_self *self)
{
    for (uint64_t cuts = app_draw(&self->own, 4); cuts; cuts--) {
        weft_sim_cut((uint32_t)app_draw(&self->own, (uint64_t)self->size));
        compute(self, true);
    }
}

static int run(app_self *self, uint8_t *out, uint8_t *in)
{
    MPI_Session kept = MPI_SESSION_NULL;
    uint64_t draws = self->what->seed;
    if (app_draw(&self->shared, 4) && speak(self, MPI_COMM_WORLD, &draws, out, in))
        return 1;
    compute(self, false);
    if (app_draw(&self->own, 4) == 0) /* this rank does not rest */
        APP_TRY(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &kept));
    APP_TRY(MPI_Finalize());
    if (meet(self, kept == MPI_SESSION_NULL, out, in))
        return 1;
    if (kept != MPI_SESSION_NULL)
        return MPI_Session_finalize(&kept);
    be_cut(self);
    return 0;
}

/* Rank 0 rests and ends; the others name it as a member, before or after, and get an error. */
static int outlive(app_self *self, uint8_t *out, uint8_t *in)
{
    uint64_t draws = self->what->seed;
    MPI_Session session;
    MPI_Group world;
    MPI_Comm comm;
    int rc, class = MPI_SUCCESS;
    if (app_draw(&self->shared, 4) && speak(self, MPI_COMM_WORLD, &draws, out, in))
        return 1;
    APP_TRY(MPI_Finalize());
    compute(self, true);
    if (self->rank == 0)
        return 0;
    APP_TRY(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    APP_TRY(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    rc = MPI_Comm_create_from_group(world, "with one that left", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    if (rc)
        MPI_Error_class(rc, &class);
    if (class != MPI_ERR_PROC_ABORTED)
        return app_fail(self, "left: a communicator with a process that has ended gave %d, class %d", rc, class);
    APP_TRY(MPI_Group_free(&world));
    return MPI_Session_finalize(&session);
}

/* Rank 0 rests for long; the others call it at once, and wait for it. */
static int await(app_self *self, uint8_t *out, uint8_t *in)
{
    uint64_t draws = self->what->seed;
    if (app_draw(&self->shared, 2) && speak(self, MPI_COMM_WORLD, &draws, out, in))
        return 1;
    APP_TRY(MPI_Finalize());
    if (self->rank == 0)
        weft_sim_compute(LONG_NS);
    return join(self, (UINT64_C(1) << self->size) - 1, 0, &draws, out, in);
}

/* Odd ranks connect by rdma_cm, so MPI_Finalize ends them. Even ranks rest for long. MPI_Finalize does not wait for a rank at rest. */
static int part(app_self *self, uint8_t *out, uint8_t *in)
{
    uint64_t (*now_ns)(void) = weft_world_now->sleep_ops->now_ns, draws = self->what->seed, evens = UINT64_C(0x5555555555555555), begin;
    if (app_draw(&self->shared, 4) && speak(self, MPI_COMM_WORLD, &draws, out, in))
        return 1;
    compute(self, false);
    if (self->rank % 2 && app_draw(&self->own, 2))
        weft_sim_compute(LONG_NS / 20); /* the others rest by then */
    begin = now_ns();
    APP_TRY(MPI_Finalize());
    if (now_ns() - begin > LONG_NS / 2)
        return app_fail(self, "part: MPI_Finalize took %llu ms", (unsigned long long)(now_ns() - begin) / 1000000);
    if (self->rank % 2)
        return 0;
    weft_sim_compute(LONG_NS);
    return join(self, evens & ((UINT64_C(1) << self->size) - 1), 0, &draws, out, in);
}

static int run_as(int (*what)(app_self *, uint8_t *, uint8_t *), void *arg)
{
    app_self about, *self = &about;
    uint8_t *out = malloc(BYTES), *in = malloc(BYTES);
    int rc = 1;
    if (app_begin(self, arg) && out && in)
        rc = what(self, out, in);
    free(out);
    free(in);
    return rc;
}

int app_rest(int rank, void *arg)
{
    (void)rank;
    return run_as(run, arg);
}

int app_left(int rank, void *arg)
{
    (void)rank;
    return run_as(outlive, arg);
}

int app_await(int rank, void *arg)
{
    (void)rank;
    return run_as(await, arg);
}

int app_part(int rank, void *arg)
{
    (void)rank;
    return run_as(part, arg);
}

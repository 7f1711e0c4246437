/* SPDX-License-Identifier: BSD-3-Clause
 *
 * damage_mpi: MPI programs whose messages are corrupted. See damage.h.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"
#include "test/sim/damage.h"

enum { ROUNDS = 24, KINDS = 8, MAX = 2500 };

typedef struct program {
    app_self self;
    app app;
    damage *damage;
    uint32_t met;
    MPI_Request kept[KINDS];
    int64_t *send, *receive;
    int count, root; /* of the current call */
    uint64_t salt;
} program;

static int handled[64]; /* by rank: calls of the error handler */

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    handled[weft_sim_rank()]++;
}

/* Waits for all ranks; the last one switches the network's faults on or off. */
static int meet(program *p, bool is_sound)
{
    damage *damage = p->damage;
    int flag;
    p->met += (uint32_t)p->self.size;
    if (++damage->arrived == p->met)
        weft_sim_sound(is_sound);
    while (damage->arrived < p->met) {
        if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE))
            return 1;
        weft_sim_yield();
    }
    return 0;
}

static int64_t element(const program *p, int r, int i) { return (int64_t)(p->salt + (uint64_t)r * 1000003 + (uint64_t)i * 77); }

static int64_t expected(const program *p, int kind, int block, int i)
{
    int64_t sum = 0;
    if (kind == 0)
        return element(p, p->root, i);
    if (kind == 2)
        return element(p, block, i);
    for (int r = 0; r < p->self.size; r++)
        sum += element(p, r, i);
    return sum;
}

static bool is_right(const program *p, int kind)
{
    for (int block = 0; block < (kind == 2 ? p->self.size : 1); block++)
        for (int i = 0; i < p->count; i++)
            if (p->receive[block * p->count + i] != expected(p, kind, block, i))
                return false;
    return true;
}

static void fill(program *p, int kind)
{
    memset(p->receive, 0x5a, (size_t)p->self.size * MAX * sizeof *p->receive);
    for (int i = 0; i < p->count; i++)
        p->send[i] = element(p, p->self.rank, i);
    if (kind == 0 && p->self.rank == p->root)
        memcpy(p->receive, p->send, (size_t)p->count * sizeof *p->receive);
}

/* Bcast, allreduce or allgather, called in one of three ways. */
static int perform(program *p, int kind, int mode)
{
    MPI_Request req = MPI_REQUEST_NULL;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Info info = MPI_INFO_NULL;
    int code, n = p->count;
    fill(p, kind);
    if (mode == 0 && kind == 0)
        return MPI_Bcast(p->receive, n, MPI_INT64_T, p->root, world);
    if (mode == 0)
        return kind == 1 ? MPI_Allreduce(p->send, p->receive, n, MPI_INT64_T, MPI_SUM, world)
                         : MPI_Allgather(p->send, n, MPI_INT64_T, p->receive, n, MPI_INT64_T, world);
    if (mode == 1)
        code = kind == 0   ? MPI_Ibcast(p->receive, n, MPI_INT64_T, p->root, world, &req)
               : kind == 1 ? MPI_Iallreduce(p->send, p->receive, n, MPI_INT64_T, MPI_SUM, world, &req)
                           : MPI_Iallgather(p->send, n, MPI_INT64_T, p->receive, n, MPI_INT64_T, world, &req);
    else
        code = kind == 0   ? MPI_Bcast_init(p->receive, n, MPI_INT64_T, p->root, world, info, &req)
               : kind == 1 ? MPI_Allreduce_init(p->send, p->receive, n, MPI_INT64_T, MPI_SUM, world, info, &req)
                           : MPI_Allgather_init(p->send, n, MPI_INT64_T, p->receive, n, MPI_INT64_T, world, info, &req);
    if (!code && mode == 2)
        code = MPI_Start(&req);
    if (!code)
        code = MPI_Wait(&req, MPI_STATUS_IGNORE);
    if (mode == 2 && req != MPI_REQUEST_NULL && MPI_Request_free(&req))
        return MPI_ERR_INTERN;
    return code;
}

static void draw(program *p, int *kind, int *mode)
{
    uint64_t *shared = &p->self.shared;
    *kind = (int)app_draw(shared, 3);
    *mode = (int)app_draw(shared, 3);
    p->count = 1 + (int)app_draw(shared, app_draw(shared, 3) ? 20 : MAX - 1);
    p->root = (int)app_draw(shared, (uint64_t)p->self.size);
    p->salt = rig_random(shared) >> 24;
}

/* Each failed call runs the error handler once, with the class of data corruption. */
static void hurt_call(program *p)
{
    damage *damage = p->damage;
    int kind, mode, code, class = MPI_SUCCESS, before = handled[p->self.rank];
    draw(p, &kind, &mode);
    code = perform(p, kind, mode);
    bool is_wrong = !is_right(p, kind);
    MPI_Error_class(code, &class);
    damage->calls++;
    damage->reported += code != MPI_SUCCESS;
    damage->wrong += is_wrong;
    damage->silent += is_wrong && !code;
    damage->untrue += class != (code ? MPI_ERR_OTHER : MPI_SUCCESS) || handled[p->self.rank] != before + (code != MPI_SUCCESS);
}

static int sound_call(program *p, app_self *self)
{
    int kind, mode;
    draw(p, &kind, &mode);
    APP_TRY(perform(p, kind, mode));
    return is_right(p, kind) ? 0 : app_fail(self, "kind %d, mode %d is wrong after the damage", kind, mode);
}

/* No bit is flipped in the first call, in which the members agree on a node area. */
static int begin(program *p, void *arg)
{
    app_self *self = &p->self;
    MPI_Errhandler handler;
    *p = (program){.damage = arg};
    p->app = (app){.seed = p->damage->seed};
    weft_sim_sound(true);
    if (!app_begin(self, &p->app))
        return 1;
    p->send = malloc(MAX * sizeof *p->send);
    p->receive = malloc((size_t)self->size * MAX * sizeof *p->receive);
    APP_TRY(MPI_Comm_create_errhandler(count_error, &handler));
    APP_TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    APP_TRY(MPI_Errhandler_free(&handler));
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    return meet(p, false);
}

int damage_calls(int rank, void *arg)
{
    program p;
    app_self *self = &p.self;
    MPI_Comm twin;
    (void)rank;
    if (begin(&p, arg))
        return 1;
    for (int round = 0; round < ROUNDS; round++)
        hurt_call(&p);
    if (meet(&p, true))
        return 1;
    for (int round = 0; round < ROUNDS / 2; round++)
        if (sound_call(&p, self))
            return 1;
    APP_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    APP_TRY(MPI_Barrier(twin));
    APP_TRY(MPI_Comm_free(&twin));
    free(p.send);
    free(p.receive);
    APP_TRY(MPI_Finalize());
    return 0;
}

/* The members' messages in communicator creation decide their next steps: if corrupted, the job ends. */
int damage_making(int rank, void *arg)
{
    program p;
    app_self *self = &p.self;
    (void)rank;
    if (begin(&p, arg))
        return 1;
    for (int round = 0; round < 6; round++) {
        MPI_Comm twin = MPI_COMM_NULL, part = MPI_COMM_NULL;
        int value = 1;
        APP_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
        APP_TRY(MPI_Comm_split(MPI_COMM_WORLD, self->rank % 2, -self->rank, &part));
        MPI_Bcast(&value, 1, MPI_INT, 0, part); /* the first call agrees on a node area too */
        APP_TRY(MPI_Comm_free(&part));
        APP_TRY(MPI_Comm_free(&twin));
    }
    if (meet(&p, true))
        return 1;
    free(p.send);
    free(p.receive);
    APP_TRY(MPI_Finalize());
    return 0;
}

/* A collective that cannot be performed on this rank: the other members keep waiting, which is reported once. */
int damage_stopping(int rank, void *arg)
{
    program p;
    app_self *self = &p.self;
    MPI_Comm twin;
    MPI_Request req;
    MPI_Count max = (MPI_Count)1 << 58; /* larger than the address space */
    int class;
    (void)rank;
    if (begin(&p, arg))
        return 1;
    APP_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    APP_TRY(MPI_Barrier(twin));
    if (self->rank == 0) {
        APP_TRY(MPI_Error_class(MPI_Allreduce_c(p.send, p.receive, max, MPI_INT64_T, MPI_SUM, twin), &class));
        p.damage->reported += class == MPI_ERR_NO_MEM;
        APP_TRY(MPI_Error_class(MPI_Iallreduce_c(p.send, p.receive, max, MPI_INT64_T, MPI_SUM, twin, &req), &class));
        p.damage->reported += class == MPI_ERR_NO_MEM;
    }
    free(p.send);
    free(p.receive);
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD)); /* the failed call has not stopped this communicator */
    APP_TRY(MPI_Finalize());
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps: MPI programs with point-to-point messages: a ring, wildcards and synchronous sends, nonblocking calls. See apps.h.
 */
#include "test/sim/apps.h"

#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/rig.h"

#define STORM 40 /* messages in a round */

bool app_begin(app_self *self, void *arg)
{
    app *what = arg;
    *self = (app_self){.rank = -1, .what = what, .shared = what->seed};
    if (MPI_Init(NULL, NULL) || MPI_Comm_rank(MPI_COMM_WORLD, &self->rank) || MPI_Comm_size(MPI_COMM_WORLD, &self->size)) {
        app_fail(self, "no start");
        return false;
    }
    self->own = what->seed * 1000003 + (uint64_t)self->rank;
    return true;
}

int app_fail(const app_self *self, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "    rank %d of %d: %s\n", self->rank, self->size, text);
    return 1;
}

uint64_t app_draw(uint64_t *state, uint64_t below) { return rig_random(state) % below; }

uint64_t app_draw_bytes(uint64_t *state)
{
    static const uint64_t below[] = {1, 9, 9, 200, 200, 5000, 40000, 9000};
    return app_draw(state, below[app_draw(state, 8)]);
}

/* MPI's queries before, between and after MPI_Init and MPI_Finalize, at another time on each rank. */
int app_stages(int rank, void *arg)
{
    app_self about = {.rank = rank}, *self = &about;
    uint64_t seed = ((const app *)arg)->seed + (uint64_t)rank;
    int is_initialized = 1, is_finalized = 1, provided = -1, level = -1;

    for (uint64_t naps = app_draw(&seed, 20); naps; naps--)
        weft_sim_yield();
    APP_TRY(MPI_Initialized(&is_initialized));
    APP_TRY(MPI_Finalized(&is_finalized));
    if (is_initialized || is_finalized)
        return app_fail(self, "initialized %d, finalized %d before MPI_Init", is_initialized, is_finalized);
    APP_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided));
    APP_TRY(MPI_Query_thread(&level));
    if (provided != MPI_THREAD_SERIALIZED || level != provided)
        return app_fail(self, "thread levels %d, %d", provided, level);
    if (app_draw(&seed, 2))
        APP_TRY(MPI_Barrier(MPI_COMM_SELF));
    APP_TRY(MPI_Initialized(&is_initialized));
    APP_TRY(MPI_Finalized(&is_finalized));
    if (!is_initialized || is_finalized)
        return app_fail(self, "initialized %d, finalized %d after MPI_Init", is_initialized, is_finalized);
    APP_TRY(MPI_Finalize());
    APP_TRY(MPI_Initialized(&is_initialized));
    APP_TRY(MPI_Finalized(&is_finalized));
    if (!is_initialized || !is_finalized)
        return app_fail(self, "initialized %d, finalized %d after MPI_Finalize", is_initialized, is_finalized);
    return 0;
}

/* A column travels around the ring. Each rank verifies all of it and writes its element. Received strided, sent packed. */
static int ring_lap(const app_self *self, uint8_t *column, int count, uint64_t name)
{
    int next = (self->rank + 1) % self->size, before = (self->rank + self->size - 1) % self->size, got = -1;
    uint8_t *grid = malloc(3 * (size_t)count + 1);
    MPI_Datatype strided;
    MPI_Status status;

    memset(grid, 0x77, 3 * (size_t)count + 1);
    APP_TRY(MPI_Type_vector(count, 1, 3, MPI_BYTE, &strided));
    APP_TRY(MPI_Type_commit(&strided));
    if (self->rank == 0) {
        rig_fill(column, name, (uint64_t)count);
        APP_TRY(MPI_Sendrecv(column, count, MPI_BYTE, next, 3, grid, 1, strided, before, 3, MPI_COMM_WORLD, &status));
    } else {
        APP_TRY(MPI_Recv(grid, 1, strided, before, 3, MPI_COMM_WORLD, &status));
        APP_TRY(MPI_Send(grid, 1, strided, next, 3, MPI_COMM_WORLD));
    }
    APP_TRY(MPI_Get_count(&status, MPI_BYTE, &got));
    for (int i = 0; i < count; i++)
        column[i] = grid[3 * i];
    for (int i = 0; i < 3 * count + 1; i++)
        if ((i % 3 || i == 3 * count) && grid[i] != 0x77)
            return app_fail(self, "ring: byte %d lies in a gap of the type, and was written", i);
    if (got != count || status.MPI_SOURCE != before || status.MPI_TAG != 3)
        return app_fail(self, "ring: %d bytes of %d, from %d, tag %d", got, count, status.MPI_SOURCE, status.MPI_TAG);
    if (rig_wrong(column, name, (uint64_t)count) != (uint64_t)count)
        return app_fail(self, "ring: byte %d of %d is wrong", (int)rig_wrong(column, name, (uint64_t)count), count);
    APP_TRY(MPI_Type_free(&strided));
    free(grid);
    return 0;
}

int app_ring(int rank, void *arg)
{
    app_self about, *self = &about;
    uint8_t *column = malloc(40001);
    int rc = 0;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t lap = 0; lap < self->what->rounds && !rc; lap++)
        rc = ring_lap(self, column, (int)app_draw_bytes(&self->shared), self->what->seed * 1000 + lap);
    free(column);
    if (rc)
        return rc;
    APP_TRY(MPI_Finalize());
    return 0;
}

static uint64_t wild_name(uint64_t round, int from, int tag, uint32_t nth)
{
    return round + (uint64_t)from * 64 + (uint64_t)tag * 8 + nth;
}

/* Receives from any source: the message must be its sender's next one with that tag, with correct contents. */
static int wild_take(const app_self *self, uint64_t name, uint32_t *seen, bool is_probed)
{
    MPI_Status status, probed = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};
    int capacity = 40000, count;
    uint8_t *buf = malloc(40000);

    if (is_probed) {
        APP_TRY(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &probed));
        APP_TRY(MPI_Get_count(&probed, MPI_BYTE, &capacity));
    }
    APP_TRY(MPI_Recv(buf, capacity, MPI_BYTE, probed.MPI_SOURCE, probed.MPI_TAG, MPI_COMM_WORLD, &status));
    APP_TRY(MPI_Get_count(&status, MPI_BYTE, &count));
    if (is_probed && (count != capacity || status.MPI_SOURCE != probed.MPI_SOURCE || status.MPI_TAG != probed.MPI_TAG))
        return app_fail(self, "wild: the probe reported another message");
    uint32_t *nth = &seen[2 * status.MPI_SOURCE + status.MPI_TAG];
    uint64_t this = wild_name(name, status.MPI_SOURCE, status.MPI_TAG, (*nth)++), state = this, bytes = app_draw_bytes(&state);
    if ((uint64_t)count != bytes || rig_wrong(buf, this, bytes) != bytes)
        return app_fail(self, "wild: a message of %d bytes from %d, tag %d is not the next of those, or wrong", count,
                        status.MPI_SOURCE, status.MPI_TAG);
    free(buf);
    return 0;
}

/* All ranks send three synchronous messages of each of two tags to `sink`, which receives with wildcards. */
static int wild_round(const app_self *self, int sink, uint64_t name)
{
    if (self->rank == sink) {
        uint32_t *seen = calloc(2 * (size_t)self->size, sizeof *seen);
        uint64_t own = self->own + name;
        for (int i = 0; i < 6 * (self->size - 1); i++)
            if (wild_take(self, name, seen, app_draw(&own, 2)))
                return 1;
        free(seen);
        return 0;
    }
    for (uint32_t nth = 0; nth < 3; nth++)
        for (int tag = 0; tag < 2; tag++) {
            uint64_t this = wild_name(name, self->rank, tag, nth), state = this, bytes = app_draw_bytes(&state);
            uint8_t *buf = malloc(bytes + 1);
            rig_fill(buf, this, bytes);
            APP_TRY(MPI_Ssend(buf, (int)bytes, MPI_BYTE, sink, tag, MPI_COMM_WORLD));
            free(buf);
        }
    return 0;
}

int app_wild(int rank, void *arg)
{
    app_self about, *self = &about;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t round = 0; round < self->what->rounds; round++) {
        int sink = (int)app_draw(&self->shared, (uint64_t)self->size);
        if (wild_round(self, sink, (self->what->seed * 100 + round) << 20))
            return 1;
        APP_TRY(MPI_Barrier(MPI_COMM_WORLD)); /* the wildcards of the next sink must not match these messages */
    }
    APP_TRY(MPI_Finalize());
    return 0;
}

typedef struct flight {
    int from, to, tag;
    uint64_t bytes, name;
    uint8_t *send, *receive;
} flight;

/* Completes requests by one of the four families of calls. Statuses are in the order of requests. */
static int storm_end(app_self *self, MPI_Request *reqs, MPI_Status *statuses, int n)
{
    int left = n, index, flag = 0, done, indices[2 * STORM];
    MPI_Status some[2 * STORM];

    switch (app_draw(&self->own, 4)) {
    case 0:
        APP_TRY(MPI_Waitall(n, reqs, statuses));
        return 0;
    case 1:
        for (; left; left--) {
            MPI_Status status;
            APP_TRY(MPI_Waitany(n, reqs, &index, &status));
            if (index < 0 || index >= n)
                return app_fail(self, "storm: MPI_Waitany returned index %d of %d", index, n);
            statuses[index] = status;
        }
        return 0;
    case 2:
        while (!flag)
            APP_TRY(MPI_Testall(n, reqs, &flag, statuses));
        return 0;
    default:
        for (; left > 0; left -= done) {
            APP_TRY(MPI_Testsome(n, reqs, &done, indices, some));
            for (int i = 0; i < done; i++)
                statuses[indices[i]] = some[i];
        }
        return 0;
    }
}

static int storm_start(app_self *self, flight *flights, MPI_Request *reqs, int *of, int *n)
{
    for (int k = 0; k < 2 * STORM; k++) {
        /* half of the ranks post their receives after the sends */
        bool is_receive = (k < STORM) == (self->rank % 2 == 0);
        flight *one = &flights[k % STORM];
        if (is_receive && one->to == self->rank) {
            one->receive = malloc(one->bytes + 1);
            memset(one->receive, 0x77, one->bytes + 1);
            of[*n] = k % STORM;
            APP_TRY(MPI_Irecv(one->receive, (int)one->bytes, MPI_BYTE, one->from, one->tag, MPI_COMM_WORLD, &reqs[(*n)++]));
        } else if (!is_receive && one->from == self->rank) {
            one->send = malloc(one->bytes + 1);
            rig_fill(one->send, one->name, one->bytes);
            of[*n] = -1;
            if (app_draw(&self->own, 5))
                APP_TRY(MPI_Isend(one->send, (int)one->bytes, MPI_BYTE, one->to, one->tag, MPI_COMM_WORLD, &reqs[(*n)++]));
            else
                APP_TRY(MPI_Issend(one->send, (int)one->bytes, MPI_BYTE, one->to, one->tag, MPI_COMM_WORLD, &reqs[(*n)++]));
        }
    }
    return 0;
}

static int storm_check(app_self *self, const flight *one, const MPI_Status *status)
{
    int count;
    APP_TRY(MPI_Get_count(status, MPI_BYTE, &count));
    if (status->MPI_SOURCE != one->from || status->MPI_TAG != one->tag || (uint64_t)count != one->bytes)
        return app_fail(self, "storm: %d bytes from %d, tag %d, where %d from %d, tag %d should be", count, status->MPI_SOURCE,
                        status->MPI_TAG, (int)one->bytes, one->from, one->tag);
    if (rig_wrong(one->receive, one->name, one->bytes) != one->bytes || one->receive[one->bytes] != 0x77)
        return app_fail(self, "storm: the bytes of a message from %d, tag %d are wrong", one->from, one->tag);
    return 0;
}

static int storm_round(app_self *self, uint64_t name)
{
    flight flights[STORM];
    MPI_Request reqs[2 * STORM];
    MPI_Status statuses[2 * STORM];
    int of[2 * STORM], n = 0;

    /* few tags: among a pair's messages with one tag the k-th send matches the k-th receive (MPI 5.0, 3.5) */
    for (int i = 0; i < STORM; i++)
        flights[i] = (flight){.from = (int)app_draw(&self->shared, (uint64_t)self->size),
                              .to = (int)app_draw(&self->shared, (uint64_t)self->size), .tag = (int)app_draw(&self->shared, 4),
                              .bytes = app_draw_bytes(&self->shared), .name = name + (uint64_t)i};
    if (storm_start(self, flights, reqs, of, &n) || storm_end(self, reqs, statuses, n))
        return 1;
    for (int i = 0; i < n; i++) {
        if (reqs[i] != MPI_REQUEST_NULL)
            return app_fail(self, "storm: request %d of %d is not null at the end", i, n);
        if (of[i] >= 0 && storm_check(self, &flights[of[i]], &statuses[i]))
            return 1;
    }
    for (int i = 0; i < STORM; i++) {
        free(flights[i].send);
        free(flights[i].receive);
    }
    return 0;
}

int app_storm(int rank, void *arg)
{
    app_self about, *self = &about;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t round = 0; round < self->what->rounds; round++)
        if (storm_round(self, (self->what->seed * 100 + round) << 20))
            return 1;
    APP_TRY(MPI_Finalize());
    return 0;
}

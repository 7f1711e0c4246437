/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm: opens, closes, compares and names communicators (MPI 5.0 7.4, 7.8). comm_create.c creates new ones from old
 * ones, and frees them.
 * Requires the worker's lock, except where finalize closes all. Freed ones keep their memory (base/object.h).
 */
#include "mpi/comm.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/bsend_buffer.h"
#include "mpi/calls.h"
#include "mpi/errhandler.h"

weft_object_pool weft_comm_pool = WEFT_OBJECT_POOL(weft_comm, WEFT_COMM_MAGIC);

weft_comm *weft_comm_new(weft_worker *worker)
{
    weft_mpi_world *mpi = worker->world->mpi;
    weft_comm *comm = weft_object_new(&weft_comm_pool);
    if (!comm) {
        weft_fail(WEFT_E_NOMEM, "no memory for a communicator (%zu bytes)", sizeof *comm);
        return NULL;
    }
    comm->worker = worker;
    comm->traits.kind = WEFT_TRAITS_COMM;
    comm->traits.errhandler = MPI_ERRORS_ARE_FATAL;
    weft_list_append(&mpi->live, &comm->link);
    return comm;
}

void weft_comm_close(weft_comm *comm)
{
    weft_chan *coll = comm->team.chan;
    if (coll) {
        weft_team_close(&comm->team);
        weft_chan_close(coll);
    }
    if (comm->chan)
        weft_chan_close(comm->chan);
    weft_errhandler_drop(comm->traits.errhandler);
    weft_bsend_buffer_close(comm->bsend_buffer);
    free(comm->world_ranks);
    weft_list_remove(&comm->link);
    weft_object_free(&weft_comm_pool, comm);
}

void weft_comm_drop(weft_comm *comm)
{
    if (--comm->traits.object.refs == 0)
        weft_comm_close(comm);
}

/* Opens a communicator with fixed channel ids, which need no exchange. Takes ownership of world_ranks, also on error. */
static int open_fixed(weft_worker *worker, uint32_t size, uint32_t rank, uint32_t *world_ranks, int first_id, int handle,
                      const char *name, weft_comm **out)
{
    weft_comm *comm = weft_comm_new(worker);
    uint32_t *ids = malloc(size * sizeof *ids);
    weft_chan *coll = NULL;
    int rc = comm && ids ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for %s", name);
    if (!comm) {
        free(world_ranks);
    } else {
        comm->world_ranks = world_ranks;
        comm->size = (int32_t)size;
        comm->rank = (int32_t)rank;
        comm->handle = handle;
        snprintf(comm->traits.name, sizeof comm->traits.name, "%s", name);
    }
    if (!rc)
        rc = weft_chan_open(worker, size, rank, world_ranks, first_id, &comm->chan);
    if (!rc)
        rc = weft_chan_open(worker, size, rank, world_ranks, first_id + 1, &coll);
    for (int half = 0; half < 2 && !rc; half++) {
        weft_chan *chan = half ? coll : comm->chan;
        chan->user = comm;
        for (uint32_t i = 0; i < size; i++)
            ids[i] = chan->id;
        rc = weft_chan_connect(chan, ids);
    }
    if (!rc)
        rc = weft_team_open(coll, size > 1, &comm->team);
    free(ids);
    if (rc && coll)
        weft_chan_close(coll);
    if (rc && comm) {
        comm->team.chan = NULL;
        weft_comm_close(comm);
    }
    *out = rc ? NULL : comm;
    return rc;
}

int weft_comm_open_predefined(weft_world *world, weft_mpi_world *mpi)
{
    weft_worker *worker = world->workers[0];
    uint32_t *alone = malloc(sizeof *alone);
    int rc = open_fixed(worker, world->boot->size, world->boot->rank, NULL, 0, 0x101, "MPI_COMM_WORLD", &mpi->comm_world);
    if (rc || !alone) {
        free(alone);
        return rc ? rc : weft_fail(WEFT_E_NOMEM, "no memory for MPI_COMM_SELF");
    }
    *alone = world->boot->rank;
    return open_fixed(worker, 1, 0, alone, 2, 0x102, "MPI_COMM_SELF", &mpi->comm_self);
}

void weft_comm_close_all(weft_mpi_world *mpi)
{
    /* youngest first, so that MPI_COMM_WORLD's areas are closed last */
    while (!weft_list_is_empty(&mpi->live))
        weft_comm_close(weft_container(mpi->live.prev, weft_comm, link));
}

int weft_mpi_comm_rank(weft_comm *comm, int *rank)
{
    *rank = comm->rank;
    return 0;
}

int weft_mpi_comm_size(weft_comm *comm, int *size)
{
    *size = comm->size;
    return 0;
}

int weft_mpi_comm_remote_size(weft_comm *comm, int *size)
{
    (void)size;
    return weft_fail(WEFT_E_COMM, "%s is an intracommunicator: it has no remote group",
                     comm->traits.name[0] ? comm->traits.name : "this communicator");
}

int weft_mpi_comm_test_inter(weft_comm *comm, int *flag)
{
    *flag = comm->is_inter;
    return 0;
}

static uint32_t world_rank(const weft_comm *comm, int rank)
{
    return comm->world_ranks ? comm->world_ranks[rank] : (uint32_t)rank;
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Do both have the same members in some order? Sorts copies: n log n. */
static int same_members(const weft_comm *a, const weft_comm *b, bool *same)
{
    size_t n = (size_t)a->size;
    uint32_t *members = malloc(2 * n * sizeof *members);
    if (!members)
        return weft_fail(WEFT_E_NOMEM, "no memory to compare %zu members", n);
    for (size_t i = 0; i < n; i++) {
        members[i] = world_rank(a, (int)i);
        members[n + i] = world_rank(b, (int)i);
    }
    qsort(members, n, sizeof *members, by_value);
    qsort(members + n, n, sizeof *members, by_value);
    *same = memcmp(members, members + n, n * sizeof *members) == 0;
    free(members);
    return 0;
}

int weft_mpi_comm_compare(weft_comm *comm1, weft_comm *comm2, int *result)
{
    bool same = true;
    int rc;
    if (comm1 == comm2) {
        *result = MPI_IDENT;
        return 0;
    }
    *result = MPI_UNEQUAL;
    if (comm1->size != comm2->size)
        return 0;
    for (int i = 0; i < comm1->size && same; i++)
        same = world_rank(comm1, i) == world_rank(comm2, i);
    if (same) {
        *result = MPI_CONGRUENT;
        return 0;
    }
    rc = same_members(comm1, comm2, &same);
    if (!rc && same)
        *result = MPI_SIMILAR;
    return rc;
}

int weft_mpi_comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
    weft_comm *named = weft_comm_of(comm);
    if (!named && comm != MPI_COMM_NULL)
        return weft_fail(WEFT_E_COMM, "comm is %p: freed or never a communicator", (void *)comm);
    if (named)
        weft_worker_lock(named->worker); /* another thread may rename it */
    *resultlen = snprintf(comm_name, MPI_MAX_OBJECT_NAME, "%s", named ? named->traits.name : "MPI_COMM_NULL");
    if (named)
        weft_worker_unlock(named->worker);
    return 0;
}

/* Windows are not implemented: only MPI_WIN_NULL is valid. */
int weft_mpi_win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
    if (win != MPI_WIN_NULL)
        return weft_fail(WEFT_E_WIN, "win is %p: never a window", (void *)win);
    *resultlen = snprintf(win_name, MPI_MAX_OBJECT_NAME, "MPI_WIN_NULL");
    return 0;
}

/* A name longer than MPI_MAX_OBJECT_NAME - 1 is truncated (MPI 5.0 7.8). */
int weft_mpi_comm_set_name(weft_comm *comm, const char *comm_name)
{
    if (!comm_name)
        return weft_fail(WEFT_E_ARG, "comm_name is NULL");
    snprintf(comm->traits.name, sizeof comm->traits.name, "%s", comm_name);
    return 0;
}

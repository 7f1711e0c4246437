/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm: opens, closes, compares and names communicators (MPI 5.0 7.4, 7.8). comm_create.c creates new ones from old
 * ones, and frees them.
 * Requires the worker's lock, except where finalize closes all. Freed ones keep their memory (base/object.h).
 */
#include "mpi/comm.h"

#include <mpi.h>
#include <stdio.h>

#include "base/status.h"
#include "mpi/bsend_buffer.h"
#include "mpi/calls.h"
#include "mpi/errhandler.h"
#include "mpi/topo.h"

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
    if (comm->local)
        weft_comm_close(comm->local);
    weft_errhandler_drop(comm->traits.errhandler);
    weft_topo_drop(comm->topo);
    weft_bsend_buffer_close(comm->bsend_buffer);
    weft_group_drop(comm->group);
    weft_list_remove(&comm->link);
    weft_object_free(&weft_comm_pool, comm);
}

void weft_comm_drop(weft_comm *comm)
{
    if (--comm->traits.object.refs == 0)
        weft_comm_close(comm);
}

/* Opens a communicator with fixed channel ids, which need no exchange. */
static int open_fixed(weft_worker *worker, weft_group *group, uint32_t rank, int first_id, int handle, const char *name, weft_comm **out)
{
    weft_comm *comm = weft_comm_new(worker);
    weft_chan *coll = NULL;
    int rc;
    if (!comm)
        return WEFT_E_NOMEM;
    comm->group = group;
    weft_group_hold(group);
    comm->size = comm->remote_size = (int32_t)group->size;
    comm->rank = (int32_t)rank;
    comm->handle = handle;
    weft_object_set_constant(&comm->traits.object, handle);
    comm->traits.errhandler = weft_errhandler_initial();
    snprintf(comm->traits.name, sizeof comm->traits.name, "%s", name);
    rc = weft_chan_open(worker, group, rank, first_id, &comm->chan);
    if (!rc)
        rc = weft_chan_open(worker, group, rank, first_id + 1, &coll);
    for (int half = 0; half < 2 && !rc; half++) {
        weft_chan *chan = half ? coll : comm->chan;
        chan->user = comm;
        weft_chan_connect_same(chan, chan->id);
    }
    if (!rc)
        rc = weft_team_open(coll, group->size > 1, &comm->team);
    if (rc && coll)
        weft_chan_close(coll);
    if (rc) {
        comm->team.chan = NULL;
        weft_comm_close(comm);
    }
    *out = rc ? NULL : comm;
    return rc;
}

static int open_service(weft_world *world, weft_mpi_world *mpi)
{
    int rc = weft_chan_open(world->workers[0], world->group, world->boot->rank, 4, &mpi->service);
    if (rc)
        return rc;
    mpi->service->is_lasting = mpi->service->is_service = true;
    weft_chan_connect_same(mpi->service, mpi->service->id);
    return 0;
}

int weft_comm_open_predefined(weft_world *world, weft_mpi_world *mpi)
{
    weft_worker *worker = world->workers[0];
    weft_group *self;
    int rc = open_fixed(worker, world->group, world->boot->rank, 0, 0x101, "MPI_COMM_WORLD", &mpi->comm_world);
    if (!rc)
        rc = weft_group_range(world->boot->job, world->boot->rank, 1, 1, &self);
    if (rc)
        return rc;
    rc = open_fixed(worker, self, 0, 2, 0x102, "MPI_COMM_SELF", &mpi->comm_self);
    weft_group_drop(self);
    if (!rc && !mpi->service)
        rc = open_service(world, mpi);
    if (!rc)
        mpi->service->user = mpi->comm_world;
    return rc;
}

void weft_comm_close_service(weft_mpi_world *mpi)
{
    if (mpi->service)
        weft_chan_close(mpi->service);
    mpi->service = NULL;
}

void weft_comm_close_all(weft_mpi_world *mpi)
{
    /* youngest first, so that MPI_COMM_WORLD's areas are closed last */
    while (!weft_list_is_empty(&mpi->live))
        weft_comm_close(weft_container(mpi->live.prev, weft_comm, link));
    mpi->comm_world = mpi->comm_self = NULL;
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
    if (comm->is_inter) {
        *size = comm->remote_size;
        return 0;
    }
    return weft_fail(WEFT_E_COMM, "%s is an intracommunicator: it has no remote group",
                     comm->traits.name[0] ? comm->traits.name : "this communicator");
}

int weft_mpi_comm_test_inter(weft_comm *comm, int *flag)
{
    *flag = comm->is_inter;
    return 0;
}

/* Intercommunicators: by both groups. */
int weft_mpi_comm_compare(weft_comm *comm1, weft_comm *comm2, int *result)
{
    static const int results[] = {[WEFT_GROUP_IDENT] = MPI_CONGRUENT, [WEFT_GROUP_SIMILAR] = MPI_SIMILAR,
                                  [WEFT_GROUP_UNEQUAL] = MPI_UNEQUAL};
    enum weft_group_relation local, remote;
    *result = MPI_IDENT;
    if (comm1 == comm2)
        return 0;
    *result = MPI_UNEQUAL;
    if (comm1->is_inter != comm2->is_inter)
        return 0;
    local = weft_group_compare(comm1->group, comm2->group);
    remote = comm1->is_inter ? weft_group_compare(comm1->chan->group, comm2->chan->group) : local;
    *result = results[local > remote ? local : remote];
    return 0;
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

/* A name longer than MPI_MAX_OBJECT_NAME - 1 is truncated (MPI 5.0 7.8). */
int weft_mpi_comm_set_name(weft_comm *comm, const char *comm_name)
{
    if (!comm_name)
        return weft_fail(WEFT_E_ARG, "comm_name is NULL");
    snprintf(comm->traits.name, sizeof comm->traits.name, "%s", comm_name);
    return 0;
}

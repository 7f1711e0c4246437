/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_create: creates communicators: create, create_group, split (MPI 5.0 7.4.2), and frees them. Called by the
 * generated entries; creation is collective (comm_make.c).
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/callout.h"
#include "mpi/attribute_of.h"
#include "mpi/bsend_buffer.h"
#include "mpi/calls.h"
#include "mpi/comm.h"
#include "mpi/comm_make.h"
#include "mpi/intercomm.h"
#include "mpi/errhandler.h"
#include "mpi/request.h"

int weft_comm_create(weft_comm *parent, uint32_t size, uint32_t rank, const uint32_t *ranks, int rc, weft_comm **comm)
{
    weft_exchange exchange = weft_exchange_over_comm(parent);
    weft_comm_members members = {.exchange = &exchange, .size = size, .rank = rank, .participants = ranks};
    if (!rc && ranks)
        rc = weft_group_incl(parent->group, size, (const int *)ranks, &members.group);
    else if (!rc)
        weft_group_hold(members.group = parent->group);
    if (!rc && ranks && size)
        members.group->session = parent->group->session;
    rc = weft_comm_make(&members, rc, comm);
    weft_group_drop(members.group);
    return rc;
}

/* Ranks in comm of the group's members; WEFT_E_GROUP if one is no member of comm. *ranks is the caller's, also on an error. */
static int ranks_of(const weft_comm *comm, const weft_group *group, uint32_t **ranks)
{
    *ranks = malloc((group->size + (size_t)1) * sizeof **ranks);
    if (!*ranks)
        return weft_fail(WEFT_E_NOMEM, "no memory for the ranks of %u members", group->size);
    for (uint32_t i = 0; i < group->size; i++) {
        int rank = weft_group_rank_of(comm->group, weft_group_process(group, i));
        if (rank < 0)
            return weft_fail(WEFT_E_GROUP, "rank %u of argument group is no member of argument comm: it must be a subgroup", i);
        (*ranks)[i] = (uint32_t)rank;
    }
    return 0;
}

static int own_rank(const weft_comm *comm, const weft_group *group)
{
    return weft_group_rank_of(group, weft_group_process(comm->group, (uint32_t)comm->rank));
}

/* MPI 5.0 7.4.2. On an intercommunicator `group` is of the local group, and the members of both groups make a new intercommunicator. */
int weft_mpi_comm_create(weft_comm *comm, weft_group *group, MPI_Comm *newcomm, int failed)
{
    uint32_t *ranks = NULL;
    weft_comm *made = NULL;
    int rank = failed ? -1 : own_rank(comm, group), rc = failed ? failed : ranks_of(comm, group, &ranks);
    if (comm->is_inter)
        rc = weft_intercomm_make_of(comm, WEFT_CALL_CREATE, rank < 0 ? MPI_UNDEFINED : 0, rank, rc, &made);
    else
        rc = weft_comm_create(comm, rank < 0 ? 0 : group->size, (uint32_t)rank, ranks, rc, &made);
    free(ranks);
    *newcomm = made ? made : MPI_COMM_NULL;
    return rc;
}

/* Are all members of the group members of comm? */
static int check_subgroup(const weft_comm *comm, const weft_group *group)
{
    for (uint32_t i = 0; i < group->size; i++)
        if (weft_group_rank_of(comm->group, weft_group_process(group, i)) < 0)
            return weft_fail(WEFT_E_GROUP, "rank %u of argument group is no member of argument comm: it must be a subgroup", i);
    return 0;
}

/* Collective over the group only (MPI 5.0 7.4.2): the members exchange messages. */
int weft_mpi_comm_create_group(weft_comm *comm, weft_group *group, int tag, MPI_Comm *newcomm, int failed)
{
    weft_comm *made = NULL;
    weft_exchange exchange;
    weft_comm_members members;
    int rank, rc;
    *newcomm = MPI_COMM_NULL;
    if (failed && (!group || tag < 0)) /* the group or the tag of the messages is not known */
        return failed;
    if (comm->is_inter)
        return weft_fail(WEFT_E_COMM, "MPI_Comm_create_group: argument comm is an intercommunicator");
    rank = own_rank(comm, group);
    rc = check_subgroup(comm, group);
    if (rc || rank < 0)
        return rc ? rc : failed;
    exchange = weft_exchange_by_messages(comm, comm->team.chan, group, (uint32_t)rank, tag);
    members = (weft_comm_members){.exchange = &exchange, .size = group->size, .rank = (uint32_t)rank, .group = group};
    rc = weft_comm_make(&members, failed, &made);
    *newcomm = made ? made : MPI_COMM_NULL;
    return rc;
}

typedef struct split_entry {
    int32_t color, key;
    uint32_t rank;
} split_entry;

static int by_key(const void *a, const void *b)
{
    const split_entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Collects the ranks with this color, ordered by key and then by rank in the parent. Returns their number. */
static uint32_t same_color(const weft_comm *parent, const uint32_t *all, int color, split_entry *entries)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < (uint32_t)parent->size; i++)
        if ((int32_t)all[2 * i] == color)
            entries[size++] = (split_entry){color, (int32_t)all[2 * i + 1], i};
    qsort(entries, size, sizeof *entries, by_key);
    return size;
}

/* rc: error in this member's arguments, or 0. If any member has one, all fail. */
static int split(weft_comm *parent, int color, int key, int rc, weft_comm **part)
{
    size_t n = (size_t)parent->size;
    uint32_t own[2] = {(uint32_t)color, (uint32_t)key}, size = 0, rank = 0;
    uint32_t *all = malloc(2 * n * sizeof *all), *ranks = malloc(n * sizeof *ranks);
    split_entry *entries = malloc(n * sizeof *entries);
    weft_exchange over = weft_exchange_over_comm(parent);
    if (!rc && !(all && ranks && entries))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for colors and keys of %zu ranks", n);
    *part = NULL;
    rc = weft_exchange_agree(&over, rc, NULL, 0);
    if (!rc)
        rc = weft_exchange_gather(&over, own, 2, all);
    if (rc)
        goto out; /* taken by all members, unless the channel itself is broken */
    if (color != MPI_UNDEFINED)
        size = same_color(parent, all, color, entries);
    for (uint32_t i = 0; i < size; i++) {
        ranks[i] = entries[i].rank;
        if (ranks[i] == (uint32_t)parent->rank)
            rank = i;
    }
    rc = weft_comm_create(parent, size, rank, ranks, 0, part);
out:
    free(all);
    free(ranks);
    free(entries);
    return rc;
}

int weft_comm_split(weft_comm *comm, int color, int key, int rc, weft_comm **part)
{
    *part = NULL;
    return comm->is_inter ? weft_intercomm_split(comm, color, key, rc, part) : split(comm, color, key, rc, part);
}

int weft_mpi_comm_split(weft_comm *comm, int color, int key, MPI_Comm *newcomm, int failed)
{
    weft_comm *part;
    int rc = failed;
    if (!rc && color < 0 && color != MPI_UNDEFINED) /* not checked in the entry: the other members would hang */
        rc = weft_fail(WEFT_E_ARG, "MPI_Comm_split: argument color is %d: it must not be negative, or be MPI_UNDEFINED", color);
    if (comm->is_inter)
        rc = weft_intercomm_make_of(comm, WEFT_CALL_SPLIT, color, key, rc, &part);
    else
        rc = weft_comm_split(comm, color, key, rc, &part);
    *newcomm = part ? part : MPI_COMM_NULL;
    return rc;
}

int weft_comm_delete_attributes(weft_comm *comm)
{
    int rc;
    if (!weft_attributes_any(weft_attributes_of_comm(comm)))
        return 0;
    weft_worker_callout_begin(comm->worker);
    rc = weft_attributes_delete_all(weft_attributes_of_comm(comm));
    weft_worker_callout_end(comm->worker);
    return rc;
}

void weft_comm_clear_attributes(weft_comm *comm)
{
    weft_worker_callout_begin(comm->worker);
    weft_attributes_clear(weft_attributes_of_comm(comm));
    weft_worker_callout_end(comm->worker);
}

int weft_mpi_comm_free(MPI_Comm *comm)
{
    weft_comm *gone = weft_comm_of(*comm);
    int rc;
    if (!gone)
        return weft_fail(WEFT_E_COMM, "comm %p is not a live communicator", (void *)*comm);
    if (gone->handle)
        return weft_fail(WEFT_E_COMM, "%s is predefined and cannot be freed", gone->traits.name);
    weft_comm_hold(gone); /* a delete function may free it */
    rc = weft_comm_delete_attributes(gone);
    if (!rc && !weft_object_retire(&gone->traits.object)) /* invalidates the handle; operations in flight continue */
        rc = weft_fail(WEFT_E_COMM, "the communicator was freed meanwhile, by a function of its attributes or another thread");
    weft_comm_drop(gone);
    if (rc)
        return rc;
    *comm = MPI_COMM_NULL;
    if (gone->bsend_buffer)
        weft_bsend_buffer_reap(gone->bsend_buffer); /* messages that were sent hold references; others go on (MPI 5.0 7.4.3) */
    weft_request_reap(gone->worker->world->mpi, false); /* completed detached requests hold references */
    weft_comm_drop(gone);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_create: creates communicators: dup, split, split_type (MPI 5.0 7.4.2), and frees them. Called by the generated entries; creation
 * is collective.
 * Invariant: all members of the parent take the same steps, also if one fails: they agree on the result before each return.
 * A corrupted agreement ends the job (weft_team_trust).
 * A channel's id is sent only after the channel is open, so that no frame arrives before its channel.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/callout.h"
#include "mpi/attribute_of.h"
#include "mpi/calls.h"
#include "mpi/comm.h"
#include "mpi/errhandler.h"
#include "mpi/request.h"

enum { ID_FIRST, ID_LAST = ID_FIRST + 1, NOT_FIRST, NOT_LAST, FINE, AGREED };

/* Allreduce: inout[i] becomes the minimum over all members. */
static int min(weft_comm *parent, uint32_t *inout, uint32_t count)
{
    weft_coll coll = {
        .sendbuf = inout,
        .recvbuf = inout,
        .sendcount = count,
        .recvcount = count,
        .sendtype = weft_type_of(MPI_UINT32_T),
        .recvtype = weft_type_of(MPI_UINT32_T),
        .op = weft_op_of(MPI_MIN),
        .in_place = true,
    };
    return weft_team_trust(&parent->team, weft_coll_run(&parent->team, WEFT_COLL_ALLREDUCE, &coll));
}

/* Allgather: all[i * words ...] becomes member i's mine[words]. */
static int gather_all(weft_comm *parent, const uint32_t *mine, uint32_t words, uint32_t *all)
{
    weft_coll coll = {
        .sendbuf = mine,
        .recvbuf = all,
        .sendcount = words,
        .recvcount = words,
        .sendtype = weft_type_of(MPI_UINT32_T),
        .recvtype = weft_type_of(MPI_UINT32_T),
    };
    return weft_team_trust(&parent->team, weft_coll_run(&parent->team, WEFT_COLL_ALLGATHER, &coll));
}

static int another_failed(void)
{
    return weft_fail(WEFT_E_OTHER, "another member failed to create its part of the communicator; its own error names the cause");
}

/* Opens both channels of a member. */
static int open_channels(weft_comm *comm, weft_chan *chans[2])
{
    int rc = 0;
    for (int half = 0; half < 2 && !rc; half++) {
        rc = weft_chan_open(comm->worker, (uint32_t)comm->size, (uint32_t)comm->rank, comm->world_ranks, -1, &chans[half]);
        if (!rc)
            chans[half]->user = comm;
    }
    return rc;
}

/* Connects both channels. ids[half * size + i]: member i's id of channel `half`. */
static int connect_channels(weft_chan *chans[2], uint32_t size, const uint32_t *ids)
{
    int rc = weft_chan_connect(chans[0], ids);
    return rc ? rc : weft_chan_connect(chans[1], ids + size);
}

/* The members' ids differ: gathers all ids and selects those of the members. Non-members contribute zeros. */
static int exchange_ids(weft_comm *parent, uint32_t size, const uint32_t *ranks, weft_chan *chans[2], uint32_t *all, uint32_t *ids)
{
    uint32_t mine[2] = {chans[0] ? chans[0]->id : 0, chans[1] ? chans[1]->id : 0};
    int rc = gather_all(parent, mine, 2, all);
    for (uint32_t i = 0; i < size && !rc; i++) {
        ids[i] = all[2 * ranks[i]];
        ids[size + i] = all[2 * ranks[i] + 1];
    }
    return rc;
}

/* Exchanges ids that differ and connects. Connecting then allocates memory: all members of the parent agree on the result once more. */
static int connect_exchanged(weft_comm *parent, uint32_t size, const uint32_t *ranks, weft_chan *chans[2], uint32_t *all, uint32_t *ids)
{
    uint32_t fine;
    int rc = exchange_ids(parent, size, ranks, chans, all, ids), agreed;
    if (!rc && size)
        rc = connect_channels(chans, size, ids);
    fine = rc == 0;
    agreed = min(parent, &fine, 1);
    return rc ? rc : agreed ? agreed : fine ? 0 : another_failed();
}

static int connect_all(weft_comm *parent, uint32_t size, const uint32_t *ranks, weft_chan *chans[2], int rc)
{
    uint32_t *all = malloc(2 * (size_t)parent->size * sizeof *all), *ids = malloc(2 * (size_t)(size + 1) * sizeof *ids);
    uint32_t word[AGREED];
    bool is_member = size > 0 && !rc;
    int agreed;
    if (!rc && !(all && ids))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for the channel ids of %d ranks", parent->size);
    word[ID_FIRST] = is_member ? chans[0]->id : UINT32_MAX;
    word[ID_LAST] = is_member ? chans[1]->id : UINT32_MAX;
    word[NOT_FIRST] = is_member ? ~chans[0]->id : UINT32_MAX;
    word[NOT_LAST] = is_member ? ~chans[1]->id : UINT32_MAX;
    word[FINE] = rc == 0;
    agreed = min(parent, word, AGREED);
    if (rc || agreed)
        rc = rc ? rc : agreed;
    else if (!word[FINE])
        rc = another_failed();
    else if (word[ID_FIRST] == ~word[NOT_FIRST] && word[ID_LAST] == ~word[NOT_LAST]) {
        for (uint32_t i = 0; i < size; i++) {
            ids[i] = word[ID_FIRST];
            ids[size + i] = word[ID_LAST];
        }
        rc = size ? connect_channels(chans, size, ids) : 0; /* equal ids need no memory: cannot fail */
    } else if (word[ID_FIRST] != UINT32_MAX || word[NOT_FIRST] != UINT32_MAX) { /* some rank is a member */
        rc = connect_exchanged(parent, size, ranks, chans, all, ids);
    }
    free(all);
    free(ids);
    return rc;
}

/* Local part of a new communicator: struct, world ranks, channels, team. */
static int open_own(weft_comm *parent, uint32_t size, uint32_t rank, const uint32_t *ranks, weft_comm **out, weft_chan *chans[2])
{
    weft_comm *comm = weft_comm_new(parent->worker);
    int rc;
    if (!comm)
        return WEFT_E_NOMEM;
    *out = comm;
    comm->size = (int32_t)size;
    comm->rank = (int32_t)rank;
    comm->traits.errhandler = weft_errhandler_get(&parent->traits);
    comm->world_ranks = malloc(size * sizeof *comm->world_ranks);
    if (!comm->world_ranks)
        return weft_fail(WEFT_E_NOMEM, "no memory for the %u members of a communicator", size);
    for (uint32_t i = 0; i < size; i++)
        comm->world_ranks[i] = parent->world_ranks ? parent->world_ranks[ranks[i]] : ranks[i];
    rc = open_channels(comm, chans);
    return rc ? rc : weft_team_open(chans[1], size > 1, &comm->team);
}

int weft_comm_create(weft_comm *parent, uint32_t size, uint32_t rank, const uint32_t *ranks, int rc, weft_comm **out)
{
    weft_comm *comm = NULL;
    weft_chan *chans[2] = {NULL, NULL};
    if (!rc && size)
        rc = open_own(parent, size, rank, ranks, &comm, chans);
    rc = connect_all(parent, size, ranks, chans, rc);
    if (comm) {
        comm->chan = chans[0];
        comm->team.chan = chans[1];
        if (rc) {
            weft_comm_close(comm);
            comm = NULL;
        } else {
            weft_team_adopt(&parent->team, &comm->team);
        }
    }
    *out = comm;
    return rc;
}

/* Creates the communicator and sets *newcomm; MPI_COMM_NULL for non-members and on error. */
static int create(weft_comm *parent, uint32_t size, uint32_t rank, const uint32_t *ranks, int rc, MPI_Comm *newcomm)
{
    weft_comm *comm = NULL;
    rc = weft_comm_create(parent, size, rank, ranks, rc, &comm);
    *newcomm = comm ? comm : MPI_COMM_NULL;
    return rc;
}

/* Runs the copy functions of comm's attributes; the worker is unlocked meanwhile. */
static int copy_attributes(weft_comm *comm, void **attributes)
{
    int rc;
    if (!comm->traits.attributes)
        return 0;
    weft_worker_callout_begin(comm->worker);
    rc = weft_attributes_copy(weft_attributes_of_comm(comm), attributes);
    weft_worker_callout_end(comm->worker);
    return rc;
}

/* The duplicate was not made: deletes the copies. Their functions get MPI_COMM_NULL. */
static void discard_attributes(weft_worker *worker, void **attributes)
{
    if (!*attributes)
        return;
    weft_worker_callout_begin(worker);
    weft_attributes_delete_all((weft_attributes){WEFT_KEYVAL_COMM, MPI_COMM_NULL, attributes});
    weft_worker_callout_end(worker);
}

/* The attributes are copied before the members agree on the result, so that all fail if a copy function does. */
int weft_mpi_comm_dup(weft_comm *comm, MPI_Comm *newcomm)
{
    uint32_t *ranks = malloc((size_t)comm->size * sizeof *ranks);
    void *attributes = NULL;
    int rc = ranks ? copy_attributes(comm, &attributes)
                   : weft_fail(WEFT_E_NOMEM, "no memory for the %d members of a communicator", comm->size);
    for (int i = 0; i < comm->size && ranks; i++)
        ranks[i] = (uint32_t)i;
    rc = create(comm, (uint32_t)comm->size, (uint32_t)comm->rank, ranks, rc, newcomm);
    if (rc)
        discard_attributes(comm->worker, &attributes);
    else
        (*newcomm)->traits.attributes = attributes;
    free(ranks);
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
static int split(weft_comm *parent, int color, int key, int rc, MPI_Comm *newcomm)
{
    size_t n = (size_t)parent->size;
    uint32_t mine[2] = {(uint32_t)color, (uint32_t)key}, size = 0, rank = 0;
    uint32_t *all = malloc(2 * n * sizeof *all), *ranks = malloc(n * sizeof *ranks);
    split_entry *entries = malloc(n * sizeof *entries);
    uint32_t fine;
    int agreed;
    if (!rc && !(all && ranks && entries))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for colors and keys of %zu ranks", n);
    fine = rc == 0;
    agreed = min(parent, &fine, 1);
    *newcomm = MPI_COMM_NULL;
    if (!rc && (agreed || !fine))
        rc = agreed ? agreed : another_failed();
    if (!rc)
        rc = gather_all(parent, mine, 2, all);
    if (rc)
        goto out; /* taken by all members, unless the channel itself is broken */
    if (color != MPI_UNDEFINED)
        size = same_color(parent, all, color, entries);
    for (uint32_t i = 0; i < size; i++) {
        ranks[i] = entries[i].rank;
        if (ranks[i] == (uint32_t)parent->rank)
            rank = i;
    }
    rc = create(parent, size, rank, ranks, 0, newcomm);
out:
    free(all);
    free(ranks);
    free(entries);
    return rc;
}

int weft_mpi_comm_split(weft_comm *comm, int color, int key, MPI_Comm *newcomm)
{
    int rc = 0;
    if (color < 0 && color != MPI_UNDEFINED) /* not checked in the entry: the other members would hang */
        rc = weft_fail(WEFT_E_ARG, "MPI_Comm_split: argument color is %d: it must not be negative, or be MPI_UNDEFINED", color);
    return split(comm, color, key, rc, newcomm);
}

/* Ranks that can share memory have the same color. Without shared memory each rank is alone. */
static int node_color(const weft_boot *boot)
{
    if (!boot->has_segment)
        return (int)(boot->nodes + boot->rank);
    return boot->node_of ? (int)boot->node_of[boot->rank] : 0;
}

/* MPI_COMM_TYPE_HW_GUIDED, _UNGUIDED and _RESOURCE_GUIDED give MPI_COMM_NULL (MPI 5.0 7.4.2): no level below the node is supported. */
int weft_mpi_comm_split_type(weft_comm *comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm)
{
    (void)info;
    switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
        return split(comm, node_color(comm->worker->world->boot), key, 0, newcomm);
    case MPI_UNDEFINED:
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_HW_UNGUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        return split(comm, MPI_UNDEFINED, key, 0, newcomm);
    default:
        return split(comm, MPI_UNDEFINED, key,
                     weft_fail(WEFT_E_ARG, "split_type %d is none of MPI_COMM_TYPE_... or MPI_UNDEFINED", split_type), newcomm);
    }
}

int weft_comm_delete_attributes(weft_comm *comm)
{
    int rc;
    if (!comm->traits.attributes)
        return 0;
    weft_worker_callout_begin(comm->worker);
    rc = weft_attributes_delete_all(weft_attributes_of_comm(comm));
    weft_worker_callout_end(comm->worker);
    return rc;
}

int weft_mpi_comm_free(MPI_Comm *comm)
{
    weft_comm *gone = weft_comm_of(*comm);
    int rc;
    if (!gone)
        return weft_fail(WEFT_E_COMM, "comm %p is not a live communicator", (void *)*comm);
    if (gone->handle)
        return weft_fail(WEFT_E_COMM, "%s is predefined and cannot be freed", gone->traits.name);
    rc = weft_comm_delete_attributes(gone);
    if (rc)
        return rc;
    weft_object_retire(&gone->traits.object); /* invalidates the handle; operations in flight continue */
    weft_request_reap(gone->worker->world->mpi, false); /* completed detached requests hold references */
    weft_comm_drop(gone);
    *comm = MPI_COMM_NULL;
    return 0;
}

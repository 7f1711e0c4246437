/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_make: makes an intracommunicator over an exchange: local part, ids, agreement on the result. Called by comm_create.c,
 * comm_dup.c, comm_from_group.c and intercomm.c.
 * Invariant: all participants take the same steps, also if one fails: they agree on the result before each return.
 * A corrupted agreement ends the job (weft_team_trust).
 * A channel's id is sent only after the channel is open, so that no frame arrives before its channel.
 */
#include "mpi/comm_make.h"

#include <stdlib.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "mpi/errhandler.h"

enum { ID_FIRST, ID_LAST = ID_FIRST + 1, NOT_FIRST, NOT_LAST, WORDS };

/* Connects both channels. ids[half * size + i]: member i's id of channel `half`. */
static int connect_channels(const weft_comm *comm, const uint32_t *ids)
{
    int rc = weft_chan_connect(comm->chan, ids);
    return rc ? rc : weft_chan_connect(comm->team.chan, ids + comm->size);
}

/* The members' ids differ: gathers all ids and selects those of the members. Others contribute zeros. */
static int exchange_ids(const weft_comm_members *members, const weft_comm *comm, uint32_t *all, uint32_t *ids)
{
    uint32_t own_ids[2] = {comm ? comm->chan->id : 0, comm ? comm->team.chan->id : 0}, size = members->size;
    int rc = weft_exchange_gather(members->exchange, own_ids, 2, all);
    for (uint32_t i = 0; i < size && !rc; i++) {
        uint32_t at = members->participants ? members->participants[i] : i;
        ids[i] = all[2 * at];
        ids[size + i] = all[2 * at + 1];
    }
    return rc;
}

/* Exchanges ids that differ and connects. Connecting then allocates memory: all participants agree on the result once more. */
static int connect_exchanged(const weft_comm_members *members, const weft_comm *comm, uint32_t *all, uint32_t *ids)
{
    int rc = exchange_ids(members, comm, all, ids);
    if (!rc && members->size)
        rc = connect_channels(comm, ids);
    return weft_exchange_agree(members->exchange, rc, NULL, 0);
}

static int connect_all(const weft_comm_members *members, const weft_comm *comm, int rc)
{
    uint32_t size = members->size, participants = members->exchange->size;
    uint32_t *all = malloc(2 * (size_t)participants * sizeof *all), *ids = malloc(2 * (size_t)(size + 1) * sizeof *ids);
    uint32_t word[WORDS];
    bool is_member = size > 0 && !rc;
    if (!rc && !(all && ids))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for the channel ids of %u ranks", participants);
    word[ID_FIRST] = is_member ? comm->chan->id : UINT32_MAX;
    word[ID_LAST] = is_member ? comm->team.chan->id : UINT32_MAX;
    word[NOT_FIRST] = is_member ? ~comm->chan->id : UINT32_MAX;
    word[NOT_LAST] = is_member ? ~comm->team.chan->id : UINT32_MAX;
    rc = weft_exchange_agree(members->exchange, rc, word, WORDS);
    if (!rc && word[ID_FIRST] == ~word[NOT_FIRST] && word[ID_LAST] == ~word[NOT_LAST]) {
        for (uint32_t i = 0; i < size; i++) {
            ids[i] = word[ID_FIRST];
            ids[size + i] = word[ID_LAST];
        }
        rc = size ? connect_channels(comm, ids) : 0; /* equal ids need no memory: cannot fail */
    } else if (!rc && (word[ID_FIRST] != UINT32_MAX || word[NOT_FIRST] != UINT32_MAX)) { /* some rank is a member */
        rc = connect_exchanged(members, comm, all, ids);
    }
    free(all);
    free(ids);
    return rc;
}

int weft_comm_open(weft_comm *from, weft_group *group, uint32_t rank, weft_comm **out)
{
    weft_comm *comm = weft_comm_new(from->worker);
    weft_chan *coll = NULL;
    int rc;
    *out = comm;
    if (!comm)
        return WEFT_E_NOMEM;
    comm->size = comm->remote_size = (int32_t)group->size;
    comm->rank = (int32_t)rank;
    comm->traits.errhandler = weft_errhandler_get(&from->traits);
    weft_group_hold(comm->group = group);
    rc = weft_chan_open(comm->worker, group, rank, -1, &comm->chan);
    if (!rc) {
        comm->chan->user = comm;
        rc = weft_chan_open(comm->worker, group, rank, -1, &coll);
    }
    if (rc)
        return rc;
    coll->user = comm;
    return weft_team_open(coll, group->size > 1, &comm->team);
}

int weft_comm_make(const weft_comm_members *members, int rc, weft_comm **out)
{
    weft_comm *comm = NULL, *over = members->exchange->comm;
    if (!rc && members->size)
        rc = weft_comm_open(over, members->group, members->rank, &comm);
    rc = connect_all(members, comm, rc);
    if (comm && rc) {
        weft_comm_close(comm);
        comm = NULL;
    } else if (comm) {
        weft_team *team = over->is_inter ? &over->local->team : &over->team; /* whose collectives made it */
        weft_team_connected(&comm->team);
        if (members->exchange->is_collective || over->is_inter)
            weft_team_adopt(team, &comm->team, weft_team_latest(team));
    }
    *out = comm;
    return rc;
}

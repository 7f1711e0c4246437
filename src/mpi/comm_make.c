/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_make: makes an intracommunicator over an exchange: local part, ids, agreement on the result. Called by comm_create.c and intercomm.c.
 * Invariant: all participants take the same steps, also if one fails: they agree on the result before each return.
 * A corrupted agreement ends the job (weft_team_trust).
 * A channel's id is sent only after the channel is open, so that no frame arrives before its channel.
 */
#include "mpi/comm_make.h"

#include <stdlib.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "mpi/errhandler.h"

enum { ID_FIRST, ID_LAST = ID_FIRST + 1, NOT_FIRST, NOT_LAST, FINE, AGREED };

int weft_comm_another_failed(void)
{
    return weft_fail(WEFT_E_OTHER, "another member failed to create its part of the communicator; its own error names the cause");
}

/* Opens both channels of a member. */
static int open_channels(weft_comm *comm, weft_chan *chans[2])
{
    int rc = 0;
    for (int half = 0; half < 2 && !rc; half++) {
        rc = weft_chan_open(comm->worker, comm->group, (uint32_t)comm->rank, -1, &chans[half]);
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

/* The members' ids differ: gathers all ids and selects those of the members. Others contribute zeros. */
static int exchange_ids(const weft_comm_members *members, weft_chan *chans[2], uint32_t *all, uint32_t *ids)
{
    uint32_t mine[2] = {chans[0] ? chans[0]->id : 0, chans[1] ? chans[1]->id : 0}, size = members->size;
    int rc = weft_exchange_gather(members->exchange, mine, 2, all);
    for (uint32_t i = 0; i < size && !rc; i++) {
        uint32_t at = members->participants ? members->participants[i] : i;
        ids[i] = all[2 * at];
        ids[size + i] = all[2 * at + 1];
    }
    return rc;
}

/* Exchanges ids that differ and connects. Connecting then allocates memory: all participants agree on the result once more. */
static int connect_exchanged(const weft_comm_members *members, weft_chan *chans[2], uint32_t *all, uint32_t *ids)
{
    uint32_t fine;
    int rc = exchange_ids(members, chans, all, ids), agreed;
    if (!rc && members->size)
        rc = connect_channels(chans, members->size, ids);
    fine = rc == 0;
    agreed = weft_exchange_min(members->exchange, &fine, 1);
    return rc ? rc : agreed ? agreed : fine ? 0 : weft_comm_another_failed();
}

static int connect_all(const weft_comm_members *members, weft_chan *chans[2], int rc)
{
    uint32_t size = members->size, participants = members->exchange->size;
    uint32_t *all = malloc(2 * (size_t)participants * sizeof *all), *ids = malloc(2 * (size_t)(size + 1) * sizeof *ids);
    uint32_t word[AGREED];
    bool is_member = size > 0 && !rc;
    int agreed;
    if (!rc && !(all && ids))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for the channel ids of %u ranks", participants);
    word[ID_FIRST] = is_member ? chans[0]->id : UINT32_MAX;
    word[ID_LAST] = is_member ? chans[1]->id : UINT32_MAX;
    word[NOT_FIRST] = is_member ? ~chans[0]->id : UINT32_MAX;
    word[NOT_LAST] = is_member ? ~chans[1]->id : UINT32_MAX;
    word[FINE] = rc == 0;
    agreed = weft_exchange_min(members->exchange, word, AGREED);
    if (rc || agreed)
        rc = rc ? rc : agreed;
    else if (!word[FINE])
        rc = weft_comm_another_failed();
    else if (word[ID_FIRST] == ~word[NOT_FIRST] && word[ID_LAST] == ~word[NOT_LAST]) {
        for (uint32_t i = 0; i < size; i++) {
            ids[i] = word[ID_FIRST];
            ids[size + i] = word[ID_LAST];
        }
        rc = size ? connect_channels(chans, size, ids) : 0; /* equal ids need no memory: cannot fail */
    } else if (word[ID_FIRST] != UINT32_MAX || word[NOT_FIRST] != UINT32_MAX) { /* some rank is a member */
        rc = connect_exchanged(members, chans, all, ids);
    }
    free(all);
    free(ids);
    return rc;
}

/* Local part of a new communicator: struct, channels, team. */
static int open_own(const weft_comm_members *members, weft_comm **out, weft_chan *chans[2])
{
    weft_comm *over = members->exchange->comm, *comm = weft_comm_new(over->worker);
    int rc;
    if (!comm)
        return WEFT_E_NOMEM;
    *out = comm;
    comm->size = (int32_t)members->size;
    comm->rank = (int32_t)members->rank;
    comm->traits.errhandler = weft_errhandler_get(&over->traits);
    comm->group = members->group;
    weft_group_hold(comm->group);
    rc = open_channels(comm, chans);
    return rc ? rc : weft_team_open(chans[1], members->size > 1, &comm->team);
}

int weft_comm_make(const weft_comm_members *members, int rc, weft_comm **out)
{
    weft_comm *comm = NULL;
    weft_chan *chans[2] = {NULL, NULL};
    if (!rc && members->size)
        rc = open_own(members, &comm, chans);
    rc = connect_all(members, chans, rc);
    if (comm) {
        comm->chan = chans[0];
        comm->team.chan = chans[1];
        if (rc) {
            weft_comm_close(comm);
            comm = NULL;
        } else if (!members->exchange->comm->is_inter) {
            weft_team_adopt(&members->exchange->comm->team, &comm->team);
        }
    }
    *out = comm;
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * intercomm: makes intercommunicators and merges them (MPI 5.0 7.6.2). See intercomm.h. Called by the generated entries, which hold the
 * worker's lock. Each group agrees by collectives of an intracommunicator, and the groups exchange tables through their leaders.
 * Invariant: all members of both groups take the same steps; an error of one fails all, by agree().
 */
#include "mpi/intercomm.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "mpi/bridge_wait.h"
#include "mpi/calls.h"
#include "mpi/comm_make.h"
#include "mpi/errhandler.h"

/* One process's entry in the tables that the groups exchange. */
typedef struct entry {
    uint32_t color, key; /* as in MPI_Comm_split */
    uint32_t job[2], rank;
} entry;
enum { ENTRY_WORDS = sizeof(entry) / sizeof(uint32_t) };
enum channel { MESSAGES, COLLECTIVES, ID_WORDS }; /* of the intercommunicator: their ids are exchanged */

/* A new intercommunicator in the making. Tables are in the order of the groups over which it is made. */
typedef struct making {
    weft_bridge bridge;         /* between those groups */
    weft_comm *over;            /* its worker and error handler become the new one's */
    uint32_t sizes[2];          /* of the local and the remote group */
    entry *tables[2];           /* [sizes[i]] owned */
    uint32_t *ids[2];           /* [sizes[i] * ID_WORDS] owned */
    uint32_t *members[2];       /* members of the new groups, as indices of the tables; owned */
    uint32_t counts[2];         /* their numbers; 0: this process becomes no member */
    uint32_t rank;              /* in the new local group; valid if counts[0] is not 0 */
    weft_comm *local, *made;    /* the new local group's intracommunicator; the intercommunicator, which then owns it; NULL: none */
    weft_group *remote;         /* the new remote group; NULL: none */
} making;

/* Is everything fine in both groups? 0, or an error. */
static int agree(const making *self, int rc) { return weft_bridge_agree(&self->bridge, rc, NULL, NULL, 0); }

static int allocate(making *self)
{
    bool is_complete = true;
    for (int side = 0; side < 2; side++) {
        size_t n = self->sizes[side] + (size_t)1;
        self->tables[side] = malloc(n * sizeof *self->tables[side]);
        self->ids[side] = malloc(n * ID_WORDS * sizeof *self->ids[side]);
        self->members[side] = malloc(n * sizeof *self->members[side]);
        is_complete &= self->tables[side] && self->ids[side] && self->members[side];
    }
    return is_complete ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for the tables of an intercommunicator of %u and %u members",
                                       self->sizes[0], self->sizes[1]);
}

static void release(making *self)
{
    for (int side = 0; side < 2; side++) {
        free(self->tables[side]);
        free(self->ids[side]);
        free(self->members[side]);
    }
    weft_group_drop(self->remote);
}

/* Each group's table goes to all members of both groups: `part` is this process's part of `words` words. */
static int exchange_tables(making *self, const uint32_t *part, uint32_t words, uint32_t *local, uint32_t *remote)
{
    weft_exchange over = weft_exchange_over_comm(self->bridge.local);
    int rc = weft_exchange_gather(&over, part, words, local);
    /* in any case: the other leader waits */
    int swapped = weft_bridge_swap(&self->bridge, local, self->sizes[0] * words, remote, self->sizes[1] * words);
    return rc ? rc : swapped;
}

/* The sizes, and memory for the tables. rc: an earlier error of this member. */
static int prepare(making *self, int rc)
{
    self->sizes[0] = (uint32_t)self->bridge.local->size;
    rc = weft_bridge_agree(&self->bridge, rc, &self->sizes[0], &self->sizes[1], 1);
    return rc ? rc : agree(self, allocate(self));
}

static int by_key(const void *a, const void *b, void *table)
{
    const entry *entries = table;
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int32_t x = (int32_t)entries[i].key, y = (int32_t)entries[j].key;
    return x != y ? (x < y ? -1 : 1) : i < j ? -1 : i > j;
}

/* The members with this color on one side, in the new order. */
static void select_members(making *self, int side, int color)
{
    self->counts[side] = 0;
    for (uint32_t i = 0; i < self->sizes[side] && color != MPI_UNDEFINED; i++)
        if ((int)self->tables[side][i].color == color)
            self->members[side][self->counts[side]++] = i;
    qsort_r(self->members[side], self->counts[side], sizeof *self->members[side], by_key, self->tables[side]);
}

static int make_remote_group(making *self)
{
    weft_process *processes = malloc((self->counts[1] + (size_t)1) * sizeof *processes);
    int rc = processes ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for the %u members of the remote group", self->counts[1]);
    for (uint32_t i = 0; i < self->counts[1] && !rc; i++) {
        const entry *from = &self->tables[1][self->members[1][i]];
        processes[i] = (weft_process){(uint64_t)from->job[1] << 32 | from->job[0], from->rank};
    }
    if (!rc)
        rc = weft_group_processes(processes, self->counts[1], &self->remote);
    if (!rc)
        self->remote->session = self->bridge.local->group->session;
    free(processes);
    return rc;
}

/* Are the groups disjoint? */
static int check_overlap(const making *self)
{
    weft_group *both;
    int rc = weft_group_intersection(self->local->group, self->remote, &both);
    if (!rc && both->size)
        rc = weft_fail(WEFT_E_COMM, "the local and the remote group have %u processes in common: they must be disjoint", both->size);
    if (both)
        weft_group_drop(both);
    return rc;
}

/* Order of two groups, the same in both: is the remote one first? By their first processes. */
static bool is_lower(const weft_group *remote, const weft_group *local)
{
    weft_process remote_first = weft_group_process(remote, 0), local_first = weft_group_process(local, 0);
    return remote_first.job != local_first.job ? remote_first.job < local_first.job : remote_first.rank < local_first.rank;
}

/* Opens the team of the members of both groups. */
static int open_team(weft_comm *comm)
{
    bool is_second = is_lower(comm->chan->group, comm->group);
    weft_members local = {is_second ? comm->chan->size : 0, (uint32_t)comm->size};
    weft_chan *coll = NULL;
    weft_group *both = NULL;
    int rc = weft_group_union(is_second ? comm->chan->group : comm->group, is_second ? comm->group : comm->chan->group, &both);
    if (!rc)
        both->session = comm->group->session;
    if (!rc)
        rc = weft_chan_open(comm->worker, both, local.first + (uint32_t)comm->rank, -1, &coll);
    weft_group_drop(both);
    if (rc)
        return rc;
    coll->user = comm;
    return weft_team_open_inter(coll, local, &comm->team);
}

/* Opens the channels of the new intercommunicator, which takes the local intracommunicator over. */
static int open_channels(making *self)
{
    weft_comm *comm = weft_comm_new(self->over->worker);
    int rc;
    if (!comm)
        return WEFT_E_NOMEM;
    self->made = comm;
    comm->local = self->local;
    self->local = NULL;
    comm->is_inter = true;
    comm->size = comm->local->size;
    comm->remote_size = (int32_t)self->remote->size;
    comm->rank = comm->local->rank;
    comm->traits.errhandler = weft_errhandler_get(&self->over->traits);
    weft_group_hold(comm->group = comm->local->group);
    rc = weft_chan_open(comm->worker, self->remote, (uint32_t)comm->rank, -1, &comm->chan);
    if (rc)
        return rc;
    comm->chan->user = comm;
    return open_team(comm);
}

int weft_intercomm_open(weft_comm *from, weft_comm **out)
{
    making self = {.over = from, .remote = from->chan->group};
    int rc = weft_comm_open(from, from->group, (uint32_t)from->rank, &self.local);
    if (!rc)
        rc = open_channels(&self);
    if (self.local)
        weft_comm_close(self.local);
    *out = self.made;
    return rc;
}

/* The channels' ids at the new members of a group. */
static void select_ids(const making *self, int side, enum channel which, uint32_t *ids)
{
    for (uint32_t i = 0; i < self->counts[side]; i++)
        ids[i] = self->ids[side][self->members[side][i] * ID_WORDS + which];
}

/* Connects the channels by the ids of the members. */
static int connect(const making *self)
{
    const weft_team *team = &self->made->team;
    uint32_t *ids = malloc((team->size + (size_t)1) * sizeof *ids);
    int rc = ids ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for the channel ids of %u ranks", team->size);
    if (!rc) {
        select_ids(self, 1, MESSAGES, ids);
        rc = weft_chan_connect(self->made->chan, ids);
    }
    if (!rc) {
        select_ids(self, 0, COLLECTIVES, ids + team->local.first);
        select_ids(self, 1, COLLECTIVES, ids + team->remote.first);
        rc = weft_chan_connect(team->chan, ids);
    }
    free(ids);
    return rc;
}

/* Tables are exchanged: makes the new local group's intracommunicator, opens the channels, exchanges their ids, connects them. rc: an
 * earlier error of this member. */
static int make_parts(making *self, bool is_member, int rc)
{
    uint32_t own[ID_WORDS] = {0, 0};
    rc = weft_comm_create(self->bridge.local, is_member ? self->counts[0] : 0, self->rank, self->members[0], rc, &self->local);
    if (!rc && is_member)
        rc = make_remote_group(self);
    if (!rc && is_member)
        rc = check_overlap(self);
    if (!rc && is_member)
        rc = open_channels(self);
    rc = agree(self, rc);
    if (rc)
        return rc;
    if (is_member) {
        own[MESSAGES] = self->made->chan->id;
        own[COLLECTIVES] = self->made->team.chan->id;
    }
    rc = exchange_tables(self, own, ID_WORDS, self->ids[0], self->ids[1]);
    if (!rc && is_member)
        rc = connect(self);
    return agree(self, rc);
}

/* The members of the new groups, by the tables. Is this process one? */
static bool find_members(making *self, int color)
{
    select_members(self, 0, color);
    select_members(self, 1, color);
    for (uint32_t i = 0; i < self->counts[0]; i++)
        if (self->members[0][i] == (uint32_t)self->bridge.local->rank)
            self->rank = i;
    return self->counts[0] && self->counts[1];
}

/* Collective over both groups of the bridge. rc: an earlier error of this member. */
static int make(making *self, int color, int key, int rc, weft_comm **out)
{
    const weft_boot *boot = self->over->worker->world->boot;
    entry part = {(uint32_t)color, (uint32_t)key, {(uint32_t)boot->job, (uint32_t)(boot->job >> 32)}, boot->rank};
    rc = prepare(self, rc);
    if (!rc) {
        rc = exchange_tables(self, &part.color, ENTRY_WORDS, &self->tables[0]->color, &self->tables[1]->color);
        rc = make_parts(self, !rc && find_members(self, color), rc);
    }
    if (self->made && !rc) /* later collectives than those that made the local part */
        weft_team_adopt(&self->bridge.local->team, &self->made->local->team, weft_team_latest(&self->bridge.local->team));
    if (rc && self->local)
        weft_comm_close(self->local);
    if (rc && self->made)
        weft_comm_close(self->made);
    *out = rc ? NULL : self->made;
    release(self);
    return rc;
}

int weft_intercomm_split(weft_comm *comm, int color, int key, int rc, weft_comm **out)
{
    making self = {.bridge = weft_bridge_of(comm), .over = comm};
    return make(&self, color, key, rc, out);
}

int weft_intercomm_make_of(weft_comm *comm, enum weft_call_maker maker, int color, int key, int rc, weft_comm **out)
{
    weft_team_begin_making(&comm->team, &comm->local->team, maker);
    rc = weft_intercomm_split(comm, color, key, rc, out);
    weft_team_end_making(&comm->team);
    return rc;
}

int weft_intercomm_make(weft_bridge bridge, int rc, weft_comm **out)
{
    making self = {.bridge = bridge, .over = bridge.local};
    weft_bridge_call_begin(&self.bridge);
    rc = make(&self, 0, bridge.local->rank, rc, out);
    weft_bridge_call_end(&self.bridge);
    return rc;
}

/* The arguments that are significant at the leader only; they name the bridge. */
static int check_leader(weft_comm *peer_comm, MPI_Comm handle, int remote_leader)
{
    if (!peer_comm)
        return weft_fail(WEFT_E_COMM, "MPI_Intercomm_create: argument peer_comm is %p: not a communicator", (void *)handle);
    if (remote_leader < 0 || (uint32_t)remote_leader >= peer_comm->chan->size)
        return weft_fail(WEFT_E_RANK, "MPI_Intercomm_create: argument remote_leader is %d: not a rank of peer_comm (0..%u)", remote_leader,
                         peer_comm->chan->size - 1);
    return 0;
}

int weft_mpi_intercomm_create(weft_comm *local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                              MPI_Comm *newintercomm, int failed)
{
    bool is_leader = local_comm->rank == local_leader;
    weft_comm *peer = is_leader ? weft_comm_of(peer_comm) : NULL, *made = NULL;
    weft_bridge bridge = {.local = local_comm, .leader = (uint32_t)local_leader, .remote_leader = (uint32_t)remote_leader,
                          .tag = weft_exchange_tag(tag, true)};
    int rc = failed;
    *newintercomm = MPI_COMM_NULL;
    if (local_comm->is_inter)
        return weft_fail(WEFT_E_COMM, "MPI_Intercomm_create: argument local_comm is an intercommunicator");
    if (!rc && (local_leader < 0 || local_leader >= local_comm->size))
        rc = weft_fail(WEFT_E_RANK, "MPI_Intercomm_create: argument local_leader is %d: not a rank of local_comm (0..%d)", local_leader,
                       local_comm->size - 1);
    if (is_leader && !rc)
        rc = check_leader(peer, peer_comm, remote_leader);
    if (peer && tag >= 0 && remote_leader >= 0 && (uint32_t)remote_leader < peer->chan->size) {
        bridge.chan = peer->team.chan;
        bridge.remote_leader += peer->team.remote.first;
    } else if (peer && tag >= 0) {
        weft_bridge_fail_unseen(peer->team.chan, bridge.tag);
    }
    rc = weft_intercomm_make(bridge, rc, &made);
    *newintercomm = made ? made : MPI_COMM_NULL;
    return rc;
}

/* Participants are numbered as the members of the merged communicator: this fills its group. */
static int merged_group(weft_comm *comm, bool is_remote_first, weft_group **group)
{
    const weft_group *first = is_remote_first ? comm->chan->group : comm->group;
    const weft_group *second = is_remote_first ? comm->group : comm->chan->group;
    return weft_group_union(first, second, group);
}

static int merge(weft_comm *intercomm, int high, MPI_Comm *newintracomm, int failed)
{
    uint32_t local_high = high != 0, remote_high = 0;
    weft_bridge bridge;
    weft_exchange exchange;
    weft_comm_members members;
    weft_group *group = NULL;
    weft_comm *made = NULL;
    bool is_remote_first;
    int rc;
    bridge = weft_bridge_of(intercomm);
    rc = weft_bridge_agree(&bridge, failed, &local_high, &remote_high, 1); /* high is the same on all members of a group */
    if (rc)
        return rc;
    is_remote_first = local_high != remote_high ? local_high : is_lower(intercomm->chan->group, intercomm->group);
    exchange = weft_exchange_over_intercomm(intercomm, is_remote_first);
    rc = merged_group(intercomm, is_remote_first, &group);
    if (!rc)
        group->session = intercomm->group->session;
    members = (weft_comm_members){.exchange = &exchange, .size = exchange.size, .group = group, .rank = exchange.rank};
    rc = weft_comm_make(&members, rc, &made);
    weft_group_drop(group);
    *newintracomm = made ? made : MPI_COMM_NULL;
    return rc;
}

int weft_mpi_intercomm_merge(weft_comm *intercomm, int high, MPI_Comm *newintracomm, int failed)
{
    int rc;
    *newintracomm = MPI_COMM_NULL;
    if (!intercomm->is_inter)
        return weft_fail(WEFT_E_COMM, "MPI_Intercomm_merge: argument intercomm is an intracommunicator");
    weft_team_begin_making(&intercomm->team, &intercomm->local->team, WEFT_CALL_MERGE);
    rc = merge(intercomm, high, newintracomm, failed);
    weft_team_end_making(&intercomm->team);
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exchange: see exchange.h. By messages: a binomial tree with participant 0 as its root, up and down again.
 * A damaged message ends the job (weft_team_trust), since participants would decide differently and hang; so does a message that cannot be
 * sent or received for lack of memory, after some tries.
 */
#include "mpi/exchange.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/peer.h"
#include "core/wait.h"
#include "core/worker.h"
#include "mpi/bridge_wait.h"
#include "p2p/p2p.h"

typedef struct weft_exchange_ops {
    int (*min)(const weft_exchange *exchange, uint32_t *inout, uint32_t count);
    int (*gather)(const weft_exchange *exchange, const uint32_t *part, uint32_t words, uint32_t *all);
} weft_exchange_ops;

/* Words of an agreement: number of the first participant that failed, NONE if none did; of calls on an intercommunicator the function
 * (enum weft_call_maker), for the minimum and the maximum; then the caller's. */
enum { FAILED, MAKER, NOT_MAKER, AGREED };
#define NONE UINT32_MAX
#define UNKNOWN (UINT32_MAX - 1) /* some participant has failed */
#define LEFT 0x80000000u         /* with a participant's number: it has left the job, and takes no part */
#define KNOCK_NS 1000000000u     /* sleep of a wait for a member before it connects to it */
#define LAST_POLLS 1000
#define AGREEMENT (AGREED + WEFT_EXCHANGE_AGREED)

void weft_exchange_before_retry(weft_worker *worker, int tries)
{
    weft_boot *boot = worker->world->boot;
    char text[700];
    if (tries < 10000) {
        weft_worker_poll(worker);
        sched_yield();
        return;
    }
    snprintf(text, sizeof text,
             "no memory for a message by which processes agree on a new communicator: %s\n"
             "The job ends, since the others would wait for it.", weft_fail_text(WEFT_E_NOMEM));
    boot->ops->abort(boot, 1, text);
}

/* -- over the collectives of an intracommunicator -- */

static int comm_min(weft_comm *comm, uint32_t *inout, uint32_t count)
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
    return weft_team_trust(&comm->team, weft_coll_run(&comm->team, WEFT_COLL_ALLREDUCE, &coll));
}

static int comm_gather(weft_comm *comm, const uint32_t *part, uint32_t words, uint32_t *all)
{
    weft_coll coll = {
        .sendbuf = part,
        .recvbuf = all,
        .sendcount = words,
        .recvcount = words,
        .sendtype = weft_type_of(MPI_UINT32_T),
        .recvtype = weft_type_of(MPI_UINT32_T),
    };
    return weft_team_trust(&comm->team, weft_coll_run(&comm->team, WEFT_COLL_ALLGATHER, &coll));
}

static int coll_min(const weft_exchange *exchange, uint32_t *inout, uint32_t count) { return comm_min(exchange->comm, inout, count); }

static int coll_gather(const weft_exchange *exchange, const uint32_t *part, uint32_t words, uint32_t *all)
{
    return comm_gather(exchange->comm, part, words, all);
}

weft_exchange weft_exchange_over_comm(weft_comm *comm)
{
    static const weft_exchange_ops ops = {coll_min, coll_gather};
    return (weft_exchange){.ops = &ops, .comm = comm, .size = (uint32_t)comm->size, .rank = (uint32_t)comm->rank,
                           .is_collective = true};
}

/* -- by messages among members of an intracommunicator -- */

/* Rank of a participant in the channel. O(1). */
static int chan_rank(const weft_exchange *exchange, uint32_t participant)
{
    return weft_group_rank_of(exchange->chan->group, weft_group_process(exchange->group, (participant + exchange->first) % exchange->size));
}

static int put(const weft_exchange *exchange, uint32_t to, const uint32_t *words, uint32_t count)
{
    for (int tries = 0;; tries++) {
        int rc = weft_send(exchange->chan, chan_rank(exchange, to), exchange->tag, words, count, weft_type_of(MPI_UINT32_T),
                           WEFT_SEND_STANDARD);
        if (rc != WEFT_E_NOMEM)
            return rc;
        weft_exchange_before_retry(exchange->chan->worker, tries);
    }
}

/* -- waits for a message that may not come -- */

typedef struct awaited {
    weft_wait wait;
    weft_req *req;
    bool (*is_missing)(const struct awaited *self); /* will the message not come? Without side effects: a sleeper asks too */
    bool is_lost; /* it will not; one that has matched still comes */
} awaited;

static bool is_awaited_over(weft_wait *wait)
{
    const awaited *self = weft_container(wait, awaited, wait);
    return self->req->is_done || (!self->is_lost && self->is_missing(self));
}

/* A message that was sent before its sender left may not have been polled yet. */
static void poll_last(weft_req *req)
{
    for (int i = 0; i < LAST_POLLS && !req->is_done && weft_worker_poll(req->worker) > 0; i++)
        ;
}

static void await_begin(awaited *self, int rank, int tag)
{
    weft_wait_begin(&self->wait, self->req->worker, WEFT_WAIT_REASON_RECV, rank, tag, 0);
    self->wait.is_over = is_awaited_over;
}

/* A step of the wait: a poll, a sleep, or the receive is cancelled. */
static void await_step(awaited *self, bool is_missing)
{
    if (self->is_lost || !is_missing) {
        weft_wait_progress(&self->wait);
        return;
    }
    poll_last(self->req);
    self->is_lost = true;
    weft_cancel(self->req);
}

/* WEFT_E_PEER: the message was lost; the caller knows the text. */
static int await_end(awaited *self)
{
    weft_wait_end(&self->wait);
    if (self->req->recv_info.cancelled && self->is_lost)
        return WEFT_E_PEER;
    if (self->req->rc)
        weft_req_report_error(self->req);
    return self->req->rc;
}

/* -- by messages among members: receives -- */

typedef struct member_wait {
    awaited base;
    weft_chan *chan;
    uint32_t rank; /* in the channel */
    bool has_knocked;
} member_wait;

static bool has_member_left(const awaited *base)
{
    const member_wait *self = weft_container(base, member_wait, base);
    return weft_chan_has_left(self->chan, self->rank);
}

/* After a second: asks the launcher about a member, and connects to one on another node, as the end of a process may show only there. True:
 * it has ended without an address. */
static bool knock(member_wait *self)
{
    if (!self->base.wait.has_slept || self->base.wait.slept_ns < KNOCK_NS)
        return false;
    weft_chan_ask(self->chan, self->rank);
    if (self->has_knocked)
        return false;
    self->has_knocked = true;
    return !weft_peer_known(self->chan->worker, weft_group_process(self->chan->group, self->rank)) &&
           weft_chan_notify(self->chan, self->rank, "", 0) == WEFT_E_PEER;
}

/* Waits for a message of a member, or until it has left (WEFT_E_PEER). */
static int await_member(const weft_exchange *exchange, int from, weft_req *req)
{
    weft_chan *chan = exchange->chan;
    member_wait self = {.base = {.req = req, .is_missing = has_member_left}, .chan = chan, .rank = (uint32_t)from};
    int rc;
    await_begin(&self.base, weft_chan_job_rank(chan, from), weft_exchange_program_tag(exchange->tag));
    while (!req->is_done)
        await_step(&self.base, has_member_left(&self.base) || knock(&self));
    rc = await_end(&self.base);
    return self.base.is_lost && req->recv_info.cancelled ? weft_fail(rc, "rank %d has left", weft_chan_job_rank(chan, from)) : rc;
}

/* Receives from a channel's rank. *bytes: received. */
static int recv_from(const weft_exchange *exchange, int from, uint32_t *words, uint32_t count, uint64_t *bytes)
{
    weft_chan *chan = exchange->chan;
    weft_peer *peer;
    weft_req *req;
    int rc;
    for (int tries = 0;; tries++) {
        rc = weft_irecv(chan, from, exchange->tag, words, count, weft_type_of(MPI_UINT32_T), &req);
        if (!rc) {
            rc = await_member(exchange, from, req);
            *bytes = req->recv_info.bytes;
            weft_req_free(req);
        }
        if (rc != WEFT_E_NOMEM)
            break;
        weft_exchange_before_retry(chan->worker, tries);
    }
    peer = rc ? NULL : weft_peer_known(chan->worker, weft_group_process(chan->group, (uint32_t)from));
    if (peer)
        peer->is_courtesy = false; /* it takes part, so that its loss would be a failure */
    return rc;
}

static int get(const weft_exchange *exchange, uint32_t from, uint32_t *words, uint32_t count)
{
    uint64_t bytes = 0;
    int rc = recv_from(exchange, chan_rank(exchange, from), words, count, &bytes);
    if (rc == WEFT_E_PEER)
        return rc;
    if (!rc && bytes != (uint64_t)count * sizeof *words)
        rc = weft_fail(WEFT_E_NOT_SAME, "rank %u of the group passed another one to a call that makes a communicator: "
                       "all members must pass the same", from);
    return weft_team_trust(&exchange->comm->team, rc);
}

/* The children of a participant are rank + 1, + 2, + 4 ... below this span; its parent is rank - span. */
static uint32_t span_of(uint32_t rank, uint32_t size)
{
    uint32_t span = rank ? rank & -rank : 1;
    while (!rank && span < size)
        span *= 2;
    return span;
}

/* Participants in the subtree of a child. */
static uint32_t subtree(uint32_t child, uint32_t step, uint32_t size) { return child + step < size ? step : size - child; }

/* Sends the root's words to all. WEFT_E_PEER: the parent has left; the subtree gets LEFT in words[0]. */
static int down(const weft_exchange *exchange, uint32_t *words, uint32_t count)
{
    uint32_t span = span_of(exchange->rank, exchange->size), parent = exchange->rank - span;
    int rc = exchange->rank ? get(exchange, parent, words, count) : 0, put_rc = 0;
    if (rc == WEFT_E_PEER)
        words[0] = LEFT | parent;
    for (uint32_t step = span / 2; step && (!rc || rc == WEFT_E_PEER); step /= 2)
        if (exchange->rank + step < exchange->size && (!put_rc || put_rc == WEFT_E_PEER))
            put_rc = put(exchange, exchange->rank + step, words, count); /* one that has left needs nothing */
    return rc || put_rc == WEFT_E_PEER ? rc : put_rc;
}

/* Of agreements: inout[FAILED] tells of a participant that has left. All others get it, as its neighbours in the tree notice. */
static int messages_min(const weft_exchange *exchange, uint32_t *inout, uint32_t count)
{
    uint32_t span = span_of(exchange->rank, exchange->size), from[WEFT_EXCHANGE_WORDS];
    int rc = 0;
    for (uint32_t step = 1; step < span && !rc; step *= 2) {
        uint32_t child = exchange->rank + step;
        if (child >= exchange->size)
            break;
        rc = get(exchange, child, from, count);
        for (uint32_t i = 0; i < count && !rc; i++)
            inout[i] = from[i] < inout[i] ? from[i] : inout[i];
        if (rc == WEFT_E_PEER) {
            inout[FAILED] = (LEFT | child) < inout[FAILED] ? LEFT | child : inout[FAILED];
            rc = 0;
        }
    }
    if (!rc && exchange->rank)
        rc = put(exchange, exchange->rank - span, inout, count);
    if (!rc || rc == WEFT_E_PEER) /* down finds the parent's end too */
        rc = down(exchange, inout, count);
    return rc == WEFT_E_PEER ? 0 : rc;
}

static int messages_gather(const weft_exchange *exchange, const uint32_t *part, uint32_t words, uint32_t *all)
{
    uint32_t rank = exchange->rank, size = exchange->size, span = span_of(rank, size);
    int rc = 0;
    memcpy(all + (size_t)rank * words, part, words * sizeof *all);
    for (uint32_t step = 1; step < span && rank + step < size && !rc; step *= 2)
        rc = get(exchange, rank + step, all + (size_t)(rank + step) * words, subtree(rank + step, step, size) * words);
    if (!rc && rank)
        rc = put(exchange, rank - span, all + (size_t)rank * words, subtree(rank, span, size) * words);
    return rc ? rc : down(exchange, all, size * words);
}

int weft_exchange_spread(const weft_exchange *exchange, uint32_t *words, uint32_t count)
{
    int rc = down(exchange, words, count);
    return rc == WEFT_E_PEER || (!rc && words[0] >= LEFT) ? weft_exchange_failed(exchange, words[0]) : rc;
}

weft_exchange weft_exchange_by_messages(weft_comm *comm, weft_chan *chan, const weft_group *group, uint32_t rank, int tag)
{
    static const weft_exchange_ops ops = {messages_min, messages_gather};
    return (weft_exchange){.ops = &ops, .comm = comm, .chan = chan, .group = group, .size = group->size, .rank = rank,
                           .tag = weft_exchange_tag(tag, false)};
}

/* -- over an intercommunicator -- */

typedef struct swap_wait {
    awaited base;
    const weft_bridge *bridge;
} swap_wait;

/* Will the other leader's message not come? On an intercommunicator its team has stopped then: that leader has made another call. */
static bool is_swap_missing(const awaited *base)
{
    const weft_bridge *bridge = weft_container(base, swap_wait, base)->bridge;
    return bridge->team ? weft_team_making_is_over(bridge->team) : weft_bridge_wait_is_lost(bridge, base->req);
}

/* Waits for the other leader's message, or until it is lost. */
static int await_swap(const weft_bridge *bridge, weft_req *req)
{
    swap_wait self = {.base = {.req = req, .is_missing = is_swap_missing}, .bridge = bridge};
    int rc;
    await_begin(&self.base, weft_chan_job_rank(bridge->chan, (int)bridge->remote_leader),
                bridge->team ? WEFT_ANY_TAG : weft_exchange_program_tag(bridge->tag));
    while (!req->is_done)
        await_step(&self.base, is_swap_missing(&self.base));
    rc = await_end(&self.base);
    if (!self.base.is_lost || !req->recv_info.cancelled)
        return rc;
    return bridge->team ? weft_team_stop_error(bridge->team) : weft_bridge_wait_error(bridge);
}

static int await_remote(const weft_bridge *bridge, weft_req *req, bool is_refusal)
{
    int rc;
    if (bridge->team)
        bridge->team->awaits_remote = true;
    else
        weft_bridge_wait_begin(bridge, req, is_refusal);
    rc = await_swap(bridge, req);
    if (bridge->team)
        bridge->team->awaits_remote = false;
    else
        weft_bridge_wait_end(bridge);
    return rc;
}

static int leader_swap(const weft_bridge *bridge, const uint32_t *part, uint32_t words, uint32_t *remote_part, uint32_t remote_words,
                       bool is_refusal)
{
    const weft_type *type = weft_type_of(MPI_UINT32_T);
    weft_worker *worker = bridge->chan->worker;
    weft_recv_info found;
    weft_req *req;
    int rc, wait_rc;
    if (bridge->team && weft_team_making_is_over(bridge->team)) /* the other leader learns it too, and waits no longer */
        return weft_team_stop_error(bridge->team);
    for (int tries = 0;; tries++) {
        rc = weft_irecv(bridge->chan, (int)bridge->remote_leader, bridge->tag, remote_part, remote_words, type, &req);
        if (rc != WEFT_E_NOMEM)
            break;
        weft_exchange_before_retry(worker, tries);
    }
    if (rc)
        return rc;
    for (int tries = 0;; tries++) {
        rc = weft_send(bridge->chan, (int)bridge->remote_leader, bridge->tag, part, words, type, WEFT_SEND_STANDARD);
        if (rc != WEFT_E_NOMEM)
            break;
        weft_exchange_before_retry(worker, tries);
    }
    if (rc)
        weft_cancel(req);
    wait_rc = await_remote(bridge, req, is_refusal);
    found = req->recv_info;
    weft_req_free(req);
    if (!rc && !wait_rc && found.bytes != (uint64_t)remote_words * sizeof *remote_part)
        wait_rc = weft_fail(WEFT_E_NOT_SAME, "the leaders of the two groups make different calls: %llu bytes came, not %llu",
                            (unsigned long long)found.bytes, (unsigned long long)remote_words * sizeof *remote_part);
    return rc ? rc : wait_rc;
}

/* All members of the group get the leader's words. */
static int spread(const weft_bridge *bridge, uint32_t *words, uint32_t count)
{
    weft_coll coll = {.recvbuf = words, .recvcount = count, .recvtype = weft_type_of(MPI_UINT32_T), .root = (int)bridge->leader};
    return weft_team_trust(&bridge->local->team, weft_coll_run(&bridge->local->team, WEFT_COLL_BCAST, &coll));
}

/* The leader's collective after a swap failed. The other group has gone on and would wait for this one; no message to it is left. */
static __attribute__((cold)) void end_job(const weft_bridge *bridge, int rc)
{
    weft_boot *boot = bridge->local->worker->world->boot;
    char text[700];
    snprintf(text, sizeof text,
             "one of the two groups that make an intercommunicator failed in a collective: %s\n"
             "The job ends, since the other group would wait for it.", weft_fail_text(rc));
    boot->ops->abort(boot, 1, text);
}

int weft_bridge_swap(const weft_bridge *bridge, const uint32_t *part, uint32_t words, uint32_t *remote_part, uint32_t remote_words)
{
    bool is_leader = (uint32_t)bridge->local->rank == bridge->leader;
    int rc = is_leader ? leader_swap(bridge, part, words, remote_part, remote_words, false) : 0, agreed;
    uint32_t fine = rc == 0;
    agreed = comm_min(bridge->local, &fine, 1);
    if (!agreed && !fine)
        return rc ? rc : weft_fail(WEFT_E_OTHER, "the leader of this group could not exchange with the leader of the other group");
    if (!agreed)
        agreed = spread(bridge, remote_part, remote_words);
    if (agreed && is_leader && !rc && !(bridge->team && weft_team_making_is_over(bridge->team))) /* else that group learns it too */
        end_job(bridge, agreed);
    return rc ? rc : agreed;
}

static int another_failed(uint32_t rank, const char *owner)
{
    if (rank >= LEFT && rank < UNKNOWN)
        return weft_fail(WEFT_E_PEER, "rank %u of %s has left: its process has ended, or has left MPI for good", rank & ~LEFT, owner);
    if (rank == UNKNOWN)
        return weft_fail(WEFT_E_OTHER, "a member of %s failed to make its part of the communicator: its own error names the cause", owner);
    return weft_fail(WEFT_E_OTHER, "another member, rank %u of %s, failed to make its part of the communicator: its own error "
                     "names the cause",
                     rank, owner);
}

/* The words of this participant's agreement. */
static void fill_agreement(uint32_t all[AGREEMENT], const weft_team *team, bool has_failed, uint32_t rank, const uint32_t *words,
                           uint32_t count)
{
    uint32_t maker = team && team->is_making ? team->maker : WEFT_CALL_MAKERS;
    all[FAILED] = has_failed ? rank : NONE;
    all[MAKER] = maker;
    all[NOT_MAKER] = ~maker;
    for (uint32_t i = 0; i < WEFT_EXCHANGE_AGREED; i++)
        all[AGREED + i] = i < count ? words[i] : UINT32_MAX;
}

void weft_bridge_refuse(const weft_bridge *bridge, uint32_t rank)
{
    uint32_t part[AGREEMENT], remote_part[AGREEMENT];
    fill_agreement(part, bridge->team, true, rank == NONE ? UNKNOWN : rank, NULL, 0);
    if (bridge->chan)
        leader_swap(bridge, part, AGREEMENT, remote_part, AGREEMENT, true);
}

static int differ(uint32_t maker, uint32_t other)
{
    return weft_fail(WEFT_E_NOT_SAME, "members of the intercommunicator called %s, others %s: all members must make the same calls",
                     weft_call_maker_name(maker), weft_call_maker_name(other));
}

int weft_bridge_agree(const weft_bridge *bridge, int rc, uint32_t *words, uint32_t *remote_words, uint32_t count)
{
    uint32_t local[AGREEMENT], remote[AGREEMENT];
    char cause[512];
    int agreed;
    snprintf(cause, sizeof cause, "%s", rc ? weft_fail_text(rc) : ""); /* messages may replace this thread's text */
    fill_agreement(local, bridge->team, rc != 0, (uint32_t)bridge->local->rank, words, count);
    agreed = comm_min(bridge->local, local, AGREEMENT);
    if (!agreed && local[MAKER] != ~local[NOT_MAKER])
        agreed = differ(local[MAKER], ~local[NOT_MAKER]);
    if (agreed || local[FAILED] != NONE) {
        char why[512];
        snprintf(why, sizeof why, "%s", agreed ? weft_fail_text(agreed) : "");
        if ((uint32_t)bridge->local->rank == bridge->leader)
            weft_bridge_refuse(bridge, local[FAILED]);
        return rc       ? weft_fail(rc, "%s", cause)
               : agreed ? weft_fail(agreed, "%s", why)
                        : another_failed(local[FAILED], "the local group");
    }
    agreed = weft_bridge_swap(bridge, local, AGREEMENT, remote, AGREEMENT);
    if (agreed)
        return agreed;
    if (remote[FAILED] != NONE)
        return another_failed(remote[FAILED], "the remote group");
    if (remote[MAKER] != local[MAKER])
        return differ(local[MAKER], remote[MAKER]);
    for (uint32_t i = 0; i < count; i++) {
        words[i] = local[AGREED + i];
        remote_words[i] = remote[AGREED + i];
    }
    return 0;
}

weft_bridge weft_bridge_of(weft_comm *comm)
{
    return (weft_bridge){.local = comm->local, .chan = comm->team.chan, .remote_leader = comm->team.remote.first,
                         .tag = WEFT_EXCHANGE_TAG_INTERCOMM, .team = &comm->team};
}

static int bridge_min(const weft_exchange *exchange, uint32_t *inout, uint32_t count)
{
    weft_bridge bridge = weft_bridge_of(exchange->comm);
    uint32_t remote_part[WEFT_EXCHANGE_WORDS];
    int rc = comm_min(bridge.local, inout, count);
    if (!rc)
        rc = weft_bridge_swap(&bridge, inout, count, remote_part, count);
    for (uint32_t i = 0; i < count && !rc; i++)
        inout[i] = remote_part[i] < inout[i] ? remote_part[i] : inout[i];
    return rc;
}

static int bridge_gather(const weft_exchange *exchange, const uint32_t *part, uint32_t words, uint32_t *all)
{
    weft_bridge bridge = weft_bridge_of(exchange->comm);
    uint32_t local = (uint32_t)bridge.local->size, remote = exchange->size - local;
    uint32_t *own = all + (exchange->remote_first ? (size_t)remote * words : 0);
    uint32_t *remote_part = all + (exchange->remote_first ? 0 : (size_t)local * words);
    int rc = comm_gather(bridge.local, part, words, own);
    /* also after an error: the other leader waits */
    int swapped = weft_bridge_swap(&bridge, own, local * words, remote_part, remote * words);
    return rc ? rc : swapped;
}

weft_exchange weft_exchange_over_intercomm(weft_comm *comm, bool remote_first)
{
    static const weft_exchange_ops ops = {bridge_min, bridge_gather};
    uint32_t remote = comm->chan->size;
    return (weft_exchange){.ops = &ops, .comm = comm, .size = (uint32_t)comm->size + remote,
                           .rank = (uint32_t)comm->rank + (remote_first ? remote : 0), .remote_first = remote_first};
}

int weft_exchange_failed(const weft_exchange *exchange, uint32_t failed)
{
    const char *name = exchange->comm->traits.name;
    if (failed >= LEFT && failed < UNKNOWN)
        failed = LEFT | ((failed & ~LEFT) + exchange->first) % exchange->size;
    return another_failed(failed, exchange->chan ? "the group" : name[0] ? name : "the communicator");
}

static int agree_over_intercomm(const weft_exchange *exchange, int rc, uint32_t *words, uint32_t count)
{
    weft_bridge bridge = weft_bridge_of(exchange->comm);
    uint32_t remote_part[WEFT_EXCHANGE_AGREED];
    rc = weft_bridge_agree(&bridge, rc, words, remote_part, count);
    for (uint32_t i = 0; i < count && !rc; i++)
        words[i] = remote_part[i] < words[i] ? remote_part[i] : words[i];
    return rc;
}

int weft_exchange_agree(const weft_exchange *exchange, int rc, uint32_t *words, uint32_t count)
{
    uint32_t all[AGREEMENT];
    char cause[512];
    int agreed;
    if (exchange->ops->min == bridge_min)
        return agree_over_intercomm(exchange, rc, words, count);
    snprintf(cause, sizeof cause, "%s", rc ? weft_fail_text(rc) : ""); /* messages may replace this thread's text */
    fill_agreement(all, NULL, rc != 0, exchange->rank, words, count);
    agreed = exchange->ops->min(exchange, all, AGREEMENT);
    if (rc || agreed)
        return rc ? weft_fail(rc, "%s", cause) : agreed;
    if (all[FAILED] != NONE)
        return weft_exchange_failed(exchange, all[FAILED]);
    for (uint32_t i = 0; i < count; i++)
        words[i] = all[AGREED + i];
    return 0;
}

int weft_exchange_min(const weft_exchange *exchange, uint32_t *inout, uint32_t count) { return exchange->ops->min(exchange, inout, count); }

int weft_exchange_gather(const weft_exchange *exchange, const uint32_t *part, uint32_t words, uint32_t *all)
{
    return exchange->ops->gather(exchange, part, words, all);
}

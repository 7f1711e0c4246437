/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll: entry points for src/mpi: selects an algorithm, then performs, starts or records it. Opens and closes teams.
 * Requires worker->lock.
 * Invariant: every decision here (algorithm, tag, node area or messages) is equal on all members.
 */
#include "collectives/coll.h"

#include "base/event.h"
#include "base/knob.h"
#include "base/status.h"
#include "collectives/agreement.h"
#include "collectives/algorithms.h"
#include "collectives/choice.h"
#include "collectives/inquiry.h"
#include "collectives/sched_area.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_check.h"
#include "collectives/shmcoll_lane.h"
#include "collectives/shmcoll_queue.h"
#include "collectives/shmcoll_short.h"
#include "collectives/stop.h"
#include "collectives/topology.h"
#include "core/worker.h"
#include "core/world.h"

#include <stdlib.h>
#include <string.h>

/* At least two members. */
static int open_nodes(weft_team *team, const uint32_t *node_of)
{
    const weft_group *group = team->chan->group;
    int rc = team->size > 2 ? weft_topology_make(team->rank, group, node_of, &team->topology) : WEFT_OK;

    if (team->topology)
        team->nodes = team->topology->count;
    else if (node_of[weft_group_process(group, 0).rank] != node_of[weft_group_process(group, 1).rank])
        team->nodes = team->size;
    return rc;
}

int weft_team_open(weft_chan *chan, bool share, weft_team *team)
{
    const weft_boot *boot = chan->worker->world->boot;
    bool is_own_job = weft_group_is_of_job(chan->group, boot->job); /* nodes of other jobs are not known */

    memset(team, 0, sizeof *team);
    team->chan = chan;
    team->rank = chan->rank;
    team->size = chan->size;
    team->local = team->remote = (weft_members){0, chan->size};
    team->nodes = is_own_job ? 1 : team->size;
    team->params = weft_coll_params_default;
    team->latency_bytes = WEFT_COLL_RULE_LATENCY;
    team->is_reproducible = weft_knob.reproducible;
    team->has_areas = team->may_share = team->needs_setup = share && is_own_job && chan->size > 1;
    weft_stop_open(team);
    weft_coll_forced_open(boot->rank == 0);
    chan->worker->progress_scheds = weft_sched_progress;
    chan->worker->progress_areas = weft_shmcoll_progress;
    chan->worker->free_scheds = weft_sched_free_spares;
    chan->on_long_wait = weft_inquiry_send;
    return boot->node_of && is_own_job && team->size > 1 ? open_nodes(team, boot->node_of) : WEFT_OK;
}

int weft_team_open_inter(weft_chan *chan, weft_members local, weft_team *team)
{
    int rc = weft_team_open(chan, false, team);

    team->is_inter = team->needs_setup = true;
    team->local = local;
    team->remote = (weft_members){local.first ? 0 : local.count, chan->size - local.count};
    return rc;
}

void weft_team_set_reproducible(weft_team *team, bool value)
{
    if (team->is_reproducible != value) {
        weft_coll_choices_free(team);
        if (team->area)
            weft_shmcoll_forget_shorts(team->area);
    }
    team->is_reproducible = value;
}

void weft_team_close(weft_team *team)
{
    weft_stop_close(team);
    weft_shmcoll_close(team->area);
    team->area = NULL;
    weft_coll_choices_free(team);
    free(team->topology);
    team->topology = NULL;
    team->may_share = team->needs_setup = false;
}

int weft_team_stopped(const weft_team *team)
{
    return !team->is_origin || (team->area && weft_shmcoll_is_second(team->area)) ? WEFT_OK : team->stopped;
}

/* Inlined: as an argument the call is stored as two words and loaded as one, and such a load waits until all older stores are done. */
static inline __attribute__((always_inline)) int next_tag(weft_team *team, weft_call call, bool is_agreement)
{
    uint32_t number = team->sequence++ & WEFT_TAG_BITS, tag = weft_call_tag(call, number, is_agreement);

    weft_calls_log(team, tag, call);
    return (int)tag;
}

/* Of an area on each node, as far as all members know. */
static uint32_t slot_bytes_on_nodes(const weft_team *team)
{
    return (uint32_t)(WEFT_SHMCOLL_BYTES / WEFT_SHMCOLL_SLOTS) / (team->size / team->nodes + 1);
}

/* Which calls may go through slots. */
enum slots { NO_SLOTS, NODE_SLOTS /* the stages within nodes too */, TEAM_SLOTS /* if all members are on one node */ };

static const weft_coll_rule *select_rule(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, enum slots slots)
{
    weft_coll_query query;
    size_t count;

    if (weft_coll_has_one_rule(kind))
        return weft_coll_select_rules(kind, &count);
    query = weft_coll_query_of(kind, team->size, team, args, args->root == (int)team->rank);
    if (weft_unlikely(weft_coll_query_is_plain(team, args)))
        return weft_coll_choose(team, &query);
    if (team->topology) {
        query.has |= WEFT_NEED_NODES;
        if (slots == NODE_SLOTS && team->has_areas) {
            query.has |= WEFT_NEED_AREA;
            query.slot_bytes = slot_bytes_on_nodes(team);
        }
    } else if (team->area && slots != NO_SLOTS) {
        query.slot_bytes = weft_shmcoll_slot_bytes(team->area);
        if (weft_shmcoll_can_hold(team->area, kind, args) && !(weft_unlikely(team->long_left) && weft_coll_is_alltoallv(kind)))
            query.has |= WEFT_NEED_AREA;
    }
    return weft_coll_choose(team, &query);
}

static inline void raise_selected(const weft_team *team, const weft_coll_rule *rule, const weft_coll *args)
{
    size_t count;
    WEFT_EVENT_RAISE(WEFT_EVENT_COLL_SELECTED, team->chan, rule->kind, rule - weft_coll_select_rules(rule->kind, &count),
                     (int64_t)weft_coll_bytes(rule->kind, args, args->root == (int)team->rank), team->size);
}

/* NULL: through the node area, by *rule. */
static inline __attribute__((always_inline)) weft_sched_algorithm *select_by(weft_team *team, enum weft_coll_kind kind,
                                                                            const weft_coll *args, enum slots slots,
                                                                            const weft_coll_rule **rule)
{
    weft_sched_algorithm *algorithm = team->is_inter ? weft_inter_algorithm(kind) : NULL;

    if (algorithm)
        return algorithm;
    *rule = select_rule(team, kind, args, slots);
    raise_selected(team, *rule, args);
    return (*rule)->algorithm;
}

static inline weft_sched_algorithm *select_algorithm(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, enum slots slots)
{
    const weft_coll_rule *rule;

    return select_by(team, kind, args, slots, &rule);
}

static int perform(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, int tag)
{
    weft_sched sched;

    weft_sched_begin_immediate(&sched, team, tag);
    sched.op = args->op;
    algorithm(&sched, args);
    return weft_sched_end_immediate(&sched);
}

static inline __attribute__((always_inline)) weft_call call_of(const weft_team *team, enum weft_coll_kind kind, enum weft_call_form form,
                                                               const weft_coll *args)
{
    if (team->is_inter)
        return weft_call_of_inter(team, kind, form, args);
    return weft_call_of(kind, form, args, weft_coll_bytes(kind, args, args->root == (int)team->rank));
}

/* Error of a call that comes after the team has stopped: no other member compares it. */
static __attribute__((noinline, cold)) int stop_error(weft_team *team, weft_call call)
{
    int rc = team->area && !team->topology ? weft_shmcoll_truncation(team->area, call) : WEFT_OK;

    return rc ? rc : weft_team_stop_error_of_call(team, call);
}

/* What a call that may block must do first (team->needs_setup): agree on a node area, or return the error of a stopped team. */
static __attribute__((noinline)) int setup(weft_team *team, weft_call call)
{
    if (team->agreement)
        weft_agreement_await(team);
    if (weft_team_next_call_is_over(team)) {
        weft_team_leave_area(team);
        return stop_error(team, call);
    }
    if (!team->may_share)
        return WEFT_OK;
    team->may_share = false;
    return weft_agreement_run(team, next_tag(team, call, true));
}

/* A blocking call that needs setup. *is_done: it has been performed, on an intercommunicator, so that other calls need no test. */
static __attribute__((noinline)) int setup_blocking(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, bool *is_done)
{
    weft_call call = call_of(team, kind, WEFT_CALL_BLOCKING, args);
    int rc = setup(team, call);

    *is_done = rc || team->is_inter;
    return *is_done && !rc ? perform(team, select_algorithm(team, kind, args, NODE_SLOTS), args, next_tag(team, call, false)) : rc;
}

/* Nonblocking calls precede the blocking one in the area. */
static __attribute__((noinline)) int drain(weft_team *team, enum weft_coll_kind kind, const weft_coll *args)
{
    weft_shmcoll_drain(team->area);
    return team->needs_setup ? setup(team, call_of(team, kind, WEFT_CALL_BLOCKING, args)) : WEFT_OK;
}

/* For the blocks of an alltoallv that the slots leave to messages. Members may choose differently. NULL: other kinds leave none. */
static weft_sched_algorithm *rest_algorithm(const weft_team *team, enum weft_coll_kind kind)
{
    if (!weft_coll_is_alltoallv(kind))
        return NULL;
    return team->size <= WEFT_COLL_AT_ONCE ? weft_alltoall_linear : weft_alltoall_pairwise;
}

#define LONG_RUN_MAX 32

/* After a blocking call that the slots left to messages the next one, then two, four and so on go by messages at once, without a wait for
 * all members. Nonblocking calls are counted too, but change nothing: only blocking ones end in one order on all members. */
static void count_long(weft_team *team, bool was_long)
{
    team->long_run = !was_long ? 0 : !team->long_run ? 1 : team->long_run < LONG_RUN_MAX ? 2 * team->long_run : LONG_RUN_MAX;
    team->long_left = team->long_run;
}

/* A blocking call through the area: what the slots leave goes by messages. Each member numbers the schedule of these, also if it has
 * none. */
static __attribute__((noinline)) int run_alltoallv(weft_team *team, enum weft_coll_kind kind, const weft_coll *args)
{
    weft_call call = call_of(team, kind, WEFT_CALL_BLOCKING, args);
    uint32_t number = team->sequence;
    int tag = next_tag(team, call, false), rc = weft_shmcoll_run_alltoallv(team->area, kind, args, call, number);
    int damage = team->area->damage;
    weft_moved moved;
    weft_coll rest = *args;

    if (rc)
        return rc;
    count_long(team, team->area->was_sent);
    if (weft_likely(!team->area->left))
        return weft_unlikely(damage) ? weft_fail(damage, "%s", team->area->damage_text) : WEFT_OK;
    moved = team->area->moved;
    rest.moved = &moved;
    rc = perform(team, rest_algorithm(team, kind), &rest, tag);
    return weft_unlikely(damage) && !rc ? weft_fail(damage, "%s", team->area->damage_text) : rc;
}

/* The remembered short call with these arguments; NULL: there is none, and the algorithm must be chosen. */
static inline const weft_shmcoll_short *find_short(const weft_team *team, enum weft_coll_kind kind, const weft_coll *args)
{
    return team->area && !team->needs_setup ? weft_shmcoll_find_short(team->area, kind, args) : NULL;
}

int weft_coll_run(weft_team *team, enum weft_coll_kind kind, const weft_coll *args)
{
    const weft_shmcoll_short *same = find_short(team, kind, args);
    const weft_coll_rule *rule;
    weft_call call;

    if (weft_likely(same) && weft_likely(!weft_shmcoll_has_pending(team->area)) && weft_likely(!team->area->rc)) {
        raise_selected(team, same->rule, args);
        return weft_shmcoll_run_short(team->area, kind, same, args);
    }
    if (weft_unlikely(team->needs_setup)) {
        bool is_done;
        int rc = setup_blocking(team, kind, args, &is_done);
        if (is_done)
            return rc;
    }
    rule = select_rule(team, kind, args, NODE_SLOTS);
    if (weft_unlikely(team->long_left))
        team->long_left -= weft_coll_is_alltoallv(kind);
    raise_selected(team, rule, args);
    if (weft_likely(!rule->algorithm)) {
        if (weft_unlikely(weft_shmcoll_has_pending(team->area))) {
            int rc = drain(team, kind, args);
            if (rc)
                return rc;
        }
        if (!team->topology)
            weft_shmcoll_note_short(team->area, kind, args, rule);
        return weft_unlikely(weft_coll_is_alltoallv(kind)) ? run_alltoallv(team, kind, args) : weft_shmcoll_run(team->area, kind, args);
    }
    call = call_of(team, kind, WEFT_CALL_BLOCKING, args);
    if (team->area) {
        int rc = weft_shmcoll_publish(team->area, call, team->sequence, !team->topology);
        if (rc)
            return rc;
    }
    return perform(team, rule->algorithm, args, next_tag(team, call, false));
}

static int start(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, weft_call call, weft_req **req)
{
    int rc;

    if (weft_unlikely(team->stopped) && weft_team_is_over(team, team->sequence))
        return stop_error(team, call);
    if (team->area && !team->topology && (rc = weft_shmcoll_publish(team->area, call, team->sequence, true)))
        return rc;
    return weft_sched_start(team, algorithm, args, next_tag(team, call, false), req);
}

/* Starts a call by a schedule: one that was attempted, or that may not be. */
static __attribute__((noinline)) int start_schedule(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_call call,
                                                    int tag, weft_req **req)
{
    int rc = weft_sched_record_in_area(team, team->area, kind, args, call, tag, rest_algorithm(team, kind), req);

    if (weft_likely(!rc))
        return weft_sched_restart(*req);
    weft_shmcoll_drop_attempt(team->area);
    return rc;
}

static int start_in_area(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_call call, weft_req **req)
{
    int tag;

    if (weft_unlikely(team->stopped) && weft_team_is_over(team, team->sequence))
        return stop_error(team, call);
    tag = next_tag(team, call, false);
    if (!weft_shmcoll_may_attempt(team->area, args, call) || weft_shmcoll_attempt(team->area, kind, args, call, (uint32_t)tag))
        return start_schedule(team, kind, args, call, tag, req);
    *req = &team->chan->worker->done_sched;
    return WEFT_OK;
}

/* Requires weft_shmcoll_may_attempt_short(). */
static inline int start_short(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, const weft_shmcoll_short *same,
                              weft_req **req)
{
    weft_call call = weft_call_nonblocking(weft_shmcoll_short_call(same, args));
    int tag;

    raise_selected(team, same->rule, args);
    tag = next_tag(team, call, false);
    if (weft_unlikely(weft_shmcoll_attempt_short(team->area, kind, args, same, call, (uint32_t)tag)))
        return start_schedule(team, kind, args, call, tag, req);
    *req = &team->chan->worker->done_sched;
    return WEFT_OK;
}

/* The agreement has ended. */
static void begin_deferred(weft_sched *sched)
{
    weft_team *team = sched->team;
    weft_shmcoll_pending *pending = sched->pending;
    uint32_t tag = (uint32_t)sched->tag;
    int rc = WEFT_OK;

    if (!weft_team_is_over(team, tag)) {
        weft_sched_algorithm *algorithm = pending ? select_algorithm(team, pending->kind, &pending->args, TEAM_SLOTS) : NULL;
        if (pending)
            weft_sched_decide(sched, algorithm ? NULL : team->area, algorithm);
        if (!sched->pending && team->area && !team->topology)
            rc = weft_shmcoll_publish(team->area, sched->call, tag, true);
        if (rc)
            weft_sched_fail(sched, rc);
    }
    weft_sched_restart_later(sched->req);
}

/* A nonblocking call when the members have not agreed on an area, at least not here. Its choice follows that. Where slots are no choice,
 * the arguments are read now. */
static __attribute__((noinline)) int defer(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_call call, weft_req **req)
{
    bool is_first = team->may_share;
    int rc = WEFT_OK, tag;
    weft_sched *sched;

    if (team->stopped && weft_team_is_over(team, team->sequence))
        return stop_error(team, call);
    if (is_first) {
        team->may_share = false;
        rc = weft_agreement_record(team, next_tag(team, call, true), begin_deferred);
    }
    if (rc)
        return rc;
    tag = next_tag(team, call, false);
    rc = weft_coll_is_by_pairs(kind) && !weft_coll_is_alltoallv(kind)
             ? weft_sched_record(team, select_algorithm(team, kind, args, NO_SLOTS), args, tag, req)
             : weft_sched_record_in_area(team, NULL, kind, args, call, tag, rest_algorithm(team, kind), req);
    if (rc) {
        if (is_first)
            weft_agreement_discard(team, rc);
        return rc;
    }
    sched = (*req)->extra;
    sched->call = call;
    (*req)->is_active = true;
    weft_agreement_defer(team, sched);
    return WEFT_OK;
}

/* Nonblocking calls that end in their start never poll elsewhere. The poll may stop the team. */
static __attribute__((noinline)) void poll_now(weft_team *team)
{
    team->area->polled = team->area->op;
    weft_worker_poll(team->chan->worker);
}

int weft_coll_start(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req)
{
    const weft_coll_rule *rule = NULL; /* set unless the communicator is an intercommunicator */
    weft_sched_algorithm *algorithm;
    const weft_shmcoll_short *same;
    weft_call call;

    if (weft_unlikely(team->area && weft_shmcoll_is_poll_due(team->area)))
        poll_now(team);
    same = find_short(team, kind, args);
    if (weft_likely(same) && weft_likely(weft_shmcoll_may_attempt_short(team->area)) && !team->stopped)
        return start_short(team, kind, args, same, req);
    call = call_of(team, kind, WEFT_CALL_NONBLOCKING, args);
    if (weft_unlikely(team->needs_setup) && (team->may_share || team->agreement))
        return defer(team, kind, args, call, req);
    algorithm = select_by(team, kind, args, TEAM_SLOTS, &rule);
    if (weft_unlikely(team->long_left))
        team->long_left -= weft_coll_is_alltoallv(kind);
    if (algorithm)
        return start(team, algorithm, args, call, req);
    weft_shmcoll_note_short(team->area, kind, args, rule);
    return start_in_area(team, kind, args, call, req);
}

int weft_coll_start_all(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req)
{
    uint64_t bytes = weft_coll_bytes(kind, args, args->root == (int)team->rank);

    if (!team->is_inter)
        return weft_coll_start(team, kind, args, req);
    return start(team, select_rule(team, kind, args, TEAM_SLOTS)->algorithm, args,
                 weft_call_of(kind, WEFT_CALL_NONBLOCKING, args, bytes), req);
}

/* A persistent call that goes through slots gets a lane, on which the members agree; NULL: it goes by messages. */
static int open_lane(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_call call, weft_shmcoll **lane)
{
    int rc = WEFT_OK;

    *lane = NULL;
    if (team->agreement) /* its parameters decide */
        weft_agreement_await(team);
    if (team->is_inter || team->topology)
        return WEFT_OK;
    if (team->area && weft_shmcoll_has_pending(team->area))
        weft_shmcoll_drain(team->area);
    if (team->needs_setup)
        rc = setup(team, call);
    if (rc || !team->area)
        return rc;
    if (weft_coll_is_alltoallv(kind) || select_rule(team, kind, args, TEAM_SLOTS)->algorithm)
        return weft_shmcoll_publish(team->area, call, team->sequence, true);
    rc = weft_shmcoll_open_lane(team->area, kind, args, call, lane);
    return team->area->rc ? rc : weft_team_trust(team, rc); /* calls that differ stop the team, also by truncation */
}

int weft_coll_prepare(weft_team *team, enum weft_coll_kind kind, const weft_coll *args, weft_req **req)
{
    weft_call call = call_of(team, kind, WEFT_CALL_PERSISTENT, args);
    int tag = (int)(weft_call_tag(call, team->prepared++, false) | WEFT_TAG_PREPARED);
    weft_shmcoll *lane;
    int rc = open_lane(team, kind, args, call, &lane);

    if (rc)
        return rc;
    rc = lane ? weft_sched_record_in_area(team, lane, kind, args, call, tag, NULL, req)
              : weft_sched_record(team, select_algorithm(team, kind, args, NO_SLOTS), args, tag, req);
    if (rc) {
        weft_shmcoll_close(lane);
        return rc;
    }
    ((weft_sched *)(*req)->extra)->call = call;
    weft_calls_log_prepared(team, (uint32_t)tag, call);
    (*req)->is_persistent = true;
    (*req)->is_done = true; /* inactive until started */
    return WEFT_OK;
}

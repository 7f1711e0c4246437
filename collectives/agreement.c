/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement: see agreement.h.
 */
#include "collectives/agreement.h"

#include <stdlib.h>

#include "base/status.h"
#include "collectives/shmcoll_queue.h"
#include "collectives/shmcoll_setup.h"
#include "collectives/stop.h"
#include "core/wait.h"

/* A recorded agreement; owned by the team until it has ended. */
typedef struct weft_agreement {
    weft_completion completion; /* of req */
    weft_team *team;
    weft_shmcoll_setup *setup;
    weft_req *req;             /* its schedule */
    weft_agreement_begin *begin;
    weft_list_link deferred;   /* schedules, by weft_sched.link */
    bool is_started;
} agreement;

/* The steps are over. The team may have stopped at a later call. */
static int settle(weft_team *team, weft_shmcoll_setup *setup, int rc)
{
    weft_team_trust(team, rc);
    weft_shmcoll_setup_end(setup, rc);
    return rc;
}

static int no_memory(weft_team *team, int tag)
{
    int rc = weft_fail(WEFT_E_NOMEM, "no memory for a communicator of %u", team->size);

    weft_team_stop(team, rc, tag);
    return rc;
}

int weft_agreement_run(weft_team *team, int tag)
{
    weft_shmcoll_setup *setup = weft_shmcoll_setup_new(team);
    weft_sched sched;
    int rc;

    if (!setup)
        return no_memory(team, tag);
    weft_sched_begin_immediate(&sched, team, tag);
    weft_shmcoll_setup_steps(&sched, &(weft_coll){.recvbuf = setup});
    rc = settle(team, setup, weft_sched_end_immediate(&sched));
    team->needs_setup = team->stopped;
    if (rc)
        weft_team_stop(team, rc, tag);
    return rc;
}

/* From here on calls begin at once. Before, they must be deferred, or they would overtake those that are. */
static void retire(agreement *self)
{
    self->team->agreement = NULL;
    self->team->needs_setup = self->team->stopped;
    free(self);
}

/* The team is about to begin its last deferred schedule. If that and all later ones are over, no member waits for this one in the area. */
static void leave_area_if_over(weft_team *team, const weft_sched *last)
{
    if (weft_team_is_over(team, (uint32_t)last->tag) && team->area && !weft_shmcoll_has_pending(team->area))
        weft_team_leave_area(team);
}

/* The agreement has ended: begins what waits for it, one schedule at least. That may release the lock, so that more are deferred, and the
 * last one may end at once, with the communicator. */
static void on_end(weft_completion *completion)
{
    agreement *self = weft_container(completion, agreement, completion);
    weft_team *team = self->team;
    weft_agreement_begin *begin = self->begin;
    bool is_last;
    int rc = self->req->rc;

    if (rc)
        weft_req_report_error(self->req);
    settle(team, self->setup, rc);
    weft_req_free(self->req);
    do {
        weft_sched *sched = weft_container(weft_list_take(&self->deferred), weft_sched, link);
        is_last = weft_list_is_empty(&self->deferred);
        if (is_last) {
            leave_area_if_over(team, sched);
            retire(self);
        }
        begin(sched);
    } while (!is_last);
}

int weft_agreement_record(weft_team *team, int tag, weft_agreement_begin *begin)
{
    agreement *self = calloc(1, sizeof *self);
    int rc;

    if (!self || !(self->setup = weft_shmcoll_setup_new(team))) {
        free(self);
        return no_memory(team, tag);
    }
    rc = weft_sched_record(team, weft_shmcoll_setup_steps, &(weft_coll){.recvbuf = self->setup}, tag, &self->req);
    if (rc) {
        weft_shmcoll_setup_end(self->setup, rc);
        free(self);
        return rc;
    }
    self->completion = (weft_completion){.left = 1, .open = on_end};
    self->req->completion = &self->completion;
    self->team = team;
    self->begin = begin;
    weft_list_init(&self->deferred);
    team->agreement = self;
    return WEFT_OK;
}

void weft_agreement_discard(weft_team *team, int rc)
{
    agreement *self = team->agreement;

    weft_team_stop(team, rc, ((weft_sched *)self->req->extra)->tag);
    weft_shmcoll_setup_end(self->setup, rc);
    weft_req_free(self->req);
    retire(self);
}

void weft_agreement_defer(weft_team *team, weft_sched *sched)
{
    agreement *self = team->agreement;

    weft_list_append(&self->deferred, &sched->link);
    if (self->is_started)
        return;
    self->is_started = true;
    weft_sched_restart(self->req);
}

typedef struct agreement_wait {
    weft_wait wait;
    const weft_team *team;
} agreement_wait;

static bool is_over(weft_wait *wait) { return !weft_container(wait, agreement_wait, wait)->team->agreement; }

void weft_agreement_await(weft_team *team)
{
    agreement_wait self = {.team = team};

    weft_wait_begin(&self.wait, team->chan->worker, WEFT_WAIT_REASON_COLLECTIVE, WEFT_ANY, 0, 0);
    self.wait.is_over = is_over;
    while (team->agreement)
        weft_wait_progress(&self.wait);
    weft_wait_end(&self.wait);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: see job.h.
 */
#include "rma/job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "core/worker.h"
#include "core/world.h"
#include "p2p/lost.h"
#include "p2p/p2p.h"
#include "rma/sync_state.h"

void weft_rma_abort_job(weft_window_inbox *inbox, uint32_t from)
{
    weft_worker *worker = inbox->window->worker;
    char text[300];
    snprintf(text, sizeof text, "no memory to perform an operation of member %u on a window", from);
    worker->world->boot->ops->abort(worker->world->boot, 1, text);
}

static void job_complete(weft_completion *completion)
{
    weft_rma_job *self = weft_container(completion, weft_rma_job, completion);
    weft_list_remove(&self->link);
    weft_list_append(&self->inbox->jobs, &self->link);
    weft_rma_inbox_link(self->inbox);
}

weft_rma_job *weft_rma_job_new(weft_window_inbox *inbox, uint32_t from, enum weft_rma_job_kind kind, const weft_rma_head *head,
                               uint64_t temporary)
{
    weft_rma_job *made = calloc(1, sizeof *made);
    bool is_reply = kind == WEFT_RMA_JOB_REPLY;
    if (made)
        made->req = weft_req_new(inbox->window->worker, is_reply ? WEFT_REQ_SEND : WEFT_REQ_RECV);
    if (made && temporary)
        made->temporary = malloc(temporary);
    if (!made || !made->req || (temporary && !made->temporary)) {
        if (made && made->req)
            weft_req_free(made->req);
        free(made);
        weft_rma_abort_job(inbox, from);
        return NULL;
    }
    made->completion = (weft_completion){.left = 1, .open = job_complete};
    made->req->completion = &made->completion;
    made->inbox = inbox;
    made->from = from;
    made->kind = kind;
    if (head)
        made->head = *head;
    inbox->peers[from].jobs++;
    inbox->jobs_count++;
    weft_list_append(&inbox->open, &made->link);
    return made;
}

void weft_rma_job_hold(weft_rma_job *self, const weft_type *type)
{
    weft_type_hold(type);
    self->type = type;
}

/* A member that has left sends and receives nothing more: its messages that began before were ended when that was learnt. */
static void end_if_gone(const weft_rma_job *self)
{
    weft_window *window = self->inbox->window;
    if (weft_unlikely(!self->req->is_done && weft_window_target_is_gone(&window->targets[self->from])))
        weft_lost_left(window->chan, self->from, weft_fail(WEFT_E_PEER, "the process of member %u of the window %s", self->from,
                                                           weft_window_gone_text(window, self->from)));
}

void weft_rma_job_receive(weft_rma_job *self, void *buf, uint64_t count, const weft_type *type)
{
    int rc = weft_irecv_into(self->inbox->window->chan, (int)self->from, weft_rma_tag_data(self->head.number), buf, count, type, self->req);
    if (rc)
        weft_req_end(self->req, rc);
    end_if_gone(self);
}

void weft_rma_job_reply(weft_rma_job *self, const void *buf, uint64_t count, const weft_type *type)
{
    int rc = weft_isend_into(self->inbox->window->chan, (int)self->from, weft_rma_tag_reply(self->head.number), buf, count, type,
                             WEFT_SEND_STANDARD, self->req);
    if (rc)
        weft_req_end(self->req, rc);
    end_if_gone(self);
}

void weft_rma_job_free(weft_rma_job *self)
{
    weft_window_inbox *inbox = self->inbox;
    self->req->completion = NULL;
    weft_req_free(self->req);
    if (self->type)
        weft_type_drop(self->type);
    free(self->temporary);
    inbox->peers[self->from].jobs--;
    inbox->jobs_count--;
    free(self);
}

void weft_rma_jobs_forget(weft_list_link *jobs)
{
    weft_list_link *link;
    while ((link = weft_list_take(jobs))) {
        weft_rma_job *self = weft_container(link, weft_rma_job, link);
        self->req->completion = NULL;
        if (self->type)
            weft_type_drop(self->type);
        free(self->temporary);
        free(self);
    }
}

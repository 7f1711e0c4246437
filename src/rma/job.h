/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job: a message that belongs to an operation which arrives (inbox.c): a HEAD or DATA that is received, or a REPLY that is sent. When its
 * request is complete it waits in inbox->jobs to be finished. Private to src/rma. Requires worker->lock.
 */
#ifndef WEFT_RMA_JOB_H
#define WEFT_RMA_JOB_H

#include "rma/message.h"
#include "rma/notice.h"

enum weft_rma_job_kind { WEFT_RMA_JOB_HEAD, WEFT_RMA_JOB_PUT, WEFT_RMA_JOB_ACCUMULATE, WEFT_RMA_JOB_REPLY, WEFT_RMA_JOB_TYPE };

typedef struct weft_rma_job {
    weft_completion completion;
    weft_list_link link;   /* in inbox->open, then in inbox->jobs */
    weft_list_link order;  /* PUT: in peer->puts */
    weft_window_inbox *inbox;
    weft_req *req;
    const weft_type *type; /* held; NULL: none */
    void *temporary;       /* owned; NULL: none */
    char *at;              /* ACCUMULATE: place */
    weft_rma_notice *notice; /* PUT, REPLY of a get; NULL: none */
    uint64_t sequence;     /* PUT: among the operations without REPLY */
    weft_rma_head head;
    uint32_t from;
    enum weft_rma_job_kind kind;
} weft_rma_job;

/* With `temporary` bytes of memory. head: copied; NULL: none. NULL: out of memory, and the MPI job was aborted. */
weft_rma_job *weft_rma_job_new(weft_window_inbox *inbox, uint32_t from, enum weft_rma_job_kind kind, const weft_rma_head *head,
                               uint64_t temporary);
void weft_rma_job_hold(weft_rma_job *self, const weft_type *type);
/* Starts to receive its DATA, or to send its REPLY. An error ends its request. */
void weft_rma_job_receive(weft_rma_job *self, void *buf, uint64_t count, const weft_type *type);
void weft_rma_job_reply(weft_rma_job *self, const void *buf, uint64_t count, const weft_type *type);
/* Its request is complete. */
void weft_rma_job_free(weft_rma_job *self);
/* Frees the jobs of a list, but not their requests, which are not complete. */
void weft_rma_jobs_forget(weft_list_link *jobs);

/* Without memory an operation of another member cannot be performed, and nothing can tell so: the MPI job ends. */
void weft_rma_abort_job(weft_window_inbox *inbox, uint32_t from);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * withdrawn: see withdrawn.h. The buffer belongs to a request of the library, in whose name the rendezvous goes on.
 */
#include "p2p/withdrawn.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "p2p/chan.h"
#include "p2p/deliver.h"
#include "p2p/frag.h"
#include "p2p/held.h"
#include "p2p/rndv_internal.h"

typedef struct withdrawn {
    weft_held held;
    weft_completion completion; /* of req: all bytes are here, or the send failed */
    weft_list_link link;        /* in promises->withdrawn */
    weft_req *req;
    weft_rndv *rndv;            /* until its end */
    uint8_t body[];
} withdrawn;

static const weft_type bytes_type = {.is_dense = true, .size = 1, .extent = 1, .true_extent = 1, .elements = 1};

static withdrawn *of(const weft_rndv *rndv) { return weft_container(rndv->req->completion, withdrawn, completion); }

static void end(weft_held *held)
{
    withdrawn *self = weft_container(held, withdrawn, held);
    weft_list_remove(&self->link);
    self->req->is_done = true;
    weft_req_free(self->req);
    free(self);
}

static void on_here(weft_completion *completion)
{
    withdrawn *self = weft_container(completion, withdrawn, completion);
    self->rndv = NULL;
    weft_held_on_here(&self->held);
}

/* A receive of `bytes` into `to`, which matching never sees. */
static void describe(weft_req *req, const weft_req *from, uint8_t *to, uint64_t bytes)
{
    req->rank = from->rank;
    req->tag = from->tag;
    req->type = &bytes_type;
    req->buf = to;
    req->bytes = bytes;
    req->is_dense = true;
    req->is_blocking = req->may_promise = false;
}

bool weft_withdrawn_new(weft_list_link *all, weft_rndv *rndv)
{
    const weft_req *from = rndv->req;
    weft_req *req = weft_req_new(from->worker, WEFT_REQ_RECV);
    withdrawn *self = malloc(sizeof *self + rndv->moved);
    if (!req || !self) {
        if (req)
            weft_req_free(req);
        free(self);
        return false;
    }
    *self = (withdrawn){.completion = {.left = 1, .open = on_here}, .req = req, .rndv = rndv,
                        .held = {.req = req, .free = end,
                                 .hdr = {.kind = WEFT_FRAME_HELD, .chan = from->chan->id, .src = from->rank, .tag = from->tag,
                                         .bytes = sizeof(weft_held *)}}};
    memcpy(self->body, weft_req_start(from), rndv->moved);
    describe(req, from, self->body, rndv->moved);
    req->completion = &self->completion;
    rndv->req = req;
    rndv->is_withdrawn = true;
    for (weft_list_link *link = rndv->exposed.next; link != &rndv->exposed; link = link->next)
        weft_container(link, weft_frag, link)->req = req;
    weft_list_append(all, &self->link);
    return true;
}

void weft_withdrawn_on_use(weft_rndv *rndv)
{
    weft_held *held = &of(rndv)->held;
    const weft_hdr *hdr = &held->hdr;
    weft_chan *chan = weft_chan_of(rndv->peer->worker, hdr->chan);
    weft_req *req = chan ? weft_match_posted(&chan->match, hdr->src, hdr->tag) : NULL;
    if (req)
        weft_held_recv(held, req);
    else if (!chan || (chan->refuses && chan->refuses(chan, hdr->tag)))
        weft_held_drop(held);
    else
        weft_deliver_enqueue(rndv->peer, chan, weft_deliver_unexpected(rndv->peer, hdr, &held));
}

void weft_withdrawn_on_revoked(weft_rndv *rndv)
{
    withdrawn *self = of(rndv);
    weft_rndv_unpromise(rndv);
    end(&self->held);
}

void weft_withdrawn_give_up(weft_list_link *all, const weft_peer *peer)
{
    weft_list_link *next;
    for (weft_list_link *link = all->next; link != all; link = next) {
        const withdrawn *self = weft_container(link, withdrawn, link);
        next = link->next;
        if (self->rndv && self->rndv->peer == peer && self->rndv->state == WEFT_RNDV_RECV_PROMISED)
            weft_withdrawn_on_revoked(self->rndv);
    }
}

void weft_withdrawn_free_all(weft_list_link *all)
{
    for (weft_list_link *link; (link = weft_list_take(all));)
        free(weft_container(link, withdrawn, link));
}

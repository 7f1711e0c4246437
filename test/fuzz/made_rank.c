/* SPDX-License-Identifier: BSD-3-Clause
 *
 * made_rank: see made_rank.h.
 */
#include "test/fuzz/made_rank.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mem/pool.h"
#include "p2p/frag.h"
#include "p2p/promise.h"
#include "p2p/rndv.h"
#include "p2p/rndv_pool.h"
#include "p2p/stall.h"
#include "type/type.h"

jmp_buf made_rank_refused;
weft_type *made_rank_strided;

static void __attribute__((noreturn)) on_abort(weft_boot *boot, int code, const char *text)
{
    (void)boot, (void)code, (void)text;
    longjmp(made_rank_refused, 1);
}

static int send_frame(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    static char body[MADE_FRAME_MAX];
    (void)iface, (void)ep;
    if (frame->hdr.bytes > sizeof body)
        abort();
    if (frame->pack)
        frame->pack(frame, body);
    else if (frame->hdr.bytes)
        memcpy(body, frame->body, frame->hdr.bytes);
    return 0;
}

/* A get or put is made_rank_refused: the handlers copy instead. */
static int move(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    (void)iface, (void)ep, (void)rma;
    return WEFT_E_UNSUPPORTED;
}

static bool can_rma(weft_iface *iface, weft_ep *ep)
{
    (void)iface, (void)ep;
    return true;
}

static const weft_iface_ops ops = {.name = "made up", .send = send_frame, .get = move, .put = move, .can_rma = can_rma};
static const weft_boot_ops boot_ops = {.name = "made up", .abort = on_abort};

made_rank *made_rank_open(void)
{
    made_rank *self = aligned_alloc(WEFT_LINE, (sizeof(made_rank) + WEFT_LINE - 1) / WEFT_LINE * WEFT_LINE);
    const weft_type *byte = weft_type_of((void *)(uintptr_t)0x247); /* MPI_BYTE of the standard ABI */
    if (!self)
        abort();
    memset(self, 0, sizeof *self);
    self->iface = (weft_iface){.ops = &ops, .caps = {.get = true, .put = true, .frame_max = MADE_FRAME_MAX,
                               .frags_max = 8 * MADE_FRAME_MAX, .rma_max = UINT64_MAX / 2}};
    self->ep = (weft_ep){.iface = &self->iface, .peer = &self->peer};
    self->boot = (weft_boot){.ops = &boot_ops, .size = 3};
    self->world = (weft_world){.boot = &self->boot, .sleep_ops = &self->sleep_ops};
    self->worker.world = &self->world;
    self->worker.pool = weft_pool_open();
    self->worker.chans = self->slots;
    self->worker.chan_capacity = 16;
    weft_list_init(&self->worker.free_reqs);
    weft_list_init(&self->worker.fragments);
    weft_list_init(&self->worker.backlog);
    weft_list_init(&self->worker.scheds);
    weft_list_init(&self->worker.areas);
    weft_list_init(&self->worker.inboxes);
    weft_list_init(&self->worker.devices);
    weft_list_init(&self->worker.parked);
    self->worker.done_req = (weft_req){.magic = WEFT_REQ_MAGIC, .kind = WEFT_REQ_NOTHING, .is_done = true, .is_static = true,
                                       .worker = &self->worker};
    self->worker.done_sched = self->worker.done_req;
    self->worker.done_sched.kind = WEFT_REQ_SCHED;
    weft_fifomap_open(&self->worker.announced);
    self->peer = (weft_peer){.ep = &self->ep, .worker = &self->worker, .rndv_stats = &self->stats, .eager_max = 2048, .now_max = 2048,
                             .frag = UINT32_MAX, .credit = 1 << 20, .credit_full = 1 << 20, .proc_id = {.rank = 1}};
    weft_list_init(&self->peer.waiting);
    weft_list_init(&self->peer.sendqs);
    weft_list_init(&self->peer.backlog);
    for (int i = 0; i < 3; i++)
        self->peers[i] = &self->peer;
    if (weft_rndv_pool_open(&self->worker) || weft_promises_open(&self->worker) || weft_group_range(0, 0, 1, 3, &self->group) ||
        (!made_rank_strided && (weft_type_vector(MADE_BYTES / 2, 1, 2, byte, &made_rank_strided) || weft_type_commit(made_rank_strided))))
        abort();
    self->chan = (weft_chan){.worker = &self->worker, .id = MADE_CHAN, .id_out = MADE_CHAN, .size = 3, .group = self->group,
                             .peers = self->peers, .is_connected = true};
    weft_match_open(&self->chan.match);
    self->slots[MADE_CHAN].chan = &self->chan;
    return self;
}

static void fragments_free(weft_list_link *list)
{
    weft_list_link *link;
    while ((link = weft_list_take(list)))
        weft_frag_free(weft_container(link, weft_frag, link));
}

static void chan_empty(weft_chan *chan)
{
    weft_list_link *all = &chan->match.unexpected_all;
    weft_stall_close(chan);
    while (!weft_list_is_empty(all)) {
        weft_unexpected *message = weft_container(all->next, weft_unexpected, all);
        weft_unexpected_remove(&chan->match, chan->worker, message);
        weft_unexpected_free(chan->worker, message);
    }
    weft_fifomap_close(&chan->match.posted);
    weft_fifomap_close(&chan->match.unexpected);
}

/* Messages and fragments that never end. */
static void rest_free(made_rank *self)
{
    for (size_t i = 0; i < weft_count(self->chan.subs); i++) {
        if (self->chan.subs[i])
            chan_empty(self->chan.subs[i]);
        free(self->chan.subs[i]);
    }
    chan_empty(&self->chan);
    if (self->peer.frags.unexpected)
        weft_unexpected_free(&self->worker, self->peer.frags.unexpected);
    fragments_free(&self->worker.fragments);
    for (int i = 0; i < 3; i++)
        if (self->reqs[i] && self->reqs[i]->has_rndv)
            fragments_free(&self->reqs[i]->rndv->exposed);
}

void made_rank_close(made_rank *self)
{
    rest_free(self);
    weft_promises_close(&self->worker);
    weft_rndv_pool_close(&self->worker);
    weft_fifomap_close(&self->worker.announced);
    weft_pool_close(self->worker.pool);
    weft_req_close(&self->worker);
    free(self->worker.failures);
    weft_group_drop(self->group);
    free(self);
}

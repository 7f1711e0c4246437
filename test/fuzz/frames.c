/* SPDX-License-Identifier: BSD-3-Clause
 *
 * frames: frames of another rank, as an iface hands them up (p2p/dispatch and the handlers of all kinds). The worker has posted receives and
 * sends under way; the iface accepts every frame and completes no get or put. The input: one byte, a set of requests; then frames, each a
 * header (24 bytes, its length cut to what follows) and a body.
 */
#include <setjmp.h>
#include <stdio.h>
#include <unistd.h>

#include "base/status.h"
#include "core/world.h"
#include "mem/pool.h"
#include "p2p/chan.h"
#include "p2p/dispatch.h"
#include "p2p/frag.h"
#include "p2p/p2p.h"
#include "p2p/promise.h"
#include "p2p/rndv.h"
#include "p2p/rndv_pool.h"
#include "p2p/rndv_select.h"
#include "p2p/stall.h"
#include "test/fuzz/fuzz.h"
#include "type/type.h"

enum { BYTES = 20000, FRAME_MAX = 4096, REQUESTS = 6, CHAN = 9 };

static jmp_buf refused;    /* the boot's abort */
static weft_type *strided; /* every second byte; lasts, as requests that never end hold it */

static void __attribute__((noreturn)) on_abort(weft_boot *boot, int code, const char *text)
{
    (void)boot, (void)code, (void)text;
    longjmp(refused, 1);
}

static int send_frame(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    static char body[FRAME_MAX];
    (void)iface, (void)ep;
    if (frame->hdr.bytes > sizeof body)
        abort();
    if (frame->pack)
        frame->pack(frame, body);
    else if (frame->hdr.bytes)
        memcpy(body, frame->body, frame->hdr.bytes);
    return 0;
}

/* A get or put is refused: the handlers copy instead. */
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

/* One rank of three; frames come from rank 1. */
typedef struct rank {
    weft_iface iface;
    weft_ep ep;
    weft_boot boot;
    weft_sleep_ops sleep_ops;
    weft_world world;
    weft_worker worker;
    weft_peer peer, *peers[3];
    weft_rndv_stats stats;
    weft_chan chan;
    weft_chan_slot slots[16];
    weft_group *group;
    weft_req *reqs[REQUESTS];
    char bufs[REQUESTS][2 * BYTES];
} rank;

static rank *rank_open(void)
{
    rank *self = aligned_alloc(WEFT_LINE, (sizeof(rank) + WEFT_LINE - 1) / WEFT_LINE * WEFT_LINE);
    const weft_type *byte = weft_type_of((void *)(uintptr_t)0x247); /* MPI_BYTE of the standard ABI */
    if (!self)
        abort();
    memset(self, 0, sizeof *self);
    self->iface = (weft_iface){.ops = &ops, .caps = {.get = true, .put = true, .frame_max = FRAME_MAX, .rma_max = UINT64_MAX / 2}};
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
    weft_fifomap_open(&self->worker.announced);
    self->peer = (weft_peer){.ep = &self->ep, .worker = &self->worker, .rndv_stats = &self->stats, .eager_max = 2048, .now_max = 2048,
                             .frag = UINT32_MAX, .credit = 1 << 20, .credit_full = 1 << 20, .proc_id = {.rank = 1}};
    weft_list_init(&self->peer.waiting);
    weft_list_init(&self->peer.sendqs);
    weft_list_init(&self->peer.backlog);
    for (int i = 0; i < 3; i++)
        self->peers[i] = &self->peer;
    if (weft_rndv_pool_open(&self->worker) || weft_promises_open(&self->worker) || weft_group_range(0, 0, 1, 3, &self->group) ||
        (!strided && (weft_type_vector(BYTES / 2, 1, 2, byte, &strided) || weft_type_commit(strided))))
        abort();
    self->chan = (weft_chan){.worker = &self->worker, .id = CHAN, .id_out = CHAN, .size = 3, .group = self->group, .peers = self->peers,
                             .is_connected = true};
    weft_match_open(&self->chan.match);
    self->slots[CHAN].chan = &self->chan;
    return self;
}

static void requests_start(rank *self, uint8_t set)
{
    const weft_type *byte = weft_type_of((void *)(uintptr_t)0x247);
    weft_chan *chan = &self->chan;
    if (set & 1)
        weft_irecv(chan, WEFT_ANY, WEFT_ANY_TAG, self->bufs[0], 500, byte, &self->reqs[0]);
    if (set & 2)
        weft_irecv(chan, 1, 7, self->bufs[1], BYTES, byte, &self->reqs[1]);
    if (set & 4)
        weft_irecv(chan, 1, 8, self->bufs[2], 1, strided, &self->reqs[2]);
    if (set & 8)
        weft_isend(chan, 1, 9, self->bufs[3], 100, byte, WEFT_SEND_SYNC, &self->reqs[3]);
    if (set & 16)
        weft_isend(chan, 1, 9, self->bufs[4], BYTES, byte, WEFT_SEND_STANDARD, &self->reqs[4]);
    if (set & 32)
        weft_isend(chan, 1, 9, self->bufs[5], 1, strided, WEFT_SEND_STANDARD, &self->reqs[5]);
}

static void frames_deliver(rank *self, fuzz_input *in)
{
    while (in->left) {
        weft_hdr hdr;
        size_t bytes;
        fuzz_take(in, &hdr, sizeof hdr);
        void *body = fuzz_take_copy(in, hdr.bytes < FRAME_MAX ? hdr.bytes : FRAME_MAX, &bytes);
        hdr.bytes = (uint32_t)bytes; /* as every iface makes sure */
        if (hdr.kind != WEFT_FRAME_BYE && !setjmp(refused)) /* BYE ends the peer: test/sim */
            weft_dispatch_frame(NULL, &self->peer, &hdr, body);
        else
            in->left = 0;
        free(body);
        weft_frag_pump(&self->worker);
    }
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
static void rest_free(rank *self)
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

static void rank_close(rank *self)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint8_t set;
    rank *self;

    fuzz_take(&in, &set, 1);
    self = rank_open();
    requests_start(self, set);
    frames_deliver(self, &in);
    rank_close(self);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * self: transport from a rank to itself. send copies the frame into a queue, poll delivers it; get, put and amo complete at once. Opened
 * by core for every worker.
 * Invariant: recv_frame is called from poll only and never within another recv_frame, as for other transports.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/list.h"
#include "base/macros.h"
#include "base/status.h"
#include "transport/iface.h"
#include "transport/inproc_shmem.h"
#include "transport/rkey_table.h"

/* Limits of the queue that poll empties; beyond either, send returns AGAIN. */
#define QUEUE_FRAMES 4096
#define QUEUE_BYTES (4u << 20)
#define FRAME_MAX (64u << 10)

typedef struct self_ep {
    weft_ep ep;
    uint32_t queued; /* frames and notifications not yet delivered */
} self_ep;

typedef struct self_event {
    weft_list_link link;
    self_ep *ep;
    uint32_t notify; /* not 0: a put's notification without a frame */
    weft_hdr hdr;
    _Alignas(8) uint8_t body[];
} self_event;

typedef struct self_iface {
    weft_iface iface;
    weft_proc_id proc_id;
    weft_list_link events;
    uint32_t event_count;
    uint64_t event_bytes;
    weft_rkey_table keys;
    weft_inproc_shmem blocks;
} self_iface;

static const char *self_unavailable(void)
{
    return NULL;
}

static int self_open(const weft_iface_params *params, weft_iface **iface)
{
    self_iface *self = calloc(1, sizeof *self);
    if (!self)
        return weft_fail(WEFT_E_NOMEM, "no memory for an iface of %zu bytes", sizeof *self);
    self->iface = (weft_iface){
        .ops = &weft_self_ops,
        .owner = params->owner,
        .callbacks = params->callbacks,
        .caps = {.frame_max = FRAME_MAX,
                 .chunk = FRAME_MAX,
                 .inline_max = 64,
                 .rma_max = UINT64_MAX / 2,
                 .rma_fragment = 256u << 10,
                 .latency_ns = 50,
                 .mbyte_per_s = 10000,
                 .key_bytes = WEFT_KEYRING_KEY_BYTES,
                 .get = true,
                 .put = true,
                 .notify = true,
                 .ordered = true,
                 .outlives_sender = true,
                 .may_rest = true,
                 .share = true,
                 .amo = WEFT_AMO_CPU},
    };
    self->iface.is_quiet = true;
    self->proc_id = params->self;
    weft_list_init(&self->events);
    weft_inproc_shmem_init(&self->blocks);
    weft_rkey_table_open(&self->keys, (uintptr_t)self);
    *iface = &self->iface;
    return 0;
}

static void self_close(weft_iface *iface)
{
    self_iface *self = (self_iface *)iface;
    weft_list_link *link;
    while ((link = weft_list_take(&self->events)))
        free(weft_container(link, self_event, link));
    weft_inproc_shmem_clear(&self->blocks);
    weft_rkey_table_close(&self->keys);
    free(self);
}

static int self_get_addr(weft_iface *iface, void *addr, size_t *bytes)
{
    self_iface *self = (self_iface *)iface;
    if (*bytes < sizeof self->proc_id)
        return weft_fail(WEFT_E_ARG, "an address has %zu bytes, the buffer %zu", sizeof self->proc_id, *bytes);
    memcpy(addr, &self->proc_id, sizeof self->proc_id);
    *bytes = sizeof self->proc_id;
    return 0;
}

/* proc_id identifies the peer; addr is not used and may be NULL. */
static int self_ep_open(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **ep)
{
    self_iface *self = (self_iface *)iface;
    (void)addr;
    (void)bytes;
    if (proc_id->job != self->proc_id.job || proc_id->rank != self->proc_id.rank || proc_id->worker != self->proc_id.worker)
        return weft_fail(WEFT_E_UNSUPPORTED, "self reaches rank %u only, not rank %u", self->proc_id.rank, proc_id->rank);
    self_ep *made = calloc(1, sizeof *made);
    if (!made)
        return weft_fail(WEFT_E_NOMEM, "no memory for an ep of %zu bytes", sizeof *made);
    made->ep = (weft_ep){.iface = iface, .peer = peer};
    *ep = &made->ep;
    return 0;
}

static int self_ep_close(weft_iface *iface, weft_ep *generic)
{
    self_ep *ep = (self_ep *)generic;
    (void)iface;
    if (ep->queued)
        return WEFT_AGAIN;
    free(ep);
    return 0;
}

static int self_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "self copies by the CPU: memory of a device cannot be mapped");
    return weft_rkey_table_add(&((self_iface *)iface)->keys, addr, bytes, rights, mr);
}

static int self_mr_dereg(weft_iface *iface, weft_mr *mr)
{
    return weft_rkey_table_remove(&((self_iface *)iface)->keys, mr);
}

static int self_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    return weft_inproc_shmem_share(&((self_iface *)iface)->blocks, bytes, shared);
}

static int self_unshare(weft_iface *iface, weft_shared *shared)
{
    return weft_inproc_shmem_unshare(&((self_iface *)iface)->blocks, shared);
}

/* Allocates an event with `bytes` of body. NULL: *rc is AGAIN or an error. */
static self_event *event_new(self_iface *self, self_ep *ep, uint32_t bytes, int *rc)
{
    *rc = WEFT_AGAIN;
    if (self->event_count >= QUEUE_FRAMES || self->event_bytes + bytes > QUEUE_BYTES)
        return NULL;
    self_event *event = malloc(sizeof *event + bytes);
    if (!event) {
        *rc = weft_fail(WEFT_E_NOMEM, "no memory to queue a frame of %u bytes", bytes);
        return NULL;
    }
    event->ep = ep;
    event->notify = 0;
    event->hdr.bytes = bytes;
    *rc = 0;
    return event;
}

static void event_queue(self_iface *self, self_event *event)
{
    self->iface.is_quiet = false;
    weft_list_append(&self->events, &event->link);
    self->event_count++;
    self->event_bytes += event->hdr.bytes;
    event->ep->queued++;
}

static int self_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    self_iface *self = (self_iface *)iface;
    uint32_t bytes = frame->hdr.bytes;
    int rc;
    if (bytes > FRAME_MAX)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", bytes, FRAME_MAX);
    self_event *event = event_new(self, (self_ep *)ep, bytes, &rc);
    if (!event)
        return rc;
    event->hdr = frame->hdr;
    if (frame->pack)
        frame->pack(frame, event->body);
    else if (bytes)
        memcpy(event->body, frame->body, bytes);
    event_queue(self, event);
    return 0;
}

static int self_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    (void)ep;
    int rc = weft_rkey_table_check(&((self_iface *)iface)->keys, rma->rkey, rma->remote, rma->bytes, WEFT_ACCESS_READ);
    if (rc)
        return rc;
    if (rma->bytes)
        memmove(rma->local, (const void *)(uintptr_t)rma->remote, rma->bytes);
    if (rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return 0;
}

static int self_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    self_iface *self = (self_iface *)iface;
    self_event *event = NULL;
    int rc = weft_rkey_table_check(&self->keys, rma->rkey, rma->remote, rma->bytes, WEFT_ACCESS_WRITE);
    if (rc)
        return rc;
    if (rma->notify && !(event = event_new(self, (self_ep *)ep, 0, &rc)))
        return rc;
    if (rma->bytes)
        memmove((void *)(uintptr_t)rma->remote, rma->local, rma->bytes);
    if (event) {
        event->notify = rma->notify;
        event_queue(self, event);
    }
    if (rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return 0;
}

static int self_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    self_iface *self = (self_iface *)iface;
    _Atomic uint64_t *word = (_Atomic uint64_t *)(uintptr_t)atomic->remote;
    uint64_t before;
    (void)ep;
    if (atomic->remote % sizeof(uint64_t))
        return weft_fail(WEFT_E_ARG, "an atomic on 0x%" PRIx64 ": the address must be a multiple of 8", atomic->remote);
    int rc = weft_rkey_table_check(&self->keys, atomic->rkey, atomic->remote, sizeof before, WEFT_ACCESS_ATOMIC);
    if (rc)
        return rc;
    switch (atomic->op) {
    case WEFT_AMO_ADD: before = atomic_fetch_add(word, atomic->operand); break;
    case WEFT_AMO_SWAP: before = atomic_exchange(word, atomic->operand); break;
    case WEFT_AMO_AND: before = atomic_fetch_and(word, atomic->operand); break;
    case WEFT_AMO_OR: before = atomic_fetch_or(word, atomic->operand); break;
    case WEFT_AMO_XOR: before = atomic_fetch_xor(word, atomic->operand); break;
    case WEFT_AMO_CAS:
        before = atomic->compare;
        atomic_compare_exchange_strong(word, &before, atomic->operand);
        break;
    default: return weft_fail(WEFT_E_UNSUPPORTED, "self does not support atomic operation %d", (int)atomic->op);
    }
    if (atomic->before)
        *atomic->before = before;
    if (atomic->done)
        iface->callbacks->done(iface->owner, atomic->done, 0);
    return 0;
}

static int self_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done)
{
    (void)ep;
    (void)remotely;
    if (done)
        iface->callbacks->done(iface->owner, done, 0);
    return 0;
}

static int self_poll(weft_iface *iface, int budget)
{
    self_iface *self = (self_iface *)iface;
    int events = 0;
    weft_list_link *link;
    while (events < budget && (link = weft_list_take(&self->events))) {
        self_event *event = weft_container(link, self_event, link);
        void *peer = event->ep->ep.peer;
        self->event_count--;
        self->event_bytes -= event->hdr.bytes;
        event->ep->queued--;
        if (event->notify)
            iface->callbacks->notify(iface->owner, peer, event->notify);
        else
            iface->callbacks->recv_frame(iface->owner, peer, &event->hdr, event->body);
        events += 1 + (event->notify ? 0 : WEFT_POLL_EXTRA(event->hdr.bytes));
        free(event);
    }
    iface->is_quiet = weft_list_is_empty(&self->events);
    return events;
}

/* No wakeup: only another thread of this worker can send here, and it ends the sleep itself (weft_sleep_ops.wake). */
static int self_arm(weft_iface *iface, weft_wakeup *wakeup)
{
    (void)iface;
    *wakeup = (weft_wakeup){.futex = NULL, .fd = -1};
    return 0;
}

static void self_disarm(weft_iface *iface)
{
    (void)iface;
}

static bool self_can_rma(weft_iface *iface, weft_ep *ep)
{
    (void)iface;
    (void)ep;
    return true;
}

const weft_iface_ops weft_self_ops = {
    .name = "self",
    .unavailable = self_unavailable,
    .describe = weft_describe_nothing,
    .open = self_open,
    .close = self_close,
    .get_addr = self_get_addr,
    .ep_open = self_ep_open,
    .ep_close = self_ep_close,
    .mr_reg = self_mr_reg,
    .mr_dereg = self_mr_dereg,
    .share = self_share,
    .unshare = self_unshare,
    .send = self_send,
    .can_rma = self_can_rma,
    .get = self_get,
    .put = self_put,
    .amo = self_amo,
    .flush = self_flush,
    .poll = self_poll,
    .arm = self_arm,
    .disarm = self_disarm,
};

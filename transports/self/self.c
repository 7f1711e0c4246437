/* SPDX-License-Identifier: BSD-3-Clause
 *
 * self: a rank to itself. send copies the frame into a queue, poll hands it up; get, put and amo act at once. Opened by core for
 * every worker. Invariant: arrive is only called from poll and never inside another arrive, so the engine above meets its own
 * messages exactly as it meets those of others.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/list.h"
#include "base/macros.h"
#include "base/status.h"
#include "transport/blocks.h"
#include "transport/iface.h"
#include "transport/keyring.h"

/* What may wait for poll: past either limit send answers AGAIN. */
#define QUEUE_FRAMES 4096
#define QUEUE_BYTES (4u << 20)
#define FRAME_MAX (64u << 10)

typedef struct self_ep {
    weft_ep ep;
    uint32_t queued; /* its frames and notifications that poll has not handed up */
} self_ep;

typedef struct self_event {
    weft_list_link link;
    self_ep *ep;
    uint32_t notify; /* not 0: a put's notification, and there is no frame */
    weft_hdr hdr;
    _Alignas(8) uint8_t body[];
} self_event;

typedef struct self_iface {
    weft_iface iface;
    weft_proc_id proc_id;
    weft_list_link events;
    uint32_t event_count;
    uint64_t event_bytes;
    weft_keyring keys;
    weft_blocks blocks;
} self_iface;

static const char *self_absent(void)
{
    return NULL;
}

static int self_open(const weft_iface_params *env, weft_iface **iface)
{
    self_iface *self = calloc(1, sizeof *self);
    if (!self)
        return weft_fail(WEFT_E_NOMEM, "no memory for a port of %zu bytes", sizeof *self);
    self->iface = (weft_iface){
        .ops = &weft_self_ops,
        .owner = env->owner,
        .up = env->up,
        .caps = {.frame_max = FRAME_MAX, .chunk = FRAME_MAX, .inline_max = 64, .move_max = UINT64_MAX / 2, .move_piece = 256u << 10, .latency_ns = 50,
                 .mbyte_per_s = 10000, .key_bytes = WEFT_KEYRING_KEY_BYTES, .get = true, .put = true, .notify = true,
                 .ordered = true, .lingers = true, .share = true, .amo = WEFT_AMO_CPU},
    };
    self->iface.is_quiet = true;
    self->proc_id = env->self;
    weft_list_init(&self->events);
    weft_blocks_init(&self->blocks);
    weft_keyring_open(&self->keys, (uintptr_t)self);
    *iface = &self->iface;
    return 0;
}

static void self_close(weft_iface *iface)
{
    self_iface *self = (self_iface *)iface;
    weft_list_link *link;
    while ((link = weft_list_take(&self->events)))
        free(weft_container(link, self_event, link));
    weft_blocks_clear(&self->blocks);
    weft_keyring_close(&self->keys);
    free(self);
}

static int self_get_addr(weft_iface *iface, void *addr, size_t *bytes)
{
    self_iface *self = (self_iface *)iface;
    if (*bytes < sizeof self->proc_id)
        return weft_fail(WEFT_E_ARG, "an address needs %zu bytes, there is room for %zu", sizeof self->proc_id, *bytes);
    memcpy(addr, &self->proc_id, sizeof self->proc_id);
    *bytes = sizeof self->proc_id;
    return 0;
}

/* The address tells nothing that the name does not: it may be NULL. */
static int self_reach(weft_iface *iface, const weft_proc_id *who, const void *addr, size_t bytes, void *peer, weft_ep **ep)
{
    self_iface *self = (self_iface *)iface;
    (void)addr;
    (void)bytes;
    if (who->job != self->proc_id.job || who->rank != self->proc_id.rank || who->worker != self->proc_id.worker)
        return weft_fail(WEFT_E_UNSUPPORTED, "self reaches rank %u only, not rank %u", self->proc_id.rank, who->rank);
    self_ep *made = calloc(1, sizeof *made);
    if (!made)
        return weft_fail(WEFT_E_NOMEM, "no memory for a path of %zu bytes", sizeof *made);
    made->ep = (weft_ep){.iface = iface, .peer = peer};
    *ep = &made->ep;
    return 0;
}

static int self_leave(weft_iface *iface, weft_ep *ep)
{
    self_ep *mine = (self_ep *)ep;
    (void)iface;
    if (mine->queued)
        return WEFT_AGAIN;
    free(mine);
    return 0;
}

static int self_map(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_region *region)
{
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "self copies by the CPU: memory of a device cannot be mapped");
    return weft_keyring_add(&((self_iface *)iface)->keys, addr, bytes, rights, region);
}

static int self_unmap(weft_iface *iface, weft_region *region)
{
    return weft_keyring_remove(&((self_iface *)iface)->keys, region);
}

static int self_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    return weft_blocks_share(&((self_iface *)iface)->blocks, bytes, shared);
}

static int self_unshare(weft_iface *iface, weft_shared *shared)
{
    return weft_blocks_unshare(&((self_iface *)iface)->blocks, shared);
}

/* Queues an event with room for `bytes` of body; NULL means AGAIN or, when *rc says so, an error. */
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
    if (frame->fill)
        frame->fill(frame, event->body);
    else if (bytes)
        memcpy(event->body, frame->body, bytes);
    event_queue(self, event);
    return 0;
}

static int self_get(weft_iface *iface, weft_ep *ep, const weft_move *move)
{
    (void)ep;
    int rc = weft_keyring_check(&((self_iface *)iface)->keys, move->key, move->remote, move->bytes, WEFT_RIGHT_READ);
    if (rc)
        return rc;
    if (move->bytes)
        memmove(move->local, (const void *)(uintptr_t)move->remote, move->bytes);
    if (move->done)
        iface->up->done(iface->owner, move->done, 0);
    return 0;
}

static int self_put(weft_iface *iface, weft_ep *ep, const weft_move *move)
{
    self_iface *self = (self_iface *)iface;
    self_event *event = NULL;
    int rc = weft_keyring_check(&self->keys, move->key, move->remote, move->bytes, WEFT_RIGHT_WRITE);
    if (rc)
        return rc;
    if (move->notify && !(event = event_new(self, (self_ep *)ep, 0, &rc)))
        return rc;
    if (move->bytes)
        memmove((void *)(uintptr_t)move->remote, move->local, move->bytes);
    if (event) {
        event->notify = move->notify;
        event_queue(self, event);
    }
    if (move->done)
        iface->up->done(iface->owner, move->done, 0);
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
    int rc = weft_keyring_check(&self->keys, atomic->key, atomic->remote, sizeof before, WEFT_RIGHT_ATOMIC);
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
    default: return weft_fail(WEFT_E_UNSUPPORTED, "self has no atomic operation number %d", (int)atomic->op);
    }
    if (atomic->before)
        *atomic->before = before;
    if (atomic->done)
        iface->up->done(iface->owner, atomic->done, 0);
    return 0;
}

static int self_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done)
{
    (void)ep;
    (void)remotely;
    if (done)
        iface->up->done(iface->owner, done, 0);
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
            iface->up->notified(iface->owner, peer, event->notify);
        else
            iface->up->arrive(iface->owner, peer, &event->hdr, event->body);
        events += 1 + (event->notify ? 0 : WEFT_POLL_EXTRA(event->hdr.bytes));
        free(event);
    }
    iface->is_quiet = weft_list_is_empty(&self->events);
    return events;
}

/* No wakeup: only another thread of this worker can bring news here, and it ends the sleep of the others itself (weft_sleep_ops.wake). */
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

static bool self_can_move(weft_iface *iface, weft_ep *ep)
{
    (void)iface;
    (void)ep;
    return true;
}

const weft_iface_ops weft_self_ops = {
    .name = "self",
    .absent = self_absent,
    .tell = weft_tell_nothing,
    .open = self_open,
    .close = self_close,
    .get_addr = self_get_addr,
    .reach = self_reach,
    .leave = self_leave,
    .map = self_map,
    .unmap = self_unmap,
    .share = self_share,
    .unshare = self_unshare,
    .send = self_send,
    .can_move = self_can_move,
    .get = self_get,
    .put = self_put,
    .amo = self_amo,
    .flush = self_flush,
    .poll = self_poll,
    .arm = self_arm,
    .disarm = self_disarm,
};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coalesce: gathers frames of a burst to one peer into one message, as over TCP a message costs a system call, far more than copying a
 * short frame. The first frames to a peer between two polls are sent at once; later ones are held in a slot until it is full, something
 * else is sent to the peer, or the next poll. A thread, the flusher, serves programs that compute after a burst: every CHECK_NS it sends
 * what it saw at its last check. Each burst that the flusher had to send raises direct_max; many bursts followed by a poll lower it.
 * Only the owner begins and drops bundles. The owner changes them and the flusher reads and sends them under flusher.lock; the provider
 * is opened for several threads (provider_select.c).
 */
#include <signal.h>
#include <time.h>

#include "base/log.h"
#include "base/macros.h"
#include "transports/ofi/ofi.h"

#define DIRECT_MIN 2u  /* minimum and maximum of direct_max */
#define DIRECT_MAX 65536u
#define PROMPT_BURSTS_MAX 64u         /* consecutive bursts followed soon by a poll that halve direct_max */
#define SOON_NS 100000u
#define CHECK_NS 500000     /* interval of the flusher's checks */
#define IDLE_CHECKS 32u     /* checks without a new bundle after which the flusher waits for one */
#define FLUSHER_STACK (256u << 10)

static ssize_t send_it(ofi_iface *iface, const ofi_coalesce *bundle)
{
    return fi_send(iface->ep, bundle->slot->place, bundle->bytes, iface->arena_desc, bundle->to, &bundle->slot->work);
}

/* -- flusher; requires flusher.lock -- */

/* Sends the bundles that existed at the last check. Those that the provider refuses stay. */
static void send_left(ofi_iface *iface, uint32_t seen)
{
    for (weft_list_link *link = iface->coalescing.next; link != &iface->coalescing; link = link->next) {
        ofi_coalesce *bundle = weft_container(link, ofi_coalesce, link);
        if (!bundle->was_sent && (int32_t)(bundle->number - seen) <= 0)
            bundle->was_sent = send_it(iface, bundle) == 0;
    }
}

static void *work(void *arg)
{
    ofi_iface *iface = arg;
    ofi_flusher *flusher = &iface->flusher;
    const struct timespec nap = {.tv_nsec = CHECK_NS};
    uint32_t seen = 0, idle = 0;
    pthread_setname_np(pthread_self(), "weft-flusher");
    pthread_mutex_lock(&flusher->lock);
    while (!flusher->is_closing) {
        send_left(iface, seen);
        idle = flusher->number == seen && weft_list_is_empty(&iface->coalescing) ? idle + 1 : 0;
        seen = flusher->number;
        if (idle < IDLE_CHECKS) {
            pthread_mutex_unlock(&flusher->lock);
            nanosleep(&nap, NULL);
            pthread_mutex_lock(&flusher->lock);
            continue;
        }
        flusher->is_asleep = true;
        pthread_cond_wait(&flusher->wake, &flusher->lock);
        flusher->is_asleep = false;
        idle = 0;
    }
    pthread_mutex_unlock(&flusher->lock);
    return NULL;
}

static bool has_flusher(ofi_iface *iface)
{
    ofi_flusher *flusher = &iface->flusher;
    sigset_t all, before;
    pthread_attr_t how;
    int rc;
    if (flusher->is_running || flusher->has_failed)
        return flusher->is_running;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, FLUSHER_STACK);
    sigfillset(&all); /* the thread must not handle the program's signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&flusher->thread, &how, work, iface);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    flusher->is_running = rc == 0;
    flusher->has_failed = rc != 0;
    if (rc)
        weft_log_info("no thread to send coalesced frames (%d): short frames are sent one by one", rc);
    return flusher->is_running;
}

void ofi_coalesce_open(ofi_iface *iface)
{
    iface->flusher = (ofi_flusher){.direct_max = DIRECT_MIN};
    weft_list_init(&iface->coalescing);
    pthread_mutex_init(&iface->flusher.lock, NULL);
    pthread_cond_init(&iface->flusher.wake, NULL);
}

void ofi_coalesce_close(ofi_iface *iface)
{
    ofi_flusher *flusher = &iface->flusher;
    if (flusher->is_running) {
        pthread_mutex_lock(&flusher->lock);
        flusher->is_closing = true;
        pthread_cond_signal(&flusher->wake);
        pthread_mutex_unlock(&flusher->lock);
        pthread_join(flusher->thread, NULL);
    }
    pthread_cond_destroy(&flusher->wake);
    pthread_mutex_destroy(&flusher->lock);
}

/* -- owner; requires flusher.lock -- */

static void dequeue(ofi_ep *ep)
{
    weft_list_remove(&ep->coalesce.link);
    ep->coalesce.slot = NULL;
    ep->coalesce.was_sent = false;
}

static void settle(ofi_iface *iface, ofi_ep *ep)
{
    if (!ep->coalesce.was_sent)
        return;
    iface->flusher.was_needed = true;
    dequeue(ep);
}

/* Adapts direct_max to the time between a burst and this poll. */
static void adapt_direct_max(ofi_flusher *flusher, bool is_soon)
{
    flusher->prompt_bursts = is_soon ? flusher->prompt_bursts + 1 : 0;
    if (flusher->was_needed && flusher->direct_max < DIRECT_MAX)
        flusher->direct_max *= 4;
    if (flusher->prompt_bursts < PROMPT_BURSTS_MAX || flusher->direct_max == DIRECT_MIN)
        return;
    flusher->direct_max /= 2;
    flusher->prompt_bursts = 0;
}

/* Sends the held frames of an ep. True: none is held any more. */
static bool is_out(ofi_iface *iface, ofi_ep *ep)
{
    ssize_t rc;
    settle(iface, ep);
    if (!ep->coalesce.slot)
        return true;
    if (ep->peer_closed) { /* the peer has closed: it needs no frames */
        ofi_slot_done(iface, ep->coalesce.slot);
        dequeue(ep);
        return true;
    }
    if (ep->state != OFI_OPEN)
        return false;
    ep->coalesce.to = ep->candidates[ep->candidate].to; /* the candidate may have changed */
    rc = send_it(iface, &ep->coalesce);
    if (rc == 0) {
        dequeue(ep);
        return true;
    }
    ep->is_blocked = true;
    ofi_refused(iface, ep, rc);
    return false;
}

/* false: no slot is free. */
static bool begin(ofi_iface *iface, ofi_ep *ep)
{
    ofi_coalesce *bundle = &ep->coalesce;
    bundle->slot = ofi_flow_slot(iface, ep);
    if (!bundle->slot)
        return false;
    bundle->to = ep->candidates[ep->candidate].to;
    bundle->bytes = bundle->frames = 0;
    bundle->number = ++iface->flusher.number;
    weft_list_append(&iface->coalescing, &bundle->link);
    iface->counts[OFI_COUNT_COALESCED_MESSAGES]++;
    if (iface->flusher.is_asleep)
        pthread_cond_signal(&iface->flusher.wake);
    return true;
}

static void put(ofi_iface *iface, ofi_ep *ep, const weft_frame *frame, size_t bytes)
{
    ofi_flow_fill(iface, ep, (ofi_framed *)(ep->coalesce.slot->place + ep->coalesce.bytes), frame);
    ep->coalesce.bytes += (uint32_t)bytes;
    ep->coalesce.frames++;
    ep->sent++;
    ofi_keep(iface, ep, ep->coalesce.slot, ep->sent, bytes);
    ep->is_blocked = false;
    iface->counts[OFI_COUNT_SENT]++;
    iface->counts[OFI_COUNT_COALESCED_FRAMES]++;
}

/* -- owner -- */

/* True if the frame is held: one of many to the same peer since the last poll, or with frame.more. Within poll no flusher is needed: poll
 * flushes at its end. */
static bool is_of_a_burst(ofi_iface *iface, ofi_ep *ep, const weft_frame *frame)
{
    ofi_coalesce *bundle = &ep->coalesce;
    bundle->burst = bundle->burst_poll == iface->polls ? bundle->burst + 1 : 1;
    bundle->burst_poll = iface->polls;
    if (frame->more || bundle->burst <= DIRECT_MIN)
        return frame->more;
    if (bundle->burst > iface->flusher.direct_max && (iface->is_polling || has_flusher(iface)))
        return iface->flusher.has_coalesced = true;
    iface->flusher.burst_ns = iface->now_ns();
    return false;
}

enum ofi_is_coalescing ofi_coalesce_has(ofi_iface *iface, ofi_ep *ep, const weft_frame *frame, size_t bytes)
{
    ofi_coalesce *bundle = &ep->coalesce;
    bool joins = iface->coalesces && bytes <= OFI_COALESCE_FRAME && is_of_a_burst(iface, ep, frame);
    enum ofi_is_coalescing result = OFI_ALONE;
    if (!bundle->slot && !joins)
        return OFI_ALONE;
    pthread_mutex_lock(&iface->flusher.lock);
    if (bundle->slot && (!joins || bundle->was_sent || bundle->bytes + bytes > iface->message_max) && !is_out(iface, ep))
        result = OFI_BLOCKED;
    else if (joins && (bundle->slot || begin(iface, ep)))
        result = OFI_COALESCED;
    if (result == OFI_COALESCED)
        put(iface, ep, frame, bytes);
    pthread_mutex_unlock(&iface->flusher.lock);
    return result;
}

bool ofi_coalesce_flush_ep(ofi_iface *iface, ofi_ep *ep)
{
    bool out;
    if (!ep->coalesce.slot)
        return true;
    pthread_mutex_lock(&iface->flusher.lock);
    out = is_out(iface, ep);
    pthread_mutex_unlock(&iface->flusher.lock);
    return out;
}

static void end_bursts(ofi_iface *iface)
{
    ofi_flusher *flusher = &iface->flusher;
    if (!flusher->burst_ns && !flusher->has_coalesced)
        return;
    adapt_direct_max(flusher, !flusher->was_needed && (flusher->has_coalesced || iface->now_ns() - flusher->burst_ns < SOON_NS));
    flusher->burst_ns = 0;
    flusher->was_needed = flusher->has_coalesced = false;
}

void ofi_coalesce_flush(ofi_iface *iface)
{
    if (weft_list_is_empty(&iface->coalescing)) {
        end_bursts(iface);
        return;
    }
    pthread_mutex_lock(&iface->flusher.lock);
    for (weft_list_link *link = iface->coalescing.next, *next; link != &iface->coalescing; link = next) {
        next = link->next;
        is_out(iface, weft_container(link, ofi_ep, coalesce.link));
    }
    end_bursts(iface);
    pthread_mutex_unlock(&iface->flusher.lock);
}

uint32_t ofi_coalesce_frames(ofi_iface *iface, ofi_ep *ep)
{
    uint32_t frames;
    if (!ep->coalesce.slot)
        return 0;
    pthread_mutex_lock(&iface->flusher.lock);
    settle(iface, ep);
    frames = ep->coalesce.slot ? ep->coalesce.frames : 0;
    pthread_mutex_unlock(&iface->flusher.lock);
    return frames;
}

void ofi_coalesce_drop(ofi_iface *iface, ofi_ep *ep)
{
    if (!ep->coalesce.slot)
        return;
    pthread_mutex_lock(&iface->flusher.lock);
    settle(iface, ep);
    if (ep->coalesce.slot) {
        ofi_slot_done(iface, ep->coalesce.slot);
        dequeue(ep);
    }
    pthread_mutex_unlock(&iface->flusher.lock);
}

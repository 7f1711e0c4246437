/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mutant: see mutant.h. `sound` is the healthy table that the faulty calls fall back on.
 */
#include "test/contract/mutant.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "test/contract/rig.h"

static const mutant *chosen;
static const weft_iface_ops *sound;
static const weft_iface_callbacks *sound_up;
static weft_iface_ops sick;
static weft_iface_callbacks sick_up;
static unsigned count;
static weft_frame held;      /* a frame kept back, */
static uint8_t held_body[65536]; /* its body, */
static weft_ep *held_ep;     /* and where it goes; NULL: none */

static bool every(unsigned n)
{
    return ++count % n == 0;
}

static int send_drop(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    return every(23) ? 0 : sound->send(iface, ep, frame);
}

static int send_twice(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    int rc = sound->send(iface, ep, frame);
    if (rc == 0 && every(23))
        sound->send(iface, ep, frame);
    return rc;
}

static int send_held(weft_iface *iface)
{
    weft_ep *ep = held_ep;
    held_ep = NULL;
    return ep ? sound->send(iface, ep, &held) : 0;
}

static void hold(weft_ep *ep, const weft_frame *frame)
{
    held = *frame;
    if (frame->pack)
        frame->pack(frame, held_body);
    else
        memcpy(held_body, frame->body, frame->hdr.bytes);
    held.body = held_body;
    held.pack = NULL;
    held_ep = ep;
}

/* The next frame overtakes this one. */
static int send_swapped(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    if (!held_ep && every(23)) {
        hold(ep, frame);
        return 0;
    }
    int rc = sound->send(iface, ep, frame);
    if (rc == 0 && held_ep == ep)
        send_held(iface);
    return rc;
}

/* The body is read after return. */
static int send_late(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    if (held_ep || frame->pack || !frame->hdr.bytes)
        return sound->send(iface, ep, frame);
    held = *frame;
    held_ep = ep;
    return 0;
}

static int poll_held(weft_iface *iface, int budget)
{
    static uint8_t stale[65536];
    if (held_ep && held_ep->iface == iface) {
        held.body = stale; /* a freed buffer's contents are undefined */
        send_held(iface);
    }
    return sound->poll(iface, budget);
}

static int send_corrupt(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    if (frame->hdr.bytes < 9 || !every(23))
        return sound->send(iface, ep, frame);
    hold(ep, frame);
    held_body[frame->hdr.bytes - 1] ^= 4;
    return send_held(iface);
}

static int send_short(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    weft_frame other = *frame;
    if (other.hdr.bytes == iface->caps.frame_max)
        other.hdr.bytes--;
    return sound->send(iface, ep, &other);
}

static int send_other_hdr(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    weft_frame other = *frame;
    other.hdr.credits = 0;
    return sound->send(iface, ep, &other);
}

static int send_again_lies(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    int rc = sound->send(iface, ep, frame);
    return rc == 0 && every(23) ? WEFT_AGAIN : rc;
}

static int send_never_full(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    int rc = sound->send(iface, ep, frame);
    return rc == WEFT_AGAIN ? 0 : rc;
}

/* A shortcut: delivered inside send. */
static int send_at_once(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    static uint8_t body[65536];
    if (frame->pack)
        frame->pack(frame, body);
    else if (frame->hdr.bytes)
        memcpy(body, frame->body, frame->hdr.bytes);
    iface->callbacks->recv_frame(iface->owner, ep->peer, &frame->hdr, body);
    return 0;
}

static int poll_greedy(weft_iface *iface, int budget)
{
    return sound->poll(iface, budget * 4);
}

static int poll_silent(weft_iface *iface, int budget)
{
    sound->poll(iface, budget);
    return 0;
}

static int poll_boasts(weft_iface *iface, int budget)
{
    int n = sound->poll(iface, budget);
    return n ? n : 1;
}

static void arrive_wrong_peer(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    sound_up->recv_frame(owner, (char *)peer + 1, hdr, body);
}

static void arrive_unaligned(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    static uint64_t place[65536 / 8 + 2];
    memcpy((char *)place + 1, body, hdr->bytes);
    sound_up->recv_frame(owner, peer, hdr, (char *)place + 1);
}

static void *greet_twice(void *owner, const weft_proc_id *proc_id)
{
    void *peer = sound_up->accept_peer(owner, proc_id);
    sound_up->accept_peer(owner, proc_id);
    return peer;
}

static void lost_twice(void *owner, void *peer, int rc)
{
    sound_up->peer_failed(owner, peer, rc);
    sound_up->peer_failed(owner, peer, rc);
}

static void lost_never(void *owner, void *peer, int rc)
{
    (void)owner;
    (void)peer;
    (void)rc;
}

static void done_twice(void *owner, void *done, int rc)
{
    sound_up->done(owner, done, rc);
    sound_up->done(owner, done, rc);
}

static void done_never(void *owner, void *done, int rc)
{
    (void)owner;
    (void)done;
    (void)rc;
}

static void done_well(void *owner, void *done, int rc)
{
    (void)rc;
    sound_up->done(owner, done, 0);
}

static int move_short(weft_iface *iface, weft_ep *ep, const weft_rma *rma, bool is_get)
{
    weft_rma other = *rma;
    other.bytes -= other.bytes > 60;
    return is_get ? sound->get(iface, ep, &other) : sound->put(iface, ep, &other);
}

static int get_short(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    return move_short(iface, ep, rma, true);
}

static int put_short(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    return move_short(iface, ep, rma, false);
}

static int put_long(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    if (rma->bytes == 7)
        *(uint8_t *)(uintptr_t)(rma->remote + 7) = 1;
    return sound->put(iface, ep, rma);
}

static int put_unchecked(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    (void)ep;
    if (rma->remote % 64 != 63) /* not the one before the memory's begin: that would break malloc */
        memcpy((void *)(uintptr_t)rma->remote, rma->local, rma->bytes);
    if (rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return 0;
}

static int put_early(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    weft_rma quiet = *rma;
    quiet.done = NULL;
    int rc = sound->put(iface, ep, &quiet);
    if (rc == 0 && rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return rc;
}

/* The notification overtakes the data. */
static int put_notifies_early(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    weft_rma only = *rma;
    uint64_t none = 0;
    if (!rma->notify)
        return sound->put(iface, ep, rma);
    only.local = &none;
    only.bytes = 0;
    only.done = NULL;
    int rc = sound->put(iface, ep, &only);
    if (rc)
        return rc;
    only = *rma;
    only.notify = 0;
    for (int i = 0; i < 1000; i++)
        sound->poll(((rig_side *)iface->owner)->other->iface, 16);
    return sound->put(iface, ep, &only);
}

static int put_notifies_unordered(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    weft_rma only = *rma;
    only.notify_after_all = !only.bytes;
    return sound->put(iface, ep, &only);
}

static int amo_always_swaps(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    weft_atomic other = *atomic;
    if (other.op == WEFT_AMO_CAS)
        other.op = WEFT_AMO_SWAP;
    return sound->amo(iface, ep, &other);
}

static int amo_torn(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    uint64_t *word = (uint64_t *)(uintptr_t)atomic->remote;
    if (atomic->op != WEFT_AMO_ADD || atomic->remote % 8 || atomic->operand < 1000)
        return sound->amo(iface, ep, atomic);
    uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    usleep(20); /* lets other threads run, also on one CPU */
    __atomic_store_n(word, before + atomic->operand, __ATOMIC_RELAXED);
    *atomic->before = before;
    iface->callbacks->done(iface->owner, atomic->done, 0);
    return 0;
}

static int amo_self_by_cpu(weft_iface *iface, const weft_atomic *atomics, uint32_t count)
{
    (void)iface;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t *word = (uint64_t *)(uintptr_t)atomics[i].remote;
        if (atomics[i].op != WEFT_AMO_ADD || atomics[i].remote % 8 || atomics[i].before)
            return sound->amo_self(iface, atomics, count);
        __atomic_fetch_add(word, atomics[i].operand, __ATOMIC_RELAXED);
    }
    return 0;
}

static int flush_early(weft_iface *iface, weft_ep *ep, bool remotely, void *done)
{
    (void)ep;
    (void)remotely;
    iface->callbacks->done(iface->owner, done, 0);
    return 0;
}

static int arm_deaf(weft_iface *iface, weft_wakeup *wakeup)
{
    int rc = sound->arm(iface, wakeup);
    sound->disarm(iface);
    return rc;
}

static void disarm_nothing(weft_iface *iface)
{
    (void)iface;
}

static int share_alone(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    shared->handle = 0;
    return sound->share(iface, bytes, shared);
}

static int dereg_does_nothing(weft_iface *iface, weft_mr *mr)
{
    (void)iface;
    (void)mr;
    return 0;
}

static int reg_anything(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind,
                        weft_mr *mr)
{
    (void)kind;
    return sound->mr_reg(iface, addr, bytes, rights, WEFT_MEMORY_HOST, mr);
}

static int addr_overflows(weft_iface *iface, void *addr, size_t *bytes)
{
    char copy[WEFT_ADDR_MAX];
    size_t room = sizeof copy;
    int rc = sound->get_addr(iface, copy, &room);
    memcpy(addr, copy, room < *bytes ? room : *bytes);
    *bytes = room;
    return rc;
}

static int close_never(weft_iface *iface, weft_ep *ep)
{
    (void)iface;
    (void)ep;
    return WEFT_AGAIN;
}

static int close_reports_failure(weft_iface *iface, weft_ep *ep)
{
    iface->callbacks->peer_failed(iface->owner, ep->peer, WEFT_E_PEER);
    return sound->ep_close(iface, ep);
}

/* A local registration that does not cover the RMA is used. */
static int move_uncovered(weft_iface *iface, weft_ep *ep, const weft_rma *rma, bool is_get)
{
    const weft_mr *mr = rma->mr;
    bool covers = mr && (char *)rma->local >= (char *)mr->addr &&
                  (char *)rma->local + rma->bytes <= (char *)mr->addr + mr->bytes;
    if (covers)
        return is_get ? sound->get(iface, ep, rma) : sound->put(iface, ep, rma);
    if (is_get)
        memcpy(rma->local, (void *)(uintptr_t)rma->remote, rma->bytes);
    else
        memcpy((void *)(uintptr_t)rma->remote, rma->local, rma->bytes);
    if (rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return 0;
}

static int get_uncovered(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    return move_uncovered(iface, ep, rma, true);
}

static int put_uncovered(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    return move_uncovered(iface, ep, rma, false);
}

/* Returns AGAIN and performs it: a retry performs it twice. */
static int put_again_lies(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    int rc = sound->put(iface, ep, rma);
    return rc == 0 && every(7) ? WEFT_AGAIN : rc;
}

/* Done before the bytes are there. */
static int get_early(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    weft_rma quiet = *rma;
    quiet.done = NULL;
    int rc = sound->get(iface, ep, &quiet);
    if (rc == 0 && rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return rc;
}

static int arm_timeless(weft_iface *iface, weft_wakeup *wakeup)
{
    int rc = sound->arm(iface, wakeup);
    wakeup->within_ns = 0;
    return rc;
}

static int arm_never(weft_iface *iface, weft_wakeup *wakeup)
{
    (void)iface;
    (void)wakeup;
    return WEFT_AGAIN;
}

#define PLANT(name, ...)                                                        \
    static void plant_##name(weft_iface_ops *ops, weft_iface_callbacks *callbacks)                   \
    {                                                                           \
        (void)ops;                                                              \
        (void)callbacks;                                                               \
        __VA_ARGS__;                                                            \
    }
PLANT(drop, ops->send = send_drop)
PLANT(twice, ops->send = send_twice)
PLANT(swapped, ops->send = send_swapped)
PLANT(late, ops->send = send_late; ops->poll = poll_held)
PLANT(corrupt, ops->send = send_corrupt)
PLANT(cut, ops->send = send_short)
PLANT(head, ops->send = send_other_hdr)
PLANT(again_lies, ops->send = send_again_lies)
PLANT(never_full, ops->send = send_never_full)
PLANT(at_once, ops->send = send_at_once)
PLANT(greedy, ops->poll = poll_greedy)
PLANT(silent, ops->poll = poll_silent)
PLANT(boasts, ops->poll = poll_boasts)
PLANT(wrong_peer, callbacks->recv_frame = arrive_wrong_peer)
PLANT(unaligned, callbacks->recv_frame = arrive_unaligned)
PLANT(greets, callbacks->accept_peer = greet_twice)
PLANT(lost_2, callbacks->peer_failed = lost_twice)
PLANT(lost_0, callbacks->peer_failed = lost_never)
PLANT(done_2, callbacks->done = done_twice)
PLANT(done_0, callbacks->done = done_never)
PLANT(done_ok, callbacks->done = done_well)
PLANT(get_cut, ops->get = get_short)
PLANT(put_cut, ops->put = put_short)
PLANT(put_over, ops->put = put_long)
PLANT(keyless, ops->put = put_unchecked)
PLANT(early, ops->put = put_early)
PLANT(notice, ops->put = put_notifies_early)
PLANT(unordered, ops->put = put_notifies_unordered)
PLANT(cas, ops->amo = amo_always_swaps)
PLANT(torn, ops->amo = amo_torn)
PLANT(by_cpu, ops->amo_self = amo_self_by_cpu)
PLANT(flush, ops->flush = flush_early)
PLANT(deaf, ops->arm = arm_deaf; ops->disarm = disarm_nothing)
PLANT(alone, ops->share = share_alone)
PLANT(forgets, ops->mr_dereg = dereg_does_nothing)
PLANT(any_memory, ops->mr_reg = reg_anything)
PLANT(addr, ops->get_addr = addr_overflows)
PLANT(stays, ops->ep_close = close_never)
PLANT(loud, ops->ep_close = close_reports_failure)
PLANT(uncovered, ops->get = get_uncovered; ops->put = put_uncovered)
PLANT(put_lies, ops->put = put_again_lies)
PLANT(get_early, ops->get = get_early)
PLANT(timeless, ops->arm = arm_timeless)
PLANT(unarmed, ops->arm = arm_never; ops->disarm = disarm_nothing)

/* Copies a zcopy body and never calls done. */
static int send_keeps(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    weft_frame copied = *frame;
    int rc;
    copied.zcopy_ctx = NULL;
    rc = sound->send(iface, ep, &copied);
    return rc == 0 && frame->zcopy_ctx && frame->hdr.bytes >= iface->caps.zcopy_min ? WEFT_INPROGRESS : rc;
}

/* Calls done within send, then returns INPROGRESS. */
static int send_holds_no_more(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    int rc = sound->send(iface, ep, frame);
    if (rc == WEFT_INPROGRESS)
        iface->callbacks->done(iface->owner, frame->zcopy_ctx, 0);
    return rc;
}
PLANT(keeps, ops->send = send_keeps)
PLANT(holds_no_more, ops->send = send_holds_no_more)

const mutant mutants[] = {
    {"drops a frame", plant_drop, false, false, NULL},
    {"sends twice", plant_twice, false, false, NULL},
    {"swaps two frames", plant_swapped, false, false, NULL},
    {"reads bodies late", plant_late, false, false, NULL},
    {"corrupts a body", plant_corrupt, false, false, NULL},
    {"cuts the longest", plant_cut, false, false, NULL},
    {"changes the header", plant_head, false, false, NULL},
    {"AGAIN yet sent", plant_again_lies, false, false, NULL},
    {"never full", plant_never_full, false, false, NULL},
    {"delivers in send", plant_at_once, true, false, NULL},
    {"ignores the budget", plant_greedy, false, false, NULL},
    {"counts no events", plant_silent, false, false, NULL},
    {"counts an event too many", plant_boasts, false, false, NULL},
    {"wrong cookie", plant_wrong_peer, false, false, NULL},
    {"unaligned body", plant_unaligned, false, false, NULL},
    {"accepts a peer twice", plant_greets, false, true, NULL},
    {"reports a failed peer twice", plant_lost_2, false, true, NULL},
    {"never reports a failed peer", plant_lost_0, false, true, NULL},
    {"done twice", plant_done_2, false, false, NULL},
    {"done never", plant_done_0, false, false, NULL},
    {"done hides errors", plant_done_ok, false, true, NULL},
    {"short get", plant_get_cut, false, false, NULL},
    {"short put", plant_put_cut, false, false, NULL},
    {"put writes beyond", plant_put_over, false, false, NULL},
    {"keys unchecked", plant_keyless, false, false, NULL},
    {"put done early", plant_early, false, true, NULL},
    {"notified early", plant_notice, false, false, NULL},
    {"notified after its own put only", plant_unordered, false, false, "sim shuffled 7"},
    {"cas always swaps", plant_cas, false, false, NULL},
    {"amo not atomic", plant_torn, false, false, NULL},
    {"own amo not atomic with others", plant_by_cpu, false, false, "sim holding 29"},
    {"flush done early", plant_flush, false, true, NULL},
    {"wakeup is never raised", plant_deaf, false, true, NULL},
    {"shared memory is private", plant_alone, false, false, NULL},
    {"mr_dereg does nothing", plant_forgets, false, false, NULL},
    {"maps any kind", plant_any_memory, false, false, NULL},
    {"addr too long", plant_addr, false, false, NULL},
    {"never closes", plant_stays, false, true, NULL},
    {"close reports a failure", plant_loud, false, false, NULL},
    {"AGAIN yet moved", plant_put_lies, false, false, NULL},
    {"get done early", plant_get_early, false, true, NULL},
    {"arm refuses for ever", plant_unarmed, false, false, NULL},
    {"local region unchecked", plant_uncovered, false, false, "sim pinning 20"},
    {"never done for zcopy", plant_keeps, false, false, "sim holding 29"},
    {"done twice for zcopy", plant_holds_no_more, false, false, "sim holding 29"},
    {"forgets its timer", plant_timeless, false, false, "sim ticking 26"},
    {NULL, NULL, false, false, NULL},
};

void mutant_reset(void)
{
    count = 0;
    held_ep = NULL;
}

static void patch(weft_iface *iface)
{
    sound = iface->ops;
    sound_up = iface->callbacks;
    sick = *iface->ops;
    sick_up = *iface->callbacks;
    chosen->plant(&sick, &sick_up);
    iface->ops = &sick;
    iface->callbacks = &sick_up;
}

void mutant_choose(const mutant *what)
{
    chosen = what;
    rig_patch = what ? patch : NULL;
    mutant_reset();
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * null_iface: the null object of the transport contract. A peer that was lost has weft_null_ep, so that nobody above asks "is it
 * alive?" before each call: every call answers WEFT_E_PEER. Nothing here has state: any thread and any worker may use it at once.
 */
#include "transport/iface.h"

#include "base/status.h"

/* The cause was told when the peer was lost; this is for the calls that come after. */
static int dead(void)
{
    return weft_fail(WEFT_E_PEER, "the peer was lost earlier: nothing more can be sent to it or read from it");
}

static const char *dead_absent(void)
{
    return NULL;
}

static int dead_open(const weft_iface_params *env, weft_iface **iface)
{
    (void)env;
    (void)iface;
    return dead();
}

static void dead_close(weft_iface *iface)
{
    (void)iface;
}

static int null_get_addr(weft_iface *iface, void *card, size_t *bytes)
{
    (void)iface;
    (void)card;
    (void)bytes;
    return dead();
}

static int dead_reach(weft_iface *iface, const weft_proc_id *who, const void *card, size_t bytes, void *peer, weft_ep **ep)
{
    (void)iface;
    (void)who;
    (void)card;
    (void)bytes;
    (void)peer;
    (void)ep;
    return dead();
}

static int dead_leave(weft_iface *iface, weft_ep *ep)
{
    (void)iface;
    (void)ep;
    return dead();
}

static int dead_map(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_region *region)
{
    (void)iface;
    (void)addr;
    (void)bytes;
    (void)rights;
    (void)kind;
    (void)region;
    return dead();
}

static int dead_unmap(weft_iface *iface, weft_region *region)
{
    (void)iface;
    (void)region;
    return dead();
}

static int dead_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    (void)iface;
    (void)bytes;
    (void)shared;
    return dead();
}

static int dead_unshare(weft_iface *iface, weft_shared *shared)
{
    (void)iface;
    (void)shared;
    return dead();
}

static int dead_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    (void)iface;
    (void)ep;
    (void)frame;
    return dead();
}

static int dead_move(weft_iface *iface, weft_ep *ep, const weft_move *move)
{
    (void)iface;
    (void)ep;
    (void)move;
    return dead();
}

static int dead_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    (void)iface;
    (void)ep;
    (void)atomic;
    return dead();
}

static int dead_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done)
{
    (void)iface;
    (void)ep;
    (void)remotely;
    (void)done;
    return dead();
}

static int dead_poll(weft_iface *iface, int budget)
{
    (void)iface;
    (void)budget;
    return dead();
}

static int dead_arm(weft_iface *iface, weft_wakeup *wakeup)
{
    (void)iface;
    *wakeup = (weft_wakeup){.fd = -1};
    return dead();
}

static void dead_disarm(weft_iface *iface)
{
    (void)iface;
}

static bool dead_can_move(weft_iface *iface, weft_ep *ep)
{
    (void)iface;
    (void)ep;
    return false;
}

void weft_tell_nothing(void (*line)(void *arg, const char *text), void *arg)
{
    (void)line;
    (void)arg;
}

const weft_iface_ops weft_null_ops = {
    .name = "dead",
    .absent = dead_absent,
    .tell = weft_tell_nothing,
    .open = dead_open,
    .close = dead_close,
    .get_addr = null_get_addr,
    .reach = dead_reach,
    .leave = dead_leave,
    .map = dead_map,
    .unmap = dead_unmap,
    .share = dead_share,
    .unshare = dead_unshare,
    .send = dead_send,
    .can_move = dead_can_move,
    .get = dead_move,
    .put = dead_move,
    .amo = dead_amo,
    .flush = dead_flush,
    .poll = dead_poll,
    .arm = dead_arm,
    .disarm = dead_disarm,
};

/* frame_max is not 0, because the engine divides messages by it before it is told that the peer is gone. */
weft_iface weft_null_iface = {.ops = &weft_null_ops, .caps = {.frame_max = 4096, .chunk = 4096, .move_max = 4096, .ordered = true}};
weft_ep weft_null_ep = {.iface = &weft_null_iface};

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dead: the null object of the transport contract. A peer that was lost has weft_dead_path, so that nobody above asks "is it
 * alive?" before each call: every call answers WEFT_E_PEER. Nothing here has state: any thread and any lane may use it at once.
 */
#include "transport/port.h"

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

static int dead_open(const weft_port_env *env, weft_port **port)
{
    (void)env;
    (void)port;
    return dead();
}

static void dead_close(weft_port *port)
{
    (void)port;
}

static int dead_card(weft_port *port, void *card, size_t *bytes)
{
    (void)port;
    (void)card;
    (void)bytes;
    return dead();
}

static int dead_reach(weft_port *port, const weft_name *who, const void *card, size_t bytes, void *peer, weft_path **path)
{
    (void)port;
    (void)who;
    (void)card;
    (void)bytes;
    (void)peer;
    (void)path;
    return dead();
}

static int dead_leave(weft_port *port, weft_path *path)
{
    (void)port;
    (void)path;
    return dead();
}

static int dead_map(weft_port *port, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_region *region)
{
    (void)port;
    (void)addr;
    (void)bytes;
    (void)rights;
    (void)kind;
    (void)region;
    return dead();
}

static int dead_unmap(weft_port *port, weft_region *region)
{
    (void)port;
    (void)region;
    return dead();
}

static int dead_share(weft_port *port, uint64_t bytes, weft_shared *shared)
{
    (void)port;
    (void)bytes;
    (void)shared;
    return dead();
}

static int dead_unshare(weft_port *port, weft_shared *shared)
{
    (void)port;
    (void)shared;
    return dead();
}

static int dead_send(weft_port *port, weft_path *path, const weft_frame *frame)
{
    (void)port;
    (void)path;
    (void)frame;
    return dead();
}

static int dead_move(weft_port *port, weft_path *path, const weft_move *move)
{
    (void)port;
    (void)path;
    (void)move;
    return dead();
}

static int dead_amo(weft_port *port, weft_path *path, const weft_atomic *atomic)
{
    (void)port;
    (void)path;
    (void)atomic;
    return dead();
}

static int dead_flush(weft_port *port, weft_path *path, bool remotely, void *done)
{
    (void)port;
    (void)path;
    (void)remotely;
    (void)done;
    return dead();
}

static int dead_poll(weft_port *port, int budget)
{
    (void)port;
    (void)budget;
    return dead();
}

static int dead_arm(weft_port *port, weft_bell *bell)
{
    (void)port;
    *bell = (weft_bell){.fd = -1};
    return dead();
}

static void dead_disarm(weft_port *port)
{
    (void)port;
}

static bool dead_can_move(weft_port *port, weft_path *path)
{
    (void)port;
    (void)path;
    return false;
}

void weft_tell_nothing(void (*line)(void *arg, const char *text), void *arg)
{
    (void)line;
    (void)arg;
}

const weft_port_ops weft_dead_ops = {
    .name = "dead",
    .absent = dead_absent,
    .tell = weft_tell_nothing,
    .open = dead_open,
    .close = dead_close,
    .card = dead_card,
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
weft_port weft_dead_port = {.ops = &weft_dead_ops, .caps = {.frame_max = 4096, .chunk = 4096, .move_max = 4096, .ordered = true}};
weft_path weft_dead_path = {.port = &weft_dead_port};

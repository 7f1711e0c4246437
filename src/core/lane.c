/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lane: opening, polling, and names of requests. See lane.h.
 */
#include "core/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/place.h"
#include "base/status.h"
#include "core/iface_select.h"
#include "core/leader.h"
#include "core/peer.h"
#include "core/pins.h"
#include "core/world.h"
#include "mem/chime.h"
#include "mem/pool.h"

#define POLL_BUDGET 32
#define LOCK_SPINS 1000u       /* pauses: some tens of microseconds */
#define LOCK_SPINS_CROWDED 64u
#define SLOT_BITS 20
#define SLOT_MASK ((1u << SLOT_BITS) - 1)

struct weft_name_slot {
    weft_req *req;       /* NULL: free */
    uint32_t generation; /* 12 bits count */
    uint32_t next_free;
};

int weft_lane_open(weft_world *world, uint32_t index, const weft_up *up, weft_lane **out)
{
    weft_lane *lane = calloc(1, sizeof *lane);
    int rc;
    if (!lane)
        return weft_fail(WEFT_E_NOMEM, "no memory for a lane");
    lane->world = world;
    lane->index = index;
    lane->up = up;
    weft_list_init(&lane->backlog);
    weft_list_init(&lane->plans);
    weft_list_init(&lane->pumps);
    weft_list_init(&lane->free_reqs);
    weft_list_init(&lane->unnamed);
    weft_fifomap_open(&lane->announced);
    lane->done_req = (weft_req){.magic = WEFT_REQ_MAGIC, .kind = WEFT_REQ_NOTHING, .is_done = true, .is_static = true, .lane = lane};
    weft_list_init(&lane->parked);
    weft_lock_init(&lane->lock, world->is_crowded ? LOCK_SPINS_CROWDED : LOCK_SPINS);
    if (!world->is_crowded && weft_place_cpus() > (int)world->boot->local_size)
        lane->spare_cpus = (uint32_t)weft_place_cpus() / world->boot->local_size - 1;
    lane->pool = weft_pool_open();
    lane->peers = calloc(world->boot->size, sizeof *lane->peers);
    rc = lane->pool && lane->peers ? weft_iface_select_open(lane) : weft_fail(WEFT_E_NOMEM, "no memory for a lane of %u peers", world->boot->size);
    if (rc) {
        weft_lane_close(lane);
        return rc;
    }
    *out = lane;
    return 0;
}

void weft_lane_close(weft_lane *lane)
{
    struct slab_link { struct slab_link *next; } *slab = lane->slabs;
    for (uint32_t i = 0; lane->peers && i < lane->world->boot->size; i++)
        free(lane->peers[i]);
    free(lane->peers);
    while (lane->iface_count) {
        weft_iface *iface = lane->ifaces[--lane->iface_count];
        weft_pins_close(iface);
        iface->ops->close(iface);
    }
    while (slab) {
        struct slab_link *next = slab->next;
        free(slab);
        slab = next;
    }
    weft_fifomap_close(&lane->announced);
    free(lane->failures);
    free(lane->names);
    free(lane->chans);
    free(lane->ladder);
    if (lane->pool)
        weft_pool_close(lane->pool);
    free(lane);
}

void weft_lane_rouse(weft_lane *lane)
{
    bool has_work = !weft_list_is_empty(&lane->pumps) || !weft_list_is_empty(&lane->plans);
    for (weft_link *link = lane->backlog.next; link != &lane->backlog && !has_work; link = link->next) { /* credit rings when it comes */
        const weft_peer *peer = weft_container(link, weft_peer, backlog);
        has_work = !weft_list_is_empty(&peer->waiting) || peer->credit + WEFT_CREDIT_STALLED > 0 || peer->overdrafts || peer->offers;
    }
    if (has_work)
        lane->world->rest->wake(lane);
    for (uint32_t i = 0; i < lane->iface_count; i++)
        if (lane->ifaces[i]->ops == &weft_self_ops && !lane->ifaces[i]->is_quiet)
            lane->world->rest->wake(lane);
}

/* The callback may take long: another thread leads meanwhile, and one that sleeps on the bells is roused. */
void weft_worker_callout_begin(weft_lane *worker)
{
    if (weft_unlikely(worker->is_threaded))
        weft_leader_yield(worker);
    weft_lane_unlock(worker);
}

void weft_worker_callout_end(weft_lane *worker) { weft_lane_lock(worker); }

void weft_lane_show(weft_wait *wait)
{
    weft_page_status *status = weft_call_wait(wait->lane->world->page);
    wait->is_shown = true;
    atomic_store_explicit(&status->peer, wait->peer, memory_order_relaxed);
    atomic_store_explicit(&status->tag, wait->tag, memory_order_relaxed);
    atomic_store_explicit(&status->bytes, wait->bytes, memory_order_relaxed);
    atomic_store_explicit(&status->why, wait->why, memory_order_relaxed);
    atomic_store_explicit(&status->since_ns, weft_clock_ns(), memory_order_release);
}

void weft_lane_disarm(weft_lane *lane, uint32_t count)
{
    while (count-- > 0)
        lane->ifaces[count]->ops->disarm(lane->ifaces[count]);
    atomic_store_explicit(&lane->world->page->asleep, 0, memory_order_relaxed);
    if (weft_unlikely(lane->world->chime >= 0))
        weft_chime_drain(lane->world->chime);
    lane->is_armed = false;
}

static int push_backlog(weft_lane *lane)
{
    int n = 0;
    for (weft_link *link = lane->backlog.next, *next; link != &lane->backlog; link = next) {
        next = link->next;
        n += weft_peer_push(weft_container(link, weft_peer, backlog));
    }
    return n;
}

static __attribute__((noinline)) int do_chores(weft_lane *lane)
{
    int n = 0;
    if (!weft_list_is_empty(&lane->backlog))
        n += push_backlog(lane);
    if (!weft_list_is_empty(&lane->pumps))
        n += lane->pump(lane);
    if (!weft_list_is_empty(&lane->plans))
        n += lane->play(lane);
    return n;
}

int weft_lane_poll(weft_lane *lane)
{
    int n = 0;
    for (uint32_t i = lane->iface_count; i-- > 0;) {
        int rc;
        if (lane->ifaces[i]->is_quiet)
            continue;
        rc = weft_iface_poll(lane->ifaces[i], POLL_BUDGET);
        if (weft_unlikely(rc < 0))
            weft_log_once(WEFT_LOG_ERROR, "transport %s failed: %s", lane->ifaces[i]->ops->name, weft_fail_text(rc));
        else
            n += rc;
    }
    if (weft_unlikely(!weft_list_is_empty(&lane->backlog) || !weft_list_is_empty(&lane->pumps) || !weft_list_is_empty(&lane->plans)))
        n += do_chores(lane);
    return n;
}

static int grow_names(weft_lane *lane)
{
    uint32_t room = lane->name_room ? lane->name_room * 2 : 64;
    struct weft_name_slot *names = room > SLOT_MASK + 1 ? NULL : realloc(lane->names, room * sizeof *names);
    if (!names)
        return lane->name_room ? WEFT_AGAIN : weft_fail(WEFT_E_NOMEM, "no memory for the names of large messages");
    /* slot 0 is never given: a name of 0 means none */
    for (uint32_t i = lane->name_room ? lane->name_room : 1; i < room; i++)
        names[i] = (struct weft_name_slot){NULL, 1, i + 1 < room ? i + 1 : 0};
    lane->name_free = lane->name_room ? lane->name_room : 1;
    lane->names = names;
    lane->name_room = room;
    return 0;
}

int weft_lane_name(weft_lane *lane, weft_req *req)
{
    struct weft_name_slot *slot;
    uint32_t index;
    if (!lane->name_free) {
        int rc = grow_names(lane);
        if (rc)
            return rc;
    }
    index = lane->name_free;
    slot = &lane->names[index];
    lane->name_free = slot->next_free;
    slot->req = req;
    req->name = slot->generation << SLOT_BITS | index;
    return 0;
}

weft_req *weft_lane_find(weft_lane *lane, uint32_t name)
{
    uint32_t index = name & SLOT_MASK;
    weft_req *req = index < lane->name_room && index ? lane->names[index].req : NULL;
    return req && req->name == name ? req : NULL;
}

void weft_lane_unname(weft_lane *lane, weft_req *req)
{
    uint32_t index = req->name & SLOT_MASK;
    struct weft_name_slot *slot = &lane->names[index];
    slot->req = NULL;
    slot->generation = (slot->generation + 1) & ((1u << (32 - SLOT_BITS)) - 1);
    slot->next_free = lane->name_free;
    lane->name_free = index;
    req->name = 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open: see open.h. The members exchange wires three times: what each brings, the handle of each node's shared memory, and the addresses
 * with each member's result; an error of one is an error of all.
 */
#include "rma/open.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "collectives/coll.h"
#include "collectives/sched.h"
#include "collectives/stop.h"
#include "core/absence.h"
#include "core/worker.h"
#include "rma/device.h"
#include "rma/device_state.h"
#include "rma/inbox.h"
#include "rma/keys.h"
#include "rma/memory.h"
#include "rma/notify.h"
#include "rma/op.h"
#include "rma/region_table.h"
#include "rma/regions.h"
#include "rma/sync_state.h"

static void on_notify(weft_chan *chan, uint32_t from, const void *body, uint32_t bytes)
{
    weft_window *window = chan->owner;
    if (!bytes) { /* a member has closed its window and needs nothing more, or has died */
        weft_window_sync_on_gone(window, from);
        return;
    }
    if (*(const uint8_t *)body >= WEFT_SYNC_POST)
        weft_window_sync_on_notify(window, from, body, bytes);
    else if (*(const uint8_t *)body == WEFT_RMA_FOUND)
        weft_rma_regions_on_found(window, from, body, bytes);
    else if (*(const uint8_t *)body >= WEFT_RMA_REGION)
        weft_rma_device_on_note(window, from, body, bytes);
    else
        weft_rma_inbox_on_notify(window, from, body, bytes);
}

/* Or data of an operation on this member. */
static bool owes_answer(const weft_window *window, uint32_t target)
{
    const weft_rma_peer *peer = &window->inbox->peers[target];
    return !weft_list_is_empty(&peer->records) || peer->asked > window->targets[target].performed || peer->jobs;
}

/* A thread has slept for a second or longer. A member that owes an answer may have left without a frame to this process. */
static void on_long_wait(weft_chan *chan)
{
    weft_window *window = chan->owner;
    for (uint32_t i = 0; i < window->size; i++)
        if (owes_answer(window, i))
            weft_window_ask_gone(window, i);
    weft_window_sync_ask_gone(window);
}

/* Answers of the launcher from before the window do not count: a member that was at rest then has returned. */
static void forget_absences(const weft_worker *worker)
{
    for (weft_peer *peer = worker->peers; peer; peer = peer->next)
        weft_absence_forget(peer);
}

static int exchange(weft_window *window, const weft_window_wire *own, weft_window_wire *all)
{
    weft_coll coll = {.sendbuf = own, .recvbuf = all, .sendcount = sizeof *own, .recvcount = sizeof *own,
                      .sendtype = weft_sched_bytes(), .recvtype = weft_sched_bytes()};
    return weft_team_trust(window->team, weft_coll_run(window->team, WEFT_COLL_ALLGATHER, &coll));
}

int weft_window_agree(weft_window *window, weft_window_wire *own, weft_window_wire *all, int rc)
{
    char cause[512];
    int exchanged;
    own->failed = rc;
    if (rc)
        snprintf(cause, sizeof cause, "%s", weft_fail_text(rc)); /* messages may replace this thread's text */
    exchanged = exchange(window, own, all);
    if (rc)
        return weft_fail(rc, "%s", cause);
    for (uint32_t i = 0; i < window->size && !exchanged; i++)
        if (all[i].failed)
            return weft_fail(WEFT_E_OTHER, "member %u has failed to make its part of the window: its own error names the cause", i);
    return exchanged;
}

static void set_targets(weft_window *window, const weft_window_wire *wires)
{
    for (uint32_t i = 0; i < window->size; i++) {
        weft_window_target *target = &window->targets[i];
        bool is_dynamic = window->flavor == WEFT_WINDOW_DYNAMIC;
        target->base = is_dynamic ? 0 : wires[i].base;
        target->bytes = is_dynamic ? UINT64_MAX : wires[i].bytes;
        target->unit = wires[i].unit;
    }
}

static void choose_direct(weft_window *window, uint32_t rank)
{
    weft_window_target *target = &window->targets[rank];
    target->has_device_words = window->device->keys[rank].amo == WEFT_AMO_NIC;
    if (target->is_mapped && window->flavor != WEFT_WINDOW_DYNAMIC)
        target->direct = target->has_device_words ? WEFT_DIRECT_COPY : WEFT_DIRECT_ALL;
}

/* Handle of this node's shared memory. The node's first member publishes it. */
static uint64_t node_handle(const weft_window *window, const weft_window_wire *wires)
{
    return window->memory->count ? wires[window->memory->members[0]].handle : 0;
}

/* All steps that exchange; wires[size]. */
static int open_steps(weft_window *window, const weft_window_own *own, weft_window_wire *wires, int rc)
{
    weft_window_wire wire = {.base = (uintptr_t)own->base, .bytes = own->bytes, .unit = own->unit};
    uint64_t handle;
    rc = weft_window_agree(window, &wire, wires, rc);
    if (rc)
        return rc;
    rc = weft_window_memory_make(window, wires, own->is_contiguous, &wire.handle);
    rc = weft_window_agree(window, &wire, wires, rc);
    if (rc)
        return rc;
    handle = node_handle(window, wires);
    set_targets(window, wires);
    window->is_unordered = own->is_unordered;
    rc = weft_window_memory_map(window, wires, own->is_contiguous, handle);
    if (!rc)
        weft_window_sync_map(window);
    if (!rc)
        rc = weft_rma_inbox_open(window);
    if (!rc && window->flavor == WEFT_WINDOW_DYNAMIC)
        rc = weft_rma_regions_open(window);
    if (!rc)
        rc = weft_window_device_open(window, own->wants_words);
    if (!rc)
        weft_window_key_make(window, weft_rma_regions_root(window), sizeof(weft_table_root), &wire.key);
    wire.base = (uintptr_t)window->targets[window->rank].mapped;
    window->chan->owner = window; /* messages may come as soon as another member returns */
    window->chan->on_notify = on_notify;
    window->chan->on_long_wait = on_long_wait;
    rc = weft_window_agree(window, &wire, wires, rc);
    if (rc)
        return rc;
    set_targets(window, wires);
    for (uint32_t i = 0; i < window->size; i++) {
        window->device->keys[i] = wires[i].key;
        choose_direct(window, i);
    }
    forget_absences(window->worker);
    return 0;
}

/* What others may still access, or refer to. */
typedef struct weft_window_kept {
    struct weft_window_kept *next; /* in worker->kept */
    weft_window_memory *memory;
    weft_window_inbox *inbox;      /* NULL: freed */
} weft_window_kept;

static void free_kept(weft_worker *worker)
{
    for (weft_window_kept *one = worker->kept, *next; one; one = next) {
        next = one->next;
        weft_window_memory_free(one->memory);
        if (one->inbox)
            weft_rma_inbox_forget(one->inbox);
        free(one);
    }
    worker->kept = NULL;
}

static void keep(weft_worker *worker, weft_window_memory *memory, weft_window_inbox *inbox)
{
    weft_window_kept *one = malloc(sizeof *one);
    if (!one) /* better lost than used anew */
        return;
    *one = (weft_window_kept){.next = worker->kept, .memory = memory, .inbox = inbox};
    worker->kept = one;
    worker->free_kept = free_kept;
}

/* is_over: no member operates on this one's memory any more. */
static void close_window(weft_window *window, bool is_over)
{
    weft_window_inbox *inbox = window->inbox;
    bool is_awaited;
    weft_window_device_close(window); /* polls: what comes meanwhile is served */
    window->chan->on_notify = NULL;
    window->chan->on_long_wait = NULL;
    is_awaited = inbox && weft_rma_inbox_close(window);
    window->chan->owner = NULL;
    weft_notify_close(window);
    if (window->regions)
        weft_rma_regions_close(window);
    weft_window_sync_close(window);
    if (is_over && !is_awaited)
        weft_window_memory_free(window->memory);
    else
        keep(window->worker, window->memory, is_awaited ? inbox : NULL);
    free(window->targets);
    free(window);
}

void weft_window_abandon(weft_window *window) { close_window(window, false); }

int weft_window_open(weft_chan *chan, weft_team *team, const weft_window_own *own, weft_window **out)
{
    weft_window_wire *wires = malloc(team->size * sizeof *wires);
    weft_window *window = calloc(1, sizeof *window);
    int rc = 0;
    *out = NULL;
    if (!window || !wires) {
        free(wires);
        free(window);
        rc = weft_fail(WEFT_E_NOMEM, "no memory for a window of %u members", team->size);
        weft_team_stop(team, rc, (int)(team->sequence++ & WEFT_TAG_BITS)); /* no exchange is possible: that of the others ends */
        return rc;
    }
    *window = (weft_window){.worker = chan->worker, .chan = chan, .team = team, .size = team->size, .rank = team->rank,
                            .flavor = own->flavor, .targets = calloc(team->size, sizeof *window->targets)};
    rc = window->targets ? weft_window_memory_open(window) : weft_fail(WEFT_E_NOMEM, "no memory for %u targets", team->size);
    if (!rc)
        rc = weft_window_sync_open(window);
    rc = open_steps(window, own, wires, rc);
    free(wires);
    if (rc)
        close_window(window, true);
    else
        *out = window;
    return rc;
}

int weft_window_close(weft_window *window)
{
    int rc = weft_rma_fence(window, true, false);
    weft_rma_inbox_drain(window);
    close_window(window, !rc);
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worker: see worker.h.
 */
#include "core/worker.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu_count.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/iface_select.h"
#include "core/peer.h"
#include "core/reg.h"
#include "core/req.h"
#include "core/wait_type.h"
#include "core/world_type.h"
#include "mem/pool.h"
#include "mem/wakeup_sock.h"

#define POLL_BUDGET 32         /* frames that a poll takes from an iface */
#define POLL_BUDGET_THREADED 8 /* ... while other threads may want the lock: a long frame is copied in up to 20 us */
#define LOCK_SPINS 1000u       /* pauses: tens of microseconds */
#define LOCK_SPINS_CROWDED 64u

static _Atomic uint64_t serials;

int weft_worker_open(weft_world *world, uint32_t index, const weft_iface_callbacks *callbacks, weft_worker **out)
{
    weft_worker *worker = aligned_alloc(_Alignof(weft_worker), sizeof *worker);
    int rc;
    if (!worker)
        return weft_fail(WEFT_E_NOMEM, "no memory for a worker");
    memset(worker, 0, sizeof *worker);
    worker->world = world;
    worker->index = index;
    worker->callbacks = callbacks;
    weft_list_init(&worker->backlog);
    weft_list_init(&worker->scheds);
    weft_list_init(&worker->areas);
    weft_list_init(&worker->inboxes);
    weft_list_init(&worker->devices);
    weft_list_init(&worker->fragments);
    weft_list_init(&worker->free_reqs);
    weft_fifomap_open(&worker->announced);
    worker->done_req = (weft_req){.magic = WEFT_REQ_MAGIC, .kind = WEFT_REQ_NOTHING, .is_done = true, .is_static = true,
                                    .number = WEFT_LANGUAGE_DONE + (int32_t)index, .worker = worker};
    worker->done_sched = worker->done_req;
    worker->done_sched.kind = WEFT_REQ_SCHED;
    worker->done_sched.number += WEFT_REQ_STATICS_EACH;
    weft_list_init(&worker->parked);
    weft_lock_init(&worker->lock, world->is_oversubscribed ? LOCK_SPINS_CROWDED : LOCK_SPINS);
    if (!world->is_oversubscribed && weft_cpu_count() > (int)world->boot->local_size)
        worker->spare_cpus = (uint32_t)weft_cpu_count() / world->boot->local_size - 1;
    worker->pool = weft_pool_open();
    worker->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    rc = worker->pool ? weft_iface_select_open(worker) : weft_fail(WEFT_E_NOMEM, "no memory for a worker");
    if (rc) {
        weft_worker_close(worker);
        return rc;
    }
    *out = worker;
    return 0;
}

void weft_worker_close(weft_worker *worker)
{
    weft_peer_free_all(worker);
    if (worker->free_kept)
        worker->free_kept(worker);
    while (worker->iface_count) {
        weft_iface *iface = worker->ifaces[--worker->iface_count];
        weft_reg_close(iface);
        iface->ops->close(iface);
    }
    weft_req_close(worker);
    weft_fifomap_close(&worker->announced);
    free(worker->failures);
    if (worker->on_close)
        worker->on_close(worker);
    free(worker->chans);
    free(worker->notified);
    free(worker->rndv_stats);
    if (worker->free_scheds)
        worker->free_scheds(worker);
    if (worker->pool)
        weft_pool_close(worker->pool);
    free(worker);
}

/* Does a fragment wait for this process, not for a registration? */
static bool has_ready_fragment(const weft_worker *worker)
{
    uint32_t count = 0;
    for (const weft_list_link *link = worker->fragments.next; link != &worker->fragments; link = link->next)
        count++;
    return count > worker->idle_fragments;
}

void weft_worker_wake_leader(weft_worker *worker)
{
    bool has_work = has_ready_fragment(worker) || !weft_list_is_empty(&worker->scheds) || !weft_list_is_empty(&worker->inboxes) ||
                    !weft_list_is_empty(&worker->devices) || worker->has_ready_area || worker->has_barred_area;
    for (weft_list_link *link = worker->backlog.next; link != &worker->backlog && !has_work; link = link->next) {
        /* peers without credit are not work: arriving credit raises a wakeup */
        const weft_peer *peer = weft_container(link, weft_peer, backlog);
        has_work = !weft_list_is_empty(&peer->waiting) || peer->credit + WEFT_CREDIT_STALLED > 0 || peer->overdrafts || peer->offers;
    }
    if (has_work)
        worker->world->sleep_ops->wake(worker);
    for (uint32_t i = 0; i < worker->iface_count; i++)
        if (worker->ifaces[i]->ops == &weft_self_ops && !worker->ifaces[i]->is_quiet)
            worker->world->sleep_ops->wake(worker);
}

void weft_worker_wake_helper(weft_worker *worker)
{
    if (worker->is_helping && worker->is_asleep)
        worker->world->sleep_ops->wake(worker);
}

void weft_worker_take_back(weft_worker *worker)
{
    if (weft_worker_needs_help(worker))
        return;
    weft_worker_wake_helper(worker);
    if (worker->is_helping)
        return;
    worker->is_lent = false;
    __atomic_store_n(&worker->is_threaded, false, __ATOMIC_SEQ_CST);
}

void weft_worker_show(weft_wait *wait)
{
    weft_page_status *status = weft_call_wait(wait->worker->world->page);
    wait->is_shown = true;
    atomic_store_explicit(&status->peer, wait->peer, memory_order_relaxed);
    atomic_store_explicit(&status->tag, wait->tag, memory_order_relaxed);
    atomic_store_explicit(&status->bytes, wait->bytes, memory_order_relaxed);
    atomic_store_explicit(&status->why, wait->why, memory_order_relaxed);
    atomic_store_explicit(&status->since_ns, weft_clock_ns(), memory_order_release);
}

void weft_worker_disarm(weft_worker *worker, uint32_t count)
{
    while (count-- > 0)
        worker->ifaces[count]->ops->disarm(worker->ifaces[count]);
    atomic_store_explicit(&worker->world->page->asleep, 0, memory_order_relaxed);
    if (weft_unlikely(worker->world->wakeup_fd >= 0))
        weft_wakeup_sock_drain(worker->world->wakeup_fd);
    worker->is_armed = false;
}

static int flush_backlog(weft_worker *worker)
{
    int n = 0;
    for (weft_list_link *link = worker->backlog.next, *next; link != &worker->backlog; link = next) {
        next = link->next;
        n += weft_peer_flush_pending(weft_container(link, weft_peer, backlog));
    }
    return n;
}

#define LAST_POLLS 64 /* polls for what a process has sent before its death */

static __attribute__((noinline)) int see_deaths(weft_worker *worker)
{
    int n = 0;
    for (uint32_t i = 0; i < worker->iface_count; i++)
        for (int k = 0; k < LAST_POLLS && !worker->ifaces[i]->is_quiet && weft_iface_poll(worker->ifaces[i], POLL_BUDGET) > 0; k++)
            n++;
    for (; worker->deaths_seen != atomic_load_explicit(&worker->recovery->deaths, memory_order_acquire); n++)
        worker->on_death(worker, worker->recovery->dead[worker->deaths_seen++]);
    return n;
}

static __attribute__((noinline)) int advance_pending(weft_worker *worker)
{
    int n = 0;
    if (worker->recovery && worker->deaths_seen != atomic_load_explicit(&worker->recovery->deaths, memory_order_relaxed))
        n += see_deaths(worker);
    if (!weft_list_is_empty(&worker->backlog))
        n += flush_backlog(worker);
    if (!weft_list_is_empty(&worker->fragments))
        n += worker->progress_fragments(worker);
    if (!weft_list_is_empty(&worker->scheds))
        n += worker->progress_scheds(worker);
    if (!weft_list_is_empty(&worker->areas))
        n += worker->progress_areas(worker);
    if (!weft_list_is_empty(&worker->inboxes))
        n += worker->progress_inboxes(worker);
    if (!weft_list_is_empty(&worker->devices))
        n += worker->progress_devices(worker);
    return n;
}

int weft_worker_poll(weft_worker *worker)
{
    int n = 0, budget = weft_unlikely(worker->is_threaded) ? POLL_BUDGET_THREADED : POLL_BUDGET;
    for (uint32_t i = worker->iface_count; i-- > 0;) {
        int rc;
        if (worker->ifaces[i]->is_quiet)
            continue;
        rc = weft_iface_poll(worker->ifaces[i], budget);
        if (weft_unlikely(rc < 0))
            weft_log_once(WEFT_LOG_ERROR, "transport %s failed: %s", worker->ifaces[i]->ops->name, weft_fail_text(rc));
        else
            n += rc;
    }
    if (weft_unlikely(!weft_list_is_empty(&worker->backlog) || !weft_list_is_empty(&worker->fragments) ||
                      !weft_list_is_empty(&worker->scheds) || !weft_list_is_empty(&worker->areas) ||
                      !weft_list_is_empty(&worker->inboxes) || !weft_list_is_empty(&worker->devices) || worker->recovery))
        n += advance_pending(worker);
    return n;
}

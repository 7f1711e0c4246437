/* SPDX-License-Identifier: BSD-3-Clause
 *
 * world: opens and closes the world. See world.h.
 */
#include "core/world.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu_count.h"
#include "base/cpu_place.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "core/bye.h"
#include "core/counters.h"
#include "core/iface_select.h"
#include "core/peer.h"
#include "mem/wakeup_sock.h"

#define LEAVE_NS 50000000u
#define CATCH_UP_MAX 1000

weft_world *weft_world_now, *weft_world_model;

/* More ranks than CPUs, by the launcher's count or by this process's CPU quota. */
static bool is_oversubscribed(const weft_boot *boot)
{
    if (boot->oversubscribed)
        return true;
    /* quota only: a bound rank's affinity has fewer CPUs than ranks, and there the launcher's count is right */
    return boot->local_size > 1 && weft_cpu_count_quota() > 0 && weft_cpu_count_quota() < (int)boot->local_size;
}

/* Sets the wait policy by the number of CPUs, unless knobs set it. In the simulator waits sleep at once. */
static void choose_waiting(weft_world *world)
{
    weft_wait_policy *policy = &world->wait_policy;
    world->sleep_ops = world->boot->sleep_ops ? world->boot->sleep_ops : &weft_sleep_ops_here;
    if (world->boot->sleep_ops)
        return;
    *policy = world->is_oversubscribed ? weft_wait_policy_oversubscribed : weft_wait_policy_dedicated;
    policy->yield_ranks = world->boot->local_size;
    policy->is_fixed = weft_knob.spin_us >= 0 || weft_knob.sleep != WEFT_SLEEP_AUTO;
    if (weft_knob.spin_us >= 0)
        policy->spin_ns = (uint64_t)weft_knob.spin_us * 1000;
    if (weft_knob.sleep == WEFT_SLEEP_NEVER)
        policy->spin_ns = UINT64_MAX;
    if (weft_knob.sleep == WEFT_SLEEP_ALWAYS)
        policy->spins = 0, policy->spin_ns = 0;
}

#define RETURNS 8

/* The ranks of a node start evenly on its CPUs, if these are fewer: under a quota they may be more. */
static void choose_place(weft_world *world)
{
    const weft_boot *boot = world->boot;
    bool is_crowded = world->is_oversubscribed && !boot->sleep_ops && weft_cpu_count_affinity() < (int)boot->local_size;

    world->home_cpu = is_crowded ? weft_cpu_place_of(boot->local_rank) : -1;
    world->returns_left = world->home_cpu < 0 ? 0 : RETURNS;
    if (world->returns_left)
        weft_cpu_place_at(world->home_cpu);
}

static void publish_state(weft_world *world)
{
    weft_boot *boot = world->boot;
    if (boot->has_segment)
        world->page = weft_segment_rank(&boot->segment, boot->local_rank);
    if (world->is_oversubscribed)
        weft_cpu_share_open(&world->cpu_share, boot, world->page);
    atomic_store_explicit(&world->page->state, WEFT_RANK_INIT, memory_order_release);
}

/* For tests (knob split_node): assigns the node's ranks to several virtual nodes in turn. Layers above the launcher see only these. */
static int split_node(weft_world *world)
{
    weft_boot *boot = world->boot;
    uint32_t parts = (uint32_t)weft_knob.split_node;
    if (parts <= 1 || boot->size <= 1 || boot->fabric_ops)
        return 0;
    world->node_of = calloc(boot->size, sizeof *world->node_of);
    if (!world->node_of)
        return weft_fail(WEFT_E_NOMEM, "no memory for the nodes of %u ranks", boot->size);
    for (uint32_t r = 0; r < boot->size; r++)
        world->node_of[r] = (boot->node_of ? boot->node_of[r] : boot->node) * parts + (boot->local_of ? boot->local_of[r] : r) % parts;
    boot->node_of = world->node_of;
    boot->node = world->node_of[boot->rank];
    boot->nodes *= parts;
    return 0;
}

int weft_world_open(weft_boot *boot, int thread_level, const weft_iface_callbacks *callbacks, weft_world **out)
{
    weft_world *world = calloc(1, sizeof *world);
    weft_rank_page *own_page = aligned_alloc(WEFT_LINE, WEFT_PAGE);
    int rc;
    if (!world || !own_page) {
        free(world);
        free(own_page);
        boot->has_failed = true;
        boot->ops->finalize(boot);
        return weft_fail(WEFT_E_NOMEM, "no memory for the state of the library");
    }
    memset(own_page, 0, WEFT_PAGE);
    world->boot = boot;
    world->thread_level = thread_level;
    world->wakeup_fd = -1;
    world->page = world->own_page = own_page;
    world->is_oversubscribed = is_oversubscribed(boot);
    choose_waiting(world);
    choose_place(world);
    publish_state(world);
    if (boot->size > 1 && !weft_iface_select_allow("shm"))
        boot->has_segment = false; /* the user excluded shm: no component may share memory */
    weft_world_now = world;
    rc = weft_group_range(boot->job, 0, 1, boot->size, &world->group);
    if (rc == 0)
        rc = split_node(world);
    if (rc == 0)
        rc = weft_worker_open(world, 0, callbacks, &world->workers[0]);
    if (rc) {
        weft_world_now = NULL;
        boot->has_failed = true;
        boot->ops->finalize(boot);
        weft_group_drop(world->group);
        free(world->node_of);
        free(own_page);
        free(world);
        return rc;
    }
    world->worker_count = 1;
    weft_language_done = &world->workers[0]->done_req;
    *out = world;
    return 0;
}

static void drain(weft_worker *worker, bool (*is_over)(weft_worker *, uint64_t waited_ns))
{
    uint64_t begin = weft_world_clock_ns(worker->world);
    weft_wait wait;
    weft_wait_begin(&wait, worker, WEFT_WAIT_REASON_FINALIZE, -1, -1, 0);
    while (!is_over(worker, weft_world_clock_ns(worker->world) - begin))
        weft_wait_progress(&wait);
    weft_wait_end(&wait);
}

static void drain_all(weft_world *world, bool (*is_over)(weft_worker *, uint64_t))
{
    for (uint32_t i = 0; i < world->worker_count; i++) {
        weft_worker_lock(world->workers[i]);
        drain(world->workers[i], is_over);
        weft_worker_unlock(world->workers[i]);
    }
}

/* Handles what has come. */
static void catch_up(weft_worker *worker)
{
    for (int i = 0; i < CATCH_UP_MAX && weft_worker_poll(worker) > 0; i++)
        ;
}

bool weft_world_may_rest(const weft_world *world)
{
    for (uint32_t i = 0; i < world->worker_count; i++)
        for (uint32_t k = 0; k < world->workers[i]->iface_count; k++)
            if (!world->workers[i]->ifaces[k]->caps.may_rest)
                return false;
    return true;
}

/* Are all ranks reached through shared memory alone, so that no address will be asked for? */
static bool needs_no_modex(const weft_world *world)
{
    for (uint32_t i = 0; i < world->worker_count; i++)
        for (uint32_t k = 0; k < world->workers[i]->iface_count; k++)
            if (!world->workers[i]->ifaces[k]->caps.outlives_sender)
                return false;
    return true;
}

/* Publishes the stage to this node's ranks, and to the launcher, which needs it also where shared memory is not used. */
static void set_stage(weft_world *world, uint32_t state)
{
    atomic_store_explicit(&world->page->state, state, memory_order_release);
    if (world->boot->ops->set_stage)
        world->boot->ops->set_stage(world->boot, state);
}

void weft_world_rest(weft_world *world)
{
    for (uint32_t i = 0; i < world->worker_count; i++) {
        weft_worker_lock(world->workers[i]);
        drain(world->workers[i], weft_bye_rest);
        weft_worker_poll(world->workers[i]); /* may open a connection anew */
        drain(world->workers[i], weft_bye_rest);
        weft_worker_unlock(world->workers[i]);
    }
    if (weft_knob.counters)
        weft_counters_print(world);
    weft_log_repeats();
    for (uint32_t i = 0; i < world->worker_count; i++) {
        weft_worker_lock(world->workers[i]);
        weft_worker_poll(world->workers[i]); /* sends what the last poll has queued */
        weft_bye_rested(world->workers[i]);
        weft_worker_unlock(world->workers[i]);
    }
    set_stage(world, WEFT_RANK_REST);
    if (world->boot->ops->part && needs_no_modex(world))
        world->boot->ops->part(world->boot);
    world->is_resting = true;
    weft_world_now = NULL;
}

void weft_world_return(weft_world *world)
{
    world->is_resting = false;
    weft_world_now = world;
    set_stage(world, WEFT_RANK_INIT);
    world->has_rested = true;
    for (uint32_t i = 0; i < world->worker_count; i++) { /* what peers have sent meanwhile, above all their BYEs */
        weft_worker_lock(world->workers[i]);
        weft_bye_returned(world->workers[i]);
        catch_up(world->workers[i]);
        weft_worker_unlock(world->workers[i]);
    }
}

/* The end of a process that rests. Waits at most LEAVE_NS for peers in MPI, which learn of it from the connection if not from the BYE. */
static void leave(weft_world *world)
{
    uint64_t end = weft_world_clock_ns(world) + LEAVE_NS;
    for (bool is_over = false; !is_over;) {
        is_over = true;
        for (uint32_t i = 0; i < world->worker_count; i++) {
            weft_worker_lock(world->workers[i]);
            catch_up(world->workers[i]);
            is_over &= weft_bye_leave(world->workers[i]);
            weft_worker_unlock(world->workers[i]);
        }
        is_over |= weft_world_clock_ns(world) > end;
        if (!is_over)
            sched_yield();
    }
}

int weft_world_close(weft_world *world)
{
    bool was_resting = world->is_resting;
    if (was_resting)
        leave(world);
    else
        drain_all(world, weft_bye_close);
    if (weft_knob.counters && !was_resting)
        weft_counters_print(world);
    weft_log_repeats();
    weft_language_done = NULL;
    while (world->worker_count)
        weft_worker_close(world->workers[--world->worker_count]);
    if (world->wakeup_fd >= 0)
        weft_wakeup_sock_close(&world->page->sock, world->wakeup_fd);
    atomic_store_explicit(&world->page->state, WEFT_RANK_FINAL, memory_order_release);
    weft_call_close();
    world->boot->ops->finalize(world->boot);
    weft_world_now = NULL;
    weft_group_drop(world->group);
    free(world->own_page);
    free(world->node_of);
    free(world);
    return 0;
}

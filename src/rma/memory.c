/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory: see memory.h. The shared block of a node has the controls of its members first, then what they tell each other, one row for each
 * reader, then the memory of each, if the window allocates it: each on pages of its own, or without gaps (MPI 5.0 12.2.3,
 * alloc_shared_noncontig).
 */
#include "rma/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/worker.h"
#include "core/world.h"

#define TOLD_MEMBERS_MAX 256 /* members of a node, up to which they tell each other by memory: 512 KiB of each window */

static bool is_allocated(const weft_window *window)
{
    return window->flavor == WEFT_WINDOW_ALLOCATE || window->flavor == WEFT_WINDOW_SHARED;
}

static uint32_t job_rank_of(const weft_window *window, uint32_t member)
{
    return weft_group_process(window->chan->group, member).rank;
}

static uint32_t node_of(const weft_window *window, uint32_t member)
{
    const weft_boot *boot = window->worker->world->boot;
    return boot->node_of ? boot->node_of[job_rank_of(window, member)] : 0;
}

/* Are they of this job? Processes of another one may be anywhere. */
static bool is_near(const weft_window *window, uint32_t member)
{
    return weft_group_process(window->chan->group, member).job == window->worker->world->boot->job &&
           node_of(window, member) == node_of(window, window->rank);
}

/* The iface that leads to another member of this node, if it can share memory with it and ranks have pages by which they are woken. */
static weft_iface *sharing_iface(weft_window *window, uint32_t member)
{
    weft_peer *peer;
    if (!window->worker->world->boot->has_segment || weft_chan_resolve_peer(window->chan, member, &peer) ||
        !peer->ep->iface->caps.share)
        return NULL;
    return peer->ep->iface;
}

int weft_window_memory_open(weft_window *window)
{
    const weft_boot *boot = window->worker->world->boot;
    weft_window_memory *memory = calloc(1, sizeof *memory);
    window->memory = memory;
    if (!memory)
        return weft_fail(WEFT_E_NOMEM, "no memory for a window of %u members", window->size);
    memory->members = malloc(window->size * sizeof *memory->members);
    memory->pages = malloc(window->size * sizeof(weft_rank_page *));
    if (!memory->members || !memory->pages)
        return weft_fail(WEFT_E_NOMEM, "no memory for a window of %u members", window->size);
    for (uint32_t i = 0; i < window->size; i++) {
        uint32_t rank = job_rank_of(window, i);
        if (!is_near(window, i))
            continue;
        if (i == window->rank)
            memory->index = memory->count;
        else if (!memory->iface)
            memory->iface = sharing_iface(window, i);
        memory->pages[memory->count] =
            boot->has_segment ? weft_segment_rank(&boot->segment, boot->local_of ? boot->local_of[rank] : rank) : NULL;
        memory->members[memory->count++] = i;
    }
    return 0;
}

/* Of a reader's row, whose lines are its own. */
static uint64_t row_bytes(uint32_t count) { return weft_round_up(count * sizeof(weft_window_told), WEFT_LINE); }

static bool has_told(uint32_t count) { return count <= TOLD_MEMBERS_MAX; }

/* Controls, and what members tell each other. */
static uint64_t controls_bytes(uint32_t count)
{
    return weft_round_up(count * (sizeof(weft_window_control) + (has_told(count) ? row_bytes(count) : 0)), WEFT_PAGE);
}

/* Bytes from the memory of one member to that of the next. */
static uint64_t step_of(uint64_t bytes, bool is_contiguous) { return is_contiguous ? bytes : weft_round_up(bytes, WEFT_PAGE); }

/* Length of the node's block; UINT64_MAX: too long. */
static uint64_t block_bytes(const weft_window *window, const weft_window_wire *wires, bool is_contiguous)
{
    const weft_window_memory *memory = window->memory;
    uint64_t all = controls_bytes(memory->count);
    for (uint32_t i = 0; i < memory->count && is_allocated(window); i++) {
        uint64_t bytes = wires[memory->members[i]].bytes;
        if (bytes > INT64_MAX / 2 || __builtin_add_overflow(all, step_of(bytes, is_contiguous), &all))
            return UINT64_MAX;
    }
    return all;
}

/* A window of flavor SHARED needs shared memory; others do by messages what they cannot do by loads and stores. */
static int check_node(const weft_window *window)
{
    const weft_window_memory *memory = window->memory;
    if (window->flavor != WEFT_WINDOW_SHARED || memory->count == window->size)
        return 0;
    return weft_fail(WEFT_E_RMA_SHARED, "only %u of the %u members are on this node: make a communicator of a node's ranks by "
                     "MPI_Comm_split_type with MPI_COMM_TYPE_SHARED", memory->count, window->size);
}

int weft_window_memory_make(weft_window *window, const weft_window_wire *wires, bool is_contiguous, uint64_t *handle)
{
    weft_window_memory *memory = window->memory;
    uint64_t bytes = block_bytes(window, wires, is_contiguous);
    int rc = check_node(window);
    *handle = 0;
    if (rc || memory->index || memory->count < 2)
        return rc;
    if (!memory->iface)
        rc = weft_fail(WEFT_E_RMA_SHARED, "the ranks of this node have no shared memory in common");
    else
        rc = memory->iface->ops->share(memory->iface, bytes, &memory->shared);
    *handle = memory->shared.handle;
    return rc && window->flavor == WEFT_WINDOW_SHARED ? weft_fail(WEFT_E_RMA_SHARED, "%s", weft_fail_text(rc)) : 0;
}

static int no_memory(uint64_t bytes)
{
    return weft_fail(WEFT_E_NOMEM, "no memory for %llu bytes of a window", (unsigned long long)bytes);
}

/* Memory of this member that no other maps. */
static int allocate_own(weft_window *window, uint64_t bytes)
{
    weft_window_memory *memory = window->memory;
    weft_window_target *own = &window->targets[window->rank];
    uint64_t length = weft_round_up(bytes ? bytes : 1, WEFT_PAGE);
    memory->allocated = bytes <= INT64_MAX / 2 ? aligned_alloc(WEFT_PAGE, length) : NULL;
    if (!memory->allocated)
        return no_memory(bytes);
    memset(memory->allocated, 0, length);
    own->mapped = memory->allocated;
    return 0;
}

static int own_control(weft_window *window)
{
    weft_window_control *control = aligned_alloc(WEFT_LINE, sizeof *control);
    window->memory->control = window->targets[window->rank].control = control;
    if (!control)
        return no_memory(sizeof *control);
    memset(control, 0, sizeof *control);
    return 0;
}

/* Targets of this node, whose block is mapped. */
static void set_shared_targets(weft_window *window, const weft_window_wire *wires, bool is_contiguous)
{
    weft_window_memory *memory = window->memory;
    weft_window_control *controls = memory->shared.addr;
    char *at = (char *)controls + controls_bytes(memory->count);
    memory->told = has_told(memory->count) ? (weft_window_told *)(controls + memory->count) : NULL;
    for (uint32_t i = 0; i < memory->count; i++) {
        weft_window_target *target = &window->targets[memory->members[i]];
        target->control = &controls[i];
        if (!is_allocated(window))
            continue;
        target->mapped = at;
        target->is_mapped = true;
        at += step_of(wires[memory->members[i]].bytes, is_contiguous);
    }
}

int weft_window_memory_map(weft_window *window, const weft_window_wire *wires, bool is_contiguous, uint64_t handle)
{
    weft_window_memory *memory = window->memory;
    weft_window_target *own = &window->targets[window->rank];
    const weft_window_wire *wire = &wires[window->rank];
    int rc = 0;
    if (handle && !memory->shared.addr) {
        memory->shared.handle = handle;
        rc = memory->iface->ops->share(memory->iface, 0, &memory->shared);
    }
    if (rc)
        return rc;
    if (handle)
        set_shared_targets(window, wires, is_contiguous);
    if (!own->control)
        rc = own_control(window);
    if (!rc && is_allocated(window) && !own->mapped)
        rc = allocate_own(window, wire->bytes);
    if (window->flavor == WEFT_WINDOW_CREATE)
        own->mapped = (char *)(uintptr_t)wire->base;
    own->is_mapped = true;
    return rc;
}

void weft_window_memory_free(weft_window_memory *memory)
{
    if (!memory)
        return;
    if (memory->shared.addr)
        memory->iface->ops->unshare(memory->iface, &memory->shared);
    free(memory->members);
    free(memory->pages);
    free(memory->allocated);
    free(memory->control);
    free(memory);
}

weft_window_told *weft_window_memory_told(const weft_window_memory *memory, uint32_t reader, uint32_t writer)
{
    return (weft_window_told *)((char *)memory->told + reader * row_bytes(memory->count)) + writer;
}

void weft_window_memory_wake(const weft_window *window)
{
    const weft_window_memory *memory = window->memory;
    atomic_thread_fence(memory_order_seq_cst); /* store before load of asleep; pairs with the sleeper */
    for (uint32_t i = 0; i < memory->count; i++)
        if (i != memory->index && memory->pages[i])
            weft_page_wake_if_asleep(memory->pages[i]);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notify_open: see notify_open.h. Counters are shared in a node if the window's memory is: then one block has those of all members of the
 * node.
 */
#include "rma/notify_open.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/worker.h"
#include "rma/memory.h"
#include "rma/notify.h"
#include "rma/op.h"
#include "rma/open.h"

static int no_memory(uint64_t count)
{
    return weft_fail(WEFT_E_NOMEM, "no memory for %llu notification counters", (unsigned long long)count);
}

/* Do members of this node map each other's memory, hence counters? */
static bool is_shared(const weft_window *window)
{
    const weft_window_memory *memory = window->memory;
    uint32_t other = memory->count > 1 ? memory->members[!memory->index] : window->rank;
    return other != window->rank && window->targets[other].is_mapped;
}

/* The node's first member makes the block. */
static int make(weft_window *window, const weft_window_wire *wires, uint64_t *handle)
{
    weft_window_memory *memory = window->memory;
    uint64_t counters = 0;
    int rc;
    if (!is_shared(window) || memory->index)
        return 0;
    for (uint32_t i = 0; i < memory->count; i++)
        counters += wires[memory->members[i]].bytes;
    rc = memory->iface->ops->share(memory->iface, (counters + 1) * sizeof(weft_notify_counter), &window->notify->shared);
    *handle = window->notify->shared.handle;
    return rc;
}

static int allocate(weft_window *window, uint32_t count)
{
    weft_window_notify *notify = window->notify;
    size_t bytes = ((size_t)count + 1) * sizeof(weft_notify_counter);
    notify->allocated = aligned_alloc(WEFT_LINE, bytes);
    if (!notify->allocated)
        return no_memory(count);
    memset(notify->allocated, 0, bytes);
    notify->targets[window->rank].counters = notify->allocated;
    return 0;
}

/* Maps the counters of this node's members. handle 0: none are shared. */
static int map(weft_window *window, const weft_window_wire *wires, uint64_t handle)
{
    weft_window_notify *notify = window->notify;
    const weft_window_memory *memory = window->memory;
    weft_notify_counter *at;
    int rc;
    if (!handle)
        return allocate(window, (uint32_t)wires[window->rank].bytes);
    if (!notify->shared.addr) {
        notify->shared.handle = handle;
        rc = memory->iface->ops->share(memory->iface, 0, &notify->shared);
        if (rc)
            return rc;
    }
    at = notify->shared.addr;
    for (uint32_t i = 0; i < memory->count; i++) {
        uint32_t member = memory->members[i];
        notify->targets[member].counters = at;
        notify->targets[member].page = memory->pages[i];
        at += wires[member].bytes;
    }
    return 0;
}

/* All steps that exchange. */
static int open_steps(weft_window *window, uint32_t count, weft_window_wire *wires, int rc)
{
    weft_window_wire wire = {.bytes = count};
    rc = weft_window_agree(window, &wire, wires, rc);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < window->size; i++)
        window->notify->targets[i].count = (uint32_t)wires[i].bytes;
    rc = make(window, wires, &wire.handle);
    rc = weft_window_agree(window, &wire, wires, rc);
    if (rc)
        return rc;
    rc = map(window, wires, is_shared(window) ? wires[window->memory->members[0]].handle : 0);
    wire.handle = rc ? 0 : weft_notify_number(window);
    rc = weft_window_agree(window, &wire, wires, rc);
    for (uint32_t i = 0; i < window->size && !rc; i++)
        window->notify->targets[i].number = (uint32_t)wires[i].handle;
    return rc;
}

int weft_notify_open(weft_window *window, uint32_t count, int failed)
{
    weft_window_wire *wires = malloc(window->size * sizeof *wires);
    weft_window_notify *notify = calloc(1, sizeof *notify + window->size * sizeof *notify->targets);
    bool had = window->notify;
    int rc = weft_rma_flush(window, WEFT_ANY); /* operations before have no notices, which order later ones (notice.h) */
    if (failed)
        rc = failed;
    if (!wires) {
        free(notify);
        rc = no_memory(count);
        weft_team_stop(window->team, rc, (int)(window->team->sequence++ & WEFT_TAG_BITS)); /* the exchange of the others ends */
        return rc;
    }
    if (!notify && !rc)
        rc = no_memory(count);
    if (!had)
        window->notify = notify;
    rc = open_steps(window, count, wires, rc);
    free(wires);
    if (had)
        free(notify);
    else if (rc)
        weft_notify_close(window);
    return rc;
}

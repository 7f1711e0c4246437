/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keys: see keys.h.
 */
#include "rma/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "core/reg.h"
#include "core/worker.h"
#include "rma/device_state.h"
#include "rma/memory.h"

enum { NAME_BYTES = sizeof((weft_window_key *)0)->network };

static void name_of(const weft_iface *iface, char *name)
{
    size_t bytes = strnlen(iface->ops->name, NAME_BYTES);
    memset(name, 0, NAME_BYTES);
    memcpy(name, iface->ops->name, bytes);
}

/* Do other members reach this one's memory by an iface that needs keys? */
static bool is_needed(const weft_window *window)
{
    const weft_window_memory *memory = window->memory;
    const weft_window_target *own = &window->targets[window->rank];
    bool is_shared = window->flavor == WEFT_WINDOW_ALLOCATE && memory->shared.addr;
    if (!own->bytes || window->flavor == WEFT_WINDOW_SHARED)
        return false;
    if (memory->count < window->size)
        return true;
    return window->size > 1 && !is_shared && !(memory->iface && !memory->iface->caps.key_bytes);
}

/* The first that is open (core/iface_select). */
weft_iface *weft_window_network(const weft_worker *worker)
{
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        weft_iface *iface = worker->ifaces[i];
        if (iface->ops != &weft_self_ops && iface->caps.key_bytes && weft_window_device_serves(iface))
            return iface;
    }
    return NULL;
}

static bool is_slow(const weft_iface *iface, uint64_t bytes) { return iface->caps.wants_regcache && bytes > WEFT_REG_INLINE_MAX; }

bool weft_window_has_loopback(weft_iface *iface)
{
    return iface->caps.amo == WEFT_AMO_NIC && iface->ops->amo_self && !iface->ops->amo_self(iface, NULL, 0);
}

/* The scope of atomics that other members' devices may perform on own memory by `iface`. A refused key of a dynamic window breaks
 * connections (docs/rma.md), and an atomic whose outcome is unknown cannot be repeated. */
static enum weft_amo_domain amo_domain(const weft_window *window, weft_iface *iface)
{
    if (window->flavor == WEFT_WINDOW_DYNAMIC)
        return WEFT_AMO_NONE;
    if (iface->caps.amo == WEFT_AMO_NIC)
        return window->device->wants_words && weft_window_has_loopback(iface) ? WEFT_AMO_NIC : WEFT_AMO_NONE;
    return iface->caps.amo;
}

int weft_window_mr_reg(weft_window *window, weft_iface *iface, void *addr, uint64_t bytes, weft_mr *mr)
{
    /* ordered: programs poll window memory, and learn of a put from other ranks than its origin */
    const uint32_t rights = WEFT_ACCESS_READ | WEFT_ACCESS_WRITE | WEFT_ACCESS_ORDERED |
                            (window->device->amo ? WEFT_ACCESS_ATOMIC : 0);
    bool may_flush = iface->regcache && !window->device->is_full;
    int rc;
    if (is_slow(iface, bytes))
        weft_worker_unlock(window->worker);
    rc = iface->ops->mr_reg(iface, addr, bytes, rights, WEFT_MEMORY_HOST, mr);
    if (rc && may_flush) { /* unused registrations give way to a window */
        weft_regcache_flush(iface->regcache);
        rc = iface->ops->mr_reg(iface, addr, bytes, rights, WEFT_MEMORY_HOST, mr);
    }
    if (is_slow(iface, bytes))
        weft_worker_lock(window->worker);
    window->device->is_full = rc != 0;
    return rc;
}

void weft_window_mr_dereg(weft_window *window, weft_mr *mr)
{
    weft_iface *iface = window->device->iface;
    bool slow = is_slow(iface, mr->bytes);
    window->device->is_full = false;
    if (slow)
        weft_worker_unlock(window->worker);
    iface->ops->mr_dereg(iface, mr);
    if (slow)
        weft_worker_lock(window->worker);
}

static int map(weft_window *window, weft_iface *iface)
{
    const weft_window_target *own = &window->targets[window->rank];
    weft_window_device *device = window->device;
    int rc;
    device->amo = amo_domain(window, iface);
    rc = weft_window_mr_reg(window, iface, own->mapped, own->bytes, &device->mr);
    if (rc && device->amo == WEFT_AMO_NIC) { /* without atomics then */
        device->amo = WEFT_AMO_NONE;
        rc = weft_window_mr_reg(window, iface, own->mapped, own->bytes, &device->mr);
    }
    return rc;
}

/* Of a dynamic window. A refusal is no error: regions are learned, and notifications without data sent, by messages. */
static void map_root(weft_window *window, weft_iface *iface, void *root, uint64_t bytes)
{
    weft_window_device *device = window->device;
    if (weft_window_mr_reg(window, iface, root, bytes, &device->mr))
        device->mr = (weft_mr){0};
}

void weft_window_key_make(weft_window *window, void *root, uint64_t root_bytes, weft_window_key *key)
{
    weft_iface *iface;
    *key = (weft_window_key){.keyless = WEFT_KEYLESS_NO_NEED, .root = (uintptr_t)root};
    if (!is_needed(window))
        return;
    if (!weft_window_device_is_allowed()) {
        key->keyless = WEFT_KEYLESS_KNOB;
    } else if (!(iface = weft_window_network(window->worker))) {
        key->keyless = WEFT_KEYLESS_NO_NETWORK;
    } else if (window->flavor != WEFT_WINDOW_DYNAMIC && map(window, iface)) {
        key->keyless = WEFT_KEYLESS_REFUSED;
        weft_log_debug("%llu bytes of a window are reached by messages: %s", (unsigned long long)window->targets[window->rank].bytes,
                       weft_fail_text(WEFT_E_NOSPACE));
    } else {
        window->device->iface = iface;
        if (window->flavor == WEFT_WINDOW_DYNAMIC)
            map_root(window, iface, root, root_bytes);
        name_of(iface, key->network);
        key->rkey = window->device->mr.rkey;
        key->amo = (uint8_t)window->device->amo;
        key->device = iface->caps.amo_device;
        window->targets[window->rank].has_device_words = key->amo == WEFT_AMO_NIC; /* before any other member can know */
    }
}

void weft_window_key_end(weft_window *window)
{
    weft_window_device *device = window->device;
    if (device->iface && device->mr.rkey.length)
        device->iface->ops->mr_dereg(device->iface, &device->mr);
    device->iface = NULL;
}

bool weft_window_key_fits(const weft_window_key *key, const weft_iface *iface)
{
    char name[sizeof key->network];
    name_of(iface, name);
    return key->network[0] && memcmp(name, key->network, sizeof name) == 0;
}

const char *weft_window_keyless_text(const weft_window_key *key)
{
    static const char *const texts[] = {
        [WEFT_KEYLESS_NO_NEED] = "its memory has no bytes",
        [WEFT_KEYLESS_NO_NETWORK] = "its network has no device that moves the bytes",
        [WEFT_KEYLESS_REFUSED] = "its memory could not be registered (its log at level debug has the cause; ulimit -l)",
        [WEFT_KEYLESS_KNOB] = "WEFT_RMA_DEVICE, WEFT_REG_MODE or WEFT_CHECKSUM excludes it",
    };
    return key->network[0] ? "it registered with another network" : key->keyless < weft_count(texts) ? texts[key->keyless] : "?";
}

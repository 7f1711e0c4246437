/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_target: whether a device reaches a target's memory, decided at the first operation on it: who is not operated on costs no
 * connection.
 */
#include <stdlib.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "rma/device_state.h"
#include "rma/keys.h"

bool weft_window_device_is_allowed(void)
{
    return weft_knob.rma_device != WEFT_RMA_DEVICE_NEVER && weft_knob.reg_mode != WEFT_REG_MODE_NEVER && !weft_knob.checksum;
}

bool weft_window_device_serves(const weft_iface *iface)
{
    return (iface->caps.get || iface->caps.put) &&
           (weft_knob.rma_device == WEFT_RMA_DEVICE_ALWAYS || iface->caps.wants_regcache || !iface->caps.key_bytes);
}

static const weft_rkey no_key = {.length = 0};

/* Why no device reaches the target; NULL: one does. */
static const char *obstacle(const weft_device_target *target, const weft_window_key *key)
{
    weft_iface *iface = target->iface;
    if (!weft_window_device_serves(iface))
        return "the transport has no device that moves the bytes (WEFT_RMA_DEVICE)";
    if (target->peer->no_rma || !iface->ops->can_rma(iface, target->peer->ep))
        return "the transport or the kernel does not let this process access the other's memory";
    if (weft_reg_needed(iface) && !weft_reg_allowed(iface))
        return "WEFT_REG_MODE excludes it";
    if (iface->caps.key_bytes)
        return weft_window_key_fits(key, iface) ? NULL : weft_window_keyless_text(key);
    if (target->device->window->flavor == WEFT_WINDOW_DYNAMIC && !target->device->window->targets[target->rank].control)
        return "the node has no shared memory that tells of memory being detached";
    return NULL;
}

static const char *way(bool is_by_device) { return is_by_device ? "by the device" : "by messages"; }

static void choose(weft_device_target *target)
{
    const weft_window_key *key = &target->device->keys[target->rank];
    const weft_caps *caps = &target->iface->caps;
    const char *why = obstacle(target, key);
    if (!why) {
        target->can_put = caps->put;
        target->can_get = caps->get;
        target->can_amo = caps->key_bytes && key->amo != WEFT_AMO_NONE && caps->amo != WEFT_AMO_NONE;
        target->rkey = caps->key_bytes ? &key->rkey : &no_key;
    }
    weft_log_debug("window: target %u: put %s, get %s, accumulate %s over %s%s%s", target->rank, way(target->can_put), way(target->can_get),
                   way(target->can_amo), target->iface->ops->name, why ? ": " : "", why ? why : "");
}

/* Of a dynamic window: unless the target's table can be read its regions are asked for by messages. */
static void open_lookup(weft_device_target *target)
{
    const weft_window_key *key = &target->device->keys[target->rank];
    if (target->can_get && key->root && (!target->iface->caps.key_bytes || key->rkey.length))
        target->lookup = weft_device_lookup_new(key->root);
}

/* All puts before the flush are visible at the target, or have failed: then their operation has the error. */
static void on_flushed(weft_done *done, int rc)
{
    weft_device_target *target = weft_container(done, weft_device_target, flushed_call);
    weft_window *window = target->device->window;
    target->is_flushing = false;
    target->flushed = target->flushing;
    window->moving -= target->flushed == target->puts;
    if (target->asked > target->flushed)
        weft_device_wait_turn(target); /* another thread has asked for more meanwhile */
    if (rc)
        weft_rma_error_set(&window->inbox->peers[target->rank].error, rc, weft_fail_text(rc)), window->inbox->has_error = true;
}

weft_device_target *weft_device_target_of(weft_window *window, uint32_t rank)
{
    weft_device_target *target = window->targets[rank].device;
    weft_peer *peer;
    if (target || !weft_window_device_is_allowed())
        return target;
    if (weft_chan_resolve_peer(window->chan, rank, &peer) || !(target = calloc(1, sizeof *target)))
        return NULL;
    target->flushed_call.call = on_flushed;
    weft_list_init(&target->link);
    weft_list_init(&target->queue);
    weft_list_init(&target->under_way);
    target->device = window->device;
    target->peer = peer;
    target->iface = peer->ep->iface;
    target->rank = rank;
    choose(target);
    weft_known_open(&target->known, window->size, target->iface->caps.key_bytes ? NULL : window->targets[rank].control);
    if (window->regions)
        open_lookup(target);
    window->targets[rank].device = target;
    return target;
}

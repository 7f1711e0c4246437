/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_lookup: looks for a region of a dynamic window in the target's table (region_table.h), by gets: its root, then the block that may
 * have the region; if that has not, the root's version again, which tells whether both belong together. One look-up for a target at a
 * time, for the first operation in its queue that awaits its region. Each get passes through a slot of the window's.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/worker.h"
#include "rma/device_state.h"
#include "rma/region_table.h"

#define TRIES_MAX 20000u /* while the target changes its table, in the middle of which it may lose its CPU; then messages serve */
_Static_assert(sizeof(weft_table_root) <= WEFT_BOUNCE_BYTES && WEFT_TABLE_BLOCK * sizeof(weft_table_entry) <= WEFT_BOUNCE_BYTES, "a slot");

static void on_read(weft_done *done, int rc)
{
    weft_device_lookup *self = weft_container(done, weft_device_lookup, done);
    self->is_reading = false;
    self->rc = rc;
}

weft_device_lookup *weft_device_lookup_new(uint64_t root)
{
    weft_device_lookup *self = calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->done.call = on_read;
    self->root = root;
    return self;
}

static void read_next(weft_device_lookup *self, enum weft_lookup_stage stage, uint64_t from, uint64_t bytes)
{
    self->stage = stage;
    self->from = from;
    self->bytes = bytes;
    self->at = 0;
}

/* Detaches from now on are seen, if the target's control tells of them. */
static void begin_try(weft_device_target *target)
{
    weft_device_lookup *self = target->lookup;
    weft_window_control *control = target->known.control;
    for (uint32_t i = 0; i < WEFT_WINDOW_DETACHES && control; i++)
        self->detaches[i] = atomic_load_explicit(&control->detaches[i], memory_order_acquire);
    read_next(self, WEFT_LOOKUP_ROOT, self->root, sizeof(weft_table_root));
}

/* 0; AGAIN: no slot is free; UNSUPPORTED. */
static int begin(weft_device_op *op)
{
    weft_device_target *target = op->target;
    weft_device_lookup *self = target->lookup;
    uint64_t bytes;
    if (!weft_bounce_serves(&target->device->bounce, target->iface) ||
        !weft_rma_span(op->what.offset, op->what.target_type, op->what.target_count, &self->address, &bytes))
        return WEFT_E_UNSUPPORTED;
    self->slot = weft_bounce_take(&target->device->bounce);
    if (!self->slot)
        return WEFT_AGAIN;
    self->op = op;
    self->rc = 0;
    self->tries = 0;
    self->is_found = false;
    begin_try(target);
    return 0;
}

static int read_part(weft_device_target *target)
{
    weft_device_lookup *self = target->lookup;
    weft_ep *ep = target->peer->ep;
    uint64_t left = self->bytes - self->at, max = target->iface->caps.rma_max;
    weft_rma rma = {.local = self->slot + self->at, .remote = self->from + self->at, .bytes = left < max ? left : max,
                    .rkey = self->stage == WEFT_LOOKUP_BLOCK ? &self->rkey : target->rkey, .done = &self->done};
    int rc;
    if (target->iface->caps.mr_local)
        rma.mr = weft_bounce_mr(&target->device->bounce);
    self->is_reading = true;
    rc = ep->iface->ops->get(ep->iface, ep, &rma);
    if (rc) {
        self->is_reading = false;
        return rc;
    }
    self->at += rma.bytes;
    target->device->window->worker->counters[WEFT_COUNT_REGION_READS]++;
    return 0;
}

/* What was read does not belong together. Other work comes first. */
static int try_again(weft_device_target *target)
{
    weft_device_lookup *self = target->lookup;
    if (++self->tries == TRIES_MAX) {
        self->stage = WEFT_LOOKUP_OVER;
        return 0;
    }
    begin_try(target);
    self->is_repeated = true;
    return WEFT_AGAIN;
}

static int use_root(weft_device_target *target)
{
    weft_device_lookup *self = target->lookup;
    const weft_table_root *root = (const weft_table_root *)self->slot;
    uint32_t block = 0;
    uint64_t count;
    if (!weft_table_root_is_sound(root))
        return try_again(target);
    count = weft_table_block_of(root, self->address, &block);
    if (!count || (target->iface->caps.key_bytes && !root->rkey.length)) {
        self->stage = WEFT_LOOKUP_OVER;
        return 0;
    }
    self->version = root->version;
    self->rkey = root->rkey;
    read_next(self, WEFT_LOOKUP_BLOCK, root->entries + (uint64_t)block * WEFT_TABLE_BLOCK * sizeof(weft_table_entry),
              count * sizeof(weft_table_entry));
    return 0;
}

void weft_device_tell_found(weft_device_target *target, weft_known_region *region)
{
    weft_rma_region_note note = {.kind = WEFT_RMA_FOUND, .base = region->base, .bytes = region->bytes, .rkey = region->rkey};
    if (!weft_list_is_empty(&target->peer->waiting))
        return;
    region->is_untold = false;
    weft_chan_notify(target->device->window->chan, target->rank, &note, sizeof note); /* fails if the target has died */
}

/* Of the target's control before the root was read. */
static uint32_t detaches_of(const weft_device_target *target, uint64_t base)
{
    weft_window_control *control = target->known.control;
    return control ? target->lookup->detaches[weft_window_detaches(control, base) - control->detaches] : 0;
}

static void learn(weft_device_target *target, const weft_table_entry *entry)
{
    const weft_rma_region_note note = {.kind = WEFT_RMA_FOUND, .base = entry->base, .bytes = entry->bytes, .rkey = entry->rkey,
                                       .detaches = detaches_of(target, entry->base)};
    weft_known_add(&target->known, &note);
}

/* The others of the block, as far as there is space. Only where the target's control tells of their end: a key that is stale by the time it
 * is used may cost a connection. */
static void learn_others(weft_device_target *target, const weft_table_entry *block, uint64_t count)
{
    weft_known *known = &target->known;
    for (uint64_t i = 0; i < count && known->control && known->regions.count < known->max; i++)
        if (weft_table_entry_is_sound(&block[i]) && !weft_spans_overlap(&known->regions, block[i].base, block[i].bytes))
            learn(target, &block[i]);
}

static int use_block(weft_device_target *target)
{
    weft_device_lookup *self = target->lookup;
    weft_window_control *control = target->known.control;
    const weft_table_entry *block = (const weft_table_entry *)self->slot;
    const uint64_t count = self->bytes / sizeof *block;
    const weft_table_entry *entry = weft_table_find(block, (uint32_t)count, self->address);
    if (!entry) {
        read_next(self, WEFT_LOOKUP_VERSION, self->root + offsetof(weft_table_root, version), sizeof self->version);
        return 0;
    }
    if (!control && !entry->rkey.length) { /* a message asks, and the target tells when that changes */
        self->stage = WEFT_LOOKUP_OVER;
        return 0;
    }
    if (control && atomic_load(weft_window_detaches(control, entry->base)) != detaches_of(target, entry->base))
        return try_again(target);
    learn(target, entry);
    learn_others(target, block, count);
    self->is_found = true;
    self->stage = WEFT_LOOKUP_OVER;
    return 0;
}

/* There is no such region, unless the table was changed since the root was read. */
static int use_version(weft_device_target *target)
{
    weft_device_lookup *self = target->lookup;
    if (memcmp(self->slot, &self->version, sizeof self->version))
        return try_again(target);
    self->stage = WEFT_LOOKUP_OVER;
    return 0;
}

int weft_device_look_up(weft_device_op *op)
{
    weft_device_target *target = op->target;
    weft_device_lookup *self = target->lookup;
    int rc = self->op ? 0 : begin(op);
    self->is_repeated = false;
    while (!rc && self->op && !self->is_reading && self->stage != WEFT_LOOKUP_OVER) {
        if (self->rc)
            rc = self->rc;
        else if (self->at < self->bytes)
            rc = read_part(target);
        else
            rc = self->stage == WEFT_LOOKUP_ROOT    ? use_root(target)
                 : self->stage == WEFT_LOOKUP_BLOCK ? use_block(target)
                                                    : use_version(target);
    }
    if (self->is_reading || rc == WEFT_AGAIN)
        return WEFT_AGAIN;
    if (self->op)
        weft_bounce_give(&target->device->bounce, self->slot);
    self->op = NULL;
    return !rc && self->is_found ? 0 : WEFT_E_UNSUPPORTED;
}

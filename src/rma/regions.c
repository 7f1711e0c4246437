/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regions: see regions.h.
 */
#include "rma/regions.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world.h"
#include "rma/device_state.h"
#include "rma/keys.h"
#include "rma/message.h"
#include "rma/region_table.h"
#include "rma/spans.h"

typedef struct region {
    weft_mr mr;              /* if is_registered */
    uint32_t *told;          /* [count] members that know it, ascending; owned */
    uint32_t count, capacity;
    bool is_registered;
    bool is_listed;          /* it is in the table */
    bool is_unlisted;        /* the table had no space for it */
} region;

typedef struct weft_window_regions {
    weft_spans all;   /* item: region, owned */
    weft_spans empty; /* attached without bytes; item: NULL */
    uint32_t registered;
    uint64_t unlisted; /* regions */
    weft_region_table table;
} weft_window_regions;

int weft_rma_regions_open(weft_window *window)
{
    weft_window_regions *regions = window->regions = calloc(1, sizeof *regions);
    return regions ? weft_region_table_open(&regions->table) : weft_fail(WEFT_E_NOMEM, "no memory for a dynamic window");
}

void *weft_rma_regions_root(const weft_window *window) { return window->regions ? window->regions->table.root : NULL; }

void weft_rma_regions_unregister(weft_window *window)
{
    weft_window_regions *regions = window->regions;
    weft_iface *iface = window->device->iface;
    for (uint64_t i = 0; i < regions->all.count; i++) {
        region *at = regions->all.sorted[i].item;
        if (at->is_registered)
            iface->ops->mr_dereg(iface, &at->mr);
        at->is_registered = false;
    }
    weft_region_table_unregister(window, &regions->table);
}

static void region_free(region *self)
{
    free(self->told);
    free(self);
}

void weft_rma_regions_close(weft_window *window)
{
    for (uint64_t i = 0; i < window->regions->all.count; i++)
        region_free(window->regions->all.sorted[i].item);
    weft_spans_free(&window->regions->all);
    weft_spans_free(&window->regions->empty);
    weft_region_table_close(&window->regions->table);
    free(window->regions);
    window->regions = NULL;
}

/* -- attach -- */

/* Regions of a window take at most half of a rank's share of what the device holds. */
static bool may_register(const weft_window *window)
{
    const weft_iface *iface = window->device->iface;
    uint32_t max = iface ? iface->caps.mr_count_max : 0;
    return iface && (!max || window->regions->registered < max / (2 * window->worker->world->boot->local_size));
}

/* False: another thread has detached it meanwhile. */
static bool region_register(weft_window *window, region *self, void *base, uint64_t bytes)
{
    const weft_span *span;
    weft_mr mr;
    if (!may_register(window))
        return true;
    if (weft_window_mr_reg(window, window->device->iface, base, bytes, &mr)) {
        weft_log_debug("%llu bytes attached at %p are reached by messages: %s", (unsigned long long)bytes, base,
                       weft_fail_text(WEFT_E_NOSPACE));
        mr = (weft_mr){0};
    }
    span = weft_spans_from(&window->regions->all, (uintptr_t)base);
    if (!span || span->item != self) {
        if (mr.rkey.length)
            weft_window_mr_dereg(window, &mr);
        return false;
    }
    self->mr = mr;
    self->is_registered = mr.rkey.length;
    window->regions->registered += self->is_registered;
    return true;
}

static void list(weft_window *window, region *self, uint64_t base, uint64_t bytes)
{
    self->is_listed = weft_region_table_add(window, &window->regions->table, base, bytes, &self->mr.rkey);
    self->is_unlisted = !self->is_listed;
    window->regions->unlisted += self->is_unlisted;
}

/* Its place in the table is for one that had no space there before. */
static void unlist(weft_window *window, region *self, uint64_t base)
{
    weft_window_regions *regions = window->regions;
    const weft_span *next = regions->all.sorted;
    regions->unlisted -= self->is_unlisted;
    if (!self->is_listed)
        return;
    weft_region_table_remove(&regions->table, base);
    if (!regions->unlisted)
        return;
    while (!((const region *)next->item)->is_unlisted)
        next++;
    regions->unlisted--;
    list(window, next->item, next->base, next->bytes);
}

int weft_rma_attach(weft_window *window, void *given, uint64_t bytes)
{
    weft_window_regions *regions = window->regions;
    uint64_t base = (uintptr_t)given;
    const weft_span *overlap = weft_spans_overlap(&regions->all, base, bytes);
    region *made;
    int rc;
    if (overlap)
        return weft_fail(WEFT_E_RMA_ATTACH, "%llu bytes at %p overlap the %llu bytes attached at %p: detach these first",
                         (unsigned long long)bytes, given, (unsigned long long)overlap->bytes, (void *)(uintptr_t)overlap->base);
    if (!bytes)
        return weft_spans_add(&regions->empty, base, 0, NULL);
    if (!(made = calloc(1, sizeof *made)))
        return weft_fail(WEFT_E_NOMEM, "no memory for an attached region");
    rc = weft_spans_add(&regions->all, base, bytes, made);
    if (rc)
        free(made);
    else if (region_register(window, made, given, bytes))
        list(window, made, base, bytes);
    return rc;
}

/* -- detach -- */

/* Makes known entries of other members invalid: those of the node compare the count in the control, the others get a note. It is not in the
 * table any more: who reads it there has read the count before. The caller ends the key. */
static void revoke(weft_window *window, const region *self, uint64_t base)
{
    weft_window_control *control = window->targets[window->rank].control;
    weft_rma_region_note note = {.kind = WEFT_RMA_REVOKED, .base = base};
    if (control)
        atomic_fetch_add(weft_window_detaches(control, base), 1);
    for (uint32_t i = 0; i < self->count; i++)
        weft_chan_notify(window->chan, self->told[i], &note, sizeof note); /* fails if the member has died */
}

int weft_rma_detach(weft_window *window, const void *given)
{
    weft_window_regions *regions = window->regions;
    uint64_t base = (uintptr_t)given;
    weft_span *span = weft_spans_from(&regions->all, base), *empty = span ? NULL : weft_spans_from(&regions->empty, base);
    region *self;
    if (empty)
        weft_spans_remove(&regions->empty, empty);
    else if (!span)
        return weft_fail(WEFT_E_BASE, "no memory is attached at %p: pass the base that was passed to MPI_Win_attach", given);
    if (empty)
        return 0;
    self = span->item;
    weft_spans_remove(&regions->all, span);
    unlist(window, self, base);
    revoke(window, self, base);
    if (self->is_registered) {
        regions->registered--;
        weft_window_mr_dereg(window, &self->mr);
    }
    region_free(self);
    return 0;
}

/* -- look-up -- */

bool weft_rma_is_attached(const weft_window *window, uint64_t base, uint64_t bytes)
{
    while (bytes) {
        const weft_span *at = weft_spans_at(&window->regions->all, base);
        uint64_t here;
        if (!at)
            return false;
        here = at->base + at->bytes - base;
        if (here >= bytes)
            return true;
        base += here; /* it may go on in a region that follows without a gap */
        bytes -= here;
    }
    return true;
}

/* False: no memory. */
static bool remember(region *self, uint32_t member)
{
    uint32_t i = self->count;
    while (i && self->told[i - 1] >= member)
        i--;
    if (i < self->count && self->told[i] == member)
        return true;
    if (self->count == self->capacity) {
        uint32_t capacity = self->capacity ? self->capacity * 2 : 4;
        uint32_t *told = realloc(self->told, capacity * sizeof *told);
        if (!told)
            return false;
        self->told = told;
        self->capacity = capacity;
    }
    memmove(&self->told[i + 1], &self->told[i], (self->count - i) * sizeof *self->told);
    self->told[i] = member;
    self->count++;
    return true;
}

void weft_rma_regions_answer(weft_window *window, uint32_t to, const weft_rma_head *head, const weft_type *type)
{
    weft_window_control *control = window->targets[window->rank].control;
    weft_rma_region_note note = {.kind = WEFT_RMA_REGION};
    uint64_t from, bytes;
    const weft_span *span = NULL;
    if (window->regions && type && weft_rma_span(head->offset, type, head->count, &from, &bytes))
        span = weft_spans_at(&window->regions->all, from);
    if (span && remember(span->item, to)) {
        const region *self = span->item;
        note.base = span->base;
        note.bytes = span->bytes;
        note.detaches = control ? atomic_load(weft_window_detaches(control, span->base)) : 0;
        if (self->is_registered)
            note.rkey = self->mr.rkey;
    }
    weft_chan_notify(window->chan, to, &note, sizeof note);
}

void weft_rma_regions_on_found(weft_window *window, uint32_t from, const void *body, uint32_t bytes)
{
    weft_rma_region_note note, revoked = {.kind = WEFT_RMA_REVOKED};
    const weft_span *span;
    const region *self;
    if (!window->regions || from >= window->size || bytes != sizeof note)
        return;
    memcpy(&note, body, sizeof note);
    span = weft_spans_from(&window->regions->all, note.base);
    self = span ? span->item : NULL;
    if (span && span->bytes == note.bytes && self->mr.rkey.length == note.rkey.length &&
        !memcmp(self->mr.rkey.bytes, note.rkey.bytes, note.rkey.length) && remember(span->item, from))
        return;
    revoked.base = note.base;
    weft_chan_notify(window->chan, from, &revoked, sizeof revoked);
}

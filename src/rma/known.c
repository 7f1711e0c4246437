/* SPDX-License-Identifier: BSD-3-Clause
 *
 * known: see known.h.
 */
#include "rma/known.h"

#include <stdlib.h>
#include <string.h>

#include "rma/message.h"

/* Regions that are kept: of a window, shared among its targets, but at least REGIONS_MIN and at most REGIONS_MAX of a target. */
#define REGIONS_ALL 65536u
#define REGIONS_MIN 64u
#define REGIONS_MAX 4096u
#define ASKING_MAX 64u /* questions to a target at one time: a burst of operations needs no answer to each */

void weft_known_open(weft_known *known, uint32_t members, weft_window_control *control)
{
    uint32_t part = REGIONS_ALL / members;
    *known = (weft_known){.control = control, .max = part < REGIONS_MIN ? REGIONS_MIN : part > REGIONS_MAX ? REGIONS_MAX : part};
}

void weft_known_release(weft_known_region *region)
{
    if (region && --region->holders == 0)
        free(region);
}

static void drop(weft_known *known, weft_span *span)
{
    weft_known_region *region = span->item;
    weft_spans_remove(&known->regions, span);
    region->is_ended = true;
    weft_known_release(region);
}

/* -- use -- */

bool weft_known_is_current(const weft_known *known, const weft_known_region *region)
{
    return !region->is_ended && (!known->control || atomic_load(weft_window_detaches(known->control, region->base)) == region->detaches);
}

weft_known_region *weft_known_acquire(weft_known *known, const weft_rma_op *op)
{
    weft_known_region *region;
    weft_span *span;
    uint64_t from, bytes;
    if (!weft_rma_span(op->offset, op->target_type, op->target_count, &from, &bytes) || !(span = weft_spans_at(&known->regions, from)))
        return NULL;
    region = span->item;
    if (!weft_known_is_current(known, region)) {
        drop(known, span);
        return NULL;
    }
    region->is_used = true;
    if (bytes > span->bytes - (from - span->base) || (!known->control && !region->rkey.length))
        return NULL;
    region->holders++;
    return region;
}

void weft_known_forget(weft_known *known, weft_known_region *region)
{
    weft_span *span = weft_spans_from(&known->regions, region->base);
    region->is_ended = true;
    if (span && span->item == region)
        drop(known, span);
}

bool weft_known_misses(const weft_known *known, const weft_rma_op *op)
{
    uint64_t from, bytes;
    return weft_rma_span(op->offset, op->target_type, op->target_count, &from, &bytes) && !weft_spans_at(&known->regions, from);
}

bool weft_known_ask(weft_known *known, const weft_rma_op *op)
{
    if (known->asking >= ASKING_MAX || !weft_known_misses(known, op))
        return false;
    known->asking++;
    return true;
}

/* -- answers -- */

/* Makes room: of regions that were not used since the hand has passed them the next one goes. */
static void evict(weft_known *known)
{
    for (;; known->hand++) {
        weft_span *span = &known->regions.sorted[known->hand %= known->regions.count];
        weft_known_region *region = span->item;
        if (!region->is_used) {
            drop(known, span);
            return;
        }
        region->is_used = false;
    }
}

void weft_known_add(weft_known *known, const weft_rma_region_note *note)
{
    weft_known_region *made;
    weft_span *old;
    while ((old = weft_spans_overlap(&known->regions, note->base, note->bytes)))
        drop(known, old); /* told before, or detached since */
    if (known->regions.count >= known->max)
        evict(known);
    if (!(made = malloc(sizeof *made)))
        return; /* messages serve */
    *made = (weft_known_region){.base = note->base, .bytes = note->bytes, .rkey = note->rkey, .detaches = note->detaches, .holders = 1,
                                .is_used = true, .is_untold = note->kind == WEFT_RMA_FOUND && !known->control};
    if (weft_spans_add(&known->regions, made->base, made->bytes, made))
        free(made);
}

void weft_known_on_note(weft_known *known, const void *body, uint32_t bytes)
{
    weft_rma_region_note note;
    weft_span *span;
    if (bytes != sizeof note)
        return;
    memcpy(&note, body, sizeof note);
    if (note.kind == WEFT_RMA_REVOKED) {
        if ((span = weft_spans_from(&known->regions, note.base)))
            drop(known, span);
        return;
    }
    known->asking -= known->asking > 0;
    if (note.bytes)
        weft_known_add(known, &note);
}

void weft_known_close(weft_known *known)
{
    for (uint64_t i = 0; i < known->regions.count; i++)
        weft_known_release(known->regions.sorted[i].item);
    weft_spans_free(&known->regions);
}

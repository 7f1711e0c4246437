/* SPDX-License-Identifier: BSD-3-Clause
 *
 * known: attached regions of a target's dynamic window, as far as this member knows them: those that it has found in the target's table,
 * or asked for: at most some thousands, of which the ones that are not used give way. The target tells when one is detached (regions.h).
 * That may come late: so a network refuses the key of a region that has ended, and before memory of the node is accessed the target's
 * control is looked at. Requires worker->lock.
 */
#ifndef WEFT_RMA_KNOWN_H
#define WEFT_RMA_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/operation.h"
#include "rma/spans.h"
#include "rma/window.h"
#include "transport/iface.h"

typedef struct weft_known_region {
    uint64_t base, bytes;
    weft_rkey rkey;      /* length 0: the target has not registered it */
    uint32_t detaches;   /* count in the target's control when it was told */
    uint32_t holders;    /* the table, and operations */
    bool is_used;        /* since the hand has passed it */
    bool is_ended;       /* it was detached, or its key refused */
    bool is_untold;      /* the target does not know that this member has found it */
    uint64_t refused;    /* order of the first operation (device_state.h) that the device refused; 0: none */
} weft_known_region;

typedef struct weft_known {
    weft_window_control *control; /* the target's, if it is reached by addresses; NULL: by keys */
    weft_spans regions;  /* item: weft_known_region, held */
    uint32_t max;        /* regions that are kept */
    uint64_t hand;       /* place in the regions where the search for one that gives way goes on */
    uint32_t asking;     /* questions that the target has not answered */
} weft_known;

/* members: of the window. */
void weft_known_open(weft_known *known, uint32_t members, weft_window_control *control);
void weft_known_close(weft_known *known);
/* The region in which all of the operation lies, if the target's device reaches it; held. NULL: the operation goes by message. */
weft_known_region *weft_known_acquire(weft_known *known, const weft_rma_op *op);
void weft_known_release(weft_known_region *region);
/* Does it still exist, as far as this member can see? Not: an access by address would reach anything that is there now. */
bool weft_known_is_current(const weft_known *known, const weft_known_region *region);
/* Is the first byte of the operation in no region that is known? */
bool weft_known_misses(const weft_known *known, const weft_rma_op *op);
struct weft_rma_region_note;
/* The note is of a region that the target has told of, or that was read in its table. Others that it overlaps have ended. */
void weft_known_add(weft_known *known, const struct weft_rma_region_note *note);
/* Its key was refused: it is asked for again. */
void weft_known_forget(weft_known *known, weft_known_region *region);
/* Shall the message of this operation, which is sent now, ask for the region at its place? */
bool weft_known_ask(weft_known *known, const weft_rma_op *op);
/* A note REGION or REVOKED has come (message.h). */
void weft_known_on_note(weft_known *known, const void *body, uint32_t bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bounce: buffers of a window through which short puts and gets pass, so that the program's memory need not be registered for them: one
 * block, made at the first use. Requires worker->lock.
 */
#ifndef WEFT_RMA_BOUNCE_H
#define WEFT_RMA_BOUNCE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/iface.h"

#define WEFT_BOUNCE_BYTES 2048u /* of a slot */
#define WEFT_BOUNCE_SLOTS 32u

typedef struct weft_bounce {
    char *block;        /* owned; NULL: not made yet */
    weft_iface *iface;  /* of mr; NULL: the block is not registered */
    weft_mr mr;
    uint32_t free;      /* bit set of slots */
    bool is_refused;    /* the block could not be registered: not tried again. Ifaces without mr_local use it all the same */
} weft_bounce;

/* Can short operations over this iface have slots? Makes the block; registers it for the first iface that needs registered memory. */
bool weft_bounce_serves(weft_bounce *bounce, weft_iface *iface);
/* NULL: all are in use. */
char *weft_bounce_take(weft_bounce *bounce);
void weft_bounce_give(weft_bounce *bounce, const char *slot);
/* The region of all slots; NULL: the iface needs none. */
static inline const weft_mr *weft_bounce_mr(const weft_bounce *bounce) { return bounce->iface ? &bounce->mr : NULL; }
void weft_bounce_close(weft_bounce *bounce);

#endif

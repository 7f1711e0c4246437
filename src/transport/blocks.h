/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: memory that `share` makes, by handle. For transports whose ranks are all in one process (self, sim): whoever attaches gets
 * the same address. One thread at a time.
 */
#ifndef WEFT_TRANSPORT_BLOCKS_H
#define WEFT_TRANSPORT_BLOCKS_H

#include <stdint.h>

#include "base/list.h"
#include "transport/iface.h"

typedef struct weft_blocks {
    weft_list_link all;
    uint64_t last_handle;
} weft_blocks;

void weft_blocks_init(weft_blocks *blocks);
/* The contract's share and unshare. WEFT_E_KEY: no such handle; WEFT_E_ARG: 0 bytes; WEFT_E_NOMEM. */
int weft_blocks_share(weft_blocks *blocks, uint64_t bytes, weft_shared *shared);
int weft_blocks_unshare(weft_blocks *blocks, weft_shared *shared);
/* Gives back what nobody has unshared. */
void weft_blocks_clear(weft_blocks *blocks);

#endif

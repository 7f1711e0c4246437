/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inproc_shmem: share and unshare for transports whose ranks are all in one process (self, sim). All ranks get the same address.
 * Not thread-safe: one thread at a time.
 */
#ifndef WEFT_TRANSPORT_INPROC_SHMEM_H
#define WEFT_TRANSPORT_INPROC_SHMEM_H

#include <stdint.h>

#include "base/list.h"
#include "transport/iface.h"

typedef struct weft_inproc_shmem {
    weft_list_link all;   /* blocks that are shared */
    uint64_t last_handle; /* of the newest block; 0: none yet */
} weft_inproc_shmem;

void weft_inproc_shmem_init(weft_inproc_shmem *blocks);
/* ops.share and ops.unshare (iface.h). WEFT_E_KEY: unknown handle; WEFT_E_ARG: 0 bytes; WEFT_E_NOMEM. */
int weft_inproc_shmem_share(weft_inproc_shmem *blocks, uint64_t bytes, weft_shared *shared);
int weft_inproc_shmem_unshare(weft_inproc_shmem *blocks, weft_shared *shared);
/* Frees all blocks that are still shared. */
void weft_inproc_shmem_clear(weft_inproc_shmem *blocks);

#endif

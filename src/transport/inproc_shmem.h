/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inproc_shmem: memory that `share` makes, by handle. For transports whose ranks are all in one process (self, sim): whoever attaches gets
 * the same address. One thread at a time.
 */
#ifndef WEFT_TRANSPORT_INPROC_SHMEM_H
#define WEFT_TRANSPORT_INPROC_SHMEM_H

#include <stdint.h>

#include "base/list.h"
#include "transport/iface.h"

typedef struct weft_inproc_shmem {
    weft_list_link all;
    uint64_t last_handle;
} weft_inproc_shmem;

void weft_inproc_shmem_init(weft_inproc_shmem *blocks);
/* The contract's share and unshare. WEFT_E_KEY: no such handle; WEFT_E_ARG: 0 bytes; WEFT_E_NOMEM. */
int weft_inproc_shmem_share(weft_inproc_shmem *blocks, uint64_t bytes, weft_shared *shared);
int weft_inproc_shmem_unshare(weft_inproc_shmem *blocks, weft_shared *shared);
/* Gives back what nobody has unshared. */
void weft_inproc_shmem_clear(weft_inproc_shmem *blocks);

#endif

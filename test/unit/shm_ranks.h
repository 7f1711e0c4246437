/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm_ranks: several ranks of job 1 on one segment, all their shm ifaces in one process. Used by tests of transports/shm.
 */
#ifndef WEFT_TEST_UNIT_SHM_RANKS_H
#define WEFT_TEST_UNIT_SHM_RANKS_H

#include "transports/shm/shm.h"

#define SHM_RANKS_MAX 64

typedef struct shm_ranks {
    uint32_t count;
    weft_segment segment;
    weft_iface *ifaces[SHM_RANKS_MAX]; /* the owner of each is its rank, as a pointer */
} shm_ranks;

/* Opens the segment and all ifaces; now_ns: their clock, or NULL. False on error. */
bool shm_ranks_open(shm_ranks *self, uint32_t count, const weft_iface_callbacks *callbacks, uint64_t (*now_ns)(void));
/* Opens an ep of rank `from` to rank `to`, with this cookie. NULL on error. */
weft_ep *shm_ranks_connect(shm_ranks *self, uint32_t from, uint32_t to, void *peer);
/* For accept_peer: opens the ep of `owner` to `proc_id`; returns a cookie of its own for each rank, NULL on error. */
void *shm_ranks_accept(shm_ranks *self, void *owner, const weft_proc_id *proc_id);
/* Returns 0 (CUnit's success). */
int shm_ranks_close(shm_ranks *self);

#endif

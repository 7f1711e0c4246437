/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm_ranks: see shm_ranks.h.
 */
#include "test/unit/shm_ranks.h"

bool shm_ranks_open(shm_ranks *self, uint32_t count, const weft_iface_callbacks *callbacks, uint64_t (*now_ns)(void))
{
    self->count = 0;
    if (count > SHM_RANKS_MAX || weft_segment_make(count, 1, 0, &self->segment))
        return false;
    for (intptr_t i = 0; i < (intptr_t)count; i++) {
        weft_iface_params params = {.owner = (void *)i, .callbacks = callbacks, .self = {.job = 1, .rank = (uint32_t)i},
                                    .segment = &self->segment, .local_rank = (int)i, .now_ns = now_ns};
        if (weft_shm_ops.open(&params, &self->ifaces[i]))
            return false;
        self->count++;
    }
    return true;
}

weft_ep *shm_ranks_connect(shm_ranks *self, uint32_t from, uint32_t to, void *peer)
{
    weft_proc_id proc_id = {.job = 1, .rank = to};
    weft_ep *ep;
    return weft_shm_ops.ep_open(self->ifaces[from], &proc_id, &to, sizeof to, peer, &ep) ? NULL : ep;
}

void *shm_ranks_accept(shm_ranks *self, void *owner, const weft_proc_id *proc_id)
{
    static char cookies[SHM_RANKS_MAX];
    return shm_ranks_connect(self, (uint32_t)(intptr_t)owner, proc_id->rank, &cookies[proc_id->rank]) ? &cookies[proc_id->rank] : NULL;
}

int shm_ranks_close(shm_ranks *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        weft_shm_ops.close(self->ifaces[i]);
    weft_segment_close(&self->segment);
    return 0;
}

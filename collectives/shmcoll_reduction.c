/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_reduction: see shmcoll_reduction.h.
 */
#include "collectives/shmcoll_reduction.h"

#include <stdlib.h>

#include "base/status.h"
#include "collectives/shmcoll_slot.h"

int weft_shmcoll_reduction_open(weft_shmcoll_reduction *reduction, const weft_coll *args, uint64_t max)
{
    const weft_type *type = args->recvtype;
    uint64_t count = args->recvcount < max ? args->recvcount : max;
    int64_t step = type->extent < 0 ? -type->extent : type->extent;

    *reduction = (weft_shmcoll_reduction){.args = args, .has_own = !args->in_place, .own = args->sendbuf};
    if (type->is_dense || !count)
        return WEFT_OK;
    reduction->scratch_block = malloc((size_t)(type->true_extent + (int64_t)(count - 1) * step));
    if (!reduction->scratch_block)
        return weft_fail(WEFT_E_NOMEM, "no memory to reduce %llu elements", (unsigned long long)count);
    reduction->scratch = (char *)reduction->scratch_block - type->true_lb + (type->extent < 0 ? (int64_t)(count - 1) * step : 0);
    return WEFT_OK;
}

void weft_shmcoll_reduction_close(weft_shmcoll_reduction *reduction) { free(reduction->scratch_block); }

/* The first member's part is copied to out, and checked there before other parts are added. */
static void read_first(weft_shmcoll *area, const weft_shmcoll_part *part, const weft_type *type, uint32_t member, void *out, const void *in)
{
    uint64_t size = (uint64_t)type->size, bytes = part->count * size;

    weft_shmcoll_unpack(area, type, out, part->count, 0, bytes, in);
    if (weft_unlikely(area->csums != NULL))
        weft_shmcoll_check(area, &(weft_shmcoll_fragment){part->s, member, part->index, type, out, part->count, 0, bytes},
                           part->first * size);
}

/* Checks a part that is reduced from its slot. */
static void check_slot(weft_shmcoll *area, const weft_shmcoll_part *part, uint64_t size, uint32_t member, const char *in)
{
    uint64_t bytes = part->count * size;

    weft_shmcoll_check(area, &(weft_shmcoll_fragment){part->s, member, part->index, weft_sched_bytes(), in, bytes, 0, bytes},
                       part->first * size);
}

void weft_shmcoll_reduce(const weft_shmcoll_reduction *reduction, weft_shmcoll *area, const weft_shmcoll_part *part, void *out)
{
    const weft_type *type = reduction->args->recvtype;
    uint64_t size = (uint64_t)type->size;

    for (uint32_t i = area->ranks; i-- > 0;) {
        bool is_own = i == area->rank && reduction->has_own;
        const char *in = is_own ? reduction->own + (int64_t)part->first * type->extent
                                : weft_shmcoll_place(area, i, part->s, part->chunk) + part->offset;
        if (i == area->ranks - 1) {
            if (is_own)
                weft_copy(type, out, part->count, type, in, part->count);
            else
                read_first(area, part, type, i, out, in);
            continue;
        }
        if (weft_unlikely(area->csums != NULL) && !is_own)
            check_slot(area, part, size, i, in);
        if (!is_own && reduction->scratch) {
            weft_unpack(type, reduction->scratch, part->count, 0, part->count * size, in);
            in = reduction->scratch;
        }
        weft_coll_apply_op(area->worker, reduction->args->op, type, in, out, part->count);
    }
}

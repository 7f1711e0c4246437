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

static inline bool is_own(const weft_shmcoll_reduction *reduction, const weft_shmcoll *area, uint32_t member)
{
    return member == area->rank && reduction->has_own;
}

/* Address of a member's part, in this member's memory or in a slot. */
static inline const char *part_at(const weft_shmcoll_reduction *reduction, const weft_shmcoll *area, const weft_shmcoll_part *part,
                                  uint32_t member)
{
    if (is_own(reduction, area, member))
        return reduction->own + (int64_t)part->first * reduction->args->recvtype->extent;
    return weft_shmcoll_place(area, member, part->s, part->chunk) + part->offset;
}

/* Whether the last two parts can be reduced into out directly: no part needs to be unpacked or checked first. */
static inline bool may_combine(const weft_shmcoll_reduction *reduction, const weft_shmcoll *area)
{
    return area->ranks > 1 && reduction->args->op->handle && !reduction->scratch && !area->csums;
}

/* Sets out to the last member's part, or to the last two reduced. Returns the lowest member whose part is in it. */
static inline uint32_t begin(const weft_shmcoll_reduction *reduction, weft_shmcoll *area, const weft_shmcoll_part *part, void *out)
{
    const weft_type *type = reduction->args->recvtype;
    uint32_t last = area->ranks - 1;
    const char *second = part_at(reduction, area, part, last);

    if (weft_likely(may_combine(reduction, area))) {
        weft_coll_combine(area->worker, reduction->args->op, type, part_at(reduction, area, part, last - 1), second, out, part->count);
        return last - 1;
    }
    if (is_own(reduction, area, last))
        weft_copy(type, out, part->count, type, second, part->count);
    else
        read_first(area, part, type, last, out, second);
    return last;
}

void weft_shmcoll_reduce(const weft_shmcoll_reduction *reduction, weft_shmcoll *area, const weft_shmcoll_part *part, void *out)
{
    const weft_type *type = reduction->args->recvtype;
    uint64_t size = (uint64_t)type->size;

    for (uint32_t i = begin(reduction, area, part, out); i-- > 0;) {
        const char *in = part_at(reduction, area, part, i);

        if (!is_own(reduction, area, i)) {
            if (weft_unlikely(area->csums != NULL))
                check_slot(area, part, size, i, in);
            if (reduction->scratch) {
                weft_unpack(type, reduction->scratch, part->count, 0, part->count * size, in);
                in = reduction->scratch;
            }
        }
        weft_coll_apply_op(area->worker, reduction->args->op, type, in, out, part->count);
    }
}

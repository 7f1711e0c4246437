/* SPDX-License-Identifier: BSD-3-Clause
 *
 * operation: description of a one-sided operation, which op.h starts.
 */
#ifndef WEFT_RMA_OPERATION_H
#define WEFT_RMA_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "type/op.h"
#include "type/type.h"

enum weft_rma_kind { WEFT_RMA_PUT, WEFT_RMA_GET, WEFT_RMA_ACCUMULATE, WEFT_RMA_GET_ACCUMULATE, WEFT_RMA_COMPARE_AND_SWAP };

typedef struct weft_rma_op {
    enum weft_rma_kind kind;
    uint32_t target;
    uint64_t offset;             /* from the target's base, bytes; DYNAMIC: an address */
    const void *origin;          /* GET: written; GET_ACCUMULATE with NO_OP: not read */
    uint64_t origin_count;
    const weft_type *origin_type;
    uint64_t target_count;
    const weft_type *target_type; /* accumulates: of one basic type */
    const void *compare;         /* COMPARE_AND_SWAP: one element of origin_type */
    void *result;                /* GET_ACCUMULATE, COMPARE_AND_SWAP */
    uint64_t result_count;
    const weft_type *result_type;
    const weft_op *op;           /* ACCUMULATE, GET_ACCUMULATE: predefined */
    uint32_t notify;             /* PUT, GET: counter of the target (notify.h) + 1; 0: none */
} weft_rma_op;

/* All memory between the first and the last byte of `count` elements at `offset`, gaps included. count > 0. False: that is more than there
 * are addresses. */
static inline bool weft_rma_span(uint64_t offset, const weft_type *type, uint64_t count, uint64_t *from, uint64_t *bytes)
{
    int64_t low = type->true_lb, high = low + type->true_extent, span;
    if (__builtin_mul_overflow((int64_t)(count - 1), type->extent, &span) || __builtin_add_overflow(high, span > 0 ? span : 0, &high) ||
        __builtin_add_overflow(low, span < 0 ? span : 0, &low))
        return false;
    *from = offset + (uint64_t)low;
    *bytes = (uint64_t)(high - low);
    return true;
}

#endif

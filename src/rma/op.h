/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: one-sided operations on a window and their completion. The caller has checked arguments and epoch. op.c chooses the way (window.h),
 * direct.h is the short way for mapped targets. All require worker->lock.
 */
#ifndef WEFT_RMA_OP_H
#define WEFT_RMA_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "rma/window.h"
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
} weft_rma_op;

/* Starts an operation. req NULL: it completes by a flush. Else *req is its request: done when origin and result may be used (PUT,
 * ACCUMULATE: origin may be reused). May poll. Buffers and types stay valid until it is complete; types are held as needed. */
int weft_rma_start(weft_window *window, const weft_rma_op *op, weft_req **req);

/* Blocks until all earlier operations to target (all targets: WEFT_ANY) are complete at the origin, or also at the target. */
int weft_rma_flush_local(weft_window *window, int target);
int weft_rma_flush(weft_window *window, int target);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: one-sided operations on a window and their completion. The caller has checked arguments and epoch. op.c chooses the way (window.h).
 * All require worker->lock.
 */
#ifndef WEFT_RMA_OP_H
#define WEFT_RMA_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "rma/operation.h"
#include "rma/window.h"

/* Starts an operation. req NULL: it completes by a flush. Else *req is its request: done when origin and result may be used (PUT,
 * ACCUMULATE: origin may be reused). May poll. Buffers and types stay valid until it is complete; types are held as needed. */
int weft_rma_start(weft_window *window, const weft_rma_op *op, weft_req **req);

/* Blocks until all earlier operations to target (all targets: WEFT_ANY) are complete at the origin, or also at the target. */
int weft_rma_flush_local(weft_window *window, int target);
int weft_rma_flush(weft_window *window, int target);

/* Polls. A program may repeat a call until another member's operation comes, which must be handled meanwhile, and whose member needs a
 * CPU: yields after empty polls if ranks share CPUs. */
void weft_rma_poll_between(weft_window *window);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * direct: see direct.h.
 */
#include "rma/direct.h"

#include <stdlib.h>

#include "base/status.h"
#include "rma/atomic.h"
#include "rma/regions.h"
#include "rma/words.h"
#include "type/pack.h"

#define PART 1024 /* bytes of an operand or result with gaps that are moved at one time; on the stack */

enum { HANDLE_NO_OP = 0x3d };

/* A part of an accumulate whose operand or result has gaps. */
static int accumulate_part(weft_window *window, const weft_rma_op *op, weft_rma_update *update)
{
    _Alignas(16) char operand[PART], result[PART];
    bool is_read = op->op->handle != HANDLE_NO_OP, is_fetched = op->kind == WEFT_RMA_GET_ACCUMULATE;
    int rc;
    if (is_read)
        weft_pack(op->origin_type, op->origin, op->origin_count, update->skip, update->bytes, operand);
    update->operand = is_read ? operand : NULL;
    update->result = is_fetched ? result : NULL;
    rc = weft_rma_accumulate_at(window, op->target, update);
    if (is_fetched && !rc)
        weft_unpack(op->result_type, op->result, op->result_count, update->skip, update->bytes, result);
    return rc;
}

static int accumulate(weft_window *window, const weft_rma_op *op, char *at)
{
    const weft_type *basic = weft_type_of((void *)(uintptr_t)op->target_type->basic_handle);
    uint64_t size = (uint64_t)basic->size, part = PART - PART % size, bytes = op->target_count * (uint64_t)op->target_type->size;
    bool is_read = op->op->handle != HANDLE_NO_OP, is_fetched = op->kind == WEFT_RMA_GET_ACCUMULATE;
    weft_rma_update update = {.op = op->op, .basic = basic, .at = at, .target_type = op->target_type, .count = op->target_count,
                              .bytes = bytes};
    int rc = 0;
    if ((!is_read || op->origin_type->is_dense) && (!is_fetched || op->result_type->is_dense)) {
        update.operand = is_read ? op->origin : NULL;
        update.result = is_fetched ? op->result : NULL;
        return weft_rma_accumulate_at(window, op->target, &update);
    }
    for (uint64_t done = 0; done < bytes && !rc; done += part) {
        update.skip = done;
        update.bytes = bytes - done < part ? bytes - done : part;
        rc = accumulate_part(window, op, &update);
    }
    return rc;
}

static int check_attached(const weft_window *window, const weft_rma_op *op)
{
    uint64_t from = op->offset, bytes = UINT64_MAX;
    if (weft_rma_span(op->offset, op->target_type, op->target_count, &from, &bytes) && weft_rma_is_attached(window, from, bytes))
        return 0;
    return weft_fail(WEFT_E_RMA_RANGE, "%llu bytes at address 0x%llx are not attached to the window: call MPI_Win_attach",
                     (unsigned long long)bytes, (unsigned long long)from);
}

int weft_rma_direct(weft_window *window, const weft_rma_op *op)
{
    const weft_window_target *target = &window->targets[op->target];
    char *at = (char *)((uintptr_t)target->mapped + op->offset);
    int rc = window->regions ? check_attached(window, op) : 0;
    if (rc)
        return rc;
    switch (op->kind) {
    case WEFT_RMA_PUT: weft_copy(op->target_type, at, op->target_count, op->origin_type, op->origin, op->origin_count); break;
    case WEFT_RMA_GET:
        weft_copy(op->origin_type, (void *)op->origin, op->origin_count, op->target_type, at, op->target_count);
        break;
    case WEFT_RMA_COMPARE_AND_SWAP: return weft_rma_swap_at(window, op->target, op->target_type, at, op->compare, op->origin, op->result);
    default: return accumulate(window, op, at);
    }
    return 0;
}

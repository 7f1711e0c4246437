/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_amo: accumulates by a device's atomics, one for each element of 8 bytes.
 * Order (MPI 5.0 12.7.2): the contract's amos have none, so one begins when no earlier one of this member on any of its elements is under
 * way, unless the info key accumulate_ordering is none. Not repeated: an amo that fails, or whose outcome is unknown, is an error of the
 * operation.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/worker.h"
#include "rma/atomic.h"
#include "rma/device_state.h"
#include "type/pack.h"
#include "type/runs.h"

#define ELEMENT_BYTES 8u
#define ELEMENTS_MAX 8u /* a longer accumulate costs less as one message */

enum { OP_SUM = 0x21, OP_BAND = 0x28, OP_BOR = 0x29, OP_BXOR = 0x2a, OP_REPLACE = 0x3c, OP_NO_OP = 0x3d };

/* False: the contract has no such atomic. */
static bool translate(const weft_rma_op *what, const weft_type *basic, enum weft_amo_op *op)
{
    if (what->kind == WEFT_RMA_COMPARE_AND_SWAP) {
        *op = WEFT_AMO_CAS;
        return true;
    }
    switch (what->op->handle) {
    case OP_NO_OP: *op = WEFT_AMO_ADD; return true; /* of 0 */
    case OP_SUM: *op = WEFT_AMO_ADD; return weft_rma_is_counted(basic);
    case OP_REPLACE: *op = WEFT_AMO_SWAP; return true;
    case OP_BAND: *op = WEFT_AMO_AND; return true;
    case OP_BOR: *op = WEFT_AMO_OR; return true;
    case OP_BXOR: *op = WEFT_AMO_XOR; return true;
    default: return false;
    }
}

static const weft_type *basic_of(const weft_rma_op *what)
{
    return weft_type_of((void *)(uintptr_t)what->target_type->basic_handle);
}

/* Addresses of the elements, in the order of the packed form. at NULL: only looks. False: an element's address does not fit. */
static bool place(uint64_t base, const weft_rma_op *what, const weft_type *basic, uint64_t *at)
{
    uint64_t bytes = what->target_count * (uint64_t)what->target_type->size, n = 0;
    weft_runs runs;
    weft_runs_begin(&runs, what->target_type, (const void *)(uintptr_t)(base + what->offset), what->target_count, 0, bytes);
    while (weft_runs_next(&runs)) {
        uint64_t from = (uintptr_t)runs.at;
        if (!weft_rma_is_word(basic, from) || runs.bytes % ELEMENT_BYTES)
            return false;
        for (uint64_t i = 0; at && i < runs.bytes; i += ELEMENT_BYTES)
            at[n++] = from + i;
    }
    return true;
}

bool weft_device_amo_fits(uint64_t base, const weft_rma_op *what)
{
    const weft_type *basic = basic_of(what);
    uint64_t bytes = what->target_count * (uint64_t)what->target_type->size;
    enum weft_amo_op op;
    return (uint64_t)basic->size == ELEMENT_BYTES && bytes <= ELEMENTS_MAX * ELEMENT_BYTES && translate(what, basic, &op) &&
           place(base, what, basic, NULL);
}

weft_device_amo *weft_device_amo_new(uint64_t base, const weft_rma_op *what)
{
    uint64_t bytes = what->target_count * (uint64_t)what->target_type->size, count = bytes / ELEMENT_BYTES;
    weft_device_amo *amo = calloc(1, sizeof *amo + 3 * bytes);
    if (!amo)
        return NULL;
    amo->count = count;
    translate(what, basic_of(what), &amo->op);
    place(base, what, basic_of(what), amo->words);
    if (what->kind == WEFT_RMA_COMPARE_AND_SWAP)
        memcpy(&amo->compare, what->compare, sizeof amo->compare);
    if (what->kind == WEFT_RMA_COMPARE_AND_SWAP || what->op->handle != OP_NO_OP)
        weft_pack(what->origin_type, what->origin, what->origin_count, 0, bytes, amo->words + count);
    return amo;
}

/* -- order -- */

static uint32_t *busy_of(weft_device_op *op, uint64_t element)
{
    return &op->target->busy[op->amo->words[element] / ELEMENT_BYTES % WEFT_DEVICE_BUSY];
}

bool weft_device_amo_reserve(weft_device_op *op)
{
    weft_device_amo *amo = op->amo;
    if (op->target->device->window->is_unordered)
        return true;
    for (uint64_t i = 0; i < amo->count && !amo->is_reserved; i++)
        if (*busy_of(op, i))
            return false;
    for (uint64_t i = 0; i < amo->count && !amo->is_reserved; i++)
        ++*busy_of(op, i);
    amo->is_reserved = true;
    return true;
}

/* -- start, end -- */

int weft_device_amo_start(weft_device_op *op)
{
    weft_device_amo *amo = op->amo;
    weft_device_target *target = op->target;
    weft_ep *ep = target->peer->ep;
    uint64_t i = op->issued / ELEMENT_BYTES;
    weft_atomic atomic = {.op = amo->op, .remote = amo->words[i], .rkey = target->rkey, .operand = amo->words[amo->count + i],
                          .compare = amo->compare, .before = &amo->words[2 * amo->count + i], .done = &op->done};
    int rc;
    op->parts++;
    rc = ep->iface->ops->amo(ep->iface, ep, &atomic);
    if (rc)
        op->parts--;
    else
        op->issued += ELEMENT_BYTES;
    return rc;
}

static void unreserve(weft_device_op *op)
{
    weft_device_amo *amo = op->amo;
    for (uint64_t i = 0; i < amo->count && amo->is_reserved; i++)
        --*busy_of(op, i);
    amo->is_reserved = false;
}

void weft_device_amo_drop(weft_device_op *op)
{
    unreserve(op);
    op->target->amos--;
    free(op->amo);
    op->amo = NULL;
}

void weft_device_amo_end(weft_device_op *op)
{
    const weft_device_amo *amo = op->amo;
    const weft_rma_op *what = &op->what;
    const uint64_t *before = amo->words + 2 * amo->count;
    unreserve(op);
    if (op->error.rc)
        return;
    if (what->kind == WEFT_RMA_COMPARE_AND_SWAP)
        memcpy(what->result, before, ELEMENT_BYTES);
    else if (what->kind == WEFT_RMA_GET_ACCUMULATE)
        weft_unpack(what->result_type, what->result, what->result_count, 0, op->bytes, before);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * head: whether the head of an operation that came by message can be performed. Messages have checksums only on demand (WEFT_CHECKSUM), and
 * a damaged head must not make the target read or write other memory.
 */
#include "rma/message.h"
#include "type/op.h"

static bool is_accumulate_sound(const weft_rma_head *head, const weft_type *type, uint64_t behind)
{
    const weft_op *op = weft_op_of((void *)(uintptr_t)head->op);
    const weft_type *basic = weft_type_of((void *)(uintptr_t)head->basic);
    if (!op || !basic || head->basic != type->basic_handle || weft_op_fits(op, basic) || head->bytes > WEFT_RMA_PIECE ||
        head->bytes % (uint64_t)basic->size || head->skip % (uint64_t)basic->size)
        return false;
    return op->handle == WEFT_RMA_NO_OP || head->has_data || head->bytes <= behind;
}

bool weft_rma_head_is_sound(const weft_rma_head *head, const weft_type *type, uint64_t behind)
{
    uint64_t all;
    if (__builtin_mul_overflow(head->count, (uint64_t)type->size, &all) || head->skip > all || head->bytes > all - head->skip)
        return false;
    switch (head->kind) {
    case WEFT_RMA_PUT: return head->has_data || head->bytes <= behind;
    case WEFT_RMA_GET: return true;
    case WEFT_RMA_COMPARE_AND_SWAP: return type->is_predefined && head->bytes == (uint64_t)type->size && 2 * head->bytes <= behind;
    case WEFT_RMA_ACCUMULATE:
    case WEFT_RMA_GET_ACCUMULATE: return is_accumulate_sound(head, type, behind);
    default: return false;
    }
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * atomic: accumulates on memory of a window that this process can address (MPI 5.0 12.3.4), atomic for each basic element.
 * An element of up to 8 bytes at its natural alignment is changed by an atomic instruction of the CPU, each other one (long double, complex
 * of 16 bytes, pairs, unaligned places) under the target's control->accumulate. Which of both depends on type and address alone, so
 * all that change a location do it in the same way. Any thread, any process that maps the memory and the control.
 */
#ifndef WEFT_RMA_ATOMIC_H
#define WEFT_RMA_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/window.h"
#include "type/op.h"
#include "type/type.h"

/* Does an atomic instruction change elements of this basic type at this address? */
static inline bool weft_rma_is_word(const weft_type *basic, uint64_t at)
{
    uint64_t size = (uint64_t)basic->size;
    return size <= 8 && !(size & (size - 1)) && basic->class_ != WEFT_CLASS_PAIR && !(at & (size - 1));
}

/* Are elements of this basic type added as integers? */
static inline bool weft_rma_is_counted(const weft_type *basic)
{
    return basic->class_ == WEFT_CLASS_INT || basic->class_ == WEFT_CLASS_UINT || basic->class_ == WEFT_CLASS_CHAR;
}

/* For `bytes` packed bytes from packed offset skip of count elements of target_type at `at`, all of the basic type `basic`: whole basic
 * elements. operand: packed; NULL with MPI_NO_OP. result: packed, gets the values before; NULL: none. op: predefined, fits basic. */
typedef struct weft_rma_update {
    const weft_op *op;
    const weft_type *basic;
    char *at;
    const weft_type *target_type;
    uint64_t count, skip, bytes;
    const void *operand;
    void *result;
} weft_rma_update;
void weft_rma_accumulate(weft_window_control *control, const weft_rma_update *update);

/* Stores `swap` at `at` if the element there equals `compare`; *result gets the value before. Elements of type basic, which is an integer,
 * logical or byte type. */
void weft_rma_compare_and_swap(weft_window_control *control, const weft_type *basic, char *at, const void *compare, const void *swap,
                               void *result);

#endif

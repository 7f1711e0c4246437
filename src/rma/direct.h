/* SPDX-License-Identifier: BSD-3-Clause
 *
 * direct: operations on memory that this process maps: complete when the call returns, also at the target once memory is ordered
 * (sync.h). Called by op.c and, for dense data, inline by src/mpi. The caller has checked the range, or maps no more than it may use.
 */
#ifndef WEFT_RMA_DIRECT_H
#define WEFT_RMA_DIRECT_H

#include <stdbool.h>
#include <string.h>

#include "base/copy.h"
#include "base/macros.h"
#include "rma/operation.h"
#include "rma/window.h"

/* Copies dense data; loads and stores of up to 8 bytes at their natural alignment are not torn. */
static inline void weft_rma_copy(void *to, const void *from, uint64_t bytes)
{
    if (weft_likely(bytes == 8)) {
        uint64_t word;
        memcpy(&word, from, 8);
        memcpy(to, &word, 8);
    } else if (bytes == 4) {
        uint32_t word;
        memcpy(&word, from, 4);
        memcpy(to, &word, 4);
    } else if (bytes <= 32) {
        weft_copy_short(to, from, (uint32_t)bytes);
    } else {
        memmove(to, from, bytes);
    }
}

/* Any operation on a mapped target, if this process reaches its device words (words.h). 0; WEFT_E_RMA_RANGE: own memory of a dynamic
 * window that is not attached; or an error of the device. */
int weft_rma_direct(weft_window *window, const weft_rma_op *op);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stage: how far this process, or the running simulated rank, is between MPI_Init and MPI_Finalize. init.c sets it; any thread reads it.
 */
#ifndef WEFT_MPI_STAGE_H
#define WEFT_MPI_STAGE_H

#include <stdatomic.h>

#include "launch/boot.h"

/* BEFORE must be 0, the initial value of weft_boot_now->stage. */
enum weft_stage { WEFT_STAGE_BEFORE, WEFT_STAGE_OPENING, WEFT_STAGE_OPEN, WEFT_STAGE_CLOSING, WEFT_STAGE_AFTER };

/* Pairs with set_stage() of init.c. */
static inline enum weft_stage weft_init_stage(void)
{
    return (enum weft_stage)atomic_load_explicit(&weft_boot_now->stage, memory_order_acquire);
}

#endif

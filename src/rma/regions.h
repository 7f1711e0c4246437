/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regions: memory attached to a dynamic window (MPI 5.0 12.2.4): an array sorted by address, searched for each operation that arrives.
 * Requires worker->lock.
 */
#ifndef WEFT_RMA_REGIONS_H
#define WEFT_RMA_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/window.h"

int weft_rma_regions_open(weft_window *window);
void weft_rma_regions_close(weft_window *window);
/* 0; WEFT_E_NOMEM; WEFT_E_RMA_ATTACH: it overlaps attached memory. */
int weft_rma_attach(weft_window *window, void *base, uint64_t bytes);
/* 0 or WEFT_E_BASE: nothing is attached at base. */
int weft_rma_detach(weft_window *window, const void *base);
/* Is all of [base, base + bytes) attached? */
bool weft_rma_is_attached(const weft_window *window, uint64_t base, uint64_t bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regions: memory attached to a dynamic window (MPI 5.0 12.2.4).
 */
#ifndef WEFT_RMA_REGIONS_H
#define WEFT_RMA_REGIONS_H

#include "rma/window.h"

int weft_rma_regions_open(weft_window *window);
void weft_rma_regions_close(weft_window *window);
int weft_rma_attach(weft_window *window, void *base, uint64_t bytes);
int weft_rma_detach(weft_window *window, const void *base);

#endif

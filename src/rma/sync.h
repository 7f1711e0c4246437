/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sync: synchronization of a window. Each call completes operations as the standard says (by op.h's flush) and orders memory: what was
 * stored by or to this member before is visible after. The caller has checked the epoch. Blocking; all require worker->lock, which they
 * drop while they wait.
 */
#ifndef WEFT_RMA_SYNC_H
#define WEFT_RMA_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/window.h"

/* Collective. precedes, succeeds: there are operations before, after it (MPI_MODE_NOPRECEDE, NOSUCCEED). */
int weft_rma_fence(weft_window *window, bool precedes, bool succeeds);

/* General active target (MPI 5.0 12.5.2). ranks[count] are members of the window. is_checked: MPI_MODE_NOCHECK was not given. */
int weft_rma_post(weft_window *window, const uint32_t *ranks, uint32_t count, bool is_checked);
int weft_rma_start_epoch(weft_window *window, const uint32_t *ranks, uint32_t count, bool is_checked);
int weft_rma_complete(weft_window *window, const uint32_t *ranks, uint32_t count);
/* wait false: polls once and sets *is_over. */
int weft_rma_wait(weft_window *window, const uint32_t *ranks, uint32_t count, bool wait, bool *is_over);

/* Passive target (MPI 5.0 12.5.3). unlock flushes the target first. is_checked false: MPI_MODE_NOCHECK, no lock is taken. */
int weft_rma_lock(weft_window *window, uint32_t target, bool is_exclusive, bool is_checked);
int weft_rma_unlock(weft_window *window, uint32_t target, bool is_exclusive, bool is_checked);

#endif

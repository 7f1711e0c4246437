/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fence: synchronization of all members (MPI 5.0 12.5.1). An operation is performed at its target when its origin enters the barrier, so
 * that it is seen by all that leave it.
 */
#include "collectives/coll.h"
#include "collectives/stop.h"
#include "rma/op.h"
#include "rma/sync.h"

int weft_rma_fence(weft_window *window, bool precedes, bool succeeds)
{
    weft_coll none = {0};
    int rc = precedes ? weft_rma_flush(window, WEFT_ANY) : 0, synced = 0;
    atomic_thread_fence(memory_order_seq_cst);
    if (precedes || succeeds) /* equal on all members */
        synced = weft_team_trust(window->team, weft_coll_run(window->team, WEFT_COLL_BARRIER, &none));
    atomic_thread_fence(memory_order_seq_cst);
    return rc ? rc : synced;
}

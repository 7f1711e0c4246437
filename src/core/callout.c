/* SPDX-License-Identifier: BSD-3-Clause
 *
 * callout: see callout.h.
 */
#include "core/callout.h"

#include "base/macros.h"
#include "core/leader.h"
#include "core/worker.h"

/* The user function may take long: another thread leads meanwhile. */
void weft_worker_callout_begin(weft_worker *worker)
{
    if (weft_unlikely(worker->is_threaded))
        weft_leader_yield(worker);
    weft_worker_unlock(worker);
}

void weft_worker_callout_end(weft_worker *worker) { weft_worker_lock(worker); }

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * callout: calls of a program's functions, with the worker unlocked.
 */
#ifndef WEFT_CORE_CALLOUT_H
#define WEFT_CORE_CALLOUT_H

#include "core/worker_type.h"

/* Must enclose every call of a user function (operators, error handlers, callbacks): begin drops worker->lock, end takes it again. The
 * user function may wait for a mutex whose holder waits for the worker. Other threads lock, poll and sleep meanwhile: before begin the
 * caller must take its objects off shared lists and keep them alive; after end it must read all state again. Must not be called inside
 * an iface's callback. */
void weft_worker_callout_begin(weft_worker *worker);
void weft_worker_callout_end(weft_worker *worker);

#endif

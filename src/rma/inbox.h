/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inbox: operations that arrive by messages (message.h), which progress performs: inside of any poll of the worker, also by the progress
 * thread, never in a call on the window alone. A HEAD stays an unexpected message of the channel, at the cost of its origin's credit, until
 * it can be handled; so a target's memory is bounded, and an origin waits behind none but itself. Requires worker->lock.
 */
#ifndef WEFT_RMA_INBOX_H
#define WEFT_RMA_INBOX_H

#include "rma/window.h"

/* Local. 0 or WEFT_E_NOMEM. */
int weft_rma_inbox_open(weft_window *window);
/* Blocks until no message of the window is under way here. All operations have been flushed, so that their origins await nothing. */
void weft_rma_inbox_drain(weft_window *window);
/* True if messages are still under way, after an error or in MPI_Finalize without MPI_Win_free: the window's memory must stay. */
bool weft_rma_inbox_close(weft_window *window);
/* Frees what was still under way then. Requests and their messages stay; the worker is not polled any more. */
void weft_rma_inbox_forget(struct weft_window_inbox *inbox);
void weft_rma_inbox_on_notify(weft_window *window, uint32_t from, const void *body, uint32_t bytes);

#endif

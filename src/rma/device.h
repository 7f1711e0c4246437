/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device: puts, gets and accumulates that an iface performs, without the target's CPU (window.h). They are complete at the origin when the
 * iface reports them done; accumulates are then at the target, too, puts after a flush of the iface. Requires worker->lock.
 */
#ifndef WEFT_RMA_DEVICE_H
#define WEFT_RMA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "rma/operation.h"
#include "rma/window.h"

/* Local, before weft_window_key_make. wants_words: the program asks for device words (words.h). 0 or WEFT_E_NOMEM. */
int weft_window_device_open(weft_window *window, bool wants_words);
/* Waits for what this process has under way, and frees all, own key included. No member may use that any more. */
void weft_window_device_close(weft_window *window);

/* Starts an operation. False: not possible by a device, nothing was done; it goes by message. req: as weft_rma_start.
 * A notification is counted when it and all earlier operations on the target are performed: those by a device here; while there are some
 * by messages the answer is false. */
bool weft_rma_device_start(weft_window *window, const weft_rma_op *op, weft_req **req);
/* The same for a notification without data: counter + 1. */
bool weft_rma_device_notify(weft_window *window, uint32_t target, uint32_t notify);

/* Are accumulates on the target under way? One by message must wait for them, for their order. */
bool weft_rma_device_has_amos(const weft_window *window, uint32_t target);

/* DYNAMIC: shall the message of this operation ask the target for the region at its place (known.h)? */
bool weft_rma_device_asks(weft_window *window, const weft_rma_op *op);
/* A note of a member on one of its regions (message.h). */
void weft_rma_device_on_note(weft_window *window, uint32_t from, const void *body, uint32_t bytes);

/* Begins the completion of puts to a target; weft_rma_device_is_flushed tells its end. */
void weft_rma_device_flush(weft_window *window, uint32_t target);
/* Are all operations to the target complete at the origin, and, if is_remote, all puts before the last weft_rma_device_flush there? */
bool weft_rma_device_is_flushed(const weft_window *window, uint32_t target, bool is_remote);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * notify_open: gives a window notification counters (notify.h). Requires worker->lock.
 */
#ifndef WEFT_RMA_NOTIFY_OPEN_H
#define WEFT_RMA_NOTIFY_OPEN_H

#include <stdint.h>

#include "rma/window.h"

/* Collective; blocking: flushes all operations, then gives this member `count` counters, all 0. failed: an error of this member, with a
 * text, or 0; an error of one is an error of all, and leaves the window as it was. */
int weft_notify_open(weft_window *window, uint32_t count, int failed);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inbox: operations that arrive by messages.
 */
#ifndef WEFT_RMA_INBOX_H
#define WEFT_RMA_INBOX_H

#include "rma/window.h"

int weft_rma_inbox_open(weft_window *window);
void weft_rma_inbox_close(weft_window *window);
void weft_rma_inbox_on_notify(weft_window *window, uint32_t from, const void *body, uint32_t bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inbox: see inbox.h.
 */
#include "rma/inbox.h"

int weft_rma_inbox_open(weft_window *window)
{
    (void)window;
    return 0;
}

void weft_rma_inbox_close(weft_window *window) { (void)window; }

void weft_rma_inbox_on_notify(weft_window *window, uint32_t from, const void *body, uint32_t bytes)
{
    (void)window;
    (void)from;
    (void)body;
    (void)bytes;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * done: what the `done` argument of a get, put or flush and the zcopy_ctx of a frame refer to: first member of the caller's own struct.
 */
#ifndef WEFT_CORE_DONE_H
#define WEFT_CORE_DONE_H

typedef struct weft_done {
    void (*call)(struct weft_done *self, int rc); /* callbacks.done; may be called inside the iface's get, put or flush */
} weft_done;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * held: a message that lies, or will lie, in a buffer of the library, as matching sees it: frame kind WEFT_FRAME_HELD, which is never sent.
 * Made by withdrawn; deliver ends its receive. Requires worker->lock.
 */
#ifndef WEFT_P2P_HELD_H
#define WEFT_P2P_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "transport/frame.h"

typedef struct weft_held weft_held;
struct weft_held {
    const weft_req *req; /* whose buffer it is; its rc is the message's */
    weft_req *taker;     /* the receive that has matched; NULL: none yet */
    weft_hdr hdr;        /* in matching; its body is a pointer to this struct */
    bool is_here;        /* all bytes are there, or the send failed */
    bool is_dropped;     /* no receive will match it */
    void (*free)(weft_held *self); /* called once, when it is here and taken or dropped */
};

static inline weft_held *weft_held_of(const void *body) { return *(weft_held *const *)body; }
/* A receive has matched the message: ends it, now or when all is here. */
void weft_held_recv(weft_held *self, weft_req *req);
/* No receive will. */
void weft_held_drop(weft_held *self);
/* All bytes are there, or req->rc is an error. */
void weft_held_on_here(weft_held *self);

#endif

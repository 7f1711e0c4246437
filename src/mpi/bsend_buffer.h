/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bsend_buffer: memory that a program attached for buffered sends, and the messages in it (MPI 5.0 3.6). Called by bsend.c, and by comm.c
 * when a communicator closes. Requires the lock of the worker to which all its messages belong.
 * Invariant: it never needs more space than the model of MPI 5.0 3.6.1: a message goes behind the latest one, or to the start; only where
 * the model finds no space, to any other gap.
 */
#ifndef WEFT_MPI_BSEND_BUFFER_H
#define WEFT_MPI_BSEND_BUFFER_H

#include <stdint.h>

#include "core/req.h"
#include "p2p/p2p.h"

typedef struct weft_bsend_buffer weft_bsend_buffer;

/* Object that each message in the buffer references; drop releases the reference. */
typedef struct weft_bsend_owner {
    void *object;
    void (*drop)(void *object); /* called once per message, never inside a poll */
} weft_bsend_owner;

/* base NULL: automatic, size is ignored. NULL: out of memory. */
weft_bsend_buffer *weft_bsend_buffer_open(void *base, uint64_t size);
/* Frees what open made. No message may be in flight. NULL is allowed. */
void weft_bsend_buffer_close(weft_bsend_buffer *buffer);
/* Bytes of the program's memory; its address. automatic: 0, NULL. */
uint64_t weft_bsend_buffer_size(const weft_bsend_buffer *buffer);
void *weft_bsend_buffer_base(const weft_bsend_buffer *buffer);
/* Sends a copy of the message, or the message itself if it can leave at once. The owner is held by the caller, and dropped once the copy
 * was sent. 0; WEFT_E_BUFFER: no space, with a text; another error. On errors, and if no copy was made (*is_kept false), the
 * caller drops the owner. */
int weft_bsend_buffer_send(weft_bsend_buffer *buffer, weft_chan *chan, int dst, int tag, const void *buf, uint64_t count,
                           const weft_type *type, weft_bsend_owner owner, bool *is_kept);
/* *req: a request of kind FLUSH that ends when all messages now in the buffer are sent, with their error; or the shared completed one. */
int weft_bsend_buffer_flush(weft_bsend_buffer *buffer, weft_worker *worker, weft_req **req);
/* Frees the space of messages that are sent, and drops their owners. */
void weft_bsend_buffer_reap(weft_bsend_buffer *buffer);

#endif

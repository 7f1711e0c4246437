/* SPDX-License-Identifier: BSD-3-Clause
 *
 * p2p: messages on channels, as floors 5 and 6 use them. Ranks are the channel's; WEFT_ANY, WEFT_ANY_TAG and WEFT_NOBODY as in
 * core/req.h. count elements of type at buf. All arguments were checked. Types are held by the caller for blocking calls and by the
 * request for the others.
 */
#ifndef WEFT_P2P_P2P_H
#define WEFT_P2P_P2P_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "p2p/chan.h"
#include "type/type.h"

/* TAINTED: a standard send of what may be made of damaged data. Where messages are checked, its receiver is told so (p2p/msg_csum). */
enum weft_send_mode { WEFT_SEND_STANDARD, WEFT_SEND_READY, WEFT_SEND_SYNC, WEFT_SEND_TAINTED };

int weft_send(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode);
int weft_recv(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_recv_info *found);
/* The same for standard (and ready) mode, with the arguments where MPI_Send and MPI_Recv have them: the hot way passes them on untouched.
 * For programs' own calls: weft_send and weft_isend_standard may poll. */
int weft_send_standard(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan);
int weft_isend_standard(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan, weft_req **req);
int weft_recv_plain(void *buf, uint64_t count, const weft_type *type, int src, int tag, weft_chan *chan, weft_recv_info *found);
/* *req is never NULL on success: it may be the shared, already complete request. Free with weft_req_free after it is done. */
int weft_isend(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode, weft_req **req);
int weft_irecv(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_req **req);
/* Persistent and other requests that exist already: fills it in (kind, buf, ...) and starts it. */
int weft_isend_into(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode, weft_req *req);
int weft_irecv_into(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_req *req);
/* Is there a message? With `wait` it waits for one. With `take` it is taken out of the matching into *message (Mprobe). */
int weft_probe(weft_chan *chan, int src, int tag, bool wait, bool *is_there, weft_recv_info *found);
/* O(1). A request that is cancelled ends with found.cancelled: a receive that is posted; a send that waits for credit, at once; one that is
 * announced, when the receiver says that it matched nothing. Any other goes on, and ends by itself. */
int weft_cancel(weft_req *req);
/* Waits until done; returns its rc. Does not free. */
int weft_req_wait(weft_req *req);

#endif

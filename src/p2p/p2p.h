/* SPDX-License-Identifier: BSD-3-Clause
 *
 * p2p: point-to-point messages on channels. Called by layers 5 (collectives) and 6 (src/mpi) with the worker's lock held.
 * Ranks are relative to the channel. WEFT_ANY, WEFT_ANY_TAG and WEFT_PROC_NULL: core/req_type.h. buf holds count elements of type.
 * Callers have checked all arguments. The caller keeps a reference to the type in blocking calls, else the request does.
 */
#ifndef WEFT_P2P_P2P_H
#define WEFT_P2P_P2P_H

#include <stdbool.h>
#include <stdint.h>

#include "core/req.h"
#include "core/wait.h"
#include "p2p/chan.h"
#include "type/type.h"

/* Blocks until the buffer may be reused. 0 or an error. */
int weft_send(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode);
/* Blocks until the message is received. found may be NULL. 0 or an error. */
int weft_recv(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_recv_info *found);
/* Standard and ready mode, in the argument order of MPI_Send and MPI_Recv, so that the fast path passes registers on unchanged.
 * Only for direct calls of the program: weft_send and weft_isend_standard may poll. */
int weft_send_standard(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan);
int weft_isend_standard(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan, weft_req **req);
int weft_recv_plain(void *buf, uint64_t count, const weft_type *type, int src, int tag, weft_chan *chan, weft_recv_info *found);
/* Sends the message if it can leave at once in one frame. 0: the buffer may be reused; WEFT_AGAIN: not now; or an error.
 * is_async: not where the iface would read the buffer in place (zero copy), so that the caller starts a request instead. */
int weft_send_try(const void *buf, uint64_t count, const weft_type *type, int dst, int tag, weft_chan *chan, bool is_async);
/* Nonblocking. On success *req is a request, possibly the shared completed one. Free it with weft_req_free once it is done. */
int weft_isend(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type,
               enum weft_send_mode mode, weft_req **req);
int weft_irecv(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_req **req);
/* Fills in and starts a request that the caller owns (persistent and others). 0 or an error. */
int weft_isend_into(weft_chan *chan, int dst, int tag, const void *buf, uint64_t count, const weft_type *type,
                    enum weft_send_mode mode, weft_req *req);
int weft_irecv_into(weft_chan *chan, int src, int tag, void *buf, uint64_t count, const weft_type *type, weft_req *req);
/* Looks for an unexpected message and leaves it in the queue. wait: blocks until there is one; else polls at most once. */
int weft_probe(weft_chan *chan, int src, int tag, bool wait, bool *is_there, weft_recv_info *found);
/* The same, but takes the message out of matching: no other probe, receive or cancel finds it. NULL: none. The caller passes it to
 * mrecv_into, which receives it into a request of kind RECV, or to mrecv_reject, which ends its send with WEFT_E_COMM. */
int weft_mprobe(weft_chan *chan, int src, int tag, bool wait, weft_unexpected **message, weft_recv_info *found);
/* The same without a poll, for callers inside of one; asks a stalled sender for the message. */
weft_unexpected *weft_mprobe_now(weft_chan *chan, int src, int tag, weft_recv_info *found);
void weft_mrecv_into(weft_chan *chan, weft_unexpected *message, void *buf, uint64_t count, const weft_type *type, weft_req *req);
void weft_mrecv_reject(weft_chan *chan, weft_unexpected *message);
/* O(1). Cancels a posted receive or a send that waits for credit at once, and an announced send if the receiver has not matched it.
 * A cancelled request ends with recv_info.cancelled. Any other request completes normally. */
int weft_cancel(weft_req *req);
/* Blocks until the request is done; returns its rc. The request stays allocated. */
int weft_req_wait(weft_req *req);
/* Sets what a wait for this request shows: reason, peer, tag, bytes. */
void weft_req_wait_show(weft_wait *wait, const weft_req *req);

#endif

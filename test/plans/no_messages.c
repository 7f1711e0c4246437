/* SPDX-License-Identifier: BSD-3-Clause
 *
 * no_messages: stubs of functions that collectives call, but never in test_node; test_clock replaces weak ones.
 */
#include <stdlib.h>

#include "core/progress_thread.h"
#include "core/worker.h"
#include "p2p/p2p.h"

__attribute__((weak)) weft_req *weft_req_new(weft_worker *worker, enum weft_req_kind kind) { (void)worker, (void)kind; abort(); }
__attribute__((weak)) void weft_req_free(weft_req *req) { (void)req, abort(); }
void weft_req_notify(weft_req *req) { (void)req, abort(); }
int weft_cancel(weft_req *req) { (void)req; abort(); }
int weft_chan_resolve_peer(weft_chan *chan, uint32_t rank, weft_peer **peer) { (void)chan, (void)rank, (void)peer; abort(); }
int weft_isend(weft_chan *chan, int to, int tag, const void *buf, uint64_t count, const weft_type *type, enum weft_send_mode mode,
               weft_req **req)
{
    (void)chan, (void)to, (void)tag, (void)buf, (void)count, (void)type, (void)mode, (void)req;
    abort();
}
int weft_irecv(weft_chan *chan, int from, int tag, void *buf, uint64_t count, const weft_type *type, weft_req **req)
{
    (void)chan, (void)from, (void)tag, (void)buf, (void)count, (void)type, (void)req;
    abort();
}
int weft_irecv_into(weft_chan *chan, int from, int tag, void *buf, uint64_t count, const weft_type *type, weft_req *req)
{
    (void)chan, (void)from, (void)tag, (void)buf, (void)count, (void)type, (void)req;
    abort();
}
bool weft_progress_thread_is_barred(const weft_worker *worker) { (void)worker; return false; }
__attribute__((weak)) int weft_worker_poll(weft_worker *worker) { (void)worker; abort(); }
int weft_chan_notify(weft_chan *chan, uint32_t to, const void *body, uint32_t bytes)
{
    (void)chan, (void)to, (void)body, (void)bytes;
    abort();
}
void weft_chan_drop_refused(weft_chan *chan) { (void)chan, abort(); }

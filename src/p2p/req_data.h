/* SPDX-License-Identifier: BSD-3-Clause
 *
 * req_data: the memory of a request's message: its first byte if it is dense, and how many elements there are.
 * Used by send, receive and rendezvous; requires worker->lock.
 */
#ifndef WEFT_P2P_REQ_DATA_H
#define WEFT_P2P_REQ_DATA_H

#include <stdint.h>

#include "core/req_type.h"
#include "type/type.h"

/* First byte of a dense message. */
static inline void *weft_req_start(const weft_req *req) { return (char *)req->buf + req->type->true_lb; }

/* Elements of req->type at req->buf. */
static inline uint64_t weft_req_count(const weft_req *req) { return req->bytes ? req->bytes / (uint64_t)req->type->size : 0; }

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * request_ops: what the calls on requests (MPI_Start, Wait, Test, Cancel, Request_free ...) do for each kind of operation. A new kind of
 * operation adds an enum weft_req_kind and a row of the table in request_table.c; request.c and request_array.c know no kinds.
 */
#ifndef WEFT_MPI_REQUEST_OPS_H
#define WEFT_MPI_REQUEST_OPS_H

#include <mpi.h>
#include <stdbool.h>

#include "core/req.h"

/* Functions require the lock of the request's worker; 0 or an error. NULL: see each field. */
typedef struct weft_request_ops {
    const char *name;            /* of the operation, in error texts */
    bool holds_type;             /* a request that is not persistent holds req->type */
    bool is_shared;              /* req->handles handles refer to one request, which the last one releases */
    int (*start)(weft_req *req); /* starts an inactive persistent request; NULL: no persistent ones */
    int (*cancel)(weft_req *req);   /* MPI_Cancel of an active request, also of one that is done; NULL: it is an error */
    int (*free)(weft_req *req);  /* MPI_Request_free of an active request: takes it over; NULL: it is released once it is done */
    int (*abandon)(weft_req *req); /* finalize: ends a detached request that may need another process's call; NULL: it ends by itself */
    /* Sets the status of a done request; completes: the caller releases it next. Returns the request's result. May drop the lock and call
     * the program. NULL: recv_info and rc. */
    int (*query)(weft_req *req, MPI_Status *status, bool completes);
    /* The object whose error handler runs if the request fails; NULL there: MPI_COMM_SELF's. NULL: its communicator. */
    struct weft_traits *(*object)(const weft_req *req);
} weft_request_ops;

/* The rows that other files define. */
extern const weft_request_ops weft_request_ops_send, weft_request_ops_recv, weft_request_ops_bsend; /* persistent.c */
extern const weft_request_ops weft_request_ops_flush;                       /* bsend.c */
extern const weft_request_ops weft_request_ops_sendrecv;                    /* sendrecv.c */
extern const weft_request_ops weft_request_ops_dup;                         /* comm_dup.c */
extern const weft_request_ops weft_request_ops_generalized;                 /* grequest.c */
extern const weft_request_ops weft_request_ops_psend, weft_request_ops_precv; /* psend.c, precv.c */
extern const weft_request_ops weft_request_ops_rma;                         /* rma.c */

/* By enum weft_req_kind; no entry is NULL. */
extern const weft_request_ops *const weft_request_ops_table[WEFT_REQ_KINDS];

static inline const weft_request_ops *weft_request_ops_of(const weft_req *req) { return weft_request_ops_table[req->kind]; }

#endif

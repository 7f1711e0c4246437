/* SPDX-License-Identifier: BSD-3-Clause
 *
 * partitioned: partitioned messages (MPI 5.0 chapter 4). psend.c sends, precv.c receives, partitioned.c has what both share.
 * The sender's partitions move in units of one partition, or of several short ones; each unit is a message of its own tag in the DATA
 * context. At Psend_init a SETUP message with the sender's units goes to the SETUP context, under the program's tag: so requests match in
 * the order in which they were initialized, by p2p's matching. Invariant: a pair of requests stays matched until it is freed.
 */
#ifndef WEFT_MPI_PARTITIONED_H
#define WEFT_MPI_PARTITIONED_H

#include <mpi.h>
#include <stdatomic.h>

#include "mpi/comm.h"
#include "p2p/p2p.h"

#define WEFT_PARTITION_UNIT_MIN 4096 /* bytes; shorter partitions move together, in units of at least this length */

/* What the receiver learns of the sender's request: the body of SETUP. */
typedef struct weft_partition_setup {
    uint64_t bytes;      /* of the whole message, packed */
    uint64_t unit_bytes; /* of each unit; the last may be shorter */
    uint32_t units;
    int32_t tag;         /* of the first unit; the others follow */
} weft_partition_setup;

/* SETUP with the memory that it is sent from or received into: outlives its program's request (extra of its own request). */
typedef struct weft_partition_body {
    weft_req_ext ext;
    weft_partition_setup setup;
} weft_partition_body;

typedef struct weft_partitioned {
    weft_req_ext ext;      /* set by psend and precv; this is the beginning of req->extra */
    void *buf;
    uint64_t count;        /* elements of a partition */
    const weft_type *type; /* referenced */
    uint32_t partitions;
    int rank, tag;         /* as given by the program */
    weft_chan *setup_chan, *data_chan;
    weft_partition_setup setup; /* of the sender; receiver: valid once its message has come */
    weft_req *req;              /* the program's request */
    weft_req **units;           /* [setup.units] requests of the units; NULL: none yet */
    weft_completion completion; /* of all units of the operation that is active */
} weft_partitioned;

static inline uint64_t weft_partition_bytes(const weft_partitioned *self) { return self->count * (uint64_t)self->type->size; }

/* Bytes of unit i. */
static inline uint64_t weft_partition_unit_bytes(const weft_partition_setup *setup, uint32_t i)
{
    return i + 1 < setup->units ? setup->unit_bytes : setup->bytes - setup->unit_bytes * (setup->units - 1);
}

/* Checks partitions and count, fills what both sides share, opens the contexts, and makes the program's request. 0 or an error. */
int weft_partitioned_open(weft_partitioned *self, weft_comm *comm, enum weft_req_kind kind, int partitions, weft_req **req);
/* Becomes extra of the request of a SETUP. setup NULL: zeroes. NULL: out of memory. */
weft_partition_body *weft_partition_body_new(const weft_partition_setup *setup);
/* Frees the requests of the units and drops the type. */
void weft_partitioned_close(weft_partitioned *self);
/* Begins an operation of `units` units: the request ends when each was subtracted by one_done or by its request. */
void weft_partitioned_begin(weft_partitioned *self, uint32_t units);
void weft_partitioned_one_done(weft_partitioned *self, int rc);
/* The request of unit i, made at its first use. NULL: out of memory. */
weft_req *weft_partitioned_unit(weft_partitioned *self, uint32_t i, enum weft_req_kind kind);
/* Moves a partition between a binding's copy of the buffer, if there is one, and the buffer. Any thread. */
void weft_partitioned_move(const weft_partitioned *self, uint32_t partition, bool is_out);
/* The active request of this kind behind a handle. MPI_ERR_REQUEST if it has another kind; is_idle: it is null or inactive. */
int weft_partitioned_find(MPI_Request request, enum weft_req_kind kind, weft_req **req, bool *is_idle);

#endif

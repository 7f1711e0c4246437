/* SPDX-License-Identifier: BSD-3-Clause
 *
 * partitioned: partitioned messages (MPI 5.0 chapter 4). psend.c sends, precv.c receives, partitioned.c has what both share.
 * At Psend_init a SETUP message goes to the SETUP context, under the program's tag: so requests match in the order in which they were
 * initialized, by p2p's matching. A unit is one of the sender's partitions, or several short ones. Neighbouring units that are ready
 * together move as a *run*: two messages in the DATA context, its span and its bytes, under two tags of the pair. The receiver posts a
 * receive for the next span, and when that has come one for the bytes, in their place. A send without partitions has one unit without
 * bytes, which is complete at its start.
 * Invariants: a pair of requests stays matched until it is freed; the n-th span and the n-th body belong to the same run.
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
    int32_t tag;         /* of spans; the next one is of bytes */
} weft_partition_setup;

/* A message: units of the run whose bytes follow. */
typedef struct weft_partition_span {
    uint32_t first, units;
} weft_partition_span;

/* SETUP with the memory that it is sent from or received into: outlives its program's request (extra of its own request). */
typedef struct weft_partition_body {
    weft_req_ext ext;
    weft_partition_setup setup;
} weft_partition_body;

struct weft_partitioned;

/* A run in flight, or the memory for one. */
typedef struct weft_partition_run {
    struct weft_partition_run *next, *next_idle; /* of all runs of the request; of those that are not in flight */
    struct weft_partitioned *of;
    weft_partition_span span;
    weft_req *head, *body;      /* of the span and of the bytes */
    weft_completion completion; /* of what is under way of both */
    weft_req *late;             /* of them: under way while the request is freed; NULL: none */
} weft_partition_run;

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
    weft_partition_run *runs, *idle_runs; /* all, owned; those not in flight. NULL: none */
    bool is_helped;             /* the active operation counts in worker->helped */
    int rc;                     /* of the active operation; 0: no error so far */
    uint32_t left;              /* its units that are not done */
} weft_partitioned;

static inline uint64_t weft_partition_bytes(const weft_partitioned *self) { return self->count * (uint64_t)self->type->size; }

/* Bytes of `units` units from `first` on. */
static inline uint64_t weft_partition_span_bytes(const weft_partition_setup *setup, uint32_t first, uint32_t units)
{
    return (first + units < setup->units ? setup->unit_bytes * (first + units) : setup->bytes) - setup->unit_bytes * first;
}

/* Tags of spans, and of their bytes. */
static inline int weft_partition_head_tag(const weft_partition_setup *setup) { return setup->tag; }
static inline int weft_partition_body_tag(const weft_partition_setup *setup) { return (int)(((uint32_t)setup->tag + 1) & 0x3fffffffu); }

/* Checks partitions and count, fills what both sides share, opens the contexts, and makes the program's request. 0 or an error. */
int weft_partitioned_open(weft_partitioned *self, weft_comm *comm, enum weft_req_kind kind, int partitions, weft_req **req);
/* Becomes extra of the request of a SETUP. setup NULL: zeroes. NULL: out of memory. */
weft_partition_body *weft_partition_body_new(const weft_partition_setup *setup);
/* Frees the runs and drops the type. Receives of them that have not matched are cancelled. */
void weft_partitioned_close(weft_partitioned *self);
/* Begins an operation: the request ends when `units` units are done. */
void weft_partitioned_begin(weft_partitioned *self, uint32_t units, bool is_helped);
void weft_partitioned_done(weft_partitioned *self, uint32_t units, int rc);
/* A run, whose requests are of `kind`; given back by weft_partition_run_end. NULL: out of memory. */
weft_partition_run *weft_partition_run_begin(weft_partitioned *self, enum weft_req_kind kind);
void weft_partition_run_end(weft_partition_run *run);
/* What is under way of the run from now on: `open` is called after `left` ends. */
void weft_partition_run_await(weft_partition_run *run, uint32_t left, void (*open)(weft_completion *completion));
/* Moves a partition between a binding's copy of the buffer, if there is one, and the buffer. Any thread. */
void weft_partitioned_move(const weft_partitioned *self, uint32_t partition, bool is_out);
/* The error of a partition that the request does not have. */
int weft_partitioned_no_partition(const weft_partitioned *self, int partition);
/* The active request of this kind behind a handle. MPI_ERR_REQUEST if it has another kind; is_idle: it is null or inactive. */
int weft_partitioned_find(MPI_Request request, enum weft_req_kind kind, weft_req **req, bool *is_idle);

#endif

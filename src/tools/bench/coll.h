/* SPDX-License-Identifier: BSD-3-Clause
 * coll: what the tests of collective operations share: an operation's shape, its calls, and the memory of a case.
 * Invariant: requests and communicators are made at the first call, never in open(), whose result differs between ranks.
 */
#ifndef WEFT_TOOLS_BENCH_COLL_H
#define WEFT_TOOLS_BENCH_COLL_H

#include "bench.h"

/* Blocks of --sizes bytes in a buffer. */
typedef enum bench_blocks
{
    NOTHING,
    ONE,
    TWO, /* one for each neighbour on the ring */
    EACH /* one for each rank */
} bench_blocks;

typedef enum bench_rooted
{
    NO_ROOT,
    ROOT_SENDS,
    ROOT_RECEIVES
} bench_rooted;

/* Whose contributions an element of the result sums. */
typedef enum bench_fold
{
    NO_FOLD, /* bytes are moved */
    OF_ALL,
    UP_TO_ME,
    BELOW_ME
} bench_fold;

typedef enum bench_form
{
    BLOCKING,
    NONBLOCKING, /* the call, then MPI_Wait */
    PERSISTENT,  /* MPI_Start and MPI_Wait; its init call is not timed */
    FORMS
} bench_form;

/* Arguments of one call. Counts, displacements and types are those of equal blocks, for the v and w operations. */
typedef struct bench_call
{
    const void *out;
    void *in;
    int n; /* elements of a block */
    int root;
    MPI_Datatype type; /* MPI_BYTE, or MPI_DOUBLE where the operation folds */
    MPI_Comm comm;
    int *counts, *displs;
    MPI_Datatype *types;
    MPI_Request *request;
} bench_call;

struct bench_operation
{
    bench_blocks out, in; /* out is NOTHING in bcast: `in` is the root's send buffer */
    bench_rooted rooted;
    bench_fold fold;
    void (*calls[FORMS])(const bench_call *); /* NULL: this MPI has no such form */
};

struct bench_coll_state
{
    bench_call call;
    int neighbours[2]; /* on the ring: left, right */
    bool ready;        /* requests and communicator are made */
};

/* Blocks of a buffer on this rank. */
int bench_coll_blocks(const bench_case *c, bench_blocks blocks);

/* Makes communicator and persistent requests before the first call. Collective. */
void bench_coll_prepare(bench_case *c);

/* Performs one call in the test's form, with call.out and call.in of the state (persistent: with the arenas' first slots). */
void bench_coll_perform(bench_case *c, int root);

/* Transfers patterns and verifies every byte. */
void bench_coll_check(bench_case *c, int round);

#endif

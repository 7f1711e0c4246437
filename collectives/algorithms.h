/* SPDX-License-Identifier: BSD-3-Clause
 *
 * algorithms: every way that Weft knows to perform a collective, one file per operation. Called through the rows of select.c
 * (and by the tests, which try each). Each takes any count including 0, any type, any root, MPI_IN_PLACE and any number of
 * ranks >= 1; what one needs beyond that (a commutative operator) stands beside it and in its row. Those by hosts need team->hosts.
 */
#ifndef WEFT_COLLECTIVES_ALGORITHMS_H
#define WEFT_COLLECTIVES_ALGORITHMS_H

#include "collectives/sched.h"

weft_sched_algorithm weft_barrier_dissemination;
weft_sched_algorithm weft_barrier_doubling; /* ranks a power of two */

weft_sched_algorithm weft_barrier_hier;

weft_sched_algorithm weft_bcast_binomial;
/* scatter by halves, then a ring: two times the bytes instead of log2(ranks) times */
weft_sched_algorithm weft_bcast_scatter_ring;
weft_sched_algorithm weft_bcast_chain;        /* segments down a chain: once the bytes, ranks latencies */
weft_sched_algorithm weft_bcast_hier;

weft_sched_algorithm weft_reduce_binomial;       /* commutative */
weft_sched_algorithm weft_reduce_binomial_order; /* in rank order */
weft_sched_algorithm weft_reduce_blocks;         /* each rank folds one block, in rank order; the root gathers */
weft_sched_algorithm weft_reduce_hier;          /* commutative */

weft_sched_algorithm weft_allreduce_doubling; /* in rank order */
weft_sched_algorithm weft_allreduce_blocks;   /* each rank folds one block, in rank order, and sends it to all */
weft_sched_algorithm weft_allreduce_blocks_ring; /* the same, but a ring spreads them */
weft_sched_algorithm weft_allreduce_ring;     /* commutative: blocks are folded while they go round; least memory */
weft_sched_algorithm weft_allreduce_hier;    /* commutative */
weft_sched_algorithm weft_allreduce_multileader;    /* commutative: by hosts too, but each member speaks across for a part of the vector */

weft_sched_algorithm weft_gather_linear, weft_gather_binomial;
weft_sched_algorithm weft_scatter_linear, weft_scatter_binomial;
weft_sched_algorithm weft_allgather_ring, weft_allgather_bruck;
weft_sched_algorithm weft_allgather_doubling; /* ranks a power of two */
weft_sched_algorithm weft_alltoall_pairwise, weft_alltoall_linear, weft_alltoall_bruck;

/* ranks blocks of count elements of type at buf go round, `place` being whose block we hold; blocks as weft_sched_block_start
 * cuts. */
void weft_allgather_blocks(weft_sched *sched, void *buf, uint64_t count, const weft_type *type, uint32_t place, uint32_t shift);
/* A block, cut where it goes to another node and shorter messages are better there; nothing if count is 0. */
void weft_send_fragments(weft_sched *sched, uint32_t to, const void *buf, uint64_t count, const weft_type *type);
void weft_recv_fragments(weft_sched *sched, uint32_t from, void *buf, uint64_t count, const weft_type *type);
/* The same among owners (ranks below `blocks`, of block `rank` each) and all, each block straight from its owner. */
void weft_spread_blocks(weft_sched *sched, void *buf, uint64_t count, const weft_type *type, uint32_t blocks);
/* Sends our part of every block to its owner and folds our own block of args' vector into out, if we own one: in rank order, unless the
 * operator commutes. Our data is args->sendbuf, in place recvbuf; out may be our block in it if the operator commutes. */
void weft_reduce_own_block(weft_sched *sched, const weft_coll *args, uint32_t blocks, void *out);

#endif

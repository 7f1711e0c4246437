/* SPDX-License-Identifier: BSD-3-Clause
 *
 * algorithms: all algorithms of the collectives, one file per operation. Called through the rules of select.c, by hier.c, shmcoll_setup.c
 * and tests. Each supports any count including 0, any type, any root, MPI_IN_PLACE and any number of ranks >= 1; further requirements are
 * stated beside it and in its rule. The hierarchical ones (_hier, _multileader) require team->topology.
 */
#ifndef WEFT_COLLECTIVES_ALGORITHMS_H
#define WEFT_COLLECTIVES_ALGORITHMS_H

#include "collectives/blocks.h"
#include "collectives/sched.h"

#define WEFT_RADIX_MAX 8 /* of k-nomial trees and recursive multiplying */

weft_sched_algorithm weft_barrier_dissemination;
weft_sched_algorithm weft_barrier_dissemination_4, weft_barrier_dissemination_8; /* k-way: k - 1 messages in each of log_k(ranks) rounds */
weft_sched_algorithm weft_barrier_doubling; /* requires a power of two of ranks */

weft_sched_algorithm weft_barrier_hier;

weft_sched_algorithm weft_bcast_binomial;
weft_sched_algorithm weft_bcast_knomial_4, weft_bcast_knomial_8; /* k - 1 messages in each of log_k(ranks) levels */
weft_sched_algorithm weft_bcast_scatter_doubling; /* scatter by halves, then allgather by doubling */
/* scatter by halves, then ring allgather: sends twice the bytes instead of log2(ranks) times */
weft_sched_algorithm weft_bcast_scatter_ring;
weft_sched_algorithm weft_bcast_chain; /* pipelined chain: sends the bytes once, takes `ranks` latencies */
weft_sched_algorithm weft_bcast_binary; /* pipelined binary tree: sends the bytes twice, takes log2(ranks) latencies */
weft_sched_algorithm weft_bcast_hier;

weft_sched_algorithm weft_reduce_binomial;       /* requires a commutative operator */
weft_sched_algorithm weft_reduce_binomial_order; /* in rank order */
weft_sched_algorithm weft_reduce_knomial_4, weft_reduce_knomial_8; /* require a commutative operator */
weft_sched_algorithm weft_reduce_knomial_4_order, weft_reduce_knomial_8_order; /* in rank order */
weft_sched_algorithm weft_reduce_rabenseifner;   /* halving reduce-scatter, gather by halves; requires a commutative operator */
/* pipelined along a chain or a binary tree; two segments of memory for each child */
weft_sched_algorithm weft_reduce_chain, weft_reduce_binary;             /* require a commutative operator */
weft_sched_algorithm weft_reduce_chain_order, weft_reduce_binary_order; /* in rank order */
weft_sched_algorithm weft_reduce_blocks;         /* each rank reduces one block, in rank order; the root gathers */
weft_sched_algorithm weft_reduce_hier;           /* requires a commutative operator */

weft_sched_algorithm weft_allreduce_doubling; /* in rank order */
/* in rank order; each rank exchanges with k - 1 others in each round, and needs memory for as many vectors */
weft_sched_algorithm weft_allreduce_multiplying_3, weft_allreduce_multiplying_4, weft_allreduce_multiplying_8;
weft_sched_algorithm weft_allreduce_rabenseifner; /* halving reduce-scatter, doubling allgather; requires a commutative operator */
weft_sched_algorithm weft_allreduce_blocks;   /* each rank reduces one block, in rank order, and sends it to all */
weft_sched_algorithm weft_allreduce_blocks_ring; /* the same, then ring allgather */
weft_sched_algorithm weft_allreduce_ring;     /* ring reduce-scatter, ring allgather; requires a commutative operator; least memory */
weft_sched_algorithm weft_allreduce_hier;     /* requires a commutative operator */
weft_sched_algorithm weft_allreduce_multileader; /* hierarchical, each member leads for a part; requires a commutative operator */

weft_sched_algorithm weft_gather_linear, weft_gather_binomial;
weft_sched_algorithm weft_scatter_linear, weft_scatter_binomial;
/* gather_linear, scatter_linear, all of allgather, alltoall_linear and alltoall_pairwise also take layouts. */
weft_sched_algorithm weft_allgather_linear, weft_allgather_ring, weft_allgather_bruck;
weft_sched_algorithm weft_allgather_doubling, weft_allgather_multiplying_4, weft_allgather_multiplying_8;
weft_sched_algorithm weft_allgather_neighbor; /* neighbour exchange; requires an even number of ranks */
/* Only args->neighbors exchange messages. allgather: also with a layout; alltoall: also with layouts and types. */
weft_sched_algorithm weft_neighbor_allgather, weft_neighbor_alltoall;
weft_sched_algorithm weft_alltoall_pairwise, weft_alltoall_linear, weft_alltoall_bruck;

/* Hierarchical; several members of a node exchange parts with other nodes (hier_bundles.h). allgather also takes layouts. */
weft_sched_algorithm weft_gather_multileader, weft_scatter_multileader, weft_allgather_multileader;
weft_sched_algorithm weft_alltoall_hier; /* one message per pair of nodes and part of it, spread over the members */

weft_sched_algorithm weft_scan_doubling, weft_exscan_doubling; /* in rank order */
weft_sched_algorithm weft_scan_chain, weft_exscan_chain;       /* in rank order; pipelined: sends the bytes once, takes `ranks` latencies */
/* Blocks by recv_layout, or equal ones. */
weft_sched_algorithm weft_reduce_scatter_doubling; /* allreduce by doubling, in rank order; each rank keeps its block */
weft_sched_algorithm weft_reduce_scatter_linear;   /* each rank reduces its block, in rank order */
weft_sched_algorithm weft_reduce_scatter_halving;  /* requires a commutative operator */
weft_sched_algorithm weft_reduce_scatter_ring;     /* requires a commutative operator */

/* The algorithm of an intercommunicator's team (inter.c). NULL for a barrier: an intracommunicator's, among all members of the team. */
weft_sched_algorithm *weft_inter_algorithm(enum weft_coll_kind kind);

/* Ring allgather of a block from each rank. This rank holds block `place` at first; the holder of block v is rank (v + shift) % size. */
void weft_allgather_blocks_ring(weft_sched *sched, const weft_blocks *blocks, uint32_t place, uint32_t shift);
/* Sends, receives a block: none if count is 0, several messages if it crosses nodes and is longer than team->eager_bytes
 * (eager_split.c). */
void weft_send_fragments(weft_sched *sched, uint32_t to, const void *buf, uint64_t count, const weft_type *type);
void weft_recv_fragments(weft_sched *sched, uint32_t from, void *buf, uint64_t count, const weft_type *type);
/* Ring reduce-scatter of the vector that the blocks are, in place: rank (v + shift) % size gets block v; other blocks hold partial results
 * afterwards. Requires a commutative operator. */
void weft_reduce_scatter_blocks_ring(weft_sched *sched, const weft_blocks *blocks, uint32_t shift);
/* The same by recursive halving, for any number of ranks: block v to rank (v + shift) % size. The vector is at data, which is only read,
 * or in place (one address); the result and other partial ones are in work. */
void weft_reduce_scatter_blocks_halving(weft_sched *sched, const weft_blocks *data, const weft_blocks *work, uint32_t shift);
/* Scatter by halves: rank `shift` has all blocks, rank (v + shift) % size gets block v, and those of the places after it to which it passes
 * them on. gather: the reverse. */
void weft_scatter_blocks_halving(weft_sched *sched, const weft_blocks *blocks, uint32_t shift);
void weft_gather_blocks_halving(weft_sched *sched, const weft_blocks *blocks, uint32_t shift);
/* Allgather by recursive multiplying with k parts, 2 <= k; rank (v + shift) % size has block v. is_scattered (k = 2): the blocks come from
 * weft_scatter_blocks_halving, and nobody gets what it had there. */
void weft_allgather_blocks_multiplying(weft_sched *sched, const weft_blocks *blocks, uint32_t shift, uint32_t k, bool is_scattered);
/* Linear allgather: rank r owns block r and sends it to all. */
void weft_allgather_blocks_linear(weft_sched *sched, const weft_blocks *blocks);
/* Must operands keep the order of ranks? See weft_coll_order_of. */
static inline bool weft_sched_is_ordered(const weft_sched *sched) { return !sched->op->is_commutative || sched->size == 2; }
/* Linear reduce-scatter of a vector: `blocks` says what each rank owns of it, as consecutive blocks. Sends every other block to its owner
 * and reduces its own into out, in rank order if that matters (weft_sched_is_ordered); else out may be the block in the vector. */
void weft_reduce_own_block(weft_sched *sched, const weft_blocks *blocks, void *out);

#endif

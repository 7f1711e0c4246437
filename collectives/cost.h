/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost: the time of each algorithm as a function of ranks, bytes, nodes and the machine's parameters. Called through the rules of select.c.
 * Model (as LogGP): a message of n bytes takes a link's latency and n times its gap; sender and receiver are busy for `overhead` each (part
 * of the latency). Within a node the receiver copies the bytes; to other nodes each node has one port, which its ranks share. A reduction
 * and a copy take a time per byte. Ranks are on nodes in blocks of equal size; the root is rank 0. test/plans/clock.c computes the same
 * from the recorded steps, and test_clock compares.
 * Invariant: a cost depends on values that are equal on all members.
 */
#ifndef WEFT_COLLECTIVES_COST_H
#define WEFT_COLLECTIVES_COST_H

#include "collectives/rule.h"

weft_coll_cost weft_cost_barrier_doubling, weft_cost_barrier_dissemination, weft_cost_barrier_dissemination_4;
weft_coll_cost weft_cost_barrier_dissemination_8;
weft_coll_cost weft_cost_bcast_binomial, weft_cost_bcast_knomial_4, weft_cost_bcast_knomial_8, weft_cost_bcast_chain;
weft_coll_cost weft_cost_bcast_binary, weft_cost_bcast_scatter_ring, weft_cost_bcast_scatter_doubling;
weft_coll_cost weft_cost_gather_linear, weft_cost_gather_binomial, weft_cost_scatter_linear, weft_cost_scatter_binomial;
weft_coll_cost weft_cost_allgather_linear, weft_cost_allgatherv_linear;
weft_coll_cost weft_cost_allgather_ring, weft_cost_allgather_bruck, weft_cost_allgather_doubling, weft_cost_allgather_multiplying_4;
weft_coll_cost weft_cost_allgather_multiplying_8, weft_cost_allgather_neighbor;
weft_coll_cost weft_cost_allgatherv_ring, weft_cost_allgatherv_bruck, weft_cost_allgatherv_doubling, weft_cost_allgatherv_multiplying_4;
weft_coll_cost weft_cost_allgatherv_multiplying_8, weft_cost_allgatherv_neighbor;
weft_coll_cost weft_cost_alltoall_linear, weft_cost_alltoall_pairwise, weft_cost_alltoall_bruck, weft_cost_neighbors;

/* Reductions (cost_reduction.c). */
weft_coll_cost weft_cost_reduce_binomial, weft_cost_reduce_knomial_4, weft_cost_reduce_knomial_8, weft_cost_reduce_blocks;
weft_coll_cost weft_cost_reduce_chain, weft_cost_reduce_binary, weft_cost_reduce_binary_order, weft_cost_reduce_rabenseifner;
weft_coll_cost weft_cost_allreduce_doubling, weft_cost_allreduce_multiplying_3, weft_cost_allreduce_multiplying_4;
weft_coll_cost weft_cost_allreduce_multiplying_8, weft_cost_allreduce_rabenseifner, weft_cost_allreduce_blocks;
weft_coll_cost weft_cost_allreduce_blocks_ring, weft_cost_allreduce_ring;
weft_coll_cost weft_cost_scan_doubling, weft_cost_exscan_doubling, weft_cost_scan_chain;
weft_coll_cost weft_cost_reduce_scatter_doubling, weft_cost_reduce_scatter_linear, weft_cost_reduce_scatter_halving;
weft_coll_cost weft_cost_reduce_scatter_ring;

/* On several nodes, in stages (cost_hier.c). */
weft_coll_cost weft_cost_barrier_hier, weft_cost_bcast_hier, weft_cost_reduce_hier, weft_cost_allreduce_hier;
weft_coll_cost weft_cost_allreduce_multileader, weft_cost_gather_multileader, weft_cost_scatter_multileader;
weft_coll_cost weft_cost_allgather_multileader, weft_cost_allgatherv_multileader, weft_cost_alltoall_hier;

/* Through the node area (cost_area.c). INFINITY beyond the sizes up to which these forms were measured to be the fastest. */
weft_coll_cost weft_cost_area_barrier, weft_cost_area_bcast, weft_cost_area_reduce, weft_cost_area_allreduce, weft_cost_area_gather;
weft_coll_cost weft_cost_area_scatter, weft_cost_area_allgather, weft_cost_area_allgatherv, weft_cost_area_alltoall;
weft_coll_cost weft_cost_area_scan, weft_cost_area_exscan, weft_cost_area_reduce_scatter, weft_cost_area_alltoallv;

#endif

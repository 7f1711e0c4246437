/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost_terms: what the cost functions are made of: the times of one message, of a round in which all ranks send, of all messages at once.
 * Times are in ns, bytes and ranks are numbers of any size.
 */
#ifndef WEFT_COLLECTIVES_COST_TERMS_H
#define WEFT_COLLECTIVES_COST_TERMS_H

#include "collectives/rule.h"

typedef struct weft_terms {
    uint32_t ranks, node_ranks; /* node_ranks: on each node, at most */
    uint32_t sharing;           /* ranks of a node that do the same at the same time among other nodes */
    bool is_in_order;           /* the operator does not commute */
    double bytes;               /* weft_coll_bytes */
    const weft_coll_link *node, *net;
    double node_gap, net_gap, reduce, copy; /* ns per byte */
    double segment;             /* bytes of pipelines */
} weft_terms;

weft_terms weft_terms_of(const weft_coll_query *query);

/* log2, rounded up. */
static inline uint32_t weft_terms_log2(uint32_t ranks) { return ranks < 2 ? 0 : 32 - (uint32_t)__builtin_clz(ranks - 1); }
static inline double weft_terms_max(double a, double b) { return a > b ? a : b; }
static inline double weft_terms_min(double a, double b) { return a < b ? a : b; }

/* The link of a message to a rank so far away, if not all such messages stay in a node. */
static inline const weft_coll_link *weft_terms_link(const weft_terms *t, uint32_t distance)
{
    return distance >= t->node_ranks || distance == 0 ? t->net : t->node;
}

/* One message, of a rank whose distance to the receiver is a power of two, as in a binomial tree: the others of its node send none. */
double weft_terms_message(const weft_terms *t, uint32_t distance, double bytes);
/* A k-nomial tree of which each edge carries so many bytes; each costs the parent `work` more. */
double weft_terms_tree(const weft_terms *t, uint32_t k, double bytes, double work);
/* All ranks send so many bytes to the rank that is `distance` further, and receive from the one before. */
double weft_terms_round(const weft_terms *t, uint32_t distance, double bytes);
/* The same in rounds of doubled distances 1, 2, 4 ..: all those within a node's ranks together cross one border of nodes. That costs
 * weft_terms_border more, once. */
double weft_terms_doubled_round(const weft_terms *t, uint32_t distance, double bytes);
double weft_terms_border(const weft_terms *t);
/* All ranks send and receive, where rank and peer are in one block of 2 distance ranks (rank ^ distance). */
double weft_terms_exchange(const weft_terms *t, uint32_t distance, double bytes);
/* All ranks exchange so many bytes with `others` ranks of a block of (others + 1) distance ranks, all at once. */
double weft_terms_exchanges(const weft_terms *t, uint32_t distance, uint32_t others, double bytes);
/* The same with the ranks at 1 .. others times the distance, modulo all. */
double weft_terms_rounds(const weft_terms *t, uint32_t distance, uint32_t others, double bytes);
/* Of several rounds in which all ranks send so many bytes to other nodes: those that share a port take turns in the first one. */
double weft_terms_turns(const weft_terms *t, double bytes);
/* A ring: ranks - 1 rounds in which all ranks send a block to the next one. reducing: and reduce the one that they get. */
double weft_terms_ring(const weft_terms *t, double block);
double weft_terms_reducing_ring(const weft_terms *t, double block);
/* Every rank sends so many bytes to each other rank, all at once. */
double weft_terms_all_to_all(const weft_terms *t, double bytes);
/* One rank receives so many bytes from each other rank; sends them to each. */
double weft_terms_all_to_one(const weft_terms *t, double bytes);
double weft_terms_one_to_all(const weft_terms *t, double bytes);
/* A pipeline along all ranks: bytes in segments of four latencies; each byte costs every rank `work` more. */
double weft_terms_pipeline(const weft_terms *t, double bytes, double work);
/* A pipeline along a binary tree of so many levels below the root; each byte that comes from a child costs `work` more. is_up: to the
 * root. */
double weft_terms_binary(const weft_terms *t, uint32_t levels, double bytes, double work, bool is_up);
/* A vector, or blocks of `block` bytes for each rank, by halves from one rank to all, or from all to one. */
double weft_terms_halves(const weft_terms *t, double block);
/* Reduce-scatter of such a vector by recursive halving. */
double weft_terms_halving(const weft_terms *t, double block);
/* Allgather of blocks by recursive multiplying with k parts. */
double weft_terms_multiplying(const weft_terms *t, double block, uint32_t k);

#endif

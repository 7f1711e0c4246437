/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rule: a row of the table of algorithms, the query by which one is chosen, and the choice (select.c), which cost functions need for the
 * stages of hierarchical algorithms.
 */
#ifndef WEFT_COLLECTIVES_RULE_H
#define WEFT_COLLECTIVES_RULE_H

#include "collectives/params.h"
#include "collectives/sched.h"

enum weft_need {
    WEFT_NEED_COMMUTATIVE = 1, /* the operator commutes */
    WEFT_NEED_POWER_OF_2 = 2,  /* ranks are a power of two */
    WEFT_NEED_AREA = 4,        /* a blocking call, and a node area (shmcoll.h); on several nodes: their stages may use areas */
    WEFT_NEED_NODES = 8,       /* several nodes, at least one of them with two or more members (topology.h) */
    WEFT_NEED_EVEN = 16,       /* ranks are even in number */
    WEFT_NEED_ORDER = 32,      /* the operator does not commute */
    WEFT_NEED_NETWORK = 64,    /* several nodes */
    WEFT_NEED_MANY = 128,      /* several nodes, or more than WEFT_COLL_CHAIN ranks */
    WEFT_NEED_CROWD = 256,     /* one node with more than WEFT_COLL_CHAIN ranks, which share CPUs */
};

struct weft_coll_query;
/* Time in ns; INFINITY: the algorithm is not chosen for this query. */
typedef double weft_coll_cost(const struct weft_coll_query *query);

typedef struct weft_coll_rule {
    enum weft_coll_kind kind;
    const char *name;
    weft_sched_algorithm *algorithm; /* NULL: through the node area (shmcoll.h) */
    weft_coll_cost *cost;
    uint32_t needs;                 /* without them the algorithm is wrong */
    uint32_t when;                  /* without them it is not chosen: mask of enum weft_need */
    uint32_t ranks_max;             /* with more it is not chosen; a limit of memory, of messages at once, or of what was measured */
    const char *reason;             /* for tools */
} weft_coll_rule;

#define WEFT_COLL_CHAIN 8u    /* ranks up to which a chain within a node is short */
#define WEFT_COLL_AT_ONCE 16u /* ranks up to which one may exchange messages with all others at once */
#define WEFT_COLL_RULE_LATENCY 8192u /* latency_bytes within a node, and until a team agrees on one */

typedef struct weft_coll_query {
    enum weft_coll_kind kind;
    uint32_t ranks;
    uint32_t nodes;         /* with members; 1: all on one node, ranks: each on its own */
    uint32_t sharing;       /* ranks of a node that do the same at the same time, and share its port; 0 and 1: one */
    uint64_t bytes;         /* weft_coll_bytes */
    uint32_t has;           /* mask of enum weft_need */
    uint32_t latency_bytes; /* a quarter of a segment of pipelined algorithms */
    uint32_t slot_bytes;    /* of the node area; 0: none */
    const weft_coll_params *params;
} weft_coll_query;

/* Members wait for turns of the CPU more than for data: many waits cost more than many bytes. */
static inline bool weft_coll_query_is_crowd(const weft_coll_query *query)
{
    return query->params->shares_cpus && query->nodes == 1 && query->ranks > WEFT_COLL_CHAIN;
}

/* Never NULL: of each operation one rule may always be used. */
const weft_coll_rule *weft_coll_select(const weft_coll_query *query);
/* The rule's cost in ns; INFINITY: it is not chosen for this query. */
double weft_coll_rule_cost(const weft_coll_rule *rule, const weft_coll_query *query);

#endif

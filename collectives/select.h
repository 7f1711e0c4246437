/* SPDX-License-Identifier: BSD-3-Clause
 *
 * select: chooses the algorithm of a collective: of those that may perform the call, the cheapest by its cost function (cost.h). Called by
 * choice.c, which keeps the choices of a team, by cost.c for the stages of hierarchical algorithms, and by tools.
 * Invariant: the query is equal on all participating members, so all choose alike.
 */
#ifndef WEFT_COLLECTIVES_SELECT_H
#define WEFT_COLLECTIVES_SELECT_H

#include <stddef.h>

#include "collectives/calls.h"
#include "collectives/rule.h"

/* Must the choice depend on nothing but the operation, the ranks and the length? Then a query has one node, no area, default parameters. */
static inline bool weft_coll_query_is_plain(const weft_team *team, const weft_coll *args) { return team->is_reproducible && args->op; }

/* Two ranks reduce in order whatever the operator: then a measured choice (params.h) among algorithms changes no bit of a result. */
static inline uint32_t weft_coll_order_of(uint32_t ranks, bool is_commutative)
{
    return is_commutative && ranks > 2 ? WEFT_NEED_COMMUTATIVE : WEFT_NEED_ORDER;
}

/* A query by the arguments of one member; areas and nodes are the caller's to add, unless it is plain. */
static inline weft_coll_query weft_coll_query_of(enum weft_coll_kind kind, uint32_t ranks, const weft_team *team, const weft_coll *args,
                                                 bool is_root)
{
    weft_coll_query query = {.kind = kind, .ranks = ranks, .nodes = team->nodes, .bytes = weft_coll_bytes(kind, args, is_root),
                             .latency_bytes = team->latency_bytes, .params = &team->params};

    if (args->op)
        query.has |= weft_coll_order_of(ranks, args->op->is_commutative);
    if (weft_unlikely(weft_coll_query_is_plain(team, args))) {
        query.nodes = 1;
        query.params = &weft_coll_params_default;
        query.latency_bytes = WEFT_COLL_RULE_LATENCY;
    }
    return query;
}

/* What the numbers of ranks and nodes add to query->has. */
static inline uint32_t weft_coll_query_numbers(const weft_coll_query *query)
{
    return (query->ranks & (query->ranks - 1) ? 0 : WEFT_NEED_POWER_OF_2) | (query->ranks % 2 ? 0 : WEFT_NEED_EVEN) |
           (query->nodes > 1 ? WEFT_NEED_NETWORK | WEFT_NEED_MANY : query->ranks > WEFT_COLL_CHAIN ? WEFT_NEED_MANY : 0) |
           (weft_coll_query_is_crowd(query) ? WEFT_NEED_CROWD : 0);
}

/* All rules of an operation, for tools and tests. */
const weft_coll_rule *weft_coll_select_rules(enum weft_coll_kind kind, size_t *count);

/* ---- lengths in classes: four for each power of two ---- */

#define WEFT_COLL_CLASSES 252u

/* The class of a length; lengths below 8 have classes of their own. */
static inline uint32_t weft_coll_class_of(uint64_t bytes)
{
    uint32_t log;

    if (bytes < 8)
        return (uint32_t)bytes;
    log = 63 - (uint32_t)__builtin_clzll(bytes);
    return (log - 1) << 2 | ((uint32_t)(bytes >> (log - 2)) & 3);
}

/* The shortest length of a class; of WEFT_COLL_CLASSES: UINT64_MAX. */
uint64_t weft_coll_class_start(uint32_t class);
/* The index, among the operation's rules, of the choice for all lengths of a class: that for its middle. query->bytes is ignored. */
uint32_t weft_coll_select_class(const weft_coll_query *query, uint32_t class);

#endif

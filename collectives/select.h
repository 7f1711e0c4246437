/* SPDX-License-Identifier: BSD-3-Clause
 *
 * select: chooses the algorithm of a collective: the first rule of the operation's table that matches. Called by coll.c, hier.c and tools.
 * Sizes are in units of the wire's latency (bytes carried in one), so the choice follows the transport.
 * Invariant: the query is equal on all participating members, so all choose alike.
 */
#ifndef WEFT_COLLECTIVES_SELECT_H
#define WEFT_COLLECTIVES_SELECT_H

#include <stddef.h>

#include "collectives/calls.h"
#include "collectives/sched.h"

enum weft_need {
    WEFT_NEED_COMMUTATIVE = 1, /* the operator commutes */
    WEFT_NEED_POWER_OF_2 = 2,       /* ranks are a power of two */
    WEFT_NEED_AREA = 4,        /* a node area (shmcoll.h), and a blocking call */
    WEFT_NEED_EVEN = 16,       /* ranks are even in number */
    WEFT_NEED_NODES = 8,       /* several nodes, at least one of them with two or more members (topology.h) */
};

enum weft_rule_unit { WEFT_UNIT_ANY, WEFT_UNIT_LATENCIES, WEFT_UNIT_SLOTS, WEFT_UNIT_SLOTS_BY_RANKS };

typedef struct weft_coll_rule {
    enum weft_coll_kind kind;
    const char *name;
    weft_sched_algorithm *algorithm; /* NULL: through the node area (shmcoll.h) */
    uint32_t ranks_min, ranks_max;
    uint32_t up_to;                 /* longest message, in `unit`, inclusive */
    enum weft_rule_unit unit;
    uint32_t needs;
    const char *reason;             /* for tools */
    uint64_t (*crossing)(uint32_t ranks); /* replaces up_to above WEFT_COLL_RULE_RANKS ranks; in 1/256 latency; NULL: up_to is used */
} weft_coll_rule;

#define WEFT_COLL_RULE_RANKS 16u /* up_to was measured up to this count; above, the model of select.c applies */

#define WEFT_COLL_RULE_LATENCY 8192u /* latency_bytes within a node, and until a team agrees on one */

typedef struct weft_coll_query {
    enum weft_coll_kind kind;
    uint32_t ranks;
    uint64_t bytes;         /* weft_coll_bytes */
    uint32_t has;           /* mask of enum weft_need */
    uint32_t latency_bytes; /* weft_team's */
    uint32_t slot_bytes;    /* of the node area; 0: none */
} weft_coll_query;

/* A query by the arguments of one member; areas and nodes are the caller's to add. */
static inline weft_coll_query weft_coll_query_of(enum weft_coll_kind kind, uint32_t ranks, uint32_t latency_bytes, const weft_coll *args,
                                                 bool is_root)
{
    weft_coll_query query = {.kind = kind, .ranks = ranks, .bytes = weft_coll_bytes(kind, args, is_root), .latency_bytes = latency_bytes};

    if (args->op && args->op->is_commutative)
        query.has |= WEFT_NEED_COMMUTATIVE;
    if (!(ranks & (ranks - 1)))
        query.has |= WEFT_NEED_POWER_OF_2;
    if (ranks % 2 == 0)
        query.has |= WEFT_NEED_EVEN;
    return query;
}

/* Never NULL: a rule of each operation always matches. Those after it are never chosen. */
const weft_coll_rule *weft_coll_select(const weft_coll_query *query);
/* All rules of an operation, for tools and tests. */
const weft_coll_rule *weft_coll_select_rules(enum weft_coll_kind kind, size_t *count);
/* Prints a rule in one line; its bytes are those for the ranks and sizes in `with`. Returns as snprintf. */
int weft_coll_select_print(const weft_coll_rule *rule, const weft_coll_query *with, char *text, size_t capacity);

#endif

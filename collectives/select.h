/* SPDX-License-Identifier: BSD-3-Clause
 *
 * select: which algorithm performs a collective: the first row that matches. Sizes are counted in the wire's latencies (what it
 * carries in one of them), so that the choice moves with the port and not with the machine this was written on. All that is asked
 * here is the same on every member, or members would choose differently.
 */
#ifndef WEFT_COLLECTIVES_SELECT_H
#define WEFT_COLLECTIVES_SELECT_H

#include <stddef.h>

#include "collectives/sched.h"

enum weft_need {
    WEFT_NEED_COMMUTATIVE = 1, /* the operator commutes */
    WEFT_NEED_POWER = 2,       /* ranks are a power of two */
    WEFT_NEED_NODE = 4,        /* a node area, and a blocking call */
    WEFT_NEED_HOSTS = 8,       /* several nodes, two members at least on one of them */
};

enum weft_choice_unit { WEFT_UNIT_ANY, WEFT_UNIT_LATENCIES, WEFT_UNIT_SLOTS, WEFT_UNIT_SLOTS_BY_RANKS };

typedef struct weft_coll_rule {
    enum weft_coll_kind kind;
    const char *name;
    weft_sched_algorithm *algorithm; /* NULL: collectives/node */
    uint32_t ranks_min, ranks_max;
    uint32_t up_to;                 /* largest message in `unit`, inclusive */
    enum weft_choice_unit unit;
    uint32_t needs;
    const char *because;
    uint64_t (*crossing)(uint32_t ranks); /* for more than WEFT_COLL_RULE_RANKS ranks takes up_to's place, in 1/256 of a latency; NULL: none does */
} weft_coll_rule;

#define WEFT_COLL_RULE_RANKS 16u /* up to so many the bounds were measured; beyond they follow from the model (select.c) */

#define WEFT_COLL_RULE_LATENCY 8192u /* latency_bytes inside of a node, and until a team agrees on its wire's */

typedef struct weft_coll_query {
    enum weft_coll_kind kind;
    uint32_t ranks;
    uint64_t bytes;         /* weft_coll_select_bytes */
    uint32_t has;           /* enum weft_need that hold */
    uint32_t latency_bytes; /* weft_team's */
    uint32_t slot_bytes;    /* of the node area; 0: none */
} weft_coll_query;

/* Never NULL: the last row of each operation always matches. */
const weft_coll_rule *weft_coll_select(const weft_coll_query *ask);
/* Bytes by which an operation is chosen: of the vector or buffer; of one rank's block where the operation is per rank. */
static inline uint64_t weft_coll_select_bytes(enum weft_coll_kind kind, const weft_coll *args, bool is_root)
{
    if (kind == WEFT_COLL_BARRIER)
        return 0;
    if ((kind == WEFT_COLL_GATHER && !is_root) || (kind == WEFT_COLL_SCATTER && is_root))
        return args->sendcount * (uint64_t)args->sendtype->size;
    return args->recvcount * (uint64_t)args->recvtype->size;
}
/* All rows of an operation, for tools and tests. */
const weft_coll_rule *weft_coll_select_rules(enum weft_coll_kind kind, size_t *count);
const char *weft_coll_name(enum weft_coll_kind kind);
/* One line of text: operation, algorithm, ranks, up to how many bytes with these numbers, because. Returns as snprintf. */
int weft_coll_select_print(const weft_coll_rule *row, const weft_coll_query *with, char *text, size_t room);

#endif

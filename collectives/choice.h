/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choice: the choices that a team has made: for each operation and what it has, the algorithm of each class of lengths (select.h), computed
 * when it is first needed. Called by coll.c, hier.c and inter.c.
 * Invariant: a choice is computed from values that are equal on all members, so a member that has forgotten it computes the same again.
 */
#ifndef WEFT_COLLECTIVES_CHOICE_H
#define WEFT_COLLECTIVES_CHOICE_H

#include "base/macros.h"
#include "collectives/forced.h"

/* Owned by the team, in team->choices by operation. */
typedef struct weft_coll_choice {
    struct weft_coll_choice *next;
    uint64_t key;                      /* needs, ranks, nodes, sharing */
    const weft_coll_rule *rules;       /* of the operation */
    uint8_t chosen[WEFT_COLL_CLASSES]; /* 1 + index in rules; 0: not computed yet */
} weft_coll_choice;

static inline uint64_t weft_choice_key(const weft_coll_query *query)
{
    return (uint64_t)query->has | (uint64_t)query->ranks << 8 | (uint64_t)query->nodes << 36 | (uint64_t)(query->sharing > 1) << 63;
}

/* Computes a choice and keeps it, if there is memory. */
const weft_coll_rule *weft_coll_choose_new(weft_team *team, const weft_coll_query *query);

/* The rule for a query whose params, latency_bytes and slot_bytes are the team's. Never NULL. */
static inline const weft_coll_rule *weft_coll_choose(weft_team *team, const weft_coll_query *query)
{
    const weft_coll_rule *rule = weft_unlikely(weft_coll_forced_count) ? weft_coll_forced(query) : NULL;
    const weft_coll_choice *choice = team->choices[query->kind];
    uint64_t key = weft_choice_key(query);
    uint32_t index;

    if (weft_unlikely(rule != NULL))
        return rule;
    while (choice && weft_unlikely(choice->key != key))
        choice = choice->next;
    index = choice ? choice->chosen[weft_coll_class_of(query->bytes)] : 0;
    return weft_likely(index) ? choice->rules + (index - 1) : weft_coll_choose_new(team, query);
}

/* Forgets all choices: the team closes, or its parameters have changed. */
void weft_coll_choices_free(weft_team *team);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choice: see choice.h.
 */
#include "collectives/choice.h"

#include <stdlib.h>

const weft_coll_rule *weft_coll_choose_new(weft_team *team, const weft_coll_query *query)
{
    uint64_t key = weft_choice_key(query);
    uint32_t class = weft_coll_class_of(query->bytes), index = weft_coll_select_class(query, class);
    weft_coll_choice *choice = team->choices[query->kind];
    size_t count;

    while (choice && choice->key != key)
        choice = choice->next;
    if (!choice && (choice = calloc(1, sizeof *choice))) {
        choice->key = key;
        choice->rules = weft_coll_select_rules(query->kind, &count);
        choice->next = team->choices[query->kind];
        team->choices[query->kind] = choice;
    }
    if (choice)
        choice->chosen[class] = (uint8_t)(index + 1);
    return weft_coll_select_rules(query->kind, &count) + index;
}

void weft_coll_choices_free(weft_team *team)
{
    for (int kind = 0; kind < WEFT_COLL_KINDS; kind++)
        while (team->choices[kind]) {
            weft_coll_choice *choice = team->choices[kind];
            team->choices[kind] = choice->next;
            free(choice);
        }
}

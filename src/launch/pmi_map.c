/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_map: see pmi_map.h. The result depends on the arguments only, so that all ranks get the same map.
 */
#include "launch/pmi_map.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "(vector,"

typedef struct rank_node {
    uint64_t node_id;
    uint32_t rank;
} rank_node;

/* Parses "(a,b,c)"; returns the text behind it. NULL: not of this form. */
static const char *block_read(const char *text, uint32_t numbers[3])
{
    for (int i = 0; i < 3; i++) {
        uint64_t number = 0;
        if (*text++ != (i ? ',' : '(') || *text < '0' || *text > '9')
            return NULL;
        for (; *text >= '0' && *text <= '9'; text++) {
            number = number * 10 + (uint64_t)(*text - '0');
            if (number > UINT32_MAX)
                return NULL;
        }
        numbers[i] = (uint32_t)number;
    }
    return *text == ')' && numbers[1] && numbers[2] ? text + 1 : NULL;
}

/* Places ranks from *next on, through all blocks once. False: not of this form. */
static bool blocks_place(const char *text, uint32_t size, uint64_t *node_ids, uint32_t *next)
{
    uint32_t block[3];

    for (;;) {
        text = block_read(text, block);
        if (!text)
            return false;
        for (uint32_t node = 0; node < block[1] && *next < size; node++)
            for (uint32_t i = 0; i < block[2] && *next < size; i++)
                node_ids[(*next)++] = (uint64_t)block[0] + node;
        if (*text == ')')
            return text[1] == '\0';
        if (*text++ != ',')
            return false;
    }
}

bool weft_pmi_map_parse(const char *text, uint32_t size, uint64_t *node_ids)
{
    uint32_t next = 0;

    if (strncmp(text, PREFIX, strlen(PREFIX)))
        return false;
    while (next < size)
        if (!blocks_place(text + strlen(PREFIX), size, node_ids, &next))
            return false;
    return true;
}

static int rank_node_compare(const void *left, const void *right)
{
    const rank_node *a = left, *b = right;

    if (a->node_id != b->node_id)
        return a->node_id < b->node_id ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

uint32_t weft_pmi_map_count(const uint64_t *node_ids, uint32_t size, uint32_t *node_of, uint32_t *local_of)
{
    rank_node *sorted = calloc(size, sizeof(*sorted));
    uint32_t nodes = 0, leader = 0, local = 0;

    if (!sorted)
        return 0;
    for (uint32_t r = 0; r < size; r++)
        sorted[r] = (rank_node){node_ids[r], r};
    qsort(sorted, size, sizeof(*sorted), rank_node_compare);
    for (uint32_t i = 0; i < size; i++) {
        if (i == 0 || sorted[i].node_id != sorted[i - 1].node_id) {
            leader = sorted[i].rank;
            local = 0;
        }
        node_of[sorted[i].rank] = leader; /* until below: the node's lowest rank */
        local_of[sorted[i].rank] = local++;
    }
    for (uint32_t r = 0; r < size; r++) /* ascending: the lowest rank of a node gets its number first */
        node_of[r] = node_of[r] == r ? nodes++ : node_of[node_of[r]];
    free(sorted);
    return nodes;
}

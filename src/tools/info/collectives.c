/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collectives: see collectives.h. Called by weft-info's main. No job is started: the network is that of weft_coll_params_default.
 */
#include "tools/info/collectives.h"

#include <math.h>
#include <stdio.h>

#include "collectives/select.h"
#include "collectives/shmcoll_area.h"
#include "mem/segment.h"

static weft_coll_query query_of(enum weft_coll_kind kind, uint32_t ranks, uint32_t nodes)
{
    const weft_coll_params *params = &weft_coll_params_default;
    uint32_t node_ranks = (ranks + nodes - 1) / nodes;
    weft_coll_query query = {.kind = kind, .ranks = ranks, .nodes = nodes, .params = params, .has = weft_coll_order_of(ranks, true),
                             .latency_bytes = nodes > 1 ? weft_coll_link_bytes(&params->net) : WEFT_COLL_RULE_LATENCY};

    if (nodes > 1 && nodes < ranks)
        query.has |= WEFT_NEED_NODES;
    if (nodes < ranks && node_ranks <= WEFT_SHMCOLL_RANKS) {
        query.has |= WEFT_NEED_AREA;
        query.slot_bytes = (uint32_t)(WEFT_SHMCOLL_BYTES / WEFT_SHMCOLL_SLOTS) / (node_ranks + 1);
    }
    return query;
}

/* The cheapest other rule at this length; NULL: none may be chosen. */
static const weft_coll_rule *second_of(const weft_coll_query *query, const weft_coll_rule *first)
{
    size_t count;
    const weft_coll_rule *rules = weft_coll_select_rules(query->kind, &count), *second = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < count; i++) {
        double cost = weft_coll_rule_cost(&rules[i], query);
        if (rules[i].algorithm != first->algorithm && cost < least) {
            least = cost;
            second = &rules[i];
        }
    }
    return second;
}

/* "from 640K"; the first length of a class is a multiple of its unit, or below 1024. */
static void length_print(char *text, size_t capacity, uint64_t first, bool is_any)
{
    static const char units[] = {0, 'K', 'M', 'G', 'T'};
    unsigned unit = 0;

    while (first && first % 1024 == 0 && unit + 1 < sizeof units) {
        first /= 1024;
        unit++;
    }
    if (is_any)
        snprintf(text, capacity, "any length");
    else
        snprintf(text, capacity, units[unit] ? "from %llu%c" : "from %llu", (unsigned long long)first, units[unit]);
}

/* A row for a range of lengths with one choice: its cost at both ends, the cheapest other one at the first, the reason. */
static void range_show(out *to, const weft_coll_query *with, uint64_t first, uint64_t last, const weft_coll_rule *rule)
{
    weft_coll_query query = *with;
    const weft_coll_rule *second;
    char length[32], note[320], high[32] = "", other[80] = "";

    query.bytes = last;
    if (last != UINT64_MAX)
        snprintf(high, sizeof high, " to %.3g us", rule->cost(&query) / 1000);
    query.bytes = first;
    second = second_of(&query, rule);
    if (second)
        snprintf(other, sizeof other, " (%s: %.3g us)", second->name, second->cost(&query) / 1000);
    length_print(length, sizeof length, first, !first && last == UINT64_MAX);
    snprintf(note, sizeof note, "%-19s %.3g us%s%s: %s", rule->name, rule->cost(&query) / 1000, high, other, rule->reason);
    out_row(to, weft_coll_name(query.kind), length, note);
}

#define LONGEST ((uint64_t)1 << 34) /* the choice for longer ones is taken to be the same */

static void operation_show(out *to, const weft_coll_query *query)
{
    size_t count;
    const weft_coll_rule *rules = weft_coll_select_rules(query->kind, &count);
    uint32_t chosen = weft_coll_select_class(query, 0), first = 0, classes = weft_coll_class_of(LONGEST);

    for (uint32_t class = 1; class < classes; class++) {
        uint32_t next = weft_coll_select_class(query, class);
        if (next == chosen)
            continue;
        range_show(to, query, weft_coll_class_start(first), weft_coll_class_start(class) - 1, &rules[chosen]);
        first = class;
        chosen = next;
    }
    range_show(to, query, weft_coll_class_start(first), UINT64_MAX, &rules[chosen]);
}

void collectives_show(out *to, uint32_t ranks, uint32_t nodes)
{
    const weft_coll_params *params = &weft_coll_params_default;
    char title[512];

    snprintf(title, sizeof title,
             "collectives of %u ranks on %u node%s, blocking: bytes (per rank where each has a block), algorithm, cost at both ends\n"
             "  (the next cheapest at the first), by messages of %u ns and %u MB/s in a node, %u ns and %u MB/s between nodes%s",
             ranks, nodes, nodes == 1 ? "" : "s", params->node.latency_ns, params->node.mbyte_per_s, params->net.latency_ns,
             params->net.mbyte_per_s,
             nodes == 1 && ranks > 1 ? "\n  (a CPU for each rank; where ranks share CPUs reductions and scans use shmcoll at any length;"
             "\n  of two ranks most use messages from 12 to 96K on where the kernel's copies take little time)" : "");
    out_section(to, "collectives", title);
    for (int kind = 0; kind < WEFT_COLL_KINDS; kind++) {
        weft_coll_query query = query_of(kind, ranks, nodes);
        operation_show(to, &query);
    }
    out_section_end(to);
}

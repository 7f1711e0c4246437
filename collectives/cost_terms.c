/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cost_terms: see cost_terms.h. Called by the files of cost.h.
 */
#include "collectives/cost_terms.h"

static double gap(uint32_t mbyte_per_s) { return 1000.0 / (mbyte_per_s ? mbyte_per_s : 1); }

weft_terms weft_terms_of(const weft_coll_query *query)
{
    const weft_coll_params *params = query->params;
    uint32_t nodes = query->nodes ? query->nodes : 1;
    weft_terms t = {.ranks = query->ranks, .sharing = query->sharing ? query->sharing : 1, .bytes = (double)query->bytes,
                    .node = &params->node, .net = &params->net, .node_gap = gap(params->node.mbyte_per_s),
                    .net_gap = gap(params->net.mbyte_per_s), .reduce = gap(params->reduce_mbyte_per_s),
                    .copy = gap(params->copy_mbyte_per_s)};

    t.node_ranks = (query->ranks + nodes - 1) / nodes;
    t.net_gap *= t.sharing;
    t.is_in_order = query->has & WEFT_NEED_ORDER;
    t.segment = 4.0 * query->latency_bytes;
    return t;
}

double weft_terms_message(const weft_terms *t, uint32_t distance, double bytes)
{
    const weft_coll_link *link = weft_terms_link(t, distance);
    return link->latency_ns + bytes * (link == t->net ? t->net_gap : t->node_gap);
}

/* Of many rounds: ranks that share a port soon take turns, so that the port works while others wait for the latency. */
static double round_of(const weft_terms *t, double crossing, double staying, double bytes)
{
    double net = crossing > 0 ? weft_terms_max(t->net->latency_ns + bytes * t->net_gap, crossing * bytes * t->net_gap) : 0;
    return staying > 0 ? weft_terms_max(net, t->node->latency_ns + bytes * t->node_gap) : net;
}

double weft_terms_round(const weft_terms *t, uint32_t distance, double bytes)
{
    double here = t->node_ranks, crossing = weft_terms_min(distance, here);

    if (t->node_ranks >= t->ranks) /* one node */
        return round_of(t, 0, 1, bytes);
    return round_of(t, crossing, here - crossing, bytes);
}

/* A block needs the mean of the hops, as the few slow ones do not delay all rounds, but the busiest rank's time is one for each round. */
static double ring(const weft_terms *t, double block, double border, double work)
{
    double near = t->node->latency_ns + block * t->node_gap, far = t->net->latency_ns + block * t->net_gap, each = t->node_ranks;

    if (t->node_ranks >= t->ranks || t->node_ranks == 1)
        return (t->ranks - 1.0) * ((t->node_ranks == 1 ? far : near) + work);
    return (t->ranks - 1.0) * (weft_terms_max(((each - 1) * near + far) / each, border) + work);
}

double weft_terms_ring(const weft_terms *t, double block)
{
    double near = t->node->overhead_ns + block * t->node_gap;
    return ring(t, block, weft_terms_max(t->net->overhead_ns + near, block * t->net_gap), 0);
}

double weft_terms_reducing_ring(const weft_terms *t, double block)
{
    double near = t->node->overhead_ns + block * t->node_gap;
    return ring(t, block, t->net->overhead_ns + weft_terms_max(near, block * t->net_gap), block * t->reduce);
}

/* So many messages of each rank in its node, and to other nodes, all at once; `crossing` ranks of a node send the latter. */
static double messages(const weft_terms *t, uint32_t near, uint32_t far, double crossing, double bytes)
{
    double each = bytes * t->net_gap, busy = near * (2.0 * t->node->overhead_ns + bytes * t->node_gap) + far * 2.0 * t->net->overhead_ns;
    double time = busy;

    if (near)
        time = weft_terms_max(time, t->node->latency_ns + bytes * t->node_gap + (near - 1) * (t->node->overhead_ns + bytes * t->node_gap));
    if (far)
        time = weft_terms_max(time, weft_terms_max(t->net->latency_ns + each + (far - 1) * weft_terms_max(t->net->overhead_ns, each),
                                                   crossing * far * each));
    return time;
}

/* Where blocks and nodes do not divide each other, some ranks have all partners in their node, and some none. */
double weft_terms_exchanges(const weft_terms *t, uint32_t distance, uint32_t others, double bytes)
{
    uint64_t block = (uint64_t)(others + 1) * distance;
    uint32_t here = t->node_ranks, near = here / distance - 1;

    if (here >= t->ranks || here % block == 0)
        return messages(t, others, 0, 0, bytes);
    if (block % here == 0 && here % distance == 0)
        return messages(t, near, others - near, here, bytes);
    return weft_terms_max(here > block ? messages(t, others, 0, 0, bytes) : 0,
                          messages(t, 0, others, weft_terms_min(here, (double)block), bytes));
}

double weft_terms_exchange(const weft_terms *t, uint32_t distance, double bytes) { return weft_terms_exchanges(t, distance, 1, bytes); }

double weft_terms_rounds(const weft_terms *t, uint32_t distance, uint32_t others, double bytes)
{
    if (others == 1)
        return weft_terms_round(t, distance, bytes);
    if (t->node_ranks >= t->ranks)
        return messages(t, others, 0, 0, bytes);
    return messages(t, 0, others, weft_terms_min((double)others * distance, t->node_ranks) / others, bytes);
}

double weft_terms_doubled_round(const weft_terms *t, uint32_t distance, double bytes)
{
    double near = t->node->latency_ns + bytes * t->node_gap;

    if (distance >= t->node_ranks && t->node_ranks < t->ranks)
        return weft_terms_round(t, distance, bytes);
    return t->node_ranks < t->ranks ? weft_terms_max(near, distance * bytes * t->net_gap) : near;
}

double weft_terms_border(const weft_terms *t)
{
    if (t->node_ranks < 2 || t->node_ranks >= t->ranks)
        return 0;
    return weft_terms_max(0, (double)t->net->latency_ns - t->node->latency_ns);
}

double weft_terms_turns(const weft_terms *t, double bytes)
{
    if (t->node_ranks < 2 || t->node_ranks >= t->ranks)
        return 0;
    return weft_terms_min(t->net->latency_ns, (t->node_ranks - 1.0) * bytes * t->net_gap);
}

/* Of the levels of a tree the last child's path is the longest. */
double weft_terms_tree(const weft_terms *t, uint32_t k, double bytes, double work)
{
    double time = 0, far_each = bytes * t->net_gap, near_each = bytes * t->node_gap;

    for (uint64_t distance = 1; distance < t->ranks; distance *= k) {
        uint64_t others = (t->ranks - 1) / distance, here = (t->node_ranks < t->ranks ? t->node_ranks - 1 : t->ranks - 1) / distance;
        double children = others < k - 1 ? others : k - 1, near = weft_terms_min(children, (double)here), far = children - near;
        if (far > 0)
            time += t->net->latency_ns + far_each + (far - 1) * weft_terms_max(t->net->overhead_ns, far_each) + near * t->node->overhead_ns;
        else /* copies of different receivers go on at once */
            time += t->node->latency_ns + near_each + (near - 1) * (t->node->overhead_ns + (work > 0 ? near_each : 0));
        time += children * bytes * work;
    }
    return time;
}

double weft_terms_all_to_all(const weft_terms *t, double bytes)
{
    double others = t->ranks - 1.0, near = weft_terms_min(t->node_ranks, t->ranks) - 1.0, far = others - near;
    double busy = near * (2.0 * t->node->overhead_ns + bytes * t->node_gap) + far * 2.0 * t->net->overhead_ns;
    const weft_coll_link *link = far > 0 ? t->net : t->node;

    if (others < 1)
        return 0;
    return link->latency_ns + weft_terms_max(busy - 2.0 * link->overhead_ns, far * t->node_ranks * bytes * t->net_gap);
}

double weft_terms_all_to_one(const weft_terms *t, double bytes)
{
    double others = t->ranks - 1.0, near = weft_terms_min(t->node_ranks, t->ranks) - 1.0, far = others - near;
    double busy = near * (t->node->overhead_ns + bytes * t->node_gap) + far * t->net->overhead_ns;
    const weft_coll_link *link = far > 0 ? t->net : t->node;

    if (others < 1)
        return 0;
    return link->latency_ns + weft_terms_max(busy - link->overhead_ns, far * bytes * t->net_gap);
}

/* Copies of different receivers go on at once. */
double weft_terms_one_to_all(const weft_terms *t, double bytes)
{
    double others = t->ranks - 1.0, near = weft_terms_min(t->node_ranks, t->ranks) - 1.0, far = others - near;
    double busy = near * t->node->overhead_ns + far * t->net->overhead_ns;

    if (others < 1)
        return 0;
    if (far < 1)
        return t->node->latency_ns - t->node->overhead_ns + busy + bytes * t->node_gap;
    return t->net->latency_ns - t->net->overhead_ns + weft_terms_max(busy + bytes * t->net_gap, far * bytes * t->net_gap);
}

double weft_terms_pipeline(const weft_terms *t, double bytes, double work)
{
    double first = weft_terms_min(bytes, t->segment), segments = bytes > t->segment ? bytes / t->segment : 1;
    double near_hop = t->node->latency_ns + first * (t->node_gap + work), far_hop = t->net->latency_ns + first * (t->net_gap + work);
    double hops = t->ranks - 1.0, far = t->node_ranks < t->ranks ? (double)((t->ranks - 1) / t->node_ranks) : 0;
    double near_pace = far < hops ? 2.0 * t->node->overhead_ns + first * (t->node_gap + work) : 0;
    double far_pace = far > 0 ? weft_terms_max(2.0 * t->net->overhead_ns + first * work, first * t->net_gap) : 0;

    return (hops - far) * near_hop + far * far_hop + (segments - 1) * weft_terms_max(near_pace, far_pace);
}

double weft_terms_binary(const weft_terms *t, uint32_t levels, double bytes, double work, bool is_up)
{
    double first = weft_terms_min(bytes, t->segment), segments = bytes > t->segment ? bytes / t->segment : 1;
    uint32_t near = weft_terms_log2(t->node_ranks < t->ranks ? t->node_ranks + 1 : t->ranks + 1) - 1, far;
    double far_each = first * t->net_gap, near_each = first * t->node_gap, seconds;
    double far_hop = t->net->latency_ns + far_each + first * work, near_hop = t->node->latency_ns + near_each + first * work;
    double far_pace, edges = 2; /* that share a node's port */
    double near_pace = 3.0 * t->node->overhead_ns + near_each * (is_up ? 2 : 1) + 2 * first * work;

    near = near < levels ? near : levels;
    far = levels - near;
    if (t->node_ranks > 1 && (t->ranks & (t->ranks - 1) || t->node_ranks & (t->node_ranks - 1))) /* subtrees lie across nodes */
        edges = levels;
    else if (2 * t->node_ranks == t->ranks)
        edges = 1;
    far_pace = weft_terms_max(3.0 * t->net->overhead_ns + 2 * first * work, edges * far_each);
    /* the second child of each level but the lowest, which few have; of two far children one is on the node of the next level */
    seconds = (levels - 1.0) * first * work + (far > 1 ? far - 1.0 : far) * weft_terms_max(t->net->overhead_ns, far_each) +
              (near ? near - 1.0 : 0) * (t->node->overhead_ns + (is_up ? near_each : 0));
    return near * near_hop + far * far_hop + seconds + (segments - 1) * weft_terms_max(near ? near_pace : 0, far ? far_pace : 0);
}

/* Groups are split into parts that differ by one rank at most; of a group of odd size one rank has two partners. That is one and the same
 * only in the largest of such groups. */

double weft_terms_halves(const weft_terms *t, double block)
{
    double time = 0;

    for (uint32_t n = t->ranks; n > 1; n /= 2)
        time += weft_terms_message(t, n - n / 2, (n - n / 2) * block);
    return time;
}

double weft_terms_halving(const weft_terms *t, double block)
{
    double part = t->ranks * block, time = weft_terms_turns(t, part / 2);
    bool is_odd = false;

    for (uint32_t n = t->ranks; n > 1; n -= n / 2) {
        part /= 2;
        time += weft_terms_exchange(t, n - n / 2, part) + part * t->reduce;
        if (n % 2 && !is_odd)
            time += part * (t->reduce + (t->node_ranks < t->ranks ? t->net_gap : t->node_gap));
        is_odd = is_odd || n % 2;
    }
    return time;
}

double weft_terms_multiplying(const weft_terms *t, double block, uint32_t k)
{
    double half = t->ranks * block, time = weft_terms_turns(t, half / 2);
    bool is_odd = false;

    for (uint32_t n = t->ranks; n > 1; n = (n + k - 1) / k) {
        uint32_t parts = k < n ? k : n, own = (n + parts - 1) / parts;
        double part = k == 2 ? half /= 2 : own * block;
        time += weft_terms_exchanges(t, own, parts - 1, part);
        if (n % parts && !is_odd)
            time += part * (t->node_ranks < t->ranks ? t->net_gap : t->node_gap);
        is_odd = is_odd || n % parts;
    }
    return time;
}

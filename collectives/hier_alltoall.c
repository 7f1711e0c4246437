/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hier_alltoall: alltoall over several nodes with one message for each pair of nodes, or for each part of a pair. Called through select.c.
 * The members of a node are cut into parts, as many on each node, so that the messages to all other nodes occupy every member. A message
 * has the blocks of all members of a node for the members of one part of another. A member carries some messages: it collects their
 * blocks on its node, exchanges them with the member that carries them on the other node, and there they are dealt out.
 * Each phase needs memory for about as many blocks as a rank has: more, if a node is larger than others.
 */
#include "collectives/algorithms.h"
#include "collectives/split.h"
#include "collectives/topology.h"

typedef struct trade {
    const weft_topology *topology;
    const uint32_t *firsts, *members; /* by node */
    uint32_t parts;                   /* of each node */
    uint64_t block;                   /* bytes */
    char *blocks;                     /* one for each member, by node: those to send, then those received */
    char *collected, *received;       /* of the messages that this member carries */
} trade;

static uint32_t members_on(const trade *t, uint32_t node) { return t->firsts[node + 1] - t->firsts[node]; }

static weft_members part_of(const trade *t, uint32_t node, uint32_t part)
{
    return weft_split_part((weft_members){0, members_on(t, node)}, t->parts, part);
}

static uint32_t messages(const trade *t) { return (t->topology->count - 1) * t->parts; }

/* Message i of a node is for, or from, the node so far after it. */
static uint32_t other_node(const trade *t, uint32_t i) { return (t->topology->node + 1 + i / t->parts) % t->topology->count; }

/* The member on `node` that carries part `part` of the messages between it and `other`. */
static uint32_t carrier(const trade *t, uint32_t node, uint32_t other, uint32_t part)
{
    uint64_t distance = (other + t->topology->count - node) % t->topology->count;

    return t->members[t->firsts[node] + ((distance - 1) * t->parts + part) % members_on(t, node)];
}

static bool carries(const weft_sched *sched, const trade *t, uint32_t i)
{
    return carrier(t, t->topology->node, other_node(t, i), i % t->parts) == sched->rank;
}

/* Blocks of outgoing, or incoming, message i. */
static uint64_t blocks_out(const trade *t, uint32_t i)
{
    return (uint64_t)members_on(t, t->topology->node) * part_of(t, other_node(t, i), i % t->parts).count;
}

static uint64_t blocks_in(const trade *t, uint32_t i)
{
    return (uint64_t)members_on(t, other_node(t, i)) * part_of(t, t->topology->node, i % t->parts).count;
}

/* Blocks from and to members of this node go directly. */
static void within_node(weft_sched *sched, const weft_coll *args, const trade *t)
{
    uint32_t first = t->firsts[t->topology->node], n = t->topology->node_rank_count;
    weft_blocks in = weft_blocks_received(args);

    for (uint32_t i = 1; i < n; i++) {
        uint32_t to = (t->topology->index + i) % n, from = (t->topology->index + n - i) % n;
        weft_sched_send(sched, t->members[first + to], t->blocks + (first + to) * t->block, t->block, weft_sched_bytes());
        weft_blocks_recv(sched, t->members[first + from], &in, t->members[first + from]);
    }
    weft_blocks_unpack(sched, &in, sched->rank, 1, t->blocks + (first + t->topology->index) * t->block);
}

/* To the carriers: message i is collected by source, then by destination. */
static void collect(weft_sched *sched, const trade *t)
{
    const weft_type *byte = weft_sched_bytes();
    uint32_t n = t->topology->node_rank_count;
    char *at = t->collected;

    for (uint32_t i = 0; i < messages(t); i++) {
        uint32_t node = other_node(t, i), to = carrier(t, t->topology->node, node, i % t->parts);
        weft_members part = part_of(t, node, i % t->parts);
        char *own = t->blocks + (t->firsts[node] + part.first) * t->block;
        uint64_t bytes = part.count * t->block;
        if (to != sched->rank && bytes)
            weft_sched_send(sched, to, own, bytes, byte);
        for (uint32_t k = 0; k < n && to == sched->rank && bytes; k++, at += bytes) {
            if (k == t->topology->index)
                weft_sched_copy(sched, at, bytes, byte, own, bytes, byte);
            else
                weft_sched_recv(sched, t->topology->node_ranks[k], at, bytes, byte);
        }
    }
    weft_sched_fence(sched);
}

/* Between the carriers on two nodes. */
static void between_nodes(weft_sched *sched, const trade *t)
{
    const weft_type *byte = weft_sched_bytes();
    char *out = t->collected, *in = t->received;

    for (uint32_t i = 0; i < messages(t); i++) {
        uint32_t node = other_node(t, i), other;
        if (!carries(sched, t, i))
            continue;
        other = carrier(t, node, t->topology->node, i % t->parts);
        if (blocks_out(t, i))
            weft_sched_send(sched, other, out, blocks_out(t, i) * t->block, byte);
        if (blocks_in(t, i))
            weft_sched_recv(sched, other, in, blocks_in(t, i) * t->block, byte);
        out += blocks_out(t, i) * t->block;
        in += blocks_in(t, i) * t->block;
    }
    weft_sched_fence(sched);
}

/* From the carriers, to each member of a part: its blocks by source, which are collected once more for it. */
static void deal_out(weft_sched *sched, const trade *t)
{
    const weft_type *byte = weft_sched_bytes();
    const weft_topology *topology = t->topology;
    char *in = t->received, *out = t->collected;

    for (uint32_t i = 0; i < messages(t); i++) {
        uint32_t node = other_node(t, i), sources = members_on(t, node), from = carrier(t, topology->node, node, i % t->parts);
        weft_members part = part_of(t, topology->node, i % t->parts);
        uint64_t bytes = sources * t->block;
        char *own = t->blocks + t->firsts[node] * t->block;
        if (from != sched->rank && topology->index - part.first < part.count)
            weft_sched_recv(sched, from, own, bytes, byte);
        for (uint32_t d = 0; d < part.count && from == sched->rank; d++) {
            bool is_own = part.first + d == topology->index;
            for (uint32_t s = 0; s < sources; s++)
                weft_sched_copy(sched, (is_own ? own : out) + s * t->block, t->block, byte,
                                in + (s * (uint64_t)part.count + d) * t->block, t->block, byte);
            if (is_own)
                continue;
            weft_sched_send(sched, topology->node_ranks[part.first + d], out, bytes, byte);
            out += bytes;
        }
        if (from == sched->rank)
            in += bytes * part.count;
    }
    weft_sched_fence(sched);
}

static bool trade_open(weft_sched *sched, const weft_coll *args, trade *t)
{
    const weft_topology *topology = t->topology = sched->team->topology;
    const weft_type *byte = weft_sched_bytes();
    uint32_t *firsts = weft_sched_temp(sched, (topology->count + (uint64_t)1) * sizeof *firsts, byte);
    uint32_t *members = weft_sched_temp(sched, sched->size * sizeof *members, byte), largest = 0;
    uint64_t out = 0, in = 0;

    if (sched->rc)
        return false;
    weft_topology_members(topology, firsts, members);
    t->firsts = firsts;
    t->members = members;
    t->block = args->recvcount * (uint64_t)args->recvtype->size;
    for (uint32_t i = 0; i < topology->count; i++)
        largest = members_on(t, i) > largest ? members_on(t, i) : largest;
    t->parts = (largest + topology->count - 2) / (topology->count - 1);
    for (uint32_t i = 0; i < messages(t); i++) {
        out += carries(sched, t, i) ? blocks_out(t, i) : 0;
        in += carries(sched, t, i) ? blocks_in(t, i) : 0;
    }
    t->blocks = weft_sched_temp(sched, sched->size * t->block, byte);
    t->collected = weft_sched_temp(sched, (out > in ? out : in) * t->block, byte);
    t->received = weft_sched_temp(sched, in * t->block, byte);
    return !sched->rc && t->block;
}

void weft_alltoall_hier(weft_sched *sched, const weft_coll *args)
{
    weft_blocks in = weft_blocks_received(args), out = args->in_place ? in : weft_blocks_sent(args);
    trade t;

    if (!trade_open(sched, args, &t))
        return;
    for (uint32_t i = 0; i < sched->size; i++)
        weft_blocks_pack(sched, &out, t.members[i], 1, t.blocks + i * t.block);
    within_node(sched, args, &t);
    collect(sched, &t);
    between_nodes(sched, &t);
    deal_out(sched, &t);
    for (uint32_t i = 0; i < sched->size; i++)
        if (i < t.firsts[t.topology->node] || i >= t.firsts[t.topology->node + 1])
            weft_blocks_unpack(sched, &in, t.members[i], 1, t.blocks + i * t.block);
}

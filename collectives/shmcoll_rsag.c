/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_rsag: reduce-scatter and allgather through a node area, for hier.c, which exchanges the blocks with other nodes in between.
 * Dense types only (weft_shmcoll_can_rsag).
 * In reduce_scatter a slot holds one fragment for each owner; in allgather, one fragment of its owner's block. Round i is one operation of
 * the area, read after round i + LAG is written: members on one CPU need not switch every round.
 */
#include "collectives/shmcoll.h"

#include <string.h>

#include "base/status.h"
#include "collectives/shmcoll_csum.h"
#include "collectives/shmcoll_wait.h"

typedef struct cut {
    weft_shmcoll *node;
    const weft_coll *args;
    uint32_t parts;
    uint64_t size, max, rounds; /* bytes of an element; elements of a fragment; number of rounds */
    uint64_t began;             /* operation of round 0 */
} cut;

typedef struct piece {
    uint64_t first, count; /* elements of the vector */
} piece;

static uint64_t piece_room(const weft_shmcoll *node, uint32_t parts) { return node->slot_bytes / parts / WEFT_LINE * WEFT_LINE; }

bool weft_shmcoll_can_rsag(const weft_shmcoll *node, const weft_type *type, uint32_t parts)
{
    return type->is_dense && type->size > 0 && (uint64_t)type->size <= piece_room(node, parts);
}

static cut cut_up(weft_shmcoll *node, const weft_coll *args, uint32_t parts, uint64_t room)
{
    uint64_t size = (uint64_t)args->recvtype->size, max = room / size, longest = weft_sched_block_start(args->recvcount, parts, 1);

    node->kind = WEFT_COLL_ALLREDUCE;
    node->root = args->root;
    node->damage = 0;
    return (cut){.node = node, .args = args, .parts = parts, .size = size, .max = max, .rounds = (longest + max - 1) / max};
}

static piece piece_of(const cut *c, uint32_t owner, uint64_t round)
{
    uint64_t first = weft_sched_block_start(c->args->recvcount, c->parts, owner) + round * c->max;
    uint64_t end = weft_sched_block_start(c->args->recvcount, c->parts, owner + 1);

    return (piece){first, first >= end ? 0 : end - first < c->max ? end - first : c->max};
}

static char *slot_of(const cut *c, uint32_t member, uint64_t s) { return weft_shmcoll_place(c->node, member, s, c->node->slot_bytes); }

static void put(const cut *c, uint64_t s, uint32_t index, const void *buf, piece p, void *out)
{
    uint64_t at = p.first * c->size, bytes = p.count * c->size;

    weft_shmcoll_offer(c->node, bytes);
    weft_nt_copy_body(&c->node->store, out, (const char *)buf + at, (uint32_t)bytes);
    if (weft_unlikely(c->node->sums != NULL))
        weft_shmcoll_csum_write(c->node, &(weft_shmcoll_piece){s, c->node->rank, index, c->args->recvtype, buf, c->args->recvcount, at,
                                                               bytes});
}

static int give_all(cut *c, uint64_t round)
{
    weft_shmcoll *node = c->node;
    const void *own = c->args->in_place ? c->args->recvbuf : c->args->sendbuf;
    uint64_t s = weft_shmcoll_begin(node, true);

    if (!s)
        return node->rc;
    if (!round)
        c->began = s;
    for (uint32_t j = 0; j < c->parts; j++)
        if (j != node->rank)
            put(c, s, j, own, piece_of(c, j, round), slot_of(c, node->rank, s) + j * piece_room(node, c->parts));
    weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
    return WEFT_OK;
}

static int fold_own(const cut *c, uint64_t round)
{
    weft_shmcoll *node = c->node;
    const weft_type *type = c->args->recvtype;
    piece p = piece_of(c, node->rank, round);
    uint64_t s = c->began + round, at = p.first * c->size, bytes = p.count * c->size;
    char *out = (char *)c->args->recvbuf + at;

    if (weft_shmcoll_await_all(node, s))
        return node->rc;
    if (!p.count)
        return WEFT_OK;
    if (!c->args->in_place)
        memcpy(out, (const char *)c->args->sendbuf + at, bytes);
    for (uint32_t i = node->ranks; i-- > 0;) {
        const char *part = slot_of(c, i, s) + node->rank * piece_room(node, c->parts);
        if (i == node->rank)
            continue;
        if (weft_unlikely(node->sums != NULL))
            weft_shmcoll_check(node, &(weft_shmcoll_piece){s, i, node->rank, weft_sched_bytes(), part, bytes, 0, bytes}, at);
        weft_coll_apply_op(node->worker, c->args->op, type, part, out, p.count);
    }
    return WEFT_OK;
}

int weft_shmcoll_reduce_scatter(weft_shmcoll *node, const weft_coll *args, uint32_t parts)
{
    cut c = cut_up(node, args, parts, piece_room(node, parts));
    int rc = WEFT_OK;

    for (uint64_t i = 0; i < c.rounds + WEFT_SHMCOLL_LAG && !rc; i++) {
        if (i < c.rounds)
            rc = give_all(&c, i);
        if (!rc && i >= WEFT_SHMCOLL_LAG && i - WEFT_SHMCOLL_LAG < c.rounds && node->rank < parts)
            rc = fold_own(&c, i - WEFT_SHMCOLL_LAG);
    }
    return rc ? rc : node->damage;
}

static int give_own(cut *c, uint64_t round)
{
    weft_shmcoll *node = c->node;
    bool is_owner = node->rank < c->parts;
    uint64_t s = weft_shmcoll_begin(node, true); /* members without a block, too: every chain is read (shmcoll_check.h) */

    if (!s)
        return node->rc;
    if (!round)
        c->began = s;
    if (is_owner)
        put(c, s, 0, c->args->recvbuf, piece_of(c, node->rank, round), slot_of(c, node->rank, s));
    weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
    return WEFT_OK;
}

static int take_others(const cut *c, uint64_t round)
{
    weft_shmcoll *node = c->node;
    const weft_coll *args = c->args;
    uint64_t s = c->began + round;

    if (weft_shmcoll_await_all(node, s))
        return node->rc;
    for (uint32_t i = 0; i < c->parts; i++) {
        piece p = piece_of(c, i, round);
        uint64_t at = p.first * c->size, bytes = p.count * c->size;
        if (i == node->rank || !bytes)
            continue;
        weft_shmcoll_offer(node, bytes);
        memcpy((char *)args->recvbuf + at, slot_of(c, i, s), bytes);
        if (weft_unlikely(node->sums != NULL))
            weft_shmcoll_check(node, &(weft_shmcoll_piece){s, i, 0, args->recvtype, args->recvbuf, args->recvcount, at, bytes}, at);
    }
    return WEFT_OK;
}

int weft_shmcoll_allgather(weft_shmcoll *node, const weft_coll *args, uint32_t parts)
{
    cut c = cut_up(node, args, parts, node->slot_bytes);
    int rc = WEFT_OK;

    for (uint64_t i = 0; i < c.rounds + WEFT_SHMCOLL_LAG && !rc; i++) {
        if (i < c.rounds)
            rc = give_own(&c, i);
        if (!rc && i >= WEFT_SHMCOLL_LAG && i - WEFT_SHMCOLL_LAG < c.rounds)
            rc = take_others(&c, i - WEFT_SHMCOLL_LAG);
    }
    return rc ? rc : node->damage;
}

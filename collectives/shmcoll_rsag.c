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

typedef struct partition {
    weft_shmcoll *area;
    const weft_coll *args;
    uint32_t parts;
    uint64_t size, max, rounds; /* bytes of an element; elements of a fragment; number of rounds */
    uint64_t began;             /* operation of round 0 */
} partition;

typedef struct fragment {
    uint64_t first, count; /* elements of the vector */
} fragment;

static uint64_t fragment_capacity(const weft_shmcoll *area, uint32_t parts) { return area->slot_bytes / parts / WEFT_LINE * WEFT_LINE; }

bool weft_shmcoll_can_rsag(const weft_shmcoll *area, const weft_type *type, uint32_t parts)
{
    return type->is_dense && type->size > 0 && (uint64_t)type->size <= fragment_capacity(area, parts);
}

static partition partition_make(weft_shmcoll *area, const weft_coll *args, uint32_t parts, uint64_t capacity)
{
    uint64_t size = (uint64_t)args->recvtype->size, max = capacity / size, longest = weft_sched_block_start(args->recvcount, parts, 1);

    area->kind = WEFT_COLL_ALLREDUCE;
    area->root = args->root;
    area->damage = 0;
    return (partition){.area = area, .args = args, .parts = parts, .size = size, .max = max, .rounds = (longest + max - 1) / max};
}

static fragment fragment_of(const partition *c, uint32_t owner, uint64_t round)
{
    uint64_t first = weft_sched_block_start(c->args->recvcount, c->parts, owner) + round * c->max;
    uint64_t end = weft_sched_block_start(c->args->recvcount, c->parts, owner + 1);

    return (fragment){first, first >= end ? 0 : end - first < c->max ? end - first : c->max};
}

static char *slot_of(const partition *c, uint32_t member, uint64_t s)
{
    return weft_shmcoll_place(c->area, member, s, c->area->slot_bytes);
}

static void write_fragment(const partition *c, uint64_t s, uint32_t index, const void *buf, fragment p, void *out)
{
    uint64_t at = p.first * c->size, bytes = p.count * c->size;

    weft_shmcoll_offer(c->area, bytes);
    weft_nt_copy_body(&c->area->store, out, (const char *)buf + at, (uint32_t)bytes);
    if (weft_unlikely(c->area->csums != NULL))
        weft_shmcoll_csum_write(c->area, &(weft_shmcoll_fragment){s, c->area->rank, index, c->args->recvtype, buf, c->args->recvcount, at,
                                                                  bytes});
}

static int write_all(partition *c, uint64_t round)
{
    weft_shmcoll *area = c->area;
    const void *own = c->args->in_place ? c->args->recvbuf : c->args->sendbuf;
    uint64_t s = weft_shmcoll_begin(area, true);

    if (!s)
        return area->rc;
    if (!round)
        c->began = s;
    for (uint32_t j = 0; j < c->parts; j++)
        if (j != area->rank)
            write_fragment(c, s, j, own, fragment_of(c, j, round), slot_of(c, area->rank, s) + j * fragment_capacity(area, c->parts));
    weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
    return WEFT_OK;
}

static int reduce_own(const partition *c, uint64_t round)
{
    weft_shmcoll *area = c->area;
    const weft_type *type = c->args->recvtype;
    fragment p = fragment_of(c, area->rank, round);
    uint64_t s = c->began + round, at = p.first * c->size, bytes = p.count * c->size;
    char *out = (char *)c->args->recvbuf + at;

    if (weft_shmcoll_await_all(area, s))
        return area->rc;
    if (!p.count)
        return WEFT_OK;
    if (!c->args->in_place)
        memcpy(out, (const char *)c->args->sendbuf + at, bytes);
    for (uint32_t i = area->ranks; i-- > 0;) {
        const char *part = slot_of(c, i, s) + area->rank * fragment_capacity(area, c->parts);
        if (i == area->rank)
            continue;
        if (weft_unlikely(area->csums != NULL))
            weft_shmcoll_check(area, &(weft_shmcoll_fragment){s, i, area->rank, weft_sched_bytes(), part, bytes, 0, bytes}, at);
        weft_coll_apply_op(area->worker, c->args->op, type, part, out, p.count);
    }
    return WEFT_OK;
}

int weft_shmcoll_reduce_scatter(weft_shmcoll *area, const weft_coll *args, uint32_t parts)
{
    partition c = partition_make(area, args, parts, fragment_capacity(area, parts));
    int rc = WEFT_OK;

    for (uint64_t i = 0; i < c.rounds + WEFT_SHMCOLL_LAG && !rc; i++) {
        if (i < c.rounds)
            rc = write_all(&c, i);
        if (!rc && i >= WEFT_SHMCOLL_LAG && i - WEFT_SHMCOLL_LAG < c.rounds && area->rank < parts)
            rc = reduce_own(&c, i - WEFT_SHMCOLL_LAG);
    }
    return rc ? rc : area->damage;
}

static int write_own(partition *c, uint64_t round)
{
    weft_shmcoll *area = c->area;
    bool is_owner = area->rank < c->parts;
    uint64_t s = weft_shmcoll_begin(area, true); /* members without a block, too: every call_hash is read (shmcoll_check.h) */

    if (!s)
        return area->rc;
    if (!round)
        c->began = s;
    if (is_owner)
        write_fragment(c, s, 0, c->args->recvbuf, fragment_of(c, area->rank, round), slot_of(c, area->rank, s));
    weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
    return WEFT_OK;
}

static int read_others(const partition *c, uint64_t round)
{
    weft_shmcoll *area = c->area;
    const weft_coll *args = c->args;
    uint64_t s = c->began + round;

    if (weft_shmcoll_await_all(area, s))
        return area->rc;
    for (uint32_t i = 0; i < c->parts; i++) {
        fragment p = fragment_of(c, i, round);
        uint64_t at = p.first * c->size, bytes = p.count * c->size;
        if (i == area->rank || !bytes)
            continue;
        weft_shmcoll_offer(area, bytes);
        memcpy((char *)args->recvbuf + at, slot_of(c, i, s), bytes);
        if (weft_unlikely(area->csums != NULL))
            weft_shmcoll_check(area, &(weft_shmcoll_fragment){s, i, 0, args->recvtype, args->recvbuf, args->recvcount, at, bytes}, at);
    }
    return WEFT_OK;
}

int weft_shmcoll_allgather(weft_shmcoll *area, const weft_coll *args, uint32_t parts)
{
    partition c = partition_make(area, args, parts, area->slot_bytes);
    int rc = WEFT_OK;

    for (uint64_t i = 0; i < c.rounds + WEFT_SHMCOLL_LAG && !rc; i++) {
        if (i < c.rounds)
            rc = write_own(&c, i);
        if (!rc && i >= WEFT_SHMCOLL_LAG && i - WEFT_SHMCOLL_LAG < c.rounds)
            rc = read_others(&c, i - WEFT_SHMCOLL_LAG);
    }
    return rc ? rc : area->damage;
}

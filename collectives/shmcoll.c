/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll: the collectives through a node area (shmcoll.h). Called by coll.c and hier.c.
 * Each is a loop over chunks that fit a slot, with one or two operations of the area each: write, post, wait, read. In rooted ones a writer
 * may be up to DEPTH - 1 chunks ahead, so that both sides copy at the same time.
 * Invariant: every member reduces from the last member down (in op inout), so results are bitwise equal and in rank order.
 */
#include "collectives/shmcoll.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/shmcoll_check.h"
#include "collectives/shmcoll_csum.h"
#include "collectives/shmcoll_wait.h"
#include "type/pack.h"

#define FLAT_BYTES 2048 /* up to so many, each member reduces everything: one wait instead of two */

static inline void put(weft_shmcoll *node, const weft_type *type, const void *buf, uint64_t count, uint64_t offset, uint64_t bytes,
                       void *out)
{
    if (weft_unlikely(!type->is_dense)) {
        weft_shmcoll_offer(node, bytes);
        weft_pack(type, buf, count, offset, bytes, out);
    } else if (bytes == 8) {
        memcpy(out, (const char *)buf + offset, 8);
    } else {
        weft_shmcoll_offer(node, bytes);
        weft_nt_copy_body(&node->store, out, (const char *)buf + offset, (uint32_t)bytes);
    }
}

static inline void take(weft_shmcoll *node, const weft_type *type, void *buf, uint64_t count, uint64_t offset, uint64_t bytes,
                        const void *in)
{
    if (weft_unlikely(!type->is_dense)) {
        weft_shmcoll_offer(node, bytes);
        weft_unpack(type, buf, count, offset, bytes, in);
    } else if (bytes == 8) {
        memcpy((char *)buf + offset, in, 8);
    } else {
        weft_shmcoll_offer(node, bytes);
        memcpy((char *)buf + offset, in, bytes);
    }
}

/* The same, with the fragment's checksum. */
static inline void put_piece(weft_shmcoll *node, uint64_t s, uint32_t index, const weft_type *type, const void *buf, uint64_t count,
                             uint64_t offset, uint64_t bytes, void *out)
{
    put(node, type, buf, count, offset, bytes, out);
    if (weft_unlikely(node->sums != NULL))
        weft_shmcoll_csum_write(node, &(weft_shmcoll_piece){s, node->rank, index, type, buf, count, offset, bytes});
}

static inline void take_piece(weft_shmcoll *node, uint32_t member, uint64_t s, uint32_t index, const weft_type *type, void *buf,
                              uint64_t count, uint64_t offset, uint64_t bytes, const void *in)
{
    take(node, type, buf, count, offset, bytes, in);
    if (weft_unlikely(node->sums != NULL))
        weft_shmcoll_check(node, &(weft_shmcoll_piece){s, member, index, type, buf, count, offset, bytes}, offset);
}

static inline uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A writer of s has posted: the posts that it had to see before (weft_shmcoll_begin) are made. */
static void saw_writer(weft_shmcoll *node, uint64_t s)
{
    uint64_t seen = s + 1 + WEFT_SHMCOLL_LAG;

    if (seen > node->known + WEFT_SHMCOLL_DEPTH)
        node->known = seen - WEFT_SHMCOLL_DEPTH;
}

static int node_barrier(weft_shmcoll *node)
{
    uint64_t s = weft_shmcoll_begin(node, true); /* a writer: the others read its chain */

    if (!s)
        return node->rc;
    weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
    return weft_shmcoll_await_all(node, s);
}

static int node_bcast(weft_shmcoll *node, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t all = args->recvcount * (uint64_t)type->size;
    bool is_root = node->rank == (uint32_t)args->root;

    for (uint64_t at = 0; at < all; at += node->slot_bytes) {
        uint64_t here = min(all - at, node->slot_bytes), s = weft_shmcoll_begin(node, is_root);
        char *place = weft_shmcoll_place(node, (uint32_t)args->root, s, here);
        if (!s)
            return node->rc;
        if (is_root) {
            put_piece(node, s, 0, type, args->recvbuf, args->recvcount, at, here, place);
            weft_shmcoll_post(node, s, WEFT_SHMCOLL_ALL);
            continue;
        }
        weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await(node, (uint32_t)args->root, s))
            return node->rc;
        saw_writer(node, s);
        take_piece(node, (uint32_t)args->root, s, 0, type, args->recvbuf, args->recvcount, at, here, place);
    }
    return WEFT_OK;
}

/* ---- reductions ---- */

typedef struct folding {
    weft_shmcoll *node;
    const weft_coll *args;
    const char *own;  /* this member's vector; NULL: it is in its slot */
    void *room;       /* one chunk, unpacked; address of element 0; NULL: the type is dense */
    void *room_block; /* allocation of room */
} folding;

static int folding_open(folding *f, weft_shmcoll *node, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t count = min(args->recvcount, node->slot_bytes / (uint64_t)type->size);
    int64_t step = type->extent < 0 ? -type->extent : type->extent;

    *f = (folding){.node = node, .args = args, .own = args->in_place ? NULL : args->sendbuf};
    if (type->is_dense)
        return WEFT_OK;
    f->room_block = malloc((size_t)(type->true_extent + (int64_t)(count - 1) * step));
    if (!f->room_block)
        return weft_fail(WEFT_E_NOMEM, "no memory to fold %llu elements", (unsigned long long)count);
    f->room = (char *)f->room_block - type->true_lb + (type->extent < 0 ? (int64_t)(count - 1) * step : 0);
    return WEFT_OK;
}

/* The last member's part begins the reduction: copied to out, and checked there before other parts are added. */
static void take_first(weft_shmcoll *node, uint64_t s, uint32_t index, const weft_type *type, void *out, uint64_t count,
                       const void *part, uint64_t at)
{
    uint64_t bytes = count * (uint64_t)type->size;

    take(node, type, out, count, 0, bytes, part);
    if (weft_unlikely(node->sums != NULL))
        weft_shmcoll_check(node, &(weft_shmcoll_piece){s, node->ranks - 1, index, type, out, count, 0, bytes}, at);
}

/* Checks a part that is reduced from its slot. at: its offset in the vector, bytes. */
static void check_place(weft_shmcoll *node, uint32_t member, uint64_t s, uint32_t index, const char *part, uint64_t bytes,
                        uint64_t at)
{
    weft_shmcoll_check(node, &(weft_shmcoll_piece){s, member, index, weft_sched_bytes(), part, bytes, 0, bytes}, at);
}

/* Reduces elements [first, first + count) of all members' vectors into out, the address of element `first`. They begin at element `skip` of
 * the chunk of `chunk` bytes that each member wrote in s, and are fragment `index` of it. */
static void fold_places(const folding *f, uint64_t s, uint64_t chunk, uint32_t index, uint64_t skip, uint64_t first,
                        uint64_t count, void *out)
{
    weft_shmcoll *node = f->node;
    const weft_type *type = f->args->recvtype;
    uint64_t size = (uint64_t)type->size;

    for (uint32_t i = node->ranks; i-- > 0;) {
        bool is_own = i == node->rank && f->own;
        const char *part = is_own ? f->own + (int64_t)first * type->extent : weft_shmcoll_place(node, i, s, chunk) + skip * size;
        if (weft_unlikely(node->sums != NULL) && !is_own && i < node->ranks - 1)
            check_place(node, i, s, index, part, count * size, first * size);
        if (i == node->ranks - 1) {
            if (is_own)
                weft_copy(type, out, count, type, part, count);
            else
                take_first(node, s, index, type, out, count, part, first * size);
            continue;
        }
        if (!is_own && f->room) {
            weft_unpack(type, f->room, count, 0, count * size, part);
            part = f->room;
        }
        weft_coll_apply_op(node->worker, f->args->op, type, part, out, count);
    }
}

static int node_reduce(weft_shmcoll *node, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, max = node->slot_bytes / size;
    bool is_root = node->rank == (uint32_t)args->root, is_writer = !is_root || args->in_place;
    const void *data = is_root && args->in_place ? args->recvbuf : args->sendbuf;
    folding f = {0};

    if (is_root) {
        int rc = folding_open(&f, node, args);
        if (rc)
            return weft_shmcoll_stop(node, rc);
    }
    for (uint64_t at = 0; at < args->recvcount; at += max) {
        uint64_t here = min(args->recvcount - at, max), s = weft_shmcoll_begin(node, is_writer);
        if (!s)
            break;
        if (is_writer)
            put_piece(node, s, 0, type, data, args->recvcount, at * size, here * size,
                      weft_shmcoll_place(node, node->rank, s, here * size));
        weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
        if (!is_root)
            continue;
        if (weft_shmcoll_await_all(node, s))
            break;
        fold_places(&f, s, here * size, 0, 0, at, here, (char *)args->recvbuf + (int64_t)at * type->extent);
    }
    free(f.room_block);
    return node->rc;
}

/* One operation: each member reduces everything. */
static int allreduce_flat(const folding *f, uint64_t at, uint64_t here)
{
    weft_shmcoll *node = f->node;
    const weft_coll *args = f->args;
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, s = weft_shmcoll_begin(node, true);

    if (!s)
        return node->rc;
    put_piece(node, s, 0, type, args->in_place ? args->recvbuf : args->sendbuf, args->recvcount, at * size, here * size,
              weft_shmcoll_place(node, node->rank, s, here * size));
    weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
    if (weft_shmcoll_await_all(node, s))
        return node->rc;
    fold_places(f, s, here * size, 0, 0, at, here, (char *)args->recvbuf + (int64_t)at * type->extent);
    return WEFT_OK;
}

/* Pipeline for large vectors. In stage i a member writes chunk i, reduces its block of chunk i - 1 and writes it, and reads all blocks of
 * chunk i - 2. So each stage waits for posts of the stage before. */
typedef struct pipeline {
    const folding *f;
    uint64_t max, chunks; /* elements of a chunk; number of chunks */
    uint64_t written[2], folded[2]; /* [i % 2]: operation in which chunk i, its reduced blocks were written */
} pipeline;

static uint64_t chunk_count(const pipeline *p, uint64_t i) { return min(p->f->args->recvcount - i * p->max, p->max); }

/* Checksums of this member's chunk, a fragment for each member's block. */
static __attribute__((noinline)) void seal_blocks(pipeline *p, uint64_t i, uint64_t s)
{
    weft_shmcoll *node = p->f->node;
    const weft_coll *args = p->f->args;
    const void *data = args->in_place ? args->recvbuf : args->sendbuf;
    uint64_t size = (uint64_t)args->recvtype->size, at = i * p->max, here = chunk_count(p, i);

    for (uint32_t r = 0; r < node->ranks; r++) {
        uint64_t from = weft_sched_block_start(here, node->ranks, r), to = weft_sched_block_start(here, node->ranks, r + 1);
        weft_shmcoll_csum_write(node, &(weft_shmcoll_piece){s, node->rank, r, args->recvtype, data, args->recvcount, (at + from) * size,
                                                (to - from) * size});
    }
}

static int stage_write(pipeline *p, uint64_t i)
{
    weft_shmcoll *node = p->f->node;
    const weft_coll *args = p->f->args;
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, at = i * p->max, here = chunk_count(p, i), s = weft_shmcoll_begin(node, true);
    uint64_t from = weft_sched_block_start(here, node->ranks, node->rank);
    uint64_t to = weft_sched_block_start(here, node->ranks, node->rank + 1);
    char *place = weft_shmcoll_place(node, node->rank, s, here * size);

    if (!s)
        return node->rc;
    if (args->in_place) {
        put(node, type, args->recvbuf, args->recvcount, at * size, here * size, place);
    } else { /* no other member reads this member's own block */
        put(node, type, args->sendbuf, args->recvcount, at * size, from * size, place);
        put(node, type, args->sendbuf, args->recvcount, (at + to) * size, (here - to) * size, place + to * size);
    }
    if (weft_unlikely(node->sums != NULL))
        seal_blocks(p, i, s);
    weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
    p->written[i % 2] = s;
    return WEFT_OK;
}

static int stage_fold(pipeline *p, uint64_t i)
{
    weft_shmcoll *node = p->f->node;
    const weft_coll *args = p->f->args;
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, at = i * p->max, here = chunk_count(p, i), s = p->written[i % 2];
    uint64_t from = weft_sched_block_start(here, node->ranks, node->rank);
    uint64_t to = weft_sched_block_start(here, node->ranks, node->rank + 1);
    uint32_t damages = node->damages;

    if (weft_shmcoll_await_all(node, s))
        return node->rc;
    fold_places(p->f, s, here * size, node->rank, from, at + from, to - from, (char *)args->recvbuf + (int64_t)(at + from) * type->extent);
    s = weft_shmcoll_begin(node, true);
    if (!s)
        return node->rc;
    put_piece(node, s, 0, type, args->recvbuf, args->recvcount, (at + from) * size, (to - from) * size,
              weft_shmcoll_place(node, node->rank, s, here * size) + from * size);
    if (weft_unlikely(node->damages != damages))
        weft_shmcoll_taint(node, &(weft_shmcoll_piece){.s = s, .member = node->rank});
    weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
    p->folded[i % 2] = s;
    return WEFT_OK;
}

static int stage_read(pipeline *p, uint64_t i)
{
    weft_shmcoll *node = p->f->node;
    const weft_coll *args = p->f->args;
    uint64_t size = (uint64_t)args->recvtype->size, at = i * p->max, here = chunk_count(p, i), s = p->folded[i % 2];

    if (weft_shmcoll_await_all(node, s))
        return node->rc;
    for (uint32_t r = 0; r < node->ranks; r++) {
        uint64_t from = weft_sched_block_start(here, node->ranks, r), to = weft_sched_block_start(here, node->ranks, r + 1);
        if (r != node->rank)
            take_piece(node, r, s, 0, args->recvtype, args->recvbuf, args->recvcount, (at + from) * size, (to - from) * size,
                       weft_shmcoll_place(node, r, s, here * size) + from * size);
    }
    return WEFT_OK;
}

static int allreduce_pipeline(const folding *f, uint64_t max)
{
    pipeline p = {.f = f, .max = max, .chunks = (f->args->recvcount + max - 1) / max};
    int rc = WEFT_OK;

    for (uint64_t i = 0; i < p.chunks + 2 && !rc; i++) {
        if (i < p.chunks)
            rc = stage_write(&p, i);
        if (!rc && i >= 1 && i <= p.chunks)
            rc = stage_fold(&p, i - 1);
        if (!rc && i >= 2)
            rc = stage_read(&p, i - 2);
    }
    return rc;
}

static int node_allreduce(weft_shmcoll *node, const weft_coll *args)
{
    uint64_t size = (uint64_t)args->recvtype->size, max, all = args->recvcount * size;
    bool is_flat = all <= FLAT_BYTES || node->is_oversubscribed; /* oversubscribed: a wait costs more than reducing a slot */
    folding f;
    int rc;

    if (!all)
        return WEFT_OK;
    rc = folding_open(&f, node, args);
    if (rc)
        return weft_shmcoll_stop(node, rc);
    max = node->slot_bytes / size;
    if (!is_flat)
        rc = allreduce_pipeline(&f, max);
    for (uint64_t at = 0; is_flat && at < args->recvcount && !rc; at += max)
        rc = allreduce_flat(&f, at, min(args->recvcount - at, max));
    free(f.room_block);
    return rc;
}

/* ---- blocks ---- */

static int node_gather(weft_shmcoll *node, const weft_coll *args)
{
    bool is_root = node->rank == (uint32_t)args->root;
    const weft_type *type = is_root ? args->recvtype : args->sendtype;
    uint64_t all = (is_root ? args->recvcount : args->sendcount) * (uint64_t)type->size;

    for (uint64_t at = 0; at < all; at += node->slot_bytes) {
        uint64_t here = min(all - at, node->slot_bytes), s = weft_shmcoll_begin(node, !is_root);
        if (!s)
            return node->rc;
        if (!is_root)
            put_piece(node, s, 0, type, args->sendbuf, args->sendcount, at, here, weft_shmcoll_place(node, node->rank, s, here));
        weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
        if (!is_root)
            continue;
        if (weft_shmcoll_await_all(node, s))
            return node->rc;
        for (uint32_t i = 0; i < node->ranks; i++)
            if (i != node->rank)
                take_piece(node, i, s, 0, type, weft_sched_at(args->recvbuf, type, i * args->recvcount), args->recvcount, at, here,
                           weft_shmcoll_place(node, i, s, here));
    }
    if (is_root && !args->in_place)
        weft_coll_copy(node->worker, type, weft_sched_at(args->recvbuf, type, node->rank * args->recvcount), args->recvcount,
                       args->sendtype, args->sendbuf, args->sendcount);
    return WEFT_OK;
}

/* Bytes of each member's part of a slot that holds one for all; at least 4, by SLOT_BYTES_MIN and WEFT_SHMCOLL_RANKS. */
static uint64_t part_bytes(const weft_shmcoll *node)
{
    uint64_t part = node->slot_bytes / node->ranks;
    return part >= 16 ? part / 16 * 16 : part;
}

static int node_scatter(weft_shmcoll *node, const weft_coll *args)
{
    bool is_root = node->rank == (uint32_t)args->root;
    const weft_type *type = is_root ? args->sendtype : args->recvtype;
    uint64_t count = is_root ? args->sendcount : args->recvcount, all = count * (uint64_t)type->size, part = part_bytes(node);

    for (uint64_t at = 0; at < all; at += part) {
        uint64_t here = min(all - at, part), s = weft_shmcoll_begin(node, is_root);
        char *place = weft_shmcoll_place(node, (uint32_t)args->root, s, here * node->ranks);
        if (!s)
            return node->rc;
        if (is_root) {
            for (uint32_t i = 0; i < node->ranks; i++)
                if (i != node->rank)
                    put_piece(node, s, i, type, weft_sched_at(args->sendbuf, type, i * count), count, at, here,
                              place + i * here);
            weft_shmcoll_post(node, s, WEFT_SHMCOLL_ALL);
            continue;
        }
        weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await(node, (uint32_t)args->root, s))
            return node->rc;
        saw_writer(node, s);
        take_piece(node, (uint32_t)args->root, s, node->rank, type, args->recvbuf, count, at, here, place + node->rank * here);
    }
    if (is_root && !args->in_place)
        weft_coll_copy(node->worker, args->recvtype, args->recvbuf, args->recvcount, type,
                       weft_sched_at(args->sendbuf, type, node->rank * count), count);
    return WEFT_OK;
}

static int node_allgather(weft_shmcoll *node, const weft_coll *args)
{
    const weft_type *type = args->recvtype, *from_type = args->in_place ? type : args->sendtype;
    char *own = weft_sched_at(args->recvbuf, type, node->rank * args->recvcount);
    const void *from = args->in_place ? own : args->sendbuf;
    uint64_t from_count = args->in_place ? args->recvcount : args->sendcount, all = args->recvcount * (uint64_t)type->size;

    for (uint64_t at = 0; at < all; at += node->slot_bytes) {
        uint64_t here = min(all - at, node->slot_bytes), s = weft_shmcoll_begin(node, true);
        if (!s)
            return node->rc;
        put_piece(node, s, 0, from_type, from, from_count, at, here, weft_shmcoll_place(node, node->rank, s, here));
        weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await_all(node, s))
            return node->rc;
        for (uint32_t i = 0; i < node->ranks; i++)
            if (i != node->rank)
                take_piece(node, i, s, 0, type, weft_sched_at(args->recvbuf, type, i * args->recvcount), args->recvcount, at, here,
                           weft_shmcoll_place(node, i, s, here));
    }
    if (!args->in_place)
        weft_coll_copy(node->worker, type, own, args->recvcount, from_type, from, from_count);
    return WEFT_OK;
}

static int node_alltoall(weft_shmcoll *node, const weft_coll *args)
{
    const weft_type *type = args->recvtype, *from_type = args->in_place ? type : args->sendtype;
    const void *from = args->in_place ? args->recvbuf : args->sendbuf;
    uint64_t from_count = args->in_place ? args->recvcount : args->sendcount, all = args->recvcount * (uint64_t)type->size;
    uint64_t part = part_bytes(node);

    for (uint64_t at = 0; at < all; at += part) {
        uint64_t here = min(all - at, part), s = weft_shmcoll_begin(node, true);
        char *place = weft_shmcoll_place(node, node->rank, s, here * node->ranks);
        if (!s)
            return node->rc;
        for (uint32_t i = 0; i < node->ranks; i++)
            if (i != node->rank)
                put_piece(node, s, i, from_type, weft_sched_at(from, from_type, i * from_count), from_count, at, here,
                          place + i * here);
        weft_shmcoll_post(node, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await_all(node, s))
            return node->rc;
        for (uint32_t i = 0; i < node->ranks; i++)
            if (i != node->rank)
                take_piece(node, i, s, node->rank, type, weft_sched_at(args->recvbuf, type, i * args->recvcount), args->recvcount,
                           at, here, weft_shmcoll_place(node, i, s, here * node->ranks) + node->rank * here);
    }
    if (!args->in_place)
        weft_coll_copy(node->worker, type, weft_sched_at(args->recvbuf, type, node->rank * args->recvcount), args->recvcount, from_type,
                  weft_sched_at(from, from_type, node->rank * from_count), from_count);
    return WEFT_OK;
}

static inline int run(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args)
{
    switch (kind) {
    case WEFT_COLL_BARRIER:
        return node_barrier(node);
    case WEFT_COLL_BCAST:
        return node_bcast(node, args);
    case WEFT_COLL_REDUCE:
        return args->recvcount && args->recvtype->size ? node_reduce(node, args) : WEFT_OK;
    case WEFT_COLL_ALLREDUCE:
        return node_allreduce(node, args);
    case WEFT_COLL_GATHER:
        return node_gather(node, args);
    case WEFT_COLL_SCATTER:
        return node_scatter(node, args);
    case WEFT_COLL_ALLGATHER:
        return node_allgather(node, args);
    case WEFT_COLL_ALLTOALL:
        return node_alltoall(node, args);
    default:
        return weft_fail(WEFT_E_INTERN, "no collective %d", (int)kind);
    }
}

static __attribute__((noinline)) int run_summed(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args)
{
    int rc;

    node->kind = kind;
    node->root = args->root;
    node->damage = 0;
    rc = run(node, kind, args);
    return rc ? rc : node->damage;
}

int weft_shmcoll_stage(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args)
{
    return weft_unlikely(node->sums != NULL) ? run_summed(node, kind, args) : run(node, kind, args);
}

int weft_shmcoll_pass(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args, uint64_t bytes, bool is_alone)
{
    if (node->rc)
        return weft_shmcoll_refuse(node);
    weft_shmcoll_note(node, kind, args, bytes);
    if (is_alone) /* members that expect this call in the area would wait for this one */
        weft_shmcoll_wake_all(node);
    return WEFT_OK;
}

int weft_shmcoll_run(weft_shmcoll *node, enum weft_coll_kind kind, const weft_coll *args)
{
    if (weft_unlikely(node->rc))
        return weft_shmcoll_refuse(node);
    weft_shmcoll_note(node, kind, args, weft_coll_select_bytes(kind, args, args->root == (int)node->rank));
    return weft_shmcoll_stage(node, kind, args);
}

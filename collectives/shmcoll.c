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

#define FLAT_BYTES 2048 /* up to this length each member reduces everything: one wait instead of two */

static inline void write_slot(weft_shmcoll *area, const weft_type *type, const void *buf, uint64_t count, uint64_t offset, uint64_t bytes,
                              void *out)
{
    if (weft_unlikely(!type->is_dense)) {
        weft_shmcoll_offer(area, bytes);
        weft_pack(type, buf, count, offset, bytes, out);
    } else if (bytes == 8) {
        memcpy(out, (const char *)buf + offset, 8);
    } else {
        weft_shmcoll_offer(area, bytes);
        weft_nt_copy_body(&area->store, out, (const char *)buf + offset, (uint32_t)bytes);
    }
}

static inline void read_slot(weft_shmcoll *area, const weft_type *type, void *buf, uint64_t count, uint64_t offset, uint64_t bytes,
                             const void *in)
{
    if (weft_unlikely(!type->is_dense)) {
        weft_shmcoll_offer(area, bytes);
        weft_unpack(type, buf, count, offset, bytes, in);
    } else if (bytes == 8) {
        memcpy((char *)buf + offset, in, 8);
    } else {
        weft_shmcoll_offer(area, bytes);
        memcpy((char *)buf + offset, in, bytes);
    }
}

/* The same, with the fragment's checksum. */
static inline void write_fragment(weft_shmcoll *area, uint64_t s, uint32_t index, const weft_type *type, const void *buf, uint64_t count,
                                  uint64_t offset, uint64_t bytes, void *out)
{
    write_slot(area, type, buf, count, offset, bytes, out);
    if (weft_unlikely(area->csums != NULL))
        weft_shmcoll_csum_write(area, &(weft_shmcoll_fragment){s, area->rank, index, type, buf, count, offset, bytes});
}

static inline void read_fragment(weft_shmcoll *area, uint32_t member, uint64_t s, uint32_t index, const weft_type *type, void *buf,
                                 uint64_t count, uint64_t offset, uint64_t bytes, const void *in)
{
    read_slot(area, type, buf, count, offset, bytes, in);
    if (weft_unlikely(area->csums != NULL))
        weft_shmcoll_check(area, &(weft_shmcoll_fragment){s, member, index, type, buf, count, offset, bytes}, offset);
}

static inline uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A writer of s has posted: the posts that it had to see before (weft_shmcoll_begin) are made. */
static void on_writer_posted(weft_shmcoll *area, uint64_t s)
{
    uint64_t seen = s + 1 + WEFT_SHMCOLL_LAG;

    if (seen > area->known + WEFT_SHMCOLL_DEPTH)
        area->known = seen - WEFT_SHMCOLL_DEPTH;
}

static int area_barrier(weft_shmcoll *area)
{
    uint64_t s = weft_shmcoll_begin(area, true); /* a writer: the others read its call_hash */

    if (!s)
        return area->rc;
    weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
    return weft_shmcoll_await_all(area, s);
}

static int area_bcast(weft_shmcoll *area, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t all = args->recvcount * (uint64_t)type->size;
    bool is_root = area->rank == (uint32_t)args->root;

    for (uint64_t at = 0; at < all; at += area->slot_bytes) {
        uint64_t here = min(all - at, area->slot_bytes), s = weft_shmcoll_begin(area, is_root);
        char *place = weft_shmcoll_place(area, (uint32_t)args->root, s, here);
        if (!s)
            return area->rc;
        if (is_root) {
            write_fragment(area, s, 0, type, args->recvbuf, args->recvcount, at, here, place);
            weft_shmcoll_post(area, s, WEFT_SHMCOLL_ALL);
            continue;
        }
        weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await(area, (uint32_t)args->root, s))
            return area->rc;
        on_writer_posted(area, s);
        read_fragment(area, (uint32_t)args->root, s, 0, type, args->recvbuf, args->recvcount, at, here, place);
    }
    return WEFT_OK;
}

/* ---- reductions ---- */

typedef struct reduction {
    weft_shmcoll *area;
    const weft_coll *args;
    const char *own;  /* this member's vector; NULL: it is in its slot */
    void *scratch;       /* one chunk, unpacked; address of element 0; NULL: the type is dense */
    void *scratch_block; /* allocation of scratch */
} reduction;

static int reduction_open(reduction *f, weft_shmcoll *area, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t count = min(args->recvcount, area->slot_bytes / (uint64_t)type->size);
    int64_t step = type->extent < 0 ? -type->extent : type->extent;

    *f = (reduction){.area = area, .args = args, .own = args->in_place ? NULL : args->sendbuf};
    if (type->is_dense)
        return WEFT_OK;
    f->scratch_block = malloc((size_t)(type->true_extent + (int64_t)(count - 1) * step));
    if (!f->scratch_block)
        return weft_fail(WEFT_E_NOMEM, "no memory to reduce %llu elements", (unsigned long long)count);
    f->scratch = (char *)f->scratch_block - type->true_lb + (type->extent < 0 ? (int64_t)(count - 1) * step : 0);
    return WEFT_OK;
}

/* The last member's part begins the reduction: copied to out, and checked there before other parts are added. */
static void read_first(weft_shmcoll *area, uint64_t s, uint32_t index, const weft_type *type, void *out, uint64_t count,
                       const void *part, uint64_t at)
{
    uint64_t bytes = count * (uint64_t)type->size;

    read_slot(area, type, out, count, 0, bytes, part);
    if (weft_unlikely(area->csums != NULL))
        weft_shmcoll_check(area, &(weft_shmcoll_fragment){s, area->ranks - 1, index, type, out, count, 0, bytes}, at);
}

/* Checks a part that is reduced from its slot. at: its offset in the vector, bytes. */
static void check_slot(weft_shmcoll *area, uint32_t member, uint64_t s, uint32_t index, const char *part, uint64_t bytes,
                       uint64_t at)
{
    weft_shmcoll_check(area, &(weft_shmcoll_fragment){s, member, index, weft_sched_bytes(), part, bytes, 0, bytes}, at);
}

/* Reduces elements [first, first + count) of all members' vectors into out, the address of element `first`. They begin at element `skip` of
 * the chunk of `chunk` bytes that each member wrote in s, and are fragment `index` of it. */
static void reduce_slots(const reduction *f, uint64_t s, uint64_t chunk, uint32_t index, uint64_t skip, uint64_t first,
                         uint64_t count, void *out)
{
    weft_shmcoll *area = f->area;
    const weft_type *type = f->args->recvtype;
    uint64_t size = (uint64_t)type->size;

    for (uint32_t i = area->ranks; i-- > 0;) {
        bool is_own = i == area->rank && f->own;
        const char *part = is_own ? f->own + (int64_t)first * type->extent : weft_shmcoll_place(area, i, s, chunk) + skip * size;
        if (weft_unlikely(area->csums != NULL) && !is_own && i < area->ranks - 1)
            check_slot(area, i, s, index, part, count * size, first * size);
        if (i == area->ranks - 1) {
            if (is_own)
                weft_copy(type, out, count, type, part, count);
            else
                read_first(area, s, index, type, out, count, part, first * size);
            continue;
        }
        if (!is_own && f->scratch) {
            weft_unpack(type, f->scratch, count, 0, count * size, part);
            part = f->scratch;
        }
        weft_coll_apply_op(area->worker, f->args->op, type, part, out, count);
    }
}

static int area_reduce(weft_shmcoll *area, const weft_coll *args)
{
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, max = area->slot_bytes / size;
    bool is_root = area->rank == (uint32_t)args->root, is_writer = !is_root || args->in_place;
    const void *data = is_root && args->in_place ? args->recvbuf : args->sendbuf;
    reduction f = {0};

    if (is_root) {
        int rc = reduction_open(&f, area, args);
        if (rc)
            return weft_shmcoll_stop(area, rc);
    }
    for (uint64_t at = 0; at < args->recvcount; at += max) {
        uint64_t here = min(args->recvcount - at, max), s = weft_shmcoll_begin(area, is_writer);
        if (!s)
            break;
        if (is_writer)
            write_fragment(area, s, 0, type, data, args->recvcount, at * size, here * size,
                           weft_shmcoll_place(area, area->rank, s, here * size));
        weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
        if (!is_root)
            continue;
        if (weft_shmcoll_await_all(area, s))
            break;
        reduce_slots(&f, s, here * size, 0, 0, at, here, (char *)args->recvbuf + (int64_t)at * type->extent);
    }
    free(f.scratch_block);
    return area->rc;
}

/* One operation: each member reduces everything. */
static int allreduce_flat(const reduction *f, uint64_t at, uint64_t here)
{
    weft_shmcoll *area = f->area;
    const weft_coll *args = f->args;
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, s = weft_shmcoll_begin(area, true);

    if (!s)
        return area->rc;
    write_fragment(area, s, 0, type, args->in_place ? args->recvbuf : args->sendbuf, args->recvcount, at * size, here * size,
                   weft_shmcoll_place(area, area->rank, s, here * size));
    weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
    if (weft_shmcoll_await_all(area, s))
        return area->rc;
    reduce_slots(f, s, here * size, 0, 0, at, here, (char *)args->recvbuf + (int64_t)at * type->extent);
    return WEFT_OK;
}

/* Pipeline for large vectors. In stage i a member writes chunk i, reduces its block of chunk i - 1 and writes it, and reads all blocks of
 * chunk i - 2. So each stage waits for posts of the stage before. */
typedef struct pipeline {
    const reduction *f;
    uint64_t max, chunks; /* elements of a chunk; number of chunks */
    uint64_t written[2], reduced[2]; /* [i % 2]: operation in which chunk i, its reduced blocks were written */
} pipeline;

static uint64_t chunk_count(const pipeline *p, uint64_t i) { return min(p->f->args->recvcount - i * p->max, p->max); }

/* Checksums of this member's chunk, a fragment for each member's block. */
static __attribute__((noinline)) void csum_blocks(pipeline *p, uint64_t i, uint64_t s)
{
    weft_shmcoll *area = p->f->area;
    const weft_coll *args = p->f->args;
    const void *data = args->in_place ? args->recvbuf : args->sendbuf;
    uint64_t size = (uint64_t)args->recvtype->size, at = i * p->max, here = chunk_count(p, i);

    for (uint32_t r = 0; r < area->ranks; r++) {
        uint64_t from = weft_sched_block_start(here, area->ranks, r), to = weft_sched_block_start(here, area->ranks, r + 1);
        weft_shmcoll_csum_write(area, &(weft_shmcoll_fragment){s, area->rank, r, args->recvtype, data, args->recvcount, (at + from) * size,
                                                (to - from) * size});
    }
}

static int stage_write(pipeline *p, uint64_t i)
{
    weft_shmcoll *area = p->f->area;
    const weft_coll *args = p->f->args;
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, at = i * p->max, here = chunk_count(p, i), s = weft_shmcoll_begin(area, true);
    uint64_t from = weft_sched_block_start(here, area->ranks, area->rank);
    uint64_t to = weft_sched_block_start(here, area->ranks, area->rank + 1);
    char *place = weft_shmcoll_place(area, area->rank, s, here * size);

    if (!s)
        return area->rc;
    if (args->in_place) {
        write_slot(area, type, args->recvbuf, args->recvcount, at * size, here * size, place);
    } else { /* no other member reads this member's own block */
        write_slot(area, type, args->sendbuf, args->recvcount, at * size, from * size, place);
        write_slot(area, type, args->sendbuf, args->recvcount, (at + to) * size, (here - to) * size, place + to * size);
    }
    if (weft_unlikely(area->csums != NULL))
        csum_blocks(p, i, s);
    weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
    p->written[i % 2] = s;
    return WEFT_OK;
}

static int stage_reduce(pipeline *p, uint64_t i)
{
    weft_shmcoll *area = p->f->area;
    const weft_coll *args = p->f->args;
    const weft_type *type = args->recvtype;
    uint64_t size = (uint64_t)type->size, at = i * p->max, here = chunk_count(p, i), s = p->written[i % 2];
    uint64_t from = weft_sched_block_start(here, area->ranks, area->rank);
    uint64_t to = weft_sched_block_start(here, area->ranks, area->rank + 1);
    uint32_t damages = area->damages;

    if (weft_shmcoll_await_all(area, s))
        return area->rc;
    reduce_slots(p->f, s, here * size, area->rank, from, at + from, to - from, (char *)args->recvbuf + (int64_t)(at + from) * type->extent);
    s = weft_shmcoll_begin(area, true);
    if (!s)
        return area->rc;
    write_fragment(area, s, 0, type, args->recvbuf, args->recvcount, (at + from) * size, (to - from) * size,
                   weft_shmcoll_place(area, area->rank, s, here * size) + from * size);
    if (weft_unlikely(area->damages != damages))
        weft_shmcoll_taint(area, &(weft_shmcoll_fragment){.s = s, .member = area->rank});
    weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
    p->reduced[i % 2] = s;
    return WEFT_OK;
}

static int stage_read(pipeline *p, uint64_t i)
{
    weft_shmcoll *area = p->f->area;
    const weft_coll *args = p->f->args;
    uint64_t size = (uint64_t)args->recvtype->size, at = i * p->max, here = chunk_count(p, i), s = p->reduced[i % 2];

    if (weft_shmcoll_await_all(area, s))
        return area->rc;
    for (uint32_t r = 0; r < area->ranks; r++) {
        uint64_t from = weft_sched_block_start(here, area->ranks, r), to = weft_sched_block_start(here, area->ranks, r + 1);
        if (r != area->rank)
            read_fragment(area, r, s, 0, args->recvtype, args->recvbuf, args->recvcount, (at + from) * size, (to - from) * size,
                          weft_shmcoll_place(area, r, s, here * size) + from * size);
    }
    return WEFT_OK;
}

static int allreduce_pipeline(const reduction *f, uint64_t max)
{
    pipeline p = {.f = f, .max = max, .chunks = (f->args->recvcount + max - 1) / max};
    int rc = WEFT_OK;

    for (uint64_t i = 0; i < p.chunks + 2 && !rc; i++) {
        if (i < p.chunks)
            rc = stage_write(&p, i);
        if (!rc && i >= 1 && i <= p.chunks)
            rc = stage_reduce(&p, i - 1);
        if (!rc && i >= 2)
            rc = stage_read(&p, i - 2);
    }
    return rc;
}

static int area_allreduce(weft_shmcoll *area, const weft_coll *args)
{
    uint64_t size = (uint64_t)args->recvtype->size, max, all = args->recvcount * size;
    bool is_flat = all <= FLAT_BYTES || area->is_oversubscribed; /* oversubscribed: a wait costs more than reducing a slot */
    reduction f;
    int rc;

    if (!all)
        return WEFT_OK;
    rc = reduction_open(&f, area, args);
    if (rc)
        return weft_shmcoll_stop(area, rc);
    max = area->slot_bytes / size;
    if (!is_flat)
        rc = allreduce_pipeline(&f, max);
    for (uint64_t at = 0; is_flat && at < args->recvcount && !rc; at += max)
        rc = allreduce_flat(&f, at, min(args->recvcount - at, max));
    free(f.scratch_block);
    return rc;
}

/* ---- blocks ---- */

static int area_gather(weft_shmcoll *area, const weft_coll *args)
{
    bool is_root = area->rank == (uint32_t)args->root;
    const weft_type *type = is_root ? args->recvtype : args->sendtype;
    uint64_t all = (is_root ? args->recvcount : args->sendcount) * (uint64_t)type->size;

    for (uint64_t at = 0; at < all; at += area->slot_bytes) {
        uint64_t here = min(all - at, area->slot_bytes), s = weft_shmcoll_begin(area, !is_root);
        if (!s)
            return area->rc;
        if (!is_root)
            write_fragment(area, s, 0, type, args->sendbuf, args->sendcount, at, here, weft_shmcoll_place(area, area->rank, s, here));
        weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
        if (!is_root)
            continue;
        if (weft_shmcoll_await_all(area, s))
            return area->rc;
        for (uint32_t i = 0; i < area->ranks; i++)
            if (i != area->rank)
                read_fragment(area, i, s, 0, type, weft_sched_at(args->recvbuf, type, i * args->recvcount), args->recvcount, at, here,
                              weft_shmcoll_place(area, i, s, here));
    }
    if (is_root && !args->in_place)
        weft_coll_copy(area->worker, type, weft_sched_at(args->recvbuf, type, area->rank * args->recvcount), args->recvcount,
                       args->sendtype, args->sendbuf, args->sendcount);
    return WEFT_OK;
}

/* Bytes of each member's part of a slot that holds one for all; at least 4, by SLOT_BYTES_MIN and WEFT_SHMCOLL_RANKS. */
static uint64_t part_bytes(const weft_shmcoll *area)
{
    uint64_t part = area->slot_bytes / area->ranks;
    return part >= 16 ? part / 16 * 16 : part;
}

static int area_scatter(weft_shmcoll *area, const weft_coll *args)
{
    bool is_root = area->rank == (uint32_t)args->root;
    const weft_type *type = is_root ? args->sendtype : args->recvtype;
    uint64_t count = is_root ? args->sendcount : args->recvcount, all = count * (uint64_t)type->size, part = part_bytes(area);

    for (uint64_t at = 0; at < all; at += part) {
        uint64_t here = min(all - at, part), s = weft_shmcoll_begin(area, is_root);
        char *place = weft_shmcoll_place(area, (uint32_t)args->root, s, here * area->ranks);
        if (!s)
            return area->rc;
        if (is_root) {
            for (uint32_t i = 0; i < area->ranks; i++)
                if (i != area->rank)
                    write_fragment(area, s, i, type, weft_sched_at(args->sendbuf, type, i * count), count, at, here,
                                   place + i * here);
            weft_shmcoll_post(area, s, WEFT_SHMCOLL_ALL);
            continue;
        }
        weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await(area, (uint32_t)args->root, s))
            return area->rc;
        on_writer_posted(area, s);
        read_fragment(area, (uint32_t)args->root, s, area->rank, type, args->recvbuf, count, at, here, place + area->rank * here);
    }
    if (is_root && !args->in_place)
        weft_coll_copy(area->worker, args->recvtype, args->recvbuf, args->recvcount, type,
                       weft_sched_at(args->sendbuf, type, area->rank * count), count);
    return WEFT_OK;
}

static int area_allgather(weft_shmcoll *area, const weft_coll *args)
{
    const weft_type *type = args->recvtype, *from_type = args->in_place ? type : args->sendtype;
    char *own = weft_sched_at(args->recvbuf, type, area->rank * args->recvcount);
    const void *from = args->in_place ? own : args->sendbuf;
    uint64_t from_count = args->in_place ? args->recvcount : args->sendcount, all = args->recvcount * (uint64_t)type->size;

    for (uint64_t at = 0; at < all; at += area->slot_bytes) {
        uint64_t here = min(all - at, area->slot_bytes), s = weft_shmcoll_begin(area, true);
        if (!s)
            return area->rc;
        write_fragment(area, s, 0, from_type, from, from_count, at, here, weft_shmcoll_place(area, area->rank, s, here));
        weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await_all(area, s))
            return area->rc;
        for (uint32_t i = 0; i < area->ranks; i++)
            if (i != area->rank)
                read_fragment(area, i, s, 0, type, weft_sched_at(args->recvbuf, type, i * args->recvcount), args->recvcount, at, here,
                              weft_shmcoll_place(area, i, s, here));
    }
    if (!args->in_place)
        weft_coll_copy(area->worker, type, own, args->recvcount, from_type, from, from_count);
    return WEFT_OK;
}

static int area_alltoall(weft_shmcoll *area, const weft_coll *args)
{
    const weft_type *type = args->recvtype, *from_type = args->in_place ? type : args->sendtype;
    const void *from = args->in_place ? args->recvbuf : args->sendbuf;
    uint64_t from_count = args->in_place ? args->recvcount : args->sendcount, all = args->recvcount * (uint64_t)type->size;
    uint64_t part = part_bytes(area);

    for (uint64_t at = 0; at < all; at += part) {
        uint64_t here = min(all - at, part), s = weft_shmcoll_begin(area, true);
        char *place = weft_shmcoll_place(area, area->rank, s, here * area->ranks);
        if (!s)
            return area->rc;
        for (uint32_t i = 0; i < area->ranks; i++)
            if (i != area->rank)
                write_fragment(area, s, i, from_type, weft_sched_at(from, from_type, i * from_count), from_count, at, here,
                               place + i * here);
        weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
        if (weft_shmcoll_await_all(area, s))
            return area->rc;
        for (uint32_t i = 0; i < area->ranks; i++)
            if (i != area->rank)
                read_fragment(area, i, s, area->rank, type, weft_sched_at(args->recvbuf, type, i * args->recvcount), args->recvcount,
                              at, here, weft_shmcoll_place(area, i, s, here * area->ranks) + area->rank * here);
    }
    if (!args->in_place)
        weft_coll_copy(area->worker, type, weft_sched_at(args->recvbuf, type, area->rank * args->recvcount), args->recvcount, from_type,
                  weft_sched_at(from, from_type, area->rank * from_count), from_count);
    return WEFT_OK;
}

static inline int run(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    switch (kind) {
    case WEFT_COLL_BARRIER:
        return area_barrier(area);
    case WEFT_COLL_BCAST:
        return area_bcast(area, args);
    case WEFT_COLL_REDUCE:
        return args->recvcount && args->recvtype->size ? area_reduce(area, args) : WEFT_OK;
    case WEFT_COLL_ALLREDUCE:
        return area_allreduce(area, args);
    case WEFT_COLL_GATHER:
        return area_gather(area, args);
    case WEFT_COLL_SCATTER:
        return area_scatter(area, args);
    case WEFT_COLL_ALLGATHER:
        return area_allgather(area, args);
    case WEFT_COLL_ALLTOALL:
        return area_alltoall(area, args);
    default:
        return weft_fail(WEFT_E_INTERN, "no collective %d", (int)kind);
    }
}

static __attribute__((noinline)) int run_checked(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    int rc;

    area->kind = kind;
    area->root = args->root;
    area->damage = 0;
    rc = run(area, kind, args);
    return rc ? rc : area->damage;
}

int weft_shmcoll_stage(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    return weft_unlikely(area->csums != NULL) ? run_checked(area, kind, args) : run(area, kind, args);
}

int weft_shmcoll_publish(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, uint64_t bytes, bool is_alone)
{
    if (area->rc)
        return weft_shmcoll_stop_error(area);
    weft_shmcoll_log_call(area, kind, args, bytes);
    if (is_alone) /* members that expect this call in the area would wait for this one */
        weft_shmcoll_wake_all(area);
    return WEFT_OK;
}

int weft_shmcoll_run(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    if (weft_unlikely(area->rc))
        return weft_shmcoll_stop_error(area);
    weft_shmcoll_log_call(area, kind, args, weft_coll_bytes(kind, args, args->root == (int)area->rank));
    return weft_shmcoll_stage(area, kind, args);
}

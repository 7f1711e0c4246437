/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_short: see shmcoll_short.h.
 */
#include "collectives/shmcoll_short.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_check.h"
#include "collectives/shmcoll_exchange.h"
#include "collectives/shmcoll_wait.h"
#include "type/op.h"

enum members { NONE, ALL, ROOT, OTHERS };

/* Of a kind. A line has a block, or (in parts) one for each member. */
typedef struct row {
    enum members writers, readers; /* NONE: the kind is not performed here, or it relays */
    bool has_parts, relays;
} row;

static const row rows[WEFT_COLL_KINDS] = {
    [WEFT_COLL_BARRIER] = {ALL, ALL, false, false},
    [WEFT_COLL_BCAST] = {ROOT, OTHERS, false, false},
    [WEFT_COLL_REDUCE] = {OTHERS, ROOT, false, false},
    [WEFT_COLL_ALLREDUCE] = {ALL, ALL, false, false},
    [WEFT_COLL_GATHER] = {OTHERS, ROOT, false, false},
    [WEFT_COLL_SCATTER] = {ROOT, OTHERS, true, false},
    [WEFT_COLL_ALLGATHER] = {ALL, ALL, false, false},
    [WEFT_COLL_ALLTOALL] = {ALL, ALL, true, false},
    [WEFT_COLL_SCAN] = {NONE, NONE, false, true},
    [WEFT_COLL_EXSCAN] = {NONE, NONE, false, true},
    [WEFT_COLL_REDUCE_SCATTER_BLOCK] = {ALL, ALL, true, false},
};

static inline bool is_among(enum members who, bool is_root) { return who == ALL || (who == ROOT) == is_root; }

/* ---- what follows from the arguments ---- */

static bool is_plain(const weft_type *type) { return type && type->is_predefined && type->is_dense; }

/* Whether the types that this member reads are predefined ones. */
static bool has_plain_types(enum weft_coll_kind kind, const weft_coll *args, bool is_root)
{
    bool has_two = kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL;

    switch (kind) {
    case WEFT_COLL_BARRIER:
        return true;
    case WEFT_COLL_GATHER:
        return (args->in_place || is_plain(args->sendtype)) && (!is_root || is_plain(args->recvtype));
    case WEFT_COLL_SCATTER:
        return (args->in_place || is_plain(args->recvtype)) && (!is_root || is_plain(args->sendtype));
    default:
        return is_plain(args->recvtype) && (!has_two || args->in_place || is_plain(args->sendtype));
    }
}

/* Sets what a reduction needs. False: the operator has no kernel. */
static bool find_kernel(weft_shmcoll_short *same, uint32_t blocks)
{
    uint64_t per_element;

    if (!same->op)
        return true;
    same->kernel = weft_op_kernel_of(same->op, same->recvtype, &per_element);
    same->elements = same->recvcount / blocks * per_element;
    return same->kernel != NULL;
}

/* Sets what this member writes, and the offsets. */
static void find_blocks(const weft_shmcoll *area, enum weft_coll_kind kind, const row *row, bool is_root, weft_shmcoll_short *same)
{
    uint32_t at = area->rank * same->bytes;

    same->part = row->has_parts ? at : 0;
    same->from_recv = kind == WEFT_COLL_BCAST || (same->in_place && kind != WEFT_COLL_SCATTER);
    same->from = kind == WEFT_COLL_ALLGATHER && same->in_place ? at : 0;
    if (row->relays || is_among(row->writers, is_root) || (same->op && same->in_place))
        same->written = row->has_parts ? area->ranks * same->bytes : same->bytes;
    same->has_own = !same->in_place && (kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL ||
                                        (is_root && (kind == WEFT_COLL_GATHER || kind == WEFT_COLL_SCATTER)));
    same->own_from = same->part;
    same->own_to = kind == WEFT_COLL_SCATTER ? 0 : at;
}

void weft_shmcoll_note_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, const struct weft_coll_rule *rule)
{
    const row *row = &rows[kind];
    bool is_root = args->root == (int)area->rank;
    uint64_t bytes = weft_coll_bytes(kind, args, is_root);
    weft_shmcoll_short same = {.sendcount = args->sendcount, .recvcount = args->recvcount, .sendtype = args->sendtype,
                               .recvtype = args->recvtype, .op = args->op, .in_place = args->in_place, .rule = rule, .is_valid = true};
    uint32_t blocks = kind == WEFT_COLL_REDUCE_SCATTER_BLOCK ? area->ranks : 1;

    if (bytes > WEFT_SHMCOLL_INLINE || (row->writers == NONE && !row->relays) || area->csums)
        return;
    if (!bytes != (kind == WEFT_COLL_BARRIER) || !has_plain_types(kind, args, is_root) || !find_kernel(&same, blocks))
        return;
    same.call = weft_call_of(kind, WEFT_CALL_BLOCKING, args, bytes);
    same.call.what &= UINT32_MAX;
    same.bytes = (uint32_t)bytes / blocks;
    if (row->has_parts && same.bytes * area->ranks > WEFT_SHMCOLL_INLINE)
        return;
    find_blocks(area, kind, row, is_root, &same);
    if (area->shorts || (area->shorts = calloc(WEFT_COLL_LAST, sizeof *area->shorts)))
        area->shorts[kind][is_root] = same;
}

void weft_shmcoll_forget_shorts(weft_shmcoll *area)
{
    for (uint32_t kind = 0; area->shorts && kind < WEFT_COLL_LAST; kind++)
        area->shorts[kind][0].is_valid = area->shorts[kind][1].is_valid = false;
}

/* ---- performing ---- */

static inline void copy(void *to, const void *from, uint32_t bytes)
{
    if (weft_likely(bytes == 8))
        memcpy(to, from, 8);
    else
        memcpy(to, from, bytes);
}

static inline const char *own_data(const weft_shmcoll_short *same, const weft_coll *args)
{
    return (const char *)(same->from_recv ? args->recvbuf : args->sendbuf) + same->from;
}

/* A member's data for this one. */
static inline const char *data_of(const weft_shmcoll *area, const weft_shmcoll_short *same, const weft_coll *args, uint32_t member,
                                  uint64_t s)
{
    if (member == area->rank && !same->in_place)
        return (const char *)args->sendbuf + same->part;
    return weft_shmcoll_line_of(area, member, s)->data + same->part;
}

/* In the order of weft_shmcoll_reduce(). */
static inline void fold(const weft_shmcoll *area, const weft_shmcoll_short *same, const weft_coll *args, uint64_t s)
{
    uint32_t i = area->ranks - 2;

    same->kernel(data_of(area, same, args, i, s), data_of(area, same, args, i + 1, s), args->recvbuf, same->elements);
    while (i-- > 0)
        same->kernel(data_of(area, same, args, i, s), args->recvbuf, args->recvbuf, same->elements);
}

static inline void read_all(const weft_shmcoll *area, const weft_shmcoll_short *same, const weft_coll *args, uint64_t s)
{
    for (uint32_t i = 0; i < area->ranks; i++)
        if (i != area->rank)
            copy((char *)args->recvbuf + i * same->bytes, weft_shmcoll_line_of(area, i, s)->data + same->part, same->bytes);
}

/* looks: how often to look for the posts of the others; UINT32_MAX: blocking. */
static inline int await(const row *row, weft_shmcoll *area, const weft_coll *args, uint64_t s, uint32_t looks)
{
    bool may_wait = looks == UINT32_MAX;
    int rc;

    do
        rc = row->writers == ROOT ? weft_shmcoll_await_as(area, (uint32_t)args->root, s, may_wait)
                                  : weft_shmcoll_await_all_as(area, s, may_wait);
    while (weft_unlikely(rc == WEFT_AGAIN) && weft_shmcoll_look(area, &looks));
    return rc;
}

/* *posted: the operation, 0: not begun. */
static inline __attribute__((always_inline)) int exchange(const row *row, weft_shmcoll *area, const weft_shmcoll_short *same,
                                                          const weft_coll *args, uint32_t looks, uint64_t *posted)
{
    uint32_t ahead = weft_shmcoll_ahead(area, same->bytes);
    bool writes = row->writers == ALL || same->written, is_one_way = row->writers != ALL;
    uint64_t s;
    int rc;

    weft_shmcoll_note_stream(area, is_one_way ? weft_shmcoll_stream_of(args->root, row->writers == ROOT) : 0);
    area->relays_since = 0;
    area->pauses = !area->is_oversubscribed;
    while (weft_unlikely(!(s = weft_shmcoll_begin_as(area, ahead, writes, looks == UINT32_MAX))))
        if (area->rc || !weft_shmcoll_look(area, &looks))
            return area->rc ? area->rc : WEFT_AGAIN;
    *posted = s;
    if (same->written)
        copy(weft_shmcoll_line_of(area, area->rank, s)->data, own_data(same, args), same->written);
    weft_shmcoll_post(area, s, row->writers == ROOT && writes ? WEFT_SHMCOLL_ALL : WEFT_SHMCOLL_NONE);
    if (row->writers == ALL && area->pauses)
        weft_cpu_relax(); /* all have posted about now: to look at once takes the others' lines before they have written them */
    if (is_among(row->readers, (uint32_t)args->root == area->rank)) {
        if (weft_unlikely(rc = await(row, area, args, s, looks)))
            return rc;
        if (row->writers == ROOT) {
            weft_shmcoll_on_root_posted(area, s, ahead);
            copy(args->recvbuf, weft_shmcoll_line_of(area, (uint32_t)args->root, s)->data + same->part, same->bytes);
        } else if (same->kernel) {
            fold(area, same, args, s);
        } else if (same->bytes) {
            read_all(area, same, args, s);
        }
    }
    if (same->has_own)
        copy((char *)args->recvbuf + same->own_to, (const char *)args->sendbuf + same->own_from, same->bytes);
    return WEFT_OK;
}

/* What a member of a scan reads and writes. */
static inline void relay_scan(const weft_shmcoll *area, const weft_shmcoll_short *same, const weft_coll *args, uint64_t s)
{
    const char *mine = own_data(same, args);

    if (area->rank)
        same->kernel(weft_shmcoll_line_of(area, area->rank - 1, s)->data, mine, args->recvbuf, same->elements);
    else if (mine != args->recvbuf)
        copy(args->recvbuf, mine, same->bytes);
    if (area->rank + 1 < area->ranks)
        copy(weft_shmcoll_line_of(area, area->rank, s)->data, args->recvbuf, same->bytes);
}

static inline void relay_exscan(const weft_shmcoll *area, const weft_shmcoll_short *same, const weft_coll *args, uint64_t s)
{
    char *line = weft_shmcoll_line_of(area, area->rank, s)->data;
    bool has_next = area->rank + 1 < area->ranks;

    if (has_next) /* first: in place, the lower prefix overwrites them */
        copy(line, own_data(same, args), same->bytes);
    if (!area->rank)
        return;
    copy(args->recvbuf, weft_shmcoll_line_of(area, area->rank - 1, s)->data, same->bytes);
    if (has_next)
        same->kernel(args->recvbuf, line, line, same->elements);
}

static inline __attribute__((always_inline)) int relay(weft_shmcoll *area, const weft_shmcoll_short *same, const weft_coll *args,
                                                       bool is_scan, uint32_t looks)
{
    bool may_wait = looks == UINT32_MAX;
    uint32_t ahead = weft_shmcoll_ahead(area, same->bytes);
    uint64_t s = area->op + 1;
    int rc = WEFT_OK;

    weft_shmcoll_note_stream(area, 0);
    area->relays_since = area->relays_since ? area->relays_since : s;
    area->pauses = !area->is_oversubscribed;
    if (area->rank) {
        weft_shmcoll_back_off(area, area->rank - 1, s);
        do
            rc = weft_shmcoll_await_as(area, area->rank - 1, s, may_wait);
        while (weft_unlikely(rc == WEFT_AGAIN) && weft_shmcoll_look(area, &looks));
    }
    if (weft_unlikely(rc))
        return rc;
    while (weft_unlikely(!(s = weft_shmcoll_begin_relay_as(area, ahead, may_wait))))
        if (area->rc || !weft_shmcoll_look(area, &looks))
            return area->rc ? area->rc : WEFT_AGAIN;
    if (is_scan)
        relay_scan(area, same, args, s);
    else
        relay_exscan(area, same, args, s);
    weft_shmcoll_post_relay(area, s);
    return WEFT_OK;
}

/* Inlined for each kind, so that its row is constant. */
static inline __attribute__((always_inline)) int perform(weft_shmcoll *area, enum weft_coll_kind kind, const weft_shmcoll_short *same,
                                                         const weft_coll *args, uint32_t looks, uint64_t *posted)
{
    *posted = 0;
    switch (kind) {
#define KIND(kind) \
    case kind: \
        return exchange(&rows[kind], area, same, args, looks, posted)
        KIND(WEFT_COLL_BARRIER);
        KIND(WEFT_COLL_BCAST);
        KIND(WEFT_COLL_REDUCE);
        KIND(WEFT_COLL_ALLREDUCE);
        KIND(WEFT_COLL_GATHER);
        KIND(WEFT_COLL_SCATTER);
        KIND(WEFT_COLL_ALLGATHER);
        KIND(WEFT_COLL_ALLTOALL);
        KIND(WEFT_COLL_REDUCE_SCATTER_BLOCK);
#undef KIND
    case WEFT_COLL_SCAN:
        return relay(area, same, args, true, looks);
    default:
        return relay(area, same, args, false, looks);
    }
}

int weft_shmcoll_run_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_shmcoll_short *same, const weft_coll *args)
{
    uint64_t posted;

    weft_shmcoll_log_call(area, weft_shmcoll_short_call(same, args));
    area->call_hash = area->log_hash;
    return perform(area, kind, same, args, UINT32_MAX, &posted);
}

/* The call goes on by rounds: its only round has been written by operation `posted`, or not. That the call is opened twice has no effect: it
 * has one round whether it is part of a stream or not. */
static __attribute__((noinline)) int go_on(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, uint64_t posted)
{
    int rc = weft_shmcoll_open(area, kind, args);

    if (rc)
        return weft_shmcoll_stop(area, rc);
    if (posted)
        weft_shmcoll_set_written(area->exchange, posted);
    return WEFT_AGAIN;
}

int weft_shmcoll_try_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_shmcoll_short *same, const weft_coll *args,
                           uint32_t looks)
{
    uint64_t posted;
    int rc = perform(area, kind, same, args, looks, &posted);

    return weft_likely(rc != WEFT_AGAIN) ? rc : go_on(area, kind, args, posted);
}

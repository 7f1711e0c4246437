/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll: the collectives through a node area (shmcoll.h). Called by coll.c and hier.c.
 * All are one loop (run_exchange) over rounds of at most a slot: a writer writes its data and posts, a reader waits for the writers and
 * reads. A kind of collective says who writes and reads, and which part of its buffers (struct kind_row). Where all write and read, a
 * round is read after the next ones are written, so that both sides copy at the same time; in rooted kinds a writer runs ahead.
 * Scans and exscans relay: a member waits for the next lower one, reads its prefix, and writes and posts its own in the same operation.
 * A fold is a second operation of a round: each member reduces its block of the slots and writes the result, which all read.
 */
#include "collectives/shmcoll.h"

#include "base/status.h"
#include "collectives/shmcoll_check.h"
#include "collectives/shmcoll_exchange.h"
#include "collectives/shmcoll_wait.h"

/* Up to this length each member reduces whole vectors, with one wait instead of two. Where ranks share CPUs a wait costs more. */
#define FLAT_BYTES 2048
#define FLAT_SHARED_BYTES 24576
#define LAG WEFT_SHMCOLL_LAG
#define PREFETCH_BYTES 16384     /* longest chunk for which the next slot is prefetched, bytes */
#define PREFETCH_ALL_BYTES 32768 /* the same if all members write */
#define PREFETCH_LATE_BYTES 4096 /* longest chunk for which looks pause and the prefetch follows the read, where all members write */
#define ATTEMPT_ROUNDS 16        /* an attempted call has at most so many */
#define RECENT WEFT_SHMCOLL_RECENT

enum members { ALL, ROOT, OTHERS };

typedef struct weft_shmcoll_row {
    enum members writers, readers; /* unused by kinds that relay */
    uint32_t lag; /* rounds between write and read */
    weft_shmcoll_open_call *open;
    weft_shmcoll_move_call *write, *read; /* NULL: no data */
    weft_shmcoll_move_call *relay; /* instead of both: reads the next lower member's data, and writes this member's, which depend on it */
    weft_shmcoll_fold_call *fold;
    weft_shmcoll_close_call *close;
    weft_shmcoll_goes_on_call *goes_on;  /* NULL: never */
    const struct weft_shmcoll_row *rest; /* how it goes on */
} kind_row;

static inline bool is_among(const weft_shmcoll_exchange *ex, enum members who)
{
    return who == ALL || (who == ROOT) == weft_shmcoll_is_root(ex);
}

/* A root that reduces in place has its vector in the result's memory: it writes it into its slot. */
static inline bool is_writer(const kind_row *row, const weft_shmcoll_exchange *ex)
{
    return is_among(ex, row->writers) || (row->writers == OTHERS && ex->args->in_place && ex->args->op);
}

/* Prefetches the slot of the next operation for writing. The readers of its last data hold its lines; to get them back takes most of the
 * time of a short call. */
static inline void prefetch_next(const kind_row *row, const weft_shmcoll_exchange *ex, uint64_t s)
{
    const weft_shmcoll *area = ex->area;
    const char *place;

    if (ex->chunk <= WEFT_SHMCOLL_INLINE)
        return;
    if (ex->chunk > (row->writers == ALL && !row->relay ? PREFETCH_ALL_BYTES : PREFETCH_BYTES))
        return;
    place = weft_shmcoll_place(area, area->rank, s + 1, ex->chunk);
    for (uint64_t at = 0; at < ex->chunk; at += WEFT_LINE)
        weft_prefetch_write(place + at);
}

/* Where all members write and read, the prefetch of short data follows the read. Before the read it takes the CPU's outstanding requests for
 * lines, and the read waits for them. */
static inline bool prefetches_late(const kind_row *row, const weft_shmcoll_exchange *ex)
{
    return row->writers == ALL && ex->chunk <= PREFETCH_LATE_BYTES;
}

static inline __attribute__((always_inline)) int write_round(const kind_row *row, weft_shmcoll_exchange *ex, uint64_t round, bool may_wait)
{
    weft_shmcoll *area = ex->area;
    bool writes = is_writer(row, ex);
    uint64_t s = weft_shmcoll_begin_as(area, ex->ahead, writes, may_wait);

    if (weft_unlikely(!s))
        return area->rc ? area->rc : WEFT_AGAIN;
    if (row->write && writes)
        row->write(ex, round, s);
    weft_shmcoll_post(area, s, row->writers == ROOT && writes ? WEFT_SHMCOLL_ALL : WEFT_SHMCOLL_NONE);
    ex->written[round % RECENT] = s;
    if (row->write && writes && !prefetches_late(row, ex))
        prefetch_next(row, ex, s);
    return WEFT_OK;
}

static inline int fold_round(const kind_row *row, weft_shmcoll_exchange *ex, uint64_t round, bool may_wait)
{
    weft_shmcoll *area = ex->area;
    uint64_t written = ex->written[round % RECENT], s;
    int rc = weft_shmcoll_await_all_as(area, written, may_wait);

    if (rc)
        return rc;
    s = weft_shmcoll_begin_as(area, ex->ahead, true, may_wait);
    if (weft_unlikely(!s))
        return area->rc ? area->rc : WEFT_AGAIN;
    row->fold(ex, round, written, s);
    weft_shmcoll_post(area, s, WEFT_SHMCOLL_NONE);
    ex->folded[round % RECENT] = s;
    return WEFT_OK;
}

static inline int read_round(const kind_row *row, weft_shmcoll_exchange *ex, uint64_t round, bool may_wait)
{
    weft_shmcoll *area = ex->area;
    int rc;
    uint64_t s = row->fold ? ex->folded[round % RECENT] : ex->written[round % RECENT];

    if (!is_among(ex, row->readers))
        return WEFT_OK;
    rc = row->writers == ROOT ? weft_shmcoll_await_as(area, (uint32_t)ex->args->root, s, may_wait)
                              : weft_shmcoll_await_all_as(area, s, may_wait);
    if (weft_unlikely(rc))
        return rc;
    if (row->writers == ROOT)
        weft_shmcoll_on_root_posted(area, s, ex->ahead);
    if (row->read)
        row->read(ex, round, s);
    if (prefetches_late(row, ex))
        prefetch_next(row, ex, area->op);
    return WEFT_OK;
}

static inline int relay_round(const kind_row *row, weft_shmcoll_exchange *ex, uint64_t round, bool may_wait)
{
    weft_shmcoll *area = ex->area;
    uint64_t s = area->op + 1;
    int rc;

    if (area->rank)
        weft_shmcoll_back_off(area, area->rank - 1, s);
    rc = area->rank ? weft_shmcoll_await_as(area, area->rank - 1, s, may_wait) : WEFT_OK;
    if (weft_unlikely(rc))
        return rc;
    s = weft_shmcoll_begin_relay_as(area, ex->ahead, may_wait);
    if (weft_unlikely(!s))
        return area->rc ? area->rc : WEFT_AGAIN;
    row->relay(ex, round, s);
    weft_shmcoll_post_relay(area, s);
    prefetch_next(row, ex, s);
    return WEFT_OK;
}

static inline uint64_t lag_of(const kind_row *row, const weft_shmcoll_exchange *ex)
{
    if (row->fold)
        return LAG;
    return ex->rounds == 1 ? 0 : row->lag; /* no round to be ahead of */
}

static inline __attribute__((always_inline)) int run_turn(const kind_row *row, weft_shmcoll_exchange *ex, uint64_t lag,
                                                           weft_shmcoll_cursor *at, bool may_wait)
{
    uint64_t i = at->turn;
    int rc = WEFT_OK;

    if (row->relay) {
        if (!(rc = relay_round(row, ex, i, may_wait)))
            at->turn++;
        return rc;
    }
    if (at->phase == WEFT_SHMCOLL_WRITE && i < ex->rounds && (rc = write_round(row, ex, i, may_wait)))
        return rc;
    if (row->fold && at->phase <= WEFT_SHMCOLL_FOLD) {
        at->phase = WEFT_SHMCOLL_FOLD;
        if (i >= 1 && i <= ex->rounds && (rc = fold_round(row, ex, i - 1, may_wait)))
            return rc;
    }
    at->phase = WEFT_SHMCOLL_READ;
    if (i >= lag && (rc = read_round(row, ex, i - lag, may_wait)))
        return rc;
    at->phase = WEFT_SHMCOLL_WRITE;
    at->turn++;
    return WEFT_OK;
}

/* Sets area->stream and is_streaming. */
static inline void note_stream(const kind_row *row, weft_shmcoll *area, const weft_coll *args)
{
    bool is_one_way = !row->relay && row->writers != row->readers;

    weft_shmcoll_note_stream(area, is_one_way ? weft_shmcoll_stream_of(args->root, row->writers == ROOT) : 0);
}

static inline int open_exchange(const kind_row *row, weft_shmcoll_exchange *ex, weft_shmcoll *area, const weft_coll *args, uint32_t parts)
{
    int rc;

    ex->area = area;
    ex->args = args;
    ex->parts = parts;
    ex->rounds = 1;
    ex->chunk = 0;
    ex->written[0] = 0;
    note_stream(row, area, args);
    rc = row->open ? row->open(ex) : WEFT_OK;
    ex->ahead = weft_shmcoll_ahead(area, ex->chunk);
    area->pauses = !area->is_oversubscribed && (ex->chunk <= PREFETCH_LATE_BYTES || (row->writers != row->readers && !row->relay));
    area->relays_since = !row->relay ? 0 : area->relays_since ? area->relays_since : area->op + 1;
    return rc;
}

/* The second kind of rounds of a call. */
static __attribute__((noinline)) int run_rest(const kind_row *row, weft_shmcoll_exchange *ex)
{
    weft_shmcoll_cursor at = {0, WEFT_SHMCOLL_WRITE};
    int rc = open_exchange(row, ex, ex->area, ex->args, 0);
    uint64_t lag = lag_of(row, ex);

    while (at.turn < ex->rounds + lag && !rc)
        rc = run_turn(row, ex, lag, &at, true);
    row->close(ex);
    return rc;
}

/* Inlined for each kind, so that its row is constant: a barrier, or 8 bytes, cost a few loads and stores. */
static inline __attribute__((always_inline)) int run_exchange(const kind_row *row, weft_shmcoll *area, const weft_coll *args,
                                                              uint32_t parts)
{
    weft_shmcoll_exchange ex;
    weft_shmcoll_cursor at = {0, WEFT_SHMCOLL_WRITE};
    int rc = open_exchange(row, &ex, area, args, parts);
    uint64_t lag;

    if (weft_unlikely(rc))
        return weft_shmcoll_stop(area, rc);
    lag = lag_of(row, &ex);
    while (at.turn < ex.rounds + lag && !rc)
        rc = run_turn(row, &ex, lag, &at, true);
    if (row->close)
        row->close(&ex);
    return row->goes_on && !rc && row->goes_on(&ex) ? run_rest(row->rest, &ex) : rc;
}

static inline __attribute__((always_inline)) int open_in_area(const kind_row *row, weft_shmcoll *area, const weft_coll *args,
                                                                uint32_t parts)
{
    weft_shmcoll_exchange *ex = area->exchange;

    ex->row = row;
    ex->at = (weft_shmcoll_cursor){0, WEFT_SHMCOLL_WRITE};
    return open_exchange(row, ex, area, args, parts);
}

/* Opens the call. Performs its rounds, if they are few, while the other members' posts for each come within so many looks. */
static inline __attribute__((always_inline)) int attempt_exchange(const kind_row *row, weft_shmcoll *area, const weft_coll *args,
                                                                  uint32_t parts, uint32_t looks)
{
    weft_shmcoll_exchange *ex = area->exchange;
    int rc = open_in_area(row, area, args, parts);
    uint32_t left = looks;
    uint64_t lag;

    if (weft_unlikely(rc))
        return weft_shmcoll_stop(area, rc);
    if (ex->rounds > ATTEMPT_ROUNDS || row->fold)
        return WEFT_AGAIN;
    lag = lag_of(row, ex);
    while (ex->at.turn < ex->rounds + lag) {
        rc = run_turn(row, ex, lag, &ex->at, false);
        if (weft_likely(!rc))
            left = looks;
        else if (rc != WEFT_AGAIN || !weft_shmcoll_look(area, &left))
            break;
    }
    if (!rc && row->goes_on && (area->left || area->damage || row->goes_on(ex)))
        return WEFT_AGAIN;
    if (rc != WEFT_AGAIN && row->close)
        row->close(ex);
    return rc;
}

/* RUN: blocking. OPEN: for weft_shmcoll_try. ATTEMPT: OPEN, and attempt_exchange. */
enum mode { RUN, OPEN, ATTEMPT };

static inline __attribute__((always_inline)) int perform_as(const kind_row *row, weft_shmcoll *area, const weft_coll *args, uint32_t parts,
                                                            enum mode mode, uint32_t looks)
{
    if (mode == RUN)
        return run_exchange(row, area, args, parts);
    return mode == OPEN ? open_in_area(row, area, args, parts) : attempt_exchange(row, area, args, parts, looks);
}

/* ---- kinds ---- */

static const kind_row barrier_row = {.writers = ALL, .readers = ALL}; /* writers, since readers compare their call_hash */
static const kind_row bcast_row = {.writers = ROOT, .readers = OTHERS, .open = weft_shmcoll_open_bcast,
    .write = weft_shmcoll_write_bcast, .read = weft_shmcoll_read_bcast};
static const kind_row reduce_row = {
    .writers = OTHERS, .readers = ROOT, .open = weft_shmcoll_open_reduce, .write = weft_shmcoll_write_vector,
    .read = weft_shmcoll_read_all_vectors, .close = weft_shmcoll_close_vectors};
static const kind_row flat_row = {
    .writers = ALL, .readers = ALL, .lag = LAG, .open = weft_shmcoll_open_vectors, .write = weft_shmcoll_write_vector,
    .read = weft_shmcoll_read_all_vectors,
    .close = weft_shmcoll_close_vectors};
static const kind_row fold_row = {
    .writers = ALL, .readers = ALL, .open = weft_shmcoll_open_vectors, .write = weft_shmcoll_write_chunk,
    .fold = weft_shmcoll_fold_chunk, .read = weft_shmcoll_read_chunk,
    .close = weft_shmcoll_close_vectors};
static const kind_row scan_row = {
    .open = weft_shmcoll_open_vectors, .relay = weft_shmcoll_relay_scan,
    .close = weft_shmcoll_close_vectors};
static const kind_row exscan_row = {
    .open = weft_shmcoll_open_vectors, .relay = weft_shmcoll_relay_exscan,
    .close = weft_shmcoll_close_vectors};
static const kind_row gather_row = {
    .writers = OTHERS, .readers = ROOT, .open = weft_shmcoll_open_gather, .write = weft_shmcoll_write_block,
    .read = weft_shmcoll_read_blocks, .close = weft_shmcoll_close_gather};
static const kind_row allgather_row = {
    .writers = ALL, .readers = ALL, .lag = LAG, .open = weft_shmcoll_open_allgather, .write = weft_shmcoll_write_block,
    .read = weft_shmcoll_read_blocks, .close = weft_shmcoll_copy_own_block};
static const kind_row scatter_row = {
    .writers = ROOT, .readers = OTHERS, .open = weft_shmcoll_open_scatter, .write = weft_shmcoll_write_parts,
    .read = weft_shmcoll_read_scatter, .close = weft_shmcoll_close_scatter};
static const kind_row alltoall_row = {
    .writers = ALL, .readers = ALL, .lag = LAG, .open = weft_shmcoll_open_alltoall, .write = weft_shmcoll_write_parts,
    .read = weft_shmcoll_read_alltoall,
    .close = weft_shmcoll_close_alltoall};
static const kind_row split_row = {
    .writers = ALL, .readers = ALL, .lag = LAG, .open = weft_shmcoll_open_split, .write = weft_shmcoll_write_split,
    .read = weft_shmcoll_read_own_block, .close = weft_shmcoll_close_vectors};
static const kind_row in_vector_row = {
    .writers = ALL, .readers = ALL, .lag = LAG, .open = weft_shmcoll_open_split, .write = weft_shmcoll_write_split,
    .read = weft_shmcoll_read_in_vector, .close = weft_shmcoll_close_vectors};
static const kind_row spread_row = {
    .writers = ALL, .readers = ALL, .lag = LAG, .open = weft_shmcoll_open_spread, .write = weft_shmcoll_write_spread,
    .read = weft_shmcoll_read_blocks};

static const kind_row alltoallv_rest_row = {
    .writers = ALL, .readers = ALL, .lag = LAG, .open = weft_shmcoll_open_rest, .write = weft_shmcoll_write_rest,
    .read = weft_shmcoll_read_rest, .close = weft_shmcoll_close_rest};
static const kind_row alltoallv_row = {
    .writers = ALL, .readers = ALL, .open = weft_shmcoll_open_alltoallv, .write = weft_shmcoll_write_alltoallv,
    .read = weft_shmcoll_read_alltoallv, .close = weft_shmcoll_close_alltoall,
    .goes_on = weft_shmcoll_alltoallv_goes_on, .rest = &alltoallv_rest_row};

/* The order of operands is the same both ways. */
static bool is_flat(const weft_shmcoll *area, const weft_coll *args)
{
    return args->recvcount * (uint64_t)args->recvtype->size <= (area->is_oversubscribed ? FLAT_SHARED_BYTES : FLAT_BYTES);
}

static inline __attribute__((always_inline)) int perform(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args,
                                                         enum mode mode, uint32_t looks)
{
    switch (kind) {
    case WEFT_COLL_BARRIER:
        return perform_as(&barrier_row, area, args, 0, mode, looks);
    case WEFT_COLL_BCAST:
        return perform_as(&bcast_row, area, args, 0, mode, looks);
    case WEFT_COLL_REDUCE:
        return perform_as(&reduce_row, area, args, 0, mode, looks);
    case WEFT_COLL_ALLREDUCE:
        return is_flat(area, args) ? perform_as(&flat_row, area, args, 0, mode, looks) : perform_as(&fold_row, area, args, 0, mode, looks);
    case WEFT_COLL_GATHER:
        return perform_as(&gather_row, area, args, 0, mode, looks);
    case WEFT_COLL_SCATTER:
        return perform_as(&scatter_row, area, args, 0, mode, looks);
    case WEFT_COLL_ALLGATHER:
    case WEFT_COLL_ALLGATHERV:
        return perform_as(&allgather_row, area, args, 0, mode, looks);
    case WEFT_COLL_ALLTOALL:
        return perform_as(&alltoall_row, area, args, 0, mode, looks);
    case WEFT_COLL_SCAN:
        return perform_as(&scan_row, area, args, 0, mode, looks);
    case WEFT_COLL_EXSCAN:
        return perform_as(&exscan_row, area, args, 0, mode, looks);
    case WEFT_COLL_REDUCE_SCATTER:
    case WEFT_COLL_REDUCE_SCATTER_BLOCK:
        return perform_as(&split_row, area, args, area->ranks, mode, looks);
    case WEFT_COLL_ALLTOALLV:
    case WEFT_COLL_ALLTOALLW:
        return perform_as(&alltoallv_row, area, args, 0, mode, looks);
    default:
        return weft_fail(WEFT_E_INTERN, "no collective %d", (int)kind);
    }
}

static inline int run(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args) { return perform(area, kind, args, RUN, 0); }

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

static void begin_half(weft_shmcoll *area, const weft_coll *args)
{
    area->kind = WEFT_COLL_ALLREDUCE;
    area->root = args->root;
    area->damage = 0;
}

int weft_shmcoll_reduce_scatter(weft_shmcoll *area, const weft_coll *args, uint32_t parts)
{
    int rc;

    begin_half(area, args);
    rc = run_exchange(&in_vector_row, area, args, parts);
    return rc ? rc : area->damage;
}

int weft_shmcoll_allgather(weft_shmcoll *area, const weft_coll *args, uint32_t parts)
{
    int rc;

    begin_half(area, args);
    rc = run_exchange(&spread_row, area, args, parts);
    return rc ? rc : area->damage;
}

int weft_shmcoll_publish(weft_shmcoll *area, weft_call call, uint32_t number, bool is_alone)
{
    if (area->rc)
        return weft_shmcoll_stop_error(area);
    weft_shmcoll_log_call(area, call);
    weft_shmcoll_log_number(area, number);
    if (is_alone) /* members that expect this call in the area would wait for this one */
        weft_shmcoll_wake_all(area);
    else
        area->call_hash = area->log_hash;
    return WEFT_OK;
}

int weft_shmcoll_run(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    if (weft_unlikely(area->rc))
        return weft_shmcoll_stop_error(area);
    weft_shmcoll_log_call(area, weft_call_of(kind, WEFT_CALL_BLOCKING, args,
                                             weft_coll_bytes(kind, args, args->root == (int)area->rank)));
    area->call_hash = area->log_hash;
    return weft_shmcoll_stage(area, kind, args);
}

int weft_shmcoll_run_alltoallv(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, uint32_t number)
{
    if (weft_unlikely(area->rc))
        return weft_shmcoll_stop_error(area);
    weft_shmcoll_log_call(area, call);
    weft_shmcoll_log_number(area, number);
    area->call_hash = area->log_hash;
    area->damage = 0;
    return run(area, kind, args);
}

/* ---- nonblocking calls ---- */

static inline void begin_call(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    area->left = 0;
    area->kind = kind;
    area->root = args->root;
    area->damage = 0;
}

int weft_shmcoll_open(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    begin_call(area, kind, args);
    return perform(area, kind, args, OPEN, 0);
}

int weft_shmcoll_open_and_try(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, uint32_t looks)
{
    begin_call(area, kind, args);
    return perform(area, kind, args, ATTEMPT, looks);
}

static void close_exchange(weft_shmcoll_exchange *ex)
{
    if (ex->row->close)
        ex->row->close(ex);
}

/* WEFT_AGAIN: the call goes on with its second kind of rounds. */
static int end_rounds(weft_shmcoll *area, weft_shmcoll_exchange *ex)
{
    int rc;

    close_exchange(ex);
    if (!ex->row->goes_on || !ex->row->goes_on(ex))
        return WEFT_OK;
    ex->row = ex->row->rest;
    ex->at = (weft_shmcoll_cursor){0, WEFT_SHMCOLL_WRITE};
    rc = open_exchange(ex->row, ex, area, ex->args, 0);
    return rc ? weft_shmcoll_stop(area, rc) : WEFT_AGAIN;
}

int weft_shmcoll_try(weft_shmcoll *area, bool *has_moved)
{
    weft_shmcoll_exchange *ex = area->exchange;
    uint64_t lag = lag_of(ex->row, ex);
    weft_shmcoll_cursor before = ex->at;
    int rc = ex->at.turn < ex->rounds + lag ? run_turn(ex->row, ex, lag, &ex->at, false) : WEFT_OK;

    *has_moved = ex->at.turn != before.turn || ex->at.phase != before.phase;
    if (!rc && ex->at.turn < ex->rounds + lag)
        return WEFT_AGAIN;
    if (!rc)
        return end_rounds(area, ex);
    if (rc != WEFT_AGAIN)
        close_exchange(ex);
    return rc;
}

void weft_shmcoll_abandon(weft_shmcoll *area) { close_exchange(area->exchange); }

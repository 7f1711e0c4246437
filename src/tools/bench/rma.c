/* SPDX-License-Identifier: BSD-3-Clause
 * rma: one-sided tests of pairs of ranks: latency of one operation with each synchronization, bandwidth and rate of many before a flush.
 * The leader is the origin, its partner the target, which calls MPI only to synchronize. A window spans the two; MPI_Win_allocate gives its
 * memory. With --rotate the origin's buffer and the place in the window rotate together.
 */
#include "buffer.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum
{
    TAG_PAIR = 1,
    WORD = 8, /* bytes of the atomic calls */
    ORIGIN = 0,
    TARGET = 1
};

typedef enum synchronization
{
    FLUSH, /* within one MPI_Win_lock_all */
    LOCK,
    FENCE,
    PSCW
} synchronization;

static const char *const synchronizations[] = {"flush", "lock", "fence", "pscw", NULL};

struct bench_rma_state
{
    MPI_Comm comm;   /* origin and target */
    MPI_Group other; /* the other rank */
    MPI_Win win;
    unsigned char *memory; /* this rank's part of the window */
    bool put_result;       /* of MPI_Compare_and_swap: the latest swap stored 1 */
};

/* Whether the pair goes on: neither rank has failed. */
static bool agrees(const bench_case *c, int failed)
{
    int other = 1;

    MPI_Sendrecv(&failed, 1, MPI_INT, c->partner, TAG_PAIR, &other, 1, MPI_INT, c->partner, TAG_PAIR, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return !failed && !other;
}

static size_t window_bytes(const bench_case *c)
{
    return c->out.slot_bytes * c->out.slots + (size_t)BENCH_GUARD;
}

static int open_pair(bench_case *c)
{
    struct bench_rma_state *s = c->rma;
    MPI_Group all, pair;
    int ranks[2] = {c->is_leader ? c->rank : c->partner, c->is_leader ? c->partner : c->rank}, other = c->is_leader ? TARGET : ORIGIN;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, ranks, &pair);
    MPI_Comm_create_group(MPI_COMM_WORLD, pair, TAG_PAIR, &s->comm);
    MPI_Group_incl(pair, 1, &other, &s->other);
    MPI_Group_free(&pair);
    MPI_Group_free(&all);
    MPI_Win_allocate((MPI_Aint)window_bytes(c), 1, MPI_INFO_NULL, s->comm, &s->memory, &s->win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other == TARGET ? ORIGIN : TARGET, 0, s->win);
    memset(s->memory, 0, window_bytes(c));
    MPI_Win_unlock(other == TARGET ? ORIGIN : TARGET, s->win);
    MPI_Barrier(s->comm);
    return 0;
}

static bool is_bulk(const bench_case *c)
{
    return c->test->figure != BENCH_MICROSECONDS;
}

static int open_rma(bench_case *c)
{
    int failed = bench_buffer_validation(c, 1) || bench_buffer_open(c, (size_t)c->bytes, (size_t)c->bytes);

    c->rma = calloc(1, sizeof *c->rma);
    if (!agrees(c, failed || !c->rma)) {
        return -1;
    }
    if (is_bulk(c)) {
        c->payload = (double)c->options->window * (c->test->figure == BENCH_GB_PER_S ? (double)c->bytes : 1) * (c->ranks / 2);
    }
    return open_pair(c);
}

static void close_rma(bench_case *c)
{
    if (c->rma && c->rma->memory) {
        MPI_Win_free(&c->rma->win);
        MPI_Group_free(&c->rma->other);
        MPI_Comm_free(&c->rma->comm);
    }
    free(c->rma);
    c->rma = NULL;
    bench_buffer_close(c);
}

static size_t memory(const bench_case *c)
{
    return 2 * bench_buffer_memory(c, (size_t)c->bytes, (size_t)c->bytes);
}

/* The call of a test: from or to `near`; `far`: displacement at the target. */
static void operate(bench_case *c, unsigned char *near, unsigned char *result, MPI_Aint far)
{
    MPI_Win win = c->rma->win;
    int n = (int)c->bytes;
    static const int64_t values[2] = {0, 1};

    if (c->test == &bench_put || c->test == &bench_put_bandwidth || c->test == &bench_put_rate) {
        MPI_Put(near, n, MPI_BYTE, TARGET, far, n, MPI_BYTE, win);
    } else if (c->test == &bench_get || c->test == &bench_get_bandwidth || c->test == &bench_get_rate) {
        MPI_Get(result, n, MPI_BYTE, TARGET, far, n, MPI_BYTE, win);
    } else if (c->test == &bench_accumulate) {
        MPI_Accumulate(near, n / WORD, MPI_INT64_T, TARGET, far, n / WORD, MPI_INT64_T, MPI_SUM, win);
    } else if (c->test == &bench_fetch_and_op) {
        MPI_Fetch_and_op(near, result, MPI_INT64_T, TARGET, far, MPI_SUM, win);
    } else {
        MPI_Compare_and_swap(&values[!c->rma->put_result], &values[c->rma->put_result], result, MPI_INT64_T, TARGET, far, win);
        c->rma->put_result = !c->rma->put_result;
    }
}

static void begin(const bench_case *c)
{
    const struct bench_rma_state *s = c->rma;

    if (c->variant == LOCK && c->is_leader) {
        MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, s->win);
    } else if (c->variant == FENCE) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, s->win);
    } else if (c->variant == PSCW && c->is_leader) {
        MPI_Win_start(s->other, 0, s->win);
    } else if (c->variant == PSCW) {
        MPI_Win_post(s->other, 0, s->win);
    }
}

static void end(const bench_case *c)
{
    const struct bench_rma_state *s = c->rma;

    if (c->variant == FLUSH && c->is_leader) {
        MPI_Win_flush(TARGET, s->win);
    } else if (c->variant == LOCK && c->is_leader) {
        MPI_Win_unlock(TARGET, s->win);
    } else if (c->variant == FENCE) {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, s->win);
    } else if (c->variant == PSCW && c->is_leader) {
        MPI_Win_complete(s->win);
    } else if (c->variant == PSCW) {
        MPI_Win_wait(s->win);
    }
}

/* A place in the window, beside the next slot of the origin's buffer. */
static void one(bench_case *c)
{
    MPI_Aint far = (MPI_Aint)(c->out.at * c->out.slot_bytes);

    operate(c, bench_buffer_next(&c->out), bench_buffer_next(&c->in), far);
}

static void hold(const bench_case *c, bool open)
{
    if (c->variant != FLUSH || !c->is_leader) {
        return;
    }
    if (open) {
        MPI_Win_lock_all(0, c->rma->win);
    } else {
        MPI_Win_unlock_all(c->rma->win);
    }
}

/* Seconds of the iterations; the epoch of the flushes opens before and closes behind. */
static double run_rma(bench_case *c, long iterations)
{
    long each = is_bulk(c) ? c->options->window : 1;
    double start;

    hold(c, true);
    start = MPI_Wtime();
    for (long i = 0; i < iterations && (c->is_leader || c->variant >= FENCE); i++) {
        begin(c);
        for (long k = 0; k < each && c->is_leader; k++) {
            one(c);
        }
        end(c);
    }
    start = MPI_Wtime() - start;
    hold(c, false);
    MPI_Barrier(c->rma->comm);
    return start;
}

/* --- validated rounds ------------------------------------------------------------------------------------------------ */

/* Seed of what the origin sends and of what is in the target's memory before. */
static uint64_t seed_of(const bench_case *c, int role, int round)
{
    int origin = c->is_leader ? c->rank : c->partner, target = c->is_leader ? c->partner : c->rank;

    return role == ORIGIN ? bench_check_seed(origin, target, round, 0) : bench_check_seed(target, origin, round, 0);
}

static bool returns_data(const bench_case *c)
{
    return c->test != &bench_put && c->test != &bench_put_bandwidth && c->test != &bench_put_rate && c->test != &bench_accumulate;
}

/* What the target's memory holds before: nothing for put and accumulate; its pattern, which is then fetched, for the others. */
static void check_prepare(bench_case *c, int round)
{
    size_t n = (size_t)c->bytes;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, c->is_leader ? ORIGIN : TARGET, 0, c->rma->win);
    bench_check_blank(c->rma->memory, n);
    if (c->test == &bench_accumulate || c->test == &bench_compare_and_swap) {
        memset(c->rma->memory, 0, n);
    } else if (returns_data(c)) {
        bench_check_fill(c->rma->memory, n, seed_of(c, TARGET, round));
    }
    MPI_Win_unlock(c->is_leader ? ORIGIN : TARGET, c->rma->win);
    c->rma->put_result = false;
    bench_check_fill(c->check_out, n, seed_of(c, ORIGIN, round));
    bench_check_blank(c->check_in, n);
    MPI_Barrier(c->rma->comm);
}

static void check_word(bench_case *c, const char *what, const unsigned char *at, uint64_t must, int round)
{
    uint64_t is;

    memcpy(&is, at, WORD);
    if (is != must) {
        bench_check_fail(c, "round %d: %s is 0x%016llx, expected 0x%016llx", round, what, (unsigned long long)is, (unsigned long long)must);
    }
}

static uint64_t word_of(uint64_t seed)
{
    unsigned char bytes[WORD];
    uint64_t word;

    bench_check_fill(bytes, WORD, seed);
    memcpy(&word, bytes, WORD);
    return word;
}

static void check_target(bench_case *c, int round)
{
    size_t n = (size_t)c->bytes;

    MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, c->rma->win);
    if (c->test == &bench_fetch_and_op) {
        check_word(c, "the target's sum", c->rma->memory, word_of(seed_of(c, TARGET, round)) + word_of(seed_of(c, ORIGIN, round)), round);
    } else if (c->test == &bench_compare_and_swap) {
        check_word(c, "the target's word", c->rma->memory, 1, round);
    } else if (!returns_data(c)) {
        bench_check_message(c, c->rma->memory, n, c->partner, c->rank, round, 0);
    }
    MPI_Win_unlock(TARGET, c->rma->win);
}

static void check_rma(bench_case *c, int round)
{
    check_prepare(c, round);
    hold(c, true);
    begin(c);
    if (c->is_leader) {
        operate(c, c->check_out, c->check_in, 0);
    }
    end(c);
    hold(c, false);
    MPI_Barrier(c->rma->comm);
    if (!c->is_leader) {
        check_target(c, round);
    } else if (c->test == &bench_compare_and_swap) {
        check_word(c, "the old value", c->check_in, 0, round);
    } else if (returns_data(c)) {
        bench_check_message(c, c->check_in, (size_t)c->bytes, c->partner, c->rank, round, 0);
    }
    MPI_Barrier(c->rma->comm);
}

#define RMA_TEST(test_name, what, unit, least, most, step, kinds) \
    const bench_test bench_##test_name = { \
        .name = #test_name, .help = what, .figure = unit, .pairs = true, .min_bytes = least, .max_bytes = most, .unit_bytes = step, \
        .variants = kinds, .memory = memory, .open = open_rma, .run = run_rma, .check = check_rma, .close = close_rma, \
    }

RMA_TEST(put, "one put and its completion, by each synchronization", BENCH_MICROSECONDS, 8, 4 << 20, 1, synchronizations);
RMA_TEST(get, "one get and its completion, by each synchronization", BENCH_MICROSECONDS, 8, 4 << 20, 1, synchronizations);
RMA_TEST(accumulate, "one sum of 8-byte integers and its completion, by each synchronization", BENCH_MICROSECONDS, 8, 1 << 16, WORD,
         synchronizations);
RMA_TEST(fetch_and_op, "one fetch-and-add and its completion, by each synchronization", BENCH_MICROSECONDS, WORD, WORD, 0,
         synchronizations);
RMA_TEST(compare_and_swap, "one compare-and-swap and its completion, by each synchronization", BENCH_MICROSECONDS, WORD, WORD, 0,
         synchronizations);
RMA_TEST(put_bandwidth, "windows of puts in one direction, each completed by a flush", BENCH_GB_PER_S, 8, 4 << 20, 1, NULL);
RMA_TEST(get_bandwidth, "windows of gets in one direction, each completed by a flush", BENCH_GB_PER_S, 8, 4 << 20, 1, NULL);
RMA_TEST(put_rate, "puts per second, in windows completed by a flush", BENCH_MILLIONS_PER_S, 8, 8, 1, NULL);
RMA_TEST(get_rate, "gets per second, in windows completed by a flush", BENCH_MILLIONS_PER_S, 8, 8, 1, NULL);

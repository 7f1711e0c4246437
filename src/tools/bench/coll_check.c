/* SPDX-License-Identifier: BSD-3-Clause
 * coll_check: verification of collective operations. The patterns follow from an operation's shape (coll.h).
 * The root rotates from round to round unless the test fixes it.
 */
#include "check.h"
#include "coll.h"

#include <string.h>
#include <time.h>

/* One rank, another each round, enters late; no rank may leave earlier. Times are compared on one host only (no common clock). */
static void check_barrier(bench_case *c, int round)
{
    char local[MPI_MAX_PROCESSOR_NAME] = "", first[MPI_MAX_PROCESSOR_NAME] = "";
    struct timespec nap = {0, 2000000};
    double times[2], max[2];
    int n = 0, elsewhere, anywhere = 0;

    MPI_Get_processor_name(local, &n);
    memcpy(first, local, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    elsewhere = strcmp(first, local) != 0;
    MPI_Allreduce(&elsewhere, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (round % c->ranks == c->rank) {
        nanosleep(&nap, NULL);
    }
    times[0] = bench_seconds();
    bench_coll_perform(c, 0);
    times[1] = -bench_seconds();
    MPI_Allreduce(times, max, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (!anywhere && -max[1] < max[0]) {
        bench_check_fail(c, "round %d: a rank left the barrier %.1f us before the last one entered", round,
                         (max[0] + max[1]) * 1e6);
    }
}

/* An integer, so that a sum is exact in any order. */
static double term(int rank, int round, long i)
{
    return (double)(rank + 1) * (double)((i * 7 + round) % 1009 + 1);
}

/* What element i of all contributions sums to on this rank. */
static double sum(const bench_case *c, int round, long i)
{
    bench_fold fold = c->test->operation->fold;
    int ranks = fold == OF_ALL ? c->ranks : fold == UP_TO_ME ? c->rank + 1 : c->rank;

    return term(0, round, i) * ((double)ranks * (ranks + 1) / 2);
}

static bool sends(const bench_case *c, int root)
{
    return c->test->operation->rooted != ROOT_SENDS || c->rank == root;
}

static bool receives(const bench_case *c, int root)
{
    return c->test->operation->rooted != ROOT_RECEIVES || c->rank == root;
}

/* Seed of a block that is sent to one rank (`to`, by a rank that sends a block to each), or one block to all. */
static uint64_t seed(const bench_case *c, int from, int to, int round)
{
    return bench_check_seed(from, c->test->operation->out == EACH ? to : 0, round, 0);
}

static void fill(bench_case *c, int round, int root)
{
    const struct bench_operation *op = c->test->operation;
    size_t n = (size_t)c->bytes;
    int blocks = bench_coll_blocks(c, op->out);

    bench_check_blank(c->in.base, n * (size_t)bench_coll_blocks(c, op->in));
    bench_check_blank(c->out.base, n * (size_t)blocks);
    if (op->fold) {
        double *out = (double *)(void *)c->out.base;
        for (long i = 0; i < blocks * c->bytes / (long)sizeof(double); i++) {
            out[i] = term(c->rank, round, i);
        }
        return;
    }
    for (int b = 0; b < blocks && sends(c, root); b++) {
        uint64_t s = op->out == TWO ? bench_check_seed(c->rank, c->coll->neighbours[b], round, b) : seed(c, c->rank, b, round);
        bench_check_fill(c->out.base + (size_t)b * n, n, s);
    }
    if (op->out == NOTHING && c->rank == root) {
        bench_check_fill(c->in.base, n, seed(c, root, 0, round));
    }
}

/* What arrives from the left was its sender's block to the right.
 * From the last block to the first: a verified block is blanked and becomes the guard of the one before it. */
static void verify_blocks(bench_case *c, int round, int root)
{
    const struct bench_operation *op = c->test->operation;
    size_t n = (size_t)c->bytes;

    for (int b = bench_coll_blocks(c, op->in) - 1; b >= 0; b--) {
        int from = op->in == TWO ? c->coll->neighbours[b] : op->in == EACH ? b : root;
        int to = op->out == EACH || op->out == TWO ? c->rank : 0;
        bench_check_message(c, c->in.base + (size_t)b * n, n, from, to, round, op->out == TWO ? 1 - b : 0);
        bench_check_blank(c->in.base + (size_t)b * n, n);
    }
}

static void verify_sums(bench_case *c, int round)
{
    const struct bench_operation *op = c->test->operation;
    const double *in = (const double *)(const void *)c->in.base;
    long n = c->bytes / (long)sizeof(double), first = op->out == EACH ? c->rank * n : 0;
    bool defined = op->fold != BELOW_ME || c->rank; /* rank 0 of exscan gets nothing */

    for (long i = 0; i < n && defined; i++) {
        if (in[i] != sum(c, round, first + i)) {
            bench_check_fail(c, "round %d: element %ld of %ld is %.17g, expected %.17g", round, i, n, in[i],
                             sum(c, round, first + i));
            break;
        }
    }
    for (size_t i = 0; i < BENCH_GUARD; i++) {
        if (c->in.base[(size_t)c->bytes + i] != 0xEE) {
            bench_check_fail(c, "round %d: byte %zu behind the result was overwritten", round, i);
            break;
        }
    }
}

/* FNV-1a. */
static uint64_t digest(const unsigned char *at, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < bytes; i++) {
        h = (h ^ at[i]) * 0x100000001b3u;
    }
    return h;
}

void bench_coll_check(bench_case *c, int round)
{
    const struct bench_operation *op = c->test->operation;
    size_t out_bytes = (size_t)c->bytes * (size_t)bench_coll_blocks(c, op->out) + BENCH_GUARD;
    int root = c->test->fixed_root || op->rooted == NO_ROOT ? 0 : round % c->ranks;
    uint64_t before;

    bench_coll_prepare(c);
    if (op->in == NOTHING) {
        check_barrier(c, round);
        return;
    }
    fill(c, round, root);
    c->coll->call.out = c->out.base;
    c->coll->call.in = c->in.base;
    before = digest(c->out.base, out_bytes);
    bench_coll_perform(c, root);
    if (digest(c->out.base, out_bytes) != before) {
        bench_check_fail(c, "round %d: the send buffer was changed", round);
    }
    if (receives(c, root)) {
        if (op->fold) {
            verify_sums(c, round);
        } else {
            verify_blocks(c, round, root);
        }
    }
}

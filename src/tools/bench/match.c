/* SPDX-License-Identifier: BSD-3-Clause
 * match: tests of matching: latency behind many posted receives, cost of a receive from many unexpected messages.
 */
#include "buffer.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum
{
    TAG_DATA = 1,
    TAG_GO = 2,
    TAG_WAITING = 16 /* and up: messages of the long queue, one tag each */
};

static const char *const posted_variants[] = {"none", "posted", NULL};

static size_t queue_memory(const bench_case *c)
{
    size_t bytes = bench_check_stride(c->bytes) * (size_t)(c->options->depth + 1);

    return bench_buffer_memory(c, bytes, bytes);
}

/* Each arena is one slot here, split into --depth messages and one more for the ping-pong. */
static unsigned char *slot(const bench_case *c, const bench_arena *a, long i)
{
    return a->base + (size_t)i * bench_check_stride(c->bytes);
}

static int queue_open(bench_case *c)
{
    size_t bytes = bench_check_stride(c->bytes) * (size_t)(c->options->depth + 1);

    if (bench_buffer_requests(c, c->options->depth + 1)) {
        return -1;
    }
    return bench_buffer_open(c, bytes, bytes);
}

static void slots_fill(bench_case *c, int round)
{
    for (long i = 0; i < c->options->depth; i++) {
        bench_check_fill(slot(c, &c->out, i), (size_t)c->bytes, bench_check_seed(c->rank, c->partner, round, i));
        bench_check_blank(slot(c, &c->in, i), (size_t)c->bytes);
    }
}

static long posted_depth(const bench_case *c)
{
    return c->variant ? c->options->depth : 0;
}

static int posted_open(bench_case *c)
{
    c->share = 0.5;
    if (queue_open(c)) {
        return -1;
    }
    slots_fill(c, 0);
    return 0;
}

/* Not in open: if the partner is out of memory, these receives would never match. */
static void posted_post(bench_case *c)
{
    for (long i = 0; i < posted_depth(c) && !c->posted; i++) {
        MPI_Irecv(slot(c, &c->in, i), (int)c->bytes, MPI_BYTE, c->partner, TAG_WAITING + (int)i, MPI_COMM_WORLD, &c->requests[i]);
    }
    c->posted = true;
}

static double posted_run(bench_case *c, long iterations)
{
    unsigned char *out = slot(c, &c->out, c->options->depth), *in = slot(c, &c->in, c->options->depth);
    int n = (int)c->bytes, to = c->partner;
    double start;

    posted_post(c);
    start = MPI_Wtime();
    for (long i = 0; i < iterations; i++) {
        if (c->is_leader) {
            MPI_Send(out, n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(in, n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

static void posted_check(bench_case *c, int round)
{
    long at = c->options->depth;
    unsigned char *out = slot(c, &c->out, at), *in = slot(c, &c->in, at);
    size_t n = (size_t)c->bytes;
    MPI_Status status;

    posted_post(c);
    bench_check_fill(out, n, bench_check_seed(c->rank, c->partner, round, at));
    bench_check_blank(in, n);
    if (c->is_leader) {
        MPI_Send(out, (int)n, MPI_BYTE, c->partner, TAG_DATA, MPI_COMM_WORLD);
    }
    MPI_Recv(in, (int)n, MPI_BYTE, c->partner, TAG_DATA, MPI_COMM_WORLD, &status);
    if (!c->is_leader) {
        MPI_Send(out, (int)n, MPI_BYTE, c->partner, TAG_DATA, MPI_COMM_WORLD);
    }
    bench_check_status(c, &status, c->partner, TAG_DATA, c->bytes, round);
    bench_check_message(c, in, n, c->partner, c->rank, round, at);
}

/* Completes the posted receives, the last first; no receive is cancelled or left. */
static void posted_close(bench_case *c)
{
    long depth = c->posted ? posted_depth(c) : 0;

    for (long i = 0; i < depth; i++) {
        long k = depth - 1 - i;
        MPI_Status status;
        MPI_Request send;
        MPI_Isend(slot(c, &c->out, k), (int)c->bytes, MPI_BYTE, c->partner, TAG_WAITING + (int)k, MPI_COMM_WORLD, &send);
        MPI_Wait(&c->requests[k], &status);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        if (c->options->check) {
            bench_check_status(c, &status, c->partner, TAG_WAITING + (int)k, c->bytes, 0);
            bench_check_message(c, slot(c, &c->in, k), (size_t)c->bytes, c->partner, c->rank, 0, k);
        }
    }
    bench_buffer_close(c);
}

static int unexpected_open(bench_case *c)
{
    c->share = 1.0 / (double)c->options->depth;
    if (queue_open(c)) {
        return -1;
    }
    slots_fill(c, 0);
    return 0;
}

/* One burst. The receiver receives in reverse order after the last message has arrived: the worst order for a list. */
static double burst(bench_case *c, int round, bool check)
{
    long depth = c->options->depth;
    int n = (int)c->bytes;
    double start, spent;

    if (!c->is_leader) {
        for (long i = 0; i < depth; i++) {
            MPI_Isend(slot(c, &c->out, i), n, MPI_BYTE, c->partner, TAG_WAITING + (int)i, MPI_COMM_WORLD, &c->requests[i]);
        }
        MPI_Isend(NULL, 0, MPI_BYTE, c->partner, TAG_GO, MPI_COMM_WORLD, &c->requests[depth]);
        MPI_Waitall((int)depth + 1, c->requests, MPI_STATUSES_IGNORE);
        MPI_Recv(NULL, 0, MPI_BYTE, c->partner, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    MPI_Recv(NULL, 0, MPI_BYTE, c->partner, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start = MPI_Wtime();
    for (long i = depth - 1; i >= 0; i--) {
        MPI_Status status;
        MPI_Recv(slot(c, &c->in, i), n, MPI_BYTE, c->partner, TAG_WAITING + (int)i, MPI_COMM_WORLD,
                 check ? &status : MPI_STATUS_IGNORE);
        if (check) {
            bench_check_status(c, &status, c->partner, TAG_WAITING + (int)i, c->bytes, round);
        }
    }
    spent = MPI_Wtime() - start;
    MPI_Send(NULL, 0, MPI_BYTE, c->partner, TAG_GO, MPI_COMM_WORLD);
    return spent;
}

static double unexpected_run(bench_case *c, long iterations)
{
    double spent = 0;

    for (long i = 0; i < iterations; i++) {
        spent += burst(c, 0, false);
    }
    return spent;
}

static void unexpected_check(bench_case *c, int round)
{
    slots_fill(c, round);
    burst(c, round, true);
    for (long i = 0; c->is_leader && i < c->options->depth; i++) {
        bench_check_message(c, slot(c, &c->in, i), (size_t)c->bytes, c->partner, c->rank, round, i);
    }
}

const bench_test bench_posted = {
    .name = "posted", .help = "latency with --depth posted receives that do not match, and with none",
    .figure = BENCH_MICROSECONDS,
    .pairs = true, .min_bytes = 8, .max_bytes = 8, .unit_bytes = 1, .empty = true, .variants = posted_variants,
    .memory = queue_memory, .open = posted_open, .run = posted_run, .check = posted_check, .close = posted_close,
};

const bench_test bench_unexpected = {
    .name = "unexpected", .help = "time of a Recv from --depth unexpected messages, received in reverse order",
    .figure = BENCH_MICROSECONDS,
    .pairs = true, .min_bytes = 8, .max_bytes = 8, .unit_bytes = 1, .empty = true,
    .memory = queue_memory, .open = unexpected_open, .run = unexpected_run, .check = unexpected_check,
    .close = bench_buffer_close,
};

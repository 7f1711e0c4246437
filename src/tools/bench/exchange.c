/* SPDX-License-Identifier: BSD-3-Clause
 * exchange: tests of two ranks that send to each other at the same time: MPI_Sendrecv, or two messages each way as in a stencil's
 * halo exchange (Isend, Isend, Recv, Recv, Waitall).
 */
#include "buffer.h"
#include "check.h"

enum
{
    TAG_UP = 1,
    TAG_DOWN = 2,
    SENDRECV = 0, /* index in variants */
    NEIGHBOURS = 1
};

static const char *const variants[] = {"sendrecv", "both", NULL};

static size_t memory(const bench_case *c)
{
    return bench_buffer_memory(c, (size_t)c->bytes, (size_t)c->bytes);
}

static int open_exchange(bench_case *c)
{
    if (bench_buffer_requests(c, 2) || bench_buffer_validation(c, 2)) {
        return -1;
    }
    return bench_buffer_open(c, (size_t)c->bytes, (size_t)c->bytes);
}

static void swap(bench_case *c, void *out, void *in)
{
    int n = (int)c->bytes, to = c->partner;

    MPI_Sendrecv(out, n, MPI_BYTE, to, TAG_UP, in, n, MPI_BYTE, to, TAG_UP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void swap_both(bench_case *c, void *out[2], void *in[2])
{
    int n = (int)c->bytes, to = c->partner;

    MPI_Isend(out[0], n, MPI_BYTE, to, TAG_UP, MPI_COMM_WORLD, &c->requests[0]);
    MPI_Isend(out[1], n, MPI_BYTE, to, TAG_DOWN, MPI_COMM_WORLD, &c->requests[1]);
    MPI_Recv(in[0], n, MPI_BYTE, to, TAG_UP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(in[1], n, MPI_BYTE, to, TAG_DOWN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(2, c->requests, MPI_STATUSES_IGNORE);
}

static double run_exchange(bench_case *c, long iterations)
{
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        if (c->variant == SENDRECV) {
            swap(c, bench_buffer_next(&c->out), bench_buffer_next(&c->in));
        } else {
            void *out[2] = {bench_buffer_next(&c->out), bench_buffer_next(&c->out)};
            void *in[2] = {bench_buffer_next(&c->in), bench_buffer_next(&c->in)};
            swap_both(c, out, in);
        }
    }
    return MPI_Wtime() - start;
}

static void check_exchange(bench_case *c, int round)
{
    size_t n = (size_t)c->bytes, stride = bench_check_stride(c->bytes);
    int messages = c->variant == NEIGHBOURS ? 2 : 1;
    unsigned char *out = c->check_out, *in = c->check_in;

    for (int i = 0; i < messages; i++) {
        bench_check_fill(out + i * stride, n, bench_check_seed(c->rank, c->partner, round, i));
        bench_check_blank(in + i * stride, n);
    }
    if (c->variant == SENDRECV) {
        swap(c, out, in);
    } else {
        swap_both(c, (void *[2]){out, out + stride}, (void *[2]){in, in + stride});
    }
    for (int i = 0; i < messages; i++) {
        bench_check_message(c, in + i * stride, n, c->partner, c->rank, round, i);
    }
}

const bench_test bench_exchange = {
    .name = "exchange", .help = "one message in each direction at once by Sendrecv, or two by Isend and Recv",
    .figure = BENCH_MICROSECONDS, .pairs = true,
    .min_bytes = 1, .max_bytes = 4 << 20, .unit_bytes = 1, .empty = true, .variants = variants,
    .memory = memory, .open = open_exchange, .run = run_exchange, .check = check_exchange, .close = bench_buffer_close,
};

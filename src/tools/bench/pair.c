/* SPDX-License-Identifier: BSD-3-Clause
 * pair: tests of pairs of ranks: latency, bandwidth, bidirectional bandwidth, message rate.
 * Timed rounds reuse one send and one receive buffer (or rotate them); the receives of a window share the buffer, as in other
 * benchmarks, since separate buffers would not fit the caches. Validated rounds use a buffer for each message.
 */
#include "buffer.h"
#include "check.h"

enum
{
    TAG_DATA = 1,
    TAG_BACK = 2
};

static size_t memory(const bench_case *c)
{
    return bench_buffer_memory(c, (size_t)c->bytes, (size_t)c->bytes);
}

/* Slots of a validated window: the test's, fewer if they are large. Equal on both sides. */
static int check_slots(const bench_case *c)
{
    size_t fit = (16u << 20) / bench_check_stride(c->bytes);

    return fit < 1 ? 1 : fit < (size_t)c->options->window ? (int)fit : (int)c->options->window;
}

static int open_window(bench_case *c)
{
    c->payload = (double)c->options->window * (c->test->figure == BENCH_GB_PER_S ? (double)c->bytes : 1) * (c->ranks / 2);
    if (c->test == &bench_bibw) {
        c->payload *= 2;
    }
    if (bench_buffer_requests(c, 2 * c->options->window) || bench_buffer_validation(c, check_slots(c))) {
        return -1;
    }
    return bench_buffer_open(c, (size_t)c->bytes, (size_t)c->bytes);
}

static int open_latency(bench_case *c)
{
    c->share = 0.5;
    if (bench_buffer_validation(c, 1)) {
        return -1;
    }
    return bench_buffer_open(c, (size_t)c->bytes, (size_t)c->bytes);
}

static double run_latency(bench_case *c, long iterations)
{
    int n = (int)c->bytes, to = c->partner;
    double start = MPI_Wtime();

    if (c->is_leader) {
        for (long i = 0; i < iterations; i++) {
            MPI_Send(bench_buffer_next(&c->out), n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(bench_buffer_next(&c->in), n, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    } else {
        for (long i = 0; i < iterations; i++) {
            MPI_Recv(bench_buffer_next(&c->in), n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(bench_buffer_next(&c->out), n, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

static double run_window(bench_case *c, long iterations)
{
    int n = (int)c->bytes, window = (int)c->options->window, to = c->partner;
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        if (c->is_leader) {
            for (int w = 0; w < window; w++) {
                MPI_Isend(bench_buffer_next(&c->out), n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
            }
            MPI_Waitall(window, c->requests, MPI_STATUSES_IGNORE);
            MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            for (int w = 0; w < window; w++) {
                MPI_Irecv(bench_buffer_next(&c->in), n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
            }
            MPI_Waitall(window, c->requests, MPI_STATUSES_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

static double run_bibw(bench_case *c, long iterations)
{
    int n = (int)c->bytes, window = (int)c->options->window, to = c->partner;
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        for (int w = 0; w < window; w++) {
            MPI_Irecv(bench_buffer_next(&c->in), n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
        }
        for (int w = 0; w < window; w++) {
            MPI_Isend(bench_buffer_next(&c->out), n, MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[window + w]);
        }
        MPI_Waitall(2 * window, c->requests, MPI_STATUSES_IGNORE);
    }
    return MPI_Wtime() - start;
}

static void check_latency(bench_case *c, int round)
{
    size_t n = (size_t)c->bytes;
    int in_tag = c->is_leader ? TAG_BACK : TAG_DATA, out_tag = c->is_leader ? TAG_DATA : TAG_BACK;
    MPI_Status status;

    bench_check_fill(c->check_out, n, bench_check_seed(c->rank, c->partner, round, 0));
    bench_check_blank(c->check_in, n);
    if (c->is_leader) {
        MPI_Send(c->check_out, (int)n, MPI_BYTE, c->partner, out_tag, MPI_COMM_WORLD);
    }
    MPI_Recv(c->check_in, (int)n, MPI_BYTE, c->partner, in_tag, MPI_COMM_WORLD, &status);
    if (!c->is_leader) {
        MPI_Send(c->check_out, (int)n, MPI_BYTE, c->partner, out_tag, MPI_COMM_WORLD);
    }
    bench_check_status(c, &status, c->partner, in_tag, c->bytes, round);
    bench_check_message(c, c->check_in, n, c->partner, c->rank, round, 0);
}

/* A window with a buffer for each message. In odd rounds sends start before the receives are posted. */
static void check_window(bench_case *c, int round)
{
    int slots = check_slots(c), n = (int)c->bytes;
    size_t stride = bench_check_stride(c->bytes);
    bool both = c->test == &bench_bibw, sends = both || c->is_leader, receives = both || !c->is_leader;

    for (int w = 0; w < slots; w++) {
        bench_check_fill(c->check_out + w * stride, (size_t)n, bench_check_seed(c->rank, c->partner, round, w));
        bench_check_blank(c->check_in + w * stride, (size_t)n);
    }
    for (int half = 0; half < 2; half++) {
        bool now_sends = half == (round % 2 == 0);
        for (int w = 0; w < slots; w++) {
            if (now_sends && sends) {
                MPI_Isend(c->check_out + w * stride, n, MPI_BYTE, c->partner, TAG_DATA, MPI_COMM_WORLD, &c->requests[slots + w]);
            } else if (!now_sends && receives) {
                MPI_Irecv(c->check_in + w * stride, n, MPI_BYTE, c->partner, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
            }
        }
    }
    if (receives) {
        MPI_Waitall(slots, c->requests, c->check_statuses);
    }
    if (sends) {
        MPI_Waitall(slots, c->requests + slots, MPI_STATUSES_IGNORE);
    }
    for (int w = 0; w < slots && receives; w++) {
        bench_check_status(c, &c->check_statuses[w], c->partner, TAG_DATA, c->bytes, round);
        bench_check_message(c, c->check_in + w * stride, (size_t)n, c->partner, c->rank, round, w);
    }
}

const bench_test bench_latency = {
    .name = "latency", .help = "half the round trip of a ping-pong by Send and Recv",
    .figure = BENCH_MICROSECONDS, .pairs = true,
    .min_bytes = 0, .max_bytes = 4 << 20, .unit_bytes = 1, .empty = true,
    .memory = memory, .open = open_latency, .run = run_latency, .check = check_latency, .close = bench_buffer_close,
};

const bench_test bench_bandwidth = {
    .name = "bandwidth", .help = "windows of Isend in one direction, each answered by an empty message",
    .figure = BENCH_GB_PER_S, .pairs = true,
    .min_bytes = 1, .max_bytes = 4 << 20, .unit_bytes = 1,
    .memory = memory, .open = open_window, .run = run_window, .check = check_window, .close = bench_buffer_close,
};

const bench_test bench_bibw = {
    .name = "bibw", .help = "windows of Isend and Irecv in both directions at once; bytes of both are counted",
    .figure = BENCH_GB_PER_S, .pairs = true,
    .min_bytes = 1, .max_bytes = 4 << 20, .unit_bytes = 1,
    .memory = memory, .open = open_window, .run = run_bibw, .check = check_window, .close = bench_buffer_close,
};

const bench_test bench_rate = {
    .name = "rate", .help = "messages per second, in windows of Isend and Irecv",
    .figure = BENCH_MILLIONS_PER_S, .pairs = true,
    .min_bytes = 8, .max_bytes = 8, .unit_bytes = 1, .empty = true,
    .memory = memory, .open = open_window, .run = run_window, .check = check_window, .close = bench_buffer_close,
};

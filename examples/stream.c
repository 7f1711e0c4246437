/* SPDX-License-Identifier: BSD-3-Clause
 * stream: data acquisition. Sources (ranks 1, 2, ...) fill blocks in memory of the sink (rank 0) that is known beforehand; the sink looks
 * at each block and returns a credit for its place. A source without credit waits: nothing is lost, and the sink's memory is bounded.
 *     make stream && mpirun -n 2 ./stream --by notify --block 1M --total 4G
 * --by notify: blocks by puts that the sink sees counted (MPIX_Put_notify, or standard calls). put: blocks by MPI_Put and MPI_Win_flush,
 * then a counter by MPI_Accumulate; the sink polls its counters. send: MPI_Isend into posted receives. socket: a TCP connection for each
 * source. One line tells GB/s, and CPU seconds for each GB on both sides.
 * Exit code: 0 every block arrived once, in order and right, 1 not so, 2 bad usage.
 */
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const way ways[] = {{"notify", notify_open, notify_source, notify_sink, notify_close},
                           {"put", put_open, put_source, put_sink, put_close},
                           {"send", send_open, send_source, send_sink, send_close},
                           {"socket", socket_open, socket_source, socket_sink, socket_close}};

double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

uint64_t block_mark(int source, long number, size_t word)
{
    return ((uint64_t)source << 48 ^ (uint64_t)number << 16) * 0x9e3779b97f4a7c15u + word;
}

void block_fill(const stream *s, uint64_t *block, long number)
{
    size_t words = s->block / sizeof *block, step = s->is_checked ? 1 : words - 1;

    for (size_t i = 0; i < words; i += step) {
        block[i] = block_mark(s->rank, number, i);
    }
}

int block_wrong(const stream *s, const uint64_t *block, int source, long number)
{
    size_t words = s->block / sizeof *block, step = s->is_checked ? 1 : words - 1;

    for (size_t i = 0; i < words; i += step) {
        if (block[i] != block_mark(source, number, i)) {
            return 1;
        }
    }
    return 0;
}

void *take(size_t bytes)
{
    void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    if (!p) {
        fprintf(stderr, "stream: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(p, 0, bytes);
    return p;
}

/* A number with K, M or G (powers of 1,024); -1 if it is none. */
static long number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

    return end == text || n < 1 || n > 1L << 30 || end[shift > 0] ? -1 : n << shift;
}

static const way *parse(stream *s, int argc, char **argv, long *total)
{
    const way *by = &ways[0];

    *total = 64 << 20;
    for (int i = 1; i < argc; i++) {
        long n = i + 1 < argc ? number(argv[i + 1]) : -1;
        if (!strcmp(argv[i], "--check")) {
            s->is_checked = 1;
        } else if (!strcmp(argv[i], "--by") && i + 1 < argc) {
            by = NULL;
            for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
                by = strcmp(argv[i + 1], ways[k].name) ? by : &ways[k];
            }
            i++;
        } else if (!strcmp(argv[i], "--block") && n >= 16 && n % 8 == 0 && n <= 1L << 30) {
            s->block = (size_t)n, i++;
        } else if (!strcmp(argv[i], "--places") && n > 0 && n <= 1024) {
            s->places = n, i++;
        } else if (!strcmp(argv[i], "--total") && n > 0) {
            *total = n, i++;
        } else {
            return NULL;
        }
        if (!by) {
            return NULL;
        }
    }
    return by;
}

/* Runs one way; prints the line. Returns the number of wrong blocks. */
static int run(const way *by, stream *s)
{
    double time, cpu, sums[2] = {0, 0}, all[2], gb = (double)s->block * (double)s->blocks * s->sources * 1e-9;
    int wrong = 0, any = 0;

    by->open(s);
    MPI_Barrier(MPI_COMM_WORLD);
    time = MPI_Wtime();
    cpu = cpu_seconds();
    if (s->rank) {
        by->source(s);
    } else {
        wrong = by->sink(s);
    }
    sums[s->rank == 0] = cpu_seconds() - cpu; /* before the barrier, in which the earlier one would spin */
    MPI_Barrier(MPI_COMM_WORLD);
    time = MPI_Wtime() - time;
    by->close(s);
    MPI_Reduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!s->rank) {
        printf("stream: %s, %d source%s, %ld blocks of %zu bytes each, %ld places: %.3f GB/s, CPU s/GB: "
               "sources %.3f, sink %.3f, %d wrong\n",
               by->name, s->sources, s->sources == 1 ? "" : "s", s->blocks, s->block, s->places, gb / time, all[0] / gb, all[1] / gb, any);
    }
    return any;
}

int main(int argc, char **argv)
{
    stream s = {.block = 256 << 10, .places = 8};
    int ranks, wrong;
    long total;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const way *by = parse(&s, argc, argv, &total);
    if (!by || ranks < 2) {
        if (!s.rank) {
            fprintf(stderr,
                    "usage: mpirun -n 2 stream [--by notify|put|send|socket] [--block BYTES] [--places N] [--total BYTES] [--check]\n"
                    "At least 2 ranks. BYTES: with K, M or G; a block: a multiple of 8, at least 16. --places: blocks in flight of each\n"
                    "source (8). --total: bytes of all sources (64M). --check: every word, not only a block's first and last.\n");
        }
        MPI_Finalize();
        return 2;
    }
    s.sources = ranks - 1;
    s.blocks = (long)((size_t)total / s.block / (size_t)s.sources);
    s.blocks = s.blocks ? s.blocks : 1;
    wrong = run(by, &s);
    MPI_Finalize();
    return wrong != 0;
}

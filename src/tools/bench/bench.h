/* SPDX-License-Identifier: BSD-3-Clause
 * What the rooms of weft-bench share: the options, one test, one case (a test at one size) while it runs.
 * Included by every file of this folder and by nothing else. The whole folder uses the public MPI API and C alone, so that
 * `mpicc *.c` makes the same program with any MPI: no header of Weft may be included here.
 * Invariant: every rank runs the same cases in the same order with the same iteration counts (rank 0 decides, all follow).
 */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum
{
    BENCH_TESTS_MAX = 16,
    BENCH_SIZES_MAX = 64,
    BENCH_SAMPLES_MAX = 1000
};

/* What a row's figure says, and so how it is made from the seconds that one iteration took. */
typedef enum bench_figure
{
    BENCH_MICROSECONDS, /* less is better */
    BENCH_GB_PER_S,     /* 10^9 bytes a second, more is better */
    BENCH_MILLIONS_PER_S
} bench_figure;

typedef struct bench_test bench_test;
typedef struct bench_case bench_case;

typedef struct bench_options
{
    const bench_test *tests[BENCH_TESTS_MAX];
    int tests_count;
    long sizes[BENCH_SIZES_MAX]; /* none: each test's own */
    int sizes_count;
    long iterations; /* a sample; 0: as many as the row's time allows */
    long row_ms;
    long samples;
    long window;
    long depth;
    long rotate_bytes; /* 0: the same buffer every time */
    long memory_bytes; /* of one rank; a row that needs more is left out, and the report says so */
    bool check;
    bool json;
    bool help;
    bool list;
} bench_options;

struct bench_test
{
    const char *name;
    const char *help;
    bench_figure figure;
    bool pairs;                  /* ranks work two by two; else all together */
    long min_bytes, max_bytes; /* unless --sizes says more */
    long unit_bytes;              /* sizes are multiples of this; 0: the size is no matter of this test */
    bool empty;                   /* a size of 0 makes sense */
    const char *const *variants; /* rows beside the sizes, NULL-terminated; NULL: sizes only */
    size_t (*memory)(const bench_case *c); /* bytes that `open` would take on one rank */
    int (*open)(bench_case *c);            /* 0, or -1 out of memory; every active rank calls it */
    double (*run)(bench_case *c, long iterations); /* seconds that this rank spent */
    void (*check)(bench_case *c, int round);       /* moves patterns and looks at every byte */
    void (*close)(bench_case *c);
};

/* A stretch of memory that is handed out slot after slot, so that with --rotate no cache holds what comes next. */
typedef struct bench_arena
{
    unsigned char *base;
    size_t slot_bytes; /* distance of slots: never less than a message, whole pages when they rotate */
    size_t slots;
    size_t at;
} bench_arena;

struct bench_case
{
    const bench_options *options;
    const bench_test *test;
    int rank, ranks;
    int partner; /* in tests by pairs; -1: this rank sits out */
    bool is_leader;
    long bytes;
    int variant;
    double share;   /* seconds of an iteration * share = seconds of what the figure counts */
    double payload; /* bytes that one iteration moves one way (GB/s), or messages (M/s) */
    bench_arena out, in;
    MPI_Request *requests;
    MPI_Datatype type;
    bool posted;  /* the long queue's receives are there (tests of matching) */
    int failures; /* of this rank, in this case */
};

/* Seconds of the machine's own monotonic clock: for comparisons between ranks of one host only. */
double bench_seconds(void);

extern const bench_test bench_latency, bench_bandwidth, bench_bibw, bench_rate, bench_exchange;
extern const bench_test bench_posted, bench_unexpected, bench_vector;
extern const bench_test bench_barrier, bench_allreduce, bench_bcast, bench_alltoall;

#endif

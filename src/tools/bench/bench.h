/* SPDX-License-Identifier: BSD-3-Clause
 * bench: types shared by the files of weft-bench: options, test, and case (one test at one size while it runs).
 * This folder must use the public MPI API and C only, no header of Weft, so that `mpicc *.c` builds it with any MPI.
 * Invariant: all ranks run the same cases in the same order with the same iteration counts, which rank 0 broadcasts.
 */
#ifndef WEFT_TOOLS_BENCH_H
#define WEFT_TOOLS_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum
{
    BENCH_TESTS_MAX = 128,
    BENCH_SIZES_MAX = 64,
    BENCH_SAMPLES_MAX = 1000
};

/* Unit of a row's figure; figure() in timing.c computes it from the seconds of one iteration. */
typedef enum bench_figure
{
    BENCH_MICROSECONDS,  /* lower is better */
    BENCH_GB_PER_S,      /* 10^9 bytes per second, higher is better */
    BENCH_MILLIONS_PER_S, /* messages, higher is better */
    BENCH_PERCENT        /* bench_case.percent, set by run */
} bench_figure;

typedef struct bench_test bench_test;
typedef struct bench_case bench_case;

typedef struct bench_options
{
    const bench_test *tests[BENCH_TESTS_MAX];
    int tests_count;
    long sizes[BENCH_SIZES_MAX]; /* bytes */
    int sizes_count;   /* 0: each test's own sizes */
    long iterations;   /* per sample; 0: as many as row_ms allows */
    long row_ms;       /* target time of a row, ms */
    long samples;      /* per row */
    long window;       /* messages in flight, in tests with windows */
    long depth;        /* queue length in matching tests */
    long rotate_bytes; /* bytes that each arena rotates through; 0: one slot */
    long memory_bytes; /* limit of one rank; a row that needs more is reported as left out */
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
    bool pairs;                  /* runs on pairs of ranks; else on all ranks together */
    long min_bytes, max_bytes;   /* default sizes */
    long unit_bytes;             /* sizes must be multiples of this; 0: the test has no size */
    bool empty;                  /* size 0 is allowed */
    const char *const *variants; /* further rows per size, NULL-terminated; NULL: none */
    size_t (*memory)(const bench_case *c); /* bytes that `open` allocates on one rank, without those for --check */
    int (*open)(bench_case *c);            /* 0, or -1 out of memory; called on every active rank */
    double (*run)(bench_case *c, long iterations); /* seconds spent on this rank */
    void (*check)(bench_case *c, int round);       /* transfers patterns and verifies every byte */
    void (*close)(bench_case *c);
    const struct bench_operation *operation; /* collective tests (coll.h); NULL in others */
    int form;                                /* bench_form */
    bool fixed_root;                         /* rank 0 is the root of each call; else the root rotates */
};

/* Memory split into slots that are used in turn, so that with --rotate the next slot is in no cache. */
typedef struct bench_arena
{
    unsigned char *base;
    size_t slot_bytes; /* distance of slots: a message rounded up to whole pages, at least one page */
    size_t slots;
    size_t at;         /* index of the next slot */
} bench_arena;

struct bench_case
{
    const bench_options *options;
    const bench_test *test;
    int rank, ranks;
    int partner;    /* rank of the other half of the pair; -1: this rank is idle in tests by pairs */
    bool is_leader; /* lower half of the ranks; measures in tests by pairs */
    long bytes;     /* message size */
    int variant;    /* index in test->variants */
    double share;   /* factor from seconds of an iteration to the figure's seconds (0.5 for a ping-pong) */
    double percent; /* figure of the latest run, equal on all ranks; BENCH_PERCENT only */
    double payload; /* bytes (GB/s) or messages (M/s) of one iteration, over all pairs */
    bench_arena out, in; /* send and receive buffers */
    MPI_Request *requests;
    unsigned char *check_out, *check_in; /* buffers of validated rounds; NULL: the arenas serve, or no --check */
    MPI_Status *check_statuses;          /* one for each message of a validated window */
    MPI_Datatype type;   /* MPI_DATATYPE_NULL: bytes */
    struct bench_coll_state *coll; /* collective tests (coll.h) */
    struct bench_rma_state *rma;   /* one-sided tests (rma.c) */
    struct bench_notify_state *notify; /* of notified puts (notify.c) */
    bool posted;         /* receives of the long queue are posted (matching tests) */
    int failures;        /* of this rank in this case */
};

/* CLOCK_MONOTONIC in seconds; comparable between ranks of one host only. */
double bench_seconds(void);

extern const bench_test bench_latency, bench_bandwidth, bench_bibw, bench_rate, bench_exchange;
extern const bench_test bench_posted, bench_unexpected, bench_vector, bench_shapes;
extern const bench_test bench_overlap;
extern const bench_test bench_put, bench_get, bench_accumulate, bench_fetch_and_op, bench_compare_and_swap;
extern const bench_test bench_put_bandwidth, bench_get_bandwidth, bench_put_rate, bench_get_rate, bench_put_notify;
extern const bench_test bench_collectives[]; /* ends with a test without name */

#endif

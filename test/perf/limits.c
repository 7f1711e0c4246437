/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limits: limits of this machine without any MPI: hand-over of a cache line, rings of 64-byte cells, memcpy, copies by the kernel, a
 * pipelined copy through shared chunks. Run by test/perf/compare beside the libraries, so that figures and limits are measured at the same
 * time. Prints JSON. Two processes, each on its own CPU (the first two allowed ones).
 *    limits [--handover]     --handover: only the hand-over, in about 20 ms (distinguishes near CPUs from far ones)
 * Invariant: each measurement is the median of several samples, by the process that started the clock.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum
{
    LINE = 64,
    CELLS = 1024,
    CHUNKS = 8,
    CHUNK_BYTES_MAX = 64 << 10,
    SAMPLES = 9,
    ROTATE = 64 << 20
};

typedef struct cell
{
    _Alignas(LINE) _Atomic uint64_t sequence;
    char payload[LINE - sizeof(uint64_t)];
} cell;

typedef struct chunk
{
    _Alignas(LINE) _Atomic uint64_t sequence;
    _Alignas(LINE) _Atomic uint64_t taken;
    _Alignas(4096) char bytes[CHUNK_BYTES_MAX];
} chunk;

typedef struct shared
{
    _Alignas(LINE) _Atomic uint64_t ball;
    _Alignas(LINE) _Atomic uint64_t taken;     /* consumed cells of ring[0] */
    _Alignas(LINE) _Atomic uint64_t gate[2];   /* barrier of both processes before a sample */
    _Atomic int refused;                       /* the kernel does not permit reading the other process's memory */
    _Alignas(LINE) _Atomic uintptr_t source;   /* address in the parent, for the kernel's copy */
    cell ring[2][CELLS];
    chunk chunks[CHUNKS];
} shared;

typedef struct place
{
    shared *s;
    int me; /* 0 parent, 1 child */
    pid_t other;
    char *out, *in; /* ROTATE bytes each */
    uint64_t ball, sequence[2], chunk, meets, taken;
} place;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static inline void await(_Atomic uint64_t *word, uint64_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) < value) {
        relax();
    }
}

static void meet(place *p)
{
    p->meets++;
    atomic_store(&p->s->gate[p->me], p->meets);
    await(&p->s->gate[1 - p->me], p->meets);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

typedef void action(place *p, long iterations, size_t bytes, size_t extra);

/* Median seconds of one iteration; called by both processes. */
static double timed(place *p, action *act, long iterations, size_t bytes, size_t extra)
{
    double samples[SAMPLES];

    act(p, iterations / 10 + 1, bytes, extra);
    for (int i = 0; i < SAMPLES; i++) {
        double start;
        meet(p);
        start = now();
        act(p, iterations, bytes, extra);
        meet(p);
        samples[i] = (now() - start) / (double)iterations;
    }
    qsort(samples, SAMPLES, sizeof samples[0], ascending);
    return samples[SAMPLES / 2];
}

static void handover(place *p, long iterations, size_t bytes, size_t extra)
{
    (void)bytes;
    (void)extra;
    for (long i = 0; i < iterations; i++) {
        p->ball += 2;
        if (p->me) {
            await(&p->s->ball, p->ball - 1);
            atomic_store_explicit(&p->s->ball, p->ball, memory_order_release);
        } else {
            atomic_store_explicit(&p->s->ball, p->ball - 1, memory_order_release);
            await(&p->s->ball, p->ball);
        }
    }
}

static void cell_put(place *p, int ring, uint64_t value)
{
    cell *c = &p->s->ring[ring][p->sequence[ring]++ % CELLS];

    memcpy(c->payload, &value, sizeof value);
    atomic_store_explicit(&c->sequence, p->sequence[ring], memory_order_release);
}

static uint64_t cell_take(place *p, int ring)
{
    cell *c = &p->s->ring[ring][p->sequence[ring]++ % CELLS];
    uint64_t value;

    await(&c->sequence, p->sequence[ring]);
    memcpy(&value, c->payload, sizeof value);
    if (ring == 0 && p->sequence[0] % (CELLS / 4) == 0) {
        atomic_store_explicit(&p->s->taken, p->sequence[0], memory_order_release);
    }
    return value;
}

/* A cell on ring 0, a cell back on ring 1. */
static void cell_pingpong(place *p, long iterations, size_t bytes, size_t extra)
{
    (void)bytes;
    (void)extra;
    for (long i = 0; i < iterations; i++) {
        if (p->me) {
            cell_put(p, 1, cell_take(p, 0));
        } else {
            cell_put(p, 0, (uint64_t)i);
            if (cell_take(p, 1) != (uint64_t)i) {
                abort();
            }
        }
    }
}

/* A stream of cells in one direction; the consumer acknowledges every quarter of the ring. */
static void cell_stream(place *p, long iterations, size_t bytes, size_t extra)
{
    uint64_t sum = 0;

    (void)bytes;
    (void)extra;
    for (long i = 0; i < iterations; i++) {
        if (p->me) {
            sum += cell_take(p, 0) - (uint64_t)i;
        } else {
            if (p->sequence[0] - p->taken >= CELLS) {
                await(&p->s->taken, p->sequence[0] - CELLS + 1);
                p->taken = atomic_load_explicit(&p->s->taken, memory_order_acquire);
            }
            cell_put(p, 0, (uint64_t)i);
        }
    }
    if (sum) {
        abort();
    }
}

static size_t step(size_t bytes, size_t rotate, long i)
{
    return rotate ? (size_t)i * bytes % (ROTATE - bytes + 1) / 4096 * 4096 : 0;
}

/* The parent copies within its own memory; the child waits. */
static void copy_alone(place *p, long iterations, size_t bytes, size_t rotate)
{
    for (long i = 0; i < iterations && !p->me; i++) {
        memcpy(p->in + step(bytes, rotate, i), p->out + step(bytes, rotate, i), bytes);
        __asm__ volatile("" ::: "memory");
    }
}

/* The child reads the parent's memory by the kernel. */
static void copy_kernel(place *p, long iterations, size_t bytes, size_t rotate)
{
    if (!p->me) {
        return;
    }
    for (long i = 0; i < iterations; i++) {
        size_t at = step(bytes, rotate, i);
        struct iovec here = {p->in + at, bytes}, there = {(void *)(atomic_load(&p->s->source) + at), bytes};
        if (process_vm_readv(p->other, &here, 1, &there, 1, 0) != (ssize_t)bytes) {
            atomic_store(&p->s->refused, 1);
            return;
        }
    }
}

/* The parent copies into chunks, the child out of them, both at once; `extra` is a chunk's bytes, its lowest bit means rotate. */
static void copy_chunks(place *p, long iterations, size_t bytes, size_t extra)
{
    size_t each = extra & ~(size_t)1;

    for (long i = 0; i < iterations; i++) {
        size_t base = step(bytes, extra & 1, i);
        for (size_t at = 0; at < bytes; at += each) {
            chunk *c = &p->s->chunks[p->chunk++ % CHUNKS];
            size_t n = bytes - at < each ? bytes - at : each;
            if (p->me) {
                await(&c->sequence, p->chunk);
                memcpy(p->in + base + at, c->bytes, n);
                atomic_store_explicit(&c->taken, p->chunk, memory_order_release);
            } else {
                await(&c->taken, p->chunk > CHUNKS ? p->chunk - CHUNKS : 0);
                memcpy(c->bytes, p->out + base + at, n);
                atomic_store_explicit(&c->sequence, p->chunk, memory_order_release);
            }
        }
    }
}

/* One message at a time: the parent waits until the child has received it completely. */
static void copy_chunks_single(place *p, long iterations, size_t bytes, size_t extra)
{
    for (long i = 0; i < iterations; i++) {
        copy_chunks(p, 1, bytes, extra);
        handover(p, 1, 0, 0);
    }
}

static const size_t sizes[] = {64 << 10, 1 << 20, 4 << 20};

static void report_copies(place *p, const char *name, action *act, size_t rotate)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double s = timed(p, act, (long)((24u << 20) / sizes[i]), sizes[i], rotate);
        if (!p->me && !(act == copy_kernel && atomic_load(&p->s->refused))) {
            printf(", \"%s%s_%zu_us\": %.3f, \"%s%s_%zu_gb_s\": %.3f", name, rotate ? "_rotating" : "", sizes[i],
                   s * 1e6, name, rotate ? "_rotating" : "", sizes[i], (double)sizes[i] / s * 1e-9);
        }
    }
}

/* The best chunk size for streams and for single messages. */
static void report_chunks(place *p, const char *name, action *act, size_t rotate)
{
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double best = 1e9;
        for (size_t each = 8 << 10; each <= CHUNK_BYTES_MAX; each *= 2) {
            double s = timed(p, act, (long)((24u << 20) / sizes[i]), sizes[i], each | rotate);
            best = s < best ? s : best;
        }
        if (!p->me) {
            printf(", \"%s%s_%zu_us\": %.3f, \"%s%s_%zu_gb_s\": %.3f", name, rotate ? "_rotating" : "", sizes[i],
                   best * 1e6, name, rotate ? "_rotating" : "", sizes[i], (double)sizes[i] / best * 1e-9);
        }
    }
}

static void report(place *p, int only_handover)
{
    double s = timed(p, handover, 20000, 0, 0);

    if (!p->me) {
        printf("{\"handover_us\": %.4f", s / 2 * 1e6);
    }
    if (!only_handover) {
        s = timed(p, cell_pingpong, 50000, 0, 0);
        if (!p->me) {
            printf(", \"cell_us\": %.4f", s / 2 * 1e6);
        }
        s = timed(p, cell_stream, 1000000, 0, 0);
        if (!p->me) {
            printf(", \"cells_m_s\": %.1f", 1e-6 / s);
        }
        for (size_t rotate = 0; rotate < 2; rotate++) {
            report_copies(p, "memcpy", copy_alone, rotate);
            report_copies(p, "kernel_copy", copy_kernel, rotate);
            report_chunks(p, "chunks_stream", copy_chunks, rotate);
        }
        report_chunks(p, "chunks_single", copy_chunks_single, 0);
    }
    if (!p->me) {
        printf("}\n");
    }
}

static int two_cpus(int cpus[2])
{
    cpu_set_t allowed;
    int n = 0;

    if (sched_getaffinity(0, sizeof allowed, &allowed)) {
        return -1;
    }
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++) {
        if (CPU_ISSET(i, &allowed)) {
            cpus[n++] = i;
        }
    }
    return n == 2 ? 0 : -1;
}

static void pin(int cpu)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv)
{
    int only = argc > 1 && !strcmp(argv[1], "--handover"), cpus[2], status = 0;
    place p = {0};
    pid_t parent = getpid();

    if (two_cpus(cpus)) {
        fprintf(stderr, "limits: two CPUs are wanted, fewer are allowed here\n");
        return 77;
    }
    p.s = mmap(NULL, sizeof *p.s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.s == MAP_FAILED) {
        perror("limits: mmap");
        return 1;
    }
    p.other = fork();
    if (p.other < 0) {
        perror("limits: fork");
        return 1;
    }
    if (!p.other) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        p.me = 1;
        p.other = parent;
    }
    alarm(120);
    pin(cpus[p.me]);
    if (!only) {
        p.out = malloc(ROTATE);
        p.in = malloc(ROTATE);
        if (!p.out || !p.in) {
            return 1;
        }
        memset(p.out, 1, ROTATE);
        memset(p.in, 2, ROTATE);
        if (!p.me) {
            atomic_store(&p.s->source, (uintptr_t)p.out);
            prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        }
    }
    meet(&p);
    report(&p, only);
    if (p.me) {
        _exit(0);
    }
    waitpid(p.other, &status, 0);
    return status != 0;
}

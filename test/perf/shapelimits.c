/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shapelimits: what the machine allows for strided transfers of weft-bench's shapes without any MPI: two threads, each on its own CPU (the
 * first two allowed ones), pack into and unpack from 96 shared chunks of up to 32 KiB. Prints a line "GB/s solo-copy-GB/s shape" per shape;
 * solo: one thread that packs into a buffer of its own.
 * Invariant: each figure is that of the fastest of several windows of 16 messages.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum
{
    CHUNK = 32 << 10,
    CHUNKS = 96,
    MESSAGES = 16,
    WINDOWS = 12
};

typedef struct shape
{
    const char *name;
    size_t block, stride, count;
} shape;

static const shape shapes[] = {
    {"vector 8192x1", 8, 16, 8192},        {"vector 8192x8", 64, 128, 8192},     {"vector 1024x64", 512, 1024, 1024},
    {"64Kx1 of 1 B", 1, 2, 65536},         {"16Kx8 of 1 B", 8, 16, 16384},       {"4Kx64 of 1 B", 64, 128, 4096},
    {"32Kx1 of 4 B", 4, 8, 32768},         {"8Kx8 of 4 B", 32, 64, 8192},        {"1Kx64 of 4 B", 256, 512, 1024},
    {"16Kx1 of 16 B", 16, 32, 16384},      {"4Kx8 of 16 B", 128, 256, 4096},     {"512x64 of 16 B", 1024, 2048, 512},
    {"column 1K", 8, 8192, 1024},          {"face lines", 1024, 128 << 10, 128}, {"face points", 8, 1024, 16384},
};

static struct
{
    _Alignas(64) _Atomic size_t filled;
    _Alignas(64) _Atomic size_t freed;
} ring;
static cpu_set_t allowed;
static char *chunks, *from, *to;
static const shape *now;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define CASE(constant)                                                                                                             \
    case constant:                                                                                                                 \
        _Pragma("GCC unroll 8") for (size_t i = 0; i < count; i++, out += out_stride, in += in_stride) memcpy(out, in, constant);  \
        break
static void move(char *out, size_t out_stride, const char *in, size_t in_stride, size_t bytes, size_t count)
{
    switch (bytes) {
        CASE(1);
        CASE(4);
        CASE(8);
        CASE(16);
        CASE(32);
        CASE(64);
    default:
        for (size_t i = 0; i < count; i++, out += out_stride, in += in_stride) {
            memcpy(out, in, bytes);
        }
    }
}

/* A column in one set of each cache: as src/type/pack.c does it. */
static void column(char *out, size_t out_stride, const char *in, size_t in_stride, size_t count)
{
    volatile size_t spacer;
    for (size_t i = 0; i < count; i++, out += out_stride, in += in_stride) {
        memcpy(out, in, 8);
        if (out_stride > 8) {
            spacer = i;
            spacer = i;
        } else if (i % 8 == 7) {
#ifdef __x86_64__
            __builtin_ia32_lfence();
#endif
        }
    }
    (void)spacer;
}

static void any(char *out, size_t out_stride, const char *in, size_t in_stride, size_t count)
{
    if (now->stride == 8192) {
        column(out, out_stride, in, in_stride, count);
    } else {
        move(out, out_stride, in, in_stride, now->block, count);
    }
}

static size_t blocks_of_chunk(void)
{
    size_t count = CHUNK / now->block, most = now->count / 4 > 4096 / now->block ? now->count / 4 : 4096 / now->block;
    count = count < most ? count : most;
    return count < now->count ? count : now->count;
}

static void run_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &allowed) && cpu-- == 0) {
            CPU_SET(i, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
    }
}

static void *sender(void *cpu)
{
    size_t some = blocks_of_chunk(), n = 0;
    run_on(*(int *)cpu);
    for (int m = 0; m < WINDOWS * MESSAGES; m++) {
        for (size_t at = 0; at < now->count; at += some, n++) {
            while (n - atomic_load_explicit(&ring.freed, memory_order_acquire) >= CHUNKS) {
            }
            any(chunks + n % CHUNKS * CHUNK, now->block, from + at * now->stride, now->stride, some);
            atomic_store_explicit(&ring.filled, n + 1, memory_order_release);
        }
    }
    return NULL;
}

static double receive(void)
{
    size_t some = blocks_of_chunk(), n = 0;
    double best = 1e9;
    for (int w = 0; w < WINDOWS; w++) {
        double start = seconds(), took;
        for (int m = 0; m < MESSAGES; m++) {
            for (size_t at = 0; at < now->count; at += some, n++) {
                while (atomic_load_explicit(&ring.filled, memory_order_acquire) <= n) {
                }
                any(to + at * now->stride, now->stride, chunks + n % CHUNKS * CHUNK, now->block, some);
                atomic_store_explicit(&ring.freed, n + 1, memory_order_release);
            }
        }
        took = seconds() - start;
        best = took < best ? took : best;
    }
    return best / MESSAGES;
}

static double solo(void)
{
    double best = 1e9;
    for (int k = 0; k < 3 * WINDOWS; k++) {
        double start = seconds(), took;
        any(chunks, now->block, from, now->stride, now->count);
        took = seconds() - start;
        best = took < best ? took : best;
    }
    return best;
}

int main(void)
{
    static int other = 1;
    const size_t most = 16u << 20;
    chunks = aligned_alloc(4096, CHUNKS * CHUNK);
    from = aligned_alloc(4096, most);
    to = aligned_alloc(4096, most);
    if (!chunks || !from || !to || sched_getaffinity(0, sizeof allowed, &allowed)) {
        return 1;
    }
    memset(chunks, 1, CHUNKS * CHUNK);
    memset(from, 1, most);
    memset(to, 1, most);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        pthread_t thread;
        double bytes, pair, alone;
        now = &shapes[i];
        bytes = (double)now->block * (double)now->count;
        atomic_store(&ring.filled, 0);
        atomic_store(&ring.freed, 0);
        run_on(0);
        alone = solo();
        if (pthread_create(&thread, NULL, sender, &other)) {
            return 1;
        }
        pair = receive();
        pthread_join(thread, NULL);
        printf("%.2f %.2f %s\n", bytes / pair * 1e-9, bytes / alone * 1e-9, now->name);
        fflush(stdout);
    }
    return 0;
}

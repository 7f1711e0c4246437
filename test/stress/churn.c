/* SPDX-License-Identifier: BSD-3-Clause
 *
 * churn: messages whose buffers change constantly. Each rank sends to its right neighbour from memory of every origin, which is changed,
 * freed and mapped again at the same address between messages, while other threads change the address space and fork. Every payload is
 * verified: each word identifies its message, so that stale pages are recognised. Exit code 1 if one was wrong.
 *    churn [-s seconds] [-t message threads, 0: MPI_THREAD_FUNNELED] [-h hammer threads] [-r seed] [-m largest message]
 *          [-l delay userfaultfd's events] [-f no forks] [-w no raw system calls] [-d suppress userfaultfd's events (see deaf.c)]
 *          [-b brk too: the allocator does not move the break]
 */
#include "blocks.h"

#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WINDOW 3   /* messages in flight in one round */
#define KEPT 5     /* blocks that a thread keeps for each direction and reuses */
#define THREADS_MAX 8
#define REPORTS 3  /* wrong messages reported in full */

static struct {
    int seconds, threads, hammers;
    uint64_t seed;
    size_t max;
    bool forks, raw, brk, deaf, late;
} options = {5, 2, 2, 1, 3 << 20, true, true, false, false, false};

static int rank, size;
static double end_at;
static atomic_ullong messages, bytes_rma, wrong_messages, stirs, repeats;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct worker {
    int index;
    MPI_Comm comm;
    uint64_t shared;    /* a generator with the same draws on all ranks */
    uint32_t number;    /* messages so far */
    block_yard yard;
    block out[KEPT], in[KEPT];
} worker;

static uint32_t shared_random(worker *me, uint32_t below)
{
    me->shared = me->shared * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((me->shared >> 33) % below);
}

/* -- payloads: each word identifies its message and position -- */

static uint64_t name_of(int sender, int thread, uint32_t number)
{
    return (uint64_t)(sender + 1) << 56 | (uint64_t)thread << 48 | (uint64_t)number << 20;
}

/* Odd multiples, so that no word is 0 or equals its neighbour. */
static uint64_t word_of(uint64_t name, size_t at) { return (name + at) * 0x9e3779b97f4a7c15u; }

static void fill(uint8_t *to, size_t bytes, uint64_t name)
{
    size_t words = bytes / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = word_of(name, i);
        memcpy(to + i * 8, &word, 8);
    }
    for (size_t i = words * 8; i < bytes; i++)
        to[i] = (uint8_t)word_of(name, i);
}

/* Offset of the first wrong byte, or `bytes`. */
static size_t first_wrong(const uint8_t *at, size_t bytes, uint64_t name)
{
    size_t words = bytes / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t want = word_of(name, i);
        if (memcmp(at + i * 8, &want, 8))
            return i * 8;
    }
    for (size_t i = words * 8; i < bytes; i++)
        if (at[i] != (uint8_t)word_of(name, i))
            return i;
    return bytes;
}

static void tell_wrong(const worker *me, const block *in, size_t bytes, uint32_t number, size_t at)
{
    uint64_t found = 0, name;
    size_t left = 0;
    const char *act = in->last_act >= 0 ? block_acts[in->last_act].name : "nothing";
    memcpy(&found, in->addr + at, bytes - at < 8 ? bytes - at : 8);
    name = found * 0xf1de83e19937733du; /* the multiplier's inverse: recovers the word's identity */
    for (size_t i = at; i < bytes; i++)
        left += in->addr[i] != 0xee;
    if (atomic_fetch_add(&wrong_messages, 1) >= REPORTS)
        return;
    fprintf(stderr, "churn: rank %d thread %d: WRONG DATA in message %u of %zu bytes at %zu: ", rank, me->index, number, bytes,
            at);
    if (found == 0xeeeeeeeeeeeeeeeeu)
        fprintf(stderr, "nothing arrived there");
    else if (found == 0)
        fprintf(stderr, "zero");
    else if ((int)(name >> 56) > size || (int)(name >> 48 & 255) >= THREADS_MAX)
        fprintf(stderr, "bytes that are no message's");
    else
        fprintf(stderr, "a word of rank %d thread %d message %u", (int)(name >> 56) - 1, (int)(name >> 48 & 255),
                (uint32_t)(name >> 20 & 0xfffffff));
    fprintf(stderr, "; received into %s, last: %s; %zu bytes from there on were written\n", block_kind_name(in->kind), act, left);
}

/* -- one round: a few messages in each direction -- */

/* A block for the next message: unchanged, changed, or another one. Its contents are undefined. */
static void prepare(worker *me, block *block, size_t bytes)
{
    uint32_t choice = block_random(&me->yard, 10);
    if (block->kind != BLOCK_NONE && choice < 4 && block->bytes >= bytes) {
        atomic_fetch_add_explicit(&repeats, 1, memory_order_relaxed);
        return;
    }
    if (block->kind == BLOCK_NONE) {
        block_alloc(&me->yard, block, bytes);
    } else if (choice < 8) {
        block_change(&me->yard, block, bytes);
    } else {
        block_free(&me->yard, block);
        block_alloc(&me->yard, block, bytes);
    }
    if (block->bytes < bytes) {
        block_free(&me->yard, block);
        block_alloc(&me->yard, block, bytes);
    }
    atomic_fetch_add_explicit(&stirs, 1, memory_order_relaxed);
}

static size_t choose_bytes(worker *me)
{
    uint32_t kind = shared_random(me, 8);
    return kind == 0 ? 1 + shared_random(me, 20000) : 1 + shared_random(me, kind < 5 ? 300000 : (uint32_t)options.max);
}

/* Different blocks of the KEPT: messages of a round share none. */
static void choose_blocks(worker *me, uint32_t count, block *all, block **chosen)
{
    uint32_t first = block_random(&me->yard, KEPT);
    for (uint32_t i = 0; i < count; i++)
        chosen[i] = &all[(first + i) % KEPT];
}

static void round_trip(worker *me)
{
    uint32_t count = 1 + shared_random(me, WINDOW);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request requests[2 * WINDOW];
    block *out[WINDOW], *in[WINDOW];
    size_t bytes[WINDOW];
    choose_blocks(me, count, me->out, out);
    choose_blocks(me, count, me->in, in);
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = choose_bytes(me);
        prepare(me, in[i], bytes[i]);
        memset(in[i]->addr, 0xee, bytes[i]);
        MPI_Irecv(in[i]->addr, (int)bytes[i], MPI_BYTE, left, 7, me->comm, &requests[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        prepare(me, out[i], bytes[i]);
        fill(out[i]->addr, bytes[i], name_of(rank, me->index, me->number + i));
        MPI_Isend(out[i]->addr, (int)bytes[i], MPI_BYTE, right, 7, me->comm, &requests[count + i]);
    }
    MPI_Waitall((int)(2 * count), requests, MPI_STATUSES_IGNORE);
    for (uint32_t i = 0; i < count; i++) {
        size_t at = first_wrong(in[i]->addr, bytes[i], name_of(left, me->index, me->number + i));
        if (at < bytes[i])
            tell_wrong(me, in[i], bytes[i], me->number + i, at);
        atomic_fetch_add_explicit(&bytes_rma, bytes[i], memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&messages, count, memory_order_relaxed);
    me->number += count;
}

static void *work(void *argument)
{
    worker *me = argument;
    int goes_on = 1;
    while (goes_on) {
        for (int i = 0; i < 10; i++)
            round_trip(me);
        goes_on = now() < end_at;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, me->comm);
    }
    for (int i = 0; i < KEPT; i++) {
        block_free(&me->yard, &me->out[i]);
        block_free(&me->yard, &me->in[i]);
    }
    return NULL;
}

static void worker_open(worker *me, int index)
{
    memset(me, 0, sizeof *me);
    me->index = index;
    me->shared = options.seed * 1000003u + (uint64_t)index;
    MPI_Comm_dup(MPI_COMM_WORLD, &me->comm);
    block_yard_open(&me->yard, options.seed * 7919u + (uint64_t)(rank * 64 + index), options.raw,
                    options.brk && options.threads == 0);
}

/* -- main -- */

static void read_options(int argc, char **argv)
{
    for (int c; (c = getopt(argc, argv, "s:t:h:r:m:fwbdl")) >= 0;)
        switch (c) {
        case 's': options.seconds = atoi(optarg); break;
        case 't': options.threads = atoi(optarg); break;
        case 'h': options.hammers = atoi(optarg); break;
        case 'r': options.seed = strtoull(optarg, NULL, 0); break;
        case 'm': options.max = strtoull(optarg, NULL, 0); break;
        case 'f': options.forks = false; break;
        case 'w': options.raw = false; break;
        case 'b': options.brk = true; break;
        case 'l': options.late = true; break;
        case 'd': options.deaf = true; break;
        default: exit(2);
        }
    if (options.threads > THREADS_MAX || options.max > BLOCK_MAX)
        exit(2);
}

/* Large messages from unchanged memory: afterwards the memory monitor has started and tested itself, and its events may be suppressed. */
static void warm_up(worker *me)
{
    uint8_t *buffer = malloc(options.max), *other = malloc(options.max);
    for (int i = 0; i < 4; i++) {
        memset(buffer, i, options.max);
        MPI_Sendrecv(buffer, (int)options.max, MPI_BYTE, (rank + 1) % size, 8, other, (int)options.max, MPI_BYTE,
                     (rank + size - 1) % size, 8,
                     me->comm, MPI_STATUS_IGNORE);
    }
    free(buffer);
    free(other);
    if (options.late)
        printf("churn: rank %d: %u listeners of userfaultfd delayed\n", rank, hammer_delay_listener());
    if (options.deaf) {
        void (*deafen)(void);
        *(void **)&deafen = dlsym(RTLD_DEFAULT, "weft_test_deafen");
        if (!deafen) {
            fprintf(stderr, "churn: -d without deaf.so preloaded\n");
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        deafen();
    }
    MPI_Barrier(me->comm);
}

static void tell_counts(void)
{
    char text[2000];
    int used = snprintf(text, sizeof text,
                        "churn: rank %d: %llu messages, %llu MB, %llu buffers changed before use, %llu used again", rank,
                        (unsigned long long)messages, (unsigned long long)(bytes_rma >> 20), (unsigned long long)stirs,
                        (unsigned long long)repeats);
    for (block_act *act = block_acts; act->name; act++)
        if (act->times)
            used += snprintf(text + used, sizeof text - (size_t)used, ", %s %llu", act->name, (unsigned long long)act->times);
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "; hammers: %llu turns, %llu addresses mapped again (%llu before munmap returned), "
                     "fork %llu, posix_spawn %llu, system %llu",
                     (unsigned long long)hammer_turns, (unsigned long long)hammer_races, (unsigned long long)hammer_overtaken,
                     (unsigned long long)hammer_forks,
                     (unsigned long long)hammer_spawns, (unsigned long long)hammer_systems);
    printf("%s\n", text);
}

int main(int argc, char **argv)
{
    static worker workers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    int provided, wants = MPI_THREAD_MULTIPLE;
    unsigned long long local[3], all[3];
    read_options(argc, argv);
    if (options.threads == 0)
        wants = MPI_THREAD_FUNNELED;
    MPI_Init_thread(&argc, &argv, wants, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (options.brk) { /* the break belongs to this program: see block_break_moves */
        mallopt(M_MMAP_THRESHOLD, 1 << 17);
        mallopt(M_TRIM_THRESHOLD, INT_MAX);
        mallopt(M_TOP_PAD, 64 << 20);
    } else if (options.seed & 1) { /* the heap grows and shrinks with every buffer */
        mallopt(M_MMAP_THRESHOLD, 1 << 25);
        mallopt(M_TRIM_THRESHOLD, 1 << 17);
    }
    for (int i = 0; i < (options.threads ? options.threads : 1); i++)
        worker_open(&workers[i], i);
    warm_up(&workers[0]);
    hammer_start((uint32_t)options.hammers, options.forks, options.raw, options.seed * 64 + (uint64_t)rank);
    end_at = now() + options.seconds;
    for (int i = 1; i < options.threads; i++)
        pthread_create(&threads[i], NULL, work, &workers[i]);
    work(&workers[0]);
    for (int i = 1; i < options.threads; i++)
        pthread_join(threads[i], NULL);
    hammer_stop();
    local[0] = wrong_messages;
    local[1] = block_moved_damage();
    local[2] = hammer_child_errors;
    MPI_Allreduce(local, all, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    tell_counts();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("churn: %llu wrong messages, %llu moved blocks damaged, %llu children failed\n", all[0], all[1], all[2]);
    for (int i = 0; i < (options.threads ? options.threads : 1); i++)
        MPI_Comm_free(&workers[i].comm);
    MPI_Finalize();
    return all[0] || all[1] || all[2] ? 1 : 0;
}

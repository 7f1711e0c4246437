/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: what threads of a process cost each other; by any MPI with MPI_THREAD_MULTIPLE. Called by hand: no test.
 *     threads stream [SECONDS]        2 ranks: one thread moves 256 MB messages, another does 4-byte MPI_Sendrecv: us, mean, 99 %, worst
 *     threads fresh [SECONDS]         the same from and into new mappings; over self,uring what it costs others to pin them (WEFT_REG_MODE)
 *     threads latency [RECEIVERS]     2 ranks: ping-pong of 8 bytes with RECEIVERS threads on the other side (osu_latency_mt): us
 *     threads pairs [THREADS]         2 ranks: THREADS ping-pongs at once, a tag each: us for one message, us per message of all
 *     threads exchange [THREADS]      any ranks: each thread sends to all and receives from all, 200 rounds: seconds
 *     threads alone                   2 ranks: ping-pong of 8 bytes, one thread, MPI_THREAD_MULTIPLE: us
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BIG (256 << 20)
#define THREADS_MAX 256
#define SAMPLES_MAX 2000000
#define ROUNDS 200

static int rank, size, threads;
static double seconds = 4;
static _Atomic int is_over;
static int is_fresh;
static MPI_Comm comms[2];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static char *new_buffer(void)
{
    char *buf = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buf == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memset(buf, 1, BIG);
}

static void *stream(void *arg)
{
    char *buf = new_buffer();
    long *count = arg;
    int go = 1;
    for (*count = 0; go; ++*count) {
        if (is_fresh && *count) {
            munmap(buf, BIG);
            buf = new_buffer();
        }
        if (rank == 0)
            MPI_Send(buf, BIG, MPI_CHAR, 1, 0, comms[0]);
        else
            MPI_Recv(buf, BIG, MPI_CHAR, 0, 0, comms[0], MPI_STATUS_IGNORE);
        go = !atomic_load(&is_over);
        MPI_Bcast(&go, 1, MPI_INT, 0, comms[0]);
    }
    munmap(buf, BIG);
    return NULL;
}

static void run_stream(void)
{
    double *samples = malloc(SAMPLES_MAX * sizeof *samples), sum = 0, begin, end = 0;
    long count, n = 0;
    pthread_t thread;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    pthread_create(&thread, NULL, stream, &count);
    begin = MPI_Wtime();
    for (int go = 1, in, is_last = 0; !is_last && n < SAMPLES_MAX; n++) {
        double start = MPI_Wtime();
        MPI_Sendrecv(&go, 1, MPI_INT, !rank, 1, &in, 1, MPI_INT, !rank, 1, comms[1], MPI_STATUS_IGNORE);
        end = MPI_Wtime();
        samples[n] = (end - start) * 1e6;
        sum += samples[n];
        is_last = rank == 0 ? !go : !in;
        go = end - begin < seconds && n < SAMPLES_MAX - 2;
    }
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
    qsort(samples, (size_t)n, sizeof *samples, compare);
    if (rank == 0)
        printf("stream: sendrecv mean %.1f us, median %.2f, 99 %% %.1f, worst %.0f (%ld); stream %.2f GB/s\n", sum / (double)n,
               samples[n / 2],
               samples[n * 99 / 100], samples[n - 1], n, (double)count * BIG / (MPI_Wtime() - begin) / 1e9);
    free(samples);
}

#define PINGS 20000

static void *receive(void *arg)
{
    char buf[8] = "";
    for (long i = (long)arg; i < PINGS; i += threads) {
        MPI_Recv(buf, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buf, 8, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    }
    return NULL;
}

static void run_latency(void)
{
    pthread_t ids[THREADS_MAX];
    char buf[8] = "";
    double start;
    for (int round = 0; round < 5; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (long i = 0; rank == 1 && i < threads; i++)
            pthread_create(&ids[i], NULL, receive, (void *)i);
        for (int i = 0; rank == 0 && i < PINGS; i++) {
            MPI_Send(buf, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buf, 8, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        for (int i = 0; rank == 1 && i < threads; i++)
            pthread_join(ids[i], NULL);
        if (rank == 0)
            printf("latency: %.2f us with %d receivers\n", (MPI_Wtime() - start) / PINGS / 2 * 1e6, threads);
    }
}

static void *pair(void *arg)
{
    int tag = (int)(long)arg, pings = PINGS / threads;
    char buf[8] = "";
    for (int i = 0; i < pings; i++)
        if (rank == 0) {
            MPI_Send(buf, 8, MPI_CHAR, 1, tag, MPI_COMM_WORLD);
            MPI_Recv(buf, 8, MPI_CHAR, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buf, 8, MPI_CHAR, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buf, 8, MPI_CHAR, 0, tag, MPI_COMM_WORLD);
        }
    return NULL;
}

static void *exchange(void *arg)
{
    int tag = (int)(long)arg;
    int out[64], in[64];
    MPI_Request reqs[128];
    for (int i = 0; i < ROUNDS; i++) {
        for (int r = 0; r < size && r < 64; r++) {
            out[r] = i;
            MPI_Irecv(&in[r], 1, MPI_INT, r, tag, MPI_COMM_WORLD, &reqs[2 * r]);
            MPI_Isend(&out[r], 1, MPI_INT, r, tag, MPI_COMM_WORLD, &reqs[2 * r + 1]);
        }
        for (int r = 0; r < 2 * size && r < 128; r++)
            MPI_Wait(&reqs[r], MPI_STATUS_IGNORE);
        for (int r = 0; r < size && r < 64; r++)
            if (in[r] != i) {
                printf("wrong: %d in place of %d\n", in[r], i);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    }
    return NULL;
}

static double all(void *(*work)(void *))
{
    pthread_t ids[THREADS_MAX];
    double start;
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, (void *)i);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    int provided;
    const char *what = argc > 1 ? argv[1] : "";
    setlinebuf(stdout);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    threads = argc > 2 ? atoi(argv[2]) : 2;
    if (provided != MPI_THREAD_MULTIPLE || threads < 1 || threads > THREADS_MAX)
        MPI_Abort(MPI_COMM_WORLD, 1);
    is_fresh = strcmp(what, "fresh") == 0;
    if (strcmp(what, "stream") == 0 || is_fresh) {
        seconds = argc > 2 ? atof(argv[2]) : seconds;
        run_stream();
    } else if (strcmp(what, "latency") == 0) {
        run_latency();
    } else if (strcmp(what, "alone") == 0) {
        threads = 1;
        for (int i = 0; i < 10; i++) {
            double took = all(pair);
            if (rank == 0)
                printf("alone: %.3f us\n", took / PINGS / 2 * 1e6);
        }
    } else if (strcmp(what, "pairs") == 0) {
        double took = all(pair);
        if (rank == 0)
            printf("pairs: %.2f us per message of one, %.2f of all %d\n", took / (PINGS / threads) / 2 * 1e6, took / PINGS / 2 * 1e6,
                   threads);
    } else if (strcmp(what, "exchange") == 0) {
        double took = all(exchange);
        if (rank == 0)
            printf("exchange: %.3f s, %d ranks, %d threads each\n", took, size, threads);
    } else if (rank == 0) {
        fprintf(stderr, "usage: threads stream|fresh|latency|pairs|exchange|alone [NUMBER]\n");
    }
    MPI_Finalize();
    return 0;
}

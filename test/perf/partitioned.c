/* SPDX-License-Identifier: BSD-3-Clause
 *
 * partitioned: time of a message that threads fill part by part, by any MPI of version 4. Run by test/perf/partitioned: no test.
 *     partitioned psend|isend|isends PARTITIONS THREADS BYTES     2 ranks; prints microseconds of one message, half a ping-pong
 * psend: each thread calls MPI_Pready for its partitions. isend: when all threads are done, one sends all by MPI_Isend, as a program
 * without partitions does. isends: each thread sends each of its partitions by MPI_Isend; the receiver waits for all.
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PSEND, ISEND, ISENDS };

static int mode, partitions, threads, rank, peer;
static long bytes;
static char *out, *in;
static MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL, *parts_out, *parts_in;
static _Atomic int turn, done;

/* The partitions of one thread. */
static void fill(int thread)
{
    long each = bytes / partitions;
    for (int i = thread; i < partitions; i += threads) {
        out[i * each]++;
        if (mode == PSEND)
            MPI_Pready(i, sending);
        else if (mode == ISENDS)
            MPI_Isend(out + i * each, (int)each, MPI_CHAR, peer, i, MPI_COMM_WORLD, &parts_out[i]);
    }
}

static void *help(void *arg)
{
    int me = (int)(long)arg;
    for (int i = 1;; i++) {
        while (atomic_load(&turn) < i)
            sched_yield();
        if (atomic_load(&turn) == 1 << 30)
            return NULL;
        fill(me);
        atomic_fetch_add(&done, 1);
    }
}

static void send_one(void)
{
    if (mode == PSEND)
        MPI_Start(&sending);
    atomic_store(&done, 0);
    atomic_fetch_add(&turn, 1);
    fill(0);
    while (atomic_load(&done) < threads - 1)
        sched_yield();
    if (mode == ISEND)
        MPI_Isend(out, (int)bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &sending);
    if (mode == ISENDS)
        MPI_Waitall(partitions, parts_out, MPI_STATUSES_IGNORE);
    else
        MPI_Wait(&sending, MPI_STATUS_IGNORE);
}

static void post(void)
{
    long each = bytes / partitions;
    if (mode == PSEND)
        MPI_Start(&receiving);
    else if (mode == ISEND)
        MPI_Irecv(in, (int)bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &receiving);
    else
        for (int i = 0; i < partitions; i++)
            MPI_Irecv(in + i * each, (int)each, MPI_CHAR, peer, i, MPI_COMM_WORLD, &parts_in[i]);
}

static void receive(void)
{
    if (mode == ISENDS)
        MPI_Waitall(partitions, parts_in, MPI_STATUSES_IGNORE);
    else
        MPI_Wait(&receiving, MPI_STATUS_IGNORE);
}

/* The next receive is posted before the message is sent to which it is the answer. */
static void ping_pong(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            post();
            send_one();
            receive();
        } else {
            receive();
            post();
            send_one();
        }
    }
}

int main(int argc, char **argv)
{
    pthread_t ids[64];
    int provided;
    double begin, seconds = 0.15;
    long rounds = 20;
    mode = argc > 4 && !strcmp(argv[1], "psend") ? PSEND : argc > 4 && !strcmp(argv[1], "isend") ? ISEND : ISENDS;
    partitions = argc > 4 ? atoi(argv[2]) : 1;
    threads = argc > 4 ? atoi(argv[3]) : 1;
    bytes = argc > 4 ? atol(argv[4]) : 8;
    if (partitions < 1 || threads < 1 || threads > 64 || bytes < partitions)
        return 2;
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    out = calloc(1, (size_t)bytes);
    in = calloc(1, (size_t)bytes);
    parts_out = malloc(sizeof *parts_out * (size_t)partitions);
    parts_in = malloc(sizeof *parts_in * (size_t)partitions);
    if (mode == PSEND) {
        MPI_Psend_init(out, partitions, bytes / partitions, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &sending);
        MPI_Precv_init(in, partitions, bytes / partitions, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receiving);
    }
    for (int i = 1; i < threads; i++)
        pthread_create(&ids[i], NULL, help, (void *)(long)i);
    if (rank == 1)
        post();
    MPI_Barrier(MPI_COMM_WORLD);
    ping_pong((int)rounds);
    MPI_Barrier(MPI_COMM_WORLD);
    begin = MPI_Wtime();
    ping_pong((int)rounds);
    begin = MPI_Wtime() - begin;
    rounds = (long)(seconds / (begin / (double)rounds)) + 1;
    MPI_Bcast(&rounds, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    begin = MPI_Wtime();
    ping_pong((int)rounds);
    if (rank == 0)
        printf("%.3f\n", (MPI_Wtime() - begin) / (double)rounds / 2 * 1e6);
    if (rank == 0)
        send_one(); /* the receive that rank 1 has posted ahead */
    else
        receive();
    atomic_store(&turn, 1 << 30);
    for (int i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    MPI_Finalize();
    return 0;
}

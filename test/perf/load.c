/* SPDX-License-Identifier: BSD-3-Clause
 *
 * load.c: a fixed piece of work for test/perf/load, timed from barrier to barrier: seconds are printed by rank 0.
 *     load talk     pairs of ranks exchange messages: latencies and streams of 8 bytes to 1 MB
 *     load compute  every rank computes about a millisecond, uneven, then exchanges with its neighbours and agrees
 *     load collect  small collectives
 *     load idle     all ranks but the last wait in a receive while that one sleeps a second: printed is the CPU time of all ranks meanwhile
 *     load burn     no MPI: a busy loop, ended by a signal, or when its parent is gone
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 1 << 20, WINDOW = 32 };

static int rank, ranks;
static char *out, *in;

static void ping(int peer, int bytes, int times)
{
    for (int i = 0; i < times; i++) {
        if (rank < peer) {
            MPI_Send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        }
    }
}

static void stream(int peer, int bytes, int times)
{
    MPI_Request requests[WINDOW];
    for (int i = 0; i < times; i++) {
        for (int w = 0; w < WINDOW; w++)
            if (rank < peer)
                MPI_Isend(out, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[w]);
            else
                MPI_Irecv(in, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[w]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank < peer)
            MPI_Recv(in, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(out, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
    }
}

static void talk(void)
{
    int peer = rank ^ 1;
    ping(peer, 8, 20000);
    ping(peer, 1024, 10000);
    ping(peer, 65536, 1000);
    ping(peer, LARGEST, 100);
    stream(peer, 8, 400);
    stream(peer, 8192, 100);
    stream(peer, 65536, 20);
    stream(peer, LARGEST, 4);
}

static double compute(long steps)
{
    volatile double x = 1;
    for (long i = 0; i < steps; i++)
        x = x * 1.0000001 + 1e-9;
    return x;
}

static void uneven(void)
{
    double local = 1, all;
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    for (int i = 0; i < 100; i++) {
        local += compute(200000 + 50000 * ((rank + i) % 4));
        MPI_Sendrecv(out, 8192, MPI_BYTE, right, 4, in, 8192, MPI_BYTE, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void collect(void)
{
    double local = 1, all;
    for (int i = 0; i < 200; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allreduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(out, 8192, MPI_BYTE, i % ranks, MPI_COMM_WORLD);
    }
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double idle(void)
{
    double begin = cpu_s(), local, all;
    if (rank == ranks - 1) {
        sleep(1);
        for (int i = 0; i < rank; i++)
            MPI_Send(out, 8, MPI_BYTE, i, 5, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, 8, MPI_BYTE, ranks - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    local = cpu_s() - begin;
    MPI_Reduce(&local, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

static int burn(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (volatile unsigned long i = 0;; i++)
        ;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double start, used = -1;
    if (!strcmp(what, "burn"))
        return burn();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = calloc(1, LARGEST);
    in = calloc(1, LARGEST);
    if (!out || !in || (ranks & 1))
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (!strcmp(what, "talk"))
        talk();
    else if (!strcmp(what, "compute"))
        uneven();
    else if (!strcmp(what, "collect"))
        collect();
    else if (!strcmp(what, "idle"))
        used = idle();
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.6f\n", used >= 0 ? used : MPI_Wtime() - start);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}

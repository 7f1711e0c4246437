/* SPDX-License-Identifier: BSD-3-Clause
 *
 * persistent: two ranks; persistent pairs beside ordinary nonblocking messages, for any MPI (compile with its mpicc).
 *    persistent [ROUNDS [BYTES [MOST]]]     a line per size, doubled from BYTES to MOST: microseconds of half a round trip, and per message
 *                                           of a stream into two alternating buffers
 * exchange: both ranks start a receive and a send to each other and wait for both, as a halo exchange does: microseconds per exchange.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 5 };

static int rank;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One receive and one send that are started again and again; ordinary: by Irecv and Isend. */
typedef struct way {
    int is_persistent, bytes, tag;
    char *in, *out;
    MPI_Request reqs[2]; /* receive, send */
} way;

static void open_way(way *w, int is_persistent, int bytes, int tag)
{
    *w = (way){is_persistent, bytes, tag, malloc((size_t)bytes), malloc((size_t)bytes), {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    memset(w->in, 1, (size_t)bytes);
    memset(w->out, 2, (size_t)bytes);
    if (!is_persistent)
        return;
    MPI_Recv_init(w->in, bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, &w->reqs[0]);
    MPI_Send_init(w->out, bytes, MPI_BYTE, 1 - rank, tag, MPI_COMM_WORLD, &w->reqs[1]);
}

static void close_way(way *w)
{
    for (int i = 0; i < 2 && w->is_persistent; i++)
        MPI_Request_free(&w->reqs[i]);
    free(w->in);
    free(w->out);
}

static void start(way *w, int is_send)
{
    if (w->is_persistent)
        MPI_Start(&w->reqs[is_send]);
    else if (is_send)
        MPI_Isend(w->out, w->bytes, MPI_BYTE, 1 - rank, w->tag, MPI_COMM_WORLD, &w->reqs[1]);
    else
        MPI_Irecv(w->in, w->bytes, MPI_BYTE, 1 - rank, w->tag, MPI_COMM_WORLD, &w->reqs[0]);
}

static void finish(way *w, int is_send) { MPI_Wait(&w->reqs[is_send], MPI_STATUS_IGNORE); }

/* The receive of the answer is started before the send. */
static void pingpong(way *w, int rounds)
{
    if (rank == 1)
        start(&w[0], 0);
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            start(&w[0], 0);
            start(&w[0], 1);
            finish(&w[0], 1);
            finish(&w[0], 0);
        } else {
            finish(&w[0], 0);
            if (i + 1 < rounds)
                start(&w[0], 0);
            start(&w[0], 1);
            finish(&w[0], 1);
        }
    }
}

/* Rank 0 sends, rank 1 receives; two buffers, so that one moves while the other is worked on. */
static void stream(way *w, int rounds)
{
    int is_send = rank == 0;
    start(&w[0], is_send);
    for (int i = 1; i < rounds; i++) {
        start(&w[i % 2], is_send);
        finish(&w[(i - 1) % 2], is_send);
    }
    finish(&w[(rounds - 1) % 2], is_send);
}

static void exchange(way *w, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        start(&w[0], 0);
        start(&w[0], 1);
        MPI_Waitall(2, w[0].reqs, MPI_STATUSES_IGNORE);
    }
}

/* Median of REPEATS, microseconds per round. */
static double measure(void (*what)(way *, int), int is_persistent, int bytes, int rounds)
{
    double took[REPEATS];
    way w[2];
    open_way(&w[0], is_persistent, bytes, 1);
    open_way(&w[1], is_persistent, bytes, 2);
    what(w, rounds / 4 + 20);
    for (int i = 0; i < REPEATS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        what(w, rounds);
        took[i] = (MPI_Wtime() - begin) / rounds * 1e6;
    }
    close_way(&w[0]);
    close_way(&w[1]);
    qsort(took, REPEATS, sizeof *took, by_size);
    return took[REPEATS / 2];
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1000, least = argc > 2 ? atoi(argv[2]) : 16384, most = argc > 3 ? atoi(argv[3]) : 1 << 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("%8s %22s %22s %22s\n%8s %11s%11s %11s%11s %11s%11s\n", "", "half round trip", "stream", "exchange", "bytes", "persistent",
               "ordinary", "persistent", "ordinary", "persistent", "ordinary");
    for (int bytes = least; bytes <= most; bytes *= 2) {
        double t[6];
        for (int i = 0; i < 6; i++)
            t[i] = measure(i < 2 ? pingpong : i < 4 ? stream : exchange, !(i % 2), bytes, rounds);
        if (rank == 0)
            printf("%8d %11.2f%11.2f %11.2f%11.2f %11.2f%11.2f\n", bytes, t[0] / 2, t[1] / 2, t[2], t[3], t[4], t[5]);
    }
    MPI_Finalize();
    return 0;
}

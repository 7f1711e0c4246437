/* SPDX-License-Identifier: BSD-3-Clause
 *
 * all_at_once: all ranks send their first message to all others at once, so that both sides request each connection; then all send to
 * one rank. Every payload is checked. Rank 0 prints the time of the first exchange.
 */
#include "../mpi/check.h"

#include <mpi.h>

enum { BYTES = 3000, RANKS = 64 };

static unsigned char out[RANKS][BYTES], in[RANKS][BYTES];

static void exchange(int rank, int size, unsigned round, int bytes)
{
    MPI_Request requests[2 * RANKS];
    int n = 0;
    for (int step = 1; step < size; step++) {
        int peer = (rank + step) % size;
        check_fill(out[peer], (size_t)bytes, round * 1000 + (unsigned)(rank * size + peer));
        OK(MPI_Irecv(in[peer], bytes, MPI_BYTE, peer, (int)round, MPI_COMM_WORLD, &requests[n++]));
        OK(MPI_Isend(out[peer], bytes, MPI_BYTE, peer, (int)round, MPI_COMM_WORLD, &requests[n++]));
    }
    OK(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    for (int peer = 0; peer < size; peer++)
        for (int at = 0; peer != rank && at < bytes; at++)
            CHECK(in[peer][at] == check_byte(round * 1000 + (unsigned)(peer * size + rank), (size_t)at), "from %d, round %u, byte %d", peer,
                  round, at);
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    CHECK(size <= RANKS, "at most %d ranks", RANKS);
    double begin = MPI_Wtime();
    exchange(rank, size, 1, 8);
    double first = MPI_Wtime() - begin;
    for (unsigned round = 2; round < 6; round++)
        exchange(rank, size, round, round % 2 ? 8 : BYTES);
    int sum = 0;
    for (int i = 0; i < 200 && rank != 0; i++)
        OK(MPI_Send(&rank, 1, MPI_INT, 0, 50, MPI_COMM_WORLD));
    for (int i = 0; i < 200 * (size - 1) && rank == 0; i++) {
        int from = -1;
        OK(MPI_Recv(&from, 1, MPI_INT, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        sum += from;
    }
    CHECK(rank != 0 || sum == 100 * size * (size - 1), "sum %d", sum);
    if (rank == 0)
        printf("%d ranks, everyone to everyone at first contact: %.3f s\n", size, first);
    MPI_Finalize();
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_resets: traffic of many kinds, each payload checked, while the program resets its own TCP connections at random steps. Exit code 1 on
 * wrong data.
 *     ofi_resets [SEED [STEPS [RESET_EVERY [STEP_MS]]]]    RESET_EVERY 0: none, the test's links flap instead
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/contract/tcp_reset.h"

enum { MESSAGES = 12, BYTES_MAX = 400000 };

static uint64_t state;
static int rank, size, errors;
static unsigned resets;

static uint32_t random_below(uint32_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % limit;
}

static uint8_t byte_of(int from, int step, int message, int at)
{
    uint32_t x = (uint32_t)(from * 7919 + step * 104729 + message * 1299709 + at) * 2654435761u;
    return (uint8_t)(x >> 24);
}

static int length_of(int from, int step, int message)
{
    uint32_t x = (uint32_t)(from * 31 + step * 17 + message * 7 + 1) * 2654435761u >> 8;
    return (int)(message % 4 == 3 ? x % BYTES_MAX : message % 4 == 2 ? x % 60000 : x % 2000);
}

/* Messages of many lengths to every rank and from it. */
static void exchange(int step, uint8_t *out, uint8_t *in)
{
    MPI_Request requests[2 * MESSAGES];
    int to = (rank + 1 + step % (size - 1)) % size, from = (rank + size - 1 - step % (size - 1)) % size;
    for (int m = 0; m < MESSAGES; m++)
        MPI_Irecv(in + m * BYTES_MAX, BYTES_MAX, MPI_BYTE, from, m, MPI_COMM_WORLD, &requests[m]);
    for (int m = 0; m < MESSAGES; m++) {
        int bytes = length_of(rank, step, m);
        for (int i = 0; i < bytes; i++)
            out[m * BYTES_MAX + i] = byte_of(rank, step, m, i);
        MPI_Isend(out + m * BYTES_MAX, bytes, MPI_BYTE, to, m, MPI_COMM_WORLD, &requests[MESSAGES + m]);
    }
    MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int m = 0; m < MESSAGES; m++)
        for (int i = 0, bytes = length_of(from, step, m); i < bytes; i++)
            if (in[m * BYTES_MAX + i] != byte_of(from, step, m, i)) {
                printf("rank %d, step %d: message %d of rank %d is wrong at byte %d\n", rank, step, m, from, i);
                errors++;
                break;
            }
}

static void sum(int step)
{
    int value = rank + step, total = 0;
    MPI_Allreduce(&value, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (total != size * (size - 1) / 2 + size * step) {
        printf("rank %d, step %d: the sum is %d\n", rank, step, total);
        errors++;
    }
}

/* Each rank adds 1 to a counter of every rank: none is lost or counted twice. */
static void count(MPI_Win window)
{
    const int one = 1;
    for (int i = 0; i < size; i++)
        MPI_Accumulate(&one, 1, MPI_INT, i, 0, 1, MPI_INT, MPI_SUM, window);
}

int main(int argc, char **argv)
{
    int steps = argc > 2 ? atoi(argv[2]) : 60, every = argc > 3 ? atoi(argv[3]) : 5, ms = argc > 4 ? atoi(argv[4]) : 0;
    int first = 3, *counter, all = 0;
    unsigned total = 0;
    uint8_t *out = malloc((size_t)MESSAGES * BYTES_MAX), *in = malloc((size_t)MESSAGES * BYTES_MAX);
    MPI_Win window;
    while (fcntl(first, F_GETFD) >= 0) /* the library's come after those that the launcher left open */
        first++;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = (argc > 1 ? strtoull(argv[1], NULL, 0) : 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank * 77 + 1;
    MPI_Win_allocate(sizeof *counter, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &window);
    *counter = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int step = 0; step < steps; step++) {
        if (every && random_below((uint32_t)every) == 0)
            resets += tcp_reset_one(first, random_below(TCP_RESET_FDS));
        exchange(step, out, in);
        count(window);
        if (every && random_below((uint32_t)every) == 0)
            resets += tcp_reset_one(first, random_below(TCP_RESET_FDS));
        MPI_Win_flush_all(window);
        sum(step);
        if (ms)
            usleep((useconds_t)ms * 1000);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (*counter != steps * size) {
        printf("rank %d: %d of %d accumulates\n", rank, *counter, steps * size);
        errors++;
    }
    MPI_Win_free(&window);
    MPI_Reduce(&resets, &total, 1, MPI_UNSIGNED, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d steps, %u resets, %d errors\n", steps, total, all);
    MPI_Finalize();
    free(out);
    free(in);
    return all != 0;
}

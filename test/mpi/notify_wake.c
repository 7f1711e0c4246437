/* np: 1 2 3 : notified access: a waiting rank that sleeps is woken, also by threads of its own; several threads wait for counters of one
 * window */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <unistd.h>

#include "../../examples/notify.h"
#include "check.h"

enum { TURNS = 60, THREADS = 3, SHARED = THREADS };

static int rank, size, next;
static MPI_Win win;
static int64_t *mine;

/* A lost wake-up costs a second: the turns then take a minute. */
static void sleepers(void)
{
    MPI_Count value;
    uint64_t state = 7;
    for (int turn = 1; turn <= TURNS; turn++) {
        int64_t word = turn * 10 + rank;
        useconds_t nap = check_random(&state) % 3000; /* before the first sleep, about it, and deep in it */
        if (rank == turn % size) {
            usleep(nap);
            for (int r = 0; r < size; r++)
                OK(MPIX_Put_notify(&word, 1, MPI_INT64_T, r, 0, 1, MPI_INT64_T, win, SHARED));
            OK(MPI_Win_flush_all(win));
        }
        OK(MPIX_Win_notify_wait(win, SHARED, turn, &value));
        CHECK(mine[0] / 10 == turn, "turn %d: %ld", turn, (long)mine[0]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

typedef struct player
{
    pthread_t thread;
    int id;
} player;

/* Thread i of each rank passes a token to thread i of the next rank, and all threads count on one more counter. */
static void *play(void *arg)
{
    const player *self = arg;
    uint64_t state = (uint64_t)(rank * THREADS + self->id + 1);
    MPI_Count value;
    for (int turn = 1; turn <= TURNS; turn++) {
        int64_t word = turn * 100 + self->id;
        int at = turn * THREADS + self->id; /* a word of its own: the rank before may be ahead */
        if (check_random(&state) % 8 == 0)
            usleep(check_random(&state) % 1000);
        OK(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win, self->id));
        OK(MPIX_Win_notify_wait(win, self->id, turn, &value));
        CHECK(value >= turn && value <= turn + size, "turn %d: %ld", turn, (long)value);
        CHECK(mine[at] == word, "turn %d: %ld", turn, (long)mine[at]);
        OK(MPIX_Put_notify(NULL, 0, MPI_INT64_T, rank, 0, 0, MPI_INT64_T, win, SHARED));
    }
    OK(MPIX_Win_notify_wait(win, SHARED, TURNS * THREADS, &value)); /* until the last thread of this rank */
    return NULL;
}

static void threads(void)
{
    player players[THREADS];
    MPI_Count value;
    OK(MPIX_Win_notify_reset(win, SHARED, &value));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < THREADS; i++) {
        players[i].id = i;
        CHECK(!pthread_create(&players[i].thread, NULL, play, &players[i]));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(players[i].thread, NULL);
    OK(MPIX_Win_notify_reset(win, SHARED, &value));
    CHECK(value == TURNS * THREADS, "%ld", (long)value);
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    next = (rank + 1) % size;
    for (int flavor = 0; flavor < 2; flavor++) {
        static int64_t memory[(TURNS + 1) * THREADS];
        if (flavor)
            OK(MPI_Win_create(mine = memory, sizeof memory, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        else
            OK(MPI_Win_allocate(sizeof memory, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        OK(MPIX_Win_notify_init(win, SHARED + 1));
        OK(MPI_Win_lock_all(0, win));
        sleepers();
        if (provided == MPI_THREAD_MULTIPLE)
            threads();
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Finalize());
    return 0;
}

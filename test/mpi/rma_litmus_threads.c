/* np: 1 2 3 : between threads of MPI_THREAD_MULTIPLE: data before a flag by put and flush, and no value lost or seen twice */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <sched.h>

#include "check.h"

/* The window of the last rank: a block, its flag, the reader's answer, a counter. */
enum { BLOCK = 64, FLAG = BLOCK, ANSWER, COUNTER, WORDS, TURNS = 300, ADDS = 1000, ADDERS = 2 };

static int rank, size, last;
static MPI_Win win;
static char seen[8 * ADDERS * ADDS]; /* of each value of the counter, at most 8 ranks */

static int64_t fetch(MPI_Aint at)
{
    int64_t none = 0, value = -1;
    OK(MPI_Fetch_and_op(&none, &value, MPI_INT64_T, last, at, MPI_NO_OP, win));
    OK(MPI_Win_flush(last, win));
    return value;
}

static void replace(MPI_Aint at, int64_t value)
{
    OK(MPI_Accumulate(&value, 1, MPI_INT64_T, last, at, 1, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Win_flush(last, win));
}

static void await(MPI_Aint at, int64_t value)
{
    while (fetch(at) != value)
        sched_yield();
}

static void *writer(void *unused)
{
    int64_t block[BLOCK];
    for (int64_t turn = 1; turn <= TURNS; turn++) {
        for (int i = 0; i < BLOCK; i++)
            block[i] = turn;
        OK(MPI_Put(block, BLOCK, MPI_INT64_T, last, 0, BLOCK, MPI_INT64_T, win));
        OK(MPI_Win_flush(last, win));
        replace(FLAG, turn);
        await(ANSWER, turn);
    }
    return unused;
}

static void *reader(void *unused)
{
    int64_t block[BLOCK];
    for (int64_t turn = 1; turn <= TURNS; turn++) {
        await(FLAG, turn);
        OK(MPI_Get(block, BLOCK, MPI_INT64_T, last, 0, BLOCK, MPI_INT64_T, win));
        OK(MPI_Win_flush(last, win));
        for (int i = 0; i < BLOCK; i++)
            CHECK(block[i] == turn, "turn %d, word %d: %d", (int)turn, i, (int)block[i]);
        replace(ANSWER, turn);
    }
    return unused;
}

/* Each fetched value is marked in seen[], at the rank that fetched it. */
static void *adder(void *unused)
{
    int64_t one = 1, before;
    for (int i = 0; i < ADDS; i++) {
        OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, last, COUNTER, MPI_SUM, win));
        OK(MPI_Win_flush(last, win));
        CHECK(before >= 0 && before < size * ADDERS * ADDS && !seen[before], "%d", (int)before);
        seen[before] = 1;
    }
    return unused;
}

int main(int argc, char **argv)
{
    static char all[sizeof seen];
    pthread_t threads[ADDERS + 2];
    int64_t *mine;
    int level, count = 0;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    last = size - 1;
    CHECK(level == MPI_THREAD_MULTIPLE && size * ADDERS * ADDS <= (int)sizeof seen);
    OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    memset(mine, 0, WORDS * sizeof *mine);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < ADDERS; i++)
        pthread_create(&threads[count++], NULL, adder, NULL);
    if (rank == 0)
        pthread_create(&threads[count++], NULL, writer, NULL);
    if (rank == last / 2) /* beside the writer, at the target, or at neither */
        pthread_create(&threads[count++], NULL, reader, NULL);
    while (count)
        pthread_join(threads[--count], NULL);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Reduce(seen, all, size * ADDERS * ADDS, MPI_CHAR, MPI_SUM, 0, MPI_COMM_WORLD));
    for (int i = 0; rank == 0 && i < size * ADDERS * ADDS; i++)
        CHECK(all[i] == 1, "value %d was fetched %d times", i, all[i]);
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}

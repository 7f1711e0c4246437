/* np: 1 2 3 4 : counters: fetch_and_op gives each value once (argument 1000000: that many), compare_and_swap, sums under locks */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { SWAPS = 500, SUMS = 100 };

static int rank, size, all = 50000; /* fetches of all ranks together */
static int64_t *words; /* 0: fetch_and_op, 1: compare_and_swap, 2: sum by get and put */
static MPI_Win win;

static int64_t share_of(int64_t total)
{
    return total / size + (rank < total % size);
}

static int64_t fetch(int64_t value, MPI_Op op, MPI_Aint at)
{
    int64_t old = -1;
    OK(MPI_Fetch_and_op(&value, &old, MPI_INT64_T, 0, at, op, win));
    OK(MPI_Win_flush(0, win));
    return old;
}

/* Each of the values 0 to all - 1 is fetched by one rank, and each rank sees them rise. */
static void count_up(void)
{
    int64_t mine = share_of(all), last = -1;
    unsigned char *seen = calloc(all, 1);
    CHECK(seen);
    OK(MPI_Win_lock_all(0, win));
    for (int64_t i = 0; i < mine; i++) {
        int64_t old = fetch(1, MPI_SUM, 0);
        CHECK(old > last && old < all, "%ld after %ld", (long)old, (long)last);
        seen[last = old] = 1;
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allreduce(MPI_IN_PLACE, seen, all, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < all; i++)
        CHECK(seen[i] == 1, "value %d fetched %d times", i, seen[i]);
    free(seen);
}

/* A swap that reports the compared value has happened, another has not. */
static void swap_up(void)
{
    int64_t known = 0;
    OK(MPI_Win_lock_all(0, win));
    for (int done = 0; done < SWAPS;) {
        int64_t next = known + 1, old = -1;
        OK(MPI_Compare_and_swap(&next, &known, &old, MPI_INT64_T, 0, 1, win));
        OK(MPI_Win_flush(0, win));
        CHECK(old >= known, "%ld after %ld", (long)old, (long)known);
        done += old == known;
        known = old == known ? next : old;
    }
    OK(MPI_Win_unlock_all(win));
}

/* The get and the put of one exclusive lock exclude those of others. */
static void sum_under_lock(void)
{
    for (int i = 0; i < SUMS; i++) {
        int64_t value = -1;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&value, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        value += rank + 1;
        OK(MPI_Put(&value, 1, MPI_INT64_T, 0, 2, 1, MPI_INT64_T, win));
        OK(MPI_Win_unlock(0, win));
    }
}

static void check_word(MPI_Aint at, int64_t must)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    int64_t value = fetch(0, MPI_NO_OP, at);
    OK(MPI_Win_unlock(0, win));
    CHECK(value == must, "word %ld is %ld instead of %ld", (long)at, (long)value, (long)must);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    if (argc > 1)
        all = atoi(argv[1]);
    OK(MPI_Win_allocate(3 * sizeof *words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    memset(words, 0, 3 * sizeof *words);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    count_up();
    check_word(0, all);
    swap_up();
    check_word(1, (int64_t)SWAPS * size);
    sum_under_lock();
    check_word(2, (int64_t)SUMS * size * (size + 1) / 2);
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}

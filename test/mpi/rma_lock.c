/* np: 1 2 3 4 : locks: exclusive ones exclude, shared ones and lock_all do not, several targets at once, nocheck, every flush, sync */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { WORDS = 64, TURNS = 30 };

static int rank, size;
static MPI_Win win;
static int64_t *mine;

static void clear(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    memset(mine, 0, WORDS * sizeof *mine);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Two words of one target are always equal outside of exclusive locks. */
static void excluded(void)
{
    clear();
    for (int turn = 0; turn < TURNS; turn++) {
        int target = (rank + turn) % size;
        int64_t words[2] = {-1, -2};
        if ((turn + rank) % 3) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
            OK(MPI_Get(words, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, win));
            OK(MPI_Win_flush(target, win));
            CHECK(words[0] == words[1], "%ld and %ld", (long)words[0], (long)words[1]);
            words[0]++;
            OK(MPI_Put(&words[0], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
            OK(MPI_Win_flush(target, win));
            OK(MPI_Put(&words[0], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win));
            OK(MPI_Win_unlock(target, win));
        } else {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
            OK(MPI_Get(words, 2, MPI_INT64_T, target, 0, 2, MPI_INT64_T, win));
            OK(MPI_Win_unlock(target, win));
            CHECK(words[0] == words[1], "%ld and %ld", (long)words[0], (long)words[1]);
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int64_t must = 0;
    for (int r = 0; r < size; r++)
        for (int turn = 0; turn < TURNS; turn++)
            must += (r + turn) % size == rank && (turn + r) % 3;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(mine[0] == must && mine[1] == must, "%ld instead of %ld", (long)mine[0], (long)must);
    OK(MPI_Win_unlock(rank, win));
}

/* A local exclusive lock protects loads and stores as well. */
static void own_window(void)
{
    clear();
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t one = 1;
        if (rank) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
            int64_t value;
            OK(MPI_Get(&value, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T, win));
            OK(MPI_Win_flush_local(0, win));
            value += one;
            OK(MPI_Put(&value, 1, MPI_INT64_T, 0, 5, 1, MPI_INT64_T, win));
            OK(MPI_Win_unlock(0, win));
        } else {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
            mine[5]++;
            OK(MPI_Win_unlock(0, win));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (!rank) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        CHECK(mine[5] == (int64_t)size * TURNS, "%ld", (long)mine[5]);
        OK(MPI_Win_unlock(0, win));
    }
}

/* All ranks hold shared locks at once: none waits for another to unlock. */
static void together(int assert)
{
    clear();
    for (int turn = 0; turn < 4; turn++) {
        int64_t value = rank + turn;
        if (turn < 2)
            OK(MPI_Win_lock_all(assert, win));
        else
            for (int r = 0; r < size; r++)
                OK(MPI_Win_lock(MPI_LOCK_SHARED, (r + rank) % size, assert, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int r = 0; r < size; r++)
            OK(MPI_Put(&value, 1, MPI_INT64_T, r, rank, 1, MPI_INT64_T, win));
        OK(turn % 3 ? MPI_Win_flush_all(win) : MPI_Win_flush(0, win));
        if (turn % 3 == 0)
            for (int r = 1; r < size; r++)
                OK(MPI_Win_flush(r, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int r = 0; r < size; r++) {
            int64_t got = -1;
            OK(MPI_Get(&got, 1, MPI_INT64_T, (rank + 1) % size, r, 1, MPI_INT64_T, win));
            OK(turn % 2 ? MPI_Win_flush_local((rank + 1) % size, win) : MPI_Win_flush_local_all(win));
            CHECK(got == r + turn, "%ld from word %d in turn %d", (long)got, r, turn);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (turn < 2)
            OK(MPI_Win_unlock_all(win));
        else
            for (int r = 0; r < size; r++)
                OK(MPI_Win_unlock((rank + size - r) % size, win));
    }
}

/* A buffer may be reused after flush_local; data has arrived after flush; MPI_Win_sync shows it to the target's loads. */
static void flushes(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int64_t words[WORDS], got[WORDS];
    clear();
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < WORDS; i++)
            words[i] = rank * 1000 + turn * 10 + i;
        OK(MPI_Put(words, WORDS, MPI_INT64_T, next, 0, WORDS, MPI_INT64_T, win));
        OK(turn % 2 ? MPI_Win_flush_local(next, win) : MPI_Win_flush_local_all(win));
        memset(words, 0x77, sizeof words);
        OK(turn % 2 ? MPI_Win_flush(next, win) : MPI_Win_flush_all(win));
        OK(MPI_Win_flush(before, win)); /* nothing is outstanding */
        OK(MPI_Get(got, WORDS, MPI_INT64_T, next, 0, WORDS, MPI_INT64_T, win));
        OK(MPI_Win_flush_local(next, win));
        for (int i = 0; i < WORDS; i++)
            CHECK(got[i] == rank * 1000 + turn * 10 + i, "word %d is %ld", i, (long)got[i]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_sync(win));
        for (int i = 0; i < WORDS; i++)
            CHECK(mine[i] == before * 1000 + turn * 10 + i, "word %d is %ld", i, (long)mine[i]);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_unlock_all(win));
}

/* Two ranks lock two targets in opposite orders, shared: no deadlock. An exclusive lock with nocheck while others stay away. */
static void orders(int assert)
{
    clear();
    for (int turn = 0; turn < TURNS; turn++) {
        int a = rank % 2 ? 0 : size - 1, b = size - 1 - a;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, a, 0, win));
        if (a != b)
            OK(MPI_Win_lock(MPI_LOCK_SHARED, b, 0, win));
        int64_t one = 1;
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, a, 0, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_unlock(a, win));
        if (a != b)
            OK(MPI_Win_unlock(b, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int r = 0; r < size; r++) {
        int64_t sum = 0, zero = 0;
        if (r == rank) {
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, assert, win));
            OK(MPI_Fetch_and_op(&zero, &sum, MPI_INT64_T, 0, 0, MPI_NO_OP, win));
            OK(MPI_Win_unlock(0, win));
            CHECK(sum == (size == 1 ? TURNS : (int64_t)TURNS * (size / 2)), "%ld", (long)sum);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

static void make(void)
{
    OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    CHECK(size <= WORDS);
    make();
    excluded();
    own_window();
    together(0);
    flushes();
    orders(0);
    for (int i = 0; i < 2; i++) { /* MPICH 4.0 never again grants an exclusive lock where a lock with nocheck was: windows of their own */
        OK(MPI_Win_free(&win));
        make();
        i ? orders(MPI_MODE_NOCHECK) : together(MPI_MODE_NOCHECK);
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}

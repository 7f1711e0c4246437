/* np: 2 3 4 : data before a flag by put and flush, accumulates of one origin in order, reads after writes, no torn values */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>

#include "check.h"

enum { WORDS = 512, TURNS = 150, FLAG = WORDS - 1 };

static int rank, size;
static MPI_Win win;
static int64_t *mine;

static int64_t fetch(int target, MPI_Aint at)
{
    int64_t none = 0, value = -1;
    OK(MPI_Fetch_and_op(&none, &value, MPI_INT64_T, target, at, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    return value;
}

static void replace(int target, MPI_Aint at, int64_t value)
{
    OK(MPI_Accumulate(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Win_flush(target, win));
}

static void clear(void)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    memset(mine, 0, WORDS * sizeof *mine);
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Rank 0 puts a block to the last rank, flushes, and raises a flag there. Every rank that sees the flag by fetch sees the block by get.
 * A reader lowers its own flag at rank 0 before the next block is put. */
static void message(int by_accumulate)
{
    int last = size - 1, n = FLAG - 1;
    int64_t *block = malloc(WORDS * sizeof *block);
    clear();
    for (int turn = 1; turn <= TURNS; turn++) {
        if (rank == 0) {
            for (int i = 0; i < n; i++)
                block[i] = turn * 1000 + i;
            if (by_accumulate)
                OK(MPI_Accumulate(block, n, MPI_INT64_T, last, 0, n, MPI_INT64_T, MPI_REPLACE, win));
            else
                OK(MPI_Put(block, n, MPI_INT64_T, last, 0, n, MPI_INT64_T, win));
            OK(MPI_Win_flush(last, win));
            replace(last, FLAG, turn);
            for (int r = 1; r < size; r++)
                while (fetch(0, r) != turn)
                    sched_yield(); /* ranks may outnumber CPUs */
        } else {
            while (fetch(last, FLAG) != turn)
                sched_yield();
            memset(block, 0xff, WORDS * sizeof *block);
            OK(MPI_Get(block, n, MPI_INT64_T, last, 0, n, MPI_INT64_T, win));
            OK(MPI_Win_flush(last, win));
            for (int i = 0; i < n; i++)
                CHECK(block[i] == turn * 1000 + i, "turn %d, word %d: the flag came before the data: %ld", turn, i, (long)block[i]);
            if (rank == last) { /* by loads as well */
                OK(MPI_Win_sync(win));
                for (int i = 0; i < n; i++)
                    CHECK(mine[i] == turn * 1000 + i, "turn %d, word %d: %ld", turn, i, (long)mine[i]);
            }
            replace(0, rank, turn);
        }
    }
    free(block);
}

/* Each origin writes rising values to its word without a flush between; a reader never sees them fall (waw, rar), and the origin's own
 * fetch returns its latest value (raw). Lengths vary, so that short and long calls take different ways. */
static void in_order(void)
{
    enum { LONG = 100 };
    int64_t values[8][LONG], got[8] = {0}, seen[8] = {0};
    int target = size - 1;
    CHECK(size <= 4);
    clear();
    for (int turn = 1; turn <= TURNS; turn++) {
        for (int i = 0; i < 8; i++) {
            int n = i % 3 == 0 ? 1 : i % 3 == 1 ? LONG : 7;
            for (int k = 0; k < n; k++)
                values[i][k] = turn * 8 + i;
            OK(MPI_Accumulate(values[i], n, MPI_INT64_T, target, rank * LONG, n, MPI_INT64_T, MPI_REPLACE, win));
            OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &got[i], 1, MPI_INT64_T, target, rank * LONG, 1, MPI_INT64_T, MPI_NO_OP, win));
        }
        OK(MPI_Win_flush_local(target, win));
        for (int i = 0; i < 8; i++)
            CHECK(got[i] == turn * 8 + i, "turn %d: a read overtook its write: %ld instead of %d", turn, (long)got[i], turn * 8 + i);
        for (int r = 0; r < size; r++) {
            int64_t now = fetch(target, r * LONG);
            CHECK(now >= seen[r], "word of rank %d fell from %ld to %ld", r, (long)seen[r], (long)now);
            seen[r] = now;
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        CHECK(fetch(target, r * LONG) == TURNS * 8 + 7, "%ld", (long)fetch(target, r * LONG));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* war: what is fetched is older than a later write of the same origin. */
static void read_then_write(void)
{
    int64_t got[32], values[32];
    int next = (rank + 1) % size;
    clear();
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < 32; i++) {
            values[i] = turn * 32 + i + 1;
            OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &got[i], 1, MPI_INT64_T, next, 4, 1, MPI_INT64_T, MPI_NO_OP, win));
            OK(MPI_Accumulate(&values[i], 1, MPI_INT64_T, next, 4, 1, MPI_INT64_T, MPI_REPLACE, win));
        }
        OK(MPI_Win_flush(next, win));
        for (int i = 0; i < 32; i++)
            CHECK(got[i] == turn * 32 + i, "turn %d: %ld instead of %d", turn, (long)got[i], turn * 32 + i);
    }
}

/* All ranks replace one element by a value of equal halves: a fetch never sees parts of two. The same for a double complex. */
static void whole(MPI_Datatype type, int parts, MPI_Aint at)
{
    int64_t value[2], old[2];
    clear();
    for (int turn = 0; turn < TURNS; turn++) {
        value[0] = value[1] = ((int64_t)(rank + 1) << 32) + turn + ((int64_t)(rank + 1) << 16);
        OK(MPI_Fetch_and_op(value, old, type, 0, at, MPI_REPLACE, win));
        OK(MPI_Win_flush(0, win));
        if (parts == 2)
            CHECK(old[0] == old[1], "%lx and %lx", (long)old[0], (long)old[1]);
        CHECK(old[0] == 0 || old[0] >> 32 == (old[0] >> 16 & 0xffff), "%lx", (long)old[0]);
    }
}

/* Dekker's test by fetch_and_op: of two ranks that write their own word and then read the other's, one reads what was written. */
static void store_buffering(void)
{
    int64_t other;
    for (int turn = 1; turn <= TURNS / 3; turn++) {
        int peer = 1 - rank;
        int64_t pair[2] = {0, 0};
        clear();
        if (rank < 2) {
            replace(0, 8 + rank * 8, turn);
            other = fetch(0, 8 + peer * 8);
            pair[rank] = other == turn;
        }
        OK(MPI_Allreduce(MPI_IN_PLACE, pair, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
        CHECK(pair[0] || pair[1], "turn %d: neither write was seen", turn);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    for (int flavor = 0; flavor < 2; flavor++) {
        if (flavor)
            OK(MPI_Win_create(mine = malloc(WORDS * sizeof *mine), WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD,
                              &win));
        else
            OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        OK(MPI_Win_lock_all(0, win));
        message(0);
        message(1);
        in_order();
        read_then_write();
        whole(MPI_INT64_T, 1, 2);
        whole(MPI_C_DOUBLE_COMPLEX, 2, 2);
        store_buffering();
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
        if (flavor)
            free(mine);
    }
    OK(MPI_Finalize());
    return 0;
}

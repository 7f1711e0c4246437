/* np: 1 2 3 4 : fences with every assertion, empty periods, put, get, accumulate and local stores in turn, several windows */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { WORDS = 64, TURNS = 20 };

static int rank, size;

/* Each rank owns word `rank` of every window. */
static void puts_and_gets(MPI_Win win, int64_t *mine, int turn)
{
    int64_t value = rank * 10000 + turn, got[WORDS];
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | (turn % 2 ? MPI_MODE_NOSTORE : 0), win));
    for (int r = 0; r < size; r++)
        OK(MPI_Put(&value, 1, MPI_INT64_T, (r + rank) % size, rank, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win));
    for (int r = 0; r < size; r++)
        CHECK(mine[r] == r * 10000 + turn, "word %d is %ld in turn %d", r, (long)mine[r], turn);
    for (int r = 0; r < size; r++)
        OK(MPI_Get(&got[r], 1, MPI_INT64_T, r, (rank + r) % size, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, win));
    for (int r = 0; r < size; r++)
        CHECK(got[r] == (rank + r) % size * 10000 + turn, "%ld from %d", (long)got[r], r);
}

/* Stores to the window happen between fences without puts. */
static void stores(MPI_Win win, int64_t *mine, int turn)
{
    int64_t got = -1, one = 1;
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < WORDS; i++)
        mine[i] = rank + i * turn;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get(&got, 1, MPI_INT64_T, (rank + turn) % size, turn % WORDS, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(MPI_MODE_NOPUT, win));
    CHECK(got == (rank + turn) % size + turn % WORDS * turn, "%ld", (long)got);
    OK(MPI_Win_fence(0, win)); /* nothing happens in this period */
    for (int r = 0; r < size; r++)
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, r, WORDS - 1, 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(mine[WORDS - 1] == rank + (WORDS - 1) * turn + size, "%ld", (long)mine[WORDS - 1]);
}

/* Epochs of two windows overlap; one holds what is put into the other. */
static void two_windows(MPI_Win one, int64_t *first, MPI_Win two, int64_t *second)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Win_fence(0, one));
    for (int i = 0; i < WORDS; i++)
        first[i] = rank * 100 + i;
    OK(MPI_Win_fence(0, one));
    OK(MPI_Win_fence(0, two));
    OK(MPI_Put(first, WORDS, MPI_INT64_T, next, 0, WORDS, MPI_INT64_T, two));
    OK(MPI_Win_fence(0, two));
    OK(MPI_Get(first, WORDS, MPI_INT64_T, next, 0, WORDS, MPI_INT64_T, two));
    OK(MPI_Win_fence(0, two));
    OK(MPI_Win_fence(0, one));
    for (int i = 0; i < WORDS; i++)
        CHECK(second[i] == before * 100 + i && first[i] == rank * 100 + i, "word %d: %ld %ld", i, (long)second[i], (long)first[i]);
}

/* One rank alone communicates; it is late, or the others are. */
static void one_rank(MPI_Win win, int64_t *mine, int who)
{
    int64_t values[WORDS];
    OK(MPI_Win_fence(0, win));
    mine[0] = -1;
    OK(MPI_Win_fence(0, win));
    if (rank == who)
        for (int r = 0; r < size; r++) {
            values[r] = who * 7 + r;
            OK(MPI_Put(&values[r], 1, MPI_INT64_T, r, 0, 1, MPI_INT64_T, win));
        }
    OK(MPI_Win_fence(0, win));
    CHECK(mine[0] == who * 7 + rank, "%ld", (long)mine[0]);
}

int main(int argc, char **argv)
{
    int64_t *first, *second = calloc(WORDS, sizeof *second);
    MPI_Win one, two;
    check_start(&argc, &argv, &rank, &size);
    CHECK(size <= WORDS && second);
    OK(MPI_Win_allocate(WORDS * sizeof *first, sizeof *first, MPI_INFO_NULL, MPI_COMM_WORLD, &first, &one));
    OK(MPI_Win_create(second, WORDS * sizeof *second, sizeof *second, MPI_INFO_NULL, MPI_COMM_WORLD, &two));
    for (int turn = 0; turn < TURNS; turn++) {
        puts_and_gets(one, first, turn);
        puts_and_gets(two, second, turn);
        stores(turn % 2 ? one : two, turn % 2 ? first : second, turn);
        two_windows(one, first, two, second);
        one_rank(turn % 2 ? one : two, turn % 2 ? first : second, turn % size);
    }
    OK(MPI_Win_free(&two));
    OK(MPI_Win_free(&one));
    free(second);
    OK(MPI_Finalize());
    return 0;
}

/* np: 1 2 3 4 : accumulates of all ranks at once lose nothing: exact sums, bits, maxima, derived types, long vectors, fetched values */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { WORDS = 4096, TURNS = 20 };

static int rank, size;
static MPI_Win win;
static int64_t *mine;

static void clear(int value)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    for (int i = 0; i < WORDS; i++)
        mine[i] = value;
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void read_all(int64_t *words)
{
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    memcpy(words, mine, WORDS * sizeof *mine);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Every rank adds to all words of every rank, in ranges that overlap those of others. */
static void sums(void)
{
    int64_t *out = malloc(WORDS * sizeof *out), *is = malloc(WORDS * sizeof *is), *must = calloc(WORDS, sizeof *must);
    clear(0);
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < TURNS; turn++)
        for (int r = 0; r < size; r++) {
            int from = (turn * 97 + rank * 31) % (WORDS / 2), n = 1 + (turn * 131 + rank * 7) % (WORDS / 2);
            for (int i = 0; i < n; i++)
                out[i] = (rank + 1) * 1000 + turn + i;
            OK(MPI_Accumulate(out, n, MPI_INT64_T, (r + rank) % size, from, n, MPI_INT64_T, MPI_SUM, win));
            OK(MPI_Win_flush_local((r + rank) % size, win));
        }
    OK(MPI_Win_unlock_all(win));
    read_all(is);
    for (int r = 0; r < size; r++)
        for (int turn = 0; turn < TURNS; turn++) {
            int from = (turn * 97 + r * 31) % (WORDS / 2), n = 1 + (turn * 131 + r * 7) % (WORDS / 2);
            for (int i = 0; i < n; i++)
                must[from + i] += (r + 1) * 1000 + turn + i;
        }
    for (int i = 0; i < WORDS; i++)
        CHECK(is[i] == must[i], "word %d is %ld instead of %ld", i, (long)is[i], (long)must[i]);
    free(out), free(is), free(must);
}

/* Ranks set bits of their own in the same words, find maxima and minima, and add doubles that are whole numbers. */
static void operators(void)
{
    int64_t is[WORDS];
    double sum;
    clear(0);
    OK(MPI_Win_fence(0, win));
    for (int turn = 0; turn < TURNS; turn++)
        for (int r = 0; r < size; r++) {
            static int64_t bits[TURNS][64], high[TURNS][64];
            static double one = 1;
            bits[turn][r] = (int64_t)1 << ((rank * TURNS + turn) % 62);
            high[turn][r] = rank * 100 + turn;
            OK(MPI_Accumulate(&bits[turn][r], 1, MPI_INT64_T, r, 0, 1, MPI_INT64_T, MPI_BOR, win));
            OK(MPI_Accumulate(&bits[turn][r], 1, MPI_INT64_T, r, 1, 1, MPI_INT64_T, MPI_BXOR, win));
            OK(MPI_Accumulate(&high[turn][r], 1, MPI_INT64_T, r, 2, 1, MPI_INT64_T, MPI_MAX, win));
            OK(MPI_Accumulate(&one, 1, MPI_DOUBLE, r, 3, 1, MPI_DOUBLE, MPI_SUM, win));
        }
    OK(MPI_Win_fence(0, win));
    memcpy(is, mine, sizeof is);
    int64_t or = 0, xor = 0;
    for (int i = 0; i < size * TURNS; i++)
        or |= (int64_t)1 << (i % 62), xor ^= (int64_t)1 << (i % 62);
    memcpy(&sum, &is[3], sizeof sum);
    CHECK(is[0] == or && is[1] == xor && is[2] == (size - 1) * 100 + TURNS - 1 && sum == size * TURNS, "%lx %lx %ld %g", (long)is[0],
          (long)is[1], (long)is[2], sum);
    OK(MPI_Win_fence(0, win));
}

/* Vectors with other gaps at each rank and on both sides; two of a rank's calls overlap. */
static void derived(void)
{
    int64_t out[WORDS], is[WORDS], must[WORDS] = {0};
    MPI_Datatype near, far;
    int step = rank + 2, n = WORDS / 8;
    OK(MPI_Type_vector(n, 1, 2, MPI_INT64_T, &near));
    OK(MPI_Type_vector(n, 1, step % 7 + 1, MPI_INT64_T, &far));
    OK(MPI_Type_commit(&near));
    OK(MPI_Type_commit(&far));
    clear(0);
    for (int i = 0; i < WORDS; i++)
        out[i] = rank * 10 + i;
    OK(MPI_Win_lock_all(0, win));
    for (int r = 0; r < size; r++) {
        OK(MPI_Accumulate(out, 1, near, r, rank, 1, far, MPI_SUM, win));
        OK(MPI_Accumulate(out, n, MPI_INT64_T, r, rank, 1, far, MPI_SUM, win));
        OK(MPI_Accumulate(out, 1, near, r, 5, n, MPI_INT64_T, MPI_SUM, win));
    }
    OK(MPI_Type_free(&near));
    OK(MPI_Type_free(&far));
    OK(MPI_Win_unlock_all(win));
    read_all(is);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < n; i++) {
            must[r + i * ((r + 2) % 7 + 1)] += 2 * r * 10 + 2 * i + i;
            must[5 + i] += r * 10 + 2 * i;
        }
    for (int i = 0; i < WORDS; i++)
        CHECK(is[i] == must[i], "word %d is %ld instead of %ld", i, (long)is[i], (long)must[i]);
}

/* A vector's elements are fetched and added one by one: each value of each element is seen by one rank. */
static void fetched(void)
{
    enum { EACH = 100, N = 10 };
    int64_t ones[N], old[N];
    unsigned char seen[N][EACH * 64] = {{0}};
    CHECK(size <= 64);
    clear(0);
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < EACH; turn++) {
        OK(MPI_Get_accumulate(ones, N, MPI_INT64_T, old, N, MPI_INT64_T, size - 1, 0, N, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_flush(size - 1, win));
        for (int i = 0; i < N; i++) {
            CHECK(old[i] >= 0 && old[i] < EACH * size, "%ld", (long)old[i]);
            seen[i][old[i]]++;
        }
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allreduce(MPI_IN_PLACE, seen, sizeof seen, MPI_UNSIGNED_CHAR, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < N; i++)
        for (int v = 0; v < EACH * size; v++)
            CHECK(seen[i][v] == 1, "value %d of element %d was fetched %d times", v, i, seen[i][v]);
}

/* Longer than any transport's message, of all ranks to one, with results. */
static void long_vectors(void)
{
    enum { LONG = 300000 };
    int *base, *out = malloc(LONG * sizeof *out), *old = malloc(LONG * sizeof *old);
    MPI_Win large;
    OK(MPI_Win_allocate(rank ? 0 : LONG * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &large));
    if (!rank)
        memset(base, 0, LONG * sizeof *base);
    OK(MPI_Win_fence(0, large));
    for (int i = 0; i < LONG; i++)
        out[i] = i % 1000 + rank;
    OK(MPI_Accumulate(out, LONG, MPI_INT, 0, 0, LONG, MPI_INT, MPI_SUM, large));
    OK(MPI_Win_fence(0, large));
    OK(MPI_Get_accumulate(out, LONG, MPI_INT, old, LONG, MPI_INT, 0, 0, LONG, MPI_INT, MPI_SUM, large));
    OK(MPI_Win_fence(0, large));
    for (int i = 0; i < LONG; i++) {
        int once = size * (i % 1000) + size * (size - 1) / 2;
        CHECK(old[i] >= once && old[i] <= 2 * once - out[i], "element %d: %d fetched", i, old[i]);
        CHECK(rank || base[i] == 2 * once, "element %d: %d", i, base[i]);
    }
    OK(MPI_Win_free(&large));
    free(out), free(old);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    sums();
    operators();
    derived();
    fetched();
    long_vectors();
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}

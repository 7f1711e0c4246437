/* np: 2 3 4 : passive targets: every call completes at the origin while the target computes and calls no MPI function */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { WORDS = 100000, LONGEST_S = 120 };

static int rank, size;
static MPI_Win win;
static MPI_Aint base; /* target's displacement of word 0 */

/* The target leaves only when each origin has put its mark: nothing here depends on speed. */
static void compute(int64_t *words)
{
    struct timespec pause = {0, 1000000};
    uint64_t work = 0;
    for (int ms = 0;; ms++) {
        int marks = 0;
        for (int r = 1; r < size; r++)
            marks += atomic_load((_Atomic int64_t *)&words[r]) == 1000 + r;
        if (marks == size - 1)
            return;
        for (int i = 0; i < 100000; i++)
            work = work * 7 + (uint64_t)i;
        words[WORDS - 1] = (int64_t)work;
        CHECK(ms < LONGEST_S * 1000, "%d of %d origins are done: the others wait for this rank, which computes", marks, size - 1);
        nanosleep(&pause, NULL);
    }
}

/* Every operation and its completion at rank 0; then the mark. */
static void work(int unit)
{
    int64_t *out = malloc(WORDS * sizeof *out), *in = malloc(WORDS * sizeof *in), one = 1, old, mark = 1000 + rank, none = 0;
    MPI_Aint at = base + (MPI_Aint)(size + 1) * unit, own = base + (MPI_Aint)(1000 * (rank + 1)) * unit;
    struct timespec second = {1, 0};
    MPI_Datatype apart;
    MPI_Request req;
    nanosleep(&second, NULL); /* any helper of the target has gone to sleep */
    OK(MPI_Type_vector(100, 1, 2, MPI_INT64_T, &apart));
    OK(MPI_Type_commit(&apart));
    for (int i = 0; i < WORDS; i++)
        out[i] = rank * 1000 + i;
    for (int turn = 0; turn < 5; turn++) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Put(out, 200, MPI_INT64_T, 0, own, 200, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Get(in, 200, MPI_INT64_T, 0, own, 200, MPI_INT64_T, win));
        OK(MPI_Win_unlock(0, win));
        CHECK(!memcmp(in, out, 200 * sizeof *in));
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Put(out, 1, apart, 0, own, 1, apart, win));
        OK(MPI_Accumulate(out, 100, MPI_INT64_T, 0, own + 300 * unit, 100, MPI_INT64_T, MPI_REPLACE, win));
        OK(MPI_Win_flush_all(win));
        OK(MPI_Rget(in, 100, MPI_INT64_T, 0, own + 300 * unit, 100, MPI_INT64_T, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(!memcmp(in, out, 100 * sizeof *in));
        OK(MPI_Get(in, 1, apart, 0, own, 1, apart, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, at, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(old >= turn && old < 5 * (size - 1) && in[198] == out[198], "%ld", (long)old);
        OK(MPI_Compare_and_swap(&one, &none, &old, MPI_INT64_T, 0, at + unit, win));
        OK(MPI_Win_flush(0, win));
        CHECK(old == 0 || old == 1);
        OK(MPI_Win_unlock_all(win));
    }
    if (rank == 1) { /* 400 KB */
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Put(out, WORDS / 2, MPI_INT64_T, 0, base + (MPI_Aint)(WORDS / 4) * unit, WORDS / 2, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Get(in, WORDS / 2, MPI_INT64_T, 0, base + (MPI_Aint)(WORDS / 4) * unit, WORDS / 2, MPI_INT64_T, win));
        OK(MPI_Win_unlock(0, win));
        CHECK(!memcmp(in, out, WORDS / 2 * sizeof *in));
    }
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    OK(MPI_Accumulate(&mark, 1, MPI_INT64_T, 0, base + rank * (MPI_Aint)unit, 1, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Type_free(&apart));
    free(out), free(in);
}

/* Flavors: MPI_Win_allocate, MPI_Win_create, MPI_Win_create_dynamic. */
static void run(int flavor)
{
    int64_t *words = NULL;
    MPI_Aint bytes = rank ? 0 : WORDS * (MPI_Aint)sizeof *words;
    int unit = flavor == 2 ? sizeof *words : 1;
    base = 0;
    if (flavor == 0)
        OK(MPI_Win_allocate(bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win));
    else if (!rank)
        CHECK((words = malloc((size_t)bytes)));
    if (flavor == 1)
        OK(MPI_Win_create(words, bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    if (flavor == 2) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        if (!rank) {
            OK(MPI_Win_attach(win, words, bytes));
            OK(MPI_Get_address(words, &base));
        }
        OK(MPI_Bcast(&base, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    }
    if (!rank) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        memset(words, 0, (size_t)bytes);
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank)
        work(unit);
    else
        compute(words);
    OK(MPI_Win_free(&win));
    if (flavor && !rank)
        free(words);
}

/* Another MPI need not progress here: it runs the flavors that are its arguments, by default MPI_Win_allocate. */
int main(int argc, char **argv)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Get_library_version(library, &length));
    int flavors = argc > 1 ? atoi(argv[1]) : strstr(library, "Weft") ? 3 : 1;
    for (int flavor = 0; flavor < flavors; flavor++)
        run(flavor);
    OK(MPI_Finalize());
    return 0;
}

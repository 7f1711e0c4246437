/* np: 2 3 4 : puts and gets end while their target computes, without a progress thread: the kernel or a device moves them; no copies count;
 * on a window of its own memory, and on a dynamic one whose regions the origins know */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <time.h>

#include "device_counts.h"

enum { WORDS = 32768, LONGEST_S = 120 };

static int rank, size;

/* The target leaves only when each origin has put its mark: nothing here depends on speed. */
static void compute(const int64_t *words)
{
    struct timespec pause = {0, 1000000};
    for (int ms = 0;; ms++) {
        int marks = 0;
        for (int r = 1; r < size; r++)
            marks += atomic_load((const _Atomic int64_t *)&words[r]) == 1000 + r;
        if (marks == size - 1)
            return;
        CHECK(ms < LONGEST_S * 1000, "%d of %d origins are done: the others wait for this rank, which computes", marks, size - 1);
        nanosleep(&pause, NULL);
    }
}

/* at: displacement of rank 0's words; unit: displacements of a word. */
static void use(MPI_Win win, MPI_Aint at, MPI_Aint unit)
{
    int64_t *out = malloc(WORDS * sizeof *out), *in = malloc(WORDS * sizeof *in), mark = 1000 + rank;
    MPI_Request req;
    for (int turn = 0; turn < 20; turn++) {
        int count = turn % 4 ? 100 * turn + turn : WORDS;
        for (int i = 0; i < count; i++)
            out[i] = rank * 1000003 + turn * 17 + i;
        memset(in, 0, WORDS * sizeof *in);
        OK(MPI_Put(out, count, MPI_INT64_T, 0, at + (size + (MPI_Aint)rank * WORDS) * unit, count, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Rget(in, count, MPI_INT64_T, 0, at + (size + (MPI_Aint)rank * WORDS) * unit, count, MPI_INT64_T, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(!memcmp(in, out, (size_t)count * sizeof *in), "turn %d", turn);
    }
    OK(MPI_Put(&mark, 1, MPI_INT64_T, 0, at + rank * unit, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(0, win));
    free(out), free(in);
}

/* After the first put into each region it is known which way they go. False: by messages, on some rank. */
static int goes_by_device(MPI_Win win, MPI_Aint at, MPI_Aint unit)
{
    int64_t none = 0;
    int is_moved = 1, all;
    for (int turn = 0; rank && turn < 2; turn++) {
        uint64_t before = counted(PUTS);
        OK(MPI_Put(&none, 1, MPI_INT64_T, 0, at + rank * unit, 1, MPI_INT64_T, win));
        OK(MPI_Put(&none, 1, MPI_INT64_T, 0, at + (size + (MPI_Aint)rank * WORDS) * unit, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        is_moved = counted(PUTS) == before + 2;
    }
    OK(MPI_Allreduce(&is_moved, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    return all;
}

static void compare(MPI_Win win, const int64_t *words, MPI_Aint at, MPI_Aint unit)
{
    uint64_t copied, messages;
    int is_moved;
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    is_moved = goes_by_device(win, at, unit);
    copied = counted(COPIED);
    messages = counted(MESSAGES);
    if (!is_moved) {
        if (!rank)
            printf("no transport here moves puts without the target\n");
    } else if (rank) {
        use(win, at, unit);
        CHECK(counted(MESSAGES) == messages);
        CHECK(counted(COPIED) - copied < 20 * 2048, "%llu bytes were copied", (unsigned long long)(counted(COPIED) - copied));
    } else {
        compute(words);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    int64_t *words;
    int provided;
    MPI_Aint bytes, at;
    MPI_Win win;
    setenv("WEFT_PROGRESS_THREAD", "off", 1);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    check_start(&argc, &argv, &rank, &size);
    count();
    bytes = (MPI_Aint)(size + size * WORDS) * (MPI_Aint)sizeof *words;
    CHECK((words = calloc(1, (size_t)bytes)));
    OK(MPI_Win_create(words, bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    compare(win, words, 0, 1);
    memset(words, 0, (size_t)bytes);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, words, size * (MPI_Aint)sizeof *words)); /* the marks; then each rank's words */
    for (int r = 0; r < size; r++)
        OK(MPI_Win_attach(win, words + size + r * WORDS, WORDS * sizeof *words));
    OK(MPI_Get_address(words, &at));
    OK(MPI_Bcast(&at, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    compare(win, words, at, sizeof *words);
    free(words);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return 0;
}

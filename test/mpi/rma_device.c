/* np: 2 3 4 : puts and gets end while their target computes, without a progress thread: the kernel or a device moves them; no copies count */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { WORDS = 32768, LONGEST_S = 120 };

static int rank, size;

enum { PUTS, MESSAGES, COPIED, COUNTERS };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS];
static int has_counters;

/* Counts from here on. Another MPI has none of these counters. */
static void count(void)
{
    static const char *const names[] = {"weft_device_puts", "weft_window_messages", "weft_bytes_copied"};
    OK(MPI_T_pvar_session_create(&session));
    has_counters = 1;
    for (int i = 0; i < COUNTERS; i++) {
        int index, elements;
        if (!has_counters || MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index)) {
            has_counters = 0;
            continue;
        }
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &elements));
        OK(MPI_T_pvar_start(session, handles[i]));
    }
}

static uint64_t counted(int which)
{
    uint64_t value = 0;
    if (has_counters)
        OK(MPI_T_pvar_read(session, handles[which], &value));
    return value;
}

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

static void use(MPI_Win win)
{
    int64_t *out = malloc(WORDS * sizeof *out), *in = malloc(WORDS * sizeof *in), mark = 1000 + rank;
    MPI_Request req;
    for (int turn = 0; turn < 20; turn++) {
        int count = turn % 4 ? 100 * turn + turn : WORDS;
        for (int i = 0; i < count; i++)
            out[i] = rank * 1000003 + turn * 17 + i;
        memset(in, 0, WORDS * sizeof *in);
        OK(MPI_Put(out, count, MPI_INT64_T, 0, size + (MPI_Aint)rank * WORDS, count, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Rget(in, count, MPI_INT64_T, 0, size + (MPI_Aint)rank * WORDS, count, MPI_INT64_T, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(!memcmp(in, out, (size_t)count * sizeof *in), "turn %d", turn);
    }
    OK(MPI_Put(&mark, 1, MPI_INT64_T, 0, rank, 1, MPI_INT64_T, win));
    OK(MPI_Win_flush(0, win));
    free(out), free(in);
}

int main(int argc, char **argv)
{
    int64_t *words;
    uint64_t copied, messages;
    int provided, token = 0;
    MPI_Aint bytes;
    MPI_Win win;
    setenv("WEFT_PROGRESS_THREAD", "off", 1);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    check_start(&argc, &argv, &rank, &size);
    count();
    bytes = (MPI_Aint)(size + size * WORDS) * (MPI_Aint)sizeof *words;
    CHECK((words = calloc(1, (size_t)bytes)));
    OK(MPI_Win_create(words, bytes, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (rank) { /* after the first put and flush it is known which way they go */
        int64_t none = 0;
        OK(MPI_Put(&none, 1, MPI_INT64_T, 0, rank, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
        token = counted(PUTS) != 0;
        OK(MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD));
    }
    for (int r = 1; r < size && !rank; r++) {
        int other;
        OK(MPI_Recv(&other, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        token += other;
    }
    OK(MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD));
    copied = counted(COPIED);
    messages = counted(MESSAGES);
    if (token == 0) {
        if (!rank)
            printf("no transport here moves puts without the target\n");
    } else if (rank) {
        use(win);
        CHECK(counted(MESSAGES) == messages);
        CHECK(counted(COPIED) - copied < 20 * 2048, "%llu bytes were copied", (unsigned long long)(counted(COPIED) - copied));
    } else {
        compute(words);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    free(words);
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return 0;
}

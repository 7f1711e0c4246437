/* np: 1 2 3 : large-count forms: every call, counts and units beyond int, windows by MPI_Win_create_c, allocate_c and allocate_shared_c */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { WORDS = 1000 };

static int rank, size;

static void calls(MPI_Win win, int64_t *mine)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int64_t out[WORDS], in[WORDS], old[WORDS];
    MPI_Request reqs[4];
    MPI_Count n = WORDS / 4;
    for (int i = 0; i < WORDS; i++)
        out[i] = rank * 10000 + i, in[i] = old[i] = -1;
    OK(MPI_Win_lock_all(0, win));
    memset(mine, 0, WORDS * sizeof *mine);
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Put_c(out, n, MPI_INT64_T, next, 0, n, MPI_INT64_T, win));
    OK(MPI_Accumulate_c(out, n, MPI_INT64_T, next, n, n, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Rput_c(out, n, MPI_INT64_T, next, 2 * n, n, MPI_INT64_T, win, &reqs[0]));
    OK(MPI_Raccumulate_c(out, n, MPI_INT64_T, next, 3 * n, n, MPI_INT64_T, MPI_REPLACE, win, &reqs[1]));
    OK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Get_c(in, n, MPI_INT64_T, next, 2 * n, n, MPI_INT64_T, win));
    OK(MPI_Rget_c(in + n, n, MPI_INT64_T, next, 0, n, MPI_INT64_T, win, &reqs[2]));
    OK(MPI_Get_accumulate_c(out, n, MPI_INT64_T, old, n, MPI_INT64_T, next, n, n, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Rget_accumulate_c(NULL, 0, MPI_INT64_T, old + n, n, MPI_INT64_T, next, 3 * n, n, MPI_INT64_T, MPI_NO_OP, win, &reqs[3]));
    OK(MPI_Waitall(2, reqs + 2, MPI_STATUSES_IGNORE));
    OK(MPI_Win_flush(next, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < n; i++) {
        CHECK(in[i] == out[i] && in[n + i] == out[i] && old[i] == out[i] && old[n + i] == out[i], "element %d: %ld %ld %ld %ld", i,
              (long)in[i], (long)in[n + i], (long)old[i], (long)old[n + i]);
        CHECK(mine[i] == before * 10000 + i && mine[n + i] == 2 * mine[i] && mine[2 * n + i] == mine[i] && mine[3 * n + i] == mine[i],
              "element %d", i);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_unlock_all(win));
}

/* More elements than an int counts, of a type without bytes; a vector type built with large counts. */
static void counts(MPI_Win win, int64_t *mine)
{
    MPI_Count many = (MPI_Count)1 << 33;
    MPI_Datatype none, apart;
    int64_t out[12] = {0}, next = (rank + 1) % size;
    OK(MPI_Type_contiguous_c(0, MPI_INT64_T, &none));
    OK(MPI_Type_commit(&none));
    OK(MPI_Type_vector_c(3, 1, 4, MPI_INT64_T, &apart));
    OK(MPI_Type_commit(&apart));
    for (int i = 0; i < 12; i++)
        out[i] = rank + i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put_c(out, many, none, (int)next, 0, many, none, win));
    OK(MPI_Get_c(out, many, none, (int)next, 0, many, none, win));
    OK(MPI_Put_c(out, (MPI_Count)1, apart, (int)next, 7, (MPI_Count)3, MPI_INT64_T, win));
    OK(MPI_Type_free(&none));
    OK(MPI_Type_free(&apart));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 3; i++)
        CHECK(mine[7 + i] == (rank + size - 1) % size + 4 * i, "%ld", (long)mine[7 + i]);
    OK(MPI_Win_fence(0, win));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    int64_t *mine, *memory, *at;
    MPI_Aint bytes, unit, large = (MPI_Aint)1 << 35;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Win_allocate_c(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    calls(win, mine);
    counts(win, mine);
    OK(MPI_Win_free(&win));
    OK(MPI_Alloc_mem(WORDS * sizeof *mine, MPI_INFO_NULL, &memory));
    OK(MPI_Win_create_c(memory, WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    calls(win, memory);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate_shared_c(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_SELF, &mine, &win));
    OK(MPI_Win_shared_query_c(win, 0, &bytes, &unit, &at));
    CHECK(bytes == WORDS * (MPI_Aint)sizeof *mine && unit == sizeof *mine && at == mine);
    OK(MPI_Win_free(&win));
    if (MPI_VERSION >= 5) { /* a unit that no int holds: only displacement 0 is inside; MPICH 4.0 refuses it */
        int64_t value = 3 + rank;
        OK(MPI_Win_create_c(memory, WORDS * sizeof *mine, large, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put_c(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win));
        OK(MPI_Win_fence(0, win));
        CHECK(memory[0] == 3 + (rank + size - 1) % size, "%ld", (long)memory[0]);
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Free_mem(memory));
    OK(MPI_Finalize());
    return 0;
}

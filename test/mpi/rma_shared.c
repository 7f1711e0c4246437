/* np: 1 2 3 4 : shared windows: contiguous and not, queries of each rank and of MPI_PROC_NULL, loads and stores, a flag between
 * neighbours */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>

#include "check.h"

enum { TURNS = 40 };

static int rank, size, flag;
static MPI_Comm node;

static int *query(MPI_Win win, int of, MPI_Aint must_bytes, int must_unit)
{
    MPI_Aint bytes = -1;
    int unit = -1, *at = NULL;
    OK(MPI_Win_shared_query(win, of, &bytes, &unit, &at));
    CHECK(bytes == must_bytes && unit == must_unit, "rank %d: %ld bytes, unit %d", of, (long)bytes, unit);
    return at;
}

/* Rank r has r ints; rank 0 none. `gaps`: memory need not be contiguous. */
static void layout(int gaps)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Win win;
    int *mine = NULL, *before = NULL;
    void *value;
    if (gaps) {
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    }
    OK(MPI_Win_allocate_shared(rank * (MPI_Aint)sizeof *mine, 4 * (rank + 1), info, node, &mine, &win));
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *(int *)value == MPI_WIN_FLAVOR_SHARED);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED);
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && (!rank || value == mine), "%p", value);
    for (int r = 0; r < size; r++) {
        int *at = query(win, r, r * (MPI_Aint)sizeof *mine, 4 * (r + 1));
        if (r == rank && r)
            CHECK(at == mine);
        if (r > 1 && !gaps)
            CHECK(at == before + r - 1, "rank %d's part does not follow that of %d", r, r - 1);
        before = at;
    }
    if (size > 1) {
        CHECK(query(win, MPI_PROC_NULL, 4, 8) == query(win, 1, 4, 8));
    }
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < rank; i++)
        mine[i] = rank * 100 + i;
    OK(MPI_Win_fence(0, win));
    for (int r = 1; r < size; r++)
        for (int i = 0; i < r; i++)
            CHECK(query(win, r, r * 4, 4 * (r + 1))[i] == r * 100 + i);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    if (gaps)
        OK(MPI_Info_free(&info));
}

/* All parts are empty. */
static void nothing(void)
{
    MPI_Win win;
    int *mine;
    OK(MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, node, &mine, &win));
    MPI_Aint bytes = -1;
    int unit;
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &mine));
    CHECK(bytes == 0);
    OK(MPI_Win_free(&win));
}

/* Stores and one-sided operations see each other: a value passes round by load, put and accumulate in turn. */
static void mixed(void)
{
    MPI_Win win;
    int64_t *mine, *next, got = -1;
    MPI_Aint bytes;
    int unit, to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(MPI_Win_allocate_shared(4 * sizeof *mine, sizeof *mine, MPI_INFO_NULL, node, &mine, &win));
    OK(MPI_Win_shared_query(win, to, &bytes, &unit, &next));
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t value = rank * 1000 + turn;
        OK(MPI_Win_fence(0, win));
        memset(mine, 0, 4 * sizeof *mine);
        OK(MPI_Win_fence(0, win));
        next[0] = value; /* my neighbour's window by a store */
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(&value, 1, MPI_INT64_T, to, 1, 1, MPI_INT64_T, win));
        OK(MPI_Accumulate(&value, 1, MPI_INT64_T, to, 2, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Get(&got, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win));
        OK(MPI_Win_fence(0, win));
        CHECK(got == value && next[1] == value && next[2] == value, "%ld %ld %ld", (long)got, (long)next[1], (long)next[2]);
        CHECK(mine[0] == from * 1000 + turn && mine[1] == mine[0] && mine[2] == mine[0]);
    }
    OK(MPI_Win_free(&win));
}

/* Neighbours hand a turn on by a flag in shared memory; MPI_Win_sync orders data and flag. */
static void handed(void)
{
    MPI_Win win;
    int *mine, *first;
    OK(MPI_Win_allocate_shared(rank ? 0 : 64, 4, MPI_INFO_NULL, node, &mine, &win));
    first = query(win, 0, 64, 4);
    atomic_int *turn = (atomic_int *)&first[0];
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (!rank)
        first[8] = 0, atomic_store(turn, 0);
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(node));
    OK(MPI_Win_sync(win));
    for (int i = 0; i < TURNS; i++) {
        int seen;
        while (atomic_load_explicit(turn, memory_order_relaxed) != i * size + rank) /* MPI_Iprobe gives the CPU to others */
            OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, node, &seen, MPI_STATUS_IGNORE));
        OK(MPI_Win_sync(win));
        CHECK(first[8] == i * size + rank, "%d in turn %d", first[8], i);
        first[8]++;
        OK(MPI_Win_sync(win));
        atomic_store_explicit(turn, i * size + rank + 1, memory_order_relaxed);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

/* A query of another flavor tells memory that can be loaded, or size 0. */
static void others(void)
{
#if MPI_VERSION >= 5
    MPI_Win win;
    int *mine, unit;
    int64_t *at;
    MPI_Aint bytes, long_unit;
    OK(MPI_Win_allocate(64 * (rank + 1), 8, MPI_INFO_NULL, node, &mine, &win));
    *(int64_t *)mine = 77 + rank;
    OK(MPI_Win_fence(0, win));
    for (int r = 0; r < size; r++) {
        OK(MPI_Win_shared_query(win, r, &bytes, &unit, &at));
        CHECK(bytes == 0 || (bytes == 64 * (r + 1) && unit == 8 && *at == 77 + r), "rank %d: %ld bytes", r, (long)bytes);
        OK(MPI_Win_shared_query_c(win, r, &bytes, &long_unit, &at));
        CHECK(bytes == 0 || (bytes == 64 * (r + 1) && long_unit == 8 && *at == 77 + r), "rank %d: %ld bytes", r, (long)bytes);
    }
    OK(MPI_Win_shared_query(win, rank, &bytes, &unit, &at));
    CHECK(bytes == 64 * (rank + 1) && (void *)at == mine);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    int64_t memory[2] = {rank, 0};
    OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, node, &win));
    OK(MPI_Win_fence(0, win));
    for (int r = 0; r < size; r++) {
        OK(MPI_Win_shared_query(win, r, &bytes, &unit, &at));
        CHECK(bytes == 0 || (bytes == sizeof memory && unit == 8 && *at == r), "rank %d: %ld bytes", r, (long)bytes);
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
#endif
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node));
    OK(MPI_Comm_rank(node, &rank));
    OK(MPI_Comm_size(node, &size));
    layout(0);
    layout(1);
    nothing();
    mixed();
    handed();
    others();
    OK(MPI_Comm_free(&node));
    OK(MPI_Finalize());
    return 0;
}

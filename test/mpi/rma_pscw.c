/* np: 1 2 3 4 : post, start, complete, wait and test: rings, all pairs, one-way graphs, empty groups, nocheck, one target, one origin */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { WORDS = 64, TURNS = 20 };

static int rank, size;
static MPI_Group all;
static MPI_Win win;
static int64_t *mine;

static MPI_Group group_of(const int *ranks, int n)
{
    MPI_Group group;
    OK(MPI_Group_incl(all, n, ranks, &group));
    return group;
}

static void wait_for_all(int by_test)
{
    int flag = 0;
    if (!by_test)
        OK(MPI_Win_wait(win));
    else
        while (!flag)
            OK(MPI_Win_test(win, &flag));
}

/* Each rank accesses the ranks in the next distances and is accessed by those before; other groups in each turn. */
static void graph(int turn)
{
    int to[WORDS], from[WORDS], n = turn % (size + 1), next = (rank + 1) % size;
    int64_t value = rank * 1000 + turn, got[WORDS];
    for (int i = 0; i < n; i++) { /* the order of ranks in a group is not that of their numbers */
        to[i] = (rank + n - i) % size;
        from[i] = (rank + size - 1 - i) % size;
    }
    MPI_Group targets = group_of(to, n), origins = group_of(from, n);
    memset(mine, 0xff, WORDS * sizeof *mine);
    mine[WORDS - 1] = 5 + rank;
    if (n || turn % 2)
        OK(MPI_Win_post(origins, 0, win));
    if (n || turn % 2)
        OK(MPI_Win_start(targets, 0, win));
    OK(MPI_Group_free(&origins));
    OK(MPI_Group_free(&targets));
    for (int i = 0; i < n; i++) {
        OK(MPI_Put(&value, 1, MPI_INT64_T, to[i], rank, 1, MPI_INT64_T, win));
        OK(MPI_Get(&got[i], 1, MPI_INT64_T, to[i], WORDS - 1, 1, MPI_INT64_T, win));
    }
    if (n || turn % 2) {
        OK(MPI_Win_complete(win));
        for (int i = 0; i < n; i++)
            CHECK(got[i] == 5 + to[i], "%ld from %d", (long)got[i], to[i]);
        wait_for_all(turn % 3);
    }
    for (int r = 0; r < size; r++) {
        int distance = (rank + size - r) % size, does = n > (distance ? distance - 1 : size - 1);
        CHECK(mine[r] == (does ? r * 1000 + turn : -1), "word of %d is %ld in turn %d", r, (long)mine[r], turn);
    }
    (void)next;
}

/* Rank 0 serves each other rank in an exposure of its own, in an order that is not that of arrival. */
static void one_target(void)
{
    int zero = 0;
    int64_t one = rank;
    MPI_Group target = group_of(&zero, 1);
    if (!rank) {
        mine[0] = 0;
        for (int r = size - 1, flag = 0; r > 0; r--, flag = 0) {
            MPI_Group origin = group_of(&r, 1);
            OK(MPI_Win_post(origin, MPI_MODE_NOSTORE, win));
            OK(MPI_Group_free(&origin));
            while (!flag)
                OK(MPI_Win_test(win, &flag));
            CHECK(mine[0] == (int64_t)size * (size - 1) / 2 - (int64_t)r * (r - 1) / 2, "%ld after %d", (long)mine[0], r);
        }
    } else {
        OK(MPI_Win_start(target, 0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_complete(win));
    }
    OK(MPI_Group_free(&target));
}

/* Rank 0 writes to all in one access epoch; a test before its complete says no. */
static void one_origin(void)
{
    int flag, others[WORDS], zero = 0;
    int64_t value = 42;
    for (int i = 1; i < size; i++)
        others[i - 1] = i;
    if (rank) {
        MPI_Group origin = group_of(&zero, 1);
        mine[0] = -1;
        OK(MPI_Win_post(origin, 0, win));
        OK(MPI_Group_free(&origin));
        OK(MPI_Win_test(win, &flag));
        CHECK(!flag, "the origin has not called MPI_Win_complete");
        OK(MPI_Barrier(MPI_COMM_WORLD));
        wait_for_all(rank % 2);
        CHECK(mine[0] == 42, "%ld", (long)mine[0]);
    } else {
        MPI_Group targets = group_of(others, size - 1);
        OK(MPI_Win_start(targets, 0, win));
        for (int r = 1; r < size; r++)
            OK(MPI_Put(&value, 1, MPI_INT64_T, r, 0, 1, MPI_INT64_T, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_complete(win));
        OK(MPI_Group_free(&targets));
    }
}

/* All ranks have posted before any starts; large puts in both directions. */
static void nocheck(void)
{
    enum { LARGE = 100000 };
    int *memory, *out = malloc(LARGE * sizeof *out), next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Group to = group_of(&next, 1), from = group_of(&before, 1);
    MPI_Win large;
    OK(MPI_Win_allocate(LARGE * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &large));
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < LARGE; i++)
            out[i] = rank + turn + i;
        OK(MPI_Win_post(from, MPI_MODE_NOCHECK, large));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_start(to, MPI_MODE_NOCHECK, large));
        OK(MPI_Put(out, LARGE, MPI_INT, next, 0, LARGE, MPI_INT, large));
        OK(MPI_Win_complete(large));
        memset(out, 0, LARGE * sizeof *out); /* free at the origin */
        OK(MPI_Win_wait(large));
        for (int i = 0; i < LARGE; i++)
            CHECK(memory[i] == before + turn + i, "word %d is %d", i, memory[i]);
    }
    OK(MPI_Win_free(&large));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
    free(out);
}

/* The standard's figure 34: an origin sends after its complete what the target waits for before its wait. */
static void no_deadlock(void)
{
    int zero = 0, one = 1, value = 3;
    if (size < 2 || rank > 1)
        return;
    MPI_Group other = group_of(rank ? &zero : &one, 1);
    if (!rank) {
        int64_t put = 9;
        OK(MPI_Win_start(other, 0, win));
        OK(MPI_Put(&put, 1, MPI_INT64_T, 1, 3, 1, MPI_INT64_T, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Send(&value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD));
    } else {
        OK(MPI_Win_post(other, 0, win));
        OK(MPI_Recv(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_wait(win));
        CHECK(mine[3] == 9, "%ld", (long)mine[3]);
    }
    OK(MPI_Group_free(&other));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    CHECK(size < WORDS);
    OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    OK(MPI_Win_get_group(win, &all));
    for (int turn = 0; turn < TURNS; turn++)
        graph(turn);
    one_target();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    one_origin();
    nocheck();
    no_deadlock();
    OK(MPI_Group_free(&all));
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}

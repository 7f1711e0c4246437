/* np: 1 2 3 4 : notified access: every call in every epoch and flavor, own rank, MPI_PROC_NULL, no bytes, many counters, errors by text */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../examples/notify.h"
#include "expect.h"

enum { WORDS = 4096, COUNTERS = 5, MANY = 5000 };

static int rank, size, next, before;
static MPI_Win win;
static int64_t *mine;

static int64_t read_counter(int id)
{
    MPI_Count value = -1;
    int flag = 0;
    OK(MPIX_Win_notify_test(win, id, 0, &flag, &value));
    CHECK(flag, "threshold 0 is always reached");
    return value;
}

static void reset_all(int count)
{
    MPI_Count value;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < count; i++)
        OK(MPIX_Win_notify_reset(win, i, &value));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Puts to the next rank on each counter, waits for those of the rank before; short and long. */
static void ring(int turn)
{
    static int64_t block[WORDS];
    MPI_Count value;
    for (int id = 0; id < COUNTERS; id++) {
        int n = id % 2 ? WORDS / COUNTERS : 1, at = id * (WORDS / COUNTERS);
        for (int i = 0; i < n; i++)
            block[at + i] = rank * 1000000 + turn * 10000 + at + i;
        OK(MPIX_Put_notify(block + at, n, MPI_INT64_T, next, at, n, MPI_INT64_T, win, id));
    }
    for (int id = COUNTERS - 1; id >= 0; id--) {
        int n = id % 2 ? WORDS / COUNTERS : 1, at = id * (WORDS / COUNTERS);
        OK(MPIX_Win_notify_wait(win, id, turn + 1, &value));
        CHECK(value == turn + 1, "counter %d is %ld, not %d", id, (long)value, turn + 1);
        for (int i = 0; i < n; i++)
            CHECK(mine[at + i] == before * 1000000 + turn * 10000 + at + i, "turn %d, counter %d, word %d: %ld", turn, id, i,
                  (long)mine[at + i]);
    }
}

static void passive(void)
{
    int64_t token = rank, got[2] = {-1, -1};
    MPI_Count value;
    reset_all(COUNTERS);
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < 5; turn++) {
        ring(turn);
        OK(MPI_Win_flush(next, win)); /* the buffer may be written again */
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    CHECK(read_counter(0) == 5, "%ld", (long)read_counter(0));
    OK(MPIX_Win_notify_reset(win, 0, &value));
    CHECK(value == 5 && read_counter(0) == 0, "%ld", (long)value);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* no bytes; a rank that is none */
    OK(MPIX_Put_notify(NULL, 0, MPI_INT64_T, next, 0, 0, MPI_INT64_T, win, 0));
    OK(MPIX_Get_notify(NULL, 0, MPI_INT64_T, next, 0, 0, MPI_INT64_T, win, 0));
    OK(MPIX_Put_notify(&token, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win, 0));
    OK(MPIX_Get_notify(got, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win, 0));
    OK(MPIX_Win_notify_wait(win, 0, 2, &value));
    CHECK(value == 2 && got[0] == -1, "%ld", (long)value);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(read_counter(0) == 2, "%ld", (long)read_counter(0));
    /* the target learns that its memory was read */
    mine[0] = rank + 40;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    OK(MPIX_Get_notify(got, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win, 1));
    OK(MPIX_Win_notify_wait(win, 1, 6, &value));
    mine[0] = -1;
    OK(MPI_Win_unlock(next, win));
    CHECK(got[0] == next + 40, "read after the target's store: %ld", (long)got[0]);
}

#if MPI_VERSION >= 4
static void large(void)
{
    int64_t value = rank + 7, got = 0;
    MPI_Count count;
    reset_all(COUNTERS);
    OK(MPI_Win_lock_all(0, win));
    OK(MPIX_Put_notify_c(&value, 1, MPI_INT64_T, next, 3, 1, MPI_INT64_T, win, 2));
    OK(MPIX_Win_notify_wait(win, 2, 1, &count));
    CHECK(mine[3] == before + 7, "%ld", (long)mine[3]);
    OK(MPIX_Get_notify_c(&got, 1, MPI_INT64_T, next, 3, 1, MPI_INT64_T, win, 3));
    OK(MPI_Win_flush(next, win));
    CHECK(got == value, "%ld", (long)got);
    OK(MPIX_Win_notify_wait(win, 3, 1, &count));
    OK(MPI_Win_unlock_all(win));
}
#else
static void large(void) {}
#endif

/* The first of several counters that has its threshold; the others stay. */
static void any(void)
{
    int ids[] = {4, 1, 0}, index = -1, flag;
    MPI_Count thresholds[] = {3, 2, 1}, value = -1;
    reset_all(COUNTERS);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 2; i++)
        OK(MPIX_Put_notify(NULL, 0, MPI_INT64_T, next, 0, 0, MPI_INT64_T, win, 1));
    OK(MPIX_Win_notify_waitany(win, 3, ids, thresholds, &index, &value));
    CHECK(index == 1 && value == 2, "%d, %ld", index, (long)value);
    OK(MPIX_Put_notify(NULL, 0, MPI_INT64_T, next, 0, 0, MPI_INT64_T, win, 0));
    OK(MPIX_Win_notify_wait(win, 0, 1, &value));
    OK(MPIX_Win_notify_waitany(win, 3, ids, thresholds, &index, &value));
    CHECK(index == 1, "the first of those that are reached: %d", index);
    OK(MPIX_Win_notify_test(win, 4, 1, &flag, &value));
    CHECK(!flag && value == 0, "%ld", (long)value);
    OK(MPI_Win_unlock_all(win));
}

#ifndef NOTIFY_FALLBACK
/* Fences, and post-start-complete-wait: a notification comes within the epoch. */
static void active(void)
{
    MPI_Group all, to, from;
    MPI_Count value;
    reset_all(COUNTERS);
    for (int turn = 0; turn < 3; turn++) {
        OK(MPI_Win_fence(0, win));
        ring(turn);
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    }
    reset_all(COUNTERS);
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &next, &to));
    OK(MPI_Group_incl(all, 1, &before, &from));
    for (int turn = 0; turn < 3; turn++) {
        OK(MPI_Win_post(from, 0, win));
        OK(MPI_Win_start(to, 0, win));
        ring(turn);
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
    OK(MPIX_Win_notify_wait(win, 0, 3, &value)); /* outside of any epoch */
}

static void errors(void)
{
    int64_t word = 0;
    int flag, index, ids[] = {0, COUNTERS};
    MPI_Count value, thresholds[] = {1, 1};
    MPI_Win bare, freed;
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, win));
    BAD(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win, COUNTERS), MPI_ERR_ARG, "MPIX_Put_notify", "id is 5", "0..4");
    BAD(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win, -1), MPI_ERR_ARG, "id is -1");
    BAD(MPIX_Get_notify(&word, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win, 99), MPI_ERR_ARG, "MPIX_Get_notify", "id is 99");
    BAD(MPIX_Put_notify_c(&word, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win, 0), MPI_ERR_RANK, "MPIX_Put_notify_c", "target_rank");
    BAD(MPIX_Put_notify(&word, -1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win, 0), MPI_ERR_COUNT, "origin_count is -1");
    BAD(MPIX_Put_notify(NULL, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win, 0), MPI_ERR_BUFFER, "origin_addr");
    BAD(MPIX_Put_notify(&word, 1, MPI_DATATYPE_NULL, next, 0, 1, MPI_INT64_T, win, 0), MPI_ERR_TYPE, "origin_datatype");
    BAD(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, 1 << 30, 1, MPI_INT64_T, win, 0), MPI_ERR_RMA_RANGE, "target_disp");
    BAD(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, 0, 1, MPI_INT32_T, win, 0), MPI_ERR_TYPE, "signature");
    BAD(MPIX_Win_notify_wait(win, COUNTERS, 0, &value), MPI_ERR_ARG, "MPIX_Win_notify_wait", "id is 5", "0..4");
    BAD(MPIX_Win_notify_wait(win, 0, 0, NULL), MPI_ERR_ARG, "value is NULL");
    BAD(MPIX_Win_notify_test(win, -3, 0, &flag, &value), MPI_ERR_ARG, "id is -3");
    BAD(MPIX_Win_notify_test(win, 0, 0, NULL, &value), MPI_ERR_ARG, "flag is NULL");
    BAD(MPIX_Win_notify_reset(win, COUNTERS, &value), MPI_ERR_ARG, "MPIX_Win_notify_reset");
    BAD(MPIX_Win_notify_waitany(win, 0, ids, thresholds, &index, &value), MPI_ERR_ARG, "count is 0");
    BAD(MPIX_Win_notify_waitany(win, 2, NULL, thresholds, &index, &value), MPI_ERR_ARG, "ids");
    BAD(MPIX_Win_notify_waitany(win, 2, ids, thresholds, &index, &value), MPI_ERR_ARG, "is 5", "0..4");
    OK(MPI_Win_unlock_all(win));
    BAD(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, win, 0), MPI_ERR_RMA_SYNC, "outside of any epoch");
    BAD(MPIX_Win_notify_init(win, 3), MPI_ERR_WIN, "MPIX_Win_notify_init", "already");
    CHECK(read_counter(0) >= 0);
    OK(MPI_Win_create(&word, 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &bare));
    OK(MPI_Win_set_errhandler(bare, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, bare));
    BAD(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, 0, 1, MPI_INT64_T, bare, 0), MPI_ERR_WIN, "no notification counters",
        "MPIX_Win_notify_init");
    BAD(MPIX_Win_notify_wait(bare, 0, 0, &value), MPI_ERR_WIN, "no notification counters");
    OK(MPI_Win_unlock_all(bare));
    BAD(MPIX_Win_notify_init(bare, -1), MPI_ERR_ARG, "count is -1");
    if (size > 1) { /* one member's error is an error of all; the window stays as it was */
        int code = MPIX_Win_notify_init(bare, rank ? 2 : -1);
        CHECK(code != MPI_SUCCESS && class_of(code) == (rank ? MPI_ERR_OTHER : MPI_ERR_ARG), "class %d", class_of(code));
    }
    OK(MPIX_Win_notify_init(bare, 1));
    OK(MPIX_Win_notify_test(bare, 0, 1, &flag, &value));
    CHECK(!flag && !value);
    freed = bare;
    OK(MPI_Win_free(&bare));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    BAD(MPIX_Win_notify_wait(freed, 0, 0, &value), MPI_ERR_WIN, "win");
    BAD(MPIX_Win_notify_init(MPI_WIN_NULL, 1), MPI_ERR_WIN, "MPI_WIN_NULL");
}
#else
static void active(void) {}
static void errors(void) {}
#endif

/* Ranks have different numbers of counters; many of them. */
static void many(void)
{
    int count = rank ? rank * MANY : 0, theirs = next * MANY, held = 0;
    MPI_Win old = win;
    MPI_Count value;
    OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    OK(MPIX_Win_notify_init(win, count));
    OK(MPI_Win_lock_all(0, win));
    for (int id = 0; id < theirs; id += 7) {
        int64_t word = id;
        OK(MPIX_Put_notify(&word, 1, MPI_INT64_T, next, id % WORDS, 1, MPI_INT64_T, win, id));
        if (++held % 1000 == 0)
            OK(MPI_Win_flush(next, win));
    }
    for (int id = 0; id < count; id += 7)
        OK(MPIX_Win_notify_wait(win, id, 1, &value));
    for (int id = 0; id < count; id++)
        CHECK(read_counter(id) == (id % 7 == 0), "counter %d is %ld", id, (long)read_counter(id));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win)); /* with counts that nobody has reset */
    win = old;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    next = (rank + 1) % size;
    before = (rank + size - 1) % size;
    for (int flavor = 0; flavor < 2; flavor++) {
        int64_t *memory = calloc(WORDS, sizeof *memory);
        if (flavor == 0)
            OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        else
            OK(MPI_Win_create(mine = memory, WORDS * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPIX_Win_notify_init(win, COUNTERS));
        passive();
        large();
        any();
        active();
        errors();
        many();
        OK(MPI_Win_free(&win));
        free(memory);
    }
    OK(MPI_Finalize());
    return 0;
}

/* np: 1 2 4 : windows: each misuse of synchronization is named, and what is allowed is not; locks and epochs among ranks of a node */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size;

#define SYNC_ERROR(call, word) \
    do { \
        int code_ = (call), length_; \
        char text_[MPI_MAX_ERROR_STRING]; \
        CHECK(class_of(code_) == MPI_ERR_RMA_SYNC, "%s gave %d", #call, code_); \
        OK(MPI_Error_string(code_, text_, &length_)); \
        CHECK(strstr(text_, word), "'%s' is not in '%s'", word, text_); \
    } while (0)

static void wrong_ends(MPI_Win win)
{
    SYNC_ERROR(MPI_Win_unlock(0, win), "MPI_Win_lock");
    SYNC_ERROR(MPI_Win_unlock_all(win), "MPI_Win_lock_all");
    SYNC_ERROR(MPI_Win_complete(win), "MPI_Win_start");
    SYNC_ERROR(MPI_Win_wait(win), "MPI_Win_post");
    SYNC_ERROR(MPI_Win_test(win, &(int){0}), "MPI_Win_post");
    SYNC_ERROR(MPI_Win_flush(0, win), "not locked");
    SYNC_ERROR(MPI_Win_flush_local(0, win), "not locked");
    SYNC_ERROR(MPI_Win_flush_all(win), "no target is locked");
    SYNC_ERROR(MPI_Win_flush_local_all(win), "no target is locked");
}

static void wrong_in_locks(MPI_Win win, MPI_Group self)
{
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    SYNC_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), "locked already");
    SYNC_ERROR(MPI_Win_lock_all(0, win), "MPI_Win_unlock");
    SYNC_ERROR(MPI_Win_fence(0, win), "MPI_Win_unlock");
    SYNC_ERROR(MPI_Win_start(self, 0, win), "MPI_Win_unlock");
    SYNC_ERROR(MPI_Win_free(&win), "MPI_Win_unlock");
    SYNC_ERROR(MPI_Win_free(&win), "wait in MPI_Win_free");
    SYNC_ERROR(MPI_Win_unlock_all(win), "one by one");
    CHECK(win != MPI_WIN_NULL);
    OK(MPI_Win_flush(rank, win));
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_flush_local(rank, win));
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_lock_all(0, win));
    SYNC_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), "MPI_Win_unlock_all");
    SYNC_ERROR(MPI_Win_unlock(rank, win), "MPI_Win_unlock_all");
    SYNC_ERROR(MPI_Win_fence(0, win), "MPI_Win_unlock_all");
    OK(MPI_Win_flush_all(win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    OK(MPI_Win_unlock_all(win));
}

static void wrong_in_groups(MPI_Win win, MPI_Group self)
{
    int is_over = 0;
    OK(MPI_Win_post(self, 0, win));
    SYNC_ERROR(MPI_Win_post(self, 0, win), "posted already");
    SYNC_ERROR(MPI_Win_fence(0, win), "MPI_Win_wait");
    SYNC_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), "MPI_Win_wait");
    SYNC_ERROR(MPI_Win_free(&win), "MPI_Win_wait");
    SYNC_ERROR(MPI_Win_free(&win), "wait in MPI_Win_free");
    OK(MPI_Win_start(self, 0, win));
    SYNC_ERROR(MPI_Win_start(self, 0, win), "MPI_Win_complete");
    SYNC_ERROR(MPI_Win_lock_all(0, win), "MPI_Win_complete");
    OK(MPI_Win_test(win, &is_over));
    CHECK(!is_over);
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_test(win, &is_over));
    CHECK(is_over);
}

static void wrong_arguments(MPI_Win win)
{
    CHECK(class_of(MPI_Win_lock(77, 0, 0, win)) == MPI_ERR_LOCKTYPE);
    CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, -1, 0, win)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOSUCCEED, win)) == MPI_ERR_ASSERT);
    CHECK(class_of(MPI_Win_fence(1 << 30, win)) == MPI_ERR_ASSERT);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
    OK(MPI_Win_unlock(MPI_PROC_NULL, win));
    OK(MPI_Win_flush(MPI_PROC_NULL, win));
    OK(MPI_Win_flush_local(MPI_PROC_NULL, win));
}

static void no_locks(void)
{
    MPI_Info info;
    MPI_Win win;
    void *base;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Win_allocate(8, 1, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    SYNC_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), "no_locks");
    SYNC_ERROR(MPI_Win_lock_all(0, win), "no_locks");
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

/* Readers see no write between two others of a writer; writers exclude each other. The counters are the target's memory, where the node
 * shares it. */
static void contend(MPI_Win win)
{
    MPI_Aint bytes;
    int unit;
    volatile int64_t *at;
    int64_t wrote = 0, total;
    OK(MPI_Win_shared_query(win, 0, &bytes, &unit, &at));
    for (int i = 0; i < 600; i++) {
        int type = (i + rank) % 3 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE;
        OK(MPI_Win_lock(type, 0, 0, win));
        if (bytes) {
            CHECK(at[0] == at[1]);
            if (type == MPI_LOCK_EXCLUSIVE) {
                at[0]++;
                at[1]++;
                wrote++;
            }
        }
        OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Allreduce(&wrote, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    if (rank == 0)
        CHECK(at[0] == total);
}

/* A ring of post, start, complete, wait: what a neighbour stored before it posted is seen. */
static void ring(MPI_Win win, MPI_Group all)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Group to, from;
    OK(MPI_Group_incl(all, 1, &right, &to));
    OK(MPI_Group_incl(all, 1, &left, &from));
    for (int i = 0; i < 200; i++) {
        int assert = i % 4 == 3 ? MPI_MODE_NOCHECK : 0;
        OK(MPI_Win_post(from, assert, win));
        if (assert)
            OK(MPI_Barrier(MPI_COMM_WORLD)); /* has posted before the other starts */
        OK(MPI_Win_start(to, assert, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    OK(MPI_Group_free(&to));
    OK(MPI_Group_free(&from));
}

int main(int argc, char **argv)
{
    MPI_Win win;
    MPI_Group all, self;
    int64_t *base;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &rank, &self));
    wrong_ends(win);
    wrong_in_locks(win, self);
    wrong_in_groups(win, self);
    wrong_arguments(win);
    OK(MPI_Win_sync(win)); /* orders memory, also outside of epochs */
    OK(MPI_Win_fence(0, win)); /* without operations a fence opens no epoch: locks may follow */
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    contend(win);
    ring(win, all);
    no_locks();
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&self));
    if (!rank) { /* refused here alone: the others wait in MPI_Win_free for the second try */
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win));
        SYNC_ERROR(MPI_Win_free(&win), "call MPI_Win_unlock first");
        OK(MPI_Win_unlock(size - 1, win));
    }
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}

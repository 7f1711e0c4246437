/* np: 1 2 3 : wrong use of windows returns the standard's error class, and the window still works: arguments, ranges, epochs, flavors */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

enum { WORDS = 64, OURS = MPI_VERSION >= 5 }; /* OURS: MPICH 4.0 does not see these errors, or stops in them */

static int rank, size, handled;
static MPI_Win win, no_win; /* no_win: stays a null handle */
static int64_t *mine;

#define SYNC(call, ...) BAD(call, MPI_ERR_RMA_SYNC, __VA_ARGS__)
#define W(word) (OURS ? (word) : "")

static void works(void)
{
    int64_t value = rank + 7;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(mine[0] == (rank + size - 1) % size + 7, "%ld", (long)mine[0]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win));
    OK(MPI_Get(&value, 1, MPI_INT64_T, size - 1, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock(size - 1, win));
    CHECK(value == (size - 1 + size - 1) % size + 7, "%ld", (long)value);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void creation(void)
{
    int64_t memory[4], *base;
    MPI_Win bad = MPI_WIN_NULL;
    BAD(MPI_Win_create(memory, -8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &bad), MPI_ERR_SIZE, W("MPI_Win_create: argument size is -8"));
    BAD(MPI_Win_create(memory, 32, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &bad), MPI_ERR_DISP, "");
    BAD(MPI_Win_create(memory, 32, 1, MPI_INFO_NULL, MPI_COMM_NULL, &bad), MPI_ERR_COMM, "");
    BAD(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &bad), MPI_ERR_SIZE, "");
    if (OURS) {
        BAD(MPI_Win_allocate(8, -1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &bad), MPI_ERR_DISP,
            "MPI_Win_allocate: argument disp_unit is -1");
        BAD(MPI_Win_allocate_shared(8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &bad), MPI_ERR_DISP, "0");
        BAD(MPI_Win_create(memory, 32, 1, MPI_INFO_NULL, MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "");
    }
    CHECK(bad == MPI_WIN_NULL);
}

/* The text of an error names the function once, if a check of arguments finds the error, and if the window's code does. */
static void named_once(int code, const char *function)
{
    char text[MPI_MAX_ERROR_STRING], *first;
    int length;
    OK(MPI_Error_string(code, text, &length));
    first = strstr(text, function);
    CHECK(first && !strstr(first + 1, function), "%s", text);
}

static void names(void)
{
    int64_t value = 0;
    OK(MPI_Win_lock_all(0, win));
    named_once(MPI_Put(&value, -1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), "MPI_Put");
    named_once(MPI_Put(&value, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win), "MPI_Put");
    named_once(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_OP_NULL, win), "MPI_Accumulate");
    OK(MPI_Win_unlock_all(win));
}

static void handles(void)
{
    int64_t value = 0;
    int flag;
    MPI_Group group;
    BAD(MPI_Win_free(&no_win), MPI_ERR_WIN, "");
    BAD(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, no_win), MPI_ERR_WIN, "");
    BAD(MPI_Win_fence(0, no_win), MPI_ERR_WIN, "");
    BAD(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, no_win), MPI_ERR_WIN, "");
    BAD(MPI_Win_get_group(no_win, &group), MPI_ERR_WIN, "");
    BAD(MPI_Win_test(no_win, &flag), MPI_ERR_WIN, "");
    if (OURS) { /* a handle whose window was freed */
        MPI_Win freed, copy;
        OK(MPI_Win_create(&value, 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &freed));
        copy = freed;
        OK(MPI_Win_free(&freed));
        BAD(MPI_Win_fence(0, copy), MPI_ERR_WIN, "");
        BAD(MPI_Win_free(&copy), MPI_ERR_WIN, "");
    }
}

static void arguments(void)
{
    int64_t value = 0, old = 0;
    double real = 0, other = 1, result;
    MPI_Datatype loose;
    MPI_Request req;
    OK(MPI_Win_lock_all(0, win));
    BAD(MPI_Put(&value, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win), MPI_ERR_RANK, "");
    BAD(MPI_Get(&value, 1, MPI_INT64_T, -7, 0, 1, MPI_INT64_T, win), MPI_ERR_RANK, W("-7"));
    BAD(MPI_Accumulate(&value, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, MPI_SUM, win), MPI_ERR_RANK, "");
    BAD(MPI_Fetch_and_op(&value, &old, MPI_INT64_T, size, 0, MPI_SUM, win), MPI_ERR_RANK, "");
    BAD(MPI_Compare_and_swap(&value, &value, &old, MPI_INT64_T, size, 0, win), MPI_ERR_RANK, "");
    BAD(MPI_Rput(&value, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win, &req), MPI_ERR_RANK, "");
    BAD(MPI_Win_flush(size, win), MPI_ERR_RANK, "");
    BAD(MPI_Put(&value, -1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_COUNT, "");
    BAD(MPI_Get(&value, 1, MPI_INT64_T, 0, 0, -2, MPI_INT64_T, win), MPI_ERR_COUNT, "");
    BAD(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_TYPE, "");
    BAD(MPI_Put(&value, 1, MPI_INT64_T, 0, -1, 1, MPI_INT64_T, win), MPI_ERR_DISP, "");
    BAD(MPI_Compare_and_swap(&real, &other, &result, MPI_DOUBLE, 0, 0, win), MPI_ERR_TYPE, "");
    BAD(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_NO_OP, win), MPI_ERR_OP, "");
    BAD(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_OP_NULL, win), MPI_ERR_OP, "");
    OK(MPI_Type_contiguous(1, MPI_INT64_T, &loose));
    BAD(MPI_Put(&value, 1, loose, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_TYPE, "");
    OK(MPI_Type_free(&loose));
    if (OURS) {
        BAD(MPI_Accumulate(&value, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, MPI_SUM, win), MPI_ERR_OP, "MPI_SUM", "MPI_BYTE");
        BAD(MPI_Fetch_and_op(&real, &result, MPI_DOUBLE, 0, 0, MPI_BAND, win), MPI_ERR_OP, "");
        BAD(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_DOUBLE, MPI_SUM, win), MPI_ERR_TYPE, "");
        CHECK(MPI_Put(&value, 2, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win) != MPI_SUCCESS, "the target's buffer is too short");
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    works();
}

static void user_op(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)n, (void)type;
}

static void user_defined(void)
{
    int64_t value = 0, old;
    MPI_Op op;
    OK(MPI_Op_create(user_op, 1, &op));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    BAD(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, op, win), MPI_ERR_OP, "");
    BAD(MPI_Fetch_and_op(&value, &old, MPI_INT64_T, 0, 0, op, win), MPI_ERR_OP, "");
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Op_free(&op));
}

/* Targets beside the window; nothing is written there. Rank r's window has WORDS - r words. */
static void ranges(void)
{
    int64_t values[WORDS] = {0}, old;
    int last = size - 1, words = WORDS - last;
    MPI_Datatype apart;
    if (!OURS)
        return;
    OK(MPI_Type_vector(2, 1, words, MPI_INT64_T, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_Win_lock_all(0, win));
    BAD(MPI_Put(values, 1, MPI_INT64_T, last, words, 1, MPI_INT64_T, win), MPI_ERR_RMA_RANGE, "");
    BAD(MPI_Put(values, 2, MPI_INT64_T, last, words - 1, 2, MPI_INT64_T, win), MPI_ERR_RMA_RANGE, "");
    BAD(MPI_Get(values, 1, MPI_INT64_T, last, (MPI_Aint)1 << 40, 1, MPI_INT64_T, win), MPI_ERR_RMA_RANGE, "");
    BAD(MPI_Get(values, 1, MPI_INT64_T, last, ((MPI_Aint)1 << 61) - 1, 1, MPI_INT64_T, win), MPI_ERR_RMA_RANGE, "");
    BAD(MPI_Accumulate(values, 1, MPI_INT64_T, last, words, 1, MPI_INT64_T, MPI_SUM, win), MPI_ERR_RMA_RANGE, "");
    BAD(MPI_Fetch_and_op(values, &old, MPI_INT64_T, last, words, MPI_SUM, win), MPI_ERR_RMA_RANGE, "");
    BAD(MPI_Compare_and_swap(values, values, &old, MPI_INT64_T, last, words, win), MPI_ERR_RMA_RANGE, "");
    BAD(MPI_Put(values, 2, MPI_INT64_T, last, 0, 1, apart, win), MPI_ERR_RMA_RANGE, ""); /* its second element is behind */
    OK(MPI_Put(values, 1, MPI_INT64_T, last, words - 1, 1, MPI_INT64_T, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Type_free(&apart));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void no_epoch(void)
{
    int64_t value = 0, old;
    int flag;
    MPI_Request req;
    SYNC(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), W("outside of any epoch"));
    SYNC(MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), "");
    SYNC(MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win), "");
    SYNC(MPI_Get_accumulate(&value, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win), "");
    SYNC(MPI_Fetch_and_op(&value, &old, MPI_INT64_T, 0, 0, MPI_SUM, win), "");
    SYNC(MPI_Compare_and_swap(&value, &value, &old, MPI_INT64_T, 0, 0, win), "");
    SYNC(MPI_Rput(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win, &req), "");
    SYNC(MPI_Win_unlock(0, win), "");
    SYNC(MPI_Win_unlock_all(win), "");
    SYNC(MPI_Win_complete(win), "");
    SYNC(MPI_Win_wait(win), "");
    SYNC(MPI_Win_test(win, &flag), "");
    SYNC(MPI_Win_flush(0, win), "");
    SYNC(MPI_Win_flush_all(win), "");
    SYNC(MPI_Win_flush_local(0, win), "");
    SYNC(MPI_Win_flush_local_all(win), "");
}

static void wrong_lock(void)
{
    int64_t value = 0;
    BAD(MPI_Win_lock(1 << 20, 0, 0, win), OURS ? MPI_ERR_LOCKTYPE : MPI_ERR_ARG, "");
    BAD(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK, "");
    if (OURS) {
        BAD(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1 << 28, win), MPI_ERR_ASSERT, "");
        BAD(MPI_Win_fence(1 << 28, win), MPI_ERR_ASSERT, "");
    }
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    SYNC(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), "");
    SYNC(MPI_Win_lock_all(0, win), "");
    SYNC(MPI_Win_unlock_all(win), "");
    SYNC(MPI_Win_fence(0, win), "");
    if (OURS && size > 1) {
        SYNC(MPI_Put(&value, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win), "");
        SYNC(MPI_Win_unlock(1, win), "");
        SYNC(MPI_Win_flush(1, win), "");
    }
    SYNC(MPI_Win_free(&win), "");
    CHECK(win != MPI_WIN_NULL);
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_lock_all(0, win));
    SYNC(MPI_Win_lock_all(0, win), "");
    SYNC(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), "");
    SYNC(MPI_Win_unlock(0, win), "");
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    works();
}

/* Each rank exposes its window to itself alone. */
static void wrong_groups(void)
{
    int64_t value = 0;
    MPI_Group all, self;
    MPI_Request req;
    OK(MPI_Win_get_group(win, &all));
    OK(MPI_Group_incl(all, 1, &rank, &self));
    BAD(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP, "");
    if (OURS)
        BAD(MPI_Win_post(self, 1 << 28, win), MPI_ERR_ASSERT, "");
    OK(MPI_Win_post(self, 0, win));
    SYNC(MPI_Win_post(self, 0, win), "");
    OK(MPI_Win_start(self, 0, win));
    SYNC(MPI_Win_start(self, 0, win), "");
    SYNC(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), "");
    SYNC(MPI_Win_fence(0, win), "");
    SYNC(MPI_Win_flush(rank, win), "");
    if (OURS)
        SYNC(MPI_Rput(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win, &req), "");
    if (OURS && size > 1)
        SYNC(MPI_Put(&value, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T, win), "");
    SYNC(MPI_Win_free(&win), "");
    OK(MPI_Put(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win));
    OK(MPI_Win_complete(win));
    SYNC(MPI_Win_complete(win), "");
    OK(MPI_Win_wait(win));
    SYNC(MPI_Win_wait(win), "");
    OK(MPI_Group_free(&self));
    OK(MPI_Group_free(&all));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    works();
}

static MPI_Win ranged; /* the window of on_range */

static void on_range(MPI_Win *which, int *code, ...)
{
    CHECK(*which == ranged && class_of(*code) == MPI_ERR_RMA_RANGE, "class %d", class_of(*code));
    handled++;
}

/* A request's error is one of its window (MPI 5.0, 9.3), whichever call completes it. displacement: not attached at the target. */
static void failing_requests(MPI_Win dynamic, int target, MPI_Aint displacement)
{
    int64_t value = -1;
    MPI_Errhandler handler;
    ranged = dynamic;
    OK(MPI_Win_create_errhandler(on_range, &handler));
    OK(MPI_Win_set_errhandler(dynamic, handler));
    for (int way = 0; way < 3; way++) {
        MPI_Request req = MPI_REQUEST_NULL;
        int code = MPI_Rget(&value, 1, MPI_INT64_T, target, displacement, 1, MPI_INT64_T, dynamic, &req), flag = 0, index;
        if (code == MPI_SUCCESS && way == 0)
            code = MPI_Wait(&req, MPI_STATUS_IGNORE);
        while (code == MPI_SUCCESS && way == 1 && !flag)
            code = MPI_Test(&req, &flag, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && way == 2)
            code = MPI_Waitany(1, &req, &index, MPI_STATUS_IGNORE);
        CHECK(class_of(code) == MPI_ERR_RMA_RANGE && handled == way + 1, "way %d: class %d, %d handled", way, class_of(code), handled);
    }
    handled = 0;
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&handler));
}

/* A window of another flavor; memory that is not attached: the call or its completion tells, and the target is unharmed. */
static void flavors(void)
{
    int64_t memory[8] = {1, 2, 3, 4, 5, 6, 7, 8}, value = -1, *at;
    MPI_Aint bytes, mine_at, theirs;
    int unit, next = (rank + 1) % size;
    MPI_Win dynamic;
    if (!OURS)
        return;
    BAD(MPI_Win_attach(win, memory, 8), MPI_ERR_RMA_FLAVOR, "");
    BAD(MPI_Win_detach(win, memory), MPI_ERR_RMA_FLAVOR, "");
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    OK(MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN));
    BAD(MPI_Win_shared_query(dynamic, 0, &bytes, &unit, &at), MPI_ERR_RMA_FLAVOR, "");
    OK(MPI_Win_attach(dynamic, memory, 4 * sizeof *memory));
    BAD(MPI_Win_attach(dynamic, memory + 3, sizeof *memory), MPI_ERR_RMA_ATTACH, "");
    BAD(MPI_Win_attach(dynamic, NULL, 64), MPI_ERR_BASE, "MPI_Win_attach", "base is NULL", "64 bytes");
    OK(MPI_Win_attach(dynamic, NULL, 0));
    CHECK(MPI_Win_detach(dynamic, memory + 1) != MPI_SUCCESS, "no region begins there");
    OK(MPI_Get_address(memory, &mine_at));
    OK(MPI_Sendrecv(&mine_at, 1, MPI_AINT, (rank + size - 1) % size, 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, dynamic));
    for (int way = 0; way < 3; way++) {
        MPI_Aint to = MPI_Aint_add(theirs, (way == 0 ? 4 : way == 1 ? 7 : 3) * (MPI_Aint)sizeof *memory);
        int code = MPI_Put(memory + 6, 1 + (way == 2), MPI_INT64_T, next, to, 1 + (way == 2), MPI_INT64_T, dynamic);
        if (code == MPI_SUCCESS)
            code = MPI_Win_flush(next, dynamic);
        CHECK(class_of(code) == MPI_ERR_RMA_RANGE, "way %d: class %d", way, class_of(code));
    }
    failing_requests(dynamic, next, MPI_Aint_add(theirs, 7 * (MPI_Aint)sizeof *memory));
    OK(MPI_Get(&value, 1, MPI_INT64_T, next, theirs, 1, MPI_INT64_T, dynamic));
    OK(MPI_Win_unlock(next, dynamic));
    CHECK(value == 1, "%ld", (long)value);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 8; i++)
        CHECK(memory[i] == i + 1, "word %d is %ld", i, (long)memory[i]);
    OK(MPI_Win_free(&dynamic));
}

static void on_error(MPI_Win *which, int *code, ...)
{
    CHECK(*which == win && class_of(*code) == MPI_ERR_RMA_SYNC);
    handled++;
}

static void handlers(void)
{
    MPI_Errhandler handler;
    OK(MPI_Win_create_errhandler(on_error, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    CHECK(MPI_Win_unlock(0, win) != MPI_SUCCESS && handled == 1, "%d", handled);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Errhandler_free(&handler));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    no_win = MPI_WIN_NULL;
    OK(MPI_Win_allocate((OURS ? WORDS - rank : WORDS) * (MPI_Aint)sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    creation();
    handles();
    if (OURS)
        names();
    no_epoch();
    works();
    arguments();
    user_defined();
    ranges();
    wrong_lock();
    wrong_groups();
    flavors();
    handlers();
    works();
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    return 0;
}

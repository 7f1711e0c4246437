/* np: 1 2 4 : windows: memory of each flavor, attributes, info, names, groups, error handlers, shared memory, handles as ints */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>

#include "check.h"

static int rank, size, deleted, handled;

static int on_delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)key;
    CHECK(win != MPI_WIN_NULL && value == (void *)&rank && extra == (void *)&deleted);
    deleted++;
    return MPI_SUCCESS;
}

static void on_error(MPI_Win *win, int *code, ...)
{
    CHECK(*win != MPI_WIN_NULL && class_of(*code) == MPI_ERR_RMA_SYNC);
    handled++;
}

static void check_attribute(MPI_Win win, int key, int64_t want, int bytes)
{
    int flag;
    void *value;
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag, "key %d", key);
    if (bytes == 0)
        CHECK((intptr_t)value == want, "key %d", key);
    else
        CHECK(bytes == 4 ? *(int *)value == want : *(MPI_Aint *)value == want, "key %d", key);
}

static void check_attributes(MPI_Win win, void *base, int64_t bytes, int unit, int flavor)
{
    check_attribute(win, MPI_WIN_BASE, (intptr_t)base, 0);
    check_attribute(win, MPI_WIN_SIZE, bytes, sizeof(MPI_Aint));
    check_attribute(win, MPI_WIN_DISP_UNIT, unit, 4);
    check_attribute(win, MPI_WIN_CREATE_FLAVOR, flavor, 4);
    check_attribute(win, MPI_WIN_MODEL, MPI_WIN_UNIFIED, 4);
}

static void check_info(MPI_Win win, const char *key, const char *want)
{
    MPI_Info info;
    char value[64];
    int length = sizeof value, flag;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    CHECK(flag && !strcmp(value, want), "%s is '%s', not '%s'", key, flag ? value : "", want);
    OK(MPI_Info_free(&info));
}

static void keys_and_names(MPI_Win win)
{
    int key, flag, length, result;
    void *value;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Group group, world;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &deleted));
    OK(MPI_Win_set_attr(win, key, &rank));
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag && value == (void *)&rank);
    OK(MPI_Win_delete_attr(win, key));
    CHECK(deleted == 1);
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(win, key, &rank));
    OK(MPI_Win_free_keyval(&key));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 0);
    OK(MPI_Win_set_name(win, "memory"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 6 && !strcmp(name, "memory"));
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win);
}

static void handlers(MPI_Win win)
{
    MPI_Errhandler handler, found;
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_create_errhandler(on_error, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    OK(MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC));
    CHECK(handled == 1);
    CHECK(class_of(MPI_Win_complete(win)) == MPI_ERR_RMA_SYNC && handled == 2);
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == handler);
    OK(MPI_Errhandler_free(&found));
    OK(MPI_Errhandler_free(&handler));
}

/* Each member's memory is written by its right neighbour where that has it mapped. */
static void query(MPI_Win win, int64_t bytes, bool must)
{
    MPI_Aint found, unit_c;
    int unit, left = (rank + size - 1) % size, right = (rank + 1) % size, writes, is_written;
    char *at, *mine;
    OK(MPI_Win_shared_query(win, rank, &found, &unit, &mine));
    CHECK(found == bytes && unit == 1 && (bytes == 0 || mine));
    OK(MPI_Win_shared_query_c(win, left, &found, &unit_c, &at));
    CHECK(unit_c == 1 && (found == bytes || (!must && found == 0 && !at)));
    writes = found > 0;
    OK(MPI_Sendrecv(&writes, 1, MPI_INT, left, 0, &is_written, 1, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Win_fence(0, win));
    for (int64_t i = 0; i < found; i++)
        at[i] = (char)(left + i);
    OK(MPI_Win_sync(win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int64_t i = 0; i < bytes && is_written; i++)
        CHECK(mine[i] == (char)(rank + i), "byte %d", (int)i);
}

static void allocated(int64_t bytes)
{
    MPI_Win win;
    MPI_Info info;
    char *base;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "accumulate_ordering", "raw, waw"));
    OK(MPI_Info_set(info, "accumulate_ops", "same_op"));
    OK(MPI_Info_set(info, "same_size", "true"));
    OK(MPI_Info_set(info, "mpi_accumulate_granularity", "64"));
    OK(MPI_Win_allocate(bytes, 1, info, MPI_COMM_WORLD, &base, &win));
    CHECK(base != NULL);
    for (int64_t i = 0; i < bytes; i++)
        CHECK(base[i] == 0);
    check_attributes(win, base, bytes, 1, MPI_WIN_FLAVOR_ALLOCATE);
    check_info(win, "accumulate_ordering", "raw,waw");
    check_info(win, "accumulate_ops", "same_op");
    check_info(win, "same_size", "true");
    check_info(win, "same_disp_unit", "false");
    check_info(win, "mpi_accumulate_granularity", "64");
    query(win, bytes, false);
    OK(MPI_Win_set_info(win, info));
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    OK(MPI_Win_allocate_c(bytes, 1, info, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

/* Members' memory follows without gaps, unless info allows them. */
static void shared(void)
{
    MPI_Comm node;
    MPI_Win win;
    MPI_Info info;
    MPI_Aint found;
    int members, self, unit;
    char *base, *first, *at;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &members));
    OK(MPI_Comm_rank(node, &self));
    OK(MPI_Win_allocate_shared(self == 0 ? 0 : 100 + self, 1, MPI_INFO_NULL, node, &base, &win));
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &found, &unit, &first));
    CHECK(found == (members > 1 ? 101 : 0));
    for (int i = 1, before = 0; i < members; before += 100 + i++) {
        OK(MPI_Win_shared_query(win, i, &found, &unit, &at));
        CHECK(found == 100 + i && at == first + before);
    }
    if (self)
        memset(base, self, (size_t)(100 + self));
    OK(MPI_Win_fence(0, win));
    for (int i = 1; i < members; i++)
        for (int j = 0; j < 100 + i; j++)
            CHECK(*first++ == i);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Win_free(&win));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    OK(MPI_Win_allocate_shared_c(100, 1, info, node, &base, &win));
    check_info(win, "alloc_shared_noncontig", "true");
    CHECK((uintptr_t)base % 64 == 0);
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&node));
}

static void created(void)
{
    MPI_Win win;
    double memory[10], *at;
    MPI_Aint found;
    int unit;
    OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    check_attributes(win, memory, sizeof memory, 8, MPI_WIN_FLAVOR_CREATE);
    OK(MPI_Win_shared_query(win, rank, &found, &unit, &at));
    CHECK(found == sizeof memory && at == memory && unit == 8);
    OK(MPI_Win_shared_query(win, (rank + 1) % size, &found, &unit, &at));
    CHECK(size == 1 || (found == 0 && at == NULL)); /* the program's own memory is not shared */
    keys_and_names(win);
    handlers(win);
    OK(MPI_Win_free(&win));
    CHECK(deleted == 2);
    OK(MPI_Win_create_c(NULL, 0, (MPI_Aint)1 << 40, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    check_attributes(win, NULL, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    OK(MPI_Win_attach(win, memory, sizeof memory));
    OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    CHECK(class_of(MPI_Win_shared_query(win, rank, &found, &unit, &at)) == MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&win));
}

/* A wrong argument of one member is an error on all: no member hangs. */
static void refused(void)
{
    MPI_Win win;
    void *base;
    int code;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)); /* of calls with an invalid window */
    code = class_of(MPI_Win_allocate(rank == size - 1 ? -8 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    CHECK(code == (rank == size - 1 ? MPI_ERR_SIZE : MPI_ERR_OTHER), "class %d", code);
    CHECK(win == MPI_WIN_NULL);
    code = class_of(MPI_Win_create(&rank, 4, rank == 0 ? 0 : 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK(code == (rank == 0 ? MPI_ERR_DISP : MPI_ERR_OTHER), "class %d", code);
    code = class_of(MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, rank == 0 ? NULL : &base, &win));
    CHECK(code == (rank == 0 ? MPI_ERR_ARG : MPI_ERR_OTHER), "class %d", code);
    CHECK(class_of(MPI_Win_free(&win)) == MPI_ERR_WIN);
    if (size > 1) { /* more than all memory */
        code = class_of(MPI_Win_allocate_shared((MPI_Aint)1 << 60, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        CHECK(code == MPI_ERR_RMA_SHARED || code == MPI_ERR_OTHER, "class %d", code);
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    created();
    allocated(0);
    allocated(1000);
    allocated(3 << 20);
    for (int i = 0; i < 100; i++) /* memory comes back */
        allocated(100000);
    shared();
    refused();
    OK(MPI_Finalize());
    return 0;
}

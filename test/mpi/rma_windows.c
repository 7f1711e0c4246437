/* np: 1 2 3 4 : windows: create and allocate, attributes, keys, info, names, groups, error handlers, many at once, over subcommunicators */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

/* GRAIN: bytes of small windows. MPICH 4.0 (UCX) computes wrong addresses in windows that do not begin at a multiple of 64. */
enum { MANY = 40, GRAIN = MPI_VERSION >= 5 ? 4 : 64 };

static int rank, size, deleted, copied, handled;

static void check_attributes(MPI_Win win, void *base, MPI_Aint bytes, int unit, int flavor)
{
    void *value;
    int flag = 0;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == base, "base %p instead of %p", value, base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag));
    CHECK(flag && *(MPI_Aint *)value == bytes, "size %ld", (long)*(MPI_Aint *)value);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
    CHECK(flag && *(int *)value == unit, "unit %d instead of %d", *(int *)value, unit);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag && *(int *)value == flavor, "flavor %d instead of %d", *(int *)value, flavor);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag && (*(int *)value == MPI_WIN_UNIFIED || *(int *)value == MPI_WIN_SEPARATE), "model %d", *(int *)value);
}

static void check_group(MPI_Win win, MPI_Comm comm)
{
    MPI_Group ours, theirs;
    int result;
    OK(MPI_Win_get_group(win, &ours));
    OK(MPI_Comm_group(comm, &theirs));
    OK(MPI_Group_compare(ours, theirs, &result));
    CHECK(result == MPI_IDENT, "%d", result);
    OK(MPI_Group_free(&ours));
    OK(MPI_Group_free(&theirs));
}

/* The left neighbour in `comm` writes its number into each rank's first int. */
static void ring(MPI_Win win, MPI_Comm comm, int *mine, int mark)
{
    int me, n;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    int value = mark * 1000 + me;
    OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    OK(MPI_Put(&value, 1, MPI_INT, (me + 1) % n, 0, 1, MPI_INT, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK(*mine == mark * 1000 + (me + n - 1) % n, "%d in window %d", *mine, mark);
}

/* Flavors with another size and unit on each rank. */
static void flavors(void)
{
    int *memory = calloc(size + 1, sizeof *memory), *base;
    MPI_Aint each = MPI_VERSION >= 5 ? 100 : 128; /* MPI 5.0 aligns every rank's memory, whatever the sizes are */
    MPI_Win win;
    OK(MPI_Win_create(memory, (rank + 1) * (MPI_Aint)sizeof *memory, rank + 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK(win != MPI_WIN_NULL);
    check_attributes(win, memory, (rank + 1) * (MPI_Aint)sizeof *memory, rank + 1, MPI_WIN_FLAVOR_CREATE);
    check_group(win, MPI_COMM_WORLD);
    ring(win, MPI_COMM_WORLD, memory, 1);
    OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
    OK(MPI_Win_allocate((rank + 1) * each, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    CHECK(base && (uintptr_t)base % sizeof(double) == 0, "%p", (void *)base);
    check_attributes(win, base, (rank + 1) * each, 4, MPI_WIN_FLAVOR_ALLOCATE);
    check_group(win, MPI_COMM_WORLD);
    ring(win, MPI_COMM_WORLD, base, 2);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    check_attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    OK(MPI_Win_free(&win));
    free(memory);
}

#if MPI_VERSION >= 4
static void large_units(void)
{
    int *memory = calloc(4, sizeof *memory), *base;
    MPI_Win win;
    OK(MPI_Win_create_c(memory, 16, (MPI_Aint)4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    check_attributes(win, memory, 16, 4, MPI_WIN_FLAVOR_CREATE);
    ring(win, MPI_COMM_WORLD, memory, 3);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_allocate_c(16, (MPI_Aint)2, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    check_attributes(win, base, 16, 2, MPI_WIN_FLAVOR_ALLOCATE);
    ring(win, MPI_COMM_WORLD, base, 4);
    OK(MPI_Win_free(&win));
    free(memory);
}
#else
static void large_units(void) {}
#endif

/* Even ranks expose memory, odd ones none; one rank's base is null. */
static void nothing_on_some(void)
{
    int *memory = malloc(64), *base = NULL, value = rank, to = rank / 2 * 2;
    int count = rank == size - 1 || rank % 2; /* the last of each pair of ranks writes to the first */
    MPI_Win win;
    for (int way = 0; way < 2; way++) {
        MPI_Aint bytes = rank % 2 ? 0 : GRAIN;
        if (way)
            OK(MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        else
            OK(MPI_Win_create(bytes ? memory : NULL, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        int *mine = way ? base : memory;
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(&value, count, MPI_INT, to, 0, count, MPI_INT, win));
        OK(MPI_Put(&value, 0, MPI_INT, size - 1, 0, 0, MPI_INT, win));
        OK(MPI_Win_fence(0, win));
        if (rank % 2 == 0)
            CHECK(*mine == (rank + 1 < size ? rank + 1 : rank), "%d", *mine);
        OK(MPI_Win_free(&win));
    }
    free(memory);
}

static int copy(MPI_Win win, int key, void *extra, void *in, void *out, int *flag)
{
    (void)win, (void)key, (void)extra, (void)in, (void)out;
    copied++;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Win win, int key, void *value, void *extra)
{
    (void)win, (void)key;
    CHECK(value == &deleted && extra == &copied);
    deleted++;
    return MPI_SUCCESS;
}

static void keys(void)
{
    _Alignas(64) int memory = 0, key, flag;
    void *value;
    MPI_Win win;
    OK(MPI_Win_create_keyval(copy, delete, &key, &copied));
    OK(MPI_Win_create(&memory, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(win, key, &deleted));
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag && value == &deleted);
    OK(MPI_Win_delete_attr(win, key));
    CHECK(deleted == 1);
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(!flag);
    OK(MPI_Win_set_attr(win, key, &deleted));
    int old = key;
    OK(MPI_Win_free_keyval(&key));
    CHECK(key == MPI_KEYVAL_INVALID && old != key && deleted == 1);
    OK(MPI_Win_free(&win));
    CHECK(deleted == 2 && !copied, "%d %d", deleted, copied);
}

static void info_of(MPI_Win win, const char *key, const char *must)
{
    char value[100] = "";
    int flag;
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    CHECK(info != MPI_INFO_NULL);
    OK(MPI_Info_get(info, key, 99, value, &flag));
    if (flag) /* an implementation may ignore a hint */
        CHECK(!strcmp(value, must), "%s is %s instead of %s", key, value, must);
    OK(MPI_Info_free(&info));
}

/* What the members' values contradict counts as false. */
static void wrong_hints(void)
{
    int64_t memory[4] = {0};
    MPI_Win win;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "same_size", "true"));
    OK(MPI_Info_set(info, "same_disp_unit", "true"));
    OK(MPI_Win_create(memory, rank == size - 1 ? 16 : 32, 8, info, MPI_COMM_WORLD, &win));
    info_of(win, "same_size", size > 1 ? "false" : "true");
    info_of(win, "same_disp_unit", "true");
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create(memory, 32, rank == size - 1 ? 4 : 8, info, MPI_COMM_WORLD, &win));
    info_of(win, "same_size", "true");
    info_of(win, "same_disp_unit", size > 1 ? "false" : "true");
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

static void hints(void)
{
    _Alignas(64) int memory[16] = {0}, value = 5;
    MPI_Win win;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Info_set(info, "accumulate_ops", "same_op"));
    OK(MPI_Info_set(info, "same_size", "true"));
    OK(MPI_Info_set(info, "same_disp_unit", "true"));
    OK(MPI_Info_set(info, "mpi_accumulate_granularity", "8"));
    OK(MPI_Info_set(info, "not a key of any library", "x"));
    OK(MPI_Win_create(memory, sizeof memory, 4, info, MPI_COMM_WORLD, &win));
    OK(MPI_Info_free(&info));
    info_of(win, "no_locks", "true");
    info_of(win, "accumulate_ops", "same_op");
    info_of(win, "same_size", "true");
    info_of(win, "same_disp_unit", "true");
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(&value, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    CHECK(rank || memory[1] == 5 * size, "%d", memory[1]);
    OK(MPI_Info_create(&info));
    OK(MPI_Win_set_info(win, info)); /* no entries: no effect */
    OK(MPI_Info_free(&info));
    info_of(win, "no_locks", "true");
    OK(MPI_Win_free(&win));
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME], longest[MPI_MAX_OBJECT_NAME];
    _Alignas(64) int memory = 0, length = -1;
    MPI_Win win;
    OK(MPI_Win_create(&memory, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(!length && !*name, "'%s'", name);
    OK(MPI_Win_set_name(win, "counters"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 8 && !strcmp(name, "counters"), "'%s'", name);
    memset(longest, 'w', sizeof longest);
    longest[MPI_MAX_OBJECT_NAME - 1] = 0;
    OK(MPI_Win_set_name(win, longest));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && !strcmp(name, longest), "length %d", length);
    MPI_Fint number = MPI_Win_c2f(win);
    CHECK(MPI_Win_f2c(number) == win && MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL);
    OK(MPI_Win_free(&win));
}

static void on_error(MPI_Win *win, int *code, ...)
{
    CHECK(win && *win != MPI_WIN_NULL && class_of(*code) == MPI_ERR_OTHER);
    handled++;
}

static void handlers(void)
{
    _Alignas(64) int memory = 0;
    MPI_Win win;
    MPI_Errhandler handler, now;
    OK(MPI_Win_create(&memory, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_errhandler(win, &now));
    CHECK(now == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_create_errhandler(on_error, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    OK(MPI_Win_get_errhandler(win, &now));
    CHECK(now == handler);
    OK(MPI_Errhandler_free(&now));
    OK(MPI_Errhandler_free(&handler)); /* the window still holds it */
    OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    CHECK(handled == 1, "%d", handled);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    CHECK(handled == 1, "%d", handled);
    OK(MPI_Win_free(&win));
}

/* Many windows live at once; all ranks free them in the same order, which is not that of creation. */
static void many(void)
{
    MPI_Win wins[MANY];
    int *memory = calloc(MANY, GRAIN), *bases[MANY];
    MPI_Comm half;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, size - rank, &half));
    for (int i = 0; i < MANY; i++) {
        MPI_Comm comm = i % 3 == 1 ? half : i % 3 == 2 ? MPI_COMM_SELF : MPI_COMM_WORLD;
        bases[i] = memory + i * (GRAIN / 4);
        if (i % 2)
            OK(MPI_Win_allocate(GRAIN, 4, MPI_INFO_NULL, comm, &bases[i], &wins[i]));
        else
            OK(MPI_Win_create(bases[i], GRAIN, 4, MPI_INFO_NULL, comm, &wins[i]));
        check_group(wins[i], comm);
    }
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < MANY; i++) {
            int w = i * 7 % MANY;
            ring(wins[w], w % 3 == 1 ? half : w % 3 == 2 ? MPI_COMM_SELF : MPI_COMM_WORLD, bases[w], 10 + w + turn);
        }
    OK(MPI_Comm_free(&half)); /* windows outlive the communicator that made them */
    for (int i = 0; i < MANY; i++)
        OK(MPI_Win_free(&wins[i * 11 % MANY]));
    free(memory);
}

/* Two windows over the same memory, used one after the other. */
static void overlapping(void)
{
    _Alignas(64) int memory[64] = {0}, value = 7 + rank, at = MPI_VERSION >= 5; /* MPICH 4.0 reads the wrong place with 1 */
    MPI_Win one, two;
    OK(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &one));
    OK(MPI_Win_create(memory + at, 64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &two));
    OK(MPI_Win_fence(0, one));
    OK(MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, at, 1, MPI_INT, one));
    OK(MPI_Win_fence(0, one));
    OK(MPI_Win_fence(0, two));
    OK(MPI_Get(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, two));
    OK(MPI_Win_fence(0, two));
    CHECK(value == 7 + rank && memory[at] == 7 + (rank + size - 1) % size, "%d %d", value, memory[at]);
    OK(MPI_Win_free(&one));
    OK(MPI_Win_free(&two));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    flavors();
    large_units();
    nothing_on_some();
    keys();
    hints();
    wrong_hints();
    names();
    handlers();
    many();
    overlapping();
    OK(MPI_Finalize());
    return 0;
}

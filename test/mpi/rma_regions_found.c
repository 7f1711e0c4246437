/* np: 2 3 4 : regions of a dynamic window whose target computes, without a progress thread: origins find them and use them all the same;
 * regions attached later, at the same address and larger; what is not attached is refused when the target is in MPI again */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>
#include <time.h>

#include "device_counts.h"

enum { REGIONS = 3000, STRIDE = 64, PASSES = 3, LONGEST_S = 60, LONG = 300000 };

static int rank, size;
static MPI_Win win;
static MPI_Aint base;
static char *memory;
static int is_found; /* a device finds regions of a target */

/* Rank 0 calls no function of MPI until each other rank has put its mark into region 0. */
static void compute(int64_t mark)
{
    struct timespec pause = {0, 1000000};
    for (int ms = 0;; ms++) {
        int marks = 0;
        for (int r = 1; r < size; r++)
            marks += atomic_load((_Atomic int64_t *)(void *)(memory + r * 8)) == mark + r;
        if (marks == size - 1)
            return;
        CHECK(ms < LONGEST_S * 1000, "%d of %d origins are done: the others wait for this rank, which computes", marks, size - 1);
        nanosleep(&pause, NULL);
    }
}

static void put(const void *from, int bytes, MPI_Aint to) { OK(MPI_Put(from, bytes, MPI_BYTE, 0, to, bytes, MPI_BYTE, win)); }

static void get(void *to, int bytes, MPI_Aint from)
{
    OK(MPI_Get(to, bytes, MPI_BYTE, 0, from, bytes, MPI_BYTE, win));
    OK(MPI_Win_flush(0, win));
}

/* Each region is used for the first time, by a put or a get, one after another or in a burst. */
static void use(int pass, int64_t mark)
{
    int64_t out = mark + rank, in, values[16];
    int bursts = 0;
    for (int i = 1; i < REGIONS; i++) {
        MPI_Aint there = base + (i * 7 % (REGIONS - 1) + 1) * STRIDE + rank * 8;
        in = -1;
        if (i % 3 == pass % 3) {
            get(&in, sizeof in, there);
            CHECK(in == 0, "region %d has %ld", i, (long)in);
        }
        values[bursts % 16] = out + i;
        put(&values[bursts % 16], sizeof out, there);
        if (++bursts % 16 == 0 || i % 5 == 0)
            OK(MPI_Win_flush(0, win));
        if (i % 4)
            continue;
        get(&in, sizeof in, there);
        CHECK(in == out + i, "region %d has %ld, not %ld", i, (long)in, (long)(out + i));
    }
    OK(MPI_Win_flush(0, win));
    put(&out, sizeof out, base + rank * 8);
    OK(MPI_Win_flush(0, win));
}

/* The regions of each pass are new, at the same addresses. */
static void passes(void)
{
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t mark = 1000000 * (pass + 1);
        uint64_t messages;
        memset(memory, 0, REGIONS * STRIDE);
        for (int i = 0; i < REGIONS && !rank; i++)
            OK(MPI_Win_attach(win, memory + i * 11 % REGIONS * STRIDE, 8 * size + (pass ? 8 : 0)));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        messages = counted(MESSAGES);
        if (rank && is_found)
            use(pass, mark);
        else if (is_found)
            compute(mark);
        CHECK(counted(MESSAGES) == messages, "pass %d: %d messages", pass, (int)(counted(MESSAGES) - messages));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < REGIONS && !rank; i++)
            OK(MPI_Win_detach(win, memory + i * 13 % REGIONS * STRIDE));
    }
}

/* A burst of puts into one region that is not known: it is looked for once. Then a long one, and a datatype with gaps, into others. */
static void shapes(void)
{
    static int64_t words[1000];
    char *out = malloc(LONG), *in = malloc(LONG);
    int64_t mark = 5000000 + rank;
    MPI_Datatype gaps;
    CHECK(out && in);
    for (int i = 0; i < LONG; i++)
        out[i] = (char)(i * 7 + rank + i / 1000);
    OK(MPI_Type_vector(2, LONG / 4, LONG / 2, MPI_CHAR, &gaps));
    OK(MPI_Type_commit(&gaps));
    if (!rank) {
        memset(memory, 0, STRIDE);
        OK(MPI_Win_attach(win, memory, 8 * size));
        for (int r = 1; r < size; r++) {
            OK(MPI_Win_attach(win, memory + STRIDE + r * 2 * LONG, sizeof words));
            OK(MPI_Win_attach(win, memory + STRIDE + r * 2 * LONG + sizeof words, LONG));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (!rank && is_found)
        compute(5000000);
    if (rank && is_found) {
        MPI_Aint there = base + STRIDE + rank * 2 * LONG;
        uint64_t reads = counted(READS);
        for (int i = 0; i < 1000; i++) {
            words[i] = i + rank;
            put(&words[i], 8, there + i * 8);
        }
        OK(MPI_Win_flush(0, win));
        CHECK(!has_counters || counted(READS) - reads == 2, "%d gets looked for one region", (int)(counted(READS) - reads));
        put(out, LONG, there + (MPI_Aint)sizeof words);
        OK(MPI_Win_flush(0, win));
        get(in, LONG, there + (MPI_Aint)sizeof words);
        CHECK(!memcmp(in, out, LONG));
        memset(in, 0, LONG);
        OK(MPI_Get(in, 1, gaps, 0, there + (MPI_Aint)sizeof words, 1, gaps, win));
        OK(MPI_Win_flush(0, win));
        CHECK(!memcmp(in, out, LONG / 4) && !memcmp(in + LONG / 2, out + LONG / 2, LONG / 4) && !in[LONG / 4]);
        get(in, sizeof words, there);
        CHECK(!memcmp(in, words, sizeof words));
        put(&mark, sizeof mark, base + rank * 8);
        OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Type_free(&gaps));
    free(out), free(in);
}

static void refused(void)
{
    int64_t value = 1;
    int code = rank ? MPI_Put(&value, 8, MPI_BYTE, 0, base + STRIDE / 2, 8, MPI_BYTE, win) : MPI_SUCCESS;
    if (rank && code == MPI_SUCCESS)
        code = MPI_Win_flush(0, win);
    CHECK(!rank || class_of(code) == MPI_ERR_RMA_RANGE, "class %d", class_of(code));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(memory[STRIDE / 2] == 0);
}

/* Without a device that reads other ranks' memory messages serve, which need the target. */
static void try_device(void)
{
    int64_t value = 1;
    uint64_t puts;
    if (!rank)
        OK(MPI_Win_attach(win, memory, 8 * size));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    puts = counted(PUTS);
    if (rank) {
        put(&value, sizeof value, base + rank * 8);
        OK(MPI_Win_flush(0, win));
    }
    is_found = rank ? counted(PUTS) == puts + 1 : 1;
    OK(MPI_Allreduce(MPI_IN_PLACE, &is_found, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (!rank)
        OK(MPI_Win_detach(win, memory));
}

int main(int argc, char **argv)
{
    int provided;
    setenv("WEFT_PROGRESS_THREAD", "off", 1);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    check_start(&argc, &argv, &rank, &size);
    count();
    CHECK((memory = calloc(2, (size_t)STRIDE * REGIONS + (size_t)size * 2 * LONG)));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    if (!rank)
        OK(MPI_Get_address(memory, &base));
    OK(MPI_Bcast(&base, 1, MPI_AINT, 0, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    try_device();
    passes();
    shapes();
    refused();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    free(memory);
    if (!rank && !is_found)
        printf("no transport here reads the target's table\n");
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return 0;
}

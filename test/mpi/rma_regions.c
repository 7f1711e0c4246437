/* np: 2 3 4 : regions of dynamic windows by devices: thousands are found, none by a message; memory replaced under an address; regions
 * that touch; what is detached is told and unharmed; bursts into unknown regions; more regions than an origin keeps */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/mman.h>

#include "device_counts.h"

enum { REGIONS = 500, TOO_MANY = 5000, LENGTH = 24, STRIDE = 40, TURNS = 40, BYTES = 3 * 4096 };

static int rank, size, next, before;
static int is_moved, is_got; /* a device moves puts, and gets, of known regions */
static MPI_Win win;

static MPI_Aint address_of(const void *at)
{
    MPI_Aint address;
    OK(MPI_Get_address(at, &address));
    return address;
}

/* The next rank's address of what all ranks pass. */
static MPI_Aint next_address(const void *own)
{
    MPI_Aint mine = address_of(own), theirs;
    OK(MPI_Sendrecv(&mine, 1, MPI_AINT, before, 1, &theirs, 1, MPI_AINT, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return theirs;
}

static void put(const void *from, int bytes, MPI_Aint to)
{
    OK(MPI_Put(from, bytes, MPI_BYTE, next, to, bytes, MPI_BYTE, win));
}

static void get(void *to, int bytes, MPI_Aint from)
{
    OK(MPI_Get(to, bytes, MPI_BYTE, next, from, bytes, MPI_BYTE, win));
    OK(MPI_Win_flush(next, win));
}

/* Puts its index and a salt into each region, then gets them all. */
static void fill(MPI_Aint theirs, int count, int salt)
{
    for (int i = 0; i < count; i++) {
        int out[2] = {i, salt}, in[2] = {0, 0};
        put(out, sizeof out, theirs + i * STRIDE + 8);
        OK(MPI_Win_flush(next, win));
        get(in, sizeof in, theirs + i * STRIDE + 8);
        CHECK(in[0] == i && in[1] == salt, "region %d holds %d, %d", i, in[0], in[1]);
    }
}

/* The same, all at once. */
static void flood(MPI_Aint theirs, int salt)
{
    static int out[TOO_MANY][2], in[TOO_MANY][2];
    for (int i = 0; i < TOO_MANY; i++) {
        out[i][0] = i, out[i][1] = salt;
        put(out[i], sizeof out[i], theirs + i * STRIDE + 8);
    }
    OK(MPI_Win_flush(next, win));
    for (int i = 0; i < TOO_MANY; i++)
        OK(MPI_Get(in[i], 2, MPI_INT, next, theirs + i * STRIDE + 8, 2, MPI_INT, win));
    OK(MPI_Win_flush_all(win));
    CHECK(!memcmp(in, out, sizeof in));
}

static void check_filled(const char *memory, int count, int salt)
{
    for (int i = 0; i < count; i++) {
        int got[2];
        memcpy(got, memory + i * STRIDE + 8, sizeof got);
        CHECK(got[0] == i && got[1] == salt, "region %d holds %d, %d", i, got[0], got[1]);
    }
}

/* What a device moves. If it has no get regions are made known by messages, as by the first of two puts. */
static void try_device(void)
{
    static int memory[2];
    MPI_Aint theirs = next_address(memory);
    uint64_t puts = counted(PUTS), gets = counted(GETS);
    int value = 1;
    OK(MPI_Win_attach(win, memory, sizeof memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 2; i++) {
        put(&value, sizeof value, theirs);
        OK(MPI_Win_flush(next, win));
    }
    get(&value, sizeof value, theirs);
    is_moved = counted(PUTS) - puts >= 1;
    is_got = counted(GETS) - gets == 1;
    CHECK(!is_got || counted(PUTS) - puts == 2);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
}

/* All operations go by the device; without its get the first one on a region goes by message. Regions are detached and attached again, and
 * known again. In the last pass there are more than a table lists. */
static void thousands(void)
{
    static char memory[TOO_MANY * STRIDE];
    MPI_Aint theirs = next_address(memory);
    for (int pass = 0; pass < 4; pass++) {
        int count = pass == 3 ? TOO_MANY : REGIONS;
        uint64_t messages, puts;
        for (int i = 0; i < count && pass != 1; i++)
            OK(MPI_Win_attach(win, memory + i * STRIDE, LENGTH));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        messages = counted(MESSAGES), puts = counted(PUTS);
        for (int turn = 0; pass == 3 && turn < 3; turn++)
            flood(theirs, rank + pass);
        if (pass < 3)
            fill(theirs, count, rank + pass);
        if (pass < 3 && is_moved)
            CHECK(counted(MESSAGES) - messages == (uint64_t)(is_got ? 0 : pass == 1 ? REGIONS : 2 * REGIONS), "pass %d: %d messages", pass,
                  (int)(counted(MESSAGES) - messages));
        if (pass == 1 && is_moved)
            CHECK(counted(PUTS) - puts == REGIONS);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        check_filled(memory, count, before + pass);
        for (int i = 0; i < count && pass != 0; i++)
            OK(MPI_Win_detach(win, memory + (i * 7 % count) * STRIDE));
    }
}

/* A burst asks a bounded number of times, and what it has asked for is known to the next operation behind a flush. */
static void bursts(void)
{
    static int64_t memory[1000];
    MPI_Aint theirs = next_address(memory);
    uint64_t messages;
    OK(MPI_Win_attach(win, memory, sizeof memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int64_t turn = 0; turn < 3; turn++) {
        for (int64_t i = 0, value; i < 1000; i++) {
            value = i * 10 + turn;
            put(&value, sizeof value, theirs + i * 8);
            OK(MPI_Win_flush_local(next, win));
        }
        OK(MPI_Win_flush(next, win));
    }
    messages = counted(MESSAGES);
    for (int64_t i = 0, value; i < 1000; i++) {
        get(&value, sizeof value, theirs + i * 8);
        CHECK(value == i * 10 + 2, "word %ld is %ld", (long)i, (long)value);
    }
    CHECK(!is_got || counted(MESSAGES) == messages);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_detach(win, memory));
}

/* A token from rank to rank. A rank that gets it knows that memory was replaced, perhaps before the target's note has come. */
static void pass_around(void)
{
    int token = 0;
    if (rank)
        OK(MPI_Recv(&token, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Send(&token, 1, MPI_INT, next, 2, MPI_COMM_WORLD));
    if (!rank)
        OK(MPI_Recv(&token, 1, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int turn = 0; turn < 2; turn++)
        OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* The memory beneath an attached address changes between detach and attach: what is put afterwards is in the new memory. */
static void replaced(void)
{
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), out[BYTES], in[BYTES];
    MPI_Aint theirs = next_address(memory);
    CHECK(memory != MAP_FAILED);
    for (int turn = 0; turn < TURNS; turn++) {
        int shift = turn % 3 * 100, bytes = turn % 2 ? 64 : BYTES - shift;
        OK(MPI_Win_attach(win, memory + shift, BYTES - shift));
        pass_around();
        memset(out, 1 + turn + rank, sizeof out);
        for (int again = 0; again < 3; again++) {
            put(out, bytes, theirs + shift);
            OK(MPI_Win_flush(next, win));
            get(in, bytes, theirs + shift);
            CHECK(!memcmp(in, out, (size_t)bytes), "turn %d, %d", turn, again);
        }
        pass_around();
        for (int i = 0; i < BYTES; i++)
            CHECK(memory[i] == (char)(i >= shift && i < shift + bytes ? 1 + turn + before : 0), "turn %d: byte %d is %d", turn, i,
                  memory[i]);
        OK(MPI_Win_detach(win, memory + shift));
        OK(munmap(memory, BYTES));
        CHECK(mmap(memory, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory);
    }
    OK(munmap(memory, BYTES));
}

static void expect_refusal(int is_get, MPI_Aint at, int bytes)
{
    char buffer[2 * LENGTH];
    MPI_Request req;
    int code;
    memset(buffer, 77, sizeof buffer);
    code = is_get == 2   ? MPI_Rget(buffer, bytes, MPI_BYTE, next, at, bytes, MPI_BYTE, win, &req)
           : is_get == 1 ? MPI_Get(buffer, bytes, MPI_BYTE, next, at, bytes, MPI_BYTE, win)
                         : MPI_Put(buffer, bytes, MPI_BYTE, next, at, bytes, MPI_BYTE, win);
    if (code == MPI_SUCCESS && is_get == 2)
        code = MPI_Wait(&req, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS)
        code = MPI_Win_flush(next, win);
    CHECK(class_of(code) == MPI_ERR_RMA_RANGE, "class %d", class_of(code));
}

/* Two regions that touch, both known: an operation may span them; when one is detached nothing reaches it, and the other serves. */
static void touching(void)
{
    static char memory[3 * LENGTH];
    char out[2 * LENGTH], in[2 * LENGTH];
    MPI_Aint theirs = next_address(memory);
    MPI_Datatype gaps;
    OK(MPI_Type_vector(2, 1, LENGTH, MPI_CHAR, &gaps));
    OK(MPI_Type_commit(&gaps));
    for (int turn = 0; turn < 10; turn++) {
        memset(memory, 0, sizeof memory);
        OK(MPI_Win_attach(win, memory, LENGTH));
        OK(MPI_Win_attach(win, memory + LENGTH, LENGTH));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = 0; i < 2 * LENGTH; i++)
            out[i] = (char)(i + turn + rank);
        for (int again = 0; again < 2; again++) { /* both become known */
            put(out, 1, theirs), put(out + LENGTH, 1, theirs + LENGTH);
            OK(MPI_Win_flush(next, win));
        }
        put(out, 2 * LENGTH, theirs);
        OK(MPI_Put(out, 2, MPI_CHAR, next, theirs, 1, gaps, win));
        OK(MPI_Win_flush(next, win));
        out[LENGTH] = out[1];
        get(in, 2 * LENGTH, theirs);
        CHECK(!memcmp(in, out, sizeof in), "turn %d", turn);
        expect_refusal(turn % 3, theirs + LENGTH, LENGTH + 1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_detach(win, memory + LENGTH));
        memset(memory + LENGTH, 99, LENGTH);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int way = 0; way < 3; way++) {
            expect_refusal(way, theirs + LENGTH + 2, 8);
            expect_refusal(way, theirs + LENGTH - 2, 8);
        }
        get(in, LENGTH, theirs);
        CHECK(!memcmp(in, out, LENGTH));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        for (int i = LENGTH; i < 2 * LENGTH; i++)
            CHECK(memory[i] == 99, "byte %d is %d", i, memory[i]);
        OK(MPI_Win_detach(win, memory));
    }
    OK(MPI_Type_free(&gaps));
}

/* Puts and accumulates on one region, completed by one flush each. */
static void mixed(void)
{
    static int64_t memory[64];
    MPI_Aint theirs = next_address(memory);
    OK(MPI_Win_attach(win, memory, sizeof memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int64_t turn = 0; turn < 50; turn++) {
        int64_t at = turn % 64, start = turn * 100, more = 7, sum = -1;
        MPI_Request req;
        OK(MPI_Rput(&start, 1, MPI_INT64_T, next, theirs + at * 8, 1, MPI_INT64_T, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        OK(MPI_Win_flush(next, win));
        for (int i = 0; i < 3; i++)
            OK(MPI_Accumulate(&more, 1, MPI_INT64_T, next, theirs + at * 8, 1, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Win_flush(next, win));
        OK(MPI_Rget(&sum, 1, MPI_INT64_T, next, theirs + at * 8, 1, MPI_INT64_T, win, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(sum == start + 21, "%ld", (long)sum);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* it stays attached: MPI_Win_free detaches it */
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    check_start(&argc, &argv, &rank, &size);
    count();
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)); /* requests of the window fail by it */
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, win));
    try_device();
    thousands();
    bursts();
    replaced();
    touching();
    mixed();
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
    if (!rank && !is_moved)
        printf("no transport here moves puts without the target\n");
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return 0;
}

/* np: 1 2 3 4 : put and get: sizes, derived types on both sides, units of each rank, no bytes, MPI_PROC_NULL, own window */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { BYTES = 1 << 20, N = 24 };

static int rank, size;
static unsigned char *mine;
static MPI_Win win; /* unit: rank + 1 bytes */

/* The displacement of a byte of `target` that all units divide. */
static MPI_Aint disp(int target, int byte)
{
    CHECK(byte % (target + 1) == 0);
    return byte / (target + 1);
}

static void close_open(int by_lock, int close)
{
    if (!by_lock)
        OK(MPI_Win_fence(0, win));
    else if (!close)
        OK(MPI_Win_lock_all(0, win));
    else
        OK(MPI_Win_unlock_all(win));
}

/* Contiguous bytes of growing size into the next rank's window, and back by get from it. */
static void sizes(int by_lock)
{
    static const int lengths[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 4096, 8191, 65536, 65537, 300000, BYTES - 5040};
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = (size_t)lengths[i];
        memset(mine, 0xee, BYTES);
        memset(in, 0xdd, BYTES);
        check_fill(out, n, (unsigned)(rank * 100) + (unsigned)i);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        close_open(by_lock, 0);
        OK(MPI_Put(out, lengths[i], MPI_BYTE, next, disp(next, 2520), lengths[i], MPI_BYTE, win));
        close_open(by_lock, 1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(check_wrong(mine + 2520, n, (unsigned)(before * 100) + (unsigned)i) == n, "%zu bytes", n);
        CHECK(mine[2519] == 0xee && mine[2520 + n] == 0xee, "beside %zu bytes", n);
        close_open(by_lock, 0);
        OK(MPI_Get(in, lengths[i], MPI_BYTE, next, disp(next, 2520), lengths[i], MPI_BYTE, win));
        close_open(by_lock, 1);
        CHECK(check_wrong(in, n, (unsigned)(rank * 100) + (unsigned)i) == n && in[n] == 0xdd, "%zu bytes", n);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    free(out), free(in);
}

/* A matrix's column, a part of it, an indexed and a struct type, committed; each with the indices of its ints. */
static MPI_Datatype shape(int kind, int index[N])
{
    static const int lengths[] = {3, 1, 2}, at[] = {20, 1, 6}, two[] = {2, 2}, sizes[] = {10, 12}, parts[] = {4, 3}, starts[] = {2, 5};
    static const MPI_Aint bytes[] = {40, 8};
    static const MPI_Datatype ints[] = {MPI_INT, MPI_INT};
    MPI_Datatype type;
    int n = 0;
    if (kind == 0) {
        OK(MPI_Type_vector(12, 1, 11, MPI_INT, &type));
        while (n < 12)
            index[n] = 11 * n, n++;
    } else if (kind == 1) {
        OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
        for (; n < 12; n++)
            index[n] = (2 + n / 3) * 12 + 5 + n % 3;
    } else if (kind == 2) { /* not ascending; two of 6 ints */
        OK(MPI_Type_indexed(3, lengths, at, MPI_INT, &type));
        for (int k = 0; k < 2; k++)
            for (int b = 0; b < 3; b++)
                for (int i = 0; i < lengths[b]; i++)
                    index[n++] = k * 22 + at[b] + i;
    } else {
        OK(MPI_Type_create_struct(2, two, bytes, ints, &type));
        for (int k = 0; k < 3; k++)
            for (int b = 0; b < 2; b++)
                for (int i = 0; i < 2; i++)
                    index[n++] = k * 10 + (b ? 2 : 10) + i;
    }
    CHECK(n == 12);
    OK(MPI_Type_commit(&type));
    return type;
}

static int copies(int kind) { return kind < 2 ? 1 : kind == 2 ? 2 : 3; }

/* Every shape at the origin to every shape at the target, and back. Shape 4: 12 ints. */
static void shapes(int from, int to, int by_lock)
{
    int target = (rank + 1) % size, before = (rank + size - 1) % size, here[N], there[N], out[400], in[400];
    MPI_Datatype a = MPI_INT, b = MPI_INT;
    for (int i = 0; i < 12; i++)
        here[i] = there[i] = i;
    if (from < 4)
        a = shape(from, here);
    if (to < 4)
        b = shape(to, there);
    int count_a = from < 4 ? copies(from) : 12, count_b = to < 4 ? copies(to) : 12, *words = (int *)(mine + 5040);
    for (int i = 0; i < 400; i++)
        out[i] = rank * 1000 + i, in[i] = -7, words[i] = -1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    close_open(by_lock, 0);
    OK(MPI_Put(out, count_a, a, target, disp(target, 5040), count_b, b, win));
    close_open(by_lock, 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 12; i++) {
        CHECK(words[there[i]] == before * 1000 + here[i], "shape %d to %d, element %d: %d", from, to, i, words[there[i]]);
        words[there[i]] = -1;
    }
    for (int i = 0; i < 400; i++)
        CHECK(words[i] == -1, "shape %d to %d wrote word %d", from, to, i);
    for (int i = 0; i < 400; i++)
        words[i] = rank * 1000 + 500 + i;
    close_open(0, 0);
    close_open(0, 1);
    close_open(by_lock, 0);
    OK(MPI_Get(in, count_a, a, target, disp(target, 5040), count_b, b, win));
    if (from < 4)
        OK(MPI_Type_free(&a));
    if (to < 4)
        OK(MPI_Type_free(&b));
    close_open(by_lock, 1);
    for (int i = 0; i < 12; i++) {
        CHECK(in[here[i]] == target * 1000 + 500 + there[i], "shape %d from %d, element %d: %d", from, to, i, in[here[i]]);
        in[here[i]] = -7;
    }
    for (int i = 0; i < 400; i++)
        CHECK(in[i] == -7, "shape %d from %d wrote word %d", from, to, i);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Long vectors: more data than fits a message of any transport, with gaps on both sides. */
static void long_vectors(void)
{
    enum { COUNT = 20000 };
    int *out = malloc(COUNT * 3 * sizeof *out), *words = (int *)mine, next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Datatype apart, wider;
    OK(MPI_Type_vector(COUNT, 1, 3, MPI_INT, &apart));
    OK(MPI_Type_vector(COUNT / 4, 4, 9, MPI_INT, &wider));
    OK(MPI_Type_commit(&apart));
    OK(MPI_Type_commit(&wider));
    for (int i = 0; i < COUNT * 3; i++)
        out[i] = rank * 1000000 + i;
    memset(mine, 0xff, BYTES);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(out, 1, apart, next, 0, 1, wider, win));
    OK(MPI_Type_free(&apart));
    OK(MPI_Type_free(&wider));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < COUNT / 4 * 9 - 5; i++)
        CHECK(words[i] == (i % 9 < 4 ? before * 1000000 + 3 * (i / 9 * 4 + i % 9) : -1), "word %d is %d", i, words[i]);
    OK(MPI_Win_fence(0, win));
    free(out);
}

/* Nothing happens: no elements, types of no bytes, MPI_PROC_NULL. */
static void nothing(int by_lock)
{
    int value = 5, old = 6;
    MPI_Datatype none;
    OK(MPI_Type_contiguous(0, MPI_INT, &none));
    OK(MPI_Type_commit(&none));
    memset(mine, 0x11, 64);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    close_open(by_lock, 0);
    OK(MPI_Put(&value, 0, MPI_INT, (rank + 1) % size, 0, 0, MPI_INT, win));
    OK(MPI_Get(&value, 0, MPI_INT, (rank + 1) % size, 0, 0, MPI_INT, win));
    OK(MPI_Put(&value, 3, none, (rank + 1) % size, 0, 3, none, win));
    OK(MPI_Put(NULL, 0, MPI_INT, rank, 0, 0, MPI_INT, win));
    OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    OK(MPI_Get(&value, 1, MPI_INT, MPI_PROC_NULL, 1 << 30, 1, MPI_INT, win));
    OK(MPI_Accumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Accumulate(&value, 0, MPI_INT, rank, 0, 0, MPI_INT, MPI_SUM, win));
    OK(MPI_Fetch_and_op(&value, &old, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
    OK(MPI_Compare_and_swap(&value, &value, &old, MPI_INT, MPI_PROC_NULL, 0, win));
    OK(MPI_Get_accumulate(NULL, 0, MPI_INT, &old, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_NO_OP, win));
    close_open(by_lock, 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(value == 5 && old == 6, "%d %d", value, old);
    for (int i = 0; i < 64; i++)
        CHECK(mine[i] == 0x11);
    OK(MPI_Type_free(&none));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* Many small operations in one epoch, to all ranks in turn. */
static void many(int by_lock)
{
    enum { EACH = 300 };
    int *out = malloc(sizeof *out * EACH * (size_t)size), *in = malloc(sizeof *in * EACH * (size_t)size), *words = (int *)mine;
    memset(mine, 0, BYTES);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int way = 0; way < 2; way++) {
        close_open(by_lock, 0);
        for (int i = 0; i < EACH; i++)
            for (int r = 0; r < size; r++) {
                int n = r * EACH + i;
                out[n] = rank * 100000 + r * 1000 + i;
                MPI_Aint byte = (MPI_Aint)(rank * EACH + i) * 4 * 12; /* a multiple of units 1 to 4 */
                if (way)
                    OK(MPI_Get(&in[n], 1, MPI_INT, r, byte / (r + 1), 1, MPI_INT, win));
                else
                    OK(MPI_Put(&out[n], 1, MPI_INT, r, byte / (r + 1), 1, MPI_INT, win));
            }
        close_open(by_lock, 1);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    for (int r = 0; r < size; r++)
        for (int i = 0; i < EACH; i++) {
            CHECK(words[(r * EACH + i) * 12] == r * 100000 + rank * 1000 + i, "word %d of %d: %d", i, r, words[(r * EACH + i) * 12]);
            CHECK(in[r * EACH + i] == out[r * EACH + i], "%d instead of %d", in[r * EACH + i], out[r * EACH + i]);
        }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(out), free(in);
}

static void all(void)
{
    for (int by_lock = 0; by_lock < 2; by_lock++) {
        sizes(by_lock);
        for (int from = 0; from < 5; from++)
            for (int to = 0; to < 5; to++)
                shapes(from, to, by_lock);
        nothing(by_lock);
        if (size <= 4)
            many(by_lock);
    }
    long_vectors();
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    CHECK(size <= 9, "units divide 2520 bytes");
    OK(MPI_Win_allocate(BYTES, rank + 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    all();
    OK(MPI_Win_free(&win));
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &mine));
    OK(MPI_Win_create(mine, BYTES, rank + 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    all();
    OK(MPI_Win_free(&win));
    OK(MPI_Free_mem(mine));
    OK(MPI_Finalize());
    return 0;
}

/* np: 1 2 3 4 5 8 : the eight collectives against naive results: types, operations, roots, in place, strided, sizes, count 0 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { LARGE = 40000 };

static int rank, size;
static long *out, *in, *want;

/* Rank r's item i. Small, so that products do not overflow. */
static long item(int r, int i) { return 1 + (r * 7 + i * 3) % 5; }

static void expect(const char *what, int n, int param)
{
    for (int i = 0; i < n; i++)
        CHECK(in[i] == want[i], "%s (%d items, case %d): item %d is %ld, not %ld", what, n, param, i, in[i], want[i]);
}

static long fold(MPI_Op op, long a, long b)
{
    return op == MPI_SUM    ? a + b
           : op == MPI_PROD ? a * b
           : op == MPI_MIN  ? (a < b ? a : b)
           : op == MPI_MAX  ? (a > b ? a : b)
           : op == MPI_BAND ? (a & b)
           : op == MPI_BOR  ? (a | b)
           : op == MPI_BXOR ? (a ^ b)
           : op == MPI_LAND ? (a && b)
           : op == MPI_LOR  ? (a || b)
                            : (!a != !b);
}

static void reduce(int n, MPI_Op op, int number)
{
    for (int i = 0; i < n; i++) {
        out[i] = item(rank, i);
        want[i] = item(0, i);
        for (int r = 1; r < size; r++)
            want[i] = fold(op, want[i], item(r, i));
    }
    memset(in, 0x11, (size_t)n * sizeof *in);
    OK(MPI_Allreduce(out, in, n, MPI_LONG, op, MPI_COMM_WORLD));
    expect("allreduce", n, number);
    memcpy(in, out, (size_t)n * sizeof *in);
    OK(MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_LONG, op, MPI_COMM_WORLD));
    expect("allreduce in place", n, number);
    for (int root = 0; root<size; root += size> 4 ? 3 : 1) {
        memset(in, 0x11, (size_t)n * sizeof *in);
        OK(MPI_Reduce(out, rank == root ? in : NULL, n, MPI_LONG, op, root, MPI_COMM_WORLD));
        if (rank == root)
            expect("reduce", n, number);
        memcpy(in, out, (size_t)n * sizeof *in);
        OK(MPI_Reduce(rank == root ? MPI_IN_PLACE : in, in, n, MPI_LONG, op, root, MPI_COMM_WORLD));
        if (rank == root)
            expect("reduce in place", n, number);
    }
}

static void bcast(int n)
{
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < n; i++) {
            want[i] = item(root, i) * 1000 + i;
            in[i] = rank == root ? want[i] : -1;
        }
        OK(MPI_Bcast(in, n, MPI_LONG, root, MPI_COMM_WORLD));
        expect("bcast", n, root);
    }
}

/* n items per rank. */
static void gather(int n)
{
    for (int root = -1; root < size; root++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            for (int i = 0; i < n * size; i++) {
                want[i] = item(i / (n ? n : 1), i % (n ? n : 1)) * 100 + i;
                in[i] = -1;
            }
            for (int i = 0; i < n; i++) {
                out[i] = want[rank * n + i];
                if (in_place)
                    in[rank * n + i] = out[i];
            }
            if (root < 0) {
                OK(MPI_Allgather(in_place ? MPI_IN_PLACE : out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD));
                expect(in_place ? "allgather in place" : "allgather", n * size, root);
            } else if (rank == root) {
                OK(MPI_Gather(in_place ? MPI_IN_PLACE : out, n, MPI_LONG, in, n, MPI_LONG, root, MPI_COMM_WORLD));
                expect(in_place ? "gather in place" : "gather", n * size, root);
            } else { /* arguments significant only at the root are ignored elsewhere */
                OK(MPI_Gather(out, n, MPI_LONG, NULL, -1, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
            }
        }
    }
}

static void scatter(int n)
{
    for (int root = 0; root < size; root++)
        for (int in_place = 0; in_place < 2; in_place++) {
            for (int i = 0; i < n * size; i++)
                out[i] = item(root, i) * 100 + i;
            for (int i = 0; i < n; i++) {
                want[i] = item(root, rank * n + i) * 100 + rank * n + i;
                in[i] = -1;
            }
            if (rank == root && in_place) {
                OK(MPI_Scatter(out, n, MPI_LONG, MPI_IN_PLACE, n, MPI_LONG, root, MPI_COMM_WORLD));
                for (int i = 0; i < n; i++)
                    CHECK(out[rank * n + i] == want[i]);
            } else if (rank == root) {
                OK(MPI_Scatter(out, n, MPI_LONG, in, n, MPI_LONG, root, MPI_COMM_WORLD));
                expect("scatter", n, root);
            } else {
                OK(MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, in, n, MPI_LONG, root, MPI_COMM_WORLD));
                expect("scatter", n, root);
            }
        }
}

static void alltoall(int n)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < n * size; i++) {
            int peer = i / (n ? n : 1), k = i % (n ? n : 1);
            out[i] = (rank * 100 + peer) * 100000L + k;
            want[i] = (peer * 100 + rank) * 100000L + k;
            in[i] = in_place ? out[i] : -1;
        }
        OK(MPI_Alltoall(in_place ? MPI_IN_PLACE : out, n, MPI_LONG, in, n, MPI_LONG, MPI_COMM_WORLD));
        expect(in_place ? "alltoall in place" : "alltoall", n * size, 0);
    }
}

/* 2x2 matrices do not commute: the order of ranks must be kept. */
static void multiply(void *invec, void *inoutvec, int *len, MPI_Datatype *type)
{
    double *a = invec, *b = inoutvec;
    (void)type;
    for (int i = 0; i < *len; i++, a += 4, b += 4) {
        double c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                       a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static void user_op(int n)
{
    MPI_Op op;
    MPI_Datatype matrix;
    int commute = 1;
    double *a = malloc((size_t)n * 4 * sizeof *a), *b = malloc((size_t)n * 4 * sizeof *b), *c = malloc((size_t)n * 4 * sizeof *c);
    OK(MPI_Type_contiguous(4, MPI_DOUBLE, &matrix));
    OK(MPI_Type_commit(&matrix));
    OK(MPI_Op_create(multiply, 0, &op));
    OK(MPI_Op_commutative(op, &commute));
    CHECK(!commute);
    for (int r = size - 1; r >= 0; r--)
        for (int i = 0; i < n; i++) {
            double m[4] = {1, r % 3, (r + i) % 2, 1};
            memcpy(&b[4 * i], m, sizeof m);
            if (r == size - 1)
                memcpy(&c[4 * i], m, sizeof m);
            if (r == rank)
                memcpy(&a[4 * i], m, sizeof m);
            if (r < size - 1) {
                int one = 1;
                multiply(&b[4 * i], &c[4 * i], &one, &matrix);
            }
        }
    memset(b, 0, (size_t)n * 4 * sizeof *b);
    OK(MPI_Allreduce(a, b, n, matrix, op, MPI_COMM_WORLD));
    CHECK(memcmp(b, c, (size_t)n * 4 * sizeof *b) == 0, "allreduce of %d matrices lost the order", n);
    for (int root = 0; root < size; root++) {
        memset(b, 0, (size_t)n * 4 * sizeof *b);
        OK(MPI_Reduce(a, b, n, matrix, op, root, MPI_COMM_WORLD));
        CHECK(rank != root || memcmp(b, c, (size_t)n * 4 * sizeof *b) == 0, "reduce of %d matrices to %d lost the order", n,
              root);
    }
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&matrix));
    free(a);
    free(b);
    free(c);
}

/* Every arithmetic type with sum, min and max; pairs with minloc and maxloc. */
#define ARITHMETIC(ctype, mpitype, name)                                                           \
    static void types_##name(int n)                                                                \
    {                                                                                              \
        ctype *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);              \
        for (int i = 0; i < n; i++)                                                                \
            a[i] = (ctype)item(rank, i);                                                           \
        for (int k = 0; k < 3; k++) {                                                              \
            MPI_Op op = k == 0 ? MPI_SUM : k == 1 ? MPI_MIN : MPI_MAX;                             \
            OK(MPI_Allreduce(a, b, n, mpitype, op, MPI_COMM_WORLD));                               \
            for (int i = 0; i < n; i++) {                                                          \
                long expected = item(0, i);                                                        \
                for (int r = 1; r < size; r++)                                                     \
                    expected = fold(op, expected, item(r, i));                                     \
                CHECK(b[i] == (ctype)expected, #mpitype ", operation %d: item %d of %d", k, i, n); \
            }                                                                                      \
        }                                                                                          \
        free(a);                                                                                   \
        free(b);                                                                                   \
    }
ARITHMETIC(int8_t, MPI_INT8_T, i8)
ARITHMETIC(uint8_t, MPI_UINT8_T, u8)
ARITHMETIC(int16_t, MPI_INT16_T, i16)
ARITHMETIC(uint16_t, MPI_UINT16_T, u16)
ARITHMETIC(int32_t, MPI_INT32_T, i32)
ARITHMETIC(uint32_t, MPI_UINT32_T, u32)
ARITHMETIC(int64_t, MPI_INT64_T, i64)
ARITHMETIC(uint64_t, MPI_UINT64_T, u64)
ARITHMETIC(float, MPI_FLOAT, f32)
ARITHMETIC(double, MPI_DOUBLE, f64)
ARITHMETIC(long double, MPI_LONG_DOUBLE, f80)

static void locations(void)
{
    struct {
        double value;
        int at;
    } local = {10 - (rank * 3) % 4, rank}, all;
    struct {
        int value, at;
    } mine2 = {(rank * 3) % 4, rank}, all2;
    int best = 0, best2 = 0;
    for (int r = 1; r < size; r++) {
        best = 10 - (r * 3) % 4 < 10 - (best * 3) % 4 ? r : best;
        best2 = (r * 3) % 4 > (best2 * 3) % 4 ? r : best2;
    }
    OK(MPI_Allreduce(&local, &all, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
    CHECK(all.at == best && all.value == 10 - (best * 3) % 4, "minloc: %g at %d", all.value, all.at);
    OK(MPI_Allreduce(&mine2, &all2, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD));
    CHECK(all2.at == best2 && all2.value == (best2 * 3) % 4, "maxloc: %d at %d", all2.value, all2.at);
}

/* A column of a matrix to all ranks, and columns to and from all ranks. */
static void strided(void)
{
    enum { ROWS = 50 };
    MPI_Datatype column;
    int *matrix = malloc((size_t)ROWS * 8 * sizeof *matrix), *dense = malloc((size_t)ROWS * (size_t)size * sizeof *dense);
    OK(MPI_Type_vector(ROWS, 1, 8, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < ROWS * 8; i++)
            matrix[i] = rank == root ? i : -1;
        OK(MPI_Bcast(matrix + 2, 1, column, root, MPI_COMM_WORLD));
        for (int i = 0; i < ROWS * 8; i++)
            CHECK(matrix[i] == (rank == root || i % 8 == 2 ? i : -1), "bcast of a column from %d: place %d is %d", root, i,
                  matrix[i]);
        for (int i = 0; i < ROWS * 8; i++)
            matrix[i] = rank * 1000 + i;
        OK(MPI_Gather(matrix + 3, 1, column, dense, ROWS, MPI_INT, root, MPI_COMM_WORLD));
        for (int i = 0; rank == root && i < ROWS * size; i++)
            CHECK(dense[i] == i / ROWS * 1000 + i % ROWS * 8 + 3, "gather of columns: place %d is %d", i, dense[i]);
    }
    OK(MPI_Allgather(matrix + 5, 1, column, dense, ROWS, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < ROWS * size; i++)
        CHECK(dense[i] == i / ROWS * 1000 + i % ROWS * 8 + 5, "allgather of columns: place %d is %d", i, dense[i]);
    OK(MPI_Type_free(&column));
    free(matrix);
    free(dense);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 1, 2, 7, 31, 128, 700, 5000, LARGE};
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    check_start(&argc, &argv, &rank, &size);
    size_t capacity = ((size_t)LARGE * (size_t)size + 1) * sizeof *out;
    out = malloc(capacity);
    in = malloc(capacity);
    want = malloc(capacity);
    CHECK(out && in && want);
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        int n = lengths[k];
        for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
            if (n < 1000 || op == 0 || op == 3)
                reduce(n, ops[op], (int)op);
        bcast(n);
        gather(n);
        scatter(n);
        alltoall(n);
        if (n && n < 5000)
            user_op(n);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    for (int n = 1; n < 3000; n = n * 5 + 2) {
        types_i8(n), types_u8(n), types_i16(n), types_u16(n), types_i32(n), types_u32(n);
        types_i64(n), types_u64(n), types_f32(n), types_f64(n), types_f80(n);
    }
    locations();
    strided();
    free(out);
    free(in);
    free(want);
    OK(MPI_Finalize());
    return 0;
}

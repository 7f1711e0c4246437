/* SPDX-License-Identifier: BSD-3-Clause
 * vector: windows of messages of derived datatypes, the same at sender and receiver. Tests: vector (vectors of doubles, blocks and gaps of
 * equal length) and shapes (elements of 1 to 16 bytes, parts of arrays, an indexed halo, structs).
 * Invariant: each shape is described twice, as a datatype and as the list of its blocks, which --check verifies by.
 */
#include "buffer.h"
#include "check.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum
{
    TAG_DATA = 1,
    TAG_BACK = 2,
    VECTOR_WINDOW = 16 /* at most this many messages in flight, as they are large */
};

/* Consecutive bytes of data. */
typedef struct block
{
    size_t at, bytes;
} block;

/* A shape as it is built. */
typedef struct layout
{
    MPI_Datatype type; /* not committed */
    block *blocks;     /* [count] ascending */
    size_t count;
    size_t extent;     /* bytes of the buffer */
} layout;

typedef struct shape shape;
struct shape
{
    void (*make)(const shape *s, layout *l); /* l->blocks has room for block_count */
    size_t block_count;                      /* at most */
    size_t extent;                           /* at most */
    int count, length, bytes;                /* parameters of make */
};

static void add(layout *l, size_t at, size_t bytes)
{
    l->blocks[l->count++] = (block){at, bytes};
    l->extent = at + bytes > l->extent ? at + bytes : l->extent;
}

static MPI_Datatype element(int bytes)
{
    return bytes == 1 ? MPI_CHAR : bytes == 4 ? MPI_FLOAT : bytes == 8 ? MPI_DOUBLE : MPI_C_DOUBLE_COMPLEX;
}

/* Blocks of `length` elements of `bytes` bytes, with gaps as long. */
static void make_vector(const shape *s, layout *l)
{
    size_t bytes = (size_t)s->length * (size_t)s->bytes;

    MPI_Type_vector(s->count, s->length, 2 * s->length, element(s->bytes), &l->type);
    for (size_t i = 0; i < (size_t)s->count; i++) {
        add(l, 2 * i * bytes, bytes);
    }
}

/* A column of a square matrix of doubles. */
static void make_column(const shape *s, layout *l)
{
    MPI_Type_vector(s->count, 1, s->count, MPI_DOUBLE, &l->type);
    for (size_t i = 0; i < (size_t)s->count; i++) {
        add(l, i * (size_t)s->count * sizeof(double), sizeof(double));
    }
}

/* A face of a cube of doubles; length: elements that it has in each line, all or one. */
static void make_face(const shape *s, layout *l)
{
    int n = s->count, sizes[3] = {n, n, n}, parts[3] = {n, s->length == n ? 1 : n, s->length}, starts[3] = {0, 0, 0};

    MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &l->type);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < parts[1]; j++) {
            add(l, (size_t)(i * n + j) * (size_t)n * sizeof(double), (size_t)s->length * sizeof(double));
        }
    }
    l->extent = (size_t)(n * n) * (size_t)n * sizeof(double);
}

/* Blocks of 1 to `length` doubles at random, ascending places. */
static void make_halo(const shape *s, layout *l)
{
    int *lengths = malloc(2 * (size_t)s->count * sizeof(*lengths)), *places = lengths + s->count, at = 0;
    unsigned seed = 12345;

    if (!lengths) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < s->count; i++) {
        seed = seed * 1103515245u + 12345u;
        lengths[i] = 1 + (int)((seed >> 16) % (unsigned)s->length);
        places[i] = at + 1 + (int)((seed >> 8) % 8u);
        at = places[i] + lengths[i];
        add(l, (size_t)places[i] * sizeof(double), (size_t)lengths[i] * sizeof(double));
    }
    MPI_Type_indexed(s->count, lengths, places, MPI_DOUBLE, &l->type);
    free(lengths);
}

typedef struct record
{
    int kind;
    double place[3];
    char label[7];
    short flags[2];
} record;

/* An array of C structs of mixed kinds, with padding. */
static void make_records(const shape *s, layout *l)
{
    int lengths[4] = {1, 3, 7, 2};
    MPI_Aint places[4] = {offsetof(record, kind), offsetof(record, place), offsetof(record, label), offsetof(record, flags)};
    MPI_Datatype types[4] = {MPI_INT, MPI_DOUBLE, MPI_CHAR, MPI_SHORT}, plain, one;

    MPI_Type_create_struct(4, lengths, places, types, &plain);
    MPI_Type_create_resized(plain, 0, sizeof(record), &one);
    MPI_Type_contiguous(s->count, one, &l->type);
    MPI_Type_free(&plain);
    MPI_Type_free(&one);
    for (size_t i = 0; i < (size_t)s->count; i++) {
        size_t at = i * sizeof(record);
        add(l, at + offsetof(record, kind), sizeof(int));
        add(l, at + offsetof(record, place), 3 * sizeof(double));
        add(l, at + offsetof(record, label), 7);
        add(l, at + offsetof(record, flags), 2 * sizeof(short));
    }
    l->extent = (size_t)s->count * sizeof(record);
}

#define VECTOR(count, length, bytes) {make_vector, count, 2ul * (count) * (length) * (bytes), count, length, bytes}
static const char *const variants[] = {"8192x1", "8192x8", "1024x64", NULL};
static const shape vectors[] = {
    VECTOR(8192, 1, 8),
    VECTOR(8192, 8, 8),
    VECTOR(1024, 64, 8),
};
static const char *const shape_variants[] = {"64Kx1 of 1 B", "16Kx8 of 1 B", "4Kx64 of 1 B", "32Kx1 of 4 B", "8Kx8 of 4 B", "1Kx64 of 4 B",
                                             "16Kx1 of 16 B", "4Kx8 of 16 B", "512x64 of 16 B", "column 1K", "face lines", "face points",
                                             "halo 10000", "structs 4K", NULL};
static const shape shapes[] = {
    VECTOR(65536, 1, 1),
    VECTOR(16384, 8, 1),
    VECTOR(4096, 64, 1),
    VECTOR(32768, 1, 4),
    VECTOR(8192, 8, 4),
    VECTOR(1024, 64, 4),
    VECTOR(16384, 1, 16),
    VECTOR(4096, 8, 16),
    VECTOR(512, 64, 16),
    {make_column, 1024, 8ul << 20, 1024, 1, 8},
    {make_face, 128, 16ul << 20, 128, 128, 8},
    {make_face, 128 * 128, 16ul << 20, 128, 1, 8},
    {make_halo, 10000, 10000 * 17ul * 8, 10000, 8, 8},
    {make_records, 4 * 4096, 4096 * sizeof(record), 4096, 1, 1},
};

static layout now; /* of the open case */

static const shape *shape_of(const bench_case *c)
{
    return (c->test == &bench_vector ? vectors : shapes) + c->variant;
}

static size_t memory(const bench_case *c)
{
    size_t extent = shape_of(c)->extent + BENCH_GUARD;

    return bench_buffer_memory(c, extent, extent);
}

static int window(const bench_case *c)
{
    return c->options->window < VECTOR_WINDOW ? (int)c->options->window : VECTOR_WINDOW;
}

static int vector_open(bench_case *c)
{
    const shape *s = shape_of(c);

    now = (layout){.type = MPI_DATATYPE_NULL, .blocks = malloc(s->block_count * sizeof(block))};
    if (!now.blocks) {
        return -1;
    }
    s->make(s, &now);
    c->type = now.type;
    MPI_Type_commit(&c->type);
    c->bytes = 0;
    for (size_t i = 0; i < now.count; i++) {
        c->bytes += (long)now.blocks[i].bytes;
    }
    c->payload = (double)c->bytes * window(c) * (c->ranks / 2);
    if (bench_buffer_requests(c, window(c))) {
        return -1;
    }
    return bench_buffer_open(c, now.extent + BENCH_GUARD, now.extent + BENCH_GUARD);
}

static double vector_run(bench_case *c, long iterations)
{
    int n = window(c), to = c->partner;
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        if (c->is_leader) {
            for (int w = 0; w < n; w++) {
                MPI_Isend(bench_buffer_next(&c->out), 1, c->type, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
            }
            MPI_Waitall(n, c->requests, MPI_STATUSES_IGNORE);
            MPI_Recv(NULL, 0, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            for (int w = 0; w < n; w++) {
                MPI_Irecv(bench_buffer_next(&c->in), 1, c->type, to, TAG_DATA, MPI_COMM_WORLD, &c->requests[w]);
            }
            MPI_Waitall(n, c->requests, MPI_STATUSES_IGNORE);
            MPI_Send(NULL, 0, MPI_BYTE, to, TAG_BACK, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

/* Verifies the blocks (the sender's pattern at the same offset) and all between them (untouched). */
static void vector_verify(bench_case *c, const unsigned char *in, unsigned char *expected, int round)
{
    size_t from = 0, all = now.extent + BENCH_GUARD;

    bench_check_fill(expected, now.extent, bench_check_seed(c->partner, c->rank, round, 0));
    for (size_t b = 0; b < now.count; b++) {
        memset(expected + from, 0xEE, now.blocks[b].at - from);
        from = now.blocks[b].at + now.blocks[b].bytes;
    }
    memset(expected + from, 0xEE, all - from);
    for (size_t i = 0; i < all; i++) {
        if (in[i] != expected[i]) {
            bench_check_fail(c, "round %d: byte %zu is 0x%02x, expected 0x%02x (%s)", round, i, in[i], expected[i],
                             expected[i] == 0xEE ? "between the blocks" : "in a block");
            return;
        }
    }
}

static void vector_check(bench_case *c, int round)
{
    if (c->is_leader) {
        bench_check_fill(c->out.base, now.extent, bench_check_seed(c->rank, c->partner, round, 0));
        MPI_Send(c->out.base, 1, c->type, c->partner, TAG_DATA, MPI_COMM_WORLD);
        return;
    }
    bench_check_blank(c->in.base, now.extent);
    MPI_Recv(c->in.base, 1, c->type, c->partner, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    vector_verify(c, c->in.base, c->out.base, round);
}

static void vector_close(bench_case *c)
{
    if (c->type != MPI_DATATYPE_NULL) {
        MPI_Type_free(&c->type);
    }
    free(now.blocks);
    now.blocks = NULL;
    bench_buffer_close(c);
}

const bench_test bench_vector = {
    .name = "vector", .help = "windows of vectors of doubles (blocks x length), strided at sender and receiver",
    .figure = BENCH_GB_PER_S,
    .pairs = true, .variants = variants,
    .memory = memory, .open = vector_open, .run = vector_run, .check = vector_check, .close = vector_close,
};

const bench_test bench_shapes = {
    .name = "shapes", .help = "windows of other datatypes: short elements, a column, faces of a cube, an indexed halo, structs",
    .figure = BENCH_GB_PER_S,
    .pairs = true, .variants = shape_variants,
    .memory = memory, .open = vector_open, .run = vector_run, .check = vector_check, .close = vector_close,
};

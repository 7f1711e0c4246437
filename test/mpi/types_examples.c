/* np: 1 2 : what the standard's examples of datatypes show (MPI 5.0 5.1, 5.2): sections, structs, unions, addresses, decoding, packing */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "check.h"

enum { N = 40, PARTICLES = 300 };
static int to, from; /* ranks */

static void exchange(const void *send, int count, MPI_Datatype type, void *recv, int recv_count, MPI_Datatype recv_type)
{
    OK(MPI_Sendrecv(send, count, type, to, 3, recv, recv_count, recv_type, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Every second plane element of a part of a cube, by vectors of vectors. */
static void section(void)
{
    static float cube[N][N][N], part[9][9][9];
    MPI_Datatype line, plane, body;
    MPI_Aint lb, real;
    for (int i = 0; i < N * N * N; i++)
        (&cube[0][0][0])[i] = (float)i;
    OK(MPI_Type_get_extent(MPI_FLOAT, &lb, &real));
    OK(MPI_Type_vector(9, 1, 2, MPI_FLOAT, &line));
    OK(MPI_Type_create_hvector(9, 1, N * real, line, &plane));
    OK(MPI_Type_create_hvector(9, 1, N * N * real, plane, &body));
    OK(MPI_Type_commit(&body));
    exchange(&cube[1][2][0], 1, body, part, 9 * 9 * 9, MPI_FLOAT);
    for (int k = 0; k < 9; k++)
        for (int j = 0; j < 9; j++)
            for (int i = 0; i < 9; i++)
                CHECK(part[k][j][i] == cube[1 + k][2 + j][2 * i]);
    OK(MPI_Type_free(&line));
    OK(MPI_Type_free(&plane));
    OK(MPI_Type_free(&body));
}

static void triangle(void)
{
    static double a[N][N], b[N][N];
    int lengths[N], starts[N];
    MPI_Datatype lower;
    for (int i = 0; i < N; i++) {
        lengths[i] = i;
        starts[i] = N * i;
        for (int j = 0; j < N; j++)
            a[i][j] = N * i + j;
    }
    OK(MPI_Type_indexed(N, lengths, starts, MPI_DOUBLE, &lower));
    OK(MPI_Type_commit(&lower));
    exchange(a, 1, lower, b, 1, lower);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            CHECK(b[i][j] == (j < i ? a[i][j] : 0));
    OK(MPI_Type_free(&lower));
}

/* By one type of all columns, and by columns whose extent is one element. */
static void transpose(void)
{
    static float a[N][N], b[N][N];
    MPI_Datatype column, all, narrow;
    OK(MPI_Type_vector(N, 1, N, MPI_FLOAT, &column));
    OK(MPI_Type_create_hvector(N, 1, sizeof(float), column, &all));
    OK(MPI_Type_create_resized(column, 0, sizeof(float), &narrow));
    OK(MPI_Type_commit(&all));
    OK(MPI_Type_commit(&narrow));
    for (int way = 0; way < 3; way++) {
        for (int i = 0; i < N * N; i++) {
            a[i / N][i % N] = (float)(i + way);
            b[i / N][i % N] = 0;
        }
        if (way == 0)
            exchange(a, 1, all, b, N * N, MPI_FLOAT);
        else if (way == 1)
            exchange(a, N, narrow, b, N * N, MPI_FLOAT);
        else
            exchange(a, N * N, MPI_FLOAT, b, N, narrow);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                CHECK(b[j][i] == a[i][j], "way %d", way);
    }
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&all));
    OK(MPI_Type_free(&narrow));
}

typedef struct particle {
    int type;
    double d[6];
    char b[7];
} particle;
static particle particles[PARTICLES], got[PARTICLES];

static void particles_fill(void)
{
    memset(got, 0, sizeof got);
    for (int i = 0; i < PARTICLES; i++) {
        particles[i].type = i % 3 && i % 7 ? 1 : 0;
        for (int k = 0; k < 6; k++)
            particles[i].d[k] = i + 0.125 * k;
        snprintf(particles[i].b, sizeof particles[i].b, "%d", i);
    }
}

static int equal(const particle *a, const particle *b)
{
    return a->type == b->type && !memcmp(a->d, b->d, sizeof a->d) && !memcmp(a->b, b->b, sizeof a->b);
}

/* Blocks of consecutive particles of type 0. Returns their number; *count: of particles. */
static int zero_blocks(int *lengths, int *starts, int *count)
{
    int blocks = 0;
    *count = 0;
    for (int i = 0; i < PARTICLES; i++) {
        int first = i;
        while (i < PARTICLES && particles[i].type == 0)
            i++;
        if (i == first)
            continue;
        starts[blocks] = first;
        lengths[blocks++] = i - first;
        *count += i - first;
    }
    return blocks;
}

/* The number of particles of type 0, then the particles, in one message from absolute addresses. */
static void send_zeros(MPI_Datatype element, MPI_Aint base, MPI_Datatype plain)
{
    static int lengths[PARTICLES], starts[PARTICLES];
    int count, got_count = -1, k = 0, blocks = zero_blocks(lengths, starts, &count);
    const int ones[2] = {1, 1}, all[2] = {1, PARTICLES};
    MPI_Aint places[2], got_places[2];
    MPI_Datatype zeros, message, target, types[2] = {MPI_INT, MPI_DATATYPE_NULL};
    MPI_Status status;
    int elements;
    OK(MPI_Type_indexed(blocks, lengths, starts, element, &zeros));
    OK(MPI_Get_address(&count, &places[0]));
    places[1] = base;
    types[1] = zeros;
    OK(MPI_Type_create_struct(2, ones, places, types, &message));
    OK(MPI_Get_address(&got_count, &got_places[0]));
    OK(MPI_Get_address(got, &got_places[1]));
    types[1] = plain;
    OK(MPI_Type_create_struct(2, all, got_places, types, &target));
    OK(MPI_Type_commit(&message));
    OK(MPI_Type_commit(&target));
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, message, to, 4, MPI_BOTTOM, 1, target, from, 4, MPI_COMM_WORLD, &status));
    OK(MPI_Get_elements(&status, target, &elements));
    CHECK(got_count == count && elements == 1 + 14 * count, "%d of %d, %d elements", got_count, count, elements);
    for (int i = 0; i < PARTICLES; i++)
        if (particles[i].type == 0)
            CHECK(equal(&got[k++], &particles[i]));
    CHECK(k == count);
    OK(MPI_Type_free(&zeros));
    OK(MPI_Type_free(&message));
    OK(MPI_Type_free(&target));
}

/* Arrays of structs: all of it, parts, the first two coordinates of each; with relative and absolute addresses. */
static void structs(void)
{
    static double pairs[PARTICLES][2];
    const int lengths[3] = {1, 6, 7};
    const MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    MPI_Aint places[3], disps[3], base, next;
    MPI_Datatype plain, absolute, whole, two, pair, all_pairs;
    OK(MPI_Get_address(particles, &base));
    OK(MPI_Get_address(&particles[0].type, &places[0]));
    OK(MPI_Get_address(particles[0].d, &places[1]));
    OK(MPI_Get_address(particles[0].b, &places[2]));
    OK(MPI_Get_address(particles + 1, &next));
    for (int i = 0; i < 3; i++)
        disps[i] = MPI_Aint_diff(places[i], base);
    OK(MPI_Type_create_struct(3, lengths, disps, types, &plain));
    OK(MPI_Type_create_resized(plain, 0, MPI_Aint_diff(next, base), &whole));
    OK(MPI_Type_create_struct(3, lengths, places, types, &absolute));
    OK(MPI_Type_commit(&whole));
    OK(MPI_Type_commit(&absolute));
    particles_fill();
    exchange(particles, PARTICLES, whole, got, PARTICLES, whole);
    for (int i = 0; i < PARTICLES; i++)
        CHECK(equal(&got[i], &particles[i]), "particle %d", i);
    particles_fill();
    exchange(MPI_BOTTOM, PARTICLES, absolute, got, PARTICLES, whole);
    for (int i = 0; i < PARTICLES; i++)
        CHECK(equal(&got[i], &particles[i]), "particle %d", i);
    particles_fill();
    send_zeros(whole, base, whole);
    particles_fill();
    send_zeros(absolute, 0, whole);
    OK(MPI_Type_create_hvector(PARTICLES, 2, sizeof(particle), MPI_DOUBLE, &all_pairs));
    OK(MPI_Type_contiguous(2, MPI_DOUBLE, &two));
    OK(MPI_Type_create_resized(two, 0, sizeof(particle), &pair));
    OK(MPI_Type_commit(&all_pairs));
    OK(MPI_Type_commit(&pair));
    for (int way = 0; way < 2; way++) {
        memset(pairs, 0, sizeof pairs);
        exchange(particles[0].d, way ? PARTICLES : 1, way ? pair : all_pairs, pairs, 2 * PARTICLES, MPI_DOUBLE);
        for (int i = 0; i < PARTICLES; i++)
            CHECK(pairs[i][0] == particles[i].d[0] && pairs[i][1] == particles[i].d[1]);
    }
    OK(MPI_Type_free(&plain));
    OK(MPI_Type_free(&whole));
    OK(MPI_Type_free(&absolute));
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&all_pairs));
}

static void unions(void)
{
    union { int i; float f; double widest; } u[50], v[50];
    MPI_Datatype types[2];
    OK(MPI_Type_create_resized(MPI_INT, 0, sizeof u[0], &types[0]));
    OK(MPI_Type_create_resized(MPI_FLOAT, 0, sizeof u[0], &types[1]));
    for (int t = 0; t < 2; t++) {
        OK(MPI_Type_commit(&types[t]));
        for (int i = 0; i < 50; i++) {
            u[i].widest = v[i].widest = 0;
            if (t == 0)
                u[i].i = i;
            else
                u[i].f = 0.5f * (float)i;
        }
        exchange(u, 50, types[t], v, 50, types[t]);
        for (int i = 0; i < 50; i++)
            CHECK(t == 0 ? v[i].i == i : v[i].f == 0.5f * (float)i);
        OK(MPI_Type_free(&types[t]));
    }
}

/* Prints a type's structure by decoding it, as the standard's last example does. */
static int describe(MPI_Datatype type, char *text, size_t size)
{
    int ni, na, nd, combiner, ints[8];
    MPI_Aint addresses[4];
    MPI_Datatype types[4];
    size_t used = strlen(text);
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    if (combiner == MPI_COMBINER_NAMED) {
        snprintf(text + used, size - used, "%s", type == MPI_INT ? "int" : type == MPI_DOUBLE ? "double" : "other");
        return 0;
    }
    OK(MPI_Type_get_contents(type, ni, na, nd, ints, addresses, types));
    CHECK(combiner == MPI_COMBINER_STRUCT || combiner == MPI_COMBINER_VECTOR);
    if (combiner == MPI_COMBINER_VECTOR)
        snprintf(text + used, size - used, "vector %d %d %d of ", ints[0], ints[1], ints[2]);
    for (int i = 0; i < nd; i++) {
        used = strlen(text);
        if (combiner == MPI_COMBINER_STRUCT)
            snprintf(text + used, size - used, "[%d at %ld of ", ints[1 + i], (long)addresses[i]);
        if (describe(types[i], text, size))
            OK(MPI_Type_free(&types[i]));
        used = strlen(text);
        if (combiner == MPI_COMBINER_STRUCT)
            snprintf(text + used, size - used, "]");
    }
    return 1;
}

static void decoding(void)
{
    const int lengths[2] = {2, 1};
    const MPI_Aint disps[2] = {0, 24};
    char text[200] = "";
    MPI_Datatype vector, type;
    MPI_Datatype types[2] = {MPI_INT, MPI_DATATYPE_NULL};
    OK(MPI_Type_vector(3, 1, 4, MPI_DOUBLE, &vector));
    types[1] = vector;
    OK(MPI_Type_create_struct(2, lengths, disps, types, &type));
    OK(MPI_Type_free(&vector));
    CHECK(describe(type, text, sizeof text) == 1);
    CHECK(!strcmp(text, "[2 at 0 of int][1 at 24 of vector 3 1 4 of double]"), "%s", text);
    OK(MPI_Type_free(&type));
}

/* 5.1.5, 5.1.9 and 5.1.11: addresses differ as the array's elements do; a type's handle may be set anew before the type is freed
 * elsewhere; what matches is the sequence of basic types, whatever types a message was sent by. */
static void basics(void)
{
    static double a[100][100], got[16];
    MPI_Aint first, other;
    MPI_Datatype two, four, again;
    MPI_Status status;
    int count;
    OK(MPI_Get_address(&a[0][0], &first));
    OK(MPI_Get_address(&a[9][9], &other));
    CHECK(MPI_Aint_diff(other, first) == 909 * (MPI_Aint)sizeof(double) && MPI_Aint_add(first, 909 * 8) == other);
    OK(MPI_Type_contiguous(2, MPI_DOUBLE, &two));
    OK(MPI_Type_dup(two, &again));
    OK(MPI_Type_commit(&two));
    OK(MPI_Type_contiguous(4, again, &four));
    OK(MPI_Type_free(&again));
    OK(MPI_Type_commit(&four));
    for (int i = 0; i < 16; i++)
        a[0][i] = i + 1;
    exchange(a, 2, four, got, 16, MPI_DOUBLE);
    CHECK(!memcmp(a, got, sizeof got));
    memset(got, 0, sizeof got);
    exchange(a, 16, MPI_DOUBLE, got, 8, two);
    CHECK(!memcmp(a, got, sizeof got));
    OK(MPI_Sendrecv(a, 3, MPI_DOUBLE, to, 3, got, 2, four, from, 3, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, four, &count));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == 3);
    OK(MPI_Type_free(&two));
    OK(MPI_Type_free(&four));
}

/* 5.2: a number and as many values are packed one after the other; sent as MPI_PACKED, they are received packed, or by a type of the
 * same items. */
static void packing(void)
{
    double values[20], got_values[20] = {0};
    char out[400], in[400];
    int n = 20, got_n = 0, position = 0, need, number_bytes, blocks[2] = {1, 20};
    MPI_Aint places[2];
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, both;
    for (int i = 0; i < n; i++)
        values[i] = i / 4.0;
    OK(MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &number_bytes));
    OK(MPI_Pack_size(n, MPI_DOUBLE, MPI_COMM_WORLD, &need));
    CHECK(need + number_bytes <= (int)sizeof out);
    OK(MPI_Pack(&n, 1, MPI_INT, out, sizeof out, &position, MPI_COMM_WORLD));
    OK(MPI_Pack(values, n, MPI_DOUBLE, out, sizeof out, &position, MPI_COMM_WORLD));
    exchange(out, position, MPI_PACKED, in, sizeof in, MPI_PACKED);
    position = 0;
    OK(MPI_Unpack(in, sizeof in, &position, &got_n, 1, MPI_INT, MPI_COMM_WORLD));
    CHECK(got_n == n);
    OK(MPI_Unpack(in, sizeof in, &position, got_values, got_n, MPI_DOUBLE, MPI_COMM_WORLD));
    CHECK(!memcmp(values, got_values, sizeof values));
    got_n = 0;
    memset(got_values, 0, sizeof got_values);
    OK(MPI_Get_address(&got_n, &places[0]));
    OK(MPI_Get_address(got_values, &places[1]));
    OK(MPI_Type_create_struct(2, blocks, places, types, &both));
    OK(MPI_Type_commit(&both));
    exchange(out, position, MPI_PACKED, MPI_BOTTOM, 1, both);
    CHECK(got_n == n && !memcmp(values, got_values, sizeof values));
    OK(MPI_Type_free(&both));
}

/* 5.2: the root gathers the lengths, then texts of different lengths as packed data, and makes one text of them. */
static void gathering(int rank, int size)
{
    char text[60], out[100] = {0}, in[2 * 100], all[2 * 60] = "";
    int length = 10 + 7 * rank, lengths[2], position = 0, need;
    memset(text, 'a' + rank, sizeof text);
    OK(MPI_Pack_size(length, MPI_CHAR, MPI_COMM_WORLD, &need));
    CHECK(need <= (int)sizeof out);
    OK(MPI_Pack(text, length, MPI_CHAR, out, sizeof out, &position, MPI_COMM_WORLD));
    OK(MPI_Gather(&length, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD));
    OK(MPI_Gather(out, sizeof out, MPI_PACKED, in, sizeof out, MPI_PACKED, 0, MPI_COMM_WORLD));
    for (int i = 0, at = 0; i < size && rank == 0; at += lengths[i++]) {
        position = 0;
        OK(MPI_Unpack(in + sizeof out * (size_t)i, sizeof out, &position, all + at, lengths[i], MPI_CHAR, MPI_COMM_WORLD));
    }
    CHECK(rank || (strspn(all, "a") == 10 && strlen(all) == (size_t)(size == 2 ? 27 : 10)), "%s", all);
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    basics();
    section();
    triangle();
    transpose();
    structs();
    unions();
    decoding();
    packing();
    gathering(rank, size);
    OK(MPI_Finalize());
    return 0;
}

/* np: 2 3 4 8 16 : alltoallv and alltoallw of short blocks, of long ones, and of both in one call; blocks shorter or longer than expected */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "check.h"

enum { RANKS = 16, CALLS = 120, UNDER_WAY = 4, ITEMS = 40000, BLOCK_MAX = 2400 };

static int rank, size;

/* Ints that `from` sends to `to` in a call: none, or of short, medium and long ones those of the call. In place: both ways alike. */
static int length(int call, int from, int to, int is_in_place)
{
    static const int most[][3] = {{2, 2, 2}, {40, 200, 200}, {3, 900, 3}, {2, 3, BLOCK_MAX}, {BLOCK_MAX, BLOCK_MAX, BLOCK_MAX}};
    int a = is_in_place && from > to ? to : from, b = is_in_place && from > to ? from : to;
    int draw = (call * 7919 + a * 104729 + b * 1299709) % 10007, top = most[call % 5][(draw / 7) % 3];
    return draw % 5 ? 1 + draw % top : 0;
}

static int item(int call, int from, int to, int i) { return call * 1000003 + from * 4099 + to * 257 + i; }

typedef struct call {
    int number, is_in_place, is_w;
    int sent[RANKS], received[RANKS], from[RANKS], to[RANKS];
    int *out, *in;
    MPI_Datatype types[RANKS];
    MPI_Request request;
} call;

static void prepare(call *c, int number)
{
    int at = 0, end = 0;
    *c = (call){.number = number, .is_in_place = number % 4 == 3, .is_w = number % 3 == 1, .request = MPI_REQUEST_NULL};
    c->out = malloc(ITEMS * sizeof *c->out);
    c->in = malloc(ITEMS * sizeof *c->in);
    for (int i = 0; i < size; i++) {
        c->sent[i] = length(number, rank, i, c->is_in_place);
        c->received[i] = length(number, i, rank, c->is_in_place);
        c->from[i] = at;
        c->to[i] = end + i % 2;
        at += c->sent[i];
        end = c->to[i] + c->received[i];
    }
    CHECK(at <= ITEMS && end <= ITEMS, "%d and %d items", at, end);
    for (int i = 0; i < ITEMS; i++)
        c->in[i] = -1;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < c->sent[i]; j++)
            (c->is_in_place ? c->in + c->to[i] : c->out + c->from[i])[j] = item(number, rank, i, j);
    for (int i = 0; i < size && c->is_w; i++) { /* displacements in bytes; types that are freed at once */
        c->from[i] *= (int)sizeof(int);
        c->to[i] *= (int)sizeof(int);
        OK(MPI_Type_contiguous(1, MPI_INT, &c->types[i]));
        OK(MPI_Type_commit(&c->types[i]));
    }
}

static void start(call *c, MPI_Comm comm, int is_blocking)
{
    const void *out = c->is_in_place ? MPI_IN_PLACE : c->out; /* then the rest of that side is ignored */
    const int *sent = c->is_in_place ? NULL : c->sent, *from = c->is_in_place ? NULL : c->from;
    const MPI_Datatype *types = c->is_in_place ? NULL : c->types;
    MPI_Datatype type = c->is_in_place ? MPI_DATATYPE_NULL : MPI_INT;
    if (c->is_w && is_blocking)
        OK(MPI_Alltoallw(out, sent, from, types, c->in, c->received, c->to, c->types, comm));
    else if (c->is_w)
        OK(MPI_Ialltoallw(out, sent, from, types, c->in, c->received, c->to, c->types, comm, &c->request));
    else if (is_blocking)
        OK(MPI_Alltoallv(out, sent, from, type, c->in, c->received, c->to, MPI_INT, comm));
    else
        OK(MPI_Ialltoallv(out, sent, from, type, c->in, c->received, c->to, MPI_INT, comm, &c->request));
    for (int i = 0; i < size && c->is_w; i++)
        OK(MPI_Type_free(&c->types[i]));
}

static void finish(call *c)
{
    int at = 0;
    OK(MPI_Wait(&c->request, MPI_STATUS_IGNORE));
    for (int i = 0; i < size; i++) {
        int to = c->is_w ? c->to[i] / (int)sizeof(int) : c->to[i];
        for (; at < to; at++)
            CHECK(c->in[at] == -1, "call %d: item %d between blocks is %d", c->number, at, c->in[at]);
        for (int j = 0; j < c->received[i]; j++, at++)
            CHECK(c->in[at] == item(c->number, i, rank, j), "call %d: item %d of %d from rank %d is %d", c->number, j, c->received[i], i,
                  c->in[at]);
    }
    free(c->out);
    free(c->in);
}

/* The first calls on the communicator are nonblocking, before its members have agreed how to go. */
static void mixed(MPI_Comm comm, int first)
{
    call calls[UNDER_WAY];
    int pending[UNDER_WAY] = {0};
    for (int i = 0; i < CALLS; i++) {
        int k = i % UNDER_WAY;
        if (pending[k])
            finish(&calls[k]);
        prepare(&calls[k], first + i);
        start(&calls[k], comm, i >= UNDER_WAY && i % 3 == 0);
        pending[k] = 1;
    }
    for (int k = 0; k < UNDER_WAY; k++)
        if (pending[k])
            finish(&calls[k]);
}

/* Each rank sends `sent` ints to each, which expects `expected`. Returns the error class. */
static int uneven(MPI_Comm comm, int sent, int expected)
{
    int *out = malloc((size_t)size * (size_t)sent * sizeof *out), *in = malloc((size_t)size * (size_t)expected * sizeof *in);
    int counts[RANKS], places[RANKS], from[RANKS], to[RANKS], class = MPI_SUCCESS, rc;
    for (int i = 0; i < size; i++) {
        counts[i] = sent;
        places[i] = i == rank ? sent : expected; /* the own block is checked on entry */
        from[i] = i * sent;
        to[i] = i * expected;
    }
    if (sent > expected)
        counts[rank] = places[rank] = expected;
    for (int i = 0; i < size * sent; i++)
        out[i] = rank * 1000 + i / sent;
    for (int i = 0; i < size * expected; i++)
        in[i] = -1;
    rc = MPI_Alltoallv(out, counts, from, MPI_INT, in, places, to, MPI_INT, comm);
    OK(MPI_Error_class(rc, &class));
    for (int i = 0; i < size * expected && !rc; i++)
        CHECK(in[i] == (i % expected < sent ? i / expected * 1000 + rank : -1), "item %d of blocks of %d for %d: %d", i, sent, expected, in[i]);
    free(out);
    free(in);
    return class;
}

static void lengths_differ(void)
{
    static const int lengths[][2] = {{3, 10}, {3, 5000}, {300, 5000}, {4000, 5000}};
    MPI_Comm comm;
    for (int i = 0; i < 4; i++)
        CHECK(uneven(MPI_COMM_WORLD, lengths[i][0], lengths[i][1]) == MPI_SUCCESS, "shorter blocks, case %d", i);
    for (int i = 0; i < 4; i++) {
        int class;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        class = uneven(comm, lengths[i][1], lengths[i][0]);
        CHECK(class == MPI_ERR_TRUNCATE, "longer blocks, case %d: class %d", i, class);
        CHECK(uneven(comm, 7, 7) == MPI_SUCCESS, "the next call, case %d", i);
        OK(MPI_Comm_free(&comm));
    }
}

/* One block is longer than its receiver expects, while others may go on by messages: an error there only. */
static void one_pair(int is_blocking, int others, int sent, int expected)
{
    int *out = malloc((size_t)size * BLOCK_MAX * sizeof *out), *in = calloc((size_t)size * BLOCK_MAX, sizeof *in);
    int counts[RANKS], places[RANKS], from[RANKS], class, rc;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int i = 0; i < size * BLOCK_MAX; i++)
        out[i] = rank;
    for (int i = 0; i < size; i++) {
        counts[i] = rank == 0 && i == size - 1 ? sent : others;
        places[i] = rank == size - 1 && i == 0 ? expected : others;
        from[i] = i * BLOCK_MAX;
    }
    if (is_blocking)
        rc = MPI_Alltoallv(out, counts, from, MPI_INT, in, places, from, MPI_INT, comm);
    else
        rc = MPI_Ialltoallv(out, counts, from, MPI_INT, in, places, from, MPI_INT, comm, &request);
    if (!is_blocking && !rc)
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    OK(MPI_Error_class(rc, &class));
    CHECK(class == (rank == size - 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "blocks of %d and %d for %d: class %d", others, sent, expected, class);
    for (int i = 1; i < size; i++)
        for (int j = 0; j < others; j++)
            CHECK(in[i * BLOCK_MAX + j] == i, "item %d from rank %d after a truncated block: %d", j, i, in[i * BLOCK_MAX + j]);
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    free(out);
    free(in);
}

int main(void)
{
    MPI_Comm comms[2];
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[1]));
    mixed(comms[0], 0);
    OK(MPI_Comm_rank(comms[1], &rank));
    mixed(comms[1], 1);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    mixed(MPI_COMM_WORLD, 2);
    lengths_differ();
    for (int is_blocking = 0; is_blocking < 2; is_blocking++) {
        one_pair(is_blocking, BLOCK_MAX, 40, 3);
        one_pair(is_blocking, BLOCK_MAX, BLOCK_MAX, 3);
        one_pair(is_blocking, 5, BLOCK_MAX, 3);
        one_pair(is_blocking, 5, 40, 3);
    }
    OK(MPI_Comm_free(&comms[0]));
    OK(MPI_Comm_free(&comms[1]));
    OK(MPI_Finalize());
    return 0;
}

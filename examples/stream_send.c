/* SPDX-License-Identifier: BSD-3-Clause
 * stream_send: blocks by messages into receives that the sink has posted, one for each place.
 */
#include "stream.h"

#include <stdlib.h>

typedef struct send_state
{
    unsigned char *places;
    MPI_Request *requests; /* of each place */
} send_state;

static size_t count_of(const stream *s)
{
    return (size_t)s->places * (size_t)(s->rank ? 1 : s->sources);
}

/* The tag is the place's number at its source: a place's blocks come in order, whatever the order of places is. */
static void post(const stream *s, int source, long number)
{
    send_state *p = s->state;
    size_t place = (size_t)source * (size_t)s->places + (size_t)(number % s->places);

    MPI_Irecv(p->places + place * s->block, (int)s->block, MPI_BYTE, source + 1, (int)(number % s->places), MPI_COMM_WORLD,
              &p->requests[place]);
}

void send_open(stream *s)
{
    send_state *p = take(sizeof *p);

    p->places = take(count_of(s) * s->block);
    p->requests = take(count_of(s) * sizeof(MPI_Request));
    for (size_t i = 0; i < count_of(s); i++) {
        p->requests[i] = MPI_REQUEST_NULL;
    }
    s->state = p;
    for (int r = 0; r < s->sources && !s->rank; r++) {
        for (long i = 0; i < s->places && i < s->blocks; i++) {
            post(s, r, i);
        }
    }
}

void send_source(stream *s)
{
    send_state *p = s->state;

    for (long i = 0; i < s->blocks; i++) {
        long place = i % s->places;
        MPI_Wait(&p->requests[place], MPI_STATUS_IGNORE); /* the block that was there */
        block_fill(s, (uint64_t *)(p->places + (size_t)place * s->block), i);
        MPI_Isend(p->places + (size_t)place * s->block, (int)s->block, MPI_BYTE, 0, (int)place, MPI_COMM_WORLD, &p->requests[place]);
    }
    MPI_Waitall((int)s->places, p->requests, MPI_STATUSES_IGNORE);
}

int send_sink(stream *s)
{
    send_state *p = s->state;
    long *number = take(count_of(s) * sizeof *number);
    int wrong = 0;

    for (size_t i = 0; i < count_of(s); i++) {
        number[i] = (long)(i % (size_t)s->places);
    }
    for (long left = s->blocks * s->sources; left; left--) {
        int place;
        MPI_Waitany((int)count_of(s), p->requests, &place, MPI_STATUS_IGNORE);
        int source = place / (int)s->places;
        wrong += block_wrong(s, (const uint64_t *)(p->places + (size_t)place * s->block), source + 1, number[place]);
        number[place] += s->places;
        if (number[place] < s->blocks) {
            post(s, source, number[place]);
        }
    }
    free(number);
    return wrong;
}

void send_close(stream *s)
{
    send_state *p = s->state;

    free(p->places);
    free(p->requests);
    free(p);
}

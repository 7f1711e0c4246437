/* SPDX-License-Identifier: BSD-3-Clause
 * stream_notify: blocks by MPIX_Put_notify (notify.h: with any MPI). The sink's window is the places, and it has a counter of blocks for
 * each source; a source has one counter, of the places that the sink has emptied. A counted block is in its place, so that the sink neither
 * matches nor polls, and a counted place has been read, so that its block's memory at the source is free too.
 */
#include <stdlib.h>

#include "notify.h"
#include "stream.h"

typedef struct notify_stream
{
    MPI_Win win; /* unit: 1 byte */
    unsigned char *memory; /* sink: the places; source: a block for each place */
} notify_stream;

static size_t bytes_of(const stream *s)
{
    return (size_t)s->places * s->block * (size_t)(s->rank ? 1 : s->sources);
}

void notify_open(stream *s)
{
    notify_stream *p = take(sizeof *p);

    MPI_Win_allocate((MPI_Aint)bytes_of(s), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->memory, &p->win);
    MPIX_Win_notify_init(p->win, s->rank ? 1 : s->sources);
    MPI_Win_lock_all(0, p->win);
    for (size_t i = 0; i < bytes_of(s); i++) { /* every page is written before the clock starts */
        p->memory[i] = 0;
    }
    MPI_Win_sync(p->win);
    s->state = p;
}

void notify_source(stream *s)
{
    notify_stream *p = s->state;
    MPI_Count emptied = 0;

    for (long i = 0; i < s->blocks; i++) {
        size_t place = (size_t)(i % s->places) * s->block, there = (size_t)(s->rank - 1) * (size_t)s->places * s->block + place;
        if (i >= emptied + s->places) {
            MPIX_Win_notify_wait(p->win, 0, i - s->places + 1, &emptied);
        }
        block_fill(s, (uint64_t *)(p->memory + place), i);
        MPIX_Put_notify(p->memory + place, (int)s->block, MPI_BYTE, 0, (MPI_Aint)there, (int)s->block, MPI_BYTE, p->win, s->rank - 1);
    }
    MPI_Win_flush(0, p->win);
}

int notify_sink(stream *s)
{
    notify_stream *p = s->state;
    int *sources = take((size_t)s->sources * sizeof *sources), n = s->sources, wrong = 0, index;
    MPI_Count *next = take((size_t)s->sources * sizeof *next), come = 0; /* of sources[index] */

    for (int r = 0; r < n; r++) {
        sources[r] = r;
        next[r] = 1;
    }
    while (n) {
        MPIX_Win_notify_waitany(p->win, n, sources, next, &index, &come);
        int source = sources[index];
        for (; next[index] <= come; next[index]++) {
            long number = (long)next[index] - 1;
            size_t place = (size_t)source * (size_t)s->places + (size_t)(number % s->places);
            wrong += block_wrong(s, (const uint64_t *)(p->memory + place * s->block), source + 1, number);
            MPIX_Put_notify(NULL, 0, MPI_BYTE, source + 1, 0, 0, MPI_BYTE, p->win, 0);
        }
        if (next[index] > s->blocks) { /* its last block was here: it leaves the list */
            n--;
            sources[index] = sources[n];
            next[index] = next[n];
        } else { /* it goes to the end: each source in turn */
            MPI_Count last = next[index];
            sources[index] = sources[n - 1];
            next[index] = next[n - 1];
            sources[n - 1] = source;
            next[n - 1] = last;
        }
    }
    MPI_Win_flush_all(p->win);
    free(sources);
    free(next);
    return wrong;
}

void notify_close(stream *s)
{
    notify_stream *p = s->state;

    MPI_Win_unlock_all(p->win);
    MPI_Win_free(&p->win);
    free(p);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * stream_put: blocks by MPI_Put. The sink's window: a counter of filled blocks for each source, then the places. A source's window: the
 * number of blocks that the sink has emptied. A counter grows after the flush of the block, so who sees the counter has the block.
 */
#include "stream.h"

#include <sched.h>
#include <stdlib.h>

typedef struct put_state
{
    MPI_Win win; /* unit: 1 byte */
    unsigned char *memory;
    int64_t *seen; /* sink: filled blocks of each source, as last read */
} put_state;

enum { LINE = 64 };

static size_t places_at(const stream *s)
{
    return ((size_t)s->sources * sizeof(int64_t) + 4095) / 4096 * 4096;
}

void put_open(stream *s)
{
    put_state *p = take(sizeof *p);
    size_t bytes = s->rank ? LINE : places_at(s) + (size_t)s->sources * (size_t)s->places * s->block;

    p->seen = take((size_t)s->sources * sizeof *p->seen);
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &p->memory, &p->win);
    MPI_Win_lock_all(0, p->win);
    for (size_t i = 0; i < bytes; i++) { /* every page is written before the clock starts */
        p->memory[i] = 0;
    }
    MPI_Win_sync(p->win);
    s->state = p;
}

/* Reads `n` counters at the begin of this rank's window. A call, not a load: it gives progress to a library that needs it. */
static void read_counters(put_state *p, int rank, int64_t *to, int n)
{
    MPI_Get_accumulate(NULL, 0, MPI_INT64_T, to, n, MPI_INT64_T, rank, 0, n, MPI_INT64_T, MPI_NO_OP, p->win);
    MPI_Win_flush(rank, p->win);
}

void put_source(stream *s)
{
    put_state *p = s->state;
    uint64_t *block = take(s->block);
    int64_t emptied = 0, one = 1;
    size_t first = places_at(s) + (size_t)(s->rank - 1) * (size_t)s->places * s->block;

    for (long i = 0; i < s->blocks; i++) {
        for (int is_first = 1; i >= emptied + s->places; is_first = 0) {
            if (!is_first) {
                sched_yield(); /* ranks may outnumber CPUs */
            }
            read_counters(p, s->rank, &emptied, 1);
        }
        block_fill(s, block, i);
        MPI_Put(block, (int)s->block, MPI_BYTE, 0, (MPI_Aint)(first + (size_t)(i % s->places) * s->block), (int)s->block, MPI_BYTE, p->win);
        MPI_Win_flush(0, p->win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, (MPI_Aint)((size_t)(s->rank - 1) * sizeof one), 1, MPI_INT64_T, MPI_SUM, p->win);
        MPI_Win_flush(0, p->win);
    }
    free(block);
}

int put_sink(stream *s)
{
    put_state *p = s->state;
    int64_t *emptied = take((size_t)s->sources * sizeof *emptied), one = 1;
    long left = s->blocks * s->sources;
    int wrong = 0;

    for (long before = -1; left;) {
        if (left == before) { /* nothing had come */
            sched_yield();
        }
        before = left;
        read_counters(p, 0, p->seen, s->sources);
        for (int r = 0; r < s->sources; r++) {
            for (; emptied[r] < p->seen[r]; emptied[r]++, left--) {
                size_t place = (size_t)r * (size_t)s->places + (size_t)(emptied[r] % s->places);
                wrong += block_wrong(s, (const uint64_t *)(p->memory + places_at(s) + place * s->block), r + 1, emptied[r]);
                MPI_Accumulate(&one, 1, MPI_INT64_T, r + 1, 0, 1, MPI_INT64_T, MPI_SUM, p->win);
            }
        }
    }
    MPI_Win_flush_all(p->win);
    free(emptied);
    return wrong;
}

void put_close(stream *s)
{
    put_state *p = s->state;

    MPI_Win_unlock_all(p->win);
    MPI_Win_free(&p->win);
    free(p->seen);
    free(p);
}

/* SPDX-License-Identifier: BSD-3-Clause
 * stream: what stream.c and its ways of transport share.
 */
#ifndef STREAM_H
#define STREAM_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stream
{
    int rank, sources; /* rank 0 is the sink */
    size_t block;      /* bytes */
    long blocks;       /* of each source */
    long places;       /* blocks of each source in flight */
    int is_checked;    /* every word */
    void *state;       /* of the way */
} stream;

/* A way of transport. All ranks call open and close; sources call source, the sink calls sink, which returns how many blocks were wrong. */
typedef struct way
{
    const char *name;
    void (*open)(stream *s);
    void (*source)(stream *s);
    int (*sink)(stream *s);
    void (*close)(stream *s);
} way;

void notify_open(stream *s), notify_source(stream *s), notify_close(stream *s);
int notify_sink(stream *s);
void put_open(stream *s), put_source(stream *s), put_close(stream *s);
int put_sink(stream *s);
void send_open(stream *s), send_source(stream *s), send_close(stream *s);
int send_sink(stream *s);
void socket_open(stream *s), socket_source(stream *s), socket_close(stream *s);
int socket_sink(stream *s);

/* CPU time of this process, of all its threads. */
double cpu_seconds(void);

/* Word of a block. */
uint64_t block_mark(int source, long number, size_t word);

/* Writes and checks a block's first and last word, or all with --check. block_wrong: 0 or 1. */
void block_fill(const stream *s, uint64_t *block, long number);
int block_wrong(const stream *s, const uint64_t *block, int source, long number);

/* Zeroed memory at a page's begin; ends the job if there is none. */
void *take(size_t bytes);

#endif

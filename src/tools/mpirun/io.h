/* SPDX-License-Identifier: BSD-3-Clause
 *
 * io: what ranks write comes out in whole lines; what we read goes to one of them.
 */
#ifndef WEFT_MPIRUN_IO_H
#define WEFT_MPIRUN_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/options.h"

typedef struct io io;

/* What crosses hosts instead of our own descriptors; NULL: nothing does. */
typedef struct io_far {
    /* A daemon's: takes output (1 or 2), whole lines where they end at all. */
    void (*out)(void *owner, int which, const char *bytes, size_t count);
    /* A head's, when ranks that read our standard input stand elsewhere: takes it; 0 bytes: its end. */
    void (*in)(void *owner, const char *bytes, size_t count);
    uint32_t nodes; /* of the job, for `in` */
    void *owner;
} io_far;

/* Decides what is forwarded and what a rank may write to directly, for so many ranks on this machine. 0 or an exit code. */
int io_open(const options *opts, uint32_t ranks, const io_far *far, io **self);
/* Makes the pipes or files of a rank, before its fork. 0 or -1 after a line. */
int io_rank_open(io *self, uint32_t rank);
/* In the child: puts them at 0, 1 and 2. Async-signal-safe. */
void io_child(const io *self);
/* In the parent, after fork: closes the child's ends. */
void io_rank_started(io *self);

/* Fills `set` (room for io_max(self)) with what to wait for. How many. */
uint32_t io_max(const io *self);
uint32_t io_pollfds(io *self, struct pollfd *set);
/* Moves what can be moved, by what poll said about the same set. */
void io_progress(io *self, const struct pollfd *set, uint32_t count);
/* A rank has ended, and mpirun is about to say so: what ranks wrote before is read, and written as far as nobody must be waited for. */
void io_settle(io *self);
/* Puts a text of mpirun's own behind what waits for stderr. False: nothing does, or nobody reads. */
bool io_queue(io *self, const char *text);
/* A daemon's: hands over what waits, up to `room` bytes or one line that is longer; how much it was. */
size_t io_carry(io *self, size_t room);
/* A daemon's: more of the standard input; 0 bytes: its end. */
void io_feed(io *self, const char *bytes, size_t count);
/* A daemon's: how much of it still waits for its reader; SIZE_MAX: nobody reads any more. */
size_t io_unfed(const io *self);
/* A daemon's: nobody reads that output any more; who still writes gets SIGPIPE, as here. */
void io_closed(io *self, int which);
/* A head's: output that came from elsewhere, whether there is room for more, and whether anybody reads it. */
void io_add(io *self, int which, const char *bytes, size_t count);
bool io_has_room(const io *self);
bool io_is_read(const io *self, int which);
/* A head's: whoever reads our input elsewhere has been started. */
void io_far_begin(io *self);
/* A head's: so many bytes of the input were taken on that node; UINT32_MAX: no more are wanted there. */
void io_taken(io *self, uint32_t node, uint32_t bytes);
/* A head's, of its far.in: the node is sent so many bytes. False: no more are wanted there. */
bool io_lend(io *self, uint32_t node, size_t bytes);
/* Whether every stream has ended and all was written. */
bool io_is_drained(const io *self);
/* Reads what is there and stops waiting for ends of files. */
void io_give_up(io *self);
/* Nobody will read: throws away what still waits to be written. */
void io_drop(io *self);
void io_close(io *self);

#endif

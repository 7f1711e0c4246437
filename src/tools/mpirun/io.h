/* SPDX-License-Identifier: BSD-3-Clause
 *
 * io: what ranks write comes out in whole lines; what we read goes to one of them.
 */
#ifndef WEFT_MPIRUN_IO_H
#define WEFT_MPIRUN_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/options.h"

typedef struct io io;

/* Decides what is forwarded and what a rank may write to directly. 0 or an exit code. */
int io_open(const options *opts, io **self);
/* Makes the pipes or files of a rank, before its fork. 0 or -1 after a line. */
int io_rank_open(io *self, uint32_t rank);
/* In the child: puts them at 0, 1 and 2. Async-signal-safe. */
void io_child(const io *self);
/* In the parent, after fork: closes the child's ends. */
void io_rank_started(io *self);

/* Fills `set` (room for io_most(self)) with what to wait for. How many. */
uint32_t io_most(const io *self);
uint32_t io_wishes(io *self, struct pollfd *set);
/* Moves what can be moved, by what poll said about the same set. */
void io_turn(io *self, const struct pollfd *set, uint32_t count);
/* Whether every stream has ended and all was written. */
bool io_is_drained(const io *self);
/* Reads what is there and stops waiting for ends of files. */
void io_give_up(io *self);
/* Nobody will read: throws away what still waits to be written. */
void io_drop(io *self);
void io_close(io *self);

#endif

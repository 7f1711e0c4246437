/* SPDX-License-Identifier: BSD-3-Clause
 *
 * io: forwards the standard streams of a node's ranks: output in whole lines, standard input to one rank or to all.
 * Used by the head and by daemons, on one thread. Nothing blocks but writes to mpirun's own stdout and stderr.
 */
#ifndef WEFT_MPIRUN_IO_H
#define WEFT_MPIRUN_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/options.h"

typedef struct io io;

/* Transport of streams between hosts, in place of descriptors 0 to 2; NULL: the job has one host. */
typedef struct io_remote {
    /* Daemon: receives output of stream 1 or 2; whole lines if the output has line ends. */
    void (*out)(void *owner, int which, const char *bytes, size_t count);
    /* Head, if ranks on other hosts read standard input: receives input; 0 bytes: end of file. */
    void (*in)(void *owner, const char *bytes, size_t count);
    uint32_t nodes; /* nodes of the job, for `in` */
    void *owner;
} io_remote;

/* Decides for `ranks` ranks on this machine which streams are forwarded and which are inherited. 0 or an exit code after a message. */
int io_open(const options *opts, uint32_t ranks, const io_remote *remote, io **self);
/* Opens the pipes or files of a rank, before its fork. 0 or -1 after a message. */
int io_rank_open(io *self, uint32_t rank);
/* In the child: installs them as descriptors 0, 1 and 2. Async-signal-safe. */
void io_child(const io *self);
/* In the parent, after fork: closes the child's ends. */
void io_rank_started(io *self);

/* Fills set, which has io_max(self) entries. Returns the number of entries. */
uint32_t io_max(const io *self);
uint32_t io_pollfds(io *self, struct pollfd *set);
/* Reads and writes as poll reported for the set of the latest io_pollfds. */
void io_progress(io *self, const struct pollfd *set, uint32_t count);
/* To call before mpirun reports a rank's end: reads the ranks' pending output and writes as much as is possible without blocking. */
void io_flush(io *self);
/* Queues a message of mpirun behind output that waits for stderr. False: not queued, as none waits or stderr was closed. */
bool io_queue(io *self, const char *text);
/* Daemon: passes waiting output to remote.out: up to `capacity` bytes, or one longer line. Returns the bytes passed. */
size_t io_send(io *self, size_t capacity);
/* Daemon: adds standard input; 0 bytes: end of file. */
void io_add_input(io *self, const char *bytes, size_t count);
/* Daemon: bytes of input that the slowest reader has not taken; SIZE_MAX: no reader is left. */
size_t io_unread_input(const io *self);
/* Daemon: the head's output `which` was closed: closes the ranks' pipes, so that a rank that writes gets SIGPIPE. */
void io_closed(io *self, int which);
/* Head: adds output of another host; whether the buffers have space for more; whether output `which` is still open. */
void io_add(io *self, int which, const char *bytes, size_t count);
bool io_has_room(const io *self);
bool io_is_read(const io *self, int which);
/* Head: the ranks on other hosts that read standard input were started. */
void io_remote_begin(io *self);
/* Head: the node has consumed `bytes` of input; UINT32_MAX: it takes no more. */
void io_in_acked(io *self, uint32_t node, uint32_t bytes);
/* Head, called by remote.in: counts `bytes` as sent to the node. False: the node takes no more input. */
bool io_count_sent(io *self, uint32_t node, size_t bytes);
/* True if every stream has ended and all output was written. */
bool io_is_drained(const io *self);
/* Reads the available output of each stream, up to a limit, and closes the stream. */
void io_give_up(io *self);
/* Discards output that is not written yet and all later output. */
void io_drop(io *self);
void io_close(io *self);

#endif

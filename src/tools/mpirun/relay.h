/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay: a daemon's role as parent in the launch tree. It starts its child daemons, forwards frames between them and the head unread, and
 * reports to the head how they end. Called by daemon, on one thread.
 */
#ifndef WEFT_MPIRUN_RELAY_H
#define WEFT_MPIRUN_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/mpirun/children.h"
#include "tools/mpirun/job_desc.h"
#include "tools/mpirun/tree.h"

typedef struct relay {
    const job_desc *job; /* the owner's; NULL: no daemons below */
    ctrl_conn *up;       /* the owner's */
    tree tree;
    children children;
} relay;

/* Computes the daemons below and starts the children. 0, or an exit code after a message. */
int relay_open(relay *self, const job_desc *job, ctrl_conn *up, const unsigned char *secret, guard *guard);
/* Bytes of output that a daemon may have unacknowledged: daemons behind one connection of the head share `window`. */
size_t relay_window(const job_desc *job, size_t window);
/* Forwards a frame of the head to the child that leads to frame->node. */
void relay_forward(relay *self, const ctrl_frame *frame);
/* Gives up a child daemon, on the head's CTRL_GIVE_UP. */
void relay_give_up(relay *self, uint32_t node);
/* No rank lives: cancels children that have not connected. */
void relay_drain(relay *self);
/* As the functions of children.h; no effect without daemons below. */
uint32_t relay_max(const relay *self);
uint32_t relay_pollfds(const relay *self, struct pollfd *set);
void relay_progress(relay *self, const struct pollfd *set, uint32_t count);
bool relay_reaped(relay *self, pid_t pid, int status);
void relay_deadlines(relay *self);
bool relay_is_over(const relay *self);
/* Closes the connections, upon which the daemons below end. */
void relay_close(relay *self);

#endif

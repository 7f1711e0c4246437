/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay: a daemon's part in the tree: it starts the daemons that stand just below it, passes every frame on that is for those below or
 * comes from them, whatever it means, and tells the head in their name how they end.
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
    const description *job; /* the owner's; NULL: nothing stands below */
    wire *up;               /* the owner's */
    tree tree;
    childs childs;
} relay;

/* Reckons who stands below and starts the first of them. 0 or an exit code, said. */
int relay_open(relay *self, const description *job, wire *up, const unsigned char *secret, guard *guard);
/* How many bytes of output a daemon may have on their way: those behind one of the head's connections share what that one holds. */
size_t relay_window(const description *job, size_t window);
/* A frame for somebody below. */
void relay_down(relay *self, const wire_frame *frame);
/* The head has given one up that we have started. */
void relay_part(relay *self, uint32_t node);
/* No rank lives: who has not come need not. */
void relay_drain(relay *self);
/* As childs'. */
uint32_t relay_max(const relay *self);
uint32_t relay_pollfds(const relay *self, struct pollfd *set);
void relay_progress(relay *self, const struct pollfd *set, uint32_t count);
bool relay_reaped(relay *self, pid_t pid, int status);
void relay_deadlines(relay *self);
bool relay_is_over(const relay *self);
/* Those below end when they find their connection closed. */
void relay_close(relay *self);

#endif

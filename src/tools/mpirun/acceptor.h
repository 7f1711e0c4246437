/* SPDX-License-Identifier: BSD-3-Clause
 *
 * acceptor: where daemons come in. Until both sides have proven that they know the job's secret, a connection is a pending_conn's: it has five
 * seconds, and there are at most so many of them.
 */
#ifndef WEFT_MPIRUN_DOOR_H
#define WEFT_MPIRUN_DOOR_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/wire.h"

#define DOOR_STRANGERS 64
#define DOOR_MAX (1 + DOOR_STRANGERS) /* descriptors to wait for */

typedef struct acceptor_callbacks {
    bool (*awaits)(void *owner, uint32_t node);                 /* is that node's daemon still to come? */
    void (*other)(void *owner, uint32_t node, const char *why); /* it has come and is of another version */
    /* It has proven itself; the descriptor is the owner's from now on. */
    void (*met)(void *owner, uint32_t node, int fd, const wire_hello *hello, const wire_answer *answer);
    void *owner;
} acceptor_callbacks;

typedef struct pending_conn {
    int fd; /* -1: unused */
    bool is_answered;
    size_t used;
    uint64_t deadline_ns;
    char bytes[sizeof(wire_hello) + 32]; /* what it says: hello, then proof */
    wire_answer answer;
} pending_conn;

typedef struct acceptor {
    int listener;
    const unsigned char *secret; /* the owner's */
    acceptor_callbacks up;
    pending_conn pending_conns[DOOR_STRANGERS];
} acceptor;

/* 0 or -1 with errno. */
int acceptor_open(acceptor *self, const unsigned char *secret, const acceptor_callbacks *up);
/* Fills DOOR_MAX entries. */
void acceptor_pollfds(const acceptor *self, struct pollfd *set);
void acceptor_progress(acceptor *self, const struct pollfd *set);
/* Sends those away whose time is over. The next deadline, or 0. */
uint64_t acceptor_deadlines(acceptor *self);
void acceptor_close(acceptor *self);

#endif

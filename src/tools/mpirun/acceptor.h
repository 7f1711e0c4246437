/* SPDX-License-Identifier: BSD-3-Clause
 *
 * acceptor: listening socket that authenticates daemons.
 * A connection stays a pending_conn until both sides have proven that they know the job's secret. It expires after 5 s; at most
 * PENDING_CONNS_MAX exist. When all are in use, a new one takes the place of the oldest without a valid hello, of the source address that
 * has the most of these: strangers of one address displace each other. What a stranger sends ends his own connection, and nothing else.
 * Used by children, on mpirun's one thread.
 */
#ifndef WEFT_MPIRUN_ACCEPTOR_H
#define WEFT_MPIRUN_ACCEPTOR_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "tools/mpirun/ctrl_conn.h"

#define PENDING_CONNS_MAX 64
#define ACCEPTOR_POLLFDS (1 + PENDING_CONNS_MAX) /* entries of the poll set: the listener, then the pending connections */

typedef struct acceptor_callbacks {
    bool (*is_expected)(void *owner, uint32_t node);                    /* whether that node's daemon is still expected */
    void (*other_release)(void *owner, uint32_t node, const char *why); /* the daemon of this job there runs another release */
    /* The daemon is authenticated. The callee owns fd from now on. */
    void (*connected)(void *owner, uint32_t node, int fd, const ctrl_hello *hello, const ctrl_answer *answer);
    void *owner;
} acceptor_callbacks;

#define SOURCE_BYTES 16

typedef struct pending_conn {
    int fd; /* -1: unused */
    bool is_answered; /* its hello was made with the secret */
    unsigned char source[SOURCE_BYTES]; /* the peer's IPv6 network of 64 bits, or its IPv4 address, mapped */
    size_t used;
    uint64_t deadline_ns;
    char bytes[sizeof(ctrl_hello) + 32]; /* bytes received: ctrl_hello, then the proof */
    ctrl_answer answer;
} pending_conn;

typedef struct acceptor {
    int listener; /* -1: closed */
    const unsigned char *secret; /* the owner's */
    acceptor_callbacks up;
    pending_conn pending_conns[PENDING_CONNS_MAX];
} acceptor;

/* Opens the listener. `secret` must outlive self. 0 or -1 with errno. */
int acceptor_open(acceptor *self, const unsigned char *secret, const acceptor_callbacks *up);
/* Fills ACCEPTOR_POLLFDS entries of set. */
void acceptor_pollfds(const acceptor *self, struct pollfd *set);
void acceptor_progress(acceptor *self, const struct pollfd *set);
/* Closes the pending connections that have expired. Returns the next deadline (weft_clock_ns), or 0. */
uint64_t acceptor_deadlines(acceptor *self);
/* No daemon is expected any more: closes the listener and the pending connections. Idempotent. */
void acceptor_close(acceptor *self);

#endif

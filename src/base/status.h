/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: what every inner function returns.
 *   0           it is done (or accepted)
 *   WEFT_AGAIN  not now: a queue or a resource is full; call again after progress. Never an error.
 *   WEFT_INPROGRESS   a port has taken a frame and still reads its body (transport/port.h); nobody else answers this
 *   < 0         an error, one of those below. Who first knows the cause describes it once (weft_fail).
 * src/mpi/errors alone knows which MPI class a code becomes.
 */
#ifndef WEFT_BASE_STATUS_H
#define WEFT_BASE_STATUS_H

#include <stdbool.h>

enum weft_status {
    WEFT_OK = 0,
    WEFT_AGAIN = 1,
    WEFT_INPROGRESS = 2,
    WEFT_E_NOMEM = -1,        /* the process has no more memory */
    WEFT_E_NOSPACE = -2,      /* shared memory or a device has no more room */
    WEFT_E_SYSTEM = -3,       /* a system call failed: the text holds its words */
    WEFT_E_PEER = -4,         /* the peer is lost */
    WEFT_E_TIMEOUT = -5,      /* a deadline passed */
    WEFT_E_UNSUPPORTED = -6,  /* not built, or not possible on this port */
    WEFT_E_INTERN = -7,       /* a broken invariant of ours */
    WEFT_E_TRUNCATE = -8,     /* message longer than the receive buffer */
    WEFT_E_BUFFER = -9,
    WEFT_E_COUNT = -10,
    WEFT_E_TYPE = -11,
    WEFT_E_TAG = -12,
    WEFT_E_COMM = -13,
    WEFT_E_RANK = -14,
    WEFT_E_REQUEST = -15,
    WEFT_E_ROOT = -16,
    WEFT_E_GROUP = -17,
    WEFT_E_OP = -18,
    WEFT_E_ARG = -19,
    WEFT_E_ERRHANDLER = -20,
    WEFT_E_INFO = -21,
    WEFT_E_KEY = -22,         /* a remote key refused: bad bounds, wrong access */
    WEFT_E_OTHER = -23,
    WEFT_E_IN_STATUS = -24,   /* look into the statuses */
    WEFT_E_PENDING = -25,
    WEFT_E_TOOLARGE = -26,    /* a value does not fit its argument's type */
    WEFT_E_REVOKED = -27,
    WEFT_E_CORRUPT = -28,     /* a message is not what was sent: its checksum is wrong */
    WEFT_E_STALE = -29,       /* a lent key that died with the connection: move the bytes another way */
    WEFT_E_NOT_SAME = -30,    /* members of a communicator do not make the same collective calls */
    WEFT_E_WIN = -31,
    WEFT_E_LAST = -32
};

/* The message was delivered, but it is not what was sent: what depends on its data is wrong, who waits for its end need not. */
static inline bool weft_status_is_damage(int code) { return code == WEFT_E_CORRUPT || code == WEFT_E_TRUNCATE; }

/* Which of two errors of one operation is kept: the first one, but damage gives way to what ends the operation. 0: none. */
static inline int weft_status_worse(int first, int next)
{
    return !first || (next && weft_status_is_damage(first) && !weft_status_is_damage(next)) ? next : first;
}

/* Describes the error that this thread is about to return, for the error handler's text, and gives `code` back:
 *     return weft_fail(WEFT_E_RANK, "rank %d is not in 0..%d", rank, size - 1);
 * The text (cut at 511 bytes) belongs to the calling thread and lives until its next weft_fail. */
int weft_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* The text that belongs to `code`: what weft_fail last said in this thread if it was for this code, else a general sentence. */
const char *weft_fail_text(int code);

/* A general sentence for a code; never NULL. */
const char *weft_status_text(int code);

#endif

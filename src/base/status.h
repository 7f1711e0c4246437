/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: return codes of internal functions, and the text of a thread's last error. Only src/mpi/errors maps codes to MPI error classes.
 *   0                done or accepted
 *   WEFT_AGAIN       a queue or resource is full: call again after progress; not an error
 *   WEFT_INPROGRESS  accepted, and not over yet: an iface still reads a frame's body (ops.send of transport/iface.h), a helper thread still
 *                    registers memory (core/reg)
 *   < 0              an error, listed below; the function that first knows the cause describes it, once (weft_fail)
 */
#ifndef WEFT_BASE_STATUS_H
#define WEFT_BASE_STATUS_H

#include <stdbool.h>

enum weft_status {
    WEFT_OK = 0,
    WEFT_AGAIN = 1,
    WEFT_INPROGRESS = 2,
    WEFT_E_NOMEM = -1,        /* the process has no more memory */
    WEFT_E_NOSPACE = -2,      /* shared memory or a device is full */
    WEFT_E_SYSTEM = -3,       /* a system call failed: the text has the system's message */
    WEFT_E_PEER = -4,         /* the peer has failed */
    WEFT_E_TIMEOUT = -5,      /* a deadline passed */
    WEFT_E_UNSUPPORTED = -6,  /* not built, or not possible on this iface */
    WEFT_E_INTERN = -7,       /* internal error: a broken invariant */
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
    WEFT_E_IN_STATUS = -24,   /* the error codes are in the statuses */
    WEFT_E_PENDING = -25,
    WEFT_E_TOOLARGE = -26,    /* a value does not fit its argument's type */
    WEFT_E_REVOKED = -27,
    WEFT_E_CORRUPT = -28,     /* wrong checksum: the message was damaged */
    WEFT_E_STALE = -29,       /* key of a memory window whose connection broke: transfer the bytes otherwise */
    WEFT_E_NOT_SAME = -30,    /* members of a communicator make different collective calls */
    WEFT_E_WIN = -31,
    WEFT_E_KEYVAL = -32,
    WEFT_E_INFO_KEY = -33,
    WEFT_E_INFO_VALUE = -34,
    WEFT_E_INFO_NOKEY = -35,
    WEFT_E_BASE = -36,
    WEFT_E_ABI = -37,
    WEFT_E_SESSION = -38,
    WEFT_E_TOPOLOGY = -39,    /* no virtual topology, or one of another kind */
    WEFT_E_DIMS = -40,
    WEFT_E_RMA_SYNC = -41,    /* wrong synchronization of a window */
    WEFT_E_RMA_RANGE = -42,   /* outside of the target's memory */
    WEFT_E_RMA_CONFLICT = -43,
    WEFT_E_RMA_ATTACH = -44,
    WEFT_E_RMA_SHARED = -45,  /* memory cannot be shared */
    WEFT_E_RMA_FLAVOR = -46,
    WEFT_E_DISP = -47,
    WEFT_E_SIZE = -48,
    WEFT_E_ASSERT = -49,
    WEFT_E_LOCKTYPE = -50,
    WEFT_E_LAST = -51
};

/* Whether the code means that a message was delivered damaged: its data is wrong, but the operation completes. */
static inline bool weft_status_is_damage(int code) { return code == WEFT_E_CORRUPT || code == WEFT_E_TRUNCATE; }

/* The error to keep of two of one operation (0: none): the first, but an error that ends the operation replaces damage. */
static inline int weft_status_worse(int first, int next)
{
    return !first || (next && weft_status_is_damage(first) && !weft_status_is_damage(next)) ? next : first;
}

/* Stores the text of the error that this thread is about to return, for the error handler, and returns `code`:
 *     return weft_fail(WEFT_E_RANK, "rank %d is not in 0..%d", rank, size - 1);
 * The text (cut at 511 bytes) is the calling thread's and is valid until its next weft_fail. Does not allocate; cannot fail. */
int weft_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* This thread's last weft_fail text if it was for `code`, else a general sentence. */
const char *weft_fail_text(int code);

/* A general sentence for a code; never NULL. */
const char *weft_status_text(int code);

#endif

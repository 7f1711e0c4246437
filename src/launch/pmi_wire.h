/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_wire: messages to and from a PMI server, each a command and named fields. Called by launch/pmi only.
 *     PMI-1, a line:                                         cmd=get kvsname=K key=X\n
 *     PMI-2, six characters of length, ';' in a value as ;;: 24    cmd=kvs-get;key=X;
 * Invariants: every wait has a deadline (WEFT_START_TIMEOUT_S). After a missing or malformed message nothing more is sent, as requests
 * and replies could not be matched any more.
 */
#ifndef WEFT_LAUNCH_PMI_WIRE_H
#define WEFT_LAUNCH_PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#define WEFT_PMI_SEND_MAX 1000 /* servers read PMI-1 lines into 1,024 bytes */

typedef struct weft_pmi_wire {
    int fd;
    int version;                    /* PMI version of the wire: 1 or 2 */
    bool is_broken;                 /* no more sends: see the invariant above */
    char where[96];                 /* for error texts: the variable that named the connection */
    char *input;                    /* received bytes not yet parsed */
    size_t input_bytes, input_room; /* bytes in `input`, its capacity */
    char *answer;                   /* last message received, '\0'-terminated */
    size_t answer_room;             /* capacity of `answer`, bytes */
} weft_pmi_wire;

typedef struct weft_pmi_field {
    const char *name, *value;
} weft_pmi_field;

/* Sends a command. `fields` ends with a NULL name. Values must not contain blanks or '\n'. */
int weft_pmi_send(weft_pmi_wire *wire, const char *cmd, const weft_pmi_field *fields);
/* Receives the next message, which must be the command `answer`. `what` and `hint` (NULL: none) are for error texts. */
int weft_pmi_recv(weft_pmi_wire *wire, const char *answer, const char *what, const char *hint);
/* Copies a field of the last message. False: missing, or longer than `capacity`. */
bool weft_pmi_find(const weft_pmi_wire *wire, const char *name, char *value, size_t capacity);
/* The same as a number. False also if it is not a number in [min, max]. */
bool weft_pmi_find_number(const weft_pmi_wire *wire, const char *name, long min, long max, long *number);
/* Returns an error for an unexpected last message; the text quotes it. */
int weft_pmi_unexpected(const weft_pmi_wire *wire, const char *what, const char *why);
/* Closes fd and frees the buffers. */
void weft_pmi_wire_close(weft_pmi_wire *wire);

#endif

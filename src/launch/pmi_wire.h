/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_wire: messages to and from a PMI server. One message is a command and fields with names: in PMI-1 a line of words,
 *     cmd=get kvsname=K key=X\n
 * in PMI-2 six characters that hold its length, and a text in which ';;' stands for a ';' of a value:
 *     24    cmd=kvs-get;key=X;
 * Invariant: no wait without a deadline, and after a message that did not come, or not as it must, nothing more is asked: question
 * and answer could not be told apart any longer. launch/pmi speaks by it, nobody else.
 */
#ifndef WEFT_LAUNCH_PMI_WIRE_H
#define WEFT_LAUNCH_PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#define WEFT_PMI_SEND_MAX 1000 /* servers read PMI-1 lines into 1,024 bytes */

typedef struct weft_pmi_wire {
    int fd;
    int version;       /* of the wire: 1 or 2 */
    bool is_broken;
    char where[96];    /* for texts: what named the connection */
    char *came;        /* bytes that have come and belong to no message yet */
    size_t have, room;
    char *answer;      /* the last message, with a final '\0' */
    size_t answer_room;
} weft_pmi_wire;

typedef struct weft_pmi_field {
    const char *name, *value;
} weft_pmi_field;

/* Sends a command. `fields` ends with a NULL name. Values must hold no blank and no '\n'. */
int weft_pmi_send(weft_pmi_wire *line, const char *cmd, const weft_pmi_field *fields);
/* Reads the next message, which must be the command `answer`; `what` and `hint` (NULL: none) are for texts. */
int weft_pmi_recv(weft_pmi_wire *line, const char *answer, const char *what, const char *hint);
/* A field of the last message: false when it is not there, or needs more than `room`. */
bool weft_pmi_find(const weft_pmi_wire *line, const char *name, char *value, size_t room);
/* The same as a number; false also when it is none, or not from least to most. */
bool weft_pmi_find_number(const weft_pmi_wire *line, const char *name, long min, long max, long *number);
/* Fails for a message that came but says no, or says something odd: the text shows it. */
int weft_pmi_odd(const weft_pmi_wire *line, const char *what, const char *why);
/* Frees all and closes. */
void weft_pmi_wire_close(weft_pmi_wire *line);

#endif

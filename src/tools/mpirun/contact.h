/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contact: the head's listening address, and the line that gives it to daemons.
 * The line goes to a daemon's standard input, through the agent. The secret in it must not appear on a command line or in an environment.
 */
#ifndef WEFT_MPIRUN_CONTACT_H
#define WEFT_MPIRUN_CONTACT_H

#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/ctrl_conn.h"

#define DAEMON_OPTION "--weft-daemon" /* internal: mpirun runs as a daemon */

/* Limit to a step of the start, from WEFT_START_TIMEOUT_S; 60 s if that is not set here, as on hosts to which the agent passes no
 * environment. */
uint64_t contact_timeout_ns(void);
/* Returns a non-blocking listening TCP socket at a port chosen by the kernel, or -1 with errno. */
int contact_listen(void);
/* Writes the absolute path of this program. 0 or -1 with errno. */
int daemon_program(char *path, size_t capacity);
/* Writes the command for a remote host: this program, at the same path, in daemon mode. 0 or -1 with errno. */
int daemon_command(char *text, size_t capacity);
/* Writes the line for the daemon of a node. It holds the secret: the caller must erase it. 0 or -1 with errno. */
int contact_write(int listener, const unsigned char *secret, uint32_t node, char *text, size_t capacity);

typedef struct contact {
    uint32_t node, port;
    unsigned char secret[CTRL_SECRET_BYTES];
    char addresses[3500]; /* of the head; numeric, comma-separated */
} contact;

/* Parses the line. 0 or -1: malformed. */
int contact_read(const char *text, contact *order);

#endif

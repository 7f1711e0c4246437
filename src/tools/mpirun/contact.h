/* SPDX-License-Identifier: BSD-3-Clause
 *
 * contact: where daemons find their head, and the line that tells them. The line goes to a daemon's standard input, through the agent:
 * what it holds never stands on a command line or in an environment.
 */
#ifndef WEFT_MPIRUN_LISTEN_H
#define WEFT_MPIRUN_LISTEN_H

#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/wire.h"

#define DAEMON_WORD "--weft-daemon" /* the hidden mode of this program */

/* A non-blocking listening socket of TCP at a port that the kernel chose, or -1 with errno. */
int listen_open(void);
/* The path of this program. 0 or -1 with errno. */
int daemon_program(char *path, size_t room);
/* What a host has to run: this program, by its path here, in the hidden mode. 0 or -1 with errno. */
int daemon_command(char *text, size_t room);
/* The line for the daemon of a node. 0 or -1 with errno. */
int daemon_line(int listener, const unsigned char *secret, uint32_t node, char *text, size_t room);

typedef struct daemon_order {
    uint32_t node, port;
    unsigned char secret[CTRL_SECRET_BYTES];
    char addresses[3500]; /* numeric, parted by commas */
} daemon_order;

/* Reads the line. 0 or -1: it is none of ours. */
int daemon_line_read(const char *text, daemon_order *order);

#endif

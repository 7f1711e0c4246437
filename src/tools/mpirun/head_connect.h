/* SPDX-License-Identifier: BSD-3-Clause
 *
 * head_connect: a daemon's way to its head. All addresses are tried at once, and of those that answer the one is taken that knows the job's secret:
 * some address of the head's (the loopback's, a bridge's) may be this host's too, and at the same port somebody else may listen.
 */
#ifndef WEFT_MPIRUN_SEEK_H
#define WEFT_MPIRUN_SEEK_H

#include "tools/mpirun/contact.h"

/* A connected, blocking socket to who has answered our hello and has proven itself, or -1 and the reason. */
int head_connect(const daemon_order *order, const wire_hello *hello, wire_answer *answer, const char **why);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * head_connect: connects a daemon to its head. It tries all addresses of the head at once and takes the first that proves knowledge of the
 * job's secret: an address of the head (loopback, a bridge) may be this host's too, with another listener at the same port.
 */
#ifndef WEFT_MPIRUN_HEAD_CONNECT_H
#define WEFT_MPIRUN_HEAD_CONNECT_H

#include "tools/mpirun/contact.h"

/* Returns a connected, blocking socket to the authenticated head, and its answer; or -1 and the reason. Blocks; each step is bounded by
 * contact_timeout_ns(). */
int head_connect(const contact *order, const ctrl_hello *hello, ctrl_answer *answer, const char **why);

#endif

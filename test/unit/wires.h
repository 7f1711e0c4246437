/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wires: the two ends of one of mpirun's connections in one process.
 */
#ifndef WEFT_TEST_UNIT_WIRES_H
#define WEFT_TEST_UNIT_WIRES_H

#include "tools/mpirun/wire.h"

/* As after the opening between a head and the daemon of `node`; each end goes by its own secret. */
void wires_open(wire *head, wire *daemon, uint32_t node, const unsigned char *head_secret, const unsigned char *daemon_secret);

#endif

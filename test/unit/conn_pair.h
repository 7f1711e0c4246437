/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_pair: the two ends of one of mpirun's connections in one process.
 */
#ifndef WEFT_TEST_UNIT_CONN_PAIR_H
#define WEFT_TEST_UNIT_CONN_PAIR_H

#include "tools/mpirun/ctrl_conn.h"

/* Opens both ends, as after the handshake of a head and the daemon of `node`; each end uses its own secret. */
void conn_pair_open(ctrl_conn *head, ctrl_conn *daemon, uint32_t node, const unsigned char *head_secret,
                    const unsigned char *daemon_secret);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon: mpirun's daemon mode, which runs one node of a job on another host than the head's. The head controls it by frames (ctrl_conn.h).
 */
#ifndef WEFT_MPIRUN_DAEMON_H
#define WEFT_MPIRUN_DAEMON_H

/* Runs the daemon until its node's part of the job is over. Returns the exit code. */
int daemon_main(void);

#endif

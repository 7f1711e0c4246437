/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon: this program on a host that is not the head's: one node of the job, told by frames what a head tells its own by calls.
 */
#ifndef WEFT_MPIRUN_DAEMON_H
#define WEFT_MPIRUN_DAEMON_H

/* The hidden mode. The exit code. */
int daemon_main(void);

#endif

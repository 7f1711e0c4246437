/* SPDX-License-Identifier: BSD-3-Clause
 *
 * signals: handlers that only write the signal's number into a pipe, which the loop reads.
 */
#ifndef WEFT_MPIRUN_SIGNALS_H
#define WEFT_MPIRUN_SIGNALS_H

/* Installs them. The read end, or -1 with errno. */
int signals_open(void);
/* The next signal that came, or 0. */
int signals_next(void);
/* In a child: as mpirun itself found them. Async-signal-safe. */
void signals_child(void);
/* Around fork: none of our handlers may run in the child. */
void signals_hold(void);
void signals_release(void);

#endif

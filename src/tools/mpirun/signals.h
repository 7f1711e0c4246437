/* SPDX-License-Identifier: BSD-3-Clause
 *
 * signals: signal handlers that write the signal's number to a pipe read by the main loop.
 */
#ifndef WEFT_MPIRUN_SIGNALS_H
#define WEFT_MPIRUN_SIGNALS_H

/* Installs the handlers. Returns the read end of the pipe, or -1 with errno. */
int signals_open(void);
/* Returns the next pending signal, or 0. Does not block. */
int signals_next(void);
/* In a child: restores the dispositions that mpirun inherited. Async-signal-safe. */
void signals_child(void);
/* Block and restore signals around fork: no handler may run in the child. */
void signals_hold(void);
void signals_release(void);

#endif

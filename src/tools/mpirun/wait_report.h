/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_report: in which MPI call each thread of a node's ranks is, and since when, read from the node's segment without the ranks' help. They keep no
 * time (core/call_status): it is found by looking now and then, while a job has a time limit.
 */
#ifndef WEFT_MPIRUN_WAITS_H
#define WEFT_MPIRUN_WAITS_H

#include "tools/mpirun/node.h"

typedef struct waits waits;

/* Looks, if it is time to, at all ranks that have been started; when to look again, 0: never. Makes *self at the first time (NULL: no memory). */
uint64_t wait_report_read(waits **self, const node *node);
/* Says on stderr what every rank does; those that do the same share a line. */
void wait_report_print(waits **self, const node *node);
void wait_report_close(waits *self);

#endif

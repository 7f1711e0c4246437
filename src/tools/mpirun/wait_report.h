/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_report: reports the MPI call in which each thread of a node's ranks is, and since when. It reads the node's segment; ranks do not
 * take part.
 * Call records hold no time (core/call_status), so while a job has a time limit they are sampled periodically. Called by job and daemon, on
 * one thread.
 */
#ifndef WEFT_MPIRUN_WAIT_REPORT_H
#define WEFT_MPIRUN_WAIT_REPORT_H

#include "tools/mpirun/node.h"

typedef struct wait_report wait_report;

/* Samples all started ranks if it is time. Returns the time of the next sample, 0: never. The first call allocates *self (NULL: out of
 * memory). */
uint64_t wait_report_sample(wait_report **self, const node *node);
/* Prints what every rank does; ranks with equal state share a line. */
void wait_report_print(wait_report **self, const node *node);
void wait_report_close(wait_report *self);

#endif

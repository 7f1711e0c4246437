/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report: messages of mpirun for its user. Called on mpirun's main thread only.
 */
#ifndef WEFT_MPIRUN_REPORT_H
#define WEFT_MPIRUN_REPORT_H

#include <stdbool.h>

/* Prints one line "mpirun: ..." by one write to stderr, or passes it to report_to. Returns `code`. */
int report(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Receives the messages if not NULL; returns false to have them printed. A daemon sends them to the head; the head queues them behind
 * waiting output. */
extern bool (*report_to)(const char *text);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fibre: a stack that runs in turns with others on one thread: the simulator's ranks. The host resumes a fibre; the fibre yields to its
 * host. Sanitizers get each switch of stacks.
 */
#ifndef WEFT_SIM_FIBRE_H
#define WEFT_SIM_FIBRE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct weft_fibre weft_fibre;

/* Creates a fibre that will run main(arg) on a stack of stack_bytes (rounded up to pages, with a guard page below). NULL: out of memory. */
weft_fibre *weft_fibre_new(void (*run)(void *arg), void *arg, size_t stack_bytes);
/* Resumes it until it yields; true: it has not ended. Called by the host. */
bool weft_fibre_resume(weft_fibre *fibre);
/* Yields to the host. Called inside the fibre. */
void weft_fibre_pause(weft_fibre *fibre);
/* Frees a fibre. Memory owned by a fibre that has not ended (a killed rank) is leaked; under a leak checker its stack is kept as a root,
 * so that only true leaks are reported. */
void weft_fibre_free(weft_fibre *fibre);

#endif

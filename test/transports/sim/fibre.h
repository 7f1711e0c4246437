/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fibre: a stack that is run in turns with others on one thread. The simulator's ranks. Whoever resumes a fibre is its host;
 * the fibre hands back to it. The sanitizers are told of every switch, so that they follow the stacks.
 */
#ifndef WEFT_SIM_FIBRE_H
#define WEFT_SIM_FIBRE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct weft_fibre weft_fibre;

/* Makes a fibre that will run main(arg) on a stack of its own of `stack_bytes` (rounded up to pages, a guard page below).
 * NULL when there is no memory. */
weft_fibre *weft_fibre_new(void (*run)(void *arg), void *arg, size_t stack_bytes);
/* Runs it until it hands back; true while it has more to do. Called by the host only. */
bool weft_fibre_resume(weft_fibre *fibre);
/* Hands back to the host. Called inside the fibre only. */
void weft_fibre_pause(weft_fibre *fibre);
/* Frees a fibre. What one that has not ended (a killed rank) owned is lost; under a leak checker its stack is kept and named as
 * a root, so that only true leaks are told. */
void weft_fibre_free(weft_fibre *fibre);

#endif

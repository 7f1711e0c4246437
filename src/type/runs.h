/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runs: iterator over the contiguous runs of memory that count elements of a type at buf occupy, in the order of the packed form, from any
 * packed offset. Keeps the innermost strided run, so that most steps are an addition. Any thread; allocates nothing.
 */
#ifndef WEFT_TYPE_RUNS_H
#define WEFT_TYPE_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "type/layout.h"
#include "type/type.h"

typedef struct weft_runs {
    char *at;            /* the run: [at, at + bytes) */
    uint64_t bytes;
    weft_type_layout all; /* of count elements */
    char *base;
    uint64_t offset, end; /* packed: of the next run, and where the iteration ends */
    uint64_t left;        /* further runs of `block` bytes, `stride` apart, after this one */
    uint64_t block;
    int64_t stride;
} weft_runs;

/* Packed bytes [offset, offset + bytes) of count elements, which exist. */
void weft_runs_begin(weft_runs *runs, const weft_type *type, const void *buf, uint64_t count, uint64_t offset, uint64_t bytes);
/* Sets at and bytes of the next run. False: there is none. */
bool weft_runs_next(weft_runs *runs);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters: event counters of a worker (counters.def). Code increments its worker's array, for example
 * worker->counters[WEFT_COUNT_SLEEPS]++; requires worker->lock. Counters of the short-message path are derived in weft_counters_read.
 */
#ifndef WEFT_CORE_COUNTERS_H
#define WEFT_CORE_COUNTERS_H

#include <stdint.h>

#include "core/counters_type.h"

struct weft_world;

extern const weft_count_row weft_count_rows[WEFT_COUNT_LAST];

/* All counters of the world, summed over its workers (HIGHWATERMARK rows too). Tries the workers' locks for 50 ms, then reads
 * without them: each value is right by itself, those of registrations may be old. */
void weft_counters_read(struct weft_world *world, uint64_t values[WEFT_COUNT_LAST]);
/* Prints the counters that are not 0 on stderr, in one write. Called with WEFT_COUNTERS=1, before workers close. */
void weft_counters_print(struct weft_world *world);

#endif

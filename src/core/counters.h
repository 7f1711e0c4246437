/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters: event counters of a worker (counters.def). Code increments its worker's array, for example
 * worker->counters[WEFT_COUNT_SLEEPS]++; requires worker->lock. Counters of the short-message path are derived in weft_counters_read.
 */
#ifndef WEFT_CORE_COUNTERS_H
#define WEFT_CORE_COUNTERS_H

#include <stdint.h>

struct weft_worker;
struct weft_world;

enum weft_counter {
#define COUNT(id, name, class, unit, group, sentence) WEFT_COUNT_##id,
#include "core/counters.def"
#undef COUNT
    WEFT_COUNT_LAST
};

enum weft_count_class {
    WEFT_COUNT_IS_COUNTER, WEFT_COUNT_IS_WRAPPED, WEFT_COUNT_IS_LEVEL, WEFT_COUNT_IS_HIGHWATERMARK, WEFT_COUNT_IS_TIMER
};
enum weft_count_group { WEFT_COUNT_OF_MESSAGE, WEFT_COUNT_OF_PROTOCOL, WEFT_COUNT_OF_BYTES, WEFT_COUNT_OF_REG, WEFT_COUNT_OF_WAIT };

typedef struct weft_count_row {
    const char *name, *unit, *sentence;
    enum weft_count_class class;
    enum weft_count_group group;
} weft_count_row;

extern const weft_count_row weft_count_rows[WEFT_COUNT_LAST];

/* All counters of the world, summed over its workers (HIGHWATERMARK rows too). Tries the workers' locks for a bounded time, then reads
 * without them. */
void weft_counters_read(struct weft_world *world, uint64_t values[WEFT_COUNT_LAST]);
/* Prints the counters that are not 0 on stderr, in one write. Called with WEFT_COUNTERS=1, before workers close. */
void weft_counters_print(struct weft_world *world);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters_type: numbers, classes and groups of the counters of counters.def.
 */
#ifndef WEFT_CORE_COUNTERS_TYPE_H
#define WEFT_CORE_COUNTERS_TYPE_H

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

#endif

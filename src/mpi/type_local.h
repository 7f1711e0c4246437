/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_local: shared by the files type*.c of this folder only: checks of old types, and envelopes with the caller's arguments.
 */
#ifndef WEFT_MPI_TYPE_LOCAL_H
#define WEFT_MPI_TYPE_LOCAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/counts.h"
#include "base/status.h"
#include "type/type.h"

/* May new types be created from it? */
static inline int weft_type_old_check(const weft_type *old)
{
    if (old->is_absent)
        return weft_fail(WEFT_E_TYPE, "oldtype is %s, which does not exist with this compiler", old->name);
    return 0;
}

/* Memory for `count` values of an envelope; NULL: out of memory, described. */
static inline int64_t *weft_type_values(uint64_t count)
{
    int64_t *values = count < SIZE_MAX / 16 ? malloc((size_t)(count ? count : 1) * sizeof *values) : NULL;
    if (!values)
        weft_fail(WEFT_E_NOMEM, "no memory for the %llu arguments of a datatype", (unsigned long long)count);
    return values;
}

static inline int64_t *weft_type_values_copy(int64_t *to, weft_counts from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = weft_counts_get(from, (size_t)i);
    return to + count;
}

/* Sets the envelope of a constructor all of whose arguments are counts, then addresses: those of a _c form are all large counts. */
static inline void weft_type_set_arguments(weft_type *type, enum weft_combiner combiner, uint64_t counts, uint64_t addresses,
                                           int64_t *values, bool is_large)
{
    if (is_large)
        weft_type_set_envelope(type, combiner, 0, 0, counts + addresses, values);
    else
        weft_type_set_envelope(type, combiner, counts, addresses, 0, values);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_counts: the library's counters of one-sided operations: how many went by a device and by message, what was copied, and gets that
 * looked for regions.
 */
#ifndef TEST_MPI_DEVICE_COUNTS_H
#define TEST_MPI_DEVICE_COUNTS_H

#include "check.h"

enum { PUTS, GETS, MESSAGES, COPIED, READS, DEVICE_WORDS, COUNTERS };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS];
static int has_counters;

/* Counts from here on. Another MPI has none of these counters. */
static inline void count(void)
{
    static const char *const names[] = {"weft_device_puts", "weft_device_gets", "weft_window_messages", "weft_bytes_copied",
                                        "weft_region_reads", "weft_device_words"};
    OK(MPI_T_pvar_session_create(&session));
    has_counters = 1;
    for (int i = 0; i < COUNTERS; i++) {
        int index, elements;
        if (!has_counters || MPI_T_pvar_get_index(names[i], MPI_T_PVAR_CLASS_COUNTER, &index)) {
            has_counters = 0;
            continue;
        }
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &elements));
        OK(MPI_T_pvar_start(session, handles[i]));
    }
}

static inline uint64_t counted(int which)
{
    uint64_t value = 0;
    if (has_counters)
        OK(MPI_T_pvar_read(session, handles[which], &value));
    return value;
}

#endif

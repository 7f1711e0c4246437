/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: private fields of MPI_Status. Two of the five ints hold a 64-bit word, accessed by memcpy (the struct is 4-byte aligned):
 * bit 63 "cancelled", bits 62..0 the byte count. Programs may copy statuses by assignment, so they contain no pointers.
 */
#ifndef WEFT_MPI_STATUS_H
#define WEFT_MPI_STATUS_H

#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include "core/req.h"

#define WEFT_STATUS_CANCELLED (1ull << 63)

static inline void weft_status_set_word(MPI_Status *status, uint64_t word)
{
    memcpy(&status->MPI_internal[0], &word, sizeof word);
}

static inline uint64_t weft_status_word(const MPI_Status *status)
{
    uint64_t word;
    memcpy(&word, &status->MPI_internal[0], sizeof word);
    return word;
}

/* Sets a status from a receive; MPI_ERROR is not written (MPI 5.0 3.2.5). */
static inline void weft_status_set(MPI_Status *status, const weft_recv_info *found)
{
    status->MPI_SOURCE = found->source;
    status->MPI_TAG = found->tag;
    weft_status_set_word(status, found->bytes | (found->cancelled ? WEFT_STATUS_CANCELLED : 0));
}

/* The same; status may be MPI_STATUS_IGNORE. */
static inline void weft_status_fill(MPI_Status *status, const weft_recv_info *found)
{
    if (status != MPI_STATUS_IGNORE)
        weft_status_set(status, found);
}

/* The "empty status" of MPI 5.0, 3.7.3: any source, any tag, no error, nothing received, not cancelled. */
static inline void weft_status_clear(MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status->MPI_ERROR = MPI_SUCCESS;
    weft_status_set_word(status, 0);
}

#endif

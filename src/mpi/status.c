/* SPDX-License-Identifier: BSD-3-Clause
 *
 * status: reading and setting statuses (MPI 5.0, 3.2.5, 3.8.4 and 4.1's get/set calls). Called by the generated entries; needs no
 * lock.
 */
#include "mpi/status.h"

#include "base/status.h"
#include "mpi/calls.h"
#include "type/signature.h"

/* Number of whole elements; MPI_UNDEFINED if the byte count is not a multiple of the type's size. */
int weft_mpi_get_count(const MPI_Status *status, const weft_type *datatype, MPI_Count *count)
{
    uint64_t bytes = weft_status_word(status) & ~WEFT_STATUS_CANCELLED;
    if (datatype->size <= 0)
        *count = bytes ? MPI_UNDEFINED : 0;
    else
        *count = bytes % (uint64_t)datatype->size ? MPI_UNDEFINED : (MPI_Count)(bytes / (uint64_t)datatype->size);
    return 0;
}

int weft_mpi_test_cancelled(const MPI_Status *status, int *flag)
{
    *flag = (weft_status_word(status) & WEFT_STATUS_CANCELLED) != 0;
    return 0;
}

int weft_mpi_status_get_source(const MPI_Status *status, int *source)
{
    *source = status->MPI_SOURCE;
    return 0;
}

int weft_mpi_status_get_tag(const MPI_Status *status, int *tag)
{
    *tag = status->MPI_TAG;
    return 0;
}

int weft_mpi_status_get_error(const MPI_Status *status, int *error)
{
    *error = status->MPI_ERROR;
    return 0;
}

int weft_mpi_status_set_source(MPI_Status *status, int source)
{
    status->MPI_SOURCE = source;
    return 0;
}

int weft_mpi_status_set_tag(MPI_Status *status, int tag)
{
    status->MPI_TAG = tag;
    return 0;
}

int weft_mpi_status_set_error(MPI_Status *status, int error)
{
    status->MPI_ERROR = error;
    return 0;
}

int weft_mpi_status_set_cancelled(MPI_Status *status, int flag)
{
    uint64_t word = weft_status_word(status) & ~WEFT_STATUS_CANCELLED;
    weft_status_set_word(status, word | (flag ? WEFT_STATUS_CANCELLED : 0));
    return 0;
}

int weft_mpi_status_set_elements(MPI_Status *status, const weft_type *datatype, MPI_Count count)
{
    uint64_t word = weft_status_word(status) & WEFT_STATUS_CANCELLED;
    int64_t bytes = datatype->elements ? weft_type_bytes_of(datatype, count) : 0;
    if (bytes < 0 || bytes > (int64_t)WEFT_TYPE_SPAN_MAX)
        return weft_fail(WEFT_E_COUNT, "count is %lld: elements of %s exceed 2^62 bytes", (long long)count,
                         datatype->name[0] ? datatype->name : "a derived type");
    weft_status_set_word(status, word | (uint64_t)bytes);
    return 0;
}

int weft_mpi_status_set_elements_x(MPI_Status *status, const weft_type *datatype, MPI_Count count)
{
    return weft_mpi_status_set_elements(status, datatype, count);
}

/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem: MPI_Alloc_mem and MPI_Free_mem (MPI 5.0, 9.2). Called by the woven entries, any thread.
 * Invariant: what is handed out begins on a cache line; big pieces begin on a page, so that pinning them touches no neighbour.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/status.h"
#include "mpi/calls.h"

int weft_mpi_alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    size_t bytes = size > 0 ? (size_t)size : 1, align = bytes >= 4096 ? 4096 : WEFT_LINE;
    void *memory;
    (void)info;
    if (size < 0)
        return weft_fail(WEFT_E_ARG, "size is %lld bytes: it must not be negative", (long long)size);
    if (!baseptr)
        return weft_fail(WEFT_E_ARG, "baseptr is NULL");
    if (posix_memalign(&memory, align, bytes))
        return weft_fail(WEFT_E_NOMEM, "no memory for %lld bytes", (long long)size);
    *(void **)baseptr = memory;
    return 0;
}

int weft_mpi_free_mem(void *base)
{
    free(base);
    return 0;
}

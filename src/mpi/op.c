/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: operator calls of MPI (MPI 5.0 6.9.5 to 6.9.7) on top of src/type/op. Called by the generated entries.
 */
#include <mpi.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "type/op.h"

int weft_mpi_op_create(void *user_fn, bool is_large, int commute, MPI_Op *op)
{
    if (!user_fn)
        return weft_fail(WEFT_E_ARG, "user_fn is NULL: an operator needs a function");
    return weft_op_make(user_fn, commute != 0, is_large, op);
}

int weft_mpi_op_free(MPI_Op *op)
{
    weft_op *freed = (weft_op *)weft_op_of(*op);
    if (!freed)
        return weft_fail(WEFT_E_OP, "op %p is no operator, or was freed already", (void *)*op);
    if (freed->handle)
        return weft_fail(WEFT_E_OP, "op 0x%x is predefined: it cannot be freed", (unsigned)freed->handle);
    weft_op_retire(freed);
    *op = MPI_OP_NULL;
    return 0;
}

int weft_mpi_op_commutative(const weft_op *op, int *commute)
{
    *commute = op->is_commutative;
    return 0;
}

int weft_mpi_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, const weft_type *datatype, const weft_op *op)
{
    int rc = weft_op_reduces(op, datatype);
    if (rc)
        return rc;
    if (inbuf == MPI_IN_PLACE || inoutbuf == MPI_IN_PLACE)
        return weft_fail(WEFT_E_BUFFER, "MPI_IN_PLACE has no meaning here: both buffers are this process's");
    if (inbuf == inoutbuf && count && datatype->size && inbuf != MPI_BOTTOM)
        return weft_fail(WEFT_E_BUFFER, "inbuf and inoutbuf are both %p: they may not overlap", inbuf);
    weft_op_apply(op, datatype, inbuf, inoutbuf, (uint64_t)count);
    return 0;
}

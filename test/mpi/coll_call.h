/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_call: one collective call chosen by a number; shared by the tests of members whose calls differ.
 */
#ifndef TEST_MPI_COLL_CALL_H
#define TEST_MPI_COLL_CALL_H

#include <mpi.h>

enum call { NOTHING, BARRIER, BCAST, REDUCE, ALLREDUCE, MAXIMUM, GATHER, SCATTER, ALLGATHER, ALLTOALL, IBARRIER };

/* Bytes: sent by each rank; received from each rank by allgather and alltoall. Reductions take multiples of 8. Returns the call's code. */
static inline int coll_call(enum call call, const void *out, void *in, int sent, int received, int root, MPI_Comm comm)
{
    MPI_Request request;
    int code;
    switch (call) {
    case NOTHING: break;
    case BARRIER: return MPI_Barrier(comm);
    case BCAST: return MPI_Bcast(in, sent, MPI_BYTE, root, comm);
    case REDUCE: return MPI_Reduce(out, in, sent / 8, MPI_INT64_T, MPI_SUM, root, comm);
    case ALLREDUCE: return MPI_Allreduce(out, in, sent / 8, MPI_INT64_T, MPI_SUM, comm);
    case MAXIMUM: return MPI_Allreduce(out, in, sent / 8, MPI_INT64_T, MPI_MAX, comm);
    case GATHER: return MPI_Gather(out, sent, MPI_BYTE, in, sent, MPI_BYTE, root, comm);
    case SCATTER: return MPI_Scatter(out, sent, MPI_BYTE, in, sent, MPI_BYTE, root, comm);
    case ALLGATHER: return MPI_Allgather(out, sent, MPI_BYTE, in, received, MPI_BYTE, comm);
    case ALLTOALL: return MPI_Alltoall(out, sent, MPI_BYTE, in, received, MPI_BYTE, comm);
    case IBARRIER:
        code = MPI_Ibarrier(comm, &request);
        return code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return MPI_SUCCESS;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * corrupt: a faulty MPI by interposition, for the test of weft-bench --check. Each call below corrupts its result if CORRUPT names it;
 * CORRUPT=memory makes rank 1's larger allocations fail. Linked by test/perf/bench-check, before the library and with --wrap=malloc.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int chosen(const char *name)
{
    const char *which = getenv("CORRUPT");

    return which && !strcmp(which, name);
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

/* All calls of malloc in weft-bench. No allocation but those for --check has 64 KiB. */
void *__wrap_malloc(size_t bytes)
{
    int rank = 0;

    if (bytes >= 1 << 16 && chosen("memory")) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    return rank == 1 ? NULL : __real_malloc(bytes);
}

static void flip(void *buffer, long bytes)
{
    if (bytes > 0) {
        ((unsigned char *)buffer)[bytes - 1] ^= 0x10;
    }
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    int size = 0, rc = PMPI_Recv(buffer, count, type, source, tag, comm, status);

    PMPI_Type_size(type, &size);
    if (chosen("recv")) {
        flip(buffer, (long)count * size);
    } else if (chosen("status") && status != MPI_STATUS_IGNORE) {
        status->MPI_TAG++;
    }
    return rc;
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int dest, int out_tag, void *in, int in_count,
                 MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm, MPI_Status *status)
{
    int rc = PMPI_Sendrecv(out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm, status);

    if (chosen("sendrecv") && in_type == MPI_BYTE) {
        flip(in, in_count);
    }
    return rc;
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    int rc = PMPI_Irecv(buffer, count, type, source, tag, comm, request);

    if (chosen("overrun") && type == MPI_BYTE && count) {
        ((unsigned char *)buffer)[count] ^= 0x10;
    }
    return rc;
}

int MPI_Barrier(MPI_Comm comm)
{
    return chosen("barrier") ? MPI_SUCCESS : PMPI_Barrier(comm);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int rc = PMPI_Allreduce(in, out, count, type, op, comm);

    if (chosen("allreduce") && count > 2 && type == MPI_DOUBLE) {
        flip(out, (long)count * (long)sizeof(double));
    }
    return rc;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int rc = PMPI_Bcast(buffer, count, type, root, comm), rank;

    PMPI_Comm_rank(comm, &rank);
    if (chosen("bcast") && type == MPI_BYTE && rank != root) {
        flip(buffer, count);
    }
    return rc;
}

int MPI_Alltoall(const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type,
                 MPI_Comm comm)
{
    int rc = PMPI_Alltoall(in, in_count, in_type, out, out_count, out_type, comm);

    if (chosen("alltoall")) {
        flip(out, out_count);
    }
    return rc;
}

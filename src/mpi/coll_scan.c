/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_scan: reductions of which each rank gets another part: scan and exscan (MPI 5.0 6.11), reduce_scatter (6.10). As coll.c.
 */
#include "collectives/calls.h"
#include "mpi/calls.h"
#include "mpi/coll_local.h"

static int scan_any(weft_comm *comm, enum weft_coll_kind kind, const weft_coll *args, int rc, enum form form, MPI_Request *request)
{
    if (!rc && comm->is_inter)
        rc = weft_fail(WEFT_E_COMM, "comm is an intercommunicator: scans are defined on intracommunicators only");
    return weft_coll_call(comm, kind, args, rc, form, request);
}

static int scan(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, weft_comm *comm,
                enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = weft_coll_fill_reduce(&args, sendbuf, recvbuf, count, datatype, op, (role){.is_root = true, .has_block = true});

    return scan_any(comm, WEFT_COLL_SCAN, &args, rc, form, request);
}

int weft_mpi_scan(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, weft_comm *comm)
{
    return scan(sendbuf, recvbuf, count, datatype, op, comm, BLOCKING, NULL);
}

int weft_mpi_iscan(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, weft_comm *comm,
                   MPI_Request *request)
{
    return scan(sendbuf, recvbuf, count, datatype, op, comm, NONBLOCKING, request);
}

int weft_mpi_scan_init(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op,
                       weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return scan(sendbuf, recvbuf, count, datatype, op, comm, PERSISTENT, request);
}

static int exscan(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, weft_comm *comm,
                  enum form form, MPI_Request *request)
{
    weft_coll args;
    const void *apart = comm->rank || is_in_place(sendbuf) ? recvbuf : NULL; /* at rank 0, recvbuf is not significant unless in place */
    int rc = weft_coll_fill_reduce(&args, sendbuf, (void *)apart, count, datatype, op, (role){.is_root = true, .has_block = true});

    return scan_any(comm, WEFT_COLL_EXSCAN, &args, rc, form, request);
}

int weft_mpi_exscan(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, weft_comm *comm)
{
    return exscan(sendbuf, recvbuf, count, datatype, op, comm, BLOCKING, NULL);
}

int weft_mpi_iexscan(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, weft_comm *comm,
                     MPI_Request *request)
{
    return exscan(sendbuf, recvbuf, count, datatype, op, comm, NONBLOCKING, request);
}

int weft_mpi_exscan_init(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op,
                         weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return exscan(sendbuf, recvbuf, count, datatype, op, comm, PERSISTENT, request);
}

/* ---- reduce_scatter ---- */

/* blocks: of the vector; NULL: equal ones. total: their elements. */
static int reduce_scatter_any(const void *sendbuf, void *recvbuf, uint64_t total, const weft_layout *blocks, const weft_type *type,
                              const weft_op *op, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = weft_coll_fill_reduce(&args, sendbuf, recvbuf, (MPI_Count)total, type, op, (role){.is_root = true, .has_block = true});

    args.recv_layout = blocks;
    args.is_v = blocks != NULL;
    if (!rc && blocks && !comm->is_inter)
        args.blocks_hash = weft_call_blocks_hash(blocks, type, (uint32_t)comm->size);
    return weft_coll_call(comm, blocks ? WEFT_COLL_REDUCE_SCATTER : WEFT_COLL_REDUCE_SCATTER_BLOCK, &args, rc, form, request);
}

static int reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount, const weft_type *datatype, const weft_op *op,
                                weft_comm *comm, enum form form, MPI_Request *request)
{
    return reduce_scatter_any(sendbuf, recvbuf, (uint64_t)recvcount * (uint64_t)comm->size, NULL, datatype, op, comm, form, request);
}

int weft_mpi_reduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount, const weft_type *datatype, const weft_op *op,
                                  weft_comm *comm)
{
    return reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, BLOCKING, NULL);
}

int weft_mpi_ireduce_scatter_block(const void *sendbuf, void *recvbuf, MPI_Count recvcount, const weft_type *datatype,
                                   const weft_op *op, weft_comm *comm, MPI_Request *request)
{
    return reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, NONBLOCKING, request);
}

int weft_mpi_reduce_scatter_block_init(const void *sendbuf, void *recvbuf, MPI_Count recvcount, const weft_type *datatype,
                                       const weft_op *op, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op, comm, PERSISTENT, request);
}

static int reduce_scatter(const void *sendbuf, void *recvbuf, weft_counts recvcounts, const weft_type *datatype, const weft_op *op,
                          weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_layout blocks = {.counts = recvcounts};
    uint64_t total = 0;
    weft_coll none = {.root = 0};
    int rc = 0;

    for (uint32_t i = 0; i < (uint32_t)comm->size && !rc; i++)
        if (__builtin_add_overflow(total, (uint64_t)weft_counts_get(recvcounts, i), &total) || total > datatype->count_max)
            rc = weft_fail(WEFT_E_COUNT, "recvcounts: the elements of ranks 0 to %u exceed 2^62 bytes", i);
    if (!rc && total && datatype->is_dense && datatype->is_predefined) {
        if (!sendbuf || (is_in_place(sendbuf) && !recvbuf))
            rc = weft_fail(WEFT_E_BUFFER, "%s is NULL, but recvcounts are %llu elements of %s in all", sendbuf ? "recvbuf" : "sendbuf",
                           (unsigned long long)total, datatype->name);
        else if (!recvbuf && weft_counts_get(recvcounts, (size_t)comm->rank))
            rc = weft_fail(WEFT_E_BUFFER, "recvbuf is NULL, but recvcounts[%d] is %lld elements of %s", comm->rank,
                           (long long)weft_counts_get(recvcounts, (size_t)comm->rank), datatype->name);
    }
    if (rc)
        return weft_coll_call(comm, WEFT_COLL_REDUCE_SCATTER, &none, rc, form, request);
    if (!is_in_place(sendbuf) && !weft_counts_get(recvcounts, (size_t)comm->rank))
        recvbuf = NULL; /* not significant, and may be sendbuf */
    return reduce_scatter_any(sendbuf, recvbuf, total, &blocks, datatype, op, comm, form, request);
}

int weft_mpi_reduce_scatter(const void *sendbuf, void *recvbuf, weft_counts recvcounts, const weft_type *datatype, const weft_op *op,
                            weft_comm *comm)
{
    return reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, BLOCKING, NULL);
}

int weft_mpi_ireduce_scatter(const void *sendbuf, void *recvbuf, weft_counts recvcounts, const weft_type *datatype, const weft_op *op,
                             weft_comm *comm, MPI_Request *request)
{
    return reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, NONBLOCKING, request);
}

int weft_mpi_reduce_scatter_init(const void *sendbuf, void *recvbuf, weft_counts recvcounts, const weft_type *datatype,
                                 const weft_op *op, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm, PERSISTENT, request);
}

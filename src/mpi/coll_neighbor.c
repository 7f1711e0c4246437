/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_neighbor: neighborhood collectives (MPI 5.0 8.6 to 8.8). As coll.c. Blocks are those of the member's edges, in the order of
 * weft_topo_neighbors; arrays are read during the call only. The entries have checked counts and types.
 */
#include "collectives/blocks.h"
#include "mpi/calls.h"
#include "mpi/coll_local.h"
#include "mpi/topo.h"

/* A buffer with consecutive blocks (layout NULL) of count elements, or with a block for each edge. */
typedef struct edge_blocks {
    const void *buf;
    uint64_t count;
    const weft_type *type;
    const weft_layout *layout;
} edge_blocks;

static int layout_check(const char *which, const edge_blocks *blocks, uint32_t edges, uint64_t *total)
{
    weft_coll_side side = {which, blocks->buf, blocks->type, blocks->layout, edges};

    return weft_coll_check_side(&side, total);
}

static int neighbor_call(weft_comm *comm, enum weft_coll_kind kind, edge_blocks out, edge_blocks in, enum form form, MPI_Request *request)
{
    weft_neighbors neighbors;
    weft_coll args = {.is_v = in.layout, .sendbuf = out.buf, .sendcount = out.count, .sendtype = out.type, .send_layout = out.layout,
                      .recvbuf = (void *)in.buf, .recvcount = in.count, .recvtype = in.type, .recv_layout = in.layout,
                      .neighbors = &neighbors};
    int rc = weft_topo_neighbors(comm, &neighbors);

    if (!rc && (is_in_place(out.buf) || is_in_place(in.buf)))
        rc = weft_coll_in_place_error(is_in_place(out.buf) ? "sendbuf" : "recvbuf", "a neighborhood collective has two buffers");
    if (!rc && in.layout)
        rc = layout_check("recv", &in, neighbors.source_count, &args.recvcount);
    if (!rc && out.layout)
        rc = layout_check("send", &out, neighbors.destination_count, &args.sendcount);
    return weft_coll_call(comm, kind, &args, rc, form, request);
}

/* -- allgather -- */

static int allgather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                     const weft_type *recvtype, weft_comm *comm, enum form form, MPI_Request *request)
{
    return neighbor_call(comm, WEFT_COLL_NEIGHBOR_ALLGATHER, (edge_blocks){sendbuf, (uint64_t)sendcount, sendtype, NULL},
                         (edge_blocks){recvbuf, (uint64_t)recvcount, recvtype, NULL}, form, request);
}

int weft_mpi_neighbor_allgather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                                const weft_type *recvtype, weft_comm *comm)
{
    return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_ineighbor_allgather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                                 const weft_type *recvtype, weft_comm *comm, MPI_Request *request)
{
    return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_neighbor_allgather_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                                     MPI_Count recvcount, const weft_type *recvtype, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, PERSISTENT, request);
}

/* -- allgatherv -- */

static int allgatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                      weft_counts displs, const weft_type *recvtype, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_layout in = {.counts = recvcounts, .displs = displs};

    return neighbor_call(comm, WEFT_COLL_NEIGHBOR_ALLGATHERV, (edge_blocks){sendbuf, (uint64_t)sendcount, sendtype, NULL},
                         (edge_blocks){recvbuf, 0, recvtype, &in}, form, request);
}

int weft_mpi_neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                                 weft_counts recvcounts, weft_counts displs, const weft_type *recvtype, weft_comm *comm)
{
    return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_ineighbor_allgatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                                  weft_counts recvcounts, weft_counts displs, const weft_type *recvtype, weft_comm *comm,
                                  MPI_Request *request)
{
    return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_neighbor_allgatherv_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                                      weft_counts recvcounts, weft_counts displs, const weft_type *recvtype, weft_comm *comm,
                                      MPI_Info info, MPI_Request *request)
{
    (void)info;
    return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, PERSISTENT, request);
}

/* -- alltoall -- */

static int alltoall(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                    const weft_type *recvtype, weft_comm *comm, enum form form, MPI_Request *request)
{
    return neighbor_call(comm, WEFT_COLL_NEIGHBOR_ALLTOALL, (edge_blocks){sendbuf, (uint64_t)sendcount, sendtype, NULL},
                         (edge_blocks){recvbuf, (uint64_t)recvcount, recvtype, NULL}, form, request);
}

int weft_mpi_neighbor_alltoall(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                               const weft_type *recvtype, weft_comm *comm)
{
    return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_ineighbor_alltoall(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                                const weft_type *recvtype, weft_comm *comm, MPI_Request *request)
{
    return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_neighbor_alltoall_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                                    MPI_Count recvcount, const weft_type *recvtype, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, PERSISTENT, request);
}

/* -- alltoallv -- */

static int alltoallv(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype, void *recvbuf,
                     weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype, weft_comm *comm, enum form form,
                     MPI_Request *request)
{
    weft_layout out = {.counts = sendcounts, .displs = sdispls}, in = {.counts = recvcounts, .displs = rdispls};

    return neighbor_call(comm, WEFT_COLL_NEIGHBOR_ALLTOALLV, (edge_blocks){sendbuf, 0, sendtype, &out},
                         (edge_blocks){recvbuf, 0, recvtype, &in}, form, request);
}

int weft_mpi_neighbor_alltoallv(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype,
                                void *recvbuf, weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype, weft_comm *comm)
{
    return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_ineighbor_alltoallv(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype,
                                 void *recvbuf, weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype, weft_comm *comm,
                                 MPI_Request *request)
{
    return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_neighbor_alltoallv_init(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype,
                                     void *recvbuf, weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype,
                                     weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, PERSISTENT, request);
}

/* -- alltoallw -- */

static int alltoallw(const void *sendbuf, weft_counts sendcounts, const MPI_Aint *sdispls, const MPI_Datatype *sendtypes, void *recvbuf,
                     weft_counts recvcounts, const MPI_Aint *rdispls, const MPI_Datatype *recvtypes, weft_comm *comm, enum form form,
                     MPI_Request *request)
{
    weft_layout out = {.counts = sendcounts, .displs = {sdispls, sizeof *sdispls}, .types = (const void *const *)sendtypes};
    weft_layout in = {.counts = recvcounts, .displs = {rdispls, sizeof *rdispls}, .types = (const void *const *)recvtypes};

    return neighbor_call(comm, WEFT_COLL_NEIGHBOR_ALLTOALLW, (edge_blocks){sendbuf, 0, NULL, &out}, (edge_blocks){recvbuf, 0, NULL, &in},
                         form, request);
}

int weft_mpi_neighbor_alltoallw(const void *sendbuf, weft_counts sendcounts, const MPI_Aint *sdispls, const MPI_Datatype *sendtypes,
                                void *recvbuf, weft_counts recvcounts, const MPI_Aint *rdispls, const MPI_Datatype *recvtypes,
                                weft_comm *comm)
{
    return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, BLOCKING, NULL);
}

int weft_mpi_ineighbor_alltoallw(const void *sendbuf, weft_counts sendcounts, const MPI_Aint *sdispls, const MPI_Datatype *sendtypes,
                                 void *recvbuf, weft_counts recvcounts, const MPI_Aint *rdispls, const MPI_Datatype *recvtypes,
                                 weft_comm *comm, MPI_Request *request)
{
    return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, NONBLOCKING, request);
}

int weft_mpi_neighbor_alltoallw_init(const void *sendbuf, weft_counts sendcounts, const MPI_Aint *sdispls, const MPI_Datatype *sendtypes,
                                     void *recvbuf, weft_counts recvcounts, const MPI_Aint *rdispls, const MPI_Datatype *recvtypes,
                                     weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, PERSISTENT, request);
}

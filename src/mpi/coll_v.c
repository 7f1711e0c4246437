/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_v: collective calls with a count and a displacement for each rank (MPI 5.0 6.5 to 6.8), and with a type for each (6.8,
 * MPI_ALLTOALLW). As coll.c. The arrays are read during the call only.
 */
#include "collectives/blocks.h"
#include "collectives/calls.h"
#include "mpi/calls.h"
#include "mpi/coll_local.h"

static weft_block block_of(const weft_coll_side *side, uint32_t i)
{
    weft_blocks blocks = {.buf = side->buf, .type = side->type, .layout = side->layout};

    return weft_blocks_at(&blocks, i);
}

static int types_check(const weft_coll_side *side)
{
    for (uint32_t i = 0; i < side->ranks; i++) {
        const weft_type *type = weft_type_of(side->layout->types[i]);
        if (!type->is_committed && !type->is_predefined)
            return weft_fail(WEFT_E_TYPE, "%stypes[%u] is not committed: call MPI_Type_commit first", side->which, i);
    }
    return 0;
}

int weft_coll_check_side(const weft_coll_side *side, uint64_t *total)
{
    bool is_empty = true;
    uint64_t sum = 0;
    int rc = 0;

    *total = 0;
    if (side->layout->types)
        rc = types_check(side);
    else if (side->type || side->ranks) /* an alltoallw without edges may pass no array of types */
        rc = weft_coll_check_pair(side->which, 0, side->type);
    for (uint32_t i = 0; i < side->ranks && !rc; i++) {
        weft_block block = block_of(side, i);
        if (block.count > block.type->count_max || __builtin_add_overflow(sum, block.count, &sum) ||
            (!side->layout->types && sum > block.type->count_max))
            return weft_fail(WEFT_E_COUNT, "%scounts: the elements of blocks 0 to %u exceed 2^62 bytes", side->which, i);
        is_empty = is_empty && (!block.count || !block.type->is_dense || !block.type->is_predefined);
        /* NULL is MPI_BOTTOM: valid with absolute addresses, in a derived type or as displacements in bytes. */
        if (!(side->layout->types ? block.at : side->buf) && !is_empty)
            return weft_fail(WEFT_E_BUFFER, "%sbuf is NULL, but %scounts[%u] is %llu elements of %s", side->which, side->which, i,
                             (unsigned long long)block.count, block.type->name);
    }
    if (!rc && !side->layout->types)
        *total = sum;
    return rc;
}

/* Blocks of a rank for itself must be equally long, and apart: different types may pick other bytes from one address on. */
static int own_check(weft_block sent, weft_block received)
{
    int rc = weft_coll_check_own_block(weft_block_bytes(&sent), weft_block_bytes(&received));
    bool may_be_apart = sent.type != received.type && !(sent.type->is_dense && received.type->is_dense);

    return rc || may_be_apart ? rc : weft_coll_check_alias(sent.at, received.at, (MPI_Count)received.count, received.type);
}

/* ---- gatherv, scatterv ---- */

static int gatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                   weft_counts displs, const weft_type *recvtype, int root, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_layout layout = {.counts = recvcounts, .displs = displs};
    role role = role_of(comm, root);
    weft_coll_side all = {"recv", recvbuf, recvtype, &layout, (uint32_t)comm->remote_size};
    weft_coll args = {.is_v = true, .root = role.root};
    int rc = 0;

    if (is_idle(role))
        return weft_coll_call(comm, WEFT_COLL_GATHERV, &args, 0, form, request);
    args.sendbuf = sendbuf;
    args.sendcount = (uint64_t)sendcount;
    args.sendtype = sendtype;
    args.recvbuf = recvbuf;
    args.recvtype = recvtype;
    args.in_place = role.has_block && is_in_place(sendbuf);
    if (args.in_place && !role.is_root)
        rc = weft_coll_in_place_error("sendbuf", "only the root may pass it");
    else if (role.has_block && !args.in_place)
        rc = weft_coll_check_pair("send", sendcount, sendtype);
    if (role.is_root) {
        args.recv_layout = &layout;
        if (!rc && is_in_place(recvbuf))
            rc = weft_coll_in_place_error("recvbuf", "pass it as sendbuf");
        if (!rc)
            rc = weft_coll_check_side(&all, &args.recvcount);
        if (!rc && role.has_block && !args.in_place)
            rc = own_check((weft_block){(void *)sendbuf, args.sendcount, sendtype}, block_of(&all, comm->rank));
    }
    return weft_coll_call(comm, WEFT_COLL_GATHERV, &args, rc, form, request);
}

int weft_mpi_gatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                     weft_counts displs, const weft_type *recvtype, int root, weft_comm *comm)
{
    return gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, BLOCKING, NULL);
}

int weft_mpi_igatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                      weft_counts displs, const weft_type *recvtype, int root, weft_comm *comm, MPI_Request *request)
{
    return gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, NONBLOCKING, request);
}

int weft_mpi_gatherv_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                          weft_counts displs, const weft_type *recvtype, int root, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, PERSISTENT, request);
}

static int scatterv(const void *sendbuf, weft_counts sendcounts, weft_counts displs, const weft_type *sendtype, void *recvbuf,
                    MPI_Count recvcount, const weft_type *recvtype, int root, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_layout layout = {.counts = sendcounts, .displs = displs};
    role role = role_of(comm, root);
    weft_coll_side all = {"send", sendbuf, sendtype, &layout, (uint32_t)comm->remote_size};
    weft_coll args = {.is_v = true, .root = role.root};
    int rc = 0;

    if (is_idle(role))
        return weft_coll_call(comm, WEFT_COLL_SCATTERV, &args, 0, form, request);
    args.sendbuf = sendbuf;
    args.sendtype = sendtype;
    args.recvbuf = recvbuf;
    args.recvcount = (uint64_t)recvcount;
    args.recvtype = recvtype;
    args.in_place = role.has_block && is_in_place(recvbuf);
    if (args.in_place && !role.is_root)
        rc = weft_coll_in_place_error("recvbuf", "only the root may pass it");
    else if (role.has_block && !args.in_place)
        rc = weft_coll_check_pair("recv", recvcount, recvtype);
    if (role.is_root) {
        args.send_layout = &layout;
        if (!rc && is_in_place(sendbuf))
            rc = weft_coll_in_place_error("sendbuf", "pass it as recvbuf");
        if (!rc)
            rc = weft_coll_check_side(&all, &args.sendcount);
        if (!rc && role.has_block && !args.in_place)
            rc = own_check(block_of(&all, comm->rank), (weft_block){recvbuf, args.recvcount, recvtype});
    }
    return weft_coll_call(comm, WEFT_COLL_SCATTERV, &args, rc, form, request);
}

int weft_mpi_scatterv(const void *sendbuf, weft_counts sendcounts, weft_counts displs, const weft_type *sendtype, void *recvbuf,
                      MPI_Count recvcount, const weft_type *recvtype, int root, weft_comm *comm)
{
    return scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, BLOCKING, NULL);
}

int weft_mpi_iscatterv(const void *sendbuf, weft_counts sendcounts, weft_counts displs, const weft_type *sendtype, void *recvbuf,
                       MPI_Count recvcount, const weft_type *recvtype, int root, weft_comm *comm, MPI_Request *request)
{
    return scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, NONBLOCKING, request);
}

int weft_mpi_scatterv_init(const void *sendbuf, weft_counts sendcounts, weft_counts displs, const weft_type *sendtype, void *recvbuf,
                           MPI_Count recvcount, const weft_type *recvtype, int root, weft_comm *comm, MPI_Info info,
                           MPI_Request *request)
{
    (void)info;
    return scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, PERSISTENT, request);
}

/* ---- allgatherv ---- */

static int allgatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                      weft_counts displs, const weft_type *recvtype, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_layout layout = {.counts = recvcounts, .displs = displs};
    weft_coll_side all = {"recv", recvbuf, recvtype, &layout, (uint32_t)comm->remote_size};
    weft_coll args = {.is_v = true, .sendbuf = sendbuf, .sendcount = (uint64_t)sendcount, .sendtype = sendtype, .recvbuf = recvbuf,
                      .recvtype = recvtype, .recv_layout = &layout, .in_place = is_in_place(sendbuf)};
    int rc = is_in_place(recvbuf) ? weft_coll_in_place_error("recvbuf", "pass it as sendbuf") : weft_coll_check_side(&all, &args.recvcount);

    if (!rc && !args.in_place)
        rc = weft_coll_check_pair("send", sendcount, sendtype);
    if (!rc && !args.in_place && !comm->is_inter) /* of an intercommunicator no block is a rank's own */
        rc = own_check((weft_block){(void *)sendbuf, args.sendcount, sendtype}, block_of(&all, comm->rank));
    if (!rc && !comm->is_inter)
        args.blocks_hash = weft_call_blocks_hash(&layout, recvtype, (uint32_t)comm->size);
    return weft_coll_call(comm, WEFT_COLL_ALLGATHERV, &args, rc, form, request);
}

int weft_mpi_allgatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                        weft_counts displs, const weft_type *recvtype, weft_comm *comm)
{
    return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_iallgatherv(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                         weft_counts displs, const weft_type *recvtype, weft_comm *comm, MPI_Request *request)
{
    return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_allgatherv_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, weft_counts recvcounts,
                             weft_counts displs, const weft_type *recvtype, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, PERSISTENT, request);
}

/* ---- alltoallv, alltoallw ---- */

static int exchange(weft_comm *comm, enum weft_coll_kind kind, weft_coll_side out, weft_coll_side in, enum form form, MPI_Request *request)
{
    bool in_place = is_in_place(out.buf); /* then the other arguments of the send side are not valid */
    weft_coll args = {.is_v = true, .sendbuf = out.buf, .sendtype = in_place ? NULL : out.type, .recvbuf = (void *)in.buf,
                      .recvtype = in.type, .send_layout = in_place ? NULL : out.layout, .recv_layout = in.layout, .in_place = in_place};
    int rc = is_in_place(in.buf) ? weft_coll_in_place_error("recvbuf", "pass it as sendbuf") : 0;

    in.ranks = out.ranks = (uint32_t)comm->remote_size;
    if (!rc)
        rc = weft_coll_check_side(&in, &args.recvcount);
    if (!rc && !args.in_place)
        rc = weft_coll_check_side(&out, &args.sendcount);
    if (!rc && !args.in_place && !comm->is_inter)
        rc = own_check(block_of(&out, comm->rank), block_of(&in, comm->rank));
    return weft_coll_call(comm, kind, &args, rc, form, request);
}

static int alltoallv(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype, void *recvbuf,
                     weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype, weft_comm *comm, enum form form,
                     MPI_Request *request)
{
    weft_layout out = {.counts = sendcounts, .displs = sdispls}, in = {.counts = recvcounts, .displs = rdispls};

    return exchange(comm, WEFT_COLL_ALLTOALLV, (weft_coll_side){.which = "send", .buf = sendbuf, .type = sendtype, .layout = &out},
                    (weft_coll_side){.which = "recv", .buf = recvbuf, .type = recvtype, .layout = &in}, form, request);
}

int weft_mpi_alltoallv(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype, void *recvbuf,
                       weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype, weft_comm *comm)
{
    return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_ialltoallv(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype, void *recvbuf,
                        weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype, weft_comm *comm, MPI_Request *request)
{
    return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_alltoallv_init(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const weft_type *sendtype, void *recvbuf,
                            weft_counts recvcounts, weft_counts rdispls, const weft_type *recvtype, weft_comm *comm, MPI_Info info,
                            MPI_Request *request)
{
    (void)info;
    return alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, PERSISTENT, request);
}

static int alltoallw(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const MPI_Datatype *sendtypes, void *recvbuf,
                     weft_counts recvcounts, weft_counts rdispls, const MPI_Datatype *recvtypes, weft_comm *comm, enum form form,
                     MPI_Request *request)
{
    weft_layout out = {.counts = sendcounts, .displs = sdispls, .types = (const void *const *)sendtypes};
    weft_layout in = {.counts = recvcounts, .displs = rdispls, .types = (const void *const *)recvtypes};

    return exchange(comm, WEFT_COLL_ALLTOALLW, (weft_coll_side){.which = "send", .buf = sendbuf, .layout = &out},
                    (weft_coll_side){.which = "recv", .buf = recvbuf, .layout = &in}, form, request);
}

int weft_mpi_alltoallw(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const MPI_Datatype *sendtypes, void *recvbuf,
                       weft_counts recvcounts, weft_counts rdispls, const MPI_Datatype *recvtypes, weft_comm *comm)
{
    return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, BLOCKING, NULL);
}

int weft_mpi_ialltoallw(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const MPI_Datatype *sendtypes, void *recvbuf,
                        weft_counts recvcounts, weft_counts rdispls, const MPI_Datatype *recvtypes, weft_comm *comm,
                        MPI_Request *request)
{
    return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, NONBLOCKING, request);
}

int weft_mpi_alltoallw_init(const void *sendbuf, weft_counts sendcounts, weft_counts sdispls, const MPI_Datatype *sendtypes,
                            void *recvbuf, weft_counts recvcounts, weft_counts rdispls, const MPI_Datatype *recvtypes, weft_comm *comm,
                            MPI_Info info, MPI_Request *request)
{
    (void)info;
    return alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, PERSISTENT, request);
}

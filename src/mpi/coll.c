/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll: collective calls (MPI 5.0 chapter 6). Checks combinations of arguments (in place, root-only arguments, operator and type),
 * fills in a weft_coll and passes it to layer 5. One fill function per operation serves its blocking, nonblocking and persistent call.
 * Called by the generated entries under the worker's lock. Calls with counts by rank: coll_v.c; scan and reduce_scatter: coll_scan.c.
 */
#include <mpi.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/coll_local.h"
#include "mpi/persistent_reg.h"
#include "mpi/request.h"

/* The user's operator runs unlocked: it or another thread may free type and operator during the call, so both are held. */
static __attribute__((noinline)) int run_user_op(weft_comm *comm, enum weft_coll_kind kind, const weft_coll *args)
{
    int rc;
    weft_op_hold(args->op);
    weft_type_hold(args->recvtype);
    rc = weft_coll_run(&comm->team, kind, args);
    weft_type_drop(args->recvtype);
    weft_op_drop(args->op);
    return rc;
}

/* MPI 5.0 6.2.3. */
static int no_place(void) __attribute__((cold));
static int no_place(void)
{
    return weft_fail(WEFT_E_BUFFER, "a buffer is MPI_IN_PLACE, which is not allowed on an intercommunicator: pass sendbuf and recvbuf");
}

int weft_coll_call(weft_comm *comm, enum weft_coll_kind kind, const weft_coll *args, int rc, enum form form, MPI_Request *request)
{
    weft_req *req = NULL;
    if (weft_unlikely(comm->is_inter) && args->in_place && !rc)
        rc = no_place();
    if (weft_unlikely(rc)) {
        if (request)
            *request = MPI_REQUEST_NULL;
        return rc;
    }
    if (weft_likely(form == BLOCKING))
        return weft_unlikely(args->op && !args->op->handle) ? run_user_op(comm, kind, args) : weft_coll_run(&comm->team, kind, args);
    rc = form == NONBLOCKING ? weft_coll_start(&comm->team, kind, args, &req) : weft_coll_prepare(&comm->team, kind, args, &req);
    if (!rc && form == PERSISTENT) {
        req->is_persistent = true;
        weft_persistent_reg_acquire_sched(req);
    }
    return weft_request_return(comm, comm->team.chan, req, rc, request);
}

int weft_coll_in_place_error(const char *argument, const char *instead)
{
    return weft_fail(WEFT_E_BUFFER, "%s is MPI_IN_PLACE, which is not allowed here: %s", argument, instead);
}

int weft_coll_check_alias(const void *sendbuf, const void *recvbuf, MPI_Count count, const weft_type *type)
{
    if (weft_likely(sendbuf != recvbuf) || !sendbuf || !count || !type->size)
        return 0;
    return weft_fail(WEFT_E_BUFFER, "sendbuf and recvbuf are the same address %p: pass MPI_IN_PLACE as sendbuf to work in place",
                     sendbuf);
}

int weft_coll_check_pair(const char *which, MPI_Count count, const weft_type *type)
{
    if (count < 0)
        return weft_fail(WEFT_E_COUNT, "%scount is %lld: it must not be negative", which, (long long)count);
    if (!type)
        return weft_fail(WEFT_E_TYPE, "%stype is not a live datatype", which);
    if (!type->is_committed && !type->is_predefined)
        return weft_fail(WEFT_E_TYPE, "%stype is not committed: call MPI_Type_commit first", which);
    return 0;
}

int weft_coll_check_own_block(uint64_t sent, uint64_t capacity)
{
    if (weft_likely(sent == capacity))
        return 0;
    return weft_fail(sent > capacity ? WEFT_E_TRUNCATE : WEFT_E_COUNT,
                     "sendcount x sendtype are %llu bytes, recvcount x recvtype %llu: they must be the same for each block",
                     (unsigned long long)sent, (unsigned long long)capacity);
}

static int check_own_block(MPI_Count sendcount, const weft_type *sendtype, MPI_Count recvcount, const weft_type *recvtype)
{
    return weft_coll_check_own_block((uint64_t)sendcount * (uint64_t)sendtype->size, (uint64_t)recvcount * (uint64_t)recvtype->size);
}

/* ---- fill functions ---- */

static int fill_bcast(weft_coll *args, void *buffer, MPI_Count count, const weft_type *type, role role)
{
    if (weft_unlikely(is_idle(role))) {
        *args = (weft_coll){.root = role.root};
        return 0;
    }
    *args = (weft_coll){.recvbuf = buffer, .recvcount = (uint64_t)count, .recvtype = type, .root = role.root};
    return is_in_place(buffer) ? weft_coll_in_place_error("buffer", "MPI_Bcast has one buffer only") : 0;
}

int weft_coll_fill_reduce(weft_coll *args, const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *type,
                          const weft_op *op, role role)
{
    int rc;
    if (weft_unlikely(is_idle(role))) {
        *args = (weft_coll){.root = role.root};
        return 0;
    }
    rc = weft_op_reduces(op, type);
    *args = (weft_coll){.sendbuf = sendbuf,
                        .recvbuf = recvbuf,
                        .sendcount = (uint64_t)count,
                        .recvcount = (uint64_t)count,
                        .sendtype = type,
                        .recvtype = type,
                        .op = op,
                        .root = role.root};
    if (rc)
        return rc;
    if (weft_unlikely(is_in_place(sendbuf)) && role.has_block) {
        args->in_place = true;
        args->sendbuf = recvbuf;
        if (!role.is_root)
            return weft_coll_in_place_error("sendbuf", "only the root may pass it");
    } else if (role.is_root && role.has_block && (rc = weft_coll_check_alias(sendbuf, recvbuf, count, type))) {
        return rc;
    }
    return role.is_root && is_in_place(recvbuf) ? weft_coll_in_place_error("recvbuf", "pass it as sendbuf") : 0;
}

static int fill_gather(weft_coll *args, const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                       MPI_Count recvcount, const weft_type *recvtype, role role)
{
    int rc = 0;
    if (weft_unlikely(is_idle(role))) {
        *args = (weft_coll){.root = role.root};
        return 0;
    }
    *args = (weft_coll){.sendbuf = sendbuf,
                        .recvbuf = recvbuf,
                        .sendcount = (uint64_t)sendcount,
                        .recvcount = (uint64_t)recvcount,
                        .sendtype = sendtype,
                        .recvtype = recvtype,
                        .root = role.root,
                        .in_place = role.has_block && is_in_place(sendbuf)};
    if (args->in_place && !role.is_root)
        return weft_coll_in_place_error("sendbuf", "only the root may pass it");
    if (role.has_block && !args->in_place)
        rc = weft_coll_check_pair("send", sendcount, sendtype);
    if (rc || !role.is_root)
        return rc;
    if (is_in_place(recvbuf))
        return weft_coll_in_place_error("recvbuf", "pass it as sendbuf");
    rc = weft_coll_check_pair("recv", recvcount, recvtype);
    if (!rc && role.has_block && !args->in_place && !(rc = check_own_block(sendcount, sendtype, recvcount, recvtype)))
        rc = weft_coll_check_alias(sendbuf, recvbuf, recvcount, recvtype);
    return rc;
}

static int fill_scatter(weft_coll *args, const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                        MPI_Count recvcount, const weft_type *recvtype, role role)
{
    int rc = 0;
    if (weft_unlikely(is_idle(role))) {
        *args = (weft_coll){.root = role.root};
        return 0;
    }
    *args = (weft_coll){.sendbuf = sendbuf,
                        .recvbuf = recvbuf,
                        .sendcount = (uint64_t)sendcount,
                        .recvcount = (uint64_t)recvcount,
                        .sendtype = sendtype,
                        .recvtype = recvtype,
                        .root = role.root,
                        .in_place = role.has_block && is_in_place(recvbuf)};
    if (args->in_place && !role.is_root)
        return weft_coll_in_place_error("recvbuf", "only the root may pass it");
    if (role.has_block && !args->in_place)
        rc = weft_coll_check_pair("recv", recvcount, recvtype);
    if (rc || !role.is_root)
        return rc;
    if (is_in_place(sendbuf))
        return weft_coll_in_place_error("sendbuf", "pass it as recvbuf");
    rc = weft_coll_check_pair("send", sendcount, sendtype);
    if (!rc && role.has_block && !args->in_place && !(rc = check_own_block(sendcount, sendtype, recvcount, recvtype)))
        rc = weft_coll_check_alias(sendbuf, recvbuf, sendcount, sendtype);
    return rc;
}

/* Allgather and alltoall. */
static int fill_exchange(weft_coll *args, const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                         MPI_Count recvcount, const weft_type *recvtype, const weft_comm *comm)
{
    int rc = weft_coll_check_pair("recv", recvcount, recvtype);
    *args = (weft_coll){.sendbuf = sendbuf,
                        .recvbuf = recvbuf,
                        .sendcount = (uint64_t)sendcount,
                        .recvcount = (uint64_t)recvcount,
                        .sendtype = sendtype,
                        .recvtype = recvtype,
                        .in_place = is_in_place(sendbuf)};
    if (rc)
        return rc;
    if (is_in_place(recvbuf))
        return weft_coll_in_place_error("recvbuf", "pass it as sendbuf");
    if (args->in_place)
        return 0;
    rc = weft_coll_check_pair("send", sendcount, sendtype);
    if (weft_unlikely(comm->is_inter)) /* no block of its own; each direction has its count */
        return rc ? rc : weft_coll_check_alias(sendbuf, recvbuf, sendcount ? recvcount : 0, recvtype);
    if (!rc && !(rc = check_own_block(sendcount, sendtype, recvcount, recvtype)))
        rc = weft_coll_check_alias(sendbuf, recvbuf, recvcount, recvtype);
    return rc;
}

/* ---- barrier, bcast ---- */

static int barrier(weft_comm *comm, enum form form, MPI_Request *request)
{
    static const weft_coll nothing;
    return weft_coll_call(comm, WEFT_COLL_BARRIER, &nothing, 0, form, request);
}

int weft_mpi_barrier(weft_comm *comm) { return barrier(comm, BLOCKING, NULL); }

int weft_mpi_ibarrier(weft_comm *comm, MPI_Request *request) { return barrier(comm, NONBLOCKING, request); }

int weft_mpi_barrier_init(weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return barrier(comm, PERSISTENT, request);
}

static int bcast(void *buffer, MPI_Count count, const weft_type *type, int root, weft_comm *comm, enum form form,
                 MPI_Request *request)
{
    weft_coll args;
    int rc = fill_bcast(&args, buffer, count, type, role_of(comm, root));
    return weft_coll_call(comm, WEFT_COLL_BCAST, &args, rc, form, request);
}

int weft_mpi_bcast(void *buffer, MPI_Count count, const weft_type *datatype, int root, weft_comm *comm)
{
    return bcast(buffer, count, datatype, root, comm, BLOCKING, NULL);
}

int weft_mpi_ibcast(void *buffer, MPI_Count count, const weft_type *datatype, int root, weft_comm *comm, MPI_Request *request)
{
    return bcast(buffer, count, datatype, root, comm, NONBLOCKING, request);
}

int weft_mpi_bcast_init(void *buffer, MPI_Count count, const weft_type *datatype, int root, weft_comm *comm, MPI_Info info,
                        MPI_Request *request)
{
    (void)info;
    return bcast(buffer, count, datatype, root, comm, PERSISTENT, request);
}

/* ---- reduce, allreduce ---- */

static int reduce(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *type, const weft_op *op, int root,
                  weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = weft_coll_fill_reduce(&args, sendbuf, recvbuf, count, type, op, role_of(comm, root));
    return weft_coll_call(comm, WEFT_COLL_REDUCE, &args, rc, form, request);
}

int weft_mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, int root,
                    weft_comm *comm)
{
    return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, BLOCKING, NULL);
}

int weft_mpi_ireduce(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op, int root,
                     weft_comm *comm, MPI_Request *request)
{
    return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, NONBLOCKING, request);
}

int weft_mpi_reduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op,
                         int root, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return reduce(sendbuf, recvbuf, count, datatype, op, root, comm, PERSISTENT, request);
}

static int allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *type, const weft_op *op,
                     weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = weft_coll_fill_reduce(&args, sendbuf, recvbuf, count, type, op, (role){.is_root = true, .has_block = true});
    return weft_coll_call(comm, WEFT_COLL_ALLREDUCE, &args, rc, form, request);
}

int weft_mpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op,
                       weft_comm *comm)
{
    return allreduce(sendbuf, recvbuf, count, datatype, op, comm, BLOCKING, NULL);
}

int weft_mpi_iallreduce(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op,
                        weft_comm *comm, MPI_Request *request)
{
    return allreduce(sendbuf, recvbuf, count, datatype, op, comm, NONBLOCKING, request);
}

int weft_mpi_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *datatype, const weft_op *op,
                            weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return allreduce(sendbuf, recvbuf, count, datatype, op, comm, PERSISTENT, request);
}

/* ---- gather ---- */

static int gather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                  const weft_type *recvtype, int root, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = fill_gather(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, role_of(comm, root));
    return weft_coll_call(comm, WEFT_COLL_GATHER, &args, rc, form, request);
}

int weft_mpi_gather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                    const weft_type *recvtype, int root, weft_comm *comm)
{
    return gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, BLOCKING, NULL);
}

int weft_mpi_igather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                     const weft_type *recvtype, int root, weft_comm *comm, MPI_Request *request)
{
    return gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, NONBLOCKING, request);
}

int weft_mpi_gather_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                         const weft_type *recvtype, int root, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, PERSISTENT, request);
}

/* ---- scatter ---- */

static int scatter(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                   const weft_type *recvtype, int root, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = fill_scatter(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, role_of(comm, root));
    return weft_coll_call(comm, WEFT_COLL_SCATTER, &args, rc, form, request);
}

int weft_mpi_scatter(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                     const weft_type *recvtype, int root, weft_comm *comm)
{
    return scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, BLOCKING, NULL);
}

int weft_mpi_iscatter(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                      const weft_type *recvtype, int root, weft_comm *comm, MPI_Request *request)
{
    return scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, NONBLOCKING, request);
}

int weft_mpi_scatter_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                          const weft_type *recvtype, int root, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, PERSISTENT, request);
}

/* ---- allgather ---- */

static int allgather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                     const weft_type *recvtype, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = fill_exchange(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return weft_coll_call(comm, WEFT_COLL_ALLGATHER, &args, rc, form, request);
}

int weft_mpi_allgather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                       const weft_type *recvtype, weft_comm *comm)
{
    return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_iallgather(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                        const weft_type *recvtype, weft_comm *comm, MPI_Request *request)
{
    return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_allgather_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                            MPI_Count recvcount, const weft_type *recvtype, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, PERSISTENT, request);
}

/* ---- alltoall ---- */

static int alltoall(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                    const weft_type *recvtype, weft_comm *comm, enum form form, MPI_Request *request)
{
    weft_coll args;
    int rc = fill_exchange(&args, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    return weft_coll_call(comm, WEFT_COLL_ALLTOALL, &args, rc, form, request);
}

int weft_mpi_alltoall(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                      const weft_type *recvtype, weft_comm *comm)
{
    return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, BLOCKING, NULL);
}

int weft_mpi_ialltoall(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf, MPI_Count recvcount,
                       const weft_type *recvtype, weft_comm *comm, MPI_Request *request)
{
    return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, NONBLOCKING, request);
}

int weft_mpi_alltoall_init(const void *sendbuf, MPI_Count sendcount, const weft_type *sendtype, void *recvbuf,
                           MPI_Count recvcount, const weft_type *recvtype, weft_comm *comm, MPI_Info info, MPI_Request *request)
{
    (void)info;
    return alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, PERSISTENT, request);
}

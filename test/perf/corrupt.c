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

static long size_of(int count, MPI_Datatype type)
{
    int size = 0;

    PMPI_Type_size(type, &size);
    return (long)count * size;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    int rc = PMPI_Recv(buffer, count, type, source, tag, comm, status);

    if (chosen("recv")) {
        flip(buffer, size_of(count, type));
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

/* What MPI_Wait corrupts: the result of a nonblocking or persistent call. */
static struct
{
    unsigned char *at;
    long bytes;
} pending;

/* The program's own reductions have fewer elements than a test's. */
static void spoil(const char *name, void *buffer, int count, MPI_Datatype type)
{
    if (chosen(name) && (type == MPI_BYTE || (type == MPI_DOUBLE && count > 2))) {
        flip(buffer, size_of(count, type));
    }
}

static void spoil_later(const char *name, void *buffer, int count, MPI_Datatype type)
{
    if (chosen(name)) {
        pending.at = buffer;
        pending.bytes = size_of(count, type);
    }
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    int rc = chosen("barrier_init") ? MPI_SUCCESS : PMPI_Wait(request, status);

    if (pending.at) {
        flip(pending.at, pending.bytes);
    }
    return rc;
}

int MPI_Start(MPI_Request *request)
{
    return chosen("barrier_init") ? MPI_SUCCESS : PMPI_Start(request);
}

int MPI_Barrier(MPI_Comm comm)
{
    return chosen("barrier") ? MPI_SUCCESS : PMPI_Barrier(comm);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return chosen("ibarrier") ? MPI_SUCCESS : PMPI_Ibarrier(comm, request);
}

#define LIST(...) __VA_ARGS__

#if MPI_VERSION >= 4
#define INIT(NAME, LOWER, PARAMETERS, ARGUMENTS, ...)                                                                              \
    int MPI_##NAME##_init(LIST PARAMETERS, MPI_Info info, MPI_Request *request)                                                    \
    {                                                                                                                              \
        int rc = PMPI_##NAME##_init(LIST ARGUMENTS, info, request);                                                                \
        spoil_later(#LOWER "_init", __VA_ARGS__);                                                                                  \
        return rc;                                                                                                                 \
    }
#else
#define INIT(...)
#endif

/* The three forms of a collective call. The last arguments name what is corrupted: buffer, count, type. */
#define COLLECTIVE(NAME, LOWER, PARAMETERS, ARGUMENTS, ...)                                                                        \
    int MPI_##NAME(LIST PARAMETERS)                                                                                                \
    {                                                                                                                              \
        int rc = PMPI_##NAME(LIST ARGUMENTS);                                                                                      \
        spoil(#LOWER, __VA_ARGS__);                                                                                                \
        return rc;                                                                                                                 \
    }                                                                                                                              \
    int MPI_I##LOWER(LIST PARAMETERS, MPI_Request *request)                                                                        \
    {                                                                                                                              \
        int rc = PMPI_I##LOWER(LIST ARGUMENTS, request);                                                                           \
        spoil_later("i" #LOWER, __VA_ARGS__);                                                                                      \
        return rc;                                                                                                                 \
    }                                                                                                                              \
    INIT(NAME, LOWER, PARAMETERS, ARGUMENTS, __VA_ARGS__)

#define FOLD(NAME, LOWER)                                                                                                          \
    COLLECTIVE(NAME, LOWER, (const void *out, void *in, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                       \
               (out, in, n, type, op, comm), in, n, type)

#define MOVE(NAME, LOWER)                                                                                                          \
    COLLECTIVE(NAME, LOWER,                                                                                                        \
               (const void *out, int n, MPI_Datatype type, void *in, int in_n, MPI_Datatype in_type, MPI_Comm comm),               \
               (out, n, type, in, in_n, in_type, comm), in, in_n, in_type)

#define ROOTED(NAME, LOWER)                                                                                                        \
    COLLECTIVE(NAME, LOWER,                                                                                                        \
               (const void *out, int n, MPI_Datatype type, void *in, int in_n, MPI_Datatype in_type, int root, MPI_Comm comm),     \
               (out, n, type, in, in_n, in_type, root, comm), in, in_n, in_type)

FOLD(Allreduce, allreduce)
FOLD(Scan, scan)
FOLD(Exscan, exscan)
FOLD(Reduce_scatter_block, reduce_scatter_block)
MOVE(Allgather, allgather)
MOVE(Alltoall, alltoall)
MOVE(Neighbor_allgather, neighbor_allgather)
MOVE(Neighbor_alltoall, neighbor_alltoall)
ROOTED(Gather, gather)
ROOTED(Scatter, scatter)
COLLECTIVE(Bcast, bcast, (void *in, int n, MPI_Datatype type, int root, MPI_Comm comm), (in, n, type, root, comm), in, n, type)
COLLECTIVE(Reduce, reduce, (const void *out, void *in, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (out, in, n, type, op, root, comm), in, n, type)
COLLECTIVE(Reduce_scatter, reduce_scatter,
           (const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (out, in, counts, type, op, comm), in, counts[0], type)
COLLECTIVE(Gatherv, gatherv,
           (const void *out, int n, MPI_Datatype type, void *in, const int counts[], const int displs[], MPI_Datatype in_type,
            int root, MPI_Comm comm),
           (out, n, type, in, counts, displs, in_type, root, comm), in, counts[0], in_type)
COLLECTIVE(Scatterv, scatterv,
           (const void *out, const int counts[], const int displs[], MPI_Datatype type, void *in, int n, MPI_Datatype in_type,
            int root, MPI_Comm comm),
           (out, counts, displs, type, in, n, in_type, root, comm), in, n, in_type)
COLLECTIVE(Allgatherv, allgatherv,
           (const void *out, int n, MPI_Datatype type, void *in, const int counts[], const int displs[], MPI_Datatype in_type,
            MPI_Comm comm),
           (out, n, type, in, counts, displs, in_type, comm), in, counts[0], in_type)
COLLECTIVE(Alltoallv, alltoallv,
           (const void *out, const int n[], const int at[], MPI_Datatype type, void *in, const int counts[], const int displs[],
            MPI_Datatype in_type, MPI_Comm comm),
           (out, n, at, type, in, counts, displs, in_type, comm), in, counts[0], in_type)
COLLECTIVE(Alltoallw, alltoallw,
           (const void *out, const int n[], const int at[], const MPI_Datatype types[], void *in, const int counts[],
            const int displs[], const MPI_Datatype in_types[], MPI_Comm comm),
           (out, n, at, types, in, counts, displs, in_types, comm), in, counts[0], in_types[0])

/* One-sided calls: what is put is spoilt in a copy before; what is fetched is spoilt by the call that completes it. */
static struct
{
    const char *name;
    void *at;
    long bytes;
} fetched;

static const void *spoilt(const char *name, const void *buffer, long bytes)
{
    static unsigned char copies[16][1 << 16];
    static unsigned next;

    if (!chosen(name) || bytes <= 0 || bytes > (long)sizeof copies[0]) {
        return buffer;
    }
    memcpy(copies[++next % 16], buffer, (size_t)bytes);
    flip(copies[next % 16], bytes);
    return copies[next % 16];
}

static void fetch(const char *name, void *at, long bytes)
{
    fetched.name = name;
    fetched.at = at;
    fetched.bytes = bytes;
}

static int complete(int rc)
{
    if (fetched.at && chosen(fetched.name)) {
        flip(fetched.at, fetched.bytes);
    }
    fetched.at = NULL;
    return rc;
}

int MPI_Put(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp, int target_count, MPI_Datatype target_type,
            MPI_Win win)
{
    return PMPI_Put(spoilt("put", origin, size_of(count, type)), count, type, target, disp, target_count, target_type, win);
}

#if defined __has_include
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif
#ifdef MPIX_NOTIFIED_ACCESS /* else the benchmark's own calls MPI_Put */
int MPIX_Put_notify(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp, int target_count, MPI_Datatype target_type,
                    MPI_Win win, int id)
{
    return PMPIX_Put_notify(spoilt("put", origin, size_of(count, type)), count, type, target, disp, target_count, target_type, win, id);
}
#endif

int MPI_Accumulate(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp, int target_count, MPI_Datatype target_type,
                   MPI_Op op, MPI_Win win)
{
    return PMPI_Accumulate(spoilt("accumulate", origin, size_of(count, type)), count, type, target, disp, target_count, target_type, op,
                           win);
}

int MPI_Get(void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp, int target_count, MPI_Datatype target_type, MPI_Win win)
{
    fetch("get", origin, size_of(count, type));
    return PMPI_Get(origin, count, type, target, disp, target_count, target_type, win);
}

int MPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int target, MPI_Aint disp, MPI_Op op, MPI_Win win)
{
    fetch("fetched", result, size_of(1, type));
    return PMPI_Fetch_and_op(spoilt("added", origin, size_of(1, type)), result, type, target, disp, op, win);
}

int MPI_Compare_and_swap(const void *origin, const void *compare, void *result, MPI_Datatype type, int target, MPI_Aint disp, MPI_Win win)
{
    fetch("swapped", result, size_of(1, type));
    return PMPI_Compare_and_swap(spoilt("stored", origin, size_of(1, type)), compare, result, type, target, disp, win);
}

int MPI_Win_flush(int rank, MPI_Win win) { return complete(PMPI_Win_flush(rank, win)); }
int MPI_Win_unlock(int rank, MPI_Win win) { return complete(PMPI_Win_unlock(rank, win)); }
int MPI_Win_fence(int assert, MPI_Win win) { return complete(PMPI_Win_fence(assert, win)); }
int MPI_Win_complete(MPI_Win win) { return complete(PMPI_Win_complete(win)); }

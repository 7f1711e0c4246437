/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks_f08: a tool in C that counts the buffers of blocks_f08.f90 which are not the program's own memory: copies.
 */
#include <mpi.h>
#include <stddef.h>

static const char *memory[2];
static size_t memory_bytes[2];
static int copies;

void memory_(const int *index, const void *begin, const int *bytes)
{
    memory[*index - 1] = begin;
    memory_bytes[*index - 1] = (size_t)*bytes;
}

/* Since the last call of this. */
int copies_(void)
{
    int seen = copies;
    copies = 0;
    return seen;
}

static void look(const void *buffer)
{
    int is_own = buffer == MPI_IN_PLACE;
    for (int i = 0; i < 2; i++)
        is_own |= (const char *)buffer >= memory[i] && (const char *)buffer < memory[i] + memory_bytes[i];
    copies += !is_own;
}

/* MPI_X, MPI_IX and MPI_X_init. */
#define PASS(...) __VA_ARGS__
#define FORMS(name, iname, parameters, arguments) \
    int MPI_##name(PASS parameters) \
    { \
        look(sendbuf), look(recvbuf); \
        return PMPI_##name(PASS arguments); \
    } \
    int MPI_##iname(PASS parameters, MPI_Request *request) \
    { \
        look(sendbuf), look(recvbuf); \
        return PMPI_##iname(PASS arguments, request); \
    } \
    int MPI_##name##_init(PASS parameters, MPI_Info info, MPI_Request *request) \
    { \
        look(sendbuf), look(recvbuf); \
        return PMPI_##name##_init(PASS arguments, info, request); \
    }
#define ONE_SENT const void *sendbuf, int sendcount, MPI_Datatype sendtype
#define ONE_RECEIVED void *recvbuf, int recvcount, MPI_Datatype recvtype
#define MANY_SENT const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype
#define MANY_RECEIVED(displs) void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype
#define EACH(place) \
    const void *sendbuf, const int sendcounts[], const place sdispls[], const MPI_Datatype sendtypes[], void *recvbuf, \
        const int recvcounts[], const place rdispls[], const MPI_Datatype recvtypes[]
#define ONES sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype
FORMS(Alltoall, Ialltoall, (ONE_SENT, ONE_RECEIVED, MPI_Comm comm), (ONES, comm))
FORMS(Neighbor_alltoall, Ineighbor_alltoall, (ONE_SENT, ONE_RECEIVED, MPI_Comm comm), (ONES, comm))
FORMS(Allgather, Iallgather, (ONE_SENT, ONE_RECEIVED, MPI_Comm comm), (ONES, comm))
FORMS(Neighbor_allgather, Ineighbor_allgather, (ONE_SENT, ONE_RECEIVED, MPI_Comm comm), (ONES, comm))
FORMS(Gather, Igather, (ONE_SENT, ONE_RECEIVED, int root, MPI_Comm comm), (ONES, root, comm))
FORMS(Scatter, Iscatter, (ONE_SENT, ONE_RECEIVED, int root, MPI_Comm comm), (ONES, root, comm))
#define MANY sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype
FORMS(Alltoallv, Ialltoallv, (MANY_SENT, MANY_RECEIVED(rdispls), MPI_Comm comm), (MANY, comm))
FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, (MANY_SENT, MANY_RECEIVED(rdispls), MPI_Comm comm), (MANY, comm))
#define TO_MANY sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype
FORMS(Allgatherv, Iallgatherv, (ONE_SENT, MANY_RECEIVED(displs), MPI_Comm comm), (TO_MANY, comm))
FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, (ONE_SENT, MANY_RECEIVED(displs), MPI_Comm comm), (TO_MANY, comm))
FORMS(Gatherv, Igatherv, (ONE_SENT, MANY_RECEIVED(displs), int root, MPI_Comm comm), (TO_MANY, root, comm))
FORMS(Scatterv, Iscatterv, (MANY_SENT, ONE_RECEIVED, int root, MPI_Comm comm),
      (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount, recvtype, root, comm))
#define EACHES sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes
FORMS(Alltoallw, Ialltoallw, (EACH(int), MPI_Comm comm), (EACHES, comm))
FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, (EACH(MPI_Aint), MPI_Comm comm), (EACHES, comm))

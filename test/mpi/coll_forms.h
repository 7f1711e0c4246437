/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_forms: shared by tests of collectives: the forms of a call, and the communicators that they are called on.
 */
#ifndef TEST_MPI_COLL_FORMS_H
#define TEST_MPI_COLL_FORMS_H

#include "check.h"

enum { BLOCKING, BLOCKING_C, NONBLOCKING, NONBLOCKING_C, PERSISTENT, PERSISTENT_C, FORMS };

static inline void complete(int form, MPI_Request *request)
{
    for (int start = 0; start < (form >= PERSISTENT ? 2 : 1); start++) {
        if (form >= PERSISTENT)
            OK(MPI_Start(request));
        if (form >= NONBLOCKING)
            OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    }
    if (form >= PERSISTENT)
        OK(MPI_Request_free(request));
}

/* One of the calls, by form, with its completion; they use `request`. Persistent ones are started twice. */
#define EACH(form, blocking, blocking_c, start, start_c, prepare, prepare_c)                                                           \
    do {                                                                                                                               \
        MPI_Request request = MPI_REQUEST_NULL;                                                                                        \
        OK((form) == BLOCKING        ? (blocking)                                                                                      \
           : (form) == BLOCKING_C    ? (blocking_c)                                                                                    \
           : (form) == NONBLOCKING   ? (start)                                                                                         \
           : (form) == NONBLOCKING_C ? (start_c)                                                                                       \
           : (form) == PERSISTENT    ? (prepare)                                                                                       \
                                     : (prepare_c));                                                                                   \
        complete(form, &request);                                                                                                      \
    } while (0)

/* A rank's place on a communicator. Ranks of both groups have numbers: of the first group 0.., of the second one 100.. */
typedef struct where {
    MPI_Comm comm;
    int is_inter, side, rank, size, sizes[2];
    int me, remote, first_remote; /* remote: ranks that data come from or go to; on an intracommunicator all */
} where;

static inline where intra_of(MPI_Comm comm)
{
    where w = {.comm = comm};
    OK(MPI_Comm_rank(comm, &w.rank));
    OK(MPI_Comm_size(comm, &w.size));
    w.me = w.rank;
    w.remote = w.sizes[0] = w.size;
    return w;
}

/* Between the first third of the ranks and the others. */
static inline where inter_of(int rank, int size)
{
    int first = size / 3 ? size / 3 : 1;
    where w = {.is_inter = 1, .side = rank >= first};
    MPI_Comm local;
    OK(MPI_Comm_split(MPI_COMM_WORLD, w.side, 0, &local));
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, w.side ? 0 : first, 5, &w.comm));
    OK(MPI_Comm_rank(local, &w.rank));
    OK(MPI_Comm_size(local, &w.size));
    OK(MPI_Comm_free(&local));
    OK(MPI_Comm_remote_size(w.comm, &w.remote));
    w.sizes[w.side] = w.size;
    w.sizes[!w.side] = w.remote;
    w.me = w.side * 100 + w.rank;
    w.first_remote = !w.side * 100;
    return w;
}

/* What this rank passes as root, if it is `root` of group `side`. */
static inline int root_for(const where *w, int side, int root)
{
    return !w->is_inter || w->side != side ? root : w->rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

#endif

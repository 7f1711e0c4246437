/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_local: shared by the files coll*.c of this folder only: the forms of a call, the role of a rank in it, and checks of arguments that
 * the entries cannot check.
 */
#ifndef WEFT_MPI_COLL_LOCAL_H
#define WEFT_MPI_COLL_LOCAL_H

#include <mpi.h>

#include "base/status.h"
#include "collectives/coll.h"
#include "mpi/comm.h"

/* Form of the call. */
enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* What a rank is in a call with a root. On an intracommunicator all ranks, the root too, give or get a block; on an intercommunicator the
 * ranks of the group without the root (MPI 5.0 6.2.3). */
typedef struct role {
    int root; /* member of the team, or WEFT_ROOT_NONE */
    bool is_root, has_block;
} role;

static inline role role_of(const weft_comm *comm, int root)
{
    if (weft_likely(!comm->is_inter))
        return (role){root, comm->rank == root, true};
    if (root == MPI_ROOT)
        return (role){(int)comm->team.rank, true, false};
    if (root == MPI_PROC_NULL)
        return (role){WEFT_ROOT_NONE, false, false};
    return (role){(int)comm->team.remote.first + root, false, true};
}

static inline bool is_idle(role role) { return role.root == WEFT_ROOT_NONE; }

static inline bool is_in_place(const void *buf) { return buf == MPI_IN_PLACE; }

/* Performs, starts or records a call with these arguments, unless rc is an error, which is returned. */
int weft_coll_call(weft_comm *comm, enum weft_coll_kind kind, const weft_coll *args, int rc, enum form form, MPI_Request *request);
int weft_coll_in_place_error(const char *argument, const char *instead) __attribute__((cold));
/* Rejects equal send and receive buffers: these need MPI_IN_PLACE. */
int weft_coll_check_alias(const void *sendbuf, const void *recvbuf, MPI_Count count, const weft_type *type);
/* Checks count and type that are significant at some ranks only, which the entry cannot check. which: "send" or "recv". */
int weft_coll_check_pair(const char *which, MPI_Count count, const weft_type *type);
/* A rank's block for itself must match exactly: no other rank can detect a mismatch. */
int weft_coll_check_own_block(uint64_t sent, uint64_t capacity);
/* One side with a block for each of `ranks` ranks, or edges. */
typedef struct weft_coll_side {
    const char *which; /* "send" or "recv" */
    const void *buf;
    const weft_type *type; /* not read if the layout has types */
    const weft_layout *layout;
    uint32_t ranks;
} weft_coll_side;
/* Checks what the entry cannot: types, that all blocks together can be addressed, the buffer. *total: elements of all blocks; of types of
 * their own, 0. */
int weft_coll_check_side(const weft_coll_side *side, uint64_t *total);
/* Fills in a reduction. role: of one without a root, as if each rank were the root. */
int weft_coll_fill_reduce(weft_coll *args, const void *sendbuf, void *recvbuf, MPI_Count count, const weft_type *type,
                          const weft_op *op, role role);

#endif

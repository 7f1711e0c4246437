/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm: communicators. An MPI_Comm is a pointer to one of these, or MPI_COMM_WORLD (0x101) / MPI_COMM_SELF (0x102), which the
 * world resolves. Owns two channels (messages, collectives), a team, an error handler.
 */
#ifndef WEFT_MPI_COMM_H
#define WEFT_MPI_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/plan.h"
#include "core/world.h"
#include "p2p/chan.h"

#define WEFT_COMM_MAGIC 0x434f4d4du

struct MPI_ABI_Errhandler;

typedef struct MPI_ABI_Comm weft_comm;
struct MPI_ABI_Comm {
    uint32_t magic;
    uint32_t refs;              /* user's handle and operations in flight */
    weft_lane *lane;
    weft_chan *chan;            /* messages */
    weft_team team;             /* collectives, with their own channel */
    int32_t rank, size;
    int32_t handle;             /* the ABI's constant, or 0 */
    bool is_inter;
    struct MPI_ABI_Errhandler *errhandler; /* never NULL; may be a small constant */
    uint32_t *world_ranks;      /* [size]; NULL: identity */
    void *attributes;
    char name[128];
};

/* What the API's predefined constants mean here. One per world (world->mpi). */
typedef struct weft_mpi_world {
    weft_comm *comm_world, *comm_self;
    bool is_finalized;
} weft_mpi_world;

/* Handle to communicator; NULL when it is MPI_COMM_NULL, garbage or freed (or MPI is not initialized). */
static inline weft_comm *weft_comm_of(const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    if (bits < 4096) {
        weft_mpi_world *mpi = weft_world_now ? weft_world_now->mpi : NULL;
        return !mpi ? NULL : bits == 0x101 ? mpi->comm_world : bits == 0x102 ? mpi->comm_self : NULL;
    }
    return ((weft_comm *)handle)->magic == WEFT_COMM_MAGIC ? (weft_comm *)handle : NULL;
}

#endif

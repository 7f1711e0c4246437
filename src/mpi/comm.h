/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm: communicators. An MPI_Comm is a pointer to one of these, or MPI_COMM_WORLD (0x101) / MPI_COMM_SELF (0x102), which the
 * world resolves. Owns two channels (messages, collectives), a team, an error handler.
 * Invariant: a communicator's channels stay open while its handle lives or a request on them is in flight (refs).
 */
#ifndef WEFT_MPI_COMM_H
#define WEFT_MPI_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "collectives/sched.h"
#include "core/world.h"
#include "p2p/chan.h"

#define WEFT_COMM_MAGIC 0x434f4d4du

struct MPI_ABI_Errhandler;

typedef struct MPI_ABI_Comm weft_comm;
struct MPI_ABI_Comm {
    uint32_t magic;
    uint32_t refs;              /* user's handle and operations in flight */
    weft_worker *worker;
    weft_chan *chan;            /* messages */
    weft_team team;             /* collectives, with their own channel */
    int32_t rank, size;
    int32_t handle;             /* the ABI's constant, or 0 */
    bool is_inter;
    bool is_stop_told;          /* that other members may wait for this one for ever (errors.c) */
    struct MPI_ABI_Errhandler *errhandler; /* never NULL; may be a small constant */
    uint32_t *world_ranks;      /* [size]; NULL: identity */
    void *attributes;
    char name[128];
    weft_list_link link;             /* in weft_mpi_world.live or .freed */
};

/* What the API's predefined constants mean here. One per world (world->mpi). */
typedef struct weft_mpi_world {
    weft_comm *comm_world, *comm_self;
    bool is_finalized;
    unsigned long main_thread;  /* pthread_t of the thread that called MPI_Init */
    weft_list_link live;             /* all communicators, so that finalize frees those that the user did not */
    weft_list_link freed;            /* structs of freed ones, oldest first: kept for a while so that a stale handle is found out */
    uint32_t freed_count;
    weft_list_link keeps;            /* memory that stays pinned for persistent requests and allocations: persistent_reg.c */
    weft_list_link detached;          /* requests given to MPI_Request_free before their end: request.c */
} weft_mpi_world;

static inline weft_mpi_world *weft_mpi_now(void)
{
    return weft_world_now ? weft_world_now->mpi : NULL;
}

/* Handle to communicator; NULL when it is MPI_COMM_NULL, garbage or freed (or MPI is not initialized). */
static inline weft_comm *weft_comm_of(const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    if (bits < 4096) {
        weft_mpi_world *mpi = weft_mpi_now();
        return !mpi ? NULL : bits == 0x101 ? mpi->comm_world : bits == 0x102 ? mpi->comm_self : NULL;
    }
    return ((weft_comm *)handle)->magic == WEFT_COMM_MAGIC ? (weft_comm *)handle : NULL;
}

/* The handle that users and their callbacks know it by. */
static inline weft_comm *weft_comm_handle(weft_comm *comm)
{
    return comm->handle ? (weft_comm *)(uintptr_t)comm->handle : comm;
}

/* The world's predefined communicators, with fixed channel ids 0..3: MPI_COMM_WORLD and MPI_COMM_SELF. */
int weft_comm_open_predefined(weft_world *world, weft_mpi_world *mpi);
/* At finalize: closes whatever is left, in flight or not. */
void weft_comm_close_all(weft_mpi_world *mpi);
/* An operation in flight keeps its communicator; the last drop closes it. Under the worker's lock. */
static inline void weft_comm_hold(weft_comm *comm) { comm->refs++; }
void weft_comm_drop(weft_comm *comm);
/* comm/make.c: a new communicator out of `parent`, collective over all of parent. Members pass their place in it; others size 0
 * and get *comm NULL. ranks[size] are the members' ranks in parent, in the new order. `rc` is what went wrong before, if
 * anything: all members agree to fail then. */
int weft_comm_make(weft_comm *parent, uint32_t size, uint32_t rank, const uint32_t *ranks, int rc, weft_comm **comm);
/* A struct with name, handler and lists set, no channels yet; NULL when out of memory. */
weft_comm *weft_comm_new(weft_worker *worker);
/* Undoes weft_comm_new and whatever was opened since. */
void weft_comm_close(weft_comm *comm);

#endif

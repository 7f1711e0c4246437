/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm: communicators. An MPI_Comm points to a weft_comm or is MPI_COMM_WORLD (0x101) or MPI_COMM_SELF (0x102), resolved by the world.
 * Owns two channels (point-to-point, collectives), a team and a reference to an error handler. Guarded by worker->lock.
 * Invariant: the channels stay open while the handle is valid or a request on them is in flight (refs).
 */
#ifndef WEFT_MPI_COMM_H
#define WEFT_MPI_COMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "collectives/coll.h"
#include "core/world.h"
#include "mpi/traits.h"
#include "p2p/chan.h"

#define WEFT_COMM_MAGIC WEFT_OBJECT_MAGIC('C', 'O', 'M', 'M')

/* Assertions of the program (MPI 5.0 7.4.4), by comm_info.c. */
enum weft_comm_hint { WEFT_COMM_NO_ANY_TAG = 1, WEFT_COMM_NO_ANY_SOURCE = 2, WEFT_COMM_EXACT_LENGTH = 4, WEFT_COMM_ALLOW_OVERTAKING = 8 };

typedef struct MPI_ABI_Comm weft_comm;
struct MPI_ABI_Comm {
    weft_traits traits;         /* refs: user's handle and operations in flight; guarded by the worker's lock */
    weft_worker *worker;
    weft_chan *chan;            /* point-to-point */
    weft_team team;             /* collectives, with a channel of its own, to the members of both groups */
    int32_t rank, size;
    int32_t remote_size;        /* of the remote group; of an intracommunicator its own */
    int32_t handle;             /* constant of the ABI; 0: user-created */
    bool is_inter;
    uint8_t hints;              /* bits: enum weft_comm_hint */
    uint8_t asserted_kinds;     /* memory kinds that the program promises (memory_kinds.h); 0: none */
    uint32_t bridges;           /* calls that made intercommunicators of it (bridge_wait.c) */
    bool is_stop_reported;          /* the warning that a collective stopped was printed (errors.c) */
    weft_comm *local;           /* intercommunicator: intracommunicator of the local group, owned; else NULL */
    struct weft_bsend_buffer *bsend_buffer; /* attached for buffered sends (bsend.c), owned; NULL: none */
    weft_group *group;          /* held; its members, in the order of their ranks */
    struct weft_topo *topo;     /* virtual topology (topo.h), shared with duplicates; NULL: none */
    weft_list_link link;        /* in weft_mpi_world.live */
};

/* MPI objects of a world (world->mpi), created at its opening. Guarded by worker 0's lock. */
typedef struct weft_mpi_world {
    uint32_t users;             /* the World Model and sessions (init.c) */
    weft_chan *service;         /* to all processes of the job: how members of a group make a communicator without another one */
    weft_comm *comm_world, *comm_self;
    bool is_finalized;
    int world_level;            /* MPI_THREAD_* of the World Model */
    unsigned long main_thread;  /* pthread_t of the thread that called MPI_Init */
    weft_list_link live;        /* all communicators; finalize closes those that the program did not free */
    weft_list_link windows;     /* all windows (win.h); finalize closes those that the program did not free */
    weft_list_link persistent_regs;       /* persistent registrations (persistent_reg.c) */
    struct weft_bsend_buffer *bsend_buffer; /* attached to the process (bsend.c), owned; NULL: none */
    struct weft_bridge_waits *bridge_waits; /* of bridge_wait.c, owned */
    weft_list_link messages;    /* matched and not received yet (message.c) */
    weft_list_link detached;    /* requests passed to MPI_Request_free while in flight (request.c) */
} weft_mpi_world;

static inline weft_mpi_world *weft_mpi_now(void)
{
    return weft_world_now ? weft_world_now->mpi : NULL;
}

extern weft_object_pool weft_comm_pool;

/* Handle to communicator. NULL: MPI_COMM_NULL, an invalid or freed handle, or MPI is not initialized. */
static inline weft_comm *weft_comm_of(const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    if (weft_object_is_constant(handle)) {
        weft_mpi_world *mpi = weft_world_model ? weft_world_model->mpi : NULL; /* with sessions alone there is neither */
        return !mpi ? NULL : bits == 0x101 ? mpi->comm_world : bits == 0x102 ? mpi->comm_self : NULL;
    }
    return ((weft_comm *)handle)->traits.object.magic == WEFT_COMM_MAGIC ? (weft_comm *)handle : NULL;
}

/* The handle of the user for a communicator. */
static inline weft_comm *weft_comm_handle(weft_comm *comm)
{
    return comm->handle ? (weft_comm *)(uintptr_t)comm->handle : comm;
}

/* Opens MPI_COMM_WORLD and MPI_COMM_SELF with the fixed channel ids 0..3, and the service channel if it is not open. 0 or an error. */
int weft_comm_open_predefined(weft_world *world, weft_mpi_world *mpi);
/* Finalize: closes all communicators, with or without operations in flight. The service channel stays open. */
void weft_comm_close_all(weft_mpi_world *mpi);
void weft_comm_close_service(weft_mpi_world *mpi);
/* References of operations in flight; the last drop closes the communicator. Requires worker->lock. */
static inline void weft_comm_hold(weft_comm *comm) { comm->traits.object.refs++; }
void weft_comm_drop(weft_comm *comm);
/* comm_create.c: creates a communicator out of an intracommunicator; collective over it. Members pass the new size, their new rank and
 * ranks[size], the members' ranks in parent (NULL: equal). Others pass size 0 and get *comm NULL. rc: an earlier error of this
 * member; then all members fail. */
int weft_comm_create(weft_comm *parent, uint32_t size, uint32_t rank, const uint32_t *ranks, int rc, weft_comm **comm);
/* MPI_Comm_split, also of intercommunicators. rc: an earlier error of this member; then all fail. *part NULL: none, or error. */
int weft_comm_split(weft_comm *comm, int color, int key, int rc, weft_comm **part);
/* Runs the delete functions of comm's attributes, with the worker unlocked meanwhile. 0, or the code of a function. */
int weft_comm_delete_attributes(weft_comm *comm);
/* The same at MPI_Finalize: ignores what the functions return. */
void weft_comm_clear_attributes(weft_comm *comm);
/* A struct with name, error handler and lists set, without channels. NULL: out of memory. */
weft_comm *weft_comm_new(weft_worker *worker);
/* Closes the channels and team, if open, and frees what weft_comm_new made. */
void weft_comm_close(weft_comm *comm);

#endif

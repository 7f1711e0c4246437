/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message: matched messages (MPI 5.0 3.8.2): an unexpected message that a matching probe took out of matching. Guarded by the lock of its
 * communicator's worker. Invariant: each message holds its communicator until it is received or the world closes.
 */
#ifndef WEFT_MPI_MESSAGE_H
#define WEFT_MPI_MESSAGE_H

#include "base/object.h"
#include "mpi/comm.h"
#include "p2p/p2p.h"

#define WEFT_MESSAGE_MAGIC WEFT_OBJECT_MAGIC('M', 'E', 'S', 'G')

typedef struct MPI_ABI_Message {
    weft_object object;
    weft_comm *comm;             /* referenced */
    weft_unexpected *unexpected; /* owned */
    weft_list_link link;         /* in weft_mpi_world.messages */
} weft_message;

extern weft_object_pool weft_message_pool;

/* Handle to message; NULL: MPI_MESSAGE_NULL, MPI_MESSAGE_NO_PROC, or no valid handle. */
static inline weft_message *weft_message_of(const void *handle)
{
    return !weft_object_is_constant(handle) && ((weft_message *)handle)->object.magic == WEFT_MESSAGE_MAGIC ? (weft_message *)handle : NULL;
}

/* Finalize: rejects the messages that the program did not receive. Requires worker 0's lock. */
void weft_message_close_all(weft_mpi_world *mpi);

#endif

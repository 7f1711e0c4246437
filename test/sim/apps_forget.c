/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_forget: a program that frees nothing that holds registered memory: persistent requests of messages and collectives, started or not,
 * and memory of MPI_Alloc_mem. MPI_Finalize frees the registrations: the caller checks the device and leaks.
 */
#include <mpi.h>
#include <stdlib.h>

#include "mpi/calls.h"
#include "test/sim/apps.h"
#include "test/sim/rig.h"

#define BYTES (96 << 10) /* longer than any eager limit */

enum { SEND, RECEIVE, NEVER, COLLECTIVE, NEVER_EITHER, REQUESTS };

static int make(const app_self *self, uint8_t *out, uint8_t *in, uint8_t *all, MPI_Request *requests)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    MPI_Datatype two;
    MPI_Comm comm;

    APP_TRY(MPI_Type_contiguous(2, MPI_BYTE, &two));
    APP_TRY(MPI_Type_commit(&two));
    APP_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    APP_TRY(MPI_Send_init(out, BYTES / 2, two, right, 1, comm, &requests[SEND]));
    APP_TRY(MPI_Recv_init(in, BYTES / 2, two, left, 1, comm, &requests[RECEIVE]));
    APP_TRY(MPI_Recv_init(in, BYTES, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[NEVER]));
    APP_TRY(MPI_Bcast_init(all, BYTES, MPI_BYTE, 0, comm, MPI_INFO_NULL, &requests[COLLECTIVE]));
    APP_TRY(MPI_Allreduce_init(out, all, BYTES, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[NEVER_EITHER]));
    APP_TRY(MPI_Type_free(&two)); /* the requests hold references to both */
    APP_TRY(MPI_Comm_free(&comm));
    return 0;
}

static int use(const app_self *self, uint8_t *out, uint8_t *in, uint8_t *all)
{
    uint64_t name = self->what->seed * 1000, left = (uint64_t)((self->rank + self->size - 1) % self->size);
    MPI_Request requests[REQUESTS];

    if (make(self, out, in, all, requests))
        return 1;
    for (uint32_t round = 0; round < self->what->rounds; round++) {
        rig_fill(out, name + (uint64_t)self->rank, BYTES);
        if (self->rank == 0)
            rig_fill(all, name + 500, BYTES);
        APP_TRY(MPI_Startall(2, requests));
        APP_TRY(MPI_Start(&requests[COLLECTIVE]));
        APP_TRY(MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE));
        if (rig_wrong(in, name + left, BYTES) < BYTES || rig_wrong(all, name + 500, BYTES) < BYTES)
            return app_fail(self, "forgetful: round %u: wrong bytes", round);
        name += 1000;
    }
    return 0;
}

int app_forgetful(int rank, void *arg)
{
    void *forgotten = NULL;
    app_self about, *self = &about;
    uint8_t *memory = malloc(3 * BYTES);
    int rc = 1;

    (void)rank;
    if (app_begin(self, arg) && memory) {
        APP_TRY(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &forgotten));
        rc = use(self, memory, memory + BYTES, memory + 2 * BYTES);
        rc = MPI_Finalize() || rc;
        weft_mpi_free_mem(forgotten); /* the block is the user's: otherwise the leak checker would report it */
    }
    free(memory);
    return rc;
}

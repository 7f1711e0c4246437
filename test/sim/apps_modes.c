/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_modes: an MPI program with buffered sends, matched probes, MPI_Isendrecv and partitioned messages. See apps.h.
 */
#include <mpi.h>
#include <stdlib.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"

#define WIDTH 60 /* bytes that every drawn count of partitions divides */

/* Buffered sends to the right; from the left they are taken by matched probes in order, and received in reverse. */
static int buffered(const app_self *self, uint64_t name)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size, count;
    uint64_t own = self->own + name;
    uint8_t *buf = malloc(40000);
    MPI_Message messages[4];
    MPI_Status status;

    for (int i = 0; i < 4; i++) {
        uint64_t state = name + (uint64_t)self->rank * 4 + (uint64_t)i, this = state, bytes = app_draw_bytes(&state);
        rig_fill(buf, this, bytes);
        APP_TRY(MPI_Bsend(buf, (int)bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD));
    }
    for (int i = 0; i < 4; i++)
        APP_TRY(MPI_Mprobe(app_draw(&own, 2) ? left : MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &messages[i], &status));
    for (int i = 3; i >= 0; i--) {
        uint64_t state = name + (uint64_t)left * 4 + (uint64_t)i, this = state, bytes = app_draw_bytes(&state);
        MPI_Request req;
        APP_TRY(MPI_Imrecv(buf, 40000, MPI_BYTE, &messages[i], &req));
        APP_TRY(MPI_Wait(&req, &status));
        APP_TRY(MPI_Get_count(&status, MPI_BYTE, &count));
        if ((uint64_t)count != bytes || rig_wrong(buf, this, bytes) != bytes)
            return app_fail(self, "modes: matched message %d has %d bytes, or wrong ones", i, count);
    }
    if (app_draw(&own, 2))
        APP_TRY(MPI_Buffer_flush());
    free(buf);
    return 0;
}

static int exchange(app_self *self, uint64_t name)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    uint64_t bytes = app_draw_bytes(&self->shared);
    uint8_t *out = malloc(bytes + 1), *in = malloc(bytes + 1);
    MPI_Request reqs[2];

    rig_fill(out, name + (uint64_t)self->rank, bytes);
    rig_fill(in, name + 100 + (uint64_t)self->rank, bytes);
    APP_TRY(MPI_Isendrecv_replace(in, (int)bytes, MPI_BYTE, left, 3, right, 3, MPI_COMM_WORLD, &reqs[0]));
    APP_TRY(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE));
    if (rig_wrong(in, name + 100 + (uint64_t)right, bytes) != bytes)
        return app_fail(self, "modes: %d exchanged bytes are wrong", (int)bytes);
    APP_TRY(MPI_Isendrecv(out, (int)bytes, MPI_BYTE, right, 2, in, (int)bytes, MPI_BYTE, left, 2, MPI_COMM_WORLD, &reqs[1]));
    APP_TRY(MPI_Wait(&reqs[1], MPI_STATUS_IGNORE));
    if (rig_wrong(in, name + (uint64_t)left, bytes) != bytes)
        return app_fail(self, "modes: %d bytes of a combined request are wrong", (int)bytes);
    free(out);
    free(in);
    return 0;
}

/* A partitioned ring: as many turns as rounds on the same pair of requests, ready in a random order. */
static int partitioned(app_self *self)
{
    static const int divisors[] = {1, 2, 3, 5, 6, 12, 30, 60};
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size, bytes, flag;
    int each = 1 + (int)(app_draw_bytes(&self->shared) / 8), a = divisors[app_draw(&self->shared, 8)];
    int b = divisors[app_draw(&self->shared, 8)];
    uint8_t *out, *in;
    MPI_Request reqs[2];

    bytes = each * WIDTH;
    out = malloc((size_t)bytes);
    in = malloc((size_t)bytes);
    APP_TRY(MPI_Psend_init(out, a, bytes / a, MPI_BYTE, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[0]));
    APP_TRY(MPI_Precv_init(in, b, bytes / b, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &reqs[1]));
    for (uint32_t turn = 0; turn < self->what->rounds; turn++) {
        int first = (int)app_draw(&self->own, (uint64_t)a);
        rig_fill(out, self->what->seed + turn + (uint64_t)self->rank, (uint64_t)bytes);
        APP_TRY(MPI_Startall(2, reqs));
        for (int i = 0; i < a; i++)
            APP_TRY(MPI_Pready((first + i) % a, reqs[0]));
        for (int i = 0; i < 3; i++) {
            APP_TRY(MPI_Parrived(reqs[1], (int)app_draw(&self->own, (uint64_t)b), &flag));
            if (flag)
                weft_sim_yield();
        }
        APP_TRY(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
        if (rig_wrong(in, self->what->seed + turn + (uint64_t)left, (uint64_t)bytes) != (uint64_t)bytes)
            return app_fail(self, "modes: %d bytes in %d and %d partitions, turn %u, are wrong", bytes, a, b, turn);
    }
    APP_TRY(MPI_Request_free(&reqs[0]));
    APP_TRY(MPI_Request_free(&reqs[1]));
    free(out);
    free(in);
    return 0;
}

int app_modes(int rank, void *arg)
{
    app_self about, *self = &about;
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    APP_TRY(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (uint32_t round = 0; round < self->what->rounds; round++) {
        uint64_t name = (self->what->seed * 100 + round) << 20;
        if (buffered(self, name) || exchange(self, name + 1000) || partitioned(self))
            return 1;
    }
    APP_TRY(MPI_Finalize());
    return 0;
}

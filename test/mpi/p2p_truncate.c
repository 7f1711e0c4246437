/* np: 1 2 : a message longer than its buffer is MPI_ERR_TRUNCATE, eager or rendezvous, expected or not, without other effects */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { GUARD = 256 };

static int rank, size;

enum way { BLOCKING, WAIT, TEST, WAITALL, SENDRECV, WAYS };

/* The receive of `capacity` bytes for a message of `bytes`. */
static void receive(enum way way, unsigned char *buf, size_t capacity, size_t bytes, int from, unsigned seed)
{
    MPI_Status status[2];
    MPI_Request reqs[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int code = -1, flag = 0;
    memset(buf, 0xAA, bytes + GUARD);
    switch (way) {
    case BLOCKING:
        code = MPI_Recv(buf, (int)capacity, MPI_BYTE, from, 3, MPI_COMM_WORLD, &status[0]);
        break;
    case SENDRECV:
        code = MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, buf, (int)capacity, MPI_BYTE, from, 3, MPI_COMM_WORLD, &status[0]);
        break;
    case WAIT:
        OK(MPI_Irecv(buf, (int)capacity, MPI_BYTE, from, 3, MPI_COMM_WORLD, &reqs[0]));
        code = MPI_Wait(&reqs[0], &status[0]);
        break;
    case TEST:
        OK(MPI_Irecv(buf, (int)capacity, MPI_BYTE, from, 3, MPI_COMM_WORLD, &reqs[0]));
        do
            code = MPI_Test(&reqs[0], &flag, &status[0]);
        while (!code && !flag);
        break;
    default:
        OK(MPI_Irecv(buf, (int)capacity, MPI_BYTE, from, 3, MPI_COMM_WORLD, &reqs[0]));
        code = MPI_Waitall(2, reqs, status);
        CHECK(code == MPI_ERR_IN_STATUS, "code %d", code);
        CHECK(status[1].MPI_ERROR == MPI_SUCCESS);
        code = status[0].MPI_ERROR;
    }
    CHECK(code == MPI_ERR_TRUNCATE, "way %d, %zu bytes into %zu: code %d", (int)way, bytes, capacity, code);
    CHECK(reqs[0] == MPI_REQUEST_NULL);
    CHECK(status[0].MPI_SOURCE == from && status[0].MPI_TAG == 3, "source %d tag %d", status[0].MPI_SOURCE, status[0].MPI_TAG);
    (void)seed; /* the buffer's contents are undefined after the error; nothing behind it may change */
    for (size_t i = capacity; i < bytes + GUARD; i++)
        CHECK(buf[i] == 0xAA, "way %d, %zu bytes into %zu: byte %zu was overwritten", (int)way, bytes, capacity, i);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {1, 8, 100, 4000, 9000, 70000, 300000, 2000000};
    unsigned seed = 0;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int receiver = 0, sender = size > 1 ? 1 : 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int early = 0; early < 2; early++)
            for (int way = 0; way < WAYS; way++)
                for (int part = 0; part < 3; part++) {
                    size_t bytes = lengths[i], capacity = part == 0 ? 0 : part == 1 ? bytes / 2 : bytes - 1;
                    unsigned char *buf = malloc(bytes + GUARD), *out = malloc(bytes + GUARD), ok = 0;
                    MPI_Request req = MPI_REQUEST_NULL;
                    check_fill(out, bytes, ++seed);
                    if (rank == sender)
                        OK(MPI_Isend(out, (int)bytes, MPI_BYTE, receiver, 3, MPI_COMM_WORLD, &req));
                    if (early && size > 1) /* the message or its announcement arrives before the receive */
                        OK(MPI_Barrier(MPI_COMM_WORLD));
                    if (rank == receiver)
                        receive((enum way)way, buf, capacity, bytes, sender, seed);
                    if (rank == sender) { /* the sender gets no error */
                        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
                        OK(MPI_Send("k", 1, MPI_CHAR, receiver, 3, MPI_COMM_WORLD));
                    }
                    if (rank == receiver) {
                        OK(MPI_Recv(&ok, 1, MPI_CHAR, sender, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                        CHECK(ok == 'k', "the message after a truncated one is %d", ok);
                    }
                    free(buf);
                    free(out);
                }
    OK(MPI_Finalize());
    return 0;
}

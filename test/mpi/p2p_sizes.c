/* np: 1 2 3 4 : every send mode with every size around the protocol limits, dense and strided, byte for byte */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { GUARD = 64, LARGEST = 4 << 20 };

static int rank, size;
static unsigned char *out, *in;

enum mode { SEND, SSEND, ISEND, ISSEND, RSEND_LATE, PERSISTENT, SENDRECV, MODES };

/* To the right neighbour, from the left one (to itself with one rank). */
static void exchange(enum mode mode, size_t bytes, unsigned round)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, count, tag = (int)(round % 1000);
    unsigned sent = round * 64 + (unsigned)rank, expected = round * 64 + (unsigned)left;
    MPI_Request reqs[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    check_fill(out, bytes, sent);
    memset(in, 0xAA, bytes + GUARD);
    if (mode != SENDRECV)
        OK(MPI_Irecv(in, (int)bytes, MPI_BYTE, left, tag, MPI_COMM_WORLD, &reqs[0]));
    switch (mode) {
    case SEND:
        OK(MPI_Send(out, (int)bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD));
        break;
    case SSEND:
        OK(MPI_Ssend(out, (int)bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD));
        break;
    case ISEND:
        OK(MPI_Isend(out, (int)bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD, &reqs[1]));
        break;
    case ISSEND:
        OK(MPI_Issend(out, (int)bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD, &reqs[1]));
        break;
    case RSEND_LATE: /* ready: the receive is posted once all have passed the barrier */
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Rsend(out, (int)bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD));
        break;
    case PERSISTENT:
        OK(MPI_Send_init(out, (int)bytes, MPI_BYTE, right, tag, MPI_COMM_WORLD, &reqs[1]));
        OK(MPI_Start(&reqs[1]));
        OK(MPI_Wait(&reqs[1], MPI_STATUS_IGNORE));
        CHECK(reqs[1] != MPI_REQUEST_NULL);
        OK(MPI_Request_free(&reqs[1]));
        break;
    default:
        OK(MPI_Sendrecv(out, (int)bytes, MPI_BYTE, right, tag, in, (int)bytes, MPI_BYTE, left, tag, MPI_COMM_WORLD, &status));
    }
    if (mode != SENDRECV) {
        OK(MPI_Wait(&reqs[0], &status));
        OK(MPI_Wait(&reqs[1], MPI_STATUS_IGNORE));
    }
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == tag && (size_t)count == bytes,
          "mode %d: source %d tag %d count %d of %zu", (int)mode, status.MPI_SOURCE, status.MPI_TAG, count, bytes);
    size_t wrong = check_wrong(in, bytes, expected);
    CHECK(wrong == bytes, "mode %d, %zu bytes: byte %zu is wrong", (int)mode, bytes, wrong);
    for (size_t i = 0; i < GUARD; i++)
        CHECK(in[bytes + i] == 0xAA, "mode %d, %zu bytes: wrote behind the buffer", (int)mode, bytes);
}

/* Columns of a matrix: blocks of 3 doubles every 5. */
static void exchange_strided(int blocks, unsigned round)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, count, items = blocks * 5;
    double *from = (double *)out, *to = (double *)in;
    MPI_Datatype type;
    MPI_Request req;
    MPI_Status status;
    OK(MPI_Type_vector(blocks, 3, 5, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < items; i++) {
        from[i] = rank * 1e6 + round * 1e3 + i;
        to[i] = -1;
    }
    OK(MPI_Irecv(to, 1, type, left, 7, MPI_COMM_WORLD, &req));
    OK(MPI_Send(from, 1, type, right, 7, MPI_COMM_WORLD));
    OK(MPI_Type_free(&type)); /* the receive in flight keeps it alive */
    OK(MPI_Wait(&req, &status));
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == 3 * blocks, "count %d for %d blocks", count, blocks);
    for (int i = 0; i < items; i++) {
        double want = i % 5 < 3 && i < (blocks - 1) * 5 + 3 ? left * 1e6 + round * 1e3 + i : -1;
        CHECK(to[i] == want, "blocks %d: item %d is %g, not %g", blocks, i, to[i], want);
    }
    /* strided to dense */
    OK(MPI_Type_vector(blocks, 3, 5, MPI_DOUBLE, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Irecv(to, 3 * blocks, MPI_DOUBLE, left, 8, MPI_COMM_WORLD, &req));
    OK(MPI_Ssend(from, 1, type, right, 8, MPI_COMM_WORLD));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    for (int i = 0; i < 3 * blocks; i++)
        CHECK(to[i] == left * 1e6 + round * 1e3 + i / 3 * 5 + i % 3, "blocks %d: dense item %d is %g", blocks, i, to[i]);
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv)
{
    static const size_t edges[] = {0,      8,      16,     40,     64,      100,     128,    200,   256,
                                   512,    1024,   2048,   4096,   8192,    12000,   16384,  32768, 65536,
                                   100000, 131072, 262144, 524288, 1 << 20, 3000000, LARGEST};
    unsigned round = 0;
    check_start(&argc, &argv, &rank, &size);
    out = malloc(LARGEST + GUARD);
    in = malloc(LARGEST + GUARD);
    CHECK(out && in);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (int off = -1; off <= 1; off++) {
            if ((edges[i] == 0 && off < 0) || (edges[i] == LARGEST && off > 0))
                continue;
            for (int mode = 0; mode < MODES; mode++) {
                exchange((enum mode)mode, edges[i] + (size_t)off, ++round);
            }
        }
    for (int blocks = 1; blocks <= 60000; blocks = blocks * 3 + 1)
        exchange_strided(blocks, ++round);
    free(out);
    free(in);
    OK(MPI_Finalize());
    return 0;
}

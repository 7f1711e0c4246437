/* np: 2 3 : messages by the large-count functions, every mode, blocking, nonblocking and persistent; ready sends */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size, left, right;
static unsigned char *out, *in;
static const MPI_Count lengths[] = {0, 1, 100, 5000, 70000, 3000000};
enum { LENGTHS = 6, LONGEST = 3000000 };

static void arrived(const MPI_Status *status, MPI_Count bytes, unsigned seed)
{
    MPI_Count count = -1;
    int source, tag;
    OK(MPI_Get_count_c(status, MPI_BYTE, &count));
    OK(MPI_Status_get_source(status, &source));
    OK(MPI_Status_get_tag(status, &tag));
    CHECK(count == bytes && source == left && tag == 3, "%lld of %lld bytes from %d", (long long)count, (long long)bytes, source);
    OK(MPI_Get_count_c(status, MPI_INT, &count));
    CHECK(count == (bytes % 4 ? MPI_UNDEFINED : bytes / 4));
    CHECK(check_wrong(in, (size_t)bytes, seed) == (size_t)bytes, "%lld bytes", (long long)bytes);
    CHECK(in[bytes] == 0xee);
    memset(in, 0xee, (size_t)bytes + 1);
}

/* The receive is posted before the sender is notified, as a ready send requires. */
static void ready(void)
{
    char token = 0;
    OK(MPI_Sendrecv(&token, 1, MPI_CHAR, left, 9, &token, 1, MPI_CHAR, right, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* One message around the ring; how: the send function. */
enum how { SEND, SSEND, RSEND, ISEND, ISSEND, IRSEND, IRSEND_NARROW, SEND_INIT, SSEND_INIT, RSEND_INIT, RSEND_INIT_NARROW, HOWS };

static void send_it(enum how how, MPI_Count bytes)
{
    MPI_Request req = MPI_REQUEST_NULL;
    const MPI_Comm world = MPI_COMM_WORLD;
    switch (how) {
    case SEND: OK(MPI_Send_c(out, bytes, MPI_BYTE, right, 3, world)); return;
    case SSEND: OK(MPI_Ssend_c(out, bytes, MPI_BYTE, right, 3, world)); return;
    case RSEND: OK(MPI_Rsend_c(out, bytes, MPI_BYTE, right, 3, world)); return;
    case ISEND: OK(MPI_Isend_c(out, bytes, MPI_BYTE, right, 3, world, &req)); break;
    case ISSEND: OK(MPI_Issend_c(out, bytes, MPI_BYTE, right, 3, world, &req)); break;
    case IRSEND: OK(MPI_Irsend_c(out, bytes, MPI_BYTE, right, 3, world, &req)); break;
    case IRSEND_NARROW: OK(MPI_Irsend(out, (int)bytes, MPI_BYTE, right, 3, world, &req)); break;
    case SEND_INIT: OK(MPI_Send_init_c(out, bytes, MPI_BYTE, right, 3, world, &req)); break;
    case SSEND_INIT: OK(MPI_Ssend_init_c(out, bytes, MPI_BYTE, right, 3, world, &req)); break;
    case RSEND_INIT: OK(MPI_Rsend_init_c(out, bytes, MPI_BYTE, right, 3, world, &req)); break;
    default: OK(MPI_Rsend_init(out, (int)bytes, MPI_BYTE, right, 3, world, &req)); break;
    }
    if (how < SEND_INIT) {
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(req == MPI_REQUEST_NULL);
        return;
    }
    OK(MPI_Start(&req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(req != MPI_REQUEST_NULL);
    OK(MPI_Request_free(&req));
}

static void all_ways(MPI_Count bytes)
{
    for (enum how how = SEND; how < HOWS; how++) {
        MPI_Request req;
        MPI_Status status;
        unsigned seed = (unsigned)(how * 100 + bytes % 97);
        check_fill(out, (size_t)bytes, seed + (unsigned)rank);
        OK(MPI_Irecv_c(in, bytes, MPI_BYTE, left, 3, MPI_COMM_WORLD, &req));
        ready();
        send_it(how, bytes);
        OK(MPI_Wait(&req, &status));
        arrived(&status, bytes, seed + (unsigned)left);
    }
}

/* A persistent receive, started three times, gets three messages in order. */
static void persistent_receive(MPI_Count bytes)
{
    MPI_Request recv, sends[3];
    MPI_Status status;
    OK(MPI_Recv_init_c(in, bytes, MPI_BYTE, left, 3, MPI_COMM_WORLD, &recv));
    for (int i = 0; i < 3; i++) {
        check_fill(out, (size_t)bytes, (unsigned)(i * 10 + rank));
        OK(MPI_Start(&recv));
        OK(MPI_Isend_c(out, bytes, MPI_BYTE, right, 3, MPI_COMM_WORLD, &sends[i]));
        OK(MPI_Wait(&sends[i], MPI_STATUS_IGNORE));
        OK(MPI_Wait(&recv, &status));
        arrived(&status, bytes, (unsigned)(i * 10 + left));
    }
    OK(MPI_Request_free(&recv));
}

static void exchanges(MPI_Count bytes)
{
    MPI_Status status;
    check_fill(out, (size_t)bytes, 40 + (unsigned)rank);
    OK(MPI_Sendrecv_c(out, bytes, MPI_BYTE, right, 3, in, bytes, MPI_BYTE, left, 3, MPI_COMM_WORLD, &status));
    arrived(&status, bytes, 40 + (unsigned)left);
    check_fill(in, (size_t)bytes, 60 + (unsigned)rank);
    OK(MPI_Sendrecv_replace_c(in, bytes, MPI_BYTE, right, 3, left, 3, MPI_COMM_WORLD, &status));
    arrived(&status, bytes, 60 + (unsigned)left);
}

/* Truncation is an error in the large-count form, too. */
static void truncated(void)
{
    MPI_Request req;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Isend_c(out, 100, MPI_BYTE, right, 4, MPI_COMM_WORLD, &req));
    CHECK(MPI_Recv_c(in, 99, MPI_BYTE, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    out = malloc(LONGEST + 1);
    in = malloc(LONGEST + 1);
    memset(in, 0xee, LONGEST + 1);
    for (int i = 0; i < LENGTHS; i++) {
        all_ways(lengths[i]);
        persistent_receive(lengths[i]);
        exchanges(lengths[i]);
    }
    truncated();
    free(out);
    free(in);
    OK(MPI_Finalize());
    return 0;
}

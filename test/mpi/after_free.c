/* np: 1 2 : handlers, buffers, requests and nested types that are freed, some of them twice or while they are in use: errors, no crash */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>

#include "expect.h"

static int rank, size, raised;
static MPI_Comm raised_on;

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    raised_on = *comm;
    raised++;
}

static void errhandlers(void)
{
    MPI_Comm comm, dup;
    MPI_Errhandler made, stale, got, again;
    int one;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_create_errhandler(handler, &made));
    OK(MPI_Comm_set_errhandler(comm, made));
    stale = made;
    OK(MPI_Errhandler_free(&made));
    CHECK(made == MPI_ERRHANDLER_NULL);
    made = stale;
    BAD(MPI_Errhandler_free(&made), MPI_ERR_ERRHANDLER, "freed");
    BAD(MPI_Comm_set_errhandler(MPI_COMM_SELF, stale), MPI_ERR_ERRHANDLER, "freed");
    CHECK(MPI_Errhandler_fromint(MPI_Errhandler_toint(stale)) == MPI_ERRHANDLER_NULL);
    CHECK(MPI_Comm_rank(MPI_COMM_NULL, &one) != MPI_SUCCESS && raised == 0);
    CHECK(MPI_Comm_split(comm, -9, 0, &dup) != MPI_SUCCESS && raised == 1 && raised_on == comm); /* the communicator keeps it */
    OK(MPI_Comm_get_errhandler(comm, &got));
    OK(MPI_Comm_get_errhandler(comm, &again));
    CHECK(got == stale && again == got);
    OK(MPI_Comm_set_errhandler(comm, got));
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Comm_dup(comm, &dup));
    OK(MPI_Errhandler_free(&again));
    again = stale;
    BAD(MPI_Errhandler_free(&again), MPI_ERR_ERRHANDLER, "freed");
    CHECK(MPI_Comm_split(dup, -9, 0, &comm) != MPI_SUCCESS && raised == 2 && raised_on == dup);
    OK(MPI_Comm_free(&dup));
}

/* Messages in the communicator's own buffer go on when it is freed. Its memory holds nothing but messages: once these have arrived the
 * program may write there. */
static void buffers(void)
{
    enum { BYTES = 6000000, MESSAGES = 3 };
    char *buffer = malloc(MESSAGES * (BYTES + MPI_BSEND_OVERHEAD)), *data = malloc(BYTES), *in = malloc(MESSAGES * (size_t)BYTES);
    MPI_Request reqs[MESSAGES], later;
    MPI_Comm comm;
    int value = 17, to = (rank + 1) % size, got = 0;
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_attach_buffer(comm, buffer, MESSAGES * (BYTES + MPI_BSEND_OVERHEAD)));
        for (int i = 0; i < MESSAGES; i++)
            OK(MPI_Irecv(in + i * (size_t)BYTES, BYTES, MPI_BYTE, MPI_ANY_SOURCE, i, comm, &reqs[i]));
        OK(MPI_Bsend_init(&value, 1, MPI_INT, turn ? MPI_PROC_NULL : to, 9, comm, &later));
        for (int i = 0; i < MESSAGES; i++) {
            check_fill(data, BYTES, (unsigned)(100 * turn + i));
            OK(MPI_Bsend(data, BYTES, MPI_BYTE, to, i, comm));
        }
        OK(MPI_Comm_free(&comm));
        OK(MPI_Waitall(MESSAGES, reqs, MPI_STATUSES_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        memset(buffer, 0xee, MESSAGES * (BYTES + MPI_BSEND_OVERHEAD));
        for (int i = 0; i < MESSAGES; i++)
            CHECK(check_wrong(in + i * (size_t)BYTES, BYTES, (unsigned)(100 * turn + i)) == BYTES, "turn %d, message %d", turn, i);
        if (turn) { /* a request made before goes on */
            OK(MPI_Start(&later));
            OK(MPI_Wait(&later, MPI_STATUS_IGNORE));
        }
        OK(MPI_Request_free(&later));
    }
    CHECK(got == 0);
    free(in);
    free(data);
    free(buffer);
}

/* The start of a request fails after its communicator was freed: MPI_COMM_SELF's handler runs. */
static void requests(void)
{
    MPI_Comm comm;
    MPI_Request req;
    int value = 1;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Bsend_init(&value, 1, MPI_INT, 0, 9, comm, &req));
    OK(MPI_Comm_free(&comm));
    BAD(MPI_Start(&req), MPI_ERR_BUFFER, "no buffer is attached");
    OK(MPI_Request_free(&req));
}

/* Two requests of different communicators fail: text and handler are the first one's. */
static void several(void)
{
    MPI_Comm comms[2];
    MPI_Errhandler made;
    MPI_Request reqs[2];
    MPI_Status statuses[2];
    char text[MPI_MAX_ERROR_STRING];
    int small[2], large[2][3] = {{0}}, length;
    OK(MPI_Comm_create_errhandler(handler, &made));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comms[i]));
        OK(MPI_Comm_set_errhandler(comms[i], made));
        OK(MPI_Irecv(&small[i], 1, MPI_INT, 0, 0, comms[i], &reqs[i]));
        OK(MPI_Send(large[i], 2 + i, MPI_INT, 0, 0, comms[i]));
    }
    raised = 0;
    CHECK(MPI_Waitall(2, reqs, statuses) == MPI_ERR_IN_STATUS && raised == 1 && raised_on == comms[0]);
    OK(MPI_Error_string(MPI_ERR_IN_STATUS, text, &length));
    CHECK(strstr(text, "request 0 failed"), "%s", text);
    for (int i = 0; i < 2; i++)
        CHECK(class_of(statuses[i].MPI_ERROR) == MPI_ERR_TRUNCATE);
    OK(MPI_Errhandler_free(&made));
    OK(MPI_Comm_free(&comms[0]));
    OK(MPI_Comm_free(&comms[1]));
}

/* Types nested deeper than the stack could free one by one. */
static void nested(void)
{
    for (int kind = 0; kind < 3; kind++) {
        MPI_Datatype type = MPI_INT, next;
        int value = rank, copy = -1;
        for (int i = 0; i < 300000; i++) {
            OK(kind == 0   ? MPI_Type_dup(type, &next)
               : kind == 1 ? MPI_Type_contiguous(1, type, &next)
                           : MPI_Type_create_resized(type, 0, 4, &next));
            if (type != MPI_INT)
                OK(MPI_Type_free(&type));
            type = next;
        }
        OK(MPI_Type_commit(&type));
        OK(MPI_Sendrecv(&value, 1, type, 0, 0, &copy, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
        CHECK(copy == rank);
        OK(MPI_Type_free(&type));
    }
}

/* A receiver may free the communicator before it receives what it has matched, or starts a receive: MPI_Comm_free waits for no message
 * (MPI 5.0 7.4.3). */
static void matched_before_free(void)
{
    enum { BYTES = 4000000 };
    char *buffer = malloc(BYTES + MPI_BSEND_OVERHEAD), *data = malloc(BYTES), *in = malloc(BYTES);
    for (int kind = 0; kind < 4; kind++) {
        bool is_automatic = kind & 1, is_probed = kind & 2;
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        MPI_Comm comm;
        MPI_Message message;
        MPI_Request later;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_attach_buffer(comm, is_automatic ? MPI_BUFFER_AUTOMATIC : buffer, BYTES + MPI_BSEND_OVERHEAD));
        check_fill(data, BYTES, (unsigned)(10 * kind + rank));
        OK(MPI_Bsend(data, BYTES, MPI_BYTE, to, 5, comm));
        if (is_probed)
            OK(MPI_Mprobe(from, 5, comm, &message, MPI_STATUS_IGNORE));
        else
            OK(MPI_Recv_init(in, BYTES, MPI_BYTE, from, 5, comm, &later));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (is_probed) {
            OK(MPI_Mrecv(in, BYTES, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Start(&later));
            OK(MPI_Wait(&later, MPI_STATUS_IGNORE));
            OK(MPI_Request_free(&later));
        }
        CHECK(check_wrong(in, BYTES, (unsigned)(10 * kind + from)) == BYTES, "kind %d", kind);
        OK(MPI_Barrier(MPI_COMM_WORLD)); /* the buffer is attached again */
    }
    free(in);
    free(data);
    free(buffer);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    errhandlers();
    buffers();
    matched_before_free();
    requests();
    several();
    nested();
    OK(MPI_Finalize());
    return 0;
}

/* np: 2 3 : buffered sends: exact space, the model's space at random, overflow texts, process and communicator buffers, automatic, flush */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "expect.h"

enum { LONG = 150000, MANY = 40 }; /* LONG: more than leaves without the receiver (caps.frags_max) */

static int rank, size;
static char *in;

static char *attach(int bytes)
{
    char *memory = malloc((size_t)bytes);
    OK(MPI_Buffer_attach(memory, bytes));
    return memory;
}

static void detach(const char *memory, int bytes)
{
    char *back = NULL;
    int size_back = -1;
    OK(MPI_Buffer_detach(&back, &size_back));
    CHECK(back == memory && size_back == bytes, "%d", size_back);
    free(back);
}

static void recv_one(int source, int tag, int bytes)
{
    MPI_Status status;
    int count;
    OK(MPI_Recv(in, LONG * 4, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == bytes && check_wrong(in, (size_t)bytes, (unsigned)tag) == (size_t)bytes, "tag %d: %d bytes", tag, count);
}

static void token(int from, int to)
{
    int none = 0;
    if (rank == from)
        OK(MPI_Send(&none, 1, MPI_INT, to, 9999, MPI_COMM_WORLD));
    if (rank == to)
        OK(MPI_Recv(&none, 1, MPI_INT, from, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* Space for one long message exactly: all ranks send before any rank receives. The message's buffer may be reused at once. */
static void exchange(void)
{
    static const int lengths[] = {0, 1, 300, 10000, LONG};
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    char *out = malloc(LONG);
    for (int k = 0; k < 10; k++) {
        int n = lengths[k / 2], bytes = n + MPI_BSEND_OVERHEAD;
        char *memory = attach(bytes);
        check_fill(out, (size_t)n, (unsigned)k);
        if (k % 2)
            OK(MPI_Bsend(out, n, MPI_BYTE, right, k, MPI_COMM_WORLD));
        else
            OK(MPI_Bsend_c(out, n, MPI_BYTE, right, k, MPI_COMM_WORLD));
        memset(out, 0, (size_t)n);
        recv_one(left, k, n);
        detach(memory, bytes);
    }
    free(out);
}

typedef struct place {
    int from, to, bytes;
} place;

/* Place of a message by the standard's model; -1: no space. pending: oldest first. */
static int model_place(const place *pending, int count, int tail, int bytes, int all)
{
    int head = count ? pending[0].from : 0;
    if (!count)
        return tail + bytes <= all ? tail : bytes <= all ? 0 : -1;
    if (pending[count - 1].to > head) /* not wrapped */
        return tail + bytes <= all ? tail : bytes <= head ? 0 : -1;
    return tail + bytes <= head ? tail : -1;
}

/* A send succeeds exactly if the model has space. The receiver receives the number of messages that the sender announces. */
static void model(void)
{
    enum { SPACE = 20 * LONG, STEPS = 300 };
    uint64_t random = 7;
    place pending[MANY];
    int count = 0, tail = 0, tag = 0, got = 0, order;
    char *memory = rank == 0 ? attach(SPACE) : NULL, *out = malloc(4 * LONG);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int step = 0; step < STEPS && rank == 0; step++) {
        int bytes = LONG / 2 + (int)(check_random(&random) % (3 * LONG)), need = bytes + MPI_BSEND_OVERHEAD;
        int at = count < MANY ? model_place(pending, count, tail, need, SPACE) : -1;
        if (at >= 0) {
            check_fill(out, (size_t)bytes, (unsigned)tag);
            OK(MPI_Bsend(out, bytes, MPI_BYTE, 1, tag++, MPI_COMM_WORLD));
            pending[count++] = (place){at, at + need, bytes};
            tail = at + need;
            continue;
        }
        order = 1 + (int)(check_random(&random) % (unsigned)count);
        OK(MPI_Send(&order, 1, MPI_INT, 1, 8888, MPI_COMM_WORLD));
        for (int i = 0; i < order; i++)
            OK(MPI_Send(&pending[i].bytes, 1, MPI_INT, 1, 8887, MPI_COMM_WORLD));
        token(1, 0);
        memmove(pending, pending + order, (size_t)(count -= order) * sizeof *pending);
    }
    if (rank == 0) {
        OK(MPI_Send(&count, 1, MPI_INT, 1, 8888, MPI_COMM_WORLD));
        for (int i = 0; i < count; i++)
            OK(MPI_Send(&pending[i].bytes, 1, MPI_INT, 1, 8887, MPI_COMM_WORLD));
        order = 0;
        OK(MPI_Send(&order, 1, MPI_INT, 1, 8888, MPI_COMM_WORLD));
        detach(memory, SPACE);
    }
    for (order = 1; rank == 1 && order;) {
        OK(MPI_Recv(&order, 1, MPI_INT, 0, 8888, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0, bytes; i < order; i++) {
            OK(MPI_Recv(&bytes, 1, MPI_INT, 0, 8887, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            recv_one(0, got++, bytes);
        }
        if (order)
            token(1, 0);
    }
    if (rank == 0)
        token(1, 0); /* for the last order */
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    free(out);
}

static void errors(void)
{
    enum { SPACE = 2 * (LONG + MPI_BSEND_OVERHEAD) };
    char *out = calloc(LONG, 2), *memory, *back;
    int other = (rank + 1) % size, left = (rank + size - 1) % size, bytes;
    MPI_Request req;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    BAD(MPI_Bsend(out, 1, MPI_BYTE, other, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER, "513 bytes");
    BAD(MPI_Ibsend(out, 1, MPI_BYTE, other, 1, MPI_COMM_WORLD, &req), MPI_ERR_BUFFER, "no buffer is attached");
    OK(MPI_Bsend(out, 1, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
    BAD(MPI_Buffer_detach(&back, &bytes), MPI_ERR_BUFFER, "this process has no buffer");
    BAD(MPI_Buffer_flush(), MPI_ERR_BUFFER, "no buffer attached");
    BAD(MPI_Buffer_iflush(&req), MPI_ERR_BUFFER, "no buffer attached");
    BAD(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &back, &bytes), MPI_ERR_BUFFER, "MPI_COMM_WORLD has no buffer");
    BAD(MPI_Comm_flush_buffer(MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_COMM_WORLD has no buffer");
    BAD(MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &req), MPI_ERR_BUFFER, "MPI_COMM_WORLD has no buffer");
    BAD(MPI_Buffer_attach(out, -1), MPI_ERR_ARG, "size is -1");
    BAD(MPI_Buffer_attach(NULL, 100), MPI_ERR_BUFFER, "buffer is NULL");
    memory = attach(SPACE);
    BAD(MPI_Buffer_attach(out, 10), MPI_ERR_BUFFER, "attached already");
    BAD(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0), MPI_ERR_BUFFER, "attached already");
    BAD(MPI_Bsend(out, 3 * LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER, "450512 bytes");
    check_fill(out, LONG, 1);
    OK(MPI_Bsend(out, LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD));
    OK(MPI_Bsend(out, LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD));
    BAD(MPI_Bsend(out, LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD), MPI_ERR_BUFFER, "2 messages are not sent yet");
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* no message is received yet */
    recv_one(left, 1, LONG);
    recv_one(left, 1, LONG);
    OK(MPI_Buffer_flush());
    OK(MPI_Bsend(out, LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD));
    recv_one(left, 1, LONG);
    detach(memory, SPACE);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    free(out);
}

/* A communicator's own buffer goes first, also when it is too small; the others use the process's. */
static void communicators(void)
{
    enum { BIG = 2 * LONG + MPI_BSEND_OVERHEAD, SMALL = LONG + MPI_BSEND_OVERHEAD };
    int right = (rank + 1) % size, left = (rank + size - 1) % size, bytes;
    char *out = malloc(2 * LONG), *own = malloc(BIG), *memory, *back;
    MPI_Count bytes_c;
    MPI_Comm other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_attach_buffer(MPI_COMM_WORLD, own, BIG));
    memory = attach(SMALL);
    check_fill(out, 2 * LONG, 2);
    BAD(MPI_Bsend(out, 2 * LONG, MPI_BYTE, right, 2, other), MPI_ERR_BUFFER, "300512 bytes");
    OK(MPI_Bsend(out, 2 * LONG, MPI_BYTE, right, 2, MPI_COMM_WORLD));
    OK(MPI_Bsend(out, LONG, MPI_BYTE, right, 2, other));
    BAD(MPI_Bsend(out, LONG, MPI_BYTE, right, 2, MPI_COMM_WORLD), MPI_ERR_BUFFER, "1 messages");
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* no message is received yet */
    recv_one(left, 2, 2 * LONG);
    OK(MPI_Comm_flush_buffer(MPI_COMM_WORLD));
    OK(MPI_Comm_detach_buffer_c(MPI_COMM_WORLD, &back, &bytes_c));
    CHECK(back == own && bytes_c == BIG);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Recv(in, LONG, MPI_BYTE, left, 2, other, MPI_STATUS_IGNORE));
    CHECK(check_wrong(in, LONG, 2) == LONG);
    detach(memory, SMALL);
    /* a buffer of a communicator that is freed while a message is in it */
    OK(MPI_Comm_attach_buffer_c(other, own, BIG));
    OK(MPI_Bsend(out, 2 * LONG, MPI_BYTE, right, 2, other));
    OK(MPI_Recv(in, 2 * LONG, MPI_BYTE, left, 2, other, MPI_STATUS_IGNORE));
    CHECK(check_wrong(in, 2 * LONG, 2) == 2 * LONG);
    OK(MPI_Comm_detach_buffer(other, &back, &bytes));
    CHECK(back == own && bytes == BIG);
    OK(MPI_Comm_attach_buffer(other, MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Bsend(out, 2 * LONG, MPI_BYTE, right, 2, other));
    OK(MPI_Recv(in, 2 * LONG, MPI_BYTE, left, 2, other, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    free(own);
    free(out);
}

/* Any number of messages; flush and iflush wait until they are received. */
static void automatic(void)
{
    char *out = malloc(LONG), *back = NULL;
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag, bytes;
    MPI_Request req;
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, -5));
    for (int i = 0; i < MANY; i++) {
        check_fill(out, LONG, (unsigned)i);
        OK(MPI_Bsend(out, LONG, MPI_BYTE, right, i, MPI_COMM_WORLD));
    }
    OK(MPI_Buffer_iflush(&req));
    for (int i = 0; i < MANY; i++) {
        OK(MPI_Test(&req, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag || i, "flushed before anybody has received");
        if (flag)
            req = MPI_REQUEST_NULL;
        if (i == 0)
            OK(MPI_Barrier(MPI_COMM_WORLD));
        recv_one(left, i, LONG);
    }
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Buffer_flush());
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == MPI_BUFFER_AUTOMATIC);
    free(out);
}

/* Nonblocking and persistent forms complete at once; strided data; messages to itself. */
static void forms(void)
{
    enum { SPACE = 3 * (LONG + MPI_BSEND_OVERHEAD) };
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag, *values = malloc(LONG), *got = malloc(LONG), n = LONG / 8;
    char *memory = attach(SPACE);
    MPI_Request req, again;
    MPI_Status status;
    MPI_Datatype type;
    OK(MPI_Type_vector(n, 1, 2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Bsend_init(values, 1, type, right, 4, MPI_COMM_WORLD, &again));
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 0; i < 2 * n; i++)
            values[i] = rank + turn + i;
        OK(MPI_Start(&again));
        OK(MPI_Wait(&again, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2 * n; i++)
            values[i] = rank - turn + i;
        if (turn % 2)
            OK(MPI_Ibsend(values, 1, type, right, 4, MPI_COMM_WORLD, &req));
        else
            OK(MPI_Ibsend_c(values, 1, type, right, 4, MPI_COMM_WORLD, &req));
        OK(MPI_Cancel(&req)); /* deprecated; the message was sent already */
        OK(MPI_Test(&req, &flag, &status));
        CHECK(flag && req == MPI_REQUEST_NULL);
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(!flag);
        memset(values, 0, LONG);
        for (int sign = 1; sign >= -1; sign -= 2) {
            OK(MPI_Recv(got, n, MPI_INT, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int i = 0; i < n; i++)
                CHECK(got[i] == left + sign * turn + 2 * i, "turn %d item %d: %d", turn, i, got[i]);
        }
        OK(MPI_Buffer_flush());
    }
    OK(MPI_Request_free(&again));
    OK(MPI_Bsend_init_c(values, 1, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &again));
    OK(MPI_Start(&again));
    OK(MPI_Wait(&again, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&again));
    OK(MPI_Type_free(&type));
    for (int i = 0; i < 2; i++) {
        values[0] = 70 + i;
        OK(MPI_Bsend(values, LONG / 4, MPI_INT, 0, i, MPI_COMM_SELF));
    }
    for (int i = 1; i >= 0; i--) {
        OK(MPI_Recv(got, LONG / 4, MPI_INT, 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE));
        CHECK(got[0] == 70 + i);
    }
    detach(memory, SPACE);
    free(values);
    free(got);
}

/* More than the receiver's credit, short ones in order behind long ones. */
static void burst(void)
{
    enum { SHORTS = 20000, SPACE = SHORTS * (8 + MPI_BSEND_OVERHEAD) };
    char *memory;
    if (rank == 0) {
        MPI_Count bytes;
        memory = malloc(SPACE);
        OK(MPI_Buffer_attach_c(memory, SPACE));
        for (int64_t i = 0; i < SHORTS; i++)
            OK(MPI_Bsend(&i, 8, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
        token(0, 1);
        OK(MPI_Buffer_detach_c(&memory, &bytes)); /* waits for the receiver */
        CHECK(bytes == SPACE);
        free(memory);
    } else if (rank == 1) {
        token(0, 1);
        for (int64_t i = 0, got; i < SHORTS; i++) {
            OK(MPI_Recv(&got, 8, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got == i, "message %d is %d", (int)i, (int)got);
        }
    }
}

/* What is in a buffer at finalize is still sent. */
static void last(void)
{
    static char memory[LONG + MPI_BSEND_OVERHEAD];
    char *out = malloc(LONG);
    if (rank == 0) {
        check_fill(out, LONG, 6);
        OK(MPI_Buffer_attach(memory, sizeof memory));
        OK(MPI_Bsend(out, LONG, MPI_BYTE, 1, 6, MPI_COMM_WORLD));
    } else if (rank == 1) {
        recv_one(0, 6, LONG);
    }
    free(out);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    in = malloc(4 * LONG);
    exchange();
    model();
    errors();
    communicators();
    automatic();
    forms();
    burst();
    last();
    OK(MPI_Finalize());
    free(in);
    return 0;
}

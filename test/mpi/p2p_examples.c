/* np: 2 3 4 : what the standard's examples of messages show (MPI 5.0 3.2-3.8): matching, order, progress, buffers, servers, probes */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

/* Functions are in the order of the text and name the section; docs/standard-examples.md has the list. */
static int rank, size;

/* 3.2.1: a text goes with its terminator; its length is known by the status only. */
static void text_message(void)
{
    const char text[] = "a line of text";
    char line[40];
    MPI_Status status;
    int count;
    if (rank == 0)
        OK(MPI_Send(text, sizeof text, MPI_CHAR, 1, 11, MPI_COMM_WORLD));
    if (rank != 1)
        return;
    OK(MPI_Recv(line, sizeof line, MPI_CHAR, 0, 11, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_CHAR, &count));
    CHECK(count == sizeof text && strcmp(line, text) == 0 && status.MPI_SOURCE == 0 && status.MPI_TAG == 11);
}

/* 3.3.1: equal types and a longer receive; different types, which Weft does not compare; bytes of one type into another. */
static void type_matching(void)
{
    float values[10], got[15];
    int32_t bits[15];
    MPI_Status status;
    int count;
    for (int i = 0; i < 10; i++)
        values[i] = (float)i / 3;
    for (int i = 0; i < 15; i++)
        got[i] = -1, bits[i] = -1;
    if (rank == 0) {
        OK(MPI_Send(values, 10, MPI_FLOAT, 1, 1, MPI_COMM_WORLD));
        OK(MPI_Send(values, 10, MPI_FLOAT, 1, 2, MPI_COMM_WORLD));
        OK(MPI_Send(values, sizeof values, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
    }
    if (rank != 1)
        return;
    OK(MPI_Recv(got, 15, MPI_FLOAT, 0, 1, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_FLOAT, &count));
    CHECK(count == 10 && !memcmp(got, values, sizeof values) && got[10] < 0 && got[14] < 0);
    memset(got, 0, sizeof got);
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &status)); /* wrong: floats were sent */
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == sizeof values && !memcmp(got, values, sizeof values));
    OK(MPI_Recv(bits, sizeof bits, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    CHECK(count == sizeof values && !memcmp(bits, values, sizeof values) && bits[10] == -1);
}

/* 3.3.1: characters of Fortran are counted one by one; a part of a variable is a buffer like any other. */
static void characters(void)
{
    char from[10] = "abcdefghij", to[10] = "0123456789";
    if (rank == 0)
        OK(MPI_Send(from, 4, MPI_CHARACTER, 1, 4, MPI_COMM_WORLD));
    if (rank != 1)
        return;
    OK(MPI_Recv(to + 6, 4, MPI_CHARACTER, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(!memcmp(to, "012345abcd", 10), "%.10s", to);
}

/* 3.5: two messages for one receive, of a few bytes and of a rendezvous; then two pairs that cross. */
static void order(void)
{
    static int values[2][50000], got[2][50000];
    int bytes = 2 * (int)sizeof values[0] + 2 * MPI_BSEND_OVERHEAD;
    char *buffer = malloc((size_t)bytes);
    MPI_Status status;
    CHECK(buffer != NULL);
    for (int count = 1; count <= 50000; count += 49999) {
        memset(got, 0, sizeof got);
        for (int i = 0; i < count; i++)
            values[0][i] = i + 1, values[1][i] = -i - 1;
        if (rank == 0) {
            OK(MPI_Buffer_attach(buffer, bytes));
            OK(MPI_Bsend(values[0], count, MPI_INT, 1, 5, MPI_COMM_WORLD));
            OK(MPI_Bsend(values[1], count, MPI_INT, 1, 5, MPI_COMM_WORLD));
            OK(MPI_Buffer_flush());
            OK(MPI_Bsend(values[0], count, MPI_INT, 1, 6, MPI_COMM_WORLD));
            OK(MPI_Ssend(values[1], count, MPI_INT, 1, 7, MPI_COMM_WORLD));
            OK(MPI_Buffer_detach(&buffer, &bytes));
        } else if (rank == 1) {
            OK(MPI_Recv(got[0], count, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            OK(MPI_Recv(got[1], count, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(status.MPI_TAG == 5 && !memcmp(got[0], values[0], sizeof(int) * (size_t)count));
            CHECK(!memcmp(got[1], values[1], sizeof(int) * (size_t)count));
            OK(MPI_Recv(got[0], count, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Recv(got[1], count, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(got[0][count - 1] == -count && got[1][count - 1] == count);
        }
    }
    free(buffer);
}

/* 3.5: one side sends first, in standard and in synchronous mode, whatever the size. Both send first: Weft buffers short messages,
 * so this unsafe program ends for messages up to the eager limit. (Both receive first: no program ends; launch/waits reports the wait.) */
static void exchange(void)
{
    static int own[40000], received[40000];
    const int peer = 1 - rank;
    for (int count = 1; count <= 40000; count += 39999) {
        for (int i = 0; i < count; i++)
            own[i] = rank + 2 * i;
        for (int mode = 0; mode < 2; mode++) {
            if (rank == 1)
                OK(MPI_Recv(received, count, MPI_INT, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK((mode ? MPI_Ssend : MPI_Send)(own, count, MPI_INT, peer, 8, MPI_COMM_WORLD));
            if (rank == 0)
                OK(MPI_Recv(received, count, MPI_INT, peer, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(received[count - 1] == peer + 2 * (count - 1));
        }
    }
    OK(MPI_Send(own, 1000, MPI_INT, peer, 9, MPI_COMM_WORLD));
    OK(MPI_Recv(received, 1000, MPI_INT, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(received[999] == peer + 2 * 999);
}

enum { SMALL = 3000 + MPI_BSEND_OVERHEAD, LARGE = 9000 + MPI_BSEND_OVERHEAD };

/* 3.6: a detached buffer comes back with its size and may be attached again; one of a communicator serves that communicator only. */
static void buffers(void)
{
    static char message[9000];
    char *own = malloc(SMALL), *of_world = malloc(LARGE), *back;
    MPI_Comm other;
    MPI_Request req;
    int bytes;
    CHECK(own && of_world);
    OK(MPI_Buffer_attach(own, SMALL));
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == own && bytes == SMALL);
    BAD(MPI_Buffer_detach(&back, &bytes), MPI_ERR_BUFFER, "no buffer attached");
    OK(MPI_Buffer_attach(own, bytes));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    OK(MPI_Comm_attach_buffer(MPI_COMM_WORLD, of_world, LARGE));
    /* To itself: each message waits in its buffer until it is received. */
    OK(MPI_Irecv(message, 1, MPI_BYTE, rank, 2, other, &req));
    OK(MPI_Bsend(message, 9000, MPI_BYTE, rank, 1, MPI_COMM_WORLD));
    OK(MPI_Bsend(message, 3000, MPI_BYTE, rank, 1, other));
    OK(MPI_Recv(message, 9000, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(message, 9000, MPI_BYTE, rank, 1, other, MPI_STATUS_IGNORE));
    OK(MPI_Bsend(message, 1, MPI_BYTE, rank, 2, other));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Comm_detach_buffer(MPI_COMM_WORLD, &back, &bytes));
    CHECK(back == of_world && bytes == LARGE);
    OK(MPI_Buffer_detach(&back, &bytes));
    CHECK(back == own && bytes == SMALL);
    OK(MPI_Comm_free(&other));
    free(own);
    free(of_world);
}

/* 3.7.3 and 3.7.4: wait after other work; sends whose requests are freed at once, acknowledged by the answer; order of matching; a
 * synchronous send ends by the posted receive, though its wait has not begun. */
static void nonblocking(void)
{
    enum { TURNS = 200 };
    double values[15] = {0}, got = 0;
    MPI_Request req, reqs[2];
    MPI_Status status;
    int count, in = -1, out[TURNS], pair[2] = {-1, -1};
    for (int i = 0; i < 10; i++)
        values[i] = rank ? 0 : i + 0.5;
    OK(rank ? MPI_Irecv(values, 15, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &req)
            : MPI_Isend(values, 10, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, &req));
    for (int i = 0; i < 1000; i++)
        got += i; /* work meanwhile */
    OK(MPI_Wait(&req, &status));
    if (rank) {
        OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
        CHECK(count == 10 && values[9] == 9.5 && got == 499500);
    }
    for (int i = 0; i < TURNS; i++) { /* each buffer is used again only after its message was answered: by then it has left */
        out[i] = 2 * i + rank;
        if (rank == 0) {
            OK(MPI_Isend(&out[i], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &req));
            OK(MPI_Request_free(&req));
            CHECK(req == MPI_REQUEST_NULL);
        }
        OK(MPI_Irecv(&in, 1, MPI_INT, 1 - rank, 2, MPI_COMM_WORLD, &req));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(in == 2 * i + 1 - rank);
        if (rank == 1) {
            OK(MPI_Isend(&out[i], 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &req));
            OK(i < TURNS - 1 ? MPI_Request_free(&req) : MPI_Wait(&req, MPI_STATUS_IGNORE));
        }
    }
    if (rank == 0) {
        OK(MPI_Isend(&out[0], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &reqs[0]));
        OK(MPI_Isend(&out[1], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &reqs[1]));
    } else {
        OK(MPI_Irecv(&pair[0], 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &reqs[0]));
        OK(MPI_Irecv(&pair[1], 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &reqs[1]));
    }
    OK(MPI_Wait(&reqs[1], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE));
    CHECK(rank == 0 || (pair[0] == 0 && pair[1] == 2), "%d %d", pair[0], pair[1]);
    if (rank == 0) {
        OK(MPI_Ssend(&out[2], 1, MPI_INT, 1, 4, MPI_COMM_WORLD));
        OK(MPI_Send(&out[3], 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
    } else {
        OK(MPI_Irecv(&pair[0], 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &req));
        OK(MPI_Recv(&pair[1], 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(pair[0] == 4 && pair[1] == 6);
    }
}

/* 3.7.5: a server of all other ranks, by Waitany and by Waitsome. A call of Waitsome completes every message that is there, so no
 * client waits while another is served twice. */
static void server(int some)
{
    enum { ORDERS = 50, MOST = 16 };
    int orders[MOST], served[MOST] = {0}, left = (size - 1) * ORDERS, number = 1, done[MOST], stop = 0, first = 0;
    MPI_Request reqs[MOST], req;
    MPI_Status statuses[MOST];
    if (rank > 0) {
        for (int i = 0; i < ORDERS; i++) {
            int order_id = rank * 1000 + i;
            OK(MPI_Isend(&order_id, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &req));
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
            if (i == 0)
                OK(MPI_Send(&stop, 0, MPI_INT, 0, 7, MPI_COMM_WORLD));
        }
        return;
    }
    for (int i = 0; i < size - 1; i++) { /* Waitsome first sees one order of each: they precede the empty messages */
        OK(MPI_Irecv(&orders[i], 1, MPI_INT, i + 1, 6, MPI_COMM_WORLD, &reqs[i]));
        OK(MPI_Recv(&stop, 0, MPI_INT, i + 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    for (; left; left -= number) {
        if (some)
            OK(MPI_Waitsome(size - 1, reqs, &number, done, statuses));
        else
            OK(MPI_Waitany(size - 1, reqs, &done[0], &statuses[0]));
        CHECK(!some || first++ || number == size - 1, "%d of %d clients", number, size - 1);
        for (int k = 0; k < number; k++) {
            int i = done[k];
            CHECK(statuses[k].MPI_SOURCE == i + 1 && orders[i] == (i + 1) * 1000 + served[i], "%d", orders[i]);
            if (++served[i] < ORDERS)
                OK(MPI_Irecv(&orders[i], 1, MPI_INT, i + 1, 6, MPI_COMM_WORLD, &reqs[i]));
        }
    }
}

/* 3.8.1: an int and a double under one tag; the probe's source says which. A receive from any source after the probe is wrong where
 * threads receive; with one thread Weft gives it the probed message, the earliest. A matched message is right always. */
static void probe(void)
{
    if (size < 3)
        return;
    for (int way = 0; way < 3; way++) {
        int whole = 5 + way;
        double real = way + 0.25;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == 0)
            OK(MPI_Send(&whole, 1, MPI_INT, 2, 8, MPI_COMM_WORLD));
        else if (rank == 1)
            OK(MPI_Send(&real, 1, MPI_DOUBLE, 2, 8, MPI_COMM_WORLD));
        if (rank != 2)
            continue;
        whole = 0;
        real = 0;
        for (int i = 0; i < 2; i++) {
            MPI_Status status, received;
            MPI_Message message;
            if (way == 2)
                OK(MPI_Mprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &message, &status));
            else
                OK(MPI_Probe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &status));
            int is_int = status.MPI_SOURCE == 0;
            void *place = is_int ? (void *)&whole : &real;
            MPI_Datatype type = is_int ? MPI_INT : MPI_DOUBLE;
            if (way == 2)
                OK(MPI_Mrecv(place, 1, type, &message, &received));
            else
                OK(MPI_Recv(place, 1, type, way ? MPI_ANY_SOURCE : status.MPI_SOURCE, 8, MPI_COMM_WORLD, &received));
            CHECK(received.MPI_SOURCE == status.MPI_SOURCE);
        }
        CHECK(whole == 5 + way && real == way + 0.25);
    }
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    text_message();
    type_matching();
    characters();
    order();
    if (rank < 2)
        exchange();
    buffers();
    if (rank < 2)
        nonblocking();
    for (int some = 0; some < 2; some++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        server(some);
    }
    probe();
    OK(MPI_Finalize());
    return 0;
}

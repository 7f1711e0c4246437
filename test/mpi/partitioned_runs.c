/* np: 2 : partitions that are ready together move as one message; none is held back for ever; parts of a refused message are dropped */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"
#include "tool_counter.h"

enum { PARTS = 64, EACH = 64 << 10, KINDS = 4 };

static int rank;
static MPI_T_pvar_handle received[KINDS];
static char *buf;

/* Messages that this process has received by rendezvous. */
static unsigned long long messages(void)
{
    unsigned long long sum = 0;
    for (int i = 0; i < KINDS; i++)
        sum += value_of(received[i]);
    return sum;
}

static void tell(int other)
{
    OK(MPI_Send(NULL, 0, MPI_CHAR, other, 2, MPI_COMM_WORLD));
}

static void await(int other)
{
    OK(MPI_Recv(NULL, 0, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void fill(int turn)
{
    for (int i = 0; i < PARTS; i++)
        memset(buf + i * EACH, turn + i, EACH);
}

static void check_parts(int from, int to, int turn)
{
    for (int i = from; i < to; i++)
        CHECK(buf[i * EACH] == (char)(turn + i) && !memcmp(buf + i * EACH, buf + i * EACH + 1, EACH - 1), "partition %d, turn %d", i, turn);
}

/* All at once are one message; one by one, while the receiver has not started, the first and the rest. */
static void together(MPI_Request req)
{
    static const unsigned long long most[] = {1, 2};
    for (int turn = 0; turn < 2; turn++) {
        unsigned long long before = messages();
        if (rank == 0) {
            fill(turn);
            OK(MPI_Start(&req));
            if (!turn)
                OK(MPI_Pready_range(0, PARTS - 1, req));
            for (int i = 0; i < PARTS && turn; i++)
                OK(MPI_Pready(i, req));
            tell(1);
        } else {
            await(0);
            OK(MPI_Start(&req));
        }
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        if (rank == 0)
            continue;
        check_parts(0, PARTS, turn);
        CHECK(messages() - before <= most[turn], "turn %d: %llu messages", turn, messages() - before);
    }
}

/* The sender waits for another message after some partitions: these must arrive, also those behind the first. */
static void in_groups(MPI_Request req)
{
    static const int order[] = {40, 64, 0, 3, 20, 40, 3, 20}; /* pairs: from, to */
    OK(MPI_Start(&req));
    if (rank == 0)
        fill(7);
    for (unsigned k = 0; k < sizeof order / sizeof *order; k += 2) {
        for (int i = order[k]; i < order[k + 1] && rank == 0; i++)
            OK(MPI_Pready(i, req));
        for (int i = order[k], flag = 0; i < order[k + 1] && rank == 1; i++, flag = 0)
            while (!flag)
                OK(MPI_Parrived(req, i, &flag));
        if (rank == 0) {
            await(1);
        } else {
            check_parts(order[k], order[k + 1], 7);
            tell(0);
        }
    }
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* Every other partition first, in both directions at once. */
static void holes(MPI_Request req[2])
{
    for (int turn = 0; turn < 3; turn++) {
        char *out = buf + PARTS * EACH;
        memset(buf, 0, PARTS * EACH);
        for (int i = 0; i < PARTS; i++)
            memset(out + i * EACH, 1 - rank + turn + i, EACH);
        OK(MPI_Startall(2, req));
        for (int k = 0; k < 3; k++)
            for (int i = k; i < PARTS; i += 3)
                OK(MPI_Pready(turn ? PARTS - 1 - i : i, req[0]));
        OK(MPI_Waitall(2, req, MPI_STATUSES_IGNORE));
        check_parts(0, PARTS, rank + turn);
    }
}

/* The receiver has another length: its request fails, and the sender's ends, each time. A correct pair is not disturbed. */
static void refused(MPI_Request good)
{
    MPI_Request req;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (rank == 0)
        OK(MPI_Psend_init(buf, PARTS, EACH, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    else
        OK(MPI_Precv_init(buf, PARTS, EACH - 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    for (int turn = 0; turn < 2; turn++) {
        OK(MPI_Start(&req));
        for (int i = PARTS - 1; i >= 0 && rank == 0; i--)
            OK(MPI_Pready(i, req));
        if (rank == 0)
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        else
            BAD(MPI_Wait(&req, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "they must be equal");
    }
    if (rank == 1)
        await(0); /* what comes is dropped while this process waits, and the request exists */
    else
        tell(1);
    OK(MPI_Request_free(&req));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    together(good);
}

/* The same, but the failed request is freed while parts of the message are on their way; the sender's have all left. */
static void freed_at_once(MPI_Request good)
{
    MPI_Request req;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int turn = 0; turn < 40; turn++) {
        int each = 3000 / PARTS + turn;
        if (rank == 0)
            OK(MPI_Psend_init(buf, PARTS, each, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
        else
            OK(MPI_Precv_init(buf, PARTS, each - 1, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
        OK(MPI_Start(&req));
        if (rank == 0) {
            OK(MPI_Pready_range(0, PARTS - 1, req));
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        } else
            BAD(MPI_Wait(&req, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE, "they must be equal");
        OK(MPI_Request_free(&req));
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    together(good);
}

int main(int argc, char **argv)
{
    static const char *const names[KINDS] = {"weft_rndv_copy", "weft_rndv_get", "weft_rndv_split", "weft_rndv_put"};
    MPI_Request req, both[2];
    int provided;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    check_rank = rank;
    for (int i = 0; i < KINDS; i++)
        received[i] = counter(names[i]);
    buf = malloc(2 * PARTS * EACH);
    if (rank == 0)
        OK(MPI_Psend_init(buf, PARTS, EACH, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    else
        OK(MPI_Precv_init(buf, PARTS, EACH, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
    OK(MPI_Psend_init(buf + PARTS * EACH, PARTS, EACH, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]));
    OK(MPI_Precv_init(buf, PARTS, EACH, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]));
    together(req);
    in_groups(req);
    holes(both);
    refused(req);
    freed_at_once(req);
    OK(MPI_Request_free(&req));
    OK(MPI_Request_free(&both[0]));
    OK(MPI_Request_free(&both[1]));
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    free(buf);
    return 0;
}

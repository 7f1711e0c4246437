/* np: 2 3 4 8 : short nonblocking collectives, which may end in the call that starts them */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { CALLS = 300, KINDS = 9, MOST = 300 };

static int rank, size;
static int from[8 * MOST], into[8 * MOST], *to = into;

static int value(int member, int call, int i) { return 1000 * member + 7 * call + i; }

static void fill(int call, int count)
{
    for (int i = 0; i < size * count; i++)
        from[i] = value(rank, call, i), to[i] = -1;
}

/* Overwrites what the call had on the stack. */
static __attribute__((noinline)) void scribble(void)
{
    volatile char stack[4096];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = (char)0xa5;
}

static __attribute__((noinline)) void start(int kind, int count, int root, MPI_Comm comm, MPI_Request *req)
{
    MPI_Datatype type; /* freed at once */
    OK(MPI_Type_contiguous(count, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    switch (kind) {
    case 0: OK(MPI_Iallreduce(from, to, count, MPI_INT, MPI_SUM, comm, req)); break;
    case 1: OK(MPI_Ibcast(rank == root ? from : to, 1, type, root, comm, req)); break;
    case 2: OK(MPI_Ireduce(from, to, count, MPI_INT, MPI_MAX, root, comm, req)); break;
    case 3: OK(MPI_Igather(from, 1, type, to, 1, type, root, comm, req)); break;
    case 4: OK(MPI_Iscatter(from, 1, type, to, 1, type, root, comm, req)); break;
    case 5: OK(MPI_Iallgather(from, 1, type, to, 1, type, comm, req)); break;
    case 6: OK(MPI_Ialltoall(from, 1, type, to, 1, type, comm, req)); break;
    case 7: OK(MPI_Iscan(from, to, count, MPI_INT, MPI_SUM, comm, req)); break;
    default: OK(MPI_Ibarrier(comm, req));
    }
    OK(MPI_Type_free(&type));
}

static int expected(int kind, int call, int count, int root, int block, int i)
{
    int sum = 0;
    switch (kind) {
    case 0: case 7:
        for (int r = 0; r < (kind ? rank + 1 : size); r++)
            sum += value(r, call, i);
        return sum;
    case 1: return value(root, call, i);
    case 2: return value(size - 1, call, i);
    case 4: return value(root, call, rank * count + i);
    case 6: return value(block, call, rank * count + i);
    default: return value(block, call, i);
    }
}

static void verify(int kind, int call, int count, int root)
{
    int blocks = kind == 3 || kind == 5 || kind == 6 ? size : kind == KINDS - 1 ? 0 : 1;
    if ((kind == 2 || kind == 3) && rank != root)
        return;
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < count; i++) {
            const int *got = kind == 1 && rank == root ? from : to;
            CHECK(got[block * count + i] == expected(kind, call, count, root, block, i), "kind %d, call %d, block %d, %d: %d", kind, call,
                  block, i, got[block * count + i]);
        }
}

static void complete(int how, MPI_Request *req)
{
    int flag = 0;
    MPI_Status status;
    MPI_Request other = MPI_Request_fromint(MPI_Request_toint(*req));
    CHECK(other == *req, "how %d: another handle", how);
    if (how == 0)
        OK(MPI_Wait(req, &status));
    while (how == 1 && !flag)
        OK(MPI_Test(req, &flag, &status));
    while (how == 2 && !flag)
        OK(MPI_Request_get_status(*req, &flag, &status));
    if (how >= 2)
        OK(MPI_Waitall(1, req, MPI_STATUSES_IGNORE));
    CHECK(*req == MPI_REQUEST_NULL, "how %d: the handle", how);
}

/* One member in turn is late: for the others calls go on by a schedule, for it all may be there. */
static void calls(MPI_Comm comm)
{
    for (int call = 0; call < CALLS; call++) {
        int kind = call % KINDS, count = call % 4 == 3 ? MOST : 1 + call % 14, root = call / 5 % size;
        MPI_Request req;
        fill(call, count);
        if (call % 16 == 0 && rank == call / 16 % size)
            usleep(3000);
        start(kind, count, root, comm, &req);
        scribble();
        complete(call % 4, &req);
        verify(kind, call, count, root);
    }
}

/* Collectives cannot be cancelled, also if they have ended. */
static void cancel(void)
{
    MPI_Request req;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (int i = 0; i < 20; i++) {
        if (rank == i % size)
            usleep(1000);
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &req));
        CHECK(class_of(MPI_Cancel(&req)) == MPI_ERR_REQUEST, "cancel %d", i);
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
}

/* A call returns although others have not made it: each rank begins when the one before has returned, the root at last. So many calls that
 * the others may not be further ahead of the root. */
static void local(int kind, MPI_Comm comm)
{
    enum { MANY = 150 };
    static int places[MANY][8];
    MPI_Request reqs[MANY];
    for (int first = 0; first < size; first++) {
        int place = (rank + size - first) % size, root = (first + size - 1) % size;
        fill(0, 1);
        if (place)
            OK(MPI_Recv(NULL, 0, MPI_INT, (rank + size - 1) % size, kind, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        memset(places, 0, sizeof places);
        for (int i = 0; i < MANY; i++) {
            to = places[i];
            start(kind, 1, root, comm, &reqs[i]);
        }
        if (place < size - 1)
            OK(MPI_Send(NULL, 0, MPI_INT, (rank + 1) % size, kind, MPI_COMM_WORLD));
        OK(MPI_Waitall(MANY, reqs, MPI_STATUSES_IGNORE));
        for (int i = 0; i < MANY; i++) {
            to = places[i];
            verify(kind, 0, 1, root);
        }
    }
    to = into;
}

/* ---- a count for each rank ---- */

enum { V_KINDS = 8, V_MOST = 6000 };

/* Elements that `a` sends to `b`, or that block `a` has; some are 0, of some calls a few are long. */
static int v_count(int kind, int call, int a, int b)
{
    int mixed = kind == 2 || kind == 3 ? 5 * a + 3 * b + call : 5 * a + call; /* alltoallv, alltoallw: of a pair */
    return mixed % 23 == 0 ? V_MOST : mixed % 5 == 1 ? 0 : 1 + mixed % 40;
}

static int v_value(int a, int b, int call, int i) { return 100000 * a + 7000 * b + 13 * call + i; }

typedef struct v_side { /* one block for each rank */
    int counts[8], displs[8], bytes[8], *data;
    MPI_Datatype types[8];
} v_side;

/* Blocks in descending order, with gaps. The element before and after each is -1. */
static void v_open(v_side *side, int kind, int call, int is_sent)
{
    int at = 1;
    for (int r = size - 1; r >= 0; r--) {
        side->counts[r] = is_sent ? v_count(kind, call, rank, r) : v_count(kind, call, r, rank);
        side->displs[r] = at;
        side->bytes[r] = at * (int)sizeof(int);
        at += side->counts[r] + 1;
        side->types[r] = MPI_INT;
    }
    side->data = malloc((size_t)at * sizeof(int));
    for (int i = 0; i < at; i++)
        side->data[i] = -1;
    for (int r = 0; is_sent && r < size; r++)
        for (int i = 0; i < side->counts[r]; i++)
            side->data[side->displs[r] + i] = v_value(rank, r, call, i);
}

/* Type and arrays of types are freed, or overwritten, at once. */
static __attribute__((noinline)) void v_start(int kind, int call, int root, v_side *out, v_side *in, MPI_Comm comm, MPI_Request *req)
{
    MPI_Datatype type;
    int own = v_count(kind, call, rank, rank);
    OK(MPI_Type_contiguous(1, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    switch (kind) {
    case 0: /* each member's block of this length to the root */
        OK(MPI_Igatherv(out->data + out->displs[root], own, type, in->data, in->counts, in->displs, MPI_INT, root, comm, req));
        break;
    case 1:
        OK(MPI_Iscatterv(out->data, out->counts, out->displs, MPI_INT, in->data + in->displs[root], in->counts[root], type, root, comm,
                         req));
        break;
    case 2: OK(MPI_Ialltoallv(out->data, out->counts, out->displs, type, in->data, in->counts, in->displs, MPI_INT, comm, req)); break;
    case 3:
        for (int r = 0; r < size; r++)
            out->types[r] = type;
        OK(MPI_Ialltoallw(out->data, out->counts, out->bytes, out->types, in->data, in->counts, in->bytes, in->types, comm, req));
        break;
    case 4:
        OK(MPI_Iallgatherv(out->data + out->displs[root], own, type, in->data, in->counts, in->displs, MPI_INT, comm, req));
        break;
    case 6: OK(MPI_Ialltoallv(MPI_IN_PLACE, NULL, NULL, MPI_INT, in->data, in->counts, in->displs, MPI_INT, comm, req)); break;
    default: OK(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_INT, in->data, in->counts, in->displs, MPI_INT, comm, req));
    }
    OK(MPI_Type_free(&type));
}

/* What rank `from` has sent, in the block of the receiver that begins at `at`. */
static void v_verify(int kind, int call, int from, int to_rank, int count, const int *at)
{
    for (int i = 0; i < count; i++)
        CHECK(at[i] == v_value(from, to_rank, call, i), "kind %d, call %d, from %d, %d: %d", kind, call, from, i, at[i]);
}

static void v_verify_all(int kind, int call, int root, const v_side *in)
{
    if (kind == 1) {
        v_verify(kind, call, root, rank, in->counts[root], in->data + in->displs[root]);
        return;
    }
    for (int r = 0; r < size && (kind || rank == root); r++) {
        v_verify(kind, call, r, kind == 2 || kind == 3 || kind == 6 ? rank : root, in->counts[r], in->data + in->displs[r]);
        CHECK(in->data[in->displs[r] - 1] == -1 && in->data[in->displs[r] + in->counts[r]] == -1, "kind %d, call %d: a gap", kind, call);
    }
}

/* Every rank's vector has the same length: element i of it is its rank + i. */
static void v_reduce(int call, v_side *out, const v_side *in, MPI_Comm comm)
{
    int all = 0, before = 0, *sums, *vector;
    MPI_Request req;
    for (int r = 0; r < size; r++) {
        before += r < rank ? in->counts[r] : 0;
        all += in->counts[r];
    }
    vector = malloc((size_t)(all + 1) * sizeof(int));
    sums = malloc((size_t)(in->counts[rank] + 1) * sizeof(int));
    for (int i = 0; i < all; i++)
        vector[i] = rank + i;
    free(out->data);
    out->data = vector;
    OK(MPI_Ireduce_scatter(vector, sums, in->counts, MPI_INT, MPI_SUM, comm, &req));
    scribble();
    complete(call % 4, &req);
    for (int i = 0; i < in->counts[rank]; i++)
        CHECK(sums[i] == size * (size - 1) / 2 + size * (before + i), "reduce_scatter, call %d, %d: %d", call, i, sums[i]);
    free(sums);
}

/* The counts of a symmetric exchange: both of a pair send as much. */
static void v_in_place(int kind, int call, v_side *in)
{
    int at = 1;
    for (int r = size - 1; kind == 6 && r >= 0; r--) {
        in->counts[r] = v_count(2, call, r < rank ? r : rank, r < rank ? rank : r);
        in->displs[r] = at;
        at += in->counts[r] + 1;
    }
    if (kind == 6) {
        free(in->data);
        in->data = malloc((size_t)at * sizeof(int));
        for (int i = 0; i < at; i++)
            in->data[i] = -1;
    }
    for (int r = 0; r < size; r++)
        for (int i = 0; i < in->counts[r] && (kind == 6 || r == rank); i++)
            in->data[in->displs[r] + i] = v_value(rank, kind == 6 ? r : 0, call, i);
}

static void v_calls(MPI_Comm comm)
{
    for (int call = 0; call < CALLS; call++) {
        int kind = call % V_KINDS, root = kind == 7 ? 0 : call / 5 % size;
        v_side out, in;
        MPI_Request req;
        v_open(&out, kind, call, 1);
        v_open(&in, kind, call, 0);
        if (kind == 1) /* the root's block for this rank has its length by the receiver */
            for (int r = 0; r < size; r++)
                in.counts[r] = v_count(kind, call, root, rank);
        if (kind >= 6)
            v_in_place(kind, call, &in);
        if (call % 16 == 0 && rank == call / 16 % size)
            usleep(3000);
        if (kind == 5) {
            v_reduce(call, &out, &in, comm);
        } else {
            v_start(kind, call, root, &out, &in, comm, &req);
            scribble();
            complete(call % 4, &req);
            v_verify_all(kind, call, root, &in);
        }
        free(out.data);
        free(in.data);
    }
}

/* A block that is longer than its place: an error of the receiver only, and the next call works. */
static void v_truncated(MPI_Comm comm)
{
    static const char *const names[] = {"gatherv", "scatterv", "alltoallv"};
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int i = 0; i < 12; i++) {
        int sent[64] = {0}, got[64], outs[8], ins[8], displs[8], code, expects = i % 3 == 1 ? rank == 1 : rank == 0;
        MPI_Request req;
        for (int r = 0; r < size; r++)
            outs[r] = 2, ins[r] = r ? 1 : 2, displs[r] = 2 * r; /* rank 0 expects 1 of each other rank */
        if (i % 2 && rank == 1)
            usleep(1000);
        if (i % 3 == 0)
            code = MPI_Igatherv(sent, 2, MPI_INT, got, ins, displs, MPI_INT, 0, comm, &req);
        else if (i % 3 == 1)
            code = MPI_Iscatterv(sent, outs, displs, MPI_INT, got, rank == 1 ? 1 : 2, MPI_INT, 0, comm, &req);
        else
            code = MPI_Ialltoallv(sent, outs, displs, MPI_INT, got, rank ? outs : ins, displs, MPI_INT, comm, &req);
        if (!code)
            code = MPI_Wait(&req, MPI_STATUS_IGNORE);
        CHECK(class_of(code) == (expects ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "%s %d: class %d", names[i % 3], i, class_of(code));
    }
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
    v_calls(comm);
}

/* Several at a time: only the oldest may end at once. */
static void overlap(MPI_Comm comm)
{
    int sums[8], ones[8];
    MPI_Request reqs[8];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 8; i++) {
            ones[i] = i + round;
            OK(MPI_Iallreduce(&ones[i], &sums[i], 1, MPI_INT, MPI_SUM, i % 2 ? comm : MPI_COMM_WORLD, &reqs[i]));
        }
        OK(MPI_Waitall(8, reqs, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 8; i++)
            CHECK(sums[i] == size * (i + round), "round %d, %d: %d", round, i, sums[i]);
    }
}

/* Calls that differ: an error in the call or when it is completed. */
static void differ(void)
{
    MPI_Comm comm;
    for (int how = 0; how < 4; how++) {
        int one = 1, sum, code = MPI_SUCCESS;
        MPI_Request req = MPI_REQUEST_NULL;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
        for (int i = 0; i < 9; i++)
            start(i % KINDS, 1, 0, comm, &req), complete(0, &req);
        if (rank == size - 1 && how % 2)
            usleep(2000);
        for (int i = 0; i < 200 && !code; i++) { /* a root learns of it when it may not be further ahead */
            code = rank == size - 1 ? MPI_Ibcast(&one, 1, MPI_INT, how / 2, comm, &req)
                                    : MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &req);
            if (!code)
                code = MPI_Wait(&req, MPI_STATUS_IGNORE);
        }
        if (!code)
            code = MPI_Barrier(comm);
        CHECK(class_of(code) == MPI_ERR_NOT_SAME, "how %d: class %d", how, class_of(code));
        OK(MPI_Comm_free(&comm));
    }
}

int main(void)
{
    MPI_Comm comm;
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    calls(comm);
    cancel();
    for (int kind = 0; kind < KINDS; kind++)
        local(kind, comm);
    overlap(comm);
    v_calls(comm);
    v_truncated(comm);
    differ();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Finalize());
    return 0;
}

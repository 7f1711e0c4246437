/* np: 2 4 : operators and error handlers call every local function, under MPI_THREAD_MULTIPLE, while other threads communicate */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "local_calls.h"

enum { LONG = 30000, ROUNDS = 3 };

static int rank, size;
static atomic_int calls, handled;
static atomic_bool is_over;
static MPI_Comm others;

/* Makes pairs (a, b) into a function composition, which does not commute: out = in then inout, of x -> a x + b. */
static void compose(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const unsigned *x = in;
    unsigned *y = inout;
    int bytes;
    atomic_fetch_add(&calls, 1);
    local_calls();
    OK(MPI_Type_size(*type, &bytes));
    for (int i = 0; i < *length * bytes / 8; i++) {
        unsigned a = x[2 * i] * y[2 * i], b = y[2 * i] * x[2 * i + 1] + y[2 * i + 1];
        y[2 * i] = a;
        y[2 * i + 1] = b;
    }
}

static void compose_c(void *in, void *inout, MPI_Count *length, MPI_Datatype *type)
{
    int narrow = (int)*length;
    compose(in, inout, &narrow, type);
}

static void expect(unsigned *want, int i)
{
    want[0] = 1;
    want[1] = 0;
    for (int r = 0; r < size; r++) {
        unsigned a = (unsigned)(r * 2 + 3 + i), b = (unsigned)(r + 7 * i + 1);
        want[1] = a * want[1] + b;
        want[0] *= a;
    }
}

/* way: 0 blocking, 1 nonblocking, 2 persistent. */
static void reduce_once(int way, int all, MPI_Op op, MPI_Datatype type, int count, unsigned *in, unsigned *out)
{
    MPI_Request req;
    int root = size - 1;
    for (int i = 0; i < count; i++) {
        in[2 * i] = (unsigned)(rank * 2 + 3 + i);
        in[2 * i + 1] = (unsigned)(rank + 7 * i + 1);
    }
    memset(out, 0, (size_t)count * 8);
    if (way == 0) {
        OK(all ? MPI_Allreduce(in, out, count, type, op, MPI_COMM_WORLD) : MPI_Reduce(in, out, count, type, op, root, MPI_COMM_WORLD));
    } else {
        if (way == 1)
            OK(all ? MPI_Iallreduce(in, out, count, type, op, MPI_COMM_WORLD, &req)
                   : MPI_Ireduce(in, out, count, type, op, root, MPI_COMM_WORLD, &req));
        else
            OK(all ? MPI_Allreduce_init(in, out, count, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &req)
                   : MPI_Reduce_init(in, out, count, type, op, root, MPI_COMM_WORLD, MPI_INFO_NULL, &req));
        for (int i = 0; i < (way == 2 ? 2 : 1); i++) {
            if (way == 2)
                OK(MPI_Start(&req));
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        }
        if (way == 2)
            OK(MPI_Request_free(&req));
    }
    for (int i = 0; i < count && (all || rank == root); i++) {
        unsigned want[2];
        expect(want, i);
        CHECK(out[2 * i] == want[0] && out[2 * i + 1] == want[1], "way %d, element %d of %d", way, i, count);
    }
}

static void operators(void)
{
    static const int counts[] = {1, 200, LONG};
    unsigned *in = malloc(LONG * 8), *out = malloc(LONG * 8);
    MPI_Datatype pair;
    MPI_Op op[2];
    OK(MPI_Type_contiguous(2, MPI_UNSIGNED, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Op_create(compose, 0, &op[0]));
    OK(MPI_Op_create_c(compose_c, 0, &op[1]));
    for (int round = 0; round < ROUNDS; round++)
        for (int way = 0; way < 3; way++)
            for (int c = 0; c < 3; c++)
                for (int all = 0; all < 2; all++)
                    reduce_once(way, all, op[(round + c) % 2], pair, counts[c], in, out);
    OK(MPI_Op_free(&op[0]));
    OK(MPI_Op_free(&op[1]));
    OK(MPI_Type_free(&pair));
    CHECK(atomic_load(&calls) > 0);
    free(in);
    free(out);
}

/* An operator frees itself and its type: operations in flight keep both. */
static MPI_Op own_op;
static MPI_Datatype own_type;
static void frees_all(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int bytes;
    OK(MPI_Type_size(*type, &bytes)); /* also in later calls, after the type's handle was freed */
    CHECK(bytes == 8);
    if (own_op != MPI_OP_NULL) {
        OK(MPI_Op_free(&own_op));
        OK(MPI_Type_free(&own_type));
    }
    for (int i = 0; i < *length * 2; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void self_freeing(void)
{
    int *in = malloc(LONG * 8), *out = malloc(LONG * 8);
    for (int way = 0; way < 2; way++) {
        MPI_Request req;
        int freed;
        for (int i = 0; i < LONG * 2; i++)
            in[i] = rank + i;
        OK(MPI_Type_contiguous(2, MPI_INT, &own_type));
        OK(MPI_Type_commit(&own_type));
        OK(MPI_Op_create(frees_all, 1, &own_op));
        if (way)
            OK(MPI_Iallreduce(in, out, LONG, own_type, own_op, MPI_COMM_WORLD, &req));
        else
            OK(MPI_Allreduce(in, out, LONG, own_type, own_op, MPI_COMM_WORLD));
        if (way)
            OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        freed = own_op == MPI_OP_NULL;
        if (!freed) { /* this rank reduced nothing */
            OK(MPI_Op_free(&own_op));
            OK(MPI_Type_free(&own_type));
        }
        OK(MPI_Allreduce(MPI_IN_PLACE, &freed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(freed > 0);
        for (int i = 0; i < LONG * 2; i++)
            CHECK(out[i] == size * i + size * (size - 1) / 2, "way %d, element %d", way, i);
    }
    free(in);
    free(out);
}

/* An error handler may also send messages. */
static void handler(MPI_Comm *comm, int *code, ...)
{
    int x = 1, y = 0, r;
    MPI_Request req;
    CHECK(*code == MPI_ERR_RANK || *code == MPI_ERR_TRUNCATE || *code == MPI_ERR_OP);
    OK(MPI_Comm_rank(*comm, &r));
    local_calls();
    OK(MPI_Irecv(&y, 1, MPI_INT, 0, 77, MPI_COMM_SELF, &req));
    OK(MPI_Send(&x, 1, MPI_INT, 0, 77, MPI_COMM_SELF));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(y == 1);
    atomic_fetch_add(&handled, 1);
}

static void handlers(void)
{
    MPI_Errhandler errhandler;
    MPI_Comm comm;
    MPI_Request req;
    int x[2] = {0}, y;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(comm, errhandler));
    OK(MPI_Errhandler_free(&errhandler));
    CHECK(MPI_Send(x, 1, MPI_INT, 9, 0, comm) == MPI_ERR_RANK); /* an argument */
    OK(MPI_Isend(x, 2, MPI_INT, 0, 0, comm, &req));
    CHECK(MPI_Recv(&y, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE); /* a blocking call */
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Irecv(&y, 1, MPI_INT, 0, 0, comm, &req));
    OK(MPI_Send(x, 2, MPI_INT, 0, 0, comm));
    CHECK(MPI_Wait(&req, MPI_STATUS_IGNORE) == MPI_ERR_TRUNCATE); /* a completion */
    CHECK(MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_REPLACE, comm) == MPI_ERR_OP);
    OK(MPI_Comm_call_errhandler(comm, MPI_ERR_OP));
    CHECK(atomic_load(&handled) == 5, "%d", atomic_load(&handled));
    OK(MPI_Comm_free(&comm));
}

/* Another thread sends messages and makes local calls meanwhile. */
static void *other(void *nothing)
{
    int rounds = 0;
    (void)nothing;
    for (int go_on = 1; go_on; rounds++) {
        int x = rank + rounds, y = -1, right = (rank + 1) % size, left = (rank + size - 1) % size, done = atomic_load(&is_over);
        OK(MPI_Sendrecv(&x, 1, MPI_INT, right, 0, &y, 1, MPI_INT, left, 0, others, MPI_STATUS_IGNORE));
        CHECK(y == left + rounds);
        if (rounds % 8 == 0)
            unlocked_calls();
        OK(MPI_Allreduce(&done, &go_on, 1, MPI_INT, MPI_SUM, others));
        go_on = go_on < size;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int level;
    alarm(300); /* the failure under test is a hang */
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    local_prepare();
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &others));
    CHECK(!pthread_create(&thread, NULL, other, NULL));
    operators();
    self_freeing();
    handlers();
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    OK(MPI_Comm_free(&others));
    local_release();
    OK(MPI_Finalize());
    return 0;
}

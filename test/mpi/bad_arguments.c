/* np: 2 : each kind of invalid argument returns the right error class and a text that names function, argument and value */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

static int handler_calls, handler_code;
static MPI_Comm handler_comm;

static void on_error(MPI_Comm *comm, int *code, ...)
{
    handler_calls++;
    handler_comm = *comm;
    handler_code = *code;
}

static int x[8], y[8];

static void ranks_and_tags(int size)
{
    MPI_Status status;
    MPI_Request request;
    int flag;
    char big[32];
    (void)size;
    BAD(MPI_Send(x, 1, MPI_INT, 2, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "MPI_Send", "dest is 2", "MPI_COMM_WORLD (0..1)",
        "MPI_PROC_NULL");
    BAD(MPI_Send_c(x, 1, MPI_INT, -7, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "MPI_Send_c", "dest is -7");
    BAD(MPI_Send(x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "dest is -1");
    BAD(MPI_Isend(x, 1, MPI_INT, 99, 0, MPI_COMM_WORLD, &request), MPI_ERR_RANK, "MPI_Isend", "dest is 99");
    BAD(MPI_Recv(x, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, &status), MPI_ERR_RANK, "MPI_Recv", "source is 2", "MPI_ANY_SOURCE");
    BAD(MPI_Irecv(x, 1, MPI_INT, -5, 0, MPI_COMM_WORLD, &request), MPI_ERR_RANK, "MPI_Irecv", "source is -5");
    BAD(MPI_Iprobe(77, 0, MPI_COMM_WORLD, &flag, &status), MPI_ERR_RANK, "MPI_Iprobe", "source is 77");
    BAD(MPI_Sendrecv(x, 1, MPI_INT, 0, 0, y, 1, MPI_INT, 3, 0, MPI_COMM_SELF, &status), MPI_ERR_RANK, "source is 3",
        "MPI_COMM_SELF");
    BAD(MPI_Send(x, 1, MPI_INT, 0, -1, MPI_COMM_WORLD), MPI_ERR_TAG, "MPI_Send", "tag is -1", "2147483647");
    BAD(MPI_Send(x, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG, "MPI_ANY_TAG");
    BAD(MPI_Recv(x, 1, MPI_INT, 0, -3, MPI_COMM_WORLD, &status), MPI_ERR_TAG, "MPI_Recv", "tag is -3");
    for (int root = -1; root <= 2; root += 3) {
        snprintf(big, sizeof big, "root is %d", root);
        BAD(MPI_Bcast(x, 1, MPI_INT, root, MPI_COMM_WORLD), MPI_ERR_ROOT, "MPI_Bcast", big, "MPI_COMM_WORLD");
        BAD(MPI_Reduce(x, y, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD), MPI_ERR_ROOT, "MPI_Reduce", big);
        BAD(MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, root, MPI_COMM_WORLD), MPI_ERR_ROOT, "MPI_Gather", big);
    }
}

static void counts_and_buffers(void)
{
    MPI_Status status;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int position = 0;
    BAD(MPI_Send(x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "MPI_Send", "count is -1", "MPI_COMM_WORLD");
    BAD(MPI_Recv_c(x, -5000000000, MPI_INT, 0, 0, MPI_COMM_WORLD, &status), MPI_ERR_COUNT, "MPI_Recv_c", "-5000000000");
    BAD(MPI_Allreduce(x, y, -2, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT, "MPI_Allreduce", "count is -2");
    BAD(MPI_Waitall(-1, requests, MPI_STATUSES_IGNORE), MPI_ERR_COUNT, "MPI_Waitall", "count is -1");
    BAD(MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_Send", "buf is NULL", "MPI_INT");
    BAD(MPI_Recv(NULL, 3, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, &status), MPI_ERR_BUFFER, "MPI_Recv", "3 elements of MPI_DOUBLE");
    BAD(MPI_Send(MPI_IN_PLACE, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    BAD(MPI_Bcast(NULL, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_Bcast", "buffer is NULL");
    BAD(MPI_Allreduce(x, x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_Allreduce", "sendbuf and recvbuf",
        "MPI_IN_PLACE");
    BAD(MPI_Allreduce(x, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER, "recvbuf is MPI_IN_PLACE");
    BAD(MPI_Allgather(x, 1, MPI_INT, NULL, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_BUFFER, "recvbuf is NULL");
    BAD(MPI_Pack(x, 1, MPI_INT, NULL, 4, &position, MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_Pack", "outbuf");
    BAD(MPI_Pack(x, 1, MPI_INT, y, -4, &position, MPI_COMM_WORLD), MPI_ERR_ARG, "MPI_Pack", "outsize is -4");
}

static void handles(void)
{
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL, freed_request, two[2];
    MPI_Comm comm, freed_comm;
    MPI_Datatype type, freed_type;
    MPI_Op no_op = (MPI_Op)0;
    int flag, rank, here;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &here));
    BAD(MPI_Send(x, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_Send", "comm is MPI_COMM_NULL");
    BAD(MPI_Barrier((MPI_Comm)0), MPI_ERR_COMM, "MPI_Barrier", "comm is 0x0");
    BAD(MPI_Comm_rank((MPI_Comm)MPI_INT, &rank), MPI_ERR_COMM, "MPI_Comm_rank", "0x209");
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    freed_comm = comm;
    OK(MPI_Comm_free(&comm));
    BAD(MPI_Barrier(freed_comm), MPI_ERR_COMM, "MPI_Barrier", "freed");
    BAD(MPI_Comm_free(&freed_comm), MPI_ERR_COMM, "MPI_Comm_free");
    BAD(MPI_Send(x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "MPI_Send", "datatype is MPI_DATATYPE_NULL");
    BAD(MPI_Send(x, 1, (MPI_Datatype)MPI_SUM, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "0x21");
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    BAD(MPI_Send(x, 1, type, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "MPI_Send", "not committed", "MPI_COMM_WORLD");
    BAD(MPI_Recv(x, 1, type, 0, 0, MPI_COMM_WORLD, &status), MPI_ERR_TYPE, "MPI_Recv", "not committed");
    freed_type = type;
    OK(MPI_Type_free(&type));
    BAD(MPI_Send(x, 1, freed_type, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "freed");
    BAD(MPI_Type_commit(&freed_type), MPI_ERR_TYPE, "MPI_Type_commit");
    BAD(MPI_Allreduce(x, y, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP, "MPI_Allreduce", "op is MPI_OP_NULL");
    BAD(MPI_Reduce(x, y, 1, MPI_INT, no_op, 0, MPI_COMM_WORLD), MPI_ERR_OP, "MPI_Reduce", "op is 0x0");
    BAD(MPI_Wait(&(MPI_Request){(MPI_Request)0}, &status), MPI_ERR_REQUEST, "MPI_Wait", "request is NULL");
    BAD(MPI_Test(&(MPI_Request){(MPI_Request)MPI_INT}, &flag, &status), MPI_ERR_REQUEST, "MPI_Test", "0x209");
    OK(MPI_Recv_init(x, 1, MPI_INT, here, 0, MPI_COMM_WORLD, &request));
    freed_request = request;
    OK(MPI_Request_free(&request));
    BAD(MPI_Start(&freed_request), MPI_ERR_REQUEST, "MPI_Start", "freed");
    two[0] = MPI_REQUEST_NULL;
    two[1] = (MPI_Request)0;
    BAD(MPI_Waitall(2, two, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST, "array_of_requests[1]");
}

static void pointers(void)
{
    MPI_Comm comm;
    char port[MPI_MAX_PORT_NAME];
    int rank;
    BAD(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "MPI_Comm_rank", "rank is NULL", "MPI_COMM_WORLD");
    BAD(MPI_Isend(x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "MPI_Isend", "request is NULL");
    BAD(MPI_Wait(NULL, MPI_STATUS_IGNORE), MPI_ERR_ARG, "MPI_Wait", "request is NULL");
    BAD(MPI_Testsome(1, &(MPI_Request){MPI_REQUEST_NULL}, &rank, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG, "array_of_indices is NULL");
    BAD(MPI_Waitsome(1, &(MPI_Request){MPI_REQUEST_NULL}, &rank, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG, "array_of_indices is NULL");
    BAD(MPI_Comm_dup(MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "newcomm is NULL");
    BAD(MPI_Comm_set_name(MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "comm_name is NULL");
    BAD(MPI_Get_count(MPI_STATUS_IGNORE, MPI_INT, &rank), MPI_ERR_ARG, "MPI_Get_count", "status is NULL");
    BAD(MPI_Comm_split(MPI_COMM_WORLD, -4, 0, &comm), MPI_ERR_ARG, "MPI_Comm_split", "color is -4");
    BAD(MPI_Op_create(NULL, 1, &(MPI_Op){MPI_OP_NULL}), MPI_ERR_ARG, "user_fn is NULL");
    BAD(MPI_Open_port(MPI_INFO_NULL, port), MPI_ERR_UNSUPPORTED_OPERATION, "MPI_Open_port", "not built");
}

/* Unusual but valid arguments. */
static void odd_but_right(void)
{
    MPI_Status status;
    MPI_Request request;
    int here, n = 0;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &here));
    OK(MPI_Send(x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(x, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    OK(MPI_Irecv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 2147483647, MPI_COMM_SELF, &request));
    OK(MPI_Send(NULL, 0, MPI_INT, 0, 2147483647, MPI_COMM_SELF));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    x[0] = here + 1;
    OK(MPI_Allreduce(MPI_IN_PLACE, x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(x[0] == 3, "sum %d", x[0]);
    x[0] = here + 1;
    OK(MPI_Reduce(x, here == 0 ? y : NULL, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    CHECK(here != 0 || y[0] == 3, "sum %d", y[0]);
    y[here] = 10 + here;
    OK(MPI_Allgather(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, y, 1, MPI_INT, MPI_COMM_WORLD));
    CHECK(y[0] == 10 && y[1] == 11, "%d %d", y[0], y[1]);
    if (here == 0)
        OK(MPI_Gather(x, 1, MPI_INT, y, 1, MPI_INT, 0, MPI_COMM_WORLD));
    else
        OK(MPI_Gather(x, 1, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    CHECK(here != 0 || (y[0] == 1 && y[1] == 2), "%d %d", y[0], y[1]);
    if (here == 0)
        OK(MPI_Scatter(y, 1, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
    else
        OK(MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, &n, 1, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(here == 0 || n == 2, "scattered %d", n);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int rank, size, calls;
    MPI_Errhandler handler;
    MPI_Comm comm;
    check_start(&argc, &argv, &rank, &size);
    CHECK(size == 2);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    ranks_and_tags(size);
    counts_and_buffers();
    handles();
    pointers();
    odd_but_right();
    /* The handler of the communicator in question runs, with its handle and the class; without one that of MPI_COMM_SELF. */
    OK(MPI_Comm_create_errhandler(on_error, &handler));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, handler));
    CHECK(MPI_Send(x, 1, MPI_INT, 55, 0, comm) != MPI_SUCCESS);
    CHECK(handler_calls == 1 && handler_comm == comm && handler_code == MPI_ERR_RANK, "%d calls, code %d", handler_calls,
        handler_code);
    CHECK(MPI_Bcast(x, 1, MPI_INT, 9, MPI_COMM_WORLD) == MPI_ERR_ROOT);
    CHECK(handler_calls == 1, "a handler of another communicator ran");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler));
    calls = handler_calls;
    CHECK(MPI_Barrier(MPI_COMM_NULL) == MPI_ERR_COMM && handler_calls == calls + 1 && handler_comm == MPI_COMM_SELF);
    CHECK(MPI_Type_commit(&(MPI_Datatype){MPI_DATATYPE_NULL}) == MPI_ERR_TYPE && handler_calls == calls + 2);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Finalize());
    return 0;
}
